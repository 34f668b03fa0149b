from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import memmock
from memmock import client as client_module
from memmock import consumer as consumer_module
from memmock.client import READ_BYTES
from memmock.consumer import Consumer, retrieve, retrieve_sync
from memmock.contract import Memory, Retrieval, RetrievalConfig
from memmock.errors import MemmockError
from memmock.http import header
from memmock.reply_reader import ReplyReader
from memmock.tool_result import ToolError, ToolResult
from tests.raw_provider import (
    GOOD,
    GOOD_BODY,
    RawProvider,
    Script,
    chunked,
    close,
    drip,
    endless,
    hang,
    head,
    on_connect,
    reset,
    sized,
)

AUTHORIZATION = "Bearer s3cr3t"
TEA = ToolResult(True, (Memory("用户喜欢茶", id="1"),))
LIMIT = 65_536
SLACK_S = 0.25  # how much later than the deadline a call may return on a busy machine
CERTIFICATE = Path(__file__).with_name("localhost.pem")


@pytest.fixture
def provider() -> Iterator[RawProvider]:
    with RawProvider() as provider:
        yield provider


def config_of(endpoint: str, **settings: Any) -> RetrievalConfig:
    return RetrievalConfig(endpoint, AUTHORIZATION, **{"timeout_ms": 5_000, **settings})


@pytest.fixture
def consumer(provider: RawProvider) -> Iterator[Consumer]:
    with Consumer(config_of(provider.endpoint)) as consumer:
        yield consumer


@pytest.fixture
def hasty(provider: RawProvider) -> Iterator[Consumer]:
    with Consumer(config_of(provider.endpoint, timeout_ms=200)) as consumer:
        yield consumer


def failed(code: Any, message: str, status: int | None = None) -> ToolResult:
    return ToolResult(False, (), ToolError(code, message, status))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


# ---- the request


def test_request_is_the_contract_s(provider: RawProvider, consumer: Consumer) -> None:
    consumer.retrieve("爱喝什么", reason="", memory_types=("profile",), max_results=3)
    body = '{"query":"爱喝什么","reason":"","memory_types":["profile"],"max_results":3}'.encode()
    assert provider.requests == [
        b"POST /memory_retrieval HTTP/1.1\r\n"
        b"Host: 127.0.0.1:%d\r\n"
        b"User-Agent: memmock/%s\r\n"
        b"Accept: application/json\r\n"
        b"Accept-Encoding: gzip\r\n"
        b"Authorization: Bearer s3cr3t\r\n"
        b"Content-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (provider.port, memmock.__version__.encode(), len(body)) + body
    ]


def test_retrieval_goes_as_it_is_or_with_other_fields(provider: RawProvider, consumer: Consumer) -> None:
    consumer.retrieve(Retrieval("a", live_id="9007199254740993"))
    consumer.retrieve(Retrieval("a", live_id="1"), live_id="2")
    bodies = [request.partition(b"\r\n\r\n")[2] for request in provider.requests]
    assert bodies == [b'{"query":"a","live_id":"9007199254740993"}', b'{"query":"a","live_id":"2"}']


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/"),
        ("/记忆/a%20b?用户=1&x=%2F#top", "/%E8%AE%B0%E5%BF%86/a%20b?%E7%94%A8%E6%88%B7=1&x=%2F"),
        ("?a=b", "/?a=b"),
        ("/v1/%7Euser//x", "/v1/%7Euser//x"),
    ],
)
def test_endpoint_path_and_query_are_sent(path: str, target: str) -> None:
    with (
        RawProvider() as provider,
        Consumer(config_of(f"http://127.0.0.1:{provider.port}{path}")) as consumer,
    ):
        exchange = consumer.exchange("a")
    assert exchange.result == TEA
    assert exchange.request.target == target
    assert provider.requests[0].startswith(f"POST {target} HTTP/1.1\r\n".encode())


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1"])
def test_host_names_and_addresses_work(provider: RawProvider, host: str) -> None:
    assert retrieve_sync(config_of(f"http://{host}:{provider.port}/"), Retrieval("a")) == TEA
    assert f"\r\nHost: {host.lower()}:{provider.port}\r\n".encode() in provider.requests[0]


