"""The live twin: CreateLive, the sessions that are kept, retrievals on demand, and the fixture for tests."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from urllib.parse import quote

import pytest

from memmock.contract import RetrievalConfig
from memmock.errors import MemmockError, MemmockFailure
from memmock.http import JSON_TYPE, Reply, Request
from memmock.journal import Journal
from memmock.live import LIVES_PATH, Live, Lives, LiveTwin, retrieve_path
from memmock.memories import builtin
from memmock.provider import Provider
from memmock.server import Server

SECRET = "Bearer s3cret/长-4711"
BLOCK = {"enabled": True, "endpoint": "https://provider.example/memory", "authorization": SECRET}
PHRASE = "用户和灵绯之前约定的暗号"


@pytest.fixture
def live():
    return Live(Lives(), retrievals=Journal())


@pytest.fixture(scope="module")
def provider():
    """The address of a provider that takes only the usual authorization."""
    with Server(Provider(builtin(), authorization=SECRET)) as server:
        yield f"{server.url}/memory_retrieval"


def send(live, method, target, body=None, *headers, host="127.0.0.1:8766", client="127.0.0.1"):
    """Return what is answered to a request."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    usual = (("Host", host), ("Content-Type", JSON_TYPE))
    answer = live(Request(method, target, (*usual, *headers), data, client=client))
    return answer if isinstance(answer, Reply) else asyncio.run(_awaited(answer))


async def _awaited(answer):
    return await answer


def ok(*arguments, **how):
    reply = send(*arguments, **how)
    assert reply.status == 200, reply.body.decode()
    return json.loads(reply.body)


def create(live, **block):
    """Create a live session with changes to the usual block; return its id."""
    return ok(live, "POST", LIVES_PATH, {"memory_retrieval": BLOCK | block})["live"]["id"]


def refused(live, method, target, body=None, status=400):
    """Return message and metadata of a refusal, which has the vendor's form."""
    reply = send(live, method, target, body)
    error = json.loads(reply.body)
    assert reply.status == error["code"] == status
    assert list(error) == ["code", "reason", "message", "metadata"]
    assert reply.header("Content-Type") == JSON_TYPE
    return error["message"], error["metadata"]


def retrieve(live, live_id, body, *headers, **how):
    return send(live, "POST", retrieve_path(live_id), body, *headers, **how)


def retrieved(live, live_id, **asked):
    return ok(live, "POST", retrieve_path(live_id), asked)


# ---- CreateLive


def test_create_answers_the_session_and_fake_rtc_values(live):
    answer = ok(live, "POST", LIVES_PATH, {"call_mode": "audio", "memory_retrieval": BLOCK})
    live_id = answer["live"]["id"]
    assert answer["live"] == {
        "id": live_id, "status": "waiting", "live_duration": 600, "call_mode": "audio"
    }  # fmt: skip
    assert {name for name, value in answer["rtc"].items() if "fake" not in value} == {"token_expire_at"}


