"""Replay: recorded replies as they were, and a miss that says what is nearest."""

from __future__ import annotations

import gzip
import http.client
import importlib.util
import json
import socket
import threading
import time
import zlib
from pathlib import Path

import pytest
import requests
import vcr
from vcr.errors import CannotOverwriteExistingCassetteException

from memmock.cassette import Cassette, Interaction, Miss
from memmock.cassette_file import load, save
from memmock.codings import is_encoded
from memmock.http import AT_ONCE, Reply, Request, encode_json
from memmock.matching import Difference, Matcher
from memmock.replay import Replay, explained, missed, played_headers
from memmock.server import Server
from tests.cassette_clients import (
    PATIENCE_S,
    asked,
    asking,
    connected,
    gzipped,
    in_threads,
    post,
    recorded,
    recorded_from,
    summaries,
)
from tests.raw_provider import RawProvider, chunked, head, sized
from tests.wire import Wire

CASSETTES = Path(__file__).parent.parent / "fixtures" / "cassettes"


def replies_of_the_fixtures():
    spec = importlib.util.spec_from_file_location("record_cassettes", CASSETTES / "record.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.REPLIES


def error_of(reply):
    assert reply.status == 404
    return json.loads(reply.body)["error"]


# ---- hits


def test_recorded_reply_is_played():
    replay = Replay(Cassette([recorded("a"), recorded("b")]))
    assert [summaries(replay(asking(query))) for query in "ba"] == [["answer to b"], ["answer to a"]]


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [("last", ["1", "2", "2", "2"]), ("cycle", ["1", "2", "1", "2"]), ("none", ["1", "2", 404, 404])],
)
def test_repeated_retrieval_is_played_in_order_and_then_as_set(repeats, expected):
    replay = Replay(Cassette([recorded("a", "1"), recorded("a", "2")], repeats=repeats))
    replies = [replay(asking("a")) for _ in range(4)]
    assert [404 if reply.status == 404 else summaries(reply)[0] for reply in replies] == expected


def test_path_that_is_set_stands_for_the_recorded_one_and_may_have_a_prefix():
    replay = Replay(Cassette([recorded("a")], matcher=Matcher(["query"])), paths=["/here"])
    assert replay(asking("a")._replace(target="/gw/here?x=1")).status == 200
    assert error_of(replay(asking("a"))) == {
        "code": "not_found",
        "message": "nothing is here; the path is /here",
    }


def test_journal_says_which_interaction_was_played():
    replay = Replay(Cassette([recorded("a"), recorded("b")]), names=["interaction 1 of x.yaml"])
    for query in "abc":
        replay(asking(query))
    calls = [(call.recording, call.reply.status) for call in replay.journal.calls]
    assert calls == [("interaction 1 of x.yaml", 200), ("interaction 2", 200), ("", 404)]


def test_reply_is_sent_at_once_and_as_late_as_recorded_on_request():
    cassette = Cassette([recorded("a", elapsed_ms=1500), recorded("b")])
    assert Replay(cassette)(asking("a")).delivery == AT_ONCE
    late = Replay(cassette, latency=True)
    assert late(asking("a")).delivery.delay_s == 1.5
    assert late(asking("b")).delivery == AT_ONCE
    assert late(asking("c")).delivery == AT_ONCE


def test_latency_is_that_of_the_recording_and_noted_in_the_journal():
    replay = Replay(Cassette([recorded("a", elapsed_ms=150)]), latency=True)
    with Server(replay) as server:
        start = time.monotonic()
        assert asked(f"{server.url}/memory_retrieval", {"query": "a"})[0][0] == 200
        assert time.monotonic() - start >= 0.15
        assert replay.journal.wait(lambda: replay.journal.calls[0].over, PATIENCE_S)
    (call,) = replay.journal.calls
    assert (call.sent.how, call.elapsed_s >= 0.15, call.duration_s < 0.15) == ("completed", True, True)


def test_client_that_does_not_wait_for_a_late_reply_is_noted():
    replay = Replay(Cassette([recorded("a", elapsed_ms=60_000)]), latency=True)
    with Server(replay) as server:
        with Wire(server.port) as wire:
            wire.post(asking("a").body)
            assert replay.journal.wait(lambda: replay.journal.total == 1, PATIENCE_S)
        assert replay.journal.wait(lambda: replay.journal.calls[0].over, PATIENCE_S)
    assert replay.journal.calls[0].sent.how == "client closed"


# ---- misses


