"""The handle that a test holds, without pytest and mostly without sockets."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request

import pytest

import memmock
from memmock.contract import Memory
from memmock.errors import MemmockError, MemmockFailure
from memmock.http import JSON_TYPE, Reply, Request, Sent, encode_json
from memmock.mock import MemmockWarning, Mock, MockSettings
from memmock.mock_server import MockServer
from tests.wire import Wire

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


# ---- what it plays


def send(wire, mock, query="a", path="/memory_retrieval"):
    """Send a retrieval that keeps the contract."""
    kinds = (f"{name}: {JSON_TYPE}" for name in ("Content-Type", "Accept"))
    wire.post(encode_json({"query": query}), *kinds, f"Authorization: {mock.authorization}", path=path)


@pytest.fixture(scope="module")
def server():
    with MockServer() as server:
        yield server


def port_of(server):
    return int(server.endpoint.rpartition(":")[2].partition("/")[0])


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "scenarios:\n"
        "  sleepy: {status: 503, body: zzz}\n"
        "  secret: {body: {memories: []}, when: {query: 暗号}}\n",
        "utf-8",
    )
    return MockSettings(scenarios=path)


def test_mock_plays_scenarios_plans_and_chaos(mock):
    mock.use("rate-limited", retry_after=3)
    assert ask(mock, query="a").header("Retry-After") == "3"
    mock.plan("server-error, 204*2")
    mock.chaos("empty=0, null=1", seed=1)
    assert ask(mock, query="a").body == b"null"
    mock.use("success")
    mock.use("bad-gateway", times=1)
    mock.use("forbidden", when={"query": "b"}, for_s=60)
    assert [ask(mock, query=query).status for query in "abba"] == [502, 403, 403, 200]


def test_mock_plays_replies_and_functions(mock):
    mock.use(Reply.json({"memories": []}, 203))
    assert ask(mock, query="a").status == 203
    mock.use(lambda request: Reply(202), times=1)
    assert [ask(mock, query="a").status for _ in range(2)] == [202, 203]
    assert [call.played for call in mock.calls] == [
        "a reply of your own",
        "a function of your own",
        "a reply of your own",
    ]


@pytest.mark.parametrize(
    "play",
    [
        lambda mock: mock.use("lat"),
        lambda mock: mock.use("late", delay=1),
        lambda mock: mock.use("late", times=0),
        lambda mock: mock.plan("late,,late"),
        lambda mock: mock.chaos("late=2", seed=1),
    ],
)
def test_what_cannot_be_played_is_an_error_without_its_inner_workings(mock, play):
    with pytest.raises(MemmockError) as caught:
        play(mock)
    assert caught.value.__suppress_context__
    files = {entry.path.name for entry in caught.traceback}
    assert files.isdisjoint({"playbook.py", "plays.py", "scenario.py", "__init__.py"})


def test_reset_forgets_what_was_to_be_played(mock):
    mock.use("late")
    mock.plan("empty*3")
    mock.reset()
    assert ask(mock, query="a").delivery.delay_s == 0
    mock.verify()


def test_scenarios_of_a_file_are_played_by_name_or_always(own):
    mock = Mock(own, ENDPOINT)
    assert ask(mock, query="暗号").body == b'{"memories":[]}'
    mock.use("sleepy")
    assert ask(mock, query="暗号").status == 503
    mock.reset()
    assert ask(mock, query="暗号").body == b'{"memories":[]}'
    assert ask(mock, query="a").status == 200
    assert [call.played for call in mock.calls] == ["secret", ""]


def test_file_of_scenarios_that_cannot_be_read_is_a_clear_error(tmp_path):
    with pytest.raises(MemmockError, match=r"nowhere\.yaml: No such file"):
        Mock(MockSettings(scenarios=tmp_path / "nowhere.yaml"), ENDPOINT)


def test_mock_of_a_server_that_can_less_says_so():
    mock = Mock(MockSettings(), ENDPOINT, abilities=frozenset())
    with pytest.raises(MemmockError, match="scenario refused cannot be played here"):
        mock.use("refused")


# ---- what is wrong at the end


def test_plan_that_was_not_played_fails_at_the_end(mock):
    mock.plan("server-error*2, success")
    with pytest.raises(MemmockFailure) as caught:
        mock.verify()
    assert (
        str(caught.value)
        == """\
A plan was not played to its end.

  "server-error*2, success" was played 0 of 3 times; next would be server-error

No call came.

For a plan that may end early: memmock.plan(…, must_finish=False)"""
    )


def test_plan_that_was_played_in_part_shows_the_calls(mock):
    mock.plan("server-error*2, success")
    mock.plan("empty")
    for _ in range(2):
        ask(mock, query="a")
    with pytest.raises(MemmockFailure) as caught:
        mock.verify()
    assert (
        str(caught.value)
        == """\
A plan was not played to its end.

  "server-error*2, success" was played 1 of 3 times; next would be server-error

2 calls came:
  call 1: POST /memory_retrieval {"query": "a"} -> 200 (empty: completed)
  call 2: POST /memory_retrieval {"query": "a"} -> 500 (server-error: completed)

