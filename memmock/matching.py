"""How a retrieval that was made differs from one that was expected."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar

from memmock.contract import Retrieval

FIELDS: tuple[str, ...] = tuple(spec.name for spec in fields(Retrieval))

T = TypeVar("T")


class Difference(NamedTuple):
    """A field that is not as expected; None stands for an absent one."""

    field: str
    expected: Any
    received: Any

    def __str__(self) -> str:
        return f"{self.field:<14} expected {_shown(self.expected)}   received {_shown(self.received)}"


def differences(expected: Mapping[str, Any], received: Mapping[str, Any]) -> list[Difference]:
    """Return the expected fields that differ, in the order in which they are expected.

    Only what is expected is compared, so an empty `expected` equals everything. `memory_types` is compared
    as a set, an absent field equals None, and `true` is not 1. An expected value may be any object that
    knows how to compare itself, as `unittest.mock.ANY`.
    """
    return [
        Difference(name, value, received.get(name))
        for name, value in expected.items()
        if not _same(name, value, received.get(name))
    ]


def closest(expected: Mapping[str, Any], candidates: Iterable[tuple[T, Mapping[str, Any]]]) -> T | None:
    """Return the candidate that differs in the fewest fields; None when there is no candidate.

    On a tie the earliest wins, so the same miss is reported the same way on every run.
    """
    ranked = ((len(differences(expected, received)), n, it) for n, (it, received) in enumerate(candidates))
    best = min(ranked, key=lambda entry: entry[:2], default=None)
    return best and best[2]


def _same(name: str, expected: Any, received: Any) -> bool:
    if name == "memory_types" and isinstance(expected, list | tuple | set) and isinstance(received, list):
        return {str(kind) for kind in expected} == {str(kind) for kind in received}
    return bool(expected == received) and isinstance(expected, bool) == isinstance(received, bool)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    try:
        text = json.dumps(sorted(value) if isinstance(value, set) else value, ensure_ascii=False)
    except TypeError:
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
