"""The command line: through click's runner, and each command once as a process of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from memmock import __version__, verification
from memmock.cli import COMMANDS, main
from memmock.http import JSON_TYPE, Reply
from memmock.rules import RULES
from memmock.scenarios import CATALOGUE, FAMILIES, Promise, family
from memmock.server import Server
from tests.wire import Wire

FIXTURES = Path(__file__).parent.parent / "fixtures"
PHRASE = "用户和灵绯之前约定的暗号"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("MEMMOCK_ENDPOINT", raising=False)
    monkeypatch.delenv("MEMMOCK_AUTHORIZATION", raising=False)
    monkeypatch.delenv("MEMMOCK_CONTROL_TOKEN", raising=False)


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


def ready(server):
    """Return what a server that speaks JSON says when it is ready."""
    return json.loads(server.stdout.readline())


def welcome(server):
    """Return what a server says when it is ready, up to the calls."""
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("Calls"):
            break
    return "".join(lines)


def endpoint_in(text):
    return text.split()[text.split().index("at") + 1]


def port_of(url):
    return urlsplit(url).port


def stop(server):
    """Press Ctrl-C; return how long the server took, and what it printed after that."""
    start = time.monotonic()
    server.send_signal(signal.SIGINT)
    assert server.wait(10) == 0
    elapsed_s = time.monotonic() - start
    assert server.stderr.read() == ""
    return elapsed_s, server.stdout.read()


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


# ---- scenarios


def test_scenarios_lists_all_by_family():
    output = run("scenarios")
    heads = [line for line in output.splitlines() if line and not line.startswith(" ")]
    lines = [line for line in output.splitlines() if re.match("  [^ ]", line)]
    assert heads == list(FAMILIES)
    assert [line.split()[0] for line in lines] == list(CATALOGUE)
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        " or ".join(scenario.outcomes) for scenario in CATALOGUE.values()
    ]


def test_scenarios_lists_a_family():
    output = run("scenarios", "--family", "timing")
    assert output.startswith(
        """timing
  late                          timeout
      The answer begins when the time is over, after `factor` times `timeout_ms`. (factor=1.5)
  hang                          timeout
      The provider takes the request and never answers.
"""
    )
    assert output.count("\n  ") == 2 * len(family("timing"))


def test_scenarios_describes_one_with_all_that_can_be_told():
    assert (
        run("scenarios", "rate-limited")
        == """rate-limited (statuses)

  429: too many requests, with a Retry-After in seconds.

  a good consumer shows   http_error
  parameters              retry_after=1
  other names             429

  memmock serve --scenario "rate-limited(retry_after=1)"
"""
    )
    assert (
        run("scenarios", "refused")
        == """refused (connection)

  Nobody listens at the port.

  a good consumer shows   connection_failed
  needs                   control of the port, so not for pytest-httpserver

  memmock serve --scenario refused
