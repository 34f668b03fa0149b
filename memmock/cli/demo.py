"""`memmock demo`: the three questions of character 01, asked of a provider."""

from __future__ import annotations

import click

from memmock.cli.target import refuse_target, target, target_options
from memmock.strictjson import printable


@click.command("demo", short_help="Check the three points of character 01's demo.")
@target_options
@click.option(
    "--through-live",
    is_flag=True,
    help="Ask the built-in provider through a live session, and print each step as a curl command.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port for --through-live; 8765 when not given, or a free one when that is taken.",
)
def command(
    endpoint: str | None,
    authorization: str,
    timeout_ms: int,
    max_response_bytes: int,
    through_live: bool,
    port: int | None,
) -> None:
    """Show that the provider holds what the demo of character 01 (灵绯) is about.

    For each of the three rows: the query to the provider, the first memory that it answers, whether the
    point of the row is in it, and the question to put to the digital human. Exits with 0 only if all three
    points come first.
    """
    from memmock.demo import DEMO

    if through_live:
        from memmock.cli.live_demo import through

        refuse_target("is not for --through-live, which asks the built-in provider")
        found = through(port)
    elif port is not None:
        raise click.UsageError("--port is for --through-live, which is not given")
    else:
        found = _asked(endpoint, authorization, timeout_ms, max_response_bytes)
    click.echo(f"\n{found} of {len(DEMO)} points come first.")
    if found < len(DEMO):
        raise SystemExit(1)


def _asked(endpoint: str | None, authorization: str, timeout_ms: int, max_response_bytes: int) -> int:
    """Ask the three questions, and return how many points come first."""
    from memmock.consumer import Consumer
    from memmock.contract import Retrieval
    from memmock.demo import DEMO

    found = 0
    with (
        target(endpoint, authorization, timeout_ms, max_response_bytes) as config,
        Consumer(config) as consumer,
    ):
        click.echo(
            f"Asking {config.endpoint if endpoint else 'a mock provider with the memories of character 01'}"
        )
        for number, row in enumerate(DEMO, 1):
            result = consumer.retrieve(Retrieval(row.query))
            if result.error is not None:
                first, there = f"no memory, but {result.error.code}: {result.error.message}", False
            elif not result.memories:
                first, there = "no memory", False
            else:
                first = result.memories[0].summary
                there = row.found_in(first)
            found += there
            lines = (
                "",
                f"{number}. ask the provider:      {row.query}",
                f"   it remembers first:    {printable(first)}",
                f"   point of the demo:     {row.point}  {'✓ found' if there else '✗ not found'}",
                f"   now ask the character: {row.question}",
            )
            click.echo("\n".join(lines))
    return found
