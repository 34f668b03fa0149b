from __future__ import annotations

import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.contract import Memory
from memmock.http import Reply
from memmock.tool_result import ERROR_CODES, ToolError, ToolResult, advice, tool_result

TEA = {"summary": "用户喜欢茶"}


def result_of(body: bytes, *, coding: str | None = None, limit: int = 65_536) -> ToolResult:
    headers = (("content-encoding", coding),) if coding else ()
    return tool_result(Reply(200, headers, body), limit)


def memories_of(*items: object) -> tuple[Memory, ...]:
    result = result_of(json.dumps({"memories": items}).encode())
    assert result.ok, result
    return result.memories


def failed(code: str, message: str, status: int | None = None) -> ToolResult:
    assert code in ERROR_CODES
    return ToolResult(False, (), ToolError(code, message, status))


EMPTY = failed("invalid_json", "the answer is empty")
NOT_JSON = failed("invalid_json", "the answer is not JSON")
NOT_UTF8 = failed("invalid_json", "the answer is not UTF-8")
NO_ARRAY = failed("invalid_response", "the answer is not an object with an array memories")
NONE_USABLE = failed("invalid_response", "the answer holds no usable memory")
BAD_GZIP = failed("invalid_json", "the gzip stream of the answer is broken")
BAD_CODING = failed("invalid_json", "the answer has a content coding other than gzip")
GOOD = b'{"memories":[]}'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"", EMPTY, id="empty"),
        pytest.param(b" \r\n\t", EMPTY, id="white-space"),
        pytest.param("没查到".encode(), NOT_JSON, id="plain-text"),
        pytest.param(b"<html><body>Bad gateway</body></html>", NOT_JSON, id="html"),
        pytest.param(b'{"memories":[', NOT_JSON, id="truncated"),
        pytest.param(GOOD + b"x", NOT_JSON, id="trailing-garbage"),
        pytest.param(GOOD + b"\n" + GOOD, NOT_JSON, id="ndjson"),
        pytest.param(b"\x00" + GOOD, NOT_JSON, id="nul"),
        pytest.param('{"memories":[{"summary":"用户"}]}'.encode("gbk"), NOT_UTF8, id="gbk"),
        pytest.param(GOOD.decode().encode("utf-16"), NOT_UTF8, id="utf-16"),
        pytest.param(b'{"memories":[],"a":"\xff"}', NOT_UTF8, id="invalid-utf-8"),
        pytest.param(
            b"\xef\xbb\xbf" + GOOD,
            failed("invalid_json", "the answer starts with a byte-order mark"),
            id="bom",
        ),
        pytest.param(
            b"[" * 100_000, failed("response_too_large", "the answer is larger than 65,536 bytes"), id="deep"
        ),
        pytest.param(
            b"[" * 60_000, failed("invalid_json", "the answer is nested too deeply"), id="deep-nesting"
        ),
        pytest.param(
            b'{"memories":[{"summary":"a","confidence":NaN}]}',
            failed("invalid_json", "the answer holds NaN or Infinity, which JSON does not have"),
            id="nan",
        ),
        pytest.param(b"null", NO_ARRAY, id="null"),
        pytest.param(b"[]", NO_ARRAY, id="top-level-array"),
        pytest.param(b'"{\\"memories\\":[]}"', NO_ARRAY, id="json-in-string"),
        pytest.param(b"{}", NO_ARRAY, id="memories-missing"),
        pytest.param(b'{"memories":null}', NO_ARRAY, id="memories-null"),
        pytest.param(b'{"memories":{}}', NO_ARRAY, id="memories-object"),
        pytest.param(
            b'{"memories":[null,1,"a",[],{},{"summary":1},{"summary":" "}]}', NONE_USABLE, id="none"
        ),
        pytest.param(GOOD, ToolResult(ok=True), id="nothing-found"),
        pytest.param(b" \n" + GOOD + b"\n ", ToolResult(ok=True), id="white-space-around"),
        pytest.param(b'{"memories":1,"memories":[]}', ToolResult(ok=True), id="duplicate-key"),
        pytest.param(b'{"memories":[],"n":' + b"9" * 5_000 + b"}", ToolResult(ok=True), id="huge-number"),
        pytest.param(b'{"memories":[],"n":1e999}', ToolResult(ok=True), id="huge-exponent"),
    ],
)
def test_body_gives_its_result(body: bytes, expected: ToolResult) -> None:
    assert result_of(body) == expected


