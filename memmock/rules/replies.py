"""What is wrong with a reply: the checks behind the RES rules."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memmock.contract import (
    DEFAULT_MAX_RESPONSE_BYTES,
    DEFAULT_MAX_RESULTS,
    DEFAULT_TIMEOUT_MS,
    MEMORY_TYPES,
)
from memmock.rules.book import Severity
from memmock.rules.judgement import Judgement, names
from memmock.rules.requests import request_violations
from memmock.rules.summaries import LONGEST, chat_log_sign, garbled_sign, markup_sign, says_nothing_found
from memmock.rules.timestamps import is_rfc3339
from memmock.strictjson import UNREADABLE, read, shortened

if TYPE_CHECKING:
    from memmock.http import Reply, Request
    from memmock.rules.book import Violation


def reply_violations(
    reply: Reply,
    to: Request | None = None,
    *,
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
    timeout_ms: int = DEFAULT_TIMEOUT_MS,
    elapsed_s: float | None = None,
) -> list[Violation]:
    """Return everything that is wrong with a reply; empty when it keeps the contract.

    Never raises, whatever the reply holds. An error status decides before the body: the memories of such a
    reply are not looked at. A provider that refuses an unknown authorization with 401 does right, but that
    cannot be seen here: it counts as a retrieval that was not answered (RES001).

    Args:
        reply: As it was received, its body complete and not yet decoded. Its delivery is not looked at.
        to: The request it answers. Without it, the request is taken to keep the contract and to accept no
            encoding, and what depends on its fields is not judged. The same goes for a body of it that
            cannot be read.
        max_response_bytes: The consumer's limit for the body, as received and as decoded.
        timeout_ms: The consumer's limit for the exchange.
        elapsed_s: How long the exchange took, in seconds; not judged when it is None.
    """
    judgement = Judgement()
    succeeded = 200 <= reply.status <= 299
    _judge_status(judgement, reply.status, to)
    if succeeded:
        judgement.json_type("RES003", reply.header("Content-Type"))
    body = _decoded(judgement, reply, to, max_response_bytes)
    if elapsed_s is not None and elapsed_s * 1000 > timeout_ms:
        message = f"took {elapsed_s * 1000:.0f} ms, more than the {timeout_ms} ms allowed"
        judgement.broken("RES006", message, where="exchange")
    if body is not None and succeeded:
        _judge_memories(judgement, body, _Asked.by(to))
    elif body is not None:
        _judge_error(judgement, reply, body, to)
    return judgement.violations()


# ---- the exchange and the head


def _judge_status(judgement: Judgement, status: int, to: Request | None) -> None:
    if status == 200:  # whatever was asked
        return
    mistakes = [] if to is None else request_violations(to)
    if not any(mistake.severity is Severity.ERROR for mistake in mistakes):
        judgement.broken("RES001", "must be 200", where="status", value=status)
    elif not 200 <= status <= 299 and not 400 <= status <= 499:
        judgement.broken("RES002", "should be 4xx for a wrong request", where="status", value=status)


def _decoded(judgement: Judgement, reply: Reply, to: Request | None, most: int) -> bytes | None:
    """Return the body with its content coding undone; None when that cannot be, or when it is too much."""
    body = reply.body
    if len(body) > most:
        judgement.broken("RES005", f"has {len(body):,} bytes, more than the {most:,} allowed")
    accepted = to.header("Accept-Encoding") if to else None  # a request without it asks for none [ours]
    for listed in reversed((reply.header("Content-Encoding") or "").lower().split(",")):
        coding = listed.strip().removeprefix("x-")
        if coding in ("", "identity"):
            continue
        if not names(accepted, coding, "*"):
            message = f"is {shortened(coding)}, which the request does not accept"
            judgement.broken("RES004", message, "Content-Encoding", where="header")
        if coding not in _WINDOW_BITS:
            return None
        try:
            body = _inflated(body, coding, most)
        except (ValueError, zlib.error) as error:
            message = f"is {coding}, but the body does not decode: {error}"
            judgement.broken("RES004", message, "Content-Encoding", where="header")
            return None
        if len(body) > most:
            judgement.broken("RES005", f"has more than the {most:,} bytes allowed when it is decoded")
            return None
    return body


_WINDOW_BITS = {"gzip": 31, "deflate": 15}
"""The codings that can be undone, and what zlib calls them."""


def _inflated(data: bytes, coding: str, most: int) -> bytes:
    """Return the decoded data, or its first `most` + 1 bytes.

    A second gzip member counts as a mistake: many clients stop after the first.
    """
    bits = _WINDOW_BITS[coding]
    if coding == "deflate" and data[:1] and data[0] & 0x0F != 8:
        bits = -15  # without the zlib header, as some servers send it and most clients read it
    engine = zlib.decompressobj(bits)
    decoded = engine.decompress(data, most + 1)
    if len(decoded) <= most:
        if not engine.eof:
            raise ValueError("it is incomplete")
        if engine.unused_data:
            raise ValueError("there are bytes after its end")
    return decoded


# ---- the memories of a success


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks for, as far as it can be told."""

    max_results: float | None = None
    types: frozenset[str] = frozenset()

    @classmethod
    def by(cls, request: Request | None) -> _Asked:
        value = UNREADABLE if request is None else read(request.body)[0]
        if not isinstance(value, dict):
            return cls()
        most, types = value.get("max_results", DEFAULT_MAX_RESULTS), value.get("memory_types")
        countable = isinstance(most, (int, float)) and not isinstance(most, bool) and most >= 1
        wanted = types if isinstance(types, list) else []
        return cls(most if countable else None, frozenset(kind for kind in MEMORY_TYPES if kind in wanted))


