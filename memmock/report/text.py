"""A report for a terminal: what the rules came to, each finding with its command, and the sum."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from memmock.report.parts import Block, Entry, Report, count
from memmock.strictjson import printable

_WIDTH = 100
_LABEL = 11
_MOST_ROWS = 40
"""So many scenarios that did not go as expected are listed; the other formats have all."""
_FEW = 3
"""More rules with one reason are told in one line."""
_STATES = ("passed", "not applicable", "violated")


def as_text(report: Report) -> str:
    """Return a report for people; nothing in it makes a terminal act."""
    blocks = [printable(report.target)]
    blocks += _rules(report)
    blocks += _matrix(report)
    blocks += [rendered_finding(entry) for entry in report.entries]
    return "\n\n".join([*blocks, "\n".join(_end(report))]) + "\n"


def rendered_finding(entry: Entry) -> str:
    """Return one finding as a block of lines without a line break at the end."""
    told = [headline(entry), *_labelled("why", entry.reason)]
    told += _shown(entry.evidence.blocks(brief=True))
    told += _labelled("expected", entry.expected)
    return "\n".join([*told, *_shown(entry.steps)])


def headline(entry: Entry) -> str:
    """Return what was seen, in one line: `RES302 error  at /memories: holds 3 memories, …`."""
    return printable(f"{entry.code} {entry.severity}  {entry.seen}")


def _shown(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if block.kind == "prose":
            for n, row in enumerate(block.rows):
                yield from _labelled("" if n else block.label, row, hyphens=False)
        else:
            rows = [printable(row) for row in block.rows]
            yield from _block(block.label, [*rows[:-1], f"{rows[-1]}{printable(block.value)}"])


def _rules(report: Report) -> Iterator[str]:
    """Yield the states, each with a line for each rule; one for all that passed, where there is a matrix."""
    for state in reversed(_STATES) if report.matrix else _STATES:
        rules = [rule for rule in report.rules if rule.state == state]
        reasons = {rule.reason for rule in rules}
        if not rules:
            continue
        head = f"{state} ({len(rules)})"
        codes = [f"  {line}" for line in textwrap.wrap(" ".join(rule.code for rule in rules), _WIDTH - 2)]
        if state == "passed" and report.matrix:
            yield "\n".join([head, *codes])
        elif state == "not applicable" and len(rules) > _FEW and len(reasons) == 1:
            yield "\n".join([printable(f"{head}: {reasons.pop()}"), *codes])
        else:
            width = 0 if state == "passed" else max(len(rule.title) for rule in rules)
            rows = (
                f"  {rule.code}  {rule.title:<{width}}  {_in_brackets(rule.reason, state)}".rstrip()
                for rule in rules
            )
            yield "\n".join([head, *map(printable, rows)])


def _matrix(report: Report) -> Iterator[str]:
    """Yield how many scenarios went as expected, with a line for each that did not."""
    if not report.matrix:
        return
    wrong = [row for row in report.matrix if not row.ok]
    rows = [
        (row.scenario, " or ".join(row.expected), row.seen, " ".join(row.codes)) for row in wrong[:_MOST_ROWS]
    ]
    told = [report.as_expected]
    if rows:
        cells = [[printable(cell) for cell in row] for row in [("", "expected", "seen", ""), *rows]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        told += [
            "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
    if (left := len(wrong) - _MOST_ROWS) > 0:
        told.append(f"  and {left} more, which the other formats have too")
    yield "\n".join(told)


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


def _labelled(label: str, text: str, *, hyphens: bool = True) -> list[str]:
    """Return a text as a block of lines that are not too long, broken behind hyphens too, or not."""
    rows = textwrap.wrap(printable(text), _WIDTH - _LABEL - 2, break_on_hyphens=hyphens)
    return _block(label, rows or [""])


def _block(label: str, rows: list[str]) -> list[str]:
    """Return lines with a label in front of the first one."""
    return [f"  {label if not n else '':<{_LABEL}}{row}".rstrip() for n, row in enumerate(rows)]
