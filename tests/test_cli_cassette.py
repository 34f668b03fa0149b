"""`memmock cassette`: each command through click's runner, on real files."""

# ruff: noqa: E501  # tables are pinned as they look

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from memmock.cassette import Interaction, unpacked
from memmock.cassette_file import load, save
from memmock.cli import main
from memmock.cli.cassette import COMMANDS
from memmock.cli.cassette.interactions import in_words
from memmock.cli.cassette.table import fitted, table, width
from memmock.http import Reply, Request, encode_json

IMPORTS = Path(__file__).parent.parent / "fixtures" / "imports"
SECRET = "Bearer sk-live-0123456789"
HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json"), ("Authorization", "***"))
TEA = {"id": "m-1", "summary": "The user prefers green tea to coffee.", "type": "preference",
       "confidence": 0.9, "updated_at": "2026-05-18T08:12:40Z", "source": "long_term_memory"}  # fmt: skip
CAT = {**TEA, "id": "m-2", "summary": "The user has a grey cat called Mo.", "type": "other"}


@pytest.fixture(autouse=True)
def _in_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMMOCK_UPSTREAM", raising=False)
    monkeypatch.delenv("MEMMOCK_UPSTREAM_AUTHORIZATION", raising=False)


def run(*arguments, code=0):
    """Return what the command prints; it must exit with `code`, and never with a traceback."""
    result = CliRunner().invoke(main, ["cassette", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def ago(**parts):
    at = datetime.now(UTC) - timedelta(**parts)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def one(query="tea", *memories, reply=None, headers=HEADERS, recorded_at="", violations=(), **asked):
    body = encode_json({"query": query, **asked}) if isinstance(query, str) else query
    return Interaction(
        Request("POST", "/memory_retrieval", headers, body),
        "http://provider.example/memory_retrieval",
        Reply.json({"memories": list(memories)}) if reply is None else reply,
        "OK",
        recorded_at,
        None,
        violations,
    )


def cassette(name, *interactions):
    save(name, interactions)
    return name


# ---- the group


def test_help_lists_the_commands():
    output = run("--help")
    assert all(f"\n  {name} " in output for name in COMMANDS)
    assert "No such command 'sow'" in run("sow", code=2)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name):
    assert run(name, "--help").startswith(f"Usage: main cassette {name} [OPTIONS] ")


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom memmock.cli import main\n"
        "try: main(['cassette', 'show', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'asyncio', 'yaml', 'httptools', 'pytest', 'vcr'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.endswith("[]\n")


# ---- bad files

BAD = [
    ("missing.yaml", None, "missing.yaml: No such file or directory"),
    ("empty.yaml", b"", "empty.yaml: the file is empty"),
    ("blank.json", b" \n", "blank.json: the file is empty"),
    ("binary.yaml", b"\x89PNG\r\n\x1a\n\x00", "binary.yaml: not UTF-8 (byte 0x89 at offset 0)"),
    ("nul.yaml", b"interactions: []\n\x00\x00", "nul.yaml: not YAML: "),
    ("version.yaml", b"version: 2\ninteractions: []\n", "version.yaml:1: version must be 1, not 2"),
    ("conflict.yaml", b"interactions:\n<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> x\nversion: 1\n",
     "conflict.yaml:2: a merge conflict of git: settle it, or record the cassette again"),
    ("cut.yaml", b"interactions:\n- request:\n    body: 'abc\n", "cut.yaml:4: not YAML: "),
    ("cut.json", b'{"interactions": [\n{"request"', "cut.json:2: not JSON: "),
    ("tag.yaml", b"interactions:\n- !!python/object/apply:os.system ['touch ran']\nversion: 1\n",
     "tag.yaml:2: "),
    ("item.yaml", b"interactions:\n- request: 1\nversion: 1\n",
     "item.yaml:2: interactions[0].request must be a mapping, not 1"),
    ("other.txt", b"a", "other.txt: "),
    ("missing.har", None, "missing.har: No such file or directory"),
]  # fmt: skip
COMMAND_LINES = [
    ["show", "FILE"],
    ["diff", "FILE", "good.yaml"],
    ["diff", "good.yaml", "FILE"],
    ["redact", "good.yaml", "FILE"],
    ["redact", "--check", "FILE"],
    ["verify", "FILE", "--upstream", "http://127.0.0.1:1/"],
    ["convert", "FILE", "out.yaml"],
]


@pytest.mark.parametrize(("name", "content", "error"), BAD, ids=[case[0] for case in BAD])
def test_bad_files_are_named_with_their_line_and_stay_as_they_are(name, content, error):
    cassette("good.yaml", one(headers=(("Authorization", SECRET),)))
    good = Path("good.yaml").read_bytes()
    if content is not None:
        Path(name).write_bytes(content)
    for line in COMMAND_LINES:
        output = run(*[name if part == "FILE" else part for part in line], code=2)
        assert output.startswith(f"Error: {error}")
        assert output.count("\n") == 1
    if content is None:
        assert run("check", name, code=2) == f"Error: {error}\n"
    else:
        output = run("check", "good.yaml", name, code=1)
        assert f"\n{error}" in output
        assert Path(name).read_bytes() == content
    assert Path("good.yaml").read_bytes() == good
    assert {path.name for path in Path().iterdir()} == {"good.yaml", *([name] if content is not None else [])}


def test_a_directory_is_no_cassette():
    Path("dir.yaml").mkdir()
    for line in COMMAND_LINES[:-1]:
        if "good.yaml" not in line:
            output = run(*["dir.yaml" if part == "FILE" else part for part in line], code=2)
            assert output == "Error: dir.yaml: not a file\n"
    assert run("check", "dir.yaml", code=2) == "Error: dir.yaml: there are no cassettes in this directory\n"


def test_recordings_of_others_have_to_be_converted():
    for name, what in (("cassetter.yaml", "a cassette of cassetter"), ("browser.har", "a HAR file")):
        assert run("show", IMPORTS / name, code=2) == (
            f"Error: {IMPORTS / name}: {what}: make a cassette of it with memmock cassette convert "
            f"{IMPORTS / name} NEW.yaml\n"
        )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_no_cassette():
    os.mkfifo("pipe.yaml")
    for line in COMMAND_LINES:
        if "good.yaml" not in line:
            output = run(*["pipe.yaml" if part == "FILE" else part for part in line], code=2)
            assert output == "Error: pipe.yaml: not a file\n"
    assert "there are no cassettes" in run("check", ".", code=2)


# ---- show


def test_show_is_a_table():
    cassette(
        "chat.yaml",
        one("用户喜欢灵绯怎么称呼自己", TEA, memory_types=["preference"], recorded_at=ago(days=3)),
        one("tea" * 30, CAT, CAT, memory_types=["preference", "history", "other"], recorded_at=ago(hours=5)),
        one("slow", reply=Reply.error(503, "overloaded", "later"), recorded_at=ago(minutes=7)),
        one("broken", reply=Reply(200, (("Content-Type", "text/html"),), b"<html>")),
        one(b"words", reply=Reply(500, (), b"[1]"), violations=("RES004",)),
    )
    assert run("show", "chat.yaml") == (
        "#  query                                     types                     status  memories      age    violations\n"
        "1  用户喜欢灵绯怎么称呼自己                  preference                200     1             3 d    -\n"
        "2  teateateateateateateateateateateateatea…  preference, history, ot…  200     2             5 h    RES301\n"
        "3  slow                                      all                       503     overloaded    7 min  RES001\n"
        "4  broken                                    all                       200     invalid_json  -      RES003, RES102\n"
        "5  POST /memory_retrieval                    all                       500     http_error    -      REQ102, RES002, RES004, RES501\n"
        "\n"
        "chat.yaml: 5 interactions\n"
    )  # fmt: skip


def test_show_as_json():
    cassette("chat.yaml", one("tea", TEA, memory_types=["preference"], recorded_at=ago(seconds=90)))
    shown = json.loads(run("show", "chat.yaml", "--format", "json"))
    [facts] = shown["interactions"]
    assert 90 <= facts.pop("age_s") < 100
    assert facts.pop("recorded_at").endswith("Z")
    assert shown["cassette"] == "chat.yaml"
    assert facts == {
        "number": 1, "query": "tea", "memory_types": ["preference"], "status": 200, "memories": 1,
        "error": None, "elapsed_ms": None, "violations": [],
    }  # fmt: skip


def test_show_of_no_interactions():
    assert run("show", cassette("none.yaml")) == "none.yaml: no interactions\n"


def test_show_hides_credentials():
    secret = SECRET.split()[1]
    cassette(
        "chat.yaml",
        one(f"what is {secret}?", reply=Reply.error(401, f"no-{secret}", "x")),
        one(headers=(("Authorization", SECRET),)),
    )
    for form in ("text", "json"):
        output = run("show", "chat.yaml", "--format", form)
        assert secret not in output
        assert "what is ***?" in output
        assert "no-***" in output


def test_show_escapes_what_a_terminal_would_act_on():
    assert "a\\u001b[31mb" in run("show", cassette("chat.yaml", one("a\x1b[31mb")))


def test_a_body_that_cannot_be_decoded_is_shown_all_the_same():
    headers = (("Content-Encoding", "br"), ("Content-Type", "application/json"))
    cassette("chat.yaml", one("tea", reply=Reply(200, headers, b"\xff\xfe\xfd")))
    assert "1  tea    all    200     invalid_json  -    RES004" in run("show", "chat.yaml")


# ---- check


def test_check_of_what_is_right():
    cassette("chat.yaml", one("tea", TEA, recorded_at=ago(days=1)), one("cat", recorded_at=ago(days=1)))
    assert run("check", "chat.yaml", "--max-age", "2d") == "1 cassette, 2 interactions: nothing is wrong\n"


def test_check_lists_what_is_wrong():
    cassette(
        "chat.yaml",
        one("tea", {**TEA, "summary": "  "}, recorded_at="2026-01-01T00:00:00Z"),
        one("cat", {"summary": "The user has a grey cat called Mo."}),
        one("cat", {"summary": "The user has a grey cat called Mo."}, live_id="7"),
        one("dog", headers=(*HEADERS[:2], ("Authorization", SECRET)), violations=("RES004", "RES999")),
    )
    assert run("check", "chat.yaml", "--max-age", "30d", code=1) == (
        'chat.yaml: interaction 1: RES204 error at body /memories/0/summary: must not be blank, not "  "\n'
        "chat.yaml: interaction 1: age: recorded at 2026-01-01T00:00:00Z, more than 30 d ago\n"
        "chat.yaml: interaction 2: RES209 warning at body /memories/0: has no id, type, confidence, updated_at, source\n"
        "chat.yaml: interaction 3: RES209 warning at body /memories/0: has no id, type, confidence, updated_at, source\n"
        "chat.yaml: interaction 3: duplicate: the same retrieval and reply as interaction 2\n"
        "chat.yaml: interaction 4: RES004 error: was broken when this was recorded\n"
        "chat.yaml: interaction 4: secret: the header Authorization of the request holds one: memmock cassette redact"
        " takes it out\n"
        "3 interactions without a date: the age is not known\n"
        "1 cassette, 4 interactions: 5 errors, 2 warnings\n"
    )  # fmt: skip


def test_check_as_json():
    cassette("chat.yaml", one("tea", TEA, headers=HEADERS[:2]), one("", recorded_at=ago(days=9)))
    Path("cut.yaml").write_text("interactions:\nversion: 2\n")
    found = json.loads(run("check", ".", "--max-age", "1w", "--format", "json", code=1))
    recorded_at = load("chat.yaml")[1].recorded_at
    assert found == {
        "cassettes": 2,
        "interactions": 2,
        "without_date": 1,
        "findings": [
            {
                "file": "chat.yaml", "interaction": 2, "kind": "REQ202", "severity": "error",
                "message": "REQ202 error at body /query: must not be empty",
            },
            {
                "file": "chat.yaml", "interaction": 2, "kind": "age", "severity": "error",
                "message": f"recorded at {recorded_at}, more than 7 d ago",
            },
            {
                "file": "cut.yaml", "interaction": None, "kind": "load", "severity": "error",
                "message": "cut.yaml:2: version must be 1, not 2",
            },
        ],
    }  # fmt: skip


def test_warnings_fail_when_asked_to():
    cassette("chat.yaml", one("tea", {"summary": "The user prefers green tea to coffee."}))
    assert run("check", "chat.yaml").endswith("1 cassette, 1 interaction: 1 warning\n")
    run("check", "chat.yaml", "--fail-on", "warning", code=1)


def test_check_looks_for_cassettes_in_directories():
    Path("a/b").mkdir(parents=True)
    Path("a/c.yaml").mkdir()
    cassette("a/b/one.json", one())
    cassette("a/two.yml", one())
    Path("a/settings.yaml").write_text("port: 1\n")
    Path("a/package.json").write_text("{")
    Path("a/notes.txt").write_text("interactions:")
    assert run("check", "a", "a/two.yml") == "2 cassettes, 2 interactions: nothing is wrong\n"
    Path("a/zero.yaml").write_bytes(b"")
    Path("a/zeros.yaml").write_bytes(b"\0" * 20)
    output = run("check", "a", code=1)
    assert output.splitlines()[0] == "a/zero.yaml: the file is empty"
    assert output.splitlines()[1].startswith("a/zeros.yaml: not YAML")
    assert output.splitlines()[2] == "4 cassettes, 2 interactions: 2 errors"
    assert run("check", "a/settings.yaml", code=1).startswith("a/settings.yaml:1: ")


def test_check_of_a_file_that_must_not_be_read(monkeypatch):
    Path("a").mkdir()
    cassette("a/one.yaml", one())

    def denied(path):  # as for everybody but root, who may run the tests
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert "a/one.yaml: Permission denied" in run("check", "a", code=1)


@pytest.mark.parametrize("age", ["3", "d", "-1d", "1.5h", "3 months", ""])
def test_an_age_that_is_none_is_refused(age):
    assert "must be a whole number and s, m, h, d or w, as 30d or 12h" in run(
        "check", ".", "--max-age", age, code=2
    )


def test_check_looks_for_the_values_of_options():
    secret = "hunter2-hunter2"
    cassette("chat.yaml", one(f"is it {secret}?"), one("cat", {**CAT, "summary": "Her card is 4111-1111."}))
    run("check", "chat.yaml")
    output = run("check", "chat.yaml", "--authorization", secret, "--redact-pattern", r"4\d{3}-\d{4}", code=1)
    where = "holds one: memmock cassette redact takes it out"
    assert output.splitlines() == [
        f"chat.yaml: interaction 1: secret: the body of the request {where}",
        f"chat.yaml: interaction 2: secret: the body of the reply {where}",
        "1 cassette, 2 interactions: 2 errors",
    ]


def test_a_packed_body_without_secrets_is_no_finding():
    body = gzip.compress(encode_json({"memories": [TEA]}))
    headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    accepting = (*HEADERS, ("Accept-Encoding", "gzip"))
    cassette(
        "chat.yaml",
        one("tea", headers=accepting, reply=Reply(200, headers, body)),
        one("cat", headers=accepting, reply=Reply(200, headers, encode_json({"memories": [TEA]}))),
    )
    run("check", "chat.yaml")
    before = Path("chat.yaml").read_bytes()
    assert run("redact", "chat.yaml") == "chat.yaml: nothing to hide in 2 interactions\n"
    assert Path("chat.yaml").read_bytes() == before


def test_a_body_that_cannot_be_looked_into_is_a_finding():
    headers = (("Content-Encoding", "br"), ("Content-Type", "application/json"))
    cassette("chat.yaml", one("tea", reply=Reply(200, headers, b"\xff\xfe\xfd")))
    message = "the body is encoded as br and cannot be looked into for secrets"
    assert f"chat.yaml: interaction 1: secret: {message}\n" in run("check", "chat.yaml", code=1)
    assert run("redact", "chat.yaml", code=1) == (
        f"memmock: chat.yaml: interaction 1: {message}; the file is as it was\n"
    )
    assert run("convert", "chat.yaml", "out.yaml", code=2) == (
        f"Error: chat.yaml: interaction 1: {message}; nothing was written\n"
    )


# ---- diff


def test_diff_of_the_same():
    cassette("a.yaml", one("tea", TEA), one("cat", CAT))
    cassette("b.json", one("cat", CAT, live_id="9"), one("tea", TEA, headers=()))
    assert run("diff", "a.yaml", "b.json") == "2 retrievals: 2 the same, 0 differ\n"


def test_diff_names_what_differs():
    cassette("a.yaml", one("tea", TEA), one("tea", CAT), one("old"), one("fish", TEA))
    cassette(
        "b.yaml",
        one("new"),
        one("tea", {**TEA, "confidence": 0.5}),
        one("tea", CAT),
        one("tea", CAT),
        one("fish", *({**TEA, "id": str(n)} for n in range(25))),
    )
    lines = run("diff", "a.yaml", "b.yaml", code=1).splitlines()
    assert lines[:3] == [
        'interaction 1, in b.yaml interaction 2: "tea"',
        "  /memories/0/confidence expected 0.9   received 0.5",
        'only in b.yaml, interaction 4: "tea"',
    ]
    assert lines[3:5] == [
        'only in a.yaml, interaction 3: "old"',
        'interaction 4, in b.yaml interaction 5: "fish"',
    ]
    assert lines[-3:] == [
        "  and 6 more differences",
        'only in b.yaml, interaction 1: "new"',
        "6 retrievals: 1 the same, 2 differ, 1 only in a.yaml, 2 only in b.yaml",
    ]


def test_diff_as_json():
    cassette("a.yaml", one("tea", reply=Reply.json({"memories": [], "more": None})), one("old"))
    cassette("b.yaml", one("tea", reply=Reply.json({"memories": []})))
    assert json.loads(run("diff", "a.yaml", "b.yaml", "--format", "json", code=1)) == [
        {
            "query": "tea",
            "first": 1,
            "second": 1,
            "differences": [{"field": "/more", "expected": None, "received": None}],
        },
        {"query": "old", "first": 2, "second": None, "differences": []},
    ]


def test_diff_matches_on_what_is_named():
    cassette("a.yaml", one("tea", live_id="1"))
    cassette("b.yaml", one("tea", live_id="2"))
    run("diff", "a.yaml", "b.yaml")
    output = run("diff", "a.yaml", "b.yaml", "--match-on", "query, live_id", code=1)
    assert output.endswith("2 retrievals: 0 the same, 0 differ, 1 only in a.yaml, 1 only in b.yaml\n")
    assert run("diff", "a.yaml", "b.yaml", "--match-on", "colour", code=2).startswith(
        "Error: cannot match on colour: "
    )


def test_diff_shows_no_credentials():
    secret = SECRET.split()[1]
    headers = (("Authorization", SECRET),)
    cassette("a.yaml", one("tea", {"summary": f"It is {secret}."}, headers=headers))
    cassette("b.yaml", one("tea", {"summary": "It is green."}, headers=headers))
    output = run("diff", "a.yaml", "b.yaml", code=1)
    assert '  /memories/0/summary expected "It is ***."   received "It is green."\n' in output
    assert secret not in output


# ---- redact


def test_redact_hides_in_place_and_says_where():
    secret = SECRET.split()[1]
    leaky = one(
        f"is {secret} known?",
        headers=(*HEADERS[:2], ("Authorization", SECRET)),
        reply=Reply.json({"memories": [{**TEA, "summary": f"The key is {secret}."}]}),
    )._replace(uri=f"http://provider.example/memory_retrieval?token={secret}", reason=f"OK {secret}")
    cassette("chat.yaml", one(f"before {secret}"), leaky, one("clean", TEA))
    before = Path("chat.yaml").read_bytes()
    where = (
        "  interaction 1: the body of the request\n"
        "  interaction 2: the address, the header Authorization of the request, the words after the status, "
        "the body of the request, the body of the reply\n"
    )
    assert run("redact", "--check", "chat.yaml", code=1) == (
        f"chat.yaml: 2 of 3 interactions would change\n{where}"
    )
    assert Path("chat.yaml").read_bytes() == before
    assert run("redact", "chat.yaml") == f"chat.yaml: 2 of 3 interactions changed\n{where}"
    assert secret not in Path("chat.yaml").read_text()
    changed = load("chat.yaml")
    assert changed[1].uri == "http://provider.example/memory_retrieval?token=***"
    assert changed[2].request.body == encode_json({"query": "clean"})
    after = Path("chat.yaml").stat()
    assert run("redact", "chat.yaml") == "chat.yaml: nothing to hide in 3 interactions\n"
    assert run("redact", "--check", "chat.yaml") == "chat.yaml: nothing to hide in 3 interactions\n"
    assert Path("chat.yaml").stat().st_ino == after.st_ino


def test_redact_hides_what_the_options_name():
    cassette("chat.json", one("tea", {**TEA, "user": "Anna"}, headers=(*HEADERS, ("X-Trace", "t-1"))))
    options = ["--redact-field", "user", "--redact-header", "x-trace", "--redact-pattern", "gr..n"]
    run("redact", "chat.json", *options)
    text = Path("chat.json").read_text()
    assert not [word for word in ("Anna", "t-1", "green") if word in text]


def test_what_cannot_be_hidden_is_told_and_the_file_kept():
    cassette("chat.yaml", one(headers=(*HEADERS, ("X-Hunter2-Hunter2", "1"))))
    cassette("other.yaml", one("tea"))
    before = Path("chat.yaml").read_bytes()
    output = run("redact", "chat.yaml", "other.yaml", "--authorization", "X-Hunter2-Hunter2", code=1)
    assert "memmock: chat.yaml: interaction 1: the configured secret 1 would still be in it" in output
    assert "; the file is as it was\n" in output
    assert "other.yaml: nothing to hide in 1 interaction\n" in output
    assert Path("chat.yaml").read_bytes() == before


def test_a_failed_save_keeps_the_old_file():
    cassette("chat.yaml", one(headers=(("Authorization", SECRET),)))
    before = Path("chat.yaml").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _no_space)
        output = run("redact", "chat.yaml", code=2)
    assert output == "Error: chat.yaml: not saved: No space left on device\n"
    assert Path("chat.yaml").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["chat.yaml"]


