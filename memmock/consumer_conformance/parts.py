r"""What replies are put together from: values, memories, bodies, heads, ways to send; the most telling first.

JSON is written here as text, since it is about what a JSON library would not write: `1e400`, two equal names,
`\/`. Each change makes one thing of a plain reply odd. What may be made of the reply is for `readings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal

from memmock.conformance.boundaries import ODD
from memmock.contract import MEMORY_TYPES
from memmock.http import JSON_TYPE, Headers
from memmock.reply_case import NOTHING

What = Literal[
    "field", "item", "top", "body", "write", "headers", "status", "style", "size", "cut", "stall", "count"
]
Change = tuple[What, Any]
"""What is changed, and how; see `made`. It can be hashed."""

JSON_HEADERS: Headers = (("Content-Type", JSON_TYPE),)
_TEA = '{"summary":"用户喜欢喝茶。"}'
_CONFIDENCE = b'{"memories":[{"summary":"tea","confidence":%s}]}'
_SUMMARY = b'{"memories":[{"summary":"%s"}]}'
GOOD = f'{{"memories":[{_TEA}]}}'.encode()


def _all(what: What, values: Iterable[Any]) -> tuple[Change, ...]:
    return tuple((what, value) for value in values)


def _fields(name: str, *values: str | None) -> tuple[Change, ...]:
    return _all("field", ((name, value) for value in values))


@lru_cache(4096)
def quoted(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text, ensure_ascii=False)


# ---- memories

SUMMARIES: tuple[Change, ...] = _fields(
    "summary",
    *(r'"nul \u0000 within"', r'"half a pair \ud83d"', r'"\udc00"', r'"tea \ud83c\udf75"', r'"a\/b \u8336"'),
    *map(quoted, ("<b>tea</b> & \"cake\" 'now'", "C:\\tea\\new", "line\nbreak\r\n\ttab", "e\u0301 e", "Å")),
    *map(
        quoted, (" tea ", "\u2028tea\u2029", "\ufefftea", "茶" * 1000, "🍵 👨‍👩‍👧", "&lt;tea&gt; &amp; %20 +")
    ),
    *map(quoted, ("a" * 300, "tea " * 2500, "茶🍵" * 2500, "\x7f\x80\x9f", "\x1b[31mred", "tea\u3000")),
    *map(quoted, dict.fromkeys(text for texts in ODD.values() for text in texts if text.strip())),
)
"""Summaries that are usable and must come as they are."""

OPTIONAL: tuple[Change, ...] = (
    *_fields("confidence", "0", None, '"0.9"', "null", "1", "true", "-0.0", "1e-7", "2", "-1", "[]", "{}"),
    *_fields("updated_at", '"yesterday"', None, "1767225600", "null", '"2026-05-01"', '""', "{}", "[]"),
    *_fields("id", "7", None, '"m0"', "null", '""', "9007199254740993", "[]", "{}", "true", "1.5", '" "'),
    *_fields("source", None, "null", "1", '""', '["a"]', "{}", "true", '"用户说的"', r'"\udc00"'),
    *_fields("type", None, '"unknown"', "null", "1", '["style"]', '""', '"Style"', "{}", "false", '"偏好"'),
    *_fields("type", *map(quoted, MEMORY_TYPES)),
    *_fields("score", "0.5"),
    *_fields("metadata", '{"a":{"b":[1,null]}}', "[[[[[[[[[[1]]]]]]]]]]"),
    *_fields("keywords", '["tea"]', "null"),
    *_fields("__proto__", '{"summary":"other"}'),
    *_fields("Summary", '"other"'),
    *_fields("text", '"other"'),
    *_fields("error", '{"code":"gone","message":"no"}'),
    *_fields("", "1"),
    *_fields("备注", '"茶"'),
    *_fields("self", "1"),
    *_fields("constructor", '"x"'),
    *_fields("confidence", "0.0", "1.0", "-0", "1E-2", "100", '"high"', "false", '""', "0.30000000000000004"),
    *_fields("confidence", "5e-324", "1.7976931348623157e308", "9007199254740993", "18446744073709551616"),
    *_fields(
        "confidence", "1.0000000000000002", "0.1" + "0" * 40, "1e-400", "123456789012345678901234567890"
    ),
    *_fields("updated_at", '"2026-02-30T00:00:00Z"', '"0000-00-00T00:00:00Z"', '"2026-05-01 08:00:00"'),
    *_fields("updated_at", '"2026-05-01T24:00:00Z"', '"2026-06-30T23:59:60Z"', '"9999-12-31T23:59:59Z"'),
    *_fields(
        "updated_at", '"2026-05-01T08:00:00.123456789Z"', '"2026-W18-5"', "true", '"昨天"', "-1", "1e20"
    ),
    *_fields("updated_at", '"Fri, 01 May 2026 08:00:00 GMT"', '"2026-05-01T08:00:00"', '"20260501T080000Z"'),
    *_fields("id", "0", "-1", quoted("i" * 300), '"m 0"', "18446744073709551616", '["m0"]', '"重复"'),
)
"""Optional fields, good and bad, and unknown ones: no reason to drop the memory."""

HUGE: tuple[Change, ...] = (
    *_fields("confidence", "1e400", "-1e400", "9" * 400),
    *_fields("rank", "1e400", "9" * 5000),
)
"""Numbers beyond a double."""

UNUSABLE: tuple[Change, ...] = (
    *_fields(
        "summary", None, '""', "null", "7", "[]", "{}", "true", '["tea"]', '{"text":"tea"}', "0", "false"
    ),
    *_all(
        "item", ("null", "7", '"tea"', "[]", "{}", "true", '{"text":"tea"}', f"[{_TEA}]", '{"Summary":"tea"}')
    ),
)
"""Memories that are dropped; the others of the reply stay."""

BLANK: tuple[Change, ...] = _fields(
    "summary", '" "', r'"\n\t"', '"\u3000"', '"\u00a0"', r'"\u0000"', '"\u200b"', r'"\u2028"'
)
"""Summaries that are white space only, or look so."""

ITEMS: tuple[Change, ...] = _all(
    "item",
    (
        _TEA,
        r'{"\u0073ummary":"用户喜欢喝茶。"}',
        '{ "summary"\t:\r\n"用户喜欢喝茶。" }',
        '{"summary":"用户喜欢喝茶。","id":"1","type":"other"}',
        '{"summary":"one","summary":"two"}',
        '{"id":"1","summary":"tea","id":"2"}',
    ),
)

COUNTS = (0, 1, 2, 3, 5, 6, 10, 20, 21, 50, 60)
"""How many memories a reply has."""

TOPS: tuple[Change, ...] = _all(
    "top",
    (
        ('{"memories":', ',"has_more":true}'),
        ('{"has_more":true,"next":"/page/2","memories":', "}"),
        ('{"error":null,"ok":true,"total":60,"memories":', "}"),
        ('{"has_more":"yes","memories":', "}"),
        (r'{"\u006demories":', "}"),
        ('{"error":{"code":"x","message":"y"},"memories":', "}"),
        ('{"Memories":[],"results":[],"memories":', ',"MEMORIES":null}'),
        ('{"":{},"__proto__":{"memories":null},"memories":', "}"),
        ('{"x":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]],"memories":', "}"),
        (' \r\n\t{\n"memories" : ', "\n}\n \t\r\n"),
    ),
)
"""What may stand around the memories."""

WRITES: tuple[Change, ...] = _all("write", ("spaced", "escaped", "lines", "reversed"))
"""The ways to write the same JSON."""

# ---- bodies that are wrong

NO_RESPONSE: tuple[Change, ...] = (
    *_all("top", (('{"results":', "}"), ("", ""), ('{"data":{"memories":', "}}"), ('{"Memories":', "}"))),
    *_all(
        "body",
        (
            *(
                b"null",
                b"{}",
                b"[]",
                b"0",
                b"true",
                b'""',
                b'"no memory"',
                b"1.5",
                json.dumps(NOTHING.decode()).encode(),
            ),
            *(
                b'{"memories":%s}' % each
                for each in (b"null", b"{}", b'"none"', b"0", b"false", b"[[]]", b"[null]")
            ),
            *(
                b'{"memories":%s}' % each
                for each in (b"[{}]", b"[0]", b'["tea"]', b'[{"summary":""},{"id":"1"}]')
            ),
            b'{"error":{"code":"not_found","message":"no memory"}}',
        ),
    ),
)
"""JSON without an array of memories, or without a usable one in it."""

NO_JSON: tuple[Change, ...] = _all(
    "body",
    (
        *(b"", "没查到".encode(), b" ", b"<html><body>Please sign in</body></html>", GOOD[:-2]),
        GOOD + b"<!-- -->",
        *(b'{"memories":[{"summary":"tea\nbreak"}]}', b'{"memories":[{"summary":"tea\0"}]}'),
        *(_CONFIDENCE % each for each in (b"NaN", b"Infinity", b"-Infinity")),
        *(b'{"memories":[{"summary":"tea \xff"}]}', '{"memories":[{"summary":"茶茶"}]}'.encode("gbk")),
        *(GOOD.decode().encode(coding) for coding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")),
        *(b'{"memories":[{"summary":"caf\xe9"}]}', b'{"memories":[{"summary":"\xed\xa0\xbd\xed\xb8\x80"}]}'),
        *(b'{"memories":[{"summary":"\xc0\xaf"}]}', b'{"memories":[{"summary":"tea \xe8\x8c"}]}'),
        *(GOOD + b"\n" + GOOD, GOOD + b"\0", GOOD + b"}", b'{"memories":[],}', b'{"memories":[,]}'),
        *(b"{'memories':[]}", b"{memories:[]}", b'{"memories":[]} // none', b'/* */{"memories":[]}'),
        b"undefined",
        *(b"None", b"True", b'{"memories":[]', b'{"memories":', b"{", b'"', b"callback(" + GOOD + b")"),
        *(b")]}',\n" + GOOD, b"data: " + GOOD + b"\n\n", GOOD + b",", b"\xa0" + GOOD, b"\x0c" + GOOD),
        *(_CONFIDENCE % each for each in (b"01", b"+1", b".5", b"1.", b"0x1")),
        *(_SUMMARY % each for each in (b"\\q", b"\\u12", b"\\x41", b"\\", b"\t", b"\x1f")),
    ),
)  # fmt: skip
"""What is no JSON, or JSON only to some."""


_PASSED_ON = 513
"""What is nested deeper, many a good consumer can read and not write again."""


def _nested(levels: int) -> tuple[bytes, ...]:
    deep = b"[" * levels + b"]" * levels
    passed_on = b'{"memories":[{"summary":"tea","extra":%s}]}' % deep
    return (deep, passed_on) if levels <= _PASSED_ON else (deep,)


NESTED: tuple[Change, ...] = _all(
    "body", (body for levels in (2000, 1001, 513, 500, 129, 101, 65, 33, 20, 2) for body in _nested(levels))
)
OPEN_JSON: tuple[Change, ...] = (
    ("body", b"\xef\xbb\xbf" + GOOD),
    *_all("top", (('{"memories":[],"memories":', "}"), ('{"memories":null,"memories":', "}"))),
    ("body", b'{"memories":[],"x":NaN}'),
    ("body", b'{"memories":[{"summary":"tea"}],"\xff":1}'),
)

# ---- heads

_BYTES = "茶".encode().decode("latin-1")


def _typed(*types: str) -> tuple[Headers, ...]:
    return tuple((("Content-Type", each),) for each in types)


HEADERS: tuple[Change, ...] = _all(
    "headers",
    (
        (),
        *_typed("text/html", "application/json; charset=utf-8", "text/plain"),
        (*JSON_HEADERS, ("X-Note", f"caf\xe9 {_BYTES}")),
        *_typed("application/json; charset=x-none", "application/json;charset=UTF-8"),
        *_typed('application/json; charset="utf-8"', "application/json; charset=gbk", "application/json;"),
        *_typed("application/json; x=y"),
        *_typed("application/json; charset", "application/json; charset=", "application/problem+json"),
        *_typed("Application/JSON"),
        *_typed("", "json", "*/*", _BYTES),
        (*JSON_HEADERS, ("X-Empty", "")),
        (*JSON_HEADERS, *((f"X-Header-{number}", str(number)) for number in range(60))),
        (*JSON_HEADERS, ("Connection", "close")),
        (*JSON_HEADERS, ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5, max=1")),
        (*JSON_HEADERS, ("Retry-After", "120")),
        (*JSON_HEADERS, ("Location", "/elsewhere")),
        (*JSON_HEADERS, ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Secure")),
        (*JSON_HEADERS, ("X-Long", "x" * 4000)),
        (*JSON_HEADERS, *JSON_HEADERS),
        (*JSON_HEADERS, ("Content-Encoding", "identity")),
        (*JSON_HEADERS, ("Date", "not a date"), ("Age", "-1"), ("Expires", "0"), ("ETag", 'W/"1"')),
        (*JSON_HEADERS, ("X-Colons", ":: a: b"), ("X-Quotes", '"unclosed'), ("X-Tab", "a\tb")),
        (*JSON_HEADERS, ("!#$%&'*+-.^_`|~0", "1")),
    ),
)  # fmt: skip
"""Heads that change nothing."""

OPEN_HEADERS: tuple[Change, ...] = _all(
    "headers",
    (
        (*JSON_HEADERS, *((f"X-Header-{number}", str(number)) for number in range(150))),
        (*JSON_HEADERS, ("X-Long", "x" * 10_000)),
        (*JSON_HEADERS, ("Content-Encoding", "br")),
        (*JSON_HEADERS, ("Content-Encoding", "none")),
    ),
)
"""Heads that a client may refuse."""

_PAGE = b"<html><body><h1>Bad Gateway</h1></body></html>"
_ERROR = b'{"error":{"code":"rate_limited","message":"slow down"}}'
GOOD_STATUSES: tuple[Change, ...] = _all(
    "status", ((status, (), None) for status in (201, 202, 203, 206, 299))
)
STATUSES: tuple[Change, ...] = _all(
    "status",
    (
        (404, (), None),
        (503, (("Retry-After", "1"),), _ERROR),
        (429, (("Retry-After", "0"),), _ERROR),
        *((status, (), GOOD) for status in (500, 400, 410)),
        *((status, (("Location", "/elsewhere"),), GOOD) for status in (302, 307, 301, 303, 308)),
        *((204, (), NOTHING), (205, (), NOTHING), (304, (("ETag", '"1"'),), b"")),
        *((502, (), _PAGE), (503, (("Retry-After", "120"),), b""), (401, (), b"null"), (500, (), b"")),
        *((status, (), _ERROR) for status in (403, 405, 408, 409, 413, 418, 422, 425)),
        *((status, (), _ERROR) for status in (451, 501, 504, 511, 599)),
        *((status, (), NOTHING) for status in (300, 305, 402, 406, 420, 499, 520)),
        *((429, (("Retry-After", value),), _ERROR) for value in ("-1", "Wed, 21 Oct 2026 07:28:00 GMT", "")),
        *((302, (), NOTHING), (302, (("Location", ""),), b"")),
        (401, (("WWW-Authenticate", "Basic"),), _ERROR),
        *((600, (), GOOD), (999, (), GOOD)),
    ),
)  # fmt: skip

# ---- ways to send


def _styles(*styles: dict[str, Any]) -> tuple[Change, ...]:
    return _all("style", (tuple(style.items()) for style in styles))


_CHUNKED = {"framing": "chunked"}
STYLES: tuple[Change, ...] = _styles(
    _CHUNKED,
    {"names": "lower"},
    {"colon": ":"},
    {"reason": "empty"},
    {**_CHUNKED, "chunk_bytes": 7},
    {**_CHUNKED, "extension": ";a=b"},
    {**_CHUNKED, "trailers": (("X-Sum", "1"),)},
    {"framing": "close"},
    {"version": "1.0"},
    {"names": "upper"},
    {"colon": ":  \t"},
    {**_CHUNKED, "chunk_bytes": 1},
    {**_CHUNKED, "chunk_bytes": 26, "sizes": "upper"},
    {**_CHUNKED, "sizes": "padded"},
    {**_CHUNKED, "chunk_bytes": 5, "extension": ';a="b;c";d', "trailers": (("X-A", ""), ("x-b", "2"))},
    {"reason": "other"},
    {"reason": "utf-8"},
    {"reason": "latin-1"},
    {"interim": (100,)},
    {"interim": (103,)},
    {"interim": (103, 100, 103)},
    {"ending": "close"},
    {"version": "1.0", "framing": "close"},
    {**_CHUNKED, "names": "lower", "colon": ":"},
    {"slices": 2, "spread": 0.1},
    {"slices": 400},
    {"slices": 20, "spread": 0.3},
    {"slices": 20, "spread": 0.3, "sliced": "head"},
    {**_CHUNKED, "chunk_bytes": 7, "slices": 20, "spread": 0.3},
)
"""Ways to write and send a reply that all say the same."""

SLOW_STYLES: tuple[Change, ...] = _styles(
    {"delay": 0.5}, {"slices": 10, "spread": 0.5, "sliced": "body"}, {"framing": "close", "delay": 0.5}
)
"""Those that take a good part of the consumer's time."""

