"""Check a provider or a consumer from a program or a test.

A provider is a URL, or an application in this process; a consumer is a command, or a callable of this
process.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memmock.conformance.finding import Result
from memmock.conformance.session import Session, Target
from memmock.consumer_conformance.act import DEFAULT_TIMEOUT_MS as CONSUMER_TIMEOUT_MS
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_PATH, DEFAULT_TIMEOUT_MS
from memmock.errors import MemmockError
from memmock.http import Headers

if TYPE_CHECKING:
    from memmock.consumer_conformance.bench import Bench
    from memmock.consumer_conformance.finding import Result as ConsumerResult

DEFAULT_TIME_LIMIT_S = 60.0
"""How long fuzzing takes at most [ours]."""
DEFAULT_EXAMPLES = 2000
"""How many examples are made at random [ours]."""


def check_provider(
    provider: Any,
    *,
    path: str = DEFAULT_PATH,
    authorization: str | None = None,
    open: bool = False,
    headers: Headers = (),
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
) -> Result:
    """Return what a fixed catalogue of requests finds wrong with a provider.

    Args:
        provider: its URL, or an ASGI or WSGI application, which is served for the time of the check.
        path: where an application answers.
        authorization: the one that it accepts; without one, what it refuses is not checked.
        open: whether it answers whatever the authorization is.
        headers: sent with every request.
        timeout_ms: how long one exchange may take, in milliseconds.
        max_response_bytes: how large a body may be.
        rules: codes of the only rules to check.
        ignore: codes of rules to leave out.

    Raises:
        MemmockError: the provider cannot be reached, or there is no such rule.
    """
    from memmock.conformance.checks import check

    with _target(provider, path, authorization, open, headers, timeout_ms, max_response_bytes) as target:
        session = Session(target)
        try:
            return check(session, rules=rules, ignore=ignore)
        finally:
            session.close()


def fuzz_provider(
    provider: Any,
    *,
    path: str = DEFAULT_PATH,
    authorization: str | None = None,
    open: bool = False,
    headers: Headers = (),
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
    examples: int = DEFAULT_EXAMPLES,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int | None = None,
    rate: float | None = None,
) -> Result:
    """Return what generated requests find wrong with a provider, each finding with its smallest request.

    Args:
        provider: its URL, or an ASGI or WSGI application, which is served meanwhile.
        path: where an application answers.
        authorization: the one that it accepts; without one, what it refuses is not tried.
        open: whether it answers whatever the authorization is.
        headers: sent with every request.
        timeout_ms: how long one exchange may take, in milliseconds.
        max_response_bytes: how large a body may be.
        rules: codes of the only rules to look at.
        ignore: codes of rules to leave out.
        examples: how many examples are made at random, after the boundary cases.
        time_limit_s: when to stop, in seconds.
        seed: the same seed makes the same requests; by chance when None.
        rate: how many requests may be sent a second; any number when None.

    Raises:
        MemmockError: the provider cannot be reached, or there is no such rule.
    """
    from memmock.conformance.checks import reach
    from memmock.conformance.fuzz import fuzz

    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    with _target(provider, path, authorization, open, headers, timeout_ms, max_response_bytes) as target:
        session = Session(target, rate=rate, time_limit_s=time_limit_s)
        try:
            reach(session)
            return fuzz(session, seed=seed, examples=examples, rules=rules, ignore=ignore)
        finally:
            session.close()


def check_consumer(
    consumer: Callable[[dict[str, Any], dict[str, Any]], Any] | Sequence[str],
    *,
    timeout_ms: int = CONSUMER_TIMEOUT_MS,
    scenarios: Collection[str] | None = None,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
) -> ConsumerResult:
    """Return what the catalogue of scenarios shows of a consumer.

    Args:
        consumer: a command, as a list of words, that reads a call a line and writes a tool result a line; or
            a callable, sync or async. It is given `memory_retrieval` and the retrieval, both dicts, and
            returns the tool result: a dict, or what has `to_json()`.
        timeout_ms: what the consumer is told, in milliseconds.
        scenarios: names of the only scenarios, or families of them, to play.
        rules: codes of the only rules to check.
        ignore: codes of rules to leave out.

    Raises:
        MemmockError: the command cannot be started, or there is no such scenario.
    """
    from memmock.consumer_conformance.checks import check

    with bench_for(consumer, timeout_ms) as bench:
        return check(bench, scenarios=scenarios, rules=rules, ignore=ignore)


def fuzz_consumer(
    consumer: Callable[[dict[str, Any], dict[str, Any]], Any] | Sequence[str],
    *,
    timeout_ms: int = CONSUMER_TIMEOUT_MS,
    rules: Collection[str] | None = None,
    ignore: Collection[str] = (),
    examples: int = DEFAULT_EXAMPLES,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int | None = None,
) -> ConsumerResult:
    """Return what generated replies find wrong with a consumer, each finding with its smallest reply.

    Args:
        consumer: a command or a callable, as for `check_consumer`.
        timeout_ms: what the consumer is told, in milliseconds.
        rules: codes of the only rules to look at.
        ignore: codes of rules to leave out.
        examples: how many replies are made at random, after the boundary cases.
        time_limit_s: when to stop, in seconds.
        seed: the same seed makes the same replies; by chance when None.

    Raises:
        MemmockError: the command cannot be started.
    """
    from memmock.consumer_conformance.fuzzing import fuzz

    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    with bench_for(consumer, timeout_ms) as bench:
        return fuzz(
            bench, seed=seed, examples=examples, time_limit_s=time_limit_s, rules=rules, ignore=ignore
        )


def bench_for(
    consumer: Callable[[dict[str, Any], dict[str, Any]], Any] | Sequence[str], timeout_ms: int
) -> Bench:
    """Return where a consumer is tried, not started yet.

    Raises:
        MemmockError: the command is a text rather than a list.
    """
    from memmock.consumer_conformance.bench import Bench
    from memmock.consumer_conformance.function import Function
    from memmock.consumer_conformance.process import Process

    if not callable(consumer) and not _are_words(consumer):
        raise MemmockError(
            "a consumer is a function, or its command as a list of words, as ['python3', 'consumer.py']"
        )
    subject = Function(consumer) if callable(consumer) else Process(consumer)
    return Bench(subject, timeout_ms=timeout_ms)


def _are_words(value: object) -> bool:
    return isinstance(value, list | tuple) and value != [] and all(isinstance(word, str) for word in value)


@contextmanager
def _target(
    provider: Any,
    path: str,
    authorization: str | None,
    open: bool,
    headers: Headers,
    timeout_ms: int,
    max_response_bytes: int,
) -> Iterator[Target]:
    def made(url: str) -> Target:
        return Target(
            url=url,
            authorization=authorization,
            open=open,
            headers=headers,
            timeout_ms=timeout_ms,
            max_response_bytes=max_response_bytes,
        )

    if isinstance(provider, str):
        yield made(provider)
        return
    from memmock.apps import served

    with served(provider) as url:
        yield made(url + path)