def test_miss_names_the_nearest_recording_and_what_differs():
    replay = Replay(Cassette([recorded("a"), recorded("b", memory_types=["preference"])]))
    reply = replay(asking("b", memory_types=["profile"]))
    assert error_of(reply) == {
        "code": "not_recorded",
        "message": 'nearest is interaction 2: memory_types expected ["preference"] received ["profile"]',
        "nearest": {
            "interaction": "interaction 2",
            "played": 0,
            "differences": [{"field": "memory_types", "expected": ["preference"], "received": ["profile"]}],
        },
    }


def test_miss_says_whether_the_nearest_was_played():
    replay = Replay(Cassette([recorded("a")], repeats="none"), names=["interaction 1 of x.yaml"])
    replay(asking("a"))
    assert error_of(replay(asking("b"))) == {
        "code": "not_recorded",
        "message": 'nearest is interaction 1 of x.yaml, already played: query expected "a" received "b"',
        "nearest": {
            "interaction": "interaction 1 of x.yaml",
            "played": 1,
            "differences": [{"field": "query", "expected": "a", "received": "b"}],
        },
    }
    assert error_of(replay(asking("a"))) == {
        "code": "not_recorded",
        "message": "no recording is left: interaction 1 of x.yaml answers it, already played",
        "nearest": {"interaction": "interaction 1 of x.yaml", "played": 1, "differences": []},
    }


def test_miss_of_an_empty_cassette_says_so():
    assert error_of(Replay(Cassette())(asking())) == {
        "code": "not_recorded",
        "message": "there is no recording at all",
    }


def test_explanation_is_a_line_and_one_for_each_difference():
    miss = Miss(asking(), 3, [Difference("query", "a", "b"), Difference("max_results", None, 3)], 2)
    assert explained(miss, "number {}".format) == [
        "nearest is number 3, played 2 times already:",
        'query          expected "a"   received "b"',
        "max_results    expected nothing   received 3",
    ]


def test_secret_of_a_request_that_was_not_recorded_is_not_repeated():
    replay = Replay(Cassette([recorded("a")], matcher=Matcher(["query", "target"])))
    request = asking("b")._replace(
        target="/memory_retrieval?token=s3cr3t-value", headers=(("Authorization", "Bearer s3cr3t-value"),)
    )
    assert b"s3cr3t" not in replay(request).body


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"null", b'{"query":"\\ud800"}', b'{"query":1e999}',
     b'{"max_results":' + b"9" * 5000 + b"}", b'{"query":' + b"[" * 990 + b"]" * 990 + b"}", b"[" * 100_000],
)  # fmt: skip
def test_any_request_is_told_what_is_nearest(body):
    error = error_of(Replay(Cassette([recorded("a")]))(asking()._replace(body=body)))
    assert (error["code"], error["nearest"]["interaction"]) == ("not_recorded", "interaction 1")


@pytest.mark.parametrize("coding", ["br", "gzip", "deflate"])
def test_request_that_cannot_be_unpacked_is_a_miss(coding):
    request = asking()._replace(headers=(("Content-Encoding", coding),), body=b"\xff\xff")
    assert error_of(Replay(Cassette([recorded("a")]))(request))["code"] == "not_recorded"


def test_packed_request_is_looked_up_unpacked():
    request = asking("a")._replace(headers=(("Content-Encoding", "gzip"),), body=gzipped(asking("a").body))
    assert Replay(Cassette([recorded("a")]))(request).status == 200


def test_other_handler_may_answer_what_was_not_recorded():
    replay = Replay(Cassette([recorded("a")]), otherwise=lambda request: Reply(299))
    assert [replay(asking(query)).status for query in "ab"] == [200, 299]
    assert len(replay.journal.calls) == 1


def test_other_choice_may_be_made_of_what_is_played():
    replay = Replay(Cassette([recorded("a"), recorded("b")]), play=lambda request: 2)
    assert summaries(replay(asking("x"))) == ["answer to b"]


def test_miss_never_reaches_a_network(monkeypatch):
    replay = Replay(Cassette([recorded("a")]))

    def refused(*args, **kwargs):
        raise AssertionError("a network was asked for")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refused)
    assert [replay(asking(query)).status for query in "ab"] == [200, 404]


def test_miss_in_a_large_cassette_does_not_hold_up_the_others():
    cassette = Cassette(
        [recorded(f"用户喜欢的第{n}种茶", memory_types=["preference"]) for n in range(10_000)]
    )
    replay = Replay(cassette)
    start = time.perf_counter()
    for n in range(20):
        assert replay(asking(f"新的问题{n}")).status == 404
    assert time.perf_counter() - start < 20 * 0.1


# ---- byte for byte