@pytest.mark.parametrize("status", [100, 101, 199, 300, 301, 304, 400, 401, 404, 418, 429, 500, 503, 599])
def test_error_status_decides_before_the_body(status: int) -> None:
    expected = failed("http_error", f"the provider answered with status {status}", status)
    assert tool_result(Reply(status, (), GOOD)) == expected
    assert tool_result(Reply(status, (("Content-Encoding", "br"),), b"x" * 99_999)) == expected


@pytest.mark.parametrize("status", [200, 201, 203, 299])
def test_other_2xx_is_read_like_200(status: int) -> None:
    assert tool_result(Reply(status, (), GOOD)) == ToolResult(ok=True)


# ---- content codings and sizes


@pytest.mark.parametrize(
    ("coding", "body", "expected"),
    [
        pytest.param("gzip", gzip.compress(GOOD), ToolResult(ok=True), id="gzip"),
        pytest.param(" X-GZIP ", gzip.compress(GOOD), ToolResult(ok=True), id="x-gzip"),
        pytest.param("identity", GOOD, ToolResult(ok=True), id="identity"),
        pytest.param(
            "gzip", gzip.compress(GOOD[:4]) + gzip.compress(GOOD[4:]), ToolResult(ok=True), id="members"
        ),
        pytest.param("gzip", gzip.compress(b""), EMPTY, id="gzip-of-nothing"),
        pytest.param("gzip", b"", EMPTY, id="nothing"),
        pytest.param("gzip", GOOD, BAD_GZIP, id="not-gzip"),
        pytest.param("gzip", gzip.compress(GOOD)[:-5], BAD_GZIP, id="cut"),
        pytest.param("gzip", gzip.compress(GOOD)[:-8] + b"\0" * 8, BAD_GZIP, id="wrong-checksum"),
        pytest.param("gzip", gzip.compress(GOOD) + b"x", BAD_GZIP, id="trailing-garbage"),
        pytest.param("deflate", zlib.compress(GOOD), BAD_CODING, id="deflate"),
        pytest.param("br", GOOD, BAD_CODING, id="br"),
        pytest.param("gzip, gzip", gzip.compress(gzip.compress(GOOD)), BAD_CODING, id="twice"),
    ],
)
def test_coded_body_gives_its_result(coding: str, body: bytes, expected: ToolResult) -> None:
    assert result_of(body, coding=coding) == expected


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(("length", "ok"), [(999, True), (1_000, True), (1_001, False), (50_000, False)])
def test_size_is_limited_as_received_and_as_decoded(length: int, ok: bool, coded: bool) -> None:
    body = GOOD + b" " * (length - len(GOOD))
    result = result_of(gzip.compress(body) if coded else body, coding="gzip" if coded else None, limit=1_000)
    assert result == (
        ToolResult(ok=True) if ok else failed("response_too_large", "the answer is larger than 1,000 bytes")
    )


def test_gzip_bomb_is_not_inflated_past_the_limit() -> None:
    layer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(layer.compress(b" " * 1_000_000) for _ in range(60)) + layer.flush()
    assert len(bomb) < 65_536
    assert result_of(bomb, coding="gzip").error == ToolError(
        "response_too_large", "the answer is larger than 65,536 bytes"
    )


def test_members_over_the_limit_together_are_too_large() -> None:
    assert result_of(gzip.compress(b" " * 600) * 2, coding="gzip", limit=1_000) == failed(
        "response_too_large", "the answer is larger than 1,000 bytes"
    )


# ---- memories


def test_usable_memories_are_kept_in_order() -> None:
    items = [{"summary": str(n)} for n in range(20)]
    mixed = [None, *items[:10], {"summary": ""}, {"id": "x"}, *items[10:], {"summary": ["a"]}]
    assert [memory.summary for memory in memories_of(*mixed)] == [str(n) for n in range(20)]


