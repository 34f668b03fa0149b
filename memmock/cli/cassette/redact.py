"""`memmock cassette redact`: take secrets out of cassettes that were recorded without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from memmock.cli.cassette.interactions import StillThere, all_hidden, loaded
from memmock.cli.redacting import redact_options, redactor
from memmock.cli.text import count

if TYPE_CHECKING:
    from memmock.cassette import Interaction
    from memmock.cli.cassette.interactions import Hidden
    from memmock.redaction import Redactor


@click.command("redact", short_help="Take secrets out of cassettes, in place.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@redact_options
@click.option(
    "--authorization",
    envvar="MEMMOCK_UPSTREAM_AUTHORIZATION",
    metavar="VALUE",
    help="Hide this value wherever it occurs.  [env: MEMMOCK_UPSTREAM_AUTHORIZATION]",
)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 when something would change.")
def command(
    files: tuple[str, ...],
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    redact_patterns: tuple[str, ...],
    authorization: str | None,
    check: bool,
) -> None:
    """Hide the secrets in cassettes, and say where they were.

    Credentials in the usual headers and in addresses are always hidden, and their values wherever else they
    occur. A file in which there are none is not written; of one that is, comments are lost.

    Exits with 1 when something cannot be hidden; that file stays as it is.
    """
    failed = changed = False
    cassettes = {file: loaded(file) for file in files}  # when one cannot be read, none is changed
    for file, interactions in cassettes.items():
        hides = redactor(redact_headers, redact_fields, redact_patterns, authorization)
        try:
            found = all_hidden(interactions, hides)
            if not check and any(each.places for each in found):
                found = _rewritten(file, hides)
        except StillThere as error:
            failed = True
            click.echo(f"memmock: {file}: {error}; the file is as it was", err=True)
            continue
        changed = changed or any(each.places for each in found)
        click.echo("\n".join(_report(file, found, "would change" if check else "changed")))
    if failed or (check and changed):
        raise SystemExit(1)


def _rewritten(file: str, hides: Redactor) -> list[Hidden]:
    """Hide the secrets in a file, and return what it holds then."""
    from memmock.cassette_file import update

    found: list[Hidden] = []

    def change(old: list[Interaction]) -> list[Interaction]:
        found[:] = all_hidden(old, hides)
        return [each.interaction for each in found]

    update(file, change)
    return found


def _report(file: str, found: Sequence[Hidden], verb: str) -> list[str]:
    n = sum(bool(each.places) for each in found)
    if not n:
        return [f"{file}: nothing to hide in {count(len(found), 'interaction')}"]
    lines = [f"{file}: {n} of {count(len(found), 'interaction')} {verb}"]
    for number, each in enumerate(found, 1):
        if each.places:
            lines.append(f"  interaction {number}: {', '.join(each.places)}")
    return lines
