"""The mock provider as a test holds it: a server to point the consumer at, and a handle to ask about it.

Works without pytest too; the plugin's fixtures are these classes, nothing more.
"""

from __future__ import annotations

import json
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from memmock.contract import (
    DEFAULT_AUTHORIZATION,
    DEFAULT_MAX_RESPONSE_BYTES,
    DEFAULT_PATH,
    DEFAULT_TIMEOUT_MS,
    Memory,
)
from memmock.errors import MemmockError, MemmockFailure
from memmock.journal import Call, retries
from memmock.matching import FIELDS, closest, differences
from memmock.memories import Memories, builtin, load
from memmock.playbook import EVERYTHING, Playable, Playbook, When
from memmock.provider import Provider
from memmock.rules import RULES, Severity, Violation
from memmock.scenario_file import OwnScenarios, read
from memmock.strictjson import printable, shortened


class MemmockWarning(UserWarning):
    """The consumer broke a recommendation of the contract."""


@dataclass(frozen=True, kw_only=True)
class MockSettings:
    """What a mock in a test is made of.

    `persona` is a YAML or JSON file with the memories, those of character 01 when it is None. `path` is
    where the mock answers, `authorization` the only value that it accepts. `timeout_ms` is what it tells the
    consumer, `max_response_bytes` the size that no honest answer of it exceeds; scenarios go by both.
    `scenarios` is a YAML file with scenarios of your own.
    """

    persona: str | PathLike[str] | None = None
    path: str = DEFAULT_PATH
    authorization: str = field(default=DEFAULT_AUTHORIZATION, repr=False)
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
    scenarios: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_ms", "max_response_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise MemmockError(f"MockSettings: {name} must be an integer of at least 1, not {value!r}")

    @cached_property
    def memories(self) -> Memories:
        """The memories of the persona, read once.

        Raises:
            MemmockError: the persona cannot be read.
        """
        return builtin() if self.persona is None else load(self.persona)

    @cached_property
    def own_scenarios(self) -> OwnScenarios:
        """The scenarios of your own, read once.

        Raises:
            MemmockError: the file cannot be read.
        """
        return OwnScenarios() if self.scenarios is None else read(self.scenarios)


