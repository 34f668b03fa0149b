"""Answers beyond the size that a consumer allows; it stops reading there."""

from __future__ import annotations

import gzip
import struct
import zlib
from functools import lru_cache

from memmock.http import JSON_TYPE, Reply
from memmock.scenarios.framing import paced, padded
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("sizes")


def _oversized(stage: Stage, factor: float) -> Reply:
    size = min(int(factor * stage.max_response_bytes), _LARGEST_BODY)
    return padded(stage, max(size, stage.max_response_bytes + 1))


@shelf("response_too_large")
def over_limit_by_one(stage: Stage) -> Reply:
    """The body is one byte larger than the consumer allows; it has fewer characters than that."""
    return paced(stage, padded(stage, stage.max_response_bytes + 1))


@shelf("response_too_large")
def oversized(stage: Stage, *, factor: float = 4.0) -> Reply:
    """The body is `factor` times as large as the consumer allows, and its length says so."""
    return paced(stage, _oversized(stage, factor))


@shelf("response_too_large")
def oversized_chunked(stage: Stage, *, factor: float = 4.0) -> Reply:
    """The body is too large and chunked, so that nothing says how large it is."""
    return paced(stage, _oversized(stage, factor).chunked(8192))


@shelf("response_too_large", end="close")
def oversized_without_length(stage: Stage, *, factor: float = 4.0) -> Reply:
    """The body is too large and ends with the connection."""
    return paced(stage, _oversized(stage, factor).until_close())


@shelf("response_too_large", end="endless")
def endless(stage: Stage) -> Reply:
    """The body never ends: memory after memory comes, until the client leaves."""
    memory = '{"summary":"用户喜欢喝茉莉花茶，也喜欢下雨天。"},'.encode()
    return paced(stage, Reply(200, (("Content-Type", JSON_TYPE),), memory * 200).chunked(8192).endless())


@shelf("response_too_large", "invalid_json")
def gzip_bomb(stage: Stage, *, inflated_bytes: int = 10 * 1024 * 1024) -> Reply:
    """A small gzip body inflates to 10 MiB; a client that did not ask for gzip may take it for no JSON."""
    size = min(max(inflated_bytes, 4 * stage.max_response_bytes), _LARGEST_BOMB)
    return Reply(200, _GZIP, _bomb(size))


@shelf("response_too_large")
def gzip_oversized(stage: Stage) -> Reply:
    """The gzip body is larger than the consumer allows as it is received, and small when it is decoded."""
    answer = gzip.compress(stage.answer().body, mtime=0)
    nothing = gzip.compress(b"", mtime=0)
    return paced(stage, Reply(200, _GZIP, nothing * (stage.max_response_bytes // len(nothing) + 1) + answer))


@shelf("response_too_large", "connection_failed", "ok")
def huge_header(stage: Stage, *, header_bytes: int = 1024 * 1024) -> Reply:
    """One header is a mebibyte long; a client may have a limit of its own for heads, or none."""
    reply = stage.answer()
    header = "X-Debug", "x" * min(header_bytes, _LARGEST_HEADER)
    return paced(stage, reply._replace(headers=(*reply.headers, header)))


_GZIP = (("Content-Type", JSON_TYPE), ("Content-Encoding", "gzip"))
_LARGEST_BODY = 16 * 1024 * 1024
_LARGEST_HEADER = 16 * 1024 * 1024
_LARGEST_BOMB = 256 * 1024 * 1024
_BLOCK = 1024 * 1024


@lru_cache(4)
def _bomb(size: int) -> bytes:
    """Return gzip that inflates to JSON of `size` bytes.

    One block is compressed and then repeated, as it is made on the server's loop: 10 MiB would hold it up for
    a tenth of a second.
    """
    start, end = b'{"memories":[{"summary":"', b'"}]}'
    blocks, rest = divmod(max(0, size - len(start) - len(end)), _BLOCK)
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    head = compressor.compress(start + b"a" * rest) + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(b"a" * _BLOCK) + compressor.flush(zlib.Z_FULL_FLUSH)
    tail = compressor.compress(end) + compressor.flush()
    check = zlib.crc32(start + b"a" * rest)
    for _ in range(blocks):
        check = zlib.crc32(b"a" * _BLOCK, check)
    check = zlib.crc32(end, check)
    total = len(start) + rest + blocks * _BLOCK + len(end)
    gzip_head = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
    return gzip_head + head + block * blocks + tail + struct.pack("<II", check, total & 0xFFFFFFFF)
