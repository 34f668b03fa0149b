"""A report for a terminal: what the rules came to, each finding with its command, and the sum."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from memmock.report.shown import Call, Entry, Report, count, lines
from memmock.strictjson import printable

_WIDTH = 100
_LABEL = 11
_MOST_CALLS = 3
_BESIDE_CHARS = 80
_BODY_CHARS = 500
"""So much of a body is shown; the other formats have more."""
_STATES = ("passed", "not applicable", "violated")


def as_text(report: Report) -> str:
    """Return a report for people; nothing in it makes a terminal act."""
    blocks = [printable(report.target)]
    blocks += _rules(report)
    blocks += [rendered_finding(entry) for entry in report.entries]
    return "\n\n".join([*blocks, "\n".join(_end(report))]) + "\n"


def rendered_finding(entry: Entry) -> str:
    """Return one finding as a block of lines without a line break at the end."""
    told = [headline(entry), *_labelled("why", entry.reason)]
    told += _calls(entry)
    return "\n".join([*told, *_labelled("expected", entry.expected)])


def headline(entry: Entry) -> str:
    """Return what was seen, in one line: `RES302 error  at /memories: holds 3 memories, …`."""
    return printable(f"{entry.code} {entry.severity}  {entry.seen}")


def reply_lines(call: Call, entry: Entry, chars: int) -> list[str]:
    """Return a reply as lines: its status and time, the headers that matter, and its body."""
    if call.reply is None:
        return [printable(f"none: {call.failure}")]
    told = [f"{call.reply.status} in {call.elapsed_ms:,.0f} ms"]
    wanted = {"content-type", "content-encoding", "location", "retry-after", entry.pointer.lower()}
    told += [f"{name}: {value}" for name, value in call.reply.headers if name.lower() in wanted]
    body = str(call.reply.body.upto(chars))
    return [printable(line) for line in (*told, body or "(no body)")]


def _calls(entry: Entry) -> Iterator[str]:
    """Yield the calls of a finding, with numbers; of many that were made together, only the last in full."""
    calls = entry.calls
    if entry.together and len(calls) > _MOST_CALLS:
        beside = [printable(str(call.body.upto(_BESIDE_CHARS))) for call in calls[:-1]]
        yield from _call(calls[-1], "", entry)
        yield from _block("together", [f"with {count(len(beside), 'other call')}:", *beside])
        return
    for n, call in enumerate(calls, 1):
        yield from _call(call, f" {n}" if len(calls) > 1 else "", entry)
    if entry.together:
        yield from _block("together", [f"The {len(calls)} calls were made at the same time."])


def _call(call: Call, number: str, entry: Entry) -> Iterator[str]:
    yield from _block(f"request{number}", lines(call.short_curl))
    if call.altered:
        yield from _block("", [printable(f"ALTERED_AUTHORIZATION is {call.altered}")])
    yield from _block(f"reply{number}", reply_lines(call, entry, _BODY_CHARS))


def _rules(report: Report) -> Iterator[str]:
    """Yield the states, each with a line for each rule."""
    for state in _STATES:
        rules = [rule for rule in report.rules if rule.state == state]
        if rules:
            width = 0 if state == "passed" else max(len(rule.title) for rule in rules)
            rows = (
                f"  {rule.code}  {rule.title:<{width}}  {_in_brackets(rule.reason, state)}".rstrip()
                for rule in rules
            )
            yield "\n".join([f"{state} ({len(rules)})", *map(printable, rows)])


def _in_brackets(reason: str, state: str) -> str:
    return f"({reason})" if reason and state == "passed" else reason


def _end(report: Report) -> Iterator[str]:
    if report.known is not None:
        yield f"{count(report.known, 'finding')} of the baseline left out."
    for key in report.gone:
        yield printable(f"Gone since the baseline: {key}")
    if report.stopped:
        yield printable(f"Stopped early: {report.stopped}")
    yield report.summary


def _labelled(label: str, text: str) -> list[str]:
    """Return a text as a block of lines that are not too long."""
    return _block(label, textwrap.wrap(printable(text), _WIDTH - _LABEL - 2) or [""])


def _block(label: str, rows: list[str]) -> list[str]:
    """Return lines with a label in front of the first one."""
    return [f"  {label if not n else '':<{_LABEL}}{row}".rstrip() for n, row in enumerate(rows)]
