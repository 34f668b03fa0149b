"""Fuzzing: what is found at providers with one bug each, how small it is told, and what it may cost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from memmock.conformance.case import PLAIN, Case, Form
from memmock.conformance.finding import Result
from memmock.conformance.fuzz import drawn_trials, fuzz
from memmock.conformance.known import Store, Trial
from memmock.conformance.session import Session, Target
from memmock.conformance.shrinking import (
    Budget,
    between,
    contains,
    has_kind,
    kinds_of_trigger,
    shrunk,
    signature,
)
from memmock.conformance.trials import ALTERATIONS, altered, first_trials
from memmock.contract import MEMORY_TYPES
from memmock.http import Reply, Request
from memmock.server import Server

TOKEN = "Bearer good-token"
MEMORIES = [
    {
        "id": f"m{n}",
        "summary": f"The user said the {n}. thing.",
        "type": MEMORY_TYPES[n % 8],
        "confidence": 0.9,
        "updated_at": "2026-01-02T03:04:05Z",
        "source": "long_term_memory",
    }
    for n in range(24)
]

Asked = dict[str, Any]
Search = Callable[[Asked, Request], Any]


def found(asked: Asked, kinds: list[str] | None = None) -> list[dict[str, Any]]:
    kinds = asked.get("memory_types") if kinds is None else kinds
    kept = [memory for memory in MEMORIES if not kinds or memory["type"] in kinds]
    return kept[: asked.get("max_results", 5)]


def unlimited(asked: Asked) -> list[dict[str, Any]]:
    return found({**asked, "max_results": 99})


def provider(search: Search | None = None, *, authorized: Callable[[str | None], bool] | None = None):
    """A correct provider, but for what is given."""
    check = authorized or (lambda sent: sent == TOKEN)

    def handler(received: Request) -> Reply:
        if not check(received.header("Authorization")):
            return Reply.error(401, "unauthorized", "no")
        try:
            asked = json.loads(received.body)
        except ValueError:
            asked = None
        if not isinstance(asked, dict) or not isinstance(asked.get("query"), str) or not asked["query"]:
            return Reply.error(400, "bad_request", "no query")
        if not isinstance(asked.get("max_results", 1), int) or not isinstance(
            asked.get("memory_types", []), list
        ):
            return Reply.error(400, "bad_request", "wrong type")
        most = asked.get("max_results", 1)
        if isinstance(most, bool) or most < 1:
            return Reply.error(400, "bad_request", "too few")
        answer = search(asked, received) if search else None
        if isinstance(answer, Reply):
            return answer
        return Reply.json({"memories": found(asked) if answer is None else answer})

    return handler


def failing_on(pattern: str, field: str = "query") -> Search:
    def search(asked: Asked, received: Request) -> Any:
        text = asked.get(field)
        fails = isinstance(text, str) and re.search(pattern, text, re.DOTALL)
        return Reply.error(500, "internal_error", "no") if fails else None

    return search


RELATIONS = [trial for trial in first_trials() if trial.kind != "once" and trial.kind != "together"]
TEXTS = [
    Trial("once", Case({"query": "tea", field: text}))
    for text in ("☕", "😀", "\\", "\0", 'say "tea"', "null", "null pointer", "用户喜欢", "{}", "...", "～")
    for field in ("query", "reason")
]
NUMBERS = [Trial("once", Case({"query": "tea", "max_results": most})) for most in (1, 16, 20, 50, 1000)]
FORMS = [Trial("once", Case({"query": "tea", "max_results": 2}, Form(spaced=True, escaped=True)))]
TOGETHER = [Trial("together", Case({"query": "tea"}), "8")]


def fuzzed(handler: Any, *, seed: int = 1, examples: int = 20, **options: Any) -> Result:
    """What is found at a handler; some of `options` are those of the session."""
    limits = {
        name: options.pop(name) for name in ("rate", "time_limit_s", "most_requests") if name in options
    }
    timeout_ms = options.pop("timeout_ms", 1000)
    options.setdefault("edges", [*RELATIONS, *TEXTS, *NUMBERS, *FORMS])
    with Server(handler) as server:
        session = Session(Target(url=server.url, authorization=TOKEN, timeout_ms=timeout_ms), **limits)
        try:
            return fuzz(session, seed=seed, examples=examples, **options)
        finally:
            session.close()


def told(result: Result) -> list[str]:
    return [f"{finding.rule.code} {finding.answers[-1].request.body.decode()}" for finding in result.findings]


# ---- what is found


def test_correct_provider_has_no_findings():
    result = fuzzed(provider(), examples=50, edges=None)
    assert (result.findings, result.stopped, result.seed) == ([], "", 1)
    assert result.requests > 500


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (failing_on("[\u2600-\u27bf\U0001f300-\U0001faff]"), r'RES001 \{"query":"."\}'),
        (failing_on(r"\\"), r'RES001 \{"query":"\\\\"\}'),
        (failing_on('"', "reason"), r'RES001 \{"query":"a","reason":"\\""\}'),
        (failing_on("^null$"), r'RES001 \{"query":"null"\}'),
        (
            lambda asked, received: unlimited(asked) if asked.get("max_results", 5) > 16 else None,
            r'RES302 \{"query":"a","max_results":17\}',
        ),
        (
            lambda asked, received: unlimited(asked)[:5] if b" : " in received.body else None,
            r'RES302 \{"query" : "a" , "max_results" : 1\}',
        ),
        (
            lambda asked, received: found(asked, []) if asked.get("memory_types") == ["style"] else None,
            r'RES303 \{"query":"a","memory_types":\["style"\]\}',
        ),
    ],
    ids=["emoji", "backslash", "quotation mark", "null", "limit", "spaces", "style"],
)
def test_counterexample_is_minimal(search, expected):
    lines = told(fuzzed(provider(search)))
    assert len(lines) == 1, lines
    assert re.fullmatch(expected, lines[0]), lines


def test_two_causes_with_one_status_are_both_told():
    lines = told(fuzzed(provider(failing_on("\\\\|[\u2600-\u27bf\U0001f300-\U0001faff]"))))
    assert len(lines) == 2, lines
    assert 'RES001 {"query":"\\\\"}' in lines


@pytest.mark.parametrize(
    ("pattern", "times"),
    [("[\u2600-\u27bf]", 1), ("[☕➊❮]", 3), ("[☕⛄]", 1)],
    ids=["range", "kinds", "kind"],
)
def test_characters_of_one_range_or_kind_are_told_once(pattern, times):
    edges = [Trial("once", Case({"query": f"tea {text}"})) for text in "☕➊❮⛄"]
    edges.append(Trial("once", Case({"query": "❮", "time_hint": 0})))  # the same, beside a mistake
    lines = told(fuzzed(provider(failing_on(pattern)), examples=0, edges=edges))
    assert lines[0] == 'RES001 {"query":"☕"}'
    assert len(lines) == times


def test_cause_that_is_no_single_character_is_told_once():
    assert len(fuzzed(provider(failing_on(r"^[^\w]+$"))).findings) == 1


def test_cache_without_types_is_told_with_both_calls():
    cache: dict[Any, Any] = {}

    def search(asked: Asked, received: Request) -> Any:
        key = asked["query"], asked.get("max_results")
        return cache.setdefault(key, found(asked))

    (finding,) = fuzzed(provider(search)).findings
    first, second = (json.loads(answer.request.body) for answer in finding.answers)
    assert (finding.rule.code, finding.flaky) == ("RES303", False)
    assert first["query"] == second["query"]
    assert first.get("memory_types") != second["memory_types"]


def test_order_that_changes_is_told_as_that_and_nothing_else():
    turn = iter(range(10**9))

    def search(asked: Asked, received: Request) -> Any:
        memories = found(asked)
        return memories[::-1] if next(turn) % 2 else memories

    assert {finding.rule.code for finding in fuzzed(provider(search)).findings} == {"RES602"}


def test_memory_that_is_left_out_with_one_kind_is_a_warning():
    def search(asked: Asked, received: Request) -> Any:
        return [] if asked.get("memory_types") == ["relationship"] else None

    (finding,) = fuzzed(provider(search)).findings
    assert finding.rule.code == "RES604"
    assert len(finding.answers) == 2


def test_calls_at_the_same_time_that_fail_are_told_together():
    busy = threading.Lock()

    def search(asked: Asked, received: Request) -> Any:
        return None

    good = provider(search)

    async def handler(received: Request) -> Reply:
        import asyncio

        if not busy.acquire(blocking=False):
            return Reply.error(500, "internal_error", "busy")
        try:
            await asyncio.sleep(0.002)
            return good(received)
        finally:
            busy.release()

    findings = fuzzed(handler, examples=0, edges=TOGETHER).findings
    assert [(finding.rule.code, finding.together) for finding in findings] == [("RES606", True)]


@pytest.mark.parametrize("how", ALTERATIONS)
def test_authorization_that_is_not_right_is_told(how):
    accepted = {TOKEN, altered(TOKEN, how) or None}
    edges = [trial for trial in RELATIONS if trial.kind == "authorization"]
    (finding,) = fuzzed(provider(authorized=lambda sent: sent in accepted), examples=0, edges=edges).findings
    assert finding.rule.code == "RES601"


def test_flaky_failure_is_told_as_flaky():
    calls = iter(range(10**9))

    def search(asked: Asked, received: Request) -> Any:
        return Reply.error(503, "down", "no") if next(calls) % 16 == 15 else None

    (finding,) = fuzzed(provider(search)).findings
    assert (finding.rule.code, finding.flaky) == ("RES001", True)
    assert finding.answers[-1].case.fields == {"query": "a"}


def test_rules_and_ignore_choose_what_is_told():
    handler = provider(lambda asked, received: MEMORIES[:9])
    codes = {finding.rule.code for finding in fuzzed(handler, examples=0).findings}
    assert codes >= {"RES302", "RES303"}
    assert {f.rule.code for f in fuzzed(handler, examples=0, rules=["RES302"]).findings} == {"RES302"}
    assert "RES302" not in {f.rule.code for f in fuzzed(handler, examples=0, ignore=["RES302"]).findings}


def test_what_may_be_refused_is_no_finding():
    def search(asked: Asked, received: Request) -> Any:
        if asked.get("max_results", 1) > 100 or len(received.body) > 20_000:
            return Reply.error(400, "too_much", "no")
        return None

    assert fuzzed(provider(search)).findings == []


# ---- what it costs


def sent_by(handler: Any) -> list[bytes]:
    bodies: list[bytes] = []

    def noting(received: Request) -> Reply:
        headers = [pair for pair in received.headers if pair[0].lower() != "host"]
        bodies.append(received.body + repr(headers).encode())
        return handler(received)

    fuzzed(noting, seed=5, examples=40, edges=())
    return bodies


def test_same_seed_sends_the_same_requests_and_findings_change_none():
    first, again = sent_by(provider()), sent_by(provider())
    # calls that are made together arrive in any order
    assert sorted(first) == sorted(again)
    assert set(first) <= set(sent_by(provider(failing_on(r"\\"))))


def test_same_seed_draws_the_same_whatever_is_loaded_and_writes_nothing(tmp_path):
    (tmp_path / "local.py").write_text(f"NUMBERS = {list(range(2000, 3000))}")
    code = "import local; from memmock.conformance.fuzz import drawn_trials as d; print(*map(repr, d(5, 90)))"
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, encoding="utf-8", check=True,
        env={"PYTHONPATH": str(tmp_path), "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert ran.stdout == " ".join(map(repr, drawn_trials(5, 90))) + "\n"
    assert list(drawn_trials(5, 90)) != list(drawn_trials(6, 90))
    assert [path.name for path in tmp_path.iterdir()] == ["local.py"]


def test_hang_up_makes_the_next_call_on_a_new_connection():
    with Server(provider()) as server:
        session = Session(Target(url=server.url, authorization=TOKEN))
        try:
            session.hang_up()
            kept = [session.ask(Case({"query": "tea"})).kept for _ in range(2)]
            session.hang_up()
            assert [*kept, session.ask(Case({"query": "tea"})).kept] == [False, True, False]
        finally:
            session.close()


def test_calls_together_each_have_a_connection_and_keep_none():
    with Server(provider()) as server:
        session = Session(Target(url=server.url, authorization=TOKEN))
        answers = session.ask_together([Case({"query": "tea"})] * 4)
        assert [(answer.status, answer.kept) for answer in answers] == [(200, False)] * 4
        assert not session._open


def test_rate_is_kept():
    times: list[float] = []
    good = provider()

    def handler(received: Request) -> Reply:
        times.append(time.monotonic())
        return good(received)

    result = fuzzed(handler, rate=100, time_limit_s=1)
    assert result.stopped == "the time is over"
    assert len(times) == result.requests <= 101


def test_time_limit_is_kept_when_calls_hang():
    async def handler(received: Request) -> Reply:
        import asyncio

        await asyncio.sleep(30)
        return Reply()

    start = time.monotonic()
    result = fuzzed(handler, time_limit_s=1.5, timeout_ms=300)
    assert time.monotonic() - start < 2.2
    assert [finding.rule.code for finding in result.findings] == ["RES006"]


def test_number_of_requests_is_kept():
    result = fuzzed(provider(), most_requests=50)
    assert (result.requests, result.stopped) == (50, "as many requests were sent as are allowed")


def test_examples_are_as_many_as_asked():
    phases: list[str] = []
    fuzzed(provider(), examples=17, progress=lambda **told: phases.append(told["phase"]))
    assert phases.count("random") == 17


@pytest.mark.parametrize("phase", ["edges", "random"])
def test_interrupt_reports_what_was_found(phase):
    def progress(**told: Any) -> None:
        if told["phase"] == phase and told["findings"]:
            raise KeyboardInterrupt

    result = fuzzed(provider(failing_on("用户", "query")), progress=progress)
    assert result.stopped == "interrupted"
    assert told(result) == ['RES001 {"query":"用户"}']


def test_provider_that_refuses_most_calls_as_too_many_ends_the_run():
    result = fuzzed(lambda received: Reply.error(429, "too_many", "no"))
    assert result.stopped == "the provider refuses most calls with 429: ask less often"


# ---- known failures


def test_known_failures_are_tried_first(tmp_path):
    handler = provider(failing_on(r"\\"))
    bodies: list[bytes] = []

    def noting(received: Request) -> Reply:
        bodies.append(received.body)
        return handler(received)

    store = Store("http://127.0.0.1:1/memory", tmp_path)
    assert told(fuzzed(noting, known=store)) == ['RES001 {"query":"\\\\"}']
    assert [trial.case.fields for trial in store.trials()] == [{"query": "\\"}]
    bodies.clear()
    fuzzed(noting, known=store, most_requests=3)
    assert bodies[0] == b'{"query":"\\\\"}'


def test_known_failure_that_is_gone_is_forgotten(tmp_path):
    store = Store("http://127.0.0.1:1/memory", tmp_path)
    store.keep([Trial("once", Case({"query": "\\"}))])
    fuzzed(provider(), examples=0, known=store)
    assert not store.path.exists()


def test_known_failures_that_were_not_tried_are_kept(tmp_path):
    store = Store("http://127.0.0.1:1/memory", tmp_path)
    trials = [Trial("once", Case({"query": text})) for text in "abc"]
    store.keep(trials)
    fuzzed(provider(), known=store, most_requests=1)
    assert store.trials() == trials[1:]


def test_known_failure_that_makes_no_sense_is_passed_over(tmp_path):
    store = Store("http://127.0.0.1:1/memory", tmp_path)
    wrong = [("no such", ""), ("changed", "{"), ("authorization", "no such"), ("together", "x")]
    store.keep(
        [Trial(kind, Case({"query": "a"}), how) for kind, how in wrong] + [Trial("changed", Case(), "{}")]
    )
    assert fuzzed(provider(), examples=0, edges=(), known=store).findings == []


def test_store_keeps_everything_but_the_authorization(tmp_path):
    store = Store("http://user:pw@127.0.0.1:1/memory?key=secret", tmp_path)
    trials = [
        Trial("fewer", Case({"query": "\ud800", "memory_types": []}, Form(spaced=True)), "style"),
        Trial("once", Case({}, body=b"\xff", method="PUT", headers=(("X-A", "1"),))),
    ]
    store.keep(
        [*trials, Trial("authorization", Case({"query": "a"}, authorization="Bearer x"), "wrong"), trials[0]]
    )
    assert store.trials() == [*trials, Trial("authorization", Case({"query": "a"}), "wrong")]
    assert not re.search("Bearer|secret|user:", store.path.read_text() + store.path.name)
    assert store.path == Store("http://127.0.0.1:1/memory", tmp_path).path


@pytest.mark.parametrize(
    "text", ["", "[]", '{"failures": [1]}', '{"failures": [{"kind": "once"}]}', "\ufeff{"]
)
def test_store_that_is_broken_holds_nothing(tmp_path, text):
    store = Store("http://127.0.0.1:1/memory", tmp_path)
    store.path.write_text(text)
    assert store.trials() == []


# ---- shrinking


def query_of(case: Case) -> str:
    return str(case.fields["query"])


@pytest.mark.parametrize(
    ("case", "fails", "smallest"),
    [
        ({"query": "tea", "reason": "x"}, lambda case: True, {"query": "a"}),
        ({"query": "a ☕ b ☕", "live_id": "1"}, lambda case: "☕" in query_of(case), {"query": "☕"}),
        ({"query": "x{y}z"}, lambda case: re.search("{.*}", query_of(case)), {"query": "{}"}),
        ({"query": "null pointer"}, lambda case: "null" in query_of(case), {"query": "null"}),
        ({"query": "茶" * 1500}, lambda case: len(case.content) > 4096, {"query": "a" * 4085}),
        ({"query": "啊" * 80}, lambda case: re.search(r"(.)\1{49}", query_of(case)), {"query": "a" * 50}),
        (
            {"query": "tea", "max_results": 50, "time_hint": "now"},
            lambda case: case.fields.get("max_results", 5) > 16,
            {"query": "a", "max_results": 17},
        ),
        (
            {"query": "tea", "memory_types": ["style", "other", "profile"]},
            lambda case: "other" in case.fields.get("memory_types", ()),
            {"query": "a", "memory_types": ["other"]},
        ),
        (
            {"query": "tea", "memory_types": ["style", "other", "profile"]},
            lambda case: len(case.fields.get("memory_types", ())) > 1,
            {"query": "a", "memory_types": ["other", "profile"]},
        ),
        (
            {"query": "上周", "time_hint": "上周"},
            lambda case: set(query_of(case)) & set(case.fields.get("time_hint", "")),
            {"query": "a", "time_hint": "a"},
        ),
    ],
)  # fmt: skip
def test_shrunk_is_the_smallest(case, fails, smallest):
    result = shrunk(Case(case, Form(spaced=False, slices=5)), lambda each: bool(fails(each)), Budget(2000))
    if len(smallest["query"]) > 60 or "time_hint" in smallest:
        assert fails(result)
        assert len(result.content) <= len(Case(smallest).content) + 4
    else:
        assert dict(result.fields) == smallest
    assert result.form == PLAIN


def test_shrunk_keeps_what_of_the_form_matters():
    case = Case({"query": "tea"}, Form(spaced=True, framing="chunked", slices=5, names="lower", kept=False))
    result = shrunk(case, lambda each: each.form.framing == "chunked" and each.form.slices > 1, Budget(100))
    assert result == Case({"query": "a"}, Form(framing="chunked", slices=2))


def test_shrunk_asks_no_more_than_allowed_and_never_twice():
    asked: list[Case] = []

    def fails(case: Case) -> bool:
        asked.append(case)
        return "☕" in query_of(case)

    shrunk(Case({"query": "☕" + "tea " * 50}), fails, Budget(9))
    assert len(asked) == 9
    assert len({case.content for case in asked}) == 9


def test_shrunk_stops_in_time():
    case = Case({"query": "tea"})
    assert shrunk(case, lambda each: True, Budget(100, until=time.monotonic() - 1)) == case


@pytest.mark.parametrize(
    ("some", "other", "same"),
    [
        ({"query": "☕"}, {"query": "😀"}, True),
        ({"query": "☕"}, {"query": "\\"}, False),
        ({"query": "{"}, {"query": "}"}, True),
        ({"query": "a", "max_results": 17}, {"query": "b", "max_results": 20}, True),
        ({"query": "a", "max_results": 1}, {"query": "a", "max_results": 20}, False),
        ({"query": "a", "reason": '"'}, {"query": '"'}, False),
        ({"query": "a", "memory_types": ["style"]}, {"query": "a", "memory_types": ["other"]}, True),
    ],
)
def test_signature_is_the_same_for_one_cause(some, other, same):
    assert (signature(Case(some)) == signature(Case(other))) is same


@pytest.mark.parametrize(
    ("case", "trigger", "contained"),
    [
        ({"query": "tea 😀", "reason": "x"}, {"query": "☕"}, True),
        ({"query": "tea \\"}, {"query": "☕"}, False),
        ({"query": "anything"}, {"query": "a"}, True),
        ({"query": "anything"}, {"query": "null"}, False),
        ({"query": "b" * 60}, {"query": "a" * 50}, True),
        ({"query": "a"}, {"query": "a", "max_results": 17}, False),
        ({"query": "a", "max_results": 1}, {"query": "a", "max_results": 17}, False),
    ],
)
def test_contains_tells_what_says_nothing_new(case, trigger, contained):
    assert contains(Case(case), Case(trigger)) is contained


@pytest.mark.parametrize(
    ("case", "other", "middle"),
    [
        ({"query": "☕"}, {"query": "❮"}, {"query": "\u26c1"}),
        ({"query": "a", "reason": "é"}, {"query": "a", "reason": "ë"}, {"query": "a", "reason": "ê"}),
        ({"query": "☕"}, {"query": "☕"}, None),
        ({"query": "☕"}, {"query": "\\"}, None),
        ({"query": "☕☕"}, {"query": "❮"}, None),
        ({"query": "☕"}, {"query": "❮", "reason": "x"}, None),
        ({"query": "☕", "reason": "é"}, {"query": "❮", "reason": "ë"}, None),
        ({"query": "\ud7ff"}, {"query": "\ue000"}, None),
    ],
)
def test_between_is_half_way_between_two_characters(case, other, middle):
    found = between(Case(case), Case(other))
    assert (found and dict(found.fields)) == middle


def test_between_looks_at_the_form():
    assert between(Case({"query": "☕"}), Case({"query": "❮"}, Form(spaced=True))) is None


def test_contains_looks_at_the_form():
    assert not contains(Case({"query": "a"}), Case({"query": "a"}, Form(spaced=True)))


def test_kinds_of_trigger_are_those_that_fail_too():
    trigger = Case({"query": "☕"})
    one = kinds_of_trigger(trigger, lambda case: "☕" in query_of(case), Budget(50))
    every = kinds_of_trigger(trigger, lambda case: not re.search(r"\w", query_of(case)), Budget(50))
    assert one == {"U+S"}
    assert has_kind(Case({"query": "<"}), trigger, every)
    assert not has_kind(Case({"query": "<"}), trigger, one)
    assert kinds_of_trigger(Case({"query": "a"}), lambda case: True, Budget(50)) == frozenset()
