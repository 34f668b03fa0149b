"""Look for requests that a provider does not answer as the contract says: known ones, edges, random ones.

What is sent follows from the seed alone: no answer changes what is drawn. When a trial shows something wrong,
an `Inquiry` sends more requests, between two trials, to find out what it takes to see it.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from memmock import strategies
from memmock.conformance.case import PLAIN, Case, Form
from memmock.conformance.drawing import drawn
from memmock.conformance.finding import Finding, Result
from memmock.conformance.inquiry import Cause, Inquiry, Retrial, alike, alone, covers, told_once
from memmock.conformance.known import Store, Trial
from memmock.conformance.session import Over, Session
from memmock.conformance.shrinking import Budget, contains, signature
from memmock.conformance.trials import ALTERATIONS, REFUSALS, Caller, Problem, first_trials
from memmock.rules import Severity

EXAMPLES = 2000
"""So many random examples, when nothing else is said and there is time for them."""
_USUAL_LIMIT_S = 60.0
_EDGES_SHARE = 0.25
"""The edges are tried within this part of the time, several at once when the provider is slow."""
_SHRINKING_SHARE = 0.4
_FINDING_SHARE = 0.12
"""Of the time limit: for all shrinking, and for one finding."""
_MOST_WORKERS = 16
_SHRINK_CALLS = 200
_MOST_OF_A_KIND = 5
"""So many findings of one rule, place and status; more of them are no news."""

Progress = Callable[..., None]


def fuzz(
    session: Session,
    *,
    seed: int,
    examples: int = EXAMPLES,
    known: Store | None = None,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
    edges: Sequence[Trial] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Return what is wrong with a provider, each thing with the smallest requests that show it.

    Ends after the examples, or when nothing may be sent any more, or at Ctrl-C: what was found until then is
    in the result in each case.

    Args:
        session: sends the requests; holds the limits of time, rate and number.
        seed: the same seed draws the same examples, whatever is answered and whatever modules are loaded.
        examples: how many are drawn after the edges.
        known: failures of earlier runs, which are tried first, and replaced by those of this run.
        rules: codes of the rules that are looked at; None for all.
        ignore: codes of the rules that are not.
        edges: what is tried before the examples; None for `first_trials()`.
        progress: called with `phase`, `requests` and `findings` after each trial.
    """
    run = _Run(session, rules, ignore, progress)
    result = Result(session.target.url, run.findings, seed=seed)
    before = known.trials() if known is not None else []
    try:
        run.known(before)
        run.edges(first_trials() if edges is None else edges)
        run.all_of("random", drawn_trials(seed, examples))
    except Over as over:
        result.stopped = str(over)
    except KeyboardInterrupt:
        result.stopped = "interrupted"
    if known is not None:
        with contextlib.suppress(OSError):  # what was found matters more than that it is kept
            known.keep([*run.failing, *before[run.known_tried :]])
    run.findings.sort(key=lambda finding: finding.rule.severity is not Severity.ERROR)
    result.requests, result.seconds = session.sent, session.seconds
    return result


# ---- the run


