"""A provider on a raw socket that plays scripts byte by byte, so that nothing of memmock's server is needed.

    with RawProvider() as provider:
        provider.play([b"HTTP/1.1 200 OK\\r\\n", reset])

Each request takes the next script; when none is left, it gets `GOOD`. A step of a script is bytes to send or
a function of the `Wire`. A script that starts with `on_connect` does not wait for a request.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from memmock.sockets import unsent

PATIENCE_S = 10.0  # no step waits longer, so that a failed test ends

Step = bytes | Callable[["Wire"], object]
Script = Sequence[Step]


class Gone(Exception):
    """The connection is over."""


class Wire:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sent = 0

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            count = self.sock.send(view)
            self.sent += count
            view = view[count:]

    def await_end(self) -> None:
        """Wait until the client closes."""
        with contextlib.suppress(ConnectionError):
            while self.sock.recv(65536):
                pass

    def read_request(self) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        while len(body) < int(length[1] if length else 0):
            body += self._more()
        return head + b"\r\n\r\n" + body

    def _more(self) -> bytes:
        if not (data := self.sock.recv(65536)):
            raise Gone
        return data


# ---- steps


def on_connect(wire: Wire) -> None:
    """Mark a script that is played before any request."""


def close(wire: Wire) -> None:
    raise Gone


def reset(wire: Wire) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while unsent(wire.sock) and time.monotonic() < deadline:  # a reset throws away what has not arrived
        time.sleep(0.001)
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise Gone


def hang(wire: Wire) -> None:
    wire.await_end()


def endless(chunk: bytes) -> Step:
    def step(wire: Wire) -> None:
        while True:
            wire.send(chunk)

    return step


def drip(data: bytes, every: float) -> Step:
    def step(wire: Wire) -> None:
        for byte in data:
            wire.send(bytes([byte]))
            wire.sock.settimeout(every)
            with contextlib.suppress(TimeoutError):
                wire._more()
            wire.sock.settimeout(PATIENCE_S)

    return step


# ---- replies


def head(*headers: str, status: str = "200 OK", version: str = "1.1") -> bytes:
    return "\r\n".join([f"HTTP/{version} {status}", *headers, "", ""]).encode()


def sized(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return head(f"Content-Length: {len(body)}", *headers, status=status) + body


def chunked(*chunks: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    framed = [b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks]
    return head("Transfer-Encoding: chunked") + b"".join(framed) + b"0\r\n" + trailers + b"\r\n"


GOOD_BODY = '{"memories":[{"id":"1","summary":"用户喜欢茶"}]}'.encode()
GOOD = sized(GOOD_BODY, "Content-Type: application/json")


class RawProvider:
    def __init__(self, *, host: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.sent = 0  # bytes of the script played last that the system took
        self.idle = threading.Event()  # set while no connection is open
        self._context = context
        self._scripts: deque[Script] = deque()
        self._wires: set[Wire] = set()
        self._threads: list[threading.Thread] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port = self._listener.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.endpoint = f"{'https' if context else 'http'}://{name}:{self.port}/memory_retrieval"
        self._start(self._accept)

    def play(self, *scripts: Script) -> None:
        self._scripts.extend(scripts)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for wire in list(self._wires):
            with contextlib.suppress(OSError):
                wire.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def __enter__(self) -> RawProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.connections += 1
                self.idle.clear()
                wire = Wire(sock)
                self._wires.add(wire)
                self._start(self._serve, wire)

    def _serve(self, wire: Wire) -> None:
        wire.sock.settimeout(PATIENCE_S)
        with contextlib.suppress(Gone, OSError):
            if self._scripts and self._scripts[0][0] is on_connect:
                self._play(wire, self._scripts.popleft())
            elif self._context is not None:
                wire.sock = self._context.wrap_socket(wire.sock, server_side=True)
            while True:
                self.requests.append(wire.read_request())
                self._play(wire, self._scripts.popleft() if self._scripts else [GOOD])
        wire.sock.close()
        self._wires.discard(wire)
        if not self._wires:
            self.idle.set()

    def _play(self, wire: Wire, script: Script) -> None:
        wire.sent = 0
        try:
            for step in script:
                if isinstance(step, bytes):
                    wire.send(step)
                else:
                    step(wire)
        finally:
            self.sent = wire.sent
