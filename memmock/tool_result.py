"""What the model is given: a reply turned into memories, or into one error.

Everything here is a function of bytes and settings, without I/O; `consumer` brings the replies. Nothing
that a provider wrote gets into an error: messages are ours, and the same fault has the same message.

Where the contract is silent [ours]: of two equal names in an object the last one wins; a byte-order mark
makes `invalid_json`; a lone surrogate becomes U+FFFD, so that whatever is printed can be encoded; a summary
of white space only is unusable; optional fields of the wrong type and unknown fields are left out; a `type`
outside the enum and a `confidence` outside 0..1 are passed on.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memmock import strictjson
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES, Memory
from memmock.http import Reply

ErrorCode = Literal[
    "timeout", "connection_failed", "http_error", "response_too_large", "invalid_json", "invalid_response"
]
ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)

Advice = Literal["use naturally", "use with care", "ask the user to confirm"]

HIGH_CONFIDENCE = 0.8
"""From here on a memory is used naturally [ours]."""
LOW_CONFIDENCE = 0.5
"""Below this the user is asked rather than told [ours]."""


@dataclass(frozen=True, slots=True)
class ToolError:
    """Why there are no memories. `status` is there with `http_error` only."""

    code: ErrorCode
    message: str
    status: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the error as the model is given it; an absent status is left out."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.status is None else {**error, "status": self.status}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model is given: memories when `ok`, else the error."""

    ok: bool
    memories: tuple[Memory, ...] = ()
    error: ToolError | None = None

    @property
    def outcome(self) -> Literal["ok"] | ErrorCode:
        """`ok`, or the code of the error: what the scenarios tell of a good consumer."""
        return "ok" if self.error is None else self.error.code

    @classmethod
    def failed(cls, code: ErrorCode, message: str, status: int | None = None) -> ToolResult:
        """Return the result of a call that failed."""
        return cls(ok=False, error=ToolError(code, message, status))

    def to_json(self) -> dict[str, Any]:
        """Return one of the two forms: `{"ok": true, "memories"}` or `{"ok": false, "error"}`."""
        if self.error is not None:
            return {"ok": False, "error": self.error.to_json()}
        return {"ok": True, "memories": [memory.to_json() for memory in self.memories]}


def tool_result(reply: Reply, max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES) -> ToolResult:
    """Return what the model is given for a reply whose body is complete, as it was received.

    An error status decides before the body is looked at; the reply's `Content-Type` is never looked at.
    Never raises, whatever the body holds.
    """
    if not 200 <= reply.status < 300:
        message = f"the provider answered with status {reply.status}"
        return ToolResult.failed("http_error", message, reply.status)
    coding = (reply.header("Content-Encoding") or "").strip().lower()
    if len(reply.body) > max_response_bytes:
        return too_large(max_response_bytes)
    if coding in ("gzip", "x-gzip"):
        try:
            body = _gunzipped(reply.body, max_response_bytes)
        except zlib.error:
            return ToolResult.failed("invalid_json", "the gzip stream of the answer is broken")
        if len(body) > max_response_bytes:
            return too_large(max_response_bytes)
        return _read(body)
    if coding not in ("", "identity"):
        return ToolResult.failed("invalid_json", "the answer has a content coding other than gzip")
    return _read(reply.body)


def too_large(max_response_bytes: int) -> ToolResult:
    """Return the result of a call whose answer is over the limit."""
    return ToolResult.failed("response_too_large", f"the answer is larger than {max_response_bytes:,} bytes")


def advice(
    confidence: float | None, high: float = HIGH_CONFIDENCE, low: float = LOW_CONFIDENCE
) -> Advice:  # fmt: skip
    """Return how the model is told to treat a memory of this confidence.

    Each threshold belongs to the level above it; a memory without a confidence is used with care.
    """
    if confidence is None or low <= confidence < high:
        return "use with care"
    return "use naturally" if confidence >= high else "ask the user to confirm"


# What makes a text unreadable. The other flaws that `strictjson` knows (equal names, numbers beyond a double,
# lone surrogates) are passed over, as the JSON parsers of most languages do.
_UNREADABLE = {
    "utf-8": "the answer is not UTF-8",
    "bom": "the answer starts with a byte-order mark",
    "syntax": "the answer is not JSON",
    "depth": "the answer is nested too deeply",
    "nan": "the answer holds NaN or Infinity, which JSON does not have",
}
_TEXT_FIELDS = ("id", "type", "updated_at", "source")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _gunzipped(data: bytes, limit: int) -> bytes:
    """Return the inflated data; one byte over the limit stands for everything that would follow.

    Raises:
        zlib.error: the data is not gzip, or was cut.
    """
    inflated = b""
    while data and len(inflated) <= limit:  # a gzip file may have several members
        member = zlib.decompressobj(wbits=31)
        inflated += member.decompress(data, limit + 1 - len(inflated))
        if not member.eof and len(inflated) <= limit:
            raise zlib.error("the stream was cut")
        data = member.unused_data
    return inflated


def _read(body: bytes) -> ToolResult:
    if not body.strip(b" \t\r\n"):
        return ToolResult.failed("invalid_json", "the answer is empty")
    value, flaws = strictjson.read(body)
    for flaw in flaws:
        if flaw.kind in _UNREADABLE:
            return ToolResult.failed("invalid_json", _UNREADABLE[flaw.kind])
    items = value.get("memories") if isinstance(value, dict) else None
    if not isinstance(items, list):
        return ToolResult.failed("invalid_response", "the answer is not an object with an array memories")
    memories = tuple(memory for item in items if (memory := _memory(item)) is not None)
    if items and not memories:
        return ToolResult.failed("invalid_response", "the answer holds no usable memory")
    return ToolResult(ok=True, memories=memories)


def _memory(item: Any) -> Memory | None:
    """Return an item as far as it is usable; None without a summary to read."""
    if not isinstance(item, dict):
        return None
    texts = {name: _SURROGATE.sub("\ufffd", item[name]) for name in ("summary", *_TEXT_FIELDS)
             if isinstance(item.get(name), str)}  # fmt: skip
    if not texts.get("summary", "").strip():
        return None
    return Memory(**texts, confidence=_number(item.get("confidence")))


def _number(value: Any) -> float | None:
    """Return a number that a double can hold, as it came; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if abs(float(value)) < float("inf") else None
    except OverflowError:
        return None
