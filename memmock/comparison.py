"""How the answer of a provider differs from the one that was recorded.

What is compared is what a consumer reads: the status, the media type and the body. Secrets are for the
caller, who hides them on both sides in the same way first.
"""

from __future__ import annotations

import contextlib
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

from memmock import strictjson
from memmock.http import Reply
from memmock.matching import Difference


class Null:
    """The type of `NULL`."""

    def __repr__(self) -> str:
        return "null"


NULL: Final = Null()
"""Stands for the null of JSON in a difference, where None stands for what is absent."""

_LEAD, _SHOWN = 20, 60
"""How much of a text is shown before and after the place where it starts to differ."""


def reply_differences(recorded: Reply, now: Reply) -> list[Difference]:
    """Return what a provider answers otherwise than it was recorded: the status first, then type and body.

    JSON is compared by value, field by field: neither the order of names, the form of numbers nor white space
    matters, and `true` is not 1. A field is named by its JSON pointer in the recorded body. Objects in an
    array are the same when they have the same `id`, or are equal; so one that has come, gone or moved is one
    difference. Any other body is compared byte by byte. Of the headers only the media type counts.
    """
    found = []
    if recorded.status != now.status:
        found.append(Difference("status", recorded.status, now.status))
    before, after = _media_type(recorded), _media_type(now)
    if before != after:
        found.append(Difference("Content-Type", before, after))
    return found + _body_differences(recorded.body, now.body)


def reply_key(reply: Reply) -> Hashable:
    """Return what is equal for replies without a difference, and for no others."""
    value = _json(reply.body)
    body: object = reply.body
    if value is not _NO_JSON:
        with contextlib.suppress(RecursionError):
            body = json.dumps(_plain(value), sort_keys=True)
    return reply.status, _media_type(reply), body


def _media_type(reply: Reply) -> str | None:
    media = reply.header("Content-Type")
    return None if media is None else media.partition(";")[0].strip().lower()


# ---- bodies

_NO_JSON: Final = object()


def _body_differences(recorded: bytes, now: bytes) -> list[Difference]:
    if recorded == now:
        return []
    before, after = _json(recorded), _json(now)
    if before is not _NO_JSON and after is not _NO_JSON:
        try:
            return list(_value_differences(before, after, ()))
        except RecursionError:
            pass  # so deep that only the text can be shown
    return [Difference("body", *_text_around(recorded, now))]


def _json(body: bytes) -> Any:
    try:
        return strictjson.parse_quickly(body)
    except ValueError:
        return _NO_JSON


def _plain(value: Any) -> Any:
    """Return a JSON value in which equal numbers are the same number."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _text_around(recorded: bytes, now: bytes) -> tuple[Any, Any]:
    """Return two bodies as they can be shown: from a little before the first place where they differ."""
    try:
        one, other = recorded.decode(), now.decode()
    except UnicodeDecodeError:
        return _bytes_shown(recorded), _bytes_shown(now)
    same = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    start = max(0, (min(len(one), len(other)) if same is None else same) - _LEAD)
    return tuple(_part(text, start) if text else None for text in (one, other))  # type: ignore[return-value]


def _part(text: str, start: int) -> str:
    end = start + _LEAD + _SHOWN - 10
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _bytes_shown(body: bytes) -> str | None:
    if not body:
        return None
    return f"{len(body):,} bytes, {body[:8].hex(' ')}{' …' if len(body) > 8 else ''}"


# ---- JSON values

Steps = tuple[str | int, ...]


def _value_differences(recorded: Any, now: Any, steps: Steps) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in [*recorded, *(name for name in now if name not in recorded)]:
            if name in recorded and name in now:
                yield from _value_differences(recorded[name], now[name], (*steps, name))
            else:
                place = strictjson.pointer(*steps, name)
                yield Difference(place, _shown(recorded, name), _shown(now, name))
    elif isinstance(recorded, list) and isinstance(now, list):
        yield from _list_differences(recorded, now, steps)
    elif not _same(recorded, now):
        yield Difference(strictjson.pointer(*steps) or "body", _or_null(recorded), _or_null(now))


def _shown(fields: dict[str, Any], name: str) -> Any:
    return _or_null(fields[name]) if name in fields else None


def _or_null(value: Any) -> Any:
    return NULL if value is None else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _list_differences(recorded: list[Any], now: list[Any], steps: Steps) -> Iterator[Difference]:
    pairs = _pairs(recorded, now)
    moved = _moved(pairs)
    for n, m in pairs:
        if n is None or m is None:
            at, value = (m, now[m]) if m is not None else (n, recorded[n])  # type: ignore[index]
            place = f"{strictjson.pointer(*steps, at)}{_called(value)}"  # type: ignore[arg-type]
            shown = _or_null(value)
            yield Difference(place, None if n is None else shown, shown if n is None else None)
            continue
        if n in moved:
            yield Difference(f"{strictjson.pointer(*steps, n)}{_called(recorded[n])} place", n + 1, m + 1)
        yield from _value_differences(recorded[n], now[m], (*steps, n))


def _called(value: Any) -> str:
    name = value.get("id") if isinstance(value, dict) else None
    return f" (id {name})" if isinstance(name, str | int) else ""


def _pairs(recorded: Sequence[Any], now: Sequence[Any]) -> list[tuple[int | None, int | None]]:
    """Return which items of two arrays belong together, by number; None where there is no other one.

    In the order of `recorded`, what has come at the end.
    """
    if not all(isinstance(item, dict) for item in (*recorded, *now)):
        both = min(len(recorded), len(now))
        return [
            *((n, n) for n in range(both)),
            *((n, None) for n in range(both, len(recorded))),
            *((None, n) for n in range(both, len(now))),
        ]
    there = {key: n for n, key in enumerate(_keys(now))}
    found: dict[int, int | None] = {n: there.pop(key, None) for n, key in enumerate(_keys(recorded))}
    # what has no id and is not the same any more has changed, in order
    left = [m for m in there.values() if not _called(now[m])]
    for n, m in found.items():
        if m is None and left and not _called(recorded[n]):
            found[n] = left.pop(0)
    taken = set(found.values())
    return [*found.items(), *((None, m) for m in range(len(now)) if m not in taken)]


def _keys(items: Sequence[Any]) -> list[Hashable]:
    """Return what tells the objects of an array apart: the id or everything, and how many came before."""
    seen: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for item in items:
        key = _called(item) or json.dumps(_plain(item), sort_keys=True)
        keys.append((key, seen[key]))
        seen[key] += 1
    return keys


def _moved(pairs: Sequence[tuple[int | None, int | None]]) -> set[int]:
    """Return the recorded numbers of the items that moved: as few as there can be.

    All others are a longest run that is in order on both sides.
    """
    places = [(n, m) for n, m in pairs if n is not None and m is not None]
    ends: list[int] = []  # the smallest end of a run of each length
    runs: list[int] = []  # how long the run is that ends at each place
    for _, m in places:
        at = bisect_left(ends, m)
        ends[at : at + 1] = [m]
        runs.append(at + 1)
    kept, length, limit = set(), len(ends), None
    for (n, m), run in zip(reversed(places), reversed(runs), strict=True):
        if run == length and (limit is None or m < limit):
            kept.add(n)
            length, limit = length - 1, m
    return {n for n, _ in places} - kept