@pytest.mark.parametrize(
    "file",
    sorted(
        path.name
        for path in CASSETTES.iterdir()
        if path.suffix in (".yaml", ".json") and path.stem != "broken"
    ),
)
def test_cassette_of_vcrpy_is_replayed_byte_for_byte(file):
    contents = {**(known := replies_of_the_fixtures()), "/gzip": known["/plain"]}
    interactions = load(CASSETTES / file)
    with Server(Replay(Cassette(interactions, matcher=Matcher(["method", "target", "body"])))) as server:
        for one in interactions:
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            client.request(
                one.request.method, one.request.target, one.request.body, {"Content-Type": "application/json"}
            )
            reply = client.getresponse()
            body = reply.read()
            client.close()
            assert reply.status == one.reply.status
            assert reply.headers.get_all("Set-Cookie") == [
                v for k, v in one.reply.headers if k.lower() == "set-cookie"
            ]
            assert reply.headers["X-Name"].encode("latin-1").decode() == "阿澈"
            assert int(reply.headers["Content-Length"]) == len(body)
            if reply.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            assert body == contents[one.request.path]
    server.check()


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzipped),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body)[2:-4]),
        ("gzip", bytes),
        ("deflate", bytes),
    ],
)
def test_packed_recording_is_understood_by_a_client_that_unpacks(coding, pack):
    body = encode_json({"memories": [{"summary": "用户喜欢茶"}]})
    reply = Reply(200, (("Content-Encoding", coding),), pack(body))
    with Server(Replay(Cassette([recorded("a")._replace(reply=reply)]))) as server:
        got = requests.post(f"{server.url}/memory_retrieval", asking("a").body, timeout=PATIENCE_S)
    assert got.content == body
    assert got.headers.get("Content-Encoding") == (None if pack is bytes else coding)


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_recording_is_replayed_as_it_came(tmp_path, suffix):
    packed = gzipped(b'{"memories":[]}')
    cookies = ["Set-Cookie: a=1", "Set-Cookie: b=2"]
    scripts = [
        sized('{"memories":[{"summary":"用户喜欢茶 \U0001f319"}]}'.encode(), "X-Name: caf\xe9", *cookies),
        sized(packed, "Content-Encoding: gzip", "Content-Type: application/json"),
        sized(bytes(range(256)), "Content-Type: application/octet-stream"),
        chunked(b"line one\r\n", b"line two\n", b" \t\x0b\xe2\x80\xa8"),
        sized(b"", "X-Empty: "),
        head(status="204 No Content"),
        sized(b'{"error":{"code":"busy"}}', status="503 Service Unavailable"),
        sized("\ufeff{}".encode()),
        sized(b"- yaml: [\n%YAML 1.1\n---\n...\n"),
        sized(b"<<<<<<< ours\n=======\n>>>>>>> theirs\n"),
    ]  # fmt: skip
    scripts[0] = scripts[0].replace("caf\xe9".encode(), b"caf\xe9")
    file = tmp_path / f"c.{suffix}"
    requests = [asking(str(n)) for n in range(len(scripts))]
    with RawProvider() as provider:
        provider.play(*[[script] for script in scripts])
        live, kept, _ = recorded_from(provider.endpoint, requests)
    assert len(kept) == len(scripts)
    save(file, kept)
    replay = Replay(Cassette(load(file)))
    for request, reply in zip(requests, live, strict=True):
        played = replay(request)
        body = gzip.decompress(reply.body) if reply.header("Content-Encoding") else reply.body
        assert (played.status, played.body) == (reply.status, body)
        shown = [(name, "***" if name == "Set-Cookie" else value) for name, value in reply.headers]
        assert sorted(played.headers) == sorted(pair for pair in shown if pair[0] != "Content-Encoding")


def test_query_string_in_any_form_is_found_again(tmp_path):
    targets = [
        f"/memory_retrieval?q={text}"
        for text in ("%E7%A7%B0", "\xe7\xa7\xb0", "a+b%20c", "'\"[]{}|", "", "?&&=")
    ]
    calls = [asking()._replace(target=target) for target in targets]
    with RawProvider() as provider:
        provider.play(*[[sized(str(n).encode())] for n in range(len(calls))])
        _, kept, _ = recorded_from(provider.endpoint, calls)
    save(tmp_path / "c.yaml", kept)
    replay = Replay(Cassette(load(tmp_path / "c.yaml"), matcher=Matcher(["target"])))
    assert [int(replay(call).body) for call in calls] == list(range(len(calls)))


