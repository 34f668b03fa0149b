"""The HTTP/1.1 client: calls to one endpoint, each with one deadline and one limit of size.

Nothing is done behind the caller's back: no redirect is followed, no request is repeated, and proxies, netrc
and cookies do not exist here. Everything but `Address` belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import re
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlsplit

from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.reply_reader import ReplyReader
from memmock.tool_result import ToolResult

READ_BYTES = 16_384
"""What one read takes off a socket at most, so that little more than the limit is ever taken."""
KEEP_IDLE_S = 4.0
"""How long an idle connection is used again; many servers close theirs after five seconds [ours]."""
HAPPY_EYEBALLS_DELAY_S = 0.25
"""When the next address of a name is tried beside one that does not answer (RFC 8305)."""
_CLOSE_S = 1.0
"""How long closing waits for connections to be closed."""
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux has it


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call as it was on the wire.

    `reply` is None when no complete head came; its body is as received (not decoded), up to the limit.
    `complete` says whether that body is the whole one: that of an error status is not waited for, and what
    is over the limit is not read. `received_bytes` is all that was taken off the connection, heads and
    framing included. `reason` is the words after the status.
    """

    request: Request = field(repr=False)  # it holds the authorization
    reply: Reply | None
    result: ToolResult
    elapsed_s: float
    received_bytes: int
    complete: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """Where an endpoint is, as it is connected to and as it is written into a request."""

    host: str
    port: int
    tls: bool
    netloc: str
    target: str

    @classmethod
    def of(cls, endpoint: str) -> Address:
        """Return where an absolute http or https URL leads to.

        Raises:
            MemmockError: there is no usable host name in it.
        """
        url = urlsplit(endpoint)
        host, port = _ascii_host(url.hostname or ""), url.port
        netloc = f"[{host}]" if ":" in host else host
        query = f"?{url.query}" if url.query else ""
        return cls(
            host=host,
            port=port or (443 if url.scheme == "https" else 80),
            tls=url.scheme == "https",
            netloc=netloc if port is None else f"{netloc}:{port}",
            # what is percent-encoded stays as it is
            target=quote(f"{url.path or '/'}{query}", safe="!#$%&'()*+,/:;=?@[]~", errors="replace"),
        )


def _ascii_host(host: str) -> str:
    """Return a host name or an address in the form that DNS, TLS and HTTP use."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return host
    with contextlib.suppress(UnicodeError):
        name = host.encode("idna").decode()
        if re.fullmatch(r"[0-9A-Za-z._-]+", name):
            return name
    raise MemmockError(f"memory_retrieval: endpoint has no usable host name: {host!r}")


def _on_the_wire(request: Request) -> bytes:
    lines = [f"{request.method} {request.target} HTTP/{request.version}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body


class Client:
    """The connections to one endpoint; they are kept between calls.

    Args:
        address: where the endpoint is.
        timeout_ms: how long one call may take, in milliseconds.
        max_response_bytes: how large the body of a reply may be, as received.
        ssl_context: what certificates are accepted, when not those that the system trusts.
        whole: read the body of an error status too, which a consumer does not wait for.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout_ms: int,
        max_response_bytes: int,
        ssl_context: ssl.SSLContext | None = None,
        whole: bool = False,
    ) -> None:
        self._address = address
        self._ssl = (ssl_context or ssl.create_default_context()) if address.tls else None
        self._timeout_ms = timeout_ms
        self._max_response_bytes = max_response_bytes
        self._whole = whole
        self._calls: set[asyncio.Task[Any]] = set()
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []
        self._closing = False

    async def exchange(self, request: Request, started: float) -> Exchange:
        """Return one call; `started` is when it began, in the time of `time.monotonic`."""
        call = asyncio.current_task()
        assert call is not None
        self._calls.add(call)
        reader = ReplyReader(self._max_response_bytes, whole=self._whole)
        failure = None
        try:
            async with asyncio.timeout(started + self._timeout_ms / 1000 - time.monotonic()) as deadline:
                await self._exchange(_on_the_wire(request), reader)
        except OSError as error:  # a TimeoutError is one too, ours and that of the system
            if deadline.expired():
                message = f"the provider did not finish within {self._timeout_ms} ms"
                failure = ToolResult.failed("timeout", message)
            else:
                failure = ToolResult.failed("connection_failed", _reason(error))
        except asyncio.CancelledError:
            if self._closing:
                raise MemmockError("the consumer was closed during the call") from None
            raise
        finally:
            self._calls.discard(call)
        result = failure or reader.result
        assert result is not None
        return Exchange(
            request=request,
            reply=reader.reply,
            result=result,
            elapsed_s=time.monotonic() - started,
            received_bytes=reader.received_bytes,
            complete=reader.complete,
            reason=reader.reason,
        )

    async def close(self) -> None:
        """End the calls that are under way and close all connections."""
        self._closing = True
        await asyncio.sleep(0)  # a call that was just submitted gets to start, and so can say why it ended
        if calls := set(self._calls):
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        if self._open:
            for connection in self._open:
                connection.abort()
            # one that was given up while it was being made may never be told of its end
            await asyncio.wait([connection.closed for connection in self._open], timeout=_CLOSE_S)

    async def _exchange(self, data: bytes, reader: ReplyReader) -> None:
        connection = await self._connection()
        try:
            await connection.exchange(data, reader)
        finally:
            if reader.reusable:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.abort()

    async def _connection(self) -> _Connection:
        """Return an idle connection that is still good, else a new one."""
        if self._idle:
            # A close that has arrived is seen by the loop within two rounds. Only before the request is sent
            # may another connection be taken: after that, a second request could be one too many.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        while self._idle:
            connection = self._idle.pop()
            if connection.open and time.monotonic() - connection.idle_since < KEEP_IDLE_S:
                return connection
            connection.abort()
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {}
        if isinstance(loop, asyncio.BaseEventLoop):  # uvloop has no happy eyeballs
            options["happy_eyeballs_delay"] = HAPPY_EYEBALLS_DELAY_S
        connection = _Connection(self._open)
        try:
            await loop.create_connection(
                lambda: connection, self._address.host, self._address.port, ssl=self._ssl, **options
            )
        except BaseException:
            connection.abandon()
            raise
        return connection


