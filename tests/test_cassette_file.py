"""Cassette files: what vcrpy recorded is read, what is saved vcrpy reads, and nothing is ever lost."""

import base64
import gzip
import json
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import vcr.serialize
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vcr.serializers import jsonserializer, yamlserializer

from memmock import cassette_file, documents
from memmock.cassette import Interaction
from memmock.cassette_file import CassetteError, Recording, load, save, update
from memmock.http import Reply, Request

FIXTURES = Path(__file__).parent.parent / "fixtures" / "cassettes"
SUFFIXES = (".yaml", ".json")


def interaction(number: int = 0, body: bytes | None = None) -> Interaction:
    return Interaction(
        Request("POST", "/memory_retrieval?n=1", (("Content-Type", "application/json"),), b'{"query": "\xe7\xa7\xb0"}'),
        "http://127.0.0.1:8080/memory_retrieval?n=1",
        Reply(200, (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")), b"%d" % number if body is None else body),
        "OK",
        "2026-12-01T12:00:00Z",
        12.5,
        ("RSP-1", "RSP-2"),
    )


THREE = [interaction(0), interaction(1, b"\xff\x00"), interaction(2, "多行\n文本\n".encode())]


def read_by_vcrpy(path):
    serializer = jsonserializer if path.suffix == ".json" else yamlserializer
    return vcr.serialize.deserialize(path.read_text("utf-8"), serializer)[:2]


# ---- what vcrpy recorded

ANSWER = '{"memories": [{"id": "1", "summary": "用户喜欢被叫“阿澈”, isn\'t it? 🌙"}]}'.encode()
INDENTED = (json.dumps(json.loads(ANSWER), ensure_ascii=False, indent=2) + "\n").encode()
ZIPPED = gzip.compress(ANSWER, mtime=0)
BINARY = bytes(range(256))
SPACED = b'{"query": "\\u79f0\\u547c", "memory_types": ["preference"]}'
COMPACT = '{"query":"称呼","memory_types":["preference"]}'.encode()
SORTED = '{"memory_types":["preference"],"query":"称呼"}'.encode()
FILE = '{"query": "称呼", "memory_types": ["preference"]}'.encode()
EMPTY = ("/empty?q=%E7%A7%B0&n=1", b"", b"")


def calls(query, zipped=ANSWER):
    replies = {"/plain": ANSWER, "/gzip": zipped, "/chunked": ANSWER, "/indented": INDENTED, "/binary": BINARY}
    return [(path, query, body) for path, body in replies.items()]


def text_calls(query):
    return [call for call in calls(query) if call[0] not in ("/gzip", "/binary")]


RECORDED = {
    "requests.yaml": [*calls(SPACED), EMPTY],
    "httpx2.yaml": [*calls(COMPACT, ZIPPED), EMPTY],
    "aiohttp.yaml": [*calls(SORTED), ("/plain", SPACED, ANSWER)],
    "urllib3.yaml": [*calls(SPACED), ("/plain", b"\xff\x00\xfe", ANSWER)],
    "http_client.yaml": calls(SPACED, ZIPPED),
    "odd_bodies.yaml": [("/plain", FILE, ANSWER)] * 3,
    "requests.json": [*text_calls(SPACED), EMPTY],
    "httpx2.json": [*text_calls(COMPACT), EMPTY],
    "aiohttp.json": [*text_calls(COMPACT), ("/plain", SPACED, ANSWER)],
}


def test_every_fixture_is_expected():
    assert {file.name for file in FIXTURES.iterdir() if file.suffix != ".py"} - {"__pycache__"} == set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_of_vcrpy_are_read_byte_for_byte(name):
    found = load(FIXTURES / name)
    assert [(one.request.target, one.request.body, one.reply.body) for one in found] == RECORDED[name]
    for one in found:
        empty = one.request.target.startswith("/empty")
        assert one.request.method == ("GET" if empty else "POST")
        assert one.uri == f"http://127.0.0.1:18799{one.request.target}"
        assert (one.reply.status, one.reason) == ((404, "Not Found") if empty else (200, "OK"))
        assert one.reply.header("set-cookie") == "a=1, b=2"
        assert one.reply.header("x-name").encode("latin-1").decode() == "阿澈"
        if "aiohttp" not in name:  # vcrpy records no headers that aiohttp adds
            assert one.request.header("authorization") == "Bearer fixture"
        assert (one.recorded_at, one.elapsed_ms, one.violations) == ("", None, ())


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_recordings_of_vcrpy_can_be_saved_again(name, suffix, tmp_path):
    found = load(FIXTURES / name)
    save(tmp_path / f"again{suffix}", found)
    assert load(tmp_path / f"again{suffix}") == list(map(normal, found))


HEAD = "interactions:\n- request: {method: GET, uri: 'http://h/', %s}\n  response: {%s}\nversion: 1\n"
STATUS = "status: {code: 200, message: OK}"


def one_of(tmp_path, request="body: null", response=STATUS, suffix=".yaml"):
    file = tmp_path / f"one{suffix}"
    file.write_text(HEAD % (request, response), "utf-8")
    return load(file)[0]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("null", b""),
        ("''", b""),
        ("plain", b"plain"),
        ("!!binary /wA=", b"\xff\x00"),
        ("!!python/str text", b"text"),
        ("!!python/unicode 'text'", b"text"),
        ("{b: 1, a: [称, null, 1.5]}", '{"b":1,"a":["称",null,1.5]}'.encode()),
        ("[1, {}]", b"[1,{}]"),
        ("!!python/tuple [1, 2]", b"[1,2]"),
        ("true", b"true"),
        ("2026-12-01", b"2026-12-01"),
        ("{base64_string: /wA=}", b"\xff\x00"),
        ("{base64_string: /wA=, other: 1}", b'{"base64_string":"/wA=","other":1}'),
        ("!!python/object/new:_io.BytesIO {state: !!python/tuple [!!binary /wA=, 1, null]}", b"\xff\x00"),
        ("!!python/object/new:_io.BytesIO {state: !!python/tuple [text, 0, null]}", b"text"),
        ("!!python/object/new:_io.BytesIO {}", b""),
        ("!!python/object/apply:builtins.iter {args: [[!!binary /w==, text]], state: 0}", b"\xfftext"),
        ("!!python/object/apply:builtins.iter {args: [text]}", b"text"),
        ("!!python/object/apply:builtins.iter {}", b""),
        ("&x text, headers: {A: *x}", b"text"),
    ],
)
def test_request_body_of_every_form_is_read(body, expected, tmp_path):
    assert one_of(tmp_path, f"body: {body}").request.body == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (f"body: {{string: text}}, {STATUS}", Reply(200, (), b"text")),
        (f"body: {{string: !!binary /wA=}}, {STATUS}", Reply(200, (), b"\xff\x00")),
        (f"body: {{string: null}}, {STATUS}", Reply(200, (), b"")),
        (f"body: {{base64_string: /wA=}}, {STATUS}", Reply(200, (), b"\xff\x00")),
        (f"body: text, {STATUS}", Reply(200, (), b"text")),
        ("status_code: 404, http_version: HTTP/1.1, headers: {A: b}, content: text", Reply(404, (("A", "b"),), b"text")),
        ("status_code: 200, content: !!binary /wA=", Reply(200, (), b"\xff\x00")),
        (f"headers: {{A: [b, !!binary /w==, c], D: é, E: 称}}, {STATUS}",
         Reply(200, (("A", "b"), ("A", "\xff"), ("A", "c"), ("D", "é"), ("E", "ç§°")))),
        ("status: {code: 204, message: null}", Reply(204)),
    ],
)  # fmt: skip
def test_response_of_every_form_is_read(response, expected, tmp_path):
    assert one_of(tmp_path, response=response).reply == expected


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("http://h", "/"),
        ("HTTPS://h:1/a/b?c=d#e", "/a/b?c=d"),
        ("http://h?x=1", "/?x=1"),
        ("http://h/称 x", "/称 x"),
    ],
)
def test_target_is_what_follows_the_host(uri, target, tmp_path):
    save(tmp_path / "a.yaml", [interaction()._replace(uri=uri)])
    assert [(one.uri, one.request.target) for one in load(tmp_path / "a.yaml")] == [(uri, target)]


