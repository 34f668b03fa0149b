"""A run of the catalogue: each act once, a good call after each, and the verdict on all of it.

What is wrong is tried again before it is told. What looks like lateness and does not show again is none:
the machine was busy. A consumer that is silent again and again is given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import groupby

from memmock.conformance.finding import Outcome
from memmock.consumer_conformance import acts
from memmock.consumer_conformance.act import Act, Seen
from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.finding import Finding, Problem, Result
from memmock.consumer_conformance.judging import expected_outcomes, problems
from memmock.report.parts import Row
from memmock.rules import RULES, Severity
from memmock.tool_result import ERROR_CODES

Progress = Callable[[int, int], None]

_MOST_SILENT = 12
"""A consumer that was silent so often is given up."""
_MOST_SLOW = 6
"""And so is one that takes too long for so many plain calls in a row."""
_SURE_SILENT = 3
"""After so many silences another one need not be shown twice."""
_SURE = 3
"""What so many scenarios showed besides the first, twice each, need not be shown twice by another one."""


def _shows(*outcomes: str) -> Callable[[Row], bool]:
    return lambda row: not set(outcomes).isdisjoint(row.expected)


_NEEDS: dict[str, Callable[[Row], bool]] = {
    "CON003": _shows(*ERROR_CODES),
    "CON004": _shows("http_error"),
    **dict.fromkeys(("CON201", "CON202", "CON203"), _shows("ok")),
    **dict.fromkeys(("CON301", "CON302"), _shows("timeout")),
    "CON303": _shows("response_too_large"),
    **dict.fromkeys(("CON402", "CON403"), lambda row: row.scenario.startswith("redirect-")),
    "CON404": lambda row: row.scenario == "untrusted-certificate",
    "CON502": _shows(*ERROR_CODES),
}
"""What must have been played for a rule to be kept."""


def check(
    bench: Bench,
    *,
    scenarios: Collection[str] | None = None,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
    progress: Progress = lambda done, of: None,
) -> Result:
    """Return what the catalogue shows of a consumer, with an outcome for every rule and a row for every act.

    Args:
        bench: has the consumer.
        scenarios: names of scenarios and families that are played; None for all.
        rules: the codes that are looked at; None for all.
        ignore: codes that are not.
        progress: is told how many acts were played, of how many.

    Raises:
        MemmockError: there is no such scenario, or the consumer cannot be started.
    """
    looked_at = [code for code in RULES if not code.startswith("RES") and (rules is None or code in rules)]
    run = _Run(bench, frozenset(looked_at) - frozenset(ignore))
    todo = acts.chosen(scenarios)
    start, before = time.monotonic(), bench.calls
    result = Result(bench.subject.name)
    try:
        result.stopped = run.everything(todo, progress, in_a_row=scenarios is None)
    except KeyboardInterrupt:
        result.stopped = "interrupted"
    result.findings = run.findings()
    result.outcomes = [run.outcome(code, result.stopped) for code in looked_at if code not in ignore]
    result.matrix = run.rows
    result.calls, result.seconds = bench.calls - before, time.monotonic() - start
    return result


def again(bench: Bench, scene: Iterable[Act]) -> tuple[Seen, ...]:
    """Play acts one after the other, and return what was seen of each."""
    return tuple(bench.play(act) for act in scene)


class _Run:
    """One run: what was seen, and what is wrong."""

    def __init__(self, bench: Bench, codes: frozenset[str]) -> None:
        self.rows: list[Row] = []
        self._bench = bench
        self._codes = codes
        self._found: dict[tuple[str, ...], Finding] = {}
        self._silent = self._slow = 0
        self._played: set[str] = set()
        self._always: set[tuple[str, ...]] = set()
        """The causes of what is wrong with the honest answer too, by itself."""

    def everything(self, todo: list[Act], progress: Progress, *, in_a_row: bool) -> str:
        """Play the acts; return why that ended early."""
        dead = self._bench.start()
        if dead is not None:
            self._add(problems(dead), (dead,))
            hint = "; does it flush its output?" if dead.told.failure == "silent" else ""
            return f"the consumer does not answer a plain call: {dead.told.message}{hint}"
        self._after((), self._bench.play(acts.GOOD))
        for n, act in enumerate(todo):
            progress(n, len(todo))
            self._act(act)
            if self._silent >= _MOST_SILENT:
                return f"the consumer was silent {self._silent} times"
            if self._slow >= _MOST_SLOW:
                return "the consumer does not answer a plain call in time"
        if in_a_row:
            self._in_a_row()
        progress(len(todo), len(todo))
        return ""

    def findings(self) -> list[Finding]:
        """Return the findings, errors first."""
        return sorted(self._found.values(), key=lambda each: each.rule.severity is not Severity.ERROR)

    def outcome(self, code: str, stopped: str) -> Outcome:
        """Return what became of a rule."""
        rule = RULES[code]
        if any(finding.rule is rule for finding in self._found.values()):
            return Outcome(rule, "violated")
        if not self._played:
            return Outcome(rule, "not applicable", stopped or "nothing was played")
        if code in _NEEDS and not any(map(_NEEDS[code], self.rows)):
            return Outcome(rule, "not applicable", "nothing was played for it")
        return Outcome(rule, "passed")

    # ---- one act

    def _act(self, act: Act) -> None:
        seen = self._bench.play(act)
        found = self._judged(seen)
        sure, flaky = self._confirmed(act, seen, found)
        self._played.add(act.name)
        self.rows.append(
            Row(
                act.name,
                acts.family_of(act),
                tuple(expected_outcomes(seen)),
                shown(seen),
                not sure and not (seen.told.failure and "CON001" not in self._codes),
                tuple(problem.rule.code for problem in sure),
            )
        )
        self._add(sure, (seen,), flaky)
        good = self._bench.play(acts.GOOD)
        self._after((act,), good)

    def _confirmed(self, act: Act, seen: Seen, found: list[Problem]) -> tuple[list[Problem], bool]:
        """Return the problems that are none of chance, and whether they do not show every time."""
        if not found or (seen.told.failure == "silent" and self._silent > _SURE_SILENT):
            return found, False
        if all(self._is_sure(cause_of(problem, (seen,))) for problem in found):
            return found, False
        codes = {problem.rule.code for problem in found}
        late = is_late(seen, codes)
        for attempt in range(2):
            self._bench.play(acts.GOOD)
            once_more = {problem.rule.code for problem in self._judged(self._bench.play(act))}
            sure = [problem for problem in found if problem.rule.code in once_more]
            if sure and (attempt or not late):
                return sure, bool(attempt) and not late
            if late and not sure:
                return [], False
        return found, True

    def _judged(self, seen: Seen) -> list[Problem]:
        return [problem for problem in self._all(seen) if problem.rule.code in self._codes]

    def _wrong(self, good: Seen) -> list[Problem]:
        """Return what is wrong with a good call, and is not always so, whatever rules are looked at."""
        self._slow = self._slow + 1 if shown(good) == "timeout" else 0
        return [each for each in self._all(good) if cause_of(each, (good,)) not in self._always]

    def _all(self, seen: Seen) -> list[Problem]:
        self._silent += seen.told.failure == "silent"
        return problems(seen)

    def _is_sure(self, cause: tuple[str, ...]) -> bool:
        """Whether something was shown so often that once more need not be tried again."""
        finding = self._found.get(cause)
        return finding is not None and not finding.flaky and len(finding.also) >= _SURE

    # ---- what a call leaves behind

    def _in_a_row(self) -> None:
        """Play several failures without a good call between them."""
        scene = tuple(acts.act_named(name) for name in acts.FAILURES)
        again(self._bench, scene)
        self._after(scene, self._bench.play(acts.GOOD))

    def _after(self, scene: tuple[Act, ...], good: Seen) -> None:
        """Judge the good call that follows."""
        self._played.add(acts.GOOD.name)
        found = self._wrong(good)
        if not found:
            if not good.told.failure:
                self._bench.noted(good)
            return
        # is it these calls that it depends on, or does it fail alone too?
        self._bench.subject.restart()
        alone = self._wrong(self._bench.play(acts.GOOD))
        chance = is_late(good, {problem.rule.code for problem in found})
        if alone:
            self._always |= {cause_of(problem, (good,)) for problem in alone}
            self._add(alone, (good,))
        elif scene:
            whole = again(self._bench, (*scene, acts.GOOD))
            if once_more := self._wrong(whole[-1]):
                self._add([state_problem(once_more[0], scene, whole[-1])], whole)
                if len(scene) == 1 and self.rows and "CON405" in self._codes:
                    self.rows[-1] = self.rows[-1]._replace(ok=False, codes=(*self.rows[-1].codes, "CON405"))
            elif not chance:
                self._add([state_problem(found[0], scene, good)], (*whole[:-1], good), flaky=True)
            self._bench.subject.restart()
        elif not chance:
            self._add(found, (good,), flaky=True)

    # ---- what is told

    def _add(self, found: Iterable[Problem], seen: tuple[Seen, ...], flaky: bool = False) -> None:
        """Add problems to the findings; what shows in several scenarios is one finding."""
        for problem in found:
            if problem.rule.code not in self._codes:
                continue
            key = cause_of(problem, seen)
            before = self._found.get(key)
            name = seen[0].act.name
            if before is None:
                self._found[key] = Finding(
                    problem.rule, problem.message, problem.pointer, problem.expected, seen, flaky=flaky
                )
            elif name != before.scenario and name not in before.also:
                self._found[key] = replace(before, also=(*before.also, name), flaky=before.flaky and flaky)


def shown(seen: Seen) -> str:
    """Return what a consumer showed, in one word or two: `ok`, the code of an error, or that it failed."""
    told = seen.told
    if told.failure:
        return {"died": "crashed", "silent": "no answer", "garbled": "no tool result"}[told.failure]
    value = told.value if isinstance(told.value, dict) else {}
    if value.get("ok") is True:
        return "ok"
    error = value.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else "no tool result"


def cause_of(problem: Problem, seen: tuple[Seen, ...]) -> tuple[str, ...]:
    """Return what is the same for problems with one cause, as far as can be told."""
    last = seen[-1]
    code = problem.rule.code
    if code == "CON101":
        return code, expected_outcomes(last)[0], shown(last)
    if code == "CON001":
        lines = last.told.errors.strip().splitlines()
        return code, last.told.failure, lines[-1][:80] if lines else ""
    if code == "CON405":
        return code, shown(last)
    place = "/".join("*" if step.isdigit() else step for step in problem.pointer.split("/"))
    return code, place


def state_problem(problem: Problem, scene: tuple[Act, ...], good: Seen) -> Problem:
    """Return what it means that a good call went wrong after others, and goes well by itself."""
    played = groupby("this reply" if act.case is not None else act.name for act in scene)
    counted = ((name, len(list(same))) for name, same in played)
    names = ", ".join(name if count == 1 else f"{name}*{count}" for name, count in counted)
    return Problem(
        RULES["CON405"],
        f"the call after {names} gives {shown(good)}, and goes well by itself ({problem.message})",
        "",
        "the same as without the calls before it: ok, with the memories that came",
    )


def is_late(seen: Seen, codes: set[str]) -> bool:
    """Whether a busy machine may have made it so."""
    never = expected_outcomes(seen) == ("timeout",)
    return never or shown(seen) in ("timeout", "no answer") or bool(codes & {"CON301", "CON302"})
