"""The reference consumer: what the live service does with a provider.

One retrieval is one `POST`, bounded by one deadline over everything (name look-up, connect, send, head and
body) and by one size. Nothing a provider does gets out as an exception: it becomes the error of a
`ToolResult`. Nothing is done behind the provider's back: no redirect is followed, no request is repeated, and
proxies, netrc and cookies do not exist here.

It stands on sockets rather than on an HTTP client library because those lose what the contract asks for:
with aiohttp 3.14 a broken chunk hangs until the deadline, a second reply that nobody asked for answers the
next call, and an error status is lost when what follows it is broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import ipaddress
import re
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from memmock.contract import Retrieval, RetrievalConfig
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Headers, Reply, Request, encode_json
from memmock.reply_reader import ReplyReader
from memmock.tool_result import ToolError, ToolResult, advice

__all__ = ["Consumer", "Exchange", "ToolError", "ToolResult", "advice", "retrieve", "retrieve_sync"]

READ_BYTES = 16_384
"""What one read takes off a socket at most, so that little more than the limit is ever taken."""
KEEP_IDLE_S = 4.0
"""How long an idle connection is used again; many servers close theirs after five seconds [ours]."""
HAPPY_EYEBALLS_DELAY_S = 0.25
"""When the next address of a name is tried beside one that does not answer (RFC 8305)."""


async def retrieve(config: RetrievalConfig, retrieval: Retrieval) -> ToolResult:
    """Return what the model is given for one retrieval, on a connection of its own.

    Raises:
        MemmockError: the endpoint or the authorization cannot be put into a request.
    """
    async with Consumer(config) as consumer:
        return await consumer.aretrieve(retrieval)


def retrieve_sync(config: RetrievalConfig, retrieval: Retrieval) -> ToolResult:
    """Return what the model is given for one retrieval; works beside a running event loop too.

    Raises:
        MemmockError: the endpoint or the authorization cannot be put into a request.
    """
    with Consumer(config) as consumer:
        return consumer.retrieve(retrieval)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call as it was on the wire.

    `reply` is None when no complete head came; its body is as received (not decoded), up to the limit.
    `complete` says whether that body is the whole one: that of an error status is not waited for, and what
    is over the limit is not read. `received_bytes` is all that was taken off the connection, heads and
    framing included.
    """

    request: Request = field(repr=False)  # it holds the authorization
    reply: Reply | None
    result: ToolResult
    elapsed_s: float
    received_bytes: int
    complete: bool


