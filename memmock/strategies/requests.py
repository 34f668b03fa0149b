"""Hypothesis strategies for what the contract allows: queries, requests, and the ways to write them.

They shrink towards a plain request. For tests of a provider, and what fuzzing draws from.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import permutations
from typing import Any, Final

from hypothesis import strategies as st

from memmock.conformance.boundaries import (
    CHANGES,
    EXTRAS,
    HINTS,
    LIVE_IDS,
    MOST_RESULTS,
    ODD,
    PHRASES,
    REASONS,
    WORDS,
    said,
)
from memmock.conformance.case import PLAIN, Case, Form
from memmock.contract import MEMORY_TYPES

MOST_CHARS: Final = 20_000
"""No query is longer."""


class _Mark(Enum):
    """What is drawn in place of a value that takes more choices, or of none."""

    ABSENT = 0
    CHAR = 1
    DRAWN = 2
    JOINED = 3
    REPEATED = 4


_BLOCKS: Final = (
    (0x61, 0x7A), (0x20, 0x7E), (0x4E00, 0x9FFF), (0x00, 0x1F), (0x7F, 0xA0), (0xA1, 0xFF),  # Latin, CJK
    (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x530, 0x5FF),  # marks, Greek … Hebrew
    (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF),  # Arabic … Thai, Jamo
    (0x2000, 0x206F), (0x2070, 0x209F), (0x2100, 0x218F), (0x2200, 0x22FF), (0x2460, 0x24FF),  # ² ℃ ①
    (0x2600, 0x27BF), (0x3000, 0x303F), (0x3040, 0x30FF), (0x3200, 0x33FF), (0xAC00, 0xD7A3),  # ☕ kana
    (0xE000, 0xF8FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFEFF), (0xFF00, 0xFFEF),  # ﬁ, full width
    (0xFFF0, 0xFFFF), (0x10000, 0x1034F), (0x1D400, 0x1D7FF), (0x1F100, 0x1F1FF), (0x1F300, 0x1F64F),  # emoji
    (0x1F680, 0x1F6FF), (0x1F900, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE007F), (0x10FF00, 0x10FFFF),
)  # fmt: skip
"""First and last code points of blocks that are drawn from alike; none is a surrogate."""

_CHARS: Final = tuple(
    chr(point) for first, last in _BLOCKS for point in range(first, last + 1, max(1, (last - first) // 256))
)
_ODD: Final = tuple(text for texts in ODD.values() for text in texts)
_TYPE_LISTS: Final = (
    *((kind,) for kind in MEMORY_TYPES),
    *((), MEMORY_TYPES, MEMORY_TYPES[::-1], MEMORY_TYPES[1:], MEMORY_TYPES[:3]),
    *permutations(MEMORY_TYPES, 2),
)

# How fast cases are drawn goes by the number of choices. So a choice is from a table with whole values, in
# which a mark stands for what takes more choices, and an optional field or an attribute of a form is a change
# to what is plain, one choice each, the first of which is no change. No two tables are equal, and each can be
# hashed, which is how Hypothesis tells them apart: else most of its time goes into swapping what was drawn.

_PIECES: Final = tuple(
    st.sampled_from(("", *WORDS[:most], *_ODD, *(_Mark.CHAR,) * 150)) for most in (len(WORDS), 12, 6)
)
_CHAR: Final = st.sampled_from(_CHARS)
_SEPARATOR: Final = st.sampled_from((" ", "", "，", "\n", "\t"))
_UNIT: Final = st.sampled_from(("a", "啊", "tea ", "用户喜欢", *_ODD))
_TIMES: Final = st.sampled_from((20, 60, 60, 200, 200, 1000, 4100, MOST_CHARS))
_QUERY: Final = st.sampled_from(
    (*WORDS, *PHRASES, *map(said, _ODD), *(_Mark.JOINED,) * 120, *(_Mark.REPEATED,) * 20)
)


def _query(draw: st.DrawFn) -> str:
    text = draw(_QUERY)
    if text is _Mark.REPEATED:
        return said((draw(_UNIT) * draw(_TIMES))[:MOST_CHARS])
    return _joined(draw) if text is _Mark.JOINED else str(text)


def _joined(draw: st.DrawFn) -> str:
    drawn = [draw(piece) for piece in _PIECES]
    parts = [draw(_CHAR) if part is _Mark.CHAR else str(part) for part in drawn]
    return said(draw(_SEPARATOR).join(filter(None, parts)))


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Strategy for queries: what a model asks, and what trips a provider up, alone and put together.

    Never empty, never white space only, never half of a surrogate pair; up to `MOST_CHARS` characters.
    """
    return _query(draw)


