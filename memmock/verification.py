"""Proof that each scenario puts on the wire what it promises.

A scenario is played to a raw socket, and what arrived is compared with two accounts of what should: the
promise in the catalogue, which says how it ends, how many replies there are and whether it is late; and the
delivery of the reply that was played, byte by byte and pause by pause. Then the bytes are read as the
contract says, the client leaves, and a good call must work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from memmock.errors import MemmockError, MemmockFailure
from memmock.http import AT_ONCE, JSON_TYPE
from memmock.journal import Call
from memmock.mock import Mock, MockSettings
from memmock.mock_server import MockServer
from memmock.probe import Probe, Seen, SeenReply, replies_in, status_in
from memmock.reply_reader import ReplyReader
from memmock.reply_writer import encoded, scripted
from memmock.scenarios import Scenario

DEFAULT_TIMEOUT_MS = 500
"""What the mock takes for the consumer's limit: proving a scenario that is late takes up to twice as long."""
SLACK_S = 5.0
"""How much later than planned something may arrive, on a machine that has much to do."""
SETTLE_S = 0.03
"""How long to wait for bytes or an end that should not come."""
READ_BYTES = 16 * 1024
"""What a consumer is taken to read at once."""
ENOUGH_BYTES = 512 * 1024
"""How much is read of a body that never ends."""
WORKERS = 8
"""How many scenarios are played at the same time."""

_EARLY_S = 0.002
"""How much earlier than planned something may seem to arrive: two clocks are read."""


@dataclass(frozen=True)
class Proof:
    """What became of one scenario: `mistakes` is empty when it kept its promise."""

    scenario: Scenario
    mistakes: tuple[str, ...]
    seen: Seen

    @property
    def summary(self) -> str:
        """What arrived, in a few words."""
        seen = self.seen
        if seen.end == "refused":
            return "connection refused"
        ends = {"close": "FIN", "reset": "RST", "open": "still open"}
        first = ""
        if seen.arrivals:
            first_ms, last_ms = (seen.arrivals[n][0] * 1000 for n in (0, -1))
            first = f", first after {first_ms:,.0f} ms, last after {last_ms:,.0f} ms"
        at = f" after {seen.end_s * 1000:,.0f} ms" if seen.end != "open" else ""
        return f"{len(seen.data):,} bytes{first}, {ends[seen.end]}{at}"


def verify(scenarios: Iterable[Scenario], timeout_ms: int = DEFAULT_TIMEOUT_MS) -> Iterator[Proof]:
    """Yield the proof of each scenario, in their order; several are played at the same time.

    Raises:
        MemmockError: a server could not be started.
    """
    settings = MockSettings(timeout_ms=timeout_ms)
    with ThreadPoolExecutor(WORKERS, "memmock-verify") as pool:
        yield from pool.map(lambda scenario: proof(scenario, settings), scenarios)


def proof(scenario: Scenario, settings: MockSettings) -> Proof:
    """Play a scenario on a server of its own, and return what became of it."""
    with MockServer(settings) as server, server.fresh() as mock:
        mock.use(scenario)
        url = urlsplit(mock.endpoint)
        probe = Probe(url.hostname or "", url.port or 0)
        try:
            check = _Check(scenario, mock, probe, settings)
            check.play()
            probe.close()
            check.aftermath()
        except (MemmockError, MemmockFailure) as error:
            check.mistakes.append(str(error))
        finally:
            probe.close()
            mock.reset()  # what the probe sent is not to be judged
    return Proof(scenario, tuple(check.mistakes), probe.seen)


