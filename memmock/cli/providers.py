"""What `check` and `fuzz` share: their options, and what becomes of a provider's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memmock.cli.conforming import Command, added, compared, result_options, tell
from memmock.cli.target import limit_options
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.conformance.finding import Result
    from memmock.conformance.session import Target


def provider_options(command: Command) -> Command:
    """Add the options that say what is asked of a provider, and how the result is told."""
    return added(
        command,
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
        result_options,
    )


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


def tell_of(result: Result, about: Target, options: Mapping[str, Any]) -> None:
    """Write a result as it was asked for; exit with 1 when something was found that weighs enough."""
    from memmock.conformance.reproduction import secrets_of
    from memmock.conformance.written_tests import write_tests
    from memmock.redaction import mask_of
    from memmock.report import report_of
    from memmock.rules import Severity

    tests, baseline = options["tests"], options["baseline"]
    written = None if tests is None else write_tests(result, tests, about)
    known: int | None = None
    gone: list[str] = []
    if baseline is not None:
        cases = [answer.case for finding in result.findings for answer in finding.answers]
        known, gone = compared(result, mask_of(*secrets_of(about, cases)), baseline)
    report = report_of(result, about, fail_on=Severity(options["fail_on"]), known=known, gone=gone)
    tell(report, options, *([] if written is None else [f"{written}: run it with pytest"]))
