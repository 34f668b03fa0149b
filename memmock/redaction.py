"""Takes secrets out of requests, replies and texts, before they are stored or shown.

A secret is hidden by its place (a header, a query parameter, a JSON field) and by its value, wherever that
stands and however it is escaped. Texts are searched as UTF-8 bytes: first as they are, then as they read when
their escapes are undone, with each find traced back to the bytes it came from. Nothing else is changed.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
import threading
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

from memmock import strictjson
from memmock.errors import MemmockError
from memmock.http import AT_ONCE, Delivery, Headers, Reply, Request, header

MASK = "***"

SECRET_NAME = re.compile(
    "authorization|cookie|(?:api|access|auth|private|subscription|functions|account)[-_]?key|token|secret"
    "|passw(?:or)?d|passphrase|credential|session|signature|x-amz-security|jwt|csrf|xsrf|^x-auth|^sig$",
    re.IGNORECASE,
)
"""What the names of headers and query parameters with a secret in them look like."""
_HARMLESS = re.compile(
    "^access-control-|rate-?limit|(?:page|continuation|next|sync)[-_]?token"
    "|(?:max|min|total|used|remaining|prompt|completion|input|output)[-_]?tokens?"
    "|[-_](?:type|ttl|count|limit|length|expir(?:es|y|ation))(?:[-_](?:in|at))?$",
    re.IGNORECASE,
)

_LEARNED_CHARS, _CONFIGURED_CHARS = 8, 4
"""From so many characters on a value is looked for everywhere: shorter ones may be common words."""
_MOST_LEARNED, _MOST_LEARNED_CHARS, _LONGEST_LEARNED = 256, 1024 * 1024, 64 * 1024
_MOST_DECODED = 64 * 1024 * 1024
_DEEPEST, _DEEPEST_IN_LARGE, _LARGE = 4, 2, 1024 * 1024
"""So many escapings inside each other are undone, fewer in a large text."""
_MOST_ROUNDS = 8

Span = tuple[int, int]
Values = dict[str, str]
"""Secrets, each with what it is called."""


# ---- what a secret looks like


class _Secret:
    """The forms of a value that can be found as they are, and signs that it may be there in another one."""

    def __init__(self, value: str) -> None:
        plain = dict.fromkeys(_encodings(value))
        self.plain = tuple(plain)
        self.spaced = tuple(form.replace(b" ", b"+") for form in plain if b" " in form)
        self.coded = tuple(dict.fromkeys(core for form in plain for core, _, _ in _cores(form)))
        self.forms = self.plain + self.spaced + self.coded
        self.signs = tuple(sign for char, sign in _SIGNS.items() if char in value)
        if not value.isascii() or not value.isprintable():
            self.signs += (b"\\",)
        if value.count(" ") > 1:
            self.signs += (b"+",)

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield where the value is in `data`, plain or in Base64."""
        for form in self.plain:
            yield from _occurrences(data, form)
        if self.spaced and b"+" in data:
            folded = data.replace(b" ", b"+")
            for form in self.spaced:
                yield from _occurrences(folded, form)
        for core in self.coded:
            if core in data:
                for pattern in _coded_patterns(self.plain, core):
                    yield from (found.span() for found in pattern.finditer(data))


_SIGNS = {"/": b"\\/", '"': b'\\"', "\\": b"\\\\"}
_ALWAYS = (b"%", b"u00", b"\\/", b"\\x")
"""Without any of these in a text, plain characters stand in it as they are, and so does Base64."""
_ANY = (b"%", b"\\")

_usual_secret = lru_cache(2 * _MOST_LEARNED)(_Secret)


def _secret(value: str) -> _Secret:
    return (_usual_secret if len(value) <= _USUAL_CHARS else _Secret)(value)


_USUAL_CHARS = 4096


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


# ---- a text with its escapes undone


class _View:
    """A text as it reads when escapes are undone, which knows where each part of it came from."""

    def __init__(self, data: bytes, parent: _View | None = None) -> None:
        self.data = data
        self.parent = parent
        self.starts: list[int] = []
        self.sources: list[int] = []
        self.ends: list[int] = []

    def undone(self, pattern: re.Pattern[bytes], meaning: Callable[[re.Match[bytes]], bytes]) -> _View:
        """Return the view with each match of `pattern` replaced by its meaning."""
        pieces: list[bytes] = []
        view = _View(b"", self)
        size = at = 0
        for found in pattern.finditer(self.data):
            start, end = found.span()
            for piece, source, stop in ((self.data[at:start], at, 0), (meaning(found), start, end)):
                if piece:
                    view._add(size, source, stop)
                    pieces.append(piece)
                    size += len(piece)
            at = end
        view._add(size, at, 0)
        view.data = b"".join([*pieces, self.data[at:]])
        return view

    def _add(self, start: int, source: int, end: int) -> None:
        self.starts.append(start)
        self.sources.append(source)
        self.ends.append(end)

    def source(self, span: Span) -> Span:
        """Return where a part of this view is in the text that it was made of first; escapes are whole."""
        if self.parent is None:
            return span
        first, last = (bisect_right(self.starts, at) - 1 for at in (span[0], span[1] - 1))
        start, end = self.sources[first], self.ends[last]
        if not self.ends[first]:
            start += span[0] - self.starts[first]
        return self.parent.source((start, end or self.sources[last] + span[1] - self.starts[last]))


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


