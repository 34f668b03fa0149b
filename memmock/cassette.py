"""A cassette in memory: recorded interactions, found by what is asked.

Files are for `cassette_file`, secrets for `redaction`; what makes two requests the same is in `matching`.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from memmock.codings import is_encoded
from memmock.http import Headers, Reply, Request, header
from memmock.matching import Difference, Keys, Matcher
from memmock.redaction import Redactor


class Interaction(NamedTuple):
    """One request and the reply to it, as they were recorded.

    Attributes:
        request: what was sent; its target is the path and query string of `uri`.
        uri: where it was sent to, absolute.
        reply: what came back, its body without transfer coding; the delivery is not recorded.
        reason: the words after the status.
        recorded_at: when, RFC 3339 in UTC; empty when that is not known.
        elapsed_ms: how long the reply took; None when that is not known.
        violations: the codes of the rules that were broken then, by the request or the reply.
    """

    request: Request
    uri: str
    reply: Reply
    reason: str = ""
    recorded_at: str = ""
    elapsed_ms: float | None = None
    violations: tuple[str, ...] = ()


def unpacked(recorded: Interaction) -> Interaction:
    """Return an interaction without a Content-Encoding that its body does not have.

    Clients that unpack a body have it recorded unpacked, with the header as it was.
    """
    request, reply = recorded.request, recorded.reply
    return recorded._replace(
        request=request._replace(headers=true_headers(request.headers, request.body)),
        reply=reply._replace(headers=true_headers(reply.headers, reply.body)),
    )


def true_headers(headers: Headers, body: bytes) -> Headers:
    """Return headers without a Content-Encoding that the body does not have."""
    coding = header(headers, "Content-Encoding")
    if coding is None or is_encoded(body, coding):
        return headers
    return tuple(pair for pair in headers if pair[0].lower() != "content-encoding")


class Miss(NamedTuple):
    """Why nothing was played to a request.

    Attributes:
        request: what was asked, its secrets hidden.
        nearest: the number of the recording that differs least, from 1; None when there is none at all.
        differences: what differs from it; nothing when it is the same and was played as often as it may be.
        played: how often the nearest was played.
    """

    request: Request
    nearest: int | None
    differences: list[Difference]
    played: int


Repeats = Literal["last", "cycle", "none"]
"""What is played when all recordings of a request were played: the last one again, all again from the first,
or nothing."""


class Cassette:
    """Interactions that are played to the requests they were recorded for.

    The same request recorded several times is played in that order. A lookup takes the same time however
    many interactions there are. Safe to use from any thread. Numbers of interactions count from 1.

    Args:
        interactions: what is there already.
        matcher: tells which requests are the same.
        redactor: hides in a request what was hidden in the recording, before it is looked up.
        repeats: what comes after the last recording of a request.
    """

    def __init__(
        self,
        interactions: Iterable[Interaction] = (),
        *,
        matcher: Matcher | None = None,
        redactor: Redactor | None = None,
        repeats: Repeats = "last",
    ) -> None:
        self.interactions: list[Interaction] = []
        self.plays: list[int] = []
        """How often each interaction was played."""
        self.matcher = matcher or Matcher()
        self.redactor = redactor or Redactor()
        self.repeats = repeats
        self._keys = Keys()
        self._found: dict[Hashable, _Recordings] = {}
        self._lock = threading.Lock()
        for interaction in interactions:
            self.add(interaction)

    def __len__(self) -> int:
        return len(self.interactions)

    def add(self, interaction: Interaction, *, played: bool = False) -> int:
        """Add an interaction, and return its number; with `played`, as one that was played already."""
        key = self.matcher.key(interaction.request)
        with self._lock:
            self.interactions.append(interaction)
            self.plays.append(int(played))
            number = len(self.interactions)
            self._keys.add(key, number)
            recordings = self._found.setdefault(key, _Recordings())
            recordings.numbers.append(number)
            recordings.next += played
        return number

    def play(self, request: Request) -> int | Miss:
        """Return the number of the interaction that is played to a request, or why there is none."""
        return self.find(self.redactor.request(request))

    def find(self, request: Request) -> int | Miss:
        """Return the same for a request whose secrets are hidden already."""
        key = self.matcher.key(request)
        with self._lock:
            recordings = self._found.get(key)
            number = recordings and recordings.take(self.repeats)
            if number:
                self.plays[number - 1] += 1
                return number
        return self._miss(request, key, recordings)

    def numbers(self, request: Request) -> list[int]:
        """Return the numbers of all interactions that were recorded for a request."""
        with self._lock:
            recordings = self._found.get(self.matcher.key(self.redactor.request(request)))
            return list(recordings.numbers) if recordings else []

    @property
    def unplayed(self) -> list[int]:
        """The numbers of the interactions that were not played."""
        return [number for number, times in enumerate(self.plays, 1) if not times]

    def _miss(self, request: Request, key: Hashable, recordings: _Recordings | None) -> Miss:
        if recordings:
            number = recordings.numbers[-1]
            return Miss(request, number, [], self.plays[number - 1])
        with self._lock:
            alike = self._keys.nearest(key, _COMPARED)
        if not alike:
            return Miss(request, None, [], 0)
        text = SequenceMatcher(None, "", _text(request), autojunk=False)

        def likeness(number: int) -> float:
            text.set_seq1(_text(self.interactions[number - 1].request))
            return text.quick_ratio()

        number = max(alike, key=likeness)
        differs = self.matcher.differences(self.interactions[number - 1].request, request)
        return Miss(request, number, differs, self.plays[number - 1])


_COMPARED, _READ = 100, 300
"""Of so many equally near recordings the text is compared, so many bytes of it."""


def _text(request: Request) -> str:
    return request.body[:_READ].decode(errors="replace")


class _Recordings:
    """The interactions with one key, and which of them is next."""

    __slots__ = ("next", "numbers")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.next = 0

    def take(self, repeats: Repeats) -> int | None:
        """Return the number of the next one; None when all were played and none is played again."""
        if self.next >= len(self.numbers):
            if repeats == "none":
                return None
            self.next = 0 if repeats == "cycle" else len(self.numbers) - 1
        self.next += 1
        return self.numbers[self.next - 1]
