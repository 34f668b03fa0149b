"""Replies at the edges, as a list: the same each time, each with one oddity, the likeliest trouble first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from memmock.consumer_conformance import parts
from memmock.consumer_conformance.making import made
from memmock.consumer_conformance.parts import Change
from memmock.reply_case import ReplyCase


def edges(max_response_bytes: int) -> tuple[ReplyCase, ...]:
    """Return the cases; no two of them are the same. Those that take the consumer's whole time come last.

    Args:
        max_response_bytes: the limit of the consumer.
    """
    return tuple(dict.fromkeys(_cases(partial(made, max_response_bytes=max_response_bytes))))


def _cases(make: partial[ReplyCase]) -> Iterator[ReplyCase]:
    for count in (1, 0, 6, 60, 20):
        yield make(count=count)
    for change in (*parts.SUMMARIES[:12], *_fields(), *parts.UNUSABLE[:12]):
        yield make(change, count=3, place=1)
    for change in (*parts.TOPS, *parts.ITEMS, *parts.WRITES, *parts.HUGE[:3], *parts.BLANK[:2]):
        yield make(change, count=3, place=1)
    for change in (*parts.NO_JSON, *parts.NO_RESPONSE, *parts.OPEN_JSON, *parts.NESTED[:4]):
        yield make(change)
    for change in (*parts.HEADERS, *parts.OPEN_HEADERS, *parts.GOOD_STATUSES, *parts.STATUSES):
        yield make(change, count=2)
    for change in (*parts.STYLES, *parts.OPEN_STYLES, *parts.CODINGS, *parts.BROKEN):
        yield make(change, count=2)
    for pair in (*parts.CUT_BODIES, *_sizes()):
        yield make(*pair, count=2)
    for change in (*parts.SLOW_STYLES, *parts.STALLS, *parts.LATE):
        yield make(change, count=2)


def _fields() -> Iterator[Change]:
    """Changes of optional fields: the first few of each."""
    seen: Counter[str] = Counter()
    for change in parts.OPTIONAL:
        name = change[1][0]
        seen[name] += 1
        if seen[name] <= _OF_A_FIELD:
            yield change


_OF_A_FIELD = 5


def _sizes() -> Iterator[tuple[Change, ...]]:
    """Bodies around the limit, framed and coded in every way."""
    for by in (0, 1):
        for filler in parts.FILLERS:
            yield (("size", (by, filler)),)
        for framing in ("chunked", "close"):
            yield ("size", (by, "茶")), ("style", (("framing", framing),))
        yield ("size", (by, "a")), ("style", (("coding", "gzip"),))
    yield ("size", (-10, "a")), ("style", (("coding", "gzip stored"),))
    yield ("size", (100_000, "a")), ("style", (("coding", "gzip"),))
    yield (("size", (100_000, "many")),)
    yield ("size", (100_000, "a")), ("status", (500, (), None))
