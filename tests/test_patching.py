"""Patched clients: every thread is played to or recorded, nothing gets out, and no trace is left."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import http.server
import io
import json
import socket
import threading
import urllib.request
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import httpx2
import pytest
import requests
import urllib3
import uvloop
import vcr
import vcr.patch

from memmock.cassette import Interaction
from memmock.errors import MemmockError
from memmock.guard import ConnectionRefused
from memmock.http import Reply, Request
from memmock.patching import NotRecorded, patched

CALLS = 24
JSON = {"Content-Type": "application/json"}


class Tape:
    """Interactions by what was sent; a stand-in for a cassette."""

    def __init__(self, *replies: Reply) -> None:
        self.by_body = {b"%d" % i: Interaction(Request("POST", "/m"), "", r) for i, r in enumerate(replies)}
        self.asked: list[tuple[Request, str]] = []
        self.recorded: list[Interaction] = []
        self.says: str | None = None

    def play(self, request: Request, uri: str) -> Interaction | None:
        self.asked.append((request, uri))
        found = self.by_body.get(request.body)
        if found is None and self.says:
            raise NotRecorded(self.says)
        return found

    def record(self, request: Request, uri: str, reply: Reply, reason: str, elapsed_ms: float | None) -> None:
        self.recorded.append(Interaction(request, uri, reply, reason, "", elapsed_ms))


class Provider(http.server.ThreadingHTTPServer):
    """A real server that counts what reaches it and answers as it is told."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.hits: Counter[bytes] = Counter()
        self.wire = b""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/m"


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.hits[body] += 1
        live = b"HTTP/1.1 200 Fine\r\nX-Id: %s\r\n\r\nlive %s" % (body, body)
        moved = b"HTTP/1.1 302 Found\r\nLocation: /m\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self.wfile.write(moved if "moved" in self.path else self.server.wire or live)
        self.close_connection = True

    do_GET = do_POST  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def serving():
    with Provider() as provider:
        thread = threading.Thread(target=provider.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield provider
        provider.shutdown()
        thread.join()


@pytest.fixture
def provider(serving):
    serving.hits.clear()
    serving.wire = b""
    return serving


# ---- the clients: each returns status, headers as pairs, and the body as the code under test sees it


class Clients:
    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.session = stack.enter_context(requests.Session())
        self.pool = stack.enter_context(urllib3.PoolManager(maxsize=8))
        self.httpx = stack.enter_context(httpx2.Client())

    def requests(self, url: str, body: bytes) -> tuple:
        with requests.post(url, data=body, headers=JSON, timeout=5) as got:
            return got.status_code, got.raw.headers.items(), got.content

    def requests_session(self, url: str, body: bytes) -> tuple:
        got = self.session.post(url, data=body, headers=JSON, timeout=5)
        return got.status_code, got.raw.headers.items(), got.content

    def urllib3(self, url: str, body: bytes) -> tuple:
        got = self.pool.request("POST", url, body=body, headers=JSON, retries=False, timeout=5)
        return got.status, got.headers.items(), got.data

    def http_client(self, url: str, body: bytes) -> tuple:
        conn = http.client.HTTPConnection(url.split("/")[2], timeout=5)
        with contextlib.closing(conn):
            conn.request("POST", "/m", body, JSON)
            got = conn.getresponse()
            return got.status, got.getheaders(), got.read()

    def urllib_request(self, url: str, body: bytes) -> tuple:
        with urllib.request.urlopen(urllib.request.Request(url, body, JSON), timeout=5) as got:
            return got.status, got.getheaders(), got.read()

    def httpx2(self, url: str, body: bytes) -> tuple:
        got = self.httpx.post(url, content=body, headers=JSON)
        return got.status_code, got.headers.multi_items(), got.content

    def aiohttp(self, url: str, body: bytes) -> tuple:
        return asyncio.run(_aiohttp(url, [body]))[0]


async def _aiohttp(url: str, bodies: list[bytes]) -> list[tuple]:
    async def post(session: aiohttp.ClientSession, body: bytes) -> tuple:
        async with session.post(url, data=body, headers=JSON) as got:
            return got.status, list(got.headers.items()), await got.read()

    async with aiohttp.ClientSession() as session:
        return await asyncio.gather(*(post(session, body) for body in bodies), return_exceptions=True)


@pytest.fixture(scope="module")
def clients():
    with contextlib.ExitStack() as stack:
        yield Clients(stack)


THREADED = ["requests", "requests_session", "urllib3", "http_client", "urllib_request", "httpx2"]
CLIENTS = [*THREADED, "aiohttp"]
BODIES = [b"%d" % i for i in range(CALLS)]
WORKERS = [1, 2, 4, 8]


def all_calls(call, url: str, workers: int) -> list:
    """Make all calls from a pool; return the body of each, or the error."""

    def one(body: bytes):
        try:
            return call(url, body)[2]
        except NotRecorded as error:
            return error

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, BODIES))


