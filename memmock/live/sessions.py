"""The live sessions: CreateLive checked, and the latest sessions kept."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from memmock.admin.shown import plain
from memmock.client import Address
from memmock.contract import (
    DEFAULT_MAX_RESPONSE_BYTES,
    DEFAULT_TIMEOUT_MS,
    RetrievalConfig,
    block_mistakes,
)
from memmock.errors import MemmockError
from memmock.http import encode_json
from memmock.redaction import MASK, Redactor, mask_of
from memmock.redaction.places import is_secret
from memmock.strictjson import shortened

MAX_LIVES = 1000
"""How many live sessions are kept [ours]."""
MAX_BYTES = 64 * 1024 * 1024
"""How much they may hold together, about, in bytes [ours]."""
LIVE_DURATION_S = 600
"""How long a live session lasts at most, in seconds, as it is answered [ref]; nothing ends here."""

_MASKED_CHARS = 4
"""From so many characters on an authorization is hidden wherever it stands; a shorter one is in words."""
_DEEPEST = 60
_OURS = ("id", "status", "live_duration", "created_at")
"""Fields of a session that are never those that it was created with."""


class RefusedError(MemmockError):
    """A request is refused; `mistakes` has a message for each field, by its path."""

    def __init__(self, mistakes: dict[str, str]) -> None:
        self.mistakes = mistakes
        super().__init__("; ".join(f"{name} {what}" for name, what in mistakes.items()))


class NoSuchLiveError(MemmockError):
    """There is no live session of this id, or not any more."""


@dataclass(frozen=True, slots=True)
class LiveSession:
    """One live session.

    `body` is what it was created with, secrets masked, as JSON: many objects that stay would make every
    collection of garbage long. `config` is None when memory retrieval is not enabled, `has_block` says
    whether it was spoken of. `created_at` is in whole seconds since the epoch.
    """

    id: str
    created_at: int
    body: bytes = field(repr=False)
    call_mode: str
    has_block: bool = field(repr=False)
    config: RetrievalConfig | None

    @property
    def given(self) -> dict[str, Any]:
        """What it was created with, secrets masked."""
        return dict(json.loads(self.body))

    @property
    def settings(self) -> RetrievalConfig:
        """How this session looks memories up.

        Raises:
            MemmockError: memory retrieval is not enabled for it.
        """
        if self.config is None:
            why = (
                "its memory_retrieval has enabled false"
                if self.has_block
                else "it was created without memory_retrieval"
            )
            raise MemmockError(f"memory retrieval is not enabled for live {self.id}: {why}")
        return self.config

    def summary(self) -> dict[str, Any]:
        """Return what CreateLive answers as `live`."""
        return {
            "id": self.id,
            "status": "waiting",
            "live_duration": LIVE_DURATION_S,
            "call_mode": self.call_mode,
        }

    def to_json(self) -> bytes:
        """Return all that is known of the session as JSON, the fields it was created with included."""
        facts = encode_json({name: value for name, value in self.summary().items() if name != "call_mode"})
        return self.body[:-1] + b"," + facts[1:-1] + b',"created_at":"%d"}' % self.created_at

    def rtc(self) -> dict[str, Any]:
        """Return what CreateLive answers as `rtc`: nothing that could be joined [ref for the names]."""
        return {
            "app_id": "fake-app",
            "channel_id": f"fake-channel-{self.id}",
            "user_id": f"fake-user-{self.id}",
            "token": f"fake-token-{self.id}",
            "token_expire_at": "4102444800",  # the year 2100, so that an answer is the same on every run
        }


class Lives:
    """The latest live sessions, at most `max_lives` of them; for any thread.

    Ids are 64-bit numbers beyond 2^53 and odd, so that a client that reads them as doubles does not find its
    session; the same `seed` gives the same ids. `max_response_bytes` is what retrievals of these sessions
    take at most, since CreateLive does not carry it [ours].
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        max_lives: int = MAX_LIVES,
        max_bytes: int = MAX_BYTES,
        max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
    ) -> None:
        numbers = random.Random(seed)
        self.max_lives = max_lives
        self._max_bytes = max_bytes
        self._max_response_bytes = max_response_bytes
        self._first = numbers.randrange(2**60, 2**61) | 1
        self._step = numbers.randrange(2**20, 2**21) * 2
        self._created = 0
        self._kept: dict[str, LiveSession] = {}  # the oldest first
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def dropped(self) -> int:
        """How many sessions had to go, because there were too many."""
        with self._lock:
            return self._created - len(self._kept)

    def create(self, given: Mapping[str, Any]) -> LiveSession:
        """Keep a new session, created with a CreateLive body; the oldest goes when there is no room.

        Raises:
            RefusedError: its `memory_retrieval` is refused; the message names all mistakes.
        """
        config = self._config(given)
        shown = _shown(given)
        mode = shown.get("call_mode")
        shown["call_mode"] = mode = mode if isinstance(mode, str) and mode else "video"
        body = encode_json({name: value for name, value in shown.items() if name not in _OURS})
        has_block = "memory_retrieval" in given
        with self._lock:
            number = str(self._first + self._created * self._step)
            session = LiveSession(number, int(time.time()), body, mode, has_block, config)
            self._created += 1
            self._kept[number] = session
            self._bytes += len(body)
            while len(self._kept) > self.max_lives or (self._bytes > self._max_bytes and len(self._kept) > 1):
                self._bytes -= len(self._kept.pop(next(iter(self._kept))).body)
        return session

    def _config(self, given: Mapping[str, Any]) -> RetrievalConfig | None:
        if "memory_retrieval" not in given:
            return None
        block = given["memory_retrieval"]
        mistakes = block_mistakes(block)
        if "endpoint" not in mistakes and isinstance(block, dict) and "endpoint" in block:
            try:
                Address.of(block["endpoint"])
            except MemmockError:
                mistakes["endpoint"] = "has no usable host name"
        if mistakes:
            paths = {f"memory_retrieval{'.' if name else ''}{name}": what for name, what in mistakes.items()}
            raise RefusedError(paths)
        if block.get("enabled") is False:
            return None
        return RetrievalConfig(
            block["endpoint"],
            block["authorization"],
            timeout_ms=block.get("timeout_ms", DEFAULT_TIMEOUT_MS),
            max_response_bytes=self._max_response_bytes,
        )

    def get(self, live_id: str) -> LiveSession:
        """Return the session of an id.

        Raises:
            NoSuchLiveError: there is none, or it had to go.
        """
        with self._lock:
            if (session := self._kept.get(live_id)) is not None:
                return session
        if self.created(live_id):
            raise NoSuchLiveError(
                f"live {live_id} is not kept any more: only the latest are, at most {self.max_lives:,}"
            )
        raise NoSuchLiveError(f"there is no live {shortened(live_id)}; CreateLive answers the id of one")

    def page(self, size: int, token: str = "") -> tuple[list[LiveSession], str]:
        """Return at most `size` sessions, the newest first, and the token of the next page, empty at the end.

        The token is one that a page gave. Sessions that are created or go between two pages move nothing.
        """
        with self._lock:
            newest_first = iter(list(reversed(self._kept.values())))
        older = (each for each in newest_first if not token or int(each.id) < int(token))
        found = list(islice(older, size))
        more = next(older, None) is not None
        return found, found[-1].id if more else ""

    def created(self, live_id: str) -> bool:
        """Whether a session of this id was created here, even if it had to go."""
        if not (live_id.isascii() and live_id.isdigit() and len(live_id) <= 20):
            return False
        steps, rest = divmod(int(live_id) - self._first, self._step)
        return rest == 0 and 0 <= steps < self._created


def mask_for(authorization: str | None) -> Callable[[str], str]:
    """Return what hides an authorization in a text."""
    if authorization is None or len(authorization.strip()) < _MASKED_CHARS:
        return str
    return mask_of(authorization)


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body with its secrets masked, as JSON can carry it."""
    block = given.get("memory_retrieval", {})
    shown = plain(_masked(dict(given)), mask_for(block.get("authorization")))
    if block:
        defaults = {"enabled": True, "timeout_ms": DEFAULT_TIMEOUT_MS}
        shown["memory_retrieval"] = {**defaults, **shown["memory_retrieval"]}
    if "endpoint" in block:
        shown["memory_retrieval"]["endpoint"] = Redactor().uri(block["endpoint"])
    return dict(shown)


def _masked(value: Any, depth: int = 0, *, secret: bool = False) -> Any:
    """Mask the texts in what is secret by its name, and leave out what stands too deep to be walked."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, list):
        return [_masked(item, depth + 1, secret=secret) for item in value]
    if isinstance(value, dict):
        return {
            name: _masked(item, depth + 1, secret=secret or is_secret(name)) for name, item in value.items()
        }
    return MASK if secret and isinstance(value, str) and value else value
