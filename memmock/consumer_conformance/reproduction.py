"""How a finding is shown again: its acts are played to the consumer, the last is judged by the same rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from memmock.consumer_conformance import acts
from memmock.consumer_conformance.act import PLAIN, Act
from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.judging import problems
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.errors import MemmockFailure
from memmock.reply_case import ReplyCase
from memmock.rules import RULES

_OF_STATE = "CON405"
"""Broken when the last act goes wrong in whatever way, after those before it."""


def act(
    name: str,
    *,
    retrieval: Mapping[str, Any] | None = None,
    timeout_ms: int | None = None,
    max_response_bytes: int | None = None,
) -> Act:
    """Return what a check plays by this name, perhaps with other settings.

    Args:
        name: of a scenario, or of something else that a check plays.
        retrieval: what is asked; what the check asks when None.
        timeout_ms: what the consumer is told, in milliseconds.
        max_response_bytes: what the consumer is told.

    Raises:
        MemmockError: there is nothing of this name.
    """
    found = acts.act_named(name, timeout_ms=timeout_ms, max_response_bytes=max_response_bytes)
    return found if retrieval is None else replace(found, retrieval=retrieval)


def generated(
    case: Mapping[str, Any],
    *,
    retrieval: Mapping[str, Any] = PLAIN,
    timeout_ms: int | None = None,
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
) -> Act:
    """Return what plays a generated reply.

    Args:
        case: the reply, as `ReplyCase.to_json` tells it.
        retrieval: what is asked.
        timeout_ms: what the consumer is told, in milliseconds; what the bench says when None.
        max_response_bytes: what the consumer is told.

    Raises:
        ValueError, KeyError, TypeError: the case is none.
    """
    from memmock.consumer_conformance.trial import Trial

    trial = Trial(ReplyCase.from_json(case), retrieval, max_response_bytes)
    return replace(trial.act(), timeout_ms=timeout_ms)


def assert_fixed(rule_code: str, played: Sequence[Act], bench: Bench, *, times: int = 1) -> None:
    """Play acts to a consumer, started anew, and see that the last one breaks a rule no more.

    What is wrong has to show twice, as a busy machine may make a consumer late. A consumer that gives no
    result has not been fixed either.

    Args:
        rule_code: the rule that is judged, and no other; CON405 is broken by whatever goes wrong.
        played: the acts, in their order; the last one is judged.
        bench: has the consumer.
        times: play them again up to so many times, for what does not show every time.

    Raises:
        MemmockFailure: the rule is broken, or that cannot be told.
    """
    __tracebackhide__ = True
    for _ in range(times):
        message = _wrong(rule_code, played, bench)
        if message and (times > 1 or (message := _wrong(rule_code, played, bench))):
            raise MemmockFailure(message)


def _wrong(rule_code: str, played: Sequence[Act], bench: Bench) -> str:
    """Return what is wrong; empty when nothing is."""
    bench.subject.restart()
    seen = [bench.play(each) for each in played][-1]
    found = problems(seen)
    for problem in found:
        if rule_code in (problem.rule.code, _OF_STATE):
            return f"{rule_code}: {RULES[rule_code].title}\n  {problem.message}"
    return f"it cannot be told: {seen.told.message}" if seen.told.failure else ""
