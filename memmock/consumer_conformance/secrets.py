"""What may be a secret in the command of a consumer and in what it wrote, and its way out of a report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator

from memmock.consumer_conformance.finding import Finding
from memmock.redaction import Redactor, mask_of
from memmock.redaction.places import is_secret

Hide = Callable[[str], str]
"""Takes secrets out of a text."""
_SHORTEST = 4
"""A shorter value may stand in any text by chance."""
_NAMED = re.compile(
    r"""([\w-]+)["']?\ ?[:=]\ ?["']?(?=((?:(?:Bearer|Basic|Token)\ )?[A-Za-z0-9._~+/=-]{8,}))""", re.VERBOSE
)
"""A name and what may be its secret, as a log or a traceback shows them."""

_WITH_SCHEME = re.compile(r"\b(?:Bearer|Basic|Token)\s+([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
"""A credential as it stands in a header."""


def secrets_of(command: str, findings: Iterable[Finding] = ()) -> tuple[str, ...]:
    """Return what must not be shown of a consumer.

    Args:
        command: as it is written in a shell, or the name of a function.
        findings: what the consumer wrote to standard error meanwhile is searched too. What memmock gave it to
            authorize itself is no secret.
    """
    found = list(_in_command(command))
    for finding in findings:
        for seen in finding.seen:
            ours = str(seen.memory_retrieval.get("authorization", ""))
            found += [value for value in _in_log(seen.told.errors) if value not in ours]
    return tuple(dict.fromkeys(value for value in found if len(value) >= _SHORTEST))


def hiding(command: str, findings: Iterable[Finding] = ()) -> Hide:
    """Return what takes the secrets of a consumer out of a text; the arguments are those of `secrets_of`."""
    secrets = secrets_of(command, findings)
    redactor, mask = Redactor(secrets=secrets), mask_of(*secrets)
    return lambda text: mask(redactor.text(text))


def _in_command(command: str) -> Iterator[str]:
    try:
        words = shlex.split(command)
    except ValueError:  # the name of a function
        return
    for n, word in enumerate(words):
        yield from _in_log(word)
        name, mark, value = word.partition("=")
        if not is_secret(name.lstrip("-")):
            continue
        if mark:
            yield value
        elif word.startswith("-") and n + 1 < len(words):
            yield words[n + 1]


def _in_log(text: str) -> Iterator[str]:
    yield from _WITH_SCHEME.findall(text)
    for name, value in _NAMED.findall(text):
        has_scheme = " " in value
        if is_secret(name) and (has_scheme or re.search(r"\d", value)):
            yield value.strip(".")