"""
    )


def test_scenarios_knows_other_names():
    assert run("scenarios", "429") == run("scenarios", "rate-limited")


def test_scenarios_describes_several_and_whole_families_in_the_order_of_the_catalogue():
    pages = [run("scenarios", scenario.name) for scenario in [CATALOGUE["empty"], *family("timing")]]
    assert run("scenarios", "timing", "empty", "late") == "\n".join(pages)


def test_scenarios_gives_its_data():
    everything = [scenario.to_json() for scenario in CATALOGUE.values()]
    assert json.loads(run("scenarios", "--format", "json")) == everything
    assert json.loads(run("scenarios", "--format", "json", "timing")) == [
        scenario.to_json() for scenario in family("timing")
    ]
    assert json.loads(run("scenarios", "--format", "json", "503")) == [CATALOGUE["unavailable"].to_json()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lat"], "there is no scenario 'lat'; near it are late, plain-text; `memmock scenarios` lists all"),
        (["late", "?"], "there is no scenario '?'; `memmock scenarios` lists all"),
        (
            ["--verify", "dripp"],
            "there is no scenario 'dripp'; near it are drip; `memmock scenarios` lists all",
        ),
        (
            ["--family", "time"],
            "there is no family of scenarios 'time'; they are "
            "answers, statuses, bodies, sizes, timing, connection",
        ),
    ],
)
def test_scenarios_names_the_nearest_of_an_unknown_name(arguments, message):
    assert run("scenarios", *arguments, code=2) == f"Error: {message}\n"


@pytest.mark.parametrize("options", [[], ["--verify"], ["--format", "json"]])
def test_scenarios_that_are_not_of_the_family_are_a_usage_error(options):
    output = run("scenarios", "--family", "timing", "empty", *options, code=2)
    assert output == "Error: the family timing has no scenario 'empty'\n"


def test_scenarios_are_verified():
    output = run("scenarios", "--verify", "html", "reset-mid-body", "refused")
    lines = output.splitlines()
    times = r"[\d,]+ bytes, first after \d+ ms, last after \d+ ms"
    assert re.fullmatch(rf"ok      html                          {times}, still open", lines[0])
    assert lines[1] == "ok      refused                       connection refused"
    assert re.fullmatch(rf"ok      reset-mid-body                {times}, RST after \d+ ms", lines[2])
    assert lines[3:] == ["", "3 of 3 scenarios arrived as promised."]


def test_what_is_told_of_a_scenario_is_not_what_came_after_it():
    (proof,) = verification.verify([CATALOGUE["html"]])  # then another call is made on the connection
    assert proof.seen.arrivals[-1][1] == len(proof.seen.data)


def test_scenarios_are_verified_for_another_limit():
    (late,) = json.loads(run("scenarios", "--verify", "late", "--timeout-ms", 100, "--format", "json"))
    assert late["ok"]
    assert 150 <= int(re.search(r"first after (\d+) ms", late["seen"])[1]) < 750


def test_verified_scenarios_are_given_as_data():
    facts = json.loads(run("scenarios", "--verify", "--format", "json", "server-error", "close-mid-body"))
    assert [(fact["name"], fact["ok"], fact["mistakes"]) for fact in facts] == [
        ("server-error", True, []),
        ("close-mid-body", True, []),
    ]
    assert facts[0]["seen"].endswith(", still open")
    assert ", FIN after " in facts[1]["seen"]


@pytest.fixture
def broken(monkeypatch):
    """Let a scenario not keep its promise."""
    promise = Promise("open", 503, 2, late=False)
    scenario = dataclasses.replace(CATALOGUE["server-error"], promise=promise, outcomes=("ok",))
    monkeypatch.setitem(CATALOGUE, "server-error", scenario)
    return [
        "the status: 503 was promised, 500 was seen",
        "complete replies: 2 was promised, 1 was seen",
        "the outcome: ok was promised, by the contract it is http_error",
    ]


def test_broken_promise_is_shown_and_exits_with_1(broken):
    lines = run("scenarios", "--verify", "server-error", "empty", code=1).splitlines()
    assert lines[0].startswith("ok      empty                         ")
    assert lines[1].startswith("broken  server-error                  ")
    assert lines[2:] == [
        *(f"          {mistake}" for mistake in broken),
        "",
        "1 of 2 scenarios arrived as promised.",
    ]


def test_broken_promise_is_given_as_data_and_exits_with_1(broken):
    (fact,) = json.loads(run("scenarios", "--verify", "server-error", "--format", "json", code=1))
    assert (fact["ok"], fact["mistakes"]) == (False, broken)


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
        (["--host", "\udcff"], "Error: cannot listen on "),
        (["--port", "65536"], "65536 is not in the range"),
        (["--host", "nowhere.invalid"], "Error: cannot listen on nowhere.invalid port 0: "),
    ],
)
def test_serve_refuses_what_cannot_be_served(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("persona.txt").touch()
    output = run("serve", "--port", 0, *arguments, code=2)
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


# ---- serve: what it plays

MINE = """
scenarios:
  half:
    body: {memories: [{summary: 用户喜欢喝茶。}]}
    delivery: {cut_body: 20, ending: reset}
  busy:
    status: 503
    when: {query: 暗号}
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(MINE, "utf-8")
    return path


def plays(text):
    """Return the lines that tell what a server plays."""
    return text.partition("It plays, the first that applies:\n")[2].partition("\n\n")[0].splitlines()


def outcomes(endpoint, n=30):
    """Return what came of so many calls, one after the other."""
    import requests

    found = []
    with requests.Session() as session:
        for _ in range(n):
            reply = session.post(endpoint, json={"query": "茶"}, timeout=10)
            found.append((reply.status_code, len(reply.json().get("memories", ""))))
    return found