def test_ids_are_64_bit_numbers_that_a_double_cannot_hold(live):
    ids = [int(create(live)) for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(2**53 < each < 2**63 and int(float(each)) != each for each in ids)


def test_ids_are_the_same_for_a_seed():
    assert create(Live(Lives(seed=7))) == create(Live(Lives(seed=7))) != create(Live(Lives(seed=8)))


MISTAKES = [
    ({"enabled": "yes"}, "enabled", 'must be true or false, not "yes"'),
    ({"enabled": None}, "enabled", "must be true or false, not null"),
    ({"enabled": 1}, "enabled", "must be true or false, not 1"),
    ({"endpoint": "/memory"}, "endpoint", "must be an absolute http or https URL"),
    ({"endpoint": "ftp://provider.example/"}, "endpoint", "must be an absolute http or https URL"),
    ({"endpoint": "http://"}, "endpoint", "must be an absolute http or https URL"),
    ({"endpoint": "http://[::1"}, "endpoint", "must be an absolute http or https URL"),
    ({"endpoint": "http://a!b/"}, "endpoint", "has no usable host name"),
    *(
        ({"endpoint": f"http://a.example/x{char}y"}, "endpoint", "must be an absolute http or https URL")
        for char in "\r\n\t \0\x7f\x85\u3000"
    ),
    ({"endpoint": f"http://a/{'x' * 8184}"}, "endpoint", "must not be longer than 8,192 bytes"),
    ({"authorization": "x" * 8193}, "authorization", "must not be longer than 8,192 bytes"),
    ({"authorization": "长" * 2731}, "authorization", "must not be longer than 8,192 bytes"),
    (
        {"endpoint": "http://me:x@a/"},
        "endpoint",
        "must not hold a user name or password; credentials go into authorization",
    ),
    ({"endpoint": 7}, "endpoint", "must be a string"),
    ({"authorization": ""}, "authorization", "must not be empty, even for a provider that ignores it"),
    ({"authorization": " \t"}, "authorization", "must not be empty, even for a provider that ignores it"),
    ({"authorization": "a\r\nX: y"}, "authorization", "must not hold control characters"),
    ({"authorization": "\ud800"}, "authorization", "must not hold half of a surrogate pair"),
    ({"authorization": None}, "authorization", "must be a string"),
    ({"timeout_ms": 0}, "timeout_ms", "must be a positive integer, not 0"),
    ({"timeout_ms": -1}, "timeout_ms", "must be a positive integer, not -1"),
    ({"timeout_ms": 1.5}, "timeout_ms", "must be a positive integer, not 1.5"),
    ({"timeout_ms": True}, "timeout_ms", "must be a positive integer, not true"),
    ({"timeout_ms": "3000"}, "timeout_ms", 'must be a positive integer, not "3000"'),
    ({"timeout_ms": 10**400}, "timeout_ms", "must be at most 86,400,000, which is one day"),
]


@pytest.mark.parametrize(("change", "field", "what"), MISTAKES)
def test_mistake_in_the_block_is_named(live, change, field, what):
    path = f"memory_retrieval.{field}"
    body = {"memory_retrieval": BLOCK | change}
    assert refused(live, "POST", LIVES_PATH, body) == (f"{path} {what}", {path: what})


def test_longest_endpoint_and_authorization_are_taken(live):
    create(live, endpoint=f"http://a/{'x' * 8183}", authorization="x" * 8192)


@pytest.mark.parametrize("char", "\r\n\t \0")
def test_config_with_a_space_in_its_endpoint_is_refused(char):
    with pytest.raises(MemmockError, match="endpoint must be an absolute http or https URL"):
        RetrievalConfig(f"http://a.example/x{char}y", SECRET)


@pytest.mark.parametrize("secret", ["Bearer " + "aB3%/" * 1637, "a" * 8192, "长 " * 2048])
@pytest.mark.parametrize("size", [0, 90_000])
def test_long_authorization_does_not_hold_the_loop(live, secret, size):
    body = json.dumps({"x": "y" * size, "memory_retrieval": BLOCK | {"authorization": secret}})
    request = Request("POST", LIVES_PATH, (("Host", "localhost"),), body.encode(), client="127.0.0.1")
    started = time.thread_time()
    answer = live(request)
    assert time.thread_time() - started < 2  # it was seven seconds once
    reply = answer if isinstance(answer, Reply) else asyncio.run(_awaited(answer))
    assert reply.status == 200


def test_long_authorization_is_masked_however_it_is_written(live):
    secret = "Bearer " + "aB3%/长" * 1000
    token = secret[7:]
    texts = [token, quote(token, safe=""), quote(token[:4000]) + token[4000:], json.dumps(token), token[:500]]
    body = {
        "notes": [f"use {text}!" for text in texts],
        "memory_retrieval": BLOCK | {"authorization": secret},
    }
    live_id = ok(live, "POST", LIVES_PATH, body)["live"]["id"]
    notes = ok(live, "GET", f"{LIVES_PATH}/{live_id}")["live"]["notes"]
    assert [note.replace('"', "") for note in notes] == ["use ***!"] * len(texts)


@pytest.mark.parametrize("field", ["endpoint", "authorization"])
def test_missing_field_is_named(live, field):
    block = {name: value for name, value in BLOCK.items() if name != field}
    message, _ = refused(live, "POST", LIVES_PATH, {"memory_retrieval": block})
    assert message == f"memory_retrieval.{field} is missing"


def test_all_mistakes_are_named_at_once(live):
    block = {"enabled": 0, "endpoint": "x", "authorization": "", "timeout_ms": 0}
    message, metadata = refused(live, "POST", LIVES_PATH, {"memory_retrieval": block})
    assert list(metadata) == [f"memory_retrieval.{name}" for name in block]
    assert message == "; ".join(f"{name} {what}" for name, what in metadata.items())


@pytest.mark.parametrize("block", [None, [], "x", 3])
def test_block_that_is_no_object_is_refused(live, block):
    expected = {"memory_retrieval": "must be an object"}
    assert refused(live, "POST", LIVES_PATH, {"memory_retrieval": block})[1] == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"call_mode":', "the body is not JSON: Expecting value: line 1 column 14 (char 13)"),
        (b'{"a": NaN}', "the body is not JSON: NaN is not JSON"),
        (b'{"a": 1, "a": 2}', "the body is not JSON: a name occurs more than once in an object"),
        (b"[" * 100_000, "the body is not JSON: nested too deeply"),
        (b"[]", "the body must be an object, not an array of 0"),
        (b"null", "the body must be an object, not null"),
    ],
)
def test_body_that_is_no_object_is_refused(live, body, message):
    assert refused(live, "POST", LIVES_PATH, body) == (message, {})


