"""HTTP messages as values: `Request`, `Reply`, and the `Handler` between them.

Nothing here does I/O. A handler is any callable from a request to a reply; the mock provider is one, and
the server serves any. How a reply reaches the wire is data too, its `Delivery`, so that a test can look at
a fault without a socket. All three are named tuples: they cannot change, and cost the least to make.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, NamedTuple, get_args

from memmock.errors import MemmockError

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


def check_path(path: str) -> None:
    """Raise for what cannot be the path that a handler answers at.

    Raises:
        MemmockError: the path cannot stand on a request line.
    """
    if not re.fullmatch(r"/[!-~]*", path) or "?" in path or "#" in path:
        raise MemmockError(
            f"the path must start with / and hold no ?, # or space, and what is not ASCII "
            f"percent-encoded, not {path!r}"
        )


class Request(NamedTuple):
    """A request as the server received it, complete with its body.

    `target` is what stood on the request line: a path, perhaps with a query string. `client` is the address
    that the request came from, empty when it is not known; `connection` is the number of the connection that
    it came on, counted by the server from 1, 0 when it is not known.
    """

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    version: str = "1.1"
    client: str = ""
    connection: int = 0

    @property
    def path(self) -> str:
        """The target without its query string."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Return the value of a header, case-insensitively; None when it is absent."""
        return header(self.headers, name)


Framing = Literal["length", "chunked", "close"]
"""How the end of a body is told: by its length, by chunks, or by closing the connection."""

Ending = Literal["keep", "close", "reset", "hang"]
"""What becomes of the connection: it is kept for the next request, closed (FIN), reset (RST), or left as it
is, without another byte, until the client leaves."""


Part = Literal["head", "body", "all"]
"""Which part of a reply is sent in slices."""


class Delivery(NamedTuple):
    """How a reply reaches the wire.

    Attributes:
        delay_s: seconds between the request and the first byte of the reply.
        interim: replies before the reply, as `(103, headers)`; sent after the delay.
        framing: how the end of the body is told.
        chunk_bytes: how large the chunks of a chunked body are.
        slice_bytes: how many bytes are sent at once; 0 sends everything at once.
        every_s: seconds between two slices, and between the head and the body where only one is sliced.
        sliced: which part is sent in slices; the other one is sent at once.
        cut_head: how many bytes of the head are sent, and nothing after them; None sends everything.
        cut_body: how many bytes of the body are sent, framing included; None sends everything.
        endless: whether the body is sent again and again until the client leaves.
        ending: what becomes of the connection.
        end_s: seconds between the last byte and the ending.
        wire: the bytes to send, in place of status, headers and body, framing and all.
        stream: gives the body, piece by piece; the connection is closed behind it. It is closed itself when
            the client leaves or the server stops.
    """

    delay_s: float = 0.0
    interim: tuple[tuple[int, Headers], ...] = ()
    framing: Framing = "length"
    chunk_bytes: int = 1024
    slice_bytes: int = 0
    every_s: float = 0.0
    sliced: Part = "body"
    cut_head: int | None = None
    cut_body: int | None = None
    endless: bool = False
    ending: Ending = "keep"
    end_s: float = 0.0
    wire: bytes | None = None
    stream: AsyncGenerator[bytes, None] | None = None

    @property
    def cut(self) -> bool:
        """Whether a part of the reply is never sent."""
        return self.cut_head is not None or self.cut_body is not None


AT_ONCE = Delivery()


How = Literal["completed", "closed", "reset", "client closed", "stopped"]


class Sent(NamedTuple):
    """How the delivery of a reply ended.

    `how` is "completed" when all that was meant to be sent was sent, "closed" or "reset" when it was cut
    there on purpose, "client closed" when the client left before that, "stopped" when the server was stopped.
    `sent_bytes` is what was sent by then, head and framing included, `elapsed_s` the seconds since the
    request was complete.
    """

    how: How
    sent_bytes: int
    elapsed_s: float


