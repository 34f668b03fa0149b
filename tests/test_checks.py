"""The fixed checks: small providers with one bug each, and correct ones that are unlike the mock."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from memmock.conformance import checks, relations
from memmock.conformance.case import PLAIN, Case, Form
from memmock.conformance.checks import check
from memmock.conformance.finding import Result
from memmock.conformance.session import Answer, Session, Target
from memmock.contract import MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.memories import Memories, builtin
from memmock.provider import Provider
from memmock.rules import RULES, Severity, request_violations
from memmock.server import Server

TOKEN = "Bearer good-token"
SOME = builtin()[:12]
Memory = dict[str, Any]
Answering = Callable[[Request], Reply]
Bug = Callable[[Answering, Request], Any]

UNAUTHORIZED = Reply.error(401, "unauthorized", "no")
CRASH = Reply.error(500, "internal_error", "the lookup failed")


def run(handler: Any, *, authorization: str | None = TOKEN, timeout_ms: int = 3000, **options: Any) -> Result:
    is_open, most_requests = options.pop("open", False), options.pop("most_requests", None)
    with Server(handler) as server:
        url = f"{server.url}/memory_retrieval"
        target = Target(url=url, authorization=authorization, open=is_open, timeout_ms=timeout_ms)
        session = Session(target, most_requests=most_requests)
        try:
            return check(session, **options)
        finally:
            session.close()


def with_bug(bug: Bug, memories: Memories | None = None) -> Callable[[Request], Any]:
    provider = Provider(SOME if memories is None else memories, authorization=TOKEN)
    answer: Any = provider
    return lambda request: bug(answer, request)


def asked(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def found(reply: Reply) -> list[Memory] | None:
    return json.loads(reply.body)["memories"] if reply.status == 200 else None


def changed(change: Callable[[Memory], Any]) -> Bug:
    """A provider that writes each memory in its own way."""

    def bug(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        memories = found(reply)
        return reply if memories is None else Reply.json({"memories": [change(each) for each in memories]})

    return bug


def rewritten(change: Callable[[bytes], bytes], *headers: tuple[str, str]) -> Bug:
    """A provider that writes the bodies of its answers in its own way."""

    def bug(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        if reply.status != 200:
            return reply
        return reply._replace(body=change(reply.body), headers=headers or reply.headers)

    return bug


def error(change: Callable[[Reply, Request], Reply]) -> Bug:
    """A provider that refuses in its own way."""

    def bug(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        return change(reply, request) if reply.status >= 400 else reply

    return bug


def crashes(when: Callable[[dict[str, Any]], Any], reply: Reply = CRASH) -> Bug:
    """A provider that cannot answer some of what it is asked."""
    return lambda answer, request: reply if when(asked(request)) else answer(request)


def asking(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Bug:
    """A provider that understands what it is asked in its own way."""

    def bug(answer: Answering, request: Request) -> Reply:
        fields = asked(request)
        body = json.dumps(change(fields)).encode() if fields.get("query") else request.body
        return answer(request._replace(body=body))

    return bug


def filtering(nothing: Reply) -> Bug:
    """A provider that leaves out what has no word of the query, and says in its own way that it has none."""

    def bug(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        if reply.status != 200:
            return reply
        query = asked(request)["query"]
        pairs = {query[n : n + 2] for n in range(len(query) - 1)}
        kept = [each for each in found(reply) or () if any(pair in each["summary"] for pair in pairs)]
        return Reply.json({"memories": kept}) if kept else nothing

    return bug


def authorized_by(accepts: Callable[[str], bool]) -> Bug:
    """A provider that looks at the authorization in its own way."""

    def bug(answer: Answering, request: Request) -> Reply:
        if not accepts(request.header("Authorization") or ""):
            return UNAUTHORIZED
        return answer(request._replace(headers=(("Authorization", TOKEN),)))

    return bug


def read_once() -> Bug:
    seen: set[tuple[Any, str]] = set()

    def bug(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        live_id = asked(request).get("live_id")
        fresh = [each for each in found(reply) or () if (live_id, each["id"]) not in seen]
        seen.update((live_id, each["id"]) for each in fresh)
        return reply if reply.status != 200 else Reply.json({"memories": fresh})

    return bug


def turned_every_time() -> Bug:
    count = itertools.count()

    def bug(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        memories = found(reply)
        if memories is None or next(count) % 2:
            return reply
        return Reply.json({"memories": memories[::-1]})

    return bug


def one_at_a_time() -> Bug:
    busy = [0]

    async def bug(answer: Answering, request: Request) -> Reply:
        busy[0] += 1
        try:
            if busy[0] > 1:
                return CRASH
            await asyncio.sleep(0.002 if asked(request).get("memory_types") else 0)
            return answer(request)
        finally:
            busy[0] -= 1

    return bug


def one_request_for_all() -> Bug:
    current: list[Request] = []

    async def bug(answer: Answering, request: Request) -> Reply:
        current[:] = [request]
        await asyncio.sleep(0.002 if asked(request).get("memory_types") else 0)
        return answer(current[0])

    return bug


def second_on_a_connection_fails() -> Bug:
    seen: set[int] = set()

    def bug(answer: Answering, request: Request) -> Reply:
        if request.connection in seen:
            return CRASH
        seen.add(request.connection)
        return answer(request)

    return bug


def connection_lost_after_401() -> Bug:
    lost: set[int] = set()

    def bug(answer: Answering, request: Request) -> Reply:
        if request.connection in lost:
            return Reply.error(400, "bad_request", "what is this")
        reply = answer(request)
        if reply.status == 401:
            lost.add(request.connection)
        return reply

    return bug


def every(nth: int) -> Bug:
    count = itertools.count(1)
    return lambda answer, request: answer(request) if next(count) % nth else CRASH


def cut_before_filtering(answer: Answering, request: Request) -> Reply:
    fields = asked(request)
    kinds = fields.pop("memory_types", None) or MEMORY_TYPES
    reply = answer(request._replace(body=json.dumps(fields).encode())) if fields else answer(request)
    memories = found(reply)
    if memories is None:
        return reply
    return Reply.json({"memories": [each for each in memories if each["type"] in kinds]})


def one_more(answer: Answering, request: Request) -> Reply:
    most = asked(request).get("max_results", 5)
    if not isinstance(most, int):
        return answer(request)
    return asking(lambda fields: {**fields, "max_results": most + 1})(answer, request)


async def slow_for_style(answer: Answering, request: Request) -> Reply:
    if asked(request).get("memory_types") == ["style"]:
        await asyncio.sleep(0.5)
    return answer(request)


def echoing(answer: Answering, request: Request) -> Reply:
    query = asked(request).get("query")
    return changed(lambda memory: {**memory, "summary": f"关于{query}：{memory['summary']}"})(answer, request)


def repeated(answer: Answering, request: Request) -> Reply:
    reply = answer(request)
    memories = found(reply) or []
    if len(memories) < 2:
        return reply
    return Reply.json({"memories": [memories[0], *memories[:-1]]})


def differing_by_number(answer: Answering, request: Request) -> Reply:
    reply = answer(request)
    memories = found(reply)
    return Reply.json({"memories": memories[::-1]}) if memories and len(memories) == 2 else reply


def without_spaces_only(answer: Answering, request: Request) -> Reply:
    if b'"max_results":' in request.body:
        return answer(request)
    return asking(lambda fields: {**fields, "max_results": 5})(answer, request)


def style_unknown(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "memory_types": []} if fields.get("memory_types") == ["style"] else fields


def in_another_order(fields: dict[str, Any]) -> bool:
    kinds = fields.get("memory_types")
    if not isinstance(kinds, list) or not set(map(str, kinds)) <= set(MEMORY_TYPES):
        return False
    return sorted(kinds, key=MEMORY_TYPES.index) != kinds


def with_text(change: Callable[[str], str]) -> Bug:
    return changed(lambda memory: {**memory, "summary": change(memory["summary"])})


def text_is(text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda fields: any(text in str(fields.get(name)) for name in ("query", "reason", "time_hint"))


def exactly(name: str, value: str) -> Bug:
    def bug(answer: Answering, request: Request) -> Reply:
        sent = dict(request.headers).get(name)
        return answer(request) if sent == value else Reply.error(400, "bad_request", f"no {name}")

    return bug


HTML = (("Content-Type", "text/html"),)
BUGS: dict[str, tuple[str, Callable[[], Bug] | Bug]] = {
    "live_id is needed": ("RES001", crashes(lambda fields: fields.get("query") and "live_id" not in fields)),
    "live_id beyond int64": ("RES001", crashes(lambda fields: str(fields.get("live_id", "")) > "18446744")),
    "empty live_id": ("RES001", crashes(lambda fields: fields.get("live_id") == "")),
    "reason in Chinese": ("RES001", crashes(lambda fields: not str(fields.get("reason", "")).isascii())),
    "emoji": ("RES001", crashes(text_is("🍵"))),
    "backslash": ("RES001", crashes(text_is("\\"))),
    "line break": ("RES001", crashes(text_is("\n"))),
    "braces": ("RES001", crashes(text_is("{"))),
    "long query": ("RES001", crashes(lambda fields: len(str(fields.get("query"))) > 2000)),
    "large max_results": ("RES001", crashes(lambda fields: fields.get("max_results") == 1000)),
    "redirect": ("RES001", crashes(lambda _: True, Reply(307, (("Location", "/elsewhere"),)))),
    "flaky": ("RES001", lambda: every(9)),
    "404 for nothing": ("RES001", filtering(Reply.error(404, "not_found", "nothing"))),
    "204 for nothing": ("RES001", filtering(Reply(204))),
    "crash for a wrong request": ("RES002", error(lambda reply, _: CRASH if reply.status == 400 else reply)),
    "crash for a wrong authorization": ("RES002", error(lambda _, __: CRASH)),
    "crash for null": ("RES002", crashes(lambda fields: None in fields.values())),
    "text/plain": ("RES003", rewritten(bytes, ("Content-Type", "text/plain"))),
    "gzip": (
        "RES004",
        rewritten(gzip.compress, ("Content-Type", "application/json"), ("Content-Encoding", "gzip")),
    ),
    "too large": ("RES005", changed(lambda memory: {**memory, "vector": "0" * 6000})),
    "slow for one kind": ("RES006", slow_for_style),
    "cut off": ("RES007", lambda answer, request: answer(request).cut(after=20)),
    "GBK": ("RES101", rewritten(lambda body: body.decode().encode("gbk", "replace"))),
    "byte-order mark": ("RES102", rewritten(lambda body: b"\xef\xbb\xbf" + body)),
    "two objects": ("RES102", rewritten(lambda body: body + b"\n{}")),
    "a name twice": ("RES103", rewritten(lambda body: body.replace(b'"id"', b'"id":"a","id"'))),
    "half a surrogate pair": (
        "RES104",
        rewritten(lambda body: body.replace(b'"summary":"', b'"summary":"\\ud83c')),
    ),
    "number beyond a double": ("RES105", rewritten(lambda body: body.replace(b'"id"', b'"n":1e999,"id"'))),
    "bare array": ("RES201", rewritten(lambda body: body.removeprefix(b'{"memories":')[:-1])),
    "null for nothing": ("RES201", filtering(Reply.json({"memories": None}))),
    "error in a 200": ("RES201", filtering(Reply.json({"error": {"code": "not_found"}}))),
    "nothing found as a memory": ("RES202", filtering(Reply.json({"memories": [{"summary": "没查到"}]}))),
    "bare summaries": ("RES203", changed(lambda memory: memory["summary"])),
    "no summary": ("RES204", changed(lambda memory: {"id": memory["id"], "text": memory["summary"]})),
    "number as id": ("RES205", changed(lambda memory: {**memory, "id": int(memory["id"][1:])})),
    "confidence as text": ("RES205", changed(lambda memory: {**memory, "confidence": "0.9"})),
    "capital type": ("RES206", changed(lambda memory: {**memory, "type": memory["type"].title()})),
    "percent": ("RES207", changed(lambda memory: {**memory, "confidence": 93})),
    "local time": ("RES208", changed(lambda memory: {**memory, "updated_at": "2026-05-18 08:12"})),
    "no source": ("RES209", changed(lambda memory: {"id": memory["id"], "summary": memory["summary"]})),
    "page token": ("RES210", rewritten(lambda body: body[:-1] + b',"has_more":"next"}')),
    "a memory twice": ("RES301", repeated),
    "one more": ("RES302", one_more),
    "1 is no limit": (
        "RES302",
        asking(lambda fields: {**fields, "max_results": 50} if fields.get("max_results") == 1 else fields),
    ),
    "types ignored": ("RES303", asking(lambda fields: {**fields, "memory_types": []})),
    "style unknown": ("RES303", asking(style_unknown)),
    "long summary": ("RES401", with_text(lambda text: text * 20)),
    "chat log": ("RES402", with_text(lambda text: f"user: {text}\nassistant: ok")),
    "echo": ("RES402", echoing),
    "markup": ("RES403", with_text(lambda text: f"<b>{text}</b>")),
    "garbled": ("RES404", with_text(lambda text: text.encode().decode("latin-1"))),
    "HTML errors": ("RES501", error(lambda reply, _: Reply(reply.status, HTML, b"<h1>Oops</h1>"))),
    "empty errors": ("RES501", error(lambda reply, _: Reply(reply.status))),
    "login page": (
        "RES501",
        error(lambda reply, _: Reply(302, HTML, b"<p>Log in") if reply.status == 401 else reply),
    ),
    "trace": (
        "RES502",
        error(lambda reply, _: Reply.error(reply.status, "x", "Traceback (most recent call last):")),
    ),
    "authorization shown": (
        "RES502",
        error(lambda reply, request: Reply.error(reply.status, "x", str(request.header("Authorization")))),
    ),
    "any authorization": ("RES601", authorized_by(bool)),
    "none will do": ("RES601", authorized_by(lambda sent: sent in ("", TOKEN))),
    "case of the token": ("RES601", authorized_by(lambda sent: sent.lower() == TOKEN.lower())),
    "its beginning": ("RES601", authorized_by(lambda sent: sent.startswith(TOKEN))),
    "a part of it": ("RES601", authorized_by(lambda sent: bool(sent) and sent in TOKEN)),
    "its first letters": ("RES601", authorized_by(lambda sent: sent[:12] == TOKEN[:12])),
    "its end": ("RES601", authorized_by(lambda sent: sent.endswith("good-token"))),
    "read once": ("RES602", read_once),
    "another order each time": ("RES602", turned_every_time),
    "other memories for 2": ("RES603", differing_by_number),
    "cut before filtered": ("RES603", cut_before_filtering),
    "a kind lost": (
        "RES604",
        crashes(lambda fields: fields.get("memory_types") == ["style"], Reply.json({"memories": []})),
    ),
    "of all kinds at once": (
        "RES604",
        crashes(lambda fields: len(fields.get("memory_types") or ()) > 1, Reply.json({"memories": []})),
    ),
    "order of kinds": ("RES605", crashes(in_another_order)),
    "empty memory_types": (
        "RES605",
        crashes(lambda fields: fields.get("memory_types") == [], Reply.json({"memories": []})),
    ),
    "JSON by regular expression": ("RES605", without_spaces_only),
    "case of header names": ("RES605", exactly("Content-Type", "application/json")),
    "Accept to the letter": ("RES605", exactly("Accept", "application/json")),
    "a length is needed": (
        "RES605",
        lambda answer, request: CRASH if request.header("Transfer-Encoding") else answer(request),
    ),
    "second call on a connection": ("RES605", second_on_a_connection_fails),
    "connection lost after 401": ("RES605", connection_lost_after_401),
    "one at a time": ("RES606", one_at_a_time),
    "calls mixed up": ("RES606", one_request_for_all),
}


@pytest.mark.parametrize("name", BUGS)
def test_each_bug_breaks_its_rule(name: str) -> None:
    code, bug = BUGS[name]
    made: Any = bug if inspect.signature(bug).parameters else bug()  # type: ignore[call-arg]
    result = run(
        with_bug(made),
        timeout_ms=150 if code == "RES006" else 3000,
        # these show early, and there are many of them
        most_requests=75 if code[3] in "0124" and code != "RES002" else None,
    )

    shown = [finding for finding in result.findings if finding.rule.code == code]
    assert shown, [(finding.rule.code, finding.message) for finding in result.findings]
    assert any(not finding.flaky for finding in shown) or name == "flaky"
    assert len(result.findings) <= 6
    assert {each.rule.code for each in result.outcomes if each.state == "violated"} >= {code}


# ---- correct providers


def strict(answer: Answering, request: Request) -> Reply:
    mistakes = request_violations(request, authorization=TOKEN)
    if any(each.severity is Severity.ERROR for each in mistakes):
        status = 401 if any(each.code in ("REQ004", "REQ006") for each in mistakes) else 422
        return Reply.json(
            {"detail": [{"msg": each.message} for each in mistakes if each.code != "REQ006"]}, status
        )
    fields = asked(request)
    known = {"query", "live_id", "reason", "memory_types", "time_hint", "max_results"}
    if mistakes or not known.issuperset(fields) or fields.get("max_results", 1) > 100:
        return Reply.json({"code": 400, "reason": "BAD_REQUEST", "message": "no", "metadata": {}}, 400)
    return answer(request)


def fresh_values() -> Bug:
    count = itertools.count()

    def provider(answer: Answering, request: Request) -> Reply:
        reply = answer(request)
        memories = found(reply)
        if memories is None:
            return reply
        for memory in memories:
            memory |= {"confidence": next(count) % 2, "score": next(count), "tags": ["a"], "seen": None}
        return Reply.json({"trace_id": str(next(count)), "memories": memories, "has_more": False})

    return provider


def fresh_ids() -> Bug:
    count = itertools.count()
    return changed(lambda memory: {**memory, "id": str(next(count))})


def newest_first(answer: Answering, request: Request) -> Reply:
    fields = asked(request)
    most = fields.get("max_results", 3)
    if not fields.get("query") or not isinstance(most, int) or isinstance(most, bool) or most < 1:
        return answer(request)
    reply = answer(request._replace(body=json.dumps({**fields, "max_results": 100}).encode()))
    memories = sorted(found(reply) or [], key=lambda memory: memory["updated_at"], reverse=True)
    return reply if reply.status != 200 else Reply.json({"memories": memories[: min(most, 10)]})


def busy_at_times() -> Bug:
    count = itertools.count(1)
    busy = Reply.error(429, "rate_limited", "later", (("Retry-After", "0"),))
    return lambda answer, request: answer(request) if next(count) % 30 else busy


CORRECT: dict[str, Any] = {
    "plain": lambda: lambda answer, request: answer(request),
    "filtering": lambda: filtering(Reply.json({"memories": []})),
    "strict": lambda: strict,
    "fresh values": fresh_values,
    "fresh ids": fresh_ids,
    "another order, cap and default": lambda: newest_first,
    "until close": lambda: lambda answer, request: answer(request).until_close(),
    "chunked": lambda: lambda answer, request: answer(request).chunked(64),
    "busy at times": busy_at_times,
    "charset": lambda: rewritten(bytes, ("Content-Type", "application/json; charset=utf-8")),
    "other errors": lambda: error(lambda reply, _: Reply.json({"message": "no"}, reply.status)),
}


FEW = {"one": builtin()[:1], "none": Memories()}


@pytest.mark.parametrize(
    ("name", "memories"),
    [
        *(pytest.param(name, SOME, id=name) for name in CORRECT),
        *(
            pytest.param(name, few, id=f"{name}, {how}")
            for name in ("plain", "filtering", "fresh values")
            for how, few in FEW.items()
        ),
    ],
)
def test_a_correct_provider_gives_no_finding(name: str, memories: Memories) -> None:
    result = run(with_bug(CORRECT[name](), memories))

    assert [(finding.rule.code, finding.message) for finding in result.findings] == []
    assert result.stopped == ""
    assert {each.state for each in result.outcomes} <= {"passed", "not applicable"}


def test_each_rule_of_replies_has_an_outcome() -> None:
    sent: list[tuple[int, int]] = []
    result = run(Provider(builtin(), authorization=TOKEN), progress=lambda *told: sent.append(told))

    assert [each.rule.code for each in result.outcomes] == [code for code in RULES if code.startswith("RES")]
    assert {each.state for each in result.outcomes} == {"passed"}
    assert result.requests <= checks.USUAL_REQUESTS + 10
    assert sent[-1] == (result.requests, result.requests)
    assert [done for done, _ in sent] == sorted(done for done, _ in sent)


def test_an_empty_store_passes_and_leaves_rules_open() -> None:
    result = run(Provider(Memories(), authorization=TOKEN))

    open_rules = {each.rule.code: each.reason for each in result.outcomes if each.state == "not applicable"}
    assert open_rules["RES204"] == "no memory was seen"
    assert open_rules["RES603"] == "there were no answers with memories to compare"
    assert "RES001" not in open_rules


@pytest.mark.parametrize(
    ("authorization", "is_open", "reason"),
    [(None, False, "no authorization is known"), (TOKEN, True, "the provider is open")],
)
def test_an_open_provider_is_not_asked_with_a_wrong_authorization(authorization, is_open, reason) -> None:
    result = run(Provider(builtin()), authorization=authorization, open=is_open)

    assert result.findings == []
    (outcome,) = [each for each in result.outcomes if each.rule.code == "RES601"]
    assert (outcome.state, outcome.reason) == ("not applicable", reason)


def test_a_provider_that_looks_at_no_authorization_gives_it_away_to_anyone() -> None:
    result = run(Provider(builtin()))

    assert [finding.rule.code for finding in result.findings] == ["RES601", "RES601"]
    assert result.findings[0].message.startswith("no Authorization: 5 memories (")


def test_without_an_authorization_a_status_is_judged_all_the_same() -> None:
    result = run(lambda request: CRASH, authorization=None)

    assert "RES001" in [finding.rule.code for finding in result.findings]


@pytest.mark.parametrize(
    ("authorization", "stopped"),
    [
        ("Bearer other", "the provider refuses the authorization (401)"),
        (None, "the provider refuses a call without authorization (401)"),
    ],
)
def test_a_refused_authorization_ends_the_run(authorization, stopped) -> None:
    result = run(Provider(builtin(), authorization=TOKEN), authorization=authorization)

    assert result.stopped == stopped
    assert [finding.rule.code for finding in result.findings] == ["RES001"]
    assert {each.state for each in result.outcomes} == {"violated", "passed", "not applicable"}


def test_rules_and_ignore_choose_what_is_told() -> None:
    buggy = with_bug(changed(lambda memory: {"summary": memory["summary"], "confidence": "1"}))

    assert {finding.rule.code for finding in run(buggy).findings} == {"RES205", "RES209"}
    chosen = run(buggy, rules=["RES209", "RES001"])
    assert [each.rule.code for each in chosen.outcomes] == ["RES001", "RES209"]
    assert [finding.rule.code for finding in chosen.findings] == ["RES209"]
    ignored = run(buggy, ignore=["RES209", "RES205"])
    assert (ignored.findings, len(ignored.outcomes)) == ([], len(run(buggy).outcomes) - 2)


def test_nothing_that_answers_is_an_error() -> None:
    with Server(lambda request: CRASH) as server:
        url = f"{server.url}/memory"
    with pytest.raises(MemmockError, match=r"^http://127\.0\.0\.1:\d+/memory: Connection refused$"):
        check(Session(Target(url=url)))


def test_the_limit_of_requests_ends_the_run() -> None:
    result = run(Provider(builtin(), authorization=TOKEN), most_requests=10)

    assert (result.requests, result.stopped) == (10, "as many requests were sent as are allowed")
    assert result.findings == []


def test_a_slow_provider_ends_the_run() -> None:
    async def slow(request: Request) -> Reply:
        await asyncio.sleep(0.5)
        return CRASH

    result = run(slow, timeout_ms=50)

    assert [finding.rule.code for finding in result.findings] == ["RES006"]
    assert result.stopped == "the simplest retrieval is not answered in time"


def test_a_provider_that_is_always_busy_ends_the_run() -> None:
    busy = Reply.error(429, "rate_limited", "later", (("Retry-After", "0"),))
    assert run(lambda request: busy).stopped == "the provider limits how many calls it takes (429)"


def test_what_was_slow_once_is_no_finding() -> None:
    count = itertools.count()

    async def once(answer: Answering, request: Request) -> Reply:
        if next(count) == 40:
            await asyncio.sleep(0.3)
        return answer(request)

    assert run(with_bug(once), timeout_ms=200).findings == []


def test_a_finding_shows_the_simplest_request() -> None:
    result = run(with_bug(crashes(text_is("{"))))

    (finding,) = result.findings
    assert finding.rule.code == "RES001"
    (answer,) = finding.answers
    assert list(answer.case.fields) == ["query"]
    assert finding.expected == "200 with the memories that fit, or with an empty array"


def test_a_message_is_about_the_request_that_is_shown() -> None:
    (finding,) = run(with_bug(asking(lambda fields: {**fields, "memory_types": []}))).findings

    (answer,) = finding.answers
    assert answer.case.fields == {"query": "tea", "memory_types": ["preference"]}
    kinds = [memory["type"] for memory in answer.memories or ()]
    number = next(n for n, kind in enumerate(kinds) if kind != "preference")
    assert finding.pointer == f"/memories/{number}/type"
    assert finding.message == (
        f'body /memories/{number}/type: is "{kinds[number]}", asked for was preference'
    )


def test_a_form_that_matters_is_named() -> None:
    (finding,) = run(with_bug(without_spaces_only)).findings

    assert finding.message.startswith("spaced True: written otherwise, it is answered with 5 memories (")
    assert [answer.case.form for answer in finding.answers] == [PLAIN, Form(spaced=True)]


# ---- relations


def answer(*names: str, status: int = 200, failure: str = "", **fields: Any) -> Answer:
    memories = [
        {"id": name, "summary": f"about {name}", "type": name.partition("-")[2] or "style"} for name in names
    ]
    reply = None if failure else Reply.json({"memories": memories}, status)
    return Answer(Case(fields), Request("POST", "/"), reply, failure, 0.0, False)


def test_same_again_goes_by_ids_or_summaries() -> None:
    first = answer("a", "b")

    assert relations.same_again(first, answer("a", "b")) is None
    assert relations.same_again(first, answer(status=500)) is None
    assert (
        relations.same_again(first, answer("a"))
        == 'the same retrieval again is answered with 1 memory ("a"), not 2 memories ("a", "b")'
    )
    assert (
        relations.same_again(first, answer("b", "a"))
        == "the same retrieval again is answered with the same memories in another order: "
        '2 memories ("b", "a"), not 2 memories ("a", "b")'
    )


@pytest.mark.parametrize(
    ("fewer", "more", "message"),
    [
        (answer("a", max_results=1), answer("a", "b", max_results=2), None),
        (answer("a", max_results=2), answer("a", max_results=3), None),
        (answer("a", "b", max_results=1), answer("c", max_results=3), None),
        (answer("a", max_results=3), answer("b", max_results=3), None),
        (answer("a", "b", "c"), answer("a", "b", "c", "d", max_results=20), None),
        (
            answer(max_results=1),
            answer("a", max_results=2),
            "max_results 1 gives no memory, although 2 gives",
        ),
        (answer("a", "b", max_results=2), answer("a", max_results=3), "and 3 gives 1 memory"),
        (answer("a", max_results=1), answer("b", "a", max_results=2), 'but 2 gives 2 memories ("b", "a")'),
        (answer("a", max_results="1"), answer("b", "a", max_results=2), None),
    ],
)
def test_begins_with(fewer: Answer, more: Answer, message: str | None) -> None:
    told = relations.begins_with(fewer, more)
    assert told == message or (message is not None and message in str(told))


@pytest.mark.parametrize(
    ("wide", "narrow", "message"),
    [
        (answer("a", "b-other"), answer("a", memory_types=["style"]), None),
        (answer("a", "b-other"), answer("a", "c", memory_types=["style"]), "gives only 2 memories"),
        (answer("a", "b-other", max_results=2), answer("a", "c", memory_types=["style"]), None),
        (answer("a", "b-other"), answer(memory_types=["style"]), "asked for alone, no memory"),
        (answer("a", "c"), answer("c", "a", memory_types=["style"]), "asked for alone, 2 memories"),
        (answer("a-Style"), answer(memory_types=["style"]), None),
        (answer("a"), answer("a", "b-other", memory_types=["style"]), None),
        (answer("a"), answer(), None),
    ],
)
def test_narrowed(wide: Answer, narrow: Answer, message: str | None) -> None:
    told = relations.narrowed(wide, narrow)
    assert told == message or (message is not None and message in str(told))


def test_matters_not_and_undisturbed_want_an_answer() -> None:
    plain = answer("a")

    assert relations.matters_not(plain, answer(status=500)) == "status 500"
    assert relations.matters_not(plain, answer(failure="timeout: late")) == "late"
    assert relations.matters_not(answer(status=500), answer("a")) is None
    assert relations.undisturbed(plain, answer(status=429)) is None
    assert (
        relations.undisturbed(plain, answer("b"))
        == 'beside other calls, it gives 1 memory ("b"), not 1 memory ("a")'
    )
    shapeless = answer("a")._replace(reply=Reply.json([]))
    assert relations.matters_not(plain, shapeless) == "200 without an array of memories"
