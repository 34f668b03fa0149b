"""`memmock fuzz-consumer`: generated replies, to a consumer in any language."""

from __future__ import annotations

import random
from typing import Any

import click

from memmock.cli.conforming import Progress, check_rules, search_options
from memmock.cli.consumers import CONTEXT, bench, check_consumer_files, consumer_options, tell_of


@click.command(
    "fuzz-consumer", short_help="Look for replies that break a consumer.", context_settings=CONTEXT
)
@consumer_options
@search_options("plays the same replies")
def command(
    consumer: tuple[str, ...],
    timeout_ms: int,
    rules: tuple[str, ...],
    ignore: tuple[str, ...],
    examples: int,
    time_limit: float,
    seed: int | None,
    **options: Any,
) -> None:
    """Look for replies that break a consumer, and tell each finding with its smallest reply.

    COMMAND runs the consumer, as for `memmock check-consumer`, which says what it reads and writes. Boundary
    cases come first, then replies at random. What was found before is tried first again: it is kept in
    .memmock/. Ctrl-C stops, and still reports.

    Exits with 0 when nothing of the severity of --fail-on was found, 1 when something was, 2 when the
    consumer cannot be started, 130 when it was interrupted before anything was found.
    """
    from memmock.consumer_conformance.fuzzing import fuzz
    from memmock.consumer_conformance.trial import store_of

    check_rules("consumers", *rules, *ignore)
    check_consumer_files(options)
    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    progress = Progress("tried", "calls")
    with bench(consumer, timeout_ms) as stand:
        try:
            result = fuzz(
                stand,
                seed=seed,
                examples=examples,
                time_limit_s=time_limit,
                known=store_of(stand.subject.name),
                rules=rules or None,
                ignore=ignore,
                progress=progress.phase,
            )
        finally:
            progress.end()
    tell_of(result, consumer, options)