def test_serve_tells_what_it_plays(mine):
    with served(
        "--scenario", "late(factor=2)", "--chaos", "half=0.5, empty=.25", "--seed", 7,
        "--plan", "server-error*2, html", "--scenarios", mine,
    ) as server:  # fmt: skip
        text = welcome(server)
        assert plays(text) == [
            "  server-error*2, html",
            "  half=0.5, empty=0.25 (seed 7)",
            "  busy when query is '暗号'",
            "  late(factor=2.0)",
        ]
        control = f"{endpoint_in(text).removesuffix('memory_retrieval')}__memmock__/"
        assert (
            f"Change what it plays (memmock scenarios lists it all):\n\ncurl -s -X PUT {control}scenario \\\n"
            "  -H 'Content-Type: application/json' -d '{\"use\": \"late\"}'\n\n"
        ) in text
        assert outcomes(endpoint_in(text), 2) == [(500, 0)] * 2


def test_serve_tells_nothing_when_it_plays_nothing():
    with served() as server:
        assert "It plays" not in welcome(server)


def test_serve_tells_programs_where_it_is_controlled_and_the_seed(mine):
    with served("--format", "json", "--chaos", "empty=0.5", "--seed", 7, "--scenario", "html") as server:
        told = ready(server)
        base = told["endpoint"].removesuffix("memory_retrieval")
        assert told == {
            "endpoint": f"{base}memory_retrieval",
            "authorization": "Bearer memmock",
            "control": f"{base}__memmock__/",
            "seed": 7,
        }


def test_serve_plays_scenarios_of_ones_own(mine):
    import requests

    with served("--format", "json", "--scenarios", mine, "--scenario", "half") as server:
        endpoint = ready(server)["endpoint"]
        assert post(endpoint, {"query": "暗号"}).status_code == 503
        with pytest.raises(requests.RequestException, match="reset by peer"):
            post(endpoint, {"query": "茶"})


def test_same_seed_gives_the_same_outcomes():
    chaos = ("--format", "json", "--chaos", "server-error=0.3, empty=0.3")
    runs = []
    for seed in (7, 7, 8):
        with served(*chaos, "--seed", seed) as server:
            runs.append(outcomes(ready(server)["endpoint"]))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert set(runs[0]) == {(500, 0), (200, 0), (200, 5)}


def test_seed_that_was_chosen_is_shown_and_gives_the_same_outcomes():
    chaos = ("--chaos", "server-error=0.3, empty=0.3")
    with served(*chaos) as server:
        text = welcome(server)
        (play,) = plays(text)
        first = outcomes(endpoint_in(text))
    seed = re.fullmatch(r"  server-error=0.3, empty=0.3 \(seed (\d+)\)", play)[1]
    with served(*chaos, "--seed", seed, "--format", "json") as server:
        told = ready(server)
        assert told["seed"] == int(seed)
        assert outcomes(told["endpoint"]) == first


def test_seed_differs_from_run_to_run():
    seeds = set()
    for _ in range(2):
        with served("--chaos", "empty=0.5", "--format", "json") as server:
            seeds.add(ready(server)["seed"])
    assert len(seeds) == 2


BAD = {
    (
        "--scenario",
        "lat",
    ): "there is no scenario 'lat'; near it are late, plain-text; `memmock scenarios` lists all",
    ("--scenario", ""): "'' should be the name of a scenario, as late or late(factor=2)",
    ("--scenario", "late(facter=2)"): "scenario late has no parameter 'facter'; it has factor",
    ("--plan", "server-error*0"): "plan: 'server-error*0' must be played 1 to 1,000,000 times",
    ("--plan", "late,,empty"): "plan: a part of 'late,,empty' is empty, is there a comma too many?",
    ("--plan", ""): "plan: it is empty",
    ("--plan", "refused, late"): "plan: refused cannot be counted, as nobody sees who is refused",
    ("--chaos", "late"): "chaos: 'late' should be a scenario=chance, as late=0.05",
    ("--chaos", "late=0.7, empty=0.4"): "chaos: the chances must be above 0 and at most 1 together, not 1.1",
    ("--chaos", "refused=0.1"): "chaos: refused comes before the request, so it cannot be drawn for one",
    ("--control-token", ""): "the control token must be printable ASCII without spaces, and not empty",
    ("--control-token", "a b"): "the control token must be printable ASCII without spaces, and not empty",
    ("--scenarios", "nowhere.yaml"): "nowhere.yaml: No such file or directory",
    ("--scenarios", "mine.txt"): "mine.txt: a file of scenarios ends in .yaml, .yml or .json",
    (
        "--scenarios",
        "typo.yaml",
    ): 'typo.yaml:4: scenarios.sleepy.delivery has no field "delay"; its fields are ',
    ("--scenarios", "broken.yaml"): "broken.yaml:3: not YAML: ",
}


