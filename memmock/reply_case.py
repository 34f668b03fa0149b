"""A reply as it is generated: a value that knows its bytes on the wire, and what may be made of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args, get_type_hints

from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.errors import MemmockFailure
from memmock.http import AT_ONCE, JSON_TYPE, Headers, Reply, encode_json, header
from memmock.readings import Reading, mismatch
from memmock.reply_delivery import Sending
from memmock.reply_wire import PLAIN, Style, written
from memmock.tool_result import ToolResult

NOTHING = b'{"memories":[]}'
"""The plainest body."""


@dataclass(frozen=True)
class ReplyCase:
    """One reply: what it says, and the way it is written and sent.

    Attributes:
        status: from 200 to 999.
        headers: those beside the framing and the content coding; values are Latin-1 text.
        body: before its content coding.
        style: how it is written and sent.
    """

    status: int = 200
    headers: Headers = (("Content-Type", JSON_TYPE),)
    body: bytes = NOTHING
    style: Style = PLAIN

    @property
    def wire(self) -> bytes:
        """The bytes of the reply, interim ones left out, as if nothing were cut."""
        return written(self.status, self.headers, self.body, self.style).wire

    @property
    def head_bytes(self) -> int:
        """How many of these bytes are the head, with the empty line at its end."""
        return len(written(self.status, self.headers, self.body, self.style).head)

    def reply(self, timeout_s: float) -> Reply:
        """Return the reply to be played; delays go by the consumer's time, in seconds."""
        return self._sending.reply(timeout_s)

    def readings(
        self, max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES, accepts: str | None = None
    ) -> tuple[Reading, ...]:
        """Return everything that a consumer may make of it, the way that it is sent included.

        Args:
            max_response_bytes: the limit of the consumer.
            accepts: the Accept-Encoding that it sent; None when it sent none.
        """
        return self._sending.readings(max_response_bytes, accepts)

    @cached_property
    def _sending(self) -> Sending:
        return Sending(self.status, self.headers, self.body, self.style)

    # ---- as data

    @property
    def summary(self) -> str:
        """The reply in one sentence."""
        size = len(self.body)
        what = f"A {self.status} with a body of {size:,} byte{'' if size == 1 else 's'}"
        return "; ".join([what, *_said(self.style)]) + "."

    def described(
        self, timeout_s: float, max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
    ) -> dict[str, Any]:
        """Return it as a scenario of a scenario file (`memmock serve --scenarios FILE`).

        The file gives the same bytes, delivered in the same way. Where status, headers and body can say that
        they are there, and the body as JSON or text where that is the same; else the bytes of the wire.

        Args:
            timeout_s: the consumer's time, in seconds.
            max_response_bytes: the limit of the consumer, by which the outcomes are told.
        """
        reply = self.reply(timeout_s)
        found: dict[str, Any] = {"summary": self.summary}
        headers = _as_mapping(reply.headers)
        delivery = reply.delivery
        if delivery.wire is None and headers is None:
            wire = written(self.status, self.headers, self.body, self.style).wire
            delivery = delivery._replace(wire=wire, framing="length", chunk_bytes=AT_ONCE.chunk_bytes)
        if delivery.wire is not None:
            found |= _as_text("wire", delivery.wire)
        else:
            found |= {"status": reply.status, "headers": headers, **_as_body(reply.body)}
        how = _as_delivery(delivery._asdict())
        if how:
            found["delivery"] = how
        outcomes = [reading.outcome for reading in self.readings(max_response_bytes)]
        return {**found, "outcomes": list(dict.fromkeys(outcomes))}

    def to_json(self) -> dict[str, Any]:
        """Return it as data, for files of known failures and for written tests."""
        style: dict[str, Any] = {}
        for name, value, plain in zip(Style._fields, self.style, PLAIN, strict=True):
            if value != plain:
                style[name] = value.decode("latin-1") if isinstance(value, bytes) else value
        return {
            "status": self.status,
            "headers": [list(each) for each in self.headers],
            **_as_text("body", self.body),
            **({"style": json.loads(json.dumps(style))} if style else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ReplyCase:
        """Return the one that was written as data.

        Raises:
            ValueError, KeyError, TypeError: the data are not one.
        """
        if unknown := value.keys() - {"status", "headers", "body", "body_base64", "style"}:
            raise ValueError(f"a reply has no {min(unknown)}")
        if "body" in value:
            body = value["body"].encode() if isinstance(value["body"], str) else None
        else:
            body = base64.b64decode(value["body_base64"], validate=True)
        status, headers = value["status"], _pairs(value["headers"])
        if body is None or type(status) is not int or not 200 <= status <= 999:
            raise ValueError("a reply has a status from 200 to 999, and text as its body")
        return cls(status, headers, body, _style(value.get("style", {})))

    # ---- judged

    def check(self, result: Any, max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES) -> None:
        """Fail unless a tool result is one that a consumer may make of this reply.

        Args:
            result: a `ToolResult`, or its JSON form.
            max_response_bytes: the limit of the consumer.

        Raises:
            MemmockFailure: it is not.
        """
        value = result.to_json() if isinstance(result, ToolResult) else result
        allowed = self.readings(max_response_bytes)
        expected = " or ".join(dict.fromkeys(map(_expected, allowed)))
        if isinstance(value, Mapping) and value.get("ok") is True and isinstance(value.get("memories"), list):
            good = [reading for reading in allowed if reading.outcome == "ok"]
            found = [mismatch(reading, value["memories"]) for reading in good]
            if None in found:
                return
            if found and found[0] is not None:
                raise MemmockFailure(f"{found[0].pointer or 'the result'}: {found[0].message}")
            got = _memories(value["memories"])
        else:
            error = value.get("error") if isinstance(value, Mapping) and value.get("ok") is False else None
            if not isinstance(error, Mapping) or not isinstance(error.get("code"), str):
                raise MemmockFailure(f"expected {expected}, got what is no tool result: {_short(value)}")
            if any(
                reading.outcome == error["code"] and reading.status == error.get("status")
                for reading in allowed
            ):
                return
            got = _error(error["code"], error.get("status"))
        raise MemmockFailure(f"expected {expected}, got {got}")


# ---- words


def _expected(reading: Reading) -> str:
    if reading.outcome == "ok":
        return _memories(reading.memories)
    return _error(reading.outcome, reading.status)


def _memories(memories: Sequence[Any]) -> str:
    return f"ok with {len(memories)} memor{'y' if len(memories) == 1 else 'ies'}"


def _error(code: str, status: Any) -> str:
    return code if status is None else f"{code} with status {_short(status)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _said(style: Style) -> list[str]:
    """Return each way in which a style is not plain, in words."""
    percent = "% of the consumer's time"
    words = {
        "names": f"header names in {style.names} case",
        "colon": "more white space after the colons" if style.colon else "no space after the colons",
        "reason": {
            "empty": "no words after the status",
            "absent": "nothing after the status, not even a space",
            "other": "other words after the status",
        }.get(style.reason, f"words in {style.reason} after the status"),
        "version": "as HTTP/1.0",
        "framing": f"in chunks of {style.chunk_bytes:,} bytes"
        if style.framing == "chunked"
        else "ended by closing the connection",
        "length_by": f"its Content-Length is {abs(style.length_by):,} too {'large' * (style.length_by > 0)}"
        f"{'small' * (style.length_by < 0)}",
        "sizes": "the chunk sizes with leading zeros"
        if style.sizes == "padded"
        else "the chunk sizes in upper case",
        "extension": "with chunk extensions",
        "trailers": "with trailers",
        "coding": f"coded: {style.coding}",
        "interim": f"after {' and '.join(map(str, style.interim))}",
        "surplus": f"{len(style.surplus):,} more bytes follow",
        "delay": f"begun after {style.delay * 100:.0f} {percent}",
        "slices": f"sent in {style.slices:,} slices",
        "spread": f"which take {style.spread * 100:.0f} {percent}",
        "sliced": f"of the {style.sliced}",
        "cut": f"cut after {style.cut or 0:,} bytes",
        "ending": {"close": "closed", "reset": "reset", "hang": "then nothing more"}.get(style.ending, ""),
    }
    return [
        words[name]
        for name in Style._fields
        if name in words and getattr(style, name) != getattr(PLAIN, name)
    ]


# ---- scenario files and JSON


def _as_mapping(headers: Headers) -> dict[str, Any] | None:
    """Return headers as a scenario file has them; None when it cannot have them."""
    values: dict[str, list[str]] = {}
    try:
        for name, value in headers:
            values.setdefault(name, []).append(value.encode("latin-1").decode())
    except UnicodeDecodeError:
        return None
    again = tuple((name, each) for name, all_of_it in values.items() for each in all_of_it)
    same = again == tuple((name, value.encode("latin-1").decode()) for name, value in headers)
    if not same or header(headers, "Content-Type") is None or any("\0" in value for _, value in headers):
        return None
    return {name: each[0] if len(each) == 1 else each for name, each in values.items()}


_MOST_WRITTEN_OUT = 200
"""A body with more brackets is a text: nested so deep it could not be read as YAML."""


def _as_body(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
        if (
            isinstance(value, dict | list)
            and body.count(b"[") + body.count(b"{") <= _MOST_WRITTEN_OUT
            and encode_json(value) == body
            and json.dumps(value, ensure_ascii=False).encode()
        ):
            return {"body": value}
    except (ValueError, RecursionError):
        pass
    return _as_text("body", body)


def _as_text(name: str, data: bytes) -> dict[str, str]:
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _as_delivery(delivery: dict[str, Any]) -> dict[str, Any]:
    """Return what a scenario file says of a delivery; only what is not plain."""
    how: dict[str, Any] = {}
    wire = delivery.pop("wire") is not None
    for name, value in delivery.items():
        if value == getattr(AT_ONCE, name) and not (name == "ending" and wire):
            continue
        if name.endswith("_s"):
            milliseconds = round(value * 1000, 3)
            whole = milliseconds == int(milliseconds)
            how[f"{name.removesuffix('_s')}_ms"] = int(milliseconds) if whole else milliseconds
        elif name == "interim":
            how[name] = [{"status": status, "headers": dict(headers)} for status, headers in value]
        else:
            how[name] = value
    return how


_KINDS: dict[str, Any] = get_type_hints(Style)


def _style(value: Mapping[str, Any]) -> Style:
    changes: dict[str, Any] = {}
    for name, item in value.items():
        if name not in _KINDS:
            raise KeyError(name)
        plain, choices = getattr(PLAIN, name), get_args(_KINDS[name])
        kept, fits = item, True
        if name == "trailers":
            kept = _pairs(item)
        elif name == "interim":
            kept = tuple(int(status) for status in item)
        elif isinstance(plain, bytes):
            kept = item.encode("latin-1")
        elif isinstance(plain, float):
            kept = float(item)
        elif isinstance(plain, str):
            fits = item in choices if choices else isinstance(item, str)
        else:
            fits = type(item) is int
        if not fits:
            raise ValueError(f"{name} of a style cannot be {item!r}")
        changes[name] = kept
    return PLAIN._replace(**changes)


def _pairs(value: Any) -> Headers:
    pairs = tuple((name, content) for name, content in value)
    for name, content in pairs:
        name.encode("ascii")
        content.encode("latin-1")
    return pairs
