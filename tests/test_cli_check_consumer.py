"""`memmock check-consumer` and `memmock fuzz-consumer` as a user runs them, and the same from a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

import memmock
from memmock import scenario_file
from memmock.cli import main
from memmock.consumer_conformance.bench import Bench
from memmock.consumer_conformance.function import Function
from memmock.consumer_conformance.process import Process
from memmock.consumer_conformance.reproduction import act, assert_fixed, generated
from memmock.consumer_conformance.written_tests import FILE_NAME
from memmock.errors import MemmockError, MemmockFailure
from memmock.reply_case import ReplyCase

CONSUMER = """\
import json, sys
from memmock import Retrieval, RetrievalConfig, retrieve_sync

for line in sys.stdin:
    call = json.loads(line)
    told = call["memory_retrieval"]
    config = RetrievalConfig(
        told["endpoint"], told["authorization"],
        timeout_ms=told["timeout_ms"], max_response_bytes=told["max_response_bytes"],
    )
    result = retrieve_sync(config, Retrieval(**call["request"])).to_json()
    {change}
    print(json.dumps({{"id": call["id"], **result}}), flush=True)
"""
ECHO = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "ok": True, "memories": []}), flush=True)
"""
NO_STATUS = 'result.get("error", {}).pop("status", None)'
QUICK = ("--scenario", "server-error", "--scenario", "empty")


@pytest.fixture
def consumer(tmp_path):
    def written(change="pass"):
        path = tmp_path / "consumer.py"
        path.write_text(CONSUMER.format(change=change))
        return ["--", sys.executable, path]

    return written


def run(*options, code):
    result = CliRunner().invoke(main, [*map(str, options)])
    assert result.exit_code == code, result.output
    return result


def retrieve(told, request, broken=False):
    """A consumer as a callable."""
    config = memmock.RetrievalConfig(
        told["endpoint"], told["authorization"],
        timeout_ms=told["timeout_ms"], max_response_bytes=told["max_response_bytes"],
    )  # fmt: skip
    result = memmock.retrieve_sync(config, memmock.Retrieval(**request)).to_json()
    if broken and "error" in result:
        result["error"].pop("status", None)
    return result


def broken(told, request):
    return retrieve(told, request, broken=True)


# ---- the command line


def test_good_consumer_passes_and_says_what_was_looked_at(consumer):
    result = run("check-consumer", *QUICK, *consumer(), code=0)
    assert result.stdout.startswith(f"{sys.executable} ")
    assert "CON003 CON004" in result.stdout
    assert "not applicable (6): nothing was played for it\n  CON301 CON302 CON303 CON402 CON403 CON404\n" in (
        result.stdout
    )
    assert "2 of 2 scenarios as expected" in result.stdout
    assert "Nothing was found: " in result.stdout


def test_finding_is_told_with_what_was_played(consumer):
    result = run("check-consumer", *QUICK, *consumer(NO_STATUS), code=1)
    assert "1 of 2 scenarios as expected" in result.stdout
    assert "CON004 error  server-error: " in result.stdout
    assert "  try        memmock serve --scenario server-error --timeout-ms 300\n" in result.stdout


def test_rules_are_chosen_and_ignored(consumer):
    options = ("check-consumer", *QUICK, *("--ignore", "CON004"), *consumer(NO_STATUS))
    run(*options, code=0)
    result = run("check-consumer", *QUICK, "--rules", "CON001", *consumer(NO_STATUS), code=0)
    assert "passed (1)" in result.stdout


def test_result_is_written_in_each_format(consumer, tmp_path):
    path = tmp_path / "result"
    options = ("check-consumer", *QUICK, "--output", path, "--format")
    run(*options, "json", *consumer(NO_STATUS), code=1)
    found = json.loads(path.read_text())
    assert found["findings"][0]["rule"] == "CON004"
    assert [row["scenario"] for row in found["scenarios"]] == ["empty", "server-error"]
    run(*options, "junit", *consumer(NO_STATUS), code=1)
    assert ET.parse(path).getroot()[0].get("name") == "memmock check-consumer"
    told = run(*options, "html", *consumer(NO_STATUS), code=1)
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert (told.stdout, f"{path}: 1 error: " in told.stderr) == ("", True)


def test_baseline_leaves_out_what_was_there_before(consumer, tmp_path):
    path = tmp_path / "known.json"
    options = ("check-consumer", *QUICK, "--baseline", path)
    assert f"{path}: written" in run(*options, *consumer(NO_STATUS), code=0).stderr
    assert json.loads(path.read_text())["findings"] == ["CON004 server-error /error/status"]
    again = run(*options, *consumer(), code=0)
    assert "Gone since the baseline: CON004 server-error /error/status" in again.stdout
    less = run("check-consumer", "--scenario", "empty", "--baseline", path, *consumer(), code=0)
    assert "Gone" not in less.stdout


def test_tests_and_scenarios_are_written(consumer, tmp_path):
    file = tmp_path / "found.yaml"
    options = ("--write-tests", tmp_path / "tests", "--scenarios", file)
    result = run("check-consumer", *QUICK, *options, *consumer(NO_STATUS), code=1)
    assert f"{tmp_path}/tests/{FILE_NAME}: run it with pytest" in result.stderr
    assert f"{file}: 1 of 1 findings as scenarios" in result.stderr
    assert f"--scenarios {file} --scenario finding-1" in result.stdout
    assert scenario_file.read(file).scenarios["finding-1"].outcomes == ("http_error",)