def test_body_that_is_not_utf8_is_refused(live):
    assert refused(live, "POST", LIVES_PATH, b'{"a": "\xff"}')[0].startswith("the body is not JSON: ")


def test_timeout_is_3000_ms_when_absent(live):
    shown = ok(live, "GET", f"{LIVES_PATH}/{create(live)}")["live"]
    assert shown["memory_retrieval"]["timeout_ms"] == 3000


def test_other_fields_are_kept(live):
    given = {"avatar": {"name": "灵绯", "persona": "…"}, "brand_new": [1, {"deep": None}], "call_mode": "x"}
    live_id = ok(live, "POST", LIVES_PATH, {**given, "id": "mine"})["live"]["id"]
    shown = ok(live, "GET", f"{LIVES_PATH}/{live_id}")["live"]
    assert {name: shown[name] for name in given} == given
    assert shown["id"] == live_id


def test_fields_that_nest_deeply_do_not_break_the_answer(live):
    body = b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}"
    live_id = ok(live, "POST", LIVES_PATH, body)["live"]["id"]
    assert "…" in json.dumps(ok(live, "GET", f"{LIVES_PATH}/{live_id}"), ensure_ascii=False)


def test_body_with_a_picture_in_it_is_taken(live):
    body = {"avatar": {"image_uri": "data:image/png;base64," + "A" * 200_000}, "memory_retrieval": BLOCK}
    live_id = ok(live, "POST", LIVES_PATH, body)["live"]["id"]
    assert ok(live, "GET", f"{LIVES_PATH}/{live_id}")["live"]["avatar"] == body["avatar"]


# ---- reading sessions


def test_session_is_shown_with_its_settings(live):
    shown = ok(live, "GET", f"{LIVES_PATH}/{create(live, timeout_ms=250)}")["live"]
    assert shown["memory_retrieval"] == {**BLOCK, "timeout_ms": 250, "authorization": "***"}
    assert abs(int(shown["created_at"]) - time.time()) < 60


def test_authorization_is_never_shown_again(live):
    token = SECRET.partition(" ")[2]
    body = {"note": f"use {token}", "avatar": {"api_key": "sk-1"}, "memory_retrieval": BLOCK}
    live_id = ok(live, "POST", LIVES_PATH, body)["live"]["id"]
    seen = json.dumps(ok(live, "GET", f"{LIVES_PATH}/{live_id}"), ensure_ascii=False)
    kept = live.lives.get(live_id)
    seen += repr(kept) + repr(kept.given) + repr([call.request for call in live.journal.calls])
    assert token not in seen
    assert "sk-1" not in seen
    assert "use ***" in seen


def test_every_text_in_a_secret_field_is_masked(live):
    body = {"access_token": ["v", ["w"]], "secret": {"v": "x", "n": 7, "": [{"name": "y"}]}, "token": ""}
    live_id = ok(live, "POST", LIVES_PATH, body)["live"]["id"]
    shown = ok(live, "GET", f"{LIVES_PATH}/{live_id}")["live"]
    assert {name: shown[name] for name in body} == {
        "access_token": ["***", ["***"]],
        "secret": {"v": "***", "n": 7, "": [{"name": "***"}]},
        "token": "",
    }