def _no_space(_):
    raise OSError(28, "No space left on device")


# ---- verify


@contextmanager
def provider(answer):
    """Serve what `answer` returns for a retrieval and its headers: status, media type and body."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, dict(self.headers), asked))
            found = answer(asked, self.headers)
            if found is None:
                self.close_connection = True
                return
            status, media, body = found
            self.send_response(status)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v2/memory", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answering(**memories):
    """Return an answer that has the memories of each query."""
    return lambda asked, headers: (
        200,
        "application/json",
        encode_json({"memories": memories[asked["query"]]}),
    )


def test_verify_of_what_is_still_the_same():
    cassette("chat.yaml", one("tea", TEA), one("cat", CAT), one("tea", CAT, live_id="2"))
    with provider(answering(tea=[CAT], cat=[CAT])) as (url, seen):
        output = run("verify", "chat.yaml", "--upstream", url, "--authorization", SECRET)
    assert output == f"chat.yaml against {url}: 2 retrievals, 2 the same\n"
    assert sorted(asked["query"] for _, _, asked in seen) == ["cat", "tea"]
    path, headers, _ = seen[0]
    assert (path, headers["Authorization"], headers["Accept"]) == ("/v2/memory", SECRET, "application/json")


def test_verify_names_what_has_changed():
    def answer(asked, _):
        if asked["query"] == "gone":
            return None
        return answering(tea=[{**TEA, "confidence": 0.5}], cat=[CAT])(asked, _)

    cassette("chat.yaml", one("tea", TEA), one("cat", CAT), one("gone"), one("tea", CAT), one("is it ***?"))
    with provider(answer) as (url, _):
        output = run("verify", "chat.yaml", "--upstream", url, code=1)
        shown = json.loads(run("verify", "chat.yaml", "--upstream", url, "--format", "json", code=1))
    assert output == (
        'interactions 1, 4: "tea": differs\n'
        "  /memories/0/confidence expected 0.9   received 0.5\n"
        'interaction 3: "gone": no answer (the provider closed the connection without an answer)\n'
        'interaction 5: "is it ***?": not sent (its body was redacted, so it is not known)\n'
        f"chat.yaml against {url}: 4 retrievals, 1 the same, 1 differs, 1 no answer, 1 not sent\n"
    )
    assert shown[0] == {
        "interactions": [1, 4],
        "query": "tea",
        "outcome": "differs",
        "why": "",
        "differences": [{"field": "/memories/0/confidence", "expected": 0.9, "received": 0.5}],
    }
    assert [each["outcome"] for each in shown] == ["differs", "same", "no answer", "not sent"]


def test_verify_never_sends_what_is_secret_in_the_cassette():
    recorded = one("tea", TEA, headers=(("Authorization", SECRET), ("Cookie", "a=***"), ("X-Tenant", "7")))
    request = recorded.request._replace(target="/m?token=abcdefghij&lang=zh")
    cassette("chat.yaml", recorded._replace(request=request, uri=f"http://provider.example{request.target}"))
    with provider(lambda *_: (401, "application/json", b'{"error": {}}')) as (url, seen):
        output = run("verify", "chat.yaml", "--upstream", url, code=1)
    [(path, headers, _)] = seen
    assert path == "/v2/memory?lang=zh"
    assert headers["X-Tenant"] == "7"
    assert not headers.keys() & {"Authorization", "Cookie"}
    assert output.splitlines()[:2] == [
        'interaction 1: "tea": differs (no Authorization was sent: name it with --authorization)',
        "  status         expected 200   received 401",
    ]


def test_verify_hides_the_same_in_the_answer_as_in_the_recording():
    cassette("chat.yaml", one("tea", {**TEA, "summary": "It is ***."}, {**CAT, "user": "***"}))
    with provider(answering(tea=[{**TEA, "summary": f"It is {SECRET}."}, {**CAT, "user": "Bo"}])) as (url, _):
        run("verify", "chat.yaml", "--upstream", url, "--authorization", SECRET, "--redact-field", "user")
        output = run("verify", "chat.yaml", "--upstream", url, "--authorization", SECRET, code=1)
    assert '  /memories/1/user expected "***"   received "Bo"\n' in output
    assert SECRET not in output


def test_verify_of_a_packed_answer_that_is_broken():
    def answer(asked, headers):
        return 200, "application/json\r\nContent-Encoding: gzip", b"\x1f\x8bno"

    cassette("chat.yaml", one("tea", TEA), one("cat"))
    with provider(answer) as (url, _):
        output = run("verify", "chat.yaml", "--upstream", url, code=1)
    assert output.startswith('interaction 1: "tea": differs (the body is encoded as gzip, but ')
    assert output.endswith("2 retrievals, 2 differ\n")


def test_verify_without_any_answer():
    cassette("chat.yaml", one("tea"), one("cat"))
    assert run("verify", "chat.yaml", "--upstream", "http://127.0.0.1:1/", code=2) == (
        "Error: http://127.0.0.1:1/: no answer to any of 2 retrievals: the connection was refused\n"
    )
    with provider(lambda *_: threading.Event().wait(0.5) or None) as (url, _):
        assert run("verify", "chat.yaml", "--upstream", url, "--timeout-ms", "50", code=2) == (
            f"Error: {url}: no answer to any of 2 retrievals: the provider did not finish within 50 ms\n"
        )


def test_verify_of_nothing_is_an_error():
    url = "http://127.0.0.1:1/"
    assert run("verify", cassette("none.yaml"), "--upstream", url, code=2) == (
        "Error: none.yaml: there are no interactions to verify\n"
    )
    cassette("hidden.yaml", one("***"))
    assert run("verify", "hidden.yaml", "--upstream", url, code=2) == (
        "Error: hidden.yaml: no retrieval can be sent: its body was redacted, so it is not known\n"
    )
    assert run("verify", "none.yaml", "--upstream", "nowhere", code=2) == (
        "Error: the upstream must be an absolute http or https URL, not 'nowhere'\n"
    )


# ---- convert


@pytest.mark.parametrize("target", ["out.yaml", "sub/out.json"])
def test_convert_a_har_file(target):
    assert run("convert", IMPORTS / "browser.har", target) == (
        f"{target}: 2 interactions of {IMPORTS / 'browser.har'}, 1 with secrets that are hidden now\n"
        "  left out: entry 3: there was no response\n"
        "  left out: entry 4: a WebSocket\n"
        "  left out: entry 5: the body of its response was not saved\n"
        "  left out: entry 6: not HTTP, but data:\n"
    )
    assert "sk-live-9f8e7d6c5b4a" not in Path(target).read_text()
    first = load(target)[0]
    assert first.request.header("authorization") == "***"
    assert json.loads(first.reply.body)["memories"][0]["summary"] == "用户和灵绯约定的暗号是月亮醒了。"


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("cassetter.yaml", "  left out: 1 gRPC interaction\n  left out: 1 WebSocket interaction\n"),
     ("cassetter.toml", "")],
)  # fmt: skip
def test_convert_a_cassette_of_cassetter(name, left_out):
    assert run("convert", IMPORTS / name, "out.yaml") == (
        f"out.yaml: 8 interactions of {IMPORTS / name}, 6 with secrets that are hidden now\n{left_out}"
    )
    assert len(load("out.yaml")) == 8


def test_convert_between_yaml_and_json_and_back():
    cassette(
        "a.yaml", one("tea", TEA, recorded_at=ago(days=1)), one("bytes", reply=Reply(200, (), b"\xff\x00"))
    )
    assert run("convert", "a.yaml", "b.json") == "b.json: 2 interactions of a.yaml\n"
    run("convert", "b.json", "c.yaml")
    assert Path("c.yaml").read_bytes() == Path("a.yaml").read_bytes()
    run("convert", "a.yaml", "d.json", "--redact-pattern", "green", "--authorization", "coffee")
    assert not [word for word in ("green", "coffee") if word in Path("d.json").read_text()]


def test_convert_of_calls_of_other_kinds_only():
    Path("none.yaml").write_text("version: 1\ninteractions: []\n")
    assert run("convert", "none.yaml", "out.yaml") == "out.yaml: no interactions of none.yaml\n"
    Path("bad.yaml").write_text("version: 1\ninteractions: 1\nws_interactions: []\n")
    assert run("convert", "bad.yaml", "new.yaml", code=2) == (
        "Error: bad.yaml:2: interactions must be a list, not 1\n"
    )
    assert run("convert", "a.txt", "new.yaml", code=2) == (
        "Error: a.txt: what is converted ends in .yaml, .yml, .json, .toml or .har\n"
    )


def test_convert_replaces_only_by_force():
    cassette("a.yaml", one())
    Path("b.yaml").write_text("mine")
    assert run("convert", "a.yaml", "b.yaml", code=2) == (
        "Error: b.yaml: is there already; --force replaces it\n"
    )
    assert Path("b.yaml").read_text() == "mine"
    run("convert", "a.yaml", "b.yaml", "--force")
    assert load("b.yaml") == load("a.yaml")
    Path("link.yaml").symlink_to("a.yaml")
    for target in ("a.yaml", "link.yaml"):
        assert run("convert", "a.yaml", target, "--force", code=2) == (
            f"Error: {target}: IN and OUT are the same file; redact changes one in place\n"
        )


def test_convert_to_where_no_cassette_can_be():
    cassette("a.yaml", one())
    Path("dir.yaml").mkdir()
    assert run("convert", "a.yaml", "dir.yaml", code=2) == "Error: dir.yaml: not a file\n"
    assert run("convert", "a.yaml", "b.txt", code=2) == (
        "Error: b.txt: a cassette ends in .yaml, .yml or .json\n"
    )
    assert run("convert", "a.yaml", "a.yaml/b.yaml", code=2).startswith("Error: a.yaml/b.yaml: ")


def test_convert_of_nothing_that_can_be_replayed():
    Path("ws.yaml").write_text("version: 1\ninteractions: []\nws_interactions: [{}]\n")
    assert run("convert", "ws.yaml", "out.yaml", code=2) == (
        "Error: ws.yaml: nothing in it can be replayed: 1 WebSocket interaction\n"
    )
    assert run("convert", cassette("none.yaml"), "out.yaml") == "out.yaml: no interactions of none.yaml\n"


# ---- what clients have unpacked


def test_a_coding_that_the_body_does_not_have_is_dropped():
    packed = (("Content-Encoding", "gzip"), ("Content-Type", "application/json"))
    text = b'{"memories": []}'

    def coding(content, headers=packed):
        each = Interaction(Request("POST", "/", headers, content), "http://a/", Reply(200, headers, content))
        plain = unpacked(each)
        assert plain.request.headers == plain.reply.headers
        return plain.reply.header("Content-Encoding")

    assert coding(text) is None
    assert coding(b"") is None
    assert coding(gzip.compress(text)) == "gzip"
    assert coding(text, ()) is None


# ---- tables


def test_wide_characters_count_twice():
    assert [width(text) for text in ("tea", "茶", "e\u0301", "ｔ")] == [3, 2, 1, 2]
    assert fitted("茶茶茶", 6) == "茶茶茶"
    assert fitted("茶茶茶", 5) == "茶茶…"
    assert fitted("茶茶茶", 4) == "茶…"
    assert table([["a", "b"], ["茶", "c"]]) == ["a   b", "茶  c"]


def test_durations_are_in_their_largest_unit():
    assert [in_words(s) for s in (None, 0, 59, 60, 7200, 86_400 * 400)] == [
        "-", "0 s", "59 s", "1 min", "2 h", "400 d",
    ]  # fmt: skip


# ---- as a process


def test_a_process_exits_with_the_code():
    cassette("chat.yaml", one("tea", TEA), one("tea", TEA))
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "memmock", "cassette", "check", "chat.yaml"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "chat.yaml: interaction 2: duplicate: the same retrieval and reply as interaction 1\n"
        "1 cassette, 2 interactions: 1 error\n"
    )
