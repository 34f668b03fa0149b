"""ASGI and WSGI applications as handlers, so that one can be checked inside the process that made it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote_to_bytes

from memmock.errors import MemmockError
from memmock.http import Handler, Headers, Reply, Request
from memmock.server import Server

Message = MutableMapping[str, Any]
Asgi = Callable[[dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_ASGI_ARGUMENTS = 3
_THREADS = 32
"""As many calls of a WSGI application at the same time, more than are ever made."""
_START_S = 60.0
_END_S = 5.0
_AFTERWARDS_S = 2.0
"""How long an ASGI application may take for its start, its end, and what it does after a reply."""


@contextmanager
def served(app: Asgi | Wsgi) -> Iterator[str]:
    """Serve an application on a free port of this machine for the time of a `with`; yield its address.

    An ASGI application gets its `lifespan`. What the application raises is answered with 500.

    Raises:
        MemmockError: it is no application, or its lifespan says that it cannot start.
    """
    if not callable(app):
        raise MemmockError(f"a provider is a URL, or an ASGI or WSGI application, not {app!r}")
    if is_asgi(app):
        lifespan = _Lifespan(app)
        with Server(_asgi_handler(app, lifespan), at_stop=lifespan.stop) as server:
            server.do(lifespan.begin())
            lifespan.wait()
            yield server.url
        return
    threads = ThreadPoolExecutor(_THREADS, "memmock-wsgi")
    try:
        with Server(_wsgi_handler(app, threads)) as server:  # type: ignore[arg-type]  # it is the other kind
            yield server.url
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def is_asgi(app: Any) -> bool:
    """Tell whether an application is of ASGI rather than of WSGI, by how it is called."""
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(getattr(app, "__call__", None)):  # noqa: B004
        return True
    try:
        parameters = inspect.signature(app).parameters.values()
    except (TypeError, ValueError):  # not written in Python
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        sum(each.kind in positional and each.default is each.empty for each in parameters) == _ASGI_ARGUMENTS
    )


def _replied(request: Request, status: int, headers: Headers, body: bytes) -> Reply:
    """Return a reply as a server sends it, whose body is not longer than its length says, nor padded."""
    reply = Reply(status, headers, body)
    declared = reply.header("Content-Length") or ""
    if request.method == "HEAD" or not (declared.isascii() and declared.isdecimal()):
        return reply
    if int(declared) > len(body):
        return reply._replace(body=body + b" ").cut(after=len(body))
    return reply._replace(body=body[: int(declared)])


# ---- ASGI


def _asgi_handler(app: Any, lifespan: _Lifespan) -> Handler:
    async def handle(request: Request) -> Reply:
        path, _, query = request.target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": request.version,
            "method": request.method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode(errors="replace"),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in request.headers],
            "client": (request.client or "127.0.0.1", 0),
            "server": ("127.0.0.1", 0),
            "state": lifespan.state.copy(),
        }
        unread = [{"type": "http.request", "body": request.body, "more_body": False}]
        status, headers, body = 0, [], bytearray()
        whole, over = False, asyncio.Event()

        async def receive() -> Message:
            if unread:
                return unread.pop()
            await over.wait()  # frameworks wait for this beside their work: the client is still there
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, headers, whole
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message.get("headers", ()))
            elif message["type"] == "http.response.body" and not whole:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    whole = True
                    over.set()

        async def run() -> None:
            try:
                await app(scope, receive, send)
            except Exception:
                if not status:
                    raise
            finally:
                over.set()

        running = lifespan.run(run())
        try:
            await over.wait()  # what the application does after the reply does not hold it up
        except asyncio.CancelledError:
            running.cancel()
            raise
        if not status:
            await running
            raise MemmockError("the application ended without a reply")
        named = tuple((bytes(n).decode("latin-1"), bytes(v).decode("latin-1")) for n, v in headers)
        if not whole:
            return Reply(status, named, bytes(body)).chunked().cut(after=len(body))
        return _replied(request, status, named, bytes(body))

    return handle


class _Lifespan:
    """The start and the end of an ASGI application; many have none, and say so by an exception."""

    def __init__(self, app: Any) -> None:
        self.state: dict[str, Any] = {}
        self._failure = ""
        self._app = app
        self._task: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._stopping = self._stopped = asyncio.Event()

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start what may go on until the end."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def begin(self) -> None:
        """Begin; `wait` tells when it has started."""
        self._stopping, self._stopped = asyncio.Event(), asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def wait(self) -> None:
        """Wait for the start, in another thread than that of the loop.

        Raises:
            MemmockError: it fails, or takes too long.
        """
        if not self._started.wait(_START_S):
            self._failure = f"it is not ready after {_START_S:g} s"
        if self._failure:
            raise MemmockError(f"the application does not start: {self._failure}")

    async def stop(self) -> None:
        """Let the application end."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=_AFTERWARDS_S)
            for each in late:
                each.cancel()
        if self._task is None:
            return
        self._stopping.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), _END_S)
        self._task.cancel()

    async def _run(self) -> None:
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> Message:
            kind = next(asked, "")
            if kind != "lifespan.startup":
                await self._stopping.wait()
            if not kind:
                await asyncio.Event().wait()  # there is nothing more, until this is cancelled
            return {"type": kind}

        async def send(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                lines = message.get("message", "").split("\n")
                self._failure = next(
                    (line for line in reversed(lines) if line.strip()), "it does not say why"
                )
            (self._started if "startup" in message["type"] else self._stopped).set()

        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            await self._app(scope, receive, send)
        except Exception:  # it has no lifespan
            pass
        finally:
            self._started.set()
            self._stopped.set()


# ---- WSGI


def _wsgi_handler(app: Wsgi, threads: ThreadPoolExecutor) -> Handler:
    async def handle(request: Request) -> Reply:
        return await asyncio.get_running_loop().run_in_executor(threads, _called, app, request)

    return handle


def _called(app: Wsgi, request: Request) -> Reply:
    path, _, query = request.target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": f"HTTP/{request.version}",
        "CONTENT_TYPE": request.header("Content-Type") or "",
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers:
        key = f"HTTP_{name.upper().replace('-', '_')}"
        if key not in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"):
            environ[key] = f"{environ[key]},{value}" if key in environ else value
    started: list[tuple[int, list[tuple[str, str]]]] = []
    written: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        started[:] = [(int(status[:3]), headers)]
        return written.append

    parts = app(environ, start_response)
    try:
        body = b"".join([*parts])
    finally:
        if hasattr(parts, "close"):
            parts.close()
    if not started:
        raise MemmockError("the application did not call start_response")
    status, headers = started[0]
    return _replied(request, status, tuple(headers), b"".join(written) + body)
