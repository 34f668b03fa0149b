"""The recording proxy: what it forwards, what a client gets back, and what is recorded of that."""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from contextlib import contextmanager

import pytest
from werkzeug import Response

from memmock.cassette import Cassette
from memmock.cassette_file import Recording, load
from memmock.errors import MemmockError
from memmock.http import Reply, Request, encode_json
from memmock.recorder import Recorder, interaction, leaks, settled
from memmock.redaction import Redactor
from memmock.server import Server
from memmock.upstream import Upstream
from tests.cassette_clients import (
    JSON_HEADERS,
    PATIENCE_S,
    asked,
    asking,
    connected,
    gzipped,
    in_threads,
    post,
    recorded,
    recorded_from,
)
from tests.raw_provider import GOOD, GOOD_BODY, RawProvider, chunked, close, hang, head, sized
from tests.wire import Wire, request


@pytest.fixture
def provider():
    with RawProvider() as provider:
        yield provider


class Proxy:
    """A recorder that is being served."""

    def __init__(self, url, keep=None, **options):
        self.kept = []
        self.recorder = Recorder(
            Upstream(url, **options), keep or self.kept.append, redactor=Redactor(), path="/memory_retrieval"
        )
        self.server = Server(self.recorder, at_stop=self.recorder.close)

    @property
    def endpoint(self):
        return f"{self.server.url}/memory_retrieval"

    def wait(self, condition):
        assert self.recorder.journal.wait(condition, PATIENCE_S)


@contextmanager
def proxied(url, keep=None, **options):
    proxy = Proxy(url, keep, **options)
    with proxy.server:
        yield proxy
    proxy.server.check()


# ---- never an open proxy


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.example/memory_retrieval",
        "https://evil.example/memory_retrieval",
        "evil.example:80",
        "*",
        "/elsewhere",
        "/memory_retrieval/more",
        "/?/memory_retrieval",
        "",
    ],
)
def test_other_target_is_refused_and_not_forwarded(provider, target):
    replies, kept, recorder = recorded_from(provider.endpoint, [asking()._replace(target=target)])
    assert (replies[0].status, json.loads(replies[0].body)) == (
        404,
        {
            "error": {
                "code": "not_found",
                "message": "nothing is here; what is forwarded is /memory_retrieval",
            }
        },
    )
    assert (provider.requests, kept) == ([], [])
    assert [call.reply.status for call in recorder.journal.calls] == [404]


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "HEAD"])
def test_method_that_cannot_be_recorded_is_refused(provider, method):
    replies, kept, _ = recorded_from(provider.endpoint, [asking()._replace(method=method)])
    assert replies[0].status == 405
    assert json.loads(replies[0].body)["error"]["message"] == f"{method} is not forwarded"
    assert (provider.requests, kept) == ([], [])


