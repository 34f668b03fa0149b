"""A report as JSON."""

from __future__ import annotations

from typing import Any

from memmock import documents
from memmock.report.parts import Entry, Report


def as_json(report: Report) -> str:
    """Return a report as one JSON object; `rules` and `scenarios` are there when they were checked."""
    text = documents.json_text(document(report))
    return text.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair, as JSON escapes it


def document(report: Report) -> dict[str, Any]:
    """Return a report as data."""
    facts: dict[str, Any] = {
        "target": report.target,
        "ok": report.ok,
        "findings": [_finding(entry) for entry in report.entries],
        "stats": {
            f"{report.side.noun}s": report.calls,
            "seconds": round(report.seconds, 3),
            "seed": report.seed,
        },
        "stopped": report.stopped,
    }
    if report.rules:
        facts["rules"] = [
            {"rule": rule.code, "state": rule.state, "reason": rule.reason} for rule in report.rules
        ]
    if report.matrix:
        facts["scenarios"] = [row._asdict() for row in report.matrix]
    if report.known is not None:
        facts["baseline"] = {"known": report.known, "gone": list(report.gone)}
    return facts


def _finding(entry: Entry) -> dict[str, Any]:
    """Return a finding; what it says of a call is of the last one, the one that is wrong."""
    calls = list(entry.evidence.calls())
    return {
        "rule": entry.code,
        "severity": str(entry.severity),
        "title": entry.title,
        "message": entry.message,
        "pointer": entry.pointer,
        **calls[-1],
        "flaky": entry.flaky,
        "expected": entry.expected,
        "reason": entry.reason,
        **entry.evidence.to_json(),
        "calls": calls,
    }
