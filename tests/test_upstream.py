"""The upstream: what is sent on, to where, and what a client is told when nothing comes back."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time

import pytest
import trustme

from memmock.errors import MemmockError
from memmock.http import Request
from memmock.tool_result import ToolError
from memmock.upstream import Upstream, end_to_end, no_reply
from tests.cassette_clients import asking, recorded_from
from tests.raw_provider import GOOD_BODY, RawProvider, close, hang, head, on_connect, reset, sized


@pytest.fixture
def provider():
    with RawProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def secure_provider(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with RawProvider(context=context) as provider:
        yield provider


@pytest.fixture
def ca_file(authority, tmp_path):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def exchanges(upstream, *requests):
    async def run():
        try:
            return [await upstream.exchange(request) for request in requests]
        finally:
            await upstream.close()

    return asyncio.run(run())


def told(url, **options):
    """Return status, code and message of what a client is told."""
    replies, kept, _ = recorded_from(url, [asking()], **options)
    assert kept == []
    error = json.loads(replies[0].body)["error"]
    return replies[0].status, error["code"], error["message"]


# ---- where it goes


@pytest.mark.parametrize(
    ("url", "target", "host", "line"),
    [
        ("http://provider", "/memory_retrieval", "provider", "/"),
        ("http://provider:80/", "/memory_retrieval", "provider:80", "/"),
        ("http://PROVIDER/v1/find", "/gateway/memory_retrieval", "provider", "/v1/find"),
        ("http://provider/v1?key=1", "/memory_retrieval", "provider", "/v1?key=1"),
        ("http://provider/v1", "/memory_retrieval?trace=7&x=%2F", "provider", "/v1?trace=7&x=%2F"),
        ("http://provider/v1?key=1", "/memory_retrieval?trace=7", "provider", "/v1?key=1&trace=7"),
        ("http://provider/记忆", "/memory_retrieval", "provider", "/%E8%AE%B0%E5%BF%86"),
        ("https://[::1]:8443/v1", "//evil.example/memory_retrieval", "[::1]:8443", "/v1"),
        (
            "http://provider/v1",
            "/memory_retrieval?http://evil.example/",
            "provider",
            "/v1?http://evil.example/",
        ),
        ("http://provider/v1", "/@evil.example/../memory_retrieval", "provider", "/v1"),
    ],
)
def test_request_goes_to_the_one_url(url, target, host, line):
    upstream = Upstream(url)
    request = Request("POST", target, (("Host", "evil.example"), ("host", "evil.example")))
    sent = upstream.forwarded(request)
    assert sent.target == line
    assert [value for name, value in sent.headers if name.lower() == "host"] == [host]
    assert upstream.uri(request) == f"{url.partition(':')[0]}://{host}{line}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("provider/v1", "the upstream must be an absolute http or https URL, not 'provider/v1'"),
        ("ftp://provider/", "the upstream must be an absolute http or https URL, not 'ftp://provider/'"),
        ("http://a b/v1", "the upstream has no usable host name: 'http://a b/v1'"),
        ("http:///v1", "the upstream must be an absolute http or https URL, not 'http:///v1'"),
        (
            "http://provider:0/",
            "the upstream must be an absolute http or https URL, not 'http://provider:0/'",
        ),
        (
            "http://provider:99999/",
            "the upstream must be an absolute http or https URL, not 'http://provider:99999/'",
        ),
        ("http://[::1/", "the upstream must be an absolute http or https URL, not 'http://[::1/'"),
        (" http://provider/", "the upstream must be an absolute http or https URL, not ' http://provider/'"),
        (
            "http://me:secret@provider/",
            "the upstream must not hold a user name or password; use the authorization",
        ),
    ],
)
def test_url_that_is_none_is_refused(url, message):
    with pytest.raises(MemmockError) as refused:
        Upstream(url)
    assert str(refused.value) == message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_passed_on_and_not_followed(provider, status):
    provider.play([sized(b"", f"Location: {provider.endpoint}/other", status=f"{status} Moved")])
    replies, kept, _ = recorded_from(provider.endpoint, [asking()])
    assert (replies[0].status, replies[0].header("Location")) == (status, f"{provider.endpoint}/other")
    assert (kept[0].reply.status, kept[0].reason) == (status, "Moved")
    assert len(provider.requests) == 1


# ---- headers


def test_headers_for_one_connection_only_stay_behind():
    headers = (
        ("Connection", "close, X-Hop ,"),
        ("Connection", "x-other"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authorization", "Basic x"),
        ("Proxy-Connection", "close"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("Expect", "100-continue"),
        ("Content-Length", "1"),
        ("X-HOP", "1"),
        ("X-Other", "1"),
        ("X-Same", "1"),
        ("Authorization", "Bearer x"),
        ("x-same", "\xe9"),
    )
    kept = (("X-Same", "1"), ("Authorization", "Bearer x"), ("x-same", "\xe9"))
    assert end_to_end(headers) == kept
    assert Upstream("http://p").forwarded(Request("POST", "/m", headers, b"{}")).headers == (
        ("Host", "p"), *kept, ("Content-Length", "2"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("offered", "sent"),
    [
        ("gzip, deflate, br, zstd", "gzip, deflate"),
        ("br;q=1.0, GZIP;q=0.5 , *;q=0.1", "GZIP;q=0.5"),
        ("gzip;q=0", "gzip;q=0"),
        ("br", "identity"),
        ("*", "identity"),
        ("", "identity"),
    ],
)
def test_only_codings_that_can_be_looked_into_are_asked_for(offered, sent):
    forwarded = Upstream("http://p").forwarded(Request("POST", "/m", (("Accept-Encoding", offered),)))
    assert forwarded.header("Accept-Encoding") == sent


def test_coding_that_nobody_offered_is_not_asked_for():
    assert Upstream("http://p").forwarded(asking()).header("Accept-Encoding") is None


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [("POST", b"", "0"), ("PUT", b"", "0"), ("GET", b"", None), ("DELETE", b"x", "1")],
)
def test_length_is_sent_where_there_may_be_a_body(method, body, length):
    assert Upstream("http://p").forwarded(Request(method, "/m", (), body)).header("Content-Length") == length


@pytest.mark.parametrize(
    ("configured", "sent"),
    [(None, "Bearer client"), ("Bearer mine", "Bearer mine"), (" Token 密 ", "Token å¯\x86")],
)
def test_authorization_is_replaced_only_when_it_is_configured(configured, sent):
    request = asking()._replace(headers=(("authorization", "Bearer client"), ("X-A", "1")))
    forwarded = Upstream("http://p", authorization=configured).forwarded(request)
    assert [value for name, value in forwarded.headers if name.lower() == "authorization"] == [sent]


@pytest.mark.parametrize("value", ["", " ", "a\r\nX-Evil: 1", "a\0b", "\x7f"])
def test_authorization_that_cannot_be_sent_is_refused(value):
    with pytest.raises(MemmockError, match="authorization must not be empty, nor hold control characters"):
        Upstream("http://p", authorization=value)


# ---- no reply


@pytest.mark.parametrize(
    ("script", "status", "code", "message"),
    [
        ([close], 502, "upstream_failed", "the upstream closed the connection without an answer"),
        ([reset], 502, "upstream_failed", "the connection was reset"),
        ([head("Content-Length: 9") + b"abc", close], 502, "upstream_failed",
         "the upstream closed the connection before the end of its answer"),
        ([b"SSH-2.0-x\r\n"], 502, "upstream_failed", "the answer is not valid HTTP"),
        ([head("Content-Length: 16777217")], 502, "upstream_failed",
         "the answer is larger than 16,777,216 bytes"),
        ([hang], 504, "upstream_timeout", "the upstream did not finish within 200 ms"),
        ([head("Content-Length: 9") + b"abc", hang], 504, "upstream_timeout",
         "the upstream did not finish within 200 ms"),
    ],
)  # fmt: skip
def test_reply_that_never_came_is_told(provider, script, status, code, message):
    provider.play(script)
    assert told(provider.endpoint, timeout_ms=200 if status == 504 else 10_000) == (status, code, message)


def test_upstream_that_is_down_is_told():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    assert told(f"http://127.0.0.1:{port}/") == (502, "upstream_failed", "the connection was refused")


def test_host_that_does_not_exist_is_told():
    message = "the host name of the endpoint was not found"
    assert told("http://nowhere.invalid/") == (502, "upstream_failed", message)


def test_error_is_told_of_the_upstream():
    assert json.loads(no_reply(ToolError("timeout", "the provider is late", None)).body) == {
        "error": {"code": "upstream_timeout", "message": "the upstream is late"}
    }


# ---- TLS


def test_untrusted_certificate_is_a_bad_gateway(secure_provider):
    message = "the certificate of the upstream was not accepted"
    assert told(secure_provider.endpoint) == (502, "upstream_failed", message)
    assert secure_provider.requests == []


def test_certificate_of_another_name_is_a_bad_gateway(secure_provider, ca_file):
    url = f"https://localhost:{secure_provider.port}/"
    assert told(url, ca_file=ca_file)[2] == "the certificate of the upstream was not accepted"


def test_certificate_of_the_given_authority_is_trusted(secure_provider, ca_file):
    replies, kept, _ = recorded_from(secure_provider.endpoint, [asking(), asking("b")], ca_file=ca_file)
    assert [reply.body for reply in replies] == [GOOD_BODY] * 2
    assert kept[0].uri == secure_provider.endpoint
    assert secure_provider.connections == 1


def test_upstream_that_speaks_no_tls_is_a_bad_gateway(provider, ca_file):
    provider.play([on_connect, b"HTTP/1.1 400 Bad Request\r\n\r\n", hang])
    url = provider.endpoint.replace("http:", "https:")
    assert told(url, ca_file=ca_file) == (502, "upstream_failed", "the TLS connection could not be made")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file or directory"),
        ("", "no certificate or crl found"),
        ("-----BEGIN", "no certificate or crl found"),
    ],
)
def test_certificates_that_cannot_be_read_are_refused(tmp_path, content, reason):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(MemmockError) as refused:
        Upstream("https://p", ca_file=str(path))
    assert str(refused.value) == f"{path}: no certificates can be read: {reason}"


# ---- connections


def test_connection_is_kept_for_the_next_call(provider):
    recorded_from(provider.endpoint, [asking(str(n)) for n in range(5)])
    assert (provider.connections, len(provider.requests)) == (1, 5)


def test_connection_that_the_upstream_closed_meanwhile_loses_nothing_and_repeats_nothing(provider):
    upstream = Upstream(provider.endpoint)

    async def run():
        for n in range(20):
            provider.play([sized(GOOD_BODY), close])  # without a word about it
            exchange = await upstream.exchange(asking(str(n)))
            assert exchange.complete
            while not provider.idle.is_set():
                await asyncio.sleep(0.001)
        await upstream.close()

    asyncio.run(run())
    assert [json.loads(sent.partition(b"\r\n\r\n")[2])["query"] for sent in provider.requests] == list(
        map(str, range(20))
    )


def test_call_that_the_upstream_took_and_did_not_answer_is_not_repeated(provider):
    provider.play([sized(GOOD_BODY)], [close])
    first, second = exchanges(Upstream(provider.endpoint), asking("1"), asking("2"))
    assert (first.complete, second.reply) == (True, None)
    assert len(provider.requests) == 2


def test_connection_is_not_used_after_a_surplus_reply(provider):
    provider.play([sized(b"one") + sized(b"nobody asked")])
    first, second = exchanges(Upstream(provider.endpoint), asking("1"), asking("2"))
    assert (first.reply.body, second.reply.body) == (b"one", GOOD_BODY)


def test_calls_under_way_end_when_it_is_closed(provider):
    provider.play([hang])

    async def run():
        upstream = Upstream(provider.endpoint)
        call = asyncio.create_task(upstream.exchange(asking()))
        while not provider.requests:
            await asyncio.sleep(0.001)
        start = time.monotonic()
        await upstream.close()
        with pytest.raises(MemmockError, match="closed during the call"):
            await call
        return time.monotonic() - start

    assert asyncio.run(run()) < 5
    assert provider.idle.wait(10)
