"""What a secret looks like in a text: plain, in Base64 and hex, and with escapes around it undone."""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

_DEEPEST, _DEEPEST_IN_LARGE, _LARGE = 4, 2, 256 * 1024
"""So many escapings inside each other are undone, fewer in a large text."""
_ANY_FORM_CHARS, _START_CHARS = 8, 12
"""From so many characters on all forms are looked for, and a beginning that was cut is known for one."""

Span = tuple[int, int]


# ---- plain, in Base64 and in hex


class Secret:
    """The forms of a value that can be found as they are, and signs that it may be there in another one.

    Args:
        value: the value.
        any_form: whether it is looked for in any case, in hex, in Base64 twice and of UTF-16, and cut, too.

    Attributes:
        value: the value.
        forms: what is in a text that has the value in it plain or in Base64.
        folded: what is in such a text in lower case, besides.
        signs: what may be in a text that has the value in it with escapes.
    """

    def __init__(self, value: str, *, any_form: bool = False) -> None:
        self.value = value
        plain = tuple(dict.fromkeys(_encodings(value)))
        spaced = tuple(form.replace(b" ", b"+") for form in plain if b" " in form)
        self._sources, self._plain, self._spaced = plain, plain, spaced
        self._folded: tuple[tuple[bytes, bytes], ...] = ()
        self._hex: tuple[bytes, ...] = ()
        if any_form and len(value) >= _ANY_FORM_CHARS:
            self._plain = ()
            self._folded = tuple(dict.fromkeys(_folded(value)))
            self._hex = tuple(form.hex().encode() for form in plain)
            self._sources += (*_in_utf16(value), *(core for form in plain for core, _, _ in _cores(form)))
        self._coded = tuple(dict.fromkeys(core for form in self._sources for core, _, _ in _cores(form)))
        self.forms = self._plain + self._spaced + self._coded
        self.folded = tuple(dict.fromkeys(start for _, start in self._folded)) + self._hex
        self.signs = tuple(sign for char, sign in _SIGNS.items() if char in value)
        if not value.isascii() or not value.isprintable():
            self.signs += (b"\\",)
        if value.count(" ") > 1:
            self.signs += (b"+",)

    def tells_of(self, other: Secret) -> bool:
        """Whether any form of another secret, but for a beginning, has a form of this one in it."""
        alike = bool(self.folded) or not other.folded
        return alike and self.value.isascii() and self.value in other.value

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield where the value is in `data`."""
        for form in self._plain:
            yield from _occurrences(data, form)
        if self._spaced and b"+" in data:
            folded = data.replace(b" ", b"+")
            for form in self._spaced:
                yield from _occurrences(folded, form)
        for core in self._coded:
            if core in data:
                for pattern in _coded_patterns(self._sources, core):
                    yield from (found.span() for found in pattern.finditer(data))
        if self.folded:
            yield from self._in_any_case(data.lower())

    def _in_any_case(self, data: bytes) -> Iterator[Span]:
        for form in self._hex:
            yield from _occurrences(data, form)
        folded = data.replace(b" ", b"+") if b"+" in data else data
        for form, start in self._folded:
            text = folded if b"+" in start else data
            for at, _ in _occurrences(text, start):
                if text.startswith(form, at):
                    yield at, at + len(form)
                elif len(start) < len(form) and (end := _cut_end(text, at, form, len(start))):
                    yield at, end


_CUT = re.compile(rb"\*+|(?=\xe2\x80\xa6|\.\.\.)")
"""What follows the beginning of a value where the rest is not shown."""


def _cut_end(text: bytes, at: int, form: bytes, least: int) -> int:
    """Return where the beginning of a form at `at` ends if it was cut; 0 when it was not."""
    pairs = zip(form, text[at : at + len(form)], strict=False)
    shown = next((size for size, (one, other) in enumerate(pairs) if one != other), len(text) - at)
    shown = min(shown, len(form))
    for end in range(at + shown, at + max(least, shown - 3) - 1, -1):  # dots may be those of the value
        if found := _CUT.match(text, end):
            return found.end()
    return 0


def _folded(value: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield a value in lower case, and its beginning."""
    for text in dict.fromkeys((value.lower(), value.upper(), value.casefold())):
        starts = [start.lower() for start in _encodings(text[:_START_CHARS])]
        for form in (form.lower() for form in _encodings(text)):
            begun = next((start for start in starts if form.startswith(start)), form)
            yield form, begun
            if b" " in form:
                yield form.replace(b" ", b"+"), begun.replace(b" ", b"+") if b" " in begun else form


