"""A line a request to the live twin while a server runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memmock.cli.call_log import CallLog
from memmock.cli.text import count
from memmock.strictjson import printable, shortened

if TYPE_CHECKING:
    from memmock.journal import Call
    from memmock.live import Live, Lives


def live_log(live: Live, mask: Callable[[str], str], *, as_json: bool) -> CallLog:
    """Return what prints the requests to the twin, while it is open as a context manager."""
    line = _as_json if as_json else _lines(live.lives)
    return CallLog(
        live.journal,
        lambda call, _: mask(line(call)),
        lambda call, _: "",  # the line of a request tells of its end too
        all_of_them=as_json,
    )


def _lines(lives: Lives) -> Callable[[Call], str]:
    """Return what gives the text for a request; it says when older sessions had to go."""
    told = 0

    def line(call: Call) -> str:
        nonlocal told
        time = datetime.fromtimestamp(call.received_at).strftime("%H:%M:%S")
        path = printable(call.request.path[:100])
        lines = [f"{time}  {call.reply.status}  {call.request.method} {path}{_outcome(call)}"]
        lines += [f"          {violation_line(found)}" for found in _violations(call)]
        if (dropped := lives.dropped) > told:
            told = dropped
            how_many = count(dropped, "older live session")
            lines.append(f"          {how_many} dropped so far: the latest {lives.max_lives:,} are kept")
        return "\n".join(lines)

    return line


def _as_json(call: Call) -> str:
    """Return a request to the live twin as a line of JSON."""
    answer = _answer(call)
    time = datetime.fromtimestamp(call.received_at).astimezone().isoformat(timespec="milliseconds")
    facts = {
        "live_request": call.number,
        "time": time,
        "method": call.request.method,
        "target": call.request.path,
        "status": call.reply.status,
        "live_id": answer["live"]["id"] if "live" in answer else _id_in(call.request.path),
        "message": _message(answer),
        "query": answer.get("request", {}).get("body", {}).get("query"),
        "tool_result": answer.get("tool_result"),
        "timing": answer.get("timing"),
        "violations": answer.get("violations"),
    }
    given = {name: value for name, value in facts.items() if value is not None}
    return json.dumps(given, ensure_ascii=False)


def outcome_of(result: dict[str, Any]) -> str:
    """Return a tool result in a few words, as `2 memories` or `timeout`."""
    if "error" in result:
        return printable(str(result["error"].get("code")))
    return count(len(result.get("memories", [])), "memory", "memories")


def violation_line(found: dict[str, str]) -> str:
    """Return a violation that is JSON as a line of text."""
    pointer = found["pointer"] if len(found["pointer"]) <= 120 else f"{found['pointer'][:120]}…"
    place = f"{found['where']} {pointer}" if pointer else found["where"]
    return printable(f"{found['code']} {found['severity']} at {place}: {found['message']}")


def _answer(call: Call) -> dict[str, Any]:
    return dict(json.loads(call.reply.body or b"{}"))


def _message(answer: dict[str, Any]) -> str | None:
    error = answer.get("error", answer)
    message: str | None = error.get("message")
    return message


def _outcome(call: Call) -> str:
    answer = _answer(call)
    if message := _message(answer):
        return f": {printable(message)}"
    if "live" in answer:
        return f": live {answer['live']['id']}"
    if "tool_result" in answer:
        query = shortened(answer["request"]["body"]["query"])
        return f" {query}: {outcome_of(answer['tool_result'])} in {answer['timing']['elapsed_ms']:.1f} ms"
    return ""


def _violations(call: Call) -> list[dict[str, str]]:
    both = _answer(call).get("violations", {})
    return [*both.get("request", []), *both.get("reply", [])]


def _id_in(path: str) -> str | None:
    found = re.search("/lives/([0-9]+)", path)
    return found[1] if found else None
