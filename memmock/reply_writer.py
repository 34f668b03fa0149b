"""One reply as the bytes that go on the wire, without I/O.

`encoded` is for a reply that is sent at once, as nearly all are. `scripted` is for every other delivery: it
gives the steps, and whoever has the socket plays them. No `Date` header is added: the same reply has the same
bytes every time.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from memmock.http import Delivery, Ending, Headers, Reply, Request

SLICE_BYTES = 16 * 1024
"""How much of a large body is sent at once, so that it can be told how far a client went."""
_LARGEST_SLICE = 1024 * 1024
PACE_S = 0.001
"""The pause between two such slices: a client that has enough gets to say so before the next."""


def encoded(reply: Reply, request: Request, keep_alive: bool) -> tuple[bytes, bool]:
    """Return a reply as it goes on the wire, and whether the connection stays open after it."""
    _check_status(reply.status)
    head, keep_alive = _head(reply.status, reply.headers, keep_alive, request.version == "1.0")
    if reply.status in _BODILESS:
        return head + b"\r\n", keep_alive
    body = b"" if request.method == "HEAD" else reply.body
    return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(reply.body), body), keep_alive


class Script(NamedTuple):
    """What is to be done for one reply: `steps` in their order, then `ending`.

    A step is bytes to send or a pause in seconds. There is no end to the steps of an endless body. `end_s` is
    the pause before the ending, in seconds. With `serves`, the connection goes on being served during it, as
    the reply is complete and nothing has told the client of the end. `stream` gives what is sent after the
    steps.
    """

    steps: Iterator[bytes | float]
    ending: Ending
    end_s: float = 0.0
    serves: bool = False
    stream: AsyncGenerator[bytes, None] | None = None


def scripted(reply: Reply, request: Request, keep_alive: bool) -> Script:
    """Return a reply as what is to be done on the wire.

    Args:
        reply: the reply.
        request: what it answers.
        keep_alive: whether the client would keep the connection.
    """
    delivery = reply.delivery
    if delivery.wire is not None:
        head, mark, body = delivery.wire.partition(b"\r\n\r\n")
        head, body = (head + mark, body) if mark else (b"", head)
        if mark and delivery.ending == "keep" and not keep_alive:
            head = head[:-2] + b"Connection: close\r\n\r\n"
        parts = itertools.repeat(body) if delivery.endless and body else iter((body,))
    else:
        head, parts, keep_alive = _framed(reply, request, keep_alive)
    interim = b"".join(_made_head(*first, True, False)[0] + b"\r\n" for first in delivery.interim)
    ending = delivery.ending
    if ending == "keep" and not keep_alive:
        ending = "close"
    serves = delivery.ending == "close" and keep_alive and not delivery.cut and delivery.wire is None
    steps = _steps(delivery, interim + head, parts)
    return Script(steps, ending, delivery.end_s, serves, delivery.stream)


def _framed(reply: Reply, request: Request, keep_alive: bool) -> tuple[bytes, Iterator[bytes], bool]:
    """Return the head of a reply, its body as it goes on the wire, and whether the connection stays open."""
    delivery, old = reply.delivery, request.version == "1.0"
    framing = delivery.framing
    if framing == "chunked" and old:
        framing = "close"  # HTTP/1.0 has no chunks
    bodiless = reply.status in _BODILESS
    _check_status(reply.status)
    keep_alive = keep_alive and framing != "close"
    head, keep_alive = _made_head(reply.status, reply.headers, keep_alive, old)
    if not bodiless:
        head += {
            "length": b"Content-Length: %d\r\n" % len(reply.body),
            "chunked": b"Transfer-Encoding: chunked\r\n",
            "close": b"",
        }[framing]
    sent = not bodiless and request.method != "HEAD"
    body = reply.body if sent else b""
    bodies = itertools.repeat(body) if delivery.endless and body else iter((body,))
    if framing == "chunked" and sent:
        return head + b"\r\n", _chunks(bodies, delivery.chunk_bytes), keep_alive
    return head + b"\r\n", bodies, keep_alive


def _chunks(bodies: Iterator[bytes], size: int) -> Iterator[bytes]:
    for body in bodies:
        for start in range(0, len(body), size):
            part = body[start : start + size]
            yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def _steps(delivery: Delivery, head: bytes, parts: Iterator[bytes]) -> Iterator[bytes | float]:
    if delivery.delay_s:
        yield delivery.delay_s
    if delivery.cut_head is not None:
        head, parts = head[: delivery.cut_head], iter(())
    elif delivery.cut_body is not None:
        parts = _first(parts, delivery.cut_body)
    size, every_s = delivery.slice_bytes, delivery.every_s
    if not size or delivery.sliced == "all":
        parts = itertools.chain((head,), parts)
        yield from _sliced(parts, size or SLICE_BYTES, every_s if size else PACE_S)
    elif delivery.sliced == "body":
        yield from _joined(iter((head,)), _sliced(parts, size, every_s), every_s)
    else:
        yield from _joined(
            _sliced(iter((head,)), size, every_s), _sliced(parts, SLICE_BYTES, PACE_S), every_s
        )


def _joined(
    head: Iterator[bytes | float], body: Iterator[bytes | float], pause_s: float
) -> Iterator[bytes | float]:
    """Yield the steps of the head and those of the body, with a pause between the two."""
    yield from head
    if (first := next(body, None)) is not None:
        yield pause_s
        yield first
        yield from body


def _first(parts: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of `parts`."""
    for part in parts:
        if size <= 0:
            return
        yield part[:size]
        size -= len(part)


def _sliced(parts: Iterator[bytes], size: int, pause_s: float) -> Iterator[bytes | float]:
    """Yield the same bytes in slices of `size`, the last one shorter, with a pause between two."""
    size = min(size, _LARGEST_SLICE)
    rest = bytearray()
    sent = False
    for part in parts:
        rest += part
        start = 0
        while len(rest) - start >= size:
            if sent:
                yield pause_s
            yield bytes(rest[start : start + size])
            start += size
            sent = True
        del rest[:start]
    if rest:
        if sent:
            yield pause_s
        yield bytes(rest)


_BODILESS = frozenset({*range(100, 200), 204, 304})


def _check_status(status: int) -> None:
    if not 200 <= status <= 999:
        raise ValueError(f"the status of a reply is from 200 to 999, not {status}; others may come before it")


def _made_head(status: int, headers: Headers, keep_alive: bool, old: bool) -> tuple[bytes, bool]:
    """Return the head of a reply up to its length, and whether the connection stays open after it."""
    phrase = HTTPStatus(status).phrase if status in _STATUSES else ""
    own = [(name, value) for name, value in headers if name.lower() not in _FRAMING]
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in own)]
    asked = next((value.lower() for name, value in headers if name.lower() == "connection"), None)
    if asked is None:
        if not keep_alive:
            lines.append("Connection: close")
        elif old:
            lines.append("Connection: keep-alive")
    text = "\r\n".join([*lines, ""])
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError("a header holds a line break")
    return text.encode("latin-1"), keep_alive and asked != "close"


_head = lru_cache(8192)(_made_head)  # most plain replies have one of a few heads, or one that was recorded


_STATUSES = frozenset(HTTPStatus)
_FRAMING = ("content-length", "transfer-encoding")  # what a handler says of these is left out
