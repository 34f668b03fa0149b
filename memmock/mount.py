"""A handler on the suite's own pytest-httpserver, for suites that have one already.

A plain reply is a Werkzeug response. Every other delivery is played on the socket itself, and then Werkzeug
is left with a client that is gone. Each connection carries one request, and a delivery holds a thread: the
only one, unless the httpserver is `threaded`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import re
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import werkzeug

from memmock.http import AT_ONCE, Handler, How, Reply, Request, Sent
from memmock.reply_writer import SLICE_BYTES, Script, scripted
from memmock.sockets import HARD, LINGER_S, buffer_little, unsent

if TYPE_CHECKING:
    import pytest_httpserver
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

POLL_S = 0.05
"""How long a delivery may go on before it notices that the httpserver was stopped."""


def mount(handler: Handler, httpserver: pytest_httpserver.HTTPServer, path: str) -> None:
    """Let `handler` answer every method at `path`, behind any gateway prefix."""
    numbers = itertools.count(1)  # every request comes on a connection of its own

    def respond(received: werkzeug.Request) -> werkzeug.Response:
        start, server = time.monotonic(), httpserver.server
        request = _request(received, next(numbers))

        def stopped() -> bool:
            # there is no public sign of a stop that waits for this very reply
            stopping = getattr(server, "_BaseServer__shutdown_request", False)
            return stopping or server is None or httpserver.server is not server

        answer = handler(request)
        try:
            reply = answer if isinstance(answer, Reply) else asyncio.run(_result(answer, received, stopped))
        except _Over:
            gone = _Played()
            gone.play = lambda sock: _end(sock, reset=False)
            return gone
        if reply.delivery == AT_ONCE:
            return werkzeug.Response(reply.body, reply.status, list(reply.headers))
        script = scripted(reply, request, keep_alive=False)
        response = _Played(reply.body, reply.status, list(reply.headers))
        response.play = lambda sock: _play(sock, reply, script, start, stopped)
        return response

    httpserver.expect_request(re.compile(f".*{re.escape(path)}$")).respond_with_handler(respond)


def _request(received: werkzeug.Request, number: int) -> Request:
    environ = received.environ
    version = environ.get("SERVER_PROTOCOL", "HTTP/1.1").removeprefix("HTTP/")
    target = environ.get("RAW_URI") or received.full_path.removesuffix("?")
    headers, body = tuple(received.headers.items()), received.get_data()
    return Request(received.method, target, headers, body, version, environ.get("REMOTE_ADDR", ""), number)


async def _result(answer: Awaitable[Reply], received: werkzeug.Request, stopped: Callable[[], bool]) -> Reply:
    """Return the reply of an asynchronous handler; end when the client leaves or the server is stopped."""
    sock = received.environ["werkzeug.socket"]
    task, client, timeout = asyncio.ensure_future(answer), _Client(sock, stopped), sock.gettimeout()
    try:
        while not (await asyncio.wait((task,), timeout=POLL_S))[0]:
            client.look(0)
        return task.result()
    finally:
        task.cancel()
        sock.settimeout(timeout)


class _Played(werkzeug.Response):
    """A response that is played on the socket; Werkzeug then sends it to a client that has left."""

    play: Callable[[socket.socket], None]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        self.play(environ["werkzeug.socket"])
        return super().__call__(environ, start_response)


class _Over(Exception):
    """Ends a delivery early."""

    def __init__(self, how: How) -> None:
        self.how = how


def _play(
    sock: socket.socket, reply: Reply, script: Script, start: float, stopped: Callable[[], bool]
) -> None:
    """Do what a delivery says, step by step, tell the reply how that ended, and end the connection."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # what the system buffers counts as sent; let it be little
        buffer_little(sock)
    client = _Client(sock, stopped)
    reset = script.ending == "reset"
    how: How = "reset" if reset else "closed" if reply.delivery.cut else "completed"
    try:
        for step in script.steps:
            if isinstance(step, bytes):
                client.send(step)
            else:
                client.wait(step)
        client.wait(script.end_s)
        if script.ending == "hang":
            client.wait(math.inf)
        deadline = time.monotonic() + LINGER_S
        while reset and unsent(sock) and time.monotonic() < deadline:
            time.sleep(0.001)  # a reset throws away what the client's system does not have yet
    except _Over as over:
        how, reset = over.how, False
    try:
        if reply.on_sent is not None:
            reply.on_sent(Sent(how, client.sent_bytes, time.monotonic() - start))
    finally:
        _end(sock, reset)


class _Client:
    """Sends and waits, as long as the client is there and the server runs."""

    def __init__(self, sock: socket.socket, stopped: Callable[[], bool]) -> None:
        self._sock = sock
        self._stopped = stopped
        self.sent_bytes = 0

    def send(self, data: bytes) -> None:
        while data:
            self.look(0)
            self._sock.settimeout(POLL_S)
            try:
                size = self._sock.send(data)
            except TimeoutError:  # the client does not read
                continue
            except OSError:
                raise _Over("client closed") from None
            self.sent_bytes += size
            data = data[size:]

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            self.look(min(rest, POLL_S))

    def look(self, seconds: float) -> None:
        """Look for so long whether the client leaves; what else it says is of no use any more."""
        if self._stopped():
            raise _Over("stopped")
        self._sock.settimeout(seconds)
        try:
            there = self._sock.recv(SLICE_BYTES)
        except (BlockingIOError, TimeoutError, ssl.SSLWantReadError):
            return
        except OSError:
            there = b""
        if not there:
            raise _Over("client closed")


def _end(sock: socket.socket, reset: bool) -> None:
    """End the connection, and leave Werkzeug one whose client has left: it passes over that in silence.

    Werkzeug still holds the socket: to close it here would take effect only later, and after a FIN.
    """
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD)
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RD)  # sends nothing; takes the TLS off a TLS socket
    connection = sock.detach()
    left, client = socket.socketpair()
    client.close()
    socket.socket.__init__(sock, fileno=left.detach())
    socket.close(connection)
