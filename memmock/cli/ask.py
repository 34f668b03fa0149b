"""`memmock ask`: one retrieval, as the live service makes it."""

from __future__ import annotations

import json
from typing import Any

import click

from memmock.cli.live_log import violation_line
from memmock.cli.target import refuse_target, target, target_options
from memmock.cli.text import count
from memmock.contract import MEMORY_TYPES, Retrieval, RetrievalConfig
from memmock.strictjson import printable


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
@click.option(
    "--live",
    metavar="URL",
    help="Let the session of --live-id ask, in the live twin at this URL: memmock live or serve --live.",
)
@click.option(
    "--control-token",
    envvar="MEMMOCK_CONTROL_TOKEN",
    metavar="TOKEN",
    help="The control token of --live, when it has one.  [env: MEMMOCK_CONTROL_TOKEN]",
)
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
    live: str | None,
    control_token: str | None,
    reason: str | None,
    form: str,
) -> None:
    """Ask a provider for memories, and show what the model would be given.

    Exits with 0 for a result, 1 for an error result, 2 for a usage error.
    """
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
    if live is None:
        with target(endpoint, authorization, timeout_ms, max_response_bytes) as config:
            came_to = _asked(config, retrieval)
    else:
        came_to = _through(live, retrieval, control_token)
    click.echo((_as_json if form == "json" else _as_text)(came_to))
    if not came_to["tool_result"]["ok"]:
        raise SystemExit(1)


def _asked(config: RetrievalConfig, retrieval: Retrieval) -> dict[str, Any]:
    from memmock.consumer import Consumer
    from memmock.live import Retrieved

    with Consumer(config) as consumer:
        exchange = consumer.exchange(retrieval)
    return Retrieved.of(config, exchange).to_json()


def _through(live: str, retrieval: Retrieval, control_token: str | None) -> dict[str, Any]:
    from memmock.cli.live_client import retrieved

    refuse_target("is not for --live: the live session was created with its own")
    if not retrieval.live_id:
        raise click.UsageError("--live needs --live-id, the id that CreateLive answered")
    asked = retrieval.to_json()
    return retrieved(live, asked.pop("live_id"), asked, token=control_token)


def _violations(came_to: dict[str, Any]) -> list[dict[str, str]]:
    return [*came_to["violations"]["request"], *came_to["violations"]["reply"]]


def _as_json(came_to: dict[str, Any]) -> str:
    facts = {
        **came_to["tool_result"],
        "advice": came_to["advice"],
        "elapsed_ms": came_to["timing"]["elapsed_ms"],
        "received_bytes": came_to["reply"]["received_bytes"],
        "violations": _violations(came_to),
    }
    return json.dumps(facts, ensure_ascii=False, indent=2)


def _as_text(came_to: dict[str, Any]) -> str:
    result, elapsed_ms = came_to["tool_result"], came_to["timing"]["elapsed_ms"]
    memories = result.get("memories", [])
    lines = []
    for number, (memory, advice) in enumerate(zip(memories, came_to["advice"], strict=True), 1):
        lines += _memory_lines(number, memory, advice)
    if result["ok"] and not memories:
        lines += ["nothing found", ""]
    if not result["ok"]:
        lines += [printable(f"{result['error']['code']}: {result['error']['message']}"), ""]
    if came_to["reply"]["status"] is None:
        lines.append(f"no answer in {elapsed_ms:.0f} ms")
        return "\n".join(lines)
    violations = _violations(came_to)
    lines.append(
        f"{count(len(memories), 'memory', 'memories')} in {elapsed_ms:.0f} ms, "
        f"{came_to['reply']['received_bytes']:,} bytes, {count(len(violations), 'violation')}"
    )
    lines += [f"  {violation_line(found)}" for found in violations]
    return "\n".join(lines)


def _memory_lines(number: int, memory: dict[str, Any], advice: str) -> list[str]:
    confidence = memory.get("confidence")
    sure = "no confidence" if confidence is None else f"confidence {confidence:g}"
    names = ("type", "updated_at", "source")
    facts = [printable(memory[name]) for name in names if memory.get(name)]
    return [
        f"{number:>2}. {printable(memory['summary'])}",
        f"    {advice} ({sure})",
        *([f"    {', '.join(facts)}"] if facts else []),
        "",
    ]
