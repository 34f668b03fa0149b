"""Bodies: their codings and charsets, and the fields in them that are hidden by their name."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus

from memmock.codings import undone
from memmock.errors import MemmockError
from memmock.redaction.forms import DEEPEST, Span, View, unescaped
from memmock.redaction.hidden import MASK_BYTES, Hidden, Values, begins_as_json, replaced
from memmock.redaction.places import MOST_LEARNED, is_secret, long


def decoded(body: bytes, codings: str) -> bytes:
    """Return a body as it was before it was encoded.

    Raises:
        MemmockError: that cannot be undone.
    """
    body, left, flaw = undone(body, codings)
    if left:
        what = left.rpartition(", ")[2] + (f", {flaw}," if flaw else "")
        raise MemmockError(f"the body is encoded as {what} and cannot be looked into for secrets")
    return body


class Body(NamedTuple):
    """A body without its Content-Encoding.

    Attributes:
        data: the body itself.
        codec: what turns it into text; empty when it is taken as UTF-8.
        text: the same in UTF-8.
        shown: the text without its secret fields.
    """

    data: bytes
    codec: str
    text: bytes
    shown: bytes

    def hidden(self, hidden: Hidden) -> bytes:
        """Return the body with everything hidden."""
        data, shown = self.data, hidden.hide(self.shown, as_json=True)
        if shown != self.text:
            data = _encoded(shown, self.codec, data) if self.codec else shown
        return hidden.hide(data) if self.codec else data


# ---- charsets

WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)


def _as_utf8(body: bytes, media: str) -> tuple[str, bytes]:
    """Return the codec of a body, and the body in UTF-8; "" and the body itself when that is what it is."""
    codec = _codec(body, media)
    text = transcoded(body, codec) if codec else None
    return ("", body) if text is None else (codec, text)


def _codec(body: bytes, media: str) -> str:
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return codec
    if b"\0" in body[:4] and (codec := json.detect_encoding(body)) in WIDE:
        return codec
    found = _CHARSET.search(media)
    try:
        info = codecs.lookup(found[1]) if found else None
    except (LookupError, ValueError):
        return ""
    if info is None or not info._is_text_encoding or info.name in ("ascii", "utf-8", "utf-8-sig"):
        return ""
    if info.name in ("utf-16", "utf-32"):
        is_big = body[::2].count(0) > body[1::2].count(0)
        return f"{info.name}-{'be' if is_big else 'le'}" if b"\0" in body else ""
    return "" if info.name in WIDE and b"\0" not in body else info.name


def _tail(body: bytes, codec: str) -> bytes:
    """Return the bytes at the end of a body that make no whole unit of its codec."""
    width = 4 if codec.startswith("utf-32") else 2 if codec.startswith("utf-16") else 1
    return body[len(body) - len(body) % width :]


def transcoded(body: bytes, codec: str) -> bytes | None:
    """Return a body in UTF-8, without what makes no whole unit at its end; None when it is not in `codec`."""
    errors = "surrogatepass" if codec in WIDE else "strict"
    try:
        text = body.removesuffix(_tail(body, codec)).decode(codec, errors)
        return text.encode("utf-8", "surrogatepass")
    except (UnicodeError, ValueError):
        return None


def _encoded(data: bytes, codec: str, body: bytes) -> bytes:
    errors = "surrogatepass" if codec in WIDE else "replace"
    return data.decode("utf-8", "surrogatepass").encode(codec, errors) + _tail(body, codec)


def is_utf8(media: str) -> bool:
    """Tell whether a media type says nothing else than that a body is in UTF-8."""
    found = _CHARSET.search(media)
    return found is None or found[1].lower() in ("utf-8", "utf8", "us-ascii")


# ---- fields


class Fields:
    """The names of fields whose values are hidden, in any case: of JSON, of forms, of queries.

    Attributes:
        names: the names, in lower case.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(name.lower() for name in names)
        plain = [name.encode() for name in self.names if re.fullmatch(r"[\w.-]+", name, re.ASCII)]
        self._signs = (*plain, b"u00", b"%") if len(plain) == len(self.names) else (b"",)
        """What a body in lower case has in it if it has one of the fields."""

    def may_be_in(self, data: bytes) -> bool:
        """Tell whether a body may have one of the fields, unless it is a form."""
        return bool(self.names) and any(map(data.lower().__contains__, self._signs))

    def opened(self, data: bytes, media: str) -> tuple[Body, Values]:
        """Return a body of a media type with its fields hidden, and their values."""
        codec, text = _as_utf8(data, media)
        shown, values = self._without(text, is_form(media))
        return Body(data, codec, text, shown), values

    def _without(self, data: bytes, as_form: bool) -> tuple[bytes, Values]:
        """Return a text with the fields hidden that are to be hidden by their name, and their values."""
        if not as_form and not self.may_be_in(data):
            return data, {}
        if as_form or (not begins_as_json(data) and _FORM.fullmatch(data)):
            return self._without_form_fields(data, as_form)
        values: Values = {}
        changes: list[tuple[int, int, bytes]] = []
        for start, end, instead, text, name in _fields(data, self.names):
            changes.append((start, end, instead))
            if len(values) < MOST_LEARNED:
                values |= long([text], f"the value of the field {name}")
        return replaced(data, sorted(changes)), values

    def _without_form_fields(self, data: bytes, as_form: bool) -> tuple[bytes, Values]:
        values: Values = {}

        def hidden(found: re.Match[bytes]) -> bytes:
            name = unquote_plus(found[1].decode("latin-1"))
            if not (name.lower() in self.names or (as_form and is_secret(name))):
                return found[0]
            text = found[2].decode("latin-1")
            values.update(long([text, unquote_plus(text)], f"the value of the field {name}"))
            return found[1] + b"=" + MASK_BYTES

        return _FORM_FIELD.sub(hidden, data), values


