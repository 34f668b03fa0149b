"""Hides many secrets in one text, so that JSON stays JSON."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from memmock.redaction.forms import SIGNS, Secret, Span, is_wrapped, secret_of, views

MASK = "***"
MASK_BYTES = MASK.encode()

_MOST_ROUNDS = 8

Values = dict[str, str]
"""Secrets, each with what it is called."""


_Groups = tuple[tuple[Secret, list[Secret]], ...]
"""Secrets, each with those that its forms tell of, itself too."""


class Hidden:
    """Secrets and patterns to be hidden together; it does not change.

    Args:
        values: the secrets; looked for in any form, unless there is `less`.
        patterns: what is hidden besides.
        less: the same with fewer values, whose work is used again.
    """

    def __init__(
        self, values: Values, patterns: tuple[re.Pattern[str], ...], less: Hidden | None = None
    ) -> None:
        self.values = values
        self.patterns = patterns
        new = (
            [secret_of(value) for value in values if value not in less.values]
            if less
            else [Secret(value, any_form=True) for value in values]
        )
        groups = _groups(new)
        forms = [form for secret in groups for form in secret.forms]
        signs = [form for form in forms if len(form) < _LONG_FORM]
        signs += chain(SIGNS if values else (), _ANY if patterns else (), *(some.signs for some in new))
        self._signs: tuple[bytes, ...] = tuple(dict.fromkeys(chain(less._signs if less else (), signs)))
        self._folded: tuple[bytes, ...] = less._folded if less else _kept(new)
        self._always: tuple[Secret, ...] = less._always if less else ()
        """Secrets that are looked for in every text: of the others, those that `_index` finds for it."""
        self._always += tuple(secret for secret in new if secret.folded or _has_short_form(secret))
        self._index: Index = less._index if less else Index()
        self._recent: _Groups = (*(less._recent if less else ()), *groups.items())
        """Secrets that are not in the index yet, and their long forms."""
        forms = [form for form in forms if len(form) >= _LONG_FORM]
        self._forms: tuple[bytes, ...] = (*(less._forms if less else ()), *forms)
        if len(self._forms) >= _MANY:
            self._index = self._index.and_(self._recent)
            self._recent = self._forms = ()

    def and_(self, values: Values) -> Hidden:
        """Return these with more values to hide."""
        more = {value: called for value, called in values.items() if value not in self.values}
        return Hidden(self.values | more, self.patterns, self) if more else self

    def spares(self, data: bytes) -> bool:
        """Whether it is plain at once that nothing in `data` is to be hidden."""
        if any(map(data.__contains__, self._signs)) or any(map(data.__contains__, self._forms)):
            return False
        if self._folded and any(map(data.lower().__contains__, self._folded)):
            return False
        if any(form in data for secret in self._index.found(data) for form in secret.forms):
            return False
        if self.patterns and any(pattern.search(readable(data)[0]) for pattern in self.patterns):
            return False
        return not self.values or not is_wrapped(data)

    def hide(self, data: bytes, *, as_json: bool = False) -> bytes:
        """Return a text in UTF-8 with everything hidden; the same object when there is nothing."""
        for _ in range(_MOST_ROUNDS):
            if self.spares(data):
                return data
            spans = [view.source(span) for view in views(data) for span in self._spans(view.data)]
            masked = masked_in(data, spans, as_json)
            if masked == data:
                return data
            data = masked
        return data

    def hide_text(self, text: str) -> str:
        """Return a text of a head with everything hidden; the same object when there is nothing."""
        data, codec = head_bytes(text)
        masked = self.hide(data)
        return text if masked is data else masked.decode(codec, "surrogatepass")

    def told(self, data: bytes) -> list[str]:
        """Return what was to be hidden and is in `data`, without its value."""
        found: dict[str, None] = {}
        for view in () if self.spares(data) else views(data):
            for secret in self._candidates(view.data):
                called = self.values[secret.value]
                if called not in found and next(secret.spans(view.data), None):
                    found[called] = None
            read = readable(view.data)[0]
            for number, pattern in enumerate(self.patterns, 1):
                if any(_TELLING.search(match[0]) for match in pattern.finditer(read)):
                    found[f"a match of the pattern {number}"] = None
        return list(found)

    def _spans(self, data: bytes) -> Iterator[Span]:
        for secret in self._candidates(data):
            yield from secret.spans(data)
        if self.patterns:
            text, codec = readable(data)
            for pattern in self.patterns:
                yield from _matches(pattern, text, codec)

    def _candidates(self, data: bytes) -> Iterable[Secret]:
        """Return the secrets that may be in a text as it is."""
        recent = chain.from_iterable(secrets for _, secrets in self._recent)
        spaced = self._index.found(data.replace(b" ", b"+")) if b"+" in data else ()
        return dict.fromkeys(chain(self._always, recent, self._index.found(data), spaced))


_ANY = (b"%", b"\\", b"&")
"""Without these in a text there are no escapes in it."""
_TELLING = re.compile(r'[^\s*"\\\[\]{}:,]')
"""What a match holds besides masks and the marks of JSON, if it was not hidden."""
_PART, _LONG_FORM = 4, 7
_MANY = 16
"""With so many forms it is quicker to look first whether any part of one is there."""
_NEAR = 4
"""So many secrets before another one may be of the same header."""


def _groups(secrets: list[Secret]) -> dict[Secret, list[Secret]]:
    """Return secrets by the one whose forms tell of them: a credential's tell of it with its scheme."""
    telling: dict[Secret, Secret] = {}
    for number in reversed(range(len(secrets))):
        secret, near = secrets[number], secrets[number + 1 : number + 1 + _NEAR]
        telling[secret] = next((telling[part] for part in near if part.tells_of(secret)), secret)
    groups: dict[Secret, list[Secret]] = {}
    for secret in secrets:
        groups.setdefault(telling[secret], []).append(secret)
    return groups


