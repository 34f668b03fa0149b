"""The bytes of a reply, read by the standard library, strictly, with what clients differ in noted beside.

Independent of what the server and the reference consumer read and write with. What it all means is for
`readings`.
"""

from __future__ import annotations

import http.client
import io
import json
import math
import re
import zlib
from email import errors
from typing import Any, Literal, NamedTuple

DEEP = 60
"""Parsers may refuse what is nested deeper [ours]: some stop at 64 levels."""
LONG = 300
"""Parsers may refuse a number of more digits [ours]; a double ends there."""
_BEYOND_BYTES = 1024 * 1024
"""So far beyond the limit a coded body is followed, to see whether it breaks there."""

Flaw = Literal["", "odd", "broken"]
"""What is wrong: nothing, what some clients refuse and others do not, or what nobody should take."""


# ---- HTTP


class Received(NamedTuple):
    """A reply as it was received.

    Attributes:
        status: that of the reply, interim ones passed over; 0 when it is no HTTP.
        coding: the value of Content-Encoding.
        body: without its framing.
        flaw: of the framing.
    """

    status: int
    coding: str | None = None
    body: bytes = b""
    flaw: Flaw = ""


class _Bytes(io.BytesIO):
    """What was received, as the socket that `http.client` reads from; it is left open behind a reply."""

    def makefile(self, mode: str) -> _Bytes:
        return self

    def close(self) -> None:
        pass


def received(wire: bytes) -> Received:
    """Return the reply that bytes are, which end with the connection."""
    source = _Bytes(wire)
    try:
        response = _begun(source)
        while 100 <= response.status < 200 and response.status != 101 and source.tell() < len(wire):
            response = _begun(source)
    except (http.client.HTTPException, ValueError):
        return Received(0, flaw="broken")
    flaw = _head_flaw(response.msg, wire[: source.tell()])
    coding = response.getheader("Content-Encoding")
    if flaw == "broken":
        return Received(response.status, coding, flaw=flaw)
    decides = not 200 <= response.status < 300  # whatever becomes of the body
    try:
        body = response.read()
    except (http.client.HTTPException, ValueError):
        return Received(response.status, coding, flaw=flaw if decides else "broken")
    return Received(response.status, coding, body, "odd" if source.read(1) and not decides else flaw)


def _begun(source: _Bytes) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(source)  # type: ignore[arg-type]  # it has all that is used of a socket
    response.begin()
    return response


def _head_flaw(headers: http.client.HTTPMessage, head: bytes) -> Flaw:
    """Return the flaw of a head, which decides how the body is framed."""
    codings = [coding.strip().lower() for coding in headers.get_all("Transfer-Encoding", [])]
    lengths = headers.get_all("Content-Length", [])
    different = {length.strip() for value in lengths for length in value.split(",")}
    cut = (errors.MissingHeaderBodySeparatorDefect, errors.FirstHeaderLineIsContinuationDefect)
    if any(isinstance(defect, cut) for defect in headers.defects) or codings not in ([], ["chunked"]):
        return "broken"
    if len(different) > 1 or not all(re.fullmatch("[0-9]+", length) for length in different):
        return "broken"
    no_space = re.match(rb"HTTP/1\.[01] [0-9]{3} ", head) is None
    folded = re.search(rb"\n[ \t]+[^ \t\r\n]", head) is not None
    return "odd" if len(lengths) > 1 or (codings and lengths) or no_space or folded else ""


# ---- content codings


def codings(value: str | None) -> list[str]:
    """Return the codings that a Content-Encoding names, without `identity`."""
    names = [name.strip().lower() for name in (value or "").split(",")]
    return [name for name in names if name not in ("", "identity")]


def accepted(coding: str, accepts: str | None) -> bool:
    """Return whether a value of Accept-Encoding asks for a content coding."""
    listed = {}
    for entry in (accepts or "").lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        listed[name] = not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", each) for each in parameters)
    same = ("gzip", "x-gzip") if coding in ("gzip", "x-gzip") else (coding,)
    return next((listed[name] for name in (*same, "*") if name in listed), False)