def test_ipv6_address_works() -> None:
    try:
        provider = RawProvider(host="::1")
    except OSError:
        pytest.skip("no IPv6 here")
    with provider:
        assert retrieve_sync(config_of(provider.endpoint), Retrieval("a")) == TEA
    assert f"\r\nHost: [::1]:{provider.port}\r\n".encode() in provider.requests[0]


@pytest.mark.parametrize(
    ("endpoint", "connected_to", "host"),
    [
        ("http://example.com", ("example.com", 80), "example.com"),
        ("https://例子.测试/x", ("xn--fsqu00a.xn--0zwm56d", 443), "xn--fsqu00a.xn--0zwm56d"),
        ("https://[fe80::1]:8443/", ("fe80::1", 8443), "[fe80::1]:8443"),
    ],
)
def test_address_is_read_from_the_endpoint(endpoint: str, connected_to: tuple[str, int], host: str) -> None:
    address = client_module.Address.of(endpoint)
    assert ((address.host, address.port), address.netloc) == (connected_to, host)


@pytest.mark.parametrize("host", ["a b", "a\u2028b", "x" * 64, "a..b", "a<b", "ａ／b"])
def test_unusable_host_is_refused(host: str) -> None:
    with pytest.raises(MemmockError, match=r"^memory_retrieval: endpoint "):
        Consumer(config_of(f"http://{host}/"))


def test_authorization_is_sent_verbatim(provider: RawProvider) -> None:
    retrieve_sync(RetrievalConfig(provider.endpoint, "令牌  a=b; ü"), Retrieval("a"))
    assert "\r\nAuthorization: 令牌  a=b; ü\r\n".encode() in provider.requests[0]


def test_authorization_that_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(MemmockError, match="authorization must not hold half of a surrogate pair"):
        Consumer(RetrievalConfig("http://127.0.0.1", "a\ud800"))


@pytest.mark.parametrize("value", [float("nan"), {1}])
def test_retrieval_that_is_no_json_is_refused(consumer: Consumer, value: Any) -> None:
    with pytest.raises(MemmockError, match=r"^the retrieval cannot be written as JSON: "):
        consumer.retrieve("a", max_results=value)


def test_query_with_a_lone_surrogate_is_sent(provider: RawProvider, consumer: Consumer) -> None:
    assert consumer.retrieve("\ud83d") == TEA
    assert provider.requests[0].endswith(rb'{"query":"\ud83d"}')


