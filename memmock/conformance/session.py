"""Calls to one provider, within what was allowed: so many, so fast, until then, and to nobody else."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memmock import strictjson
from memmock.client import Address
from memmock.conformance.case import Case, on_the_wire
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_TIMEOUT_MS
from memmock.http import Headers, Reply, Request
from memmock.reply_reader import ReplyReader
from memmock.rules import RULES, Violation, reply_violations

MOST_REPLY_BYTES = 8 * 1024 * 1024
"""So much of a reply is read: more than the consumer takes, so that it can be told by how much it is more."""
_READ_BYTES = 64 * 1024
_SLICE_S = 0.002
_STAND_IN = "Bearer 5c3a8f0e-stands-for-none"


class Answer(NamedTuple):
    """What came of one request.

    Attributes:
        case: what was asked.
        request: as it was sent.
        reply: None when no complete reply came.
        failure: why not, as "timeout: …" or "connection_failed: …"; empty when one came.
        elapsed_s: seconds from the first byte sent to the last byte received.
        kept: whether the connection was used before.
        surplus: whether something followed the reply that does not belong to it.
    """

    case: Case
    request: Request
    reply: Reply | None
    failure: str
    elapsed_s: float
    kept: bool
    surplus: bool = False

    @property
    def status(self) -> int:
        """The status; 0 when there is none."""
        return self.reply.status if self.reply else 0

    @property
    def memories(self) -> list[Any] | None:
        """The memories of a 200, as they were sent; None when there are none to be read."""
        if self.reply is None or self.reply.status != 200:
            return None
        value, _ = strictjson.read(self.reply.body)
        found = value.get("memories") if isinstance(value, dict) else None
        return found if isinstance(found, list) else None


class Over(Exception):
    """What was allowed is used up: the time, the number of requests, or the patience of the user."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The provider, and what it is expected to put up with.

    Raises:
        MemmockError: the URL or a header cannot be used.
    """

    url: str
    authorization: str | None = field(default=None, repr=False)
    open: bool = False
    """Whether it answers whatever the authorization is."""
    headers: Headers = field(default=(), repr=False)
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES


class Session:
    """Sends cases to one target, each on the connection of its thread; safe to use from any thread.

    Args:
        target: the provider.
        most_requests: how many may be sent; None for any number.
        rate: how many may be sent a second; None for any number.
        time_limit_s: after so many seconds nothing is sent any more; None for never.
    """

    def __init__(
        self,
        target: Target,
        *,
        most_requests: int | None = None,
        rate: float | None = None,
        time_limit_s: float | None = None,
    ) -> None:
        self.target = target
        self.sent = 0
        self.started = time.monotonic()
        self._address = Address.of(target.url)
        self._ssl = ssl.create_default_context() if self._address.tls else None
        self._most = most_requests
        self._pause_s = 1 / rate if rate else 0.0
        self._next = 0.0
        self._until = None if time_limit_s is None else self.started + time_limit_s
        self._lock = threading.Lock()
        self._local = threading.local()
        self._open: set[socket.socket] = set()

    @property
    def seconds(self) -> float:
        """How long the session has lasted."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """How much of the time limit is left; infinite without one."""
        return float("inf") if self._until is None else self._until - time.monotonic()

    def request(self, case: Case) -> Request:
        """Return a case as it is sent."""
        target = self.target
        return case.request(self._address.target, self._address.netloc, target.authorization, target.headers)

    def ask(self, case: Case) -> Answer:
        """Send a case and return what came of it; nothing that the provider does raises.

        Raises:
            Over: nothing may be sent any more.
        """
        self._wait_for_turn()
        request = self.request(case)
        return self._exchange(case, request)

    def ask_together(self, cases: Sequence[Case]) -> list[Answer]:
        """Send cases at the same time, each on a connection of its own, which is closed then.

        Raises:
            Over: nothing may be sent any more.
        """

        def ask_once(case: Case) -> Answer:
            try:
                return self.ask(case)
            finally:
                self.hang_up()

        with ThreadPoolExecutor(len(cases)) as pool:
            return list(pool.map(ask_once, cases))

    def hang_up(self) -> None:
        """Close the connection that this thread has kept, so that it makes its next call on a new one."""
        idle: socket.socket | None = getattr(self._local, "idle", None)
        self._local.idle = None
        if idle is not None:
            self._leave(idle)

    def violations(self, answer: Answer) -> list[Violation]:
        """Return the rules that an answer breaks; not what a wrong authorization is answered with."""
        if answer.reply is None:
            code = "RES006" if answer.failure.startswith("timeout") else "RES007"
            return [Violation(RULES[code], "exchange", "", answer.failure.partition(": ")[2])]
        asked = answer.request
        if answer.case.authorization is None and self.target.authorization is None:
            # there is none to send, and for what was asked that is no mistake
            asked = asked._replace(headers=(*asked.headers, ("Authorization", _STAND_IN)))
        found = reply_violations(
            answer.reply,
            asked,
            max_response_bytes=self.target.max_response_bytes,
            timeout_ms=self.target.timeout_ms,
            elapsed_s=answer.elapsed_s,
        )
        if answer.surplus:
            found.append(Violation(RULES["RES007"], "exchange", "", "more was sent than the reply"))
        if answer.case.authorization is not None:
            found = [each for each in found if each.rule.code not in ("RES001", "RES002")]
        return found

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for sock in self._open:
                sock.close()
            self._open.clear()

    # ---- what is allowed

    def _wait_for_turn(self) -> None:
        """Return when the next request may be sent."""
        with self._lock:
            if self._most is not None and self.sent >= self._most:
                raise Over("as many requests were sent as are allowed")
            now = time.monotonic()
            at = max(now, self._next)
            if self._until is not None and at >= self._until:
                raise Over("the time is over")
            self._next = at + self._pause_s
            self.sent += 1
        if at > now:
            time.sleep(at - now)

    # ---- one exchange

    def _exchange(self, case: Case, request: Request) -> Answer:
        start = time.monotonic()
        deadline = start + self.target.timeout_ms / 1000
        if self._until is not None:
            deadline = min(deadline, self._until)
        data = on_the_wire(request)
        reader, kept = ReplyReader(MOST_REPLY_BYTES, whole=True), False
        try:
            sock, kept = self._connection(case.form.kept, deadline)
            try:
                self._send(sock, data, case.form.slices, deadline)
                self._receive(sock, reader, deadline)
                if kept and reader.result is not None and not reader.received_bytes:
                    # closed while it was idle, as servers may: the request was not looked at
                    self._leave(sock)
                    sock, kept = self._connection(False, deadline)
                    reader = ReplyReader(MOST_REPLY_BYTES, whole=True)
                    self._send(sock, data, case.form.slices, deadline)
                    self._receive(sock, reader, deadline)
            finally:
                if reader.reusable and case.form.kept:
                    self._local.idle = sock
                else:
                    self._leave(sock)
            failure = "" if reader.result and reader.result.ok else self._why(reader)
        except TimeoutError:
            if self.seconds_left <= 0:
                raise Over("the time is over") from None
            failure = f"timeout: no complete reply within {self.target.timeout_ms} ms"
        except OSError as error:
            failure = f"connection_failed: {_reason(error)}"
        elapsed_s = time.monotonic() - start
        return Answer(
            case, request, None if failure else reader.reply, failure, elapsed_s, kept, reader.surplus
        )

    def _connection(self, kept: bool, deadline: float) -> tuple[socket.socket, bool]:
        """Return a connection, and whether it was used before."""
        idle: socket.socket | None = getattr(self._local, "idle", None)
        if idle is not None and kept:
            self._local.idle = None
            return idle, True
        self.hang_up()
        sock = socket.create_connection(
            (self._address.host, self._address.port), max(0.001, deadline - time.monotonic())
        )
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._ssl is not None:
            sock = self._ssl.wrap_socket(sock, server_hostname=self._address.host)
        with self._lock:
            self._open.add(sock)
        return sock, False

    def _leave(self, sock: socket.socket) -> None:
        with self._lock:
            self._open.discard(sock)
        sock.close()

    def _send(self, sock: socket.socket, data: bytes, slices: int, deadline: float) -> None:
        size = -(-len(data) // slices)
        try:
            for start in range(0, len(data), size):
                if start:
                    time.sleep(_SLICE_S)
                sock.settimeout(max(0.001, deadline - time.monotonic()))
                sock.sendall(data[start : start + size])
        except ConnectionError:
            pass  # it may have answered before it left: that shows when reading

    def _receive(self, sock: socket.socket, reader: ReplyReader, deadline: float) -> None:
        while reader.result is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
            try:
                data = sock.recv(_READ_BYTES)
            except ConnectionError:
                reader.end(reset=True)
                return
            if data:
                reader.feed(data)
            else:
                reader.end()

    def _why(self, reader: ReplyReader) -> str:
        assert reader.result is not None
        error = reader.result.error
        assert error is not None
        return f"{error.code}: {error.message}"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the certificate was not accepted"
    return error.strerror or str(error)
