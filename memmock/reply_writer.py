"""One reply as the bytes that go on the wire, without I/O.

No `Date` header is added: the same reply has the same bytes every time.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus

from memmock.http import Headers, Reply, Request


def encoded(reply: Reply, request: Request, keep_alive: bool) -> tuple[bytes, bool]:
    """Return a reply as it goes on the wire, and whether the connection stays open after it."""
    head, keep_alive = _head(reply.status, reply.headers, keep_alive, request.version == "1.0")
    if reply.status in _BODILESS:
        return head + b"\r\n", keep_alive
    body = b"" if request.method == "HEAD" else reply.body
    return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(reply.body), body), keep_alive


_BODILESS = frozenset({*range(100, 200), 204, 304})


@lru_cache(256)
def _head(status: int, headers: Headers, keep_alive: bool, old: bool) -> tuple[bytes, bool]:
    """Return the head of a reply up to its length, and whether the connection stays open after it.

    Most replies of a server have one of a few heads, hence the cache.
    """
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


_STATUSES = frozenset(HTTPStatus)
_FRAMING = ("content-length", "transfer-encoding")  # what a handler says of these is left out
