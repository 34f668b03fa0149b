"""The ways in which one reply can be written and sent, and the bytes that each of them makes of it.

Nothing here says what the bytes mean. The plain way gives the same bytes as the server's own writer.
"""

from __future__ import annotations

import gzip
import re
import zlib
from http import HTTPStatus
from typing import Literal, NamedTuple

from memmock.http import Ending, Framing, Headers, Part, header

Names = Literal["title", "lower", "upper"]
Reason = Literal["standard", "empty", "absent", "other", "latin-1", "utf-8"]
Sizes = Literal["lower", "upper", "padded"]
Coding = Literal[
    "", "gzip", "gzip stored", "gzip members", "gzip corrupt", "gzip cut", "gzip only named", "deflate"
]


class Style(NamedTuple):
    """How a reply is written and sent.

    Times are fractions of the consumer's `timeout_ms`.

    Attributes:
        names: the case of the names of headers.
        colon: what is between the name of a header and its value.
        reason: the words after the status: those of the standard, none (`absent` leaves out the space before
            them too), other ones, or ones that are not ASCII.
        version: that of HTTP; with 1.0 there are no chunks, and the connection is closed.
        framing: how the end of the body is told.
        length_by: how much larger than the body the Content-Length is; negative for smaller.
        chunk_bytes: how large the chunks are.
        sizes: how their sizes are written: hexadecimal digits in lower or upper case, or with leading zeros.
        extension: what follows each of these sizes.
        trailers: what follows the last chunk.
        coding: what is done to the body, and told by Content-Encoding.
        interim: statuses of the replies before the reply.
        surplus: bytes that follow a reply that is complete.
        delay: the time before the first byte.
        slices: in how many parts it is sent.
        spread: the time from the first to the last of them.
        sliced: which part of it is sent in slices.
        cut: how many bytes are sent, those of interim replies not counted; None for all. What is cut is
            closed when nothing else is said.
        ending: what becomes of the connection.
    """

    names: Names = "title"
    colon: str = ": "
    reason: Reason = "standard"
    version: Literal["1.1", "1.0"] = "1.1"
    framing: Framing = "length"
    length_by: int = 0
    chunk_bytes: int = 1024
    sizes: Sizes = "lower"
    extension: str = ""
    trailers: Headers = ()
    coding: Coding = ""
    interim: tuple[int, ...] = ()
    surplus: bytes = b""
    delay: float = 0.0
    slices: int = 1
    spread: float = 0.0
    sliced: Part = "all"
    cut: int | None = None
    ending: Ending = "keep"


PLAIN = Style()
BODILESS = frozenset({*range(100, 200), 204, 304})
"""Statuses of replies that never have a body."""
_HINTS: Headers = (("Link", "</style.css>; rel=preload"),)
_REASONS: dict[Reason, bytes] = {
    "empty": b" ",
    "absent": b"",
    "other": b" All Is Well: 100% [sure]",
    "latin-1": b" D\xe9j\xe0 vu",
    "utf-8": " 好的".encode(),
}
_PHRASES = {status.value: f" {status.phrase}".encode() for status in HTTPStatus}
_NATIVE = ("names", "colon", "reason", "version", "length_by", "sizes", "extension", "trailers", "surplus")


class Written(NamedTuple):
    """A reply as bytes.

    Attributes:
        headers: those beside the framing, the Content-Encoding included.
        content: the body as it is received, without its framing.
        head: the status line and the headers, framing and empty line included.
        payload: the content with its framing.
        framing: how the end of the content is told, for this version and status.
        ending: what becomes of the connection, for this framing and cut.
        native: whether the server's own writer makes the same bytes of status, headers and content.
    """

    headers: Headers
    content: bytes
    head: bytes
    payload: bytes
    framing: Framing
    ending: Ending
    native: bool

    @property
    def wire(self) -> bytes:
        """All of it."""
        return self.head + self.payload


