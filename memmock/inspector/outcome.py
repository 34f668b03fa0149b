"""What a call came to, as far as the server can tell: what the model is given, and the broken rules.

What was sent is read again as a consumer reads it. A consumer that left is taken to have left for the reason
that was near: its time was over, or what it had was enough.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from memmock.http import AT_ONCE, Headers, Reply, Request
from memmock.journal import Call
from memmock.reply_reader import ReplyReader
from memmock.reply_writer import scripted
from memmock.rules import Violation, reply_violations, request_violations
from memmock.tool_result import ToolResult, tool_result

Side = Literal["request", "reply"]

WIRE_BYTES = 256 * 1024
"""So much of what was sent is read again: more than any consumer takes by default."""
_USUAL_BYTES = 16 * 1024
"""Of larger messages no judgement is remembered."""
_JUDGED_BYTES = 256 * 1024
"""Larger replies are not judged, which takes a second; no consumer takes them."""
_NEARLY = 0.9
"""From this part of the consumer's time on, it left because that was over: it counts from an earlier one."""


class Verdict(NamedTuple):
    """What a call came to.

    `result` is what the model is given; None while that is open, or when it cannot be known. `violations` are
    those of both sides.
    """

    result: ToolResult | None
    violations: tuple[tuple[Side, Violation], ...]


def verdict(call: Call, max_response_bytes: int) -> Verdict:
    """Return what a call came to; a consumer takes so many bytes."""
    request, reply = call.request, call.reply
    if not reply.body and call.recording.startswith("not recorded"):  # the journal has no more of it
        return Verdict(None, _judged_request(request.method, request.headers, request.body))
    size = len(request.body) + len(reply.body)
    if call.followed:
        asked: tuple[tuple[Side, Violation], ...] = ()
    elif size <= _USUAL_BYTES:
        asked = _judged_request(request.method, request.headers, request.body)
    else:
        asked = _judged_request.__wrapped__(request.method, request.headers, request.body)
    if reply.delivery == AT_ONCE:
        judge = _judged_reply if size <= _USUAL_BYTES else _judged_reply.__wrapped__
        result, answered = judge(
            request.method,
            request.headers,
            request.body,
            reply.status,
            reply.headers,
            reply.body,
            max_response_bytes,
        )
        return Verdict(result, asked + answered)
    read = _read(call, max_response_bytes)
    late = call.elapsed_s if read is not None and read.outcome == "timeout" else None
    return Verdict(read, asked + _broken(reply, request, max_response_bytes, call.timeout_ms, late))


@lru_cache(1024)
def _judged_request(method: str, headers: Headers, body: bytes) -> tuple[tuple[Side, Violation], ...]:
    return tuple([("request", found) for found in request_violations(Request(method, "/", headers, body))])


@lru_cache(1024)
def _judged_reply(
    method: str, sent: Headers, asked: bytes, status: int, headers: Headers, body: bytes, most: int
) -> tuple[ToolResult, tuple[tuple[Side, Violation], ...]]:
    reply = Reply(status, headers, body)
    return tool_result(reply, most), _broken(reply, Request(method, "/", sent, asked), most)


def _broken(
    reply: Reply, request: Request, most: int, timeout_ms: int = 1, elapsed_s: float | None = None
) -> tuple[tuple[Side, Violation], ...]:
    if reply.delivery.wire is not None or len(reply.body) > _JUDGED_BYTES:
        return ()
    found = reply_violations(
        reply, request, max_response_bytes=most, timeout_ms=timeout_ms, elapsed_s=elapsed_s
    )
    return tuple([("reply", one) for one in found])


def _read(call: Call, most: int) -> ToolResult | None:
    sent, delivery = call.sent, call.reply.delivery
    if sent is None:
        return None
    reader = ReplyReader(most)
    data = on_the_wire(call.request, call.reply, min(sent.sent_bytes, WIRE_BYTES))
    reader.feed(data)
    left = sent.how in ("client closed", "stopped")
    sending_ms = (sent.elapsed_s - (0 if left else delivery.end_s)) * 1000
    if reader.result is not None and len(data) < sent.sent_bytes:  # decided early on: more came than was read
        return reader.result
    if sending_ms > call.timeout_ms * (_NEARLY if left else 1):
        if reader.result is not None and left and delivery.delay_s == 0 and delivery.slice_bytes == 0:
            return reader.result  # it was there at once, and the connection stayed
        return ToolResult.failed("timeout", f"no complete answer within {call.timeout_ms} ms")
    if reader.result is None and not left:
        reader.end(reset=sent.how == "reset")
    return reader.result


def on_the_wire(request: Request, reply: Reply, most: int) -> bytes:
    """Return what goes on the wire for a reply, the first `most` bytes of it."""
    kept = (request.header("Connection") or "").lower() != "close"
    data = bytearray()
    try:
        for step in scripted(reply, request, kept).steps:
            if isinstance(step, bytes):
                data += step
            if len(data) >= most:
                break
    except ValueError:  # a reply that could not be sent: the client got an error in its place
        return b""
    return bytes(data[:most])