def _views(data: bytes) -> Iterator[_View]:
    """Yield the text as it is, and every way it reads with escapes undone, inside each other too."""
    views, seen = [_View(data)], {data}
    for _ in range((_DEEPEST if len(data) < _LARGE else _DEEPEST_IN_LARGE) + 1):
        yield from views
        below = []
        for view in views:
            for sign, pattern, meaning in _WAYS:
                if sign in view.data and pattern.search(view.data):
                    deeper = view.undone(pattern, meaning)
                    if deeper.data not in seen:
                        seen.add(deeper.data)
                        below.append(deeper)
        views = below


_WAYS = (
    (b"%", _PERCENT, _byte),
    (b"\\", _BACKSLASH, _char),
    (b"\n", _LINE_END, _nothing),
    (b"\r\n", _LINE_END_CR, _nothing),
)


# ---- many secrets in one text


class _Hidden:
    """Secrets and patterns to be hidden together; it does not change.

    Args:
        values: the secrets.
        patterns: what is hidden besides.
        less: the same with fewer values, whose work is used again.
    """

    def __init__(
        self, values: Values, patterns: tuple[re.Pattern[str], ...], less: _Hidden | None = None
    ) -> None:
        self.values = values
        self.patterns = patterns
        new = [_secret(value) for value in values if less is None or value not in less.values]
        self.secrets: list[_Secret] = [*(less.secrets if less else ()), *new]
        forms = list(chain.from_iterable(secret.forms for secret in new))
        signs = [form for form in forms if len(form) < _LONG_FORM]
        signs += chain(_ALWAYS if values else (), _ANY if patterns else (), *(some.signs for some in new))
        self._signs: tuple[bytes, ...] = tuple(dict.fromkeys(chain(less._signs if less else (), signs)))
        forms = [form for form in forms if len(form) >= _LONG_FORM]
        self._forms: tuple[bytes, ...] = (*(less._forms if less else ()), *forms)
        self._parts: set[int] | None = None
        if len(self._forms) >= _MANY:
            known = less._parts if less else None
            self._parts = _parts(self._forms) if known is None else known | _parts(forms)

    def and_(self, values: Values) -> _Hidden:
        """Return these with more values to hide."""
        more = {value: called for value, called in values.items() if value not in self.values}
        return _Hidden(self.values | more, self.patterns, self) if more else self

    def spares(self, data: bytes) -> bool:
        """Whether it is plain at once that nothing in `data` is to be hidden."""
        if any(map(data.__contains__, self._signs)):
            return False
        may_have_one = self._parts is None or not self._parts.isdisjoint(_words(data))
        if may_have_one and any(map(data.__contains__, self._forms)):
            return False
        if self.patterns and any(pattern.search(_readable(data)[0]) for pattern in self.patterns):
            return False
        return not self.values or not _is_wrapped(data)

    def hide(self, data: bytes, *, as_json: bool = False) -> bytes:
        """Return a text in UTF-8 with everything hidden; the same object when there is nothing."""
        for _ in range(_MOST_ROUNDS):
            if self.spares(data):
                return data
            spans = [view.source(span) for view in _views(data) for span in self._spans(view.data)]
            masked = _masked(data, _merged(data, spans), as_json) if spans else data
            if masked == data:
                return data
            data = masked
        return data

    def _spans(self, data: bytes) -> Iterator[Span]:
        for secret in self.secrets:
            yield from secret.spans(data)
        if self.patterns:
            text, codec = _readable(data)
            for pattern in self.patterns:
                yield from _matches(pattern, text, codec)


_PART, _LONG_FORM = 4, 7
_MANY = 128
"""With so many forms it is quicker to look first whether any part of one is there."""


def _parts(forms: Iterable[bytes]) -> set[int]:
    """Return words such that a text with one of the forms in it has one of them at a multiple of 4 bytes.

    A form of 7 bytes or more covers such a place wholly, and does so with one of its first four words.
    """
    return {word for form in forms for at in range(_PART) for word in _words(form[at : at + _PART])}


