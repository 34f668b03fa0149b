"""Connections that are refused, reset or closed, and answers that are not HTTP."""

from __future__ import annotations

import random

from memmock.http import Reply
from memmock.scenarios.framing import framed
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("connection")


def _nothing(stage: Stage) -> Reply:
    return Reply.json({}).cut_head(0)


@shelf("connection_failed", status=None, end="refused", door="refuse", needs="control of the port")
def refused(stage: Stage) -> Reply:
    """Nobody listens at the port."""
    return _nothing(stage).reset()


@shelf("connection_failed", status=None, end="reset", door="reset", needs="control of the port")
def reset_on_connect(stage: Stage) -> Reply:
    """The connection is reset as soon as it is made."""
    return _nothing(stage).reset()


@shelf("connection_failed", status=None, end="reset")
def reset_after_request(stage: Stage) -> Reply:
    """The connection is reset once the request is there."""
    return _nothing(stage).reset()


@shelf("connection_failed", end="reset")
def reset_mid_body(stage: Stage) -> Reply:
    """Half of the body comes, then a reset."""
    reply = stage.answer()
    return reply.cut(len(reply.body) // 2).reset()


@shelf("connection_failed", status=None, end="close", replies=0)
def close_without_reply(stage: Stage) -> Reply:
    """The connection is closed without an answer."""
    return _nothing(stage).closed()


@shelf("connection_failed", end="close", replies=0)
def close_mid_headers(stage: Stage) -> Reply:
    """The connection is closed within the headers."""
    return stage.answer().cut_head(40).closed()


@shelf("connection_failed", end="close", replies=0)
def close_mid_body(stage: Stage) -> Reply:
    """The connection is closed in the middle of the body, whose length was given."""
    reply = stage.answer()
    return reply.cut(len(reply.body) // 2).closed()


@shelf("connection_failed", end="close", replies=0)
def close_mid_chunks(stage: Stage) -> Reply:
    """All of the JSON comes in chunks, but the last chunk, which would end the body, does not."""
    body = stage.answer().body
    return framed("Transfer-Encoding: chunked", body=b"%x\r\n%s\r\n" % (len(body), body)).closed()


@shelf("connection_failed", status=None, end="close", replies=0)
def garbage(stage: Stage, *, size: int = 256, seed: int = 1) -> Reply:
    """Random bytes come instead of HTTP, the same ones for the same `seed`."""
    return Reply.raw(b"\x16\x03" + random.Random(seed).randbytes(min(size, 1024 * 1024)))


@shelf("connection_failed", status=None, end="close", replies=0)
def no_http(stage: Stage) -> Reply:
    """The JSON comes by itself, without a status line and headers."""
    return Reply.raw(stage.answer().body)


@shelf("connection_failed", status=None, end="close", replies=0)
def malformed_status_line(stage: Stage) -> Reply:
    """The status is a word; everything else is right."""
    body = stage.answer().body
    return framed(f"Content-Length: {len(body)}", line="HTTP/1.1 OK two-hundred", body=body).closed()


@shelf("connection_failed", end="close", replies=0)
def malformed_chunk(stage: Stage) -> Reply:
    """The size of the second chunk is not a number."""
    body = stage.answer().body
    half = len(body) // 2
    chunks = b"%x\r\n%s\r\n%s\r\n%s\r\n0\r\n\r\n" % (half, body[:half], b"zz", body[half:])
    return framed("Transfer-Encoding: chunked", body=chunks).closed()


@shelf("connection_failed", end="close", replies=0)
def length_too_long(stage: Stage, *, by: int = 10) -> Reply:
    """The Content-Length is larger than the body, which is complete JSON; then the connection is closed."""
    body = stage.answer().body
    return framed(f"Content-Length: {len(body) + max(1, by)}", body=body).closed()


@shelf("connection_failed", "invalid_json")
def length_too_short(stage: Stage, *, by: int = 10) -> Reply:
    """The Content-Length is smaller than the body: what it counts is no JSON, and the rest is no HTTP."""
    body = stage.answer().body
    return framed(f"Content-Length: {max(0, len(body) - max(1, by))}", body=body)


@shelf("ok", "connection_failed", replies=2)
def two_replies(stage: Stage) -> Reply:
    """A second answer follows the first, and must not become the answer to the next request."""
    body = stage.answer().body
    other = Reply.json({"memories": stage.fixed("这不是这次问的。")}).body
    first, second = (framed(f"Content-Length: {len(each)}", body=each) for each in (body, other))
    return Reply.raw((first.delivery.wire or b"") + (second.delivery.wire or b""), ending="keep")
