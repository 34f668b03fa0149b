"""`memmock cassette convert`: make a cassette of a recording in another form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memmock.cli.cassette.interactions import StillThere, all_hidden
from memmock.cli.redacting import redact_options, redactor
from memmock.cli.text import count
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.cassette_import import Imported


@click.command("convert", short_help="Make a cassette of another one, of cassetter's, or of a HAR file.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@redact_options
@click.option(
    "--authorization",
    envvar="MEMMOCK_UPSTREAM_AUTHORIZATION",
    metavar="VALUE",
    help="Hide this value wherever it occurs.  [env: MEMMOCK_UPSTREAM_AUTHORIZATION]",
)
@click.option("--force", is_flag=True, help="Replace OUT when it is there already.")
def command(
    source: str,
    target: str,
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    redact_patterns: tuple[str, ...],
    authorization: str | None,
    force: bool,
) -> None:
    """Make the cassette OUT, .yaml or .json, of the recording IN, and say what was left out.

    IN is a cassette of vcrpy (.yaml, .json), one of cassetter (.yaml, .toml), or a HAR file as browsers save
    it (.har). Credentials are hidden.
    """
    from memmock.cassette_file import save

    _refuse(source, target, force)
    imported = _read(source)
    if imported.left_out and not imported.interactions:
        raise MemmockError(f"{source}: nothing in it can be replayed: {'; '.join(imported.left_out[:3])}")
    hides = redactor(redact_headers, redact_fields, redact_patterns, authorization)
    try:
        found = all_hidden(imported.interactions, hides)
    except StillThere as error:
        raise MemmockError(f"{source}: {error}; nothing was written") from None
    save(target, [each.interaction for each in found])
    secret = sum(bool(each.places) for each in found)
    click.echo(
        f"{target}: {count(len(found), 'interaction')} of {source}"
        f"{f', {secret} with secrets that are hidden now' if secret else ''}"
    )
    for what in imported.left_out:
        click.echo(hides.text(f"  left out: {what}"))


def _read(source: str) -> Imported:
    """Return what is in a recording of any kind; what a .yaml, .yml or .json file is, its content tells."""
    from memmock.cassette_file import load
    from memmock.cassette_import import Imported, is_cassetter, read
    from memmock.documents import SUFFIXES

    if Path(source).suffix.lower() not in SUFFIXES:
        return read(source)
    try:
        interactions = load(source)
    except MemmockError:
        if not is_cassetter(source):
            raise
        return read(source)
    if not interactions and is_cassetter(source):
        return read(source)
    return Imported(interactions, [])


def _refuse(source: str, target: str, force: bool) -> None:
    one, other = Path(source), Path(target)
    if one.exists() and other.exists() and one.samefile(other):
        raise MemmockError(f"{target}: IN and OUT are the same file; redact changes one in place")
    if other.is_dir():
        raise MemmockError(f"{target}: not a file")
    if other.exists() and not force:
        raise MemmockError(f"{target}: is there already; --force replaces it")
