"""What is played when: rules over scenarios, the newest first.

A rule may hold for some calls only, for so many calls, or for a while; when it is used up, what was there
before holds again. Counting is atomic, so a rule for two calls is played to two of any number of clients.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memmock.documents import shown
from memmock.errors import MemmockError
from memmock.http import Request
from memmock.matching import FIELDS, differences
from memmock.plays import EVERYTHING, HTTP_ONLY, Play, Playable, chaos_parts, plan_parts, play_of
from memmock.scenarios import Scenario
from memmock.strictjson import shortened

__all__ = ["EVERYTHING", "HTTP_ONLY", "Play", "Playable", "Playbook", "Rule", "Step", "When"]

When = Mapping[str, Any] | Callable[[Request], bool]
"""Which calls a rule is for: those with these fields of a retrieval, or those that a function says."""

MOST_RULES = 100
"""How many rules may wait for their turn; more are a loop that forgot to use them."""


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
    expected: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(str(self.seed))  # as a number, -7 would be 7

    @property
    def step(self) -> Step | None:
        """The step whose turn it is; None when there is none left."""
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
            odds = [f"{step.play.spec}={odds}" for step, odds in zip(self.steps, self.odds, strict=True)]
            return ", ".join(odds)
        return ", ".join(
            f"{step.play.spec}*{step.times}" if step.times not in (None, 1) else step.play.spec
            for step in self.steps
        )

    @property
    def description(self) -> str:
        """What is played and to which calls, as a line to read."""
        parts = [f"{self} (seed {self.seed})" if self.odds else str(self)]
        if isinstance(self.when, Mapping):
            parts.append("when " + ", ".join(f"{name} is {value!r}" for name, value in self.when.items()))
        elif self.when is not None:
            parts.append("when a function says so")
        if self.until is not None:
            parts.append(f"for {max(0.0, self.until - time.monotonic()):.1f} s more")
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the rule as data: what it plays, for which calls, and how often it was played."""
        rule: dict[str, Any] = {"plan": str(self)} if self.planned else {"use": self.steps[0].play.spec}
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
        self.active = False
        """Whether there is any rule. A plain attribute: it is looked at for every call."""
        self._rules: list[Rule] = []
        self._plans: list[Rule] = []
        self._expected: list[Rule] = []
        self._lock = threading.Lock()

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
        expected: bool = True,
    ) -> None:
        """Play something from now on; without limits it takes the place of all rules before.

        Args:
            what: what to play.
            times: for so many calls.
            when: for these calls only.
            for_s: for so many seconds.
            parameters: those of the scenario.
            expected: whether somebody wants to know when it was never played.

        Raises:
            MemmockError: there is no such scenario, it cannot be played here, or a limit makes no sense.
        """
        play = self._play(what, parameters or {})
        if times is not None and not (
            _is_number(times) and isinstance(times, int) and 1 <= times <= _MOST_TIMES
        ):
            raise MemmockError(f"times must be an integer from 1 to {_MOST_TIMES:,}, not {_short(times)}")
        if for_s is not None and not (_is_number(for_s) and 0 < for_s < _MOST_S):
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
        expected = expected and play.scenario.door != "refuse" and play.scenario.name != "success"
        rule = Rule([Step(play, times)], when, until, expected=expected)
        self._add(rule, alone=times is None and when is None and for_s is None)

    def plan(self, text: str, *, must_finish: bool = True) -> None:
        """Play a plan, as "server-error*2, success"; then what was played before.

        Raises:
            MemmockError: the plan cannot be read, or a scenario cannot be played here.
        """
        steps = []
        for spec, times in plan_parts(text):
            play = self._play(spec, {})
            if play.scenario.door == "refuse":
                raise MemmockError(f"plan: {play.spec} cannot be counted, as nobody sees who is refused")
            steps.append(Step(play, times))
        self._add(Rule(steps, must_finish=must_finish, planned=True))

    def chaos(self, text: str, seed: int) -> None:
        """Play scenarios by chance, as "reset-mid-body=0.1, late=0.05"; the same seed gives the same draws.

        Raises:
            MemmockError: the text cannot be read, or a scenario cannot be played here.
        """
        steps, odds = [], []
        for spec, chance in chaos_parts(text):
            play = self._play(spec, {})
            if play.scenario.door:
                raise MemmockError(
                    f"chaos: {play.spec} comes before the request, so it cannot be drawn for one"
                )
            steps.append(Step(play))
            odds.append(chance)
        self._add(Rule(steps, odds=odds, seed=seed))

    def clear(self) -> None:
        """Forget all rules and plans."""
        with self._lock:
            self._rules.clear()
            self._plans.clear()
            self._expected.clear()
            self.active = False
        self.changed()

    def drop(self, *, planned: bool = False, drawn: bool = False) -> None:
        """Forget the plans, or what is played by chance."""
        with self._lock:
            self._rules = [
                rule for rule in self._rules if not (planned and rule.planned) and not (drawn and rule.odds)
            ]
            self._plans = [] if planned else self._plans
            self.active = bool(self._rules)
        self.changed()

    def _add(self, rule: Rule, *, alone: bool = False) -> None:
        with self._lock:
            self._drop_old()
            if alone:
                self._rules.clear()
            if len(self._rules) >= MOST_RULES:
                raise MemmockError(f"{MOST_RULES:,} rules wait to be played already; reset the mock first")
            self._rules.append(rule)
            self.active = True
            if rule.must_finish:
                self._plans.append(rule)
            if rule.expected and len(self._expected) < MOST_RULES:
                self._expected.append(rule)
        self.changed()

    def _play(self, what: Playable, parameters: Mapping[str, Any]) -> Play:
        return play_of(what, parameters, self.scenarios, self.abilities)

    # ---- playing

    def next(self, request: Request, retrieval: Mapping[str, Any]) -> Play | None:
        """Return what is to be played to a call, and count it; None for the honest answer."""
        for rule in self.rules:
            # a function may take its time, or change the rules: it is asked without the lock
            if rule.when is not None and not _matches(rule.when, request, retrieval):
                continue
            with self._lock:
                step = None if rule.over else rule.drawn() if rule.odds else rule.step
                if step is not None:
                    step.played += 1
                    return step.play
        return None

    def refuses(self) -> bool:
        """Whether connections are to be refused now."""
        if not self.active:
            return False
        with self._lock:
            step = self._at_the_door()
            return step is not None and step.play.scenario.door == "refuse"

    def greets(self) -> bool:
        """Whether a connection that was just made is to be served; if not, that is counted as a play."""
        if not self.active:
            return True
        with self._lock:
            step = self._at_the_door()
            if step is None or step.play.scenario.door != "reset":
                return True
            step.played += 1
            return False

    def is_open(self) -> bool:
        """Whether connections are served now; nothing is counted."""
        if not self.active:
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
            self.active = bool(self._rules)

    @property
    def unfinished(self) -> list[str]:
        """The plans that should have been played to their end and were not, each with how far it came."""
        found = []
        with self._lock:
            for rule in self._plans:
                if rule.step is not None:
                    played = sum(step.played for step in rule.steps)
                    total = sum(step.times or 0 for step in rule.steps)
                    came = f"was played {played} of {total} times; next would be {rule.step.play.spec}"
                    found.append(f"{shortened(str(rule), 200)} {came}")
        return found

    @property
    def unplayed(self) -> list[str]:
        """What was to be played by `use` and never was, for want of a call."""
        with self._lock:
            return [rule.steps[0].play.spec for rule in self._expected if not rule.steps[0].played]


