"""The catalogue of scenarios: everything that a provider can do to a consumer, by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from memmock.errors import MemmockError
from memmock.scenarios import answers, bodies, connection, sizes, statuses, timing
from memmock.scenarios.scenario import (
    FAMILIES,
    Family,
    Outcome,
    Parameter,
    Promise,
    Scenario,
    Stage,
)
from memmock.scenarios.statuses import MOVED

__all__ = [
    "CATALOGUE",
    "FAMILIES",
    "MOVED",
    "Family",
    "Outcome",
    "Parameter",
    "Promise",
    "Scenario",
    "Stage",
    "family",
    "members",
    "named",
]

CATALOGUE: dict[str, Scenario] = {
    scenario.name: scenario
    for module in (answers, statuses, bodies, sizes, timing, connection)
    for scenario in module.shelf.scenarios
}
"""All scenarios by name, in the order of the families."""

_NAMES = CATALOGUE | {alias: scenario for scenario in CATALOGUE.values() for alias in scenario.aliases}


def named(name: str, own: Mapping[str, Scenario] | None = None) -> Scenario:
    """Return the scenario with this name or alias, from the catalogue or from `own`.

    Raises:
        MemmockError: there is none; the message has the nearest names.
    """
    names = _NAMES | dict(own or {})
    found = names.get(name) or names.get(name.strip().lower().replace("_", "-"))
    if found is not None:
        return found
    if name in FAMILIES:
        some = ", ".join(scenario.name for scenario in family(name)[:3])
        raise MemmockError(f"{name!r} is a family of scenarios; choose one of it, as {some}")
    if "*" in name:
        raise MemmockError(f"there is no scenario {name!r}; to play one so many times, use a plan or `times`")
    raise _unknown(name, names)


def members(name: str) -> list[Scenario]:
    """Return the scenarios of the family with this name, or the one scenario that has it.

    Raises:
        MemmockError: there is neither; the message has the nearest names.
    """
    if name in FAMILIES:
        return family(name)
    if name in _NAMES:
        return [named(name)]
    if "(" in name:
        raise MemmockError(f"there is no scenario {name!r}; give the name alone, without parameters")
    raise _unknown(name, (*FAMILIES, *_NAMES))


def family(name: str) -> list[Scenario]:
    """Return the scenarios of a family, in the order of the catalogue.

    Raises:
        MemmockError: there is no such family.
    """
    if name not in FAMILIES:
        raise MemmockError(f"there is no family of scenarios {name!r}; they are {', '.join(FAMILIES)}")
    return [scenario for scenario in CATALOGUE.values() if scenario.family == name]


def _unknown(name: str, names: Iterable[str]) -> MemmockError:
    near = difflib.get_close_matches(name.lower(), list(names), n=3, cutoff=0.4)
    hint = f"near it are {', '.join(near)}; " if near else ""
    return MemmockError(f"there is no scenario {name!r}; {hint}`memmock scenarios` lists all")