def _words(data: bytes) -> memoryview[int]:
    return memoryview(data)[: len(data) // _PART * _PART].cast("I")


def _is_wrapped(data: bytes) -> bool:
    """Whether a line ends within what may be Base64."""
    return b"\n" in data and bool(_LINE_END.search(data) or _LINE_END_CR.search(data))


def _readable(data: bytes) -> tuple[str, str]:
    """Return a text in UTF-8 and its codec; as Latin-1, which reads anything, when it is not UTF-8."""
    try:
        return data.decode(), "ascii" if data.isascii() else "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def _matches(pattern: re.Pattern[str], text: str, codec: str) -> Iterator[Span]:
    """Yield the matches of a pattern, as spans of the encoded text."""
    at = size = 0
    for found in pattern.finditer(text):
        start, end = found.span()
        if start == end:
            continue
        if codec == "utf-8":
            first = size + len(text[at:start].encode())
            at, size = end, first + len(text[start:end].encode())
            start, end = first, size
        yield start, end


def _merged(data: bytes, spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that touch as one, and masks that they overlap as a part of them."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        while data[start : start + 1] == b"*" and data[start - 1 : start] == b"*":
            start -= 1
        while data[end - 1 : end] == b"*" and data[end : end + 1] == b"*":
            end += 1
        if merged and start <= merged[-1][1]:
            start, before = merged.pop()
            end = max(end, before)
        merged.append((start, end))
    return merged


_MASK = MASK.encode()
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[^\s"\[\]{}:,]+', re.DOTALL)


def _masked(data: bytes, spans: list[Span], as_json: bool) -> bytes:
    if as_json and _is_json(data):
        return _replaced(data, _in_tokens(data, spans))
    return _replaced(data, ((start, end, _MASK) for start, end in spans))


def _is_json(data: bytes) -> bool:
    """Whether a text is meant as JSON: an array or object by its beginning, anything else by parsing."""
    start = data[:64].removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if start in (b"{", b"["):
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _in_tokens(data: bytes, spans: list[Span]) -> Iterator[tuple[int, int, bytes]]:
    """Yield what to replace so that JSON stays JSON: parts of strings, and other values as a whole."""
    waiting = iter(spans)
    span = next(waiting, None)
    for token in _TOKEN.finditer(data):
        first, last = token.span()
        while span and span[1] <= first:
            span = next(waiting, None)
        if span is None:
            return
        if span[0] >= last:
            continue
        if data[first : first + 1] != b'"':
            yield first, last, b'"%b"' % _MASK
            continue
        inside = first + 1, last - 1 if last - first > 1 and data.endswith(b'"', first + 1, last) else last
        while span and span[0] < last:
            part = _whole(data, inside, (max(span[0], inside[0]), min(span[1], inside[1])))
            if part[0] < part[1]:
                yield *part, _MASK
                inside = part[1], inside[1]
            if span[1] > last:
                break
            span = next(waiting, None)


def _whole(data: bytes, inside: Span, part: Span) -> Span:
    """Return the part of a JSON string, widened so that it cuts no escape in two."""
    start, end = part
    if b"\\" in data[inside[0] : end]:
        for escape in _JSON_ESCAPE.finditer(data, *inside):
            if escape.start() >= end:
                break
            if escape.start() < start < escape.end():
                start = escape.start()
            if escape.start() < end < escape.end():
                end = escape.end()
    return start, end


_JSON_ESCAPE = re.compile(rb"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)


def _replaced(data: bytes, changes: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return the data with parts replaced; of two that overlap the one that starts first counts."""
    pieces, at = [], 0
    for start, end, instead in changes:
        if start >= at:
            pieces += [data[at:start], instead]
            at = end
    return b"".join([*pieces, data[at:]])


# ---- secrets by their place


@lru_cache(1024)
def _is_secret(name: str) -> bool:
    return bool(SECRET_NAME.search(name)) and not _HARMLESS.search(name)


_SCHEME = re.compile(r"[A-Za-z][\w.+-]*[ \t]+(\S.*)", re.DOTALL)
_PARTS = re.compile(r'([\w-]+)="?([^",\s]+)')


def _credentials(value: str) -> Iterator[str]:
    """Yield a credential as it is, without its scheme, and what Basic says in Base64."""
    value = value.strip()
    yield value
    if not (found := _SCHEME.fullmatch(value)):
        return
    yield (rest := found[1].strip())
    yield from (part for name, part in _PARTS.findall(rest) if _is_secret(name))
    if value[:6].lower().rstrip() == "basic":
        try:
            data = base64.b64decode(rest.translate({45: 43, 95: 47}) + "==")
        except (binascii.Error, ValueError):
            return
        text = _readable(data)[0]
        yield text
        yield text.partition(":")[2]


def _values_of(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in the value of a header."""
    name = name.lower()
    if "cookie" not in name:
        yield from _credentials(value)
        return
    yield value.strip()
    crumbs = value.split(";", 1)[:1] if name.startswith("set-cookie") else value.split(";")
    for crumb in crumbs:
        yield crumb.partition("=")[2].strip().strip('"')


def _long(values: Iterable[str], called: str, chars: int = _LEARNED_CHARS) -> Values:
    """Return the values, and what they read with percent escapes undone, that are long enough."""
    forms = chain.from_iterable((value, *_unquoted(value)) for value in values)
    return dict.fromkeys((form for form in forms if len(form) >= chars and form.strip('*" ')), called)


def _unquoted(value: str) -> Iterator[str]:
    if "%" in value:
        yield unquote(value)
        yield unquote(value, "latin-1")


_URI_USER = re.compile(r"(?<=://)[^/?#\s]*(?=@)")
_TEXT_USER = re.compile(r"(?<=://)[^/?#\s\"'<>,]*(?=@)")
_URI_PARAMETER = re.compile(r"(?:^|(?<=[?&;#]))([^=&;#?]*)=([^&#]+)")
_TEXT_PARAMETER = re.compile(r"(?<=[?&])([^=&?\s]*)=([^&#\s\"'<>]+)")


class _Message(NamedTuple):
    """A message on its way, with its body decoded.

    `data` is the body in UTF-8 without its secret fields; it is None for a body that cannot be decoded.
    """

    headers: Headers
    body: bytes
    codec: str = ""
    text: bytes = b""
    data: bytes | None = None


class _Head:
    """What is known of headers, which come again and again as the same object.

    `shown` and `hidden` are what was made of them last, each with what was hidden.
    """

    __slots__ = ("headers", "hidden", "is_plain", "named", "shown", "text", "values")

    def __init__(self, headers: Headers, named: Headers, values: Values) -> None:
        self.headers = headers
        self.named = headers if named == headers else named
        self.values = values
        self.text = _bytes("\0".join([value for _, value in named]))[0]
        media = (header(headers, "content-type") or "").lower()
        charset = _CHARSET.search(media)
        self.is_plain = (
            (charset is None or charset[1] in ("utf-8", "utf8", "us-ascii"))
            and _FORM_TYPE not in media
            and header(headers, "content-encoding") is None
        )
        self.shown: tuple[_Hidden, Headers] | None = None
        self.hidden: tuple[_Hidden, _Hidden] | None = None


_FORM_TYPE = "x-www-form-urlencoded"
_HEADS = 64
_USUAL, _USUAL_BYTES = 32, 16 * 1024
"""So many headers are remembered, if they are of the usual size."""


class Redactor:
    """Hides secrets, and remembers those that it was shown to hide them later; for any thread.

    Headers with a credential by their name are always hidden, and so is what stands in them wherever else it
    occurs, from 8 characters on. Of the values seen, the latest 256 are remembered.

    Args:
        secrets: values to hide wherever they occur, as "Bearer abc…"; under 4 characters in whole headers.
        headers: names of more headers whose value is hidden, in any case.
        fields: names of JSON fields, form fields and query parameters whose value is hidden, in any case.
        patterns: regular expressions; what they match is hidden.

    Raises:
        MemmockError: a pattern cannot be read, or matches the empty text.
    """

    def __init__(
        self,
        *,
        secrets: Iterable[str] = (),
        headers: Iterable[str] = (),
        fields: Iterable[str] = (),
        patterns: Iterable[str] = (),
    ) -> None:
        configured: Values = {}
        self._short: set[str] = set()
        for number, secret in enumerate(secrets, 1):
            parts = list(_credentials(secret))
            configured |= _long(parts, f"the configured secret {number}", _CONFIGURED_CHARS)
            self._short |= {part for part in parts if part and len(part) < _CONFIGURED_CHARS}
        self._names = frozenset(name.lower() for name in headers)
        self._fields = frozenset(name.lower() for name in fields)
        self._field_signs = _field_signs(self._fields)
        self._configured = configured
        self._learned: Values = {}
        self._lock = threading.Lock()
        self._known = _Hidden(configured, tuple(map(_compiled, patterns)))
        self._heads: dict[int, _Head] = {}

    def request(self, request: Request) -> Request:
        """Return one request with its secrets hidden, as `exchange` hides them; nothing is remembered.

        A body that cannot be decoded is left as it is.
        """
        head = self._head(request.headers)
        hidden, target, body = self._with_own(head), request.target, request.body
        if head.is_plain and self._spares(hidden, target, body):
            shown = self._shown(head, hidden)
            return request if shown is head.headers else request._replace(headers=shown)
        message, values = self._opened(request.headers, body, strict=False)
        target, more = self._in_uri(target)
        hidden = hidden.and_(values | more)
        shown, body = self._closed(message, hidden, body)
        return request._replace(target=_hidden_text(hidden, target), headers=shown, body=body)

    def exchange(self, request: Request, reply: Reply) -> tuple[Request, Reply]:
        """Return a request and its reply with their secrets hidden; these are remembered for later ones.

        Bodies come back decoded, without a Content-Encoding.

        Raises:
            MemmockError: a body is encoded in a way that cannot be looked into.
        """
        asked, values = self._opened(request.headers, request.body)
        answered, more = self._opened(reply.headers, reply.body)
        target, others = self._in_uri(request.target)
        values |= {**more, **others, **self._head(request.headers).values, **self._head(reply.headers).values}
        for _, interim in reply.delivery.interim:
            values |= self._head(interim).values
        hidden = self._learn(values).and_(values)
        headers, body = self._closed(asked, hidden, request.body)
        request = request._replace(target=_hidden_text(hidden, target), headers=headers, body=body)
        headers, body = self._closed(answered, hidden, reply.body)
        delivery = self._delivery(reply.delivery, hidden)
        return request, reply._replace(headers=headers, body=body, delivery=delivery)

    def uri(self, uri: str) -> str:
        """Return a URL with its secrets hidden: the user, secret parameters, and values that are known."""
        uri, values = self._in_uri(uri)
        return _hidden_text(self._known.and_(values), uri)

    def text(self, text: str) -> str:
        """Return a text with its secrets hidden: in URLs in it, and values that are known."""
        text, values = self._in_text(text)
        return _hidden_text(self._known.and_(values), text)

    def leaks(self, data: bytes) -> list[str]:
        """Return what was to be hidden and is in `data`, the bytes of a file; told without its value."""
        found: dict[str, None] = {}
        known = self._known
        texts = [data, *(text for codec in _WIDE if b"\0" in data and (text := _transcoded(data, codec)))]
        for view in chain.from_iterable(map(_views, texts)):
            for secret, called in zip(known.secrets, known.values.values(), strict=True):
                if called not in found and next(secret.spans(view.data), None):
                    found[called] = None
            readable = _readable(view.data)[0]
            for number, pattern in enumerate(known.patterns, 1):
                if any(_TELLING.search(match[0]) for match in pattern.finditer(readable)):
                    found[f"a match of the pattern {number}"] = None
        return list(found)

    def _spares(self, hidden: _Hidden, target: str, body: bytes) -> bool:
        """Whether it is plain at once that nothing in a target and a body is to be hidden."""
        if "=" in target or "@" in target or self._may_have_fields(body):
            return False
        if b"\0" in body[:4] or body[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return False
        return hidden.spares(_bytes(target)[0]) and hidden.spares(body)

    # ---- what is remembered

    def _learn(self, values: Values) -> _Hidden:
        """Remember values, the latest for longest, and return all that is known."""
        new = {
            value: called
            for value, called in values.items()
            if value not in self._configured and len(value) <= _LONGEST_LEARNED
        }
        if not new:
            return self._known
        with self._lock:
            for value, called in new.items():
                self._learned[value] = self._learned.pop(value, called)
            size = sum(map(len, self._learned))
            if len(self._learned) > _MOST_LEARNED or size > _MOST_LEARNED_CHARS:
                self._forget(size)
                self._known = _Hidden({**self._configured, **self._learned}, self._known.patterns)
            else:
                self._known = self._known.and_(new)
            return self._known

    def _forget(self, size: int) -> None:
        """Forget the oldest values, down to half of the most: seldom, since it takes a while to sort in."""
        for value in list(self._learned):
            if len(self._learned) <= _MOST_LEARNED // 2 and size <= _MOST_LEARNED_CHARS // 2:
                return
            size -= len(value)
            del self._learned[value]

    # ---- headers

    def _head(self, headers: Headers) -> _Head:
        head = self._heads.get(id(headers))
        if head and head.headers is headers:
            return head
        values: Values = {}
        named = []
        for name, value in headers:
            shown = value
            if self._is_hidden(name):
                values |= _long(_values_of(name, value), f"the value of the header {name.lower()}")
                shown = MASK
            elif value in self._short:
                shown = MASK
            elif "=" in value or "@" in value:
                shown, more = self._in_text(value)
                values |= more
            named.append((name, shown))
        head = _Head(headers, tuple(named), values)
        if len(headers) <= _USUAL and len(head.text) <= _USUAL_BYTES:
            if len(self._heads) >= _HEADS:
                self._heads.clear()
            self._heads[id(headers)] = head
        return head

    def _is_hidden(self, name: str) -> bool:
        return _is_secret(name) or name.lower() in self._names

    def _with_own(self, head: _Head) -> _Hidden:
        """Return what is known, and what the headers themselves tell."""
        known = self._known
        last = head.hidden
        if last is None or last[0] is not known:
            last = head.hidden = known, known.and_(head.values)
        return last[1]

    def _shown(self, head: _Head, hidden: _Hidden) -> Headers:
        """Return headers with their secrets hidden; the same object when there are none."""
        last = head.shown
        if last is None or last[0] is not hidden:
            shown = head.named
            if not hidden.spares(head.text):
                shown = tuple(
                    (name, value if name.lower() == "content-length" else _hidden_text(hidden, value))
                    for name, value in shown
                )
            last = head.shown = hidden, head.headers if shown == head.headers else shown
        return last[1]

    # ---- URLs

    def _in_uri(self, uri: str) -> tuple[str, Values]:
        return self._in_parts(uri, _URI_USER, _URI_PARAMETER)

    def _in_text(self, text: str) -> tuple[str, Values]:
        return self._in_parts(text, _TEXT_USER, _TEXT_PARAMETER)

    def _in_parts(self, text: str, users: re.Pattern[str], parameters: re.Pattern[str]) -> tuple[str, Values]:
        """Return a text with users and secret parameters hidden in its URLs, and their values."""
        values: Values = {}

        def user(found: re.Match[str]) -> str:
            values.update(_long([found[0].partition(":")[2]], "the password in a URL"))
            return MASK

        def hidden(found: re.Match[str]) -> str:
            name = unquote_plus(found[1])
            if not (_is_secret(name) or name.lower() in self._fields):
                return found[0]
            forms = [found[2], unquote_plus(found[2])]
            values.update(_long(forms, f"the value of the parameter {name}"))
            return f"{found[1]}={MASK}"

        if "@" in text:
            text = users.sub(user, text)
        if "=" in text:
            text = parameters.sub(hidden, text)
        return text, values

    # ---- bodies

    def _opened(self, headers: Headers, body: bytes, *, strict: bool = True) -> tuple[_Message, Values]:
        """Return a message with its body decoded and its fields hidden, and their values."""
        coding = header(headers, "content-encoding")
        if coding and body:
            try:
                body = _decoded(coding, body)
            except MemmockError:
                if strict:
                    raise
                return _Message(headers, body), {}
            headers = tuple(pair for pair in headers if pair[0].lower() != "content-encoding")
        media = header(headers, "content-type") or ""
        codec, text = _as_utf8(body, media)
        data, values = self._without_fields(text, media)
        return _Message(headers, body, codec, text, data), values

    def _closed(self, message: _Message, hidden: _Hidden, sent: bytes) -> tuple[Headers, bytes]:
        """Return headers and body of a message with everything hidden; `sent` is the body as it was."""
        headers, body = self._shown(self._head(message.headers), hidden), message.body
        if message.data is None:
            return headers, body
        data = hidden.hide(message.data, as_json=True)
        if data != message.text:
            body = _encoded(data, message.codec, body) if message.codec else data
        if message.codec:
            body = hidden.hide(body)
        if body != sent:
            headers = tuple(
                (name, str(len(body)) if name.lower() == "content-length" else value)
                for name, value in headers
            )
        return headers, body

    def _may_have_fields(self, body: bytes) -> bool:
        return bool(self._fields) and any(map(body.lower().__contains__, self._field_signs))

    def _without_fields(self, data: bytes, media: str) -> tuple[bytes, Values]:
        """Return a body with the fields hidden that are to be hidden by their name, and their values."""
        is_form = _FORM_TYPE in media.lower()
        if not is_form and not self._may_have_fields(data):
            return data, {}
        start = data[:64].removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        if is_form or (start not in (b"{", b"[") and _FORM.fullmatch(data)):
            return self._without_form_fields(data, is_form)
        values: Values = {}
        changes: list[tuple[int, int, bytes]] = []
        for start_at, end_at, instead, text, name in _fields(data, self._fields):
            changes.append((start_at, end_at, instead))
            if len(values) < _MOST_LEARNED:
                values |= _long([text], f"the value of the field {name}")
        return (_replaced(data, sorted(changes)) if changes else data), values

    def _without_form_fields(self, data: bytes, is_form: bool) -> tuple[bytes, Values]:
        values: Values = {}

        def hidden(found: re.Match[bytes]) -> bytes:
            name = unquote_plus(found[1].decode("latin-1"))
            if not (name.lower() in self._fields or (is_form and _is_secret(name))):
                return found[0]
            text = found[2].decode("latin-1")
            values.update(_long([text, unquote_plus(text)], f"the value of the field {name}"))
            return found[1] + b"=" + _MASK

        return _FORM_FIELD.sub(hidden, data), values

    def _delivery(self, delivery: Delivery, hidden: _Hidden) -> Delivery:
        """Return a delivery with what it holds of a reply hidden: interim replies, and bytes for the wire."""
        if delivery is AT_ONCE or not (delivery.interim or delivery.wire):
            return delivery
        interim = tuple(
            (status, self._shown(self._head(headers), hidden)) for status, headers in delivery.interim
        )
        wire = delivery.wire
        if wire:
            head, end, body = wire.partition(b"\r\n\r\n")
            wire = hidden.hide(_WIRE_HEADER.sub(self._wire_header, head) + end + body)
        return delivery._replace(interim=interim, wire=wire)

    def _wire_header(self, found: re.Match[bytes]) -> bytes:
        secret = self._is_hidden(found[1].decode("latin-1"))
        return b"%b: %b" % (found[1], _MASK) if secret else found[0]


_WIRE_HEADER = re.compile(rb"(?m)^([\w-]+):[^\r\n]*", re.ASCII)


_TELLING = re.compile(r'[^\s*"\\\[\]{}:,]')
"""What a match holds besides masks and the marks of JSON, if it was not hidden."""


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        reason = str(error) or type(error).__name__
        raise MemmockError(f"the pattern {pattern!r} is not a regular expression: {reason}") from None
    if compiled.search(""):
        raise MemmockError(f"the pattern {pattern!r} matches the empty text, so it would hide everything")
    return compiled


def _bytes(text: str) -> tuple[bytes, str]:
    """Return a text of a head as the bytes it stands for, and their codec."""
    try:
        return text.encode("latin-1"), "latin-1"
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass"), "utf-8"


def _hidden_text(hidden: _Hidden, text: str) -> str:
    data, codec = _bytes(text)
    masked = hidden.hide(data)
    return text if masked is data else masked.decode(codec, "surrogatepass" if codec == "utf-8" else "strict")


# ---- JSON and form fields

_FORM = re.compile(rb"[^\s=&{}\[\]\"]+=[^&\s]*(?:&[^\s=&]*(?:=[^&\s]*)?)*\s*")
_FORM_FIELD = re.compile(rb"(?:^|(?<=[&;]))([^=&;]*)=([^&\r\n]+)")
_KEY = re.compile(rb'(?<!\\)"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*', re.DOTALL)
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)', re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\]}"\\]+')
_STRUCTURE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def _field_signs(names: frozenset[str]) -> tuple[bytes, ...]:
    """Return what a body in lower case has in it if it has a field of one of the names."""
    plain = [name.encode() for name in names if re.fullmatch(r"[\w.-]+", name, re.ASCII)]
    return (*plain, b"u00", b"%") if len(plain) == len(names) else (b"",)


def _fields(data: bytes, names: frozenset[str]) -> Iterator[tuple[int, int, bytes, str, str]]:
    """Yield where the values of fields are, what to put there, the text that they hold, and their names.

    JSON in strings of JSON is looked into too.
    """
    view = _View(data)
    for depth in range(_DEEPEST):
        mark = b"\\" * (2**depth - 1) + b'"'
        hidden_to = 0
        for key in _KEY.finditer(view.data):
            quotes = (view.source((at, at + 1)) for at in (key.start(), key.end(1)))
            name = _unescaped(key[1])
            if name.lower() not in names or any(end - start != len(mark) for start, end in quotes):
                continue
            if found := _STRING.match(view.data, key.end()):
                first, last = (view.source((at, at + 1)) for at in (found.start(1) - 1, found.end(1) - 1))
                yield first[1], last[1], _MASK, _unescaped(found[1]), name
            elif key.start() >= hidden_to and (span := _value(view.data, key.end())):
                hidden_to = span[1]
                yield *view.source(span), mark + _MASK + mark, "", name
        if b'\\"' not in view.data:
            return
        view = view.undone(_BACKSLASH, _char)


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


def _unescaped(data: bytes) -> str:
    return _BACKSLASH.sub(_char, data).decode("utf-8", "replace")


# ---- how a body is encoded

_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
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
    text = _transcoded(body, codec) if codec else None
    return ("", body) if text is None else (codec, text)


def _codec(body: bytes, media: str) -> str:
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return codec
    if b"\0" in body[:4] and (codec := json.detect_encoding(body)) in _WIDE:
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
    return "" if info.name in _WIDE and b"\0" not in body else info.name


def _tail(body: bytes, codec: str) -> bytes:
    """Return the bytes at the end of a body that make no whole unit of its codec."""
    width = 4 if codec.startswith("utf-32") else 2 if codec.startswith("utf-16") else 1
    return body[len(body) - len(body) % width :]


def _transcoded(body: bytes, codec: str) -> bytes | None:
    errors = "surrogatepass" if codec in _WIDE else "strict"
    try:
        return (
            body[: len(body) - len(_tail(body, codec))].decode(codec, errors).encode("utf-8", "surrogatepass")
        )
    except (UnicodeError, ValueError):
        return None


def _encoded(data: bytes, codec: str, body: bytes) -> bytes:
    errors = "surrogatepass" if codec in _WIDE else "replace"
    return data.decode("utf-8", "surrogatepass").encode(codec, errors) + _tail(body, codec)


def _decoded(codings: str, body: bytes) -> bytes:
    """Return a body as it was before it was encoded."""
    for coding in reversed([coding.strip().lower() for coding in codings.split(",")]):
        if coding in ("gzip", "x-gzip"):
            body = _inflated(coding, body, 31)
        elif coding == "deflate":
            is_zlib = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
            body = _inflated(coding, body, 15 if is_zlib else -15)
        elif coding not in ("identity", ""):
            raise MemmockError(f"the body is encoded as {coding} and cannot be looked into for secrets")
    return body


def _inflated(coding: str, body: bytes, bits: int) -> bytes:
    pieces, left = [], _MOST_DECODED
    while body:
        inflater = zlib.decompressobj(bits)
        try:
            pieces.append(inflater.decompress(body, left + 1))
        except zlib.error:
            raise MemmockError(
                f"the body is encoded as {coding}, but broken, and cannot be looked into for secrets"
            ) from None
        left -= len(pieces[-1])
        if left < 0:
            raise MemmockError(
                f"the body is encoded as {coding}, holds more than {_MOST_DECODED >> 20} MiB,"
                " and cannot be looked into for secrets"
            )
        if not inflater.eof:
            raise MemmockError(
                f"the body is encoded as {coding}, but cut short, and cannot be looked into for secrets"
            )
        body = inflater.unused_data.lstrip(b"\0") if bits == 31 else b""
    return b"".join(pieces)


# ---- texts that may be cut short

_LONG_ENOUGH = 8
"""A credential of so many characters is hidden without its scheme too: shorter ones may be common words."""
_CUT_AT = 64
"""Longer beginnings of a value are never shown: `shortened` cuts before."""


@lru_cache(8)
def mask_of(*secrets: str | None) -> Callable[[str], str]:
    """Return a function that hides the secrets in a text, however they are escaped there.

    Where a text was cut short, marked with "…", the beginning of a secret is hidden too.
    """
    hidden = {secret.strip(): None for secret in secrets if secret and secret.strip()}
    parts = [secret.partition(" ")[2].strip() for secret in hidden]
    hidden |= dict.fromkeys(part for part in parts if len(part) >= _LONG_ENOUGH)
    if not hidden:
        return str
    pattern = re.compile("|".join(form for secret in hidden for form in _forms(secret)))
    return lambda text: pattern.sub(MASK, text)


def mask_with(redactor: Redactor, *secrets: str | None) -> Callable[[str], str]:
    """Return a function that hides in a text what the redactor knows, and the secrets as `mask_of` does."""
    mask = mask_of(*secrets)
    return lambda text: redactor.text(mask(text))


def _forms(secret: str) -> Iterable[str]:
    """Yield what a secret looks like, and its beginning where a text was cut short, as patterns."""
    chars = [_spellings(char) for char in secret]
    yield "".join(chars)
    start, rest = chars[:4], chars[4:_CUT_AT]
    if rest:
        yield f"{''.join(start)}{''.join(f'(?:{char}' for char in rest)}{')?' * len(rest)}(?=…)"


def _spellings(char: str) -> str:
    """Return a pattern for a character as it is, in JSON, in a JSON pointer, in a URL and in a header."""
    data = char.encode("utf-8", "surrogatepass")
    plain = {char, json.dumps(char)[1:-1], strictjson.pointer(char)[1:], data.decode("latin-1")}
    forms = [*map(re.escape, sorted(plain)), f"(?i:{''.join(f'%{byte:02x}' for byte in data)})"]
    return f"(?:{'|'.join(forms)}{'|[+]' if char == ' ' else ''})"
