"""The inspector over HTTP: the page, the stream of calls, and a call in full."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import json
import re
import socket
import time
from contextlib import contextmanager

import pytest

from memmock import CATALOGUE, Memories, RetrievalConfig, retrieve_sync
from memmock.admin import Admin
from memmock.cassette import Cassette, Interaction
from memmock.cassette_format import interactions_of
from memmock.documents import parse
from memmock.http import JSON_TYPE, Reply, Request, Sent
from memmock.inspector import Inspected, Inspector, Subject
from memmock.inspector.events import MOST_WATCHERS, row
from memmock.inspector.opened import opened
from memmock.inspector.outcome import verdict
from memmock.journal import Journal
from memmock.memories import builtin
from memmock.playbook import EVERYTHING, Playbook
from memmock.provider import Provider
from memmock.replay import Replay
from memmock.server import Elsewhere, Server

SECRET = "Bearer s3cret-value-4711"
PYTEST = ("-pno:randomly", "-pno:cacheprovider", "-oasyncio_default_fixture_loop_scope=function")
ENDPOINT = "http://127.0.0.1:8765/memory_retrieval"
USUAL = (("Content-Type", JSON_TYPE), ("Accept", JSON_TYPE), ("Authorization", SECRET))


class Mounted:
    """A provider with control API and inspector, called without a socket."""

    def __init__(self, **how) -> None:
        self.provider = Provider(builtin(), playbook=Playbook(abilities=EVERYTHING), timeout_ms=400)
        self.subject = Subject.of_provider(self.provider, lambda: ENDPOINT, token=how.get("token"))
        self.inspector = Inspector(self.subject)
        self.handler = Admin(self.provider, pages=self.inspector.answer, **how)

    def get(self, name, *headers, method="GET", host="127.0.0.1:8765", client="127.0.0.1", body=b""):
        given = (("Host", host), *headers)
        if method in ("PUT", "POST"):
            given += (("Content-Type", JSON_TYPE),)
        answer = self.handler(Request(method, f"/__memmock__/{name}", given, body, client=client))
        return answer if isinstance(answer, Reply) else asyncio.run(_awaited(answer))

    def json(self, name, value=None, method="GET"):
        reply = self.get(name, method=method, body=b"" if value is None else json.dumps(value).encode())
        return reply.status, json.loads(reply.body)

    def ask(self, query="用户的猫", headers=USUAL, **fields):
        body = json.dumps({"query": query, **fields}, ensure_ascii=False).encode()
        return self.handler(Request("POST", "/memory_retrieval", headers, body, client="127.0.0.1"))

    def row(self, number=1):
        call = self.provider.journal.calls[number - 1]
        return row(call, verdict(call, self.subject.max_response_bytes), self.subject)

    def opened(self, number=1):
        return opened(self.provider.journal.calls[number - 1], self.subject)


async def _awaited(answer):
    return await answer


@pytest.fixture
def mounted():
    return Mounted()


def first_events(mounted, count, since=0):
    """Return the first events of a stream, by name and value."""

    async def taken():
        found = []
        stream = mounted.inspector._feed.stream(since)
        async for part in stream:
            found += [read_event(text) for text in part.decode().split("\n\n") if text.startswith("event")]
            if len(found) >= count:
                break
        await stream.aclose()
        return found

    return asyncio.run(asyncio.wait_for(taken(), 5))


def read_event(text):
    name, data = text.split("\n", 1)
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


# ---- the page


@pytest.mark.parametrize("path", ["", "?a=1"])
def test_page_is_one_file_that_needs_nothing_else(mounted, path):
    reply = mounted.get(path)
    assert (reply.status, reply.header("Content-Type")) == (200, "text/html; charset=utf-8")
    assert not re.findall(rb"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?!data:)", reply.body)
    assert b"@import" not in reply.body
    assert b"url(" not in reply.body


def test_page_never_makes_markup_of_text(mounted):
    page = mounted.get("").body
    for name in (
        b"innerHTML",
        b"outerHTML",
        b"insertAdjacentHTML",
        b"document.write",
        b"eval(",
        b"DOMParser",
    ):
        assert name not in page


@pytest.mark.parametrize("tag", ["script", "style"])
def test_policy_lets_only_the_pages_own_code_run(mounted, tag):
    reply = mounted.get("")
    policy = dict(part.split(" ", 1) for part in reply.header("Content-Security-Policy").split("; "))
    inside = re.search(rf"<{tag}>(.*?)</{tag}>", reply.body.decode(), re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
    assert policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["frame-ancestors"] == policy["trusted-types"] == "'none'"
    assert policy["connect-src"] == "'self'"


def test_page_without_the_last_slash_leads_to_the_one_with_it(mounted):
    reply = mounted.handler(Request("GET", "/__memmock__", (("Host", "localhost"),), client="127.0.0.1"))
    assert (reply.status, reply.header("Location")) == (307, "/__memmock__/")


def test_page_takes_nothing_but_get(mounted):
    assert mounted.get("", method="DELETE").status == 405


@pytest.mark.parametrize("name", ["", "events", "call?number=1"])
@pytest.mark.parametrize("stranger", [{"client": "203.0.113.9"}, {"host": "evil.example"}, {"client": ""}])
def test_strangers_get_neither_page_nor_calls(mounted, name, stranger):
    assert mounted.get(name, **stranger).status == 403


@pytest.mark.parametrize(
    "header", [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")], ids=lambda pair: pair[0]
)
def test_page_of_another_origin_cannot_open_the_stream(mounted, header):
    assert mounted.get("events", header).status == 403
    assert mounted.inspector.watchers == 0


def test_with_a_token_the_page_is_given_and_the_calls_are_not():
    mounted = Mounted(token="t0ken")
    assert mounted.get("").status == 200
    assert [mounted.get(name).status for name in ("events", "call?number=1", "scenario")] == [401, 401, 401]
    assert mounted.get("call?number=1", ("Authorization", "Bearer t0ken")).status == 404


def test_where_others_may_reach_the_server_there_is_no_page_without_a_token():
    assert Mounted(host="0.0.0.0").get("").status == 403
    assert Mounted(host="0.0.0.0", token="t0ken").get("").status == 200


@pytest.mark.parametrize("query", ["since=x", "since=-1", "since=1&other=2", "number=1"])
def test_wrong_parameter_of_the_stream_is_named(mounted, query):
    reply = mounted.get(f"events?{query}")
    assert reply.status == 400
    assert "since" in json.loads(reply.body)["error"]["message"]


# ---- the list


def test_stream_says_hello_and_then_what_is_there(mounted):
    mounted.ask("用户的猫", memory_types=["relationship"])
    (_, hello), (_, state), (name, rows) = first_events(mounted, 3)
    assert (hello["kind"], hello["mock"], hello["endpoint"], hello["kept"]) == ("serve", True, ENDPOINT, 1000)
    assert [each["point"] for each in hello["demo"]] == ["阿澈", "月亮醒了", "先给结论，再补充两三条理由"]
    assert (state["rules"], state["memories"]["count"]) == ([], 28)
    assert name == "calls"
    assert [each["number"] for each in rows] == [1]


def test_row_has_what_the_list_shows(mounted):
    mounted.ask("用户的猫", memory_types=["relationship"], max_results=2)
    shown = mounted.row()
    assert (shown["query"], shown["types"], shown["played"]) == ("用户的猫", ["relationship"], "")
    assert (shown["outcome"], shown["results"], shown["status"], shown["timeout_ms"]) == ("ok", 2, 200, 400)
    assert (shown["codes"], shown["errors"], shown["warnings"]) == ([], 0, 0)
    assert 0 < shown["ms"] < 400
    assert abs(shown["at"] / 1000 - time.time()) < 60


def test_row_counts_what_breaks_the_rules(mounted):
    mounted.ask("用户的猫", headers=(), max_results=2.0)
    shown = mounted.row()
    assert shown["codes"] == ["REQ002", "REQ003", "REQ004", "REQ210"]
    assert (shown["errors"], shown["warnings"]) == (3, 1)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"not json", b'{"query": null}', b'{"query": 7}', b"\xff", b"[" * 9999]
)
def test_row_is_made_of_any_body(mounted, body):
    mounted.handler(Request("POST", "/memory_retrieval", USUAL, body, client="127.0.0.1"))
    shown = mounted.row()
    assert (shown["status"], shown["outcome"]) == (400, "http_error")
    assert shown["query"] in (None, "7")


def test_row_of_odd_fields_is_text(mounted):
    mounted.ask("a" * 5000, memory_types=[{"a": 1}, "preference", None] * 9)
    shown = mounted.row()
    assert shown["query"] == "a" * 300 + "…"
    assert len(shown["types"]) == 8
    assert all(isinstance(kind, str) for kind in shown["types"])


def test_stream_goes_on_after_the_call_that_the_page_has(mounted):
    for n in range(5):
        mounted.ask(f"query {n}")
    events = first_events(mounted, 3, since=3)
    assert [each["number"] for each in events[-1][1]] == [4, 5]


def test_calls_that_left_the_journal_are_counted(mounted):
    mounted.provider.journal.max_calls = 10
    for n in range(25):
        mounted.ask(f"query {n}")
    events = dict(first_events(mounted, 4, since=2))
    assert events["missed"] == {"missed": 13}
    assert events["calls"][0]["number"] == 16


def test_calls_that_were_cleared_are_not_missed(mounted):
    for n in range(5):
        mounted.ask(f"query {n}")
    mounted.provider.journal.clear()
    mounted.ask("one more")
    events = dict(first_events(mounted, 3))
    assert "missed" not in events
    assert [each["number"] for each in events["calls"]] == [6]


def test_row_comes_again_when_its_delivery_has_ended(mounted):
    mounted.provider.playbook.use("reset-mid-body")
    reply = mounted.ask()

    async def taken():
        stream = mounted.inspector._feed.stream(0)
        parts = [await anext(stream), await anext(stream)]
        reply.on_sent(Sent("reset", 120, 0.01))
        parts.append(await anext(stream))
        await stream.aclose()
        return parts

    *_, under_way, over = [
        read_event(text)[1]
        for part in asyncio.run(taken())
        for text in part.decode().split("\n\n")
        if text.startswith("event: calls")
    ]
    assert [(each["over"], each["outcome"]) for each in (under_way[0], over[0])] == [
        (False, ""),
        (True, "connection_failed"),
    ]


def test_stream_tells_what_is_played_when_that_changes(mounted):
    async def taken():
        stream = mounted.inspector._feed.stream(0)
        parts = [await anext(stream), await anext(stream)]
        mounted.provider.playbook.use("late", times=2)
        parts.append(await anext(stream))
        await stream.aclose()
        return parts

    name, state = read_event(asyncio.run(asyncio.wait_for(taken(), 5))[-1].decode().strip())
    assert name == "state"
    assert state["rules"] == [{"use": "late", "steps": [{"play": "late", "times": 2, "played": 0}]}]


def test_no_more_watchers_than_the_server_can_serve(mounted):
    mounted.inspector._feed.watchers = MOST_WATCHERS
    reply = mounted.get("events")
    assert reply.status == 503
    assert "close one of them" in json.loads(reply.body)["error"]["message"]


# ---- secrets


def test_authorization_is_in_nothing_that_is_shown(mounted):
    echo = SECRET.removeprefix("Bearer ")
    mounted.ask(f"what is {echo}", headers=(*USUAL, ("X-Api-Key", "abcdefgh-12345")), reason=SECRET)
    text = json.dumps([mounted.row(), mounted.opened()])
    for part in ("request", "reply"):
        text += base64.b64decode(mounted.opened()[part]["body"]).decode()
    assert echo not in text
    assert "abcdefgh-12345" not in text
    assert "***" in text


def test_secret_in_a_field_of_the_body_is_hidden(mounted):
    mounted.ask("a query", access_token="tok-99887766")
    body = base64.b64decode(mounted.opened()["request"]["body"]).decode()
    assert "tok-99887766" not in body
    assert json.loads(body)["access_token"] == "***"


def test_configured_authorization_is_hidden_from_calls_with_another_one():
    mounted = Mounted()
    mounted.provider.authorization = "Bearer the-right-one"
    mounted.ask("is it the-right-one", headers=(("Authorization", "Bearer other-value"),))
    assert mounted.row()["query"] == "is it ***"


# ---- a call in full


def test_opened_call_has_both_messages_and_what_the_model_is_given(mounted):
    mounted.ask("用户的猫", max_results=1)
    call = mounted.opened()
    assert json.loads(base64.b64decode(call["request"]["body"])) == {"query": "用户的猫", "max_results": 1}
    assert call["request"]["line"] == "POST /memory_retrieval HTTP/1.1"
    assert ["Authorization", "***"] in [list(pair) for pair in call["request"]["headers"]]
    assert call["model"]["memories"][0]["id"] == "m007"
    wire = base64.b64decode(call["reply"]["wire"]["bytes"])
    assert wire.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ")
    assert wire.endswith(base64.b64decode(call["reply"]["body"]))


def test_violation_has_its_place_and_the_reason_of_its_rule(mounted):
    mounted.ask("用户的猫", user_id="42")
    (found,) = mounted.opened()["violations"]
    assert (found["side"], found["code"], found["where"], found["pointer"]) == (
        "request",
        "REQ301",
        "body",
        "/user_id",
    )
    assert found["reason"].startswith("The provider finds the user from the authorization")


def test_violation_of_the_reply_is_told_too(mounted):
    mounted.provider.playbook.use("plain-text")
    mounted.ask()
    assert {each["side"] for each in mounted.opened()["violations"]} == {"reply"}
    assert mounted.opened()["model"]["error"]["code"] == "invalid_json"


def test_bytes_on_the_wire_end_where_the_reply_was_cut_off(mounted):
    mounted.provider.playbook.use("reset-mid-body")
    reply = mounted.ask()
    reply.on_sent(Sent("reset", 150, 0.01))
    wire = mounted.opened()["reply"]["wire"]
    assert (wire["sent"], len(base64.b64decode(wire["bytes"]))) == (150, 150)


def test_timing_tells_how_long_was_waited_on_purpose(mounted):
    mounted.provider.playbook.use("late")
    reply = mounted.ask()
    reply.on_sent(Sent("client closed", 0, 0.401))
    call = mounted.opened()
    assert (call["timing"]["delay_ms"], call["timing"]["timeout_ms"], call["timing"]["how"]) == (
        600,
        400,
        "client closed",
    )
    assert call["model"] == {
        "ok": False,
        "error": {"code": "timeout", "message": "no complete answer within 400 ms"},
    }
    assert call["scenario"]["outcomes"] == ["timeout"]


def test_same_request_after_a_failure_is_told(mounted):
    mounted.provider.playbook.use("server-error", times=1)
    mounted.ask()
    mounted.ask()
    assert (mounted.opened(1)["retry_of"], mounted.opened(2)["retry_of"]) == (None, 1)


def test_call_that_is_gone_is_said_to_be(mounted):
    status, answer = mounted.json("call?number=7")
    assert status == 404
    assert answer["error"]["message"] == (
        "call 7 is not in the journal any more; it keeps the latest 1,000 calls"
    )


def test_large_body_is_shown_in_part(mounted):
    mounted.ask("a" * 100_000)
    request = mounted.opened()["request"]
    assert (len(base64.b64decode(request["body"])), request["cut"]) == (65_536, True)
    assert request["size"] > 100_000


@pytest.mark.parametrize("name", [name for name, each in CATALOGUE.items() if not each.door])
def test_every_scenario_can_be_opened_before_and_after_its_end(mounted, name):
    mounted.provider.elsewhere = lambda: "http://127.0.0.1:1"
    mounted.provider.playbook.use(name)
    reply = mounted.ask()
    json.dumps(mounted.opened(), allow_nan=False)
    if reply.on_sent is not None:
        reply.on_sent(Sent("client closed", 100, 0.4))
    json.dumps(mounted.opened(), allow_nan=False)


def test_outcome_is_the_one_that_the_consumer_has():
    names = (
        "success",
        "late",
        "drip",
        "hang",
        "reset-mid-body",
        "oversized",
        "gzip-bomb",
        "two-replies",
        "101",
    )
    names += (
        "server-error",
        "redirect",
        "truncated-json",
        "corrupt-gzip",
        "endless",
        "half-json",
        "close-early",
    )
    provider = Provider(builtin(), playbook=Playbook(abilities=EVERYTHING), timeout_ms=300)
    server = Server(provider, door=provider.playbook)
    elsewhere = Elsewhere(server)
    provider.elsewhere = elsewhere.url
    found, expected = {}, {}
    with server:
        config = RetrievalConfig(server.url + provider.path, SECRET, timeout_ms=300)
        for name in [name for name in names if name in CATALOGUE]:
            provider.playbook.clear()
            provider.journal.clear()
            provider.playbook.use(name)
            expected[name] = retrieve_sync(config, "用户的猫").outcome
            assert provider.journal.wait(lambda: provider.journal.calls[0].over, 5)
            found[name] = verdict(provider.journal.calls[0], provider.max_response_bytes).result.outcome
    elsewhere.stop()
    assert found == expected


# ---- to take along


def test_command_has_no_authorization_in_it(mounted):
    mounted.ask("it's 用户的猫", max_results=1)
    assert mounted.opened()["copies"]["curl"].splitlines() == [
        "curl -sS \\",
        f"  {ENDPOINT} \\",
        "  -H 'Content-Type: application/json' \\",
        "  -H 'Accept: application/json' \\",
        '  -H "Authorization: $AUTHORIZATION" \\',
        """  --data-binary '{"query": "it'"'"'s 用户的猫", "max_results": 1}'""",
    ]


def test_copied_test_passes(mounted, pytester):
    mounted.provider.playbook.use("server-error")
    mounted.ask("用户的猫", memory_types=["relationship"], max_results=1)
    pytester.makepyfile(mounted.opened()["copies"]["pytest"])
    pytester.runpytest_inprocess(*PYTEST).assert_outcomes(passed=1)


def test_copied_test_of_a_broken_request_shows_the_violation(mounted, pytester):
    mounted.ask("用户的猫", headers=(), user_id="42")
    pytester.makepyfile(mounted.opened()["copies"]["pytest"])
    result = pytester.runpytest_inprocess(*PYTEST)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*REQ301 error at body /user_id*"])


def test_copied_cassette_can_be_played(mounted):
    mounted.ask("用户的猫", max_results=1)
    text = mounted.opened()["copies"]["cassette"]
    (one,) = parse("call.yaml", text, interactions_of)
    assert json.loads(one.reply.body)["memories"][0]["id"] == "m007"
    assert SECRET not in text


def test_cassette_of_what_is_no_reply_says_so(mounted):
    call = mounted.provider.journal.add(Request("POST", "/"), Reply.raw(b"no HTTP"), time.time(), 0.001)
    mounted.provider.journal.end(call, Sent("completed", 7, 0.001))
    assert mounted.opened()["copies"]["cassette"] == (
        "# no cassette of call 1: what was sent is no reply that a cassette could hold\n"
    )


# ---- on a server


@contextmanager
def served(mounted):
    server = Server(mounted.handler, door=mounted.provider.playbook)
    with server:
        yield server
    server.check()


def watching(server, since=0):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", f"/__memmock__/events?since={since}")
    return connection, connection.getresponse()


def next_event(answer):
    name, data = answer.readline(), answer.readline()
    assert answer.readline() == b"\n"
    return read_event((name + data).decode().strip())


def test_call_is_seen_by_who_watches(mounted):
    with served(mounted) as server:
        connection, answer = watching(server)
        assert answer.getheader("Content-Type") == "text/event-stream"
        assert [next_event(answer)[0], next_event(answer)[0]] == ["hello", "state"]
        start = time.monotonic()
        retrieve_sync(RetrievalConfig(server.url + "/memory_retrieval", SECRET), "用户的猫")
        name, rows = next_event(answer)
        assert time.monotonic() - start < 2
        assert (name, rows[0]["query"]) == ("calls", "用户的猫")
        connection.close()


def test_server_with_a_watcher_stops_at_once(mounted):
    with served(mounted) as server:
        connection, answer = watching(server)
        next_event(answer)
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 2
        connection.close()


def test_watcher_that_left_is_forgotten(mounted):
    with served(mounted) as server:
        connection, answer = watching(server)
        next_event(answer)
        assert mounted.inspector.watchers == 1
        answer.close()
        connection.close()
        deadline = time.monotonic() + 5
        while mounted.inspector.watchers and time.monotonic() < deadline:
            time.sleep(0.01)
        assert mounted.inspector.watchers == 0


def test_watcher_that_does_not_read_keeps_nobody_waiting(mounted):
    with served(mounted) as server, socket.create_connection(("127.0.0.1", server.port)) as watcher:
        watcher.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        watcher.sendall(b"GET /__memmock__/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        body = json.dumps({"query": "x" * 200}).encode()
        for _ in range(1500):
            connection.request("POST", "/memory_retrieval", body, dict(USUAL))
            assert connection.getresponse().read()
        connection.close()
        assert mounted.inspector.watchers == 1
        assert len(mounted.provider.journal.calls) == 1000


# ---- memories and their ranking


def test_ranking_is_that_of_a_retrieval_and_its_scores_explain_it(mounted):
    query = {"query": "用户和灵绯之前约定的暗号", "time_hint": "上周", "max_results": 3}
    status, answer = mounted.json("rank", query, "POST")
    assert status == 200
    found = [builtin()[each["index"]].id for each in answer["ranking"]]
    assert found == [each.id for each in builtin().retrieve(query["query"], time_hint="上周", max_results=28)]
    scores = [each["score"] for each in answer["ranking"]]
    assert scores == sorted(scores, reverse=True)
    assert [each["sent"] for each in answer["ranking"]].count(True) == 3
    assert (answer["found"], answer["left_out"]) == (28, 0)


@pytest.mark.parametrize("query", ["猫", "我的猫", "用户 tea ＴＥＡ", "最近在忙的项目", "x", "   "])
def test_scores_fall_in_the_order_of_the_ranking(mounted, query):
    mounted.provider.memories = builtin().plus(
        {"summary": "Drinks green tea; 猫.", "keywords": ["tea", "猫"]},
        {"summary": "小猫怕水", "type": "other"},
    )
    _, answer = mounted.json("rank", {"query": query}, "POST")
    scores = [each["score"] for each in answer["ranking"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 30


def test_hits_are_marked_where_they_are(mounted):
    mounted.provider.memories = Memories(
        [{"summary": "用户爱喝Green tea，不喝咖啡。", "keywords": ["猫", "tea time"]}]
    )
    _, answer = mounted.json("rank", {"query": "GREEN 咖啡 我的猫"}, "POST")
    (best,) = answer["ranking"]
    assert best["summary"] == [
        ["用户爱喝", False],
        ["Green", True],
        [" tea，不喝", False],
        ["咖啡", True],
        ["。", False],
    ]
    assert best["keywords"] == [[["猫", True]], [["tea time", False]]]
    assert best["score"] == 4 + 4 + 8


def test_memories_of_other_types_are_left_out_of_the_ranking(mounted):
    _, answer = mounted.json("rank", {"query": "猫", "memory_types": ["relationship"]}, "POST")
    assert answer["found"] + answer["left_out"] == 28
    assert {each["type"] for each in answer["ranking"]} == {"relationship"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "the body needs the field query"),
        ({"query": "a", "max_results": 0}, "max_results must be at least 1, not 0"),
        ({"query": "a", "memory_types": ["mood"]}, 'not "mood"'),
        ({"query": 1}, "query must be text, not 1"),
    ],
)
def test_wrong_ranking_is_refused_with_the_reason(mounted, given, says):
    status, answer = mounted.json("rank", given, "POST")
    assert status == 400
    assert says in answer["error"]["message"]


def test_memories_can_be_added(mounted):
    status, answer = mounted.json("memories", {"memories": [{"summary": "用户会弹琴。"}]}, "POST")
    assert (status, len(answer["memories"])) == (200, 29)
    assert mounted.provider.memories[-1].summary == "用户会弹琴。"


def test_exported_persona_can_be_imported(mounted):
    _, persona = mounted.json("persona")
    mounted.provider.memories = Memories()
    text = json.dumps(persona)
    status, answer = mounted.json("persona", {"text": text, "format": "json"}, "PUT")
    assert (status, len(answer["memories"])) == (200, 28)
    assert mounted.provider.memories == builtin()


def test_persona_in_yaml_is_imported(mounted):
    text = 'live:\n  builtin_avatars:\n    "01":\n      memories:\n        - summary: 用户会弹琴。\n'
    mounted.json("persona", {"text": text, "format": "yaml"}, "PUT")
    assert [each.summary for each in mounted.provider.memories] == ["用户会弹琴。"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": "persona:\n  01: []\n", "format": "yaml"}, 'the persona:1: the file has no "live"'),
        ({"text": "{", "format": "json"}, "the persona:1"),
        ({"text": "", "format": "json"}, "the persona: the file is empty"),
        ({"text": "live: {}", "format": "toml"}, 'format must be json or yaml, not "toml"'),
    ],
)
def test_persona_that_cannot_be_read_is_refused_and_changes_nothing(mounted, given, says):
    status, answer = mounted.json("persona", given, "PUT")
    assert status == 400
    assert says in answer["error"]["message"]
    assert mounted.provider.memories == builtin()


# ---- where there is no control API


def inspected(handler, journal, kind="replay", **how):
    return Inspected(
        handler, Inspector(Subject(kind=kind, journal=journal, endpoint=lambda: ENDPOINT)), **how
    )


def test_other_handlers_have_the_page_too_without_what_they_have_not():
    recorded = Interaction(
        Request("POST", "/memory", (), b'{"query":"a"}'), ENDPOINT, Reply.json({"memories": []})
    )
    replay = Replay(Cassette([recorded]))
    handler = inspected(replay, replay.journal, host="127.0.0.1")
    assert handler(Request("POST", "/memory", (), b'{"query":"a"}')).status == 200
    mounted = Mounted()
    mounted.inspector, mounted.handler = handler._inspector, handler
    assert mounted.get("").status == 200
    (_, hello), (name, rows) = first_events(mounted, 2)
    assert (hello["kind"], hello["mock"]) == ("replay", False)
    assert (name, rows[0]["recording"], rows[0]["outcome"]) == ("calls", "interaction 1", "ok")
    assert mounted.json("call?number=1")[1]["model"] == {"ok": True, "memories": []}


def test_other_handlers_answer_what_is_not_the_pages():
    handler = inspected(lambda request: Reply(204), Journal(), host="127.0.0.1")
    for target in ("/", "/__memmock__x", "/__memmock__/x/memory", "/memory?a=/__memmock__/"):
        assert handler(Request("GET", target, client="127.0.0.1")).status == 204


def test_page_is_off_where_others_may_reach_the_server():
    handler = inspected(lambda request: Reply(204), Journal(), host="0.0.0.0")
    reply = handler(Request("GET", "/__memmock__/", (("Host", "localhost"),), client="127.0.0.1"))
    assert reply.status == 403
    assert json.loads(reply.body)["error"]["message"] == (
        "the server listens on 0.0.0.0, where others may reach it, so its inspector is off; "
        "listen on 127.0.0.1 to have it"
    )


def test_call_that_was_not_recorded_has_no_outcome():
    journal = Journal()
    journal.add(Request("POST", "/"), Reply(200), time.time(), 0.1, recording="not recorded: a secret")
    assert verdict(journal.calls[0], 65536).result is None