def test_environment_is_not_looked_at(
    provider: RawProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with RawProvider() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        netrc = tmp_path / "netrc"
        netrc.write_text("default login user password word\n")
        netrc.chmod(0o600)
        monkeypatch.setenv("NETRC", str(netrc))
        assert retrieve_sync(config_of(provider.endpoint), Retrieval("a")) == TEA
    assert proxy.connections == 0
    assert provider.requests[0].count(b"Authorization: ") == 1


def test_cookies_are_not_sent_back(provider: RawProvider, consumer: Consumer) -> None:
    provider.play([sized(GOOD_BODY, "Set-Cookie: a=b; Path=/")])
    assert [consumer.retrieve("a"), consumer.retrieve("a")] == [TEA, TEA]
    assert b"ookie" not in provider.requests[1]


# ---- good answers


def gzipped(body: bytes) -> bytes:
    return sized(gzip.compress(body), "Content-Encoding: gzip")


PADDED = GOOD_BODY + b" " * (LIMIT - len(GOOD_BODY))


@pytest.mark.parametrize(
    ("script", "connections"),
    [
        pytest.param([GOOD], 1, id="sized"),
        pytest.param([GOOD[:20], GOOD[20:60], GOOD[60:]], 1, id="in-parts"),
        pytest.param([sized(GOOD_BODY, status="201 Created")], 1, id="created-201"),
        pytest.param([sized(GOOD_BODY, "Content-Type: text/plain")], 1, id="wrong-content-type"),
        pytest.param([chunked(GOOD_BODY[:9], GOOD_BODY[9:])], 1, id="chunked"),
        pytest.param(
            [chunked(GOOD_BODY, extension=b';a="b"', trailers=b"X: y\r\n")], 1, id="extensions-trailers"
        ),
        pytest.param([head(status="103 Early Hints"), GOOD], 1, id="early-hints"),
        pytest.param([head(status="100 Continue"), GOOD], 1, id="continue-100"),
        pytest.param([gzipped(GOOD_BODY)], 1, id="compressed"),
        pytest.param([sized(GOOD_BODY, *(f"X-{n}: {n}" for n in range(500)))], 1, id="many-headers"),
        pytest.param([sized(PADDED)], 1, id="exact-limit"),
        pytest.param([gzipped(PADDED)], 1, id="exact-limit-decoded"),
        pytest.param([sized(GOOD_BODY, "Connection: close")], 2, id="connection-close"),
        pytest.param([head(version="1.0") + GOOD_BODY, close], 2, id="http10-close"),
        pytest.param([head(), PADDED, close], 2, id="close-delimited-exact-limit"),
        pytest.param([GOOD + GOOD], 2, id="two-replies"),
    ],
)
def test_good_answer_is_understood(
    provider: RawProvider, consumer: Consumer, script: Script, connections: int
) -> None:
    provider.play(script)
    exchange = consumer.exchange("a")
    assert exchange.result == TEA
    assert exchange.request.body == b'{"query":"a"}'
    assert header(exchange.request.headers, "Authorization") == AUTHORIZATION
    assert exchange.reply is not None
    assert exchange.complete
    assert exchange.received_bytes >= len(exchange.reply.body)
    assert 0 < exchange.elapsed_s < 5
    assert consumer.retrieve("a") == TEA
    assert provider.connections == connections


def test_repr_of_an_exchange_hides_the_authorization(consumer: Consumer) -> None:
    assert "s3cr3t" not in repr(consumer.exchange("a"))


# ---- bad answers


@dataclass(frozen=True)
class Case:
    name: str
    script: Script
    code: str
    message: str
    connections: int = 2  # after a good call on the same consumer


CLOSED_EARLY = "the provider closed the connection before the end of its answer"
NOT_HTTP = "the answer is not valid HTTP"
RESET = "the connection was reset"
TOO_LARGE = "the answer is larger than 65,536 bytes"
CHUNKS = head("Transfer-Encoding: chunked")
PART = head("Content-Length: 999") + b'{"memories"'

CASES = [
    # connection
    Case("close-on-connect", [on_connect, close], "connection_failed", "*"),
    Case("reset-on-connect", [on_connect, reset], "connection_failed", RESET),
    Case("reset-after-request", [reset], "connection_failed", RESET),
    Case("reset-mid-head", [GOOD[:20], reset], "connection_failed", RESET),
    Case("reset-mid-body", [PART, reset], "connection_failed", RESET),
    Case("reset-close-delimited", [head() + GOOD_BODY, reset], "connection_failed", RESET),
    Case(
        "close-without-reply",
        [close],
        "connection_failed",
        "the provider closed the connection without an answer",
    ),
    Case("close-mid-headers", [GOOD[:20], close], "connection_failed", CLOSED_EARLY),
    Case("close-mid-body", [PART, close], "connection_failed", CLOSED_EARLY),
    Case("close-mid-chunk", [CHUNKS, b"ff\r\nabc", close], "connection_failed", CLOSED_EARLY),
    Case("close-before-last-chunk", [CHUNKS, b"1\r\n1\r\n", close], "connection_failed", CLOSED_EARLY),
    Case(
        "length-too-long", [head("Content-Length: 99") + GOOD_BODY, close], "connection_failed", CLOSED_EARLY
    ),
    Case("garbage", [b"\x16\x03\x01\x02\x00garbage\r\n\r\n", hang], "connection_failed", NOT_HTTP),
    Case("malformed-status-line", [b"HTTP/1.1 OK\r\n\r\n", hang], "connection_failed", NOT_HTTP),
    Case("malformed-chunk", [CHUNKS, b"1\r\n1\r\nzz\r\n", hang], "connection_failed", NOT_HTTP),
    # statuses: nothing after the head matters
    Case("500", [sized(b'{"error":{}}', status="500 Oh")], "http_error", "500", 1),
    Case("503-unfinished", [head("Content-Length: 99", status="503 Oh"), hang], "http_error", "503"),
    Case("500-with-memories", [sized(GOOD_BODY, status="500 Oh")], "http_error", "500", 1),
    Case("500-endless", [head(status="500 Oh"), endless(b"x" * 4096)], "http_error", "500"),
    Case("502-then-reset", [head("Content-Length: 99", status="502 Oh"), reset], "http_error", "502"),
    Case(
        "500-broken-coding", [sized(b"x", "Content-Encoding: gzip", status="500 Oh")], "http_error", "500", 1
    ),
    Case(
        "500-malformed-chunk",
        [head("Transfer-Encoding: chunked", status="500 Oh") + b"zz\r\n", hang],
        "http_error",
        "500",
    ),
    Case("304", [head(status="304 Not Modified")], "http_error", "304", 1),
    Case("404-plain-text", [sized("没查到".encode(), status="404 Not Found")], "http_error", "404", 1),
    Case("101", [head("Upgrade: x", "Connection: upgrade", status="101 Go"), hang], "http_error", "101"),
    # bodies
    Case("204", [head(status="204 No Content")], "invalid_json", "the answer is empty", 1),
    Case("plain-text", [sized("没查到".encode())], "invalid_json", "the answer is not JSON", 1),
    Case("truncated-json", [sized(GOOD_BODY[:-1])], "invalid_json", "the answer is not JSON", 1),
    Case(
        "length-too-short", [head("Content-Length: 9") + GOOD_BODY], "invalid_json", "the answer is not JSON"
    ),
    Case(
        "close-delimited-truncated",
        [head() + GOOD_BODY[:-1], close],
        "invalid_json",
        "the answer is not JSON",
    ),
    Case(
        "cut-gzip",
        [sized(gzip.compress(GOOD_BODY)[:-9], "Content-Encoding: gzip")],
        "invalid_json",
        "the gzip stream of the answer is broken",
        1,
    ),
    Case(
        "memories-null",
        [sized(b'{"memories":null}')],
        "invalid_response",
        "the answer is not an object with an array memories",
        1,
    ),
    # sizes
    Case("over-limit-by-one", [sized(PADDED + b" ")], "response_too_large", TOO_LARGE),
    Case("oversized", [head("Content-Length: 9999999999"), hang], "response_too_large", TOO_LARGE),
    Case("oversized-chunked", [chunked(*[b" " * 1000] * 99)], "response_too_large", TOO_LARGE),
    Case("oversized-without-length", [head(), b" " * 99_999, close], "response_too_large", TOO_LARGE),
    Case("endless", [head(), endless(b" " * 4096)], "response_too_large", TOO_LARGE),
    Case(
        "endless-chunks",
        [CHUNKS, endless(b"1000\r\n%s\r\n" % (b" " * 4096))],
        "response_too_large",
        TOO_LARGE,
    ),
    Case(
        "endless-gzip",
        [head("Content-Encoding: gzip"), endless(b"\x1f" * 4096)],
        "response_too_large",
        TOO_LARGE,
    ),
    Case("gzip-bomb", [gzipped(b" " * 9_999_999)], "response_too_large", TOO_LARGE, 1),
    Case("huge-header", [b"HTTP/1.1 200 OK\r\nX: ", endless(b"x" * 4096)], "response_too_large", TOO_LARGE),
    Case("endless-interim", [endless(head(status="103 Early Hints"))], "response_too_large", TOO_LARGE),
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_bad_answer_gives_its_code(provider: RawProvider, consumer: Consumer, case: Case) -> None:
    provider.play(case.script)
    exchange = consumer.exchange("a")
    error = exchange.result.error
    assert error is not None
    assert error.code == case.code
    if case.code == "http_error":
        status = int(case.message)
        assert (error.message, error.status) == (f"the provider answered with status {status}", status)
        assert exchange.reply is not None
        assert exchange.reply.status == status
    elif case.message != "*":
        assert (error.message, error.status) == (case.message, None)
    assert exchange.elapsed_s < 2
    assert exchange.received_bytes <= LIMIT + READ_BYTES + 1_000
    assert consumer.retrieve("a") == TEA
    assert provider.connections == case.connections


@pytest.mark.parametrize("chunk", [b" " * 65_536, b" "], ids=["large", "small"])
def test_endless_body_is_left_at_the_limit(provider: RawProvider, consumer: Consumer, chunk: bytes) -> None:
    provider.play([head(), endless(chunk)])
    exchange = consumer.exchange("a")
    assert not exchange.complete
    assert LIMIT < exchange.received_bytes <= LIMIT + READ_BYTES + len(head())
    assert exchange.reply is not None
    assert exchange.reply.body == b" " * LIMIT
    assert provider.idle.wait(5)  # the connection was closed, not drained
    assert provider.sent < 10_000_000  # what was not read is in the buffers of the system


def test_refused_connection_is_connection_failed() -> None:
    for host in ("127.0.0.1", "localhost"):
        result = retrieve_sync(config_of(f"http://{host}:{free_port()}/"), Retrieval("a"))
        assert result == failed("connection_failed", "the connection was refused")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (socket.gaierror(-2, "s3cr3t"), "the host name of the endpoint was not found"),
        (ssl.SSLError("s3cr3t"), "the TLS connection could not be made"),
        (ConnectionAbortedError("s3cr3t"), "the connection was reset"),
        (TimeoutError(110, "s3cr3t"), "the connection could not be opened"),
        (OSError("s3cr3t"), "the connection could not be opened"),
        (
            OSError("Multiple exceptions: [Errno 111] s3cr3t ('::1', 1), [Errno 111] s3cr3t"),
            "the connection was refused",
        ),
    ],
)
def test_failed_connect_says_why_in_our_words(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(asyncio.SelectorEventLoop, "create_connection", fail)
    assert consumer.retrieve("a") == failed("connection_failed", message)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(provider: RawProvider, consumer: Consumer, status: int) -> None:
    with RawProvider() as elsewhere:
        for location in (elsewhere.endpoint, provider.endpoint):
            provider.play([sized(b"", f"Location: {location}", status=f"{status} Go")])
            assert consumer.retrieve("a") == failed(
                "http_error", f"the provider answered with status {status}", status
            )
    assert elsewhere.connections == 0
    assert len(provider.requests) == 2


def test_message_holds_neither_query_string_nor_authorization(provider: RawProvider) -> None:
    for script in ([reset], [b"s3cr3t\r\n"], [sized(b"s3cr3t")], [head(status="500 s3cr3t")]):
        provider.play(script)
        config = config_of(f"{provider.endpoint}?token=s3cr3t")
        assert "s3cr3t" not in json.dumps(retrieve_sync(config, Retrieval("s3cr3t")).to_json())


# ---- time


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([hang, GOOD], id="late"),
        pytest.param([b"HTTP/1.1 200 OK\r\n", hang], id="hang-mid-head"),
        pytest.param([head("Content-Length: 9"), hang], id="hang-after-headers"),
        pytest.param([PART, hang], id="hang-mid-body"),
        pytest.param([head(), GOOD_BODY, hang], id="hang-close-delimited"),
        pytest.param([CHUNKS, b"1\r\n1\r\n", hang], id="hang-mid-chunks"),
        pytest.param([head(status="103 Early Hints"), hang], id="hang-after-early-hints"),
        pytest.param([drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99, 0.02)], id="slow-headers"),
        pytest.param([head("Content-Length: 99"), drip(b"{" * 99, 0.02)], id="drip"),
    ],
)
def test_slow_answer_is_cut_off_at_the_deadline(
    provider: RawProvider, hasty: Consumer, script: Script
) -> None:
    provider.play(script)
    started = time.monotonic()
    exchange = hasty.exchange("a")
    elapsed_s = time.monotonic() - started
    assert exchange.result == failed("timeout", "the provider did not finish within 200 ms")
    assert 0.2 <= exchange.elapsed_s <= elapsed_s < 0.2 + SLACK_S
    assert hasty.retrieve("a") == TEA
    assert provider.connections == 2