def replies() -> list[Reply]:
    return [Reply(200, (), b"played %d" % i) for i in range(CALLS)]


# ---- threads


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("client", THREADED)
def test_every_thread_is_played_to_and_none_leaks(client, workers, clients, provider):
    for _ in range(2):
        tape = Tape(*replies())
        with patched(tape, records=False) as patches:
            bodies = all_calls(getattr(clients, client), provider.url, workers)
        assert bodies == [b"played %d" % i for i in range(CALLS)]
        assert len(tape.asked) == CALLS
    assert not provider.hits
    assert patches.leaks == []


@pytest.mark.parametrize("workers", [8])
@pytest.mark.parametrize("client", THREADED)
def test_every_thread_is_recorded(client, workers, clients, provider):
    tape = Tape()
    with patched(tape, records=True):
        bodies = all_calls(getattr(clients, client), provider.url, workers)
    assert bodies == [b"live %d" % i for i in range(CALLS)]
    assert provider.hits == Counter(BODIES)
    assert sorted(found.reply.body for found in tape.recorded) == sorted(bodies)
    assert {found.uri for found in tape.recorded} == {provider.url}


@pytest.mark.parametrize("workers", [2, 8])
@pytest.mark.parametrize("client", THREADED)
def test_what_is_missing_is_an_error_in_every_thread(client, workers, clients, provider):
    tape = Tape()
    tape.says = "nothing like it"
    with patched(tape, records=False) as patches:
        errors = all_calls(getattr(clients, client), provider.url, workers)
    assert [str(error) for error in errors] == ["nothing like it"] * CALLS
    assert len(tape.asked) == CALLS
    assert not provider.hits
    assert patches.leaks == []


def test_every_task_is_played_to(provider):
    with patched(Tape(*replies()), records=False):
        got = asyncio.run(_aiohttp(provider.url, BODIES))
    assert [body for _, _, body in got] == [b"played %d" % i for i in range(CALLS)]
    assert not provider.hits


def test_every_task_is_recorded(provider):
    tape = Tape()
    with patched(tape, records=True):
        asyncio.run(_aiohttp(provider.url, BODIES))
    assert provider.hits == Counter(BODIES)
    assert sorted(found.request.body for found in tape.recorded) == sorted(BODIES)


def test_what_is_missing_is_an_error_in_every_task(provider):
    with patched(Tape(), records=False):
        got = asyncio.run(_aiohttp(provider.url, BODIES))
    assert {type(error) for error in got} == {NotRecorded}
    assert not provider.hits


def test_a_tape_that_says_nothing_lets_nothing_out(provider, clients):
    with (
        patched(Tape(), records=False),
        pytest.raises(NotRecorded, match=rf"memmock: POST {provider.url} was not recorded, and nothing is"),
    ):
        clients.requests(provider.url, b"0")


def test_an_https_connection_is_made_while_its_name_is_patched(clients):
    with patched(Tape(*replies()), records=False) as patches:
        conn = http.client.HTTPSConnection("provider.invalid", timeout=5)
        conn.request("POST", "/m", b"3")
        assert conn.getresponse().read() == b"played 3"
        assert clients.requests("https://provider.invalid/m", b"4")[2] == b"played 4"
        assert clients.urllib3("https://provider.invalid/m", b"5")[2] == b"played 5"
    assert patches.leaks == []


# ---- what the tape is asked


@pytest.mark.parametrize("client", CLIENTS)
def test_the_tape_is_asked_with_the_request(client, clients):
    tape = Tape(Reply())
    with patched(tape, records=False):
        getattr(clients, client)("http://provider.invalid/m", b"0")
    ((request, uri),) = tape.asked
    assert (request.method, request.target, request.body) == ("POST", "/m", b"0")
    assert request.header("content-type") == "application/json"
    assert "@@@" not in str(request.headers)
    assert uri == "http://provider.invalid/m"


