import asyncio
import json

import pytest

from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request, Sent
from memmock.memories import Memories, builtin
from memmock.playbook import EVERYTHING, Playbook
from memmock.provider import Provider
from memmock.rules import reply_violations

HEADERS = (("Content-Type", JSON_TYPE), ("Accept", JSON_TYPE), ("Authorization", "Bearer good"))


def post(body, path="/memory_retrieval", headers=HEADERS):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", path, headers, data)


def ask(provider, body, **how):
    """Return the status and the JSON of the answer, which must keep the contract."""
    request = post(body, **how)
    reply = provider(request)
    # a refused authorization is no answer (RES001), which is what it is meant to be
    assert [found for found in reply_violations(reply, request) if reply.status != 401] == []
    return reply.status, json.loads(reply.body)


@pytest.fixture
def provider():
    return Provider(builtin())


def test_answer_holds_the_memory_that_was_asked_for_first(provider):
    status, answer = ask(provider, {"query": "用户和灵绯之前约定的暗号"})
    assert status == 200
    assert len(answer["memories"]) == 5
    assert "月亮醒了" in answer["memories"][0]["summary"]
    assert list(answer["memories"][0]) == ["id", "summary", "type", "confidence", "updated_at", "source"]


@pytest.mark.parametrize(
    "path", ["/memory_retrieval", "/gateway/v2/memory_retrieval", "/memory_retrieval?tenant=7"]
)
def test_prefix_and_query_string_do_not_matter(provider, path):
    assert ask(provider, {"query": "a"}, path=path)[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/memory", "/xmemory_retrieval", "/memory_retrieval/", "/memory_retrieval/x"]
)
def test_other_path_is_not_found(provider, path):
    status, answer = ask(provider, {"query": ""}, path=path)
    assert (status, answer["error"]["code"]) == (404, "not_found")
    assert "/memory_retrieval" in answer["error"]["message"]


def test_other_method_is_not_allowed(provider):
    reply = provider(Request("GET", "/memory_retrieval"))
    assert (reply.status, reply.header("Allow")) == (405, "POST")


@pytest.mark.parametrize(
    "headers", [(), (("Authorization", "Bearer bad"),), (("Content-Type", "text/plain"),)]
)
def test_open_provider_ignores_the_headers(provider, headers):
    assert json.loads(provider(post({"query": "a"}, headers=headers)).body)["memories"]


@pytest.mark.parametrize("value", [None, "", "Bearer bad", "bearer good", "Bearer good ", "Bearer goodness"])
def test_other_authorization_is_refused_and_not_repeated(value):
    provider = Provider(builtin(), authorization="Bearer good")
    assert ask(provider, {"query": "a"})[0] == 200
    headers = HEADERS[:2] if value is None else (*HEADERS[:2], ("Authorization", value))
    status, answer = ask(provider, {"query": "a"}, headers=headers)
    assert (status, answer["error"]["code"]) == (401, "unauthorized")
    assert "Bearer" not in json.dumps(answer)


@pytest.mark.parametrize("value", ["Bearer 密钥", "Bearer é", " Bearer x "])
def test_authorization_may_hold_any_text(value):
    provider = Provider(builtin(), authorization=value)
    sent = value.strip().encode().decode("latin-1")  # as UTF-8, and read as every header is read
    assert provider(post({"query": "a"}, headers=(("Authorization", sent),))).status == 200
    assert provider(post({"query": "a"}, headers=(("Authorization", "Bearer y"),))).status == 401


def test_large_wrong_body_is_refused_without_an_explanation(provider):
    status, answer = ask(provider, [{}] * 100_000)
    assert (status, answer["error"]["rules"]) == (400, [])
    assert "too large to be told how" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        (b"", "REQ1", "body"),
        (b"{", "REQ1", "body"),
        (b'{"query": "a"} x', "REQ1", "body"),
        (b'{"query": NaN}', "REQ1", "/query"),
        (b"\xff\xfe", "REQ1", "body"),
        (b"[" * 100_000, "REQ1", "body"),
        ([], "REQ2", "body"),
        ("text", "REQ2", "body"),
        ({}, "REQ2", "body"),
        ({"query": ""}, "REQ2", "/query"),
        ({"query": 1}, "REQ2", "/query"),
        ({"query": "a", "memory_types": "style"}, "REQ2", "/memory_types"),
        ({"query": "a", "memory_types": None}, "REQ2", "/memory_types"),
        ({"query": "a", "memory_types": {}}, "REQ2", "/memory_types"),
        ({"query": "a", "memory_types": ["style", "mood"]}, "REQ2", "/memory_types/1"),
        ({"query": "a", "memory_types": [["style"]]}, "REQ2", "/memory_types/0"),
        ({"query": "a", "max_results": 0}, "REQ2", "/max_results"),
        ({"query": "a", "max_results": -1}, "REQ2", "/max_results"),
        ({"query": "a", "max_results": True}, "REQ2", "/max_results"),
        ({"query": "a", "max_results": "3"}, "REQ2", "/max_results"),
        ({"query": "a", "max_results": 2.5}, "REQ2", "/max_results"),
        ({"query": "a", "time_hint": None}, "REQ2", "/time_hint"),
        ({"query": "a", "live_id": 7301442190088273921}, "REQ2", "/live_id"),
        ({"query": "a", "reason": ["r"]}, "REQ2", "/reason"),
    ],
)
def test_request_that_cannot_be_understood_is_refused_with_the_rule(provider, body, code, pointer):
    status, answer = ask(provider, body)
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert answer["error"]["rules"][0].startswith(code)
    assert pointer in answer["error"]["message"]


