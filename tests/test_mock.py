"""The handle that a test holds, without pytest and mostly without sockets."""

from __future__ import annotations

import threading
import urllib.request

import pytest

import memmock
from memmock.contract import Memory
from memmock.errors import MemmockError, MemmockFailure
from memmock.http import JSON_TYPE, Request, encode_json
from memmock.mock import MemmockWarning, Mock, MockServer, MockSettings

ENDPOINT = "http://mock/memory_retrieval"


@pytest.fixture
def mock():
    return Mock(MockSettings(), ENDPOINT)


def ask(mock, *, accept=JSON_TYPE, **fields):
    headers = (("Content-Type", JSON_TYPE), ("Accept", accept), ("Authorization", mock.authorization))
    return mock.provider(Request("POST", "/memory_retrieval", headers, encode_json(fields)))


def test_config_is_the_block_of_create_live(mock):
    assert mock.config(timeout_ms=200, extra=1) == {
        "enabled": True,
        "endpoint": ENDPOINT,
        "authorization": "Bearer memmock",
        "timeout_ms": 200,
        "extra": 1,
    }


def test_memories_are_added_replaced_and_reset(mock):
    count = len(mock.memories)
    mock.remember({"summary": "甲"}, Memory("乙"))
    assert [memory.summary for memory in mock.memories[count:]] == ["甲", "乙"]
    mock.memories = [{"summary": "丙", "keywords": ["丁"]}]
    assert len(mock.memories) == 1
    ask(mock, query="丁")
    mock.reset()
    assert (len(mock.memories), mock.calls) == (count, [])


def test_memory_that_is_none_leaves_the_others_alone(mock):
    before = mock.memories
    with pytest.raises(MemmockError, match=r"memories\[1\] has no summary"):
        mock.remember({"summary": "甲"}, {"id": "7"})
    assert mock.memories == before


def test_calls_that_match_are_returned(mock):
    ask(mock, query="a", memory_types=["style", "other"])
    ask(mock, query="b")
    assert [call.number for call in mock.assert_called(query="b")] == [2]
    assert [call.number for call in mock.assert_called(times=2)] == [1, 2]
    mock.assert_called(times=1, memory_types=["other", "style"])
    mock.assert_called(times=0, query="c")


def test_calls_that_had_to_leave_the_journal_are_mentioned(mock):
    mock.provider.journal.max_calls = 2
    for query in "abc":
        ask(mock, query=query)
    with pytest.raises(
        MemmockFailure, match="1 earlier call had to leave the journal and could have matched"
    ):
        mock.assert_called(query="a")


def test_long_lists_of_calls_are_cut_short(mock):
    for _ in range(8):
        ask(mock, query="x" * 300)
    with pytest.raises(MemmockFailure) as caught:
        mock.assert_not_called()
    lines = str(caught.value).splitlines()
    assert lines[0] == "Expected no call, but 8 calls came:"
    assert lines[-1] == "  and 3 more"
    assert max(map(len, lines)) < 300


def test_calls_are_waited_for(mock):
    threading.Timer(0.02, ask, [mock], {"query": "a"}).start()
    assert len(mock.wait_for_calls(1)) == 1
    with pytest.raises(MemmockFailure, match=r"Expected 2 calls within 0.01 s, but 1 came:\n  call 1: "):
        mock.wait_for_calls(2, timeout_s=0.01)


def test_verify_passes_what_keeps_the_contract(mock):
    ask(mock, query="a", max_results=3)
    mock.verify()


def test_verify_fails_for_an_error_and_warns_for_a_recommendation(mock):
    ask(mock, query=" ")
    with pytest.warns(MemmockWarning, match="call 1: REQ203"):
        mock.verify()
    for _ in range(7):
        ask(mock, query=" ", accept="*/*")
    with pytest.raises(MemmockFailure) as caught:
        mock.verify()
    assert "The consumer broke the contract in 7 of 8 calls." in str(caught.value)
    assert "and 2 more calls." in str(caught.value)
    mock.verify(allow=["REQ003", "REQ203"])
    with pytest.raises(MemmockError, match="there is no rule 'REQ'"):
        mock.verify(allow=["REQ"])


def test_verify_warns_of_calls_that_went_astray(mock):
    mock.authorization = "Bearer wrong"
    ask(mock, query="a")
    with pytest.warns(MemmockWarning, match="call 1 was answered with 401: the Authorization header is not"):
        mock.verify()


def test_allow_may_be_one_code(mock):
    ask(mock, query="a", accept="*/*")
    mock.verify(allow="REQ003")


def test_messages_show_text_and_not_its_escapes(mock):
    headers = (("Authorization", mock.authorization),)
    mock.provider(Request("POST", "/memory_retrieval", headers, b'{"query": "\\u6697\\u53f7\\u001b"}'))
    mock.provider(Request("POST", "/memory_retrieval", headers, b"\xff{"))
    with pytest.raises(MemmockFailure) as caught:
        mock.assert_not_called()
    assert 'POST /memory_retrieval {"query": "暗号\\u001b"} -> 200' in str(caught.value)
    assert "POST /memory_retrieval \ufffd{ -> 400" in str(caught.value)


def test_reprs_say_what_is_held_and_keep_the_secret(mock):
    assert repr(mock) == f"<Mock {ENDPOINT}: {len(mock.memories)} memories, 0 calls>"
    assert "hidden" not in repr(MockSettings(authorization="Bearer hidden"))


def test_server_gives_a_fresh_mock_each_time():
    def post(server):
        request = urllib.request.Request(server.endpoint, b'{"query": "a"}', method="POST")
        request.add_header("Content-Type", JSON_TYPE)
        request.add_header("Accept", JSON_TYPE)
        request.add_header("Authorization", server.settings.authorization)
        with urllib.request.urlopen(request) as reply:
            return reply.status

    with MockServer(MockSettings(path="/m")) as server:
        assert server.endpoint.endswith("/m")
        assert post(server) == 200  # nobody looks
        with server.fresh() as first:
            first.remember({"summary": "甲"})
            assert post(server) == 200
            first.assert_called(times=1)
        with server.fresh() as second:
            assert (second.calls, len(second.memories)) == ([], len(server.settings.memories))
        assert len(first.calls) == 1  # a mock keeps what it saw


def test_server_checks_at_the_end_unless_the_test_has_failed_already():
    with MockServer() as server:
        with pytest.raises(MemmockFailure, match="broke the contract"), server.fresh() as mock:
            ask(mock, query="")
        with pytest.raises(MemmockFailure, match="Expected a"), server.fresh() as mock:  # noqa: PT012
            ask(mock, query="")
            mock.assert_called(query="something else")
        with server.fresh(allow=["REQ202"]) as mock:
            ask(mock, query="")
            with pytest.raises(MemmockError, match="a fresh mock is being served already"), server.fresh():
                pass


def test_settings_that_cannot_be_served_are_a_clear_error():
    with pytest.raises(MemmockError, match=r"nowhere\.yaml"):
        MockServer(MockSettings(persona="nowhere.yaml"))


def test_public_names_are_all_there():
    for name in memmock.__all__:
        assert getattr(memmock, name) is not None
    assert set(memmock.__all__) <= set(dir(memmock))
    with pytest.raises(AttributeError, match="module 'memmock' has no attribute 'nothing'"):
        _ = memmock.nothing
