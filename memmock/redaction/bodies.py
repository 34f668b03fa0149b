"""Bodies: their codings and charsets, and the fields in them that are hidden by their name."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote

from memmock.codings import undone
from memmock.errors import MemmockError
from memmock.redaction.forms import FORM, Span, View, unescaped, views
from memmock.redaction.hidden import (
    MASK_BYTES,
    Hidden,
    Values,
    begins_as_json,
    head_bytes,
    masked_in,
    readable,
    replaced,
)
from memmock.redaction.places import in_uri, is_hidden, long, parameters_in


def decoded(body: bytes, codings: str) -> bytes:
    """Return a body as it was before it was encoded.

    Raises:
        MemmockError: that cannot be undone.
    """
    body, left, flaw = undone(body, codings)
    if left:
        name = left.rpartition(", ")[2]
        what = name if _CODING.fullmatch(name) else "something of no plain name"
        what += f", {flaw}," if flaw else ""
        raise MemmockError(f"the body is encoded as {what} and cannot be looked into for secrets")
    return body


_CODING = re.compile(r"[\w.+-]{1,20}", re.ASCII)
"""A coding that may be shown: there may be anything in the header of a reply."""
_GZIP, _MOST_PACKED = b"\x1f\x8b\x08", 8


def unpacked(body: bytes) -> bytes | None:
    """Return what a body is packed from that nothing but its beginning says to be gzip; None for any other.

    Raises:
        MemmockError: it is broken, or packed too often.
    """
    if not body.startswith(_GZIP):
        return None
    for _ in range(_MOST_PACKED):
        body = decoded(body, "gzip")
        if not body.startswith(_GZIP):
            return body
    raise MemmockError("the body is packed too often and cannot be looked into for secrets")


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
        named = b"(?i:%b)" % b"|".join(re.escape(name.encode()) for name in sorted(self.names))
        self._marked = [re.compile(pattern.replace(b"NAME", named), re.DOTALL) for pattern in _MARKED]

    def may_be_in(self, data: bytes) -> bool:
        """Tell whether a body may have one of the fields, unless it is a form."""
        return bool(self.names) and any(map(data.lower().__contains__, self._signs))

    def opened(self, data: bytes, media: str) -> tuple[Body, Values]:
        """Return a body of a media type with its fields hidden, and their values."""
        codec, text = _as_utf8(data, media)
        shown, values = self._without(text, is_form(media))
        return Body(data, codec, text, shown), values

    def in_uri(self, uri: str) -> tuple[str, Values]:
        """Return a URL with its user, secret parameters and JSON fields hidden, and their values."""
        values: Values = {}
        if self.names and ("%" in uri or '"' in uri):
            data, codec = head_bytes(uri)
            uri = self._without_coded_json(data, values).decode(codec, "surrogatepass")
        uri, more = in_uri(uri, self.names)
        return uri, values | more

    def _without(self, data: bytes, as_form: bool) -> tuple[bytes, Values]:
        """Return a text with the fields hidden that are to be hidden by their name, and their values."""
        values: Values = {}
        if self.may_be_in(data):
            data = self._without_json(data, values)
            data = masked_in(data, self._marked_in(data, values), as_json=True)
        elif not as_form:
            return data, values
        if as_form or (not begins_as_json(data) and _FORM.fullmatch(data)):
            data = self._without_coded_json(data, values)
            data = masked_in(data, self._in_form(data, as_form, values), as_json=True)
        return data, values

    def _without_json(self, data: bytes, values: Values) -> bytes:
        changes: list[tuple[int, int, bytes]] = []
        for start, end, instead, text, name in _fields(data, self.names):
            changes.append((start, end, instead))
            _learn(values, name, text)
        return replaced(data, sorted(changes))

    def _without_coded_json(self, data: bytes, values: Values) -> bytes:
        """Return a form or a URL without the fields of JSON in what it reads with its escapes undone."""
        if not self.names or (b"%" not in data and b"+" not in data):
            return data
        view = View(data).undone(FORM)
        changes = []
        for start, end, instead, text, name in _fields(view.data, self.names):
            changes.append((*view.source((start, end)), quote(instead, safe="*").encode()))
            _learn(values, name, text, text.replace(" ", "+"))
        return replaced(data, sorted(changes))

    def _marked_in(self, data: bytes, values: Values) -> Iterator[Span]:
        """Yield the values of fields as Python, XML and multipart forms write them."""
        for found in chain.from_iterable(pattern.finditer(data) for pattern in self._marked):
            value = next(number for number in range(2, len(found.groups()) + 1) if found[number] is not None)
            if len(found[value]) <= _LONGEST_MARKED:
                texts = (readable(view.data)[0] for view in views(found[value]))
                _learn(values, readable(found[1])[0].lower(), *texts)
            yield found.span(value)

    def _in_form(self, data: bytes, as_form: bool, values: Values) -> Iterator[Span]:
        """Yield the values of fields of a form; in JSON that is sent as a form, up to the end of a string."""
        parameters = _FIELDS_IN_JSON if begins_as_json(data) else _FORM_FIELDS
        text, names = data.decode("latin-1"), self.names
        ways = (lambda name: is_hidden(name, names)), (lambda name: name.lower() in names)
        for start, end, name, forms in parameters_in(text, parameters, ways[not as_form]):
            _learn(values, name, *forms)
            yield start, end


def _learn(values: Values, name: str, *texts: str) -> None:
    if len(values) < _MOST_IN_BODY:
        values |= long(texts, f"the value of the field {name}")


def is_form(media: str) -> bool:
    """Tell whether a media type is that of a form."""
    return "x-www-form-urlencoded" in media.lower()


_FORM = re.compile(rb"[^\s=&{}\[\]\"]+=[^&\s]*(?:&[^\s=&]*(?:=[^&\s]*)?)*\s*")
_FORM_FIELDS = re.compile(r"(?:^|(?<=[&;]))([^=&;]*)="), re.compile(r"[^&\r\n]+")
_FIELDS_IN_JSON = re.compile(r'(?<=[&;?"])([^=&;?"\\\s]*)='), re.compile(r'[^&\r\n"\\]+')
_MARKED = (
    rb"""'(NAME)'\s*:\s*(?:[bu]?'([^'\\]*(?:\\.[^'\\]*)*)|"([^"\\]*)"|([^\s,\[\]{}()'"\\]+))""",
    rb"<(?:[\w.-]+:)?(NAME)(?:\s(?:[^<>]*[^<>/])?)?>\s*(?:<!\[CDATA\[)?([^<\s\]][^<\]]*)",
    rb'form-data;[^\r\n]{0,200}?\bname="?(NAME)"?(?:;[^\r\n]{0,500})?\r?\n'
    rb"(?:[^\r\n]{1,500}\r?\n){0,8}\r?\n(.+?)(?=\r?\n--|\Z)",
)
"""Fields of Python as `repr` shows it, of XML, and of multipart forms."""
_MOST_IN_BODY, _LONGEST_MARKED = 256, 4096
"""So many values of the fields of one body are learned, up to so many bytes where escapes are undone."""
_DEEPEST_JSON = 8
_KEY = re.compile(rb'(?<!\\)"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*', re.DOTALL)
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)', re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\]}"\\]+')
_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def _fields(data: bytes, names: frozenset[str]) -> Iterator[tuple[int, int, bytes, str, str]]:
    """Yield where the values of fields are, what to put there, the text that they hold, and their names.

    JSON in strings of JSON is looked into too.
    """
    view = View(data)
    for depth in range(_DEEPEST_JSON + 1):
        mark, *others = marks = _quotes(depth)
        if not any(each in data for each in marks):
            return
        is_quote, hidden_to = _quote_test(view, {len(mark), *map(len, others)}), 0
        for key in _KEY.finditer(view.data):
            name = unescaped(key[1])
            if name.lower() not in names or not is_quote(key.start()) or not is_quote(key.end(1)):
                continue
            if found := _STRING.match(view.data, key.end()):
                first, last = found.start(1) - 1, found.end(1) - 1
                ends = view.source((first, first + 1))[1], view.source((last, last + 1))[1]
                yield *ends, MASK_BYTES, unescaped(found[1]), name
            elif key.start() >= hidden_to and (span := _value(view.data, key.end())):
                hidden_to = span[1]
                text = view.data[slice(*span)].lstrip(b"-").decode("latin-1")
                yield *view.source(span), mark + MASK_BYTES + mark, text if _NUMBER.match(text) else "", name
        view = view.unescaped()


_NUMBER = re.compile(r"(?:[.eE+-]*\d){8}")
"""How a number begins that is remembered."""


def _quote_test(view: View, sizes: set[int]) -> Callable[[int], bool]:
    def is_quote(at: int) -> bool:
        start, end = view.source((at, at + 1))
        return end - start in sizes

    return is_quote


def _quotes(depth: int) -> tuple[bytes, ...]:
    """Return what a quote looks like in JSON in so many strings of JSON."""
    mark = b"\\" * (2**depth - 1) + b'"'
    return (mark, b"\\" * 2 ** (depth - 1) + b"u0022") if depth else (mark,)


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
