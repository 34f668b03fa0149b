"""What is wrong with what was seen of one act: the answer, its time, its size; what a good consumer shows.

What it sent is judged in `judging_requests`, what must not get to the model in `leaks`. Whether a call
depends on the calls before it (CON405) is for the run, which compares several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from memmock.consumer_conformance.act import Arrival, Seen
from memmock.consumer_conformance.finding import Problem
from memmock.consumer_conformance.judging_requests import first_arrival, request_problems
from memmock.consumer_conformance.leaks import leak_problems
from memmock.http import AT_ONCE, Reply
from memmock.readings import Reading, mismatch, readings
from memmock.reply_case import ReplyCase
from memmock.rules import RULES
from memmock.strictjson import printable, shortened
from memmock.tool_result import ERROR_CODES

_EARLY = 0.8
"""A timeout is too early before this part of the consumer's time [ours]."""
_LATE_S, _LATE = 0.4, 0.25
"""It may be so much late, in seconds or in parts of the consumer's time, whichever is more [ours]. Less
than that says little on a busy machine; with a longer `timeout_ms` it is a smaller part."""
_PACES_LATE = 2
"""And by so many times what this consumer takes for a call that is answered at once."""
_SPARE_BYTES = 512 * 1024
"""So much may be under way beyond twice the limit: clients read large pieces, and systems buffer [ours]."""
_LAST_CHARS = 100
"""So much of the last line of a log is told."""


def problems(seen: Seen) -> list[Problem]:
    """Return what is wrong with what was seen of one act, each rule once.

    The outcome of what is no tool result is not judged, nor are the memories of a wrong outcome.
    """
    found: dict[str, Problem] = {}
    for problem in _all(seen):
        found.setdefault(problem.rule.code, problem)
    return list(found.values())


def allowed(seen: Seen) -> tuple[Reading, ...]:
    """Return everything that a good consumer may make of what it was sent."""
    act, first = seen.act, first_arrival(seen)
    accepts = None if first is None else first.request.header("Accept-Encoding")
    if act.case is not None:
        return _of_case(act.case, act.max_response_bytes, accepts, first)
    if first is None:
        return tuple(Reading(outcome) for outcome in act.outcomes)
    found = readings(first.reply, max_response_bytes=act.max_response_bytes, accepts=accepts)
    if not act.outcomes or (_arrives_whole(first.reply) and first.reply.header("Content-Encoding")):
        return found
    told = {reading.outcome for reading in found}
    of_reply = [reading for reading in found if reading.outcome in act.outcomes]
    others = [Reading(outcome) for outcome in act.outcomes if outcome not in told and outcome != "ok"]
    return (*of_reply, *others)


def _of_case(case: ReplyCase, limit: int, accepts: str | None, first: Arrival | None) -> tuple[Reading, ...]:
    found = case.readings(limit, accepts)
    if first is None or first.request.version != "1.0" or case.style.framing != "chunked":
        return found
    # a client that speaks HTTP/1.0 is sent no chunks: the end of the connection ends the body
    unframed = replace(case, style=case.style._replace(framing="close"))
    return tuple(dict.fromkeys((*found, *unframed.readings(limit, accepts))))


def expected_outcomes(seen: Seen) -> tuple[str, ...]:
    """Return the outcomes that a good consumer may show: `ok`, or the code of an error; each once."""
    return tuple(dict.fromkeys(reading.outcome for reading in allowed(seen)))


def expected_text(seen: Seen) -> str:
    """Return what a good consumer shows, as `ok with 3 memories` or `timeout, between 300 and 575 ms`."""
    return (
        " or ".join(dict.fromkeys(_described(reading, seen) for reading in allowed(seen))) or "a tool result"
    )


def _described(reading: Reading, seen: Seen) -> str:
    if reading.outcome == "ok" and first_arrival(seen) is not None:
        count, least = len(reading.memories), len(reading.memories) - len(reading.optional)
        number = f"{count}" if least == count else f"{least} to {count}"
        return f"ok with {number} {'memory' if count == 1 else 'memories'}"
    if reading.outcome == "timeout":
        return f"timeout, between {seen.timeout_ms} and {_latest_ms(seen):.0f} ms"
    if reading.status is not None:
        return f"{reading.outcome} with status {reading.status}"
    return reading.outcome


