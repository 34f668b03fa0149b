"""Findings as a file of scenarios: each plays the reply that shows one, in `memmock serve` or in a test."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from memmock import documents
from memmock.consumer_conformance.act import Arrival, Seen
from memmock.consumer_conformance.finding import Finding, Result
from memmock.consumer_conformance.secrets import hiding
from memmock.errors import MemmockError
from memmock.http import Delivery, Reply, Request
from memmock.reply_writer import scripted
from memmock.scenario_file import described
from memmock.strictjson import printable

_MARK = documents.marked("scenarios")
_USE = "# memmock serve --scenarios {file} --scenario {name}\n"
_SUFFIXES = (".yaml", ".yml")


def played(seen: Seen) -> Arrival | None:
    """Return the request that was answered with what the act is about: the first; None when none came."""
    return seen.arrivals[0] if seen.arrivals else None


def names_of(findings: Sequence[Finding]) -> list[str]:
    """Return the names of the scenarios that reproduce findings; empty for those that none does."""
    return [f"finding-{n}" if _reproduced(finding) else "" for n, finding in enumerate(findings, 1)]


def write_scenarios(result: Result, path: str | PathLike[str]) -> None:
    """Write a scenario for each finding into a YAML file: `finding-1`, `finding-2` and so on.

    The replies have the bytes and the times of this run. Findings without a reply (a refused connection, a
    certificate that nobody trusts) are left out; the file says so. A file that was written there before is
    replaced.

    Raises:
        MemmockError: there is a file that memmock did not write, its name does not end in .yaml or .yml, or
            it cannot be written.
    """
    path = Path(path)
    check_path(path)
    documents.write_own(path, text_of(result, path.name).encode())


def check_path(path: str | PathLike[str]) -> None:
    """Raise for what cannot be a file that scenarios are written to.

    Raises:
        MemmockError: its name does not end in .yaml or .yml, or memmock did not write it.
    """
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise MemmockError(f"{path}: a file of scenarios that is written ends in .yaml or .yml")
    documents.check_own(path)


def text_of(result: Result, file: str) -> str:
    """Return the text of the file; `file` is its name."""
    hide = hiding(result.name, result.findings)
    scenarios: dict[str, Any] = {}
    left_out = []
    for number, (finding, name) in enumerate(zip(result.findings, names_of(result.findings), strict=True), 1):
        told = printable(hide(f"{finding.rule.code} {finding.scenario}: {finding.message}"))
        if (arrival := _reproduced(finding)) is not None:
            scenarios[name] = {"summary": told, **_scenario(arrival, finding.seen[0])}
        else:
            left_out.append(f"# finding-{number} is left out, as no reply shows it: {told}\n")
    use = _USE.format(file=file, name=next(iter(scenarios))) if scenarios else ""
    return "".join([_MARK, use, *left_out, documents.yaml_text({"scenarios": scenarios})])


def _reproduced(finding: Finding) -> Arrival | None:
    """Return the request whose reply shows a finding: of the first act, after which others may go wrong."""
    first = finding.seen[0]
    return None if first.act.tls else played(first)


def _scenario(arrival: Arrival, seen: Seen) -> dict[str, Any]:
    """Return the fields of the scenario that plays a reply, without its summary."""
    act = seen.act
    if act.case is not None:
        fields = act.case.described(seen.timeout_ms / 1000, act.max_response_bytes)
        return {name: value for name, value in fields.items() if name != "summary"}
    return {**({"outcomes": list(act.outcomes)} if act.outcomes else {}), **_described(arrival.reply)}


def _described(reply: Reply) -> dict[str, Any]:
    try:
        return described(reply)
    except ValueError:
        return described(_written_out(reply))


def _written_out(reply: Reply) -> Reply:
    """Return a reply whose bytes are given, in place of status, headers and body."""
    delivery = reply.delivery
    plain = Delivery(framing=delivery.framing, chunk_bytes=delivery.chunk_bytes)
    script = scripted(reply._replace(delivery=plain, on_sent=None), Request("POST", "/"), keep_alive=True)
    wire = b"".join(step for step in script.steps if isinstance(step, bytes))
    if delivery.endless and delivery.framing == "chunked":
        wire = wire.removesuffix(b"0\r\n\r\n")
    ending = "close" if delivery.framing == "close" and delivery.ending == "keep" else delivery.ending
    return Reply.raw(wire)._replace(delivery=delivery._replace(wire=wire, framing="length", ending=ending))