_MOST_S = 86_400 * 365
_MOST_TIMES = 1_000_000


def _short(value: Any) -> str:
    return shown(value) if type(value) is int else repr(value)[:200]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    **dict.fromkeys(("query", "live_id", "reason", "time_hint"), ("text", (str,))),
    "memory_types": ("a list", (list, tuple, set)),
    "max_results": ("an integer", (int,)),
}


def _check_when(when: When | None) -> None:
    if when is None or callable(when):
        return
    if not isinstance(when, Mapping) or not when:
        raise MemmockError(
            f"when must be fields of a retrieval and their values, or a function, not {when!r}"
        )
    for name, value in when.items():
        if name not in FIELDS:
            raise MemmockError(f"when: a retrieval has no field {name!r}; its fields are {', '.join(FIELDS)}")
        kind, types = _KINDS[name]
        # an object that knows how to compare itself may be anything
        plain = isinstance(value, str | int | float | list | tuple | set | dict)
        if plain and (isinstance(value, bool) or not isinstance(value, types)):
            raise MemmockError(f"when: {name} is {kind}, so it is never {value!r}")


def _matches(when: When, request: Request, retrieval: Mapping[str, Any]) -> bool:
    if isinstance(when, Mapping):
        return not differences(when, retrieval)
    answer = when(request)
    if isinstance(answer, Awaitable):
        raise MemmockError(
            "when: the function is asynchronous, and must not be: it would hold for every call"
        )
    return bool(answer)