def test_request_that_is_not_read_is_cut_off_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = config_of(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_ms=200)
        with Consumer(config) as consumer:
            exchange = consumer.exchange("a" * 8_000_000)  # more than the system buffers
    assert exchange.result == failed("timeout", "the provider did not finish within 200 ms")
    assert exchange.elapsed_s < 2  # not the time to count milliseconds: so much has to be written first


def test_name_look_up_and_connect_are_under_the_deadline(
    hasty: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.SelectorEventLoop, "create_connection", never)
    started = time.monotonic()
    assert hasty.retrieve("a") == failed("timeout", "the provider did not finish within 200 ms")
    assert time.monotonic() - started < 0.2 + SLACK_S


# ---- kept connections


def test_connection_is_kept_between_calls(provider: RawProvider, consumer: Consumer) -> None:
    assert [consumer.retrieve("a") for _ in range(5)] == [TEA] * 5
    assert provider.connections == 1


@pytest.mark.parametrize(
    ("after", "delay"),
    [([close], False), ([close], True), ([reset], True), ([b"x", hang], True), ([GOOD, hang], True)],
    ids=["closed-at-once", "closed", "reset", "surplus", "surplus-reply"],
)
def test_stale_connection_is_not_used(
    provider: RawProvider, consumer: Consumer, after: list[Any], delay: bool
) -> None:
    done = threading.Event()
    provider.play([GOOD, lambda _: done.wait(5), *after])
    assert consumer.retrieve("a") == TEA
    done.set()
    if delay or after == [close]:
        assert provider.idle.wait(5)
    assert consumer.retrieve("b") == TEA
    assert [request.endswith(b'"b"}') for request in provider.requests] == [False, True]
    assert provider.connections == 2


