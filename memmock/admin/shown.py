"""How calls and rules are shown: as JSON, whatever they hold, and with secrets masked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from memmock.journal import Call
from memmock.redaction import MASK, SECRET_NAME
from memmock.strictjson import shortened


def shown(call: Call, retry_of: int | None, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return a call as JSON; `mask` is put over every text of it."""
    request, sent = call.request, call.sent
    facts = {
        "number": call.number,
        "time": datetime.fromtimestamp(call.received_at).astimezone().isoformat(timespec="milliseconds"),
        "method": request.method,
        "target": request.target,
        "headers": [(name, MASK if SECRET_NAME.search(name) else value) for name, value in request.headers],
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
