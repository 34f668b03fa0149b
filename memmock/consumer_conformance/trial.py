"""One trial of a search, a reply to a retrieval: how it is drawn, made smaller, and compared with another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from memmock import strategies
from memmock.conformance.case import Case
from memmock.conformance.known import DIRECTORY, Failures
from memmock.conformance.shrinking import Budget, shrunk
from memmock.consumer_conformance import acts
from memmock.consumer_conformance.act import PLAIN, Act
from memmock.consumer_conformance.edges import edges
from memmock.consumer_conformance.shrinking import shrink
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.reply_case import ReplyCase

SMALL_LIMIT = 4096
"""The other limit that replies are made for."""
_SHRINK_CALLS = 250
_MOST_ODDITIES = 10_000
_PLAIN_REPLY = ReplyCase()


@dataclass(frozen=True)
class Trial:
    """One reply to one retrieval."""

    case: ReplyCase = _PLAIN_REPLY
    retrieval: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES

    def act(self) -> Act:
        """Return the act that plays it."""
        return Act(
            name="generated",
            summary="A reply that was generated.",
            make=lambda stage: self.case.reply(stage.timeout_s),
            retrieval=self.retrieval,
            max_response_bytes=self.max_response_bytes,
            case=self.case,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as data."""
        entry: dict[str, Any] = {"reply": self.case.to_json()}
        if self.retrieval != PLAIN:
            entry["retrieval"] = dict(self.retrieval)
        if self.max_response_bytes != DEFAULT_MAX_RESPONSE_BYTES:
            entry["max_response_bytes"] = self.max_response_bytes
        return entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Trial:
        """Return the one that was written as data.

        Raises:
            ValueError, KeyError, TypeError: the data are not one.
        """
        return cls(
            ReplyCase.from_json(entry["reply"]),
            dict(entry.get("retrieval", PLAIN)),
            int(entry.get("max_response_bytes", DEFAULT_MAX_RESPONSE_BYTES)),
        )


def store_of(name: str, directory: str = DIRECTORY) -> Failures[Trial]:
    """Return the file of what failed with a consumer of this name before."""
    return Failures(f"consumer {name}", Trial.to_json, Trial.from_json, directory)


def smaller(trial: Trial, still: Callable[[Trial], bool], until: float) -> None:
    """Ask of ever smaller trials whether they still show it, not later than `until`."""
    best = trial

    def takes(other: Trial) -> bool:
        nonlocal best
        if other == best or not still(other):
            return False
        best = other
        return True

    takes(replace(trial, case=_PLAIN_REPLY, retrieval=PLAIN))
    takes(replace(best, retrieval=PLAIN))
    takes(replace(best, max_response_bytes=DEFAULT_MAX_RESPONSE_BYTES))
    if best.retrieval != PLAIN:
        takes(replace(best, case=_PLAIN_REPLY))
        shrunk(
            Case(dict(best.retrieval)),
            lambda case: takes(replace(best, retrieval=dict(case.fields))),
            Budget(_SHRINK_CALLS, until),
        )
    if best.case != _PLAIN_REPLY:
        shrink(best.case, lambda case: takes(replace(best, case=case)), _SHRINK_CALLS)


def without(trial: Trial, cause: Trial) -> Iterator[Trial]:
    """Yield a trial without what made another one fail."""
    plain = _PLAIN_REPLY
    if cause.retrieval != PLAIN and trial.retrieval != PLAIN:
        yield replace(trial, retrieval=PLAIN)
    fields = zip(plain.style._fields, plain.style, cause.case.style, strict=True)
    changes: dict[str, Any] = {name: value for name, value, mine in fields if value != mine}
    case = trial.case
    if changes:
        case = replace(case, style=case.style._replace(**changes))
    if cause.case.headers != plain.headers:
        case = replace(case, headers=plain.headers)
    if cause.case.status != plain.status:
        case = replace(case, status=plain.status)
    if case != trial.case:
        yield replace(trial, case=case)
    elif cause.case.body != plain.body and trial.case.body != plain.body and _alike(cause, trial):
        yield replace(trial, case=replace(trial.case, body=plain.body))


def _alike(cause: Trial, trial: Trial) -> bool:
    """Whether the body of one trial has what is odd about that of another."""
    return _oddities(cause.case.body) <= _oddities(trial.case.body)


def _oddities(body: bytes) -> set[tuple[str, ...]]:
    """Return what a body has: the types and the odd characters at each place, or that it is no JSON."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {("no JSON", body[:3].hex())}
    found: set[tuple[str, ...]] = set()
    left: list[tuple[str, Any]] = [("", value)]
    while left and len(found) < _MOST_ODDITIES:
        place, item = left.pop()
        found.add((place, type(item).__name__))
        if isinstance(item, dict):
            left += [(f"{place}/{name}", each) for name, each in item.items()]
        elif isinstance(item, list):
            left += [(f"{place}/*", each) for each in item]
        elif isinstance(item, str):
            found |= {(place, char) for char in item if not char.isalnum()}
        else:
            found.add((place, repr(item)))
    return found


def edge_trials() -> Iterator[Trial]:
    """Yield the trials at the edges, for both limits, and retrievals of every kind."""
    for case in edges(DEFAULT_MAX_RESPONSE_BYTES):
        yield Trial(case)
    for case in edges(SMALL_LIMIT):
        if len(case.body) >= SMALL_LIMIT // 2:
            yield Trial(case, max_response_bytes=SMALL_LIMIT)
    for query in acts.QUERIES.values():
        yield Trial(retrieval={"query": query})


def _known(request: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that a consumer can be asked for."""
    return {name: value for name, value in request.items() if name in PLAIN}


def trials() -> st.SearchStrategy[Trial]:
    """Strategy for trials."""
    usual = strategies.memory_replies()
    small = strategies.memory_replies(max_response_bytes=SMALL_LIMIT)
    asked = st.one_of(st.just(PLAIN), st.just(PLAIN), strategies.memory_requests().map(_known))
    of_usual, of_small = st.builds(Trial, usual, asked), st.builds(Trial, small, asked, st.just(SMALL_LIMIT))
    return st.integers(0, 7).flatmap(lambda n: of_small if n == 7 else of_usual)
