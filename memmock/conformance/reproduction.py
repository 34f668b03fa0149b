"""How a finding is shown again: its calls are made again and judged by the rule that they broke.

What goes into a file for that purpose must hold no secret: `secrets_of` lists them, and `made_from` tells how
an authorization was made from the right one without naming either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from memmock.conformance import relations
from memmock.conformance.case import Case
from memmock.conformance.session import Answer, Session, Target
from memmock.errors import MemmockFailure
from memmock.redaction import SECRET_NAME
from memmock.rules import RULES, Violation, request_violations

_RELATIONS: dict[str, Callable[[Answer, Answer], str | None]] = {
    "RES602": relations.same_again,
    "RES603": relations.begins_with,
    "RES604": relations.narrowed,
    "RES605": relations.matters_not,
}
"""What two answers show, by its rule; the first is the one to compare with."""
_OF_ERRORS = ("RES002", "RES501", "RES502")
"""Rules that an error keeps or breaks."""
_LONG_QUERY = 12
"""A query of so many characters is in a memory only if the memory was made of it."""
_SHORTEST_SECRET = 4
"""A shorter value may stand in any text by chance, and is hidden as the whole value of a header only."""
_SHORTEST_PART = 3
"""Fewer characters that an authorization has in common with the right one are no part of it."""


def reproduces(
    rule_code: str, cases: Sequence[Case], session: Session, together: bool = False, *, times: int = 1
) -> str | None:
    """Make calls and return how the last one breaks a rule, in one line; None when it does not.

    Args:
        rule_code: the rule that is judged, and no other.
        cases: the calls, in their order; the one that is judged comes last, after the one that it is
            compared with.
        session: where they are sent.
        together: make them at the same time, after each was made alone. Any of them may break the rule.
        times: make them again up to so many times, for what does not show every time.

    Raises:
        Over: nothing may be sent any more.
    """
    return _first(times, lambda: _mistake(rule_code, _made(rule_code, cases, session, together), session))


def assert_fixed(
    rule_code: str, cases: Sequence[Case], session: Session, *, together: bool = False, times: int = 1
) -> None:
    """Make calls and see that they break a rule no more; the arguments are those of `reproduces`.

    A provider that does not answer them, or refuses the right authorization, has not been fixed either.

    Raises:
        MemmockFailure: the rule is broken, or that cannot be told.
        Over: nothing may be sent any more.
    """
    __tracebackhide__ = True

    def wrong() -> str | None:
        calls = _made(rule_code, cases, session, together)
        found = _mistake(rule_code, calls, session)
        return (
            f"{rule_code}: {RULES[rule_code].title}\n  {found}"
            if found
            else _unclear(rule_code, calls, session)
        )

    if message := _first(times, wrong):
        raise MemmockFailure(message)


def _first(times: int, judged: Callable[[], str | None]) -> str | None:
    for _ in range(times):
        if found := judged():
            return found
    return None


class _Calls:
    """Calls that were made: those before, each alone, and those that are judged."""

    def __init__(self, alone: list[Answer], judged: list[Answer]) -> None:
        self.alone = alone
        self.judged = judged


def _made(code: str, cases: Sequence[Case], session: Session, together: bool) -> _Calls:
    if together:
        alone = [session.ask(case) for case in cases] if code == "RES606" else []
        return _Calls(alone, session.ask_together(cases))
    answers = [session.ask(case) for case in cases]
    return _Calls(answers[:-1], answers[-1:])


def _mistake(code: str, calls: _Calls, session: Session) -> str | None:
    """Return how the calls break a rule."""
    if code == "RES606":
        pairs = list(zip(calls.alone, calls.judged, strict=False))
        return next(filter(None, (relations.undisturbed(*pair) for pair in pairs)), None)
    if code == "RES601":
        return next(filter(None, map(relations.gives_away, calls.judged)), None)
    if (relation := _RELATIONS.get(code)) is not None:
        answers = [*calls.alone, *calls.judged]
        return relation(answers[-2], answers[-1]) if len(answers) > 1 else None
    found = (each for answer in calls.judged for each in _violations(answer, session) if each.code == code)
    return next((f"{each.place}: {each.message}" for each in found), None)


def _violations(answer: Answer, session: Session) -> list[Violation]:
    """Return what is wrong with one answer; a wrong authorization, and a query told as a memory, included."""
    found = session.violations(answer)
    if answer.case.authorization is not None and (answer.status >= 500 or 300 <= answer.status < 400):
        message = f"should be 4xx for a wrong authorization; this is {answer.status}"
        found.append(Violation(RULES["RES002"], "status", "", message, str(answer.status)))
    query = answer.case.fields.get("query")
    if isinstance(query, str) and len(query) >= _LONG_QUERY:
        for number, memory in enumerate(answer.memories or ()):
            summary = memory.get("summary") if isinstance(memory, dict) else None
            if isinstance(summary, str) and query in summary:
                place = f"/memories/{number}/summary"
                found.append(Violation(RULES["RES402"], "body", place, "repeats the query"))
    return found


def _unclear(code: str, calls: _Calls, session: Session) -> str | None:
    """Return why calls that do not break a rule do not show that the provider keeps it."""
    for answer in (*calls.alone, *calls.judged):
        if answer.reply is None:
            return f"it cannot be told: there was no reply, {answer.failure}"
        if code in _OF_ERRORS or _may_be_refused(answer):
            continue
        if any(found.code == "RES001" for found in _violations(answer, session)):
            return f"it cannot be told: the retrieval was answered with {answer.status}"
    return None


def _may_be_refused(answer: Answer) -> bool:
    """Whether an answer is a refusal that a provider may give: of what is odd, too long, or in chunks."""
    odd = any(found.code != "REQ004" for found in request_violations(answer.request))
    return answer.status in (411, 413) or (odd and 400 <= answer.status <= 499)


# ---- without secrets


def secrets_of(target: Target, cases: Iterable[Case] = ()) -> tuple[str, ...]:
    """Return what must not be shown of a target and of calls to it: no value shorter than 4 characters.

    An authorization that was altered for a call tells the right one too, and so does one in lower case, as
    a provider may repeat it.
    """
    right = (target.authorization or "").strip()
    found = [right, right.lower(), right.upper()]
    found += [value for name, value in target.headers if SECRET_NAME.search(name)]
    url = urlsplit(target.url)
    found += [url.password or ""]
    found += [
        case.authorization
        for case in cases
        if case.authorization and right and _has_part(right, case.authorization)
    ]
    trimmed = (value.strip() for value in found)
    return tuple(dict.fromkeys(value for value in trimmed if len(value) >= _SHORTEST_SECRET))


def made_from(right: str, sent: str, name: str = "AUTHORIZATION") -> str:
    """Return a Python expression that makes `sent` from the right authorization.

    Args:
        right: the right one; no part of it is in the expression.
        sent: what was sent instead.
        name: what stands for the right one in the expression.
    """
    if not right or sent == right:
        return name if right else repr(sent)
    for change in ("lower", "upper", "swapcase"):
        if sent == getattr(right, change)():
            return f"{name}.{change}()"
    terms: list[str] = []
    literal = ""
    for part in _parts(right, sent):
        if isinstance(part, str):
            literal += part
            continue
        if literal:
            terms.append(_quoted(literal))
            literal = ""
        start, end, change = part
        terms.append(_slice(name, start, end, len(right)) + (f".{change}()" if change else ""))
    if literal or not terms:
        terms.append(_quoted(literal))
    return " + ".join(terms)


def _quoted(text: str) -> str:
    return repr(text) if '"' in text or "'" in text else f'"{repr(text)[1:-1]}"'


def _has_part(right: str, sent: str) -> bool:
    """Whether there is more of the right authorization in another one than its scheme, which is no secret."""
    scheme = re.match(r"[A-Za-z]+ +", right)
    free = scheme.end() if scheme else 0
    return any(part[1] > free for part in _parts(right, sent) if not isinstance(part, str))


_CHANGES: dict[str, Callable[[str], str]] = {"": str, "lower": str.lower, "upper": str.upper}


def _parts(right: str, sent: str) -> Iterator[str | tuple[int, int, str]]:
    """Yield the characters of a text, and in place of those that are in `right` where they are there.

    The longest part is taken each time, in any case; the third element says how its case was changed, empty
    for not at all.
    """
    known, text = right.lower(), sent.lower()
    if len(known) != len(right) or len(text) != len(sent):  # as of "İ": what is where cannot be told
        known, text = right, sent
    at = 0
    while at < len(sent):
        size = _SHORTEST_PART
        if text[at : at + size] not in known or at + size > len(sent):
            yield sent[at]
            at += 1
            continue
        while at + size < len(sent) and text[at : at + size + 1] in known:
            size += 1
        part = text[at : at + size]
        start = at if known.startswith(part, at) else known.index(part)
        yield from _runs(right, start, sent[at : at + size])
        at += size


def _runs(right: str, start: int, sent: str) -> Iterator[str | tuple[int, int, str]]:
    """Yield the parts of `right` from `start` on that make `sent`, each changed in one way."""
    first, ways = 0, tuple(_CHANGES)
    for at, char in enumerate(sent):
        mine = tuple(way for way, change in _CHANGES.items() if change(right[start + at]) == char)
        if left := tuple(way for way in ways if way in mine):
            ways = left
            continue
        if first < at:
            yield start + first, start + at, ways[0]
        first, ways = at, mine
        if not mine:
            yield char
            first, ways = at + 1, tuple(_CHANGES)
    if first < len(sent):
        yield start + first, start + len(sent), ways[0]


def _slice(name: str, start: int, end: int, size: int) -> str:
    if (start, end) == (0, size):
        return name
    first = start if start <= size // 2 else start - size
    last = end if end <= size // 2 else end - size
    return f"{name}[{first or ''}:{last or ''}]"