class Consumer:
    """Looks memories up at one provider, as the live service does; keeps its connections between calls.

    The methods come in pairs, `retrieve` and `aretrieve` for example: one blocks, one is awaited. All calls
    run on a private event loop in a daemon thread, which starts with the first call, so a consumer may be
    shared between threads and loops. It ends with `close`, at the latest when the consumer is forgotten.
    `config.enabled` is not looked at: whether to look memories up is for the live session.

    Raises:
        MemmockError: the endpoint or the authorization cannot be put into a request.
    """

    def __init__(self, config: RetrievalConfig, *, ssl_context: ssl.SSLContext | None = None) -> None:
        self.config = config
        self._address = _Address.of(config.endpoint)
        self._headers = _fixed_headers(config, self._address)
        self._client = _Client(config, self._address, ssl_context)
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], object] | None = None

    def retrieve(self, retrieval: Retrieval | str, **fields: Any) -> ToolResult:
        """Return what the model is given for a retrieval, or for a query and the other fields of one."""
        return self.exchange(retrieval, **fields).result

    async def aretrieve(self, retrieval: Retrieval | str, **fields: Any) -> ToolResult:
        """Return what the model is given for a retrieval, or for a query and the other fields of one."""
        return (await self.aexchange(retrieval, **fields)).result

    def exchange(self, retrieval: Retrieval | str, **fields: Any) -> Exchange:
        """Return the whole call, with what was sent and received.

        Raises:
            MemmockError: the retrieval cannot be written as JSON, or the consumer is closed.
        """
        future = self._submit(retrieval, fields)
        try:
            return future.result()
        finally:
            future.cancel()  # an interrupted call does not go on behind the caller's back

    async def aexchange(self, retrieval: Retrieval | str, **fields: Any) -> Exchange:
        """Return the whole call, with what was sent and received.

        Raises:
            MemmockError: the retrieval cannot be written as JSON, or the consumer is closed.
        """
        return await asyncio.wrap_future(self._submit(retrieval, fields))

    def close(self) -> None:
        """Close all connections and end the thread; calls that are under way raise `MemmockError`."""
        with self._lock:
            self._closed = True
            if self._stop is not None:
                self._stop()

    async def aclose(self) -> None:
        """Do the same as `close`; it takes no longer than a moment."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _submit(self, retrieval: Retrieval | str, fields: dict[str, Any]) -> Future[Exchange]:
        started = time.monotonic()
        request = self._request(_retrieval(retrieval, fields))
        with self._lock:
            if self._closed:
                raise MemmockError("the consumer is closed; make another one")
            loop = self._loop or self._started_loop()
            return asyncio.run_coroutine_threadsafe(self._client.exchange(request, started), loop)

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        # not the loop of the policy: uvloop has no happy eyeballs
        self._loop = loop = asyncio.SelectorEventLoop()
        thread = threading.Thread(
            target=_run, args=(loop, self._client), name="memmock-consumer", daemon=True
        )
        thread.start()
        self._stop = weakref.finalize(self, _stop, loop, thread)
        return loop

    def _request(self, retrieval: Retrieval) -> Request:
        try:
            body = encode_json(retrieval.to_json())
        except (TypeError, ValueError) as error:
            raise MemmockError(f"the retrieval cannot be written as JSON: {error}") from None
        headers = (*self._headers, ("Content-Length", str(len(body))))
        return Request("POST", self._address.target, headers, body)


# ---- the request


def _retrieval(retrieval: Retrieval | str, fields: dict[str, Any]) -> Retrieval:
    if isinstance(retrieval, str):
        return Retrieval(retrieval, **fields)
    return dataclasses.replace(retrieval, **fields)


@dataclass(frozen=True, slots=True)
class _Address:
    """Where the endpoint is, as it is connected to and as it is written into a request."""

    host: str
    port: int
    tls: bool
    netloc: str
    target: str

    @classmethod
    def of(cls, endpoint: str) -> _Address:
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


def _fixed_headers(config: RetrievalConfig, address: _Address) -> Headers:
    from memmock import __version__

    try:
        authorization = config.authorization.encode().decode("latin-1")
    except UnicodeEncodeError:
        raise MemmockError("memory_retrieval: authorization must not hold half of a surrogate pair") from None
    return (
        ("Host", address.netloc),
        ("User-Agent", f"memmock/{__version__}"),
        ("Accept", JSON_TYPE),
        ("Accept-Encoding", "gzip"),
        ("Authorization", authorization),
        ("Content-Type", JSON_TYPE),
    )


def _on_the_wire(request: Request) -> bytes:
    lines = [f"{request.method} {request.target} HTTP/{request.version}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body


# ---- the wire: everything below runs on the private loop


def _run(loop: asyncio.AbstractEventLoop, client: _Client) -> None:
    """Run the loop until it is stopped, then leave nothing behind."""
    loop.run_forever()
    loop.run_until_complete(client.close())
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():  # a forgotten consumer may be collected in its own thread
        thread.join()


class _Client:
    """The connections to one provider.

    It never refers to the `Consumer`, so that a forgotten consumer can be collected while its thread runs.
    """

    def __init__(self, config: RetrievalConfig, address: _Address, context: ssl.SSLContext | None) -> None:
        self._address = address
        self._ssl = (context or ssl.create_default_context()) if address.tls else None
        self._timeout_ms = config.timeout_ms
        self._max_response_bytes = config.max_response_bytes
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []
        self._closing = False

    async def exchange(self, request: Request, started: float) -> Exchange:
        """Return one call; `started` is when it began, in the time of `time.monotonic`."""
        reader = ReplyReader(self._max_response_bytes)
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
        result = failure or reader.result
        assert result is not None
        return Exchange(
            request=request,
            reply=reader.reply,
            result=result,
            elapsed_s=time.monotonic() - started,
            received_bytes=reader.received_bytes,
            complete=reader.complete,
        )

    async def close(self) -> None:
        """End the calls that are under way and close all connections."""
        self._closing = True
        await asyncio.sleep(0)  # a call that was just submitted gets to start, and so can say why it ended
        if calls := asyncio.all_tasks() - {asyncio.current_task()}:
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        if self._open:
            for connection in self._open:
                connection.abort()
            await asyncio.wait([connection.closed for connection in self._open])

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
        _, connection = await loop.create_connection(
            lambda: _Connection(self._open),
            self._address.host,
            self._address.port,
            ssl=self._ssl,
            happy_eyeballs_delay=HAPPY_EYEBALLS_DELAY_S,
        )
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
        self._buffer = bytearray(READ_BYTES)
        self._reader: ReplyReader | None = None
        self._decided: asyncio.Future[None] | None = None
        self._reset = False

    async def exchange(self, data: bytes, reader: ReplyReader) -> None:
        """Send the request; return when the reader has decided."""
        if not self.open:  # closed as soon as it was opened
            reader.end(reset=self._reset)
            return
        self._reader = reader
        self._decided = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        await self._decided

    def abort(self) -> None:
        """Close at once, whatever is still to be sent or read."""
        self.open = False
        self._reader = None
        self._transport.abort()

    # ---- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._siblings.add(self)
        self.open = True

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._reader is None:  # nobody asked: it would be taken for the reply to the next request
            self.abort()
            return
        self._reader.feed(memoryview(self._buffer)[:nbytes])
        self._pass_on_decision()

    def eof_received(self) -> None:
        self._end(reset=False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(reset=exc is not None)
        self._siblings.discard(self)
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