def test_written_tests_fail_until_the_consumer_is_fixed(consumer, tmp_path):
    options = ("--scenario", "server-error", "--write-tests", tmp_path)
    run("check-consumer", *options, *consumer(NO_STATUS), code=1)
    names = {}
    exec(compile((tmp_path / FILE_NAME).read_text(), FILE_NAME, "exec"), names)
    with Bench(Process(names["COMMAND"]), timeout_ms=300) as bench:
        with pytest.raises(MemmockFailure, match="CON004: An http_error has the status that came"):
            names["test_con004_server_error"](bench)
        consumer()
        names["test_con004_server_error"](bench)


def test_a_consumer_that_ends_is_a_finding(tmp_path):
    command = ("--", sys.executable, "-c", "raise SystemExit('no config')")
    result = run("check-consumer", *command, code=1)
    assert "CON001 error  success: " in result.stdout
    assert "             no config\n" in result.stdout
    assert "Stopped early: the consumer does not answer a plain call" in result.stdout


def test_replies_are_generated_for_a_consumer(consumer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--seed", 1, "--examples", 0, "--timeout-ms", 50, "--time-limit", 8, "--rules", "CON004")
    result = run("fuzz-consumer", *options, "--scenarios", "found.yaml", *consumer(NO_STATUS), code=1)
    assert "CON004 error  generated: " in result.stdout
    assert "seed 1." in result.stdout
    assert "memmock serve --scenarios found.yaml --scenario finding-1" in result.stdout
    assert "finding-1" in scenario_file.read("found.yaml").scenarios


def test_options_behind_the_command_are_those_of_the_command():
    result = run("check-consumer", "--scenario", "drip", sys.executable, "--format", code=1)
    assert result.stdout.startswith(f"{sys.executable} --format\n")


@pytest.mark.parametrize("command", ["check-consumer", "fuzz-consumer"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "the command of the consumer is missing; put it behind --, as in `-- python3 consumer.py`"),
        (["--", "/no/such/consumer"], "the command '/no/such/consumer' cannot be started: No such file"),
        (["--rules", "CON999", "--", "x"], "there is no rule 'CON999' for consumers; `memmock rules`"),
        (["--ignore", "RES001", "--", "x"], "there is no rule 'RES001' for consumers; `memmock rules`"),
        (["--timeout-ms", "49", "--", "x"], "49 is not in the range"),
        (["--format", "pdf", "--", "x"], "'pdf' is not one of"),
    ],
)
def test_mistake_is_told_in_a_line(command, options, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(command, *options, code=2)
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_a_scenario_that_is_not_there_is_told():
    result = run("check-consumer", "--scenario", "dripp", "--", sys.executable, "-c", "", code=2)
    assert "there is no scenario 'dripp'" in result.stderr


# ---- from a program


def test_a_callable_is_checked():
    assert memmock.check_consumer(retrieve, scenarios=["empty"]).ok()
    (found,) = memmock.check_consumer(broken, scenarios=["server-error"]).findings
    assert (found.rule.code, found.scenario) == ("CON004", "server-error")


def test_rules_of_a_callable_are_chosen():
    assert memmock.check_consumer(broken, scenarios=["server-error"], ignore=["CON004"]).ok()


def test_a_callable_is_fuzzed():
    result = memmock.fuzz_consumer(broken, timeout_ms=50, examples=0, time_limit_s=8, rules=["CON004"])
    assert {found.rule.code for found in result.findings} == {"CON004"}
    assert result.seed is not None


@pytest.mark.parametrize("consumer", ["python3 consumer.py", 5, [1, 2], []])
def test_a_consumer_is_a_function_or_a_list_of_words(consumer):
    with pytest.raises(MemmockError, match="a function, or its command as a list of words"):
        memmock.check_consumer(consumer)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_the_consumer_when_the_command_is_ended(number, tmp_path):
    path = tmp_path / "hanging.py"
    path.write_text(
        "import os, sys, time\nprint(os.getpid(), file=open(sys.argv[1], 'w'), flush=True)\ntime.sleep(60)\n"
    )
    words = [sys.executable, "-m", "memmock", "check-consumer", "--", sys.executable, path, tmp_path / "pid"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_interrupted_check_without_findings_is_no_pass(monkeypatch):
    def play(self, act):
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "play", play)
    result = run("check-consumer", "--", sys.executable, "-c", ECHO, code=130)
    assert "Stopped early: interrupted" in result.stdout


# ---- findings that are shown again


@pytest.fixture
def bench():
    def made(call):
        return Bench(Function(call), timeout_ms=300)

    return made


def test_what_was_fixed_passes(bench):
    with bench(retrieve) as fixed:
        assert_fixed("CON004", [act("server-error")], fixed)
        assert_fixed("CON405", [act("server-error"), act("success")], fixed)
        assert_fixed("CON004", [generated(ReplyCase(status=503).to_json())], fixed, times=2)


def test_what_was_not_fixed_fails(bench):
    with bench(broken) as same:
        with pytest.raises(MemmockFailure, match="CON004: An http_error has the status that came"):
            assert_fixed("CON004", [act("server-error")], same)
        with pytest.raises(MemmockFailure, match="CON004"):
            assert_fixed("CON004", [generated(ReplyCase(status=503).to_json())], same, times=2)
        assert_fixed("CON001", [act("server-error")], same)


def test_a_consumer_that_raises_is_not_fixed(bench):
    def raises(told, request):
        raise ValueError("no config")

    with bench(raises) as other, pytest.raises(MemmockFailure, match=r"it cannot be told: .*no config"):
        assert_fixed("CON004", [act("server-error")], other)


def test_what_was_played_can_be_asked_otherwise(bench):
    asked = []

    def noted(told, request):
        asked.append(request["query"])
        return {}

    with bench(noted) as other, pytest.raises(MemmockFailure):
        assert_fixed("CON002", [act("success", retrieval={"query": "tea"}, timeout_ms=200)], other)
    assert "tea" in asked
