from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memmock.http import Reply
from memmock.reply_reader import MAX_HEAD_BYTES, ReplyReader
from memmock.tool_result import ToolResult

BODY = b'{"memories":[]}'
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n" + BODY
FOUND = ToolResult(ok=True)
LIMIT = 1_000
BROKEN = ToolResult.failed("connection_failed", "the answer is not valid HTTP")
CLOSED_EARLY = ToolResult.failed(
    "connection_failed", "the provider closed the connection before the end of its answer"
)
TOO_LARGE = ToolResult.failed("response_too_large", "the answer is larger than 1,000 bytes")
TOO_LARGE_HEAD = ToolResult.failed("response_too_large", "the answer is larger than 65,536 bytes")


def error_status(status: int) -> ToolResult:
    return ToolResult.failed("http_error", f"the provider answered with status {status}", status)


def reader_of(*parts: bytes) -> ReplyReader:
    reader = ReplyReader(LIMIT)
    for part in parts:
        reader.feed(part)
    return reader


def reply(*headers: str, status: str = "200 OK", body: bytes = b"") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


WIRES = [
    # what arrives, what is decided by it, whether the connection can be used again
    pytest.param(b"", None, False, id="nothing"),
    pytest.param(GOOD, FOUND, True, id="sized"),
    pytest.param(GOOD[:-1], None, False, id="sized-unfinished"),
    pytest.param(
        reply("Transfer-Encoding: chunked", body=b"f\r\n" + BODY + b"\r\n0\r\n\r\n"),
        FOUND,
        True,
        id="chunked",
    ),
    pytest.param(
        reply("Transfer-Encoding: chunked", body=b"F;a=b\r\n" + BODY + b"\r\n0\r\nX: y\r\n\r\n"),
        FOUND,
        True,
        id="chunked-with-extension-and-trailer",
    ),
    pytest.param(
        reply(status="103 Early Hints") + reply(status="100 Continue") + GOOD, FOUND, True, id="interim"
    ),
    pytest.param(GOOD.replace(b"1.1", b"1.0"), FOUND, False, id="http-1.0"),
    pytest.param(reply("Connection: close", "Content-Length: 15", body=BODY), FOUND, False, id="close"),
    pytest.param(
        reply("Connection: close", "Content-Length: 15", body=BODY + b"x"),
        FOUND,
        False,
        id="surplus-after-close",
    ),
    pytest.param(GOOD + GOOD, FOUND, False, id="two-replies"),
    pytest.param(GOOD + b"HTTP/1.1 200", FOUND, False, id="reply-and-a-half"),
    pytest.param(GOOD + b"xyz", FOUND, False, id="surplus"),
    pytest.param(
        reply("Content-Length: 0"), ToolResult.failed("invalid_json", "the answer is empty"), True, id="empty"
    ),
    pytest.param(
        reply(status="204 No Content"),
        ToolResult.failed("invalid_json", "the answer is empty"),
        True,
        id="204",
    ),
    pytest.param(reply("Content-Length: 15", status="304 Not Modified"), error_status(304), True, id="304"),
    pytest.param(reply("Content-Length: 2", status="500 Oh", body=b"{}"), error_status(500), True, id="500"),
    pytest.param(reply("Content-Length: 2", status="500 Oh"), error_status(500), False, id="500-head"),
    pytest.param(
        reply("Content-Length: 2", status="500 Oh", body=b"{}xx"),
        error_status(500),
        False,
        id="500-with-surplus",
    ),
    pytest.param(reply("Content-Length: 999999", status="500 Oh"), error_status(500), False, id="500-large"),
    pytest.param(
        reply("Transfer-Encoding: chunked", status="500 Oh", body=b"zz\r\n"),
        error_status(500),
        False,
        id="500-malformed-chunk",
    ),
    pytest.param(
        reply("Upgrade: x", "Connection: upgrade", status="101 Go", body=b"??"),
        error_status(101),
        False,
        id="101",
    ),
    pytest.param(reply("Content-Length: 1001"), TOO_LARGE, False, id="announced-over-the-limit"),
    pytest.param(reply("Content-Length: 1000"), None, False, id="announced-at-the-limit"),
    pytest.param(reply(body=b" " * 1_001), TOO_LARGE, False, id="over-the-limit-without-length"),
    pytest.param(reply(body=b" " * 1_000), None, False, id="at-the-limit-without-length"),
    pytest.param(
        reply("Content-Length: 5", body=BODY),
        ToolResult.failed("invalid_json", "the answer is not JSON"),
        False,
        id="length-too-short",
    ),
    pytest.param(b"SSH-2.0-OpenSSH\r\n", BROKEN, False, id="garbage"),
    pytest.param(b"HTTP/1.1 OK 200\r\n\r\n", BROKEN, False, id="malformed-status-line"),
    pytest.param(reply("Content Length: 15", body=BODY), BROKEN, False, id="malformed-header"),
    pytest.param(reply("Content-Length: x", body=BODY), BROKEN, False, id="length-is-no-number"),
    pytest.param(reply("Content-Length: -1", body=BODY), BROKEN, False, id="negative-length"),
    pytest.param(reply("Content-Length: 9" + "9" * 30), BROKEN, False, id="length-overflow"),
    pytest.param(
        reply("Content-Length: 15", "Content-Length: 16", body=BODY), BROKEN, False, id="two-lengths"
    ),
    pytest.param(
        reply("Content-Length: 15", "Transfer-Encoding: chunked", body=BODY),
        BROKEN,
        False,
        id="length-and-chunks",
    ),
    pytest.param(reply("Transfer-Encoding: gzip", body=BODY), BROKEN, False, id="unknown-transfer-coding"),
    pytest.param(reply("Transfer-Encoding: chunked", body=b"zz\r\n"), BROKEN, False, id="malformed-chunk"),
    pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 15\n\n" + BODY, BROKEN, False, id="bare-line-feeds"),
]


