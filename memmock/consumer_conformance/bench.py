"""The stand on which a consumer is tried: the provider that plays to it, and notes of all that it does.

Three servers stand ready: the endpoint, one at another address to which redirects may lead, and one with a
certificate that nobody trusts.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from memmock import strictjson
from memmock.consumer_conformance.act import Act, Arrival, Seen
from memmock.consumer_conformance.subject import Subject
from memmock.contract import DEFAULT_MAX_RESULTS, DEFAULT_PATH, MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.http import AT_ONCE, Reply, Request, Sent
from memmock.scenarios import MOVED, Stage
from memmock.scenarios.scenario import Door as Shut
from memmock.server import Server

GRACE_S = 1.5
"""How much longer than its time a consumer may be silent before it is given up [ours]."""
START_S = 15.0
"""How long a consumer may take to start and to answer its first call [ours]."""
PATH = f"/Gateway{DEFAULT_PATH}"
_CLOSING_S = 0.5
_SEEN_CLOSED_S = 0.03
_DRAINED_S = 0.1
"""After this time a consumer that goes on reading has read much more than it needs."""
_SUMMARIES = (
    "用户喜欢喝茉莉花茶，不加糖 🍵。",
    "The user moved to 杭州 in May, and likes the rain there.",
    "用户养了一只叫“芝麻”的黑猫。",
    'The user calls the old project "Lantern" <v2> & keeps it at C:\\lantern.',
    "用户想在周五之前写完周报。",
)


class Bench:
    """Plays acts to a consumer, one at a time.

    Args:
        subject: the consumer; it is closed with the bench.
        timeout_ms: what it is told, unless an act says otherwise.
    """

    def __init__(self, subject: Subject, *, timeout_ms: int) -> None:
        self.subject = subject
        self.timeout_ms = timeout_ms
        self.calls = 0
        """How often the consumer was called, to start it included."""
        self._act: Act | None = None
        self._timeout_s = timeout_ms / 1000
        self._started = 0.0
        self._notes: list[_Note] = []
        self._lock = threading.Lock()
        self._over = threading.Condition(self._lock)
        self._paces: deque[float] = deque(maxlen=20)
        self._server = Server(self._answer, door=_Door(self))
        self._other = Server(self._answer_elsewhere, host="127.0.0.2")
        self._secured: Server | None = None

    def __enter__(self) -> Self:
        self._server.start()
        try:
            self._other.start()
        except MemmockError:  # a system with one loopback address
            self._other = Server(self._answer_elsewhere)
            self._other.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.subject.close()
        for server in (self._server, self._other, self._secured):
            if server is not None:
                server.stop()

    def start(self) -> Seen | None:
        """See to it that the consumer runs; return the call that shows that it does not.

        How long it takes to start is not judged.
        """
        if not self.subject.fresh:
            return None
        seen = self._play(Act(name="success", summary="The honest answer.", make=_honest), START_S)
        return seen if seen.told.failure else None

    def play(self, act: Act) -> Seen:
        """Return what was seen of one act. A consumer that is not running is started first."""
        self.start()
        seen = self._play(act, self._time_ms(act) / 1000 + GRACE_S)
        if any(arrival.sent is None and arrival.reply.delivery.endless for arrival in seen.arrivals):
            seen = self._later(seen)
        for arrival in seen.arrivals:
            if arrival.sent is None and arrival.reply.delivery.ending in ("close", "reset"):
                self._wait_for_close(arrival)
        return seen

    @property
    def pace_s(self) -> float:
        """How long this consumer takes for a call that is answered at once."""
        return statistics.median(self._paces) if self._paces else 0.0

    def noted(self, seen: Seen) -> None:
        """Take the time of a good call as the pace of this consumer."""
        self._paces.append(seen.told.elapsed_s)

    # ---- one act

    def _play(self, act: Act, patience_s: float) -> Seen:
        timeout_ms = self._time_ms(act)
        config = {
            "enabled": True,
            "endpoint": self._endpoint(act),
            "authorization": act.authorization,
            "timeout_ms": timeout_ms,
            "max_response_bytes": act.max_response_bytes,
        }
        with self._lock:
            self._act, self._timeout_s, self._notes = act, timeout_ms / 1000, []
            notes = self._notes
        self._server.look()
        before = self._server.connected + self._other.connected
        self.calls += 1
        try:
            self._started = time.monotonic()
            told = self.subject.call(config, dict(act.retrieval), patience_s)
        finally:
            sending = [self._server.sending(), self._other.sending()]
            with self._lock:
                self._act = None
            self._server.look()
        connections = self._server.connected + self._other.connected - before
        with self._lock:
            arrivals = tuple(note.arrival(sending[note.elsewhere]) for note in notes)
        self._server.check()
        return Seen(act, config, told, arrivals, connections, timeout_ms, self.pace_s)

    def _later(self, seen: Seen) -> Seen:
        """Return what is seen a moment later, of a reply without an end: does the consumer still read?"""
        with self._over:
            self._over.wait_for(lambda: all(note.sent is not None for note in self._notes), _DRAINED_S)
            sending = [self._server.sending(), self._other.sending()]
            arrivals = tuple(note.arrival(sending[note.elsewhere]) for note in self._notes)
        return replace(seen, arrivals=arrivals)

    def _time_ms(self, act: Act) -> int:
        return round(self.timeout_ms * act.time_factor) if act.timeout_ms is None else act.timeout_ms

    def _endpoint(self, act: Act) -> str:
        if not act.tls:
            return f"{self._server.url}{PATH}{act.query}"
        if self._secured is None:
            self._secured = _secured(self._answer)
        return f"{self._secured.url}{PATH}{act.query}"

    def _wait_for_close(self, arrival: Arrival) -> None:
        """Wait until a connection that the provider closes is closed, so that no call crosses that."""
        with self._over:
            note = next((each for each in self._notes if each.request is arrival.request), None)
            if note is not None:
                self._over.wait_for(lambda: note.sent is not None, arrival.reply.delivery.end_s + _CLOSING_S)
        if arrival.reply.delivery.end_s:  # it was kept: who goes by events needs a moment to see the end
            time.sleep(_SEEN_CLOSED_S)

    # ---- the provider; it runs on the servers' loops

    def _answer(self, request: Request) -> Reply:
        return self._answered(request, elsewhere=False)

    def _answer_elsewhere(self, request: Request) -> Reply:
        return self._answered(request, elsewhere=True)

    def _answered(self, request: Request, elsewhere: bool) -> Reply:
        with self._lock:
            act, at_s = self._act, time.monotonic() - self._started
            note = _Note(request, at_s, elsewhere)
            self._notes.append(note)
        stage = self._stage(request)
        moved = elsewhere or request.path.startswith(MOVED)
        reply = stage.answer() if act is None or moved else act.make(stage)

        def told(sent: Sent) -> None:
            with self._over:
                note.sent = sent
                self._over.notify_all()

        note.reply = reply
        return reply if reply.delivery == AT_ONCE else reply._replace(on_sent=told)

    def _stage(self, request: Request) -> Stage:
        """Return the stage for a request, also for one that breaks the contract."""
        asked, _ = strictjson.read(request.body)
        asked = asked if isinstance(asked, dict) else {}
        types, most = asked.get("memory_types"), asked.get("max_results")
        wanted = [kind for kind in types if kind in MEMORY_TYPES] if isinstance(types, list) else []
        most = most if isinstance(most, int) and 1 <= most <= 1000 else DEFAULT_MAX_RESULTS
        act = self._act
        number = self.calls
        limits = {} if act is None else {"max_response_bytes": act.max_response_bytes}
        return Stage(
            request=request,
            answer=lambda: Reply.json({"memories": memories(number, wanted, most)}),
            memory_types=wanted,
            max_results=most,
            timeout_s=self._timeout_s,
            path=PATH,
            elsewhere=lambda: self._other.url,
            **limits,
        )


class _Note:
    """One request that came, until the act is over."""

    def __init__(self, request: Request, at_s: float, elsewhere: bool) -> None:
        self.request = request
        self.at_s = at_s
        self.elsewhere = elsewhere
        self.reply = Reply()
        self.sent: Sent | None = None

    def arrival(self, sending: dict[int, int]) -> Arrival:
        """Return what is known of it now; `sending` is what is under way, by connection."""
        # what is under way no more, and of which nothing was told, was sent
        whole = len(self.reply.body if self.reply.delivery.wire is None else self.reply.delivery.wire)
        under_way = sending.get(self.request.connection, whole)
        sent_bytes = under_way if self.sent is None else self.sent.sent_bytes
        return Arrival(self.request, self.reply, self.at_s, self.elsewhere, self.sent, sent_bytes)


class _Door:
    """Does to connections what the act says."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def _is(self, how: Shut) -> bool:
        act = self._bench._act
        return act is not None and act.door == how

    def refuses(self) -> bool:
        return self._is("refuse")

    def greets(self) -> bool:
        return not self._is("reset")

    def is_open(self) -> bool:
        return not (self._is("refuse") or self._is("reset"))


def memories(number: int, kinds: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return the memories of the honest answer to a call: other ones for each `number`."""
    kinds = kinds or MEMORY_TYPES
    return [
        {
            "id": f"m{number}-{n}",
            "summary": f"{summary} ({number})",
            "type": kinds[n % len(kinds)],
            "confidence": (0.97, 0, 0.5, 1, 0.42)[n],
            "updated_at": f"2026-{1 + n:02}-09T22:10:00+08:00",
            "source": ("explicit_user_statement", "long_term_memory")[n % 2],
        }
        for n, summary in enumerate(_SUMMARIES[:most])
    ]


def _honest(stage: Stage) -> Reply:
    return stage.answer()


def _secured(handler: Callable[[Request], Reply]) -> Server:
    """Return a server, started, with a certificate of an authority that nobody knows."""
    import ssl

    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1", "localhost").configure_cert(context)
    server = Server(handler, ssl_context=context)
    server.start()
    return server