@pytest.mark.parametrize(
    ("memmock", "expected"),
    [
        ("{recorded_at: 2026-12-01T12:00:00Z, elapsed_ms: 3, violations: [A, B], more: 1}",
         ("2026-12-01T12:00:00Z", 3, ("A", "B"))),
        ("{recorded_at: [], elapsed_ms: soon, violations: A}", ("", None, ())),
        ("{elapsed_ms: .nan, violations: [1, A, null]}", ("", None, ("A",))),
        ("{elapsed_ms: true}", ("", None, ())),
        ("{elapsed_ms: -1}", ("", None, ())),
        ("nonsense", ("", None, ())),
    ],
)  # fmt: skip
def test_what_memmock_added_is_passed_over_where_it_is_wrong(memmock, expected, tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text((HEAD % ("body: null", STATUS)).replace("version", f"  memmock: {memmock}\nversion"))
    assert load(file)[0][4:] == expected


# ---- round trips


def normal(one: Interaction) -> Interaction:
    """Return what is left of an interaction in a file: headers in the order of names, and no client."""
    target = one.uri.partition("#")[0].partition("://")[2]
    target = target[min((target.find(char) for char in "/?" if char in target), default=len(target)) :]

    def grouped(headers):
        spelled = {}
        for name, _ in headers:
            spelled.setdefault(name.lower(), name)
        return tuple(sorted(((spelled[name.lower()], value) for name, value in headers), key=lambda pair: pair[0]))

    return one._replace(
        request=Request(one.request.method, target if target.startswith("/") else f"/{target}",
                        grouped(one.request.headers), one.request.body),
        reply=Reply(one.reply.status, grouped(one.reply.headers), one.reply.body),
    )  # fmt: skip


any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"))
odd_lines = st.lists(st.sampled_from(["", " ", "a", "  a ", "\t", "# b", "---", "...", "'", '"', "- c: d", "称", "\x85", "\u2028", "\r", "\ufeff"])).map("\n".join)
bodies = st.one_of(st.binary(max_size=60), st.text(st.characters(exclude_categories=["Cs"])).map(str.encode), odd_lines.map(str.encode))
names = st.text("abcXYZ019!#$%&'*+.^_`|~-", min_size=1, max_size=8) | st.sampled_from(
    ["null", "Yes", "-", "~", "=", "1", "1.5", "Set-Cookie", "set-cookie", "x" * 999]
).filter("=".__ne__)
latin_1 = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=20)
headers = st.lists(st.tuples(names, latin_1), max_size=4).map(tuple)
interactions = st.lists(
    st.builds(
        Interaction,
        st.builds(Request, st.sampled_from(["GET", "POST", "NO", "x"]), st.just("/"), headers, bodies),
        any_text.map(lambda text: f"http://h/{text}"),
        st.builds(Reply, st.integers(0, 999), headers, bodies),
        latin_1,
        any_text,
        st.none() | st.floats(0, 1e12).map(lambda value: round(value, 3)),
        st.lists(any_text, max_size=2).map(tuple),
    ),
    max_size=3,
)