def test_request_is_not_sent_twice(provider: RawProvider, consumer: Consumer) -> None:
    provider.play([GOOD], [close], [close])
    assert consumer.retrieve("a") == TEA
    assert consumer.retrieve("b") == failed(
        "connection_failed", "the provider closed the connection without an answer"
    )
    assert len(provider.requests) == 2


def test_connection_that_was_idle_for_long_is_not_used(
    provider: RawProvider, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "KEEP_IDLE_S", 0.0)
    assert [consumer.retrieve("a"), consumer.retrieve("a")] == [TEA, TEA]
    assert provider.connections == 2


# ---- races, played by hand


def test_connection_lost_before_the_request_is_connection_failed(
    provider: RawProvider, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_connection = asyncio.SelectorEventLoop.create_connection

    async def lost(loop: Any, *args: Any, **settings: Any) -> Any:
        transport, protocol = await create_connection(loop, *args, **settings)
        await protocol.closed
        return transport, protocol

    monkeypatch.setattr(asyncio.SelectorEventLoop, "create_connection", lost)
    provider.play([on_connect, close], [on_connect, reset])
    assert consumer.retrieve("a") == failed(
        "connection_failed", "the provider closed the connection without an answer"
    )
    assert consumer.retrieve("a") == failed("connection_failed", "the connection was reset")


class FakeTransport(asyncio.Transport):
    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        pass


@pytest.mark.asyncio
async def test_reply_that_arrives_with_the_deadline_is_passed_over() -> None:
    connection = client_module._Connection(set())
    connection.connection_made(FakeTransport())
    call = asyncio.create_task(connection.exchange(b"", ReplyReader(LIMIT)))
    await asyncio.sleep(0)
    call.cancel()
    connection.get_buffer(-1)[: len(GOOD)] = GOOD
    connection.buffer_updated(len(GOOD))
    with pytest.raises(asyncio.CancelledError):
        await call


# ---- async, threads, ends


@pytest.mark.asyncio
async def test_async_methods_do_the_same(provider: RawProvider, consumer: Consumer) -> None:
    assert await consumer.aretrieve("a") == TEA
    assert (await consumer.aexchange(Retrieval("a"))).result == TEA
    assert consumer.retrieve("a") == TEA
    assert provider.connections == 1
    config = config_of(provider.endpoint)
    assert await retrieve(config, Retrieval("a")) == TEA
    assert retrieve_sync(config, Retrieval("a")) == TEA


@pytest.mark.asyncio
async def test_calls_run_at_the_same_time(provider: RawProvider, consumer: Consumer) -> None:
    together = threading.Barrier(8)
    script: Script = [lambda _: together.wait(5), GOOD]
    provider.play(*[script] * 8)
    assert await asyncio.gather(*(consumer.aretrieve("a") for _ in range(8))) == [TEA] * 8
    assert provider.connections == 8


@pytest.mark.asyncio
async def test_cancelled_call_leaves_the_consumer_usable(provider: RawProvider, consumer: Consumer) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    provider.play([lambda _: loop.call_soon_threadsafe(asked.set), hang])
    call = asyncio.create_task(consumer.aretrieve("a"))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await consumer.aretrieve("a") == TEA


def test_close_ends_calls_and_leaves_nothing(provider: RawProvider) -> None:
    before = threading.active_count()
    asked = threading.Event()
    provider.play([lambda _: asked.set(), hang])
    outcome: list[Any] = []
    consumer = Consumer(config_of(provider.endpoint))

    def call() -> None:
        try:
            outcome.append(consumer.retrieve("a"))
        except MemmockError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    assert asked.wait(5)
    consumer.close()
    thread.join(5)
    consumer.close()
    assert outcome == ["the consumer was closed during the call"]
    assert provider.idle.wait(5)
    with pytest.raises(MemmockError, match=r"^the consumer is closed; make another one$"):
        consumer.retrieve("a")
    assert threading.active_count() <= before + len(provider._threads)
    assert not any(thread.name == "memmock-consumer" for thread in threading.enumerate())


@pytest.mark.asyncio
async def test_aclose_before_any_call_is_harmless(provider: RawProvider) -> None:
    async with Consumer(config_of(provider.endpoint)) as consumer:
        pass
    await consumer.aclose()
    assert provider.connections == 0


def test_forgotten_consumer_ends(provider: RawProvider) -> None:
    consumer = Consumer(config_of(provider.endpoint))
    assert consumer.retrieve("a") == TEA
    del consumer
    gc.collect()
    assert provider.idle.wait(5)


def test_consumer_forgotten_in_its_own_thread_does_not_wait_for_itself() -> None:
    loop = asyncio.new_event_loop()
    consumer_module._stop(loop, threading.current_thread())
    loop.run_forever()
    loop.close()


def test_process_ends_with_an_open_consumer(provider: RawProvider) -> None:
    code = (
        "from memmock.consumer import Consumer\n"
        "from memmock.contract import RetrievalConfig\n"
        f"consumer = Consumer(RetrievalConfig({provider.endpoint!r}, 'x'))\n"
        "print(consumer.retrieve('a').ok)\n"
    )
    done = subprocess.run(  # the default is to hide warnings at exit, which would be left unseen
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


# ---- TLS


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.fixture
def secure() -> Iterator[RawProvider]:
    with RawProvider(context=server_context()) as provider:
        yield provider


@pytest.fixture
def trusting(secure: RawProvider) -> Iterator[Consumer]:
    context = ssl.create_default_context(cafile=CERTIFICATE)
    with Consumer(config_of(secure.endpoint, timeout_ms=1_000), ssl_context=context) as consumer:
        yield consumer


def test_trusted_certificate_is_accepted(secure: RawProvider, trusting: Consumer) -> None:
    assert [trusting.retrieve("a"), trusting.retrieve("a")] == [TEA, TEA]
    assert secure.connections == 1


def test_unknown_certificate_is_connection_failed(secure: RawProvider) -> None:
    assert retrieve_sync(config_of(secure.endpoint), Retrieval("a")) == failed(
        "connection_failed", "the certificate of the provider was not accepted"
    )
    assert secure.requests == []


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([on_connect, b"HTTP/1.1 400 Bad Request\r\n\r\n", hang], "connection_failed"),
        ([on_connect, close], "connection_failed"),
        ([on_connect, reset], "connection_failed"),
        ([on_connect, hang], "timeout"),
        ([PART, reset], "connection_failed"),
        ([PART, close], "connection_failed"),
        ([head(), endless(b" " * 4096)], "response_too_large"),
        ([PART, hang], "timeout"),
    ],
)
def test_bad_answer_over_tls_gives_its_code(
    secure: RawProvider, trusting: Consumer, script: Script, code: str
) -> None:
    secure.play(script)
    exchange = trusting.exchange("a")
    assert exchange.result.error is not None
    assert exchange.result.error.code == code
    assert exchange.elapsed_s < 1 + SLACK_S
    assert trusting.retrieve("a") == TEA
