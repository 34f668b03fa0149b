"""JSON as the contract means it: UTF-8, one value, each name once, no `NaN`.

Python's own parser is more forgiving than that, and stops at the first mistake. `read` parses what can be
parsed and lists every flaw with its place; `parse` is the fast way for input that should be right.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, Final, Literal, NamedTuple

FlawKind = Literal["utf-8", "bom", "syntax", "depth", "duplicate", "nan", "range", "surrogate"]


class Flaw(NamedTuple):
    """One thing that is wrong with a JSON text.

    `pointer` is an RFC 6901 JSON pointer; it is empty for the text as a whole.
    """

    kind: FlawKind
    pointer: str
    detail: str


class Unreadable:
    """The type of `UNREADABLE`."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Final = Unreadable()
"""Stands for the value of a text that holds none."""


def pointer(*steps: str | int) -> str:
    """Return the JSON pointer (RFC 6901) that takes `steps` from the top."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def parse(data: bytes) -> Any:
    """Return the value of a JSON text that should have no flaw.

    Lone surrogates and numbers beyond a double's range pass: they are JSON, if unwise.

    Raises:
        ValueError: the text has a flaw; `read` tells which.
    """
    try:
        return _STRICT.decode(data.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read(data: bytes) -> tuple[Any, list[Flaw]]:
    """Return the value of a JSON text, or `UNREADABLE`, and everything that is wrong with the text.

    As much is read as can be: invalid bytes are read as U+FFFD, a byte-order mark and what follows the
    first value are passed over, the last of several equal names wins.
    """
    flaws: list[Flaw] = []
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        flaws.append(Flaw("utf-8", "", f"byte {data[error.start]:#04x} at offset {error.start}"))
        text = data.decode(errors="replace")
    if text.startswith("\ufeff"):
        flaws.append(Flaw("bom", "", "the text starts with a byte-order mark"))
        text = text[1:]
    start = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches the empty string
    try:
        value, end = _LENIENT.raw_decode(text, start)
    except json.JSONDecodeError as error:
        what = "the text is empty" if start == len(text) else f"{error.msg} at character {error.pos}"
        return UNREADABLE, [*flaws, Flaw("syntax", "", what)]
    except RecursionError:
        return UNREADABLE, [*flaws, Flaw("depth", "", "nested too deeply to be read")]
    rest = _SPACE.match(text, end).end()  # type: ignore[union-attr]
    if rest < len(text):
        flaws.append(Flaw("syntax", "", f"more text after the value, at character {rest}"))
    return value, flaws + _flaws_inside(value)


class _Repeated(dict[str, Any]):
    """An object in which names occur more than once."""

    names: list[str]


class _Constant(float):
    """`NaN`, `Infinity` or `-Infinity`, which Python reads and JSON does not have."""

    text: str


_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name occurs more than once in an object")
    return value


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _note_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    repeated = _Repeated(value)
    repeated.names = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    return repeated


def _note_constant(text: str) -> _Constant:
    value = _Constant(text)
    value.text = text
    return value


def _any_int(text: str) -> int | float:
    """Read an integer of any length; Python refuses to build one of more than 4,300 digits from text."""
    try:
        return int(text)
    except ValueError:
        return float(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_refuse_repeated, parse_constant=_refuse_constant, parse_int=_any_int
)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_note_repeated, parse_constant=_note_constant, parse_int=_any_int
)


def _flaws_inside(top: Any) -> list[Flaw]:
    """Return the flaws of a parsed value, in the order of the text."""
    flaws: list[Flaw] = []
    waiting: list[tuple[str, Any]] = [("", top)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value, _Repeated):
                flaws += [
                    Flaw("duplicate", place + pointer(name), f"the name {name!r} occurs more than once")
                    for name in value.names
                ]
            flaws += [Flaw("surrogate", place, "a name holds half of a surrogate pair")
                      for name in value if _SURROGATE.search(name)]  # fmt: skip
            waiting += [(place + pointer(name), item) for name, item in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(f"{place}/{n}", item) for n, item in reversed(list(enumerate(value)))]
        elif isinstance(value, str) and _SURROGATE.search(value):
            flaws.append(Flaw("surrogate", place, "the text holds half of a surrogate pair"))
        elif isinstance(value, _Constant):
            flaws.append(Flaw("nan", place, f"{value.text} is not JSON"))
        elif isinstance(value, float) and not math.isfinite(value):
            flaws.append(Flaw("range", place, "the number is beyond the range of a double"))
    return flaws