class Reply(NamedTuple):
    """What a handler answers, and how that reaches the wire.

    The server adds the framing: a `Content-Length`, and `Connection` where it is needed and not given.
    Everything else is as given here. `on_sent` is told how the delivery ended, when it is not the plain one.

    The methods that return a reply return the same one with another delivery, so they can be chained:
    `Reply.json(body).cut(after=20).reset()`.
    """

    status: int = 200
    headers: Headers = ()
    body: bytes = b""
    delivery: Delivery = AT_ONCE
    on_sent: Callable[[Sent], None] | None = None

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Headers = ()) -> Reply:
        """Return a reply with `value` as its JSON body."""
        return cls(status, (("Content-Type", JSON_TYPE), *headers), encode_json(value))

    @classmethod
    def error(cls, status: int, code: str, message: str, headers: Headers = (), **details: Any) -> Reply:
        """Return an error in the structured form `{"error": {"code", "message", …}}` [ours]."""
        return cls.json({"error": {"code": code, "message": message, **details}}, status, headers)

    @classmethod
    def raw(cls, wire: bytes, *, ending: Ending = "close") -> Reply:
        """Return a reply that is these bytes on the wire, whatever they are.

        With the ending "keep", `Connection: close` is added for a client whose connection cannot be kept.
        """
        _one_of("ending", ending, get_args(Ending))
        return cls(_status_in(wire), (), b"", Delivery(wire=wire, ending=ending))

    @classmethod
    def streamed(cls, parts: AsyncGenerator[bytes, None], headers: Headers = (), status: int = 200) -> Reply:
        """Return a reply whose body is sent as it comes, each part when the client has taken the one before.

        Only memmock's own server can send it.
        """
        return cls(status, headers, b"", Delivery(framing="close", ending="close", stream=parts))

    def header(self, name: str) -> str | None:
        """Return the value of a header, case-insensitively; None when it is absent."""
        return header(self.headers, name)

    # ---- other deliveries

    def delayed(self, seconds: float) -> Reply:
        """Send the first byte `seconds` later than it would be."""
        return self._sent(delay_s=self.delivery.delay_s + seconds)

    def after(self, status: int, headers: Headers = ()) -> Reply:
        """Send an interim reply before this one, as 103 Early Hints."""
        return self._sent(interim=(*self.delivery.interim, (status, headers)))

    def chunked(self, chunk: int = 1024) -> Reply:
        """Frame the body as chunks of `chunk` bytes."""
        return self._sent(framing="chunked", chunk_bytes=_positive("chunk", chunk))

    def until_close(self) -> Reply:
        """Leave the length out: closing the connection ends the body."""
        return self._sent(framing="close", ending="close")

    def dripped(self, chunk: int, every: float, *, part: Part = "body") -> Reply:
        """Send the body, the head or both in slices of `chunk` bytes every so many seconds."""
        _one_of("part", part, get_args(Part))
        return self._sent(slice_bytes=_positive("chunk", chunk), every_s=every, sliced=part)

    def cut(self, after: int) -> Reply:
        """Send only so many bytes of the body, and close the connection unless another ending is chosen."""
        return self._cut(cut_body=_not_negative("after", after))

    def cut_head(self, after: int) -> Reply:
        """Send only so many bytes of the head, and close the connection unless another ending is chosen."""
        return self._cut(cut_head=_not_negative("after", after))

    def endless(self) -> Reply:
        """Send the body again and again, until the client leaves; it needs no end, so it is given no length.

        To send an endless body in chunks, choose `chunked` too.
        """
        framing: Framing = "close" if self.delivery.framing == "length" else self.delivery.framing
        return self._sent(endless=True, framing=framing)

    def closed(self, after: float = 0.0) -> Reply:
        """Close the connection `after` so many seconds, without having told so."""
        return self._sent(ending="close", end_s=after)

    def reset(self, after: float = 0.0) -> Reply:
        """Reset the connection `after` so many seconds: the client sees ECONNRESET."""
        return self._sent(ending="reset", end_s=after)

    def hanging(self) -> Reply:
        """Leave the connection open and send nothing more, until the client leaves."""
        return self._sent(ending="hang")

    def _cut(self, **changes: Any) -> Reply:
        ending = "close" if self.delivery.ending == "keep" else self.delivery.ending
        return self._sent(ending=ending, **changes)

    def _sent(self, **changes: Any) -> Reply:
        return self._replace(delivery=self.delivery._replace(**changes))


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{name} must be at least 1 byte, not {value}")
    return value


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _not_negative(name: str, value: int) -> int:
    if value < 0:
        raise ValueError(f"{name} must be at least 0 bytes, not {value}")
    return value


def _status_in(wire: bytes) -> int:
    """Return the status that bytes on the wire begin with, 0 when they do not begin with one."""
    word = wire[:12].partition(b" ")[2][:3]
    return int(word) if wire.startswith(b"HTTP/") and word.isdigit() and len(word) == 3 else 0


Handler = Callable[[Request], Reply | Awaitable[Reply]]
"""Answers a request. It runs on the server's event loop: to wait, be async; never block."""
