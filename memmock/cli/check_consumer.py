"""`memmock check-consumer`: every scenario, to a consumer in any language."""

from __future__ import annotations

from typing import Any

import click

from memmock.cli.conforming import Progress, check_rules
from memmock.cli.consumers import CONTEXT, bench, check_consumer_files, consumer_options, tell_of


@click.command(
    "check-consumer", short_help="Check that a consumer keeps the contract.", context_settings=CONTEXT
)
@consumer_options
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    help="Play this scenario, or all of this family, only; repeatable.",
)
def command(
    consumer: tuple[str, ...],
    timeout_ms: int,
    scenarios: tuple[str, ...],
    rules: tuple[str, ...],
    ignore: tuple[str, ...],
    **options: Any,
) -> None:
    """Play every scenario to a consumer, and say which rules of the contract it keeps.

    COMMAND runs the consumer: it reads one call a line, as JSON, from standard input, asks the endpoint that
    the call names, and writes one tool result a line, as JSON with the id of the call, to standard output. It
    ends when its input does.

    \b
    in   {"id": "1", "memory_retrieval": {"enabled": true, "endpoint": "http://...", "authorization": "...",
          "timeout_ms": 300, "max_response_bytes": 65536}, "request": {"query": "..."}}
    out  {"id": "1", "ok": true, "memories": [...]}
         {"id": "1", "ok": false, "error": {"code": "timeout", "message": "..."}}

    What is played is the same every time; Ctrl-C stops, and still reports.

    Exits with 0 when nothing of the severity of --fail-on was found, 1 when something was, 2 when the
    consumer cannot be started, 130 when it was interrupted before anything was found.
    """  # noqa: D301  # click looks for the character
    from memmock.consumer_conformance.checks import check

    check_rules("consumers", *rules, *ignore)
    check_consumer_files(options)
    progress = Progress("played", "calls")
    with bench(consumer, timeout_ms) as stand:
        try:
            result = check(
                stand, scenarios=scenarios or None, rules=rules or None, ignore=ignore, progress=progress
            )
        finally:
            progress.end()
    tell_of(result, consumer, options)