def asked(**options) -> Request:
    tape = Tape()
    with patched(tape, records=False), contextlib.suppress(NotRecorded):
        requests.post("http://provider.invalid/m?a=1&b=%20#part", timeout=5, **options)
    return tape.asked[0][0]


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (None, b""),
        ("人", "人".encode()),
        (iter([b"a", b"b"]), b"ab"),
        (io.BytesIO(b"\xff\x00"), b"\xff\x00"),
        (bytearray(b"x"), b"x"),
    ],
)
def test_a_body_is_bytes_whatever_the_client_was_given(data, body):
    assert asked(data=data).body == body


def test_a_target_is_path_and_query():
    assert asked().target == "/m?a=1&b=%20"


@pytest.mark.parametrize(
    ("value", "text"), [("é".encode("latin-1"), "é"), ("é", "é"), ("人".encode(), "\xe4\xba\xba")]
)
def test_a_header_is_latin1_text(value, text):
    assert asked(headers={"X-Name": value}).header("x-name") == text


@pytest.mark.parametrize("value", [{"query": "人"}, ["a"], []])
def test_what_aiohttp_is_to_send_as_json_is_json(value):
    tape = Tape()

    async def call() -> None:
        async with aiohttp.ClientSession() as session:
            await session.post("http://provider.invalid/m", json=value)

    with patched(tape, records=False), pytest.raises(NotRecorded):
        asyncio.run(call())
    ((request, _),) = tape.asked
    assert request.body == json.dumps(value).encode()
    assert request.header("content-type") == "application/json"


def test_a_body_that_cannot_be_read_is_refused():
    async def call() -> None:
        async with aiohttp.ClientSession() as session:
            await session.post("http://provider.invalid/m", data=aiohttp.FormData({"a": "b"}))

    with patched(Tape(), records=False), pytest.raises(MemmockError, match="body of type FormData: send it"):
        asyncio.run(call())


# ---- what is played

PACKED = {
    "gzip": gzip.compress(b"text"),
    "deflate": zlib.compress(b"text"),
    "gzip, deflate": zlib.compress(gzip.compress(b"text")),
}


def played(clients, client: str, reply: Reply) -> tuple:
    with patched(Tape(reply), records=False):
        status, headers, body = getattr(clients, client)("http://provider.invalid/m", b"0")
    return status, [(name.lower(), value) for name, value in headers], body


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("coding", PACKED)
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
def test_a_coded_body_is_played_as_text(client, coding, packed, clients):
    reply = Reply(
        200,
        (("Content-Encoding", coding), ("Content-Length", "999"), ("Transfer-Encoding", "chunked")),
        PACKED[coding] if packed else b"text",
    )
    assert played(clients, client, reply) == (200, [("content-length", "4")], b"text")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_reply_is_played_as_it_is(client, clients):
    headers = (("Set-Cookie", "a=1"), ("X-Name", "J\xf6rg"), ("set-cookie", "b=2"))
    recorded = 201 if client == "urllib_request" else 503  # urllib raises errors
    status, got, body = played(clients, client, Reply(recorded, headers, b"\x00\xff\r\n"))
    assert status == recorded
    cookies = [value for name, value in got if name == "set-cookie"]
    assert cookies in (["a=1", "b=2"], ["a=1, b=2"])
    assert dict(got)["x-name"] == "J\xf6rg"
    assert body == b"\x00\xff\r\n"


