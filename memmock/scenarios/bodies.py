"""Bodies with status 200 that hold no usable memories, or that only some parsers read."""

from __future__ import annotations

import json
from typing import Any

from memmock.http import JSON_TYPE, Reply, encode_json
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("bodies")

_NOTHING_FOUND = "没查到"


def _body(body: bytes, content_type: str = JSON_TYPE, *headers: tuple[str, str]) -> Reply:
    return Reply(200, (("Content-Type", content_type), *headers), body)


def _text(stage: Stage) -> str:
    return encode_json({"memories": stage.memories}).decode()


def _memory(field: str) -> bytes:
    """Return an answer with one memory that has one more field, as JSON text."""
    return f'{{"memories":[{{"summary":"用户喜欢喝茉莉花茶。",{field}}}]}}'.encode()


@shelf("invalid_json")
def plain_text(stage: Stage) -> Reply:
    """Nothing was found, and the provider says so in plain text."""
    return _body(_NOTHING_FOUND.encode(), "text/plain; charset=utf-8")


@shelf("invalid_json")
def html(stage: Stage) -> Reply:
    """A page of a gateway or a login comes with 200."""
    return _body(b"<!DOCTYPE html>\n<html><body><h1>Please sign in</h1></body></html>\n", "text/html")


@shelf("invalid_json")
def empty_body(stage: Stage) -> Reply:
    """The body is empty, which is not an empty answer."""
    return _body(b"")


@shelf("invalid_json")
def truncated_json(stage: Stage) -> Reply:
    """The JSON stops in the middle; the framing says that it is complete."""
    body = _text(stage).encode()
    return _body(body[: len(body) * 2 // 3])


@shelf("invalid_json")
def nan(stage: Stage) -> Reply:
    """A confidence is NaN, which JSON does not have."""
    return _body(_memory('"confidence":NaN'))


@shelf("invalid_json")
def control_characters(stage: Stage) -> Reply:
    """A string holds a line break that is not escaped."""
    return _body(b'{"memories":[{"summary":"likes\ntea"}]}')


@shelf("invalid_json")
def invalid_utf8(stage: Stage) -> Reply:
    """Bytes within a string are not UTF-8."""
    return _body(b'{"memories":[{"summary":"\xe8\x8c\xb6 \xff\xfe \xc3\x28 \xed\xa0\x80"}]}')


@shelf("invalid_json")
def gbk(stage: Stage) -> Reply:
    """The JSON is encoded in GBK, and the Content-Type says so; JSON is UTF-8."""
    return _body(
        '{"memories":[{"summary":"用户喜欢喝茉莉花茶。"}]}'.encode("gbk"), "application/json; charset=gbk"
    )


@shelf("invalid_json")
def utf16(stage: Stage) -> Reply:
    """The JSON is encoded in UTF-16; JSON is UTF-8."""
    return _body(_text(stage).encode("utf-16"), "application/json; charset=utf-16")


@shelf("ok", "invalid_json")
def bom(stage: Stage) -> Reply:
    """A byte-order mark stands before the JSON; a parser may skip it or refuse the body."""
    return _body(b"\xef\xbb\xbf" + _text(stage).encode())


@shelf("invalid_json")
def trailing_garbage(stage: Stage) -> Reply:
    """More text follows the JSON."""
    return _body(_text(stage).encode() + b"<!-- served in 3 ms -->")


@shelf("invalid_json")
def ndjson(stage: Stage) -> Reply:
    """There is one JSON object a line instead of one in all."""
    lines = [
        encode_json({"memories": [memory]}) for memory in [*stage.memories, *stage.fixed("用户养猫。")][:2]
    ]
    return _body(b"\n".join([*lines, b""]), "application/x-ndjson")


@shelf("invalid_response")
def json_in_string(stage: Stage) -> Reply:
    """The JSON was encoded twice: the body is one string."""
    return _body(json.dumps(_text(stage), ensure_ascii=False).encode())


@shelf("ok", "invalid_json")
def duplicate_keys(stage: Stage) -> Reply:
    """The memories stand twice in one object; parsers take the last, the first, or refuse."""
    text = _text(stage)
    return _body(f"{text[:-1]},{text[1:]}".encode())


@shelf("invalid_json", "invalid_response")
def deep_nesting(stage: Stage, *, levels: int = 100_000) -> Reply:
    """Arrays are nested 100,000 deep, or as deep as the consumer's limit allows; parsers may give up."""
    levels = max(1, min(levels, stage.max_response_bytes // 2))
    return _body(b"[" * levels + b"]" * levels)


@shelf("ok", "invalid_json")
def huge_number(stage: Stage) -> Reply:
    """A confidence is 1e400, beyond a double; parsers may refuse it, but it must not become Infinity."""
    digits = max(1, min(5000, stage.max_response_bytes - 200))
    return _body(_memory('"confidence":1e400,"rank":' + "9" * digits))


@shelf("ok")
def lone_surrogate(stage: Stage) -> Reply:
    """A summary holds half of a surrogate pair, escaped; it is kept escaped or replaced."""
    return _body(b'{"memories":[{"id":"1","summary":"likes tea \\ud83d and cats","source":"\\udc00"}]}')


@shelf("invalid_json", "connection_failed")
def corrupt_gzip(stage: Stage) -> Reply:
    """The headers say that the body is gzip, and it is broken; an HTTP library may see to that itself."""
    return _body(b"\x1f\x8b\x08\x00" + bytes(range(64, 128)), JSON_TYPE, ("Content-Encoding", "gzip"))


@shelf("invalid_response")
def null(stage: Stage) -> Reply:
    """The body is null."""
    return _body(b"null")


@shelf("invalid_response")
def top_level_array(stage: Stage) -> Reply:
    """The memories come as an array without the object around it."""
    return _body(encode_json(stage.memories))


def _instead(value: Any) -> Reply:
    return Reply.json({"memories": value})


@shelf("invalid_response")
def memories_null(stage: Stage) -> Reply:
    """`memories` is null."""
    return _instead(None)


@shelf("invalid_response")
def memories_missing(stage: Stage) -> Reply:
    """The object has no `memories`."""
    return Reply.json({"results": stage.memories, "total": len(stage.memories)})


@shelf("invalid_response")
def memories_object(stage: Stage) -> Reply:
    """`memories` is an object instead of an array."""
    return _instead({str(number): memory for number, memory in enumerate(stage.memories)})


@shelf("invalid_response")
def memories_all_unusable(stage: Stage) -> Reply:
    """There are memories, but none with a summary."""
    return _instead(
        [None, {"id": "1"}, {"summary": ""}, {"summary": None}, {"text": "用户喜欢喝茶。"}, "茶", 7]
    )


@shelf("ok")
def wrong_content_type(stage: Stage) -> Reply:
    """The answer is good, but the Content-Type says HTML; it is not needed to read JSON."""
    return _body(_text(stage).encode(), "text/html")
