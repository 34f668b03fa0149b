"""Look for requests that a provider does not answer as the contract says: known ones, edges, random ones.

What is sent follows from the seed alone: nothing of an answer goes back to Hypothesis, which only draws.
When a trial shows something wrong, more requests find out what it takes to see it: whether it shows again,
alone or only after another call, and the smallest case. These come between two examples, and change none.
What is judged on one answer is in `rules`, what on several in `relations`.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from memmock import strategies
from memmock.conformance import relations
from memmock.conformance.boundaries import BROAD, HINTS, PHRASES, boundary_cases
from memmock.conformance.case import PLAIN, Case, Form
from memmock.conformance.finding import Finding, Result
from memmock.conformance.known import Store, Trial
from memmock.conformance.session import Answer, Over, Session
from memmock.conformance.shrinking import (
    SIMPLEST_QUERY,
    Budget,
    contains,
    has_kind,
    kinds_of_trigger,
    shrunk,
    signature,
)
from memmock.contract import DEFAULT_MAX_RESULTS, MEMORY_TYPES
from memmock.rules import RULES, Rule, Severity, body_violations

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
_SLOW_S = 0.5
"""A call that takes longer costs as many calls as this goes into it, tenfold."""
_MOST_OF_A_KIND = 5
"""So many findings of one rule, place and status; more of them are no news."""
_FLAKY_TRIES = 100
_TRIES_IN_TURN = 24
_RECHECKS = 2
_TOO_MANY = 429
_MOST_TOO_MANY = 50
_LARGE_BYTES = 16 * 1024
_MANY_RESULTS = 100
"""A larger body, and more memories, may be refused [ours]."""

Progress = Callable[..., None]


class Problem(NamedTuple):
    """Something wrong that a trial showed.

    Attributes:
        rule: what is broken.
        message: what was seen.
        pointer: where, in the last answer.
        answers: the calls that show it.
        own: whether the last answer alone is against the rule; else it is so beside the others.
        together: whether the calls were made at the same time.
    """

    rule: Rule
    message: str
    pointer: str
    answers: tuple[Answer, ...]
    own: bool = True
    together: bool = False

    @property
    def key(self) -> str:
        """Rule, place and status."""
        return self.finding().key

    def finding(self, *, flaky: bool = False) -> Finding:
        """Return it as it is reported."""
        expected = self.rule.title
        return Finding(self.rule, self.message, self.pointer, self.answers, expected, self.together, flaky)


class _Cause(NamedTuple):
    """One thing that was found, as far as it can be told from others."""

    trial: Trial
    key: str
    flaky: bool
    kinds: frozenset[str] = frozenset()


class _Interrupted(BaseException):
    """Ends Hypothesis's run; no Exception, so that it is not taken for a failing example."""


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
        seed: the same seed draws the same examples, whatever is answered.
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
        run.random(seed, examples)
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


# ---- what is looked at


