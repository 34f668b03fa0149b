"""One cassette in one test: what is played and recorded in each mode, and what the test fails for.

How the requests get here is for others: `cassette_server` serves them, `patching` catches them in-process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from memmock.cassette import Cassette, Interaction, Miss, Repeats, unpacked
from memmock.cassette_file import load, update
from memmock.comparison import reply_differences
from memmock.errors import MemmockError, MemmockFailure
from memmock.http import Reply, Request
from memmock.matching import MATCH_ON, Difference, Matcher, asked
from memmock.patching import NotRecorded
from memmock.recorder import interaction, leaks, settled
from memmock.redaction import Redactor
from memmock.replay import explained

Mode = Literal["none", "once", "new_episodes", "all", "rewrite", "verify"]
"""What becomes of a request: `none` plays; `once` records when there is no cassette yet; `new_episodes` plays
and records what is missing; `all` records everything again and keeps the rest; `rewrite` records everything
anew; `verify` asks the upstream and compares."""

_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class TapeSettings:
    """How a cassette is played and recorded.

    Raises:
        MemmockError: a value is none that is known.
    """

    record: Mode = "none"
    match_on: tuple[str, ...] = MATCH_ON
    repeats: Repeats = "none"
    redact_headers: tuple[str, ...] = ()
    redact_fields: tuple[str, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    authorization: str | None = field(default=None, repr=False)
    allow_unplayed: bool = False

    def __post_init__(self) -> None:
        """Refuse what is not known."""
        for name, value, choices in (
            ("record", self.record, get_args(Mode)),
            ("repeats", self.repeats, get_args(Repeats)),
        ):
            if value not in choices:
                raise MemmockError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


class Tape:
    """A cassette file in one test. Safe to use from any thread.

    Args:
        path: the file.
        settings: how it is played.
        anywhere: the path that is asked does not matter: it is that of a server of memmock's own.

    Raises:
        MemmockError: the file is there and cannot be read, or a setting cannot be used.
    """

    def __init__(
        self, path: str | os.PathLike[str], settings: TapeSettings, *, anywhere: bool = False
    ) -> None:
        self.path = Path(path)
        self.mode = settings.record
        self.misses: list[Miss] = []
        self.failures: list[str] = []
        """What could not be recorded, and why."""
        self.doubts: list[str] = []
        """What a user may not have meant to record."""
        self.recorded: list[Interaction] = []
        self._settings = settings
        self._drifts: list[tuple[int, list[Difference]]] = []
        self._lock = threading.Lock()
        secrets = [settings.authorization] if settings.authorization else []
        self.redactor = Redactor(
            secrets=secrets,
            headers=settings.redact_headers,
            fields=settings.redact_fields,
            patterns=settings.redact_patterns,
        )
        of_path = ("path", "target") if anywhere else ()
        self._matcher = Matcher(name for name in settings.match_on if name not in of_path)
        self.is_new = not os.path.lexists(self.path)
        loaded = [] if self.is_new or self.mode == "rewrite" else load(self.path)
        self.cassette = Cassette(
            loaded, matcher=self._matcher, redactor=self.redactor, repeats=settings.repeats
        )

    @property
    def plays(self) -> bool:
        """Whether a request is answered from the cassette, when it is there."""
        return self.mode in ("none", "new_episodes") or (self.mode == "once" and not self.is_new)

    @property
    def records(self) -> bool:
        """Whether a request that is not played goes to the upstream."""
        return self.mode not in ("none", "once") or (self.mode == "once" and self.is_new)

    def play(self, request: Request) -> int | Miss:
        """Return the number of the interaction that answers a request, or why there is none."""
        found = self.cassette.find(self.redactor.request(request))
        if isinstance(found, Miss) and not self.records:
            self.miss(found)
        return found

    def miss(self, miss: Miss) -> None:
        """Note a request that was not answered."""
        with self._lock:
            self.misses.append(miss)

    def keep(self, interaction: Interaction) -> None:
        """Take an interaction that was made with the upstream."""
        if self.mode == "verify":
            self._compare(interaction)
            return
        with self._lock:
            self.recorded.append(interaction)
            if self.mode == "new_episodes":
                self.cassette.add(interaction, played=True)

    def unanswered(self, request: Request, why: str) -> None:
        """Note that the upstream did not answer a request, or refused it."""
        asks = asked(self.redactor.request(request))
        with self._lock:
            if not why.endswith(("401", "403")):
                self.failures.append(f"The provider did not answer {asks}: {why}.")
                return
            way_out = ""
            if self._settings.authorization is None:
                way_out = "; no authorization was given for it: MEMMOCK_UPSTREAM_AUTHORIZATION"
            self.doubts.append(f"to {asks} {why}{way_out}")

    def refused(self, addresses: list[str]) -> None:
        """Note connections that went past the cassette, and were refused."""
        for address in dict.fromkeys(addresses):
            self.failures.append(
                f"A connection to {address} was refused: nothing is reached while a cassette plays. "
                f"If it is none of the provider's: allow_hosts=[{address!r}]"
            )

    def name(self, number: int) -> str:
        """Return how an interaction is called in messages."""
        return f"interaction {number}"

    def save(self) -> None:
        """Write what was recorded.

        Raises:
            MemmockFailure: a value that was to be hidden is still there; the file is as it was.
            MemmockError: the file cannot be written.
        """
        if not self.recorded:
            return
        kept, failures = settled(self.recorded, self.redactor)
        self.failures += failures
        update(self.path, lambda before: self._merged(before, kept))
        self.failures += leaks(self.path, self.redactor)

    def _merged(self, before: list[Interaction], new: list[Interaction]) -> list[Interaction]:
        if self.mode == "rewrite":
            return new
        if self.mode == "all":
            again: set[Hashable] = {self._matcher.key(each.request) for each in new}
            before = [each for each in before if self._matcher.key(each.request) not in again]
        return [*before, *new]

    def _compare(self, now: Interaction) -> None:
        numbers = self.cassette.numbers(now.request)
        if not numbers:
            played = self.cassette.play(now.request)
            assert isinstance(played, Miss)
            self.miss(played)
            return
        with self._lock:
            plays = self.cassette.plays
            number = next((n for n in numbers if not plays[n - 1]), numbers[-1])
            plays[number - 1] += 1
        recorded = unpacked(self.cassette.interactions[number - 1])
        _, reply = self.redactor.exchange(recorded.request, recorded.reply)
        if differences := reply_differences(reply, now.reply):
            with self._lock:
                self._drifts.append((number, differences))

    # ---- what a test fails for

    def verify(self) -> None:
        """Raise for what a test should fail for.

        Raises:
            MemmockFailure: a request was not recorded, an interaction was not played, the upstream no longer
                answers as recorded, or something could not be recorded.
        """
        if says := self.complaint():
            raise MemmockFailure(says)

    def complaint(self) -> str:
        """Return what is wrong, empty for nothing."""
        parts = ["\n".join(self.failures), self._missed(), self._drifted(), self._unplayed()]
        return "\n\n".join(part for part in parts if part)

    def _here(self) -> str:
        path = os.path.relpath(self.path)
        shown = path if not path.startswith("..") else str(self.path)
        return f"{shown}, {'not there' if self.is_new else _count(len(self.cassette), 'interaction')}"

    def _missed(self) -> str:
        if not self.misses:
            return ""
        blocks = []
        for miss in self.misses[:_SHOWN]:
            first, *rest = explained(miss, self.name)
            lines = [f"  {asked(miss.request)}", f"    {first}", *(f"      {line}" for line in rest)]
            blocks.append("\n".join(lines))
        if len(self.misses) > _SHOWN:
            blocks.append(f"  and {_count(len(self.misses) - _SHOWN, 'more retrieval')}")
        what = _count(len(self.misses), "retrieval")
        verb = "was" if len(self.misses) == 1 else "were"
        return "\n\n".join(
            [
                f"{what} {verb} not recorded ({self._here()}).",
                *blocks,
                f"To record what is missing: --memmock-record={'once' if self.is_new else 'new_episodes'}",
            ]
        )

    def _unplayed(self) -> str:
        unplayed = self.cassette.unplayed
        if self.failures:  # what was not answered was not played either
            return ""
        if not unplayed or self._settings.allow_unplayed or not (self.plays or self.mode == "verify"):
            return ""
        lines = []
        for number in unplayed[:_SHOWN]:
            lines.append(f"  {self.name(number)}: {asked(self.cassette.interactions[number - 1].request)}")
        if len(unplayed) > _SHOWN:
            lines.append(f"  and {_count(len(unplayed) - _SHOWN, 'more interaction')}")
        verb = "was" if len(unplayed) == 1 else "were"
        return "\n".join(
            [
                f"{_count(len(unplayed), 'interaction')} {verb} not played ({self._here()}):",
                "",
                *lines,
                "",
                "To record anew what the test asks: --memmock-record=rewrite; "
                "to let it be: allow_unplayed=True",
            ]
        )

    def _drifted(self) -> str:
        if not self._drifts:
            return ""
        blocks = []
        for number, differences in self._drifts[:_SHOWN]:
            shown = [f"    {self.redactor.text(str(each))}" for each in differences[:_SHOWN]]
            if len(differences) > _SHOWN:
                shown.append(f"    and {_count(len(differences) - _SHOWN, 'more difference')}")
            blocks.append("\n".join([f"  {self.name(number)}:", *shown]))
        return "\n\n".join(
            [
                f"The provider no longer answers as recorded ({self._here()}).",
                *blocks,
                "To record what it answers now: --memmock-record=rewrite",
            ]
        )


class Caught:
    """A tape as `patching` asks it, for requests that are caught inside the process."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def play(self, request: Request, uri: str) -> Interaction | None:
        """Return what was recorded for a request; None when it is to be sent.

        Raises:
            NotRecorded: nothing was recorded, and nothing is to be sent.
        """
        __tracebackhide__ = True
        if not self._tape.plays:
            return None
        found = self._tape.play(request)
        if not isinstance(found, Miss):
            return self._tape.cassette.interactions[found - 1]
        if self._tape.records:
            return None
        raise NotRecorded("; ".join(explained(found, self._tape.name)))

    def record(self, request: Request, uri: str, reply: Reply, reason: str, elapsed_ms: float | None) -> None:
        """Take a reply that came from the network."""
        redactor = self._tape.redactor
        try:
            made = interaction(request, uri, reply, reason, elapsed_ms=elapsed_ms, redactor=redactor)
        except MemmockError as error:
            self._tape.failures.append(str(error))
        else:
            self._tape.keep(made)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
