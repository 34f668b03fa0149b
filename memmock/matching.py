"""When two retrievals are the same, how they differ, and which one is the nearest."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from memmock import strictjson
from memmock.contract import DEFAULT_MAX_RESULTS, Retrieval
from memmock.errors import MemmockError
from memmock.http import Request

FIELDS: tuple[str, ...] = tuple(spec.name for spec in fields(Retrieval))

MATCH_ON: tuple[str, ...] = ("method", "path", "query", "memory_types", "time_hint", "max_results")
"""What must be the same by default; `live_id` and `reason` vary from run to run [ours]."""

_OF_HTTP: dict[str, Callable[[Request], Hashable]] = {
    "method": lambda request: request.method,
    "path": lambda request: request.path,
    "target": lambda request: request.target,
}
_DEFAULTS: dict[str, Hashable] = {
    "memory_types": frozenset(), "max_results": DEFAULT_MAX_RESULTS,
    "time_hint": "", "reason": "", "live_id": "",
}  # fmt: skip
"""What an absent field means."""

T = TypeVar("T")


class Difference(NamedTuple):
    """A field that is not as expected; None stands for an absent one."""

    field: str
    expected: Any
    received: Any

    def __str__(self) -> str:
        return f"{self.field:<14} expected {_shown(self.expected)}   received {_shown(self.received)}"


class Matcher:
    """Tells which requests are the same retrieval.

    Text is compared in Unicode form NFC, `memory_types` as a set; an absent field, null and the default are
    the same; neither the order of names nor the form of a number matters, and `true` is not 1. Of names that
    are repeated the last one counts. A body that is no JSON object, or is nested more than 100 deep, is
    compared as a whole.

    Args:
        match_on: what must be the same: fields of a retrieval, `method`, `path`, `target` (the path with its
            query string) and `body` (all of it, unknown fields too).

    Raises:
        MemmockError: a name is none of these.
    """

    def __init__(self, match_on: Iterable[str] = MATCH_ON) -> None:
        known = (*_OF_HTTP, *FIELDS, "body")
        self.match_on = tuple(dict.fromkeys(match_on))
        if unknown := [name for name in self.match_on if name not in known]:
            raise MemmockError(f"cannot match on {', '.join(unknown)}: it must be of {', '.join(known)}")
        if not self.match_on:
            raise MemmockError(f"nothing to match on: name some of {', '.join(known)}")
        self._of_http = [_OF_HTTP[name] for name in self.match_on if name in _OF_HTTP]
        self._fields = [name for name in self.match_on if name in FIELDS]
        self._keyed = sorted(self._fields, key="query".__ne__)  # the query first: `nearest` wants it there
        self._body = "body" in self.match_on

    def key(self, request: Request) -> Hashable:
        """Return what is equal for the same requests and for no others."""
        http = tuple([part(request) for part in self._of_http])
        asked = _object(request.body)
        if asked is None:
            return (http, request.body) if self._fields or self._body else (http,)
        get = asked.get
        key = (http, *[_canonical(name, get(name)) for name in self._keyed])
        return (*key, _frozen(asked)) if self._body else key

    def facts(self, request: Request) -> dict[str, Any]:
        """Return what the request has of all that must be the same, as it was sent."""
        asked = _object(request.body)
        facts: dict[str, Any] = {name: _OF_HTTP[name](request) for name in self.match_on if name in _OF_HTTP}
        if asked is not None:
            facts |= {name: asked.get(name) for name in self._fields}
        if self._body or (self._fields and asked is None):
            facts["body"] = request.body.decode(errors="replace") if asked is None else asked
        return facts

    def differences(self, recorded: Request, received: Request) -> list[Difference]:
        """Return what makes two requests different ones, in the order of `match_on`."""
        one, other = self.facts(recorded), self.facts(received)
        names = [*one, *(name for name in other if name not in one)]
        return [
            Difference(name, one.get(name), other.get(name))
            for name in names
            if _canonical(name, one.get(name)) != _canonical(name, other.get(name))
        ]


def asked(request: Request) -> str:
    """Return what a request asks for, to read: `"称呼" (preference)`, or the request line."""
    retrieval = _object(request.body)
    if retrieval is None or "query" not in retrieval:
        return f"{request.method} {request.target}"
    rest = [
        f"{name}={_shown(retrieval[name])}"
        for name in FIELDS[1:]
        if retrieval.get(name) not in (None, "", [])
    ]
    return " ".join([_shown(retrieval["query"]), *rest])


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


class Keys:
    """Keys of a `Matcher`, each with the first number that has it; finds those that are nearest to another.

    Recordings differ in what they ask for, and agree in one of a few ways in everything else. So it is enough
    to look at each of these ways: that takes as long for many recordings as for few.
    """

    def __init__(self) -> None:
        self._ways: dict[tuple[Any, ...], dict[Hashable, int]] = {}

    def add(self, key: Hashable, number: int) -> None:
        """Take in a number; they come in ascending order."""
        query, rest = _split(key)
        self._ways.setdefault(rest, {}).setdefault(query, number)

    def nearest(self, key: Hashable, most: int) -> list[int]:
        """Return the first numbers, at most `most`, of the keys that differ in the fewest parts."""
        query, rest = _split(key)
        alike: list[Iterable[int]] = []
        least = -1
        for other, numbers in self._ways.items():
            same = numbers.get(query)
            count = sum(map(_differ, rest, other)) + abs(len(rest) - len(other)) + (same is None)
            if alike and count > least:
                continue
            if count < least:
                alike.clear()
            least = count
            alike.append(numbers.values() if same is None else (same,))
            if least <= 1 and len(alike) >= most:  # none is nearer, and there are enough
                break
        return sorted(chain.from_iterable(islice(each, most) for each in alike))[:most]


def _differ(one: Any, other: Any) -> bool:
    return bool(one != other)


def _split(key: Any) -> tuple[Hashable, tuple[Any, ...]]:
    """Return what a key asks for, and its other parts."""
    http, *rest = key
    return (rest[0] if rest else None), (*http, *rest[1:])


def _object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a body holds; None when it holds none, or one that is nested too deeply."""
    try:
        value = strictjson.parse_quickly(body)
    except ValueError:
        return None
    if type(value) is not dict or (body.count(b"[") + body.count(b"{") > _DEEPEST and _is_deep(value)):
        return None
    return value


_DEEPEST = 100
"""How deeply a body may be nested that is looked into: far less than Python can follow [ours]."""


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        items = chain.from_iterable(each.values() if type(each) is dict else each for each in level)
        level = [item for item in items if type(item) in (dict, list)]
    return bool(level)


def _canonical(name: str, value: Any) -> Hashable:
    """Return a value of a field in the form in which equal ones are equal."""
    if type(value) is str:
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if value is None:
        return _DEFAULTS.get(name)
    if name == "memory_types" and type(value) is list:
        return frozenset([_frozen(kind) for kind in value])
    return _frozen(value)


def _frozen(value: Any) -> Hashable:
    """Return a JSON value as something that can be looked up; numbers are equal by value, `true` to none."""
    if type(value) is str:
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if type(value) is bool:
        return ("true",) if value else ("false",)
    if type(value) is list:
        return ("array", *map(_frozen, value))
    if type(value) is dict:
        return ("object", frozenset((_frozen(name), _frozen(item)) for name, item in value.items()))
    return value  # type: ignore[no-any-return]  # a number or null


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
