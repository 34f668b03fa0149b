"""The options of commands that serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from memmock.contract import DEFAULT_PATH

DEFAULT_PORT = 8765


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def address_options(port: int = DEFAULT_PORT) -> Decorator:
    """Return a decorator that adds the options for where to listen."""
    return _all(
        click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on."),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=port,
            show_default=True,
            help="The port to listen on; 0 takes a free one.",
        ),
    )


def log_option(what: str = "call") -> Decorator:
    """Return a decorator that adds the option for what is printed: one line for each `what`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help=f"json prints one line when ready and one a {what}.",
    )


def listen_options(
    path: str | None = DEFAULT_PATH,
    path_help: str = "Where to answer; any gateway prefix may stand before it.",
) -> Decorator:
    """Return a decorator that adds the options for where to listen and answer, and for what is printed."""
    return _all(
        address_options(),
        click.option("--path", default=path, show_default=path is not None, help=path_help),
        log_option(),
    )


def _all(*options: Decorator) -> Decorator:
    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
