"""The `Redactor`: what is hidden in whole messages, and which values are remembered for later ones."""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request, header
from memmock.redaction.bodies import WIDE, Body, Fields, decoded, is_form, is_utf8, transcoded, unpacked
from memmock.redaction.hidden import MASK, Hidden, Values, head_bytes
from memmock.redaction.places import (
    CONFIGURED_CHARS,
    MOST_LEARNED,
    credentials,
    in_text,
    is_secret,
    long,
    values_of,
)

_MOST_LEARNED_CHARS, _LONGEST_LEARNED = 1024 * 1024, 64 * 1024
_HEADS, _USUAL, _USUAL_BYTES = 256, 32, 16 * 1024
"""So many headers are remembered, if they are of the usual size."""


class _Message(NamedTuple):
    """A message on its way.

    Attributes:
        headers: its headers.
        sent: its body as it was sent.
        body: its body, opened; None when it cannot be.
        inside: what that is packed from, if it does not say so.
    """

    headers: Headers
    sent: bytes
    body: Body | None
    inside: Body | None = None


class _Head:
    """What is known of headers, which come again and again; `shown` is what was made of them last."""

    __slots__ = ("headers", "is_plain", "named", "shown", "text", "values")

    def __init__(self, headers: Headers, named: Headers, values: Values) -> None:
        self.headers = headers
        self.named = headers if named == headers else named
        self.values = values
        self.text = head_bytes("\0".join([value for _, value in named]))[0]
        media = header(headers, "content-type") or ""
        self.is_plain = is_utf8(media) and not is_form(media) and header(headers, "content-encoding") is None
        self.shown: tuple[Hidden, Headers] | None = None