def test_secrets_in_the_endpoint_are_masked(live):
    live_id = create(live, endpoint="https://a.example/m?token=abcdefgh123&x=1")
    shown = ok(live, "GET", f"{LIVES_PATH}/{live_id}")["live"]["memory_retrieval"]["endpoint"]
    assert shown == "https://a.example/m?token=***&x=1"


@pytest.mark.parametrize("live_id", ["", "7", "x", "%2e", "9" * 30, "١٢٣"])
def test_session_that_never_was_is_not_found(live, live_id):
    message, _ = refused(live, "GET", f"{LIVES_PATH}/{live_id}", status=404)
    assert message.startswith("there is no live ")


def test_list_has_the_newest_first(live):
    ids = [create(live) for _ in range(3)]
    answer = ok(live, "GET", LIVES_PATH)
    assert [each["id"] for each in answer["lives"]] == ids[::-1]
    assert answer["next_page_token"] == ""


def test_pages_of_the_list_have_every_session_once(live):
    ids = [create(live) for _ in range(5)]
    found, token = [], ""
    for _ in range(3):
        page = ok(live, "GET", f"{LIVES_PATH}?page_size=2&page_token={token}")
        found += [each["id"] for each in page["lives"]]
        token = page["next_page_token"]
        create(live)  # it moves nothing
    assert found == ids[::-1]
    assert token == ""


@pytest.mark.parametrize("size", ["0", "-1", "101", "x", "", "1.5", "9" * 5000, "٣"])
def test_page_size_that_is_none_is_refused(live, size):
    _, metadata = refused(live, "GET", f"{LIVES_PATH}?page_size={size}")
    assert metadata["page_size"].startswith("must be an integer from 1 to 100, not ")


@pytest.mark.parametrize("token", ["x", "1", "-5"])
def test_page_token_that_no_page_gave_is_refused(live, token):
    create(live)
    _, metadata = refused(live, "GET", f"{LIVES_PATH}?page_token={token}")
    assert metadata == {"page_token": "must be the next_page_token of another page"}


def test_parameter_that_the_list_does_not_have_is_named(live):
    message, _ = refused(live, "GET", f"{LIVES_PATH}?page=2")
    assert message == "page is not a parameter of the list; it has page_size and page_token"


def test_oldest_sessions_go_and_it_is_said():
    live = Live(Lives(max_lives=2))
    first, *rest = [create(live) for _ in range(3)]
    assert refused(live, "GET", f"{LIVES_PATH}/{first}", status=404)[0] == (
        f"live {first} is not kept any more: only the latest are, at most 2"
    )
    answer = ok(live, "GET", LIVES_PATH)
    assert [each["id"] for each in answer["lives"]] == rest[::-1]
    assert answer["dropped"] == 1


def test_at_most_a_thousand_sessions_are_kept():
    lives = Lives()
    for _ in range(1001):
        lives.create({})
    assert lives.dropped == 1


def test_sessions_with_large_fields_are_bounded_by_their_size():
    lives = Lives(max_bytes=1000)
    ids = [lives.create({"image": "x" * 600}).id for _ in range(2)]
    assert [each.id for each in lives.page(9)[0]] == ids[1:]


# ---- pages of other origins

CALLS = [("POST", LIVES_PATH), ("GET", LIVES_PATH), ("GET", f"{LIVES_PATH}/1")]
FOREIGN = [
    (("Origin", "http://evil.example"), 'a page of "http://evil.example" cannot use the live sessions at '),
    (("Origin", "null"), 'a page of "null" cannot use the live sessions at '),
    (("Sec-Fetch-Site", "cross-site"), "a page of another origin cannot use the live sessions "),
    (("Sec-Fetch-Site", "same-site"), "a page of another origin cannot use the live sessions "),
]


def forbidden(reply):
    """Return the message of a refusal in the vendor's form."""
    error = json.loads(reply.body)
    assert (reply.status, error["code"], error["reason"], error["metadata"]) == (403, 403, "FORBIDDEN", {})
    return error["message"]