def _arrives_whole(reply: Reply) -> bool:
    how = reply.delivery
    held_up = how.delay_s or how.every_s or how.end_s
    return not (how.cut or how.endless or held_up or how.ending in ("reset", "hang"))


def _latest_ms(seen: Seen) -> float:
    tolerance_s = max(_LATE_S, _LATE * seen.timeout_ms / 1000) + _PACES_LATE * seen.pace_s
    return seen.timeout_ms + tolerance_s * 1000


# ---- one act


def _all(seen: Seen) -> Iterator[Problem]:
    may_be = allowed(seen)
    told = seen.told
    sent = list(request_problems(seen))
    formal = [_failure(seen)] if told.failure else list(_form(told.value))
    yield from formal
    if told.failure in ("", "garbled"):
        yield from _lateness(seen)
    # where it was not the reply that was answered, what was answered says nothing
    if not told.failure and not {problem.rule.code for problem in sent} & {"CON402", "CON404", "CON406"}:
        yield from _answer(seen, may_be, is_formed=not any(each.rule.code == "CON002" for each in formal))
    yield from _size(seen, may_be)
    yield from sent
    yield from leak_problems(seen)


def outcome_of(value: Any) -> str:
    """Return `ok`, the code of the error, or nothing when a value is no tool result."""
    if not isinstance(value, Mapping):
        return ""
    if value.get("ok") is True:
        return "ok"
    error = value.get("error")
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, str) else ""


def _failure(seen: Seen) -> Problem:
    told = seen.told
    if told.failure == "garbled":
        return Problem(RULES["CON002"], told.message, "", "a tool result")
    message = told.message
    if told.failure == "silent":
        message = f"{message or 'no answer'}; timeout_ms is {seen.timeout_ms}"
    elif last := _telling_line(told.errors):
        message = f"{message}: {printable(last if len(last) <= _LAST_CHARS else f'{last[:_LAST_CHARS]}…')}"
    return Problem(RULES["CON001"], message, "", expected_text(seen))