def test_full_memory_is_passed_on() -> None:
    item = {"id": "1", "summary": "👩‍👩‍👧 𠮷\u2028", "type": "profile", "confidence": 0.5,
            "updated_at": "2026-01-01T00:00:00Z", "source": "long_term_memory"}  # fmt: skip
    (memory,) = memories_of({**item, "keywords": ["a"], "score": 1})
    assert memory.to_json() == item


@pytest.mark.parametrize("name", ["id", "type", "updated_at", "source", "confidence"])
@pytest.mark.parametrize("value", [None, True, [], {}])
def test_optional_field_of_the_wrong_type_is_left_out(name: str, value: object) -> None:
    assert memories_of({**TEA, name: value}) == (Memory("用户喜欢茶"),)


@pytest.mark.parametrize("value", [7, -0.5, 0, 1e300, 10**300])
def test_confidence_is_passed_on_as_it_came(value: float) -> None:
    (memory,) = memories_of({**TEA, "confidence": value})
    assert memory.confidence == value
    assert type(memory.confidence) is type(value)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1" + "0" * 400, "9" * 5_000, '"0.9"'])
def test_confidence_that_is_no_double_is_left_out(text: str) -> None:
    result = result_of(f'{{"memories":[{{"summary":"a","confidence":{text}}}]}}'.encode())
    assert result.memories == (Memory("a"),)


def test_type_outside_the_enum_is_passed_on() -> None:
    assert memories_of({**TEA, "type": "mood"})[0].type == "mood"


def test_lone_surrogate_becomes_a_replacement_character() -> None:
    result = result_of(rb'{"memories":[{"summary":"a\ud83d","id":"\udc00","type":"\ud83d\ude00"}]}')
    assert result.memories == (Memory("a\ufffd", id="\ufffd", type="\U0001f600"),)


# ---- the forms for the model


@pytest.mark.parametrize(
    ("result", "form"),
    [
        (ToolResult(ok=True), {"ok": True, "memories": []}),
        (ToolResult(True, (Memory("a", id="1"),)), {"ok": True, "memories": [{"id": "1", "summary": "a"}]}),
        (
            failed("http_error", "m", 503),
            {"ok": False, "error": {"code": "http_error", "message": "m", "status": 503}},
        ),
        (failed("timeout", "m"), {"ok": False, "error": {"code": "timeout", "message": "m"}}),
    ],
)
def test_to_json_gives_the_two_forms(result: ToolResult, form: dict[str, object]) -> None:
    assert result.to_json() == form


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        (1.0, "use naturally"),
        (0.8, "use naturally"),
        (0.79, "use with care"),
        (0.5, "use with care"),
        (0.49, "ask the user to confirm"),
        (0, "ask the user to confirm"),
        (None, "use with care"),
        (10**400, "use naturally"),
    ],
)
def test_advice_follows_confidence(confidence: float | None, expected: str) -> None:
    assert advice(confidence) == expected


def test_advice_thresholds_are_settings() -> None:
    assert [advice(c, high=0.4, low=0.2) for c in (0.4, 0.2, 0.1)] == [
        "use naturally",
        "use with care",
        "ask the user to confirm",
    ]


# ---- whatever is sent


def check_printable(result: ToolResult) -> None:
    json.dumps(result.to_json(), ensure_ascii=False, allow_nan=False).encode()
    assert result.ok == (result.error is None)


@given(st.binary(max_size=300), st.sampled_from(["", "gzip", "br"]), st.sampled_from([200, 204, 301, 500]))
def test_any_bytes_give_a_printable_result(body: bytes, coding: str, status: int) -> None:
    check_printable(tool_result(Reply(status, (("Content-Encoding", coding),), body), 200))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("summary", "id", "type", "confidence", "updated_at", "source", "extra")
ITEMS = JSON | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=7)


@given(st.lists(ITEMS, max_size=5) | JSON)
def test_any_memories_give_a_printable_result(memories: object) -> None:
    result = result_of(json.dumps({"memories": memories}).encode())
    check_printable(result)
    if isinstance(memories, list):
        assert len(result.memories) <= len(memories)
