"""`memmock ask`: one retrieval, as the live service makes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from memmock.cli.target import target, target_options
from memmock.cli.text import count
from memmock.contract import MEMORY_TYPES, Memory, Retrieval
from memmock.strictjson import printable

if TYPE_CHECKING:
    from memmock.consumer import Exchange
    from memmock.rules import Violation


@click.command("ask", short_help="Make one retrieval as the live service does.")
@click.argument("query")
@target_options
@click.option(
    "--type",
    "-t",
    "types",
    multiple=True,
    type=click.Choice(MEMORY_TYPES),
    help="A kind wanted; repeat it for more.",
)
@click.option("--time-hint", metavar="TEXT", help="A time in natural language.")
@click.option("--max-results", type=click.IntRange(1), metavar="N", help="At most this many memories.")
@click.option("--live-id", metavar="ID", help="The live session.")
@click.option("--reason", metavar="TEXT", help="Why the model looks it up.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the tool result, with timing and violations.",
)  # fmt: skip
def command(
    query: str,
    endpoint: str | None,
    authorization: str,
    timeout_ms: int,
    max_response_bytes: int,
    types: tuple[str, ...],
    time_hint: str | None,
    max_results: int | None,
    live_id: str | None,
    reason: str | None,
    form: str,
) -> None:
    """Ask a provider for memories, and show what the model would be given.

    Exits with 0 for a result, 1 for an error result, 2 for a usage error.
    """
    from memmock.consumer import Consumer
    from memmock.rules import reply_violations, request_violations

    if not query:
        raise click.BadParameter("must not be empty", param_hint="QUERY")
    retrieval = Retrieval(
        query,
        live_id=live_id,
        reason=reason,
        memory_types=types or None,
        time_hint=time_hint,
        max_results=max_results,
    )
    with (
        target(endpoint, authorization, timeout_ms, max_response_bytes) as config,
        Consumer(config) as consumer,
    ):
        exchange = consumer.exchange(retrieval)
    violations = request_violations(exchange.request)
    if exchange.reply is not None and exchange.complete:
        violations += reply_violations(
            exchange.reply,
            exchange.request,
            max_response_bytes=max_response_bytes,
            timeout_ms=timeout_ms,
            elapsed_s=exchange.elapsed_s,
        )
    click.echo((_as_json if form == "json" else _as_text)(exchange, violations))
    if not exchange.result.ok:
        raise SystemExit(1)


def _as_json(exchange: Exchange, violations: list[Violation]) -> str:
    from memmock.consumer import advice

    facts = {
        **exchange.result.to_json(),
        "advice": [advice(memory.confidence) for memory in exchange.result.memories],
        "elapsed_ms": round(exchange.elapsed_s * 1000, 1),
        "received_bytes": exchange.received_bytes,
        "violations": [found.to_json() for found in violations],
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)


def _as_text(exchange: Exchange, violations: list[Violation]) -> str:
    result = exchange.result
    lines = []
    for number, memory in enumerate(result.memories, 1):
        lines += _memory_lines(number, memory)
    if result.ok and not result.memories:
        lines += ["nothing found", ""]
    if result.error is not None:
        lines += [f"{result.error.code}: {result.error.message}", ""]
    if exchange.reply is None:
        lines.append(f"no answer in {exchange.elapsed_s * 1000:.0f} ms")
        return "\n".join(lines)
    lines.append(
        f"{count(len(result.memories), 'memory', 'memories')} in {exchange.elapsed_s * 1000:.0f} ms, "
        f"{exchange.received_bytes:,} bytes, {count(len(violations), 'violation')}"
    )
    lines += [f"  {found!s}" for found in violations]
    return "\n".join(lines)


def _memory_lines(number: int, memory: Memory) -> list[str]:
    from memmock.consumer import advice

    sure = "no confidence" if memory.confidence is None else f"confidence {memory.confidence:g}"
    facts = [printable(fact) for fact in (memory.type, memory.updated_at, memory.source) if fact]
    return [
        f"{number:>2}. {printable(memory.summary)}",
        f"    {advice(memory.confidence)} ({sure})",
        *([f"    {', '.join(facts)}"] if facts else []),
        "",
    ]
