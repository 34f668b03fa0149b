"""The bounded log of calls: what came in, what was answered, when, and how that ended on the wire.

A call is kept as it came and parsed and checked only when somebody looks, so that keeping a journal costs
the server next to nothing. When the journal is full the oldest calls go, and are counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from memmock import strictjson
from memmock.contract import DEFAULT_TIMEOUT_MS
from memmock.http import AT_ONCE, Headers, Reply, Request, Sent
from memmock.rules import Violation, request_violations

MAX_CALLS = 1000
MAX_BYTES = 16 * 1024 * 1024


class Call:
    """One call: a request and what was answered.

    `number` counts from 1 since the journal was made, cleared calls included. `received_at` is in seconds
    since the epoch, when the request was complete; `duration_s` is how long the provider took to find its
    answer, without the time that a delivery adds on purpose. `played` is the scenario, empty for the honest
    answer, and `fails` whether no consumer can make memories of it. `timeout_ms` is what the consumer was
    told. `size` is about what the call weighs, in bytes.
    """

    sent: Sent | None = None
    """How the delivery ended; None while it is under way, and for replies that were sent at once."""
    played = ""
    fails = False
    recording = ""
    """The interaction that was played, or that the call was recorded as; empty for none."""
    followed = False
    """Whether the call came to where a redirect led; what it sent is not judged."""

    def __init__(
        self,
        number: int,
        request: Request,
        reply: Reply,
        received_at: float,
        duration_s: float,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> None:
        self.number = number
        self.request = request
        self.reply = reply
        self.received_at = received_at
        self.duration_s = duration_s
        self.timeout_ms = timeout_ms
        self.size = (
            _OVERHEAD
            + len(request.body)
            + len(request.target)
            + _weight(request.headers)
            + len(reply.body)
            + len(reply.delivery.wire or b"")
            + _weight(reply.headers)
        )

    @cached_property
    def retrieval(self) -> dict[str, Any]:
        """The JSON object that was sent, as it was sent; empty when the body holds none."""
        value, _ = strictjson.read(self.request.body)
        return value if isinstance(value, dict) else {}

    @cached_property
    def _answer(self) -> dict[str, Any]:
        value, _ = strictjson.read(self.reply.body)
        return value if isinstance(value, dict) else {}

    @property
    def memories(self) -> list[dict[str, Any]]:
        """The memories that were answered, as JSON objects; empty when the reply holds none."""
        memories = self._answer.get("memories")
        return memories if isinstance(memories, list) else []

    @property
    def error_code(self) -> str:
        """The code of the error that was answered, as `not_found`; empty when there was none."""
        return self._error("code")

    @property
    def error_message(self) -> str:
        """The message of the error that was answered; empty when there was none."""
        return self._error("message")

    def _error(self, field: str) -> str:
        error = self._answer.get("error")
        return str(error.get(field, "")) if isinstance(error, dict) else ""

    @cached_property
    def violations(self) -> list[Violation]:
        """The rules of the contract that the request breaks."""
        return [] if self.followed else request_violations(self.request)

    @property
    def over(self) -> bool:
        """Whether the delivery of the reply has ended."""
        return self.sent is not None or self.reply.delivery == AT_ONCE

    @property
    def elapsed_s(self) -> float:
        """How long the call took so far as the server can tell: until the delivery ended."""
        return self.duration_s if self.sent is None else self.sent.elapsed_s

    @property
    def failed(self) -> bool:
        """Whether the consumer got no good answer in time."""
        if self.fails or not 200 <= self.reply.status < 300:
            return True
        return self.sent is not None and (
            self.sent.how != "completed" or self.elapsed_s * 1000 > self.timeout_ms
        )

    @property
    def ending(self) -> str:
        """How the call ended on the wire, as "the client closed after 72 bytes, 200 of 200 ms"."""
        if self.sent is None:
            return "completed" if self.over else "under way"
        how, size = self.sent.how, f"{self.sent.sent_bytes:,} bytes"
        what = {
            "completed": f"completed, {size}",
            "closed": f"closed after {size}",
            "reset": f"reset after {size}",
            "client closed": f"the client closed after {size}",
            "stopped": f"the server stopped after {size}",
        }[how]
        return f"{what}, {self.elapsed_s * 1000:,.0f} of {self.timeout_ms:,} ms"

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.retrieval.items())
        played = f" ({self.played})" if self.played else ""
        return (
            f"<Call {self.number}: {self.request.method} {fields or 'no retrieval'} "
            f"-> {self.reply.status}{played}>"
        )


class Journal:
    """The latest calls, at most `max_calls` of them and about `max_bytes` together.

    Safe to use from any thread. A call larger than `max_bytes` is kept until the next one comes.
    """

    def __init__(self, max_calls: int = MAX_CALLS, max_bytes: int = MAX_BYTES) -> None:
        self.max_calls = max_calls
        self.max_bytes = max_bytes
        self._calls: deque[Call] = deque()
        self._bytes = 0
        self._last = 0
        self._cleared = 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiters = 0

    def add(
        self,
        request: Request,
        reply: Reply,
        received_at: float,
        duration_s: float,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        played: str = "",
        fails: bool = False,
        recording: str = "",
    ) -> Call:
        """Keep a call; the oldest ones go when there is no room."""
        with self._lock:
            self._last += 1
            call = Call(self._last, request, reply, received_at, duration_s, timeout_ms)
            if played:
                call.played, call.fails = played, fails
            if recording:
                call.recording = recording
            self._calls.append(call)
            self._bytes += call.size
            while len(self._calls) > self.max_calls or (
                self._bytes > self.max_bytes and len(self._calls) > 1
            ):
                self._bytes -= self._calls.popleft().size
            if self._waiters:
                self._changed.notify_all()
        return call

    def end(self, call: Call, sent: Sent) -> None:
        """Note how the delivery to a call ended."""
        with self._lock:
            call.sent = sent
            if self._waiters:
                self._changed.notify_all()

    @property
    def calls(self) -> list[Call]:
        """The calls that are still here, the oldest first."""
        with self._lock:
            return list(self._calls)

    @property
    def total(self) -> int:
        """How many calls came since the journal was made or cleared, those that had to go included."""
        return self._last - self._cleared

    @property
    def dropped(self) -> int:
        """How many of these calls had to go, because the journal was full."""
        with self._lock:
            return self.total - len(self._calls)

    def since(self, number: int) -> list[Call]:
        """Return the calls after the call `number` that are still here, the oldest first."""
        with self._lock:
            newer = self._last - number
            return list(self._calls)[-newer:] if newer > 0 else []

    def clear(self) -> None:
        """Forget all calls; the numbers go on."""
        with self._lock:
            self._calls.clear()
            self._bytes = 0
            self._cleared = self._last

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `condition()` holds, looking after each call and each end of a delivery.

        Returns whether it came to hold.
        """
        with self._changed:
            self._waiters += 1
            try:
                return self._changed.wait_for(condition, timeout_s)
            finally:
                self._waiters -= 1


