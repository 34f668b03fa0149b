"""What is played when: rules over scenarios, the newest first.

A rule may hold for some calls only, for so many calls, or for a while; when it is used up, what was there
before holds again. Counting is atomic, so a rule for two calls is played to two of any number of clients.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.matching import FIELDS, differences
from memmock.scenarios import CATALOGUE, Scenario, Stage, named

When = Mapping[str, Any] | Callable[[Request], bool]
"""Which calls a rule is for: those with these fields of a retrieval, or those that a function says."""

Playable = str | Scenario | Reply | Callable[[Request], Reply | Awaitable[Reply]]
"""What can be played: the name of a scenario, perhaps with parameters, or a reply of one's own."""

HTTP_ONLY = frozenset({"a kept connection"})
"""What a server can do that has the provider as its handler and knows nothing else."""
EVERYTHING = frozenset(scenario.needs for scenario in CATALOGUE.values() if scenario.needs)
"""What memmock's own servers can do: what any scenario needs."""

MOST_RULES = 1000
"""How many rules may wait for their turn; more are a loop that forgot to use them."""


class Play(NamedTuple):
    """One thing to play: `reply` makes it. `spec` is its name with the parameters that were given."""

    spec: str
    scenario: Scenario
    parameters: dict[str, Any]

    def reply(self, stage: Stage) -> Reply:
        """Return what is played on `stage`."""
        return self.scenario.reply(stage, **self.parameters)


@dataclass
class Step:
    """A play and how many times it is to be played; None for always."""

    play: Play
    times: int | None = None
    played: int = 0

    @property
    def over(self) -> bool:
        """Whether it was played often enough."""
        return self.times is not None and self.played >= self.times


@dataclass
class Rule:
    """Steps that are played one after the other, to the calls they are for.

    With `odds`, each call draws one of the steps, or none of them.
    """

    steps: list[Step]
    when: When | None = None
    until: float | None = None
    odds: list[float] = field(default_factory=list)
    seed: int = 0
    must_finish: bool = False
    planned: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    @property
    def step(self) -> Step | None:
        """The step whose turn it is; None when there is none left or it is drawn."""
        if self.odds:
            return None
        return next((step for step in self.steps if not step.over), None)

    @property
    def over(self) -> bool:
        """Whether the rule is used up."""
        if self.until is not None and time.monotonic() >= self.until:
            return True
        return not self.odds and self.step is None

    def drawn(self) -> Step | None:
        """Return the step that chance chooses for the next call."""
        number = self._random.random()
        for step, odds in zip(self.steps, self.odds, strict=True):
            number -= odds
            if number < 0:
                return step
        return None

    def __str__(self) -> str:
        if self.odds:
            odds = [f"{step.play.spec}={odds:g}" for step, odds in zip(self.steps, self.odds, strict=True)]
            return ", ".join(odds)
        return ", ".join(
            f"{step.play.spec}*{step.times}" if step.times not in (None, 1) else step.play.spec
            for step in self.steps
        )

    def to_json(self) -> dict[str, Any]:
        """Return the rule as data: what it plays, for which calls, and how often it was played."""
        rule: dict[str, Any] = {"plan" if self.planned else "use": str(self)}
        if self.odds:
            rule = {"chaos": str(self), "seed": self.seed}
        if self.when is not None:
            rule["when"] = dict(self.when) if isinstance(self.when, Mapping) else "a function"
        if self.until is not None:
            rule["for_s"] = round(max(0.0, self.until - time.monotonic()), 3)
        steps = [{"play": step.play.spec, "times": step.times, "played": step.played} for step in self.steps]
        return {**rule, "steps": steps}