class _Caller:
    """Makes the calls of a trial, and remembers what was asked."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked: dict[Any, list[Case]] = defaultdict(list)
        self._numbers = count(1)
        self._answers = self._too_many = 0

    def ask(self, case: Case, *, stay: bool = False) -> Answer:
        """Ask on the connection of this thread.

        Args:
            case: what is asked.
            stay: whether the connection is used again also after an error; a trial of its own looks at that.
        """
        answer = self.session.ask(case)
        self._count(answer)
        if answer.status != 200 and not stay:
            self.hang_up()
        if case.authorization is None and case.body is None:
            earlier = self.asked[case.fields.get("query") if _is_text(case.fields.get("query")) else None]
            if len(earlier) < 200:
                earlier.append(case)
        return answer

    def _count(self, answer: Answer) -> None:
        """Take note of an answer.

        Raises:
            Over: too many calls were refused as too many.
        """
        self._answers += 1
        self._too_many += answer.status == _TOO_MANY
        if self._too_many > _MOST_TOO_MANY and self._too_many > self._answers / 2:
            raise Over("the provider refuses most calls with 429: ask less often")

    def own(self, *answers: Answer) -> list[Problem]:
        """Return what is wrong with the last of some answers."""
        last = answers[-1]
        violations = self.session.violations(last)
        if any(each.rule.code in ("RES101", "RES102") for each in violations):
            # what else such a body seems to hold follows from that
            violations = [each for each in violations if each.rule.code < "RES103"]
        found = [
            Problem(each.rule, _told(each), each.pointer, answers)
            for each in violations
            if not _MORE.fullmatch(each.message)
            and not (each.rule.code == "RES001" and _may_refuse(last.case, last.status))
            and not (each.rule.code in ("RES302", "RES303") and _is_wrong(last.case))
        ]
        if last.case.authorization is not None and last.status >= 500:
            found.append(Problem(RULES["RES002"], f"should be 401 or 403, not {last.status}", "", answers))
        return found

    def fresh(self, case: Case) -> Case:
        """Return a case with a live session of its own, if it names one."""
        return case.with_fields(live_id=self.number()) if "live_id" in case.fields else case

    def unheard(self, case: Case) -> Case:
        """Return a case whose query was never asked."""
        return case.with_fields(query=f"{case.fields['query']} {self.number()}")

    def number(self) -> str:
        """Return a number that was not there before."""
        return str(70_000 + next(self._numbers))

    def hang_up(self) -> None:
        """Make the next call of this thread on a new connection."""
        local = self.session._local
        if (idle := getattr(local, "idle", None)) is not None:
            local.idle = None
            self.session._leave(idle)


def _is_wrong(case: Case) -> bool:
    """Whether it breaks the contract, so that it is not clear what it asks for."""
    return any(each.severity is Severity.ERROR for each in body_violations(case.content))


def _may_refuse(case: Case, status: int) -> bool:
    """Whether a refusal is all right although the request keeps the contract, which names no upper bounds."""
    most = case.fields.get("max_results", 0)
    beyond = len(case.content) > _LARGE_BYTES or (isinstance(most, int) and most > _MANY_RESULTS)
    return status == _TOO_MANY or (400 <= status <= 499 and beyond)


_MORE = re.compile(r"and \d+ more like this")


def _key(code: str, answer: Answer) -> str:
    """Return the key of a problem that is about a whole answer."""
    return Problem(RULES[code], "", "", (answer,)).key


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _told(violation: Any) -> str:
    place = violation.pointer or ("" if violation.where in ("body", "exchange") else violation.where)
    return f"{place} {violation.message}".strip()


Property = Callable[[_Caller, Trial, bool], list[Problem]]
"""Makes the calls of a trial and returns what is wrong; the last argument says that chance is to be kept out:
on a new connection, and more often where calls race."""


def _once(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """One call."""
    if steady:
        caller.hang_up()
    return caller.own(caller.ask(trial.case))


def _again(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """The same again."""
    case = caller.fresh(trial.case) if steady else trial.case
    first = caller.ask(case)
    return _related(caller, "RES602", relations.same_again, first, caller.ask(case))


def _more(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """With one memory more, or with `how` many."""
    case = caller.fresh(trial.case) if steady else trial.case
    most = case.fields.get("max_results", DEFAULT_MAX_RESULTS)
    if not isinstance(most, int):
        return []
    first = caller.ask(case)
    second = caller.ask(case.with_fields(max_results=int(trial.how or most + 1)))
    return _related(caller, "RES603", relations.begins_with, first, second)


def _fewer(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """With some of the kinds; `how` names them."""
    case = caller.fresh(trial.case) if steady else trial.case
    kinds, left = case.fields.get("memory_types") or list(MEMORY_TYPES), trial.how.split(",")
    if not set(left) < set(kinds):
        return []
    first = caller.ask(case)
    second = caller.ask(case.with_fields(memory_types=left))
    return _related(caller, "RES604", relations.narrowed, first, second)


def _same(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """Beside the same request in its plain form, its kinds in their usual order."""
    case = caller.fresh(trial.case) if steady else trial.case
    kinds = case.fields.get("memory_types")
    ordered = {"memory_types": sorted(kinds, key=MEMORY_TYPES.index)} if kinds else {}
    plain = replace(case.with_fields(**ordered), form=PLAIN)
    if plain == case:
        return caller.own(caller.ask(case))
    first = caller.ask(plain)
    return _related(caller, "RES605", relations.matters_not, first, caller.ask(case))


def _authorization(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """With another authorization; `how` says which."""
    right = caller.session.target.authorization
    other = altered(right, trial.how) if right else None
    if other is None:
        return []
    before: list[Answer] = []
    if trial.how == AFTER_GOOD:
        caller.hang_up()
        before.append(caller.ask(trial.case))
    answer = caller.ask(replace(trial.case, authorization=other))
    found = caller.own(answer)
    if not caller.session.target.open and (message := relations.gives_away(answer)):
        found.append(Problem(RULES["RES601"], message, "", (*before, answer)))
    return found


def _refused(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """After a request that is refused, on the same connection; `how` says for what."""
    if steady:
        caller.hang_up()
    wrong = _wrong(trial, caller.session.target.authorization)
    if wrong is None:
        return []
    for _ in range(_OFTEN - 1 if trial.how == OFTEN else 0):
        caller.ask(wrong, stay=True)
    first = caller.ask(wrong, stay=True)
    good = caller.ask(replace(trial.case, form=trial.case.form._replace(kept=True)))
    found = caller.own(first)
    # whatever it is, it stems from the first when the good call alone is in order
    return found + [each._replace(answers=(first, good)) for each in caller.own(good)]


def _after(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """As the second on a connection."""
    caller.hang_up()
    first = caller.ask(Case({"query": SIMPLEST_QUERY}))
    return caller.own(first, caller.ask(trial.case))


def _changed(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """After the same with other fields, which `how` holds in JSON; null for one that is absent."""
    case = caller.unheard(trial.case)
    change = json.loads(trial.how)
    first = case.without(*change).with_fields(
        **{name: value for name, value in change.items() if value is not None}
    )
    if first == case:
        return []
    before = caller.ask(first)
    return caller.own(before, caller.ask(case))


def _together(caller: _Caller, trial: Trial, steady: bool) -> list[Problem]:
    """Beside other calls at the same time, `how` many in all."""
    case = replace(trial.case, form=trial.case.form._replace(kept=False))
    cases = [case, *(case.with_fields(memory_types=[kind]) for kind in MEMORY_TYPES)][
        : max(2, int(trial.how) // 2)
    ]
    alone = [caller.ask(each) for each in cases]
    found = [problem for answer in alone for problem in caller.own(answer)]
    if found:
        return found
    for _ in range(4 if steady else 1):
        answers = caller.session.ask_together([cases[n % len(cases)] for n in range(int(trial.how))])
        for n, answer in enumerate(answers):
            if message := relations.undisturbed(alone[n % len(cases)], answer):
                rest = answers[:n] + answers[n + 1 :]
                return [Problem(RULES["RES606"], message, "", (*rest, answer), own=False, together=True)]
    return []


PROPERTIES: Final[dict[str, Property]] = {
    "once": _once,
    "again": _again,
    "more": _more,
    "fewer": _fewer,
    "same": _same,
    "authorization": _authorization,
    "refused": _refused,
    "after": _after,
    "changed": _changed,
    "together": _together,
}
"""What can be done with a case, by name."""

_RELATED = {"again", "more", "fewer", "same", "together"}

AFTER_GOOD = "wrong after the right one"
ALTERATIONS = ("missing", "wrong", "truncated", "suffixed", "recased", AFTER_GOOD)
OFTEN = "unauthorized often"
REFUSALS = ("unauthorized", "no JSON", "no query", OFTEN)
_OFTEN = 5


def altered(authorization: str, how: str) -> str | None:
    """Return an authorization that is not the right one; None when it cannot be altered so."""
    scheme, space, token = authorization.rpartition(" ")
    other = {
        "missing": "",
        "wrong": f"{scheme}{space}memmock-wrong",
        AFTER_GOOD: f"{scheme}{space}memmock-wrong",
        "truncated": scheme + space + token[: len(token) // 2],
        "suffixed": f"{authorization}x2",
        "recased": scheme + space + token.swapcase(),
    }[how].strip()
    return None if other == authorization.strip() else other


def _wrong(trial: Trial, authorization: str | None) -> Case | None:
    """Return a request that is refused, on a connection that stays."""
    case = replace(trial.case, form=trial.case.form._replace(kept=True))
    if trial.how == "no JSON":
        return replace(case, body=case.content[:-1])
    if trial.how == "no query":
        return case.without("query")
    return replace(case, authorization=altered(authorization, "wrong")) if authorization else None


def _related(
    caller: _Caller,
    code: str,
    relation: Callable[[Answer, Answer], str | None],
    first: Answer,
    second: Answer,
) -> list[Problem]:
    """Return what is wrong with each of two answers, and then with both."""
    found = [*caller.own(first), *caller.own(second)]
    if not found and (message := relation(first, second)):
        found.append(Problem(RULES[code], message, "", (first, second), own=False))
    return found


# ---- what is tried


def first_trials() -> list[Trial]:
    """Return what is tried at the edges: the relations between plain calls, then every edge alone."""
    edges = [Trial("once", case) for case in boundary_cases()]
    return [*edges[:3], *_plain_relations(), *edges[3:]]


def _plain_relations() -> Iterator[Trial]:
    broad, phrase = Case({"query": BROAD}), Case({"query": PHRASES[1]})
    live = broad.with_fields(live_id="70000")
    for case in (broad, phrase, live, broad.with_fields(memory_types=["history", "project"])):
        yield Trial("again", case)
    for how in ALTERATIONS:
        yield Trial("authorization", broad, how)
    yield Trial("authorization", live, "suffixed")
    for how in REFUSALS:
        yield Trial("refused", broad, how)
    for most in (1, 2, 5, 16, 50):
        yield Trial("more", broad.with_fields(max_results=most))
    for kind in MEMORY_TYPES:
        yield Trial("fewer", broad.with_fields(max_results=50), kind)
        yield Trial("more", broad.with_fields(memory_types=[kind], max_results=1), "50")
    for hint in HINTS[1:7]:
        yield Trial("once", Case({"query": f"{BROAD} {hint}", "time_hint": hint, "max_results": 50}))
    yield Trial("fewer", broad, MEMORY_TYPES[0])
    pair = broad.with_fields(memory_types=["relationship", "project", "profile"], max_results=3)
    yield Trial("fewer", pair, "project")
    yield Trial("fewer", pair, "profile,relationship")
    yield Trial("same", pair)
    for form in (
        Form(spaced=True),
        Form(escaped=True),
        Form(reverse=True),
        Form(framing="chunked", slices=2),
    ):
        yield Trial("same", replace(pair, form=form))
    yield Trial("together", broad, "8")
    yield Trial("together", pair, "4")


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
        self._caller = _Caller(session)
        self._causes: list[_Cause] = []
        self._repeated: Counter[str] = Counter()
        self._rules, self._ignored = rules, ignore
        self._progress = progress
        self._over: Over | None = None
        limit = session.seconds_left
        self._limit = limit if limit < float("inf") else _USUAL_LIMIT_S
        self._shrinking_left_s = self._limit * _SHRINKING_SHARE

    # ---- phases

    def all_of(self, phase: str, trials: Sequence[Trial]) -> None:
        """Make some trials, one after the other."""
        for trial in trials:
            self._look_into(trial, self._problems(trial))
            self._tell(phase)

    def known(self, trials: Sequence[Trial]) -> None:
        """Make the trials that failed before."""
        for trial in trials:
            problems: list[Problem] = []
            with contextlib.suppress(KeyError, ValueError, TypeError):  # of another version, or edited
                problems = self._problems(trial)
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
                for trial, problems in zip(part, list(pool.map(self._problems, part)), strict=True):
                    self._look_into(trial, problems, crowded=True)
                self._tell("edges")

    def random(self, seed: int, examples: int) -> None:
        """Make random trials."""
        if examples < 1:
            return

        @seeded(seed)
        @settings(
            max_examples=examples,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            derandomize=False,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )
        @given(_trials())
        def example(trial: Trial) -> None:
            try:
                self.all_of("random", [trial])
            except Over as over:
                self._over = over
                raise _Interrupted from None

        try:
            example()
        except _Interrupted:
            assert self._over is not None
            raise self._over from None

    def _tell(self, phase: str) -> None:
        if self._progress is not None:
            self._progress(phase=phase, requests=self.session.sent, findings=len(self.findings))

    # ---- one trial

    def _problems(self, trial: Trial, steady: bool = False) -> list[Problem]:
        """Make a trial and return what is wrong, one problem for each rule, place and status."""
        found: dict[str, Problem] = {}
        for problem in PROPERTIES[trial.kind](self._caller, trial, steady):
            code = problem.rule.code
            if code not in self._ignored and (self._rules is None or code in self._rules):
                found.setdefault(problem.key, problem)
        return list(found.values())

    def _look_into(self, trial: Trial, problems: Sequence[Problem], crowded: bool = False) -> None:
        """Find out what it takes to see each problem that is new.

        Raises:
            Over: nothing may be sent any more; what was seen is among the findings.
        """
        for problem in problems:
            if not self._is_known(trial, problem, crowded):
                _Inquiry(self, trial, problem, crowded).report()
        if self._over is not None:
            raise self._over

    def shows(self, trial: Trial, key: str) -> Problem | None:
        """Make a trial again and return the problem with this key; None too when nothing may be sent."""
        if self._over is not None:
            return None
        try:
            problems = self._problems(trial, steady=True)
        except Over as over:
            self._over = over
            return None
        return next((problem for problem in problems if problem.key == key), None)

    @property
    def over(self) -> bool:
        """Whether nothing may be sent any more."""
        return self._over is not None

    @property
    def caller(self) -> _Caller:
        """What makes the calls."""
        return self._caller

    # ---- what is known

    def _is_known(self, trial: Trial, problem: Problem, crowded: bool) -> bool:
        """Whether a problem has a cause that was found already."""
        same = [cause for cause in self._causes if _alike(cause.key, problem.key)]
        if len(same) >= _MOST_OF_A_KIND or self._repeated[problem.key] >= _MOST_OF_A_KIND:
            return True
        if same and _told_once(problem):
            return True
        if self._follows(trial, problem):
            return True
        case = problem.answers[-1].case if problem.own else trial.case
        if any(not cause.flaky and _covers(cause, problem, trial, case) for cause in same):
            return True
        disturbed = crowded and any(cause.key.startswith("RES606") for cause in self._causes)
        if disturbed or any(cause.flaky for cause in same):  # is it more than that?
            return self.shows(_alone(trial, problem), problem.key) is None
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
            unheard = trial._replace(case=self._caller.unheard(trial.case))
            return self.shows(unheard, problem.key) is None
        return False

    def take(self, trial: Trial, problem: Problem, *, flaky: bool, kinds: frozenset[str]) -> None:
        """Add a finding, unless there is one of the same cause."""
        key = problem.key
        for cause in self._causes:
            twin = cause.trial.kind == trial.kind and signature(cause.trial.case) == signature(trial.case)
            if _alike(cause.key, key) and (
                flaky or _told_once(problem) or (twin and cause.trial.how == trial.how) or cause.kinds & kinds
            ):
                self._repeated[key] += 1
                return
        if flaky and problem.together and any(c.flaky and c.key[7:] == key[7:] for c in self._causes):
            return  # what fails now and then does so among other calls too
        self._causes.append(_Cause(trial, key, flaky, kinds))
        self.findings.append(problem.finding(flaky=flaky))
        self.failing.append(trial)

    # ---- time

    def allowance(self) -> Budget:
        """Return what one inquiry may cost."""
        seconds = min(self._limit * _FINDING_SHARE, self._shrinking_left_s)
        return Budget(_SHRINK_CALLS, time.monotonic() + seconds)

    def spent(self, seconds: float) -> None:
        """Take note of what an inquiry did cost."""
        self._shrinking_left_s = max(0.0, self._shrinking_left_s - seconds)


def _alike(key: str, other: str) -> bool:
    """Whether two keys are about the same thing.

    What is wrong for good requests is no news for those with a mistake, nor is the head of an error that is
    not JSON beside its body.
    """
    return _group(key) == _group(other)


def _group(key: str) -> str:
    code, seen = key.split(" ")[0], key.rsplit(" ", 1)[-1]
    return f"{code} {seen}" if code == "RES501" else key.replace("RES002", "RES001")


def _told_once(problem: Problem) -> bool:
    """Whether one finding says it all: it is about what a memory holds, how errors look, or two answers."""
    code = problem.rule.code
    if not problem.own:
        return code != "RES605"
    in_data = code != "RES303" and re.match(r"/memories/\d", problem.pointer) is not None
    return in_data or code in ("RES501", "RES502")


def _covers(cause: _Cause, problem: Problem, trial: Trial, case: Case) -> bool:
    """Whether a failure says no more than a cause that is known."""
    known = cause.trial
    if known.kind == "authorization":
        stronger = known.how == "wrong" and trial.how != "missing"
        return known.how == trial.how or stronger
    if known.kind in ("refused", "after", "changed"):
        return known.kind != "refused" or known.kind == trial.kind
    if problem.own != (known.kind not in _RELATED):
        return False
    return contains(case, known.case) or has_kind(case, known.case, cause.kinds)


def _alone(trial: Trial, problem: Problem) -> Trial:
    """Return the least that may show a problem of one answer."""
    last = problem.answers[-1].case
    return Trial("once", last) if problem.own and last.authorization is None else trial


class _Inquiry:
    """Finds out what it takes to see one problem."""

    def __init__(self, run: _Run, trial: Trial, problem: Problem, crowded: bool) -> None:
        self._run = run
        self._trial = trial
        self._problem = problem
        self._crowded = crowded
        self._budget = run.allowance()
        self._kinds: frozenset[str] = frozenset()

    def report(self) -> None:
        """Add what was found out to the findings, also when it is cut short."""
        start, flaky = time.monotonic(), False
        try:
            flaky = not self._repeats()
            if flaky:
                self._simplest_flaky()
            else:
                self._shrink()
                flaky = not self._recheck() and not self._forgets()
        finally:
            self._run.spent(time.monotonic() - start)
            self._run.take(self._trial, self._problem, flaky=flaky, kinds=self._kinds)

    def _repeats(self) -> bool:
        """Go on with the least that shows the problem again; whether there is any."""
        if not self._problem.own and self._trial.kind in _RELATED - {"again"}:
            # answers that change by themselves are no sign of anything else
            cases = dict.fromkeys(answer.case.content for answer in self._problem.answers)
            key = _key("RES602", self._problem.answers[0])
            for answer in self._problem.answers:
                if cases.pop(answer.case.content, 0) is None and self._sees(Trial("again", answer.case), key):
                    break
        if self._trial.kind == "together" and self._fails_in_turn():
            return False
        for trial in self._candidates():
            if self._sees(trial, self._problem.key):
                if trial.kind == "once":
                    self._depends_on_earlier(trial)
                return True
            if self._run.over:
                return True  # nobody knows
        return False

    def _candidates(self) -> Iterator[Trial]:
        if self._trial.kind in _RELATED and not self._problem.own:
            yield self._trial
            if self._trial.kind == "again":
                yield _in_a_session(self._trial)
            return
        alone = _alone(self._trial, self._problem)
        yield alone
        if self._trial != alone:
            yield self._trial
        if alone.kind == "once":
            yield Trial("after", alone.case)
            if self._crowded and _is_text(alone.case.fields.get("query")):
                beside = Trial("together", alone.case, "8")
                if (
                    self._sees(beside, _key("RES606", self._problem.answers[-1]))
                    and not self._fails_in_turn()
                ):
                    yield self._trial

    def _fails_in_turn(self) -> bool:
        """Whether as many calls one after the other fail too, now and then; if so, go on with one of them."""
        case, key = self._trial.case, _key("RES001", self._problem.answers[-1])
        return self._problem.answers[-1].status != 200 and any(
            self._sees(Trial("once", case), key) for _ in range(_TRIES_IN_TURN)
        )

    def _depends_on_earlier(self, trial: Trial) -> None:
        """Go on with two calls, when the one fails only because of what was asked before it."""
        query = trial.case.fields.get("query")
        if not _is_text(query) or not query or trial.case.body is not None:
            return
        key = self._problem.key
        if self._run.shows(trial._replace(case=self._run.caller.unheard(trial.case)), key):
            return
        for change in _changes(self._run.caller.asked[query], trial.case):
            if self._sees(Trial("changed", trial.case, json.dumps(change)), key):
                return

    def _sees(self, trial: Trial, key: str) -> bool:
        """Whether a trial shows what has this key; if so, go on with it."""
        start = time.monotonic()
        problem = self._run.shows(trial, key)
        if (took := time.monotonic() - start) > _SLOW_S:
            self._budget.calls -= int(took / _SLOW_S * 10)
        if problem is None:
            return False
        self._trial, self._problem = trial, problem
        return True

    def _shrink(self) -> None:
        trial, key = self._trial, self._problem.key
        if trial.case.body is None:
            shrunk(trial.case, lambda case: self._sees(trial._replace(case=case), key), self._budget)
            small, run = self._trial, self._run
            self._kinds = kinds_of_trigger(
                small.case, lambda case: run.shows(small._replace(case=case), key) is not None, self._budget
            )
        else:
            any(self._sees(trial._replace(case=Case(body=body)), key) for body in (b"", b"{"))
        if self._trial.kind == "together":
            for how in ("2", "4"):
                if int(how) < int(self._trial.how) and self._sees(self._trial._replace(how=how), key):
                    break

    def _recheck(self) -> bool:
        """Whether it shows each time."""
        trial, key = self._trial, self._problem.key
        return all(self._sees(trial, key) for _ in range(_RECHECKS)) or self._run.over

    def _forgets(self) -> bool:
        """Whether it shows each time in live sessions that are new, if not without one."""
        trial = _in_a_session(self._trial)
        if trial.kind != "again" or not self._sees(trial, self._problem.key):
            return False
        self._shrink()
        return self._recheck()

    def _simplest_flaky(self) -> None:
        """Try whether the plainest request shows it now and then."""
        simplest = Trial("once", Case({"query": SIMPLEST_QUERY}))
        for _ in range(_FLAKY_TRIES):
            if self._run.over or not self._budget.left or self._sees(simplest, self._problem.key):
                return


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
