"""Look for replies that a consumer does not take as the contract says: known ones, edges, random ones.

What is played follows from the seed alone: nothing that the consumer does changes what is drawn. When a trial
shows something wrong, it is made smaller, between two trials, until only what matters is left.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable

from memmock.conformance.drawing import drawn
from memmock.conformance.known import Failures
from memmock.consumer_conformance import acts
from memmock.consumer_conformance.act import Seen
from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.checks import cause_of, is_late, state_problem
from memmock.consumer_conformance.finding import Finding, Problem, Result
from memmock.consumer_conformance.judging import problems
from memmock.consumer_conformance.trial import Trial, edge_trials, smaller, trials, without
from memmock.rules import RULES, Severity

EXAMPLES = 2000
"""So many random examples, when nothing else is said and there is time for them."""
_FINDING_SHARE = 0.1
_SHRINKING_SHARE = 0.5
"""Of the time limit: for making one finding smaller, and all of them."""
_LEAST_S = 2.0
"""One finding is given so much time at least, if all have it."""
_MOST_OF_A_KIND = 3
"""So many findings that look alike; more of them are no news."""
_MOST_SILENT = 12
_DRAWN_BYTES = 4096

Progress = Callable[..., None]


def fuzz(
    bench: Bench,
    *,
    seed: int,
    examples: int = EXAMPLES,
    time_limit_s: float = 60.0,
    known: Failures[Trial] | None = None,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Return what is wrong with a consumer, each thing with the smallest reply that shows it.

    Args:
        bench: has the consumer.
        seed: the same seed draws the same examples, whatever comes back.
        examples: how many are drawn after the edges.
        time_limit_s: when to stop, in seconds.
        known: failures of earlier runs, which are tried first, and replaced by those of this run.
        rules: codes of the rules that are looked at; None for all.
        ignore: codes of the rules that are not.
        progress: called with `phase`, `requests` and `findings` after each trial.
    """
    codes = frozenset(
        code for code in RULES if not code.startswith("RES") and (rules is None or code in rules)
    ) - frozenset(ignore)
    run = _Run(bench, codes, time_limit_s, progress)
    start, before = time.monotonic(), bench.calls
    result = Result(bench.subject.name, seed=seed)
    old = known.trials() if known is not None else []
    try:
        if not run.begin():
            result.stopped = "the consumer does not answer a plain call"
        else:
            run.all_of("known", old)
            run.all_of("edges", edge_trials())
            run.all_of("random", drawn(trials(), seed, examples, _DRAWN_BYTES))
    except _OverError as over:
        result.stopped = str(over)
    except KeyboardInterrupt:
        result.stopped = "interrupted"
    if known is not None:
        with contextlib.suppress(OSError):  # what was found matters more than that it is kept
            known.keep([*run.failing, *old[run.tried :]])
    result.findings = sorted(run.findings, key=lambda each: each.rule.severity is not Severity.ERROR)
    result.calls, result.seconds = bench.calls - before, time.monotonic() - start
    return result


class _OverError(Exception):
    """The run ends early; the message says why."""


