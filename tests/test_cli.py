"""The command line: through click's runner, and each command once as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from memmock import __version__
from memmock.cli import COMMANDS, main
from memmock.http import JSON_TYPE, Reply
from memmock.rules import RULES
from memmock.server import Server

FIXTURES = Path(__file__).parent.parent / "fixtures"
PHRASE = "用户和灵绯之前约定的暗号"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("MEMMOCK_ENDPOINT", raising=False)
    monkeypatch.delenv("MEMMOCK_AUTHORIZATION", raising=False)


def run(*arguments, code=0):
    """Return what the command prints; it must exit with `code`, and never with a traceback."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback (most recent call last):\n" not in result.output
    return result.output


def process(*arguments, **options):
    command = [sys.executable, "-X", "utf8", "-m", "memmock", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **options
    )


@contextmanager
def served(*arguments, **options):
    """Run `memmock serve --port 0 …` as a process; stopped and waited for at the end."""
    command = [sys.executable, "-m", "memmock", "serve", "--port", "0", *map(str, arguments)]
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",  # a server that is stopped while its output is stuck may leave half a character
        **options,
    )
    try:
        yield server
    finally:
        server.kill()
        server.communicate()


def post(endpoint, body, **headers):
    import requests

    headers = {"Content-Type": JSON_TYPE, "Accept": JSON_TYPE, "Authorization": "Bearer x", **headers}
    return requests.post(endpoint, json.dumps(body).encode(), headers=headers, timeout=10)


# ---- the group


def test_version_is_that_of_the_package():
    assert run("--version") == f"memmock {__version__}\n"


def test_help_lists_the_commands():
    output = run("--help")
    assert all(f"\n  {name} " in output for name in COMMANDS)
    assert run("-h") == output


def test_unknown_command_is_a_usage_error():
    assert "No such command 'srve'" in run("srve", code=2)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["ask", "--help"], ["serve", "--help"]])
