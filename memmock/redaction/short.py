"""Secrets in short texts that may be cut: what is told of a call, as `strictjson.shortened` tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from memmock import strictjson
from memmock.redaction.hidden import MASK

_LONG_ENOUGH = 8
"""A credential of so many characters is hidden without its scheme too: shorter ones may be common words."""
_CUT_AT = 64
"""Longer beginnings of a value are never shown: `shortened` cuts before, and so long a one is hidden."""


@lru_cache(8)
def mask_of(*secrets: str | None) -> Callable[[str], str]:
    """Return a function that hides the secrets in a text, however they are escaped there.

    The beginning of a secret is hidden too, where a text was cut short, marked with "…", and wherever it is
    as long as such a text may be.
    """
    hidden = {secret.strip(): None for secret in secrets if secret and secret.strip()}
    parts = [secret.partition(" ")[2].strip() for secret in hidden]
    hidden |= dict.fromkeys(part for part in parts if len(part) >= _LONG_ENOUGH)
    if not hidden:
        return str
    known = list(hidden)
    # the pattern has one group for each secret: to make one of a whole long value takes seconds
    pattern = re.compile("|".join(f"({'|'.join(_forms(secret[:_CUT_AT]))})" for secret in known))
    # a part of letters and digits has no other spelling than percent-encoding, unless it was cut short
    runs = (re.findall("[A-Za-z0-9]*", secret[:_CUT_AT]) for secret in known)
    signs = ("%", "…", *(max(run, key=len) for run in runs))

    def masked(text: str) -> str:
        # to search a picture of 20 MB for the pattern takes more than a second
        if not any(sign in text for sign in signs):
            return text
        pieces, at = [], 0
        while found := _found(pattern, text, at):
            assert found.lastindex is not None
            pieces += [text[at : found.start()], MASK]
            at = max(found.end(), _end(text, found.start(), known[found.lastindex - 1]))
        return "".join([*pieces, text[at:]])

    return masked


_WINDOW = 4096
_LONGEST = _CUT_AT * 12 + 1
"""As long as what a pattern finds may be: a character takes at most 12, as four bytes in a URL."""


def _found(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """Return the next match; other threads can go on between its parts, each of which may take a while."""
    for start in range(at, len(text), _WINDOW):
        found = pattern.search(text, start, start + _WINDOW + _LONGEST)
        if found and found.start() < start + _WINDOW:
            return found
    return None


def _end(text: str, start: int, secret: str) -> int:
    """Return where a secret that starts in a text ends, or stops being the secret."""
    if len(secret) <= _CUT_AT:
        return start
    ends = {start}
    for char in secret:
        plain, percent = _written(char)
        further = {at + len(form) for at in ends for form in plain if text.startswith(form, at)}
        further |= {
            at + len(percent)
            for at in ends
            if text.startswith("%", at) and text[at : at + len(percent)].lower() == percent
        }
        if not further:
            break
        ends = further
    return max(ends)


def _forms(secret: str) -> Iterator[str]:
    """Yield what a secret looks like, and its beginning where a text was cut short, as patterns."""
    chars = [_spellings(char) for char in secret]
    yield "".join(chars)
    start, rest = chars[:4], chars[4:]
    if rest:
        yield f"{''.join(start)}{''.join(f'(?:{char}' for char in rest)}{')?' * len(rest)}(?=…)"


def _spellings(char: str) -> str:
    """Return a pattern for a character, however it is written."""
    plain, percent = _written(char)
    return f"(?:{'|'.join(map(re.escape, plain))}|(?i:{percent}))"


@lru_cache(1024)
def _written(char: str) -> tuple[tuple[str, ...], str]:
    """Return a character as it is, in JSON, in JSON pointers and in headers; and in URLs, in lower case."""
    data = char.encode("utf-8", "surrogatepass")
    plain = {char, json.dumps(char)[1:-1], strictjson.pointer(char)[1:], data.decode("latin-1")}
    if char == " ":
        plain.add("+")
    return tuple(sorted(plain)), "".join(f"%{byte:02x}" for byte in data)
