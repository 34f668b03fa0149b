"""`memmock cassette`: look after recordings. Each subcommand is a module of this package."""

from __future__ import annotations

import importlib

import click

COMMANDS = ("show", "check", "diff", "redact", "verify", "convert")


class _Group(click.Group):
    """Finds its commands in the modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"memmock.cli.cassette.{cmd_name}").command
        return command


@click.group("cassette", cls=_Group, short_help="Look after cassettes: show, check, compare, redact.")
def command() -> None:
    """Look after cassettes, the files that recordings are in.

    They are those of vcrpy, in YAML or JSON. A file that cannot be read is named with its line and left as it
    is; nothing in it is run.
    """
