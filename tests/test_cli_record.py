"""`memmock record` and `memmock replay`: their options and messages, and both as real processes."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from http.client import HTTPException

import pytest
import requests
import trustme
import vcr
import yaml
from click.testing import CliRunner

from memmock.cassette_file import load, save
from memmock.cli import main
from memmock.http import Reply
from tests.cassette_clients import (
    PATIENCE_S,
    asked,
    connected,
    in_threads,
    memmock,
    node_provider,
    post,
    recorded,
)
from tests.raw_provider import RawProvider, close, hang, sized

NOWHERE = "http://127.0.0.1:9/"
BROKEN = "version: 1\ninteractions:\n- request: 7\n"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("MEMMOCK_UPSTREAM", raising=False)
    monkeypatch.delenv("MEMMOCK_UPSTREAM_AUTHORIZATION", raising=False)


@pytest.fixture
def provider():
    with RawProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def node():
    with node_provider() as endpoint:
        yield endpoint


def run(*arguments, code):
    """Return what the command prints; it must exit with `code`, and never with a traceback."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def ended(process, number=signal.SIGINT):
    """Send a signal; return the exit code, the lines of stdout as JSON, and stderr."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


def queries(file):
    return [json.loads(one.request.body)["query"] for one in load(file)]


# ---- options


def test_upstream_and_cassette_are_required(tmp_path):
    assert "Missing option '--upstream'" in run("record", "--cassette", tmp_path / "c.yaml", code=2)
    assert "Missing option '--cassette'" in run("record", "--upstream", NOWHERE, code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--upstream", "ftp://x"], "the upstream must be an absolute http or https URL, not 'ftp://x'"),
        (["--upstream", "http://x", "--tls"], "--tls is for an upstream that speaks TLS, not for one"),
        (["--upstream", NOWHERE, "--authorization", " "], "the upstream's authorization must not be empty"),
        (["--upstream", "https://x", "--ca-file", "no.pem"], "no.pem: no certificates can be read"),
        (["--upstream", NOWHERE, "--path", "x"], "the path must start with /"),
        (["--upstream", NOWHERE, "--redact-pattern", "("], "the pattern 1 is not a regular expression"),
        (["--upstream", NOWHERE, "--timeout-ms", "0"], "0 is not in the range 1<=x<=86400000"),
    ],
)  # fmt: skip
def test_mistake_in_an_option_is_told_and_nothing_is_written(tmp_path, options, message):
    assert message in run("record", "--cassette", tmp_path / "c.yaml", *options, code=2)
    assert list(tmp_path.iterdir()) == []


def test_upstream_and_authorization_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMMOCK_UPSTREAM", NOWHERE)
    monkeypatch.setenv("MEMMOCK_UPSTREAM_AUTHORIZATION", "\x7f")
    output = run("record", "--cassette", tmp_path / "c.yaml", code=2)
    assert "the upstream's authorization must not be empty, nor hold control characters" in output


def test_cassette_of_another_kind_is_refused(tmp_path):
    output = run("record", "--port", 0, "--upstream", NOWHERE, "--cassette", tmp_path / "c.txt", code=2)
    assert output == f"Error: {tmp_path}/c.txt: a cassette ends in .yaml, .yml or .json\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["record", "--upstream", NOWHERE, "--cassette"], ["replay"]])
def test_broken_cassette_is_refused_and_stays_as_it_is(tmp_path, command):
    file = tmp_path / "c.yaml"
    file.write_text(BROKEN)
    output = run(command[0], "--port", 0, *command[1:], file, code=2)
    assert output == f"Error: {file}:3: interactions[0].request must be a mapping, not 7\n"
    assert file.read_text() == BROKEN


def test_cassette_that_is_being_recorded_is_refused(tmp_path, node):
    file = tmp_path / "c.yaml"
    with memmock("record", "--upstream", node, "--cassette", file) as (process, endpoint):
        asked(endpoint, {"query": "a"})
        output = run("record", "--upstream", node, "--cassette", file, "--port", 0, code=2)
        asked(endpoint, {"query": "b"})
        assert ended(process)[0] == 0
    assert output == (
        f"Error: {file}: another process is writing this cassette: wait until it is done, or record to "
        "another file\n"
    )
    assert queries(file) == ["a", "b"]


def test_upstream_that_is_the_proxy_itself_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    output = run(
        "record",
        "--upstream",
        f"http://localhost:{port}/x",
        "--cassette",
        tmp_path / "c.yaml",
        "--port",
        port,
        code=2,
    )
    assert output == f"Error: the upstream at localhost:{port} is this proxy itself; choose another --port\n"


def test_file_that_is_not_there_is_told(tmp_path):
    assert f"{tmp_path}/c.yaml" in run("replay", tmp_path / "c.yaml", code=2)
    assert "Missing argument 'FILE...'" in run("replay", code=2)


def test_unknown_match_on_is_told(tmp_path):
    save(tmp_path / "c.yaml", [recorded()])
    assert "cannot match on user: it must be of method, path, " in run(
        "replay", tmp_path / "c.yaml", "--match-on", "query, user", code=2
    )


@pytest.mark.parametrize("command", ["record", "replay"])
def test_port_that_is_taken_is_told(tmp_path, command):
    file = tmp_path / "c.yaml"
    save(file, [recorded()])
    options = ["--upstream", NOWHERE, "--cassette", file] if command == "record" else [file]
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        assert f"cannot listen on 127.0.0.1 port {port}" in run(command, *options, "--port", port, code=2)
    assert queries(file) == ["a"]


# ---- from one end to the other


@pytest.mark.parametrize(("suffix", "number"), [("yaml", signal.SIGINT), ("json", signal.SIGTERM)])
def test_what_is_recorded_is_replayed(tmp_path, node, suffix, number):
    file = tmp_path / "made" / f"c.{suffix}"
    bodies = [
        {"query": "称呼", "live_id": "1"},
        {"query": "暗号", "max_results": 1},
        {"query": "称呼", "live_id": "2"},
    ]
    with memmock("record", "--upstream", node, "--cassette", file, "--authorization", "Bearer s3cr3t") as (
        process,
        endpoint,
    ):
        assert endpoint.endswith("/memory_retrieval")
        live = asked(endpoint, *bodies, Authorization="Bearer fr0m-client")
        code, lines, err = ended(process, number)
    assert (code, err) == (0, "")
    assert [(line["recording"], line["status"]) for line in lines[:-1]] == [
        (f"interaction {n}", 200) for n in (1, 2, 3)
    ]
    assert lines[-1] == {"recorded": 3, "cassette": str(file), "interactions": 3, "failures": []}
    assert [answer[1]["memories"][0]["summary"] for answer in live] == ["称呼", "暗号", "称呼"]
    assert not any(secret in file.read_text() for secret in ("s3cr3t", "fr0m-client", "12345678"))

    with vcr.VCR(serializer=suffix).use_cassette(str(file), record_mode="none"):
        replies = [requests.post(node, json=body, timeout=PATIENCE_S) for body in bodies]
    assert [(reply.status_code, reply.json()) for reply in replies] == live

    with memmock("replay", file, "--repeats", "none") as (process, endpoint):
        bodies = [{**body, "live_id": "9", "reason": "other"} for body in bodies]
        assert asked(endpoint, *bodies) == live
        missed = asked(endpoint, bodies[0], {"query": "暗号", "max_results": 2})
        code, lines, err = ended(process, number)
    assert (code, err) == (0, "")
    assert [status for status, _ in missed] == [404, 404]
    assert [error["error"]["nearest"]["played"] for _, error in missed] == [1, 1]
    assert lines.pop() == {"played": 3, "missed": 2, "unplayed": 0}
    assert [(line["recording"], line["status"]) for line in lines] == [
        ("interaction 1", 200), ("interaction 2", 200), ("interaction 3", 200), ("", 404), ("", 404),
    ]  # fmt: skip


def test_recording_goes_on_behind_what_is_there(tmp_path, node):
    file = tmp_path / "c.yaml"
    save(file, [recorded("before")])
    with memmock("record", "--upstream", node, "--cassette", file) as (process, endpoint):
        asked(endpoint, {"query": "after"})
        code, lines, _ = ended(process)
    assert (code, lines[0]["recording"], lines[-1]["interactions"]) == (0, "interaction 2", 2)
    assert queries(file) == ["before", "after"]


def test_replay_of_several_files_names_them(tmp_path):
    files = [tmp_path / "a.yaml", tmp_path / "b.json"]
    save(files[0], [recorded("a"), recorded("b")])
    save(files[1], [recorded("c")])
    with memmock("replay", *files, "--path", "/here", "--match-on", "query, live_id") as (process, endpoint):
        assert endpoint.endswith("/here")
        answers = asked(endpoint, {"query": "c"}, {"query": "c", "live_id": "7"})
        _, lines, _ = ended(process)
    assert [status for status, _ in answers] == [200, 404]
    assert lines[0]["recording"] == f"interaction 1 of {files[1]}"
    assert answers[1][1]["error"]["nearest"]["interaction"] == f"interaction 1 of {files[1]}"


def test_recorded_latency_is_told_when_it_is_over(tmp_path):
    save(tmp_path / "c.yaml", [recorded("a", elapsed_ms=120)])
    with memmock("replay", tmp_path / "c.yaml", "--latency", "recorded") as (process, endpoint):
        asked(endpoint, {"query": "a"})
        line = json.loads(process.stdout.readline())
    assert line["duration_ms"] >= 120


def text_of(command, *arguments, calls):
    """Return what a command prints to people, while `calls` is called with its endpoint."""
    line = [sys.executable, "-X", "utf8", "-m", "memmock", command, *map(str, arguments), "--port", "0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as process:
        lines = []
        for text in process.stdout:
            lines.append(text)
            if text.startswith("Calls"):
                break
        calls(re.search(r"^curl -s (\S+)", "".join(lines), re.MULTILINE)[1])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, "".join(lines), out, err


def test_welcome_and_progress_are_for_people(tmp_path, provider):
    file = tmp_path / "c.yaml"
    url = f"http://127.0.0.1:{provider.port}/?api_key=k3y-in-the-url"
    code, welcome, out, err = text_of(
        "record",
        "--upstream",
        url,
        "--cassette",
        file,
        calls=lambda endpoint: asked(endpoint, {"query": "a"}, {"query": "b"}),
    )
    assert (code, err) == (0, "")
    assert welcome.startswith(f"memmock records http://127.0.0.1:{provider.port}/?api_key=*** into {file}\n")
    assert "k3y" not in welcome + out + file.read_text()
    assert b"?api_key=k3y-in-the-url HTTP" in provider.requests[0]
    lines = out.splitlines()
    assert [line.rpartition("(")[2] for line in lines if "200" in line[:15]] == [
        "interaction 1)",
        "interaction 2)",
    ]
    assert lines[-1] == f"{file}: 2 new interactions, 2 in all"


def test_replay_welcomes_with_a_question_that_it_can_answer(tmp_path):
    save(tmp_path / "c.yaml", [recorded("称呼")])
    code, welcome, out, err = text_of(
        "replay", tmp_path / "c.yaml", calls=lambda endpoint: asked(endpoint, {"query": "称呼"})
    )
    assert (code, err) == (0, "")
    assert welcome.startswith(f"memmock replays {tmp_path}/c.yaml (1 interaction) at http://127.0.0.1:")
    assert '-d \'{"query":"称呼"}\'' in welcome
    assert "(interaction 1)\n\n1 call played, 0 not recorded; no interactions never played\n" in out


# ---- TLS


@pytest.fixture
def secure(tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with RawProvider(context=context) as provider:
        yield provider


def test_https_upstream_needs_a_certificate_that_is_trusted(tmp_path, secure):
    options = ["--upstream", secure.endpoint, "--cassette", tmp_path / "c.yaml"]
    with memmock("record", *options) as (process, endpoint):
        answers = asked(endpoint, {"query": "a"})
        assert ended(process)[0] == 0
    message = "the certificate of the upstream was not accepted"
    assert answers == [(502, {"error": {"code": "upstream_failed", "message": message}})]
    with memmock("record", *options, "--ca-file", tmp_path / "ca.pem") as (process, endpoint):
        answers = asked(endpoint, {"query": "b"})
        assert ended(process)[0] == 0
    assert answers[0][0] == 200
    assert queries(tmp_path / "c.yaml") == ["b"]


# ---- what goes wrong


def test_errors_are_recorded_on_request_and_replayed(tmp_path, provider):
    provider.play([close], [hang], [close])
    file = tmp_path / "c.yaml"
    options = ["--upstream", provider.endpoint, "--cassette", file, "--timeout-ms", "300"]
    with memmock("record", *options, "--record-errors") as (process, endpoint):
        live = asked(endpoint, {"query": "closed"}, {"query": "late"})
        assert ended(process)[0] == 0
    with memmock("record", *options) as (process, endpoint):
        assert asked(endpoint, {"query": "closed"})[0][0] == 502
        assert ended(process)[1][-1]["interactions"] == 2
    assert [status for status, _ in live] == [502, 504]
    assert [answer["error"]["code"] for _, answer in live] == ["upstream_failed", "upstream_timeout"]
    with memmock("replay", file) as (process, endpoint):
        assert asked(endpoint, {"query": "closed"}, {"query": "late"}) == live


def test_body_that_cannot_be_looked_into_fails_the_recording(tmp_path, provider):
    provider.play([sized(b"\x0b\x02\x80{}\x03", "Content-Encoding: br")])
    file = tmp_path / "c.yaml"
    with memmock("record", "--upstream", provider.endpoint, "--cassette", file) as (process, endpoint):
        connection = connected(endpoint)
        assert post(connection, endpoint, {"query": "a"}) == (200, b"\x0b\x02\x80{}\x03")
        connection.close()
        code, lines, _ = ended(process)
    reason = "the body is encoded as br and cannot be looked into for secrets"
    assert (code, lines[-1]["failures"], lines[-1]["recorded"]) == (1, [reason], 0)
    assert lines[0]["recording"] == f"not recorded: {reason}"
    assert load(file) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_disk_that_is_full_is_told_and_what_is_there_stays(tmp_path, node, suffix):
    file = tmp_path / f"c.{suffix}"

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    # Python itself would leave half of a .pyc behind
    options = {"preexec_fn": limit, "env": {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}}
    with memmock("record", "--upstream", node, "--cassette", file, **options) as (process, endpoint):
        answers = asked(endpoint, *[{"query": f"{n}" + "x" * 3000} for n in range(10)])
        code, lines, err = ended(process)
    assert [status for status, _ in answers] == [200] * 10
    kept = queries(file)
    assert 1 <= len(kept) < 10
    assert [query[0] for query in kept] == list("0123456789")[: len(kept)]
    assert code == 1
    assert lines[-1]["failures"][0].startswith(f"{file}: not recorded: File too large")
    assert lines[-1]["recorded"] == len(kept)
    assert err == ""


def test_file_that_cannot_be_finished_is_told(tmp_path, node):
    file = tmp_path / "made" / "c.yaml"
    with memmock("record", "--upstream", node, "--cassette", file) as (process, endpoint):
        asked(endpoint, {"query": "a"})
        shutil.rmtree(file.parent)
        file.parent.write_text("in its place")
        code, lines, err = ended(process)
    assert (code, err) == (1, "")
    saved, read = lines[-1]["failures"]
    assert saved.startswith(f"{file.with_name('c.recorded1.yaml')}: not saved: ")
    assert read == f"{file} cannot be read again: Not a directory"


def test_failures_are_told_to_people_once(tmp_path, provider):
    provider.play(*[[sized(b"{}", "Content-Encoding: br")]] * 3)
    code, _, _, err = text_of(
        "record", "--upstream", provider.endpoint, "--cassette", tmp_path / "c.yaml",
        calls=lambda endpoint: asked(endpoint, *[{"query": "a"}] * 3),
    )  # fmt: skip
    assert code == 1
    assert err == "memmock: the body is encoded as br and cannot be looked into for secrets (3 times)\n"


# ---- killed


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_killed_recording_has_every_finished_interaction(tmp_path, node, suffix):
    file = tmp_path / f"c.{suffix}"
    finished, kills = [], random.Random(suffix)
    for attempt in range(5):
        with memmock("record", "--upstream", node, "--cassette", file) as (process, endpoint):
            killer = threading.Timer(kills.uniform(0.0, 0.2), process.kill)

            def work(client, attempt=attempt, endpoint=endpoint):
                connection = connected(endpoint)
                try:
                    for n in range(10_000):
                        query = f"{attempt}/{client}/{n}"
                        status, body = post(connection, endpoint, {"query": query})
                        assert (status, json.loads(body)["memories"][0]["summary"]) == (200, query)
                        finished.append(query)
                except (OSError, HTTPException):  # killed
                    pass
                finally:
                    connection.close()

            killer.start()
            in_threads(6, work)
            killer.join()
            process.wait(PATIENCE_S)
        there = queries(file)
        assert len(there) == len(set(there))
        assert set(finished) <= set(there)
    assert finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_calls_finishes_the_file(tmp_path, node, number):
    file = tmp_path / "c.yaml"
    finished = []
    with memmock("record", "--upstream", node, "--cassette", file) as (process, endpoint):

        def work(client):
            connection = connected(endpoint)
            try:
                for n in range(10_000):
                    post(connection, endpoint, {"query": f"{client}/{n}"})
                    finished.append(f"{client}/{n}")
                    if len(finished) == 50:
                        process.send_signal(number)
            except (OSError, HTTPException):  # stopped
                pass
            finally:
                connection.close()

        in_threads(4, work)
        out, err = process.communicate(timeout=PATIENCE_S)
    facts = json.loads(out.splitlines()[-1])
    assert (process.returncode, err) == (1 if facts["failures"] else 0, "")
    assert all("the recording was stopped during the call" in failure for failure in facts["failures"])
    assert facts["interactions"] == len(queries(file))
    assert set(finished) <= set(queries(file))
    assert yaml.safe_load(file.read_text())["version"] == 1
    assert file.read_text().startswith(
        "interactions:\n"
    )  # in the layout of vcrpy, no longer that of a recording


def test_interaction_that_cannot_be_looked_into_stays_in_a_cassette_that_had_it(tmp_path, node):
    file = tmp_path / "c.yaml"
    packed = recorded("before")._replace(
        reply=Reply(200, (("Content-Encoding", "br"),), b"\x0b\x02\x80{}\x03")
    )
    save(file, [packed])
    with memmock("record", "--upstream", node, "--cassette", file) as (process, endpoint):
        asked(endpoint, {"query": "after"})
        code, lines, _ = ended(process)
    assert (code, queries(file)) == (1, ["before", "after"])
    assert load(file)[0].reply == packed.reply
    assert lines[-1]["failures"] == [
        "interaction 1 stays as it was: the body is encoded as br and cannot be looked into for secrets"
    ]