def retries(calls: Iterable[Call]) -> dict[int, int]:
    """Return which calls are the same request again after it had failed: their number, and the first one's.

    A test seldom sends the very same bytes twice after a failure; an HTTP library that tries again behind
    its user's back does.
    """
    failed: dict[tuple[str, bytes], int] = {}
    found: dict[int, int] = {}
    for call in calls:
        key = (call.request.target, call.request.body)
        if (first := failed.get(key)) is not None:
            found[call.number] = first
        if not call.failed:
            failed.pop(key, None)
        else:
            failed.setdefault(key, call.number)
    return found


_OVERHEAD = 1024
_HEADER = 160
"""About what the objects of a call, and of one of its headers, weigh beside their text, in bytes."""
_KNOWN: dict[int, tuple[Headers, int]] = {}
_MOST_KNOWN = 8192
"""The same few sets of headers come again and again, as the same objects: their weights are remembered."""


def _weight(headers: Headers) -> int:
    known = _KNOWN.get(id(headers))
    if known is not None and known[0] is headers:
        return known[1]
    weight = sum(_HEADER + len(name) + len(value) for name, value in headers)
    if len(headers) <= _USUAL and weight <= _MOST_WEIGHT:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[id(headers)] = headers, weight
    return weight


_USUAL, _MOST_WEIGHT = 32, 4 * 1024
"""Sets of more or larger headers than this are not kept for it."""