class Playbook:
    """The rules of one mock; may be changed and played from any thread.

    Args:
        scenarios: scenarios by name beside those of the catalogue.
        abilities: what the server can do of what scenarios may need.
    """

    def __init__(
        self, scenarios: Mapping[str, Scenario] | None = None, abilities: frozenset[str] = HTTP_ONLY
    ) -> None:
        self.scenarios = dict(scenarios or {})
        self.abilities = abilities
        self.changed: Callable[[], None] = lambda: None
        """Called after each change of the rules."""
        self._rules: list[Rule] = []
        self._plans: list[Rule] = []
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Whether there is any rule."""
        return bool(self._rules)

    @property
    def rules(self) -> list[Rule]:
        """The rules that hold, the newest first."""
        with self._lock:
            self._drop_old()
            return self._rules[::-1]

    # ---- changing the rules

    def use(
        self,
        what: Playable,
        *,
        times: int | None = None,
        when: When | None = None,
        for_s: float | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Play something from now on; without limits it takes the place of all rules before.

        Args:
            what: what to play.
            times: for so many calls.
            when: for these calls only.
            for_s: for so many seconds.
            parameters: those of the scenario.

        Raises:
            MemmockError: there is no such scenario, it cannot be played here, or a limit makes no sense.
        """
        play = self._play(what, parameters or {})
        if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
            raise MemmockError(f"times must be an integer of at least 1, not {times!r}")
        if for_s is not None and not (isinstance(for_s, int | float) and 0 < for_s < _MOST_S):
            raise MemmockError(f"for_s must be a number of seconds above 0, not {for_s!r}")
        _check_when(when)
        if play.scenario.door and when is not None:
            raise MemmockError(
                f"{play.spec} comes before the request, so it cannot depend on one: leave `when` out"
            )
        if play.scenario.door == "refuse" and times is not None:
            raise MemmockError(
                f"{play.spec} cannot be counted, as nobody sees who is refused: use for_s, not times"
            )
        until = None if for_s is None else time.monotonic() + for_s
        self._add(
            Rule([Step(play, times)], when, until), alone=times is None and when is None and for_s is None
        )

    def plan(self, text: str, *, must_finish: bool = True) -> None:
        """Play a plan, as "server-error*2, success"; then what was played before.

        Raises:
            MemmockError: the plan cannot be read, or a scenario cannot be played here.
        """
        steps = []
        for part in _parts(text, "plan"):
            spec, star, count = part.rpartition("*") if part.rstrip()[-1].isdigit() else (part, "", "1")
            if not star and "*" in part:
                raise MemmockError(f"plan: {part!r} should be a scenario, or a scenario*N for N times")
            play = self._play(spec if star else part, {})
            if play.scenario.door == "refuse":
                raise MemmockError(f"plan: {play.spec} cannot be counted, as nobody sees who is refused")
            if not 1 <= int(count) <= _MOST_TIMES:
                raise MemmockError(f"plan: {part!r} must be played 1 to {_MOST_TIMES:,} times")
            steps.append(Step(play, int(count)))
        self._add(Rule(steps, must_finish=must_finish, planned=True))

    def chaos(self, text: str, seed: int) -> None:
        """Play scenarios by chance, as "reset-mid-body=0.1, late=0.05"; the same seed gives the same draws.

        Raises:
            MemmockError: the text cannot be read, or a scenario cannot be played here.
        """
        steps, odds = [], []
        for part in _parts(text, "chaos"):
            spec, _, chance = part.rpartition("=")
            if (
                not spec
                or spec.count("(") != spec.count(")")
                or not re.fullmatch(r"\s*[0-9.]+(e-?\d+)?\s*", chance)
            ):
                raise MemmockError(f"chaos: {part!r} should be a scenario=chance, as late=0.05")
            play = self._play(spec, {})
            if play.scenario.door:
                raise MemmockError(
                    f"chaos: {play.spec} comes before the request, so it cannot be drawn for one"
                )
            try:
                odds.append(float(chance))
            except ValueError:
                raise MemmockError(f"chaos: {chance!r} is not a number") from None
            steps.append(Step(play))
        if not 0 < sum(odds) <= 1 + 1e-9:
            raise MemmockError(
                f"chaos: the chances must be above 0 and at most 1 together, not {sum(odds):g}"
            )
        self._add(Rule(steps, odds=odds, seed=seed))

    def clear(self) -> None:
        """Forget all rules and plans."""
        with self._lock:
            self._rules.clear()
            self._plans.clear()
        self.changed()

    def _add(self, rule: Rule, *, alone: bool = False) -> None:
        with self._lock:
            self._drop_old()
            if alone:
                self._rules.clear()
            if len(self._rules) >= MOST_RULES:
                raise MemmockError(f"{MOST_RULES:,} rules wait to be played already; reset the mock first")
            self._rules.append(rule)
            if rule.must_finish:
                self._plans.append(rule)
        self.changed()

    def _play(self, what: Playable, parameters: Mapping[str, Any]) -> Play:
        if isinstance(what, str):
            name, given = _parsed(what)
            scenario = named(name, self.scenarios)
            given.update(parameters)
            settings = scenario.settings(given)
        elif isinstance(what, Scenario):
            scenario, settings = what, what.settings(parameters)
        elif isinstance(what, Reply) or callable(what):
            if parameters:
                raise MemmockError(f"a reply of your own has no parameter {next(iter(parameters))!r}")
            scenario, settings = _own(what), {}
        else:
            raise MemmockError(f"what to play is the name of a scenario, a Reply or a function, not {what!r}")
        if scenario.needs and scenario.needs not in self.abilities:
            raise MemmockError(
                f"scenario {scenario.name} cannot be played here: it needs {scenario.needs}, which memmock's "
                f"own server has (the fixture memmock, `memmock serve`)"
            )
        spec = ", ".join(f"{name}={value}" for name, value in settings.items())
        return Play(f"{scenario.name}({spec})" if spec else scenario.name, scenario, settings)

    # ---- playing

    def next(self, request: Request, retrieval: Mapping[str, Any]) -> Play | None:
        """Return what is to be played to a call, and count it; None for the honest answer."""
        with self._lock:
            self._drop_old()
            for rule in reversed(self._rules):
                if rule.when is None or _matches(rule.when, request, retrieval):
                    step = rule.drawn() if rule.odds else rule.step
                    if step is not None:
                        step.played += 1
                        return step.play
        return None

    def refuses(self) -> bool:
        """Whether connections are to be refused now."""
        if not self._rules:
            return False
        with self._lock:
            step = self._at_the_door()
            return step is not None and step.play.scenario.door == "refuse"

    def greets(self) -> bool:
        """Whether a connection that was just made is to be served; if not, that is counted as a play."""
        if not self._rules:
            return True
        with self._lock:
            step = self._at_the_door()
            if step is None or step.play.scenario.door != "reset":
                return True
            step.played += 1
            return False

    def is_open(self) -> bool:
        """Whether connections are served now; nothing is counted."""
        if not self._rules:
            return True
        with self._lock:
            step = self._at_the_door()
            return step is None or step.play.scenario.door is None

    def _at_the_door(self) -> Step | None:
        """Return the step that holds for whoever comes."""
        self._drop_old()
        return next(
            (rule.step for rule in reversed(self._rules) if rule.when is None and not rule.odds), None
        )

    def _drop_old(self) -> None:
        if any(rule.over for rule in self._rules):
            self._rules = [rule for rule in self._rules if not rule.over]

    @property
    def unfinished(self) -> list[str]:
        """The plans that should have been played to their end and were not, each with how far it came."""
        with self._lock:
            found = []
            for rule in self._plans:
                if rule.step is not None:
                    played = sum(step.played for step in rule.steps)
                    total = sum(step.times or 0 for step in rule.steps)
                    found.append(
                        f'"{rule}" was played {played} of {total} times; next would be {rule.step.play.spec}'
                    )
            return found


_MOST_S = 86_400 * 365
_MOST_TIMES = 1_000_000


def _parts(text: str, what: str) -> list[str]:
    """Return the parts of a list that is separated by commas, those within parentheses left alone."""
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    if not all(parts):
        raise MemmockError(
            f"{what}: there is nothing between two commas in {text!r}"
            if any(parts)
            else f"{what}: it is empty"
        )
    return parts


def _parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters in "late(factor=2)"."""
    found = re.fullmatch(r"\s*([^()\s]+)\s*(?:\(([^()]*)\))?\s*", spec)
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


def _check_when(when: When | None) -> None:
    if when is None or callable(when):
        return
    if not isinstance(when, Mapping) or not when:
        raise MemmockError(
            f"when must be fields of a retrieval and their values, or a function, not {when!r}"
        )
    for name in when:
        if name not in FIELDS:
            raise MemmockError(f"when: a retrieval has no field {name!r}; its fields are {', '.join(FIELDS)}")


def _matches(when: When, request: Request, retrieval: Mapping[str, Any]) -> bool:
    return not differences(when, retrieval) if isinstance(when, Mapping) else bool(when(request))