class _Connection(asyncio.BufferedProtocol):
    """One connection: sends a request, and gives what arrives to the reader until that has decided.

    A buffered protocol, because that one says how much a read may take.
    """

    def __init__(self, siblings: set[_Connection]) -> None:
        self.open = False
        self.idle_since = 0.0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._siblings = siblings
        self._transport: asyncio.Transport
        self._socket: Any = None
        self._buffer = bytearray(READ_BYTES)
        self._reader: ReplyReader | None = None
        self._decided: asyncio.Future[None] | None = None
        self._reset = self._abandoned = False

    async def exchange(self, data: bytes, reader: ReplyReader) -> None:
        """Send the request; return when the reader has decided."""
        if not self.open:  # closed as soon as it was opened
            reader.end(reset=self._reset)
            return
        self._reader = reader
        self._decided = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        await self._decided

    def abandon(self) -> None:
        """Give it up while it is being made: uvloop may not tell of the end of such a one."""
        self._abandoned = True
        self._siblings.discard(self)
        if self.open:
            self.abort()

    def _acknowledge_at_once(self) -> None:
        """Keep the system from waiting: a server that sends its reply in two parts may wait for it 40 ms."""
        if _QUICKACK is not None and self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def abort(self) -> None:
        """Close at once, whatever is still to be sent or read."""
        self.open = False
        self._reader = None
        self._transport.abort()

    # ---- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no instance of it
        self._socket = transport.get_extra_info("socket")
        self.open = True
        if self._abandoned:
            self.abort()
        else:
            self._siblings.add(self)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._reader is None:  # nobody asked: it would be taken for the reply to the next request
            self.abort()
            return
        self._reader.feed(memoryview(self._buffer)[:nbytes])
        self._pass_on_decision()
        if self.open and self._reader is not None:
            self._acknowledge_at_once()

    def eof_received(self) -> None:
        self._end(reset=False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(reset=exc is not None)
        self._siblings.discard(self)
        if not self.closed.done():
            self.closed.set_result(None)

    def _end(self, *, reset: bool) -> None:
        if self.open:
            self.open, self._reset = False, reset
        if self._reader is not None:
            self._reader.end(reset=reset)
            self._pass_on_decision()

    def _pass_on_decision(self) -> None:
        if self._reader is None or self._reader.result is None:
            return
        assert self._decided is not None
        if not self._decided.done():  # done: the deadline came first
            self._decided.set_result(None)
        if self._reader.reusable and self.open:
            self._reader = None
        else:
            self.abort()


_REFUSED = "the connection was refused"
_REASONS: tuple[tuple[type[OSError], str], ...] = (
    (ssl.SSLCertVerificationError, "the certificate of the provider was not accepted"),
    (ssl.SSLError, "the TLS connection could not be made"),
    (socket.gaierror, "the host name of the endpoint was not found"),
    (ConnectionRefusedError, _REFUSED),
    (ConnectionError, "the connection was reset"),
)


def _reason(error: OSError) -> str:
    """Return why no connection was made."""
    for kind, message in _REASONS:
        if isinstance(error, kind):
            return message
    # a name with several addresses has one error each, which asyncio gives as text
    return _REFUSED if f"[Errno {errno.ECONNREFUSED}]" in str(error) else "the connection could not be opened"