def test_what_only_informs_imports_nothing_heavy(arguments):
    heavy = {"asyncio", "uvloop", "yaml", "httptools", "pytest", "hypothesis", "vcr"}
    program = (
        "import sys\nfrom memmock.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.endswith("[]\n")


# ---- rules and schema


def test_rules_lists_all_rules():
    lines = run("rules").splitlines()
    assert [line.split()[0] for line in lines] == list(RULES)
    assert lines[0] == "REQ001  error    The method is POST."


@pytest.mark.parametrize("code", ["RES201", "res201"])
def test_rules_explains_a_rule(code):
    output = run("rules", code)
    assert output.startswith("RES201 (error) ")
    assert "\n  wrong  " in output
    assert "\n  right  " in output


def test_rules_gives_its_data():
    assert [rule["code"] for rule in json.loads(run("rules", "--format", "json"))] == list(RULES)
    assert [rule["code"] for rule in json.loads(run("rules", "REQ209", "--format", "json"))] == ["REQ209"]


def test_rules_names_the_nearest_of_an_unknown_code():
    assert [line[:6] for line in run("rules", "res3").splitlines()] == ["RES301", "RES302", "RES303"]
    assert run("rules", "REQ29", code=2).startswith("Error: there is no rule 'REQ29'; near it are REQ2")
    assert run("rules", "x", code=2) == "Error: there is no rule 'x'; `memmock rules` lists all\n"


def test_schema_prints_both_documents():
    assert json.loads(run("schema"))["openapi"].startswith("3.1")
    assert "Retrieval" in json.loads(run("schema", "--format", "jsonschema"))["$defs"]


# ---- demo


def test_demo_finds_the_three_points():
    output = run("demo")
    assert "3 of 3 points come first." in output
    assert output.count("found") == 3
    for text in ("阿澈", "月亮醒了", "先给结论，再补充两三条理由", "你还记得我喜欢你怎么叫我吗？"):
        assert text in output


def test_demo_of_a_provider_without_the_points_fails():
    answers = iter(
        [
            Reply.json({"memories": []}),
            Reply.json({"memories": [{"summary": "别的事"}]}),
            Reply.error(503, "x", "y"),
        ]
    )
    with Server(lambda _: next(answers)) as server:
        output = run("demo", "--endpoint", f"{server.url}/m", code=1)
    assert "0 of 3 points come first." in output
    assert "it remembers first:    no memory\n" in output
    assert "no memory, but http_error: " in output


def test_demo_of_a_served_mock_passes():
    with served("--format", "json") as server:
        ready = json.loads(server.stdout.readline())
        done = process("demo", "--endpoint", ready["endpoint"])
    assert (done.returncode, done.stderr) == (0, "")


# ---- ask


def test_ask_shows_the_memories_and_how_to_treat_them():
    output = run("ask", PHRASE)
    assert "月亮醒了" in output.splitlines()[0]
    assert "    use naturally (confidence 0.97)\n" in output
    assert "5 memories in " in output
    assert output.endswith("no violations\n")


def test_ask_sends_what_it_is_told():
    seen = []

    def handler(request):
        seen.append(request)
        return Reply.json({"memories": []})

    with Server(handler) as server:
        output = run(
            "ask", "咖啡", "--endpoint", f"{server.url}/m?a=1", "--authorization", "Key 7",
            "-t", "style", "--type", "other", "--time-hint", "上周",
            "--max-results", 2, "--live-id", "7301", "--reason", "用户在问",
        )  # fmt: skip
    assert output.startswith("nothing found\n")
    assert seen[0].target == "/m?a=1"
    assert seen[0].header("Authorization") == "Key 7"
    assert json.loads(seen[0].body) == {
        "query": "咖啡", "live_id": "7301", "reason": "用户在问", "memory_types": ["style", "other"],
        "time_hint": "上周", "max_results": 2,
    }  # fmt: skip


def test_ask_prints_the_tool_result_as_json():
    result = json.loads(run("ask", PHRASE, "--max-results", 1, "--format", "json"))
    assert (result["ok"], len(result["memories"]), result["violations"]) == (True, 1, [])
    assert result["advice"] == ["use naturally"]
    assert result["elapsed_ms"] > 0
    assert result["received_bytes"] > 100


def test_ask_shows_what_is_wrong_with_the_answer():
    memory = {"id": 7, "summary": "a\x1b[31mb", "type": "mood"}
    with Server(lambda _: Reply.json({"memories": [memory]})) as server:
        output = run("ask", "咖啡", "--endpoint", server.url)
    assert "a\\u001b[31mb" in output
    assert "\x1b" not in output
    assert "RES205 error at body /memories/0/id: must be a string, not 7" in output
    assert "RES206 warning at body /memories/0/type: " in output


def test_ask_exits_with_1_for_an_error_result():
    with Server(lambda _: Reply.error(429, "rate_limited", "slow down")) as server:
        output = run("ask", "咖啡", "--endpoint", server.url, code=1)
    assert output.startswith("http_error: ")
    assert "429" in output
    with Server(lambda _: Reply.json({}).delayed(60)) as server:
        output = run("ask", "咖啡", "--endpoint", server.url, "--timeout-ms", 50, "--format", "json", code=1)
    assert json.loads(output)["error"]["code"] == "timeout"


def test_ask_takes_the_environment_for_defaults(monkeypatch):
    seen = []

    def handler(request):
        seen.append(request.header("Authorization"))
        return Reply.json({"memories": []})

    with Server(handler) as server:
        monkeypatch.setenv("MEMMOCK_ENDPOINT", server.url)
        monkeypatch.setenv("MEMMOCK_AUTHORIZATION", "Bearer of-the-environment")
        output = run("ask", "咖啡") + run("ask", "--help")
    assert seen == ["Bearer of-the-environment"]
    assert "of-the-environment" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'QUERY'"),
        ([""], "must not be empty"),
        (["a", "--type", "mood"], "'mood' is not one of"),
        (["a", "--max-results", "0"], "0 is not in the range x>=1"),
        (["a", "--timeout-ms", "0"], "0 is not in the range 1<=x<=86400000"),
        (["a", "--timeout-ms", "1" + "0" * 400], "is not in the range"),
        (["a", "--endpoint", "memory.example"], "endpoint must be an absolute http or https URL"),
        (["a", "--endpoint", "ftp://memory.example"], "endpoint must be an absolute http or https URL"),
        (["a", "--endpoint", "http://u:secret@h/"], "endpoint must not hold a user name or password"),
        (["a", "--authorization", ""], "authorization must not be empty"),
        (["a", "--authorization", "secret\n"], "authorization must not hold control characters"),
    ],
)
def test_ask_refuses_what_cannot_be_asked(arguments, message):
    output = run("ask", *arguments, code=2)
    assert message in output
    assert "secret" not in output


def test_ask_says_when_nobody_listens():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        done = process("ask", "咖啡", "--endpoint", f"http://127.0.0.1:{closed.getsockname()[1]}/m")
    assert done.returncode == 1
    assert done.stdout.startswith("connection_failed: ")
    assert done.stderr == ""


# ---- serve


