"""What can be played, and how that is written: "late(factor=2)", "server-error*2, success", "late=0.05"."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.scenarios import CATALOGUE, Scenario, Stage, named

Playable = str | Scenario | Reply | Callable[[Request], Reply | Awaitable[Reply]]
"""What can be played: the name of a scenario, perhaps with parameters, or a reply of one's own."""

HTTP_ONLY = frozenset({"a kept connection"})
"""What a server can do that has the provider as its handler and knows nothing else."""
EVERYTHING = frozenset(scenario.needs for scenario in CATALOGUE.values() if scenario.needs)
"""What memmock's own servers can do: what any scenario needs."""


class Play(NamedTuple):
    """One thing to play: `reply` makes it. `spec` is its name with the parameters that were given."""

    spec: str
    scenario: Scenario
    parameters: dict[str, Any]

    def reply(self, stage: Stage) -> Reply:
        """Return what is played on `stage`."""
        return self.scenario.reply(stage, **self.parameters)


def play_of(
    what: Playable, parameters: Mapping[str, Any], own: Mapping[str, Scenario], abilities: frozenset[str]
) -> Play:
    """Return what is to be played.

    Args:
        what: the name of a scenario, perhaps with parameters, a scenario, or a reply of one's own.
        parameters: more parameters.
        own: scenarios by name beside those of the catalogue.
        abilities: what the server can do of what scenarios may need.

    Raises:
        MemmockError: there is no such scenario or parameter, or the server cannot play it.
    """
    if isinstance(what, int) and not isinstance(what, bool):
        raise MemmockError(f"what to play is the name of a scenario, and a name is text: write {str(what)!r}")
    if isinstance(what, str):
        name, given = _parsed(what)
        scenario = named(name, own)
        settings = scenario.settings({**given, **parameters})
    elif isinstance(what, Scenario):
        scenario, settings = what, what.settings(parameters)
    elif isinstance(what, Reply) or callable(what):
        if parameters:
            raise MemmockError(f"a reply of your own has no parameter {next(iter(parameters))!r}")
        scenario, settings = _own(what), {}
    else:
        raise MemmockError(f"what to play is the name of a scenario, a Reply or a function, not {what!r}")
    if scenario.needs and scenario.needs not in abilities:
        raise MemmockError(
            f"scenario {scenario.name} cannot be played here: it needs {scenario.needs}, which memmock's "
            f"own server has (the fixture memmock, `memmock serve`)"
        )
    spec = ", ".join(f"{name}={value}" for name, value in settings.items())
    return Play(f"{scenario.name}({spec})" if spec else scenario.name, scenario, settings)


def plan_parts(text: str) -> list[tuple[str, int]]:
    """Return the scenarios of a plan, as "server-error*2, success", and how often each is played.

    Raises:
        MemmockError: the text is not a plan.
    """
    parts = []
    for part in _parts(text, "plan"):
        spec, star, count = (word.strip() for word in part.partition("*"))
        if not spec or (star and not re.fullmatch("[0-9]+", count)):
            raise MemmockError(f"plan: {part!r} should be a scenario, or a scenario*N for N times")
        times = int(count[:20]) if star else 1
        if not 1 <= times <= _MOST_TIMES:
            raise MemmockError(f"plan: {part!r} must be played 1 to {_MOST_TIMES:,} times")
        parts.append((spec, times))
    return parts


def chaos_parts(text: str) -> list[tuple[str, float]]:
    """Return the scenarios of a chaos, as "reset-mid-body=0.1, late=0.05", and the chance of each.

    Raises:
        MemmockError: the text is not one, or the chances are not.
    """
    parts = []
    for part in _parts(text, "chaos"):
        found = re.fullmatch(r"(.*[^=\s])\s*=\s*((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE]-?[0-9]+)?)", part)
        if found is None or found[1].count("(") != found[1].count(")"):
            raise MemmockError(f"chaos: {part!r} should be a scenario=chance, as late=0.05")
        parts.append((found[1], float(found[2])))
    total = sum(chance for _, chance in parts)
    if not 0 < total <= 1 + 1e-9:
        raise MemmockError(f"chaos: the chances must be above 0 and at most 1 together, not {total:g}")
    return parts


_MOST_TIMES = 1_000_000


def _parts(text: str, what: str) -> list[str]:
    """Return the parts of a list that is separated by commas, those within parentheses left alone."""
    if not isinstance(text, str):
        example = "server-error*2, success" if what == "plan" else "reset-mid-body=0.1, late=0.05"
        raise MemmockError(f'{what}: it is text, as "{example}", not {type(text).__name__}')
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    if depth:
        raise MemmockError(
            f"{what}: a parenthesis is not {'closed' if depth > 0 else 'opened'} in {text[:200]!r}"
        )
    if not any(parts):
        raise MemmockError(f"{what}: it is empty")
    if not all(parts):
        raise MemmockError(f"{what}: a part of {text!r} is empty, is there a comma too many?")
    return parts


def _parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters in "late(factor=2)"."""
    found = re.fullmatch(r"([^()\s]+)\s*(?:\(([^()]*)\))?", spec.strip())
    if found is None:
        raise MemmockError(f"{spec!r} should be the name of a scenario, as late or late(factor=2)")
    given = {}
    for part in (found[2] or "").split(","):
        if part.strip():
            name, equals, value = (word.strip() for word in part.partition("="))
            if not (name and equals and value):
                raise MemmockError(f"{spec!r}: {part.strip()!r} should be parameter=value")
            given[name] = value
    return found[1], given


def _own(what: Reply | Callable[[Request], Reply | Awaitable[Reply]]) -> Scenario:
    """Return a scenario of one's own."""
    if isinstance(what, Reply):
        return Scenario.own("a reply of your own", lambda stage: what)
    name = getattr(what, "__name__", type(what).__name__)
    called = "a function of your own" if name == "<lambda>" else name
    return Scenario.own(called, lambda stage: what(stage.request))
