"""The live list: server-sent events, one stream for each watcher.

The journal is the queue between calls and watchers, so that a call costs the same whether somebody watches or
not. It is bounded; a watcher that is too slow for it misses calls, and is told how many. What is made for the
watchers takes a small part of the server's time, whatever comes in.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from memmock.admin.shown import plain
from memmock.http import encode_json
from memmock.inspector.outcome import Verdict, verdict
from memmock.inspector.subject import Subject
from memmock.journal import Call
from memmock.memories import Memories
from memmock.strictjson import shortened

TICK_S = 0.03
"""How often the journal is looked at."""
CATCH_UP_S = 0.004
"""The same while no more calls come, and rows are still to be made."""
BUDGET_S = 0.002
"""How much of each tick may go into rows, for all watchers together; at least one row is made."""
BEAT_S = 15.0
"""A stream that has had nothing to say for so long says so, to notice a watcher that has left."""
STATE_S = 0.1
"""How often it is looked whether the scenario or the memories were changed."""
MOST_WATCHERS = 16
_MOST_ROWS = 200
_QUERY_CHARS = 300
_READ_BYTES = 16 * 1024
_MOST_TYPES = 8


class Feed:
    """The streams of one subject.

    Attributes:
        watchers: how many streams are open.
    """

    def __init__(self, subject: Subject, hello: Callable[[], dict[str, Any]]) -> None:
        self.watchers = 0
        self._subject = subject
        self._hello = hello
        self._memories: Memories | None = None
        self._version = 0

    async def stream(self, since: int) -> AsyncGenerator[bytes, None]:
        """Yield the events of one watcher, from the call after `since` on, until it leaves.

        `hello` comes first; `calls` has rows, again when the delivery of a call has ended; `missed` says how
        many calls were lost on the way; `state` has what is played and how many memories there are, when
        that changed.
        """
        self.watchers += 1
        try:
            yield event("hello", self._hello())
            watch = _Watch(self._subject, since)
            looked_at = 0.0
            said_at = time.monotonic()
            while True:
                now = time.monotonic()
                parts = []
                if now - looked_at >= STATE_S:
                    looked_at = now
                    parts += watch.changed(self._state())
                parts += watch.events(BUDGET_S / self.watchers)
                if parts:
                    yield b"".join(parts)
                    said_at = now
                elif now - said_at >= BEAT_S:
                    yield b": nothing new\n\n"
                    said_at = now
                await asyncio.sleep(CATCH_UP_S if watch.catching_up else TICK_S)
        finally:
            self.watchers -= 1

    def _state(self) -> bytes:
        """Return what is played and which memories there are, as an event; empty where there are none."""
        provider = self._subject.provider
        if provider is None:
            return b""
        if provider.memories is not self._memories:
            self._memories = provider.memories
            self._version += 1
        known = {"count": len(self._memories), "version": self._version}
        rules = plain(self._subject.rules(), self._subject.mask())
        return event("state", {"rules": rules, "memories": known})


class _Watch:
    """How far one watcher is; `catching_up` while no more calls come and it has not seen them all."""

    def __init__(self, subject: Subject, since: int) -> None:
        self.catching_up = False
        self._subject = subject
        self._last = self._newest = since
        self._under_way: list[Call] = []
        self._state = b""

    def events(self, budget_s: float) -> list[bytes]:
        """Return what is new, as much of it as can be made in `budget_s` seconds."""
        until = time.perf_counter() + budget_s
        parts: list[bytes] = []
        over = [call for call in self._under_way if call.over]
        self._under_way = [call for call in self._under_way if not call.over]
        rows: list[dict[str, Any]] = [self._row(call) for call in over]
        calls = self._subject.journal.since(self._last)
        if calls:
            # calls that were cleared are not missed
            cleared = calls[-1].number - self._subject.journal.total
            missed = calls[0].number - 1 - max(self._last, cleared)
            if missed > 0:
                parts.append(event("missed", {"missed": missed}))
            self._last = max(self._last, calls[0].number - 1)
        for call in calls[:_MOST_ROWS]:
            if rows and time.perf_counter() > until:
                break
            rows.append(self._row(call))
            self._last = call.number
            if not call.over:
                self._under_way.append(call)
        newest = calls[-1].number if calls else self._last
        self.catching_up = self._last < newest == self._newest
        self._newest = newest
        if rows:
            parts.append(event("calls", rows))
        return parts

    def _row(self, call: Call) -> dict[str, Any]:
        return row(call, verdict(call, self._subject.max_response_bytes), self._subject)

    def changed(self, state: bytes) -> list[bytes]:
        """Return the state as an event to send, if it is another one than the last."""
        if state == self._state:
            return []
        self._state = state
        return [state]


def event(name: str, value: Any) -> bytes:
    """Return one server-sent event with a JSON value."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode_json(value))


def row(call: Call, found: Verdict, subject: Subject) -> dict[str, Any]:
    """Return one line of the list, without secrets; times in milliseconds, `at` since the epoch."""
    mask = subject.mask()  # what the call itself was sent with, the redactor hides in its request
    request = subject.redactor.request(call.request)
    retrieval = _object(request.body) if request is not call.request else call.retrieval
    query, types = retrieval.get("query"), retrieval.get("memory_types")
    result = found.result
    codes = [each.code for _, each in found.violations]
    errors = sum(each.severity == "error" for _, each in found.violations)
    return {
        "number": call.number,
        "at": round(call.received_at * 1000),
        "method": request.method,
        "target": mask(request.target[:_QUERY_CHARS]),
        "query": None if query is None else mask(_cut(query if isinstance(query, str) else shortened(query))),
        "types": [mask(shortened(kind).strip('"')) for kind in types[:_MOST_TYPES]]
        if isinstance(types, list)
        else [],
        "played": call.played,
        "recording": mask(call.recording),
        "status": call.reply.status,
        "outcome": "" if result is None else result.outcome,
        "error": mask(call.error_code)
        if call.reply.status >= 400 and len(call.reply.body) <= _READ_BYTES
        else "",
        "results": len(result.memories) if result is not None else 0,
        "over": call.over,
        "ms": round(call.elapsed_s * 1000, 2),
        "timeout_ms": call.timeout_ms,
        "codes": list(dict.fromkeys(codes)),
        "errors": errors,
        "warnings": len(codes) - errors,
    }


def _cut(text: str) -> str:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text if len(text) <= _QUERY_CHARS else f"{text[:_QUERY_CHARS]}…"


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
