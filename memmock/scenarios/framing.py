"""Bodies of an exact size, and replies whose framing is written by hand."""

from __future__ import annotations

from memmock.http import JSON_TYPE, Reply, encode_json
from memmock.scenarios.scenario import Stage

_PACE_S = 0.001
_CHARACTER = "茶".encode()


def framed(
    *lines: str, line: str = "HTTP/1.1 200 OK", body: bytes = b"", content_type: str = JSON_TYPE
) -> Reply:
    """Return a reply with this status line, these header lines and this body, framing and all.

    The connection stays open after it. `lines` and `line` are Latin-1.
    """
    first = [line, f"Content-Type: {content_type}"] if content_type else [line]
    head = "\r\n".join([*first, *lines, "", ""])
    return Reply.raw(head.encode("latin-1") + body, ending="keep")


def paced(stage: Stage, reply: Reply) -> Reply:
    """Return a large reply in slices, so that it can be told how much of it the client took.

    They come fast enough for the consumer to reach its limit in a quarter of its time.
    """
    slices = max(1, int(stage.timeout_s / 4 / _PACE_S))
    return reply.dripped(max(16 * 1024, stage.max_response_bytes // slices), _PACE_S, part="all")


def padded(stage: Stage, size: int) -> Reply:
    """Return a good answer whose body has exactly `size` bytes; fewer characters, where there is room.

    Below the size of the smallest answer that is one, it is that one.
    """
    empty = encode_json({"memories": stage.fixed("")})
    room = size - len(empty)
    if room < 1:  # no room for a memory
        return Reply.json({"memories": []})._replace(body=b'{"memories":[]}'.ljust(size))
    summary = _CHARACTER * (room // len(_CHARACTER)) + b"." * (room % len(_CHARACTER))
    return Reply.json(None)._replace(body=empty.replace(b'"summary":""', b'"summary":"%s"' % summary))
