"""What it takes to see something wrong again, the smallest case that shows it, and which failures are one.

Most of it is more requests: whether it shows again, alone or only after another call, always or now and then.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from memmock.conformance.case import Case
from memmock.conformance.known import Trial
from memmock.conformance.session import Answer, Over
from memmock.conformance.shrinking import (
    SIMPLEST_QUERY,
    Budget,
    between,
    contains,
    has_kind,
    kinds_of_trigger,
    shrunk,
)
from memmock.conformance.trials import PROPERTIES, RELATED, Caller, Problem
from memmock.rules import RULES

_SLOW_S = 0.5
"""A call that takes longer costs as many calls as this goes into it, tenfold."""
_FLAKY_TRIES = 100
_TRIES_IN_TURN = 24
_RECHECKS = 2


class Retrial:
    """Makes trials, also again and again, and looks at some of the rules only.

    Args:
        caller: makes the calls.
        rules: codes of the rules that are looked at; None for all.
        ignored: codes of the rules that are not.

    Attributes:
        over: why nothing may be sent any more; None while it may.
    """

    def __init__(self, caller: Caller, rules: Collection[str] | None, ignored: Collection[str]) -> None:
        self.caller = caller
        self.over: Over | None = None
        self._rules, self._ignored = rules, ignored

    def problems(self, trial: Trial, steady: bool = False) -> list[Problem]:
        """Make a trial and return what is wrong, one problem for each rule, place and status.

        Raises:
            Over: nothing may be sent any more.
        """
        found: dict[str, Problem] = {}
        for problem in PROPERTIES[trial.kind](self.caller, trial, steady):
            code = problem.rule.code
            if code not in self._ignored and (self._rules is None or code in self._rules):
                found.setdefault(problem.key, problem)
        return list(found.values())

    def shows(self, trial: Trial, key: str) -> Problem | None:
        """Make a trial again and return the problem with this key; None too when nothing may be sent."""
        if self.over is not None:
            return None
        try:
            problems = self.problems(trial, steady=True)
        except Over as over:
            self.over = over
            return None
        return next((problem for problem in problems if problem.key == key), None)


class Cause(NamedTuple):
    """One thing that was found, as far as it can be told from others.

    Attributes:
        trial: the least that shows it.
        key: rule, place and status.
        flaky: whether it shows now and then only.
        kinds: which kinds of characters make the trial fail; empty when it is not about one character.
    """

    trial: Trial
    key: str
    flaky: bool
    kinds: frozenset[str] = frozenset()


class Inquiry:
    """Finds out what it takes to see one problem.

    Args:
        retrial: makes the trials.
        trial: what has shown the problem.
        problem: what was seen.
        crowded: whether other calls were made at the same time.
        budget: what it may cost.

    Attributes:
        trial: the least that shows it, so far.
        problem: what that has shown.
        flaky: whether it shows now and then only.
        kinds: which kinds of characters make it fail.
    """

    def __init__(
        self, retrial: Retrial, trial: Trial, problem: Problem, *, crowded: bool, budget: Budget
    ) -> None:
        self.trial = trial
        self.problem = problem
        self.flaky = False
        self.kinds: frozenset[str] = frozenset()
        self._retrial = retrial
        self._crowded = crowded
        self._budget = budget

    def hold(self) -> None:
        """Look for the least that shows the problem; when cut short, the attributes have what is known."""
        self.flaky = not self._repeats()
        if self.flaky:
            self._simplest_flaky()
        else:
            self._shrink()
            self.flaky = not self._recheck() and not self._forgets()

    def in_range_of(self, causes: Sequence[Cause]) -> bool:
        """Whether what fails lies in one range of characters with what a known cause is about."""
        for cause in causes:
            known, case = cause.trial, self.trial.case
            fields = {name: value for name, value in case.fields.items() if name in known.case.fields}
            own = known._replace(case=replace(case, fields=fields))  # a mistake beside it is no other cause
            middle = between(own.case, known.case)
            if (
                middle is not None
                and (self.trial.kind, self.trial.how) == (known.kind, known.how)
                and not (self.flaky or cause.flaky)
                and self._retrial.shows(own, cause.key)
                and self._retrial.shows(own._replace(case=middle), cause.key)
            ):
                return True
        return False

    def _repeats(self) -> bool:
        """Go on with the least that shows the problem again; whether there is any."""
        if not self.problem.own and self.trial.kind in RELATED - {"again"}:
            # answers that change by themselves are no sign of anything else
            cases = dict.fromkeys(answer.case.content for answer in self.problem.answers)
            key = _key("RES602", self.problem.answers[0])
            for answer in self.problem.answers:
                if cases.pop(answer.case.content, 0) is None and self._sees(Trial("again", answer.case), key):
                    break
        if self.trial.kind == "together" and self._fails_in_turn():
            return False
        for trial in self._candidates():
            if self._sees(trial, self.problem.key):
                if trial.kind == "once":
                    self._depends_on_earlier(trial)
                return True
            if self._retrial.over is not None:
                return True  # nobody knows
        return False

    def _candidates(self) -> Iterator[Trial]:
        if self.trial.kind in RELATED and not self.problem.own:
            yield self.trial
            if self.trial.kind == "again":
                yield _in_a_session(self.trial)
            return
        least = alone(self.trial, self.problem)
        yield least
        if self.trial != least:
            yield self.trial
        if least.kind == "once":
            yield Trial("after", least.case)
            if self._crowded and isinstance(least.case.fields.get("query"), str):
                beside = Trial("together", least.case, "8")
                if self._sees(beside, _key("RES606", self.problem.answers[-1])) and not self._fails_in_turn():
                    yield self.trial

    def _fails_in_turn(self) -> bool:
        """Whether as many calls one after the other fail too, now and then; if so, go on with one of them."""
        case, key = self.trial.case, _key("RES001", self.problem.answers[-1])
        return self.problem.answers[-1].status != 200 and any(
            self._sees(Trial("once", case), key) for _ in range(_TRIES_IN_TURN)
        )

    def _depends_on_earlier(self, trial: Trial) -> None:
        """Go on with two calls, when the one fails only because of what was asked before it."""
        query = trial.case.fields.get("query")
        if not isinstance(query, str) or not query or trial.case.body is not None:
            return
        key = self.problem.key
        if self._retrial.shows(trial._replace(case=self._retrial.caller.unheard(trial.case)), key):
            return
        for change in _changes(self._retrial.caller.asked[query], trial.case):
            if self._sees(Trial("changed", trial.case, json.dumps(change)), key):
                return

    def _sees(self, trial: Trial, key: str) -> bool:
        """Whether a trial shows what has this key; if so, go on with it."""
        start = time.monotonic()
        problem = self._retrial.shows(trial, key)
        if (took := time.monotonic() - start) > _SLOW_S:
            self._budget.calls -= int(took / _SLOW_S * 10)
        if problem is None:
            return False
        self.trial, self.problem = trial, problem
        return True

    def _shrink(self) -> None:
        trial, key = self.trial, self.problem.key
        if trial.case.body is None:
            shrunk(trial.case, lambda case: self._sees(trial._replace(case=case), key), self._budget)
            small = self.trial
            self.kinds = kinds_of_trigger(
                small.case,
                lambda case: self._retrial.shows(small._replace(case=case), key) is not None,
                self._budget,
            )
        else:
            any(self._sees(trial._replace(case=Case(body=body)), key) for body in (b"", b"{"))
        if self.trial.kind == "together":
            for how in ("2", "4"):
                if int(how) < int(self.trial.how) and self._sees(self.trial._replace(how=how), key):
                    break

    def _recheck(self) -> bool:
        """Whether it shows each time."""
        trial, key = self.trial, self.problem.key
        return all(self._sees(trial, key) for _ in range(_RECHECKS)) or self._retrial.over is not None

    def _forgets(self) -> bool:
        """Whether it shows each time in live sessions that are new, if not without one."""
        trial = _in_a_session(self.trial)
        if trial.kind != "again" or not self._sees(trial, self.problem.key):
            return False
        self._shrink()
        return self._recheck()

    def _simplest_flaky(self) -> None:
        """Try whether the plainest request shows it now and then."""
        simplest = Trial("once", Case({"query": SIMPLEST_QUERY}))
        for _ in range(_FLAKY_TRIES):
            if (
                self._retrial.over is not None
                or not self._budget.left
                or self._sees(simplest, self.problem.key)
            ):
                return


def _key(code: str, answer: Answer) -> str:
    """Return the key of a problem that is about a whole answer."""
    return Problem(RULES[code], "", "", (answer,)).key


def _in_a_session(trial: Trial) -> Trial:
    """Return a trial in a live session; `again` takes a new one each time."""
    return trial._replace(case=trial.case.with_fields(live_id="1"))


def _changes(earlier: Sequence[Case], case: Case) -> Iterator[dict[str, Any]]:
    """Return in which one field earlier cases differ from a case; the latest first, a few of each field."""
    seen: dict[str, list[Any]] = defaultdict(list)
    for other in reversed(earlier):
        names = [
            name
            for name in {**other.fields, **case.fields}
            if other.fields.get(name) != case.fields.get(name)
        ]
        if len(names) == 1 and len(values := seen[names[0]]) < 3:
            value = other.fields.get(names[0])
            if value not in values:
                values.append(value)
                yield {names[0]: value}


# ---- one cause, or two


def alike(key: str, other: str) -> bool:
    """Whether two keys are about the same thing.

    What is wrong for good requests is no news for those with a mistake, nor is the head of an error that is
    not JSON beside its body.
    """
    return _group(key) == _group(other)


def _group(key: str) -> str:
    code, seen = key.split(" ")[0], key.rsplit(" ", 1)[-1]
    return f"{code} {seen}" if code == "RES501" else key.replace("RES002", "RES001")


def told_once(problem: Problem) -> bool:
    """Whether one finding says it all: it is about what a memory holds, how errors look, or two answers."""
    code = problem.rule.code
    if not problem.own:
        return code != "RES605"
    in_data = code != "RES303" and re.match(r"/memories/\d", problem.pointer) is not None
    return in_data or code in ("RES501", "RES502")


def covers(cause: Cause, problem: Problem, trial: Trial, case: Case) -> bool:
    """Whether a failure says no more than a cause that is known."""
    known = cause.trial
    if known.kind == "authorization":
        stronger = known.how == "wrong" and trial.how != "missing"
        return known.how == trial.how or stronger
    if known.kind in ("refused", "after", "changed"):
        return known.kind != "refused" or known.kind == trial.kind
    if problem.own != (known.kind not in RELATED):
        return False
    return contains(case, known.case) or has_kind(case, known.case, cause.kinds)


def alone(trial: Trial, problem: Problem) -> Trial:
    """Return the least that may show a problem of one answer."""
    last = problem.answers[-1].case
    return Trial("once", last) if problem.own and last.authorization is None else trial
