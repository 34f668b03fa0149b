"""Generated replies played to consumers: what is found, how small it is, and how a search ends."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from memmock.conformance.drawing import drawn
from memmock.conformance.known import Failures
from memmock.consumer_conformance import fuzzing
from memmock.consumer_conformance.act import PLAIN
from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.edges import edges
from memmock.consumer_conformance.fuzzing import fuzz
from memmock.consumer_conformance.process import Process
from memmock.consumer_conformance.subject import Told
from memmock.consumer_conformance.trial import SMALL_LIMIT, Trial, edge_trials, store_of, trials
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.reply_case import ReplyCase
from memmock.reply_wire import PLAIN as PLAIN_STYLE
from tests.subjects import ALL, Renewed
from tests.test_consumer_checks import LATE_S, Silent, reference

TIMEOUT_MS = 300


class Known:
    """What failed before, in memory."""

    def __init__(self, *failures):
        self.failures = list(failures)

    def trials(self):
        return list(self.failures)

    def keep(self, failures):
        self.failures = list(failures)


def fuzzed(subject, *, seed=1, examples=0, **more):
    with Bench(subject, timeout_ms=TIMEOUT_MS) as stand:
        return fuzz(stand, seed=seed, examples=examples, **more)


def tried(subject, *failures, **more):
    """Return what only these trials find."""
    return fuzzed(subject, known=Known(*failures), **more)


@pytest.fixture
def no_edges(monkeypatch):
    monkeypatch.setattr(fuzzing, "edge_trials", lambda: iter(()))


def of(body, **style):
    return Trial(ReplyCase(body=body, style=PLAIN_STYLE._replace(**style)))


def of_summaries(*texts):
    return of(json.dumps({"memories": [{"summary": text, "source": "用户说的"} for text in texts]}).encode())


def told(result):
    return [(finding.rule.code, finding.message) for finding in result.findings]


NUL = of_summaries("tea", "nul \0 within", "cake")
SURPLUS = of(b'{"memories":[{"summary":"tea"}]}', surplus=b"more than was to come")


# ---- good ones


def test_consumer_on_sockets_passes_the_edges():
    result = fuzzed(Renewed("right"), examples=50)
    assert told(result) == []
    assert (result.stopped, result.seed, result.matrix, result.outcomes) == ("", 1, [], [])
    assert result.calls > 2 * len(edges(DEFAULT_MAX_RESPONSE_BYTES))


@pytest.mark.parametrize("seed", [1, 2])
def test_reference_consumer_passes(seed, no_edges):
    subject, made = reference()
    result = fuzzed(subject, seed=seed, examples=150)
    for consumer in made.values():
        consumer.close()
    assert told(result) == []
    assert result.stopped == ""


# ---- what is found


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if kind.shown_by == "fuzz"])
def test_mistake_is_found_once(name, monkeypatch):
    quick = [trial for trial in edge_trials() if not trial.case.style.delay and not trial.case.style.spread]
    monkeypatch.setattr(fuzzing, "edge_trials", lambda: iter(quick))
    result = fuzzed(Renewed(name), examples=60)
    assert [finding.rule.code for finding in result.findings] == [ALL[name].rule]
    assert not result.findings[0].flaky


def test_finding_is_minimal(no_edges):
    (finding,) = tried(Renewed("nul-cuts"), NUL).findings
    (seen,) = finding.seen
    assert seen.act.case == ReplyCase(body=b'{"memories":[{"summary":"a\\u0000"}]}')
    assert (finding.rule.code, finding.scenario) == ("CON202", "generated")
    assert finding.keys[0].startswith("CON202 generated /memories/*/summary ")


def test_style_of_a_finding_is_minimal(no_edges):
    framed = of(
        b'{"memories":[{"summary":"tea"}]}',
        colon=":",
        names="lower",
        framing="chunked",
        trailers=(("X-A", "1"),),
        interim=(100,),
    )
    (finding,) = tried(Renewed("header-needs-space"), framed).findings
    assert finding.seen[0].act.case == ReplyCase(style=PLAIN_STYLE._replace(colon=":"))


def test_retrieval_of_a_finding_is_minimal(no_edges):
    asked = {**PLAIN, "query": "what does the user like, 用户喜欢什么? " * 60}
    (finding,) = tried(Renewed("query-cut"), replace(NUL, retrieval=asked)).findings
    act = finding.seen[0].act
    assert (finding.rule.code, act.case) == ("CON601", ReplyCase())
    assert act.retrieval.keys() == {"query"}
    assert 1000 < len(act.retrieval["query"]) < 1100


def test_limit_of_a_finding_stays_where_it_matters(no_edges):
    over = replace(of(b'{"memories":[{"summary":"%s"}]}' % (b"a" * 5000)), max_response_bytes=SMALL_LIMIT)
    (finding,) = tried(Renewed("limit-fixed"), over).findings
    act = finding.seen[0].act
    assert (finding.rule.code, act.max_response_bytes) == ("CON101", SMALL_LIMIT)
    assert len(act.case.body) == SMALL_LIMIT + 1


def test_one_cause_is_one_finding(no_edges):
    result = tried(Renewed("nul-cuts"), NUL, of_summaries("\0tea"), of_summaries("a", "b\0c\0d"))
    assert len(result.findings) == 1


def test_two_causes_are_two_findings(no_edges):
    def change(told, n):
        return told if told.failure or told.value["ok"] else Told({"ok": 0}, 0.0)

    result = tried(Renewed("nul-cuts", change), NUL, of(b"no"))
    assert {finding.rule.code for finding in result.findings} == {"CON202", "CON002"}


def test_state_is_a_finding_of_two_acts(no_edges):
    (finding,) = tried(Renewed("connection-kept"), SURPLUS).findings
    assert (finding.rule.code, finding.flaky) == ("CON405", False)
    assert [seen.act.name for seen in finding.seen] == ["generated", "success"]
    assert finding.message.startswith("the call after this reply gives ")
    assert finding.seen[0].act.case == ReplyCase(style=PLAIN_STYLE._replace(surplus=b"\r\n"))


@pytest.mark.parametrize("more", [{"rules": ["CON101"]}, {"ignore": ["CON202"]}])
def test_rules_that_are_not_looked_at_are_not_found(more, no_edges):
    assert tried(Renewed("nul-cuts"), NUL, **more).findings == []


def test_state_alone_can_be_looked_at(no_edges):
    result = tried(Renewed("connection-kept"), SURPLUS, rules=["CON405"])
    assert [finding.rule.code for finding in result.findings] == ["CON405"]


def test_what_is_wrong_with_the_honest_answer_is_for_the_checks(no_edges):
    subject = Renewed("zero-is-absent")
    restarts = []
    subject.restart = lambda: restarts.append(subject.count)
    result = tried(subject, *(of_summaries(text) for text in "abcde"))
    assert result.findings == []
    assert len(restarts) == 1  # it is found to be so once


# ---- chance


def test_lateness_that_does_not_show_again_is_no_finding(no_edges):
    def change(told, n):
        return told._replace(elapsed_s=LATE_S) if n in (3, 6) else told  # a trial, and a good call

    subject = Renewed("right", change)
    result = tried(subject, of_summaries("a"), of_summaries("b"), of_summaries("c"))
    assert told(result) == []
    assert subject.count > 8


def test_crash_that_comes_once_is_flaky(no_edges):
    def change(told, n):
        return Told(None, 0.0, "died", "it died") if n == 3 else told

    (finding,) = tried(Renewed("right", change), NUL).findings
    assert (finding.rule.code, finding.flaky) == ("CON001", True)
    assert finding.seen[0].act.case == NUL.case


# ---- what is played


def played(monkeypatch, name, seed):
    taken = []
    play = fuzzing._Run._try

    def noted(run, trial):
        taken.append(trial)
        play(run, trial)

    with monkeypatch.context() as patch:
        patch.setattr(fuzzing._Run, "_try", noted)
        fuzzed(Renewed(name), seed=seed, examples=40)
    return taken


def test_seed_plays_the_same_whatever_comes_back(monkeypatch, no_edges):
    good = played(monkeypatch, "right", 5)
    assert len(good) == 40
    assert played(monkeypatch, "text-passed-on", 5) == good
    assert played(monkeypatch, "right", 6) != good


def test_drawn_trials_vary():
    some = list(drawn(trials(), 3, 200, 4096))
    assert {trial.max_response_bytes for trial in some} == {DEFAULT_MAX_RESPONSE_BYTES, SMALL_LIMIT}
    assert any(trial.retrieval != PLAIN for trial in some)
    assert len({trial.case for trial in some}) > 100


def test_trial_is_the_same_after_a_file():
    for trial in (*edge_trials(), *drawn(trials(), 4, 50, 4096)):
        assert Trial.from_json(json.loads(json.dumps(trial.to_json()))) == trial


def test_edges_are_distinct_and_can_be_judged():
    cases = edges(SMALL_LIMIT)
    assert len(cases) == len(set(cases)) > 200
    assert cases == edges(SMALL_LIMIT)
    assert all(case.readings(SMALL_LIMIT) for case in cases)
    outcomes = {reading.outcome for case in cases for reading in case.readings(SMALL_LIMIT)}
    assert outcomes == {
        "ok", "timeout", "connection_failed", "http_error", "response_too_large", "invalid_json",
        "invalid_response",
    }  # fmt: skip


def test_edges_stand_on_both_sides_of_the_limit():
    sizes = {len(case.body) for case in edges(SMALL_LIMIT)}
    assert {SMALL_LIMIT, SMALL_LIMIT + 1} <= sizes


def test_edges_that_take_time_come_last():
    slow = [case.style.ending == "hang" or case.style.delay >= 1 for case in edges(SMALL_LIMIT)]
    first = slow.index(True)
    assert first > 0.9 * len(slow)


# ---- known failures


def test_known_failures_are_tried_first_and_removed_when_mended(tmp_path, no_edges):
    phases = []

    def progress(*, phase, requests, findings):
        phases.append((phase, findings))

    def run(name, examples=0):
        phases.clear()
        known = store_of(name, str(tmp_path))
        known.path = tmp_path / "known.json"
        return fuzzed(Renewed(name), known=known, examples=examples, progress=progress), known

    first = Failures("", Trial.to_json, Trial.from_json, tmp_path)
    first.path = tmp_path / "known.json"
    first.keep([NUL, of_summaries("tea")])
    result, known = run("nul-cuts", examples=2)
    assert phases == [("known", 1), ("known", 1), ("random", 1), ("random", 1)]
    assert len(result.findings) == 1
    assert known.trials() == [of(b'{"memories":[{"summary":"a\\u0000"}]}')]
    result, known = run("right")
    assert phases == [("known", 0)]
    assert not known.path.exists()


def test_failures_of_consumers_are_kept_apart(tmp_path):
    assert store_of("a", str(tmp_path)).path != store_of("b", str(tmp_path)).path


def test_known_failures_that_were_not_tried_are_kept(no_edges):
    known = Known(NUL, of_summaries("tea"))
    result = fuzzed(Process([sys.executable, "-S", "-c", "raise SystemExit(3)"]), known=known)
    assert result.stopped == "the consumer does not answer a plain call"
    assert [finding.rule.code for finding in result.findings] == ["CON001"]
    assert len(known.failures) == 2


# ---- how it ends


def test_time_limit_is_kept(no_edges):
    result = fuzzed(Renewed("text-passed-on"), examples=100_000, time_limit_s=1.0)
    assert result.stopped == "the time limit of 1 s"
    assert 1.0 <= result.seconds < 6


def test_time_for_making_smaller_is_bounded(no_edges):
    long = of_summaries(*("tea \0 and cake" * 40 for _ in range(30)))
    result = tried(Renewed("nul-cuts"), long, time_limit_s=0.5)
    assert len(result.findings) == 1
    assert result.seconds < 5


def test_silent_consumer_is_given_up():
    result = fuzzed(Silent(after=3))
    assert result.stopped == "the consumer was silent 12 times"
    assert result.calls < 60


def test_interrupt_keeps_what_was_found(no_edges):
    def progress(*, phase, requests, findings):
        if findings:
            raise KeyboardInterrupt

    known = Known(of_summaries("tea"), NUL, of_summaries("cake"))
    result = fuzzed(Renewed("nul-cuts"), known=known, progress=progress)
    assert result.stopped == "interrupted"
    assert len(result.findings) == 1
    assert of_summaries("cake") in known.failures


def test_interrupt_within_making_smaller_keeps_the_finding(no_edges):
    def change(told, n):
        if n == 12:
            raise KeyboardInterrupt
        return told

    known = Known(NUL)
    result = fuzzed(Renewed("nul-cuts", change), known=known)
    assert result.stopped == "interrupted"
    assert [finding.rule.code for finding in result.findings] == ["CON202"]
    assert known.failures
