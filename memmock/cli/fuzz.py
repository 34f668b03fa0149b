"""`memmock fuzz`: generated requests, to a provider in any language."""

from __future__ import annotations

import random
from typing import Any

import click

from memmock.cli.conforming import Progress, check_files, check_rules, search_options
from memmock.cli.providers import provider_options, target, tell_of


@click.command("fuzz", short_help="Look for requests that break a provider.")
@click.argument("url")
@provider_options
@search_options("sends the same requests")
@click.option(
    "--rate", type=click.FloatRange(0.01), metavar="N", help="Never more requests a second than this."
)
def command(
    url: str,
    rules: tuple[str, ...],
    ignore: tuple[str, ...],
    examples: int,
    time_limit: float,
    seed: int | None,
    rate: float | None,
    **options: Any,
) -> None:
    """Look for requests that break a provider, and tell each finding with its smallest request.

    Boundary cases come first, then requests at random. What was found before is tried first again: it is kept
    in .memmock/, without the authorization. Nothing but URL is contacted; Ctrl-C stops, and still reports.

    Exits with 0 when nothing of the severity of --fail-on was found, 1 when something was, 2 when the
    provider cannot be reached.
    """
    from memmock.conformance.checks import reach
    from memmock.conformance.fuzz import fuzz
    from memmock.conformance.known import Store
    from memmock.conformance.session import Session
    from memmock.conformance.written_tests import FILE_NAME

    check_rules("providers", *rules, *ignore)
    check_files(options, FILE_NAME)
    about = target(url, options)
    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    session = Session(about, rate=rate, time_limit_s=time_limit)
    progress = Progress("tried")
    try:
        reach(session)
        result = fuzz(
            session,
            seed=seed,
            examples=examples,
            known=Store(url),
            rules=rules or None,
            ignore=ignore,
            progress=progress.phase,
        )
    finally:
        progress.end()
        session.close()
    tell_of(result, about, options)
