"""What the commands about cassettes share: reading one, its secrets, what is wrong with it, how old it is."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from memmock.cassette import unpacked
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.cassette import Interaction
    from memmock.http import Headers, Request
    from memmock.redaction import Redactor
    from memmock.rules import Violation


def loaded(path: str) -> list[Interaction]:
    """Return the interactions of a cassette, none with a Content-Encoding that its body does not have.

    Raises:
        MemmockError: it is no cassette, or one that has to be converted first.
    """
    from memmock.cassette_file import load

    try:
        return [unpacked(each) for each in load(path)]
    except MemmockError as error:
        raise _explained(path, error) from None


def _explained(path: str, error: MemmockError) -> MemmockError:
    from memmock.cassette_import import is_cassetter

    if not Path(path).exists():
        return MemmockError(f"{path}: No such file or directory")
    if not path.lower().endswith((".har", ".toml")) and not is_cassetter(path):
        return error
    what = "a HAR file" if path.lower().endswith(".har") else "a cassette of cassetter"
    return MemmockError(
        f"{path}: {what}: make a cassette of it with memmock cassette convert {path} NEW.yaml"
    )


# ---- what was asked


def retrieval(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request holds; empty when it holds none."""
    from memmock import strictjson

    try:
        asked = strictjson.parse_quickly(request.body)
    except ValueError:
        return {}
    return asked if isinstance(asked, dict) else {}


def called(request: Request) -> str:
    """Return a request in a few words: its query, or else its method and path."""
    from memmock.strictjson import printable

    query = retrieval(request).get("query")
    return printable(query if isinstance(query, str) else f"{request.method} {request.path}")


def matcher_names(match_on: str | None) -> tuple[str, ...]:
    """Return what must be the same, from the value of --match-on."""
    from memmock.matching import MATCH_ON

    return MATCH_ON if match_on is None else tuple(name.strip() for name in match_on.split(","))


# ---- secrets


class StillThere(MemmockError):
    """A secret would still be in an interaction, or it cannot be told."""


class Hidden(NamedTuple):
    """An interaction without secrets, and where they were; the interaction itself when there were none."""

    interaction: Interaction
    places: list[str]


def learn(interactions: Iterable[Interaction], redactor: Redactor) -> None:
    """Let a redactor see all interactions, so that what is secret in one is hidden in all."""
    for each in map(unpacked, interactions):
        with contextlib.suppress(MemmockError):
            redactor.exchange(each.request, each.reply)


def hidden(recorded: Interaction, redactor: Redactor) -> Hidden:
    """Return an interaction with its secrets hidden.

    Raises:
        MemmockError: the body cannot be looked into, or a secret would still be there.
    """
    from memmock.recorder import redacted

    plain = unpacked(recorded)
    shown = redacted(plain, redactor)
    places = _places(plain, shown)
    return Hidden(shown if places else recorded, places)


def all_hidden(recorded: Iterable[Interaction], redactor: Redactor) -> list[Hidden]:
    """Return interactions with the secrets of each hidden in all.

    Raises:
        StillThere: as `hidden`; the message has the number of the interaction.
    """
    recorded = list(recorded)
    learn(recorded, redactor)
    found = []
    for number, each in enumerate(recorded, 1):
        try:
            found.append(hidden(each, redactor))
        except MemmockError as error:
            raise StillThere(f"interaction {number}: {reason(error)}") from None
    return found


def as_shown(recorded: Interaction, redactor: Redactor) -> Interaction:
    """Return an interaction without secrets, its bodies decoded; as it is where they cannot be."""
    plain = unpacked(recorded)
    try:
        request, reply = redactor.exchange(plain.request, plain.reply)
    except MemmockError:
        return plain._replace(request=redactor.request(plain.request))
    return plain._replace(request=request, reply=reply)


def reason(error: MemmockError) -> str:
    """Return why an interaction cannot be redacted."""
    return str(error).removeprefix("a call was not recorded: ")


def _places(plain: Interaction, shown: Interaction) -> list[str]:
    if plain == shown:
        return []
    places = []
    for what in ("request", "reply"):
        before, after = getattr(plain, what).headers, getattr(shown, what).headers
        names = [old[0] for old, new in zip(_lasting(before), _lasting(after), strict=True) if old != new]
        places += [f"the header {name} of the {what}" for name in dict.fromkeys(names)]
    if plain.uri != shown.uri:
        places.insert(0, "the address")
    if plain.reason != shown.reason:
        places.append("the words after the status")
    bodies = _decoded(plain)
    for what, before in zip(("request", "reply"), bodies, strict=True):
        if getattr(shown, what).body != before:
            places.append(f"the body of the {what}")
    return places


def _lasting(headers: Headers) -> Headers:
    """Return the headers that do not change when a body is decoded."""
    return tuple(pair for pair in headers if pair[0].lower() not in ("content-encoding", "content-length"))


def _decoded(plain: Interaction) -> tuple[bytes, bytes]:
    """Return both bodies decoded, with nothing hidden."""
    from memmock.redaction import Redactor

    def bare(headers: Headers) -> Headers:
        return tuple(pair for pair in headers if pair[0].lower() == "content-encoding")

    request, reply = Redactor().exchange(
        plain.request._replace(target="/", headers=bare(plain.request.headers)),
        plain.reply._replace(headers=bare(plain.reply.headers)),
    )
    return request.body, reply.body


# ---- rules


def violations(recorded: Interaction) -> list[Violation]:
    """Return what is wrong with an interaction by the rules as they are now.

    Many recorders take the Authorization out. Without one the request is only judged by what was recorded.
    """
    from memmock.rules import reply_violations, request_violations

    found = [*request_violations(recorded.request), *reply_violations(recorded.reply, recorded.request)]
    if recorded.request.header("Authorization") is None and "REQ004" not in recorded.violations:
        found = [each for each in found if each.code != "REQ004"]
    return found


# ---- age

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return the seconds of a duration that is written as `30d`; a callback for options."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})([smhdw])", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} must be a whole number and s, m, h, d or w, as 30d or 12h")
    return int(found[1]) * _UNITS[found[2]]


def age_s(recorded: Interaction) -> float | None:
    """Return how old an interaction is, in seconds; None when it does not say."""
    try:
        at = datetime.fromisoformat(recorded.recorded_at)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - at).total_seconds())


def in_words(seconds: float | None) -> str:
    """Return a duration in its largest unit, as `3 d`."""
    if seconds is None:
        return "-"
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"
