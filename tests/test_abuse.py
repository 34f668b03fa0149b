"""The server under abuse: whatever some clients send, keep back or never read, the others are served."""

from __future__ import annotations

import json
import os
import random
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from memmock import connection
from memmock.connection import Limits
from memmock.http import Reply, Request
from memmock.memories import builtin
from memmock.provider import Provider
from memmock.server import Server
from tests.wire import Wire, request

SMALL = Limits(head_bytes=4096, body_bytes=10_000)
PATIENCE_S = 2.0
"""How long a good client waits for an answer at most, whatever the others do."""
QUERY = json.dumps({"query": "用户和灵绯之前约定的暗号", "max_results": 1}, ensure_ascii=False).encode()
GOOD = request(QUERY)
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: t\r\n\r\n"
"""A request that must not reach the handler."""


class GoodClient:
    """Calls the server all the time while it is open, and has every call answered soon."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._call_on)
        self._waits: list[float] = []
        self._errors: list[Exception] = []

    def __enter__(self) -> GoodClient:
        self._thread.start()
        self.wait_for_calls(1)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        if kind is None:
            assert not self._errors
            assert max(self._waits) < PATIENCE_S

    @property
    def calls(self) -> int:
        return len(self._waits)

    def wait_for_calls(self, count: int) -> None:
        """Wait for `count` more calls, or until one takes too long."""
        target = self.calls + count
        eventually(lambda: self.calls >= target or self._errors, within_s=30)

    def _call_on(self) -> None:
        try:
            while not self._stop.is_set():
                with Wire(self._port) as wire:
                    self._call(wire)
                    while self.calls % 10:
                        self._call(wire)
        except Exception as error:
            self._errors.append(error)

    def _call(self, wire: Wire) -> None:
        start = time.monotonic()
        wire.send(GOOD)
        assert wire.answer().status == 200
        self._waits.append(time.monotonic() - start)
        self._stop.wait(0.001)


def eventually(condition, *, within_s=10.0):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def serving(handler=None, limits=SMALL):
    """Run a server that must neither raise nor keep a connection."""
    with Server(handler or Provider(builtin()), limits=limits) as server:
        yield server
        eventually(lambda: not server._hub.connections)
        server.check()


class Recorder:
    """A handler that remembers what reached it."""

    def __init__(self) -> None:
        self.seen: list[Request] = []

    def __call__(self, received: Request) -> Reply:
        self.seen.append(received)
        return Reply(body=received.target.encode())


def statuses(raw):
    """Return the statuses of the replies that `raw` consists of; nothing may stand between or behind them."""
    found = []
    while raw:
        match = re.match(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[!-9;-~]+: [^\r\n]*\r\n)*)\r\n", raw)
        assert match, raw
        size = re.search(rb"(?i)^content-length: (\d+)\r$", match[2], re.MULTILINE)
        end = match.end() + (int(size[1]) if size else 0)
        assert len(raw) >= end, raw
        found.append(int(match[1]))
        raw = raw[end:]
    return found


def send_until_answered(wire, start, endless, *, at_most=16_000_000):
    """Send `start`, and then `endless` again and again, until an answer comes."""
    wire.send(start)
    sent = 0
    while True:
        readable, writable, _ = select.select([wire.socket], [wire.socket], [], 10)
        if readable:
            return
        assert writable
        assert sent < at_most
        sent += wire.socket.send(endless)


# ---- noise

VALID = [
    GOOD,
    request(b"", method="GET", path="/"),
    request(b"abc", "Expect: 100-continue"),
    request(QUERY, "Connection: close", path="/gateway/memory_retrieval"),
    request(b"", "Upgrade: websocket", "Connection: Upgrade", method="GET"),
    b"POST /memory_retrieval HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /memory_retrieval HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'c;ext="q"\r\n{"query":"a"\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n',
    b"CONNECT memory.example:443 HTTP/1.1\r\nHost: memory.example\r\n\r\n",
]
BINARY = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\x05\x01\x00",
    b"\xff\xfe" + "GET / HTTP/1.1\r\n\r\n".encode("utf-16-le"),
    b"\x00" * 100,
    b"\r\n" * 100,
]


def noise(rng):
    return rng.randbytes(rng.randint(1, 400))


def binary(rng):
    return rng.choice(BINARY) + rng.randbytes(rng.randint(0, 50))


def mutated(rng):
    data = bytearray(rng.choice(VALID))
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        length = rng.choice([0, 1, 1, 4, 20])
        piece = rng.choice([b"", rng.randbytes(1), b"\r\n", b"\n", b" ", b":", b"9", data[at : at + 30] * 2])
        data[at : at + length] = piece
        data = data or bytearray(b"\n")
    return bytes(data)


def truncated(rng):
    data = rng.choice(VALID)
    return data[: rng.randrange(1, len(data))]


def valid_and_noise(rng):
    return rng.choice(VALID) * rng.randint(1, 3) + rng.randbytes(rng.randint(1, 200))


def long_line(rng):
    start = rng.choice([b"", b"POST ", b"POST /", b"POST / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\n"])
    line = rng.choice([b"a", b"A: ", b"/%20", b"\xff"]) * rng.randint(1000, 20_000)
    return start + line + rng.choice([b"", b"\r\n\r\n"])


def random_stream(rng):
    kinds = [noise, binary, mutated, truncated, valid_and_noise, long_line]
    return rng.choices(kinds, weights=[4, 4, 8, 4, 4, 1])[0](rng)


def test_ten_thousand_random_streams_are_refused_answered_or_closed():
    rng = random.Random(20_240_607)
    seen = Counter()
    with serving() as server, GoodClient(server.port):
        for _ in range(100):
            for data, raw in answers_to([random_stream(rng) for _ in range(100)], rng, server.port):
                found = statuses(raw)
                assert {status for status in found if status < 400} <= {100, 200}, data
                assert not {status for status in found if status >= 500} - {501}, data
                seen.update(set(found) or {"closed"})
    assert seen.keys() >= {100, 200, 400, 404, 405, 431, 501, "closed"}


def answers_to(streams, rng, port):
    """Send each on a connection of its own, in pieces; return what came back to those that read it."""
    answers = []
    with ExitStack() as stack:
        wires = [(stack.enter_context(Wire(port)), data) for data in streams]
        cuts = [rng.choice([len(data), rng.randrange(len(data))]) for data in streams]
        for (wire, data), cut in zip(wires, cuts, strict=True):
            wire.send(data[:cut])
        for (wire, data), cut in zip(wires, cuts, strict=True):
            with lost(data):
                wire.send(data[cut:])
        for wire, data in wires[::2]:  # the others are closed without a look at the answer
            with lost(data):
                wire.socket.shutdown(socket.SHUT_WR)
                answers.append((data, wire.rest()))
    return answers


@contextmanager
def lost(data):
    """Let the server be done with a client before all was sent, but not let it hang."""
    try:
        yield
    except TimeoutError:
        pytest.fail(f"nothing came, and the connection stayed open, after {data!r}")
    except OSError:
        pass


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\xff",
        b"\x16\x03\x01\x02\x00",
        b"{}",
        b"garbage\r\n\r\n",
        b"GET\r\n",
        b" GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\nHost: t\n\n",
        b"POST / HTTP/1.1\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\xfe" * 100_000,
    ],
    ids=range(10),
)
@pytest.mark.parametrize("count", [1, 50])
def test_garbage_behind_requests_is_refused_after_their_answers(garbage, count):
    recorder = Recorder()
    with serving(recorder) as server, Wire(server.port) as wire:
        wire.send(request(b"a") * count + garbage + HIDDEN)
        assert [wire.answer().status for _ in range(count)] == [200] * count
        assert wire.answer().status == 400
        assert wire.rest() == b""
        assert len(recorder.seen) == count


# ---- connections that are held


@pytest.fixture
def many_files():
    """Let this process have some thousand sockets."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.fail(f"no more than {hard} files can be open: raise the limit (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_half_open_connections_do_not_keep_a_good_client_waiting(many_files):
    starts = [b"", b"P", GOOD[:40], GOOD[:-5], request(b"abc", "Expect: 100-continue")[:-3],
              b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"]  # fmt: skip
    with serving() as server:
        with ExitStack() as stack:
            with GoodClient(server.port) as good:
                for n in range(1000):
                    wire = stack.enter_context(Wire(server.port))
                    wire.send(starts[n % len(starts)])
                eventually(lambda: len(server._hub.connections) >= 1000)
                good.wait_for_calls(100)
            eventually(lambda: len(server._hub.connections) == 1000)
        eventually(lambda: not server._hub.connections)


def test_slow_senders_are_refused_and_do_not_keep_a_good_client_waiting():
    slow = b"POST /memory_retrieval HTTP/1.1\r\nX: " + b"a" * 400
    with serving(limits=Limits(request_s=0.5)) as server, ExitStack() as stack, GoodClient(server.port):
        wires = [stack.enter_context(Wire(server.port)) for _ in range(200)]
        sockets = [wire.socket for wire in wires]
        for n in range(len(slow)):
            for wire in wires:
                wire.send(slow[n : n + 1])
            if len(select.select(sockets, [], [], 0.02)[0]) == len(wires):
                break
        assert {wire.answer().status for wire in wires} == {408}
        assert {wire.rest() for wire in wires} == {b""}


def is_cut_off(wire):
    try:
        wire.send(b"X: y\r\n" * 1000)
    except ConnectionError:
        return True
    return False


def test_refused_client_that_goes_on_sending_is_cut_off(monkeypatch):
    monkeypatch.setattr(connection, "LINGER_S", 0.1)
    with serving() as server, Wire(server.port) as wire:
        send_until_answered(wire, b"POST / HTTP/1.1\r\n", b"X: y\r\n" * 1000)
        assert wire.answer().status == 431
        assert wire.rest() == b""
        eventually(lambda: is_cut_off(wire))


# ---- floods inside one request


@pytest.mark.parametrize(
    "data",
    [
        b"POST / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(1000)) + b"\r\n",
        b"POST / HTTP/1.1\r\n" + b"a:\r\n" * 100_000 + b"\r\n",
        b"POST / HTTP/1.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + b"a" * 1_000_000 + b": x\r\n\r\n",
        b"POST /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        request(b"", *(f"X-{n}: y" for n in range(1000))),
    ],
    ids=["headers", "empty headers", "value", "name", "target", "head of a whole request"],
)
def test_flood_of_header_bytes_is_refused(data):
    recorder = Recorder()
    with serving(recorder) as server, Wire(server.port) as wire:
        wire.send(data + HIDDEN)
        assert wire.answer().status == 431
        assert wire.rest() == b""
        assert recorder.seen == []


CHUNKED = b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD_FLOODS = {
    "headers": (b"POST / HTTP/1.1\r\n", b"a: b\r\n" * 1000),
    "header value": (b"POST / HTTP/1.1\r\nX: ", b"a" * 6000),
    "header name": (b"POST / HTTP/1.1\r\n", b"a" * 6000),
    "target": (b"POST /", b"a" * 6000),
}
CHUNK_FLOODS = {
    "trailers": (CHUNKED + b"3\r\nabc\r\n0\r\n", b"a: b\r\n" * 1000),
    "trailer value": (CHUNKED + b"0\r\nX: ", b"a" * 6000),
    "trailer name": (CHUNKED + b"0\r\n", b"a" * 6000),
    "chunk extension": (CHUNKED + b"3;", b"a" * 6000),
    "zeros of a chunk size": (CHUNKED, b"0" * 6000),
}


@pytest.mark.parametrize("flood", HEAD_FLOODS)
def test_endless_head_is_refused(flood):
    with serving() as server, Wire(server.port) as wire:
        send_until_answered(wire, *HEAD_FLOODS[flood])
        assert wire.answer().status == 431
        assert wire.rest() == b""


@pytest.mark.parametrize("flood", CHUNK_FLOODS)
def test_endless_framing_of_a_chunked_body_is_refused(flood):
    with serving() as server, Wire(server.port) as wire:
        send_until_answered(wire, *CHUNK_FLOODS[flood])
        assert wire.answer().status in (400, 413, 431)
        assert wire.rest() == b""


def test_body_in_small_chunks_is_no_flood():
    recorder = Recorder()
    with serving(recorder) as server, Wire(server.port) as wire:
        wire.send(CHUNKED + b"1;x\r\na\r\n" * 10_000 + b"0\r\nTrailer: x\r\n\r\n")
        assert wire.answer().status == 200
        assert recorder.seen[0].body == b"a" * 10_000


# ---- requests inside of requests

LAST_CHUNK = b"0\r\n\r\n"
SIZE = b"%d" % len(HIDDEN)


def post(*headers, body=b"", line=b"POST /x HTTP/1.1"):
    return b"\r\n".join([line, b"Host: t", *headers, b"", b""]) + body


def with_length(value, body=HIDDEN):
    return post(b"Content-Length: " + value, body=body)


def with_coding(*values, body=LAST_CHUNK + HIDDEN, line=b"POST /x HTTP/1.1"):
    return post(*(b"Transfer-Encoding: " + value for value in values), body=body, line=line)


def with_chunks(body):
    return with_coding(b"chunked", body=body + LAST_CHUNK + HIDDEN)


AMBIGUOUS = {
    "length and coding": post(
        b"Content-Length: 5", b"Transfer-Encoding: chunked", body=LAST_CHUNK + HIDDEN
    ),
    "coding and length": post(
        b"Transfer-Encoding: chunked", b"Content-Length: " + SIZE, body=LAST_CHUNK + HIDDEN
    ),
    "length and folded coding": post(
        b"Content-Length: " + SIZE, b"Transfer-Encoding:\r\n chunked", body=LAST_CHUNK + HIDDEN
    ),
    "length and coding with an offer": post(
        b"Upgrade: h2c",
        b"Connection: Upgrade",
        b"Content-Length: 5",
        b"Transfer-Encoding: chunked",
        body=LAST_CHUNK + HIDDEN,
    ),
    "length and identity": post(b"Content-Length: 0", b"Transfer-Encoding: identity", body=HIDDEN),
    "zero and another length": post(b"Content-Length: 0", b"Content-Length: " + SIZE, body=HIDDEN),
    "length and zero": post(b"Content-Length: " + SIZE, b"Content-Length: 0", body=HIDDEN),
    "length in two spellings": post(b"Content-Length: 0", b"content-length: " + SIZE, body=HIDDEN),
    "equal lengths": post(b"Content-Length: " + SIZE, b"Content-Length: " + SIZE, body=HIDDEN),
    "list of lengths": with_length(b"0, " + SIZE),
    "list of equal lengths": with_length(SIZE + b"," + SIZE),
    "length with plus": with_length(b"+" + SIZE),
    "length with minus": with_length(b"-1"),
    "length minus zero": with_length(b"-0"),
    "length in hex": with_length(b"0x10"),
    "length in hex digits": with_length(b"1f"),
    "length with space inside": with_length(b"1 0"),
    "length with underscore": with_length(b"1_0"),
    "length with point": with_length(b"1.0"),
    "length with exponent": with_length(b"1e1"),
    "length with NUL": with_length(b"1\x000"),
    "length behind vertical tab": with_length(b"\x0b" + SIZE),
    "length before form feed": with_length(SIZE + b"\x0c"),
    "length in full-width digits": with_length("１".encode()),
    "length in superscript": with_length(b"\xb2"),
    "no length in the header": with_length(b""),
    "length over 64 bits": with_length(b"%d" % 2**64),
    "length of 64 bits": with_length(b"%d" % (2**64 - 1)),
    "length over 1,000 digits": with_length(b"1" * 1000),
    "folded length": post(b"Content-Length:\r\n " + SIZE, body=HIDDEN),
    "length with a fold inside": post(b"Content-Length: 3\r\n 1", body=HIDDEN),
    "chunked twice": with_coding(b"chunked", b"chunked"),
    "chunked twice in a list": with_coding(b"chunked, chunked"),
    "chunked, identity": with_coding(b"chunked, identity"),
    "chunked and identity": with_coding(b"chunked", b"identity"),
    "identity, chunked": with_coding(b"identity, chunked"),
    "identity and chunked": with_coding(b"identity", b"chunked"),
    "nonsense and chunked": with_coding(b"x", b"chunked"),
    "gzip, chunked": with_coding(b"gzip, chunked"),
    "gzip": with_coding(b"gzip", body=HIDDEN),
    "identity": with_coding(b"identity", body=HIDDEN),
    "xchunked": with_coding(b"xchunked"),
    "chunkedx": with_coding(b"chunkedx"),
    "chunked with a parameter": with_coding(b"chunked;q=1"),
    "quoted chunked": with_coding(b'"chunked"'),
    "chunked and a comma": with_coding(b"chunked,"),
    "empty coding": with_coding(b""),
    "vertical tab before chunked": with_coding(b"\x0bchunked"),
    "form feed behind chunked": with_coding(b"chunked\x0c"),
    "NUL behind chunked": with_coding(b"chunked\x00"),
    "no-break space before chunked": with_coding(b"\xa0chunked"),
    "folded coding": with_coding(b"\r\n chunked"),
    "coding in a fold": post(b"X: y\r\n Transfer-Encoding: chunked", body=LAST_CHUNK + HIDDEN),
    "coding in HTTP/1.0": with_coding(b"chunked", line=b"POST /x HTTP/1.0"),
    "coding in HTTP/1.0, kept alive": with_coding(
        b"chunked\r\nConnection: keep-alive", line=b"POST /x HTTP/1.0"
    ),
    "space before the colon of the length": post(b"Content-Length : 5", body=HIDDEN),
    "tab before the colon of the length": post(b"Content-Length\t: 5", body=HIDDEN),
    "space before the colon of the coding": post(
        b"Transfer-Encoding : chunked", body=LAST_CHUNK + HIDDEN
    ),
    "space before the first header": b"POST /x HTTP/1.1\r\n Host: t\r\n\r\n" + HIDDEN,
    "LF behind every line": post().replace(b"\r\n", b"\n") + HIDDEN,
    "LF behind the request line": b"POST /x HTTP/1.1\nHost: t\r\n\r\n" + HIDDEN,
    "LF behind a header": b"POST /x HTTP/1.1\r\nHost: t\nX: y\r\n\r\n" + HIDDEN,
    "LF behind the head": b"POST /x HTTP/1.1\r\nHost: t\r\n\n" + HIDDEN,
    "LF before the end of the head": b"POST /x HTTP/1.1\r\nHost: t\n\r\n" + HIDDEN,
    "LF in a value": post(b"X: a\nContent-Length: " + SIZE, body=HIDDEN),
    "CR behind every line": post().replace(b"\r\n", b"\r") + HIDDEN,
    "CR in a value": post(b"X: a\rContent-Length: " + SIZE, body=HIDDEN),
    "CR CR LF": b"POST /x HTTP/1.1\r\r\nHost: t\r\n\r\n" + HIDDEN,
    "NUL in a value": post(b"X: a\x00b", body=HIDDEN),
    "NUL in a name": post(b"X\x00: a", body=HIDDEN),
    "empty name": post(b": a", body=HIDDEN),
    "header without a colon": post(b"abc", body=HIDDEN),
    "negative chunk": with_chunks(b"-1\r\n\r\n"),
    "chunk with plus": with_chunks(b"+3\r\nabc\r\n"),
    "chunk with 0x": with_chunks(b"0x3\r\nabc\r\n"),
    "last chunk with 0x": with_chunks(b"0x0\r\n\r\n"),
    "chunk with underscore": with_chunks(b"0_3\r\nabc\r\n"),
    "chunk over 64 bits": with_chunks(b"10000000000000003\r\nabc\r\n"),
    "chunk of 64 bits": with_chunks(b"ffffffffffffffff\r\n" + HIDDEN * 400),
    "chunk of 63 bits": with_chunks(b"7fffffffffffffff\r\n" + HIDDEN * 400),
    "huge chunk": with_chunks(b"7fffffff\r\n" + HIDDEN * 400),
    "space before a chunk size": with_chunks(b" 3\r\nabc\r\n"),
    "space behind a chunk size": with_chunks(b"3 \r\nabc\r\n"),
    "tab behind a chunk size": with_chunks(b"3\t\r\nabc\r\n"),
    "space in a chunk size": with_chunks(b"0 3\r\nabc\r\n"),
    "no chunk size": with_chunks(b"\r\nabc\r\n"),
    "chunk longer than its size": with_chunks(b"3\r\nabcde\r\n"),
    "chunk shorter than its size": with_chunks(b"5\r\nabc\r\n"),
    "chunk without an end": with_chunks(b"3\r\nabc"),
    "LF behind a chunk size": with_chunks(b"3\nabc\r\n"),
    "LF behind a chunk": with_chunks(b"3\r\nabc\n"),
    "CR behind a chunk size": with_chunks(b"3\rabc\r\n"),
    "LF behind the last chunk size": with_coding(b"chunked", body=b"0\n\r\n" + HIDDEN),
    "LF behind the last chunk": with_coding(b"chunked", body=b"0\r\n\n" + HIDDEN),
    "no line end behind the last chunk": with_coding(b"chunked", body=b"0\r\n" + HIDDEN),
    "NUL in a chunk extension": with_chunks(b"3;\x00\r\nabc\r\n"),
    "LF in a chunk extension": with_chunks(b"3;a\nabc\r\n"),
    "CR in a chunk extension": with_chunks(b"3;a\rb\r\nabc\r\n"),
    "line end in a quoted chunk extension": with_chunks(b'3;a="\r\nabc\r\n'),
    "length in a trailer": with_coding(
        b"chunked", body=b"0\r\nContent-Length: " + SIZE + b"\r\n\r\n" + HIDDEN
    ),
    "coding in a trailer": with_coding(
        b"chunked", body=b"0\r\nTransfer-Encoding: chunked\r\n\r\n" + LAST_CHUNK + HIDDEN
    ),
    "CONNECT with a length": post(
        b"Content-Length: " + SIZE, line=b"CONNECT memory.example:443 HTTP/1.1", body=HIDDEN
    ),
    "CONNECT with a coding": with_coding(
        b"chunked", line=b"CONNECT memory.example:443 HTTP/1.1", body=HIDDEN
    ),
    "line end in the target": b"GET /x\r\nHost: t HTTP/1.1\r\n\r\n" + HIDDEN,
    "LF in the target": b"GET /x\nHost: t HTTP/1.1\r\n\r\n" + HIDDEN,
    "NUL in the target": b"GET /x\x00 HTTP/1.1\r\n\r\n" + HIDDEN,
    "space in the target": b"GET /x y HTTP/1.1\r\n\r\n" + HIDDEN,
    "tabs around the target": b"GET\t/x\tHTTP/1.1\r\n\r\n" + HIDDEN,
    "no target": b"GET HTTP/1.1\r\n\r\n" + HIDDEN,
    "target without a slash": b"GET x HTTP/1.1\r\n\r\n" + HIDDEN,
    "authority as the target": b"GET memory.example:80 HTTP/1.1\r\n\r\n" + HIDDEN,
    "target beyond ASCII": b"GET /\xff\xc3 HTTP/1.1\r\n\r\n" + HIDDEN,
    "space behind the version": b"GET /x HTTP/1.1 \r\nHost: t\r\n\r\n" + HIDDEN,
    "HTTP/0.9": b"GET /x\r\n" + HIDDEN,
    "HTTP/1.2": b"GET /x HTTP/1.2\r\nHost: t\r\n\r\n" + HIDDEN,
    "HTTP/1.10": b"GET /x HTTP/1.10\r\nHost: t\r\n\r\n" + HIDDEN,
    "HTTP/2.0": b"GET /x HTTP/2.0\r\nHost: t\r\n\r\n" + HIDDEN,
    "http/1.1": b"GET /x http/1.1\r\nHost: t\r\n\r\n" + HIDDEN,
    "a response": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
}  # fmt: skip


def send(wire, data, *, slowly):
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in [data[n : n + 1] for n in range(len(data))] if slowly else [data]:
        wire.send(piece)


@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("case", AMBIGUOUS)
def test_ambiguous_request_is_refused_and_hides_no_other(case, slowly):
    recorder = Recorder()
    with serving(recorder) as server, Wire(server.port) as wire:
        send(wire, AMBIGUOUS[case], slowly=slowly and len(AMBIGUOUS[case]) < 10_000)
        answer = wire.answer()
        assert answer.status in (400, 413, 501)
        assert answer.headers["connection"] == "close"
        assert wire.rest() == b""
        assert recorder.seen == []


WHOLE = {
    "spaces around the length": (with_length(b"  " + SIZE + b"  "), HIDDEN),
    "tabs around the length": (post(b"Content-Length:\t" + SIZE + b"\t", body=HIDDEN), HIDDEN),
    "zeros before the length": (with_length(b"000" + SIZE), HIDDEN),
    "GET with a body": (post(b"Content-Length: " + SIZE, line=b"GET /x HTTP/1.1", body=HIDDEN), HIDDEN),
    "length with an offer": (
        post(b"Upgrade: h2c", b"Connection: Upgrade", b"Content-Length: " + SIZE, body=HIDDEN),
        HIDDEN,
    ),
    "length named in Connection": (
        post(b"Connection: Content-Length", b"Content-Length: " + SIZE, body=HIDDEN),
        HIDDEN,
    ),
    "chunk": (with_coding(b"chunked", body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)), HIDDEN),
    "tab before chunked": (
        post(b"Transfer-Encoding:\tchunked", body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)),
        HIDDEN,
    ),
    "no space before chunked": (
        post(b"Transfer-Encoding:chunked", body=b"%X\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)),
        HIDDEN,
    ),
    "chunked in another case": (
        with_coding(b"cHuNkEd", body=b"0%x;a\r\n%s\r\n000\r\n\r\n" % (len(HIDDEN), HIDDEN)),
        HIDDEN,
    ),
    "length with an underscore in the name": (post(b"Content_Length: 7"), b""),
    "header named in a trailer": (with_coding(b"chunked", body=b"0\r\nHost: other\r\n\r\n"), b""),
    "absolute target": (b"GET http://other.example/x HTTP/1.1\r\nHost: t\r\n\r\n", b""),
    "asterisk as the target": (b"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", b""),
    "escaped line end in the target": (b"GET /%0d%0aX:%20y HTTP/1.1\r\nHost: t\r\n\r\n", b""),
    "dots in the target": (b"GET /../../x HTTP/1.1\r\nHost: t\r\n\r\n", b""),
    "fragment in the target": (b"GET /x#y HTTP/1.1\r\nHost: t\r\n\r\n", b""),
    "empty lines before": (b"\r\n\r\nGET /x HTTP/1.1\r\nHost: t\r\n\r\n", b""),
}


@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("case", WHOLE)
def test_odd_request_that_is_not_ambiguous_is_one_request(case, slowly):
    data, body = WHOLE[case]
    recorder = Recorder()
    with serving(recorder) as server, Wire(server.port) as wire:
        for _ in range(2):
            send(wire, data, slowly=slowly)
            assert wire.answer().status == 200
        wire.post(b"", path="/next")
        assert wire.answer().body == b"/next"
        assert [received.body for received in recorder.seen] == [body, body, b""]


# ---- floods of requests, against a server in a process of its own


@pytest.fixture
def process():
    """The port and the process id of a `memmock serve`."""
    command = [sys.executable, "-m", "memmock", "serve", "--port", "0", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            ready = json.loads(server.stdout.readline())
            drain = threading.Thread(target=server.stdout.read)
            drain.start()
            yield int(re.search(r":(\d+)/", ready["endpoint"])[1]), server.pid
            assert server.poll() is None
        finally:
            server.kill()
        drain.join(10)


def long_query(size):
    return request(json.dumps({"query": "a" * (size - 20)}).encode())


FLOODS = {
    "tiny requests": b"GET / HTTP/1.1\r\n\r\n" * 10_000,
    "retrievals": GOOD * 2000,
    "offers of another protocol": b"GET / HTTP/1.1\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n" * 4000,
    "refused retrievals": request(b'{"query":""}') * 2000,
    "large bodies": long_query(1024 * 1024),
    "tiny chunks": CHUNKED + b"1\r\na\r\n" * 100_000 + LAST_CHUNK,
}


def flood(port, data, stop, *, reads, clients=3):
    """Send `data` over and over on some connections as fast as it goes, until `stop()`."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(Wire(port)).socket for _ in range(clients)]
        sent = dict.fromkeys(sockets, 0)
        view = memoryview(data)
        for client in sockets:
            client.setblocking(False)
        while not stop():
            readable, writable, _ = select.select(sockets if reads else [], sockets, [], 0.05)
            for client in readable:
                assert client.recv(1024 * 1024)
            for client in writable:
                sent[client] += client.send(view[sent[client] % len(view) :])


@pytest.mark.parametrize("reads", [True, False], ids=["read", "never read"])
@pytest.mark.parametrize("kind", FLOODS)
def test_flood_of_requests_does_not_keep_a_good_client_waiting(process, kind, reads):
    port, _ = process
    with GoodClient(port) as good:
        enough, deadline = good.calls + 30, time.monotonic() + 3 * PATIENCE_S
        flood(port, FLOODS[kind], lambda: good.calls >= enough or time.monotonic() > deadline, reads=reads)
        good.wait_for_calls(1)


# ---- memory


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_round_of_abuse(port, rng):
    answers_to([random_stream(rng) for _ in range(200)], rng, port)
    for start, endless in HEAD_FLOODS.values():
        with Wire(port) as wire:
            send_until_answered(wire, start, endless * 10)
    for start, endless in CHUNK_FLOODS.values():
        with Wire(port) as wire, lost(start):
            wire.send(start + endless * 200)
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(Wire(port)).send(GOOD[:-1])
    rounds = iter(range(20))
    flood(port, FLOODS["tiny requests"], lambda: next(rounds, None) is None, reads=False)
    with Wire(port) as wire:  # once this is answered, all of the others were looked at
        wire.send(GOOD)
        assert wire.answer().status == 200


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_stays_flat_over_rounds_of_abuse(process):
    port, pid = process
    rng = random.Random(7)
    for _ in range(8):  # until the journal is full
        one_round_of_abuse(port, rng)
    before = resident_bytes(pid)
    for _ in range(12):
        one_round_of_abuse(port, rng)
    assert resident_bytes(pid) - before < 8_000_000
