"""Trials: what can be done with a case, what is wrong with the answers, and which are made at the edges.

What is judged on one answer is in `rules`, what on several in `relations`; a trial makes the calls for them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

from memmock.conformance import relations
from memmock.conformance.boundaries import BROAD, HINTS, PHRASES, boundary_cases
from memmock.conformance.case import PLAIN, Case, Form
from memmock.conformance.finding import Finding
from memmock.conformance.known import Trial
from memmock.conformance.session import Answer, Over, Session
from memmock.conformance.shrinking import SIMPLEST_QUERY
from memmock.contract import DEFAULT_MAX_RESULTS, MEMORY_TYPES
from memmock.rules import RULES, Rule, Severity, Violation, body_violations

_TOO_MANY = 429
_MOST_TOO_MANY = 50
_LARGE_BYTES = 16 * 1024
_MANY_RESULTS = 100
"""A larger body, and more memories, may be refused [ours]."""
_MOST_ASKED = 200
"""So many cases with one query are remembered."""


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


class Caller:
    """Makes the calls of a trial, and remembers what was asked."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked: dict[str | None, list[Case]] = defaultdict(list)
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
            self.session.hang_up()
        if case.authorization is None and case.body is None:
            query = case.fields.get("query")
            earlier = self.asked[query if isinstance(query, str) else None]
            if len(earlier) < _MOST_ASKED:
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


def _is_wrong(case: Case) -> bool:
    """Whether it breaks the contract, so that it is not clear what it asks for."""
    return any(each.severity is Severity.ERROR for each in body_violations(case.content))


def _may_refuse(case: Case, status: int) -> bool:
    """Whether a refusal is all right although the request keeps the contract, which names no upper bounds."""
    most = case.fields.get("max_results", 0)
    beyond = len(case.content) > _LARGE_BYTES or (isinstance(most, int) and most > _MANY_RESULTS)
    return status == _TOO_MANY or (400 <= status <= 499 and beyond)


_MORE = re.compile(r"and \d+ more like this")


def _told(violation: Violation) -> str:
    place = violation.pointer or ("" if violation.where in ("body", "exchange") else violation.where)
    return f"{place} {violation.message}".strip()


Property = Callable[[Caller, Trial, bool], list[Problem]]
"""Makes the calls of a trial and returns what is wrong; the last argument says that chance is to be kept out:
on a new connection, and more often where calls race."""


def _once(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """One call."""
    if steady:
        caller.session.hang_up()
    return caller.own(caller.ask(trial.case))


def _again(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """The same again."""
    case = caller.fresh(trial.case) if steady else trial.case
    first = caller.ask(case)
    return _related(caller, "RES602", relations.same_again, first, caller.ask(case))


def _more(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """With one memory more, or with `how` many."""
    case = caller.fresh(trial.case) if steady else trial.case
    most = case.fields.get("max_results", DEFAULT_MAX_RESULTS)
    if not isinstance(most, int):
        return []
    first = caller.ask(case)
    second = caller.ask(case.with_fields(max_results=int(trial.how or most + 1)))
    return _related(caller, "RES603", relations.begins_with, first, second)


def _fewer(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """With some of the kinds; `how` names them."""
    case = caller.fresh(trial.case) if steady else trial.case
    kinds, left = case.fields.get("memory_types") or list(MEMORY_TYPES), trial.how.split(",")
    if not set(left) < set(kinds):
        return []
    first = caller.ask(case)
    second = caller.ask(case.with_fields(memory_types=left))
    return _related(caller, "RES604", relations.narrowed, first, second)


def _same(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """Beside the same request in its plain form, its kinds in their usual order."""
    case = caller.fresh(trial.case) if steady else trial.case
    kinds = case.fields.get("memory_types")
    ordered = {"memory_types": sorted(kinds, key=MEMORY_TYPES.index)} if kinds else {}
    plain = replace(case.with_fields(**ordered), form=PLAIN)
    if plain == case:
        return caller.own(caller.ask(case))
    first = caller.ask(plain)
    return _related(caller, "RES605", relations.matters_not, first, caller.ask(case))


def _authorization(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """With another authorization; `how` says which."""
    right = caller.session.target.authorization
    other = altered(right, trial.how) if right else None
    if other is None:
        return []
    before: list[Answer] = []
    if trial.how == _AFTER_GOOD:
        caller.session.hang_up()
        before.append(caller.ask(trial.case))
    answer = caller.ask(replace(trial.case, authorization=other))
    found = caller.own(answer)
    if not caller.session.target.open and (message := relations.gives_away(answer)):
        found.append(Problem(RULES["RES601"], message, "", (*before, answer)))
    return found


def _refused(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """After a request that is refused, on the same connection; `how` says for what."""
    if steady:
        caller.session.hang_up()
    wrong = _wrong(trial, caller.session.target.authorization)
    if wrong is None:
        return []
    for _ in range(_TIMES - 1 if trial.how == _OFTEN else 0):
        caller.ask(wrong, stay=True)
    first = caller.ask(wrong, stay=True)
    good = caller.ask(replace(trial.case, form=trial.case.form._replace(kept=True)))
    found = caller.own(first)
    # whatever it is, it stems from the first when the good call alone is in order
    return found + [each._replace(answers=(first, good)) for each in caller.own(good)]


def _after(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
    """As the second on a connection."""
    caller.session.hang_up()
    first = caller.ask(Case({"query": SIMPLEST_QUERY}))
    return caller.own(first, caller.ask(trial.case))


def _changed(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
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


def _together(caller: Caller, trial: Trial, steady: bool) -> list[Problem]:
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

RELATED: Final = frozenset({"again", "more", "fewer", "same", "together"})
"""Those that compare answers with each other."""

_AFTER_GOOD = "wrong after the right one"
ALTERATIONS = ("missing", "wrong", "truncated", "suffixed", "recased", _AFTER_GOOD)
"""What is done to the authorization in a trial of that kind."""
_OFTEN = "unauthorized often"
REFUSALS = ("unauthorized", "no JSON", "no query", _OFTEN)
"""What a request is refused for, in a trial of that kind."""
_TIMES = 5
"""So many in a row are often."""


def altered(authorization: str, how: str) -> str | None:
    """Return an authorization that is not the right one; None when it cannot be altered so."""
    scheme, space, token = authorization.rpartition(" ")
    other = {
        "missing": "",
        "wrong": f"{scheme}{space}memmock-wrong",
        _AFTER_GOOD: f"{scheme}{space}memmock-wrong",
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
    caller: Caller,
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
