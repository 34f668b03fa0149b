"""The smallest reply that still shows what is wrong.

Nothing here sends anything: whether a reply still shows it is asked of a function. The same answers of it
make the same reply, without chance.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from memmock.http import JSON_TYPE
from memmock.reply_case import NOTHING, ReplyCase
from memmock.reply_wire import PLAIN, Style

Still = Callable[[ReplyCase], bool]
Steps = tuple[int, ...]
"""Where something is in the body: a place in each array or object, from the top."""

_ROUNDS = 3
_LONG = 60
"""A longer text is cut by searching for its length before it is looked at character by character."""
_HEADERS = (("Content-Type", JSON_TYPE),)
_MEMORY = b'{"memories":[{"summary":"a"}]}'
_TOGETHER = (("slices", "spread", "sliced"), ("framing", "chunk_bytes", "sizes", "extension", "trailers"))
_SIMPLER: dict[str, tuple[Any, ...]] = {
    "chunk_bytes": (7,),
    "length_by": (1, -1, 10, -10),
    "cut": (0,),
    "slices": (2, 10),
    "extension": (";a",),
    "trailers": ((("X-A", "1"),),),
    "interim": ((100,), (103,)),
    "surplus": (b"\r\n", b"a"),
    "ending": ("close",),
}
"""What to try for an attribute of the style that must not be plain."""


def shrink(case: ReplyCase, still: Still, calls: int = 200) -> ReplyCase:
    """Return the smallest reply that was found to show what is wrong; `case` itself when none is smaller.

    In this order: a plain reply but for one of its parts, the plain style, no other headers, fewer memories
    and fields, simpler values, shorter and then plainer texts; what is no JSON is cut byte by byte. All over
    again while that helps.

    Args:
        case: one that shows it.
        still: whether a reply shows the same; never asked twice for one reply.
        calls: so many times it may be asked.
    """
    search = _Search(case, still, calls)
    with contextlib.suppress(_SpentError):
        for _ in range(_ROUNDS):
            before = search.case
            search.leap()
            search.plain_style()
            search.fewer_headers()
            search.simpler_body()
            if search.case == before:
                break
    return search.case


class _SpentError(Exception):
    """It was asked as often as it may be."""


class _Search:
    """The smallest reply so far, and the steps that make it smaller."""

    def __init__(self, case: ReplyCase, still: Still, calls: int) -> None:
        self.case = case
        self._still = still
        self._left = calls
        self._known = {case}

    def takes(self, case: ReplyCase) -> bool:
        """Go on from a reply if it still shows what is wrong."""
        if case in self._known:
            return False
        if not self._left:
            raise _SpentError
        self._known.add(case)
        self._left -= 1
        if self._still(case):
            self.case = case
            return True
        return False

    def leap(self) -> None:
        """Try what is so often enough: only the body, only the head, or only the style."""
        own = self.case
        _ = (
            self.takes(ReplyCase(body=own.body))
            or self.takes(ReplyCase(own.status, own.headers))
            or self.takes(ReplyCase(style=own.style))
            or (len(_MEMORY) < len(own.body) and self.takes(ReplyCase(body=_MEMORY, style=own.style)))
        )
        if self.case.status != 200:
            self.takes(replace(self.case, status=200))
        for body in (NOTHING, _MEMORY):
            if len(body) < len(self.case.body):
                self.takes_body(body)

    def plain_style(self) -> None:
        """Write and send it plainly, attribute by attribute."""
        self.takes(replace(self.case, style=PLAIN))
        for names in (*_TOGETHER, *((name,) for name in Style._fields)):
            self._style(**{name: getattr(PLAIN, name) for name in names})
        for name, values in _SIMPLER.items():
            if getattr(self.case.style, name) != getattr(PLAIN, name):
                for value in values:
                    if getattr(self.case.style, name) == value or self._style(**{name: value}):
                        break

    def fewer_headers(self) -> None:
        """Leave out headers, and shorten the values of those that are left."""
        if self.case.headers != _HEADERS and not self.takes(replace(self.case, headers=_HEADERS)):
            reduced(self.case.headers, self._headers)
        for place, (name, value) in enumerate(self.case.headers):
            if (name, value) not in _HEADERS:
                shorter(value, partial(self._header, place, name))

    def simpler_body(self) -> None:
        """Reduce the body: as JSON as long as that helps, then as bytes."""
        if self.case.body in (NOTHING, _MEMORY):
            return
        value = _parsed(self.case.body)
        if value is not None:
            for form in _FORMS:
                written = form.written(value).encode()
                if self.case.body == written or self.takes_body(written):
                    _Tree(value, form, self.takes_body).reduce()
                    return
        reduced(self.case.body, self.takes_body)

    def takes_body(self, body: Sequence[int]) -> bool:
        """Go on with another body; what was cut stays cut."""
        case = replace(self.case, body=bytes(body))
        if case.style.cut is not None and case.style.cut >= len(case.wire):
            case = replace(case, style=case.style._replace(cut=len(case.wire) - 1))
        return self.takes(case)

    def _style(self, **changes: Any) -> bool:
        style = self.case.style._replace(**changes)
        return style != self.case.style and self.takes(replace(self.case, style=style))

    def _headers(self, headers: Sequence[tuple[str, str]]) -> bool:
        return self.takes(replace(self.case, headers=tuple(headers)))

    def _header(self, place: int, name: str, text: str) -> bool:
        headers = list(self.case.headers)
        headers[place] = (name, text)
        return self._headers(headers)


# ---- bodies as JSON


class _Number(str):
    """A number as it is written."""


class _Object(list[tuple[str, Any]]):
    """The fields of an object, in their order; names may be there twice."""


class _Form(NamedTuple):
    """How JSON is written."""

    comma: str = ","
    colon: str = ":"
    escaped: bool = False

    def written(self, value: Any) -> str:
        """Return JSON as text."""
        if isinstance(value, _Number):
            return str(value)
        if isinstance(value, _Object):
            pairs = (self.written(name) + self.colon + self.written(inner) for name, inner in value)
            return "{" + self.comma.join(pairs) + "}"
        if isinstance(value, list):
            return "[" + self.comma.join(map(self.written, value)) + "]"
        # half of a surrogate pair can only be escaped
        escaped = self.escaped or (isinstance(value, str) and not set(value).isdisjoint(_SURROGATES))
        return json.dumps(value, ensure_ascii=escaped)


_SURROGATES = frozenset(map(chr, range(0xD800, 0xE000)))
_FORMS = (_Form(), _Form(escaped=True), _Form(" , ", " : "), _Form(",\r\n\t", ":\t"))


class _Tree:
    """A body as JSON, and what may be left out of it."""

    def __init__(self, value: Any, form: _Form, takes: Callable[[bytes], bool]) -> None:
        self._value = value
        self._form = form
        self._takes = takes

    def reduce(self, steps: Steps = ()) -> None:
        """Make a value smaller: what is in it first, then each of the values that are left."""
        value = self._at(steps)
        if isinstance(value, list):
            reduced(value, partial(self._puts, steps))
            if steps and self._at(steps) and self._puts(steps, None):
                return
            for step in range(len(self._at(steps))):
                self.reduce((*steps, step))
        elif isinstance(value, _Number):
            _ = any(self._puts(steps, _Number(each)) for each in ("0", "1") if each != value)
        elif isinstance(value, str) and not (len(value) > 1 and self._puts(steps, "a")):
            plainer(shorter(value, partial(self._puts, steps)), partial(self._puts, steps))

    def _puts(self, steps: Steps, value: Any) -> bool:
        changed = _put(self._value, steps, value)
        if not self._takes(self._form.written(changed).encode()):
            return False
        self._value = changed
        return True

    def _at(self, steps: Steps) -> Any:
        value = self._value
        for step in steps:
            value = _inner(value, step)
        return value


def _inner(value: Any, step: int) -> Any:
    return value[step][1] if isinstance(value, _Object) else value[step]


def _put(value: Any, steps: Steps, new: Any) -> Any:
    if not steps:
        return new
    first, *rest = steps
    changed = _put(_inner(value, first), tuple(rest), new)
    copy = type(value)(value)
    copy[first] = (value[first][0], changed) if isinstance(value, _Object) else changed
    return copy


_DEEP = 100
"""Values that may be nested deeper are reduced as bytes."""


def _parsed(body: bytes) -> Any:
    """Return a body as JSON; None when it is none, or not to be looked into."""
    if min(body.count(b"["), body.count(b"]")) + min(body.count(b"{"), body.count(b"}")) > _DEEP:
        return None
    try:
        return json.loads(
            body.decode(),
            object_pairs_hook=_Object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
        )
    except (ValueError, RecursionError):
        return None


# ---- sequences and texts


Items = TypeVar("Items", bound=Sequence[Any])


def reduced(items: Items, takes: Callable[[Items], bool]) -> None:
    """Leave out what may be left out: all of it, then halves, quarters and so on down to single ones.

    Args:
        items: bytes, a tuple or a list.
        takes: goes on from fewer items, if they still show what is wrong.
    """
    kind: Any = type(items)
    if not items or takes(kind()):
        return
    size = max(1, len(items) // 2)
    while True:
        start = len(items) - size  # the end first: what matters more often stands before it
        while start > -size and len(items) > 1:
            low = max(0, start)
            kept = kind(items[:low] + items[start + size :])  # type: ignore[operator]
            if len(kept) < len(items) and len(kept) and takes(kept):
                items = kept
            start -= size
        if size == 1:
            return
        size //= 2


def shorter(text: str, takes: Callable[[str], bool]) -> str:
    """Return what is left of a text: its shortest beginning when it is long, then what matters of that.

    Args:
        text: the text.
        takes: goes on from a text, if it still shows what is wrong.
    """

    def kept(each: str) -> bool:
        nonlocal text
        if not takes(each):
            return False
        text = each
        return True

    if not text or kept(""):
        return text
    if len(text) > _LONG:
        whole, passes, fails = text, 0, len(text)
        while fails - passes > 1:
            middle = (passes + fails) // 2
            if kept(whole[:middle]):
                fails = middle
            else:
                passes = middle
    if len(text) <= 10 * _LONG:
        reduced(tuple(text), lambda characters: kept("".join(characters)))
    return text


def plainer(text: str, takes: Callable[[str], bool]) -> None:
    """Replace characters by "a" where it still shows what is wrong; all at once where they are many.

    Args:
        text: the text.
        takes: goes on from a text, if it still shows what is wrong.
    """
    if not set(text) - {"a"}:
        return
    for length in sorted({len(text), len(text.encode("utf-8", "replace"))}):
        if takes("a" * length):
            return
    if len(text) <= _LONG:
        for place, character in enumerate(text):
            changed = text[:place] + "a" + text[place + 1 :]
            if character != "a" and takes(changed):
                text = changed