@pytest.mark.parametrize(("method", "path"), CALLS)
@pytest.mark.parametrize(("header", "message"), FOREIGN)
def test_page_of_another_origin_is_refused(live, method, path, header, message):
    assert forbidden(send(live, method, path, {}, header)).startswith(message)
    assert live.lives.page(1)[0] == []


def test_page_of_another_origin_is_refused_where_others_may_reach_the_server():
    live = Live(Lives(), host="0.0.0.0")
    forbidden(send(live, "POST", LIVES_PATH, {}, ("Origin", "http://evil.example"), host="box.example:8766"))


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_name_that_only_leads_to_this_machine_is_refused(live, method, path):
    message = forbidden(send(live, method, path, {}, host="evil.example:8766"))
    assert message.startswith("the Host header must name this server, as localhost or 127.0.0.1, not ")


def test_any_name_is_taken_where_others_may_reach_the_server():
    ok(Live(Lives(), host="0.0.0.0"), "POST", LIVES_PATH, {}, host="box.example", client="192.0.2.7")


def test_page_of_the_same_origin_and_any_media_type_are_taken(live):
    own = (("Origin", "http://127.0.0.1:8766"), ("Sec-Fetch-Site", "same-origin"))
    ok(live, "POST", LIVES_PATH, {}, *own)
    headers = (("Host", "localhost:8766"), ("Content-Type", "text/plain"))
    assert live(Request("POST", LIVES_PATH, headers, b"{}", client="127.0.0.1")).status == 200


def test_token_is_not_asked_for_by_live_sessions():
    ok(Live(Lives(), token="t"), "GET", LIVES_PATH)


# ---- methods and paths


@pytest.mark.parametrize(("method", "allow"), [("PUT", "POST, GET"), ("DELETE", "POST, GET")])
def test_other_method_on_the_list_is_refused(live, method, allow):
    reply = send(live, method, LIVES_PATH)
    assert (reply.status, reply.header("Allow")) == (405, allow)
    assert json.loads(reply.body)["reason"] == "METHOD_NOT_ALLOWED"


def test_other_method_on_a_session_is_refused(live):
    message, _ = refused(live, "DELETE", f"{LIVES_PATH}/1", status=405)
    assert message == "/live/v1/lives/1 takes GET, not DELETE"


@pytest.mark.parametrize("path", ["/", "/live/v1", "/live/v1/livesx", "/memory_retrieval"])
def test_other_path_is_not_found_in_the_vendors_form(live, path):
    message, _ = refused(live, "POST", path, {}, status=404)
    assert message == "nothing is here; live sessions are at /live/v1/lives"


def test_other_requests_are_passed_on():
    live = Live(Lives(), other=lambda request: Reply.json({"for": request.path}))
    assert ok(live, "GET", "/memory_retrieval") == {"for": "/memory_retrieval"}
    assert ok(live, "GET", "/__memmock__/health") == {"for": "/__memmock__/health"}


# ---- retrievals


def test_retrieval_is_made_with_the_settings_of_the_session(live, provider):
    live_id = create(live, endpoint=provider, timeout_ms=2000)
    came_to = retrieved(live, live_id, query=PHRASE, memory_types=["history"], max_results=1, reason="asked")
    (memory,) = came_to["tool_result"]["memories"]
    assert "月亮醒了" in memory["summary"]
    assert came_to["advice"] == ["use naturally"]
    assert came_to["timing"]["timeout_ms"] == 2000
    assert came_to["timing"]["elapsed_ms"] > 0
    assert came_to["request"]["body"] == {
        "query": PHRASE, "live_id": live_id, "reason": "asked", "memory_types": ["history"], "max_results": 1
    }  # fmt: skip
    assert came_to["request"]["url"] == provider
    assert ["Authorization", "***"] in came_to["request"]["headers"]
    assert came_to["violations"] == {"request": [], "reply": []}


def test_violations_of_both_sides_are_told(live):
    with Server(lambda request: Reply.json({"memories": [{"summary": "没查到"}]})) as server:
        came_to = retrieved(live, create(live, endpoint=server.url), query=" ")
    assert [found["code"] for found in came_to["violations"]["request"]] == ["REQ203"]
    assert [found["code"] for found in came_to["violations"]["reply"]] == ["RES202", "RES209"]


