"""Replies made from their parts."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from memmock.consumer_conformance.parts import COUNTS, GOOD, JSON_HEADERS, Change, Filler, quoted
from memmock.contract import MEMORY_TYPES
from memmock.reply_case import NOTHING, ReplyCase
from memmock.reply_wire import PLAIN, payload_bytes


def made(*changes: Change, count: int = 1, place: int = 0, max_response_bytes: int) -> ReplyCase:
    """Return a reply with these changes, which are made in their order.

    Args:
        changes: what is odd about it: a `field` of one memory (a name, and JSON text or None for its
            absence), that memory as a whole (`item`), what is around the memories (`top`), the whole `body`,
            the way that JSON is written (`write`), the `headers`, the `status` with headers and a body of its
            own, the `style`, the `size` beside the limit, where it is `cut` (in thousandths) and what comes
            then, at which size beyond the limit it stands still (`stall`), the number of memories (`count`).
        count: how many memories it has; one at least where one is changed.
        place: which of them is changed; counted round.
        max_response_bytes: the limit.
    """
    by_kind = {what: value for what, value in changes if value is not None}
    style = PLAIN
    status, headers = 200, by_kind.get("headers", JSON_HEADERS)
    body = _body(changes, by_kind.get("count", count), place)
    if "size" in by_kind:
        by, filler = by_kind["size"]
        body = sized(max_response_bytes + by, filler)
    if "status" in by_kind:
        status, more, its_body = by_kind["status"]
        headers, body = (*headers, *more), body if its_body is None else its_body
    for what, value in changes:
        if what == "style":
            style = style._replace(**dict(value))
    if "stall" in by_kind:
        by, framing = by_kind["stall"]
        style = style._replace(framing=framing, coding="", ending="hang", version="1.1")
        body = sized(max_response_bytes + by + 1000, "茶")
    style = style._replace(chunk_bytes=max(style.chunk_bytes, len(body) // _MOST_CHUNKS))
    case = ReplyCase(status, headers, body, style)
    if "stall" in by_kind:
        payload = payload_bytes(max_response_bytes + by, body, framing, style)
        return ReplyCase(status, headers, body, style._replace(cut=case.head_bytes + payload))
    if "cut" in by_kind:
        permille, ending = by_kind["cut"]
        size = len(case.wire)
        cut = min(size - 1, size * permille // 1000)
        return ReplyCase(status, headers, body, style._replace(cut=cut, ending=ending))
    return case


_MOST_CHUNKS = 4000
"""More of them take too much of the time of a consumer that reads them one by one."""


@lru_cache(64)
def sized(size: int, filler: Filler) -> bytes:
    """Return a good body of exactly so many bytes, 16 at least, filled with characters of this kind."""
    start, end = b'{"memories":[', b"]}"
    if size < len(start) + len(end) + 50 or filler == " ":
        return (GOOD if size > len(GOOD) else NOTHING).ljust(size)
    memory = b'{"summary":"%s"}'
    if filler == "many":
        each = memory % b"tea" + b","
        times = (size - len(start) - len(end) - 30) // len(each)
        start += each * times
        filler = "a"
    room = size - len(start) - len(end) - len(memory % b"")
    unit = filler.encode()
    return start + memory % (unit * (room // len(unit)) + b"." * (room % len(unit))) + end


_SUMMARIES = ("用户喜欢喝茉莉花茶。", "The user lives in Malmö.", "用户养了一只黑猫。", "The user writes Go.")
_MEMORIES: tuple[dict[str, str], ...] = tuple(
    {
        "id": f'"m{number}"',
        "summary": quoted(f"{_SUMMARIES[number % len(_SUMMARIES)]} {number}"),
        "type": quoted(MEMORY_TYPES[number % len(MEMORY_TYPES)]),
        "confidence": ("0.9", "0.42", "1")[number % 3],
        "updated_at": f'"2026-{1 + number % 12:02}-09T22:10:00+08:00"',
        "source": '"long_term_memory"',
    }
    for number in range(max(COUNTS))
)  # fmt: skip


def _body(changes: tuple[Change, ...], count: int, place: int) -> bytes:
    memories: list[dict[str, str] | str] = list(_MEMORIES[:count])
    start, end, how = '{"memories":', "}", ""
    for what, value in changes:
        if what == "body":
            return bytes(value)
        if what in ("field", "item") and not memories:
            memories = [_MEMORIES[0]]
        at = place % max(1, len(memories))
        if what == "item":
            memories[at] = value
        elif what == "field":
            memory = memories[at]
            if not isinstance(memory, str):
                name, text = value
                rest = {key: other for key, other in memory.items() if key != name or text is not None}
                memories[at] = rest if text is None else {**rest, name: text}
        elif what == "top":
            start, end = value
        elif what == "write":
            how = value
    comma, colon = {"spaced": (" , ", " : "), "lines": (",\r\n\t", ":\t")}.get(how, (",", ":"))
    items = []
    for memory in memories:
        if isinstance(memory, str):
            items.append(memory)
        else:
            pairs = [f"{quoted(name)}{colon}{text}" for name, text in memory.items()]
            items.append("{" + comma.join(reversed(pairs) if how == "reversed" else pairs) + "}")
    text = f"{start}[{comma.join(items)}]{end}"
    return (_escaped(text) if how == "escaped" else text).encode()


def _escaped(text: str) -> str:
    """Return JSON with every character beyond ASCII escaped."""
    return re.sub(r"[^\x00-\x7f]", lambda found: json.dumps(found[0])[1:-1], text)