@given(interactions)
@settings(max_examples=60, deadline=None)
@example(THREE)
def test_round_trip(found):
    expected = list(map(normal, found))
    with tempfile.TemporaryDirectory() as directory:
        for suffix in SUFFIXES:
            finished = Path(directory) / f"finished{suffix}"
            save(finished, found)
            assert load(finished) == expected
            appended = Path(directory) / f"appended{suffix}"
            with Recording(appended) as recording:
                for one in found:
                    recording.append(one)
                assert load(appended) == expected
                if suffix == ".yaml":
                    assert_vcrpy_reads(appended, expected)
            assert appended.read_bytes() == finished.read_bytes()
            if suffix == ".yaml":
                assert_vcrpy_reads(finished, expected)


def assert_vcrpy_reads(path, expected):
    requests, responses = read_by_vcrpy(path)
    assert len(requests) == len(responses) == len(expected)
    for one, request, response in zip(expected, requests, responses, strict=True):
        assert (request.method, request.uri, request.body or b"") == (one.request.method, one.uri, one.request.body)
        assert dict(request.headers) == {name: value for name, value in reversed(one.request.headers)}
        assert response["status"] == {"code": one.reply.status, "message": one.reason}
        assert response["body"]["string"] == one.reply.body
        values = [(name, value) for name, values in response["headers"].items() for value in values]
        assert values == list(one.reply.headers)


