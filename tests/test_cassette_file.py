"""Cassette files: what vcrpy recorded is read, what is saved vcrpy reads, and nothing is ever lost."""

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
from memmock.http import AT_ONCE, Reply, Request

FIXTURES = Path(__file__).parent.parent / "fixtures" / "cassettes"
SUFFIXES = (".yaml", ".json")


@pytest.fixture(autouse=True, scope="module")
def locks_of_their_own(tmp_path_factory):
    """Keep the locks of hundreds of files that are soon gone out of the directory of the user's."""
    with pytest.MonkeyPatch.context() as patched:
        directory = tmp_path_factory.mktemp("locks")
        patched.setenv("TMPDIR", str(directory))
        patched.setattr(tempfile, "tempdir", None)
        yield


def interaction(number: int = 0, body: bytes | None = None) -> Interaction:
    return Interaction(
        Request(
            "POST",
            "/memory_retrieval?n=1",
            (("Content-Type", "application/json"),),
            b'{"query": "\xe7\xa7\xb0"}',
        ),
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
ZIPPED = bytes.fromhex(  # of ANSWER; another zlib packs it otherwise
    "1f8b0800000000000203ab56ca4dcdcd2fca4c2d56b25288ae56ca4c01d24a864a3a0a4ac5a5b9b989459520fef3292b"
    "9e756c7f3a6dceb3358b5e2c5afdb47ff5a386392f67ec7fb6afe351c35c1d85cce23cf51285cc127b850ff37b662ad5"
    "c6d60200f200c39258000000"
)
BINARY = bytes(range(256))
SPACED = b'{"query": "\\u79f0\\u547c", "memory_types": ["preference"]}'
COMPACT = '{"query":"称呼","memory_types":["preference"]}'.encode()
SORTED = '{"memory_types":["preference"],"query":"称呼"}'.encode()
FILE = '{"query": "称呼", "memory_types": ["preference"]}'.encode()
EMPTY = ("/empty?q=%E7%A7%B0&n=1", b"", b"")


def calls(query, zipped=ANSWER):
    replies = {
        "/plain": ANSWER,
        "/gzip": zipped,
        "/chunked": ANSWER,
        "/indented": INDENTED,
        "/binary": BINARY,
    }
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


OTHERS = {"README.md", "broken.yaml", "record.py", "__pycache__"}


def test_every_fixture_is_expected():
    assert {file.name for file in FIXTURES.iterdir()} - OTHERS == set(RECORDED)


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
        ("status_code: 404, http_version: HTTP/1.1, headers: {A: b}, content: text",
         Reply(404, (("A", "b"),), b"text")),
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
        return tuple(
            sorted(((spelled[name.lower()], value) for name, value in headers), key=lambda pair: pair[0])
        )

    return one._replace(
        request=Request(one.request.method, target if target.startswith("/") else f"/{target}",
                        grouped(one.request.headers), one.request.body),
        reply=Reply(one.reply.status, grouped(one.reply.headers), one.reply.body),
    )  # fmt: skip


any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"))
odd_lines = st.lists(
    st.sampled_from(
        [
            "",
            " ",
            "a",
            "  a ",
            "\t",
            "# b",
            "---",
            "...",
            "'",
            '"',
            "- c: d",
            "称",
            "\x85",
            "\u2028",
            "\r",
            "\ufeff",
        ]
    )
).map("\n".join)
bodies = st.one_of(
    st.binary(max_size=60),
    st.text(st.characters(exclude_categories=["Cs"])).map(str.encode),
    odd_lines.map(str.encode),
)
names = st.text("abcXYZ019!#$%&'*+.^_`|~-", min_size=1, max_size=8) | st.sampled_from(
    ["null", "Yes", "-", "~", "1", "1.5", "Set-Cookie", "set-cookie", "x" * 999]
)
latin_1 = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=20)
headers = st.lists(st.tuples(names, latin_1), max_size=4).map(tuple)
interactions = st.lists(
    st.builds(
        Interaction,
        st.builds(Request, st.sampled_from(["GET", "POST", "NO", "x"]), st.just("/"), headers, bodies),
        any_text.map(lambda text: f"http://h/{text}"),
        st.builds(Reply, st.integers(200, 999), headers, bodies, st.just(AT_ONCE)),
        latin_1,
        any_text,
        st.none() | st.floats(0, 1e12).map(lambda value: round(value, 3)),
        st.lists(any_text, max_size=2).map(tuple),
    ),
    max_size=3,
)