def memory_types(min_size: int = 0) -> st.SearchStrategy[list[str]]:
    """Strategy for `memory_types`: any of the kinds in any order, each at most once.

    Args:
        min_size: at least so many.
    """
    handy = [kinds for kinds in _TYPE_LISTS if len(kinds) >= min_size]
    drawn = st.lists(st.sampled_from(MEMORY_TYPES), unique=True, min_size=min_size)
    return st.one_of(st.sampled_from(handy).map(list), drawn) if handy else drawn


_Change = tuple[str, Any]


def _changes(name: str, values: Iterable[Any], times: int, more: int = 0) -> tuple[_Change, ...]:
    """Return changes of one field: to each value so many times, and to what is drawn so many times."""
    return tuple((name, value) for value in values) * times + ((name, _Mark.DRAWN),) * more


_FIELD_CHANGES: Final = (
    *_changes("memory_types", _TYPE_LISTS, 3, 40),
    *_changes("max_results", MOST_RESULTS[:-1], 24, 20),
    *_changes("time_hint", HINTS, 4, 20),
    *_changes("reason", REASONS, 10, 25),
    *_changes("live_id", LIVE_IDS, 10, 25),
    *tuple((name, _Mark.DRAWN) for name in EXTRAS) * 3,
)
_DRAWN: Final[dict[str, st.SearchStrategy[Any]]] = {
    "memory_types": memory_types(3),
    "max_results": st.integers(1, 100),
    "time_hint": queries(),
    "reason": queries(),
    "live_id": st.integers(0, 2**64 - 1).map(str),
    **{name: st.just(value) for name, value in EXTRAS.items()},
}
_NONE: Final = ("", None)
_FIELDS: Final = tuple(
    st.sampled_from((_NONE,) * plain + _FIELD_CHANGES) for plain in (500, 700, 900, 1100, 1500)
)
_FORMS: Final = tuple(st.sampled_from((_NONE,) * plain + CHANGES) for plain in (20, 80))


def _request(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {"query": _query(draw)}
    for name, value in map(draw, _FIELDS):
        if name:
            drawn = draw(_DRAWN[name]) if value is _Mark.DRAWN else value
            fields[name] = list(drawn) if isinstance(drawn, tuple) else drawn
    return fields


def _form(draw: st.DrawFn) -> Form:
    changes = [draw(change) for change in _FORMS]
    return PLAIN._replace(**{name: value for name, value in changes if name})


@st.composite
def _kept(draw: st.DrawFn) -> dict[str, Any]:
    return _request(draw)


def memory_requests(valid: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Strategy for bodies of requests: a query, and up to five other fields.

    Args:
        valid: whether they keep the contract; otherwise one thing in each of them breaks it.
    """
    return _kept() if valid else st.tuples(_kept(), st.sampled_from(_BROKEN)).map(_broken)


@st.composite
def forms(draw: st.DrawFn) -> Form:
    """Strategy for the ways to write a request: plain, or but for one or two attributes."""
    return _form(draw)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Strategy for requests that keep the contract, as they are written."""
    return Case(_request(draw), _form(draw))


_BROKEN: Final = (
    *_changes("query", (_Mark.ABSENT, "", None, 1, ["tea"], {}), 1),
    *_changes("memory_types", (None, "style", {}, ["Style"], [1], ["style", "unknown"]), 1),
    *_changes("max_results", (0, -1, 1.5, "5", None, True, []), 1),
    *_changes("time_hint", (None, 0), 1),
    *_changes("reason", (None, ["why"]), 1),
    *_changes("live_id", (None, 1, 2**63), 1),
    *(
        ("user_id", "1"),
        ("character_id", "01"),
        ("filters", {}),
        ("embedding", [0.5]),
        ("include_sensitive", True),
    ),
)


def _broken(parts: tuple[dict[str, Any], tuple[str, Any]]) -> dict[str, Any]:
    fields, (name, value) = parts
    rest = {key: other for key, other in fields.items() if key != name}
    return rest if value is _Mark.ABSENT else {**rest, name: value}
