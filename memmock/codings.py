"""Content-Encoding: what it did to a body, undone within a bound, and whether it did anything."""

from __future__ import annotations

import zlib
from typing import NamedTuple

MOST_BYTES = 64 * 1024 * 1024
"""No body is unpacked to more."""
_SURE = 1024 * 1024
"""Of so much text it is sure enough that it was packed."""

_GZIP_NAMES = ("gzip", "x-gzip")
_GZIP, _ZLIB, _RAW = 31, 15, -15
"""What zlib calls them. Deflate is the second; some servers send the third under its name."""


class Undone(NamedTuple):
    """A body with its codings undone as far as they can be.

    Attributes:
        body: the body, with the codings that are left still on it.
        left: the codings that could not be undone, as a header names them; empty when all could.
        flaw: what is wrong with the last of them, as "but broken"; empty when it is neither gzip nor deflate.
    """

    body: bytes
    left: str
    flaw: str = ""


def undone(body: bytes, codings: str) -> Undone:
    """Return a body with the codings of its Content-Encoding undone, the last one first."""
    left = _listed(codings)
    while left and left[-1] in (*_GZIP_NAMES, "deflate"):
        bits = _GZIP if left[-1] != "deflate" else _ZLIB if _has_zlib_header(body) else _RAW
        try:
            plain = _inflated(body, bits, MOST_BYTES)
        except ValueError as error:
            return Undone(body, ", ".join(left), f"but {error}")
        if len(plain) > MOST_BYTES:
            return Undone(body, ", ".join(left), f"holds more than {MOST_BYTES >> 20} MiB")
        body = plain
        left.pop()
    return Undone(body, ", ".join(left))


def is_encoded(body: bytes, codings: str) -> bool:
    """Tell whether a body is packed as its Content-Encoding says, as far as can be seen.

    Clients that unpack a body may leave the header as it was. Of a coding that is neither gzip nor deflate,
    that is taken to be so when the body is text.
    """
    listed = _listed(codings)
    if not listed:
        return False
    if listed[-1] in _GZIP_NAMES:
        return body.startswith(b"\x1f\x8b")
    if listed[-1] == "deflate":  # raw, the beginning of a JSON object is that of a stream too
        return bool(body) and (_inflates(body, _ZLIB, 0) or _inflates(body, _RAW, _SURE))
    try:
        body.decode()
    except UnicodeDecodeError:
        return True
    return False


def _listed(codings: str) -> list[str]:
    names = [coding.strip().lower() for coding in codings.split(",")]
    return [name for name in names if name not in ("", "identity")]


def _has_zlib_header(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0


def _inflates(body: bytes, bits: int, most: int) -> bool:
    try:
        _inflated(body, bits, most)
    except ValueError:
        return False
    return True


def _inflated(body: bytes, bits: int, most: int) -> bytes:
    """Return what was packed, or its first `most` + 1 bytes.

    Raises:
        ValueError: it is "broken" or "cut short".
    """
    pieces, left = [], most + 1
    while body and left:
        member = zlib.decompressobj(bits)
        try:
            pieces.append(member.decompress(body, left))
        except zlib.error:
            raise ValueError("broken") from None
        left -= len(pieces[-1])
        if left and not member.eof:
            raise ValueError("cut short")
        body = member.unused_data.lstrip(b"\0") if bits == _GZIP else b""
    return b"".join(pieces)