@pytest.mark.parametrize(("wire", "expected", "reusable"), WIRES)
def test_wire_gives_its_result(wire: bytes, expected: ToolResult | None, reusable: bool) -> None:
    reader = reader_of(wire)
    assert (reader.result, reader.reusable) == (expected, reusable)
    assert reader.received_bytes == len(wire)


@pytest.mark.parametrize(("wire", "expected", "reusable"), WIRES)
def test_wire_in_single_bytes_gives_the_same_result(
    wire: bytes, expected: ToolResult | None, reusable: bool
) -> None:
    reader = reader_of(*(wire[n : n + 1] for n in range(len(wire))))
    assert (reader.result, reader.reusable) == (expected, reusable)


RESET = ToolResult.failed("connection_failed", "the connection was reset")


@pytest.mark.parametrize(
    ("wire", "reset", "expected"),
    [
        (
            b"",
            False,
            ToolResult.failed("connection_failed", "the provider closed the connection without an answer"),
        ),
        (b"HTTP/1.1 200", False, CLOSED_EARLY),
        (GOOD[:-1], False, CLOSED_EARLY),
        (reply(status="103 Early Hints"), False, CLOSED_EARLY),
        (reply("Transfer-Encoding: chunked", body=b"f\r\n" + BODY + b"\r\n"), False, CLOSED_EARLY),
        (reply(body=BODY), False, FOUND),
        (reply(body=BODY[:-1]), False, ToolResult.failed("invalid_json", "the answer is not JSON")),
        (b"", True, RESET),
        (GOOD[:-1], True, RESET),
        (reply(body=BODY), True, RESET),
        (GOOD, True, FOUND),
        (GOOD, False, FOUND),
    ],
)
def test_end_decides_what_is_open(wire: bytes, reset: bool, expected: ToolResult) -> None:
    reader = reader_of(wire)
    reader.end(reset=reset)
    assert reader.result == expected


def test_reply_is_what_was_received() -> None:
    hints = reply("Link: a", status="103 Early Hints")
    reader = reader_of(
        hints, reply("X: é ", "Transfer-Encoding: chunked"), b"f\r\n" + BODY + b"\r\n0\r\nY: z\r\n\r\n"
    )
    assert reader.reply == Reply(200, (("X", "Ã©"), ("Transfer-Encoding", "chunked")), BODY)


def test_reply_has_nothing_of_a_second_one() -> None:
    second = reply("A: b", "Content-Length: 3", status="500 Oh", body=b"abc")
    assert reader_of(GOOD + second).reply == Reply(200, (("Content-Length", "15"),), BODY)


def test_reply_is_none_before_a_complete_head() -> None:
    assert reader_of(reply(status="103 Early Hints"), b"HTTP/1.1 200 OK\r\nX: y\r\n").reply is None


def test_reply_keeps_the_body_up_to_the_limit() -> None:
    assert reader_of(reply(body=b"x" * 900), b"y" * 900).reply == Reply(200, (), b"x" * 900 + b"y" * 100)


@pytest.mark.parametrize(
    ("wire", "complete"),
    [
        (GOOD, True),
        (GOOD[:-1], False),
        (reply("Content-Length: 2", status="500 Oh", body=b"{}"), True),
        (reply("Content-Length: 2", status="500 Oh", body=b"{"), False),
        (reply(body=BODY), True),
        (reply(body=b" " * 1_001), False),
        (reply("Content-Length: 1001", body=b" " * 1_001), False),
    ],
)
def test_complete_says_whether_the_body_is_whole(wire: bytes, complete: bool) -> None:
    reader = reader_of(wire)
    reader.end()
    assert reader.complete == complete


# ---- what comes around a body is bounded too


@pytest.mark.parametrize(
    ("start", "more", "expected"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1_000, TOO_LARGE_HEAD, id="header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", TOO_LARGE_HEAD, id="headers"),
        pytest.param(b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", TOO_LARGE_HEAD, id="interim-replies"),
        pytest.param(
            reply("Transfer-Encoding: chunked") + b"1;", b"x" * 1_000, TOO_LARGE_HEAD, id="extension"
        ),
        pytest.param(
            reply("Transfer-Encoding: chunked") + b"0\r\nX: ", b"x" * 1_000, TOO_LARGE_HEAD, id="trailer"
        ),
    ],
)
def test_endless_framing_is_too_large(start: bytes, more: bytes, expected: ToolResult) -> None:
    reader = reader_of(start)
    while reader.result is None:
        assert reader.received_bytes <= MAX_HEAD_BYTES
        reader.feed(more)
    assert reader.result == expected
    assert not reader.reusable


def test_body_in_chunks_of_one_byte_is_read() -> None:
    body = BODY + b" " * (65_536 - len(BODY))
    wire = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    reader = ReplyReader(65_536)
    reader.feed(reply("Transfer-Encoding: chunked") + wire + b"0\r\n\r\n")
    assert reader.result == FOUND


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, len(GOOD)), st.booleans())
def test_any_bytes_end_in_a_result(parts: list[bytes], start: int, reset: bool) -> None:
    reader = reader_of(GOOD[:start], *parts)
    reader.end(reset=reset)
    assert reader.result is not None