def _in_utf16(value: str) -> Iterator[bytes]:
    yield value.encode("utf-16-le", "surrogatepass")
    yield value.encode("utf-16-be", "surrogatepass")


_SIGNS = {"/": b"\\/", '"': b'\\"', "\\": b"\\\\"}
SIGNS = (b"%", b"&", b"u00", b"\\/", b"\\x")
"""Without any of these in a text, plain characters stand in it as they are, and so does Base64."""

_USUAL_CHARS = 4096
_usual_secret = lru_cache(512)(Secret)
"""A learned value's forms; large ones are not remembered."""


def secret_of(value: str) -> Secret:
    """Return a value's forms, remembered unless they are large."""
    return (_usual_secret if len(value) <= _USUAL_CHARS else Secret)(value)


def _encodings(value: str) -> Iterator[bytes]:
    """Yield a value as UTF-8, as Latin-1, and as UTF-8 that was taken for Latin-1, or was before."""
    data = value.encode("utf-8", "surrogatepass")
    yield data
    if value.isascii():
        return
    yield data.decode("latin-1").encode()
    try:
        narrow = value.encode("latin-1")
        yield narrow
        yield narrow.decode().encode("latin-1")
    except UnicodeError:
        return


_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _cores(form: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield what is sure of the Base64 of `form` at each place in a longer one, and what may stand around it.

    Those are the characters that hold a part of the form and of what is next to it; empty if there are none.
    """
    for lead in range(3):
        coded = base64.b64encode(bytes(lead) + form)
        bits = (lead + len(form)) * 8
        start, end = -(-lead * 8 // 6), bits // 6
        before = after = b""
        if lead:
            step = 1 << (start * 6 - lead * 8)
            before = _ALPHABET[_ALPHABET.index(coded[start - 1]) :: step]
        if rest := bits - end * 6:
            first = _ALPHABET.index(coded[end])
            after = _ALPHABET[first : first + (1 << (6 - rest))]
        core = coded[start:end]
        yield core, before, after
        if (safe := core.translate(_URL_SAFE)) != core:
            yield safe, before, after


@lru_cache(1024)
def _coded_patterns(forms: tuple[bytes, ...], core: bytes) -> list[re.Pattern[bytes]]:
    patterns = []
    for found, before, after in chain.from_iterable(map(_cores, forms)):
        if found == core:
            head = rb"(?:%b|(?<![\w+/-]))" % _one_of(before) if before else b""
            tail = rb"(?:%b|(?![\w+/-]))" % _one_of(after) if after else b""
            patterns.append(re.compile(head + re.escape(core) + tail, re.ASCII))
    return patterns


def _one_of(chars: bytes) -> bytes:
    return b"[" + re.escape(chars + chars.translate(_URL_SAFE)) + b"]"


def _occurrences(data: bytes, form: bytes) -> Iterator[Span]:
    at = data.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = data.find(form, at + 1)


# ---- with escapes undone


class Way(NamedTuple):
    """A way to escape text.

    Attributes:
        sign: what is in every text that was escaped so.
        pattern: one escape.
        meaning: what an escape stands for.
        undone: what undoes all escapes in a text.
    """

    sign: bytes
    pattern: re.Pattern[bytes]
    meaning: Callable[[bytes], bytes]
    undone: Callable[[bytes], bytes]


class View:
    """A text as it reads when escapes are undone, which knows where each part of it came from."""

    def __init__(self, data: bytes, parent: View | None = None, way: Way | None = None) -> None:
        self.data = data
        self._parent = parent
        self._way = way

    def undone(self, way: Way) -> View:
        """Return the view with all escapes of one way undone."""
        return View(way.undone(self.data), self, way)

    @cached_property
    def _escapes(self) -> tuple[list[int], list[int], list[Span]]:
        """Where each escape starts and ends here, and where it was; made when something was found."""
        starts: list[int] = []
        ends: list[int] = []
        spans: list[Span] = []
        if self._parent and self._way:
            meaning, gone = self._way.meaning, 0
            for found in self._way.pattern.finditer(self._parent.data):
                span = found.span()
                starts.append(span[0] - gone)
                ends.append(starts[-1] + len(meaning(found[0])))
                spans.append(span)
                gone = span[1] - ends[-1]
        return starts, ends, spans

    def source(self, span: Span) -> Span:
        """Return where a part of this view is in the text that it was made of first; escapes are whole."""
        view = self
        while view._parent is not None:
            first = view._before(span[0])
            span = first if span[1] - span[0] == 1 else (first[0], view._before(span[1] - 1)[1])
            view = view._parent
        return span

    def _before(self, at: int) -> Span:
        """Return where one byte of this view is in the view that it was made of."""
        starts, ends, spans = self._escapes
        if (number := bisect_right(starts, at) - 1) < 0:
            return at, at + 1
        if at < ends[number]:
            return spans[number]
        start = spans[number][1] + at - ends[number]
        return start, start + 1

    def unescaped(self) -> View:
        """Return the view with the escapes of JSON undone once."""
        return self.undone(_JSON)


_BACKSLASH = re.compile(
    rb"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})"
    rb"|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([^ux]))",
    re.DOTALL,
)
_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


@lru_cache(4096)
def _char(escape: bytes) -> bytes:
    high, low, unit, code, char = _BACKSLASH.fullmatch(escape).groups()  # type: ignore[union-attr]
    if char:
        return _ESCAPED.get(char, char)
    number = int(unit or code or high, 16)
    if low:
        number = 0x10000 + ((number & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
    return chr(number).encode("utf-8", "surrogatepass")


@lru_cache(4096)
def _entity(escape: bytes) -> bytes:
    from html import unescape  # it takes longer to load than most texts to redact

    return unescape(escape.decode()).encode("utf-8", "surrogatepass")


def _nothing(escape: bytes) -> bytes:
    return b""


def _way(
    sign: bytes, pattern: re.Pattern[bytes], meaning: Callable[[bytes], bytes], runs: bytes = b""
) -> Way:
    """Return a way to escape text.

    Args:
        sign: as `Way` has it.
        pattern: as `Way` has it.
        meaning: as `Way` has it.
        runs: a pattern for as many escapes as possible that `meaning` undoes at once.
    """
    search = re.compile(runs) if runs else pattern
    return Way(sign, pattern, meaning, lambda data: search.sub(lambda found: meaning(found[0]), data))


def _bytes(escapes: bytes) -> bytes:
    return bytes.fromhex(escapes.replace(b"%", b"").decode())


def _bytes_of_form(escapes: bytes) -> bytes:
    return _bytes(escapes.replace(b"+", b"%20"))


def _lines_joined(pattern: re.Pattern[bytes], sign: bytes) -> Way:
    return Way(sign, pattern, _nothing, lambda data: pattern.sub(b"", data))


_JSON = _way(b"\\", _BACKSLASH, _char)
_LINE_END = re.compile(rb"\n(?<=[\w+/-]\n)[ \t]*(?=[\w+/=-])", re.ASCII)
_LINE_END_CR = re.compile(rb"\r\n(?<=[\w+/-]\r\n)[ \t]*(?=[\w+/=-])", re.ASCII)
_HTML = re.compile(rb"&(?:#(?:[0-9]{1,7}|[xX][0-9A-Fa-f]{1,6});?|[A-Za-z][A-Za-z0-9]{1,30};)")
FORM = _way(b"", re.compile(rb"%[0-9A-Fa-f]{2}|\+"), _bytes_of_form, rb"(?:%[0-9A-Fa-f]{2}|\+)+")
"""How the fields of forms and the parameters of URLs are escaped."""
_WAYS = (
    _way(b"%", re.compile(rb"%[0-9A-Fa-f]{2}"), _bytes, rb"(?:%[0-9A-Fa-f]{2})+"),
    _JSON,
    _way(b"&", _HTML, _entity),
    _lines_joined(_LINE_END, b"\n"),
    _lines_joined(_LINE_END_CR, b"\r\n"),
)


def views(data: bytes) -> Iterator[View]:
    """Yield the text as it is, and every way it reads with escapes undone, inside each other too."""
    found, seen = [View(data)], {data}
    for _ in range((_DEEPEST if len(data) < _LARGE else _DEEPEST_IN_LARGE) + 1):
        yield from found
        below = []
        for view in found:
            for way in _WAYS:
                if way.sign in view.data and (deeper := view.undone(way)).data not in seen:
                    seen.add(deeper.data)
                    below.append(deeper)
        found = below


def unescaped(data: bytes) -> str:
    """Return a string of JSON as it reads."""
    if b"\\" not in data:
        return data.decode("utf-8", "replace")
    return _JSON.undone(data).decode("utf-8", "replace")


def is_wrapped(data: bytes) -> bool:
    """Whether a line ends within what may be Base64."""
    return b"\n" in data and bool(_LINE_END.search(data) or _LINE_END_CR.search(data))
