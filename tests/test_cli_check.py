"""`memmock check` and `memmock fuzz` as a user runs them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from memmock import Memories, Provider, Reply, Server
from memmock.cli import main

TOKEN = "Bearer check-4711-token"
MEMORIES = [
    {
        "id": f"m{n}", "summary": f"用户喜欢第{n}种茶。", "type": kind, "confidence": 0.9,
        "source": "long_term_memory", "updated_at": "2026-03-01T08:00:00+08:00", "keywords": ["tea", "茶"],
    }
    for n, kind in enumerate(["preference", "history", "profile", "project", "style", "other"])
]  # fmt: skip


@pytest.fixture
def good():
    with Server(Provider(Memories(MEMORIES), path="/memory", authorization=TOKEN)) as server:
        yield f"{server.url}/memory"


@pytest.fixture
def bad():
    """A provider that fails on a question mark, and repeats what was sent as authorization."""
    provider = Provider(Memories(MEMORIES), path="/memory", authorization=TOKEN)

    def answer(request):
        if b"?" in request.body:
            return Reply.error(500, "internal_error", f"sent with {request.header('Authorization')}")
        return provider(request)

    with Server(answer) as server:
        yield f"{server.url}/memory"


def run(*options, code):
    result = CliRunner().invoke(main, [*map(str, options)])
    assert result.exit_code == code, result.output
    assert "4711" not in result.output
    return result


FUZZ = ("--seed", 1, "--examples", 0, "--time-limit", 20)


def test_good_provider_passes_and_says_what_was_looked_at(good):
    result = run("check", good, "--authorization", TOKEN, code=0)
    assert result.stdout.startswith(f"{good}\n\npassed (")
    assert "RES601  Memories are given only for the authorization that was agreed on." in result.stdout
    assert "Nothing was found: " in result.stdout


def test_authorization_is_taken_from_the_environment(good, monkeypatch):
    monkeypatch.setenv("MEMMOCK_AUTHORIZATION", TOKEN)
    run("check", good, code=0)


def test_found_request_is_told_with_curl_and_without_the_authorization(bad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("fuzz", bad, "--authorization", TOKEN, "--rules", "RES001", *FUZZ, code=1)
    assert "RES001 error  status must be 200, not 500" in result.stdout
    assert '--data-binary \'{"query":"?"}\'' in result.stdout
    assert '-H "Authorization: $AUTHORIZATION"' in result.stdout
    assert "seed 1." in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == [".memmock"]
    assert not any("4711" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_result_is_written_in_each_format(bad, tmp_path):
    options = ("check", bad, "--authorization", TOKEN, "--output", tmp_path / "result")
    run(*options, "--format", "json", code=1)
    found = json.loads((tmp_path / "result").read_text())
    assert (found["target"], found["ok"]) == (bad, False)
    assert {"rule", "severity", "title", "message", "pointer", "request", "reply", "curl", "flaky"} <= set(
        found["findings"][0]
    )
    assert set(found["stats"]) == {"requests", "seconds", "seed"}
    run(*options, "--format", "junit", code=1)
    assert ET.parse(tmp_path / "result").getroot().tag == "testsuites"
    told = run(*options, "--format", "html", code=1)
    assert (tmp_path / "result").read_text().startswith("<!DOCTYPE html>")
    assert "4711" not in (tmp_path / "result").read_text()
    assert told.stdout == ""


def test_warnings_fail_only_when_asked_to(bad):
    options = ("check", bad, "--authorization", TOKEN, "--rules", "RES502")
    run(*options, code=0)
    run(*options, "--fail-on", "warning", code=1)
    run(*options, "--ignore", "RES502", "--fail-on", "warning", code=0)


def test_baseline_leaves_out_what_was_there_before(bad, tmp_path):
    options = ("check", bad, "--authorization", TOKEN, "--baseline", tmp_path / "known.json")
    first = run(*options, code=0)
    assert f"{tmp_path}/known.json: written" in first.stderr
    assert json.loads((tmp_path / "known.json").read_text())["findings"]
    again = run(*options, code=0)
    assert "of the baseline left out." in again.stdout


def test_tests_are_written(bad, tmp_path):
    result = run("check", bad, "--authorization", TOKEN, "--write-tests", tmp_path, code=1)
    (path,) = tmp_path.iterdir()
    assert f"{path}: run it with pytest" in result.stderr
    compile(path.read_text(), path, "exec")


@pytest.mark.parametrize("command", ["check", "fuzz"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["http://127.0.0.1:1/memory"], "http://127.0.0.1:1/memory: Connection refused"),
        (["memory"], "URL must be an absolute http or https URL"),
        (["http://a/", "--authorization", "a\nb"], "authorization must not hold control characters"),
        (["http://a/", "--rules", "RES999"], "there is no rule 'RES999' for providers"),
        (["http://a/", "--ignore", "REQ001"], "there is no rule 'REQ001' for providers"),
        (["http://a/", "--header", "X"], "'X' is not written as 'Name: value'"),
        (["http://a/", "--format", "pdf"], "'pdf' is not one of"),
    ],
)
def test_mistake_is_told_in_a_line(command, options, says):
    result = run(command, *options, code=2)
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_output_that_cannot_be_written_is_told(good, tmp_path):
    result = run("check", good, "--authorization", TOKEN, "--output", tmp_path / "no" / "x", code=2)
    assert "x: there is no such directory" in result.stderr