@pytest.mark.parametrize(
    "sent",
    [
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
        request(b"{}", path="http://evil.example/memory_retrieval"),
        request(b"{}", path="//evil.example/memory_retrieval"),
        request(b"{}", "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example"),
        request(b"{}", path="/http://evil.example/memory_retrieval"),
    ],
)
def test_trick_reaches_the_upstream_at_most(provider, sent):
    with proxied(provider.endpoint) as proxy, Wire(proxy.server.port) as wire:
        wire.send(sent)
        status = wire.answer().status
    assert status in (200, 404, 405)
    assert len(provider.requests) == (status == 200)
    for line in provider.requests:
        assert line.startswith(b"POST /memory_retrieval HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % provider.port)


def test_any_gateway_prefix_may_stand_before_the_path(provider):
    _, kept, _ = recorded_from(provider.endpoint, [asking()._replace(target="/gw/memory_retrieval?trace=7")])
    assert kept[0].request.target == "/memory_retrieval?trace=7"
    assert kept[0].uri == f"{provider.endpoint}?trace=7"


# ---- what is forwarded and recorded


def test_client_gets_the_reply_and_the_cassette_the_interaction(httpserver):
    body = {"memories": [{"id": "1", "summary": "用户喜欢茶"}]}
    httpserver.expect_request("/memory_retrieval", method="POST", json={"query": "a"}).respond_with_json(body)
    replies, kept, recorder = recorded_from(httpserver.url_for("/memory_retrieval"), [asking()])
    httpserver.check()
    (one,) = kept
    assert (replies[0].status, json.loads(replies[0].body)) == (200, body)
    assert (one.request.method, one.request.body) == ("POST", b'{"query":"a"}')
    assert (one.reply.status, one.reason, json.loads(one.reply.body)) == (200, "OK", body)
    assert one.recorded_at.endswith("Z")
    assert 0 < one.elapsed_ms < PATIENCE_S * 1000
    assert "REQ004" in one.violations  # the authorization is missing
    assert recorder.recorded == 1
    assert [call.recording for call in recorder.journal.calls] == ["interaction 1"]


def test_error_of_the_provider_is_recorded_whole(httpserver):
    httpserver.expect_request("/memory_retrieval").respond_with_json({"error": {"code": "busy"}}, status=503)
    replies, kept, _ = recorded_from(httpserver.url_for("/memory_retrieval"), [asking()])
    assert (replies[0].status, kept[0].reply.status) == (503, 503)
    assert json.loads(kept[0].reply.body) == json.loads(replies[0].body) == {"error": {"code": "busy"}}


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_reply_without_a_body_is_recorded_at_once(provider, status):
    provider.play([head("ETag: x", status=status)])
    replies, kept, _ = recorded_from(provider.endpoint, [asking(), asking()])
    assert [(reply.status, reply.body) for reply in replies] == [(int(status[:3]), b""), (200, GOOD_BODY)]
    assert len(kept) == 2
    assert provider.connections == 1


def test_reply_in_chunks_is_put_together(provider):
    provider.play([chunked(b'{"memories"', b":[]}", trailers=b"X-Trailer: 1\r\n")])
    replies, kept, _ = recorded_from(provider.endpoint, [asking()])
    assert (replies[0].headers, replies[0].body, kept[0].reply) == ((), b'{"memories":[]}', replies[0])


def test_reply_that_ends_with_its_connection_is_recorded(provider):
    provider.play([head("Content-Type: application/json") + GOOD_BODY, close])
    _, kept, _ = recorded_from(provider.endpoint, [asking()])
    assert kept[0].reply.body == GOOD_BODY


def test_interim_replies_are_passed_over(provider):
    provider.play([head("Link: </x>", status="103 Early Hints"), head(status="100 Continue"), GOOD])
    replies, _, _ = recorded_from(provider.endpoint, [asking()])
    assert (replies[0].status, replies[0].body) == (200, GOOD_BODY)


def test_repeated_and_latin_1_headers_pass_in_their_order(provider):
    sent = (
        "Set-Cookie: a=1",
        "X-Name: caf\xe9 \xe9\x98\xbf",
        "set-cookie: b=2",
        "Connection: X-Hop",
        "X-Hop: 1",
    )
    lines = "\r\n".join(["HTTP/1.1 200 OK", *sent, "Keep-Alive: timeout=5", "Content-Length: 2", "", "{}"])
    provider.play([lines.encode("latin-1")])
    with proxied(provider.endpoint) as proxy, Wire(proxy.server.port) as wire:
        wire.post(b"{}")
        wire.answer()
        wire.send(request(b"{}", "Connection: close"))
        wire.rest()
    assert proxy.kept[0].reply.headers == (
        ("Set-Cookie", "***"),
        ("X-Name", "caf\xe9 \xe9\x98\xbf"),
        ("set-cookie", "***"),
    )
    assert proxy.recorder.journal.calls[0].reply.headers == proxy.kept[0].reply.headers


@pytest.mark.parametrize(
    ("coding", "packed"), [("gzip", gzipped(GOOD_BODY)), ("deflate", zlib.compress(GOOD_BODY))]
)
def test_packed_body_goes_to_the_client_as_it_is_and_to_the_cassette_unpacked(provider, coding, packed):
    provider.play([sized(packed, f"Content-Encoding: {coding}", "Content-Type: application/json")])
    replies, kept, _ = recorded_from(provider.endpoint, [asking()])
    assert (replies[0].body, replies[0].header("Content-Encoding")) == (packed, coding)
    assert (kept[0].reply.body, kept[0].reply.header("Content-Encoding")) == (GOOD_BODY, None)


@pytest.mark.parametrize(
    ("coding", "body", "reason"),
    [
        ("br", b"\x0b\x02\x80{}\x03", "the body is encoded as br and cannot be looked into for secrets"),
        ("gzip", b"{}", "the body is encoded as gzip, but broken, and cannot be looked into for secrets"),
        ("gzip", gzipped(GOOD_BODY)[:-9],
         "the body is encoded as gzip, but cut short, and cannot be looked into for secrets"),
    ],
)  # fmt: skip
def test_body_that_cannot_be_looked_into_is_answered_and_not_recorded(provider, coding, body, reason):
    provider.play([sized(body, f"Content-Encoding: {coding}")])
    replies, kept, recorder = recorded_from(provider.endpoint, [asking(), asking()])
    assert (replies[0].body, replies[0].header("Content-Encoding")) == (body, coding)
    assert (len(kept), recorder.failures) == (1, [reason])
    assert [call.recording for call in recorder.journal.calls] == [f"not recorded: {reason}", "interaction 1"]


def test_failed_write_is_noted_and_the_client_answered(provider):
    def keep(recorded):
        raise OSError(28, "No space left on device")

    with proxied(provider.endpoint, keep) as proxy:
        assert asked(proxy.endpoint, {"query": "a"})[0][0] == 200
    assert proxy.recorder.failures == ["[Errno 28] No space left on device"]
    assert proxy.recorder.recorded == 0


def test_large_bodies_pass_whole(provider):
    large = encode_json({"memories": [{"summary": "茶" * (2 * 1024 * 1024)}]})
    query = "x" * (1024 * 1024 - 12)
    provider.play([sized(large)])
    replies, kept, _ = recorded_from(provider.endpoint, [asking(query)])
    assert replies[0].body == kept[0].reply.body == large
    assert len(kept[0].request.body) == 1024 * 1024
    assert provider.requests[0].endswith(kept[0].request.body)


def test_request_over_the_limit_is_not_forwarded(provider):
    with proxied(provider.endpoint) as proxy, Wire(proxy.server.port) as wire:
        wire.send(b"POST /memory_retrieval HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n")
        assert wire.answer().status == 413
    assert (provider.requests, proxy.kept) == ([], [])


def test_client_that_expects_100_continue_gets_it_from_the_proxy(provider):
    with proxied(provider.endpoint) as proxy, Wire(proxy.server.port) as wire:
        wire.send(
            b"POST /memory_retrieval HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert wire.answer().status == 100
        assert provider.requests == []
        wire.send(b"{}")
        assert wire.answer().status == 200
    assert b"expect" not in provider.requests[0].lower()


# ---- secrets


def test_credentials_are_sent_and_not_recorded(provider):
    secret = "Bearer s3cr3t-of-the-client"
    provider.play([sized(b'{"memories":[{"summary":"s3cr3t-of-the-client"}]}')])
    request = asking()._replace(
        headers=(*JSON_HEADERS, ("Authorization", secret)), target="/memory_retrieval?token=t0ken-in-url"
    )
    replies, kept, _ = recorded_from(provider.endpoint, [request])
    assert secret.encode() in provider.requests[0]
    assert b"s3cr3t" in replies[0].body
    assert "s3cr3t" not in repr(kept)
    assert "t0ken" not in repr(kept)
    assert kept[0].uri == f"{provider.endpoint}?token=***"


def test_configured_authorization_is_sent_and_not_recorded(provider):
    redactor = Redactor(secrets=["Bearer c0nf1gured"])
    request = asking("c0nf1gured?")._replace(headers=(("Authorization", "Bearer other"),))
    _, kept, _ = recorded_from(
        provider.endpoint, [request], authorization="Bearer c0nf1gured", redactor=redactor
    )
    assert b"Authorization: Bearer c0nf1gured\r\n" in provider.requests[0]
    assert b"Bearer other" not in provider.requests[0]
    assert "c0nf1gured" not in repr(kept)


def test_secret_that_was_learned_later_is_taken_out_at_the_end():
    redactor = Redactor()
    early = recorded("known-later-1")
    redactor.exchange(asking()._replace(headers=(("Authorization", "Bearer known-later-1"),)), Reply())
    kept, failures = settled([early], redactor)
    assert failures == []
    assert "known-later-1" not in repr(kept)


def test_interaction_that_cannot_be_settled_is_left_out():
    packed = recorded()._replace(reply=Reply(200, (("Content-Encoding", "br"),), b"\xff"))
    kept, failures = settled([recorded("a"), packed], Redactor())
    assert len(kept) == 1
    assert failures == [
        "interaction 2 was taken out: the body is encoded as br and cannot be looked into for secrets"
    ]


def test_interaction_that_was_there_before_is_never_left_out():
    packed = recorded()._replace(reply=Reply(200, (("Content-Encoding", "br"),), b"\xff"))
    kept, failures = settled([packed, packed], Redactor(), before=1)
    reason = "the body is encoded as br and cannot be looked into for secrets"
    assert kept == [packed]
    assert failures == [f"interaction 1 stays as it was: {reason}", f"interaction 2 was taken out: {reason}"]


def test_leaks_tell_what_is_still_in_a_file(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("Bearer s3cr3t-value")
    assert leaks(file, Redactor(secrets=["s3cr3t-value"])) == [f"{file} still holds the configured secret 1"]
    assert leaks(file, Redactor()) == []
    assert leaks(tmp_path / "x", Redactor()) == [
        f"{tmp_path}/x cannot be read again: No such file or directory"
    ]


def test_broken_rules_are_recorded(provider):
    provider.play([sized(b"no JSON")])
    _, kept, _ = recorded_from(provider.endpoint, [asking("")])
    assert kept[0].violations == tuple(sorted(set(kept[0].violations)))
    assert len(kept[0].violations) >= 3  # the empty query, the missing authorization, the text


def test_recorded_violations_are_those_of_the_call():
    broken = interaction(
        asking(), "http://p/", Reply(200, (), b"text"), "OK", elapsed_ms=None, redactor=Redactor()
    )
    assert broken.violations
    assert broken.elapsed_ms is None


# ---- upstreams that fail


def test_no_reply_is_answered_and_not_recorded(provider):
    provider.play([close])
    replies, kept, recorder = recorded_from(provider.endpoint, [asking()])
    assert (replies[0].status, kept, recorder.failures) == (502, [], [])
    assert [call.recording for call in recorder.journal.calls] == ["not recorded"]


@pytest.mark.parametrize(
    ("script", "status", "reason"), [([close], 502, "Bad Gateway"), ([hang], 504, "Gateway Timeout")]
)
def test_no_reply_is_recorded_on_request(provider, script, status, reason):
    provider.play(script)
    replies, kept, _ = recorded_from(provider.endpoint, [asking()], record_errors=True, timeout_ms=300)
    assert [(one.reply, one.reason) for one in kept] == [(replies[0], reason)]
    assert replies[0].status == status
    assert (kept[0].elapsed_ms >= 300) is (status == 504)


# ---- clients that come and go


def test_call_of_a_client_that_left_is_recorded(provider):
    answer = threading.Event()
    provider.play([lambda wire: answer.wait(PATIENCE_S), GOOD])
    with proxied(provider.endpoint) as proxy:
        with Wire(proxy.server.port) as wire:
            wire.post(b'{"query":"left"}')
            while not provider.requests:
                answer.wait(0.001)
        asked(proxy.endpoint, {"query": "stayed"})  # by now the server has noticed
        answer.set()
        proxy.wait(lambda: proxy.recorder.journal.total == 2)
    assert [json.loads(one.request.body)["query"] for one in proxy.kept] == ["stayed", "left"]


def test_call_under_way_ends_when_the_proxy_stops(provider):
    provider.play([hang])
    with proxied(provider.endpoint) as proxy, Wire(proxy.server.port) as wire:
        wire.post(b'{"query":"a"}')
        while not provider.requests:
            threading.Event().wait(0.001)
        proxy.server.stop()
        assert wire.rest() == b""
    assert proxy.kept == []
    assert [call.reply.status for call in proxy.recorder.journal.calls] == [503]
    assert provider.idle.wait(10)


def test_connection_that_the_upstream_closed_meanwhile_is_not_used(provider):
    with proxied(provider.endpoint) as proxy:
        for n in range(20):
            provider.play([GOOD, close])  # without a word about it
            assert asked(proxy.endpoint, {"query": str(n)})[0][0] == 200
            assert provider.idle.wait(10)
    assert [json.loads(one.request.body)["query"] for one in proxy.kept] == [str(n) for n in range(20)]
    assert len(provider.requests) == 20


def test_client_that_leaves_again_and_again_leaves_nothing_behind(provider):
    with proxied(provider.endpoint) as proxy:
        for n in range(50):
            with Wire(proxy.server.port) as wire:
                wire.post(encode_json({"query": str(n)}))
        proxy.wait(lambda: proxy.recorder.journal.total == 50)
    assert proxy.recorder._calls == set()
    assert sorted(int(json.loads(one.request.body)["query"]) for one in proxy.kept) == list(range(50))
    assert provider.idle.wait(10)


def test_exception_of_the_recorder_itself_is_not_hidden(provider):
    def keep(recorded):
        raise LookupError("a mistake of memmock")

    proxy = Proxy(provider.endpoint, keep)
    with proxy.server:
        assert asked(proxy.endpoint, {"query": "a"})[0][0] == 500
    with pytest.raises(LookupError, match="a mistake of memmock"):
        proxy.server.check()


def test_path_that_cannot_be_is_refused():
    with pytest.raises(MemmockError, match="the path must start with /"):
        Recorder(Upstream("http://p"), [].append, redactor=Redactor(), path="x")


def test_32_clients_lose_nothing_and_mix_nothing_up(httpserver, tmp_path):
    def echo(request):
        return Response(
            encode_json({"memories": [{"summary": request.json["query"]}]}), content_type="application/json"
        )

    httpserver.expect_request("/memory_retrieval").respond_with_handler(echo)
    file = tmp_path / "c.yaml"
    with Recording(file) as recording:
        with proxied(httpserver.url_for("/memory_retrieval"), recording.append) as proxy:

            def work(client):
                connection = connected(proxy.endpoint)
                for n in range(8):
                    status, body = post(connection, proxy.endpoint, {"query": f"{client}/{n}"})
                    assert (status, json.loads(body)) == (200, {"memories": [{"summary": f"{client}/{n}"}]})
                connection.close()

            in_threads(32, work)
        assert proxy.recorder.failures == []
    cassette = Cassette(load(file), repeats="none")
    assert len(cassette) == 32 * 8
    for client in range(32):
        for n in range(8):
            number = cassette.play(asking(f"{client}/{n}"))
            assert (
                json.loads(cassette.interactions[number - 1].reply.body)["memories"][0]["summary"]
                == f"{client}/{n}"
            )
    assert cassette.unplayed == []


def test_recorder_serves_many_calls_at_once(provider):
    all_here = threading.Barrier(16)
    for _ in range(16):
        provider.play([lambda wire: all_here.wait(PATIENCE_S), GOOD])
    kept = []
    recorder = Recorder(
        Upstream(provider.endpoint), kept.append, redactor=Redactor(), path="/memory_retrieval"
    )

    async def run():
        replies = await asyncio.gather(*(recorder(asking(str(n))) for n in range(16)))
        await recorder.close()
        return replies

    assert {reply.body for reply in asyncio.run(run())} == {GOOD_BODY}
    assert len(kept) == 16


def test_request_is_recorded_as_it_was_forwarded(provider):
    sent = Request(
        "PUT", "/memory_retrieval", (("Host", "proxy"), ("X-A", "1"), ("Connection", "X-A")), b"text"
    )
    _, kept, _ = recorded_from(provider.endpoint, [sent])
    host = f"127.0.0.1:{provider.port}"
    assert kept[0].request == Request(
        "PUT", "/memory_retrieval", (("Host", host), ("Content-Length", "4")), b"text"
    )
