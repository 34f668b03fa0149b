"""JSON as the contract means it: UTF-8, one value, each name once, no `NaN`.

Python's own parser is more forgiving than that, and stops at the first mistake. `read` parses what can be
parsed and lists every flaw with its place; `parse` is the fast way for input that should be right.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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


MOST_FLAWS = 20
"""How many flaws of one kind `read` lists: enough to see what is wrong, few enough to read."""


def pointer(*steps: str | int) -> str:
    """Return the JSON pointer (RFC 6901) that takes `steps` from the top."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def shortened(value: Any, width: int = 60) -> str:
    """Return a JSON value as one printable line of about `width` characters, whatever it holds.

    Arrays and objects are described, not written out. What a terminal would act on (control characters,
    marks that turn the direction of writing, lone surrogates) is escaped as JSON escapes it.
    """
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {len(value)} {'field' if len(value) == 1 else 'fields'}"
    if isinstance(value, _Constant):
        return value.text
    text = json.dumps(value[: width + 1] if isinstance(value, str) else value, ensure_ascii=False)
    return printable(text if len(text) <= width + 2 else f"{text[:width]}…")


def printable(text: str) -> str:
    """Return `text` with every character that is not printable escaped by its number in hexadecimal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


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


def parse_quickly(data: bytes) -> Any:
    """Return the same as `parse`, in less time; but of names that are repeated, the last one wins.

    Raises:
        ValueError: the text has a flaw other than that.
    """
    text = data.decode()
    try:
        value, end = _quick_scan(text, 0)
        if end == len(text):
            return value
    except (StopIteration, ValueError):
        pass  # white space in front, or an integer too long for `int`: the decoder takes them
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return _LAST_WINS.decode(text)


def read(data: bytes) -> tuple[Any, list[Flaw]]:
    """Return the value of a JSON text, or `UNREADABLE`, and what is wrong with the text.

    As much is read as can be: invalid bytes are read as U+FFFD, a byte-order mark and what follows the
    first value are passed over, the last of several equal names wins. Of each kind at most `MOST_FLAWS`
    are listed; one more, at the text as a whole, then says how many were left out.
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
    if not flaws and not _SUSPECT.search(text):  # the quick way for what is right, as nearly all is
        with suppress(ValueError, RecursionError):
            value, end = _STRICT.raw_decode(text, start)
            if end == len(text):
                return value, []
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


def walk(top: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Yield every value inside a JSON value, itself first, in the order of the text.

    Each comes with the steps that lead to it from the top. They are one list that changes as the walk goes
    on, so that a walk takes time in the size of the value and no more, however long the names are.
    """
    steps: list[str | int] = []
    yield steps, top
    levels = [_children(top)]
    while levels:
        for step, value in levels[-1]:
            steps.append(step)
            yield steps, value
            if isinstance(value, dict | list):
                levels.append(_children(value))
                break
            steps.pop()
        else:
            levels.pop()
            if steps:
                steps.pop()


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list) else iter(())


class _Repeated(dict[str, Any]):
    """An object in which names occur more than once."""

    names: list[str]


class _Constant(float):
    """`NaN`, `Infinity` or `-Infinity`, which Python reads and JSON does not have."""

    text: str


_LARGEST = sys.float_info.max
_SPACE = re.compile(r"[ \t\n\r]*")
_SUSPECT = re.compile(r"\\u[dD]|[0-9][eE]\+?[0-9]{3}|[0-9]{300}")
"""What a surrogate, or a number beyond a double, is written with."""
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
_LAST_WINS = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_any_int)
_quick_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    parse_constant=_refuse_constant
).scan_once  # type: ignore[attr-defined]  # typeshed lacks it
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_note_repeated, parse_constant=_note_constant, parse_int=_any_int
)


def _flaws_inside(top: Any) -> list[Flaw]:
    """Return the flaws of a parsed value, in the order of the text."""
    flaws: list[Flaw] = []
    counts: Counter[FlawKind] = Counter()

    def note(kind: FlawKind, steps: Iterable[str | int], detail: str) -> None:
        counts[kind] += 1
        if counts[kind] <= MOST_FLAWS:  # later ones cost no pointer: a name may fill half of the text
            flaws.append(Flaw(kind, pointer(*steps), detail))

    for steps, value in walk(top):
        if isinstance(value, dict):
            if isinstance(value, _Repeated):
                for name in value.names:
                    note("duplicate", [*steps, name], f"the name {shortened(name)} occurs more than once")
            for name in value:
                if _SURROGATE.search(name):
                    note("surrogate", steps, f"the name {shortened(name)} holds half of a surrogate pair")
        elif isinstance(value, str):
            if _SURROGATE.search(value):
                note("surrogate", steps, "the text holds half of a surrogate pair")
        elif isinstance(value, _Constant):
            note("nan", steps, f"{value.text} is not JSON")
        elif isinstance(value, (int, float)) and not -_LARGEST <= value <= _LARGEST:
            note("range", steps, "the number is beyond the range of a double")
    return flaws + [Flaw(kind, "", f"and {times - MOST_FLAWS} more like this")
                    for kind, times in counts.items() if times > MOST_FLAWS]  # fmt: skip
