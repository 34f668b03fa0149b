"""The fourth part of the pytest plugin: a consumer under test, one test a scenario. Wiring only.

Every pytest run on the machine loads this module, so it imports what it needs when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from memmock.plugin import failing_plainly

if TYPE_CHECKING:
    from memmock.consumer_conformance.bench import Bench
    from memmock.consumer_conformance.finding import Result
    from memmock.mock import MockSettings
    from memmock.scenarios import Scenario


_KEPT = 4
"""So many consumers are kept ready; where each test has one of its own, the old ones are ended."""


@pytest.fixture(scope="session")
def memmock_bench(memmock_settings: MockSettings) -> Iterator[Callable[[Any], Bench]]:
    """Where consumers are tried: gives the stand for one, the same one for the same consumer."""
    from memmock.checking import bench_for
    from memmock.consumer_conformance.act import DEFAULT_TIMEOUT_MS
    from memmock.contract import DEFAULT_TIMEOUT_MS as USUAL_TIMEOUT_MS

    timeout_ms = memmock_settings.timeout_ms
    benches: list[tuple[Any, Bench]] = []

    def bench_of(consumer: Any) -> Bench:
        for known, bench in benches:
            if known == consumer:
                return bench
        if len(benches) == _KEPT:
            benches.pop(0)[1].__exit__(None, None, None)
        with failing_plainly():
            bench = bench_for(consumer, DEFAULT_TIMEOUT_MS if timeout_ms == USUAL_TIMEOUT_MS else timeout_ms)
            bench.__enter__()
        benches.append((consumer, bench))
        return bench

    yield bench_of
    for _, bench in benches:
        bench.__exit__(None, None, None)


@pytest.fixture
def memmock_verdict(
    memmock_bench: Callable[[Any], Bench], memmock_consumer: Any, memmock_scenario: Scenario | None
) -> Result:
    """What the scenario of the marker `memmock_scenarios` shows of `memmock_consumer`; the test fails by it.

    Override `memmock_consumer` with your own: a function that is given `memory_retrieval` and `request` and
    returns a tool result, plain or async, or the command of an adapter as a list.
    """
    from memmock.consumer import Consumer
    from memmock.consumer_conformance.checks import check

    if isinstance(memmock_consumer, Consumer) or not (
        callable(memmock_consumer) or isinstance(memmock_consumer, list)
    ):
        raise pytest.fail.Exception(
            "override the fixture memmock_consumer: return your function (memory_retrieval, request) -> tool "
            "result, or the command of your adapter as a list",
            pytrace=False,
        )
    if memmock_scenario is None:
        raise pytest.fail.Exception(
            "memmock_verdict is for tests with @pytest.mark.memmock_scenarios", pytrace=False
        )
    with failing_plainly():
        return check(memmock_bench(memmock_consumer), scenarios=[memmock_scenario.name])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Fail a test by what its scenario shows; as the test itself, rather than as its set-up."""
    result: Any = pyfuncitem.funcargs.get("memmock_verdict")
    if result is None:
        return
    from memmock.consumer_conformance.shown import report_of
    from memmock.report.text import rendered_finding

    entries = report_of(result).entries
    if not result.ok():
        raise pytest.fail.Exception("\n\n".join(map(rendered_finding, entries)), pytrace=False)
