"""What `check` and `fuzz` share: their options, and what becomes of a result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memmock.cli.target import limit_options
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.conformance.finding import Result
    from memmock.conformance.session import Target


def conforming_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is asked of a provider, and how it is told."""
    options = (
        click.option(
            "--authorization",
            envvar="MEMMOCK_AUTHORIZATION",
            metavar="VALUE",
            help="The Authorization that the provider accepts.  [env: MEMMOCK_AUTHORIZATION]",
        ),
        click.option(
            "--open", "open_", is_flag=True, help="The provider answers whatever the Authorization is."
        ),
        click.option(
            "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Sent with every request."
        ),
        limit_options,
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
    for option in reversed(options):
        command = option(command)
    return command


def target(url: str, options: Mapping[str, Any]) -> Target:
    """Return the provider that the options name.

    Raises:
        MemmockError: the URL, the authorization or a header cannot be used.
    """
    from memmock.conformance.session import Target
    from memmock.contract import RetrievalConfig

    try:
        RetrievalConfig(url, options["authorization"] or "any")  # for what it refuses
    except MemmockError as error:
        raise MemmockError(str(error).replace("memory_retrieval: endpoint", "URL")) from None
    return Target(
        url=url,
        authorization=options["authorization"],
        open=options["open_"],
        headers=tuple(_header(text) for text in options["headers"]),
        timeout_ms=options["timeout_ms"],
        max_response_bytes=options["max_response_bytes"],
    )


def _header(text: str) -> tuple[str, str]:
    name, mark, value = text.partition(":")
    if not mark or not name.strip().replace("-", "").isalnum() or any(ord(char) < 32 for char in value):
        raise click.BadParameter(f"{text!r} is not written as 'Name: value'", param_hint="--header")
    return name.strip(), value.strip().encode().decode("latin-1")


def check_rules(*codes: str) -> None:
    """Raise for a code that is no rule of replies.

    Raises:
        MemmockError: there is no such rule.
    """
    from memmock.rules import RULES

    if unknown := [code for code in codes if code not in RULES or not code.startswith("RES")]:
        raise MemmockError(f"there is no rule {unknown[0]!r} for providers; `memmock rules` lists them")


def tell(result: Result, about: Target, options: Mapping[str, Any]) -> None:
    """Write a result as it was asked for; exit with 1 when something was found that weighs enough."""
    from memmock.conformance.written_tests import write_tests
    from memmock.report import FORMATS, report_of
    from memmock.rules import Severity

    fail_on, output, tests = Severity(options["fail_on"]), options["output"], options["tests"]
    written = None if tests is None else write_tests(result, tests, about)
    known = None if options["baseline"] is None else _compared(result, about, options["baseline"])
    report = report_of(
        result, about, fail_on=fail_on, known=known and known[0], gone=known[1] if known else ()
    )
    text = FORMATS[options["form"]](report)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise MemmockError(f"{output}: {error.strerror}") from None
        click.echo(f"{output}: {report.summary}", err=True)
    if written is not None:
        click.echo(f"{written}: run it with pytest", err=True)
    if not report.ok:
        raise SystemExit(1)


def _compared(result: Result, about: Target, path: str) -> tuple[int, list[str]]:
    """Take out of a result what a baseline has; return how much that was, and what is gone.

    A baseline that is not there yet is written, and has it all.
    """
    from memmock.conformance import baseline
    from memmock.conformance.reproduction import secrets_of
    from memmock.redaction import mask_of

    cases = [answer.case for finding in result.findings for answer in finding.answers]
    hide = mask_of(*secrets_of(about, cases))
    if not Path(path).exists():
        baseline.write(path, result.findings, hide)
        click.echo(f"{path}: written", err=True)
    before = baseline.read(path)
    gone = baseline.gone(result.findings, before, hide)
    new = baseline.new_ones(result.findings, before, hide)
    known = len(result.findings) - len(new)
    result.findings = new
    return known, gone


class Progress:
    """A bar on a terminal, a plain line now and then otherwise; on standard error."""

    def __init__(self, what: str) -> None:
        self._what = what
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
            click.echo(f"\r{phase}: {requests:,} requests, {findings} found\033[K", err=True, nl=False)
        elif time.monotonic() - self._told > _PAUSE_S:
            if self._told:
                click.echo(f"{phase}: {requests:,} requests, {findings} found", err=True)
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