def decoded(data: bytes, coding: str, limit: int) -> tuple[bytes, Flaw]:
    """Return what was packed, as far as it can be told, and what is wrong with the packing.

    Args:
        data: what was received.
        coding: `gzip`, `x-gzip` or `deflate`.
        limit: of what is far beyond this many bytes, only the beginning is returned.
    """
    is_zlib = len(data) > 1 and data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    bits = 31 if coding != "deflate" else 15 if is_zlib else -15
    most = max(limit, 0) + _BEYOND_BYTES
    body = bytearray()
    members = 0
    while data and not (members and bits != 31):
        member = zlib.decompressobj(bits)
        start = 0
        try:
            while not member.eof and start < len(data):  # in parts: what comes before a flaw can be told
                body += member.decompress(data[start : start + 1024], most - len(body))
                start += 1024
                if len(body) >= most:
                    return bytes(body), ""
        except zlib.error:
            return bytes(body), "odd" if members else "broken"
        if not member.eof:
            return bytes(body), "broken"
        members += 1
        data = (member.unused_data + data[start:]).lstrip(b"\0")  # zeros are padding
    return bytes(body), "odd" if data else ""


# ---- JSON


class Values(NamedTuple):
    """What a JSON text says.

    Attributes:
        all: its value, once with the last and once with the first of names that are repeated.
        disputed: whether a parser may refuse it as well.
    """

    all: tuple[Any, ...]
    disputed: bool


def values(body: bytes) -> Values | None:
    """Return what a body says as JSON, None when it is none.

    A number beyond a double is infinity. A lone surrogate is kept. What is nested too deeply for some parsers
    is null: those that can read it are right, and those that refuse it too.
    """
    try:
        text = body.decode("utf-8")
        bare = text.removeprefix("\ufeff")
        depth, shallow = _flattened(bare)
        reader = _Reader()
        last = reader.value(shallow, last_wins=True)
        both = (last, reader.value(shallow, last_wins=False)) if reader.repeats else (last,)
    except ValueError:
        return None
    return Values(both, reader.repeats or reader.beyond or depth > DEEP or bare != text)


class _Reader:
    """Reads JSON with the standard library, and notes what parsers take differently.

    Attributes:
        repeats: whether a name stands twice in one object.
        beyond: whether a number is beyond a double, or very long.
    """

    def __init__(self) -> None:
        self.repeats = False
        self.beyond = False

    def value(self, text: str, *, last_wins: bool) -> Any:
        """Return the value of a text.

        Raises:
            ValueError: it is not JSON.
        """

        def whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs if last_wins else reversed(pairs))
            self.repeats = self.repeats or len(found) < len(pairs)
            return found

        return json.loads(
            text,
            object_pairs_hook=whole,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=_no_constant,
        )

    def _int(self, digits: str) -> int | float:
        number = self._float(digits)
        return number if math.isinf(number) or len(digits) > LONG else int(digits)

    def _float(self, digits: str) -> float:
        number = float(digits)
        self.beyond = self.beyond or len(digits) > LONG or math.isinf(number)
        return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{\]}]', re.DOTALL)


def _flattened(text: str) -> tuple[int, str]:
    """Return how deep a text is nested, and the text with what is nested too deeply replaced by null.

    Raises:
        ValueError: it is not JSON.
    """
    if text.count("[") + text.count("{") <= DEEP:
        return 0, text
    depth = deepest = start = end = 0
    kept: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if depth == DEEP + 1:
                start = token.start()
        elif mark in "]}":
            if depth == DEEP + 1:
                kept += [text[end:start], "null"]
                end = token.end()
            depth -= 1
    if depth:
        raise ValueError("what is opened is not closed")
    return deepest, "".join([*kept, text[end:]])