def test_provider_that_is_late_is_a_timeout(live):
    release = threading.Event()

    async def answer(request):
        while not release.is_set():
            await asyncio.sleep(0.01)
        return Reply.json({"memories": []})

    with Server(answer) as server:
        came_to = retrieved(live, create(live, endpoint=server.url, timeout_ms=50), query="茶")
        release.set()
    assert came_to["tool_result"]["error"]["code"] == "timeout"
    assert came_to["reply"]["status"] is None
    assert inspected(live) == "timeout"


def test_provider_that_refuses_is_an_error_result(live, provider):
    live_id = create(live, endpoint=provider, authorization="Bearer another-one")
    error = retrieved(live, live_id, query="茶")["tool_result"]["error"]
    assert (error["code"], error["status"]) == ("http_error", 401)


def test_provider_that_is_not_there_is_an_error_result(live):
    with Server(Reply.json) as server:
        endpoint = server.url
    error = retrieved(live, create(live, endpoint=endpoint), query="茶")["tool_result"]["error"]
    assert error["code"] == "connection_failed"


def test_size_limit_is_that_of_the_twin():
    live = Live(Lives(max_response_bytes=10))
    with Server(lambda request: Reply.json({"memories": []})) as server:
        came_to = retrieved(live, create(live, endpoint=server.url), query="茶")
    assert came_to["tool_result"]["error"]["code"] == "response_too_large"


def test_authorization_that_a_provider_repeats_is_masked(live):
    def answer(request):
        return Reply.json({"memories": [{"summary": f"You sent {SECRET}."}]})

    with Server(answer) as server:
        came_to = retrieved(live, create(live, endpoint=server.url), query="茶")
    assert came_to["tool_result"]["memories"][0]["summary"] == "You sent ***."


def test_server_answers_others_while_a_retrieval_waits():
    arrived, release = threading.Event(), threading.Event()

    async def answer(request):
        arrived.set()
        while not release.is_set():
            await asyncio.sleep(0.01)
        return Reply.json({"memories": []})

    import requests

    live = Live(Lives(), other=answer)
    with Server(live) as server:
        live_id = create(live, endpoint=f"{server.url}/memory", timeout_ms=60_000)
        slow = threading.Thread(
            target=requests.post,
            args=(server.url + retrieve_path(live_id),),
            kwargs={"json": {"query": "茶"}, "timeout": 60},
        )
        slow.start()
        assert arrived.wait(10)
        assert requests.get(server.url + LIVES_PATH, timeout=10).status_code == 200
        release.set()
        slow.join(10)
    assert live.journal.calls[-1].reply.status == 200


def test_server_stops_while_a_retrieval_waits():
    arrived = threading.Event()

    async def never(request):
        arrived.set()
        await asyncio.Event().wait()

    import requests

    live = Live(Lives())

    def ask():
        with pytest.raises(requests.ConnectionError):
            requests.post(server.url + retrieve_path(live_id), json={"query": "茶"}, timeout=60)

    with Server(never) as provider:
        server = Server(live)
        server.start()
        live_id = create(live, endpoint=provider.url, timeout_ms=60_000)
        asking = threading.Thread(target=ask)
        asking.start()
        assert arrived.wait(10)
        start = time.monotonic()
        server.stop()
        asking.join(10)
        assert time.monotonic() - start < 8


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "query must be a string that is not empty"),
        ({"query": ""}, "query must be a string that is not empty"),
        ({"query": "a", "reason": 1}, "reason must be a string, not 1"),
        ({"query": "a", "time_hint": []}, "time_hint must be a string, not an array of 0"),
        (
            {"query": "a", "memory_types": ["preference", "x"]},
            "memory_types must be an array of preference, profile, history, project, constraint, "
            "relationship, style, other",
        ),
        ({"query": "a", "max_results": 0}, "max_results must be an integer of at least 1, not 0"),
        ({"query": "a", "max_results": True}, "max_results must be an integer of at least 1, not true"),
        (
            {"query": "a", "user_id": "7"},
            'a retrieval has no field "user_id"; its fields are query, reason, memory_types, time_hint, '
            "max_results",
        ),
        ([], "the body must be an object, not an array of 0"),
        (b"{", "the body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 "
               "(char 1)"),
    ],
)  # fmt: skip
def test_retrieval_with_a_mistake_is_refused(live, body, message):
    reply = retrieve(live, create(live), body)
    assert (reply.status, json.loads(reply.body)["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "it was created without memory_retrieval"),
        ({"memory_retrieval": {"enabled": False}}, "its memory_retrieval has enabled false"),
        ({"memory_retrieval": BLOCK | {"enabled": False}}, "its memory_retrieval has enabled false"),
    ],
)
def test_session_without_memory_retrieval_makes_none(live, given, why):
    live_id = ok(live, "POST", LIVES_PATH, given)["live"]["id"]
    reply = retrieve(live, live_id, {"query": "茶"})
    assert (reply.status, json.loads(reply.body)["error"]) == (
        409,
        {"code": "not_enabled", "message": f"memory retrieval is not enabled for live {live_id}: {why}"},
    )


