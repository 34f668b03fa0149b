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
    # a part of letters and digits has no other spelling than percent-encoding, unless it was cut short
    signs = ("%", "…", *(max(re.findall("[A-Za-z0-9]*", secret), key=len) for secret in hidden))

    def masked(text: str) -> str:
        # to search a picture of 20 MB for the pattern takes more than a second
        return pattern.sub(MASK, text) if any(sign in text for sign in signs) else text

    return masked


def _forms(secret: str) -> Iterator[str]:
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
