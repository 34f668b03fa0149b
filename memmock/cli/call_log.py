"""A line a call while a server runs, printed from a thread of its own.

A call whose answer is still under way gets another line when that has ended; as JSON there is only that one.

The journal is the buffer between the two: when nobody reads the output, or calls come faster than they
can be printed, the server goes on and the log says how many calls it could not show.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import click

from memmock.cli.text import count
from memmock.journal import Call, Journal, retries
from memmock.strictjson import printable, shortened

_PAUSE_S = 0.1
_MANY = 100
"""More calls than this between two pauses are a load test: nobody reads them, and to show all would slow
the server down."""
_OF_MANY = 2
"""How many of them are shown."""
_SWITCH_S = 0.0005
"""How long the server waits at most while a line is made; Python's own default is ten times that."""


class CallLog:
    """Prints the calls of a journal, while it is open as a context manager.

    Args:
        journal: the calls.
        line: gives the text for a call when it came, empty for nothing yet; told of which call it is the
            same request again, after that had failed.
        end: gives the text for a call whose answer was under way then, when that has ended; told the same.
        all_of_them: print every call that is still in the journal when its turn comes, however fast they
            come; otherwise a burst is cut short.
    """

    def __init__(
        self,
        journal: Journal,
        line: Callable[[Call, int | None], str],
        end: Callable[[Call, int | None], str],
        *,
        all_of_them: bool,
    ) -> None:
        self._journal = journal
        self._line = line
        self._end = end
        self._under_way: list[Call] = []
        self._again: dict[int, int] = {}  # calls that are the same request again
        self._faulty = False  # a scenario was played
        self._all = all_of_them
        self._printed = 0  # the number of the last call that was printed or passed over
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._print, name="memmock-call-log", daemon=True)

    def __enter__(self) -> Self:
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join(1.0)  # no longer: the output may be stuck
        sys.setswitchinterval(self._switch_s)

    def _print(self) -> None:
        closed = False
        while not closed:
            closed = self._closed.wait(_PAUSE_S)
            try:
                self._print_new()
            except OSError:  # nobody reads the output any more
                return

    def _print_new(self) -> None:
        over = [call for call in self._under_way if call.over]
        self._under_way = [call for call in self._under_way if not call.over]
        lines = [text for call in over if (text := self._end(call, self._again.get(call.number)))]
        calls = self._journal.since(self._printed)
        if calls:
            lines += self._new(calls)
        if lines:
            _write("\n".join(lines))

    def _new(self, calls: list[Call]) -> list[str]:
        shown = calls if self._all or len(calls) <= _MANY else calls[:_OF_MANY]
        missed = calls[0].number - 1 - self._printed + len(calls) - len(shown)
        self._printed = calls[-1].number
        self._under_way += [call for call in shown if not call.over]
        self._faulty = self._faulty or any(call.played for call in calls)
        if self._faulty:  # to look for repeats costs the server time
            self._again = retries(self._journal.calls)
        lines = [line for call in shown if (line := self._line(call, self._again.get(call.number)))]
        if missed:
            lines.append(self._missed(missed))
        return lines

    def _missed(self, n: int) -> str:
        return json.dumps({"missed": n}) if self._all else f"          and {count(n, 'more call')}"


def _write(text: str) -> None:
    """Write a text and a line break to stdout, past its buffer.

    When nobody reads the output, the thread of the log gets stuck here. Inside the buffer it would hold a
    lock, and Python aborts when it cannot have that at exit.
    """
    try:
        output = sys.stdout.fileno()
    except OSError:  # not a file, as in tests
        click.echo(text)
        return
    data = f"{text}\n".encode(sys.stdout.encoding, "backslashreplace")
    while data:
        data = data[os.write(output, data) :]


_EXPLAINED = ("not_recorded", "upstream_failed", "upstream_timeout", "stopped")
"""Errors of record and replay, for which the client is not to blame; what they say is shown."""


def as_text(call: Call, retry_of: int | None) -> str:
    """Return a call as a line to read, and a line for each thing that is odd about it."""
    asked = call.retrieval
    time = datetime.fromtimestamp(call.received_at).strftime("%H:%M:%S")
    if "query" in asked:
        types = asked.get("memory_types")
        kinds = ", ".join(map(str, types)) if isinstance(types, list) and types else "all types"
        what = f"{shortened(asked['query'])} ({printable(kinds[:100])})"
    else:
        what = printable(f"{call.request.method} {call.request.target[:100]}")
    if call.played:
        result = f"{call.played}, {call.ending}"
    else:
        error = printable(call.error_code)
        if error in _EXPLAINED:
            found = f"{error}, {printable(call.error_message)}"
        else:
            found = f"refused ({error})" if error else count(len(call.memories), "memory", "memories")
        result = f"{found} in {call.duration_s * 1000:.1f} ms"
    if call.recording:
        result += f" ({printable(call.recording)})"
    lines = [f"{time}  {call.reply.status or '---'}  {what}: {result}"]
    lines += [f"          {violation}" for violation in call.violations]
    if retry_of is not None:
        lines.append("          the same request as one that had failed: does the client try again?")
    return "\n".join(lines)


def as_text_at_end(call: Call, retry_of: int | None) -> str:
    """Return how the answer to a call ended, as a line to read."""
    return f"          {call.played} to {shortened(call.retrieval.get('query'))}: {call.ending}"


def as_json(call: Call, retry_of: int | None) -> str:
    """Return a call as a line of JSON; nothing while its answer is under way."""
    return as_json_at_end(call, retry_of) if call.over else ""


def as_json_at_end(call: Call, retry_of: int | None) -> str:
    """Return a call whose answer has ended as a line of JSON."""
    facts: dict[str, Any] = {
        "number": call.number,
        "time": datetime.fromtimestamp(call.received_at).astimezone().isoformat(timespec="milliseconds"),
        "connection": call.request.connection,
        "method": call.request.method,
        "target": call.request.target,
        "retrieval": call.retrieval,
        "played": call.played,
        "recording": call.recording,
        "status": call.reply.status,
        "results": len(call.memories),
        "ending": call.ending,
        "duration_ms": round(call.elapsed_s * 1000, 3),
        "retry_of": retry_of,
        "violations": [found.to_json() for found in call.violations],
    }
    return json.dumps(facts, ensure_ascii=False)
