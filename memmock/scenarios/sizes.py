"""Answers beyond the size that a consumer allows; it stops reading there."""

from __future__ import annotations

import gzip
from functools import lru_cache

from memmock.http import JSON_TYPE, Reply
from memmock.scenarios.framing import paced, padded
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("sizes")


def _oversized(stage: Stage, factor: float) -> Reply:
    return padded(stage, max(int(factor * stage.max_response_bytes), stage.max_response_bytes + 1))


@shelf("response_too_large")
def over_limit_by_one(stage: Stage) -> Reply:
    """The body is one byte larger than the consumer allows; it has fewer characters than that."""
    return paced(padded(stage, stage.max_response_bytes + 1))


@shelf("response_too_large")
def oversized(stage: Stage, *, factor: float = 4.0) -> Reply:
    """The body is `factor` times as large as the consumer allows, and its length says so."""
    return paced(_oversized(stage, factor))


@shelf("response_too_large")
def oversized_chunked(stage: Stage, *, factor: float = 4.0) -> Reply:
    """The body is too large and chunked, so that nothing says how large it is."""
    return _oversized(stage, factor).chunked(8192)


@shelf("response_too_large", end="close")
def oversized_without_length(stage: Stage, *, factor: float = 4.0) -> Reply:
    """The body is too large and ends with the connection."""
    return _oversized(stage, factor).until_close()


@shelf("response_too_large", end="endless")
def endless(stage: Stage) -> Reply:
    """The body never ends: memory after memory comes, until the client leaves."""
    memory = '{"summary":"用户喜欢喝茉莉花茶，也喜欢下雨天。"},'.encode()
    return Reply(200, (("Content-Type", JSON_TYPE),), memory * 200).chunked().endless()


@shelf("response_too_large", "invalid_json")
def gzip_bomb(stage: Stage, *, inflated_bytes: int = 10 * 1024 * 1024) -> Reply:
    """A small gzip body inflates to 10 MiB; a client that did not ask for gzip may take it for no JSON."""
    headers = (("Content-Type", JSON_TYPE), ("Content-Encoding", "gzip"))
    return Reply(200, headers, _bomb(min(inflated_bytes, _LARGEST_BOMB)))


@shelf("response_too_large", "connection_failed")
def huge_header(stage: Stage, *, header_bytes: int = 1024 * 1024) -> Reply:
    """One header is a mebibyte long; an HTTP library may refuse it before anyone can say how large it is."""
    reply = stage.answer()
    return paced(
        reply._replace(headers=(*reply.headers, ("X-Debug", "x" * min(header_bytes, _LARGEST_BOMB))))
    )


_LARGEST_BOMB = 1024 * 1024 * 1024


@lru_cache(4)
def _bomb(size: int) -> bytes:
    start, end = b'{"memories":[{"summary":"', b'"}]}'
    filler = b"a" * max(0, size - len(start) - len(end))
    return gzip.compress(start + filler + end, mtime=0)
