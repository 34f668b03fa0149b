"""Deliveries over real sockets: the bytes, how the connection ends, what is told of it, and the door."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import socket
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memmock.connection import Limits
from memmock.http import Handler, Reply, Request, Sent
from memmock.reply_writer import SLICE_BYTES
from memmock.server import Server
from tests.wire import TIMEOUT_S, Wire, request

ABC = Reply(body=b"abc")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Told:
    """Serves a reply, or what a function returns, and keeps what `on_sent` is told."""

    def __init__(self, reply: Reply | Callable[[Request], Reply]) -> None:
        self._reply = reply
        self._told: queue.SimpleQueue[Sent] = queue.SimpleQueue()

    def __call__(self, received: Request) -> Reply:
        reply = self._reply if isinstance(self._reply, Reply) else self._reply(received)
        return reply._replace(on_sent=self._told.put)

    def sent(self) -> Sent:
        return self._told.get(timeout=TIMEOUT_S)

    def nothing_more(self) -> bool:
        return self._told.empty()


@contextlib.contextmanager
def serving(handler: Handler, **options) -> Iterator[Server]:
    with Server(handler, **options) as server:
        yield server
        server.check()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def received(client: socket.socket) -> tuple[bytes, str]:
    """Return everything until the end, and how it ended."""
    data = b""
    try:
        while more := client.recv(65536):
            data += more
    except ConnectionResetError:
        return data, "reset"
    return data, "closed"


def exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        assert more, f"closed after {data!r}"
        data += more
    return data


def narrow(port: int) -> socket.socket:
    """Connect a client whose system takes little that it has not read."""
    client = socket.socket()
    client.settimeout(TIMEOUT_S)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    client.connect(("127.0.0.1", port))
    return client


# ---- how it ends


@pytest.mark.parametrize(
    ("reply", "data", "end", "how"),
    [
        (ABC.closed(), HEAD + b"abc", "closed", "completed"),
        (ABC.closed(after=0.02), HEAD + b"abc", "closed", "completed"),
        (ABC.until_close(), CLOSE_HEAD + b"abc", "closed", "completed"),
        (ABC.cut(2), HEAD + b"ab", "closed", "closed"),
        (ABC.cut(0), HEAD, "closed", "closed"),
        (ABC.chunked(2).cut(9), CHUNKED_HEAD + b"2\r\nab\r\n1\r", "closed", "closed"),
        (ABC.cut_head(20), HEAD[:20], "closed", "closed"),
        (ABC.cut_head(0).closed(), b"", "closed", "closed"),
        (ABC.reset(), HEAD + b"abc", "reset", "reset"),
        (ABC.cut(2).reset(), HEAD + b"ab", "reset", "reset"),
        (ABC.cut(2).reset(after=0.02), HEAD + b"ab", "reset", "reset"),
        (ABC.cut_head(20).reset(), HEAD[:20], "reset", "reset"),
        (ABC.cut_head(0).reset(), b"", "reset", "reset"),
        (ABC.endless().cut(7), CLOSE_HEAD + b"abcabca", "closed", "closed"),
        (Reply.raw(b"\x16\x03garbage"), b"\x16\x03garbage", "closed", "completed"),
        (Reply.raw(b"\x16\x03garbage", ending="reset"), b"\x16\x03garbage", "reset", "reset"),
        (Reply(204).closed(), b"HTTP/1.1 204 No Content\r\n\r\n", "closed", "completed"),
    ],
)
def test_connection_ends_after_the_exact_bytes(reply, data, end, how):
    told = Told(reply)
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert received(wire.socket) == (data, end)
        assert told.sent()[:2] == (how, len(data))
    assert told.nothing_more()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_large_body_comes_up_to_the_cut(how):
    body = bytes(range(256)) * 8000
    reply = Reply(body=body).cut(1_234_567)
    told = Told(reply if how == "close" else reply.reset())
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        data, end = received(wire.socket)
        assert data.partition(b"\r\n\r\n")[2] == body[:1_234_567]
        assert end == {"close": "closed", "reset": "reset"}[how]
        assert told.sent().sent_bytes == len(data)


def test_what_came_before_a_reset_can_be_read_after_it():
    with serving(Told(ABC.cut(2).reset())) as server, Wire(server.port) as wire:
        wire.post(b"")
        until(lambda: server.connected == 1 and not server._hub.connections)
        assert received(wire.socket) == (HEAD + b"ab", "reset")


def test_reset_does_not_wait_for_a_client_that_never_reads(monkeypatch):
    monkeypatch.setattr("memmock.connection.LINGER_S", 0.05)
    told = Told(Reply(body=b"x" * 20_000).reset())
    with serving(told) as server, narrow(server.port) as client:
        client.sendall(request(b""))
        assert told.sent().how == "reset"
        until(lambda: not server._hub.connections)
        assert received(client)[1] == "reset"


def test_pause_before_the_end_is_kept():
    told = Told(ABC.cut(1).closed(after=0.2))
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        exactly(wire.socket, len(HEAD) + 1)
        start = time.monotonic()
        assert wire.rest() == b""
        assert 0.1 < time.monotonic() - start < 5
        assert 0.2 <= told.sent().elapsed_s < 5


@pytest.mark.parametrize("end", ["close", "reset", "half"])
@pytest.mark.parametrize(
    ("reply", "size"),
    [
        (ABC.cut_head(0).hanging(), 0),
        (ABC.cut(1).hanging(), len(HEAD) + 1),
        (ABC.hanging(), len(HEAD) + 3),
        (ABC.cut_head(0).delayed(60), 0),
        (ABC.dripped(1, 60), len(HEAD)),
    ],
)
def test_unfinished_reply_ends_with_the_client(reply, size, end):
    told = Told(reply)
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        exactly(wire.socket, size)
        until(lambda: bool(server._hub.connections))
        if end == "half":
            wire.socket.shutdown(socket.SHUT_WR)
        elif end == "reset":
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            wire.socket.close()
        else:
            wire.socket.close()
        sent = told.sent()
        assert sent[:2] == ("client closed", size)
        assert 0 <= sent.elapsed_s < 10
        until(lambda: not server._hub.connections)
    assert told.nothing_more()


def test_hang_keeps_the_connection_open_and_silent():
    with serving(Told(ABC.cut(1).hanging())) as server, Wire(server.port) as wire:
        wire.post(b"")
        exactly(wire.socket, len(HEAD) + 1)
        wire.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)


def test_every_client_that_leaves_at_once_is_told_of_exactly_once():
    told, asked = Told(ABC.cut(1).hanging()), 0

    def handler(received: Request) -> Reply:
        nonlocal asked
        asked += 1
        return told(received)

    with serving(handler) as server:
        for n in range(200):
            with Wire(server.port) as wire:
                wire.post(b"")
                if n % 2:
                    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        until(lambda: server.connected == 200 and not server._hub.connections)
    assert {told.sent().how for _ in range(asked)} <= {"client closed"}
    assert told.nothing_more()


# ---- endless bodies


@pytest.mark.parametrize("chunked", [False, True])
def test_endless_body_ends_with_the_client_and_is_counted(chunked):
    reply = Reply(body=b"0123456789" * 100).endless()
    told = Told(reply.chunked() if chunked else reply)
    with serving(told) as server, narrow(server.port) as client:
        client.sendall(request(b""))
        exactly(client, 200_000)
        client.close()
        sent = told.sent()
    assert sent.how == "client closed"
    # the slice that was on its way is not counted, and what the two systems held is
    assert 200_000 - SLICE_BYTES <= sent.sent_bytes <= 200_000 + 80 * 1024
    assert told.nothing_more()


def test_endless_body_is_what_was_given_again_and_again():
    with serving(Told(ABC.endless())) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert exactly(wire.socket, len(CLOSE_HEAD) + 300_000) == CLOSE_HEAD + b"abc" * 100_000


def test_client_that_stops_reading_an_endless_body_is_waited_for():
    told = Told(Reply(body=b"x" * 1000).endless())
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        exactly(wire.socket, len(CLOSE_HEAD))
        (connection,) = server._hub.connections
        until(lambda: connection._blocked)
        assert connection._transport.get_write_buffer_size() <= 64 * 1024
        assert exactly(wire.socket, 3_000_000) == b"x" * 3_000_000  # and then it goes on
        until(lambda: connection._blocked)
        wire.socket.close()
        assert told.sent().how == "client closed"


def test_client_that_never_reads_an_endless_body_is_cut_off():
    told = Told(Reply(body=b"x" * 1000).endless())
    with serving(told, limits=Limits(idle_s=0.1)) as server, Wire(server.port) as wire:
        wire.post(b"")
        sent = told.sent()
        assert sent.how == "client closed"
        assert sent.sent_bytes < 10_000_000  # what two systems hold between them
        until(lambda: not server._hub.connections)


@pytest.mark.parametrize(
    "reply", [ABC.endless(), ABC.endless().dripped(1, 0.0), Reply(body=b"x" * 100_000).dripped(1, 0.0)]
)
def test_reply_that_has_no_time_to_lose_leaves_the_others_their_turn(reply):
    told = Told(lambda received: reply if received.body else ABC)
    with serving(told) as server, Wire(server.port) as greedy:
        reading = threading.Thread(target=received, args=[greedy.socket])
        greedy.post(b"all")
        exactly(greedy.socket, 1)
        reading.start()
        for _ in range(3):
            assert answers(server.port)
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 1
        reading.join(TIMEOUT_S)
    assert not reading.is_alive()


# ---- pauses


def test_dripping_body_comes_in_several_reads():
    told = Told(Reply(body=b"x" * 10).dripped(2, 0.05))
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        start, reads = time.monotonic(), []
        while sum(map(len, reads)) < len(HEAD) + 1 + 10:  # one digit more than HEAD
            reads.append(wire.socket.recv(65536))
        assert 0.2 < time.monotonic() - start < 8
        assert 3 <= len(reads) <= 6
        assert told.sent()[:2] == ("completed", len(HEAD) + 11)


def test_dripping_head_comes_in_several_reads():
    with serving(Told(ABC.dripped(8, 0.05, part="head"))) as server, Wire(server.port) as wire:
        wire.post(b"")
        start, reads = time.monotonic(), []
        while sum(map(len, reads)) < len(HEAD) + 3:
            reads.append(wire.socket.recv(65536))
        assert 0.2 < time.monotonic() - start < 8
        assert b"".join(reads) == HEAD + b"abc"
        assert 3 <= len(reads) <= 6


def test_nothing_is_sent_before_the_delay_is_over():
    told = Told(ABC.delayed(0.2).after(103))
    with serving(told) as server, Wire(server.port) as wire:
        start = time.monotonic()
        wire.post(b"")
        assert wire.socket.recv(1) == b"H"
        assert 0.2 <= time.monotonic() - start < 5
        assert 0.2 <= told.sent().elapsed_s < 5


# ---- the next request


GENTLE = {
    b"plain": ABC,
    b"delayed": ABC.delayed(0.01),
    b"chunked": ABC.chunked(2),
    b"empty chunked": Reply().chunked(),
    b"dripped": ABC.dripped(1, 0.005),
    b"slow head": ABC.dripped(9, 0.005, part="head"),
    b"interim": ABC.after(103, (("Link", "</a>"),)).after(100),
    b"raw": Reply.raw(b"HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabc", ending="keep"),
    b"large": Reply(body=b"x" * 500_000).chunked(5000),
    b"bodiless": Reply(204).delayed(0.001),
}
BYTES = {
    b"plain": HEAD + b"abc",
    b"delayed": HEAD + b"abc",
    b"chunked": CHUNKED_HEAD + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    b"empty chunked": CHUNKED_HEAD + b"0\r\n\r\n",
    b"dripped": HEAD + b"abc",
    b"slow head": HEAD + b"abc",
    b"interim": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    + HEAD
    + b"abc",
    b"raw": b"HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabc",
    b"large": CHUNKED_HEAD + (b"1388\r\n" + b"x" * 5000 + b"\r\n") * 100 + b"0\r\n\r\n",
    b"bodiless": b"HTTP/1.1 204 No Content\r\n\r\n",
}


@pytest.mark.parametrize("kind", GENTLE)
def test_connection_is_kept_after_a_reply_with_a_delivery(kind):
    told = Told(lambda received: GENTLE[received.body])
    with serving(told) as server, Wire(server.port) as wire:
        for _ in range(2):
            wire.post(kind)
            assert exactly(wire.socket, len(BYTES[kind])) == BYTES[kind]
            if kind != b"plain":
                assert told.sent()[:2] == ("completed", len(BYTES[kind]))
        wire.post(b"plain")
        assert exactly(wire.socket, len(HEAD) + 3) == HEAD + b"abc"
        assert server.connected == 1
    assert told.nothing_more()


def test_pipelined_requests_are_answered_in_order_whatever_their_deliveries():
    kinds = [kind for first in GENTLE for kind in (first, b"plain", b"raw")]
    with serving(lambda received: GENTLE[received.body]) as server, Wire(server.port) as wire:
        wire.send(b"".join(map(request, kinds)))
        expected = b"".join(BYTES[kind] for kind in kinds)
        assert exactly(wire.socket, len(expected)) == expected


@pytest.mark.parametrize("reply", [ABC.cut(1), ABC.cut(1).reset(), ABC.closed()])
def test_requests_behind_an_end_are_not_answered(reply):
    asked = []

    def handler(received: Request) -> Reply:
        asked.append(received.body)
        return reply

    with serving(handler) as server, Wire(server.port) as wire:
        wire.send(request(b"1") + request(b"2") + request(b"3"))
        assert received(wire.socket)[0].startswith(HEAD)
        until(lambda: not server._hub.connections)
    assert asked == [b"1"]


def test_requests_behind_a_hang_wait_and_go_with_the_client():
    asked = []

    def handler(received: Request) -> Reply:
        asked.append(received.body)
        return ABC.cut(1).hanging()

    told = Told(handler)
    with serving(told) as server:
        with Wire(server.port) as wire:
            wire.send(request(b"1") + request(b"2"))
            exactly(wire.socket, len(HEAD) + 1)
        assert told.sent()[:2] == ("client closed", len(HEAD) + 1)
        until(lambda: not server._hub.connections)
    assert asked == [b"1"]
    assert told.nothing_more()


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_connection_close_is_obeyed_after_a_delivery(version):
    told = Told(ABC.chunked(2) if version == b"1.0" else ABC.delayed(0.001))
    with serving(told) as server, Wire(server.port) as wire:
        wire.send(b"POST / HTTP/%s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % version)
        data, end = received(wire.socket)
        assert (data.partition(b"\r\n\r\n")[2], end) == (b"abc", "closed")
        assert b"Connection: close\r\n" in data
        assert told.sent()[:2] == ("completed", len(data))


# ---- handlers


@pytest.mark.parametrize(
    ("reply", "data", "end"),
    [
        (ABC.cut(2), HEAD + b"ab", "closed"),
        (ABC.cut(2).reset(), HEAD + b"ab", "reset"),
        (ABC.delayed(0.01).closed(), HEAD + b"abc", "closed"),
        (Reply.raw(b"garbage"), b"garbage", "closed"),
    ],
)
def test_async_handler_may_return_any_delivery(reply, data, end):
    told = Told(reply)

    async def handler(received: Request) -> Reply:
        await asyncio.sleep(0.01)
        return told(received)

    with serving(handler) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert received(wire.socket) == (data, end)
        sent = told.sent()
        assert sent.sent_bytes == len(data)
        assert 0.01 <= sent.elapsed_s < 5


@pytest.mark.parametrize(
    "reply",
    [
        Reply(headers=(("X", "a\r\nb"),)).delayed(0.001),
        Reply(headers=(("X", "暗号"),)).chunked(),
        ABC.after(103, (("X", "a\nb"),)),
    ],
)
def test_delivery_that_cannot_be_sent_is_a_failure_of_the_handler(reply):
    with Server(lambda _: reply) as server:
        with Wire(server.port) as wire:
            for _ in range(2):
                wire.post(b"")
                assert wire.answer().status == 500
        with pytest.raises(ValueError, match=r"a header holds a line break|latin-1"):
            server.check()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_exception_behind_a_delivery_is_answered_in_its_turn(asynchronous):
    def handler(received: Request) -> Reply:
        if received.body == b"bad":
            raise LookupError("the reason")
        return ABC.delayed(0.02)

    async def later(received: Request) -> Reply:
        return handler(received)

    with Server(later if asynchronous else handler) as server:
        with Wire(server.port) as wire:
            wire.send(request(b"good") + request(b"bad") + request(b"good"))
            assert [wire.answer().status for _ in range(3)] == [200, 500, 200]
        with pytest.raises(LookupError, match="the reason"):
            server.check()


# ---- stopping


@pytest.mark.parametrize("reply", [ABC.cut(1).hanging(), ABC.delayed(60), ABC.dripped(1, 60), ABC.endless()])
def test_stop_ends_a_delivery_and_tells_so(reply):
    told = Told(reply)
    with serving(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        until(lambda: any(connection._player for connection in server._hub.connections))
        server.stop()
        assert told.sent().how == "stopped"
        with contextlib.suppress(ConnectionResetError):
            wire.rest()
    assert told.nothing_more()


def test_stop_is_quick_and_leaves_nothing_whatever_is_under_way():
    kinds = {
        b"hang": ABC.cut_head(0).hanging(),
        b"endless": Reply(body=b"x" * 1000).endless(),
        b"chunks": Reply(body=b"x" * 1000).chunked().endless(),
        b"drip": Reply(body=b"x" * 1000).dripped(1, 0.01),
        b"late": ABC.delayed(60),
        b"wait": ABC.closed(after=60),
    }
    told = Told(lambda received: kinds[received.body])
    threads = threading.active_count()
    sockets = _open_files()
    server = Server(told)
    server.start()
    with contextlib.ExitStack() as stack:
        for kind in list(kinds) * 10:
            stack.enter_context(Wire(server.port)).post(kind)
        until(
            lambda: (
                sum(
                    connection._player is not None or connection._farewell is not None
                    for connection in server._hub.connections
                )
                == 60
            )
        )
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 1
    assert Counter(told.sent().how for _ in range(60)) == {"stopped": 50, "completed": 10}
    assert told.nothing_more()
    assert not server._hub.connections
    assert threading.active_count() == threads
    assert _open_files() == sockets
    server.check()


def _open_files() -> int:
    """How many files and sockets this process has open; 0 where that cannot be told."""
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.exists() else 0  # noqa: PTH208  # each one is a link to nowhere


# ---- the door


class Gate:
    """A door that does what it is told."""

    def __init__(self) -> None:
        self.shut = self.resets = False
        self.greeted = 0

    def refuses(self) -> bool:
        return self.shut

    def greets(self) -> bool:
        self.greeted += 1
        return not self.resets

    def is_open(self) -> bool:
        return not (self.shut or self.resets)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate) -> Iterator[Server]:
    with serving(lambda _: ABC, door=gate) as server:
        yield server


def answers(port: int) -> bool:
    with Wire(port) as wire:
        wire.post(b"")
        return wire.answer().body == b"abc"


def refused(port: int) -> bool:
    try:
        Wire(port).socket.close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the listener was closed while the connection was made
        return False
    return False


def test_shut_door_refuses_connections_and_an_open_one_takes_them_again(gate, server):
    port = server.port
    for _ in range(50):
        gate.shut = True
        server.look()
        assert refused(port)
        gate.shut = False
        server.look()
        assert answers(port)
    assert server.port == port


def test_port_is_kept_while_connections_are_refused(gate, server):
    gate.shut = True
    server.look()
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", server.port)).close()
    gate.shut = False
    server.look()
    assert answers(server.port)


def test_door_is_looked_at_now_and_then_by_itself(gate, server):
    gate.shut = True
    until(lambda: refused(server.port))
    gate.shut = False
    until(lambda: not refused(server.port))
    assert answers(server.port)


def test_server_may_start_with_a_shut_door(gate):
    gate.shut = True
    with serving(lambda _: ABC, door=gate) as server:
        assert refused(server.port)


def test_idle_connections_are_closed_when_the_door_shuts(gate, server):
    with Wire(server.port) as idle, Wire(server.port) as silent:
        idle.post(b"")
        assert idle.answer().body == b"abc"
        until(lambda: server.connected == 2)
        gate.shut = True
        server.look()
        assert idle.rest() == silent.rest() == b""


def test_idle_connections_are_closed_when_new_ones_are_reset(gate, server):
    with Wire(server.port) as idle:
        idle.post(b"")
        assert idle.answer().body == b"abc"
        gate.resets = True
        server.look()
        assert idle.rest() == b""


def test_request_under_way_is_answered_although_the_door_shuts(gate):
    begun, go_on = threading.Event(), threading.Event()

    async def handler(_: Request) -> Reply:
        begun.set()
        while not go_on.is_set():
            await asyncio.sleep(0.001)
        return ABC

    with serving(handler, door=gate) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert begun.wait(TIMEOUT_S)
        gate.shut = True
        server.look()
        assert refused(server.port)
        go_on.set()
        assert wire.answer().body == b"abc"


def test_door_may_be_shut_from_any_thread(gate, server):
    failures = []

    def toggle() -> None:
        try:
            for n in range(40):
                gate.shut = n % 2 == 0
                server.look()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=toggle) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    gate.shut = False
    server.look()
    assert answers(server.port)


def test_door_may_be_shut_by_the_handler_itself(gate):
    def handler(_: Request) -> Reply:
        gate.shut = True
        server.look()
        return ABC

    with serving(handler, door=gate) as server:
        for _ in range(5):
            assert answers(server.port)
            until(lambda: refused(server.port))
            gate.shut = False
            server.look()


def resets(port: int, first: bytes) -> bool:
    try:
        with Wire(port) as wire:
            wire.send(first)
            wire.socket.recv(1)
            return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("first", [b"", request(b"")])
def test_connection_that_is_not_greeted_is_reset(gate, server, first):
    gate.resets = True
    server.look()
    for n in range(1, 6):
        assert resets(server.port, first)
        assert server.connected == gate.greeted == n
    gate.resets = False
    assert answers(server.port)


def test_look_does_nothing_without_a_door_or_when_nothing_is_served(gate, server):
    Server(lambda _: ABC, door=gate).look()
    with serving(lambda _: ABC) as other:
        other.look()
        assert answers(other.port)
    server.look()
    assert answers(server.port)


def test_stop_while_connections_are_refused_leaves_the_port_free(gate):
    sockets = _open_files()
    server = Server(lambda _: ABC, door=gate)
    server.start()
    gate.shut = True
    server.look()
    with warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always")
        server.stop()
    assert unclosed == []
    assert _open_files() == sockets
    socket.create_server(("127.0.0.1", server.port)).close()
    gate.shut = False
    with server:
        assert answers(server.port)


def test_server_that_stops_while_the_door_moves_leaves_nothing_open():
    for pause in range(30):
        gate = Gate()
        failures: list[BaseException] = []
        begun = threading.Event()
        server = Server(lambda _: ABC, door=gate)
        server.start()

        def toggle(gate=gate, failures=failures, begun=begun, server=server) -> None:
            try:
                for n in range(40):
                    gate.shut = n % 2 == 0
                    server.look()
                    begun.set()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=toggle)
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always")
            thread.start()
            assert begun.wait(TIMEOUT_S)
            time.sleep(pause * 0.0002)  # to stop it at different places
            server.stop()
            thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        assert (failures, unclosed) == ([], [])
        socket.create_server(("127.0.0.1", server.port)).close()


def test_connection_that_is_to_be_closed_unannounced_is_served_until_then():
    replies = [ABC.closed(after=0.2), Reply(body=b"second")]
    told = Told(lambda _: replies.pop(0))
    with Server(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert wire.answer().body == b"abc"
        wire.post(b"")
        assert wire.answer().body == b"second"
        assert wire.rest() == b""
        assert told.sent().how == "completed"


def test_hang_ends_with_the_client_however_much_waits_behind_it():
    told = Told(lambda _: ABC.cut_head(0).hanging())
    with Server(told) as server:
        with Wire(server.port) as wire:
            wire.send(request(b"") * 200)
            until(lambda: any(connection._player for connection in server._hub.connections))
        assert told.sent().how == "client closed"
        until(lambda: not server._hub.connections)


def test_failure_to_be_told_is_kept_for_the_check():
    def broken(_):
        raise LookupError("nobody listens")

    with Server(lambda _: ABC.chunked()._replace(on_sent=broken)) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert wire.answer(body=False).status == 200
        until(lambda: server._failures)
        with pytest.raises(LookupError):
            server.check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_connections_are_refused_although_a_forked_process_has_the_socket(gate, server):
    parent, child = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        pid = os.fork()
    if pid == 0:
        os.close(child)
        os.read(parent, 1)
        os._exit(0)
    try:
        gate.shut = True
        server.look()
        with pytest.raises(ConnectionRefusedError):
            Wire(server.port)
        gate.shut = False
        server.look()
        assert answers(server.port)
    finally:
        os.close(child)
        os.close(parent)
        os.waitpid(pid, 0)


def test_reply_that_cannot_be_sent_is_told_of():
    told = Told(lambda _: Reply(200, (("A", "b\r\nX: y"),), b"abc").delayed(0.01))
    with Server(told) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert wire.answer().status == 500
        assert told.sent()[:2] == ("closed", 0)
        with pytest.raises(ValueError, match="line break"):
            server.check()
