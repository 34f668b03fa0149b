"""`memmock check`: a fixed catalogue of requests, to a provider in any language."""

from __future__ import annotations

import click

from memmock.cli.conforming import Progress, Telling, check_rules, conforming_options, target, tell


@click.command("check", short_help="Check that a provider keeps the contract.")
@click.argument("url")
@conforming_options
def command(
    url: str,
    authorization: str | None,
    open_: bool,
    headers: tuple[str, ...],
    timeout_ms: int,
    max_response_bytes: int,
    rules: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    form: str,
    output: str | None,
    baseline: str | None,
    tests: str | None,
) -> None:
    """Ask a provider what a live service may ask, and say which rules of the contract it keeps.

    The requests are the same every time. Nothing but URL is contacted.

    Exits with 0 when nothing of the severity of --fail-on was found, 1 when something was, 2 when the
    provider cannot be reached.
    """
    from memmock.conformance.checks import check
    from memmock.conformance.session import Session

    check_rules(*rules, *ignore)
    about = target(url, authorization, open_, headers, timeout_ms, max_response_bytes)
    session = Session(about)
    progress = Progress("checked")
    try:
        result = check(session, rules=rules or None, ignore=ignore, progress=progress)
    finally:
        progress.end()
        session.close()
    tell(result, about, Telling(fail_on=fail_on, form=form, output=output, baseline=baseline, tests=tests))
