"""What `check` and `fuzz` share: their options, and what becomes of a result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Telling:
    """How a result is told."""

    fail_on: str
    form: str
    output: str | None
    baseline: str | None
    tests: str | None


def target(
    url: str,
    authorization: str | None,
    open_: bool,
    headers: tuple[str, ...],
    timeout_ms: int,
    max_response_bytes: int,
) -> Target:
    """Return the provider that the options name.

    Raises:
        MemmockError: the URL, the authorization or a header cannot be used.
    """
    from memmock.conformance.session import Target
    from memmock.contract import RetrievalConfig

    try:
        RetrievalConfig(url, "any" if authorization is None else authorization)  # for what it refuses
    except MemmockError as error:
        raise MemmockError(str(error).replace("memory_retrieval: endpoint", "URL")) from None
    return Target(
        url=url,
        authorization=authorization,
        open=open_,
        headers=tuple(_header(text) for text in headers),
        timeout_ms=timeout_ms,
        max_response_bytes=max_response_bytes,
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

    if unknown := [code for code in codes if code.upper() not in RULES or not code.upper().startswith("RES")]:
        raise MemmockError(f"there is no rule {unknown[0]!r} for providers; `memmock rules` lists them")


def tell(result: Result, about: Target, how: Telling) -> None:
    """Write a result as it was asked for; exit with 1 when something was found that weighs enough."""
    from memmock import report
    from memmock.conformance import baseline
    from memmock.conformance.written_tests import write_tests
    from memmock.rules import Severity

    if how.baseline is not None:
        _compare(result, how.baseline)
    made = {
        "text": report.as_text,
        "json": report.as_json,
        "junit": report.as_junit,
        "html": report.as_html,
    }[how.form](result, about, Severity(how.fail_on))
    if how.output is None:
        click.echo(made)
    else:
        try:
            Path(how.output).write_text(made + "\n", encoding="utf-8")
        except OSError as error:
            raise MemmockError(f"{how.output}: {error.strerror}") from None
        click.echo(f"{how.output}: {len(result.findings)} findings", err=True)
    if how.tests is not None and result.findings:
        click.echo(f"{write_tests(result, how.tests, about)}: run it with pytest", err=True)
    if not result.ok(Severity(how.fail_on)):
        raise SystemExit(1)


class Progress:
    """A bar on a terminal, a plain line now and then otherwise; on standard error."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bar: Any = None
        self._told = 0
        self._tty = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """Show how far it is."""
        if not self._tty:
            tenth = done * 10 // max(total, 1)
            if tenth > self._told:
                self._told = tenth
                click.echo(f"{self._what}: {done} of {total}", err=True)
            return
        if self._bar is None:
            self._bar = click.progressbar(length=total, label=self._what, file=sys.stderr)
            self._bar.__enter__()
        self._bar.length = total
        self._bar.update(done - self._bar.pos)

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)


def _compare(result: Result, path: str) -> None:
    """Leave out what is in the baseline; write the baseline when there is none."""
    from memmock.conformance import baseline

    if not Path(path).exists():
        baseline.write(path, result.findings)
        click.echo(f"{path}: written, with {len(result.findings)} findings", err=True)
        result.findings = []
        return
    before = baseline.read(path)
    known = len(result.findings)
    missing = baseline.gone(result.findings, before)
    result.findings = baseline.new_ones(result.findings, before)
    says = [
        f"{path}: {known - len(result.findings)} findings were there before, {len(result.findings)} are new"
    ]
    says += [f"  no longer seen: {key}" for key in missing]
    click.echo("\n".join(says), err=True)