def test_serve_prints_how_to_ask_and_a_line_a_call():
    with served() as server:
        lines = []
        while not lines or not lines[-1].startswith("Calls"):
            lines.append(server.stdout.readline())
        text = "".join(lines)
        curl = text[text.index("curl") : text.index("\n\nPoint")]
        endpoint = text.split()[text.split().index("at") + 1]
        answer = subprocess.run(curl, shell=True, capture_output=True, check=True).stdout
        assert "月亮醒了" in json.loads(answer)["memories"][0]["summary"]
        assert '"timeout_ms": 3000' in text
        assert f'  200  "{PHRASE}" (all types): 1 memory in ' in server.stdout.readline()

        assert post(endpoint, {"query": "\x1b[31m\u202e", "memory_types": ["style"]}).status_code == 200
        assert '200  "\\u001b[31m\\u202e" (style): ' in server.stdout.readline()
        assert post(endpoint, {"query": "a", "user_id": "7"}, Accept="*/*").status_code == 200
        assert '200  "a" (all types): 5 memories in ' in server.stdout.readline()
        assert server.stdout.readline().startswith("          REQ003 error at header Accept: ")
        assert server.stdout.readline().startswith("          REQ301 error at body /user_id: ")
        assert post(endpoint[:-1], {"query": "a"}).status_code == 404
        assert '404  "a" (all types): refused (not_found) in ' in server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0
        assert server.stderr.read() == ""


def test_serve_speaks_json():
    with served("--format", "json", "--authorization", "Bearer good", "--path", "/m") as server:
        ready = json.loads(server.stdout.readline())
        assert ready["endpoint"].endswith("/m")
        assert ready["authorization"] == "Bearer good"
        assert post(ready["endpoint"], {"query": "咖啡"}, Authorization="Bearer good").status_code == 200
        refused = post(ready["endpoint"].replace("/m", "/gateway/m"), {"query": "茶"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
        calls = [json.loads(server.stdout.readline()) for _ in range(2)]
        assert [(call["number"], call["status"], call["results"]) for call in calls] == [
            (1, 200, 5),
            (2, 401, 0),
        ]
        assert calls[0]["retrieval"] == {"query": "咖啡"}
        assert calls[1]["target"] == "/gateway/m"
        assert calls[0]["violations"] == []
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0


def test_serve_prints_every_call_as_json_however_many():
    with served("--format", "json") as server:
        ready = json.loads(server.stdout.readline())
        import requests

        with requests.Session() as session:
            for n in range(300):
                session.post(ready["endpoint"], json={"query": str(n)}, timeout=10)
        seen = [json.loads(server.stdout.readline())["retrieval"]["query"] for _ in range(300)]
        assert seen == list(map(str, range(300)))


def test_serve_goes_on_when_nobody_reads_its_output():
    with served("--format", "json") as server:
        ready = json.loads(server.stdout.readline())
        import requests

        with requests.Session() as session:  # far more than a pipe holds
            for _ in range(1500):
                assert (
                    session.post(ready["endpoint"], json={"query": "茶" * 300}, timeout=10).status_code == 200
                )
        server.send_signal(signal.SIGTERM)
        assert server.wait(15) == 0


def test_serve_stops_when_its_output_is_closed():
    with served() as server:
        server.stdout.readline()
        server.stdout.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0
        server.stdout = None


def test_serve_with_another_persona():
    with served("--persona", FIXTURES / "persona" / "small.json", "--max-response-bytes", 300) as server:
        assert "small.json" in server.stdout.readline()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--persona", "nowhere.yaml"], "Error: nowhere.yaml"),
        (["--persona", "persona.txt"], "Error: persona.txt"),
        (["--path", "memory"], "Error: the path must start with /"),
        (["--authorization", ""], "Error: memory_retrieval: authorization must not be empty"),
        (
            ["--path", "/用户"],
            "Error: the path must start with / and hold no ?, # or space, and what is not ASCII",
        ),
        (["--host", "\udcff", "--port", "0"], "Error: cannot listen on "),
        (["--port", "65536"], "65536 is not in the range"),
        (["--host", "nowhere.invalid", "--port", "0"], "Error: cannot listen on nowhere.invalid port 0: "),
    ],
)
def test_serve_refuses_what_cannot_be_served(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("persona.txt").touch()
    output = run("serve", *arguments, code=2)
    assert message in output


def test_serve_on_a_port_in_use_says_so():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = process("serve", "--port", taken.getsockname()[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: cannot listen on 127.0.0.1 port ")
    assert done.stderr.count("\n") == 1


def test_closed_standard_streams_do_no_harm():
    command = f"exec {sys.executable} -m memmock ask {PHRASE} <&- 2>&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, "月亮醒了" in done.stdout.decode()) == (0, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device on this system")
def test_output_that_cannot_be_written_is_a_clear_error():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "memmock", "schema"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: cannot write the output: No space left on device\n")


def test_console_without_unicode_gets_escapes():
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "memmock", "ask", PHRASE]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert done.returncode == 0
    assert b"\\u6708\\u4eae\\u9192\\u4e86" in done.stdout


def test_ready_means_serving():
    for _ in range(3):
        with served("--format", "json") as server:
            endpoint = json.loads(server.stdout.readline())["endpoint"]
            start = time.monotonic()
            assert post(endpoint, {"query": "a"}).status_code == 200
            assert time.monotonic() - start < 5
