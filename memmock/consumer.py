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
import dataclasses
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from memmock.client import Address, Client, Exchange
from memmock.contract import Retrieval, RetrievalConfig
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Headers, Request, encode_json
from memmock.tool_result import ToolError, ToolResult, advice

__all__ = ["Consumer", "Exchange", "ToolError", "ToolResult", "advice", "retrieve", "retrieve_sync"]


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
        self._address = Address.of(config.endpoint)
        self._headers = _fixed_headers(config, self._address)
        # it never refers to the consumer, so that a forgotten one can be collected while its thread runs
        self._client = Client(
            self._address,
            timeout_ms=config.timeout_ms,
            max_response_bytes=config.max_response_bytes,
            ssl_context=ssl_context,
        )
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


def _fixed_headers(config: RetrievalConfig, address: Address) -> Headers:
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


# ---- the private loop


def _run(loop: asyncio.AbstractEventLoop, client: Client) -> None:
    """Run the loop until it is stopped, then leave nothing behind."""
    loop.run_forever()
    loop.run_until_complete(client.close())
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():  # a forgotten consumer may be collected in its own thread
        thread.join()