def test_refusal_names_all_violations(provider):
    _, answer = ask(provider, {"query": "", "max_results": 0, "memory_types": ["mood"]})
    assert len(answer["error"]["rules"]) == 3


@pytest.mark.parametrize(
    "more",
    [
        {"live_id": "1", "reason": "", "time_hint": "", "memory_types": [], "max_results": 5},
        {"locale": "zh-CN", "deep": [[{}]]},
        {"user_id": "7", "character_id": "02"},  # ignored, as the live service's own fake provider does
        {"max_results": 5.0},
        {"max_results": 5, "reason": "long: \n"},
        {"live_id": "half of a pair: \ud83d"},
    ],
)
def test_what_does_not_matter_does_not_change_the_answer(provider, more):
    query = "咖啡"
    assert ask(provider, {"query": query, **more}) == ask(provider, {"query": query})


@pytest.mark.parametrize(
    "text", [b' {"query": "a"}\n', b'{"query": "b", "query": "a"}', b'{"query":"a","n":%s}' % (b"9" * 5000)]
)
def test_unusual_json_is_understood(provider, text):
    assert json.loads(provider(post(text)).body) == ask(provider, {"query": "a"})[1]


def test_types_and_max_results_are_kept(provider):
    _, answer = ask(provider, {"query": "a", "memory_types": ["style", "other"], "max_results": 3})
    assert len(answer["memories"]) == 3
    assert {memory["type"] for memory in answer["memories"]} <= {"style", "other"}


def test_nothing_found_is_an_empty_array():
    assert ask(Provider(Memories([])), {"query": "a"}) == (200, {"memories": []})


@pytest.mark.parametrize("limit", [13, 14, 200, 1000, 3000])
def test_answer_never_grows_past_the_limit(limit):
    provider = Provider(builtin(), max_response_bytes=limit)
    reply = provider(post({"query": "咖啡", "max_results": 10**12}))
    whole = json.loads(Provider(builtin())(post({"query": "咖啡", "max_results": 100})).body)["memories"]
    memories = json.loads(reply.body)["memories"]
    assert len(reply.body) <= max(limit, len('{"memories":[]}'))
    assert memories == whole[: len(memories)]
    if limit == 3000:
        assert len(memories) > 5
        assert len(reply.body) + 300 > limit  # as many as fit


def test_answer_of_exactly_the_limit_is_whole():
    body = {"query": "咖啡", "max_results": 8}
    size = len(Provider(builtin())(post(body)).body)
    assert len(Provider(builtin(), max_response_bytes=size)(post(body)).body) == size
    assert len(Provider(builtin(), max_response_bytes=size - 1)(post(body)).body) < size - 1


@pytest.mark.parametrize("path", ["", "memory", "/a b", "/a?b", "/a#b", "/a\r\nb", "/用户", "/\x01"])
def test_impossible_path_is_a_clear_error(path):
    with pytest.raises(MemmockError, match="the path must start with /"):
        Provider(builtin(), path=path)


def test_every_call_is_in_the_journal(provider):
    provider(post({"query": "a"}))
    provider(post({"query": ""}))
    provider(Request("GET", "/"))
    assert [call.reply.status for call in provider.journal.calls] == [200, 400, 404]
    assert all(call.duration_s >= 0 for call in provider.journal.calls)


# ---- scenarios


@pytest.fixture
def playing():
    return Provider(builtin(), authorization="Bearer good", playbook=Playbook(abilities=EVERYTHING))


def test_scenario_is_played_and_noted(playing):
    playing.playbook.use("rate-limited(retry_after=7)", times=1)
    reply = playing(post({"query": "a"}))
    assert (reply.status, reply.header("Retry-After")) == (429, "7")
    assert playing(post({"query": "a"})).status == 200
    first, second = playing.journal.calls
    assert (first.played, first.fails, first.failed) == ("rate-limited(retry_after=7)", True, True)
    assert (second.played, second.fails, second.failed) == ("", False, False)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post({"query": ""}), 400),
        (post(b"{"), 400),
        (post({"query": "a"}, headers=HEADERS[:2]), 401),
        (post({"query": "a"}, path="/other"), 404),
        (Request("GET", "/memory_retrieval"), 405),
        (Request("GET", "/memmock-moved/memory_retrieval"), 200),
        (post({"query": "a"}, path="/memmock-moved/memory_retrieval", headers=()), 200),
    ],
)
def test_scenario_is_not_played_to_what_is_no_retrieval_and_not_counted(playing, request_, status):
    playing.playbook.plan("server-error")
    assert playing(request_).status == status
    assert playing.playbook.unfinished == [
        '"server-error" was played 0 of 1 times; next would be server-error'
    ]
    assert [call.played for call in playing.journal.calls] == [""]


