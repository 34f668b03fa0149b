"""`memmock cassette show`: what is in a cassette."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from memmock.cli.cassette.interactions import (
    age_s,
    as_shown,
    called,
    in_words,
    learn,
    loaded,
    retrieval,
    violations,
)
from memmock.cli.cassette.table import fitted, table
from memmock.cli.text import count
from memmock.strictjson import parse_quickly, printable

if TYPE_CHECKING:
    from memmock.cassette import Interaction
    from memmock.http import Reply

_QUERY_COLUMNS, _TYPES_COLUMNS = 40, 24


@click.command("show", short_help="Show the interactions of a cassette as a table.")
@click.argument("file")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the same as data.",
)  # fmt: skip
def command(file: str, form: str) -> None:
    """Show the interactions of a cassette: what was asked, and what came back.

    The age is that of the recording. The violations are those of the contract, seen now or when it was
    recorded; `memmock cassette check` explains them. Credentials are not shown.
    """
    from memmock.redaction import Redactor

    interactions = loaded(file)
    redactor = Redactor()
    learn(interactions, redactor)
    facts = [_facts(n, as_shown(each, redactor), each) for n, each in enumerate(interactions, 1)]
    for fact in facts:
        for name in ("query", "error"):
            fact[name] = fact[name] and redactor.text(fact[name])
    if form == "json":
        click.echo(json.dumps({"cassette": file, "interactions": facts}, ensure_ascii=False, indent=2))
        return
    heads = ("#", "query", "types", "status", "memories", "age", "violations")
    if facts:
        click.echo("\n".join([*table([heads, *map(_row, facts)]), ""]))
    click.echo(f"{file}: {count(len(facts), 'interaction')}")


def _facts(number: int, shown: Interaction, recorded: Interaction) -> dict[str, Any]:
    from memmock.tool_result import tool_result

    types = retrieval(shown.request).get("memory_types")
    result = tool_result(recorded.reply)
    age = age_s(recorded)
    return {
        "number": number,
        "query": called(shown.request),
        "memory_types": types if isinstance(types, list) else [],
        "status": shown.reply.status,
        "memories": len(result.memories) if result.ok else None,
        "error": None if result.error is None else _error_code(shown.reply) or result.error.code,
        "recorded_at": recorded.recorded_at or None,
        "age_s": None if age is None else round(age),
        "elapsed_ms": recorded.elapsed_ms,
        "violations": sorted({*recorded.violations, *(found.code for found in violations(recorded))}),
    }


def _error_code(reply: Reply) -> str | None:
    """Return the code that a provider gave with an error status."""
    try:
        body = parse_quickly(reply.body)
    except ValueError:
        return None
    error = body.get("error") if isinstance(body, dict) and not 200 <= reply.status < 300 else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and code else None


def _row(facts: dict[str, Any]) -> list[str]:
    cells = [
        str(facts["number"]),
        fitted(facts["query"], _QUERY_COLUMNS),
        fitted(", ".join(map(str, facts["memory_types"])), _TYPES_COLUMNS) or "all",
        str(facts["status"]),
        fitted(facts["error"] or str(facts["memories"]), _TYPES_COLUMNS),
        in_words(facts["age_s"]),
        ", ".join(facts["violations"]) or "-",
    ]
    return [printable(cell) for cell in cells]
