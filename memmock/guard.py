"""Refuses the connections that Python code opens, while something plays in place of the network."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from memmock.errors import MemmockError


class ConnectionRefused(ConnectionRefusedError):
    """The guard refused a connection; to the code under test it is a refused connection like any other."""


class Guard:
    """Refuses connections and lists them as `leaks`. One that could not be taken out lets everything pass.

    Args:
        allow_hosts: what passes: names or addresses, each with or without `:port`.

    Raises:
        MemmockError: one of `allow_hosts` cannot be read.
    """

    def __init__(self, allow_hosts: Collection[str]) -> None:
        self.leaks: list[str] = []
        self._allowed = {address for entry in allow_hosts for address in _addresses(entry)}
        self._on = True

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Guard this process for the time of a `with`: TCP, UDP, and the connections of uvloop."""
        with ExitStack() as stack:
            for patch in self._patches():
                stack.enter_context(patch)
            try:
                yield
            finally:
                self._on = False

    def check(self, host: Any, port: Any) -> None:
        """Raise `ConnectionRefused` unless the connection may be opened."""
        host = host.decode() if isinstance(host, bytes) else str(host)
        wanted = host.partition("%")[0].lower()
        if not self._on or {(wanted, None), (wanted, str(port))} & self._allowed:
            return
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.leaks.append(name)
        raise ConnectionRefused(
            errno.ECONNREFUSED,
            f"memmock refused a connection to {name} while a cassette plays; "
            f'allow it with allow_hosts=["{name}"]',
        )

    def _check_socket(self, sock: socket.socket, address: Any) -> None:
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            self.check(*address[:2])

    def _patches(self) -> Iterator[AbstractContextManager[None]]:
        # selector loops of asyncio, and trio, open their connections by way of these
        yield replaced(socket.socket, "connect", self._connect)
        yield replaced(socket.socket, "connect_ex", self._connect_ex)
        yield replaced(socket.socket, "sendto", self._sendto)
        try:
            import uvloop
        except ImportError:
            return
        yield replaced(uvloop.Loop, "create_connection", self._create_connection)
        yield replaced(uvloop.Loop, "sock_connect", self._sock_connect)

    def _connect(self, real: Callable[..., None]) -> Callable[..., None]:
        def connect(sock: socket.socket, address: Any) -> None:
            self._check_socket(sock, address)
            real(sock, address)

        return connect

    def _connect_ex(self, real: Callable[..., int]) -> Callable[..., int]:
        def connect_ex(sock: socket.socket, address: Any) -> int:
            try:
                self._check_socket(sock, address)
            except ConnectionRefused:
                return errno.ECONNREFUSED  # it tells errors by their number
            return real(sock, address)

        return connect_ex

    def _sendto(self, real: Callable[..., int]) -> Callable[..., int]:
        def sendto(sock: socket.socket, data: Any, *flags_and_address: Any) -> int:
            if flags_and_address:
                self._check_socket(sock, flags_and_address[-1])
            return real(sock, data, *flags_and_address)

        return sendto

    def _create_connection(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def create_connection(
            loop: Any, factory: Any, host: Any = None, port: Any = None, **options: Any
        ) -> Any:
            if host is not None:
                self.check(host, port)
            return await real(loop, factory, host, port, **options)

        return create_connection

    def _sock_connect(self, real: Callable[..., Any]) -> Callable[..., Any]:
        async def sock_connect(loop: Any, sock: socket.socket, address: Any) -> Any:
            self._check_socket(sock, address)
            return await real(loop, sock, address)

        return sock_connect


def _addresses(entry: str) -> Iterator[tuple[str, str | None]]:
    """Yield what one of `allow_hosts` stands for: the host as it is written, and its addresses."""
    bare = f"[{entry}]" if entry.count(":") > 1 and not entry.startswith("[") else entry
    try:
        parts = urlsplit(f"//{bare}")
        host, port = parts.hostname, None if parts.port is None else str(parts.port)
    except ValueError:
        host = None
    if not host:
        raise MemmockError(f'allow_hosts: cannot read "{entry}"; write it as "host" or "host:port"')
    yield host, port
    with contextlib.suppress(OSError):
        for found in socket.getaddrinfo(host, port):
            yield str(found[4][0]), port


@contextmanager
def replaced(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute by what is made of it; put it back unless somebody else has replaced it since."""
    own, real = name in vars(owner), getattr(owner, name)
    new = make(real)
    setattr(owner, name, new)
    try:
        yield
    finally:
        if vars(owner).get(name) is new:
            setattr(owner, name, real) if own else delattr(owner, name)
