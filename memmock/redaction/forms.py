"""What a secret looks like in a text: plain, in Base64, and with escapes around it undone."""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from operator import itemgetter

DEEPEST, _DEEPEST_IN_LARGE, _LARGE = 4, 2, 1024 * 1024
"""So many escapings inside each other are undone, fewer in a large text."""

Span = tuple[int, int]


# ---- plain and in Base64


class Secret:
    """The forms of a value that can be found as they are, and signs that it may be there in another one."""

    def __init__(self, value: str) -> None:
        self._plain = tuple(dict.fromkeys(_encodings(value)))
        self._spaced = tuple(form.replace(b" ", b"+") for form in self._plain if b" " in form)
        self._coded = tuple(dict.fromkeys(core for form in self._plain for core, _, _ in _cores(form)))
        self.forms = self._plain + self._spaced + self._coded
        self.signs = tuple(sign for char, sign in _SIGNS.items() if char in value)
        if not value.isascii() or not value.isprintable():
            self.signs += (b"\\",)
        if value.count(" ") > 1:
            self.signs += (b"+",)

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield where the value is in `data`, plain or in Base64."""
        for form in self._plain:
            yield from _occurrences(data, form)
        if self._spaced and b"+" in data:
            folded = data.replace(b" ", b"+")
            for form in self._spaced:
                yield from _occurrences(folded, form)
        for core in self._coded:
            if core in data:
                for pattern in _coded_patterns(self._plain, core):
                    yield from (found.span() for found in pattern.finditer(data))


_SIGNS = {"/": b"\\/", '"': b'\\"', "\\": b"\\\\"}
SIGNS = (b"%", b"u00", b"\\/", b"\\x")
"""Without any of these in a text, plain characters stand in it as they are, and so does Base64."""

_USUAL_CHARS = 4096
_usual_secret = lru_cache(512)(Secret)


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


@lru_cache(256)
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


class View:
    """A text as it reads when escapes are undone, which knows where each part of it came from."""

    def __init__(self, data: bytes, parent: View | None = None) -> None:
        self.data = data
        self._parent = parent
        self._parts: list[tuple[int, int, int]] = []
        """Where each part starts here, where its source starts, and where that ends; 0 when it is a copy."""

    def undone(self, pattern: re.Pattern[bytes], meaning: Callable[[re.Match[bytes]], bytes]) -> View:
        """Return the view with each match of `pattern` replaced by its meaning."""
        pieces: list[bytes] = []
        view = View(b"", self)
        size = at = 0
        for found in pattern.finditer(self.data):
            start, end = found.span()
            for piece, source, stop in ((self.data[at:start], at, 0), (meaning(found), start, end)):
                if piece:
                    view._parts.append((size, source, stop))
                    pieces.append(piece)
                    size += len(piece)
            at = end
        view._parts.append((size, at, 0))
        view.data = b"".join([*pieces, self.data[at:]])
        return view

    def source(self, span: Span) -> Span:
        """Return where a part of this view is in the text that it was made of first; escapes are whole."""
        if self._parent is None:
            return span
        (first, start, whole), (last, source, end) = (
            self._parts[bisect_right(self._parts, at, key=itemgetter(0)) - 1] for at in (span[0], span[1] - 1)
        )
        if not whole:
            start += span[0] - first
        return self._parent.source((start, end or source + span[1] - last))

    def unescaped(self) -> View:
        """Return the view with the escapes of JSON undone once."""
        return self.undone(_BACKSLASH, _char)


_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_BACKSLASH = re.compile(
    rb"\\(?:u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})"
    rb"|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([^ux]))",
    re.DOTALL,
)
_LINE_END = re.compile(rb"\n(?<=[\w+/-]\n)[ \t]*(?=[\w+/=-])", re.ASCII)
_LINE_END_CR = re.compile(rb"\r\n(?<=[\w+/-]\r\n)[ \t]*(?=[\w+/=-])", re.ASCII)
_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _byte(found: re.Match[bytes]) -> bytes:
    return bytes.fromhex(found[1].decode())


def _char(found: re.Match[bytes]) -> bytes:
    high, low, unit, code, char = found.groups()
    if char:
        return _ESCAPED.get(char, char)
    number = int(unit or code or high, 16)
    if low:
        number = 0x10000 + ((number & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
    return chr(number).encode("utf-8", "surrogatepass")


def _nothing(found: re.Match[bytes]) -> bytes:
    return b""


_WAYS = (
    (b"%", _PERCENT, _byte),
    (b"\\", _BACKSLASH, _char),
    (b"\n", _LINE_END, _nothing),
    (b"\r\n", _LINE_END_CR, _nothing),
)


def views(data: bytes) -> Iterator[View]:
    """Yield the text as it is, and every way it reads with escapes undone, inside each other too."""
    found, seen = [View(data)], {data}
    for _ in range((DEEPEST if len(data) < _LARGE else _DEEPEST_IN_LARGE) + 1):
        yield from found
        below = []
        for view in found:
            for sign, pattern, meaning in _WAYS:
                if sign in view.data and pattern.search(view.data):
                    deeper = view.undone(pattern, meaning)
                    if deeper.data not in seen:
                        seen.add(deeper.data)
                        below.append(deeper)
        found = below


def unescaped(data: bytes) -> str:
    """Return a string of JSON as it reads."""
    return _BACKSLASH.sub(_char, data).decode("utf-8", "replace")


def is_wrapped(data: bytes) -> bool:
    """Whether a line ends within what may be Base64."""
    return b"\n" in data and bool(_LINE_END.search(data) or _LINE_END_CR.search(data))
