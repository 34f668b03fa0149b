"""HTTP messages as values: `Request`, `Reply`, and the `Handler` between them.

Nothing here does I/O. A handler is any callable from a request to a reply; the mock provider is one, and
the server serves any. How a reply reaches the wire is data too, its `Delivery`, so that a test can look at
a fault without a socket. All three are named tuples: they cannot change, and cost the least to make.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

Headers = tuple[tuple[str, str], ...]
"""Names and values in the order of the wire; values are Latin-1 text, as HTTP carries them."""

JSON_TYPE = "application/json"


def header(headers: Headers, name: str) -> str | None:
    """Return the value of the header `name`, case-insensitively; None when it is absent.

    The values of a header that is sent more than once are joined with a comma, as HTTP reads them.
    """
    name = name.lower()
    values = [value for key, value in headers if key.lower() == name]
    return ", ".join(values) if values else None


def encode_json(value: Any) -> bytes:
    """Return `value` as compact JSON in UTF-8; text stays readable, a lone surrogate stays escaped.

    Raises:
        ValueError: `value` holds a number that JSON cannot carry (NaN, infinity).
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


class Request(NamedTuple):
    """A request as the server received it, complete with its body.

    `target` is what stood on the request line: a path, perhaps with a query string.
    """

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    version: str = "1.1"

    @property
    def path(self) -> str:
        """The target without its query string."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Return the value of a header, case-insensitively; None when it is absent."""
        return header(self.headers, name)


class Delivery(NamedTuple):
    """How a reply reaches the wire.

    `delay_s` is the time in seconds between the request and the first byte of the reply.
    """

    delay_s: float = 0.0


AT_ONCE = Delivery()


class Reply(NamedTuple):
    """What a handler answers, and how that reaches the wire.

    The server adds the framing: a `Content-Length`, and `Connection` where it is needed and not given.
    Everything else is as given here.
    """

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    delivery: Delivery = AT_ONCE

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Headers = ()) -> Reply:
        """Return a reply with `value` as its JSON body."""
        return cls(status, (("Content-Type", JSON_TYPE), *headers), encode_json(value))

    @classmethod
    def error(cls, status: int, code: str, message: str, headers: Headers = (), **details: Any) -> Reply:
        """Return an error in the structured form `{"error": {"code", "message", …}}` [ours]."""
        return cls.json({"error": {"code": code, "message": message, **details}}, status, headers)

    def header(self, name: str) -> str | None:
        """Return the value of a header, case-insensitively; None when it is absent."""
        return header(self.headers, name)

    def delayed(self, seconds: float) -> Reply:
        """Return the same reply, its first byte sent `seconds` later than it would be."""
        return self._replace(delivery=Delivery(self.delivery.delay_s + seconds))


Handler = Callable[[Request], Reply | Awaitable[Reply]]
"""Answers a request. It runs on the server's event loop: to wait, be async; never block."""