class _Check:
    """One play of a scenario, and the mistakes that were seen in it."""

    def __init__(self, scenario: Scenario, mock: Mock, probe: Probe, settings: MockSettings) -> None:
        self.mistakes: list[str] = []
        self._scenario = scenario
        self._mock = mock
        self._probe = probe
        self._timeout_s = settings.timeout_ms / 1000
        self._limit = settings.max_response_bytes
        self._request = _retrieval(mock)

    def play(self) -> None:
        """Make the call, and compare what arrives with what was promised."""
        promise, probe, seen = self._scenario.promise, self._probe, self._probe.seen
        probe.send(self._request)
        if self._scenario.door is not None:
            probe.read(1, SLACK_S)
            self._expect("the end", seen.end, {"refused": "refused", "reset": "reset"}[promise.end])
            self._expect("bytes", len(seen.data), 0)
            return
        (call,) = self._mock.wait_for_calls(1)
        planned = _Plan(call)
        if promise.end == "endless":
            probe.read(ENOUGH_BYTES, SLACK_S)
        elif promise.end == "hang":
            probe.read(planned.size + 1, planned.end_s + max(self._timeout_s * 1.1, 0.1))
        else:
            probe.read(planned.size + (promise.end != "open"), planned.end_s + SLACK_S)
            probe.read(planned.size + 1, probe.elapsed_s + SETTLE_S)
        self._compare_bytes(planned)
        self._compare_times(planned)
        if promise.end == "endless":
            self._expect("an endless body", call.reply.delivery.endless, True)
        elif promise.replies and not promise.late and planned.last_s >= self._timeout_s:
            last_ms = planned.last_s * 1000
            self.mistakes.append(
                f"time: it should be in time, and its last byte is sent after {last_ms:,.0f} ms"
            )
        self._compare_promise()
        self._compare_meaning()

    def aftermath(self) -> None:
        """See that nothing of the scenario is left once the client has gone, and that a good call works."""
        for call in self._mock.wait_until_sent(SLACK_S):
            if self._scenario.promise.end in ("hang", "endless") and call.sent is not None:
                self._expect("the end of the delivery", call.sent.how, "client closed")
        self._mock.use("success")
        url = urlsplit(self._mock.endpoint)
        reply = _answer(url.hostname or "", url.port or 0, self._request)
        if reply is None or not _is_good(reply):
            self.mistakes.append("a good call after it did not work")

    # ---- comparing

    def _expect(self, what: str, seen: object, promised: object) -> None:
        if seen != promised:
            self.mistakes.append(f"{what}: {promised} was promised, {seen} was seen")

    def _compare_bytes(self, planned: _Plan) -> None:
        seen = self._probe.seen
        promised = planned.first(len(seen.data) + 1)
        if self._scenario.promise.end == "endless":
            if len(seen.data) < ENOUGH_BYTES:
                self.mistakes.append(f"bytes: no end was promised, {len(seen.data):,} were seen")
            promised = promised[: len(seen.data)]
        if promised != seen.data:
            same = next(
                (n for n, (a, b) in enumerate(zip(promised, seen.data, strict=False)) if a != b),
                min(len(promised), len(seen.data)),
            )
            self.mistakes.append(
                f"bytes: {planned.size:,} were promised and {len(seen.data):,} seen, the same up to {same:,}"
            )

    def _compare_times(self, planned: _Plan) -> None:
        for offset, planned_s in planned.times(len(self._probe.seen.data)):
            arrived_s = self._probe.seen.arrived_s(offset)
            if not planned_s - _EARLY_S <= arrived_s <= planned_s + SLACK_S:
                self.mistakes.append(
                    f"time: byte {offset:,} was promised after {planned_s * 1000:,.0f} ms, "
                    f"it was seen after {arrived_s * 1000:,.0f} ms"
                )
                return

    def _compare_promise(self) -> None:
        promise, seen = self._scenario.promise, self._probe.seen
        end = {"hang": "open", "endless": "open"}.get(promise.end, promise.end)
        self._expect("the end", seen.end, end)
        self._expect("the status", status_in(bytes(seen.data)), promise.status)
        replies = self._replies()
        self._expect("complete replies", len(replies), promise.replies)
        complete_s = seen.arrived_s(replies[0].end - 1) if replies else float("inf")
        if promise.late and complete_s < self._timeout_s:
            self.mistakes.append(
                f"time: it should be late, and was complete after {complete_s * 1000:,.0f} ms"
            )
        if promise.end == "open":
            self._expect("another call on the connection", self._second_call(), "answered")
        if promise.status in (301, 302, 303, 307, 308) and replies:
            self._follow(replies[0])

    def _compare_meaning(self) -> None:
        """Read what arrived as the contract says, and compare that with the outcomes of a good consumer."""
        promise, seen = self._scenario.promise, self._probe.seen
        reader = ReplyReader(self._limit)
        for start in range(0, len(seen.data), READ_BYTES):
            if reader.result is None:
                reader.feed(bytes(seen.data[start : start + READ_BYTES]))
        if seen.end != "open":
            reader.end(reset=seen.end == "reset")
        outcome = "timeout" if promise.late or reader.result is None else reader.result.outcome
        if outcome not in self._scenario.outcomes:
            promised = " or ".join(self._scenario.outcomes)
            self.mistakes.append(f"the outcome: {promised} was promised, by the contract it is {outcome}")

    def _replies(self) -> list[SeenReply]:
        return replies_in(bytes(self._probe.seen.data), closed=self._probe.seen.end == "close")

    def _second_call(self) -> str:
        before, reads = len(self._probe.seen.data), len(self._probe.seen.arrivals)
        self._mock.use("success")
        self._probe.send(self._request)
        while self._probe.is_open and self._probe.elapsed_s < 2 * SLACK_S:
            self._probe.read(len(self._probe.seen.data) + 1, self._probe.elapsed_s + SLACK_S)
            if answers := replies_in(bytes(self._probe.seen.data[before:]), closed=False):
                del self._probe.seen.data[before:], self._probe.seen.arrivals[reads:]
                return "answered" if _is_good(answers[0]) else "answered badly"
        return "not answered"

    def _follow(self, reply: SeenReply) -> None:
        """See that the place that a redirect leads to answers well, unless it leads back."""
        own = urlsplit(self._mock.endpoint)
        place = urlsplit(reply.headers.get("location", ""))
        if place.path == own.path:
            return
        request = self._request.replace(own.path.encode(), place.path.encode(), 1)
        answer = _answer(place.hostname or own.hostname or "", place.port or own.port or 0, request)
        if answer is None or not _is_good(answer):
            self.mistakes.append(f"the redirect leads to {place.geturl()}, which does not answer well")


