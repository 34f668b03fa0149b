"""The server on the wire: framing, order, limits, and how it starts and stops."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memmock.connection import MAX_HEADS, Limits
from memmock.errors import MemmockError
from memmock.http import Reply, Request
from memmock.server import Server
from tests.wire import Wire, request


def echo(received: Request) -> Reply:
    return Reply.json(
        {
            "method": received.method,
            "target": received.target,
            "body": received.body.decode("latin-1"),
            "size": len(received.body),
            "headers": [name for name, _ in received.headers],
        }
    )


@pytest.fixture(scope="module")
def server():
    with Server(echo, limits=Limits(head_bytes=4096, body_bytes=10_000)) as server:
        yield server
        server.check()


@pytest.fixture
def wire(server):
    with Wire(server.port) as wire:
        yield wire


def test_two_requests_share_one_connection(wire):
    for body in (b"one", b"two"):
        wire.post(body)
        answer = wire.answer()
        assert (answer.status, answer.json()["body"]) == (200, body.decode())
        assert "connection" not in answer.headers


def test_pipelined_requests_are_answered_in_order(wire):
    wire.send(b"".join(request(str(n).encode()) for n in range(100)))
    assert [wire.answer().json()["body"] for _ in range(100)] == [str(n) for n in range(100)]


def test_pipelined_requests_are_answered_in_order_when_some_are_slow():
    async def handler(received: Request) -> Reply:
        if received.body == b"slow":
            await asyncio.sleep(0.02)
        return echo(received)

    bodies = [b"slow", b"1", b"slow", b"2", b"3"] * 20
    with Server(handler) as server, Wire(server.port) as wire:
        wire.send(b"".join(map(request, bodies)))
        assert [wire.answer().json()["body"].encode() for _ in bodies] == bodies


def test_request_that_comes_byte_by_byte_is_understood(wire):
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in request(b"abc", "X-Test: 1"):
        wire.send(bytes([byte]))
    assert wire.answer().json()["body"] == "abc"


def test_chunked_request_body_is_put_together(wire):
    wire.send(b"POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
    wire.send(b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n")
    answer = wire.answer().json()
    assert (answer["body"], answer["headers"]) == ("abcde", ["Host", "Transfer-Encoding"])  # no trailer


def test_continue_is_sent_before_the_body_comes(wire):
    wire.send(b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert wire.answer().status == 100
    wire.send(b"abc")
    assert wire.answer().json()["body"] == "abc"


def test_continue_waits_for_the_answers_before_it():
    async def handler(received: Request) -> Reply:
        await asyncio.sleep(0.05)
        return echo(received)

    with Server(handler) as server, Wire(server.port) as wire:
        wire.post(b"first")
        wire.send(b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert wire.answer().json()["body"] == "first"
        assert wire.answer().status == 100
        wire.send(b"abc")
        assert wire.answer().json()["body"] == "abc"


def test_other_expectation_is_refused(wire):
    wire.send(b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: the-unexpected\r\n\r\n")
    assert wire.answer().status == 417
    assert wire.rest() == b""


def test_http_1_0_is_answered_and_closed(wire):
    wire.send(b"POST /x HTTP/1.0\r\nContent-Length: 1\r\n\r\na")
    answer = wire.answer()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.rest() == b""


def test_http_1_0_with_keep_alive_stays_open(wire):
    for _ in range(2):
        wire.send(b"POST /x HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na")
        assert wire.answer().headers["connection"] == "keep-alive"


def test_connection_close_is_obeyed_and_what_follows_ignored(wire):
    wire.send(request(b"a", "Connection: close") + request(b"b"))
    answer = wire.answer()
    assert (answer.headers["connection"], answer.json()["body"]) == ("close", "a")
    assert wire.rest() == b""


def test_head_has_the_length_but_no_body(wire):
    wire.send(b"HEAD /x HTTP/1.1\r\nHost: t\r\n\r\n")
    answer = wire.answer(body=False)
    assert (answer.status, int(answer.headers["content-length"]) > 0) == (200, True)
    wire.post(b"next")
    assert wire.answer().json()["body"] == "next"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_known_method_reaches_the_handler(wire, method):
    wire.post(b"", method=method)
    assert wire.answer().json()["method"] == method


def test_unknown_method_is_not_implemented(wire):
    wire.post(b"", method="BREW")
    assert wire.answer().status == 501
    assert wire.rest() == b""


@pytest.mark.parametrize(
    "offer",
    [
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA",
        "Upgrade: websocket\r\nConnection: Upgrade",
    ],
)
def test_offer_to_change_the_protocol_is_declined(wire, offer):
    wire.post(b"abc", *offer.split("\r\n"))
    assert wire.answer().json()["body"] == "abc"
    wire.post(b"next")
    assert wire.answer().json()["body"] == "next"


def test_request_behind_an_offer_to_change_the_protocol_is_answered(wire):
    wire.send(request(b"", "Upgrade: websocket", "Connection: Upgrade", method="GET") + request(b"next"))
    assert wire.answer().json()["method"] == "GET"
    assert wire.answer().json()["body"] == "next"


def test_many_offers_at_once_are_declined(wire):
    wire.send(request(b"x", "Upgrade: websocket", "Connection: Upgrade") * 1000)
    assert {wire.answer().json()["body"] for _ in range(1000)} == {"x"}


def test_tunnel_is_not_opened(wire):
    wire.send(b"CONNECT memory.example:443 HTTP/1.1\r\nHost: memory.example\r\n\r\n" + request(b"next"))
    assert wire.answer().json()["method"] == "CONNECT"
    assert wire.answer().json()["body"] == "next"


def test_head_that_was_seen_before_means_the_same(wire):
    for body in (b"abc", b"def", b"a\r\n"):
        wire.post(body, "X: 1")
        assert wire.answer().json()["body"] == body.decode()
    wire.send(request(b"abc", "X: 1") * 2 + request(b"abc", "X: 1")[:-1])
    assert [wire.answer().json()["body"] for _ in range(2)] == ["abc", "abc"]
    wire.send(b"c")
    assert wire.answer().json()["body"] == "abc"


def test_more_heads_than_are_remembered_are_understood(wire):
    for n in range(2 * MAX_HEADS + 10):
        wire.post(b"a", f"X: {n}")
        assert wire.answer().status == 200


def test_half_a_head_behind_a_request_is_waited_for(wire):
    wire.send(request(b"first") + request(b"second")[:30])
    assert wire.answer().json()["body"] == "first"
    wire.send(request(b"second")[30:])
    assert wire.answer().json()["body"] == "second"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"POST /x HTTP/9.9\r\n\r\n",
        b"POST /x\r\n\r\n",
        b"POST /x HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /x HTTP/1.1\r\nHost : t\r\n\r\n",
        b"POST /x HTTP/1.1\r\nA: \x00\r\n\r\n",
    ],
)
def test_malformed_request_is_refused_and_closed(wire, data):
    wire.send(data)
    answer = wire.answer()
    assert (answer.status, answer.json()["error"]["code"]) == (400, "bad_request")
    assert wire.rest() == b""


PIECES = [
    b"POST /x HTTP/1.1\r\n",
    b"GET / HTTP/1.0\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"BREW /x HTTP/1.1\r\n",
    b"Host: t\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: close\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
    b" folded\r\n",
    b"\r\n",
    b"abc",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"\x00\xff",
    b"\n",
    request(b"abc"),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=12), st.booleans())
def test_whatever_comes_is_answered_or_closed(server, pieces, slowly):
    with Wire(server.port) as wire:
        try:
            for piece in pieces if slowly else [b"".join(pieces)]:
                wire.send(piece)
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.rest()[:9] in (b"", b"HTTP/1.1 ")
        except ConnectionError:
            pass  # the server was done with it before all of it was sent
    server.check()
    with Wire(server.port) as wire:
        wire.post(b"good")
        assert wire.answer().json()["body"] == "good"


def test_garbage_behind_a_request_does_not_take_its_answer_away(wire):
    wire.send(request(b"good") + b"\x00\x01garbage")
    assert wire.answer().json()["body"] == "good"
    assert wire.answer().status == 400


@pytest.mark.parametrize("complete", [True, False])
def test_large_head_is_refused(wire, complete):
    wire.send(b"POST /x HTTP/1.1\r\nX: " + b"a" * 5000 + (b"\r\n\r\n" if complete else b""))
    assert wire.answer().status == 431
    assert wire.rest() == b""


def test_large_head_in_small_pieces_is_refused(wire):
    wire.send(b"POST /x HTTP/1.1\r\n")
    for _ in range(600):  # 4,200 bytes, and the limit is 4,096
        wire.send(b"X: 12\r\n")
    assert wire.answer().status == 431
    assert wire.rest() == b""


def test_large_target_is_refused(wire):
    wire.post(b"", path="/" + "a" * 5000)
    assert wire.answer().status == 431


def test_large_body_is_refused_before_it_comes(wire):
    wire.send(b"POST /x HTTP/1.1\r\nHost: t\r\nContent-Length: 10001\r\nExpect: 100-continue\r\n\r\n")
    assert wire.answer().status == 413
    assert wire.rest() == b""


def test_large_body_is_refused_also_to_a_client_that_sends_it_first():
    with Server(echo, limits=Limits(body_bytes=10_000)) as server, Wire(server.port) as wire:
        wire.post(b"a" * 1_000_000)
        assert wire.answer().status == 413
        assert wire.rest() == b""


def test_large_chunked_body_is_refused(wire):
    wire.send(b"POST /x HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
    wire.send(b"1000\r\n" + b"a" * 0x1000 + b"\r\n")
    wire.send(b"2000\r\n" + b"a" * 0x2000 + b"\r\n")
    assert wire.answer().status == 413


def test_body_of_exactly_the_limit_is_taken(wire):
    wire.post(b"a" * 10_000)
    assert wire.answer().json()["size"] == 10_000


@pytest.mark.parametrize("start", [b"POST /x HT", b"POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"])
def test_request_that_does_not_end_is_refused(start):
    with Server(echo, limits=Limits(request_s=0.1)) as server, Wire(server.port) as wire:
        wire.send(start)
        assert wire.answer().status == 408
        assert wire.rest() == b""


def test_idle_connection_is_closed():
    with Server(echo, limits=Limits(idle_s=0.1)) as server, Wire(server.port) as wire:
        wire.post(b"a")
        assert wire.answer().status == 200
        assert wire.rest() == b""


def test_client_that_has_done_sending_gets_its_answers(wire):
    wire.send(request(b"a") + request(b"b"))
    wire.socket.shutdown(socket.SHUT_WR)
    assert [wire.answer().json()["body"] for _ in range(2)] == ["a", "b"]
    assert wire.rest() == b""


def test_client_that_sends_and_leaves_at_once_gets_its_answer(server):
    for _ in range(200):
        with Wire(server.port) as wire:
            wire.send(request(b"a"))
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.answer().json()["body"] == "a"
            assert wire.rest() == b""


def test_delay_is_kept():
    with Server(lambda _: Reply.json({}).delayed(0.1).delayed(0.1)) as server, Wire(server.port) as wire:
        start = time.monotonic()
        wire.post(b"")
        assert wire.answer().status == 200
        assert 0.2 <= time.monotonic() - start < 5


def test_client_that_leaves_cancels_its_answer():
    begun, cancelled = threading.Event(), threading.Event()

    async def handler(_: Request) -> Reply:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Reply()

    with Server(handler) as server:
        with Wire(server.port) as wire:
            wire.post(b"")
            assert begun.wait(10)
        assert cancelled.wait(10)


def test_client_that_does_not_read_does_not_fill_the_memory():
    served = 0

    def handler(_: Request) -> Reply:
        nonlocal served
        served += 1
        return Reply(body=b"x" * 1_000_000)

    with Server(handler) as server, Wire(server.port) as wire:
        wire.send(b"".join(request(b"") for _ in range(200)))
        with Wire(server.port) as other:  # once this one is answered, all of the first were looked at
            other.post(b"")
            assert len(other.answer().body) == 1_000_000
        assert served < 50
        for _ in range(200):
            assert len(wire.answer().body) == 1_000_000


@pytest.mark.parametrize("asynchronous", [False, True])
def test_exception_in_the_handler_is_answered_and_raised_at_the_check(asynchronous):
    def handler(_: Request) -> Reply:
        raise LookupError("the reason")

    async def later(received: Request) -> Reply:
        return handler(received)

    with Server(later if asynchronous else handler) as server:
        with Wire(server.port) as wire:
            for _ in range(2):
                wire.post(b"")
                answer = wire.answer()
                assert (answer.status, answer.json()["error"]["code"]) == (500, "internal_error")
        with pytest.raises(LookupError, match="the reason"):
            server.check()
        server.check()  # it is told once


@pytest.mark.parametrize(
    "reply",
    [
        Reply(headers=(("X", "a\r\nY: b"),)),
        Reply(headers=(("X", "暗号"),)),
        Reply(headers=[["X", "y"]]),  # type: ignore[arg-type]
        {"memories": []},
    ],
)
def test_reply_that_cannot_be_sent_is_a_failure_of_the_handler(reply):
    with Server(lambda _: reply) as server:
        with Wire(server.port) as wire:
            wire.post(b"")
            assert wire.answer().status == 500
        with pytest.raises((TypeError, ValueError, MemmockError)):
            server.check()


@pytest.mark.parametrize("status", [204, 304])
def test_bodiless_status_has_no_length(status):
    with Server(lambda _: Reply(status, body=b"never sent")) as server, Wire(server.port) as wire:
        for _ in range(2):
            wire.post(b"")
            answer = wire.answer()
            assert (answer.status, "content-length" in answer.headers) == (status, False)


def test_reply_may_close_the_connection():
    with Server(lambda _: Reply(headers=(("Connection", "close"),))) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert wire.answer().status == 200
        assert wire.rest() == b""


def test_length_is_the_true_one_whatever_the_handler_says():
    reply = Reply(headers=(("Content-Length", "7"), ("Transfer-Encoding", "chunked")), body=b"abc")
    with Server(lambda _: reply) as server, Wire(server.port) as wire:
        for _ in range(2):
            wire.post(b"")
            answer = wire.answer()
            assert (answer.headers, answer.body) == ({"content-length": "3"}, b"abc")


def test_unusual_status_has_no_phrase():
    with Server(lambda _: Reply(299)) as server, Wire(server.port) as wire:
        wire.post(b"")
        assert wire.answer().status == 299


def test_port_in_use_is_a_clear_error(server):
    with pytest.raises(MemmockError, match=f"cannot listen on 127.0.0.1 port {server.port}: .*in use"):
        Server(echo, port=server.port).start()


def test_unknown_host_is_a_clear_error():
    with pytest.raises(MemmockError, match=r"cannot listen on nowhere\.invalid port 0: "):
        Server(echo, host="nowhere.invalid").start()


def test_ipv6_address_is_put_in_brackets():
    assert Server(echo, host="::1", port=8765).url == "http://[::1]:8765"


def test_stopped_server_leaves_no_thread_and_no_socket():
    before = threading.active_count()
    server = Server(echo)
    server.start()
    with Wire(server.port) as idle, Wire(server.port) as half:
        idle.post(b"")
        idle.answer()
        half.send(b"POST /x HTTP/1.1\r\n")
        server.stop()
        assert idle.rest() == half.rest() == b""
    assert threading.active_count() == before
    with pytest.raises(ConnectionRefusedError):
        Wire(server.port)
    server.stop()  # once more does no harm


def test_server_that_stops_while_clients_connect_leaves_nothing_open():
    for _ in range(100):  # pytest turns a transport that was not closed into an error
        with Server(echo) as server:
            clients = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(3)]
        for client in clients:
            client.close()


def test_server_is_not_started_twice(server):
    with pytest.raises(MemmockError, match=f"the server is serving already, at {server.url}"):
        server.start()


def test_server_may_be_started_and_stopped_from_many_threads():
    server = Server(echo)
    refused = []

    def start_and_stop() -> None:
        for _ in range(20):
            try:
                server.start()
            except MemmockError as error:
                refused.append(str(error))
            server.stop()

    threads = [threading.Thread(target=start_and_stop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert all("already" in message for message in refused)
    server.stop()
    with server, Wire(server.port) as wire:
        wire.post(b"a")
        assert wire.answer().status == 200


def test_client_that_never_reads_is_cut_off():
    asked = threading.Event()

    def handler(_: Request) -> Reply:
        asked.set()
        return Reply(body=b"x" * 1_000_000)

    with Server(handler, limits=Limits(idle_s=0.2)) as server, Wire(server.port) as wire:
        wire.send(b"".join(request(b"") for _ in range(60)) + b"GET / HT")
        assert asked.wait(10)
        deadline = time.monotonic() + 10
        while server._hub.connections:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert len(wire.rest()) < 40_000_000  # what was on its way, and no more


def test_server_starts_again_on_its_port():
    server = Server(echo)
    for _ in range(2):
        with server, Wire(server.port) as wire:
            wire.post(b"a")
            assert wire.answer().status == 200


def test_server_stops_from_another_thread_while_answers_are_due():
    async def handler(_: Request) -> Reply:
        await asyncio.sleep(60)
        return Reply()

    server = Server(handler)
    server.start()
    with Wire(server.port) as wire:
        wire.post(b"")
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        stopping.join(10)
        assert not stopping.is_alive()
        assert wire.rest() == b""


def test_server_runs_in_this_thread_until_it_is_stopped():
    server = Server(echo)
    answers = []

    def ask() -> None:
        with Wire(server.port) as wire:
            wire.post(b"a")
            answers.append(wire.answer().status)
        server.stop()

    server.run(ready=threading.Thread(target=ask).start)
    assert answers == [200]
