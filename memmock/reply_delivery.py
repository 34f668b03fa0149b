"""When the bytes of a written reply are sent, and what the contract says of a reply that comes like this."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from memmock.http import Delivery, Headers, Reply
from memmock.readings import Reading, readings
from memmock.reply_wire import BODILESS, Style, early, early_bytes, folded, payload_bytes, unfolded, written

_EARLY, _LATE = 0.75, 1.25
"""What comes within this part of the consumer's time is in time, after this late; both between [ours]."""
_AHEAD_BYTES = 65_536
"""So much a client may read at once: until then it need not know that a limit is passed [ours]."""
_LARGE_HEAD_BYTES, _MANY_HEADERS = 8_000, 90
"""A client may refuse larger heads [ours]: some stop at 8,190 bytes of a line, or at 100 headers."""
_FAILED, _TIMEOUT = Reading("connection_failed"), Reading("timeout")
_TOO_LARGE, _NO_JSON = Reading("response_too_large"), Reading("invalid_json")


class _Pace(NamedTuple):
    """The slices: their size in bytes, 0 for none; the pause between them in parts of the consumer's time."""

    size: int
    pause: float


class Sending:
    """One reply on its way: a reply as it is written, and the times of its bytes.

    Args:
        status: its status.
        headers: those beside the framing.
        body: before its content coding.
        style: how it is written and sent.
    """

    def __init__(self, status: int, headers: Headers, body: bytes, style: Style) -> None:
        self.style = style
        self.status = status
        self.written = written(status, headers, body, style)
        self._body = body
        self._early = early_bytes(style.interim)
        wire = len(self.written.wire)
        self.sent = wire if style.cut is None else min(style.cut, wire)
        """How many bytes are sent, those of interim replies not counted."""
        self._head = len(self.written.head)
        self._pace = self._paced()

    # ---- as a delivery

    @property
    def cut(self) -> bool:
        """Whether a part of it is never sent."""
        return self.sent < len(self.written.wire)

    def reply(self, timeout_s: float) -> Reply:
        """Return it for the server; `timeout_s` is the consumer's time in seconds."""
        style, own = self.style, self.written
        changes: dict[str, Any] = {}
        if self.sent < self._head:
            changes["cut_head"] = self.sent and self._early + self.sent
        elif self.cut:
            changes["cut_body"] = self.sent - self._head
        if self._pace.size:
            changes |= {"slice_bytes": self._pace.size, "every_s": _seconds(self._pace.pause * timeout_s)}
            changes["sliced"] = style.sliced
        if own.framing == "chunked" and own.native:
            changes["chunk_bytes"] = style.chunk_bytes
        delivery = Delivery(
            delay_s=_seconds(style.delay * timeout_s), interim=early(style.interim), ending=own.ending
        )._replace(**changes)
        if own.native:
            return Reply(self.status, own.headers, own.content, delivery._replace(framing=own.framing))
        return Reply(self.status, delivery=delivery._replace(wire=own.wire))

    def _paced(self) -> _Pace:
        style = self.style
        head = self._early + min(self.sent, self._head)
        payload = max(0, self.sent - self._head)
        size = {"all": head + payload, "head": head, "body": payload}[style.sliced]
        if not size or (style.slices < 2 and (style.sliced == "all" or not style.spread)):
            return _Pace(0, 0.0)
        slice_bytes = math.ceil(size / style.slices)
        pauses = math.ceil(size / slice_bytes) - 1
        if style.sliced != "all" and payload:
            pauses += 1
        return _Pace(slice_bytes, style.spread / pauses if pauses else 0.0)

    def _at(self, count: int) -> float:
        """Return when so many bytes are sent, in parts of the consumer's time; never for what is cut off."""
        if count > self.sent:
            return math.inf
        size, pause = self._pace
        if not size:
            return self.style.delay
        sliced = self.style.sliced
        if sliced == "all":
            before = math.ceil((self._early + count) / size) - 1
        elif sliced == "head":
            before = math.ceil((self._early + min(count, self._head)) / size) - (count <= self._head)
        else:
            before = math.ceil(max(0, count - self._head) / size)
        return self.style.delay + max(0, before) * pause

    # ---- as the contract reads it

    def readings(self, max_response_bytes: int, accepts: str | None) -> tuple[Reading, ...]:
        """Return everything that a consumer may make of it."""
        found = _distinct(
            reading
            for deadline in (_EARLY, _LATE)
            for reading in self._by(deadline, max_response_bytes, accepts)
        )
        if found == [_TIMEOUT]:
            return (_TIMEOUT,)
        return tuple(_distinct([*found, *self._tolerated()]))

    def _tolerated(self) -> list[Reading]:
        """Return what else may be made of it, as clients differ in what they take for HTTP."""
        own, style = self.written, self.style
        large = self._head > _LARGE_HEAD_BYTES or len(own.headers) > _MANY_HEADERS
        odd = style.reason == "absent" or folded(own.headers) or self.status >= 600
        return [_FAILED] * (large or odd) + [_TOO_LARGE] * large

    def _by(self, deadline: float, limit: int, accepts: str | None) -> list[Reading]:
        """Return what may be made of it by a consumer whose time is over then."""
        ends = self.written.ending in ("close", "reset") and self._at(self.sent) <= deadline
        broken = _FAILED if ends else _TIMEOUT
        if self._at(self._head) > deadline:
            return [broken]
        reset = [_FAILED] * (ends and self.written.ending == "reset")
        if not 200 <= self.status < 300:
            return [Reading("http_error", self.status), *reset]
        content, end = self._content()
        whole = self._at(end) <= deadline
        if self.written.framing == "close":
            whole = ends  # libraries cannot all tell a reset from the end of such a body
        if whole:
            return [*self._meaning(content, limit, accepts), *reset, *self._surplus(end)]
        if len(content) > limit and self._passes(limit, deadline):
            far = len(content) > limit + _AHEAD_BYTES and self._passes(limit + _AHEAD_BYTES, deadline)
            return [_TOO_LARGE, *reset, *([] if far else [broken])]
        if ends and self.written.framing == "chunked" and self._at(end - self._end_bytes()) <= deadline:
            return [*self._meaning(content, limit, accepts), _FAILED]  # the last chunk came: is that all?
        announced = self._announced() > limit or (self.style.coding and len(self._body) > limit)
        return [broken, *([_TOO_LARGE] if announced else [])]

    def _content(self) -> tuple[bytes, int]:
        """Return the content as its framing counts it, and how many bytes are sent when it is complete."""
        own, style = self.written, self.style
        if own.framing == "close":
            content = own.content[: max(0, self.sent - self._head)]
            return content, self._head + len(content)
        if own.framing == "chunked":
            return own.content, len(own.wire) - len(style.surplus)
        if self.status in BODILESS:
            return b"", self._head
        content = own.content[: max(0, self._announced())]
        return content, self._head + self._announced()

    def _end_bytes(self) -> int:
        """Return how many bytes follow the last chunk: trailers and an empty line."""
        return 2 + sum(len(name) + len(value) + 4 for name, value in self.style.trailers)

    def _announced(self) -> int:
        """Return what the Content-Length says; 0 without one."""
        if self.written.framing != "length" or self.status in BODILESS:
            return 0
        return max(0, len(self.written.content) + self.style.length_by)

    def _passes(self, size: int, deadline: float) -> bool:
        """Whether more of the content than this is sent by then."""
        payload = payload_bytes(size + 1, self.written.content, self.written.framing, self.style)
        return self._at(self._head + payload) <= deadline

    def _surplus(self, end: int) -> list[Reading]:
        return [_FAILED] * (self.written.framing != "close" and self.sent > end)

    def _meaning(self, content: bytes, limit: int, accepts: str | None) -> list[Reading]:
        reply = Reply(self.status, unfolded(self.written.headers), content)
        found = list(readings(reply, max_response_bytes=limit, accepts=accepts))
        return [*found, *([_NO_JSON] if self.status == 205 else [])]  # some take it for one without a body


def _distinct(found: Iterable[Reading]) -> list[Reading]:
    kept: list[Reading] = []
    for reading in found:
        if reading not in kept:
            kept.append(reading)
    return kept


def _seconds(value: float) -> float:
    """Return seconds rounded as they are written in a scenario file, in milliseconds."""
    return round(value * 1000, 3) / 1000
