"""A server for mocks: started once, with a fresh mock for each test."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.mock import Mock, MockSettings
from memmock.server import Elsewhere, Server


class MockServer:
    """Serves mocks from a thread of its own, one at a time; start it once, take a fresh mock for each test.

    Between two fresh mocks it answers too, so that a service under test may already be started with the
    `endpoint`; nobody looks at these calls.

    Raises:
        MemmockError: the persona cannot be read, or the path is not one.
    """

    def __init__(
        self, settings: MockSettings | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.settings = settings or MockSettings()
        self._idle = self._current = Mock(self.settings, "").provider
        self._server = Server(self._answer, host=host, port=port, door=_Door(self))
        self._elsewhere = Elsewhere(self._server)

    @property
    def endpoint(self) -> str:
        """Where the mock answers; known once the server was started."""
        return self._server.url + self.settings.path

    def start(self) -> None:
        """Start serving; return once connections are accepted.

        Raises:
            MemmockError: the address cannot be had.
        """
        self._server.start()

    def stop(self) -> None:
        """Stop serving; no thread and no socket is left."""
        self._server.stop()
        self._elsewhere.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @contextmanager
    def fresh(self, allow: Collection[str] = (), settings: MockSettings | None = None) -> Iterator[Mock]:
        """Serve a new mock, with no calls and the memories of the settings, for the time of a `with`.

        At the end, `Mock.verify` fails the test for what the consumer sent.

        Args:
            allow: codes of rules that may be broken.
            settings: what the mock is made of, when not those of the server.

        Raises:
            MemmockError: another fresh mock is being served.
        """
        if self._current is not self._idle:
            raise MemmockError("a fresh mock is being served already; leave its `with` before the next")
        settings = settings or self.settings
        mock = Mock(settings, self._server.url + settings.path)
        before = self._connected()
        mock._connected = lambda: self._connected() - before
        mock.provider.elsewhere = self._elsewhere.url
        mock.provider.playbook.changed = self._server.look
        self._server.forget()  # what went wrong for nobody, or in a test that had failed already
        self._current = mock.provider
        try:
            yield mock
        finally:
            self._current = self._idle
            self._server.look()
        self._server.check()
        mock.verify(allow)

    def _connected(self) -> int:
        return self._server.connected + self._elsewhere.connected

    def _answer(self, request: Request) -> Reply | Awaitable[Reply]:
        return self._current(request)


class _Door:
    """The door of the mock that is being served."""

    def __init__(self, server: MockServer) -> None:
        self._server = server

    def refuses(self) -> bool:
        return self._server._current.playbook.refuses()

    def greets(self) -> bool:
        return self._server._current.playbook.greets()

    def is_open(self) -> bool:
        return self._server._current.playbook.is_open()
