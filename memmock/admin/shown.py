"""How calls and rules are shown: as JSON, whatever they hold, and with secrets masked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from memmock import strictjson
from memmock.journal import Call
from memmock.strictjson import shortened


def shown(call: Call, retry_of: int | None, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return a call as JSON; `mask` is put over every text of it."""
    request, sent = call.request, call.sent
    facts = {
        "number": call.number,
        "time": datetime.fromtimestamp(call.received_at).astimezone().isoformat(timespec="milliseconds"),
        "method": request.method,
        "target": request.target,
        "headers": [(name, "***" if _SECRET.search(name) else value) for name, value in request.headers],
        "retrieval": call.retrieval,
        "status": call.reply.status,
        "played": call.played,
        "ending": call.ending,
        "sent_bytes": None if sent is None else sent.sent_bytes,
        "elapsed_ms": round(call.elapsed_s * 1000, 3),
        "timeout_ms": call.timeout_ms,
        "connection": request.connection,
        "over": call.over,
        "retry_of": retry_of,
        "violations": [found.to_json() for found in call.violations],
        "results": len(call.memories),
    }
    return dict(plain(facts, mask))


_SECRET = re.compile("authorization|cookie|api-?key|token|secret|password", re.IGNORECASE)
_DEEPEST = 64


def plain(value: Any, mask: Callable[[str], str] = str, depth: int = 0) -> Any:
    """Return what JSON can carry of any value: a test may match by objects, a client may send NaN."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): plain(item, mask, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, mask, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return shortened(value)
    return value if value is None or isinstance(value, bool | int | float) else mask(repr(value))


_LONG_ENOUGH = 8
"""A credential of so many characters is hidden without its scheme too: shorter ones may be common words."""
_CUT_AT = 64
"""Longer beginnings of a value are never shown: `shortened` cuts before."""


@lru_cache(8)
def mask_of(*secrets: str | None) -> Callable[[str], str]:
    """Return a function that hides the secrets in a text, however they are escaped there."""
    hidden = {secret.strip(): None for secret in secrets if secret and secret.strip()}
    parts = [secret.partition(" ")[2].strip() for secret in hidden]
    hidden |= dict.fromkeys(part for part in parts if len(part) >= _LONG_ENOUGH)
    if not hidden:
        return str
    pattern = re.compile("|".join(form for secret in hidden for form in _forms(secret)))
    return lambda text: pattern.sub("***", text)


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
