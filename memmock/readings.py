"""What the contract says of a reply: each thing that a consumer may rightly make of it.

Independent of the reference consumer, which it is to judge too: the bytes are read by the standard library. A
reply comes whole and in time here; what becomes of one that does not is for others.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from memmock.contract import MEMORY_TYPES
from memmock.http import Reply
from memmock.reply_parsing import Received, accepted, codings, decoded, received, values
from memmock.rules.timestamps import is_rfc3339
from memmock.strictjson import shortened
from memmock.tool_result import ErrorCode


@dataclass(frozen=True)
class Reading:
    """One thing that a consumer may rightly make of a reply.

    Attributes:
        outcome: `ok`, or the code of the error.
        status: what goes with `http_error`.
        memories: with `ok`: those that it may pass on, as the provider sent them, in their order.
        optional: the places in `memories` of those that it may leave out (a summary of white space only).
    """

    outcome: Literal["ok"] | ErrorCode
    status: int | None = None
    memories: tuple[Mapping[str, Any], ...] = ()
    optional: frozenset[int] = frozenset()


class Mismatch(NamedTuple):
    """How memories differ from those that were to come.

    Attributes:
        kind: `set` when some are missing, too many, or in another order; `text` when a summary is not intact;
            `field` when an optional field is lost, changed or made up.
        pointer: where, as `/memories/0/summary`.
        message: what was seen, in one line.
    """

    kind: Literal["set", "text", "field"]
    pointer: str
    message: str


_FAILED = Reading("connection_failed")
_TOO_LARGE = Reading("response_too_large")
_NO_JSON = Reading("invalid_json")
_NO_MEMORIES = Reading("invalid_response")


def readings(reply: Reply, *, max_response_bytes: int, accepts: str | None = None) -> tuple[Reading, ...]:
    """Return everything that a consumer may make of a reply that arrives whole and in time.

    Args:
        reply: its `delivery.wire` is read when there is one; else status, headers and body.
        max_response_bytes: the limit of the consumer.
        accepts: the Accept-Encoding that the consumer sent; None when it sent none.
    """
    if reply.delivery.wire is not None:
        came = received(reply.delivery.wire)
    else:
        came = Received(reply.status, reply.header("Content-Encoding"), reply.body)
    found = _of_reply(came, max_response_bytes, accepts)
    return tuple(_distinct([*found, _FAILED] if came.flaw else found))


def _distinct(found: Iterable[Reading]) -> list[Reading]:
    kept: list[Reading] = []
    for reading in found:
        if reading not in kept:
            kept.append(reading)
    return kept


def _of_reply(came: Received, limit: int, accepts: str | None) -> list[Reading]:
    if not came.status:
        return [_FAILED]
    if not 200 <= came.status < 300:
        found = [Reading("http_error", came.status)]
        if came.status < 200 or came.status > 599:
            found.append(_FAILED)
        if came.status < 200 and came.status != 101:  # as if another reply were to follow
            found.append(Reading("timeout"))
        return found
    if came.flaw == "broken":
        return [_FAILED]
    if came.status == 204:
        return [_NO_JSON]
    if len(came.body) > limit:
        return [_TOO_LARGE]
    return _of_content(came, limit, accepts)


def _of_content(came: Received, limit: int, accepts: str | None) -> list[Reading]:
    names = codings(came.coding)
    if not names:
        return _of_json(came.body)
    asked = all(accepted(name, accepts) for name in names)
    if not all(name in ("gzip", "x-gzip", "deflate") for name in names):
        # some clients pass over a coding that they do not know
        return [_NO_JSON, _FAILED] if asked else [_NO_JSON, *_of_json(came.body)]
    body, flaws = came.body, []
    for name in reversed(names):
        body, flaw = decoded(body, name, limit)
        flaws += [flaw] * (flaw != "")
    found = [_TOO_LARGE] if len(body) > limit else [] if "broken" in flaws else _of_json(body)
    if flaws:
        found = [*found, _NO_JSON, _FAILED]  # an HTTP library may see to codings itself
    if asked:
        return found
    as_it_is = [each for each in _of_json(came.body) if each.outcome == "ok"] if flaws else []
    return [*found, _NO_JSON, *as_it_is]


def _of_json(body: bytes) -> list[Reading]:
    """Return what may be made of a body of 2xx within the limit, decoded."""
    said = values(body)
    if said is None:
        return [_NO_JSON]
    found = [reading for value in said.all for reading in _of_value(value)]
    return [*found, _NO_JSON] if said.disputed else found


def _of_value(value: Any) -> list[Reading]:
    items = value.get("memories") if isinstance(value, dict) else None
    if not isinstance(items, list):
        return [_NO_MEMORIES]
    usable = [item for item in items if isinstance(item, dict) and _is_text(item.get("summary"))]
    if items and not usable:
        return [_NO_MEMORIES]
    optional = frozenset(n for n, item in enumerate(usable) if _is_blank(item["summary"]))
    found = Reading("ok", memories=tuple(usable), optional=optional)
    return [found, _NO_MEMORIES] if usable and len(optional) == len(usable) else [found]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_blank(text: str) -> bool:
    """Whether there is nothing to see: languages differ in what is white space to them."""
    return all(char.isspace() or unicodedata.category(char) in ("Cc", "Cf") for char in text)


# ---- what was passed on


def mismatch(reading: Reading, memories: Sequence[Any]) -> Mismatch | None:
    """Return how memories differ from those of a reading; None when they do not.

    A lone surrogate is the same as U+FFFD, and several of them the same as one. Numbers are the same within
    the precision of 32 bits. An optional field that does not keep the contract may be left out; fields that
    the contract does not know are not looked at.
    """
    pairs = _paired(reading, memories)
    if pairs is None:
        return _difference(reading, memories)
    for place, sent in enumerate(pairs):
        if found := next(_field_differences(place, sent, memories[place]), None):
            return found
    return None


def _paired(reading: Reading, memories: Sequence[Any]) -> list[Mapping[str, Any]] | None:
    """Return what each memory was when it was sent; None when the summaries do not agree."""
    pairs: list[Mapping[str, Any]] = []
    for n, sent in enumerate(reading.memories):
        place = len(pairs)
        got: Any = memories[place] if place < len(memories) else None
        if n in reading.optional:
            if _same_summary(sent, got) and not any(_field_differences(place, sent, got)):
                pairs.append(sent)
        elif _same_summary(sent, got):
            pairs.append(sent)
        else:
            return None
    return pairs if len(pairs) == len(memories) else None


_REPLACED = re.compile("[\ud800-\udfff\ufffd]+")


def _plain(text: str) -> str:
    return _REPLACED.sub("\ufffd", text)


def _summary(memory: Any) -> str:
    """Return a summary as it is compared; empty when there is none."""
    text = memory.get("summary") if isinstance(memory, Mapping) else None
    return _plain(text) if isinstance(text, str) else ""


def _same_summary(sent: Mapping[str, Any], got: Any) -> bool:
    return isinstance(got, Mapping) and _summary(sent) == _summary(got)


def _difference(reading: Reading, memories: Sequence[Any]) -> Mismatch:
    """Return the first difference between the summaries."""
    sent = [_summary(memory) for n, memory in enumerate(reading.memories) if n not in reading.optional]
    may = Counter(_summary(reading.memories[n]) for n in reading.optional)
    got = [_summary(memory) for memory in memories]
    missing, extra = _left(sent, got), _left(got, sent)
    extra = [place for place in extra if not _taken(may, got[place])]
    count = len(reading.memories) - len(reading.optional)
    if extra and len(missing) == len(extra):
        place = extra[0]
        message = f"memory {place + 1}: {_text_difference(sent[missing[0]], got[place])}"
        return Mismatch("text", f"/memories/{place}/summary", message)
    if len(missing) > len(extra):
        passed = f"{len(memories)} of {count} usable memories {_are(len(memories))} passed on"
        what = f"the {_ordinal(missing[0])} is missing: {shortened(sent[missing[0]], 40)}"
        return Mismatch("set", "/memories", f"{passed}; {what}")
    if extra:
        place = extra[0]
        text = shortened(got[place], 40)
        what = f"comes again: {text}" if got[place] in sent else f"is none of them: {text}"
        if not got[place]:
            what = "has no summary"
        passed = f"{len(memories)} memories are passed on where {count} {_are(count)} usable"
        return Mismatch("set", f"/memories/{place}", f"{passed}; the {_ordinal(place)} {what}")
    place = _first_difference(sent, got)
    message = f"the memories come in another order: memory {place + 1} is {shortened(got[place], 40)}"
    return Mismatch("set", f"/memories/{place}", message)


def _left(texts: Sequence[str], others: Sequence[str]) -> list[int]:
    """Return the places of texts that the others do not have, each as often as it stands there."""
    there = Counter(others)
    return [place for place, text in enumerate(texts) if not _taken(there, text)]


def _taken(there: Counter[str], text: str) -> bool:
    there[text] -= 1
    return there[text] >= 0


def _first_difference(mine: Sequence[str], theirs: Sequence[str]) -> int:
    """Return the place of the first difference; where the shorter one ends when there is none before."""
    pairs = zip(mine, theirs, strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(mine), len(theirs)))


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _ordinal(place: int) -> str:
    number = place + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _text_difference(sent: str, got: str) -> str:
    if not got:
        return f"the summary is lost: {shortened(sent, 40)}"
    if sent.startswith(got):
        return f"the summary is cut after {len(got)} of {len(sent)} characters"
    if sent.strip() == got.strip():
        return "the white space around the summary is not as it was sent"
    if html.unescape(got) == sent:
        return f"the summary is escaped as HTML: {shortened(got, 40)}"
    if unicodedata.normalize("NFKC", sent) == unicodedata.normalize("NFKC", got):
        return f"the characters of the summary are normalised: {shortened(got, 40)}"
    at = next(
        (n for n, (mine, theirs) in enumerate(zip(sent, got, strict=False)) if mine != theirs), len(sent)
    )
    start = max(0, at - 8)
    return (
        f"the summary differs from character {at + 1} on: {shortened(sent[start:], 30)} was sent, "
        f"{shortened(got[start:], 30)} came"
    )


# ---- optional fields


def _field_differences(place: int, sent: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Mismatch]:
    for name, is_good in _GOOD.items():
        message = _field_difference(name, sent, got, is_good(sent.get(name)))
        if message:
            yield Mismatch("field", f"/memories/{place}/{name}", f"memory {place + 1}: {message}")


def _field_difference(name: str, sent: Mapping[str, Any], got: Mapping[str, Any], good: bool) -> str:
    """Return how an optional field differs, empty when it does not."""
    value, came = sent.get(name), got.get(name)
    if name not in sent:
        return "" if came in (None, "") else f"{name} {shortened(came)} is made up"
    if _same(value, came) or (not good and came in (None, "")):
        return ""
    if came is None:
        return f"{name} {shortened(value)} is lost"
    return f"{name} is {shortened(came)}, and {_described(value)} was sent"


def _described(value: Any) -> str:
    return "a number beyond a double" if isinstance(value, float) and math.isinf(value) else shortened(value)


def _same(sent: Any, got: Any) -> bool:
    if isinstance(sent, str) and isinstance(got, str):
        return _plain(sent) == _plain(got)
    if isinstance(sent, list | dict):
        return type(sent) is type(got)  # none of the contract's forms: not looked into
    if _is_number(sent) and _is_number(got):
        return math.isinf(sent) or math.isclose(sent, got, rel_tol=1e-6)
    return type(sent) is type(got) and bool(sent == got)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_GOOD = {
    "id": _is_text,
    "type": lambda value: isinstance(value, str) and value in MEMORY_TYPES,
    "confidence": lambda value: _is_number(value) and 0 <= value <= 1,
    "updated_at": lambda value: isinstance(value, str) and is_rfc3339(value),
    "source": _is_text,
}
"""The optional fields, and which of their values keep the contract."""
