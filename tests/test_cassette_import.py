"""Recordings of other tools: read whole, or refused with the place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memmock import cassette_import
from memmock.cassette_file import save
from memmock.cassette_import import is_cassetter, read
from memmock.errors import MemmockError

IMPORTS = Path(__file__).parent.parent / "fixtures" / "imports"


# ---- cassetter


@pytest.mark.parametrize("name", ["cassetter.yaml", "cassetter.toml"])
def test_recordings_of_cassetter_are_read_whole(name):
    found = read(IMPORTS / name).interactions
    by_kind = {each.request.target.rpartition("=")[2]: each for each in found}
    asked = json.loads(by_kind["json"].request.body)
    assert asked == {"query": "用户喜欢灵绯怎么称呼自己", "memory_types": ["preference"], "max_results": 1}
    [memory] = json.loads(by_kind["json"].reply.body)["memories"]
    assert memory["summary"] == "用户希望灵绯叫他阿澈。"
    assert memory["updated_at"] == "2026-05-11T20:15:00+08:00"
    assert [by_kind[kind].reply.status for kind in ("json", "error", "empty")] == [200, 503, 204]
    assert by_kind["text"].reply.body == "没查到\n".encode()
    assert by_kind["bytes"].reply.body == b"\xff\xfe\x00\x01"
    assert by_kind["empty"].reply.body == b""
    assert (
        by_kind["floats"].reply.body == b'{"memories":[],"took":1.0,"more":null,"big":12345678901234567890}'
    )
    assert {each.request.body for each in found if "?" not in each.request.target} == {
        b"plain words",
        b"query=a+form",
    }
    assert by_kind["json"].reply.header("X-Twice") == "one, two"
    assert by_kind["json"].reply.header("Content-Length") == str(len(by_kind["json"].reply.body))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", by_kind["json"].recorded_at)


def test_what_is_not_http_is_told():
    assert read(IMPORTS / "cassetter.yaml").left_out == ["1 gRPC interaction", "1 WebSocket interaction"]
    assert read(IMPORTS / "cassetter.toml").left_out == []


def cassetter(content, *, kind="json", more=""):
    return f"""version: 1
