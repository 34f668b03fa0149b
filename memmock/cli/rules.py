"""`memmock rules`: what the contract asks, and why."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from memmock.rules import Rule


@click.command("rules", short_help="List the rules of the contract, or explain one.")
@click.argument("code", required=False)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the rules as data.",
)  # fmt: skip
def command(code: str | None, form: str) -> None:
    """List the rules of the contract, or explain the rule CODE; REQ2 lists those that start with it.

    REQ rules are about what a consumer sends, RES rules about what a provider answers, CON rules about what a
    consumer makes of the answer. An error breaks a must of the contract, a warning a recommendation.
    """
    from memmock.errors import MemmockError
    from memmock.rules import RULES

    start = (code or "").upper()
    chosen = [rule for rule in RULES.values() if rule.code.startswith(start)]
    if not chosen:
        close = difflib.get_close_matches(start, RULES, n=3, cutoff=0.5)
        near = f"near it are {', '.join(close)}; " if close else ""
        raise MemmockError(f"there is no rule {code!r}; {near}`memmock rules` lists all")
    if form == "json":
        click.echo(json.dumps([rule.to_json() for rule in chosen], ensure_ascii=False, indent=2))
    elif len(chosen) > 1:
        click.echo("\n".join(f"{rule.code}  {rule.severity:<7}  {rule.title}" for rule in chosen))
    else:
        click.echo(_page(chosen[0]))


def _page(rule: Rule) -> str:
    wrong, right = (text.replace("\n", "\n         ") for text in (rule.wrong, rule.right))
    return "\n".join(
        [
            f"{rule.code} ({rule.severity}) {rule.title}  {rule.source}",
            "",
            click.wrap_text(rule.reason, 90, "  ", "  "),
            "",
            f"  wrong  {wrong}",
            f"  right  {right}",
        ]
    )