class _Run:
    """What was found so far."""

    def __init__(
        self, bench: Bench, codes: frozenset[str], time_limit_s: float, progress: Progress | None
    ) -> None:
        self.findings: list[Finding] = []
        self.failing: list[Trial] = []
        self.tried = 0
        self._bench = bench
        self._codes = codes
        self._limit_s = time_limit_s
        self._until = time.monotonic() + time_limit_s
        self._shrinking_left_s = time_limit_s * _SHRINKING_SHARE
        self._progress = progress
        self._causes: list[tuple[tuple[str, ...], Trial]] = []
        self._always: set[tuple[str, ...]] = set()
        """The causes of what is wrong with the honest answer too: that is for the checks."""
        self._silent = 0

    def begin(self) -> bool:
        """Start the consumer; return whether it answers."""
        dead = self._bench.start()
        if dead is not None:
            self._tell([_of(found, (dead,)) for found in self._judged(dead)])
            return False
        good = self._bench.play(acts.GOOD)
        if not good.told.failure:
            self._bench.noted(good)
        return True

    def all_of(self, phase: str, trials: Iterable[Trial]) -> None:
        """Make some trials, one after the other.

        Raises:
            _OverError: the time is over, or the consumer is silent.
        """
        for trial in trials:
            if time.monotonic() > self._until:
                raise _OverError(f"the time limit of {self._limit_s:g} s")
            self._try(trial)
            self.tried += phase == "known"
            if self._progress is not None:
                self._progress(phase=phase, requests=self._bench.calls, findings=len(self.findings))

    # ---- one trial

    def _try(self, trial: Trial) -> None:
        for problem, seen in self._shown(trial):
            key = cause_of(problem, seen)
            if self._is_known(key, trial):
                continue
            late = _may_be_chance(problem, seen)
            if all(self._shows(trial, key) for _ in range(2 if late else 1)):
                self._inquire(key, trial, problem, seen)
            elif not late:
                self._take(key, trial, _of(problem, seen, flaky=True))

    def _shows(self, trial: Trial, key: tuple[str, ...]) -> bool:
        """Play a trial and tell whether it shows a problem of this cause."""
        return any(cause_of(*found) == key for found in self._shown(trial))

    def _shown(self, trial: Trial) -> list[tuple[Problem, tuple[Seen, ...]]]:
        """Play a trial, and a good call after it; return what is wrong."""
        act = trial.act()
        seen = self._bench.play(act)
        found: list[tuple[Problem, tuple[Seen, ...]]] = [(problem, (seen,)) for problem in self._judged(seen)]
        if seen.told.failure:  # it starts anew
            return found
        good = self._bench.play(acts.GOOD)
        wrong = self._wrong(good)
        if not wrong or "CON405" not in self._codes:
            return found
        self._bench.subject.restart()
        if alone := self._wrong(self._bench.play(acts.GOOD)):
            self._always.update(cause_of(problem, (good,)) for problem in alone)
            return found
        return [*found, (state_problem(wrong[0], (act,), good), (seen, good))]

    def _wrong(self, good: Seen) -> list[Problem]:
        """Return what is wrong with a good call, and is not always so. Rules do not matter: CON405 does."""
        return [each for each in self._all(good) if cause_of(each, (good,)) not in self._always]

    def _judged(self, seen: Seen) -> list[Problem]:
        return [problem for problem in self._all(seen) if problem.rule.code in self._codes]

    def _all(self, seen: Seen) -> list[Problem]:
        if seen.told.failure == "silent":
            self._silent += 1
            if self._silent >= _MOST_SILENT:
                raise _OverError(f"the consumer was silent {self._silent} times")
        return problems(seen)

    # ---- what is known

    def _is_known(self, key: tuple[str, ...], trial: Trial) -> bool:
        """Whether a problem has a cause that was found already: without that, it does not show."""
        same = [cause for known, cause in self._causes if known == key]
        if len(same) >= _MOST_OF_A_KIND:
            return True
        for cause in same:
            for other in without(trial, cause):
                if not self._shows(other, key):
                    return True
        return False

    def _inquire(self, key: tuple[str, ...], trial: Trial, problem: Problem, seen: tuple[Seen, ...]) -> None:
        """Find the smallest trial that shows a problem, and add that to the findings."""
        start = time.monotonic()
        seconds = max(_LEAST_S, self._limit_s * _FINDING_SHARE)
        seconds = min(seconds, self._shrinking_left_s, self._until - start)
        until = start + max(0.0, seconds)
        smallest = trial, problem, seen

        def still(other: Trial) -> bool:
            nonlocal smallest
            if time.monotonic() > until:
                return False
            for each, what in self._shown(other):
                if cause_of(each, what) == key:
                    smallest = other, each, what
                    return True
            return False

        try:
            smaller(trial, still, until)
        except _OverError:
            pass  # the next trial says so again
        finally:  # it is kept when the run is interrupted, too
            self._shrinking_left_s -= time.monotonic() - start
            trial, problem, seen = smallest
            self._take(key, trial, _of(problem, seen))

    def _take(self, key: tuple[str, ...], trial: Trial, finding: Finding) -> None:
        """Add a finding, unless there is one with the same trial."""
        if any(known == key and cause == trial for known, cause in self._causes):
            return
        self._causes.append((key, trial))
        self.failing.append(trial)
        self._tell([finding])

    def _tell(self, findings: Iterable[Finding]) -> None:
        self.findings += findings


def _may_be_chance(problem: Problem, seen: tuple[Seen, ...]) -> bool:
    """Whether a busy machine may have made it so; with what a call leaves behind, the good call after it."""
    own = problem.rule.code != "CON405"
    return is_late(seen[-1], {problem.rule.code} if own else {each.rule.code for each in problems(seen[-1])})


def _of(problem: Problem, seen: tuple[Seen, ...], flaky: bool = False) -> Finding:
    return Finding(problem.rule, problem.message, problem.pointer, problem.expected, seen, flaky=flaky)
