"""`memmock check`: a fixed catalogue of requests, to a provider in any language."""

from __future__ import annotations

from typing import Any

import click

from memmock.cli.conforming import Progress, check_files, check_rules
from memmock.cli.providers import provider_options, target, tell_of


@click.command("check", short_help="Check that a provider keeps the contract.")
@click.argument("url")
@provider_options
def command(url: str, rules: tuple[str, ...], ignore: tuple[str, ...], **options: Any) -> None:
    """Ask a provider what a live service may ask, and say which rules of the contract it keeps.

    The requests are the same every time. Nothing but URL is contacted.

    Exits with 0 when nothing of the severity of --fail-on was found, 1 when something was, 2 when the
    provider cannot be reached.
    """
    from memmock.conformance.checks import check
    from memmock.conformance.session import Session
    from memmock.conformance.written_tests import FILE_NAME

    check_rules("providers", *rules, *ignore)
    check_files(options, FILE_NAME)
    about = target(url, options)
    session = Session(about)
    progress = Progress("checked")
    try:
        result = check(session, rules=rules or None, ignore=ignore, progress=progress)
    finally:
        progress.end()
        session.close()
    tell_of(result, about, options)