def test_both_cookies_reach_the_session(clients):
    reply = Reply(200, (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")))
    with patched(Tape(reply), records=False), requests.Session() as session:
        session.post("http://provider.invalid/m", data=b"0")
        assert session.cookies.get_dict() == {"a": "1", "b": "2"}


@pytest.mark.parametrize(("body", "left"), [(b"\xff\xfe", "br"), (b"{}", None)])
def test_a_coding_that_cannot_be_undone_stays_unless_the_body_is_text(body, left, clients):
    _, headers, got = played(clients, "http_client", Reply(200, (("Content-Encoding", "br"),), body))
    assert (dict(headers).get("content-encoding"), got) == (left, body)


def test_a_reply_without_a_body_keeps_its_headers(clients):
    assert played(clients, "http_client", Reply(204, (("ETag", "x"),))) == (204, [("etag", "x")], b"")


def test_aiohttp_is_played_a_redirect():
    tape = Tape(Reply(302, (("Location", "/other"),)))
    tape.by_body[b""] = Interaction(Request("GET", "/other"), "", Reply(200, (), b"there"))
    with patched(tape, records=False):
        ((status, _, body),) = asyncio.run(_aiohttp("http://provider.invalid/m", [b"0"]))
    assert (status, body) == (200, b"there")
    assert [uri for _, uri in tape.asked] == ["http://provider.invalid/m", "http://provider.invalid/other"]


def test_a_redirect_that_is_recorded_in_part_is_an_error():
    with patched(Tape(Reply(302, (("Location", "/other"),))), records=True):
        (error,) = asyncio.run(_aiohttp("http://provider.invalid/m", [b"0"]))
    assert isinstance(error, NotRecorded)


# ---- what is recorded


@pytest.mark.parametrize("client", CLIENTS)
def test_a_reply_is_recorded_so_that_it_can_be_played(client, clients, provider):
    body = gzip.compress(b'{"a": 1}')
    provider.wire = (
        b"HTTP/1.1 200 Very fine\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Encoding: gzip\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    )
    tape = Tape()
    with patched(tape, records=True):
        live = getattr(clients, client)(provider.url, b"0")[2]
    (found,) = tape.recorded
    names = {name.lower() for name, _ in found.reply.headers}
    assert names & {"transfer-encoding", "content-length"} == set()
    assert [v for n, v in found.reply.headers if n.lower() == "set-cookie"] == ["a=1", "b=2"]
    assert ("content-encoding" in names) == (found.reply.body == body)
    assert found.reason == "Very fine"
    assert 0 < found.elapsed_ms < 5000
    assert live in (b'{"a": 1}', body)
    assert played(clients, client, found.reply)[2] == b'{"a": 1}'


def test_what_is_recorded_is_played_to_the_same_recording(clients, provider):
    tape = Tape(Reply(200, (), b"played"))
    with patched(tape, records=True):
        assert clients.requests(provider.url, b"0")[2] == b"played"
        assert clients.requests(provider.url, b"1")[2] == b"live 1"
    assert provider.hits == {b"1": 1}


def test_each_reply_on_the_way_of_a_redirect_is_recorded(provider):
    tape = Tape()
    with patched(tape, records=True):
        ((_, _, body),) = asyncio.run(_aiohttp(f"{provider.url}?moved", [b"0"]))
    assert body == b"live "
    first, last = tape.recorded
    assert [first.request.target, last.request.target] == ["/m?moved", "/m"]
    assert [first.request.body, last.request.method] == [b"0", "GET"]
    assert first.elapsed_ms is None


# ---- the guard


def refused(host: str) -> str:
    return rf'refused a connection to {host} while a cassette plays; allow it with allow_hosts=\["{host}"\]'


def test_a_raw_socket_is_refused(provider):
    with patched(Tape(), records=False) as patches:
        with pytest.raises(ConnectionRefused, match=refused(provider.host)):
            socket.create_connection(provider.server_address)
        with socket.socket() as sock:
            assert sock.connect_ex(provider.server_address) != 0
        with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(ConnectionRefusedError):
            sock.sendto(b"x", ("127.0.0.1", 9))
        with socket.socket(socket.AF_INET6) as sock, pytest.raises(ConnectionRefused, match=r"\[::1\]:9 "):
            sock.connect(("::1", 9))
    assert patches.leaks == [provider.host, provider.host, "127.0.0.1:9", "[::1]:9"]


def test_a_client_that_vcrpy_does_not_know_is_refused(provider):
    unpatched = http.client.HTTPConnection
    with patched(Tape(), records=False) as patches:
        conn = unpatched(provider.host)
        with pytest.raises(ConnectionRefused):
            conn.request("POST", "/m", b"0")
    assert patches.leaks == [provider.host]
    assert not provider.hits


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_stream_of_either_loop_is_refused(loop, provider):
    async def call() -> None:
        await asyncio.open_connection(*provider.server_address)

    async def call_socket() -> None:
        with socket.socket() as sock:
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, provider.server_address)

    with patched(Tape(), records=False) as patches, asyncio.Runner(loop_factory=loop) as runner:
        for each in (call, call_socket):
            with pytest.raises(ConnectionRefused, match=refused(provider.host)):
                runner.run(each())
    assert patches.leaks == [provider.host] * 2


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "{}", "localhost:{1}"])
def test_what_is_allowed_is_reached(loop, host, provider):
    async def call() -> None:
        _, writer = await asyncio.open_connection(*provider.server_address)
        writer.close()
        await writer.wait_closed()

    allow = host.format(provider.host, provider.server_address[1])
    with (
        patched(Tape(), records=False, allow_hosts=[allow]) as patches,
        asyncio.Runner(loop_factory=loop) as runner,
    ):
        runner.run(call())
        with socket.socket() as sock:
            assert sock.connect_ex(provider.server_address) == 0
    assert patches.leaks == []


