"""The fixed catalogue played to consumers: what is found, what is not, and how a run ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from memmock import Consumer, MemmockError, Retrieval, RetrievalConfig
from memmock.consumer_conformance import acts, bench, checks
from memmock.consumer_conformance.act import Act, Told
from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.checks import check
from memmock.consumer_conformance.function import Function
from memmock.consumer_conformance.process import Process
from memmock.http import Reply
from memmock.rules import RULES
from memmock.scenarios import CATALOGUE, family
from tests.subjects import ALL, BUGGY_FILE, Renewed, buggy_process

TIMEOUT_MS = 300
LATE_S = 30.0
KNOWN_FIELDS = {field.name for field in fields(Retrieval)}


def checked(subject, *scenarios, **more):
    with Bench(subject, timeout_ms=TIMEOUT_MS) as stand:
        return check(stand, scenarios=scenarios or None, **more)


def codes(result):
    return {finding.rule.code for finding in result.findings}


def state_of(result, code):
    return next(outcome.state for outcome in result.outcomes if outcome.rule.code == code)


class Silent:
    """Says nothing from some call on; that takes no time here."""

    name = "silent"
    fresh = False

    def __init__(self, after):
        self._good = Renewed("right")
        self._left = after

    def call(self, memory_retrieval, request, patience_s):
        self._left -= 1
        if self._left >= 0:
            return self._good.call(memory_retrieval, request, patience_s)
        return Told(None, patience_s, "silent", "the consumer did not answer")

    def restart(self):
        pass

    def close(self):
        self._good.close()


# ---- good ones


def reference():
    """Return the reference consumer as a callable, one for each configuration."""
    made = {}

    def retrieve(memory_retrieval, request):
        key = json.dumps(memory_retrieval, sort_keys=True)
        if key not in made:
            made[key] = Consumer(RetrievalConfig(**memory_retrieval))
        asked = {name: value for name, value in request.items() if name in KNOWN_FIELDS}
        return made[key].retrieve(Retrieval(**asked))

    return Function(retrieve), made


def test_reference_consumer_passes_everything():
    subject, made = reference()
    result = checked(subject)
    for consumer in made.values():
        consumer.close()
    assert [(finding.rule.code, finding.scenario, finding.message) for finding in result.findings] == []
    assert result.ok()
    assert result.stopped == ""
    assert all(row.ok for row in result.matrix)
    assert {outcome.state for outcome in result.outcomes} == {"passed"}


def test_consumer_on_sockets_passes_everything():
    result = checked(Renewed("right"))
    assert [(finding.rule.code, finding.scenario, finding.message) for finding in result.findings] == []


def test_coroutine_passes():
    async def retrieve(memory_retrieval, request):
        async with Consumer(RetrievalConfig(**memory_retrieval)) as consumer:
            return await consumer.aretrieve(Retrieval(**request))

    result = checked(Function(retrieve), "answers")
    assert result.findings == []
    assert result.name == "retrieve"


# ---- one mistake each

WITH_AN_ACT = [
    name
    for name, kind in ALL.items()
    if kind.shown_by not in ("", "everything", "fuzz") and name != "log-on-stdout"
]


@pytest.mark.parametrize("name", WITH_AN_ACT)
def test_mistake_is_found_by_its_act(name, monkeypatch):
    monkeypatch.setattr(bench, "GRACE_S", 0.9)  # less of it is spent on those that are silent
    result = checked(Renewed(name), ALL[name].shown_by)
    assert ALL[name].rule in {finding.rule.code for finding in result.findings if not finding.flaky}
    assert state_of(result, ALL[name].rule) == "violated"


def test_breaker_is_found_by_failures_in_a_row():
    with Bench(Renewed("breaker"), timeout_ms=TIMEOUT_MS) as stand:
        run = checks._Run(stand, frozenset({"CON405"}))
        run._in_a_row()
    (finding,) = run.findings()
    assert (finding.rule.code, finding.flaky) == ("CON405", False)
    assert [seen.act.name for seen in finding.seen] == [*acts.FAILURES, "success"]
    assert finding.message.startswith(
        "the call after server-error*5, close-without-reply*3, unavailable*6, bad-request, "
        "plain-text, hang*3 gives "
        "connection_failed, and goes well by itself"
    )


def test_connection_that_is_kept_is_found_with_the_act_before():
    result = checked(Renewed("connection-kept"), "error-endless")
    (finding,) = result.findings
    assert (finding.rule.code, finding.scenario, finding.flaky) == ("CON405", "error-endless", False)
    assert [seen.act.name for seen in finding.seen] == ["error-endless", "success"]
    assert "the call after error-endless gives " in finding.message
    assert (result.matrix[0].ok, result.matrix[0].codes) == (False, ("CON405",))


def test_cache_is_found():
    (finding,) = checked(Renewed("cache"), "empty").findings
    assert (finding.rule.code, finding.scenario, finding.also) == ("CON406", "success", ("empty",))
    assert finding.message == "an answer was given although no complete request came"


def test_redirect_elsewhere_is_found_with_the_authorization():
    result = checked(Renewed("redirect-followed"), "redirect-elsewhere")
    assert codes(result) == {"CON402", "CON403"}
    arrivals = result.findings[0].seen[-1].arrivals
    assert [arrival.elsewhere for arrival in arrivals] == [False, True]


def test_untrusted_certificate_is_not_applicable_when_it_is_not_played():
    result = checked(Renewed("certificate-unseen"), "empty")
    assert state_of(result, "CON404") == "not applicable"
    assert result.findings == []


def test_same_mistake_in_several_scenarios_is_one_finding():
    (finding,) = checked(Renewed("message-empty"), "server-error", "bad-gateway", "hang").findings
    assert (finding.rule.code, finding.scenario) == ("CON003", "server-error")
    assert finding.also == ("bad-gateway", "hang")


# ---- processes


def test_process_that_ends_at_once_is_reported():
    result = checked(Process([sys.executable, "-S", "-c", "raise SystemExit(3)"]))
    (finding,) = result.findings
    assert finding.rule.code == "CON001"
    assert "exit code 3" in finding.message
    assert result.stopped.startswith("the consumer does not answer a plain call: the process ended with exit")
    assert (result.calls, result.matrix) == (1, [])
    assert {outcome.state for outcome in result.outcomes} == {"violated", "not applicable"}


def test_process_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(bench, "START_S", 0.3)
    result = checked(Process([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]))
    assert codes(result) == {"CON001"}
    assert result.stopped.startswith("the consumer does not answer a plain call: the process did not answer")
    assert result.seconds < 10


def test_process_that_logs_on_standard_output_is_reported():
    result = checked(buggy_process("log-on-stdout"))
    (finding,) = result.findings
    assert finding.rule.code == "CON002"
    assert "asking the provider" in finding.message
    assert "logs belong on standard error" in finding.message


def test_process_that_is_right_passes_and_ends_with_the_check():
    subject = buggy_process("right")
    result = checked(subject, "bodies")
    assert result.findings == []
    assert subject.fresh


def test_corpus_lists_its_consumers():
    listed = subprocess.run([sys.executable, BUGGY_FILE, "list"], capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in listed.stdout.splitlines()]
    assert [(name, rule) for name, rule, _, _ in lines] == [
        (name, kind.rule or "-") for name, kind in ALL.items()
    ]
    assert {rule for _, rule, _, _ in lines[1:]} <= RULES.keys()


def test_command_that_cannot_be_started_is_an_error():
    with pytest.raises(MemmockError, match="cannot be started"):
        checked(Process([os.devnull + "/nothing"]), "empty")


# ---- chance, and giving up


def test_consumer_that_falls_silent_is_given_up():
    result = checked(Silent(after=4))
    assert result.stopped == "the consumer was silent 12 times"
    assert "CON001" in codes(result)
    assert 0 < len(result.matrix) < 12
    assert result.calls < 40


def test_crash_that_comes_and_goes_is_flaky():
    def change(told, n):
        return Told(None, 0.0, "died", "it died") if n == 3 else told

    result = checked(Renewed("right", change), "empty")
    (finding,) = result.findings
    assert (finding.rule.code, finding.scenario, finding.flaky) == ("CON001", "empty", True)
    assert [(row.seen, row.ok) for row in result.matrix] == [("crashed", False)]


def test_crash_of_every_third_call_is_not_lost():
    def change(told, n):
        return Told(None, 0.0, "died", "it died") if n % 3 == 0 else told

    result = checked(Renewed("right", change), "empty", "plain-text", "bad-request", "memories-null")
    assert result.findings
    assert all(finding.flaky for finding in result.findings)


def late(*numbers):
    """Return a change that makes these calls late."""

    def change(told, n):
        return told._replace(elapsed_s=LATE_S) if n in numbers else told

    return change


@pytest.mark.parametrize(
    "numbers", [(2,), (3,), (3, 4), (4,)], ids=["first", "act", "act-twice", "after-an-act"]
)
def test_lateness_that_does_not_show_again_is_no_finding(numbers):
    subject = Renewed("right", late(*numbers))
    result = checked(subject, "empty", "bad-request")
    assert result.findings == []
    assert all(row.ok for row in result.matrix)
    assert subject.count > 6  # it was tried again


def test_lateness_that_shows_again_and_again_is_a_finding():
    result = checked(Renewed("right", late(3, 5, 7)), "empty")
    (finding,) = result.findings
    assert (finding.rule.code, finding.scenario, finding.flaky) == ("CON301", "empty", False)
    assert finding.message == "the answer came after 30000 ms; timeout_ms is 300"


def test_failure_of_the_first_call_only_is_flaky():
    def change(told, n):
        return Told({"ok": 1}, 0.0) if n == 2 else told

    (finding,) = checked(Renewed("right", change), "empty").findings
    assert (finding.rule.code, finding.scenario, finding.flaky) == ("CON002", "success", True)


def test_good_call_that_fails_once_after_an_act_is_flaky():
    def change(told, n):
        return Told({"ok": 1}, 0.0) if n == 4 else told

    (finding,) = checked(Renewed("right", change), "empty").findings
    assert (finding.rule.code, finding.scenario, finding.flaky) == ("CON405", "empty", True)


def test_interrupt_gives_what_was_seen_so_far():
    def progress(done, of):
        if done == 2:
            raise KeyboardInterrupt

    result = checked(Renewed("status-left-out"), "server-error", "bad-gateway", "empty", progress=progress)
    assert result.stopped == "interrupted"
    assert [row.scenario for row in result.matrix] == ["empty", "server-error"]
    assert codes(result) == {"CON004"}


# ---- what is played, and told


def test_all_scenarios_and_more_are_played():
    names = [act.name for act in acts.chosen()]
    assert len(names) == len(set(names))
    assert [name for name in names if name in CATALOGUE] == [act.name for act in acts.scenario_acts()]
    assert set(names) > set(CATALOGUE)
    assert {acts.family_of(act) for act in acts.chosen()} >= {"answers", "timing", "more", "requests"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["timing"], [scenario.name for scenario in family("timing")]),
        (["flood", "empty"], ["empty", "flood"]),
        (["rate-limited(retry_after=0)"], ["rate-limited(retry_after=0)"]),
        (["rate-limited"], ["rate-limited"]),
        (["more"], [act.name for act in acts.more_acts()]),
        (["requests"], [act.name for act in acts.request_acts()]),
        ([], []),
    ],
)
def test_names_and_families_choose(given, expected):
    assert [act.name for act in acts.chosen(given)] == expected


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hang-mid-bod", "hang-mid-body, "),
        ("timin", "timing, "),
        ("reqests", "requests, "),
        ("asks with emoj", "asks with emoji, "),
        ("untrusted-certificat", "untrusted-certificate, "),
    ],
)
def test_unknown_name_is_an_error_that_tells_near_ones(name, near):
    with pytest.raises(MemmockError) as caught:
        acts.chosen([name])
    assert str(caught.value).startswith(f"there is no scenario '{name}'; near it are {near}")


def test_unknown_name_is_an_error_before_anything_is_played():
    subject = Renewed("right")
    with pytest.raises(MemmockError, match="there is no scenario 'dripp'; near it are drip"):
        checked(subject, "dripp")
    assert subject.count == 0


def test_act_is_found_by_its_name_with_other_settings():
    act = acts.act_named("flood", timeout_ms=700, max_response_bytes=9000)
    assert (act.name, act.timeout_ms, act.max_response_bytes) == ("flood", 700, 9000)
    with pytest.raises(MemmockError, match="there is nothing named 'floods' to play"):
        acts.act_named("floods")


def test_matrix_has_a_row_for_each_act():
    names = ["empty", "not-found", "plain-text", "bom", "asks for 1 results"]
    rows = checked(Renewed("not-found-is-empty"), *names).matrix
    assert [(row.scenario, row.family, row.expected, row.seen, row.ok, row.codes) for row in rows] == [
        ("empty", "answers", ("ok",), "ok", True, ()),
        ("not-found", "statuses", ("http_error",), "ok", False, ("CON101",)),
        ("plain-text", "bodies", ("invalid_json",), "invalid_json", True, ()),
        ("bom", "bodies", ("ok", "invalid_json"), "invalid_json", True, ()),
        ("asks for 1 results", "requests", ("ok",), "ok", True, ()),
    ]


def test_only_these_rules_are_looked_at():
    result = checked(Renewed("redirect-followed"), "redirect-elsewhere", rules=["CON402", "CON001"])
    assert codes(result) == {"CON402"}
    assert [(each.rule.code, each.state) for each in result.outcomes] == [
        ("CON001", "passed"),
        ("CON402", "violated"),
    ]


def test_ignored_rules_are_not_looked_at():
    result = checked(
        Renewed("redirect-followed"), "redirect-elsewhere", ignore=["CON402", "CON101", "CON403"]
    )
    assert result.findings == []
    assert all(row.ok for row in result.matrix)
    assert not {"CON402", "CON101", "CON403"} & {each.rule.code for each in result.outcomes}


def test_state_is_not_told_when_its_rule_is_ignored():
    result = checked(Renewed("connection-kept"), "error-endless", ignore=["CON405"])
    assert result.findings == []


def test_progress_is_told():
    told = []
    checked(Renewed("right"), "empty", "null", progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 2), (1, 2), (2, 2)]


# ---- the stand


@pytest.fixture
def stand():
    with Bench(Renewed("right"), timeout_ms=TIMEOUT_MS) as opened:
        yield opened


def test_start_is_not_judged_and_made_once(stand):
    assert stand.start() is None
    assert stand.calls == 1
    assert stand.start() is None
    assert stand.calls == 1


def test_answers_differ_from_call_to_call(stand):
    first, second = (stand.play(acts.GOOD).told.value["memories"] for _ in range(2))
    assert len(first) == len(second) == 5
    assert not {memory["summary"] for memory in first} & {memory["summary"] for memory in second}


def test_seen_tells_what_came_and_how_it_ended(stand):
    seen = stand.play(acts.act_named("close-mid-body"))
    (arrival,) = seen.arrivals
    assert seen.connections == 1
    assert seen.timeout_ms == TIMEOUT_MS
    assert arrival.reply.delivery.cut
    assert not arrival.elsewhere
    assert arrival.at_s < seen.told.elapsed_s


def test_act_has_its_own_settings(stand):
    act = replace(acts.GOOD, timeout_ms=2000, max_response_bytes=77, authorization="k", query="?a=b")
    seen = stand.play(act)
    config = seen.memory_retrieval
    assert (config["timeout_ms"], config["max_response_bytes"], config["authorization"]) == (2000, 77, "k")
    assert seen.arrivals[0].request.target == "/Gateway/memory_retrieval?a=b"
    assert seen.told.value["error"]["code"] == "response_too_large"
    assert stand.play(acts.act_named("long-timeout")).timeout_ms == 10 * TIMEOUT_MS


def test_door_is_open_again_after_an_act(stand):
    refused = stand.play(acts.act_named("refused"))
    assert (refused.arrivals, refused.connections) == ((), 0)
    assert checks.shown(refused) == "connection_failed"
    assert checks.shown(stand.play(acts.act_named("reset-on-connect"))) == "connection_failed"
    assert checks.shown(stand.play(acts.GOOD)) == "ok"


def test_bytes_that_were_sent_are_counted_while_they_are_sent(stand):
    (arrival,) = stand.play(acts.act_named("flood")).arrivals
    assert arrival.sent_bytes > 65_536


def test_pace_is_the_median_of_good_calls(stand):
    assert stand.pace_s == 0.0
    seen = stand.play(acts.GOOD)
    for elapsed_s in (0.1, 0.3, 0.2):
        stand.noted(replace(seen, told=seen.told._replace(elapsed_s=elapsed_s)))
    assert stand.pace_s == 0.2
    assert stand.play(acts.GOOD).pace_s == 0.2


def test_mistake_in_an_act_is_raised(stand):
    def make(stage):
        raise RuntimeError("a mistake of ours")

    with pytest.raises(RuntimeError, match="a mistake of ours"):
        stand.play(Act(name="odd", summary="Odd.", make=make))


def test_what_an_act_plays_is_what_comes(stand):
    act = Act(name="tea", summary="Tea.", make=lambda _: Reply.json({"memories": [{"summary": "tea"}]}))
    assert stand.play(act).told.value == {"ok": True, "memories": [{"summary": "tea"}]}
