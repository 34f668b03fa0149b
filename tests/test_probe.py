"""The raw socket that takes notes, and how it counts replies."""

from __future__ import annotations

import socket
import threading

import pytest

from memmock.probe import Probe, replies_in, status_in
from tests.raw_provider import (
    GOOD,
    GOOD_BODY,
    RawProvider,
    chunked,
    close,
    hang,
    head,
    on_connect,
    reset,
    sized,
)

REQUEST = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
PATIENCE_S = 10.0
"""How long to wait for what is to come; what is not to come is waited for much shorter."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = head("Link: </style.css>; rel=preload", status="103 Early Hints")
CHUNKED = head("Transfer-Encoding: chunked")
OPEN_ENDED = head("Connection: close") + b"to the end"


# ---- the replies that bytes hold


@pytest.mark.parametrize(
    ("data", "replies"),
    [
        pytest.param(sized(b"abc"), [(200, b"abc")], id="length"),
        pytest.param(sized(b""), [(200, b"")], id="empty"),
        pytest.param(head("CONTENT-length:3") + b"abc", [(200, b"abc")], id="name in any case"),
        pytest.param(sized(b"abc", status="500 Oops\xe9"), [(500, b"abc")], id="reason not ASCII"),
        pytest.param(b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", [(200, b"a")], id="no reason"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", [(200, b"a")], id="HTTP/1.0"),
        pytest.param(sized(b"\r\n\r\n"), [(200, b"\r\n\r\n")], id="body looks like the end of a head"),
        pytest.param(sized(GOOD), [(200, GOOD)], id="body looks like a reply"),
        pytest.param(CONTINUE + sized(b"abc"), [(200, b"abc")], id="interim"),
        pytest.param(CONTINUE + HINTS + sized(b"abc"), [(200, b"abc")], id="two interim"),
        pytest.param(head(status="204 No Content") + sized(b"a"), [(204, b""), (200, b"a")], id="204"),
        pytest.param(head("Content-Length: 9", status="304 Not Modified"), [(304, b"")], id="304"),
        pytest.param(chunked(b"abc", b"d" * 300), [(200, b"abc" + b"d" * 300)], id="chunked"),
        pytest.param(chunked(), [(200, b"")], id="no chunk"),
        pytest.param(chunked(b"\r\n0\r\n\r\n"), [(200, b"\r\n0\r\n\r\n")], id="chunk looks like the end"),
        pytest.param(chunked(b"abc", extension=b';a=b;c="d"'), [(200, b"abc")], id="chunk extensions"),
        pytest.param(chunked(b"abc", trailers=b"A: b\r\nC: d\r\n"), [(200, b"abc")], id="trailers"),
        pytest.param(CHUNKED + b"0A\r\n0123456789\r\n000\r\n\r\n", [(200, b"0123456789")], id="hexadecimal"),
        pytest.param(sized(b"a") + sized(b"b", status="500 No"), [(200, b"a"), (500, b"b")], id="two"),
        pytest.param(
            chunked(b"a") + CONTINUE + sized(b"b"), [(200, b"a"), (200, b"b")], id="two of two kinds"
        ),
        pytest.param(sized(b"a") + b"more", [(200, b"a")], id="garbage after a reply"),
        pytest.param(sized(b"a") + b"more\r\n\r\n", [(200, b"a")], id="garbage like a head after a reply"),
    ],
)
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_complete_replies_are_counted(data, replies, closed):
    found = replies_in(data, closed=closed)
    assert [(reply.status, reply.body) for reply in found] == replies


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x16\x03\x01\x00\r\n\r\n", id="garbage"),
        pytest.param(b'{"memories":[]}', id="no HTTP"),
        pytest.param(b"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n", id="HTTP/2"),
        pytest.param(b"HTTP/1.1 OK two-hundred\r\nContent-Length: 0\r\n\r\n", id="status is a word"),
        pytest.param(b"HTTP/1.1\r\nContent-Length: 0\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n", id="status below zero"),
        pytest.param(b"ICY 200 OK\r\nContent-Length: 0\r\n\r\n", id="another protocol"),
        pytest.param(b"x" + sized(b"a"), id="garbage before a reply"),
        pytest.param(b"HTTP/1.1 200 OK", id="cut status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", id="cut head"),
        pytest.param(sized(b"abc")[:-1], id="cut body"),
        pytest.param(CONTINUE, id="interim alone"),
        pytest.param(CONTINUE[:-2], id="cut interim"),
        pytest.param(CONTINUE + sized(b"abc")[:-1], id="cut body after an interim"),
        pytest.param(chunked(b"abc")[:-1], id="cut end of the chunks"),
        pytest.param(chunked(b"abc")[:-5], id="no last chunk"),
        pytest.param(chunked(b"abc")[:-6], id="cut line break of a chunk"),
        pytest.param(CHUNKED + b"5\r\nab", id="cut chunk"),
        pytest.param(CHUNKED + b"5", id="cut size of a chunk"),
        pytest.param(CHUNKED, id="no chunks"),
        pytest.param(chunked(b"abc", trailers=b"A: b\r\n")[:-2], id="cut trailers"),
        pytest.param(CHUNKED + b"zz\r\nab\r\n0\r\n\r\n", id="chunk size is no number"),
        pytest.param(CHUNKED + b"\r\nab\r\n0\r\n\r\n", id="empty chunk size"),
        pytest.param(CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", id="chunk is longer than its size"),
        pytest.param(CHUNKED + b"-1\r\na\r\n0\r\n\r\n", id="chunk size below zero"),
        pytest.param(CHUNKED + b"-6\r\n0\r\n\r\n", id="chunk size leads back", marks=pytest.mark.timeout(10)),
        pytest.param(CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", id="chunk size with a prefix"),
        pytest.param(CHUNKED + b"+1\r\na\r\n0\r\n\r\n", id="chunk size with a sign"),
        pytest.param(CHUNKED + b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n", id="chunk size with an underscore"),
        pytest.param(head("Content-Length: abc") + b"abc", id="length is no number"),
        pytest.param(head("Content-Length: +1") + b"a", id="length with a sign"),
        pytest.param(head("Content-Length: 1_0") + b"0123456789", id="length with an underscore"),
        pytest.param(head("Content-Length: " + "9" * 5000), id="length of 5,000 digits"),
        pytest.param(head("Content-Length: -40"), id="length leads back", marks=pytest.mark.timeout(10)),
        pytest.param(head("Content-Length:") + b"abc", id="length is empty"),
    ],
)
@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_what_is_no_complete_reply_does_not_count(data, closed):
    assert replies_in(data, closed=closed) == []


def test_body_without_a_length_ends_with_the_connection():
    assert replies_in(OPEN_ENDED, closed=False) == []
    ((status, body),) = [(reply.status, reply.body) for reply in replies_in(OPEN_ENDED, closed=True)]
    assert (status, body) == (200, b"to the end")


def test_body_without_a_length_takes_all_that_follows():
    (reply,) = replies_in(OPEN_ENDED + GOOD, closed=True)
    assert reply.body == b"to the end" + GOOD


def test_reply_tells_its_headers_and_where_it_ends():
    data = CONTINUE + sized(b"abc", "X-One:  a:b ") + GOOD
    first, second = replies_in(data, closed=False)
    assert first.headers == {"content-length": "3", "x-one": "a:b"}
    assert data[first.end :] == GOOD
    assert second.end == len(data)


# ---- the status


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(GOOD, 200, id="reply"),
        pytest.param(b"HTTP/1.1 503 Slow\r\n", 503, id="status line alone"),
        pytest.param(b"HTTP/1.0 404\r\n", 404, id="no reason"),
        pytest.param(sized(b"abc", status="500 No")[:-1], 500, id="cut body"),
        pytest.param(GOOD + sized(b"", status="500 No"), 200, id="first of two"),
        pytest.param(CONTINUE + HINTS + sized(b"", status="429 No"), 429, id="after interim ones"),
        pytest.param(CONTINUE, None, id="interim alone"),
        pytest.param(HINTS[:-2], None, id="cut interim"),
        pytest.param(CONTINUE + b"HTTP/1.1 200 OK", None, id="cut status line after an interim"),
        pytest.param(CONTINUE + b"garbage\r\n\r\n", None, id="garbage after an interim"),
        pytest.param(b"HTTP/1.1 200 O", None, id="cut status line"),
        pytest.param(b"HTTP/1.1 OK two-hundred\r\n\r\n", None, id="status is a word"),
        pytest.param(b"garbage\r\n" + GOOD, None, id="garbage before a reply"),
        pytest.param(b'{"memories":[]}', None, id="no HTTP"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_status_is_the_first_that_is_final(data, status):
    assert status_in(data) == status


# ---- the probe


@pytest.fixture
def provider():
    with RawProvider() as provider:
        yield provider


@pytest.fixture
def probe(provider):
    probe = Probe("127.0.0.1", provider.port)
    yield probe
    probe.close()


def ask(probe, *, size=100_000, until_s=PATIENCE_S):
    probe.send(REQUEST)
    probe.read(size, until_s)
    return probe.seen


def test_fin_is_seen_after_the_data(provider, probe):
    provider.play([GOOD, close])
    seen = ask(probe)
    assert (seen.data, seen.end) == (GOOD, "close")
    assert 0 < seen.arrived_s(len(GOOD) - 1) <= seen.end_s < PATIENCE_S


def test_fin_is_seen_without_data(provider, probe):
    provider.play([close])
    seen = ask(probe)
    assert (seen.data, seen.end, seen.arrivals) == (b"", "close", [])


def test_reset_is_seen_after_the_data(provider, probe):
    provider.play([GOOD[:20], reset])
    seen = ask(probe)
    assert (seen.data, seen.end) == (GOOD[:20], "reset")


def test_reset_is_seen_without_data(provider, probe):
    provider.play([reset])
    seen = ask(probe)
    assert (seen.data, seen.end) == (b"", "reset")


@pytest.mark.parametrize("data", [b"", GOOD[:20]], ids=["nothing", "data"])
def test_reset_before_the_request_is_seen(provider, data):
    connected = threading.Event()  # a reset that comes before is one of the connecting
    provider.play([on_connect, data, lambda _: connected.wait(PATIENCE_S), reset])
    probe = Probe("127.0.0.1", provider.port)
    connected.set()
    try:
        assert provider.idle.wait(PATIENCE_S)  # the request meets a connection that is reset already
        seen = ask(probe)
    finally:
        probe.close()
    assert (seen.data, seen.end) == (data, "reset")


def test_refused_connection_is_seen_and_all_else_is_of_no_use():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        probe = Probe("127.0.0.1", bound.getsockname()[1])
    assert not probe.is_open
    seen = ask(probe)
    assert (seen.data, seen.end) == (b"", "refused")
    assert seen.end_s < PATIENCE_S
    probe.close()


def test_silence_is_an_open_connection(provider, probe):
    provider.play([hang])
    seen = ask(probe, until_s=0.05)
    assert (seen.data, seen.end, seen.end_s) == (b"", "open", 0.0)
    assert probe.is_open
    assert probe.elapsed_s >= 0.05
    assert seen.arrived_s(0) == float("inf")


def test_silence_after_data_is_an_open_connection(provider, probe):
    provider.play([GOOD[:20], hang])
    assert len(ask(probe, size=20).data) == 20
    seen = ask(probe, until_s=probe.elapsed_s + 0.05)
    assert (seen.data, seen.end) == (GOOD[:20], "open")


def test_reading_ends_with_the_size_that_was_asked_for(provider, probe):
    provider.play([GOOD, hang])
    seen = ask(probe, size=len(GOOD))
    assert (seen.data, seen.end) == (GOOD, "open")
    assert probe.elapsed_s < PATIENCE_S


def test_no_time_left_reads_nothing(provider, probe):
    provider.play([GOOD, close])
    ask(probe, size=len(GOOD))
    before = bytes(probe.seen.data)
    probe.read(100_000, 0.0)
    assert (probe.seen.data, probe.seen.end) == (before, "open")


def test_arrivals_tell_when_each_byte_was_there(provider, probe):
    provider.play([GOOD[:20], lambda wire: wire.read_request(), GOOD[20:], close])
    ask(probe, size=20)
    between_s = probe.elapsed_s
    seen = ask(probe)
    assert seen.data == GOOD
    assert seen.arrived_s(0) == seen.arrived_s(19) <= between_s <= seen.arrived_s(20)
    assert seen.arrived_s(len(GOOD)) == float("inf")
    assert seen.arrivals[0][1] == 20
    assert seen.arrivals == sorted(seen.arrivals)


def test_second_call_shares_the_connection(provider, probe):
    ask(probe, size=len(GOOD))
    seen = ask(probe, size=2 * len(GOOD))
    assert [reply.body for reply in replies_in(bytes(seen.data), closed=False)] == [GOOD_BODY] * 2
    assert provider.connections == 1


def test_provider_sees_the_probe_leave(provider, probe):
    provider.play([hang])
    ask(probe, until_s=0.01)
    probe.close()
    assert provider.idle.wait(PATIENCE_S)


def test_sending_to_one_who_has_left_does_not_raise(provider, probe):
    provider.play([close])
    ask(probe)
    for _ in range(3):
        probe.send(REQUEST)
    assert probe.seen.end == "close"
