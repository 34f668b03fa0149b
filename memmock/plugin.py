"""The pytest plugin: fixtures over `mock`, two markers, and nothing else.

Every pytest run on the machine loads this module, so it imports what it needs when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from memmock.errors import MemmockError, MemmockFailure

if TYPE_CHECKING:
    import pytest_httpserver

    from memmock.consumer import Consumer
    from memmock.live import LiveTwin
    from memmock.mock import Mock, MockSettings
    from memmock.mock_server import MockServer
    from memmock.scenarios import Scenario


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line(
        "markers",
        "memmock(scenario=…, plan=…, allow=[…]): what the mock plays (`memmock scenarios` lists it all), and "
        "which rules of the contract the consumer may break (`memmock rules` lists them)",
    )
    config.addinivalue_line(
        "markers",
        "memmock_scenarios(*names, without=[…]): run the test once for each of these scenarios and families "
        "of scenarios, all when none is named; the fixture memmock_scenario is the one that is played",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each scenario of its marker."""
    markers = list(metafunc.definition.iter_markers("memmock_scenarios"))
    if not markers:
        return
    with failing_plainly(f"{metafunc.definition.nodeid}: "):
        if "memmock_scenario" not in metafunc.fixturenames:
            raise MemmockError("@pytest.mark.memmock_scenarios is for tests that use a memmock fixture")
        chosen = {scenario.name: scenario for marker in reversed(markers) for scenario in _chosen(marker)}
        metafunc.parametrize("memmock_scenario", chosen.values(), indirect=True, ids=chosen)


_MOCK = pytest.StashKey["Mock"]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what its mock was asked and what it played."""
    report = yield
    mock = item.stash.get(_MOCK, None)
    if mock is not None and call.when == "call" and report.failed and (seen := mock.summary()):
        report.sections.append(("memmock", seen))
    return report


@pytest.fixture(scope="session")
def memmock_settings() -> MockSettings:
    """What the mocks are made of; override it to serve another persona or path."""
    from memmock.mock import MockSettings

    return MockSettings()


@pytest.fixture(scope="session")
def memmock_server(memmock_settings: MockSettings) -> Iterator[MockServer]:
    """The server behind `memmock`, started once; `with memmock_server.fresh() as memmock:` suits `@given`."""
    from memmock.mock_server import MockServer

    with failing_plainly():
        server = MockServer(memmock_settings)
        server.start()
    yield server
    server.stop()


@pytest.fixture
def memmock_scenario(request: pytest.FixtureRequest) -> Scenario | None:
    """The scenario that `@pytest.mark.memmock_scenarios` chose for this run of the test."""
    scenario: Scenario | None = getattr(request, "param", None)
    return scenario


@pytest.fixture
def memmock(
    request: pytest.FixtureRequest,
    memmock_server: MockServer,
    memmock_settings: MockSettings,
    memmock_scenario: Scenario | None,
) -> Iterator[Mock]:
    """A mock provider of this test's own; what the consumer sent is checked at the end."""
    with failing_plainly():
        marked = _marked(request)
        # the settings of this test: the server may have been started by one with others
        with memmock_server.fresh(marked.allow, memmock_settings) as mock:
            request.node.stash[_MOCK] = mock
            marked.set_up(mock, memmock_scenario)
            yield mock


@pytest.fixture
def memmock_httpserver(
    request: pytest.FixtureRequest,
    httpserver: pytest_httpserver.HTTPServer,
    memmock_settings: MockSettings,
    memmock_scenario: Scenario | None,
) -> Iterator[Mock]:
    """The same mock, mounted on the `httpserver` of pytest-httpserver."""
    from memmock.mock import Mock
    from memmock.mount import mount

    with failing_plainly():
        marked = _marked(request)
        # what Werkzeug cannot do, scenarios that need it are refused for
        mock = Mock(memmock_settings, httpserver.url_for(memmock_settings.path), abilities=frozenset())
        mount(mock.provider, httpserver, memmock_settings.path)
        request.node.stash[_MOCK] = mock
        marked.set_up(mock, memmock_scenario)
        yield mock
        mock.verify(marked.allow)


@pytest.fixture
def memmock_consumer(memmock: Mock) -> Iterator[Consumer]:
    """The reference consumer, configured with `memmock`."""
    from memmock.consumer import Consumer
    from memmock.contract import RetrievalConfig

    with failing_plainly():
        consumer = Consumer(RetrievalConfig(**memmock.config()))
    with consumer:
        yield consumer


@pytest.fixture
def memmock_live() -> Iterator[LiveTwin]:
    """The live twin, for tests of a provider: `create(endpoint)` gives a live session to retrieve with."""
    from memmock.live import LiveTwin

    with LiveTwin() as twin:
        yield twin


class _Marked:
    """What the markers of a test say. No dataclass: to make one takes a millisecond of every pytest run."""

    def __init__(self) -> None:
        self.allow: set[str] = set()
        self.scenario: str | None = None
        self.plan: str | None = None

    def set_up(self, mock: Mock, scenario: Scenario | None) -> None:
        """Let the mock play what the test is marked with."""
        what = self.scenario if scenario is None else scenario
        if what is not None:
            mock.use(what)
        if self.plan is not None:
            mock.plan(self.plan)


def _marked(request: pytest.FixtureRequest) -> _Marked:
    """Return what the markers say; the nearest one wins, but all that they allow is allowed."""
    marked = _Marked()
    for marker in request.node.iter_markers("memmock"):
        given = dict(marker.kwargs)
        allow, scenario, plan = given.pop("allow", ()), given.pop("scenario", None), given.pop("plan", None)
        texts = all(text is None or isinstance(text, str) for text in (scenario, plan))
        if marker.args or given or not texts or not _are_texts(allow):
            wrong = next(iter(given), None)
            what = f"no {wrong}" if wrong else f"not {marker.args or ''}{marker.kwargs or ''}"
            raise MemmockError(
                f"@pytest.mark.memmock takes scenario=name, plan=text and allow=[codes of rules], {what}; "
                f"memmock.use and memmock.plan take the rest"
            )
        marked.allow |= {allow} if isinstance(allow, str) else set(allow)
        marked.scenario = scenario if marked.scenario is None else marked.scenario
        marked.plan = plan if marked.plan is None else marked.plan
    return marked


def _are_texts(value: object) -> bool:
    return isinstance(value, Collection) and all(isinstance(item, str) for item in value)


def _chosen(marker: pytest.Mark) -> list[Scenario]:
    """Return the scenarios that a marker names, in the order of the catalogue."""
    from memmock.scenarios import CATALOGUE, FAMILIES, members

    without = marker.kwargs.get("without", ())
    known = not set(marker.kwargs) - {"without"}
    if not known or not _are_texts(marker.args) or not _are_texts(without):
        raise MemmockError(
            "@pytest.mark.memmock_scenarios takes names of scenarios and families, and without=[names]"
        )

    names = [without] if isinstance(without, str) else without
    out = {scenario.name for name in names for scenario in members(name)}
    wanted = {scenario.name for name in marker.args or FAMILIES for scenario in members(name)} - out
    return [scenario for scenario in CATALOGUE.values() if scenario.name in wanted]


@contextmanager
def failing_plainly(where: str = "") -> Iterator[None]:
    """Turn what memmock raises into a failure that shows the message and no traceback."""
    try:
        yield
    except (MemmockError, MemmockFailure) as error:
        raise pytest.fail.Exception(f"{where}{error}", pytrace=False) from None