class Mock:
    """A mock provider for one test: what it answers, what it was asked, and what to expect of that.

    `endpoint` and `authorization` are what the consumer under test is to be configured with; `config` has
    them as CreateLive takes them. `provider` is the handler; serving it at `endpoint` is up to the caller.

    Raises:
        MemmockError: the persona cannot be read, or the path is not one.
    """

    def __init__(
        self, settings: MockSettings, endpoint: str, *, abilities: frozenset[str] = EVERYTHING
    ) -> None:
        self.endpoint = endpoint
        self.authorization = settings.authorization
        own = settings.own_scenarios
        self.provider = Provider(
            settings.memories,
            path=settings.path,
            authorization=settings.authorization,
            max_response_bytes=settings.max_response_bytes,
            timeout_ms=settings.timeout_ms,
            playbook=Playbook(own.scenarios, abilities),
        )
        self._settings = settings
        self._connected: Callable[[], int] = self._connections_of_calls
        self._play_own()

    def __repr__(self) -> str:
        memories, calls = len(self.memories), self.provider.journal.total
        return f"<Mock {self.endpoint}: {_count(memories, 'memory')}, {_count(calls, 'call')}>"

    def config(self, **overrides: Any) -> dict[str, Any]:
        """Return the `memory_retrieval` block of CreateLive that leads to this mock, with changes."""
        block = {
            "enabled": True,
            "endpoint": self.endpoint,
            "authorization": self.authorization,
            "timeout_ms": self._settings.timeout_ms,
        }
        if self._settings.max_response_bytes != DEFAULT_MAX_RESPONSE_BYTES:
            block["max_response_bytes"] = self._settings.max_response_bytes
        return block | overrides

    # ---- what it answers

    @property
    def memories(self) -> Memories:
        """What the mock remembers, best set before the call; assign a list of memories to replace it."""
        return self.provider.memories

    @memories.setter
    def memories(self, memories: Iterable[Memory | Mapping[str, Any]]) -> None:
        __tracebackhide__ = True
        self._remember(lambda: memories if isinstance(memories, Memories) else Memories(memories))

    def remember(self, *memories: Memory | Mapping[str, Any]) -> None:
        """Add memories after the ones that are there.

        Raises:
            MemmockError: a memory is not one that a provider could send.
        """
        __tracebackhide__ = True
        self._remember(lambda: self.memories.plus(*memories))

    def _remember(self, make: Callable[[], Memories]) -> None:
        __tracebackhide__ = True
        with _Shortly():
            self.provider.memories = make()

    def use(
        self,
        what: Playable,
        *,
        times: int | None = None,
        when: When | None = None,
        for_s: float | None = None,
        **parameters: float,
    ) -> None:
        """Play a scenario from now on; `memmock.use("success")` ends it.

        Limits may be combined; when a limited one is over, what was played before is played again.

        Args:
            what: the name of a scenario (`memmock scenarios` lists them), a `Reply`, or a function that
                returns one for a request; the function runs in the server's thread.
            times: play it so many times.
            when: play it to these calls only: fields of a retrieval, or a function that says so for a
                request.
            for_s: play it for so many seconds.
            parameters: those of the scenario, as `factor=2`.

        Raises:
            MemmockError: there is no such scenario or parameter, or this server cannot play it.
        """
        __tracebackhide__ = True
        with _Shortly():
            self.provider.playbook.use(what, times=times, when=when, for_s=for_s, parameters=parameters)

    def plan(self, plan: str, *, must_finish: bool = True) -> None:
        """Play scenarios one after the other, as "server-error*2, success"; then what was played before.

        Args:
            plan: names of scenarios, each perhaps with `*N`.
            must_finish: fail at the end of the test when the plan was not played to its end.

        Raises:
            MemmockError: the plan cannot be read, or not be played.
        """
        __tracebackhide__ = True
        with _Shortly():
            self.provider.playbook.plan(plan, must_finish=must_finish)

    def chaos(self, chances: str, *, seed: int) -> None:
        """Play scenarios by chance, as "reset-mid-body=0.1, late=0.05"; the same seed, the same draws.

        Raises:
            MemmockError: the chances cannot be read, or a scenario cannot be played.
        """
        __tracebackhide__ = True
        with _Shortly():
            self.provider.playbook.chaos(chances, seed)

    def _play_own(self) -> None:
        for name, when in self._settings.own_scenarios.always.items():
            self.provider.playbook.use(name, when=when, expected=False)

    # ---- what it was asked

    @property
    def calls(self) -> list[Call]:
        """The calls so far, the oldest first; the journal keeps the latest 1,000."""
        return self.provider.journal.calls

    @property
    def connections(self) -> int:
        """How many connections the consumer made, those that were reset at once included."""
        return self._connected()

    def _connections_of_calls(self) -> int:
        return len({call.request.connection for call in self.calls})

    def assert_called(self, times: int | None = None, **fields: Any) -> list[Call]:
        """Return the calls with these fields; fail unless there are `times` of them, or any.

        Fields are those of the request body, as `query="…"`; `memory_types` is compared as a set, and None
        means absent.

        Raises:
            MemmockFailure: the calls are not as expected; the message names the nearest.
            MemmockError: a field that a retrieval does not have.
        """
        __tracebackhide__ = True
        if unknown := [name for name in fields if name not in FIELDS]:
            raise MemmockError(f"a retrieval has no field {unknown[0]!r}; its fields are {', '.join(FIELDS)}")
        calls = self.calls
        found = [call for call in calls if not differences(fields, call.retrieval)]
        if len(found) != times if times is not None else not found:
            raise MemmockFailure(self._miss(times, fields, calls, found))
        return found

    def assert_not_called(self) -> None:
        """Fail when there was any call.

        Raises:
            MemmockFailure: there was one.
        """
        __tracebackhide__ = True
        if total := self.provider.journal.total:
            raise MemmockFailure(
                f"Expected no call, but {_count(total, 'call')} came:\n{_listed(self.calls)}"
            )

    def wait_for_calls(self, n: int, timeout_s: float = 5.0) -> list[Call]:
        """Return the calls as soon as there are `n` of them.

        Raises:
            MemmockFailure: there were fewer after `timeout_s` seconds.
        """
        __tracebackhide__ = True
        journal = self.provider.journal
        if not journal.wait(lambda: journal.total >= n, timeout_s):
            message = (
                f"Expected {_count(n, 'call')} within {timeout_s:g} s, but {journal.total or 'none'} came"
            )
            raise MemmockFailure(f"{message}:\n{_listed(self.calls)}" if self.calls else f"{message}.")
        return self.calls

    def wait_until_sent(self, timeout_s: float = 5.0) -> list[Call]:
        """Return the calls as soon as no answer is under way any more, so that `call.sent` is known.

        Raises:
            MemmockFailure: an answer was still under way after `timeout_s` seconds.
        """
        __tracebackhide__ = True
        if not self.provider.journal.wait(lambda: all(call.over for call in self.calls), timeout_s):
            under_way = [call for call in self.calls if not call.over]
            raise MemmockFailure(
                f"Expected all answers to be sent within {timeout_s:g} s, but "
                f"{_count(len(under_way), 'answer')} still under way:\n{_listed(under_way)}"
            )
        return self.calls

    def reset(self) -> None:
        """Forget the calls, plans and scenarios, and remember only what was there at the start."""
        self.provider.journal.clear()
        self.provider.memories = self._settings.memories
        self.provider.playbook.clear()
        self._play_own()

    def verify(self, allow: Collection[str] = ()) -> None:
        """Fail when a call broke the contract or a plan was not finished; warn of what is only doubtful.

        Doubtful are broken recommendations, calls that were answered with 401 or 404 when no scenario asked
        for it, clients that stayed longer than `timeout_ms`, calls that followed a redirect, and scenarios
        that were never played.

        Args:
            allow: codes of rules that may be broken.

        Raises:
            MemmockFailure: a call broke a rule (the message names rule, place and value), or a plan was not
                played to its end.
            MemmockError: a code that no rule has.
        """
        allow = {allow} if isinstance(allow, str) else set(allow)
        if unknown := sorted(allow - RULES.keys()):
            raise MemmockError(f"there is no rule {unknown[0]!r}; `memmock rules` lists them")
        broken = [
            (call, found) for call in self.calls for found in call.violations if found.code not in allow
        ]
        if errors := [(call, found) for call, found in broken if found.severity is Severity.ERROR]:
            raise MemmockFailure(self._breach(errors))
        if unfinished := self.provider.playbook.unfinished:
            raise MemmockFailure(self._unfinished(unfinished))
        for call, found in broken:
            warnings.warn(f"call {call.number}: {found}", MemmockWarning, stacklevel=2)
        # a client that swallows the error would pass its test without a word
        doubts = [doubt for call in self.calls if (doubt := self._doubt(call))]
        doubts += [
            f"{play} was to be played, and no call came for it" for play in self.provider.playbook.unplayed
        ]
        for doubt in doubts[:_SHOWN]:
            warnings.warn(doubt, MemmockWarning, stacklevel=2)
        if len(doubts) > _SHOWN:
            message = f"and {_count(len(doubts) - _SHOWN, 'more doubt')} like these"
            warnings.warn(message, MemmockWarning, stacklevel=2)

    def _doubt(self, call: Call) -> str:
        if call.followed:
            how = "with" if call.request.header("Authorization") else "without"
            there = urlsplit(f"//{call.request.header('Host') or ''}").netloc
            where = "" if there in ("", urlsplit(self.endpoint).netloc) else f" to {there}"
            return (
                f"call {call.number} followed a redirect{where}, as a {call.request.method} {how} the "
                f"authorization; a consumer does not follow redirects"
            )
        stayed_ms = 0.0 if call.sent is None else (call.sent.elapsed_s - call.reply.delivery.end_s) * 1000
        if call.played and stayed_ms > call.timeout_ms + _GRACE_MS:
            return (
                f"call {call.number}, {call.played}: the client stayed for {stayed_ms:,.0f} ms, "
                f"but timeout_ms is {call.timeout_ms:,}; it bounds the whole exchange, not each read"
            )
        if call.reply.status in (401, 404) and not call.played:
            return f"call {call.number} was answered with {call.reply.status}: {call.error_message}"
        return ""

    def summary(self) -> str:
        """Return what was asked and what is played, as lines to read; empty when there is neither."""
        rules = [f"  {shortened(rule.description, 200)[1:-1]}" for rule in self.provider.playbook.rules]
        plays = ["It plays, the first that applies:", *rules[:_SHOWN]] if rules else []
        calls = self.calls
        asked = [f"{_count(self.provider.journal.total, 'call')} came:", _listed(calls)] if calls else []
        return "\n".join([*plays, *asked])

    # ---- messages

    def _miss(self, times: int | None, fields: dict[str, Any], calls: list[Call], found: list[Call]) -> str:
        what = " with " + ", ".join(f"{name}={value!r}" for name, value in fields.items()) if fields else ""
        wanted = "a retrieval" if times is None else _count(times, "retrieval")
        came = f"{len(found) or 'none'} of {_count(len(calls), 'call')} matched" if calls else "no call came"
        lines = [f"Expected {wanted}{what}, but {came}."]
        if not calls:
            lines += ["", f"Is the code under test configured with the endpoint {self.endpoint}?"]
            if not self.provider.playbook.is_open():
                lines += [
                    "Connections are refused or reset now, and nobody sees what was to be asked on them."
                ]
        elif not found and (nearest := closest(fields, ((call, call.retrieval) for call in calls))):
            lines += ["", f"Nearest is call {nearest.number}:"]
            lines += [f"  {difference}" for difference in differences(fields, nearest.retrieval)]
        elif found:
            lines += ["", _listed(found)]
            again = retries(calls)
            for call in found[:_SHOWN]:
                if call.number in again:
                    lines += [
                        "",
                        f"Call {call.number} is call {again[call.number]} again, byte by byte, after that "
                        f"had failed: does the client, or its HTTP library, try again?",
                    ]
        if dropped := self.provider.journal.dropped:
            lines += [
                "",
                f"{_count(dropped, 'earlier call')} had to leave the journal and could have matched.",
            ]
        return "\n".join(lines)

    def _breach(self, errors: list[tuple[Call, Violation]]) -> str:
        calls = {call.number: call for call, _ in errors}
        total = _count(self.provider.journal.total, "call")
        lines = [f"The consumer broke the contract in {len(calls)} of {total}."]
        for number, call in list(calls.items())[:_SHOWN]:
            lines += ["", _line(call)]
            for found in (found for other, found in errors if other.number == number):
                lines += [
                    f"  {found}",
                    textwrap.fill(found.rule.reason, 100, initial_indent=_INDENT, subsequent_indent=_INDENT),
                ]
        if len(calls) > _SHOWN:
            lines += ["", f"and {_count(len(calls) - _SHOWN, 'more call')}."]
        codes = sorted({found.code for _, found in errors})
        lines += ["", f"`memmock rules {codes[0]}` explains a rule. To let a test break them all:"]
        lines += [f"  @pytest.mark.memmock(allow={json.dumps(codes)})"]
        return "\n".join(lines)

    def _unfinished(self, plans: list[str]) -> str:
        total = self.provider.journal.total
        came = [f"{_count(total, 'call')} came:", _listed(self.calls)] if total else ["No call came."]
        return "\n".join(
            [
                "A plan was not played to its end.",
                "",
                *(f"  {plan}" for plan in plans),
                "",
                *came,
                "",
                "For a plan that may end early: memmock.plan(…, must_finish=False)",
            ]
        )


_SHOWN = 5
_GRACE_MS = 250
"""How much longer than `timeout_ms` a client may stay without being told so."""
_INDENT = "      "


def _count(n: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def _listed(calls: list[Call]) -> str:
    lines = [f"  {_line(call)}" for call in calls[:_SHOWN]]
    if len(calls) > _SHOWN:
        lines.append(f"  and {len(calls) - _SHOWN:,} more")
    return "\n".join(lines)


def _line(call: Call) -> str:
    request = call.request
    # as JSON that can be read, whatever escapes the client wrote it with
    body = (
        json.dumps(call.retrieval, ensure_ascii=False)
        if call.retrieval
        else request.body.decode(errors="replace")
    )
    body = printable(body if len(body) <= 200 else f"{body[:199]}…")
    line = (
        f"call {call.number}: {request.method} {request.target} {body} -> {call.reply.status or 'no status'}"
    )
    return f"{line} ({call.played}: {call.ending})" if call.played else line


class _Shortly:
    """Lets an error out without how it was found out, which is of no interest to a test."""

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if isinstance(error, MemmockError):
            raise type(error)(*error.args) from None