def _telling_line(errors: str) -> str:
    """Return the line of a log that says what went wrong: the last one that names an error, or the last."""
    lines = [line.strip() for line in errors.strip().splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(?:Uncaught )?[\w.]*(?:Error|Exception|panic)\b", line)]
    return (named or lines or [""])[-1]


# ---- the form of an answer


def _form(value: Any) -> Iterator[Problem]:
    """Yield what is wrong with the form of an answer; more fields than needed are none of it."""
    if not isinstance(value, Mapping):
        yield _ill(f"the answer is {shortened(value)}, not an object", "")
    elif value.get("ok") is True:
        yield from _form_of_memories(value)
    elif value.get("ok") is False:
        yield from _form_of_error(value)
    else:
        yield _ill(_instead("ok", value, "true or false"), "/ok")


def _form_of_memories(value: Mapping[str, Any]) -> Iterator[Problem]:
    memories = value.get("memories")
    if not isinstance(memories, list):
        yield _ill(_instead("memories", value, "an array"), "/memories")
        return
    for n, memory in enumerate(memories):
        if not isinstance(memory, Mapping):
            yield _ill(f"memory {n + 1} is {shortened(memory)}, not an object", f"/memories/{n}")


def _form_of_error(value: Mapping[str, Any]) -> Iterator[Problem]:
    error = value.get("error")
    if not isinstance(error, Mapping):
        yield _ill(_instead("error", value, "an object"), "/error")
        return
    if error.get("code") not in ERROR_CODES:
        known = f"one of {', '.join(ERROR_CODES)}"
        yield _ill(_instead("code", error, known, "the code of the error"), "/error/code")
    message = error.get("message")
    if not isinstance(message, str) or not message.strip():
        said = _instead("message", error, "a text", "the message of the error")
        yield Problem(RULES["CON003"], said, "/error/message", "a message that is not empty")


def _ill(message: str, pointer: str) -> Problem:
    return Problem(RULES["CON002"], message, pointer, "a tool result")


def _instead(name: str, value: Mapping[str, Any], wanted: str, called: str = "") -> str:
    found = f"is {shortened(value[name])}" if name in value else "is absent"
    return f"{called or name} {found}, should be {wanted}"


# ---- the outcome and the memories


def _answer(seen: Seen, may_be: tuple[Reading, ...], *, is_formed: bool) -> Iterator[Problem]:
    value, outcome = seen.told.value, outcome_of(seen.told.value)
    if not is_formed or not may_be:
        return
    if outcome == "timeout" and _is_early(seen):
        message = f"given up after {seen.told.elapsed_s * 1000:.0f} ms; timeout_ms is {seen.timeout_ms}"
        yield Problem(RULES["CON302"], message, "", expected_text(seen))
        return
    of_outcome = [reading for reading in may_be if reading.outcome == outcome]
    if not of_outcome:
        late = outcome == "ok" and {reading.outcome for reading in may_be} == {"timeout"}
        after = f" after {seen.told.elapsed_s * 1000:.0f} ms" if late else ""
        message = f"{_shown(value)}{after} where the contract gives {expected_text(seen)}"
        yield Problem(RULES["CON101"], message, "", expected_text(seen))
    elif outcome == "ok":
        yield from _memories(of_outcome, value["memories"])
    elif outcome == "http_error":
        yield from _status(of_outcome, value["error"])


def _shown(value: Mapping[str, Any]) -> str:
    outcome = outcome_of(value)
    if outcome != "ok":
        return outcome
    count = len(value["memories"])
    return f"ok with {count} {'memory' if count == 1 else 'memories'}"


_BY_KIND = {
    "set": ("CON201", "all usable memories, in their order"),
    "text": ("CON202", "the summary as it was sent"),
    "field": ("CON203", "the field as it was sent"),
}


def _memories(may_be: Iterable[Reading], memories: list[Any]) -> Iterator[Problem]:
    """Yield how memories differ from the reading that they are most like."""
    found = [mismatch(reading, memories) for reading in may_be]
    differ = [each for each in found if each is not None]
    if len(differ) == len(found):
        least = max(differ, key=lambda each: _BY_KIND[each.kind])
        code, expected = _BY_KIND[least.kind]
        yield Problem(RULES[code], least.message, least.pointer, expected)


def _status(may_be: Iterable[Reading], error: Mapping[str, Any]) -> Iterator[Problem]:
    sent = [reading.status for reading in may_be]
    status = error.get("status")
    is_number = isinstance(status, int) and not isinstance(status, bool)
    if not is_number or (status not in sent and None not in sent):
        came = next((str(each) for each in sent if each is not None), "the one that came")
        found = f"is {shortened(status)}" if "status" in error else "is absent"
        yield Problem(RULES["CON004"], f"status {found}, should be {came}", "/error/status", f"status {came}")


# ---- time and size


def _is_early(seen: Seen) -> bool:
    """Whether a timeout comes too early: before its time, and before the reply is there."""
    if seen.told.elapsed_s * 1000 >= _EARLY * seen.timeout_ms:
        return False
    first = first_arrival(seen)
    if first is None or first.reply.delivery == AT_ONCE:
        return False
    return first.sent is None or first.sent.how in ("client closed", "stopped")


def _lateness(seen: Seen) -> Iterator[Problem]:
    elapsed_ms = seen.told.elapsed_s * 1000
    if elapsed_ms > _latest_ms(seen):
        message = f"the answer came after {elapsed_ms:.0f} ms; timeout_ms is {seen.timeout_ms}"
        expected = f"an answer within {_latest_ms(seen):.0f} ms, some tolerance included"
        yield Problem(RULES["CON301"], message, "", expected)


def _size(seen: Seen, may_be: tuple[Reading, ...]) -> Iterator[Problem]:
    """Yield that more was read than needed, where nothing beyond the limit is of any use."""
    first = first_arrival(seen)
    if first is None:
        return
    if not first.reply.delivery.endless and {reading.outcome for reading in may_be} != {"response_too_large"}:
        return
    limit = seen.act.max_response_bytes
    head = sum(len(name) + len(value) + 4 for name, value in first.reply.headers)
    if first.sent_bytes > 2 * limit + _SPARE_BYTES + head:
        message = f"{first.sent_bytes:,} bytes were taken; max_response_bytes is {limit:,}"
        yield Problem(RULES["CON303"], message, "", f"reading stops soon after {limit:,} bytes")