def _kept(secrets: Iterable[Secret]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(secret.folded for secret in secrets)))


def _has_short_form(secret: Secret) -> bool:
    return any(len(form) < _LONG_FORM for form in secret.forms)


class Index:
    """Finds the few of many secrets that may be in a text, by words of 4 bytes; it does not change.

    A text with one of a secret's long forms in it has one of four words of the form at a multiple of 4 bytes:
    7 bytes cover such a place wholly. Those in the middle are taken, since many secrets begin or end alike.
    """

    def __init__(self, layers: tuple[dict[int, tuple[Secret, ...]], ...] = ()) -> None:
        self._layers = layers

    def and_(self, groups: _Groups) -> Index:
        """Return the index with more secrets; layers of about the same size become one."""
        layer: dict[int, tuple[Secret, ...]] = {}
        for telling, secrets in groups:
            for word in dict.fromkeys(chain.from_iterable(map(_middle, telling.forms))):
                layer[word] = (*layer.get(word, ()), *secrets)
        layers = self._layers
        while layers and len(layers[-1]) < 4 * len(layer):
            merged = dict(layers[-1])
            merged.update((word, merged.get(word, ()) + some) for word, some in layer.items())
            layer, layers = merged, layers[:-1]
        return Index((*layers, layer))

    def found(self, data: bytes) -> Iterable[Secret]:
        """Return the secrets that may be in a text plain or in Base64."""
        if not self._layers:
            return ()
        words = set(_words(data))
        layers = [layer for layer in self._layers if not layer.keys().isdisjoint(words)]
        if not layers:
            return ()
        hits = (layer[word] for layer in layers for word in layer.keys() & words)
        return dict.fromkeys(chain.from_iterable(hits))


def _middle(form: bytes) -> Iterator[int]:
    """Yield the four words of 4 bytes in the middle of a long form."""
    if len(form) >= _LONG_FORM:
        first = (len(form) - _LONG_FORM) // 2
        for at in range(first, first + _PART):
            yield from _words(form[at : at + _PART])


def _words(data: bytes) -> memoryview[int]:
    return memoryview(data)[: len(data) // _PART * _PART].cast("I")


def head_bytes(text: str) -> tuple[bytes, str]:
    """Return a text of a head as the bytes it stands for, and their codec."""
    try:
        return text.encode("latin-1"), "latin-1"
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass"), "utf-8"


def readable(data: bytes) -> tuple[str, str]:
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


# ---- what stands in place of it

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[^\s"\[\]{}:,]+', re.DOTALL)


def masked_in(data: bytes, spans: Iterable[Span], as_json: bool) -> bytes:
    """Return a text with a mask in place of each span, so that what is meant as JSON stays JSON."""
    if not (spans := _merged(data, spans)):
        return data
    if as_json and _is_json(data):
        return replaced(data, _in_tokens(data, spans))
    return replaced(data, ((start, end, MASK_BYTES) for start, end in spans))


def _is_json(data: bytes) -> bool:
    """Whether a text is meant as JSON: an array or object by its beginning, anything else by parsing."""
    if begins_as_json(data):
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def begins_as_json(data: bytes) -> bool:
    """Whether a text begins as an array or an object does."""
    return data[:64].removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")


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
            yield first, last, b'"%b"' % MASK_BYTES
            continue
        inside = first + 1, last - 1 if last - first > 1 and data.endswith(b'"', first + 1, last) else last
        while span and span[0] < last:
            part = _whole(data, inside, (max(span[0], inside[0]), min(span[1], inside[1])))
            if part[0] < part[1]:
                yield *part, MASK_BYTES
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


def replaced(data: bytes, changes: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return the data with parts replaced; of two that overlap the one that starts first counts."""
    pieces, at = [], 0
    for start, end, instead in changes:
        if start >= at:
            pieces += [data[at:start], instead]
            at = end
    return b"".join([*pieces, data[at:]])