class Redactor:
    """Hides secrets, and remembers those that it was shown to hide them later; for any thread.

    Headers with a credential by their name are always hidden, and so is what stands in them wherever else it
    occurs, from 8 characters on. Of the values seen, the latest are remembered: at least 2048, at most
    4096, unless they are large.

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
        self._configured: Values = {}
        self._short: set[str] = set()
        for number, secret in enumerate(secrets, 1):
            parts = list(credentials(secret))
            self._configured |= long(parts, f"the configured secret {number}", CONFIGURED_CHARS)
            self._short |= {part for part in parts if part and len(part) < CONFIGURED_CHARS}
        self._names = frozenset(name.lower() for name in headers)
        self._fields = Fields(fields)
        self._learned: Values = {}
        self._lock = threading.Lock()
        compiled = tuple(_compiled(pattern, number) for number, pattern in enumerate(patterns, 1))
        self._known = self._base = Hidden(self._configured, compiled)
        self._heads: dict[Headers, _Head] = {}
        self._owns: tuple[Hidden, dict[tuple[str, ...], Hidden]] = self._known, {}

    def request(self, request: Request) -> Request:
        """Return one request with its secrets hidden, as `exchange` hides them; nothing is remembered.

        A body that cannot be decoded is left as it is.
        """
        head = self._head(request.headers)
        hidden = self._with_own(head)
        if head.is_plain and self._spares(hidden, request.target, request.body):
            shown = self._shown(head, hidden)
            return request if shown is head.headers else request._replace(headers=shown)
        try:
            message, values = self._opened(request.headers, request.body)
        except MemmockError:
            message, values = _Message(request.headers, request.body, None), {}
        target, more = self._fields.in_uri(request.target)
        hidden = hidden.and_(values | more)
        headers, body = self._closed(message, hidden)
        return request._replace(target=hidden.hide_text(target), headers=headers, body=body)

    def exchange(self, request: Request, reply: Reply) -> tuple[Request, Reply]:
        """Return a request and its reply with their secrets hidden; these are remembered for later ones.

        Bodies come back decoded, without a Content-Encoding. How the reply is delivered stays as it is.

        Raises:
            MemmockError: a body is encoded in a way that cannot be looked into, or has a secret packed in it.
        """
        asked, values = self._opened(request.headers, request.body)
        answered, more = self._opened(reply.headers, reply.body)
        target, others = self._fields.in_uri(request.target)
        values |= {**more, **others, **self._head(request.headers).values, **self._head(reply.headers).values}
        hidden = self._learn(values).and_(values)
        _refuse_inside(asked, hidden)
        _refuse_inside(answered, hidden)
        headers, body = self._closed(asked, hidden)
        request = request._replace(target=hidden.hide_text(target), headers=headers, body=body)
        headers, body = self._closed(answered, hidden)
        return request, reply._replace(headers=headers, body=body)

    def uri(self, uri: str) -> str:
        """Return a URL with its secrets hidden: the user, secret parameters, and values that are known."""
        uri, values = self._fields.in_uri(uri)
        return self._known.and_(values).hide_text(uri)

    def text(self, text: str) -> str:
        """Return a text with its secrets hidden: in URLs in it, and values that are known."""
        text, values = in_text(text, self._fields.names)
        return self._known.and_(values).hide_text(text)

    def leaks(self, data: bytes) -> list[str]:
        """Return what was to be hidden and is in `data`, the bytes of a file; told without its value."""
        texts = [data, *(text for codec in WIDE if b"\0" in data and (text := transcoded(data, codec)))]
        return list(dict.fromkeys(chain.from_iterable(map(self._known.told, texts))))

    def _spares(self, hidden: Hidden, target: str, body: bytes) -> bool:
        """Whether it is plain at once that nothing in a target and a body is to be hidden."""
        if "=" in target or "@" in target or self._fields.may_be_in(body):
            return False
        if self._fields.names and ("%" in target or '"' in target):
            return False
        if b"\0" in body[:4] or body[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return False
        place = head_bytes(target)[0]
        if not hidden.patterns:  # which may say what a text begins or ends with
            return hidden.spares(b"%b\0%b" % (place, body))
        return hidden.spares(place) and hidden.spares(body)

    # ---- messages

    def _opened(self, headers: Headers, sent: bytes) -> tuple[_Message, Values]:
        """Return a message with its body decoded and its fields hidden, and their values."""
        body = sent
        if body and (coding := header(headers, "content-encoding")):
            body = decoded(body, coding)
            headers = tuple(pair for pair in headers if pair[0].lower() != "content-encoding")
        media = header(headers, "content-type") or ""
        opened, values = self._fields.opened(body, media)
        if (unpacked_body := unpacked(body)) is None:
            return _Message(headers, sent, opened), values
        inside, more = self._fields.opened(unpacked_body, media)
        return _Message(headers, sent, opened, inside), values | more

    def _closed(self, message: _Message, hidden: Hidden) -> tuple[Headers, bytes]:
        """Return headers and body of a message with everything hidden."""
        headers, body = self._shown(self._head(message.headers), hidden), message.sent
        if message.body is not None and (body := message.body.hidden(hidden)) != message.sent:
            headers = tuple(
                (name, str(len(body)) if name.lower() == "content-length" else value)
                for name, value in headers
            )
        return headers, body

    # ---- what is remembered

    def _learn(self, values: Values) -> Hidden:
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
            if len(self._learned) > MOST_LEARNED or size > _MOST_LEARNED_CHARS:
                self._forget(size)
                self._known = self._base.and_(self._learned)
            else:
                self._known = self._known.and_(new)
            return self._known

    def _forget(self, size: int) -> None:
        """Forget the oldest values, down to half of the most: seldom, since it takes a while to sort in."""
        for value in list(self._learned):
            if len(self._learned) <= MOST_LEARNED // 2 and size <= _MOST_LEARNED_CHARS // 2:
                return
            size -= len(value)
            del self._learned[value]

    # ---- headers

    def _head(self, headers: Headers) -> _Head:
        if head := self._heads.get(headers):
            return head
        values: Values = {}
        named = []
        for name, value in headers:
            shown = value
            if self._is_hidden(name):
                values |= long(values_of(name, value), f"the value of the header {name.lower()}")
                shown = MASK
            elif value in self._short:
                shown = MASK
            elif "=" in value or "@" in value:
                shown, more = in_text(value, self._fields.names)
                values |= more
            named.append((name, shown))
        head = _Head(headers, tuple(named), values)
        if len(headers) <= _USUAL and len(head.text) <= _USUAL_BYTES:
            if len(self._heads) >= _HEADS:
                self._heads.clear()
            self._heads[headers] = head
        return head

    def _is_hidden(self, name: str) -> bool:
        return is_secret(name) or name.lower() in self._names

    def _with_own(self, head: _Head) -> Hidden:
        """Return what is known, and what the headers themselves tell."""
        if not head.values:
            return self._known
        known, owns = self._owns
        if known is not self._known:
            known, owns = self._owns = self._known, {}
        own = tuple(head.values)
        hidden = owns.get(own)
        if hidden is None:
            if len(owns) >= _HEADS:
                owns.clear()
            hidden = owns[own] = known.and_(head.values)
        return hidden

    def _shown(self, head: _Head, hidden: Hidden) -> Headers:
        """Return headers with their secrets hidden; the same object when there are none."""
        last = head.shown
        if last is None or last[0] is not hidden:
            shown = head.named
            if not hidden.spares(head.text):
                shown = tuple(
                    (name, value if name.lower() == "content-length" else hidden.hide_text(value))
                    for name, value in shown
                )
            last = head.shown = hidden, head.headers if shown == head.headers else shown
        return last[1]


def _refuse_inside(message: _Message, hidden: Hidden) -> None:
    """Refuse a body with a secret in what it is packed from.

    Raises:
        MemmockError: there is one.
    """
    inside = message.inside
    if inside is not None and inside.hidden(hidden) != inside.data:
        what = ", ".join(hidden.told(inside.text) or ["a hidden field"])
        raise MemmockError(f"the body cannot be stored: packed as gzip without saying so, it holds {what}")


_REASON = re.compile(r"(?:(?:[a-z]{2,}(?:-[a-z]{2,})?|[():<>]{1,2}),?(?: |$))*")
"""What a reason begins with that has nothing of the pattern in it."""


def _compiled(pattern: str, number: int) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        reason = _reason(error)
        raise MemmockError(f"the pattern {number} is not a regular expression: {reason}") from None
    if compiled.search(""):
        raise MemmockError(f"the pattern {number} matches the empty text, so it would hide everything")
    return compiled


def _reason(error: Exception) -> str:
    """Return what is wrong with a pattern, without quoting it."""
    found = _REASON.match(error.msg if isinstance(error, re.error) else str(error))
    reason = (found[0].strip() if found else "") or type(error).__name__
    at = error.pos if isinstance(error, re.error) else None
    return reason if at is None else f"{reason} at position {at}"