@given(interactions)
@settings(max_examples=30, deadline=None)
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
        assert (request.method, request.uri, request.body or b"") == (
            one.request.method,
            one.uri,
            one.request.body,
        )
        assert dict(request.headers) == dict(reversed(one.request.headers))
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
@settings(max_examples=80, deadline=None)
def test_yaml_text_and_line_are_what_they_were_made_of(value):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    assert yaml.load(documents.yaml_text(value), loader) == value
    assert yaml.load(documents.yaml_line(value), loader) == value


def test_finished_yaml_is_pinned(tmp_path):
    save(tmp_path / "a.yaml", THREE[1:])
    assert (
        (tmp_path / "a.yaml").read_text("utf-8")
        == """\
interactions:
- request:
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
  memmock:
    elapsed_ms: 12.5
    recorded_at: '2026-12-01T12:00:00Z'
    violations:
    - RSP-1
    - RSP-2
- request:
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
  memmock:
    elapsed_ms: 12.5
    recorded_at: '2026-12-01T12:00:00Z'
    violations:
    - RSP-1
    - RSP-2
version: 1
"""
    )


def test_finished_json_is_pinned(tmp_path):
    save(
        tmp_path / "a.json",
        [interaction(1, b"\xff\x00")._replace(recorded_at="", elapsed_ms=None, violations=())],
    )
    assert (
        (tmp_path / "a.json").read_text("utf-8")
        == """\
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
    )


def test_layout_is_that_of_vcrpy(tmp_path):
    """Short text in ASCII looks the same, so that a diff shows what changed."""
    values = [
        *(
            "gzip, deflate",
            "*/*",
            "66",
            "1.5",
            "no",
            "y",
            "a: b",
            "a #b",
            "a:",
            "'a'",
            '"a"',
            "-",
            "a's",
            "",
            " a",
            "~",
        ),
        *(
            "Tue, 01 Dec 2026 12:00:00 GMT",
            "127.0.0.1:8080",
            "{a",
            "@a",
            "x=[1]",
            "2026-12-01",
            "1:30",
            "a ",
            "a  b",
        ),
    ]
    many = tuple((f"H{number:02}", value) for number, value in enumerate(values))
    one = Interaction(Request("POST", "/", many, b'{"a": 1}'), "http://h/", Reply(200, many, b"text"), "OK")
    save(tmp_path / "a.yaml", [one])
    requests, responses = read_by_vcrpy(tmp_path / "a.yaml")
    theirs = vcr.serialize.serialize({"requests": requests, "responses": responses}, yamlserializer)
    assert (tmp_path / "a.yaml").read_text() == theirs


# ---- bad files

BROKEN = yaml.safe_load((FIXTURES / "broken.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case["error"])
def test_broken_file_is_refused_in_one_line(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(Path(case["file"]), case["text"].encode(), case["error"])


def refused(file, content, message):
    """Expect the whole message, and that nobody writes to the file."""
    file.write_bytes(content)
    for attempt in (load, Recording, lambda path: update(path, lambda old: [*old, interaction()])):
        with pytest.raises(CassetteError) as caught:
            attempt(file)
        assert str(caught.value) == message
        assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_yaml_that_is_nested_too_deeply_is_refused(tmp_path):
    file = tmp_path / "deep.yaml"
    says = f"{file}:1: not YAML: exceeded maximum nesting depth (column 1001)"
    refused(file, b"[" * 3000 + b"]" * 3000, says)


def test_few_lines_that_stand_for_very_many_values_are_refused(tmp_path):
    file = tmp_path / "bomb.yaml"
    levels = "".join(f"  l{n}: &l{n} [{', '.join(8 * [f'*l{n - 1}'])}]\n" for n in range(1, 12))
    body = f"x:\n  l0: &l0 [1]\n{levels}" + HEAD % ("body: *l11", STATUS)
    refused(file, body.encode(), f"{file}:13: interactions[0].request.body holds more than 100,000 values")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_not_text_is_refused(suffix, tmp_path):
    file = tmp_path / f"bad{suffix}"
    refused(file, b"interactions\xff", f"{file}: not UTF-8 (byte 0xff at offset 12)")


def test_huge_file_is_refused_unread(tmp_path):
    file = tmp_path / "huge.yaml"
    with file.open("wb") as opened:
        opened.truncate(600 << 20)
    with pytest.raises(CassetteError) as caught:
        load(file)
    assert str(caught.value) == f"{file}: 600 MiB are too much, at most 512 MiB are read"


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "directory.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    for name, says in {
        "directory.yaml": "not a file",
        "pipe.yaml": "not a file",
        "missing.yaml": "No such file or directory",
        "missing/a.yaml": "No such file or directory",
        "cassette.txt": "a cassette ends in .yaml, .yml or .json",
    }.items():
        with pytest.raises(CassetteError) as caught:
            load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {says}"


def test_unreadable_file_is_refused(tmp_path, monkeypatch):
    def denied(path):
        raise PermissionError(13, "Permission denied")

    save(tmp_path / "a.yaml", THREE)
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(CassetteError, match=r"a\.yaml: Permission denied$"):
        load(tmp_path / "a.yaml")


@pytest.mark.parametrize("name", ["ours.yaml", "ours.json", "odd_bodies.yaml", "aiohttp.json"])
def test_file_that_is_cut_off_anywhere_is_an_error_or_whole(name, tmp_path):
    file = tmp_path / name
    if name.startswith("ours"):
        bare = interaction()._replace(
            request=Request("GET", "/"), uri="http://h/", recorded_at="", violations=()
        )
        save(file, [bare, bare._replace(reply=Reply(200, (), "多行\n文本\n".encode()))])
    else:
        file.write_bytes((FIXTURES / name).read_bytes())
    content, whole = file.read_bytes(), load(file)
    for length in range(len(content) - 1):
        if name.startswith("ours") or length % 15 == 0 or len(content) - length < 20:
            file.write_bytes(content[:length])
            with pytest.raises(CassetteError) as caught:
                load(file)
            assert "\n" not in str(caught.value)
    file.write_bytes(content[:-1])
    assert load(file) == whole


# ---- saving

LONG = "a" * 1000


def test_save_keeps_mode_and_makes_directories(tmp_path):
    file = tmp_path / "a" / "b" / "c.yaml"
    save(file, [])
    assert load(file) == []
    assert read_by_vcrpy(file) == ([], [])
    file.chmod(0o640)
    save(file, THREE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["c.yaml"]


def test_save_through_a_link_replaces_the_target(tmp_path):
    save(tmp_path / "a.yaml", [])
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    save(tmp_path / "link.yaml", THREE)
    with Recording(tmp_path / "link.yaml") as recording:
        recording.append(interaction(3))
    assert len(load(tmp_path / "a.yaml")) == 4
    assert (tmp_path / "link.yaml").is_symlink()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_failed_save_keeps_the_old_file(suffix, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    file = tmp_path / f"a{suffix}"
    save(file, THREE)
    old = file.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            if name == "replace":
                patched.setattr(Path, "replace", full)
            for attempt in (
                lambda: save(file, []),
                lambda: update(file, lambda old: []),
                lambda: Recording(file),
            ):
                with pytest.raises(CassetteError) as caught:
                    attempt()
                assert str(caught.value) == f"{file}: not saved: No space left on device"
        assert file.read_bytes() == old
        assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_save_where_nothing_can_be_written_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for path, says in {
        tmp_path / "file" / "a.yaml": "its directory is a file",
        Path("/proc/no/a.yaml"): "No such file or directory",
    }.items():
        with pytest.raises(CassetteError) as caught:
            save(path, THREE)
        assert str(caught.value) == f"{path}: not saved: {says}"
    save(tmp_path / "a.yaml", [])
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CassetteError, match=r"a\.yaml: not saved: the file is read-only$"):
        save(tmp_path / "a.yaml", THREE)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"uri": "/a"}, 'uri must be an absolute address of http or https, not "/a"'),
        ({"request": Request("G T", "/")}, 'method must be a method of HTTP, not "G T"'),
        ({"request": Request("GET", "/", (("a b", "c"),))}, 'headers["a b"] is no name of a header'),
        ({"request": Request("GET", "/", ((LONG, ""),))}, f"headers.{LONG} is no name of a header"),
        (
            {"request": Request("GET", "/", (("a", "b\r\nc"),))},
            "headers.a holds a line break, NUL or half of a surrogate pair, which cannot be sent",
        ),
    ],
)  # fmt: skip
def test_what_could_not_be_read_again_is_not_saved(changed, says, tmp_path):
    wrong = interaction()._replace(**changed)
    for file in (tmp_path / "a.yaml", tmp_path / "a.json"):
        with pytest.raises(CassetteError) as caught:
            save(file, [interaction(), wrong])
        assert str(caught.value) == f"{file}: not saved: interactions[1].request.{says}"
        with Recording(file) as recording:
            with pytest.raises(CassetteError) as caught:
                recording.append(wrong)
            assert str(caught.value) == f"{file}: not saved: request.{says}"
        assert load(file) == []


def test_times_and_codes_that_a_file_cannot_hold_are_left_out(tmp_path):
    odd = interaction()._replace(recorded_at="\ud800", elapsed_ms=float("nan"), violations=("a", "\ud800"))
    for file in (tmp_path / "a.yaml", tmp_path / "a.json"):
        save(file, [odd])
        assert load(file)[0][4:] == ("", None, ("a",))


def test_file_with_another_suffix_is_not_written(tmp_path):
    for attempt in (lambda path: save(path, []), Recording, lambda path: update(path, list)):
        with pytest.raises(CassetteError) as caught:
            attempt(tmp_path / "a.txt")
        assert str(caught.value) == f"{tmp_path / 'a.txt'}: a cassette ends in .yaml, .yml or .json"
    assert not list(tmp_path.iterdir())


def test_text_beyond_latin_1_is_saved_as_the_wire_carries_it(tmp_path):
    save(tmp_path / "a.yaml", [interaction()._replace(reply=Reply(200, (("A", "称"),)), reason="好")])
    one = load(tmp_path / "a.yaml")[0]
    assert one.reply.headers == (("A", "称".encode().decode("latin-1")),)
    assert one.reason == "好".encode().decode("latin-1")


def test_mistake_in_json_has_its_line_whatever_else_is_in_the_file(tmp_path):
    file = tmp_path / "a.json"
    text = '{"interactions": [{"request": {"a": "\\ud83c\\udf19 \x7f",\t"b": 0}}], "version": 1}'
    refused(
        file, text.encode(), f"{file}:1: interactions[0].request.method must be a method of HTTP, not null"
    )
    text = '{"interactions": [], "a": "\\ud83c\\udf19 \x7f",\t\n"version": 2}'
    refused(file, text.encode(), f"{file}:2: version must be 1, not 2")


def test_update_of_no_file_begins_with_nothing(tmp_path):
    update(tmp_path / "new.json", lambda old: [*old, *THREE])
    assert load(tmp_path / "new.json") == THREE


# ---- one writer at a time

ADD = """
import sys
from memmock.cassette_file import load, update
path, name = sys.argv[1:]
for number in range(12):
    update(path, lambda old: [*old, one._replace(reason=f"{name} {number}")])
"""


def run(code, *arguments, **options):
    """Start a process that imports little; in it, `one` is an interaction."""
    imports = "from memmock.cassette import Interaction\nfrom memmock.http import Delivery, Reply, Request\n"
    code = f"{imports}one = {interaction()!r}\n{code}"
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **options)


def test_processes_that_update_at_once_lose_nothing(tmp_path):
    both = [run(ADD, tmp_path / "a.yaml", name) for name in "ab"]
    assert [process.wait(30) for process in both] == [0, 0]
    found = [one.reason for one in load(tmp_path / "a.yaml")]
    assert len(found) == 24
    assert [reason for reason in found if reason[0] == "a"] == [f"a {number}" for number in range(12)]


def test_cassette_that_another_writes_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "a.yaml"
    monkeypatch.setattr(cassette_file, "LOCK_WAIT_S", 0.1)
    with Recording(file):
        for attempt in (lambda: save(file, []), lambda: update(file, list), lambda: Recording(file)):
            with pytest.raises(CassetteError) as caught:
                attempt()
            assert str(caught.value) == (
                f"{file}: another process is writing this cassette: wait until it is done, or record to "
                "another file"
            )
    save(file, [])
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_lock_that_cannot_be_made_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(CassetteError, match=r"a\.yaml: cannot be locked in .*: Not a directory$"):
        save(tmp_path / "a.yaml", [])


# ---- recordings


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_recording_continues_what_is_there(suffix, tmp_path):
    file = tmp_path / f"a{suffix}"
    save(file, THREE[:2])
    with Recording(file) as recording:
        assert load(file) == THREE[:2]
        recording.append(THREE[2])
        assert recording.interactions == THREE == load(file)
    assert load(file) == THREE
    recording.close()
    with pytest.raises(CassetteError, match=r": the recording is closed$"):
        recording.append(THREE[0])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_recording_can_be_read_before_anything_is_recorded(suffix, tmp_path):
    file = tmp_path / f"a{suffix}"
    with Recording(file):
        assert load(file) == []
        assert read_by_vcrpy(file) == ([], [])
    assert load(file) == []


def test_recording_finishes_with_what_is_given(tmp_path):
    with Recording(tmp_path / "a.yaml") as recording:
        for one in THREE:
            recording.append(one)
        recording.finish(THREE[1:])
    assert load(tmp_path / "a.yaml") == recording.interactions == THREE[1:]


def test_recording_that_cannot_be_finished_stays_readable(tmp_path, monkeypatch):
    file = tmp_path / "a.yaml"
    recording = Recording(file)
    recording.append(THREE[0])
    with pytest.raises(CassetteError, match=r"a\.yaml: not saved: interactions\[0\]\.request\.uri must be"):
        recording.finish([THREE[0]._replace(uri="")])
    assert load(file) == THREE[:1]
    save(file, THREE)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("recorded", [0, 1])
def test_append_that_fails_leaves_the_file_as_it_was(suffix, recorded, tmp_path, monkeypatch):
    file = tmp_path / f"a{suffix}"
    recording = Recording(file)
    for one in THREE[:recorded]:
        recording.append(one)
    before = file.read_bytes()

    with monkeypatch.context() as patched:

        def full(*_):
            raise OSError(28, "No space left on device")

        def half(self, at, content):
            patched.undo()
            self._put(at, content[: len(content) // 2])
            full()

        patched.setattr(Recording, "_put", half) if recorded else patched.setattr(os, "fsync", full)
        with pytest.raises(CassetteError) as caught:
            recording.append(interaction(7, b"x" * 1000))
    assert str(caught.value) == f"{file}: not {'recorded' if recorded else 'saved'}: No space left on device"
    assert file.read_bytes() == before
    recording.append(THREE[2])
    assert load(file) == [*THREE[:recorded], THREE[2]]
    recording.close()
    assert load(file) == [*THREE[:recorded], THREE[2]]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_append_that_is_interrupted_leaves_the_file_as_it_was(suffix, tmp_path, monkeypatch):
    file = tmp_path / f"a{suffix}"
    with Recording(file) as recording:
        recording.append(THREE[0])
        before = file.read_bytes()

        def interrupted(self, at, content):
            patched.undo()
            self._put(at, content[:-9])
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Recording, "_put", interrupted)
            with pytest.raises(KeyboardInterrupt):
                recording.append(interaction(7, b"x" * 1000))
        assert file.read_bytes() == before
        recording.append(THREE[1])
        assert load(file) == THREE[:2] == recording.interactions


def test_threads_append_in_one_order(tmp_path):
    file = tmp_path / "a.yaml"
    with Recording(file) as recording:

        def append(first):
            for number in range(first, first + 10):
                recording.append(interaction(number))

        threads = [threading.Thread(target=append, args=(first * 10,)) for first in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = load(file)
        assert found == recording.interactions
    assert load(file) == found
    numbers = [int(one.reply.body) for one in found]
    assert sorted(numbers) == list(range(320))
    for first in range(0, 320, 10):
        assert [number for number in numbers if number // 10 == first // 10] == list(range(first, first + 10))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_append_that_is_torn_anywhere_loses_nothing(suffix, tmp_path):
    """Every prefix of every write, as a kill may leave it."""
    file = tmp_path / f"a{suffix}"
    writes = []

    class Watched(Recording):
        def _put(self, at, content):
            writes.append((file.read_bytes(), at, content))
            super()._put(at, content)

    with Watched(file) as recording:
        recording.append(interaction(0, "一\x7f\x85".encode()))
        recording.append(interaction(1, "🌙\u2028\ufffe".encode()))
        done = load(file)
        writes.clear()
        recording.append(interaction(2, b"\xff"))
        everything = load(file)
    assert len(everything) == 3
    for before, at, content in writes:
        for length in range(len(content) + 1):
            written = before[:at] + content[:length]
            file.write_bytes(written + before[len(written) :])
            assert load(file) in (done, everything)
            if suffix == ".yaml" and length % 20 == 0:
                assert len(read_by_vcrpy(file)[0]) in (2, 3)
    with Recording(file) as recording:
        assert recording.interactions == everything


# A process that has imported everything forks one that records, for each line it is told a path in.
RECORDER = """
import os, random, sys
from memmock.cassette_file import Recording

for line in sys.stdin:
    path, seed = line.split()
    child = os.fork()
    if child:
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    dice = random.Random(int(seed))
    numbers = os.open(path + ".numbers", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    recording = Recording(path)
    number = len(recording.interactions)
    while True:
        size = int(200_000 ** dice.random())
        body = bytes([dice.randrange(256)]) * size if dice.random() < 0.3 else "称".encode() * (size // 3)
        recording.append(one._replace(reason=str(number), reply=one.reply._replace(body=body)))
        os.write(numbers, b"%d\\n" % number)
        number += 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_recording_that_is_killed_holds_everything_that_was_appended(suffix, tmp_path):
    dice = random.Random(suffix)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with run(RECORDER, **pipes) as recorder:
        for seed in range(26):
            file = tmp_path / f"{seed // 2}{suffix}"  # each is killed twice: what was torn is continued
            numbers = Path(f"{file}.numbers")
            before = numbers.stat().st_size if numbers.exists() else 0
            print(file, seed, file=recorder.stdin, flush=True)
            child = int(recorder.stdout.readline())
            while seed % 5 and not (numbers.exists() and numbers.stat().st_size > before):
                time.sleep(0.0005)
            time.sleep(0.003 * dice.random())
            os.kill(child, signal.SIGKILL)
            assert recorder.stdout.readline() == "ended\n"
            printed = [*map(int, numbers.read_text().split())] if numbers.exists() else []
            if not file.exists():
                assert not printed
                continue
            found = [int(one.reason) for one in load(file)]
            assert found == list(range(len(found)))
            assert set(printed) <= set(found)
            if suffix == ".yaml" and seed % 2:
                assert len(read_by_vcrpy(file)[0]) == len(found)
        recorder.stdin.close()


def test_file_that_is_replaced_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "a.yaml"
    recording = Recording(path)
    recording.append(THREE[0])
    other = tmp_path / "other"
    other.write_text("edited")
    other.replace(path)
    with pytest.raises(CassetteError, match="not recorded: another program has replaced the file"):
        recording.append(THREE[1])
    with pytest.raises(CassetteError, match=r"what was recorded is in .*a\.recorded1\.yaml"):
        recording.close()
    assert path.read_text() == "edited"
    assert load(tmp_path / "a.recorded1.yaml") == THREE[:1]
