"""One call in full, as JSON and without secrets: what the page shows when it is opened."""

from __future__ import annotations

import base64
from typing import Any

from memmock.admin.shown import plain
from memmock.codings import undone
from memmock.conformance.case import as_curl
from memmock.errors import MemmockError
from memmock.http import AT_ONCE, Headers, Reply, Request
from memmock.inspector.copies import as_cassette, as_test
from memmock.inspector.events import row
from memmock.inspector.outcome import Side, on_the_wire, verdict
from memmock.inspector.subject import Subject
from memmock.journal import Call, retries
from memmock.redaction import MASK, SECRET_NAME
from memmock.rules import Violation

SHOWN_BYTES = 64 * 1024
"""So much of a body is shown; the size is that of the whole."""
_LOOKED_AT_BYTES = 72 * 1024
"""So much is searched for secrets: more, so that none is shown in part at the end."""
_COPIES = ("curl", "pytest", "cassette")
_HEADER_CHARS = 2000
_CODING = "content-encoding"


def opened(call: Call, subject: Subject) -> dict[str, Any]:
    """Return a call with everything that is known of it; bytes are in Base64, times in milliseconds."""
    found = verdict(call, subject.max_response_bytes)
    mask = subject.mask(call)
    request, reply = _hidden(call, subject)
    size = max(len(request.body), len(reply.body))
    scenario = subject.scenario(call.played)
    url = subject.url(call.request)
    return {
        **row(call, found, subject),
        "connection": call.request.connection,
        "retry_of": retries(subject.journal.calls).get(call.number),
        "scenario": None
        if scenario is None
        else {
            "name": scenario.name,
            "summary": mask(scenario.summary),
            "outcomes": list(scenario.outcomes),
        },
        "request": {
            "line": mask(f"{request.method} {request.target} HTTP/{request.version}"),
            "headers": _headers(request.headers, subject, call),
            **_body(request.body, len(call.request.body)),
        },
        "reply": {
            "headers": _headers(reply.headers, subject, call),
            **_body(reply.body, len(call.reply.body)),
            "wire": _wire(call, reply, subject),
        },
        "violations": [_violation(side, each, subject, call) for side, each in found.violations],
        "timing": _timing(call),
        "model": None if found.result is None else plain(found.result.to_json(), mask),
        "copies": dict.fromkeys(_COPIES, f"# call {call.number} is too large to be copied\n")
        if size > SHOWN_BYTES
        else {
            "curl": mask(as_curl(request, subject.url(request))),
            "pytest": mask(as_test(call, request, found, served=subject.provider is not None)),
            "cassette": mask(as_cassette(call, url, subject.redactor)),
        },
    }


def _hidden(call: Call, subject: Subject) -> tuple[Request, Reply]:
    """Return both messages without secrets, and what is beyond all measure cut off.

    A body comes unpacked. In one that cannot be, the secrets that are known are hidden.
    """
    request, reply = call.request, call.reply
    coding = reply.header("Content-Encoding")
    body = undone(reply.body, coding).body if coding else reply.body
    request = request._replace(body=request.body[:_LOOKED_AT_BYTES])
    reply = reply._replace(headers=_shortened(reply.headers), body=body[:_LOOKED_AT_BYTES])
    plain = reply._replace(headers=tuple(pair for pair in reply.headers if pair[0].lower() != _CODING))
    try:
        request, hidden = subject.redactor.exchange(request, plain)
    except MemmockError:
        hidden = reply._replace(body=_masked(reply.body, subject, call))
        return subject.redactor.request(request), hidden
    if coding:
        hidden = hidden._replace(headers=(*hidden.headers, ("Content-Encoding", coding)))
    return request, hidden


def _shortened(headers: Headers) -> Headers:
    return tuple(
        (name, value if len(value) <= _HEADER_CHARS else f"{value[:_HEADER_CHARS]}…")
        for name, value in headers
    )


def _masked(data: bytes, subject: Subject, call: Call) -> bytes:
    text = subject.redactor.text(data.decode("latin-1"))
    return subject.mask(call)(text).encode("latin-1", "replace")


def _headers(headers: Headers, subject: Subject, call: Call) -> list[tuple[str, str]]:
    mask = subject.mask(call)
    return [
        (mask(name), MASK if SECRET_NAME.search(name) else mask(_as_utf8(value))) for name, value in headers
    ]


def _as_utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode()
    except ValueError:
        return value


def _body(body: bytes, size: int) -> dict[str, Any]:
    return {"body": _base64(body[:SHOWN_BYTES]), "size": size, "cut": len(body) > SHOWN_BYTES}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _wire(call: Call, hidden: Reply, subject: Subject) -> dict[str, Any]:
    """Return the bytes on the wire; those of a body that was packed, or cut in `hidden`, are as they were."""
    sent = call.sent.sent_bytes if call.sent is not None else None
    as_it_was = call.reply.header("Content-Encoding") or len(call.reply.body) > _LOOKED_AT_BYTES
    shown = call.reply if as_it_was or call.reply.delivery.wire is not None else hidden
    shown = shown._replace(
        headers=tuple((name, MASK if SECRET_NAME.search(name) else value) for name, value in shown.headers),
        delivery=call.reply.delivery,
    )
    most = SHOWN_BYTES if sent is None else min(sent, SHOWN_BYTES)
    data = b"" if sent == 0 else on_the_wire(call.request, shown, most)
    return {"bytes": _base64(_masked(data, subject, call)), "sent": sent, "cut": (sent or 0) > SHOWN_BYTES}


def _violation(side: Side, found: Violation, subject: Subject, call: Call) -> dict[str, str]:
    mask, rule = subject.mask(call), found.rule
    return {
        "side": side,
        "code": found.code,
        "severity": found.severity,
        "where": found.where,
        "pointer": mask(found.pointer),
        "place": mask(found.place),
        "message": mask(found.message),
        "title": rule.title,
        "reason": rule.reason,
        "source": rule.source,
        "right": rule.right,
    }


def _timing(call: Call) -> dict[str, Any]:
    delivery, sent = call.reply.delivery, call.sent
    special = {
        name: (f"{len(value):,} bytes" if isinstance(value, bytes) else plain(value))
        for name, value in delivery._asdict().items()
        if value != getattr(AT_ONCE, name)
    }
    return {
        "found_ms": round(call.duration_s * 1000, 3),
        "delay_ms": round(delivery.delay_s * 1000, 3),
        "elapsed_ms": round(call.elapsed_s * 1000, 3),
        "timeout_ms": call.timeout_ms,
        "how": sent.how if sent is not None else "completed" if call.over else "",
        "ending": call.ending,
        "delivery": special,
    }