def test_another_port_of_an_allowed_host_is_refused(provider):
    with (
        patched(Tape(), records=False, allow_hosts=["127.0.0.1:1", "::1", "[::1]:2"]),
        socket.socket() as sock,
        pytest.raises(ConnectionRefused),
    ):
        sock.connect(provider.server_address)


def test_what_is_not_a_network_is_left_alone(tmp_path):
    with patched(Tape(), records=False) as patches, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(tmp_path / "s"))
        with contextlib.closing(listening.accept()[0]):
            pass
        one, other = socket.socketpair()
        with one, other, socket.socket(type=socket.SOCK_DGRAM) as here:
            here.bind(("127.0.0.1", 0))
    assert patches.leaks == []


@pytest.mark.parametrize("entry", ["", "host:port", ":80"])
def test_an_allowed_host_that_cannot_be_read_is_an_error(entry):
    with (
        pytest.raises(MemmockError, match="allow_hosts: cannot read"),
        patched(Tape(), records=False, allow_hosts=[entry]),
    ):
        pass


def test_nothing_is_refused_while_recording(provider):
    with patched(Tape(), records=True) as patches:
        socket.create_connection(provider.server_address).close()
    assert patches.leaks == []


# ---- no trace


def state() -> dict:
    """Everything that is patched, and what could be."""
    found = {
        (str(owner), name): value
        for owner in (socket.socket, uvloop.Loop, vcr.patch, http.client, http.client.HTTPSConnection)
        for name, value in vars(owner).items()
    }
    for patcher in vcr.patch.reset_patchers():
        found |= {(str(patcher.getter()), name): value for name, value in vars(patcher.getter()).items()}
        if isinstance(patcher.new, type):
            found |= {(str(patcher.new), name): value for name, value in vars(patcher.new).items()}
    found["pools"] = [vars(pool).copy() for pool in (urllib3.HTTPConnectionPool, urllib3.HTTPSConnectionPool)]
    found["aiohttp"] = aiohttp.ClientSession._request
    return found


@pytest.mark.parametrize("records", [True, False])
def test_nothing_is_left_behind(records, clients, provider):
    before = state()
    with patched(Tape(Reply()), records=records):
        assert state() != before
        clients.requests(provider.url, b"0")
    assert state() == before
    with pytest.raises(ZeroDivisionError), patched(Tape(), records=records):
        raise ZeroDivisionError
    assert state() == before


def test_a_patch_in_a_patch_is_the_one_that_counts(clients):
    before = state()
    outer, inner = Tape(Reply(200, (), b"outer")), Tape(Reply(200, (), b"inner"))
    with patched(outer, records=False):
        with patched(inner, records=False):
            assert clients.requests("http://provider.invalid/m", b"0")[2] == b"inner"
        assert clients.requests("http://provider.invalid/m", b"0")[2] == b"outer"
    assert state() == before


def test_a_cassette_of_vcrpy_works_inside_and_afterwards(clients, provider, tmp_path):
    before = state()
    with patched(Tape(), records=True), vcr.use_cassette(str(tmp_path / "a.yaml")) as inner:
        clients.requests(provider.url, b"0")
    with vcr.use_cassette(str(tmp_path / "b.yaml")) as after:
        clients.http_client(provider.url, b"1")
    assert (len(inner), len(after)) == (1, 1)
    assert state() == before


def test_a_guard_that_was_overlaid_lets_everything_pass_afterwards(provider, monkeypatch):
    with patched(Tape(), records=False):
        ours = socket.socket.connect
        monkeypatch.setattr(socket.socket, "connect", lambda sock, address: ours(sock, address))
        theirs = socket.socket.connect
    assert socket.socket.connect is theirs
    socket.create_connection(provider.server_address).close()
    monkeypatch.undo()
    socket.create_connection(provider.server_address).close()
    assert socket.socket.connect is ours
    del socket.socket.connect