interactions:
- request:
    method: POST
    uri: http://a/b
    headers: {{}}
    body:
      type: {kind}
      content: {content}
  response:
    status: 200
    headers: {{}}
    body:
      type: none
{more}"""


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("12:30:45", '"12:30:45"'),
        ("190:20:30.5", '"190:20:30.5"'),
        ("=", '"="'),
        ("<<", '"<<"'),
        ("2026-01-01", '"2026-01-01"'),
        ("1.0e+25", "1e+25"),
        ("-3", "-3"),
        ("{=: 1}", '{"=":1}'),
        ("null", "null"),
        ('"on"', '"on"'),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path, written, means):
    file = tmp_path / "a.yaml"
    file.write_text(cassetter(written))
    assert read(file).interactions[0].request.body == means.encode()


def test_a_cassette_with_calls_of_other_kinds_only_has_no_interactions(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("version: 1\ninteractions: []\nws_interactions: [{}, {}]\nobserved_requests: [{}]\n")
    assert read(file) == ([], ["2 WebSocket interactions", "1 observed request"])
    file.write_text("version: 1\ngrpc_interactions: [{}]\n")
    assert read(file) == ([], ["1 gRPC interaction"])


def test_a_cassette_of_vcrpy_is_told_apart(tmp_path):
    interactions = read(IMPORTS / "browser.har").interactions
    for name in ("a.yaml", "a.json"):
        save(tmp_path / name, interactions)
        assert not is_cassetter(tmp_path / name)
    assert is_cassetter(IMPORTS / "cassetter.yaml")


@pytest.mark.parametrize("text", ["[1]", "interactions: []", "interactions: [1]", "a: b: c"])
def test_other_files_are_not_of_cassetter(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text)
    assert not is_cassetter(tmp_path / "a.yaml")


BAD_YAML = [
    (
        "method",
        cassetter("1").replace("POST", "'P ST'"),
        ':4: interactions[0].request.method must be a method of HTTP, not "P ST"',
    ),
    (
        "uri",
        cassetter("1").replace("http://a/b", "/b"),
        ':5: interactions[0].request.uri must be an absolute address of http or https, not "/b"',
    ),
    (
        "host",
        cassetter("1").replace("http://a/b", "'http://[b'"),
        ':5: interactions[0].request.uri must be an absolute address of http or https, not "http://[b"',
    ),
    (
        "status",
        cassetter("1").replace("200", "1200"),
        ":11: interactions[0].response.status must be a status of HTTP, not 1200",
    ),
    (
        "kind",
        cassetter("1", kind="xml"),
        ':8: interactions[0].request.body must be of type json, text, binary or none, not "xml"',
    ),
    ("nan", cassetter(".nan"), ":9: interactions[0].request.body.content holds what JSON cannot carry"),
    (
        "text",
        cassetter("[1]", kind="text"),
        ":9: interactions[0].request.body.content must be text, not a list",
    ),
    (
        "binary",
        cassetter("xyz", kind="binary"),
        ":9: interactions[0].request.body.content must be hexadecimal digits",
    ),
    (
        "half",
        cassetter('"\\ud800"', kind="text"),
        ":9: not YAML: found invalid Unicode character escape code (column 19)",
    ),
    (
        "headers",
        cassetter("1").replace("headers: {}", "headers: {x: y}"),
        ':6: interactions[0].request.headers.x must be a list, not "y"',
    ),
    (
        "header name",
        cassetter("1").replace("headers: {}", "headers: {x y: [z]}"),
        ':6: interactions[0].request.headers["x y"] must be the name of a header, not "x y"',
    ),
    (
        "header value",
        cassetter("1").replace("headers: {}", "headers: {x: [1]}"),
        ":6: interactions[0].request.headers.x must be text, not 1",
    ),
    (
        "line break",
        cassetter("1").replace("headers: {}", 'headers: {x: ["a\\nb"]}'),
        ":6: interactions[0].request.headers.x holds a line break or NUL, which no header can",
    ),
    ("item", cassetter("1", more="- 1\n"), ":15: interactions[1] must be a mapping, not 1"),
    ("version", cassetter("1").replace("version: 1", "version: 2"), ":1: version must be 1, not 2"),
    ("list", "version: 1\ninteractions: 1\nws_interactions: []\n", ":2: interactions must be a list, not 1"),
]


@pytest.mark.parametrize(
    ("text", "error"), [case[1:] for case in BAD_YAML], ids=[case[0] for case in BAD_YAML]
)
def test_mistakes_in_a_cassette_of_cassetter_have_their_line(tmp_path, text, error):
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(MemmockError) as caught:
        read(file)
    assert str(caught.value) == f"{file}{error}"


BAD_TOML = [
    (
        "syntax",
        "version = 1\n[[interactions]\n",
        ":2: not TOML: Expected ']]' at the end of an array declaration (column 15)",
    ),
    ("cut off", 'version = 1\na = "', ": not TOML: Unterminated string"),
    ("no version", "a = 1\n", ": version must be 1, not null"),
    ("no list", "version = 1\n", ": interactions must be a list, not null"),
    (
        "item",
        "version = 1\n[[interactions]]\na = 1\n",
        ":2: interactions[0].request must be a mapping, not null",
    ),
    ("inline", "version = 1\ninteractions = [1]\n", ": interactions[0] must be a mapping, not 1"),
    ("empty", " \n", ": the file is empty"),
]


@pytest.mark.parametrize(
    ("text", "error"), [case[1:] for case in BAD_TOML], ids=[case[0] for case in BAD_TOML]
)
def test_mistakes_in_toml_have_their_line_where_it_is_known(tmp_path, text, error):
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(MemmockError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}{error}")


def test_bodies_and_times_of_toml(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(
        "version = 1\n[[interactions]]\nrecorded_at = 2026-05-11T20:15:00+08:00\n"
        "[interactions.request]\nmethod = 'POST'\nuri = 'http://a'\nbody_type = 'json'\n"
        "body_content = '{\"a\": 1}'\n"
        "[interactions.response]\nstatus = 200\nbody_type = 'none'\n"
    )
    [found] = read(file).interactions
    assert (found.request.target, found.request.body) == ("/", b'{"a": 1}')
    assert found.recorded_at == "2026-05-11T12:15:00.000Z"


# ---- HAR


def test_entries_of_a_browser_are_read():
    found, left_out = read(IMPORTS / "browser.har")
    assert left_out == [
        "entry 3: there was no response",
        "entry 4: a WebSocket",
        "entry 5: the body of its response was not saved",
        "entry 6: not HTTP, but data:",
    ]
    first, second = found
    assert first.uri == "https://provider.example/memory_retrieval?tenant=7"
    assert first.request.target == "/memory_retrieval?tenant=7"
    assert json.loads(first.request.body)["query"] == "用户和灵绯之前约定的暗号"
    assert [name for name, _ in first.request.headers][:2] == ["accept", "accept-encoding"]
    assert json.loads(first.reply.body)["memories"][0]["id"] == "m-2"
    assert first.reply.headers == (
        ("content-type", "application/json"),
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=2; Path=/"),
        ("x-shard", "one"),
        ("x-shard", "two"),
    )
    assert (first.recorded_at, first.elapsed_ms) == ("2026-11-30T01:15:02.104Z", 41.215)
    assert second.reply.body == "稍后再试".encode("gbk")
    assert second.reply.headers == (("Content-Type", "text/plain; charset=gbk"), ("Content-Length", "8"))
    assert (second.reply.status, second.reason) == (503, "Service Unavailable")


def har(tmp_path, request=(), response=(), **entry):
    request = {"method": "POST", "url": "http://a/b", "headers": [], **dict(request)}
    if response is not None:
        response = {"status": 200, "headers": [], "content": {}, **dict(response)}
    file = tmp_path / "a.har"
    entry = {"request": request, "response": response, **entry}
    file.write_text(json.dumps({"log": {"entries": [entry]}}, indent=1))
    return file


def test_a_form_without_its_text_is_put_together(tmp_path):
    params = [{"name": "query", "value": "tea & 茶"}, {"name": "n"}, 1]
    [found] = read(har(tmp_path, {"postData": {"params": params}})).interactions
    assert found.request.body == b"query=tea+%26+%E8%8C%B6&n="


@pytest.mark.parametrize(
    ("mime", "body"),
    [
        ("text/plain", "é".encode()),
        ("text/plain; charset=latin-1", b"\xe9"),
        ("text/plain; charset=no", "é".encode()),
        ("text/plain; charset=ascii", "é".encode()),
        ("text/plain; charset=hex", "é".encode()),
    ],
)
def test_text_is_put_back_into_its_charset(tmp_path, mime, body):
    [found] = read(har(tmp_path, (), {"content": {"mimeType": mime, "text": "é"}})).interactions
    assert found.reply.body == body


def test_what_is_missing_or_odd_is_left_empty(tmp_path):
    file = har(
        tmp_path,
        {"headers": None},
        {"content": None, "statusText": "a\nb", "headers": [{"name": "X-Name", "value": "茶"}]},
        time=-1,
        startedDateTime="yesterday",
    )
    [found] = read(file).interactions
    assert found.reply.headers == (("X-Name", "茶".encode().decode("latin-1")),)
    assert (found.reason, found.recorded_at, found.elapsed_ms) == ("", "", None)
    [found] = read(har(tmp_path, startedDateTime="0001-01-01T00:00:00+08:00")).interactions
    assert found.recorded_at == ""
    [found] = read(har(tmp_path, startedDateTime="2026-01-01T00:00:00", time=True)).interactions
    assert (found.recorded_at, found.elapsed_ms) == ("2026-01-01T00:00:00.000Z", None)
    assert read(har(tmp_path, response=None)).left_out == ["entry 1: there was no response"]


BAD_HAR = [
    (
        "url",
        {"request": {"url": "/b"}},
        ':7: log.entries[0].request.url must be an absolute address of http or https, not "/b"',
    ),
    ("scheme", {"request": {"url": "ftp://b"}}, None),
    (
        "method",
        {"request": {"method": 1}},
        ":6: log.entries[0].request.method must be a method of HTTP, not 1",
    ),
    (
        "status",
        {"response": {"status": "200"}},
        ':11: log.entries[0].response.status must be a status of HTTP, not "200"',
    ),
    (
        "content",
        {"response": {"content": 1}},
        ":13: log.entries[0].response.content must be a mapping, not 1",
    ),
    (
        "base64",
        {"response": {"content": {"text": "a", "encoding": "base64"}}},
        ":14: log.entries[0].response.content.text must be base64",
    ),
    (
        "text",
        {"response": {"content": {"text": 1}}},
        ":14: log.entries[0].response.content.text must be text, not 1",
    ),
    (
        "half",
        {"response": {"content": {"text": "\ud800"}}},
        "log.entries[0].response.content.text holds half of a surrogate pair",
    ),
    (
        "headers",
        {"response": {"headers": {}}},
        ":12: log.entries[0].response.headers must be a list, not a mapping",
    ),
    (
        "header",
        {"response": {"headers": [1]}},
        ":13: log.entries[0].response.headers[0] must be a mapping, not 1",
    ),
    ("post", {"request": {"postData": 1}}, ":9: log.entries[0].request.postData must be a mapping, not 1"),
]


@pytest.mark.parametrize(
    ("parts", "error"), [case[1:] for case in BAD_HAR], ids=[case[0] for case in BAD_HAR]
)
def test_mistakes_in_a_har_file_have_their_line(tmp_path, parts, error):
    file = har(tmp_path, **parts)
    if error is None:
        assert read(file).left_out == ["entry 1: not HTTP, but ftp:"]
        return
    with pytest.raises(MemmockError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}:")
    assert str(caught.value).endswith(error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"[1]", ":1: the file is no HAR file: it has no list log.entries"),
        (b'{"log":\n {"entries": 1}}', ":1: the file is no HAR file: it has no list log.entries"),
        (b'{"log":\n {"entries": [', ":2: not JSON: Expecting value (column 15)"),
        (b'{"log":\n {"entries": [1]}}', ":2: log.entries[0] must be a mapping, not 1"),
        (b'{"a": 1, "a": 2}', ': /a: the name "a" occurs more than once'),
        (b"\xff", ": not UTF-8 (byte 0xff at offset 0)"),
        (b"", ": the file is empty"),
    ],
)
def test_what_is_no_har_file_is_refused(tmp_path, text, error):
    file = tmp_path / "a.har"
    file.write_bytes(text)
    with pytest.raises(MemmockError) as caught:
        read(file)
    assert str(caught.value).partition(" (")[0] == f"{file}{error}".partition(" (")[0]
    assert file.read_bytes() == text


# ---- files


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    with pytest.raises(MemmockError, match=r"a\.har: No such file or directory$"):
        read(tmp_path / "a.har")
    with pytest.raises(MemmockError, match=r"a\.txt: what is converted ends in .yaml, .yml, .json, .toml or"):
        read(tmp_path / "a.txt")
    (tmp_path / "dir.toml").mkdir()
    with pytest.raises(MemmockError, match=r"dir\.toml: not a file$"):
        read(tmp_path / "dir.toml")
    monkeypatch.setattr(cassette_import, "LARGEST", 1 << 20)
    (tmp_path / "large.har").write_bytes(b" " * (1 << 20) + b"1")
    with pytest.raises(MemmockError, match=r"1 MiB are too much, at most 1 MiB are read$"):
        read(tmp_path / "large.har")


def test_deep_nesting_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(MemmockError, match=r"a\.toml: nested too deeply$"):
        read(tmp_path / "a.toml")
