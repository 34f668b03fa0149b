"""A report as JSON."""

from __future__ import annotations

from typing import Any

from memmock import documents
from memmock.report.shown import Call, Entry, Report


def as_json(report: Report) -> str:
    """Return a report as one JSON object; `rules` is there when rules were checked."""
    text = documents.json_text(document(report))
    return text.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair, as JSON escapes it


def document(report: Report) -> dict[str, Any]:
    """Return a report as data."""
    facts: dict[str, Any] = {
        "target": report.target,
        "ok": report.ok,
        "findings": [_finding(entry) for entry in report.entries],
        "stats": {
            "requests": report.requests,
            "seconds": round(report.seconds, 3),
            "seed": report.seed,
        },
        "stopped": report.stopped,
    }
    if report.rules:
        facts["rules"] = [
            {"rule": rule.code, "state": rule.state, "reason": rule.reason} for rule in report.rules
        ]
    if report.known is not None:
        facts["baseline"] = {"known": report.known, "gone": list(report.gone)}
    return facts


def _finding(entry: Entry) -> dict[str, Any]:
    """Return a finding; its request and reply are those of its last call, the one that is wrong."""
    calls = [_call(call) for call in entry.calls]
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
        "together": entry.together,
        "calls": calls,
    }


def _call(call: Call) -> dict[str, Any]:
    request = {
        "method": call.method,
        "target": call.target,
        "headers": call.headers,
        "body": str(call.body),
    }
    if call.altered:
        request["altered_authorization"] = call.altered
    return {"request": request, "reply": _reply(call), "curl": call.curl}


def _reply(call: Call) -> dict[str, Any]:
    if call.reply is None:
        return {"failure": call.failure}
    return {
        "status": call.reply.status,
        "headers": call.reply.headers,
        "body": str(call.reply.body),
        "elapsed_ms": call.elapsed_ms,
    }
