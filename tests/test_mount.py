"""A handler on the suite's own pytest-httpserver: every delivery, and nothing of it an error."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import ssl
import threading
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from memmock.http import Reply, Request
from memmock.mount import mount
from tests.wire import TIMEOUT_S, Wire, request

CERTIFICATE = Path(__file__).parent / "localhost.pem"
THREADED = [pytest.param(False, id="one thread"), pytest.param(True, id="threaded")]


@pytest.fixture(scope="module", params=THREADED)
def server(request):
    with HTTPServer(threaded=request.param) as server:
        yield server


class Stage:
    """A mounted handler whose next reply a test chooses, and what is told of the delivery."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.requests: list[Request] = []
        self.reply = Reply()
        self._sent = queue.Queue()
        server.clear()
        mount(self._answer, server, "/memory_retrieval")

    def _answer(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.reply._replace(on_sent=self._sent.put)

    def ask(self, reply: Reply, method: str = "POST", *, then: bytes = b"", client=None) -> Wire:
        self.reply = reply
        wire = Wire(self.server.port)
        if client is not None:
            wire.socket = client.wrap_socket(wire.socket, server_hostname="localhost")
        wire.send(request(b"{}", method=method) + then)
        return wire

    def sent(self):
        return self._sent.get(timeout=TIMEOUT_S)

    def outcome(self):
        sent = self.sent()
        return sent.how, sent.sent_bytes

    def wait_for_threads(self) -> None:
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                thread.join(TIMEOUT_S)
                assert not thread.is_alive()

    def assert_nothing_shows(self, capfd, caplog) -> None:
        self.wait_for_threads()
        self.server.check()
        assert self._sent.empty()  # each delivery is told once, a plain one never
        assert [record for record in caplog.records if record.levelno > logging.INFO] == []
        assert "Traceback" not in capfd.readouterr().err


@pytest.fixture
def stage(server, capfd, caplog):
    stage = Stage(server)
    yield stage
    with stage.ask(Reply.json({"memories": []})) as wire:
        answer = wire.answer()
    assert (answer.status, answer.json()) == (200, {"memories": []})
    stage.assert_nothing_shows(capfd, caplog)


def split(data: bytes) -> tuple[bytes, bytes]:
    head, mark, body = data.partition(b"\r\n\r\n")
    return head + mark, body


def until_reset(wire: Wire) -> bytes:
    data = b""
    try:
        while piece := wire.socket.recv(65536):
            data += piece
    except ConnectionResetError:
        return data
    raise AssertionError(f"closed after {data!r}")


def test_plain_reply_is_not_told(stage):
    with stage.ask(Reply.json([1])) as wire:
        assert wire.answer().json() == [1]


def test_request_has_the_client_and_a_connection_of_its_own(stage):
    for reply in (Reply(), Reply().closed()):
        with stage.ask(reply) as wire:
            wire.rest()
    assert [(request.client, request.connection) for request in stage.requests] == [
        ("127.0.0.1", 1),
        ("127.0.0.1", 2),
    ]
    assert stage.sent().how == "completed"


def test_delay_comes_before_the_first_byte(stage):
    start = time.monotonic()
    with stage.ask(Reply(body=b"late").delayed(0.1)) as wire:
        assert wire.answer().body == b"late"
    assert time.monotonic() - start >= 0.1
    sent = stage.sent()
    assert sent.how == "completed"
    assert sent.elapsed_s >= 0.1


def test_body_is_dripped(stage):
    with stage.ask(Reply(body=b"abcdef").dripped(2, 0.03)) as wire:
        pieces = [wire.socket.recv(65536) for _ in range(4)]
        assert wire.rest() == b""
    assert pieces[0].endswith(b"\r\n\r\n")
    assert pieces[1:] == [b"ab", b"cd", b"ef"]
    assert b"\r\nConnection: close\r\n" in pieces[0]
    sent = stage.sent()
    assert (sent.how, sent.sent_bytes) == ("completed", len(b"".join(pieces)))
    assert sent.elapsed_s >= 0.09


def test_cut_body_ends_after_exactly_so_many_bytes(stage):
    with stage.ask(Reply(body=b"x" * 100_000).cut(after=70_001)) as wire:
        head, body = split(wire.rest())
    assert b"Content-Length: 100000\r\n" in head
    assert body == b"x" * 70_001
    assert stage.outcome() == ("closed", len(head) + 70_001)


def test_head_that_is_cut_at_once_leaves_nothing(stage):
    with stage.ask(Reply().cut_head(0)) as wire:
        assert wire.rest() == b""
    assert stage.outcome() == ("closed", 0)


@pytest.mark.parametrize("size", [3, 200_000])
def test_reset_comes_after_the_data(stage, size):
    with stage.ask(Reply(body=b"x" * 300_000).cut(after=size).reset()) as wire:
        head, body = split(until_reset(wire))
    assert body == b"x" * size
    assert stage.outcome() == ("reset", len(head) + size)


def test_reset_may_come_before_any_byte(stage):
    with stage.ask(Reply().cut_head(0).reset()) as wire:
        assert until_reset(wire) == b""
    assert stage.outcome() == ("reset", 0)


def test_chunked_body_is_framed(stage):
    with stage.ask(Reply(body=b"abcde").chunked(2)) as wire:
        head, body = split(wire.rest())
    assert b"Transfer-Encoding: chunked\r\n" in head
    assert body == b"2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n"
    assert stage.outcome() == ("completed", len(head + body))


def test_raw_bytes_are_sent_as_they_are(stage):
    garbage = b"\x00\xffHTTP/9 no\n\r\n\r\nmore"
    with stage.ask(Reply.raw(garbage)) as wire:
        assert wire.rest() == garbage
    assert stage.outcome() == ("completed", len(garbage))


def test_interim_reply_comes_first(stage):
    with stage.ask(Reply(body=b"ok").after(103, (("Link", "</a>"),))) as wire:
        first, rest = split(wire.rest())
    assert first == b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    assert rest.startswith(b"HTTP/1.1 200 OK\r\n")
    assert rest.endswith(b"\r\n\r\nok")
    assert stage.outcome() == ("completed", len(first + rest))


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 204)])
def test_reply_without_a_body_is_played_too(stage, method, status):
    with stage.ask(Reply(status, body=b"ab").dripped(1, 0.0, part="all"), method) as wire:
        head, body = split(wire.rest())
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert body == b""
    assert stage.outcome() == ("completed", len(head))


