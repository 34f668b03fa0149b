"""What the commands that check one side of the contract share: options, progress, and how a result is told.

What is for one side only is in `providers` and in `consumers`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.conformance.baseline import Keyed
    from memmock.report import Report

    K = TypeVar("K", bound=Keyed)

    class Found(Protocol[K]):
        """A result with findings."""

        findings: list[K]


Command = Callable[..., Any]
Option = Callable[[Command], Command]

PREFIXES = {"providers": ("RES",), "consumers": ("REQ", "CON")}
"""What the codes of the rules begin with that a side may break."""


def added(command: Command, *options: Option) -> Command:
    """Return a command with more options, which its help lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def result_options(command: Command) -> Command:
    """Add the options that say which rules are looked at, and how the result is told."""
    return added(
        command,
        click.option(
            "--rules", "rules", multiple=True, metavar="CODE", help="Look at this rule only; repeatable."
        ),
        click.option(
            "--ignore", "ignore", multiple=True, metavar="CODE", help="Leave this rule out; repeatable."
        ),
        click.option(
            "--fail-on",
            type=click.Choice(["error", "warning"]),
            default="error",
            show_default=True,
            help="From which severity on the exit code is 1.",
        ),
        click.option(
            "--format",
            "form",
            type=click.Choice(["text", "json", "junit", "html"]),
            default="text",
            show_default=True,
            help="How the result is written.",
        ),
        click.option(
            "--output", metavar="FILE", help="Where the result is written; standard output if not given."
        ),
        click.option(
            "--baseline",
            metavar="FILE",
            help="Tell only what is not in this file; written when it is not there yet.",
        ),
        click.option(
            "--write-tests", "tests", metavar="DIR", help="Write a pytest file that reproduces the findings."
        ),
    )


def search_options(seeded: str) -> Option:
    """Return what adds the options of a search.

    Args:
        seeded: what the same seed does again, as "sends the same requests".
    """

    def add(command: Command) -> Command:
        return added(
            command,
            click.option(
                "--examples",
                type=click.IntRange(0),
                default=2000,
                show_default=True,
                metavar="N",
                help="How many examples are made at random, after the boundary cases.",
            ),
            click.option(
                "--time-limit",
                type=click.FloatRange(0.1, 86_400),
                default=60.0,
                show_default=True,
                metavar="S",
                help="When to stop, in seconds; always kept.",
            ),
            click.option(
                "--seed", type=int, metavar="N", help=f"The same seed {seeded}; by chance if not given."
            ),
        )

    return add


def check_rules(side: str, *codes: str) -> None:
    """Raise for a code that is no rule of one side, a key of `PREFIXES`.

    Raises:
        MemmockError: there is no such rule.
    """
    from memmock.rules import RULES

    if unknown := [code for code in codes if code not in RULES or not code.startswith(PREFIXES[side])]:
        raise MemmockError(f"there is no rule {unknown[0]!r} for {side}; `memmock rules` lists them")


def check_files(options: Mapping[str, Any], tests_file: str) -> None:
    """Raise for files that could not be written in the end, before anything is done.

    Args:
        options: those of `result_options`.
        tests_file: the name of the file of `--write-tests`.

    Raises:
        MemmockError: a file is somebody else's, or of another kind.
    """
    from memmock import documents
    from memmock.conformance import baseline

    output = options["output"]
    if output is not None and not Path(output).parent.is_dir():
        raise MemmockError(f"{output}: there is no such directory")
    if output is not None and Path(output).is_dir():
        raise MemmockError(f"{output}: is a directory")
    if options["baseline"] is not None:
        baseline.check_path(options["baseline"])
    if options["tests"] is not None:
        documents.check_own(Path(options["tests"]) / tests_file)


def compared(result: Found[K], hide: Callable[[str], str], path: str) -> tuple[int, list[str]]:
    """Take out of a result what a baseline has; return how much that was, and what is gone.

    A baseline that is not there yet is written, and has it all.

    Args:
        result: it is changed.
        hide: takes secrets out of a text.
        path: the file.
    """
    from memmock.conformance import baseline

    if not Path(path).exists():
        baseline.write(path, result.findings, hide)
        click.echo(f"{path}: written", err=True)
    before = baseline.read(path)
    gone = baseline.gone(result.findings, before, hide)
    new = baseline.new_ones(result.findings, before, hide)
    known = len(result.findings) - len(new)
    result.findings = new
    return known, gone


def tell(report: Report, options: Mapping[str, Any], *written: str) -> None:
    """Write a report as it was asked for; exit with 1 when something was found that weighs enough.

    Args:
        report: the report.
        options: those of `result_options`.
        written: what else was written, each a line for standard error.
    """
    from memmock.report import FORMATS

    text, output = FORMATS[options["form"]](report), options["output"]
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise MemmockError(f"{output}: {error.strerror}") from None
        click.echo(f"{output}: {report.summary}", err=True)
    for line in written:
        click.echo(line, err=True)
    if not report.ok:
        raise SystemExit(1)
    if report.stopped == INTERRUPTED:  # nothing was found so far, which says little
        raise SystemExit(130)


INTERRUPTED = "interrupted"


class Progress:
    """A bar on a terminal, a plain line now and then otherwise; on standard error.

    Args:
        what: what was done, as "checked".
        noun: what is counted in a search, in the plural.
    """

    def __init__(self, what: str, noun: str = "requests") -> None:
        self._what = what
        self._noun = noun
        self._bar: Any = None
        self._told = 0.0
        self._tty = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """Show how far it is."""
        if self._tty:
            self._show(done, total)
        elif time.monotonic() - self._told > _PAUSE_S:
            if self._told:
                click.echo(f"{self._what} {done} of {total}", err=True)
            self._told = time.monotonic()

    def phase(self, phase: str, requests: int, findings: int) -> None:
        """Show what a search is at."""
        if self._tty:
            click.echo(f"\r{phase}: {requests:,} {self._noun}, {findings} found\033[K", err=True, nl=False)
        elif time.monotonic() - self._told > _PAUSE_S:
            if self._told:
                click.echo(f"{phase}: {requests:,} {self._noun}, {findings} found", err=True)
            self._told = time.monotonic()

    def end(self) -> None:
        """Leave the line."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
        elif self._tty:
            click.echo("\r\033[K", err=True, nl=False)

    def _show(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = click.progressbar(length=total, label=self._what, file=sys.stderr)
            self._bar.__enter__()
        self._bar.length = total
        self._bar.update(done - self._bar.pos)


_PAUSE_S = 5.0
"""How often a line is printed where there is no terminal."""