def test_recording_is_replayed_by_vcrpy(tmp_path):
    file = tmp_path / "c.yaml"
    body = '{"memories":[{"summary":"用户喜欢茶"}]}'.encode()
    packed = sized(
        gzipped(body), "Content-Encoding: gzip", "Content-Type: application/json", "X-A: 1", "X-A: 2"
    )
    with RawProvider() as provider:
        provider.play([packed])
        _, kept, _ = recorded_from(provider.endpoint, [asking()])
        url = provider.endpoint
    save(file, kept)
    with vcr.use_cassette(str(file), record_mode="none") as cassette:
        reply = requests.post(url, asking().body, timeout=PATIENCE_S)
        with pytest.raises(CannotOverwriteExistingCassetteException):
            requests.post(url, asking().body, timeout=PATIENCE_S)
    assert (reply.content, reply.headers["X-A"], cassette.all_played) == (body, "1, 2", True)


@pytest.mark.parametrize(
    ("coding", "body", "encoded"),
    [
        ("gzip", gzipped(b"{}"), True),
        ("x-gzip", gzipped(b"{}"), True),
        ("GZIP", b"{}", False),
        ("gzip", b"", False),
        ("deflate", zlib.compress(b"{}"), True),
        ("deflate", zlib.compress(b"{}")[2:-4], True),
        ("deflate", b"{}", False),
        ("deflate", b'{"memories":[]}', False),
        ("deflate", zlib.compress(bytes(8 * 1024 * 1024), wbits=-15), True),
        ("br", b"\x0b\x02\x80{}\x03", True),
        ("br", b"{}", False),
        ("identity, gzip", gzipped(b"{}"), True),
    ],
)
def test_coding_is_told_only_of_a_body_that_has_it(coding, body, encoded):
    assert is_encoded(body, coding) is encoded
    headers = (("Content-Type", "x"), ("content-encoding", coding))
    assert played_headers(Reply(200, headers, body)) == (headers if encoded else headers[:1])


def test_framing_of_the_recording_is_not_played():
    headers = (
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "7"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("ETag", "x"),
    )
    assert played_headers(Reply(200, headers, b"{}")) == (("ETag", "x"),)


@pytest.mark.parametrize("status", [204, 304])
def test_reply_without_a_body_keeps_the_connection_in_order(status):
    one = Interaction(asking("a"), "http://p/memory_retrieval", Reply(status, (("ETag", "x"),)))
    with Server(Replay(Cassette([one, recorded("b")]))) as server, Wire(server.port) as wire:
        for query, expected in (("a", status), ("b", 200)):
            wire.post(asking(query).body)
            assert wire.answer().status == expected


def test_reply_to_a_recorded_head_has_no_body():
    request = Request("HEAD", "/memory_retrieval")
    one = Interaction(request, "http://p/memory_retrieval", Reply(200, (("Content-Length", "9"),)))
    with Server(Replay(Cassette([one, recorded("b")]))) as server, Wire(server.port) as wire:
        wire.send(b"HEAD /memory_retrieval HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.answer(body=False).status == 200
        wire.post(asking("b").body)
        assert wire.answer().status == 200


# ---- many at once


def test_32_clients_play_everything_once():
    clients, calls = 32, 8
    cassette = Cassette([recorded(f"{n % 16}", str(n)) for n in range(clients * calls)], repeats="none")
    replay = Replay(cassette)
    found, lock = [], threading.Lock()
    before = threading.active_count()
    with Server(replay) as server:
        endpoint = f"{server.url}/memory_retrieval"

        def work(client):
            connection = connected(endpoint)
            for n in range(calls):
                status, body = post(
                    connection, endpoint, {"query": f"{(client * calls + n) % 16}", "live_id": str(client)}
                )
                assert status == 200
                with lock:
                    found.append(int(json.loads(body)["memories"][0]["summary"]))
            assert post(connection, endpoint, {"query": "x"})[0] == 404
            connection.close()

        in_threads(clients, work)
    server.check()
    assert sorted(found) == list(range(clients * calls))
    assert cassette.plays == [1] * len(cassette)
    assert replay.journal.total == clients * (calls + 1)
    assert threading.active_count() == before


def test_32_threads_play_everything_once():
    cassette = Cassette([recorded("a", str(n)) for n in range(32 * 8)], repeats="none")
    replay, found = Replay(cassette), []
    in_threads(32, lambda thread: found.extend([summaries(replay(asking("a")))[0] for _ in range(8)]))
    assert sorted(map(int, found)) == list(range(32 * 8))


def test_missed_names_the_recording_by_what_it_is_called():
    reply = missed(Miss(asking(), 2, [], 3), "the {}. one".format)
    assert error_of(reply)["message"] == "no recording is left: the 2. one answers it, played 3 times already"
    assert reply.body == encode_json(json.loads(reply.body))
