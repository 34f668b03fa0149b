"""The options that say what is taken out of recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from memmock.redaction import Redactor


def redact_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for what is hidden beside the usual headers."""
    options = (
        click.option(
            "--redact-header", "redact_headers", multiple=True, metavar="NAME", help="Hide this header too."
        ),
        click.option(
            "--redact-field",
            "redact_fields",
            multiple=True,
            metavar="NAME",
            help="Hide this field of bodies, at any depth.",
        ),
        click.option(
            "--redact-pattern",
            "redact_patterns",
            multiple=True,
            metavar="REGEX",
            help="Hide whatever this regular expression matches.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def redactor(
    headers: Iterable[str], fields: Iterable[str], patterns: Iterable[str], *secrets: str | None
) -> Redactor:
    """Return what takes out all that the options name, and these secrets.

    Raises:
        MemmockError: a pattern is not a regular expression.
    """
    from memmock.redaction import Redactor

    known = [secret for secret in secrets if secret is not None]
    return Redactor(secrets=known, headers=headers, fields=fields, patterns=patterns)
