"""`memmock schema`: the contract as a document for other tools."""

from __future__ import annotations

import json

import click


@click.command("schema", short_help="Print the contract as OpenAPI or JSON Schema.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["openapi", "jsonschema"]),
    default="openapi",
    show_default=True,
    help="OpenAPI 3.1, or JSON Schema 2020-12.",
)
def command(form: str) -> None:
    """Print the contract as an OpenAPI or JSON Schema document."""
    from memmock import contract

    document = contract.openapi() if form == "openapi" else contract.json_schema()
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))
