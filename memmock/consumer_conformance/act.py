"""One act of a check: what the consumer is asked, what the provider does meanwhile, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from memmock.consumer_conformance.subject import Told
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.http import Reply, Request, Sent
from memmock.reply_case import ReplyCase
from memmock.scenarios import Outcome, Scenario, Stage
from memmock.scenarios.scenario import Door

DEFAULT_TIMEOUT_MS = 300
"""What a consumer under test is configured with: short, so that a check does not take long [ours]."""
AUTHORIZATION = "Bearer 4f1c9a7e-memmock-7b3d52c8"
"""What it is configured with when an act has nothing else; made up, and easy to find in what it says."""
PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        "live_id": "9007199254740993",
        "query": "用户喜欢喝什么 tea ☕",
        "reason": "the user asks for a drink",
        "memory_types": ["preference", "history"],
        "time_hint": "上周",
        "max_results": 5,
    }
)
"""What is asked when nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """One call to a consumer, and what the provider does meanwhile.

    Attributes:
        name: that of the scenario, or of what this is about.
        summary: what the provider does, in one sentence.
        make: the reply, from the stage, whose answer differs with every call: no old one is taken for it.
        outcomes: what a good consumer may show; empty when the reply says all.
        retrieval: what is asked for.
        timeout_ms: what the consumer is told, in milliseconds; None for that of the run.
        time_factor: that of the run is multiplied by this.
        max_response_bytes: what the consumer is told.
        authorization: what the consumer is told.
        query: put behind the endpoint's path, with its question mark.
        tls: whether the endpoint is https, with a certificate that nobody trusts.
        door: what is done to connections before there is a request.
        case: the generated reply that it was made from.
        scenario: that of the catalogue that it was made from.
    """

    name: str
    summary: str
    make: Callable[[Stage], Reply]
    outcomes: tuple[Outcome, ...] = ()
    retrieval: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    timeout_ms: int | None = None
    time_factor: float = 1.0
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
    authorization: str = AUTHORIZATION
    query: str = ""
    tls: bool = False
    door: Door | None = None
    case: ReplyCase | None = None
    scenario: Scenario | None = None


@dataclass(frozen=True)
class Arrival:
    """One request that came while an act was played.

    Attributes:
        request: as it came; its `connection` tells connections apart.
        reply: what it was answered.
        at_s: when it was complete, in seconds since the consumer was called.
        elsewhere: whether it came to the other port, to which a redirect led.
        sent: how the delivery ended; None while it was under way when the act was over.
        sent_bytes: how much was sent when the consumer had given its result.
    """

    request: Request
    reply: Reply
    at_s: float
    elsewhere: bool = False
    sent: Sent | None = None
    sent_bytes: int = 0


@dataclass(frozen=True)
class Seen:
    """What was seen of one act.

    Attributes:
        act: what was played.
        memory_retrieval: what the consumer was configured with.
        told: what it gave back.
        arrivals: the requests that came, in their order.
        connections: how many connections it made.
        timeout_ms: what it was told.
        pace_s: how long this consumer takes for a call that is answered at once.
    """

    act: Act
    memory_retrieval: Mapping[str, Any]
    told: Told
    arrivals: tuple[Arrival, ...]
    connections: int
    timeout_ms: int
    pace_s: float = 0.0