def test_retrieval_for_no_session_is_not_found(live):
    reply = retrieve(live, "7", {"query": "茶"})
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/__memmock__/lives", "/__memmock__/lives/1", "/__memmock__/lives/1/x"])
def test_other_path_below_lives_is_not_found(live, path):
    reply = send(live, "POST", path, {})
    assert json.loads(reply.body)["error"]["message"] == (
        "the control API has /__memmock__/lives/{id}/retrieve for lives"
    )


def test_retrieval_is_a_post(live):
    reply = send(live, "GET", retrieve_path("1"))
    assert (reply.status, reply.header("Allow")) == (405, "POST")


@pytest.mark.parametrize(
    "how",
    [
        {"client": "203.0.113.9"},
        {"host": "evil.example"},
        {"headers": (("Origin", "http://evil.example"),)},
        {"headers": (("Sec-Fetch-Site", "cross-site"),)},
    ],
)
def test_retrieval_for_others_is_forbidden(live, how):
    headers = how.pop("headers", ())
    reply = retrieve(live, create(live), {"query": "茶"}, *headers, **how)
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (403, "forbidden")


def test_retrieval_needs_the_token_where_others_may_reach_the_server(provider):
    live = Live(Lives(), host="0.0.0.0", token="t0ken")
    live_id = create(live, endpoint=provider)
    assert retrieve(live, live_id, {"query": "茶"}).status == 401
    assert retrieve(live, live_id, {"query": "茶"}, ("Authorization", "Bearer t0ken")).status == 200


def test_token_that_cannot_be_sent_is_refused():
    with pytest.raises(MemmockError, match="the control token must be printable ASCII"):
        Live(Lives(), token="")


def test_calls_to_providers_are_kept_as_they_were_on_the_wire(live, provider):
    retrieved(live, create(live, endpoint=provider), query="茶", max_results=2)
    (call,) = live.retrievals.calls
    assert (call.retrieval["query"], len(call.memories), call.violations) == ("茶", 2, [])


def inspected(live):
    """Return what the inspector tells of the one call that was made to a provider."""
    from memmock.inspector.outcome import verdict

    (call,) = live.retrievals.calls
    result = verdict(call, 1000).result
    return None if result is None else result.outcome


CUT_SHORT = {
    "connection_failed": Reply.json({"memories": []}).cut(after=5),
    "timeout": Reply.json({"memories": []}).dripped(1, 1.0),
    "response_too_large": Reply.json({"memories": [], "more": "x" * 2000}),
    "http_error": Reply.json({}, 500),
    "ok": Reply.json({"memories": []}),
}


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("outcome", CUT_SHORT)
def test_inspector_tells_the_outcome_of_a_call(outcome, framing):
    live = Live(Lives(max_response_bytes=1000), retrievals=Journal())
    reply = CUT_SHORT[outcome].chunked(16) if framing == "chunked" else CUT_SHORT[outcome]
    with Server(lambda request: reply) as server:
        came_to = retrieved(live, create(live, endpoint=server.url, timeout_ms=200), query="茶")
    assert came_to["tool_result"].get("error", {"code": "ok"})["code"] == outcome
    assert inspected(live) == outcome


# ---- as a test holds it


@pytest.fixture
def twin():
    with LiveTwin() as twin:
        yield twin