def test_played_reply_is_in_the_log_of_the_httpserver(stage):
    with stage.ask(Reply(503, (("X-Test", "1"),), b"ab").closed()) as wire:
        wire.rest()
    stage.sent()
    _, response = stage.server.log[-1]
    assert (response.status_code, response.headers["X-Test"], response.data) == (503, "1", b"ab")


def test_hanging_reply_ends_when_the_client_leaves(stage):
    with stage.ask(Reply(body=b"ab").hanging()) as wire:
        assert wire.answer().body == b"ab"
        wire.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
    assert stage.sent().how == "client closed"


def test_hanging_reply_ends_also_when_the_client_said_more_before_it_left(stage):
    with stage.ask(Reply().hanging()) as wire:
        wire.answer()
        wire.send(b"x" * 100_000)
    assert stage.sent().how == "client closed"


def test_pause_ends_when_the_client_leaves(stage):
    start = time.monotonic()
    with stage.ask(Reply().delayed(TIMEOUT_S)):
        pass
    assert stage.outcome() == ("client closed", 0)
    assert time.monotonic() - start < TIMEOUT_S / 2


@pytest.mark.parametrize("reply", [Reply(body=b"x" * 1000).endless(), Reply(body=b"x").endless().chunked()])
def test_endless_body_ends_when_the_client_leaves(stage, reply):
    with stage.ask(reply) as wire:
        taken = sum(len(wire.socket.recv(65536)) for _ in range(20))
    how, size = stage.outcome()
    assert how == "client closed"
    assert size >= taken


def test_client_that_does_not_read_is_noticed_when_it_leaves(stage):
    with stage.ask(Reply(body=b"x" * 1000).endless()) as wire:
        wire.socket.recv(1)
        time.sleep(0.2)  # until the buffers are full
    assert stage.sent().how == "client closed"


def test_client_that_sends_on_gets_the_whole_reply(stage):
    with stage.ask(Reply(body=b"x" * 100_000).closed(), then=request(b"{}")) as wire:
        assert len(split(wire.rest())[1]) == 100_000
    assert stage.sent().how == "completed"
    assert len(stage.requests) == 1