@pytest.mark.parametrize(("arguments", "message"), BAD.items(), ids=map(" ".join, BAD))
def test_serve_refuses_what_cannot_be_played(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("mine.txt").touch()
    tmp_path.joinpath("typo.yaml").write_text("scenarios:\n  sleepy:\n    delivery:\n      delay: 5\n")
    tmp_path.joinpath("broken.yaml").write_text("scenarios:\n  sleepy: {\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:  # no port is asked for
        result = CliRunner().invoke(main, ["serve", "--port", str(taken.getsockname()[1]), *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


def test_seed_without_chaos_is_a_usage_error():
    output = run("serve", "--port", 0, "--seed", 7, code=2)
    assert output.endswith("\nError: --seed is for --chaos, which is not given\n")


def test_serve_with_a_mistake_in_a_file_ends_at_once(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("scenarios:\n  a: {}\n  b:\n    status: 99\n")
    done = process("serve", "--port", 0, "--scenarios", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {path}:4: scenarios.b.status must be an integer from 100 to 999, not 99\n"


def test_refused_from_the_start_is_refused_until_ctrl_c():
    with served("--format", "json", "--scenario", "refused") as server:
        port = port_of(ready(server)["endpoint"])
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 10)
        assert stop(server)[1] == ""


HEADERS = (f"Content-Type: {JSON_TYPE}", f"Accept: {JSON_TYPE}", "Authorization: Bearer x")
STOP_S = 1.0
"""How long a server may take to stop, whatever its clients wait for."""


@pytest.mark.parametrize(
    ("scenario", "sent"),
    [("hang", "0 bytes"), ("endless", r"[\d,]+ bytes"), ("drip", r"[\d,]+ bytes")],
    ids=["hang", "endless", "drip"],
)
def test_ctrl_c_ends_what_is_under_way(scenario, sent):
    with served("--scenario", scenario, "--timeout-ms", 60_000) as server:
        port = port_of(endpoint_in(welcome(server)))
        with Wire(port) as first, Wire(port) as second:
            for client, query in ((first, "a"), (second, "b")):
                client.post(b'{"query": "%s"}' % query.encode(), *HEADERS)
                assert server.stdout.readline().endswith(
                    f'  200  "{query}" (all types): {scenario}, under way\n'
                )
            elapsed_s, output = stop(server)
    assert elapsed_s < STOP_S
    line = rf'          {scenario} to "[ab]": the server stopped after {sent}, [\d,]+ of 60,000 ms\n'
    assert re.fullmatch(line * 2, output)


def test_played_call_that_takes_time_has_two_lines():
    with served("--plan", "late, server-error", "--timeout-ms", 300) as server:
        endpoint = endpoint_in(welcome(server))
        assert post(endpoint, {"query": "茶"}).status_code == 200
        assert re.fullmatch(
            r'\d\d:\d\d:\d\d  200  "茶" \(all types\): late, under way\n', server.stdout.readline()
        )
        assert re.fullmatch(
            r'          late to "茶": completed, [\d,]+ bytes, [\d,]+ of 300 ms\n', server.stdout.readline()
        )
        assert post(endpoint, {"query": "茶", "memory_types": ["style"]}).status_code == 500
        assert server.stdout.readline().endswith('  500  "茶" (style): server-error, completed\n')
        assert stop(server)[1] == ""


def test_played_call_has_one_line_of_json_when_it_has_ended():
    with served("--plan", "late, server-error, success", "--timeout-ms", 300, "--format", "json") as server:
        endpoint = ready(server)["endpoint"]
        for _ in range(3):
            post(endpoint, {"query": "茶"})
        late, error, success = (json.loads(server.stdout.readline()) for _ in range(3))
        assert stop(server)[1] == ""
    assert (late["number"], late["played"], late["status"], late["results"]) == (1, "late", 200, 5)
    assert re.fullmatch(r"completed, [\d,]+ bytes, [\d,]+ of 300 ms", late["ending"])
    assert late["duration_ms"] >= 450
    assert (error["played"], error["status"], error["ending"]) == ("server-error", 500, "completed")
    assert (success["played"], success["results"], success["ending"]) == ("success", 5, "completed")


def test_played_call_that_is_under_way_at_ctrl_c_has_its_line_of_json():
    with (
        served("--scenario", "hang-mid-body", "--format", "json") as server,
        Wire(port_of(ready(server)["endpoint"])) as wire,
    ):
        wire.post(b'{"query": "a"}', *HEADERS)
        assert wire.socket.recv(1) == b"H"
        call = json.loads(stop(server)[1])
    assert (call["played"], call["status"]) == ("hang-mid-body", 200)
    assert re.fullmatch(r"the server stopped after [\d,]+ bytes, [\d,]+ of 3,000 ms", call["ending"])


# ---- serve: the control API


def control(base, method, name, body=None, **headers):
    import requests

    named = {"Content-Type": JSON_TYPE, **{name.replace("_", "-"): value for name, value in headers.items()}}
    data = None if body is None else json.dumps(body)
    return requests.request(method, base + name, data=data, headers=named, timeout=10)


def test_scenario_is_changed_while_it_serves():
    with served("--format", "json", "--scenario", "html") as server:
        told = ready(server)
        answer = control(told["control"], "PUT", "scenario", {"use": "server-error", "times": 1})
        assert [rule["use"] for rule in answer.json()["rules"]] == ["server-error", "html"]
        assert post(told["endpoint"], {"query": "茶"}).status_code == 500
        assert post(told["endpoint"], {"query": "茶"}).headers["Content-Type"].startswith("text/html")
        played = [json.loads(server.stdout.readline())["played"] for _ in range(2)]
        assert played == ["server-error", "html"]


def test_reset_plays_what_was_asked_for_at_the_start(mine):
    with served(
        "--format",
        "json",
        "--scenario",
        "empty",
        "--chaos",
        "server-error=0.5",
        "--seed",
        7,
        "--scenarios",
        mine,
    ) as server:
        told = ready(server)
        first = outcomes(told["endpoint"])
        control(told["control"], "PUT", "scenario", {"use": "bad-request"})
        assert control(told["control"], "POST", "reset").json()["calls"] == 0
        assert outcomes(told["endpoint"]) == first
        assert set(first) == {(200, 0), (500, 0)}


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Origin": "http://evil.example"}, 'a page of "http://evil.example" cannot change the mock at '),
        ({"Sec_Fetch_Site": "cross-site"}, "a page of another origin cannot change the mock"),
        ({"Host": "evil.example"}, "the Host header must name this server, as localhost or 127.0.0.1, not "),
    ],
    ids=["origin", "site", "host"],
)
def test_foreign_page_cannot_change_what_is_served(headers, message):
    with served("--format", "json") as server:
        told = ready(server)
        refused = control(told["control"], "PUT", "scenario", {"use": "server-error"}, **headers)
        assert refused.status_code == 403
        assert refused.json()["error"]["message"].startswith(message)
        assert post(told["endpoint"], {"query": "茶"}).status_code == 200


@pytest.mark.parametrize("by", ["option", "environment"])
def test_control_token_is_asked_for_and_not_shown(by):
    arguments = ["--control-token", "s3cret"] if by == "option" else []
    environment = {**os.environ, "MEMMOCK_CONTROL_TOKEN": "of-the-environment" if arguments else "s3cret"}
    with served(*arguments, env=environment) as server:
        text = welcome(server)
        base = f"{endpoint_in(text).removesuffix('memory_retrieval')}__memmock__/"
        assert '  -H "Authorization: Bearer $MEMMOCK_CONTROL_TOKEN" \\\n' in text
        assert control(base, "GET", "health").status_code == 401
        assert control(base, "GET", "health", Authorization="Bearer s3cret").status_code == 200
        assert post(endpoint_in(text), {"query": "茶"}).status_code == 200
        server.stdout.readline()
        assert "s3cret" not in text + stop(server)[1]


def test_control_api_that_is_off_is_not_advertised():
    with served("--host", "0.0.0.0") as server:
        text = welcome(server)
    assert "Others may reach this server, so its control API is off; --control-token turns it on.\n" in text
    assert "__memmock__" not in text