_TEXT_FIELDS = ("id", "type", "updated_at", "source")
_RECOMMENDED = ("id", "type", "confidence", "updated_at", "source")


def _judge_memories(judgement: Judgement, body: bytes, asked: _Asked) -> None:
    nothing_found = "" if b"{" in body else '; nothing found is {"memories": []}'
    answer = judgement.json(body, "RES", nothing_found)
    if answer is UNREADABLE:
        return
    memories = answer.get("memories") if isinstance(answer, dict) else None
    if not isinstance(memories, list):
        _judge_shape(judgement, answer)
        return
    if not isinstance(more := answer.get("has_more", False), bool):
        judgement.broken("RES210", "should be true or false, or absent", "has_more", value=more)
    if asked.max_results is not None and len(memories) > asked.max_results:
        message = f"holds {len(memories)} memories, more than max_results, {shortened(asked.max_results)}"
        judgement.broken("RES302", message, "memories")
    first_with: dict[str, int] = {}
    for n, memory in enumerate(memories):
        if not isinstance(memory, dict):
            judgement.broken("RES203", "must be an object", "memories", n, value=memory)
            continue
        _judge_summary(judgement, n, memory)
        _judge_fields(judgement, n, memory, asked)
        if isinstance(name := memory.get("id"), str) and (first := first_with.setdefault(name, n)) != n:
            message = f"is {shortened(name)}, as in memory {first} already"
            judgement.broken("RES301", message, "memories", n, "id")


def _judge_shape(judgement: Judgement, answer: Any) -> None:
    """Say what is wrong with an answer that holds no array of memories, and what to send instead."""
    instead = 'must be an array; nothing found is {"memories": []}'
    if not isinstance(answer, dict):
        message = 'must be an object; nothing found is {"memories": []}'
        judgement.broken("RES201", f"{message}; this is {shortened(answer)}")
    elif "memories" in answer:
        judgement.broken("RES201", f"{instead}; this is {shortened(answer['memories'])}", "memories")
    elif "error" in answer:
        judgement.broken("RES201", "is absent beside an error; an error has a status outside 2xx", "memories")
    else:
        judgement.broken("RES201", f"is absent, {instead}", "memories")


