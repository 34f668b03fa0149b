"""`memmock reply-check`: what the digital human said after a retrieval, judged."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, BinaryIO

import click

from memmock.cli.text import count
from memmock.demo import DEMO

if TYPE_CHECKING:
    from memmock.reply_check import Flaw

_LINE_END = re.compile("[\n\r\u2028\u2029]")
_AROUND = 24
"""So many characters are shown around a quotation that is in a long line."""
_LONGEST_QUOTE = 60
_MOST_SHOWN = 50
"""So many flaws are shown as text [ours]; the others are counted."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@click.command("reply-check", short_help="Check what the digital human said.")
@click.argument("text", required=False)
@click.option("--file", "file", type=click.File("rb"), metavar="FILE", help="Read the reply from a file.")
@click.option(
    "--remembers", multiple=True, metavar="POINT",
    help='A memory point that must be there, or "conclusion, then reasons"; repeat it for more.',
)  # fmt: skip
@click.option(
    "--unsure", multiple=True, metavar="POINT",
    help="A memory point of low confidence, to be asked or hedged; repeat it for more.",
)  # fmt: skip
@click.option(
    "--demo", type=click.IntRange(1, len(DEMO)), metavar="N",
    help=f"Take the point of row N of the demo, 1 to {len(DEMO)}.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the flaws as data.",
)  # fmt: skip
def command(
    text: str | None,
    file: BinaryIO | None,
    remembers: tuple[str, ...],
    unsure: tuple[str, ...],
    demo: int | None,
    form: str,
) -> None:
    """Check what the digital human said to the end user after a retrieval.

    The reply is TEXT, or it is read from a file or from standard input. Looked for are memory points that are
    missing, places that tell of machinery (APIs, tools, databases), and memories of low confidence that are
    stated as facts. Exits with 0 for a good reply, 1 for flaws, 2 for a usage error.
    """
    from memmock.reply_check import check_reply

    reply = _reply(text, file)
    flaws = check_reply(reply, [*([DEMO[demo - 1].point] if demo else ()), *remembers], unsure)
    if form == "json":
        shown = json.dumps({"flaws": [flaw.to_json() for flaw in flaws]}, ensure_ascii=False, indent=2)
        click.echo(_SURROGATE.sub(lambda char: f"\\u{ord(char[0]):04x}", shown))
    else:
        click.echo(
            "\n\n".join([*(_shown(flaw, reply) for flaw in flaws[:_MOST_SHOWN]), _counted(len(flaws))])
        )
    if flaws:
        raise SystemExit(1)


def _reply(text: str | None, file: BinaryIO | None) -> str:
    if text is not None and file is not None:
        raise click.UsageError("give the reply as TEXT or with --file, not both")
    if text is not None and text != "-":
        return text
    if file is None:
        if text is None and sys.stdin.isatty():
            raise click.UsageError("give the reply as TEXT, with --file, or on standard input")
        file = sys.stdin.buffer
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the reply is not UTF-8 (at byte {error.start})") from None
    except OSError as error:
        raise click.UsageError(f"cannot read the reply: {error.strerror}") from None


def _counted(flaws: int) -> str:
    """Return how many flaws there are, and how many of them are not shown."""
    if flaws <= _MOST_SHOWN:
        return count(flaws, "flaw")
    return f"{flaws} flaws, {flaws - _MOST_SHOWN} more than are shown; --format json prints them all"


def _shown(flaw: Flaw, reply: str) -> str:
    """Return a flaw with the line that it is in, and marks below the very piece."""
    if not flaw.quote:
        return f"{flaw.kind}: {_visible(flaw.message)}"
    before = _LINE_END.split(reply[max(flaw.start - _AROUND - 1, 0) : flaw.start])[-1]
    quote = flaw.quote
    after = _LINE_END.split(reply[flaw.end : flaw.end + _AROUND + 1], maxsplit=1)[0]
    if len(before) > _AROUND:
        before = f"…{before[-_AROUND:]}"
    if len(quote) > _LONGEST_QUOTE:
        quote, after = f"{quote[:_LONGEST_QUOTE]}…", ""
    if len(after) > _AROUND:
        after = f"{after[:_AROUND]}…"
    start, marked, rest = _visible(before), _visible(quote), _visible(after)
    marks = f"{' ' * _width(start)}{'^' * _width(marked)}"
    return f"{flaw.kind}: {_visible(flaw.message)}\n  {start}{marked}{rest}\n  {marks}"


def _visible(text: str) -> str:
    """Return text on one line, without what a terminal would obey or not show."""
    return "".join(char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text)


def _width(text: str) -> int:
    """Return how many columns a terminal takes for a text."""
    return sum(
        0 if unicodedata.category(char) in ("Mn", "Me") else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )
