"""Serve a handler over HTTP/1.1: the socket, the event loop, and the thread they live in.

What happens on one connection is in `connection`. The loop is uvloop's where there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self

from memmock.connection import Connection, Hub, Limits
from memmock.errors import MemmockError
from memmock.http import Handler

new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with contextlib.suppress(ImportError):  # there is none for Windows and PyPy
    from uvloop import new_event_loop

_SWEEP_S = 0.5
"""How often the server looks for clients that take too long."""
_WATCH_S = 0.01
"""How often it looks whether refusing connections is over."""
_STOP_S = 10.0
"""How long `stop` waits for the thread to end."""
_MAX_FAILURES = 100


class Door(Protocol):
    """Decides about connections before there is a request on them. Asked on the server's loop."""

    def refuses(self) -> bool:
        """Whether connections are refused now: nobody listens at the port."""

    def greets(self) -> bool:
        """Whether a connection that was just made is served; otherwise it is reset."""

    def is_open(self) -> bool:
        """Whether connections are taken and served now; asked from any thread, and nothing is counted."""


class Server:
    """Serves `handler` at `host` and `port`; port 0 takes a free one.

    Use it as a context manager, or `start` and `stop`, to serve from a thread of its own; or `run`, to
    serve from this one until it is told to stop. `stop` may be called from any thread, and once more than
    needed. Exceptions that the handler raises are answered with 500 and kept for `check`.

    A `door` may refuse or reset connections; `look` makes the server follow it at once rather than within
    half a second. `at_stop` is awaited on the server's loop when it stops, once all connections are closed.
    With an `ssl_context` it serves https.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: Limits | None = None,
        door: Door | None = None,
        at_stop: Callable[[], Awaitable[None]] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._hub = Hub(handler, limits or Limits(), self._failed)
        self._door = door
        self._at_stop = at_stop
        self._ssl = ssl_context
        if door is not None:
            self._hub.greets = door.greets
        self._listener: asyncio.Server | None = None
        self._held: socket.socket | None = None  # has the port while nobody listens at it
        self._looking: asyncio.Lock
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event
        self._failures: list[BaseException] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address without a path, as `http://127.0.0.1:8765`; on this machine, when it listens to all."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        scheme = "http" if self._ssl is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def bind(self) -> None:
        """Take the port; from now on connections wait to be served.

        Raises:
            MemmockError: the address cannot be had.
        """
        if self._socket is not None:
            return
        if not self.host.isascii():
            raise MemmockError(f"cannot listen on {self.host!r}: it is neither an address nor a host name")
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            self._socket = socket.create_server((self.host, self.port), family=family, backlog=1024)
        except (OSError, OverflowError) as error:
            # the reason without the address, which `socket` adds and the message has already
            reason = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0]
            raise MemmockError(
                f"cannot listen on {self.host} port {self.port}: {reason.lower()}; port 0 takes a free one"
            ) from None
        self.port = self._socket.getsockname()[1]

    def start(self) -> None:
        """Serve from a thread of its own; return once the server is serving.

        Raises:
            MemmockError: the address cannot be had, or the server is serving already.
        """
        with self._lock:
            if self._loop is not None:
                raise MemmockError(f"the server is serving already, at {self.url}")
            self.bind()
            serving: Future[None] = Future()
            self._thread = threading.Thread(
                target=self._serve_in_thread, args=(serving,), name="memmock-server", daemon=True
            )
            self._thread.start()
            serving.result()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve from this thread until `stop`, Ctrl-C or SIGTERM; call `ready` once it is serving.

        Raises:
            MemmockError: the address cannot be had.
        """
        self.bind()
        try:
            self._serve(ready, signals=True)
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop serving: close the port and all connections, and end the thread."""
        with self._lock:
            loop, thread, listening = self._loop, self._thread, self._socket
            self._loop = self._thread = self._socket = None
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(self._stopping.set)
        elif listening is not None:  # bound, but never served
            listening.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_S)

    @property
    def connected(self) -> int:
        """How many connections were made to the server so far."""
        return self._hub.connected

    def sending(self) -> dict[int, int]:
        """Return how many bytes were sent of each delivery under way, by the number of its connection."""
        return {each.number: each.sent_bytes for each in list(self._hub.connections) if each.playing}

    def look(self) -> None:
        """Follow the door now: refuse connections, closing the idle ones, or take them again.

        Returns when that is done; from the server's own thread it only asks for it.
        """
        loop = self._loop
        if loop is None or self._door is None or (self._door.is_open() and self._listener is not None):
            return
        if loop is _running_loop():
            self._start(self._look())
        else:
            self.do(self._look())

    async def follow_door(self) -> None:
        """Do what `look` does, on the server's own loop; return when that is done."""
        await self._look()

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` on the server's loop; return when it is done."""
        loop = self._loop
        if loop is None:
            work.close()
            return
        asyncio.run_coroutine_threadsafe(work, loop).result(_STOP_S)

    def check(self) -> None:
        """Raise the first exception that the handler raised since the last check."""
        if self._failures:
            first = self._failures[0]
            self._failures.clear()
            raise first

    def forget(self) -> None:
        """Forget the exceptions that the handler raised."""
        self._failures.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve_in_thread(self, serving: Future[None]) -> None:
        try:
            self._serve(lambda: serving.set_result(None))
        except BaseException as error:
            if serving.done():
                raise
            serving.set_exception(error)

    def _serve(self, ready: Callable[[], None], *, signals: bool = False) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._main(ready, signals))

    async def _main(self, ready: Callable[[], None], signals: bool) -> None:
        loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._loop = loop
        loop.set_exception_handler(
            lambda _, context: self._failed(context.get("exception") or RuntimeError(context))
        )
        if signals:
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
                    loop.add_signal_handler(number, self._stopping.set)
        listening = self._socket
        assert listening is not None
        self._looking = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._hub.stopped = False
        await self._listen(listening)
        await self._look()
        sweeping = loop.create_task(self._sweep())
        ready()
        await self._stopping.wait()
        self._hub.stopped = True
        async with self._looking:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
            if self._held is not None:
                self._held.close()
                self._held = None
        sweeping.cancel()
        await asyncio.sleep(0)  # connections that were just accepted show themselves
        while self._hub.connections:
            for connection in list(self._hub.connections):
                connection.close()
            await asyncio.sleep(0)
        if self._at_stop is not None:
            await self._at_stop()

    async def _listen(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Connection(self._hub), sock=sock, backlog=1024, ssl=self._ssl
        )

    async def _look(self) -> None:
        """Refuse connections or take them again, as the door says."""
        if self._door is None:
            return
        async with self._looking:
            if not self._door.is_open():  # who is connected already would never meet the door
                for connection in list(self._hub.connections):
                    connection.close_if_idle()
            if self._hub.stopped:
                return
            if not self._door.refuses():
                if self._listener is None:
                    held, self._held = self._held or await self._held_port(), None
                    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    await self._listen(held)
            elif self._listener is not None:
                _deafen(self._listener)
                self._listener.close()
                self._listener = None
                self._start(self._watch())
                self._held = await self._held_port()

    async def _watch(self) -> None:
        """Look at the door often while it is shut, so that it opens when it should."""
        while self._listener is None and not self._hub.stopped:
            await asyncio.sleep(_WATCH_S)
            await self._look()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _held_port(self) -> socket.socket:
        """Return a socket that has the port and does not listen, so that nobody else takes the port."""
        sock = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadline = time.monotonic() + _STOP_S
        while True:
            await asyncio.sleep(0)
            try:
                sock.bind((self.host, self.port))
            except OSError:  # the listener is not closed yet
                if time.monotonic() > deadline:
                    sock.close()
                    raise
                await asyncio.sleep(0.001)
            else:
                # it could be had although connections are still open; nobody else may have it that way
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
                return sock

    def _failed(self, error: BaseException) -> None:
        if len(self._failures) < _MAX_FAILURES:
            self._failures.append(error)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                await self._look()
            except OSError as error:  # somebody else has the port
                self._failed(error)
            now = loop.time()
            for connection in list(self._hub.connections):
                connection.check_time(now)


def _deafen(listener: asyncio.Server) -> None:
    """Stop listening, also where a forked process has a copy of the socket."""
    for each in listener.sockets:
        with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(each.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)


class Elsewhere:
    """The handler of a server at another port, which is opened when its URL is first asked for."""

    def __init__(self, server: Server) -> None:
        self._server = Server(server._hub.handler, host=server.host)
        self._server._hub.numbers = server._hub.numbers  # a number stands for one connection, at either port
        self._started = False

    def url(self) -> str:
        """Return the address without a path.

        Raises:
            MemmockError: no port can be had.
        """
        if not self._started:
            self._server.start()
            self._started = True
        return self._server.url

    @property
    def connected(self) -> int:
        """How many connections were made to the port so far."""
        return self._server.connected

    def stop(self) -> None:
        """Close the port, if it was opened."""
        self._server.stop()
        self._started = False


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