For a plan that may end early: memmock.plan(…, must_finish=False)"""
    )


def test_plan_that_was_played_or_may_end_early_is_fine(mock):
    mock.plan("server-error, empty", must_finish=False)
    mock.plan("empty")
    ask(mock, query="a")
    mock.verify()


def test_broken_rule_is_told_before_a_plan(mock):
    mock.plan("server-error")
    ask(mock, query="")
    with pytest.raises(MemmockFailure, match="The consumer broke the contract"):
        mock.verify()


@pytest.mark.parametrize("scenario", ["unauthorized", "not-found"])
def test_refusal_that_a_scenario_asked_for_is_no_doubt(mock, scenario):
    mock.use(scenario)
    assert ask(mock, query="a").status in (401, 404)
    mock.verify()


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            (),
            "call 1 followed a redirect, as a POST without the authorization; "
            "a consumer does not follow redirects",
        ),
        (
            (("Authorization", "Bearer memmock"),),
            "call 1 followed a redirect, as a POST with the authorization; "
            "a consumer does not follow redirects",
        ),
    ],
)
def test_redirect_that_was_followed_is_doubtful(mock, headers, message):
    kinds = (("Content-Type", JSON_TYPE), ("Accept", JSON_TYPE))
    target = "/memmock-moved/memory_retrieval"
    reply = mock.provider(Request("POST", target, (*kinds, *headers), encode_json({"query": "a"})))
    assert reply.status == 200
    with pytest.warns(MemmockWarning) as caught:
        mock.verify(allow=["REQ004"])
    assert message in [str(each.message) for each in caught]


def test_many_doubts_are_cut_short(mock):
    for _ in range(8):
        mock.provider(Request("GET", "/elsewhere"))
    allowed = [found.code for found in mock.calls[0].violations]
    with pytest.warns(MemmockWarning) as caught:
        mock.verify(allow=allowed)
    messages = [str(each.message) for each in caught]
    assert len(messages) == 6
    assert messages[0].startswith("call 1 was answered with 404: nothing is here; ")
    assert messages[-1] == "and 3 more doubts like these"


def test_retry_of_a_failed_call_is_told(mock):
    mock.use("server-error", times=1)
    for _ in range(2):
        ask(mock, query="a")
    with pytest.raises(MemmockFailure) as caught:
        mock.assert_called(times=1)
    assert str(caught.value).splitlines() == [
        "Expected 1 retrieval, but 2 of 2 calls matched.",
        "",
        '  call 1: POST /memory_retrieval {"query": "a"} -> 500 (server-error: completed)',
        '  call 2: POST /memory_retrieval {"query": "a"} -> 200',
        "",
        "Call 2 is call 1 again, byte by byte, after that had failed: "
        "does the client, or its HTTP library, try again?",
    ]


def test_calls_that_left_the_journal_are_told_whatever_was_expected(mock):
    mock.provider.journal.max_calls = 2
    for query in "aabb":
        ask(mock, query=query)
    for expected in ({"times": 4}, {"times": 3, "query": "b"}, {"query": "a"}):
        with pytest.raises(MemmockFailure) as caught:
            mock.assert_called(**expected)
        assert str(caught.value).endswith(
            "\n\n2 earlier calls had to leave the journal and could have matched."
        )


# ---- over a server


def test_answers_are_waited_for_until_they_are_sent(server):
    with server.fresh() as mock, Wire(port_of(server)) as wire:
        mock.use(Reply.json({"memories": []}).delayed(0.05))
        send(wire, mock)
        mock.wait_for_calls(1)
        (call,) = mock.wait_until_sent()
        assert call.sent.how == "completed"
        assert call.elapsed_s >= 0.05
        assert call.sent.sent_bytes == len(call.reply.body) + len(wire._until(b"\r\n\r\n")[0]) + 4


def test_answer_that_is_under_way_for_too_long_is_told(server):
    with server.fresh() as mock, Wire(port_of(server)) as wire:
        assert mock.wait_until_sent(0.01) == []
        mock.use("hang")
        send(wire, mock)
        mock.wait_for_calls(1)
        with pytest.raises(MemmockFailure) as caught:
            mock.wait_until_sent(0.01)
        assert str(caught.value) == (
            "Expected all answers to be sent within 0.01 s, but 1 answer still under way:\n"
            '  call 1: POST /memory_retrieval {"query": "a"} -> 200 (hang: under way)'
        )
        wire.socket.close()
        (call,) = mock.wait_until_sent()
        assert call.ending.startswith("the client closed after 0 bytes, ")


def test_connections_of_each_mock_are_counted(server):
    with server.fresh() as mock:
        assert mock.connections == 0
        for n in range(1, 3):
            with Wire(port_of(server)) as wire:
                for _ in range(2):
                    send(wire, mock)
                    assert wire.answer().status == 200
            assert mock.connections == n
        mock.use("reset-on-connect", times=1)
        assert _cannot_connect(server)
        assert mock.connections == 3
    with server.fresh() as mock:
        assert mock.connections == 0


def test_connections_without_a_server_are_those_of_the_calls(mock):
    assert mock.connections == 0
    for connection in (1, 1, 2):
        mock.provider(Request("POST", "/memory_retrieval", connection=connection))
    assert mock.connections == 2


def _refused(server):
    try:
        Wire(port_of(server)).socket.close()
    except ConnectionRefusedError:
        return True
    return False


def _cannot_connect(server):
    try:
        with Wire(port_of(server)) as wire:
            wire.socket.recv(1)
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("scenario", ["refused", "reset-on-connect"])
def test_door_is_shut_at_once_and_open_for_the_next_mock(server, scenario):
    for _ in range(5):
        with server.fresh() as mock, Wire(port_of(server)) as idle:
            send(idle, mock)
            assert idle.answer().status == 200
            mock.use(scenario)
            assert idle.rest() == b""
            assert _cannot_connect(server)
        with server.fresh() as mock, Wire(port_of(server)) as wire:
            send(wire, mock)
            assert wire.answer().status == 200


def test_connections_are_refused_for_a_while(server):
    with server.fresh() as mock:
        mock.use("refused", for_s=0.2)
        assert _refused(server)
        deadline = time.monotonic() + 10
        while _refused(server):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with Wire(port_of(server)) as wire:
            send(wire, mock)
            assert wire.answer().status == 200


def test_function_may_change_what_is_played(server):
    with server.fresh() as mock, Wire(port_of(server)) as wire:

        def last(request):
            mock.use("refused", for_s=60)
            return Reply.json({"memories": []})

        mock.use(last)
        send(wire, mock)
        assert wire.answer().json() == {"memories": []}
        assert wire.rest() == b""
        assert _cannot_connect(server)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_function_is_played_over_the_wire(server, asynchronous):
    def shout(request):
        return Reply.json({"memories": []}, 203).chunked(3)

    async def later(request):
        await asyncio.sleep(0.01)
        return shout(request)

    with server.fresh() as mock, Wire(port_of(server)) as wire:
        mock.use(later if asynchronous else shout)
        send(wire, mock)
        assert wire.answer(body=False).status == 203
        mock.wait_until_sent()
        assert [call.played for call in mock.calls] == ["later" if asynchronous else "shout"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_function_that_raises_is_answered_noted_and_raised_at_the_end(server, asynchronous):
    def broken(request):
        raise LookupError("the reason")

    async def later(request):
        return broken(request)

    with pytest.raises(LookupError, match="the reason"), server.fresh() as mock:  # noqa: PT012
        mock.use(later if asynchronous else broken)
        with Wire(port_of(server)) as wire:
            send(wire, mock)
            assert wire.answer().status == 500
        assert [call.reply.status for call in mock.calls] == [500]


def test_function_that_returns_no_reply_is_raised_at_the_end(server):
    message = "a function of your own returned 7, not a Reply"
    with pytest.raises(MemmockError, match=message), server.fresh() as mock:  # noqa: PT012
        mock.use(lambda request: 7)
        with Wire(port_of(server)) as wire:
            send(wire, mock)
            assert wire.answer().status == 500


def test_function_that_raised_in_a_failed_test_does_not_fail_the_next(server):
    def broken(request):
        raise LookupError("the reason")

    with pytest.raises(MemmockFailure), server.fresh() as mock:  # noqa: PT012
        mock.use(broken)
        with Wire(port_of(server)) as wire:
            send(wire, mock)
            assert wire.answer().status == 500
        mock.assert_called(query="b")
    with server.fresh():
        pass


def test_redirect_elsewhere_leads_to_the_same_mock_at_another_port():
    message = r"call 2 followed a redirect to [\w.:]+, as a POST with the authorization"
    with (  # noqa: PT031
        MockServer() as server,
        pytest.warns(MemmockWarning, match=message),
        server.fresh() as mock,
    ):
        mock.use("redirect-elsewhere")
        with Wire(port_of(server)) as wire:
            send(wire, mock)
            location = wire.answer().headers["location"]
        host, _, path = location.removeprefix("http://").partition("/")
        port = int(host.rpartition(":")[2])
        assert port != port_of(server)
        with Wire(port) as wire:
            send(wire, mock, path=f"/{path}")
            assert wire.answer().status == 200
    with pytest.raises(ConnectionRefusedError):
        Wire(port)


def test_plan_is_checked_when_the_mock_is_left(server):
    with pytest.raises(MemmockFailure, match="A plan was not played to its end"), server.fresh() as mock:
        mock.plan("late")


def test_client_that_stays_too_long_is_doubtful():
    mock = Mock(MockSettings(timeout_ms=200), ENDPOINT)
    mock.use("late")
    for elapsed_s in (0.4, 1.0):
        ask(mock, query="a").on_sent(Sent("client closed", 0, elapsed_s))
    with pytest.warns(MemmockWarning) as caught:
        mock.verify()
    assert [str(each.message) for each in caught] == [
        "call 2, late: the client stayed for 1,000 ms, but timeout_ms is 200; it bounds the whole exchange, "
        "not each read"
    ]
