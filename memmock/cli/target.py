"""The options of commands that ask a provider, and the provider to ask when none is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from memmock.contract import (
    DEFAULT_AUTHORIZATION,
    DEFAULT_MAX_RESPONSE_BYTES,
    DEFAULT_TIMEOUT_MS,
    RetrievalConfig,
)


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for what a consumer puts up with."""
    options = (
        click.option(
            "--timeout-ms",
            type=click.IntRange(1, 86_400_000),
            metavar="MS",
            default=DEFAULT_TIMEOUT_MS,
            show_default=True,
            help="The consumer's limit for the whole exchange.",
        ),
        click.option(
            "--max-response-bytes",
            type=click.IntRange(1),
            metavar="BYTES",
            default=DEFAULT_MAX_RESPONSE_BYTES,
            show_default=True,
            help="The consumer's limit for the answer.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which provider to ask, and how."""
    options = (
        click.option(
            "--endpoint",
            envvar="MEMMOCK_ENDPOINT",
            metavar="URL",
            help="The provider; a mock of memmock's own when not given.  [env: MEMMOCK_ENDPOINT]",
        ),
        click.option(
            "--authorization",
            envvar="MEMMOCK_AUTHORIZATION",
            metavar="VALUE",
            default=DEFAULT_AUTHORIZATION,
            help="Sent verbatim as the Authorization header.  [env: MEMMOCK_AUTHORIZATION]",
        ),
        limit_options,
    )
    for option in reversed(options):
        command = option(command)
    return command


def refuse_target(why: str) -> None:
    """Refuse an option of `target_options` on the command line; `why` follows its name.

    Raises:
        click.UsageError: there is one.
    """
    context = click.get_current_context()
    for name in ("endpoint", "authorization", "timeout_ms", "max_response_bytes"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} {why}")


@contextmanager
def target(
    endpoint: str | None, authorization: str, timeout_ms: int, max_response_bytes: int
) -> Iterator[RetrievalConfig]:
    """Yield the configuration that leads to the provider, or to a mock that serves as long as it is needed.

    Raises:
        MemmockError: no live session could be created with these values.
    """

    def configured(url: str) -> RetrievalConfig:
        return RetrievalConfig(
            url, authorization, timeout_ms=timeout_ms, max_response_bytes=max_response_bytes
        )

    if endpoint is not None:
        yield configured(endpoint)
        return
    from memmock.mock import MockSettings
    from memmock.mock_server import MockServer

    with MockServer(MockSettings(authorization=authorization)) as server:
        yield configured(server.endpoint)