def test_header_that_cannot_be_sent_is_an_error_of_the_handler(stage, caplog):
    with stage.ask(Reply(headers=(("X-Test", "a\nb"),)).closed()) as wire:
        assert wire.answer().status == 500
    with pytest.raises(ValueError, match="line break"):
        stage.server.check()
    with stage.ask(Reply()) as wire:
        wire.answer()
    stage.wait_for_threads()
    caplog.clear()  # Werkzeug has logged it by now


@pytest.mark.parametrize("threaded", THREADED)
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(body=b"ab").hanging(), id="hanging"),
        pytest.param(Reply(body=b"ab").closed(after=60), id="pause"),
        pytest.param(Reply(body=b"x" * 1000).endless(), id="endless, not read"),
    ],
)
def test_stop_of_the_httpserver_ends_a_delivery(threaded, reply, capfd, caplog):
    server = HTTPServer(threaded=threaded)
    stage = Stage(server)  # mounted before the start
    server.start()
    with stage.ask(reply) as wire:
        wire.socket.recv(1)
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 2  # half a second is Werkzeug's own
        assert stage.sent().how == "stopped"
        wire.rest()
    stage.assert_nothing_shows(capfd, caplog)


@pytest.mark.parametrize("threaded", THREADED)
def test_httpserver_that_starts_again_plays_on(threaded, capfd, caplog):
    server = HTTPServer(threaded=threaded)
    stage = Stage(server)
    for _ in range(2):
        with server, stage.ask(Reply(body=b"ab").cut(1).reset()) as wire:
            assert split(until_reset(wire))[1] == b"a"
            assert stage.sent().how == "reset"
    stage.assert_nothing_shows(capfd, caplog)


@pytest.mark.parametrize("threaded", THREADED)
def test_deliveries_are_played_over_tls(threaded, capfd, caplog):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    client = ssl.create_default_context(cafile=str(CERTIFICATE))

    with HTTPServer(threaded=threaded, ssl_context=context) as server:
        stage = Stage(server)
        with stage.ask(Reply(body=b"x" * 100_000).cut(70_000), client=client) as wire:
            assert split(wire.rest())[1] == b"x" * 70_000
        assert stage.sent().how == "closed"
        with stage.ask(Reply(body=b"ab").reset(), client=client) as wire:
            assert wire.answer().body == b"ab"
            with contextlib.suppress(ConnectionResetError):  # before Python 3.13, ssl tells of an end
                assert wire.rest() == b""
        assert stage.sent().how == "reset"
        with stage.ask(Reply(body=b"ab").hanging(), client=client) as wire:
            assert wire.answer().body == b"ab"
            with contextlib.suppress(OSError):  # the server does not say goodbye
                wire.socket.unwrap()
            assert stage.sent().how == "client closed"
        with stage.ask(Reply(body=b"ab").hanging(), client=client) as wire:
            wire.answer()
        assert stage.sent().how == "client closed"
        with stage.ask(Reply(body=b"x" * 1000).endless(), client=client) as wire:
            wire.socket.recv(1)
        assert stage.sent().how == "client closed"
        with stage.ask(Reply(body=b"ab"), client=client) as wire:
            assert wire.answer().body == b"ab"
    stage.assert_nothing_shows(capfd, caplog)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="sockets are counted in /proc")
@pytest.mark.parametrize("threaded", THREADED)
def test_no_socket_is_left(threaded):
    with HTTPServer(threaded=threaded) as server:
        stage = Stage(server)
        before = _sockets()
        for reply in (Reply().closed(), Reply().reset(), Reply().closed()):
            stage.ask(reply).socket.close()
            stage.sent()
        with stage.ask(Reply()) as wire:
            wire.answer()
        deadline = time.monotonic() + TIMEOUT_S
        while _sockets() > before and time.monotonic() < deadline:
            time.sleep(0.001)
        assert _sockets() <= before


def _sockets() -> int:
    try:
        return sum(
            "socket:" in str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()
        )
    except FileNotFoundError:
        return _sockets()


def test_asynchronous_handler_that_never_ends_is_given_up_when_the_client_leaves(httpserver):
    started = threading.Event()

    async def never():
        started.set()
        await asyncio.Event().wait()

    replies = [never, lambda: Reply.json({"memories": []})]
    mount(lambda request: replies.pop(0)(), httpserver, "/memory_retrieval")
    with Wire(httpserver.port) as wire:
        wire.post(b"")
        assert started.wait(5)
    with Wire(httpserver.port) as wire:
        wire.post(b"")
        assert wire.answer().json() == {"memories": []}