def written(status: int, headers: Headers, body: bytes, style: Style) -> Written:
    """Return a reply as it is written; what is cut off is still there."""
    bodiless = status in BODILESS
    content = b"" if bodiless else coded(body, style.coding)
    if style.coding:
        headers = (*headers, ("Content-Encoding", "deflate" if style.coding == "deflate" else "gzip"))
    framing = style.framing
    if bodiless:
        framing = "length"
    elif style.version == "1.0" and framing == "chunked":
        framing = "close"
    lines = list(headers)
    if framing == "close" and header(headers, "Connection") is None:
        lines.append(("Connection", "close"))
    if framing == "length" and not bodiless:
        lines.append(("Content-Length", str(max(0, len(content) + style.length_by))))
    elif framing == "chunked":
        lines.append(("Transfer-Encoding", "chunked"))
    head = b"HTTP/%s %d%s\r\n" % (style.version.encode(), status, _reason(status, style.reason))
    head += b"".join(
        f"{_in_case(name, style.names)}{style.colon}{value}\r\n".encode("latin-1") for name, value in lines
    )
    payload = _chunked(content, style) if framing == "chunked" else content
    if framing != "close":
        payload += style.surplus
    closes = (
        framing == "close"
        or style.version == "1.0"
        or (header(headers, "Connection") or "").lower() == "close"
    )
    ending = style.ending
    if ending == "keep" and (closes or style.cut is not None):
        ending = "close"
    if ending == "keep" and framing == "length" and style.length_by > 0 and not bodiless:
        ending = "hang"  # the rest of the body is owed
    native = all(getattr(style, name) == getattr(PLAIN, name) for name in _NATIVE) and not folded(headers)
    return Written(headers, content, head + b"\r\n", payload, framing, ending, native)


def early(statuses: tuple[int, ...]) -> tuple[tuple[int, Headers], ...]:
    """Return interim replies with their headers."""
    return tuple((status, _HINTS if status == 103 else ()) for status in statuses)


def early_bytes(statuses: tuple[int, ...]) -> int:
    """Return how long interim replies are on the wire."""
    heads = (written(status, headers, b"", PLAIN).head for status, headers in early(statuses))
    return sum(map(len, heads))


def payload_bytes(content_bytes: int, content: bytes, framing: Framing, style: Style) -> int:
    """Return how many bytes of the payload are sent when so many of the content are there."""
    if framing != "chunked" or not content_bytes:
        return content_bytes
    before = (content_bytes - 1) // style.chunk_bytes
    whole = before * style.chunk_bytes
    sizes = before * (len(_chunk_size(style.chunk_bytes, style)) + 2)
    return sizes + len(_chunk_size(min(style.chunk_bytes, len(content) - whole), style)) + content_bytes


def folded(headers: Headers) -> bool:
    """Whether a value goes on in another line, as HTTP once had it."""
    return any("\n" in value for _, value in headers)


def coded(body: bytes, coding: Coding) -> bytes:
    """Return a body in a content coding, or in what only calls itself so; the same bytes each time."""
    if coding in ("", "gzip only named"):
        return body
    if coding == "deflate":
        return zlib.compress(body)
    if coding == "gzip stored":
        return gzip.compress(body, 0, mtime=0)
    if coding == "gzip members":
        middle = len(body) // 2
        return b"".join(gzip.compress(part, mtime=0) for part in (body[:middle], body[middle:]))
    data = gzip.compress(body, mtime=0)
    if coding == "gzip cut":
        return data[: len(data) * 2 // 3]
    if coding == "gzip corrupt":  # its checksum, and what it says of its first block
        return data[:10] + bytes([data[10] | 7]) + data[11:-8] + bytes(8)
    return data


def unfolded(headers: Headers) -> Headers:
    """Return headers whose values are on one line each."""
    return tuple((name, re.sub(r"\r\n[ \t]+", " ", value)) for name, value in headers)


def _reason(status: int, reason: Reason) -> bytes:
    return _PHRASES.get(status, b" ") if reason == "standard" else _REASONS[reason]


def _in_case(name: str, names: Names) -> str:
    return {"title": name, "lower": name.lower(), "upper": name.upper()}[names]


def _chunk_size(size: int, style: Style) -> bytes:
    digits = {"lower": f"{size:x}", "upper": f"{size:X}", "padded": f"{size:06x}"}[style.sizes]
    return f"{digits}{style.extension}\r\n".encode("latin-1")


def _chunked(content: bytes, style: Style) -> bytes:
    parts = []
    for start in range(0, len(content), style.chunk_bytes):
        part = content[start : start + style.chunk_bytes]
        parts += [_chunk_size(len(part), style), part, b"\r\n"]
    parts.append(_chunk_size(0, style))
    parts += [f"{name}: {value}\r\n".encode("latin-1") for name, value in style.trailers]
    return b"".join([*parts, b"\r\n"])
