"""The third part of the pytest plugin: a provider under test, one test a rule. Wiring only.

Every pytest run on the machine loads this module, so it imports what it needs when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from memmock.errors import MemmockError
from memmock.plugin import failing_plainly

if TYPE_CHECKING:
    from memmock.conformance.finding import Result


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "memmock_rules(*codes, without=[…]): run the test once for each of these rules of replies, all when "
        "none is named; the fixture memmock_rule checks it on what the fixture memmock_provider gives",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each rule of its marker."""
    marker = metafunc.definition.get_closest_marker("memmock_rules")
    if marker is None:
        return
    with failing_plainly(f"{metafunc.definition.nodeid}: "):
        if "memmock_rule" not in metafunc.fixturenames:
            raise MemmockError("@pytest.mark.memmock_rules is for tests that use the fixture memmock_rule")
        codes = _chosen(marker)
        metafunc.parametrize("memmock_rule", codes, indirect=True, ids=codes, scope="session")


def _chosen(marker: pytest.Mark) -> list[str]:
    from memmock.rules import RULES

    known = [code for code in RULES if code.startswith("RES")]
    without = marker.kwargs.get("without", ())
    names = [*marker.args, *([without] if isinstance(without, str) else without)]
    if set(marker.kwargs) - {"without"} or not all(isinstance(name, str) for name in names):
        raise MemmockError("@pytest.mark.memmock_rules takes codes of rules, and without=[codes]")
    if unknown := [name for name in names if name not in known]:
        raise MemmockError(f"there is no rule {unknown[0]!r} for providers; `memmock rules` lists them")
    return [code for code in known if code not in without and (not marker.args or code in marker.args)]


@pytest.fixture(scope="session")
def memmock_provider() -> Any:
    """What is checked; override it with the URL of a provider, an ASGI or WSGI application, or a dict.

    The dict has the arguments of `memmock.check_provider`.
    """
    raise pytest.fail.Exception(
        "override the fixture memmock_provider: return the URL of your provider, your ASGI or WSGI "
        "application, or a dict with the arguments of memmock.check_provider",
        pytrace=False,
    )


@pytest.fixture(scope="session")
def memmock_provider_result(memmock_provider: Any) -> Result:
    """What a check of the provider came to; it is made once."""
    from memmock.checking import check_provider

    given = memmock_provider if isinstance(memmock_provider, Mapping) else {"provider": memmock_provider}
    with failing_plainly():
        return check_provider(**given)


@pytest.fixture(scope="session")
def memmock_rule(
    request: pytest.FixtureRequest, memmock_provider: Any, memmock_provider_result: Result
) -> str:
    """The code of a rule that the provider keeps; fails when it does not, skips when that cannot be told."""
    code: str = request.param
    from memmock.conformance.session import Target
    from memmock.report import report_of
    from memmock.report.text import rendered_finding

    given = memmock_provider if isinstance(memmock_provider, Mapping) else {}
    target = Target(url=memmock_provider_result.url, authorization=given.get("authorization"))
    found = [entry for entry in report_of(memmock_provider_result, target).entries if entry.code == code]
    if found:
        return _Looked(code, failure="\n\n".join(map(rendered_finding, found)))
    outcome = next((each for each in memmock_provider_result.outcomes if each.rule.code == code), None)
    if outcome is not None and outcome.state == "not applicable":
        return _Looked(code, why_not=outcome.reason or "not applicable")
    return code


class _Looked(str):
    """The code of a rule, with what became of it."""

    failure: str
    why_not: str

    def __new__(cls, code: str, failure: str = "", why_not: str = "") -> _Looked:
        made = super().__new__(cls, code)
        made.failure, made.why_not = failure, why_not
        return made


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Fail or skip a test by its rule; as the test itself, rather than as its set-up."""
    rule = pyfuncitem.funcargs.get("memmock_rule")
    if isinstance(rule, _Looked):
        if rule.failure:
            raise pytest.fail.Exception(rule.failure, pytrace=False)
        raise pytest.skip.Exception(rule.why_not, _use_item_location=True)
