"""ASGI and WSGI applications as handlers, so that one can be checked inside the process that made it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote_to_bytes

from memmock.http import Handler, Reply, Request
from memmock.server import Server

Message = MutableMapping[str, Any]
Asgi = Callable[[dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@contextmanager
def served(app: Asgi | Wsgi) -> Iterator[str]:
    """Serve an application on a free port of this machine for the time of a `with`; yield its address.

    An ASGI application gets its `lifespan`. What the application raises is answered with 500.
    """
    if is_asgi(app):
        lifespan = _Lifespan(app)
        handler: Handler = _asgi_handler(app, lifespan)
        server = Server(handler, at_stop=lifespan.stop)
    else:
        server = Server(_wsgi_handler(app))  # type: ignore[arg-type]  # it is the other kind
    with server:
        yield server.url
        server.forget()


def is_asgi(app: object) -> bool:
    """Tell whether an application is of ASGI rather than of WSGI, by how it is called."""
    call = app if inspect.isroutine(app) else getattr(app, "__call__", app)  # noqa: B004  # its signature
    return inspect.iscoroutinefunction(call)


# ---- ASGI


def _asgi_handler(app: Any, lifespan: _Lifespan) -> Handler:
    async def handle(request: Request) -> Reply:
        await lifespan.start()
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
            "state": lifespan.state,
        }
        received = iter([{"type": "http.request", "body": request.body, "more_body": False}])
        status, headers, body = 500, [], bytearray()

        async def receive() -> Message:
            return next(received, {"type": "http.disconnect"})

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message.get("headers", ()))
            elif message["type"] == "http.response.body":
                body.extend(message.get("body", b""))

        await app(scope, receive, send)
        named = tuple((bytes(n).decode("latin-1"), bytes(v).decode("latin-1")) for n, v in headers)
        return Reply(status, named, bytes(body))

    return handle


class _Lifespan:
    """The start and the end of an ASGI application; many have none, and say so by an exception."""

    def __init__(self, app: Any) -> None:
        self.state: dict[str, Any] = {}
        self._app = app
        self._task: asyncio.Task[None] | None = None
        self._started = self._stopping = self._stopped = asyncio.Event()

    async def start(self) -> None:
        if self._task is None:
            self._started, self._stopping, self._stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._run())
        await self._started.wait()

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stopping.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), 5.0)
        self._task.cancel()

    async def _run(self) -> None:
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> Message:
            kind = next(asked)
            if kind == "lifespan.shutdown":
                await self._stopping.wait()
            return {"type": kind}

        async def send(message: Message) -> None:
            (self._started if "startup" in message["type"] else self._stopped).set()

        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        try:
            await self._app(scope, receive, send)
        except Exception:  # it has no lifespan
            pass
        finally:
            self._started.set()
            self._stopped.set()


# ---- WSGI


def _wsgi_handler(app: Wsgi) -> Handler:
    async def handle(request: Request) -> Reply:
        return await asyncio.get_running_loop().run_in_executor(None, _called, app, request)

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
    status, headers = started[0]
    return Reply(status, tuple(headers), b"".join(written) + body)
