"""What a scenario is: a named way in which a provider may behave, and what to expect of it.

A scenario turns the stage (the request, the honest answer, the consumer's limits) into a reply. What it
promises to put on the wire is written down beside it, apart from the code that does it, so that
`verification` can compare the two.
"""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from memmock import strictjson
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_MAX_RESULTS, DEFAULT_TIMEOUT_MS
from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.tool_result import ErrorCode

Family = Literal["answers", "statuses", "bodies", "sizes", "timing", "connection", "own"]
FAMILIES: tuple[Family, ...] = get_args(Family)[:-1]
"""The families of the catalogue; scenarios of one's own are in none of them."""

Outcome = Literal["ok"] | ErrorCode
"""What a good consumer gives the model: memories, or one of the six errors."""

End = Literal["open", "close", "reset", "hang", "endless", "refused"]
"""How a scenario ends on the wire: the connection stays open after the reply, is closed (FIN) or reset
(RST), is left without the rest of the reply, gets bytes until the client leaves, or is never made."""

Door = Literal["refuse", "reset"]
"""What is done to a connection before there is a request on it."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What must arrive on the wire.

    `status` is that of the reply, None when no readable status line comes. `replies` counts the complete
    replies, interim ones left out. `late` means that no complete reply is there when the consumer's time is
    over.
    """

    end: End
    status: int | None
    replies: int
    late: bool


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a scenario plays on.

    `answer` gives the honest answer to the request. `elsewhere` gives the URL of the same provider at another
    port; `path` is where it answers at this one. No more than `most` memories are played with. Times are in
    seconds.
    """

    request: Request
    answer: Callable[[], Reply]
    memory_types: Sequence[str] = ()
    max_results: int = DEFAULT_MAX_RESULTS
    timeout_s: float = DEFAULT_TIMEOUT_MS / 1000
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
    path: str = "/"
    elsewhere: Callable[[], str] | None = None
    most: int = 1_000_000

    @cached_property
    def memories(self) -> list[dict[str, Any]]:
        """The memories of the honest answer, two fixed ones when it has none."""
        value = strictjson.parse(self.answer().body)
        memories = value["memories"] or self.fixed("用户喜欢喝茉莉花茶。", "用户下班后常去江边散步。")
        return list(memories[: self.most])

    def fixed(self, *summaries: str, **fields: Any) -> list[dict[str, Any]]:
        """Return memories with these summaries, of a kind that was asked for and not more than that."""
        return [
            {
                "id": f"fixed-{number}",
                "summary": summary,
                "type": self.memory_types[0] if self.memory_types else "other",
                "confidence": 0.9,
                "updated_at": "2026-11-30T20:15:00+08:00",
                "source": "long_term_memory",
                **fields,
            }
            for number, summary in enumerate(summaries[: min(self.max_results, self.most)], 1)
        ]


@dataclass(frozen=True)
class Parameter:
    """What can be changed about a scenario: a number, with a default."""

    name: str
    kind: type[int] | type[float]
    default: int | float

    def value(self, given: Any, scenario: str) -> int | float:
        """Return a value that was given, perhaps as text, as a number of the right kind.

        Raises:
            MemmockError: it is none, or out of all proportion.
        """
        value = given
        if isinstance(given, str):
            with contextlib.suppress(ValueError):
                value = self.kind(given)
        fits = isinstance(value, int) if self.kind is int else isinstance(value, int | float)
        if not fits or isinstance(value, bool) or not 0 <= value <= MOST:
            what = "an integer" if self.kind is int else "a number"
            raise MemmockError(
                f"scenario {scenario}: {self.name} must be {what} from 0 to {MOST:,}, not {given!r}"
            )
        return self.kind(value)


MOST = 1_000_000_000
"""No parameter may be larger: a scenario is meant to end."""


@dataclass(frozen=True, repr=False)
class Scenario:
    """A named behaviour of a provider.

    `outcomes` is what a good consumer may show. `door` is set for the two that meet a client before it has
    asked. `aliases` are other names, as the number of a status. `needs` is what a server must be able to do,
    empty when every server can play it.
    """

    name: str
    family: Family
    summary: str
    outcomes: tuple[Outcome, ...]
    promise: Promise
    make: Callable[..., Reply]
    parameters: tuple[Parameter, ...] = ()
    door: Door | None = None
    aliases: tuple[str, ...] = ()
    needs: str = ""

    def __repr__(self) -> str:
        return f"<Scenario {self.name}>"

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that were given as values of the right kind.

        Raises:
            MemmockError: there is no such parameter, or a value is not one.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise MemmockError(f"scenario {self.name} has no parameter {name!r}; {has}")
        return {name: known[name].value(value, self.name) for name, value in given.items()}

    def reply(self, stage: Stage, **parameters: Any) -> Reply:
        """Return what is played on `stage`.

        A scenario that is not about size is played with as many memories as the consumer's limit has room
        for, so that it shows what it is about.
        """
        reply = self.make(stage, **parameters)
        if "response_too_large" in self.outcomes or self.family == "own":
            return reply
        while _size(reply) > stage.max_response_bytes and len(stage.memories) > 1:
            stage = replace(stage, most=(len(stage.memories) + 1) // 2)
            reply = self.make(stage, **parameters)
        return reply

    @classmethod
    def own(
        cls, name: str, make: Callable[[Stage], Any], summary: str = "", outcomes: tuple[Outcome, ...] = ()
    ) -> Scenario:
        """Return a scenario that is not of the catalogue; nothing is promised of it."""
        return cls(name, "own", summary, outcomes, Promise("open", None, 1, False), make)

    def to_json(self) -> dict[str, Any]:
        """Return the scenario as data, for other programs."""
        return {
            "name": self.name,
            "family": self.family,
            "summary": self.summary,
            "outcomes": list(self.outcomes),
            "parameters": {parameter.name: parameter.default for parameter in self.parameters},
            "aliases": list(self.aliases),
            "needs": self.needs,
        }


def _size(reply: Any) -> int:
    if not isinstance(reply, Reply):
        return 0
    return len(reply.body if reply.delivery.wire is None else reply.delivery.wire)


class Shelf:
    """The scenarios of one family, made from functions: `@shelf("ok")` above `def no_memories(stage): …`.

    The name of the function is that of the scenario, with hyphens; its docstring is what is told of it; its
    keyword arguments are the parameters.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self.scenarios: list[Scenario] = []

    def __call__(
        self,
        *outcomes: Outcome,
        name: str = "",
        aliases: Iterable[str] = (),
        status: int | None = 200,
        end: End = "open",
        replies: int | None = None,
        late: bool = False,
        door: Door | None = None,
        needs: str = "",
    ) -> Callable[[Callable[..., Reply]], Callable[..., Reply]]:
        """Return a decorator that makes a scenario of a function.

        Args:
            outcomes: what a good consumer may show.
            name: the name, when it is not that of the function.
            aliases: other names.
            status: promised: the status on the wire.
            end: promised: how it ends on the wire.
            replies: promised: how many complete replies; one, unless the end prevents it.
            late: promised: not complete within the consumer's time.
            door: what is done before there is a request.
            needs: what the server must be able to do; empty for every server that can send bytes.
        """
        if replies is None:
            replies = 1 if end in ("open", "close") and status is not None else 0

        def add(make: Callable[..., Reply]) -> Callable[..., Reply]:
            self.scenarios.append(
                Scenario(
                    name or make.__name__.replace("_", "-"),
                    self.family,
                    inspect.getdoc(make) or "",
                    outcomes,
                    Promise(end, status, replies, late),
                    make,
                    tuple(_parameters(make)),
                    door,
                    tuple(aliases),
                    needs,
                )
            )
            return make

        return add


def _parameters(make: Callable[..., Reply]) -> Iterable[Parameter]:
    kinds = typing.get_type_hints(make)
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            yield Parameter(name, kinds[name], parameter.default)