def is_form(media: str) -> bool:
    """Tell whether a media type is that of a form."""
    return "x-www-form-urlencoded" in media.lower()


_FORM = re.compile(rb"[^\s=&{}\[\]\"]+=[^&\s]*(?:&[^\s=&]*(?:=[^&\s]*)?)*\s*")
_FORM_FIELD = re.compile(rb"(?:^|(?<=[&;]))([^=&;]*)=([^&\r\n]+)")
_KEY = re.compile(rb'(?<!\\)"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*', re.DOTALL)
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)', re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\]}"\\]+')
_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def _fields(data: bytes, names: frozenset[str]) -> Iterator[tuple[int, int, bytes, str, str]]:
    """Yield where the values of fields are, what to put there, the text that they hold, and their names.

    JSON in strings of JSON is looked into too.
    """
    view = View(data)
    for depth in range(DEEPEST):
        mark = b"\\" * (2**depth - 1) + b'"'
        hidden_to = 0
        for key in _KEY.finditer(view.data):
            quotes = (view.source((at, at + 1)) for at in (key.start(), key.end(1)))
            name = unescaped(key[1])
            if name.lower() not in names or any(end - start != len(mark) for start, end in quotes):
                continue
            if found := _STRING.match(view.data, key.end()):
                first, last = (view.source((at, at + 1)) for at in (found.start(1) - 1, found.end(1) - 1))
                yield first[1], last[1], MASK_BYTES, unescaped(found[1]), name
            elif key.start() >= hidden_to and (span := _value(view.data, key.end())):
                hidden_to = span[1]
                yield *view.source(span), mark + MASK_BYTES + mark, "", name
        if b'\\"' not in view.data:
            return
        view = view.unescaped()


def _value(data: bytes, at: int) -> Span | None:
    """Return where the value at `at` is that is not a string; None when there is none."""
    if data[at : at + 1] not in (b"{", b"["):
        return found.span() if (found := _SCALAR.match(data, at)) else None
    depth = 0
    for part in _STRUCTURE.finditer(data, at):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(part[0], 0)
        if not depth:
            return at, part.end()
    return at, len(data)