class _Plan:
    """What the delivery of a reply says: which bytes, and when."""

    def __init__(self, call: Call) -> None:
        self._steps: list[tuple[float, bytes]] = []
        self.size = 0
        self.end_s = self.last_s = 0.0
        script = scripted(call.reply, call.request, keep_alive=True)
        steps, pause_s = script.steps, script.end_s
        if call.reply.delivery == AT_ONCE:
            steps = iter([encoded(call.reply, call.request, True)[0]])
        for step in steps:
            if not isinstance(step, bytes):
                self.end_s += step
                continue
            self._steps.append((self.end_s, step))
            self.last_s = self.end_s
            self.size += len(step)
            if self.size > 2 * ENOUGH_BYTES and call.reply.delivery.endless:
                return
        self.end_s += pause_s

    def first(self, size: int) -> bytes:
        """Return the first `size` bytes."""
        data = bytearray()
        for _, step in self._steps:
            if len(data) >= size:
                break
            data += step
        return bytes(data[:size])

    def times(self, size: int) -> Iterator[tuple[int, float]]:
        """Yield the offset of each step among the first `size` bytes, and when it is to be sent."""
        offset = 0
        for at, step in self._steps:
            if offset >= size:
                return
            yield offset, at
            offset += len(step)


def _retrieval(mock: Mock) -> bytes:
    url = urlsplit(mock.endpoint)
    body = json.dumps({"query": "用户的猫", "max_results": 3}, ensure_ascii=False).encode()
    lines = (
        f"POST {url.path} HTTP/1.1",
        f"Host: {url.netloc}",
        f"Content-Type: {JSON_TYPE}",
        f"Accept: {JSON_TYPE}",
        "Accept-Encoding: gzip",
        f"Authorization: {mock.authorization}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _answer(host: str, port: int, request: bytes) -> SeenReply | None:
    """Return the answer to a request on a connection of its own, None when there is none."""
    probe = Probe(host, port)
    try:
        probe.send(request)
        while probe.is_open and probe.elapsed_s < SLACK_S:
            probe.read(len(probe.seen.data) + 1, SLACK_S)
            if replies := replies_in(bytes(probe.seen.data), closed=not probe.is_open):
                return replies[0]
        return None
    finally:
        probe.close()


def _is_good(reply: SeenReply) -> bool:
    try:
        return reply.status == 200 and bool(json.loads(reply.body)["memories"])
    except (ValueError, KeyError, TypeError):
        return False
