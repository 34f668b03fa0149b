"""The second half of the pytest plugin: cassettes. Options, markers and fixtures over `tape`, nothing else.

Every pytest run on the machine loads this module, so it imports what it needs when a fixture is used.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memmock.errors import MemmockError
from memmock.plugin import failing_plainly

if TYPE_CHECKING:
    from memmock.cassette_server import CassetteServer, Playing
    from memmock.tape import Tape
    from memmock.upstream import Upstream

MODES = ("none", "once", "new_episodes", "all", "rewrite", "verify")
_LISTS = ("match_on", "redact_headers", "redact_fields", "redact_patterns", "allow_hosts")
_TEXTS = ("record", "upstream", "authorization", "repeats", "ca_file")
_NAMES = (*_TEXTS, *_LISTS, "allow_unplayed", "timeout_ms")
_ENV = {
    "record": "MEMMOCK_RECORD",
    "upstream": "MEMMOCK_UPSTREAM",
    "authorization": "MEMMOCK_UPSTREAM_AUTHORIZATION",
}
_FIXTURES = ("memmock_cassette", "memmock_vcr")
_TAPE = pytest.StashKey["Tape"]()
_PASSED = pytest.StashKey[bool]()
_BEGUN = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the settings of the ini file."""
    group = parser.getgroup("memmock")
    group.addoption(
        "--memmock-record",
        choices=MODES,
        metavar="MODE",
        help="what memmock_cassette and memmock_vcr do: none (only play, the default), once, new_episodes, "
        "all, rewrite (record), verify (compare with the upstream)",
    )
    group.addoption(
        "--memmock-upstream", metavar="URL", help="the provider that is recorded or compared with"
    )
    group.addoption(
        "--memmock-check-orphans",
        action="store_true",
        help="name the cassettes that no test uses, and fail for them",
    )
    for name in ("record", "upstream", "repeats"):
        parser.addini(f"memmock_{name}", f"{name} of memmock's cassettes, see docs/cassettes.md")
    for name in _LISTS:
        # a regular expression holds spaces and backslashes
        kind: Any = "linelist" if name == "redact_patterns" else "args"
        parser.addini(f"memmock_{name}", f"{name} of memmock's cassettes", type=kind, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for fixture, what in (("memmock_cassette", "served"), ("memmock_vcr", "patched in")):
        config.addinivalue_line(
            "markers",
            f"{fixture}(name=…, record=…, upstream=…, match_on=[…], repeats=…, redact_headers=[…], "
            f"redact_fields=[…], redact_patterns=[…], allow_unplayed=…): the cassette that is {what}, "
            f"and how",
        )
    if config.getoption("memmock_check_orphans"):
        if any("::" in str(arg) for arg in config.args):
            raise pytest.UsageError(
                "--memmock-check-orphans needs whole files: single tests do not use it all"
            )
        config.stash[_ORPHANS] = _Orphans(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let the marker alone do what the fixture does."""
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is not None and item.get_closest_marker("memmock_vcr") and "memmock_vcr" not in names:
        names.append("memmock_vcr")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what its cassette has to say."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    if call.when == "call" and report.failed and (tape := item.stash.get(_TAPE, None)) is not None:
        said = [tape.complaint(), *(f"Recorded: {doubt}." for doubt in tape.doubts)]
        if tape.recorded:
            said.append(f"What was recorded is not saved, as the test failed ({tape.path}).")
        if text := "\n\n".join(part for part in said if part):
            report.sections.append(("memmock cassette", text))
    return report


# ---- fixtures


@pytest.fixture(scope="session")
def memmock_cassette_config() -> dict[str, Any]:
    """How cassettes are played and recorded, with the names of the marker; override it."""
    return {}


@pytest.fixture(scope="module")
def memmock_cassette_dir(request: pytest.FixtureRequest) -> Path:
    """Where the cassettes of a module are; override it."""
    return request.path.parent / "cassettes" / request.path.stem


@pytest.fixture(scope="session")
def memmock_cassette_server() -> Iterator[CassetteServer]:
    """The server behind `memmock_cassette`, started once; its `endpoint` stays the same."""
    from memmock.cassette_server import CassetteServer

    with failing_plainly():
        server = CassetteServer()
        server.start()
    yield server
    server.stop()


@pytest.fixture
def memmock_cassette(
    request: pytest.FixtureRequest, memmock_cassette_server: CassetteServer
) -> Iterator[Playing]:
    """A provider that plays this test's cassette, or records it; what went wrong fails the test."""
    with failing_plainly():
        settings = _settings(request, "memmock_cassette")
        tape = _tape(request, settings, "memmock_cassette", anywhere=True)
        upstream = _upstream(settings) if tape.records else None
        with memmock_cassette_server.playing(tape, upstream) as playing:
            yield playing
        _finish(request, tape)


@pytest.fixture
def memmock_vcr(request: pytest.FixtureRequest) -> Iterator[Tape]:
    """The same for code whose endpoint cannot be configured: its HTTP clients are patched, with vcrpy."""
    with failing_plainly():
        from memmock.patching import patched
        from memmock.tape import Caught

        if "memmock_cassette" in request.fixturenames:
            raise MemmockError(
                "a test has memmock_cassette or memmock_vcr, not both: they play the same file"
            )
        settings = _settings(request, "memmock_vcr")
        tape = _tape(request, settings, "memmock_vcr", anywhere=False)
        allow_hosts = _listed(settings.get("allow_hosts", ()))
        with patched(Caught(tape), records=tape.records, allow_hosts=allow_hosts) as caught:
            yield tape
        tape.refused(caught.leaks)
        _finish(request, tape)


def _finish(request: pytest.FixtureRequest, tape: Tape) -> None:
    """Save what was recorded and say what is wrong, if the test has passed so far."""
    if not request.node.stash.get(_PASSED, False):
        return
    for doubt in tape.doubts:
        from memmock.mock import MemmockWarning

        warnings.warn(MemmockWarning(f"recorded: {doubt}"), stacklevel=1)
    tape.save()
    tape.verify()


@contextmanager
def _as_usage_error() -> Iterator[None]:
    try:
        yield
    except MemmockError as error:
        raise pytest.UsageError(str(error)) from None


# ---- settings: command line, environment, marker, fixture, ini file; the first that says something


def _settings(request: pytest.FixtureRequest, marker: str) -> dict[str, Any]:
    config = request.config
    chosen = request.getfixturevalue("memmock_cassette_config")
    sources: list[tuple[str, Mapping[str, Any]]] = [
        ("command line", {name: config.getoption(f"memmock_{name}") for name in ("record", "upstream")}),
        ("environment", {name: os.environ.get(variable) or None for name, variable in _ENV.items()}),
        (f"@pytest.mark.{marker}", _marked(request.node, marker)),
        ("memmock_cassette_config", _known("memmock_cassette_config returns", chosen)),
        ("ini file", {name: config.getini(f"memmock_{name}") or None for name in _OF_INI}),
    ]
    settings: dict[str, Any] = {}
    for source, given in sources:
        for name, value in given.items():
            if value is None:
                continue
            if name.startswith("redact_"):  # hidden is hidden, whoever said so
                settings[name] = (*settings.get(name, ()), *_listed(value))
            elif name not in settings:
                by_hand = source in ("command line", "environment")
                plays_only = name == "record" and not by_hand and _in_ci()
                settings[name] = "none" if plays_only else value
    return settings


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


_OF_INI = ("record", "upstream", "repeats", *_LISTS)


def _marked(node: pytest.Item, marker: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for mark in node.iter_markers(marker):  # the nearest first
        kwargs = {name: value for name, value in mark.kwargs.items() if name != "name"}
        if len(mark.args) + ("name" in mark.kwargs) > 1:
            raise MemmockError(f"@pytest.mark.{marker} takes one name of a cassette, not {mark.args}")
        given = {**_known(f"@pytest.mark.{marker} takes", kwargs), **given}
    return given


def _known(who: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise MemmockError(f"{who} a mapping, not {given!r}")
    if unknown := [str(name) for name in given if name not in _NAMES]:
        raise MemmockError(f"{who} {', '.join(_NAMES)}, no {', '.join(unknown)}")
    for name, value in given.items():
        texts = isinstance(value, str) or (name in _LISTS and _are_texts(value))
        if value is not None and name in (*_TEXTS, *_LISTS) and not texts:
            kind = "a list of texts" if name in _LISTS else "a text"
            raise MemmockError(f"{who} {name} as {kind}, not {value!r}")
    if not isinstance(given.get("allow_unplayed") or False, bool):
        raise MemmockError(f"{who} allow_unplayed as True or False, not {given['allow_unplayed']!r}")
    timeout_ms = given.get("timeout_ms")
    if timeout_ms is not None and (type(timeout_ms) is not int or timeout_ms < 1):
        raise MemmockError(f"{who} timeout_ms as a positive whole number, not {timeout_ms!r}")
    return given


def _are_texts(value: object) -> bool:
    return isinstance(value, Collection) and all(isinstance(item, str) for item in value)


def _listed(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _tape(request: pytest.FixtureRequest, settings: dict[str, Any], marker: str, *, anywhere: bool) -> Tape:
    from memmock.tape import Tape, TapeSettings

    name = _shared_name(request.node, marker)
    fields = {key: value for key, value in settings.items() if key in TapeSettings.__dataclass_fields__}
    fields |= {key: _listed(value) for key, value in fields.items() if key in _LISTS}
    # one that several tests share is played whole by none of them
    fields.setdefault("allow_unplayed", name is not None)
    path = _file(request.getfixturevalue("memmock_cassette_dir"), name or _own_name(request.node))
    if name is not None and path in request.config.stash.setdefault(_BEGUN, set()):
        # an earlier test of this run has recorded it: what it recorded stays
        fields["record"] = {"once": "new_episodes", "rewrite": "all"}.get(
            fields.get("record", ""), fields.get("record", "none")
        )
    tape = Tape(path, TapeSettings(**fields), anywhere=anywhere)
    request.node.stash[_TAPE] = tape
    if tape.is_new or tape.mode == "rewrite":
        request.config.stash.setdefault(_BEGUN, set()).add(path)
    if (orphans := request.config.stash.get(_ORPHANS, None)) is not None:
        orphans.used.add(str(path))
    return tape


def _upstream(settings: dict[str, Any]) -> Upstream | None:
    from memmock.upstream import DEFAULT_TIMEOUT_MS, Upstream

    if "upstream" not in settings:
        return None
    return Upstream(
        settings["upstream"],
        authorization=settings.get("authorization"),
        timeout_ms=settings.get("timeout_ms", DEFAULT_TIMEOUT_MS),
        ca_file=settings.get("ca_file"),
    )


# ---- which file


def _shared_name(node: pytest.Item, marker: str) -> str | None:
    """Return the cassette that the nearest marker names, None when none does."""
    for mark in node.iter_markers(marker):
        name = mark.args[0] if mark.args else mark.kwargs.get("name")
        if name is not None and (not isinstance(name, str) or not name.strip() or "\0" in name):
            raise MemmockError(f"@pytest.mark.{marker} takes the name of a cassette, not {name!r}")
        if name is not None:
            return str(name)
    return None


def _own_name(node: pytest.Item) -> str:
    """Return `Class.test[parameters]` in characters that every file system takes."""
    cls = getattr(node, "cls", None)
    full = f"{cls.__qualname__}.{node.name}" if cls else node.name
    name = re.sub(r"[^\w\-.\[\]=,+@()]", "-", full.replace("<locals>.", ""))
    short = name.encode()[:_LONGEST].decode(errors="ignore")
    if short != full:  # another test may have come to the same
        return f"{short}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"
    return name


_LONGEST = 180
"""How many bytes of a name are kept; file systems take 255."""


def _file(directory: Path, name: str) -> Path:
    named = name if name.endswith((".yaml", ".yml", ".json")) else f"{name}.yaml"
    return Path(os.path.normpath(directory / named))


# ---- cassettes that no test uses


class _Orphans:
    """Takes note of the cassettes that tests use, and tells which are left over; only with the option."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.used: set[str] = set()
        self.modules: set[str] = set()

    def note(self, items: list[pytest.Item]) -> None:
        """Note what the tests of a run use, also those that will be skipped or deselected."""
        for item in items:
            self.modules.add(str(item.path))
            directory = item.path.parent / "cassettes" / item.path.stem
            if item.get_closest_marker("vcr"):  # pytest-recording's are in the same place
                self.used.add(str(_file(directory, _own_name(item))))
            for fixture in _FIXTURES:
                if fixture in getattr(item, "fixturenames", ()):
                    self.used.add(str(_file(directory, _shared_name(item, fixture) or _own_name(item))))

    def found(self) -> list[str]:
        """Return the cassettes that no test uses, of the modules of this run and of modules that are gone."""
        folders = {Path(module).parent / "cassettes" for module in self.modules}
        folders |= {Path(path).parent.parent for path in self.used if Path(path).parent.parent.is_dir()}
        left = []
        for folder in sorted(folders):
            for path in sorted(folder.glob("*/*")):
                module = folder.parent / f"{path.parent.name}.py"
                looked_at = str(module) in self.modules or not module.exists()
                if looked_at and path.suffix in (".yaml", ".yml", ".json") and str(path) not in self.used:
                    left.append(os.path.relpath(path, self._config.invocation_params.dir))
        return left


_ORPHANS = pytest.StashKey[_Orphans]()
_LEFT = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note which cassettes the tests use, before any is deselected."""
    if (orphans := config.stash.get(_ORPHANS, None)) is not None:
        with _as_usage_error():
            orphans.note(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over what a worker of pytest-xdist has noted."""
    if (orphans := node.config.stash.get(_ORPHANS, None)) is not None:
        noted = getattr(node, "workeroutput", {}).get("memmock_orphans", ((), ()))
        orphans.used |= set(noted[0])
        orphans.modules |= set(noted[1])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when cassettes are left over."""
    config = session.config
    if (orphans := config.stash.get(_ORPHANS, None)) is None:
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput["memmock_orphans"] = (sorted(orphans.used), sorted(orphans.modules))
        return
    config.stash[_LEFT] = orphans.found()
    if config.stash[_LEFT] and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the cassettes that are left over."""
    if left := config.stash.get(_LEFT, None):
        terminalreporter.section("cassettes that no test uses", red=True)
        for path in left:
            terminalreporter.line(path)
        terminalreporter.line("Delete them, or let a test play them.")
