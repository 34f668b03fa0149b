"""One call to take along: as a test, as a cassette. Nothing secret may be in what comes in."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from pprint import pformat
from typing import Any

from memmock import strictjson
from memmock.cassette_format import plain
from memmock.contract import Retrieval
from memmock.documents import yaml_text
from memmock.errors import MemmockError
from memmock.http import Request
from memmock.inspector.outcome import Verdict
from memmock.journal import Call
from memmock.recorder import interaction
from memmock.redaction import Redactor

_FIELDS = ("live_id", "reason", "memory_types", "time_hint", "max_results")
_VARIABLES = ("MEMMOCK_ENDPOINT", "MEMMOCK_AUTHORIZATION")


def as_test(call: Call, request: Request, found: Verdict, *, served: bool) -> str:
    """Return a test with the same call.

    Against a mock, `served`, the consumer is under test: the test plays what was played and expects what came
    of it. Otherwise the provider is. A request that no consumer of the contract makes is judged by itself.
    """
    value, _ = strictjson.read(request.body)
    asked = _retrieval(value)
    broken = any(side == "request" and each.severity == "error" for side, each in found.violations)
    if asked is None or broken or request.method != "POST":
        return _judging(call, request)
    outcome = "ok" if found.result is None else found.result.outcome
    use = [f"    memmock.use({call.played!r})"] if served and call.played else []
    if served:
        head = [f"def test_call_{call.number}(memmock):", *use]
        config = f"RetrievalConfig(memmock.endpoint, memmock.authorization, timeout_ms={call.timeout_ms})"
        imports = []
        note = ["    # your own client belongs here, in place of memmock's"]
    else:
        head = [f"def test_call_{call.number}():"]
        where = ", ".join(f'os.environ["{name}"]' for name in _VARIABLES)
        config = f"RetrievalConfig({where}, timeout_ms={call.timeout_ms})"
        imports = ["import os", ""]
        note = []
    fields = "".join(f", {name}={val!r}" for name, val in asked.items() if name != "query")
    lines = [
        *imports,
        "from memmock import Retrieval, RetrievalConfig, retrieve_sync",
        "",
        "",
        *head,
        f"    config = {config}",
        f"    retrieval = Retrieval({asked['query']!r}{fields})",
        *note,
        "    result = retrieve_sync(config, retrieval)",
        f"    assert result.outcome == {outcome!r}",
    ]
    return "\n".join([*lines, ""])


def _retrieval(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not isinstance(value.get("query"), str):
        return None
    asked = {"query": value["query"], **{name: value[name] for name in _FIELDS if name in value}}
    try:
        Retrieval(**asked)
    except (TypeError, MemmockError):
        return None
    return asked


def _judging(call: Call, request: Request) -> str:
    headers = pformat(request.headers, width=96, indent=4)
    return "\n".join(
        [
            "from memmock import Request, request_violations",
            "",
            f"HEADERS = {headers}",
            f"BODY = {pformat(request.body, width=96)}",
            "",
            "",
            f"def test_call_{call.number}_keeps_the_contract():",
            f"    request = Request({request.method!r}, {request.target!r}, HEADERS, BODY)",
            '    broken = "\\n".join(str(found) for found in request_violations(request))',
            "    assert not broken, broken",
            "",
        ]
    )


def as_cassette(call: Call, url: str, redactor: Redactor) -> str:
    """Return a cassette with the one interaction, or a comment that says why there is none."""
    reply = call.reply
    status = HTTPStatus(reply.status) if reply.status in _STATUSES else None
    try:
        if reply.delivery.wire is not None or reply.status == 0:
            raise MemmockError("what was sent is no reply that a cassette could hold")
        one = interaction(
            call.request,
            url,
            reply,
            status.phrase if status is not None else "",
            elapsed_ms=call.elapsed_s * 1000,
            redactor=redactor,
        )._replace(recorded_at=_utc(call.received_at))
        text = yaml_text({"interactions": [plain(f"call {call.number}", one, False)], "version": 1})
    except MemmockError as error:
        return f"# no cassette of call {call.number}: {error}\n"
    if reply.delivery.cut or reply.delivery.ending in ("reset", "hang"):
        return f"# how the reply was cut off is not in a cassette: this is the whole of it\n{text}"
    return text


def _utc(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


_STATUSES = frozenset(HTTPStatus)
