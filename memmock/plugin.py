"""The pytest plugin: fixtures over `mock`, a marker, and nothing else.

Every pytest run on the machine loads this module, so it imports what it needs when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from memmock.errors import MemmockError, MemmockFailure

if TYPE_CHECKING:
    import pytest_httpserver

    from memmock.consumer import Consumer
    from memmock.mock import Mock, MockServer, MockSettings


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "memmock(allow=[…]): let the consumer break these rules of the contract (`memmock rules` lists them)",
    )


@pytest.fixture(scope="session")
def memmock_settings() -> MockSettings:
    """What the mocks are made of; override it to serve another persona or path."""
    from memmock.mock import MockSettings

    return MockSettings()


@pytest.fixture(scope="session")
def memmock_server(memmock_settings: MockSettings) -> Iterator[MockServer]:
    """The server behind `memmock`, started once; `with memmock_server.fresh() as memmock:` suits `@given`."""
    from memmock.mock import MockServer

    with _failing_plainly():
        server = MockServer(memmock_settings)
        server.start()
    yield server
    server.stop()


@pytest.fixture
def memmock(request: pytest.FixtureRequest, memmock_server: MockServer) -> Iterator[Mock]:
    """A mock provider of this test's own; what the consumer sent is checked at the end."""
    with _failing_plainly(), memmock_server.fresh(_allowed(request)) as mock:
        yield mock


@pytest.fixture
def memmock_httpserver(
    request: pytest.FixtureRequest,
    httpserver: pytest_httpserver.HTTPServer,
    memmock_settings: MockSettings,
) -> Iterator[Mock]:
    """The same mock, mounted on the `httpserver` of pytest-httpserver."""
    from memmock.mock import Mock
    from memmock.mount import mount

    with _failing_plainly():
        mock = Mock(memmock_settings, httpserver.url_for(memmock_settings.path))
        mount(mock.provider, httpserver, memmock_settings.path)
        yield mock
        mock.verify(_allowed(request))


@pytest.fixture
def memmock_consumer(memmock: Mock) -> Iterator[Consumer]:
    """The reference consumer, configured with `memmock`."""
    from memmock.consumer import Consumer
    from memmock.contract import RetrievalConfig

    with _failing_plainly():
        consumer = Consumer(RetrievalConfig(**memmock.config()))
    with consumer:
        yield consumer


def _allowed(request: pytest.FixtureRequest) -> set[str]:
    """Return the codes of the rules that the test's markers let the consumer break."""
    codes: set[str] = set()
    for marker in request.node.iter_markers("memmock"):
        allow = marker.kwargs.get("allow", ())
        if marker.args or set(marker.kwargs) - {"allow"} or not isinstance(allow, Collection):
            raise MemmockError(f"@pytest.mark.memmock takes allow=[codes of rules], not {marker}")
        codes |= {allow} if isinstance(allow, str) else set(allow)
    return codes


@contextmanager
def _failing_plainly() -> Iterator[None]:
    """Turn what memmock raises into a failure that shows the message and no traceback."""
    try:
        yield
    except (MemmockError, MemmockFailure) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