def test_twin_retrieves_from_a_provider(twin, provider):
    live = twin.create(provider, SECRET, timeout_ms=2000, avatar={"name": "灵绯"})
    result = live.retrieve(PHRASE, memory_types=["history"], max_results=1)
    assert result.ok
    assert result.retrieval["live_id"] == live.id
    assert result.advice == ["use naturally"]
    assert result.memories[0].type == "history"
    result.assert_remembers("月亮醒了", "暗号")
    result.assert_no_violations()
    assert live.session.given["avatar"] == {"name": "灵绯"}


def test_twin_refuses_what_create_live_refuses(twin):
    expected = (
        "memory_retrieval.endpoint must be an absolute http or https URL; memory_retrieval.authorization "
        "must not be empty, even for a provider that ignores it; memory_retrieval.timeout_ms must be a "
        "positive integer, not 0"
    )
    with pytest.raises(MemmockError) as caught:
        twin.create("provider", "", timeout_ms=0)
    assert str(caught.value) == expected


def test_field_that_a_retrieval_does_not_have_is_named(twin, provider):
    with pytest.raises(MemmockError, match="a retrieval has no field 'max'"):
        twin.create(provider).retrieve("茶", max=1)


def test_failure_names_the_error_of_the_model(twin, provider):
    result = twin.create(provider, "Bearer wrong-one").retrieve("茶")
    with pytest.raises(MemmockFailure) as caught:
        result.assert_ok()
    assert str(caught.value) == (
        f'Asking {provider} for "茶" came to http_error (the provider answered with status 401), '
        "not to memories."
    )


def test_failure_shows_the_memories_that_there_are(twin, provider):
    result = twin.create(provider, SECRET).retrieve("用户的猫", max_results=1)
    with pytest.raises(MemmockFailure) as caught:
        result.assert_remembers("芝麻", "月亮醒了")
    assert str(caught.value) == (
        f'Asking {provider} for "用户的猫" found no memory with "月亮醒了". The model is given 1:\n'
        "  1. 用户养了一只叫“芝麻”的黑猫，是下班路上捡回来的。"
    )


def test_failure_names_the_rules_that_were_broken(twin):
    with Server(lambda request: Reply.json({"memories": [{"summary": f"x{SECRET}", "id": 7}]})) as server:
        result = twin.create(server.url, SECRET).retrieve("茶")
    result.assert_no_violations(allow=["RES205", "RES209", "RES210"])
    with pytest.raises(MemmockFailure) as caught:
        result.assert_no_violations(allow="RES209")
    assert str(caught.value) == (
        f'Asking {server.url} for "茶" broke the contract in 1 place.\n'
        "  RES205 error at body /memories/0/id: must be a string, not 7\n"
        "`memmock rules CODE` says why a rule is there."
    )


def test_rule_that_there_is_not_cannot_be_allowed(twin, provider):
    result = twin.create(provider, SECRET).retrieve("茶")
    with pytest.raises(MemmockError, match="there is no rule 'RES999'; `memmock rules` lists them"):
        result.assert_no_violations(allow=["RES999"])


def test_repr_tells_what_came_of_it(twin):
    packed = gzip.compress(b'{"memories": []}')
    headers = (("Content-Type", JSON_TYPE), ("Content-Encoding", "gzip"))
    with Server(lambda request: Reply(200, headers, packed)) as server:
        result = twin.create(server.url, SECRET).retrieve("茶")
    assert repr(result).startswith('<Retrieved "茶": 0 memories in ')
    assert repr(result).endswith(" ms, no violations>")
    assert SECRET not in repr(result)


def test_fixture_creates_sessions(pytester, monkeypatch, provider):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        f"""
        def test_provider(memmock_live):
            live = memmock_live.create({provider!r}, {SECRET!r})
            live.retrieve("用户的猫", max_results=1).assert_remembers("芝麻")

        def test_failing(memmock_live):
            memmock_live.create({provider!r}, {SECRET!r}).retrieve("用户的猫").assert_remembers("狗")

        def test_refused(memmock_live):
            memmock_live.create("provider")
        """
    )
    result = pytester.runpytest_inprocess("-p", "memmock.plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    said = result.stdout.str()
    assert "MemmockError: memory_retrieval.endpoint must be an absolute http or https URL" in said
    assert "retrieved.py" not in said
    assert "twin.py" not in said