def _judge_summary(judgement: Judgement, n: int, memory: dict[str, Any]) -> None:
    place = ("memories", n, "summary")
    summary = memory.get("summary")
    if not isinstance(summary, str):
        if "summary" in memory:
            judgement.broken("RES204", "must be a string", *place, value=summary)
        else:
            judgement.broken("RES204", "is absent, must be a string that is not blank", *place)
        return
    if not summary.strip():
        judgement.broken("RES204", "must not be blank", *place, value=summary)
        return
    if says_nothing_found(summary):
        message = f'{shortened(summary)} is not a memory; nothing found is {{"memories": []}}'
        judgement.broken("RES202", message, *place)
    if len(summary) > LONGEST:
        judgement.broken("RES401", f"has {len(summary)} characters, more than {LONGEST}", *place)
    elif len(summary.strip().splitlines()) > 1:
        judgement.broken("RES401", "has more than one line", *place)
    for code, sign in (
        ("RES402", chat_log_sign(summary)),
        ("RES403", markup_sign(summary)),
        ("RES404", garbled_sign(summary)),
    ):
        if sign:
            judgement.broken(code, f"holds {sign}: {shortened(summary)}", *place)


def _judge_fields(judgement: Judgement, n: int, memory: dict[str, Any], asked: _Asked) -> None:
    if missing := [name for name in _RECOMMENDED if name not in memory]:
        judgement.broken("RES209", f"has no {', '.join(missing)}", "memories", n)
    for name in _TEXT_FIELDS:
        if name in memory and not isinstance(memory[name], str):
            judgement.broken("RES205", "must be a string", "memories", n, name, value=memory[name])
    _judge_confidence(judgement, n, memory)
    kind, updated_at = memory.get("type"), memory.get("updated_at")
    if isinstance(kind, str) and kind not in MEMORY_TYPES:
        judgement.broken("RES206", "should be one of the kinds", "memories", n, "type", value=kind)
    elif isinstance(kind, str) and asked.types and kind not in asked.types:
        wanted = ", ".join(name for name in MEMORY_TYPES if name in asked.types)
        judgement.broken("RES303", f"is {shortened(kind)}, asked for was {wanted}", "memories", n, "type")
    if isinstance(updated_at, str) and not is_rfc3339(updated_at):
        message = "should be an RFC 3339 date-time with an offset"
        judgement.broken("RES208", message, "memories", n, "updated_at", value=updated_at)


def _judge_confidence(judgement: Judgement, n: int, memory: dict[str, Any]) -> None:
    confidence = memory.get("confidence", 1)
    place = ("memories", n, "confidence")
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        judgement.broken("RES205", "must be a number", *place, value=confidence)
    elif not 0 <= confidence <= 1:
        judgement.broken("RES207", "should be from 0 to 1", *place, value=confidence)


# ---- errors


_STACK_TRACE = re.compile(
    rb"Traceback \(most recent call last\)"
    rb'|File \\?"[^"\n]{1,300}", line [0-9]'
    rb"|\bat [\w.$<>/]{1,200}\([\w.]{1,100}\.(?:java|kt|js|ts|cs):[0-9]"
    rb"|\bat [^\n]{1,200}\.(?:js|ts):[0-9]{1,6}:[0-9]"
    rb"|goroutine [0-9]{1,9} \[running\]"
)
_SHORTEST_SECRET = 8
"""A shorter authorization may stand in an error by chance."""


def _judge_error(judgement: Judgement, reply: Reply, body: bytes, to: Request | None) -> None:
    judgement.json_type("RES501", reply.header("Content-Type"))
    if not isinstance(read(body)[0], dict):
        judgement.broken("RES501", "should be a JSON object" if body else "is empty, should be a JSON object")
    if _STACK_TRACE.search(body[:20_000]):
        judgement.broken("RES502", "holds a stack trace")
    if any(secret in body for secret in _secrets(to)):
        judgement.broken("RES502", "holds the authorization of the request")


def _secrets(to: Request | None) -> list[bytes]:
    """Return what a reply must not show: the authorization, whole and without its scheme."""
    sent = ((to.header("Authorization") if to else None) or "").strip()
    texts = {sent, sent.rpartition(" ")[2]}
    return [text.encode("latin-1", "replace") for text in texts if len(text) >= _SHORTEST_SECRET]
