"""A report as one page of HTML that stands alone: no script, nothing loaded, light or dark as is preferred.

What a provider or a fuzzer wrote is text only: it is escaped, and the page's policy allows no script and no
style but its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable

from memmock.report.parts import Block, Entry, Report, Row, Verdict, count, lines
from memmock.strictjson import printable

_STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1c2128; --soft: #57606a;
  --line: #d8dee4; --code: #f0f2f5; --error: #b42318; --warning: #8a5a00; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1c2128; --ink: #e6e9ed;
  --soft: #9aa4b0; --line: #353c46; --code: #12151a; --error: #ff8a80; --warning: #f0b849;
  --good: #5fd07f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
h4 { font-size: .8rem; margin: 1rem 0 .25rem; color: var(--soft); font-weight: 600; }
p { margin: .5rem 0 0; overflow-wrap: anywhere; }
.soft, .title { color: var(--soft); }
.verdict { font-weight: 700; }
.good, .passed { color: var(--good); }
.bad, .error { color: var(--error); }
.warning { color: var(--warning); }
.finding { background: var(--card); border: 1px solid var(--line); border-left: 4px solid currentColor;
  border-radius: 8px; padding: 1rem 1.25rem; margin: 0 0 1rem; }
.finding > * { color: var(--ink); }
.finding .badge { border: 1px solid; border-radius: 99px; padding: 0 .5rem; font-size: .8rem; }
.finding .badge.error { color: var(--error); }
.finding .badge.warning { color: var(--warning); }
.finding h4, .finding .title { color: var(--soft); }
pre { margin: 0; padding: .75rem; background: var(--code); border: 1px solid var(--line); border-radius: 6px;
  font: .82rem/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 24rem;
  overflow: auto; }
pre.command { user-select: all; -webkit-user-select: all; cursor: copy; }
table { width: 100%; border-collapse: collapse; background: var(--card); font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border: 1px solid var(--line);
  overflow-wrap: anywhere; }
td:first-child, td.state { white-space: nowrap; }
@media print { body { background: #fff; color: #000; font-size: 11pt; } main { max-width: none; padding: 0; }
  .finding, tr { break-inside: avoid; } pre { max-height: none; overflow: visible; } }
"""
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
)
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>memmock: {found}</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<h1>{heading}</h1>
<p><code>{target}</code></p>
<p class="verdict {mood}">{verdict}</p>
{notes}
</header>
{findings}
{rules}{matrix}
</main>
</body>
</html>
"""
_CARD = """<article class="finding {severity}" id="finding-{number}">
<h3><span class="badge {severity}">{code} {severity}</span> {what}</h3>
<p class="title">{title}</p>
<h4>Why it matters</h4>
<p>{reason}</p>
{evidence}
<h4>Expected</h4>
<p>{expected}</p>{steps}
</article>"""
_TABLE = """<section>
<h2>Rules</h2>
<table>
<thead><tr><th scope="col">Rule</th><th scope="col">State</th><th scope="col">What it asks</th>\
<th scope="col">Reason</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</section>"""


_MATRIX = """
<section>
<h2>Scenarios</h2>
<p class="soft">{sum}</p>
<table>
<thead><tr><th scope="col">Scenario</th><th scope="col">Family</th><th scope="col">Expected</th>\
<th scope="col">Seen</th><th scope="col">Rules</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</section>"""


def as_html(report: Report) -> str:
    """Return a report as a page. A click on a command selects all of it."""
    return _PAGE.format(
        policy=html.escape(_POLICY),
        style=_STYLE,
        heading=_text(report.side.heading),
        found=_text(report.found),
        target=_text(report.target),
        mood="good" if report.ok else "bad",
        verdict=_text(report.summary),
        notes=_notes(report),
        findings=_findings(report.entries),
        rules=_rules(report.rules),
        matrix=_matrix(report),
    )


def _text(text: str) -> str:
    """Return text for a page, with what is invisible made visible."""
    return html.escape("\n".join(lines(text)))


def _notes(report: Report) -> str:
    notes = []
    if report.stopped:
        notes.append(f"Stopped early: {report.stopped}")
    if report.known is not None:
        notes.append(f"{count(report.known, 'finding')} of the baseline left out.")
    notes += [f"Gone since the baseline: {key}" for key in report.gone]
    return "\n".join(f'<p class="soft">{_text(note)}</p>' for note in notes)


def _findings(entries: Iterable[Entry]) -> str:
    cards = [_card(entry, number) for number, entry in enumerate(entries, 1)]
    return "\n".join(["<section>", "<h2>Findings</h2>", *cards, "</section>"]) if cards else ""


def _card(entry: Entry, number: int) -> str:
    return _CARD.format(
        number=number,
        severity=_text(entry.severity),
        code=_text(entry.code),
        what=_text(printable(entry.seen)),
        title=_text(entry.title),
        reason=_text(entry.reason),
        evidence="\n".join(map(_block, entry.evidence.blocks(brief=False))),
        expected=_text(entry.expected),
        steps="".join(f"\n{_block(block)}" for block in entry.steps),
    )


def _block(block: Block) -> str:
    text = html.escape("\n".join(map(printable, block.rows)))
    if block.kind == "aside":
        return f'<p class="soft">{text}</p>'
    if block.kind == "note":
        return f"<p>{text}<code>{_text(block.value)}</code></p>"
    heading = f"<h4>{_text(block.label.capitalize())}</h4>\n" if block.label else ""
    if block.kind == "prose":
        return heading + "\n".join(f"<p>{_text(row)}</p>" for row in block.rows)
    mood = ' class="command"' if block.kind == "command" else ""
    return f'{heading}<pre{mood} tabindex="0">{text}</pre>'


def _rules(rules: Iterable[Verdict]) -> str:
    rows = [
        f'<tr><td>{_text(rule.code)}</td><td class="state {_mood(rule)}">{_text(rule.state)}</td>'
        f"<td>{_text(rule.title)}</td><td>{_text(rule.reason)}</td></tr>"
        for rule in rules
    ]
    return _TABLE.format(rows="\n".join(rows)) if rows else ""


def _matrix(report: Report) -> str:
    if not report.matrix:
        return ""
    return _MATRIX.format(sum=_text(f"{report.as_expected}."), rows="\n".join(map(_row, report.matrix)))


def _row(row: Row) -> str:
    mood = "passed" if row.ok else "error"
    cells = (row.scenario, row.family, " or ".join(row.expected))
    told = "".join(f"<td>{_text(cell)}</td>" for cell in cells)
    return f'<tr>{told}<td class="{mood}">{_text(row.seen)}</td><td>{_text(" ".join(row.codes))}</td></tr>'


def _mood(rule: Verdict) -> str:
    """Return the class of a state."""
    if rule.state == "violated":
        return _text(rule.severity)
    return "passed" if rule.state == "passed" else "soft"