CODINGS: tuple[Change, ...] = _styles(
    *(
        {"coding": coding}
        for coding in ("gzip", "gzip members", "gzip corrupt", "gzip cut", "gzip only named")
    ),
    {"coding": "deflate"},
    {"coding": "gzip", **_CHUNKED, "chunk_bytes": 7},
)
OPEN_STYLES: tuple[Change, ...] = _styles(
    {"reason": "absent"},
    {"surplus": b"\r\n"},
    {"surplus": b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n" + NOTHING},
    {"surplus": b"}"},
    {**_CHUNKED, "surplus": b"0\r\n\r\n"},
)
"""What is read, or taken for broken."""

_ENDINGS = ("close", "reset")
BROKEN: tuple[Change, ...] = (
    *_styles({"length_by": 1, "ending": "close"}, {"length_by": -1}, {"length_by": -10_000}),
    *_all("cut", ((permille, "close") for permille in (990, 500, 700, 300, 0, 20))),
    *_all("cut", ((permille, "reset") for permille in (990, 0, 500))),
    *_styles(*({"length_by": by, "ending": ending} for by in (10, 100_000) for ending in _ENDINGS)),
    *_styles({"framing": "close", "ending": "reset"}),
)
CUT_BODIES: tuple[tuple[Change, Change], ...] = tuple(
    (("style", (("framing", framing),)), ("cut", (permille, ending)))
    for framing in ("chunked", "close")
    for permille in (999, 900, 600)
    for ending in _ENDINGS
)
"""Bodies without a length that are cut: the one change beside the other."""

LATE: tuple[Change, ...] = (
    *_styles({"delay": 1.6}, {"delay": 0.7, "slices": 2, "spread": 0.7, "sliced": "body"}),
    *_styles({"slices": 40, "spread": 2.0, "sliced": "body"}),
    *_all("cut", ((0, "hang"), (300, "hang"), (900, "hang"))),
    *_styles({"slices": 40, "spread": 2.0}, {"slices": 40, "spread": 2.0, "sliced": "head"}),
    *_styles({"length_by": 1}, {**_CHUNKED, "slices": 40, "spread": 2.0, "sliced": "body"}),
    *_styles({"framing": "close", "ending": "hang"}),
)
"""What takes all of the consumer's time."""

STALLS: tuple[Change, ...] = _all(
    "stall", ((70_000, "chunked"), (70_000, "close"), (70_000, "length"), (1, "length"))
)

Filler = Literal["茶", "a", "😀", " ", "many"]
FILLERS: tuple[Filler, ...] = ("茶", "a", "😀", " ", "many")
FITTING: tuple[Change, ...] = _all("size", ((by, filler) for by in (0, -1, -2) for filler in FILLERS))
OVERSIZED: tuple[Change, ...] = _all("size", ((by, filler) for by in (1, 2, 100_000) for filler in FILLERS))
"""Bodies by the limit: how many bytes more they have, and of what."""

PLAIN_CHANGE: Change = ("count", None)
"""What changes nothing."""