def test_rule_is_for_calls_by_their_fields(playing):
    playing.playbook.use("server-error", when={"query": "a", "max_results": 3})
    assert playing(post({"query": "a"})).status == 200
    assert playing(post({"query": "a", "max_results": 3})).status == 500


def test_scenario_has_the_settings_of_the_provider(playing):
    playing.timeout_ms = 400
    playing.max_response_bytes = 3000
    playing.playbook.use("late(factor=2)")
    assert playing(post({"query": "a"})).delivery.delay_s == 0.8
    playing.playbook.use("over-limit-by-one")
    assert len(playing(post({"query": "a"})).body) == 3001
    assert [call.timeout_ms for call in playing.journal.calls] == [400, 400]


def test_redirect_leads_to_the_other_port(playing):
    playing.elsewhere = lambda: "http://127.0.0.1:1"
    playing.playbook.use("redirect-elsewhere")
    location = playing(post({"query": "a"})).header("Location")
    assert location == "http://127.0.0.1:1/memmock-moved/memory_retrieval"


def test_end_of_a_delivery_is_noted(playing):
    playing.playbook.use("late")
    reply = playing(post({"query": "a"}))
    (call,) = playing.journal.calls
    assert (call.over, call.reply.on_sent) == (False, None)
    sent = Sent("client closed", 0, 0.2)
    reply.on_sent(sent)
    assert call.sent is sent


def test_reply_of_ones_own_is_told_too_how_it_ended(playing):
    told = []
    playing.playbook.use(Reply.json({"memories": []})._replace(on_sent=told.append).delayed(0.01))
    sent = Sent("completed", 9, 0.2)
    playing(post({"query": "a"})).on_sent(sent)
    assert told == [playing.journal.calls[0].sent] == [sent]


def test_reply_that_is_sent_at_once_tells_nobody(playing):
    playing.playbook.use("empty")
    assert playing(post({"query": "a"})).on_sent is None
    assert playing.journal.calls[0].over


def test_function_is_asked_with_the_request(playing):
    def shout(request):
        return Reply(203, body=request.body.upper())

    playing.playbook.use(shout)
    assert playing(post({"query": "a"})) == Reply(203, body=b'{"QUERY": "A"}')
    assert playing.journal.calls[0].played == "shout"


def test_async_function_is_noted_when_it_is_done(playing):
    async def slowly(request):
        await asyncio.sleep(0.01)
        return Reply(203, body=b"abc").cut(1)

    playing.playbook.use(slowly)
    awaitable = playing(post({"query": "a"}))
    assert playing.journal.calls == []
    reply = asyncio.run(_awaited(awaitable))
    assert (reply.status, reply.delivery.cut_body) == (203, 1)
    (call,) = playing.journal.calls
    assert (call.played, call.reply.status, call.duration_s >= 0.01) == ("slowly", 203, True)


async def _awaited(awaitable):
    return await awaitable


def _raises(request):
    raise LookupError("the reason")


async def _raises_later(request):
    raise LookupError("the reason")


def _returns_nothing(request):
    return None


async def _returns_nothing_later(request):
    return {"memories": []}


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_raises, LookupError, "the reason"),
        (_raises_later, LookupError, "the reason"),
        (_returns_nothing, MemmockError, "_returns_nothing returned None, not a Reply"),
        (
            _returns_nothing_later,
            MemmockError,
            "_returns_nothing_later returned {'memories': []}, not a Reply",
        ),
    ],
)
def test_function_without_a_reply_is_a_clear_error_and_its_call_is_noted(playing, function, error, message):
    def call():
        reply = playing(post({"query": "a"}))
        if not isinstance(reply, Reply):
            asyncio.run(_awaited(reply))

    playing.playbook.use(function)
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
    (noted,) = playing.journal.calls
    assert (noted.played, noted.retrieval, noted.failed) == (function.__name__, {"query": "a"}, True)


def test_call_whose_client_leaves_before_the_function_is_done_is_noted(playing):
    async def slowly(request):
        await asyncio.Event().wait()

    async def call():
        task = asyncio.ensure_future(playing(post({"query": "a"})))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    playing.playbook.use(slowly)
    asyncio.run(call())
    (noted,) = playing.journal.calls
    assert (noted.played, noted.over, noted.failed) == ("slowly", True, True)
