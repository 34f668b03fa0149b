"""The `memmock` command. Each subcommand is a module of this package, imported when it is used."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from io import TextIOWrapper
from typing import Any

import click

from memmock import __version__
from memmock.errors import MemmockError

COMMANDS = (
    "serve",
    "ask",
    "demo",
    "check",
    "fuzz",
    "check-consumer",
    "fuzz-consumer",
    "live",
    "reply-check",
    "record",
    "replay",
    "cassette",
    "scenarios",
    "rules",
    "schema",
)


class _Group(click.Group):
    """Finds its commands in the modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"memmock.cli.{cmd_name.replace('-', '_')}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemmockError as error:
            raise _Unable(str(error)) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # as in `memmock rules | head`: click ends quietly
                raise
            raise _Unable(f"cannot write the output: {error.strerror}") from None


class _Unable(click.ClickException):
    """memmock cannot do what it was asked."""

    exit_code = 2


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memmock", message="%(prog)s %(version)s")
def main() -> None:
    """Test both ends of the memory-retrieval contract, each without the other."""
    for number in range(3):  # a supervisor may have closed them, and sockets must not take their places
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a console that cannot show Chinese is no reason to stop
            stream.reconfigure(errors="backslashreplace")