json_text = st.text(st.characters(exclude_categories=["Cs"]))
keys = json_text.filter(lambda text: len(text) < 200)


@given(
    st.dictionaries(
        keys,
        st.recursive(
            st.none() | st.booleans() | st.integers() | json_text | odd_lines | st.binary(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
            max_leaves=8,
        ),
        min_size=1,
    )
)
@settings(max_examples=150, deadline=None)
def test_yaml_text_and_line_are_what_they_were_made_of(value):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert yaml.load(documents.yaml_text(value), loader) == value
    assert yaml.load(documents.yaml_line(value), loader) == value


def test_finished_yaml_is_pinned(tmp_path):
    save(tmp_path / "a.yaml", THREE[1:])
    assert (tmp_path / "a.yaml").read_text("utf-8") == """\
interactions:
- memmock:
    elapsed_ms: 12.5
    recorded_at: '2026-12-01T12:00:00Z'
    violations:
    - RSP-1
    - RSP-2
  request:
    body: '{"query": "称"}'
    headers:
      Content-Type:
      - application/json
    method: POST
    uri: http://127.0.0.1:8080/memory_retrieval?n=1
  response:
    body:
      string: !!binary |
        /wA=
    headers:
      Set-Cookie:
      - a=1
      - b=2
    status:
      code: 200
      message: OK
- memmock:
    elapsed_ms: 12.5
    recorded_at: '2026-12-01T12:00:00Z'
    violations:
    - RSP-1
    - RSP-2
  request:
    body: '{"query": "称"}'
    headers:
      Content-Type:
      - application/json
    method: POST
    uri: http://127.0.0.1:8080/memory_retrieval?n=1
  response:
    body:
      string: |
        多行
        文本
    headers:
      Set-Cookie:
      - a=1
      - b=2
    status:
      code: 200
      message: OK
version: 1
"""


def test_finished_json_is_pinned(tmp_path):
    save(tmp_path / "a.json", [interaction(1, b"\xff\x00")._replace(recorded_at="", elapsed_ms=None, violations=())])
    assert (tmp_path / "a.json").read_text("utf-8") == """\
{
  "interactions": [
    {
      "request": {
        "body": "{\\"query\\": \\"称\\"}",
        "headers": {
          "Content-Type": [
            "application/json"
          ]
        },
        "method": "POST",
        "uri": "http://127.0.0.1:8080/memory_retrieval?n=1"
      },
      "response": {
        "body": {
          "base64_string": "/wA="
        },
        "headers": {
          "Set-Cookie": [
            "a=1",
            "b=2"
          ]
        },
        "status": {
          "code": 200,
          "message": "OK"
        }
      }
    }
  ],
  "version": 1
}
"""


def test_vcrpy_layout_is_kept_by_saving_what_vcrpy_wrote(tmp_path):
    """Apart from what vcrpy escapes or folds, a file stays as it is: no needless difference in a diff."""
    text = (FIXTURES / "http_client.yaml").read_text("utf-8")
    save(tmp_path / "a.yaml", load(FIXTURES / "http_client.yaml"))
    again = (tmp_path / "a.yaml").read_text("utf-8")
    texts = ("string: ", "        isn't it", "        \\  \\ ", '      - "\\xE9', "        ")
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("string: \"") and "isn't" not in line]
    assert set(kept) - set(again.splitlines()) <= {line for line in kept if line.startswith(texts)}