class _Run:
    """What was found so far, and how it is found out."""

    def __init__(
        self,
        session: Session,
        rules: Collection[str] | None,
        ignore: Collection[str],
        progress: Progress | None,
    ) -> None:
        self.session = session
        self.findings: list[Finding] = []
        self.failing: list[Trial] = []
        self.known_tried = 0
        self._retrial = Retrial(Caller(session), rules, ignore)
        self._causes: list[Cause] = []
        self._repeated: Counter[str] = Counter()
        self._progress = progress
        limit = session.seconds_left
        self._limit = limit if limit < float("inf") else _USUAL_LIMIT_S
        self._shrinking_left_s = self._limit * _SHRINKING_SHARE

    # ---- phases

    def all_of(self, phase: str, trials: Iterable[Trial]) -> None:
        """Make some trials, one after the other."""
        for trial in trials:
            self._look_into(trial, self._retrial.problems(trial))
            self._tell(phase)

    def known(self, trials: Sequence[Trial]) -> None:
        """Make the trials that failed before."""
        for trial in trials:
            problems: list[Problem] = []
            with contextlib.suppress(KeyError, ValueError, TypeError):  # of another version, or edited
                problems = self._retrial.problems(trial)
            self._look_into(trial, problems)
            self.known_tried += 1
            self._tell("known")

    def edges(self, trials: Sequence[Trial]) -> None:
        """Make the trials at the edges, several at once when calls take long."""
        start, sent = time.monotonic(), self.session.sent
        self.all_of("edges", trials[:3])
        per_call_s = (time.monotonic() - start) / max(1, self.session.sent - sent)
        needed = per_call_s * len(trials) * 1.3 / (self._limit * _EDGES_SHARE)
        workers = min(_MOST_WORKERS, int(needed) + 1)
        if workers == 1:
            self.all_of("edges", trials[3:])
            return
        with ThreadPoolExecutor(workers) as pool:
            for at in range(3, len(trials), workers):
                part = trials[at : at + workers]
                for trial, problems in zip(part, list(pool.map(self._retrial.problems, part)), strict=True):
                    self._look_into(trial, problems, crowded=True)
                self._tell("edges")

    def _tell(self, phase: str) -> None:
        if self._progress is not None:
            self._progress(phase=phase, requests=self.session.sent, findings=len(self.findings))

    # ---- one trial

    def _look_into(self, trial: Trial, problems: Sequence[Problem], crowded: bool = False) -> None:
        """Find out what it takes to see each problem that is new.

        Raises:
            Over: nothing may be sent any more; what was seen is among the findings.
        """
        for problem in problems:
            if not self._is_known(trial, problem, crowded):
                self._inquire(trial, problem, crowded)
        if self._retrial.over is not None:
            raise self._retrial.over

    def _inquire(self, trial: Trial, problem: Problem, crowded: bool) -> None:
        """Add what is found out about a problem to the findings, also when that is cut short."""
        start = time.monotonic()
        seconds = min(self._limit * _FINDING_SHARE, self._shrinking_left_s)
        budget = Budget(_SHRINK_CALLS, start + seconds)
        inquiry = Inquiry(self._retrial, trial, problem, crowded=crowded, budget=budget)
        in_range = False
        try:
            inquiry.hold()
            in_range = inquiry.in_range_of([each for each in self._causes if alike(each.key, problem.key)])
        finally:
            self._shrinking_left_s = max(0.0, self._shrinking_left_s - (time.monotonic() - start))
            self._take(inquiry, told=in_range)

    # ---- what is known

    def _is_known(self, trial: Trial, problem: Problem, crowded: bool) -> bool:
        """Whether a problem has a cause that was found already."""
        same = [cause for cause in self._causes if alike(cause.key, problem.key)]
        if len(same) >= _MOST_OF_A_KIND or self._repeated[problem.key] >= _MOST_OF_A_KIND:
            return True
        if same and told_once(problem):
            return True
        if self._follows(trial, problem):
            return True
        case = problem.answers[-1].case if problem.own else trial.case
        if any(not cause.flaky and covers(cause, problem, trial, case) for cause in same):
            return True
        disturbed = crowded and any(cause.key.startswith("RES606") for cause in self._causes)
        if disturbed or any(cause.flaky for cause in same):  # is it more than that?
            return self._retrial.shows(alone(trial, problem), problem.key) is None
        return False

    def _follows(self, trial: Trial, problem: Problem) -> bool:
        """Whether a problem comes of another one that shows in many ways."""
        kinds = {cause.trial.kind for cause in self._causes if cause.key < "RES4"}
        if "refused" in kinds and trial.kind in ("authorization", "refused"):
            return problem.rule.code in ("RES001", "RES002", "RES007")
        if problem.rule.code == "RES605" and any(
            cause.trial.case.form != PLAIN and contains(trial.case, replace(cause.trial.case, fields={}))
            for cause in self._causes
        ):
            return True
        if "changed" in kinds and not problem.own and trial.case.fields.get("query"):
            unheard = trial._replace(case=self._retrial.caller.unheard(trial.case))
            return self._retrial.shows(unheard, problem.key) is None
        return False

    def _take(self, inquiry: Inquiry, told: bool) -> None:
        """Add what an inquiry found, unless it is of a cause that was found already.

        Args:
            inquiry: has found it out.
            told: whether a finding says it, though not which cases fail for it; these are remembered.
        """
        trial, problem, flaky = inquiry.trial, inquiry.problem, inquiry.flaky
        key = problem.key
        for cause in self._causes:
            twin = cause.trial.kind == trial.kind and signature(cause.trial.case) == signature(trial.case)
            if alike(cause.key, key) and (
                flaky
                or told_once(problem)
                or (twin and cause.trial.how == trial.how)
                or cause.kinds & inquiry.kinds
            ):
                self._repeated[key] += 1
                return
        if flaky and problem.together and any(c.flaky and c.key[7:] == key[7:] for c in self._causes):
            return  # what fails now and then does so among other calls too
        self._causes.append(Cause(trial, key, flaky, inquiry.kinds))
        if not told:
            self.findings.append(problem.finding(flaky=flaky))
            self.failing.append(trial)


# ---- what is drawn


def drawn_trials(seed: int, examples: int) -> Iterator[Trial]:
    """Return trials drawn by chance, the same for the same seed."""
    return drawn(_trials(), seed, examples)


_RANDOM: Final[tuple[tuple[str, str], ...]] = (
    ("once", ""), ("once", ""), ("once", ""), ("once", ""), ("again", ""), ("again", ""), ("more", ""),
    ("more", "50"), ("same", ""), ("same", ""), ("fewer", "preference"), ("fewer", "project"),
    ("fewer", "relationship,history"), *(("authorization", how) for how in ALTERATIONS),
    *(("refused", how) for how in REFUSALS), ("together", "4"),
)  # fmt: skip


def _trials() -> st.SearchStrategy[Trial]:
    """Strategy for trials; seldom of a request that breaks the contract."""
    good = st.builds(_trial, strategies.cases(), st.sampled_from(_RANDOM))
    bad = st.builds(lambda fields: Trial("once", Case(fields)), strategies.memory_requests(valid=False))
    return st.integers(0, 11).flatmap(lambda number: bad if number == 11 else good)


def _trial(case: Case, do: tuple[str, str]) -> Trial:
    if do[0] == "same" and case.form == PLAIN:  # nothing to compare
        case = replace(case, form=Form(spaced=True, escaped=True, reverse=True))
    return Trial(do[0], case, do[1])
