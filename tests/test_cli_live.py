"""The live twin on the command line: `live`, `serve --live`, `ask --live` and `demo --through-live`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from memmock.cli import live as live_command
from memmock.cli import main
from memmock.cli.live_log import live_log
from memmock.http import Reply, Request
from memmock.live import LIVES_PATH, Live, Lives
from memmock.memories import builtin
from memmock.provider import Provider
from memmock.server import Server

SECRET = "Bearer s3cret-4711-long"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("ENDPOINT", "AUTHORIZATION", "CONTROL_TOKEN"):
        monkeypatch.delenv(f"MEMMOCK_{name}", raising=False)


def run(*arguments, code=0):
    """Return what the command prints; it must exit with `code`, and never with a traceback."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


@contextmanager
def process(code, *arguments):
    """Run memmock as a process, by a line of Python; killed at the end."""
    command = [sys.executable, "-X", "utf8", "-c", code, *map(str, arguments)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    try:
        yield server
    finally:
        server.kill()
        server.communicate()


SERVE = "from memmock.cli import main; main()"
LIVE = "from memmock.cli.live import command; command()"


def stopped(server):
    """Press Ctrl-C; return what the server still printed."""
    server.send_signal(signal.SIGINT)
    printed = server.communicate(timeout=20)[0]
    assert server.returncode == 0, printed
    return printed


def until(server, start):
    """Return the lines that a server prints until one that starts with `start`."""
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith(start):
            break
    return "".join(lines)


def post(url, body, **headers):
    import requests

    return requests.post(url, json=body, headers=headers, timeout=20)


@pytest.fixture(scope="module")
def twin():
    """The address of a twin in front of a provider that takes only one authorization."""
    live = Live(Lives(), other=Provider(builtin(), authorization=SECRET))
    with Server(live) as server:
        yield server.url


def create(url, **block):
    """Create a live session in a twin that is its own provider; return its id."""
    usual = {"endpoint": f"{url}/memory_retrieval", "authorization": SECRET}
    return post(url + LIVES_PATH, {"memory_retrieval": usual | block}).json()["live"]["id"]


# ---- live


def test_live_takes_create_live_and_retrieves():
    with process(LIVE, "--port", 0) as server, Server(Provider(builtin())) as provider:
        text = until(server, "Requests")
        url = re.search(r"(http://\S+)/live/v1/lives", text)[1]
        body = {"endpoint": f"{provider.url}/memory_retrieval", "authorization": SECRET}
        live_id = post(url + LIVES_PATH, {"memory_retrieval": body}).json()["live"]["id"]
        came_to = run("ask", "--live", url, "--live-id", live_id, "用户的猫", "--max-results", 1)
        printed = stopped(server)
    assert "memmock ask --live" in text
    assert came_to.startswith(" 1. 用户养了一只叫“芝麻”的黑猫，是下班路上捡回来的。\n    use naturally")
    assert f"200  POST /live/v1/lives: live {live_id}\n" in printed
    assert f'200  POST /__memmock__/lives/{live_id}/retrieve "用户的猫": 1 memory in ' in printed
    assert SECRET not in printed


def test_live_prints_json():
    with process(LIVE, "--port", 0, "--format", "json", "--seed", 3) as server:
        ready = json.loads(server.stdout.readline())
        live_id = post(ready["lives"], {}).json()["live"]["id"]
        post(ready["lives"], {"memory_retrieval": {}})
        lines = [json.loads(line) for line in stopped(server).splitlines()]
    assert list(ready) == ["lives", "control"]
    assert live_id == Lives(seed=3).create({}).id
    assert [(line["status"], line.get("live_id")) for line in lines] == [(200, live_id), (400, None)]
    assert lines[1]["message"].startswith("memory_retrieval.endpoint is missing; ")


def test_live_shows_its_page():
    with process(LIVE, "--port", 0) as server:
        url = re.search(r"^http\S+/__memmock__/$", until(server, "Requests"), re.MULTILINE)[0]
        import requests

        assert "text/html" in requests.get(url, timeout=10).headers["Content-Type"]


def test_live_that_others_may_reach_makes_no_retrievals():
    with process(LIVE, "--port", 0, "--host", "0.0.0.0") as server:
        text = until(server, "Requests")
    assert "it makes no retrievals; --control-token turns them on." in text
    assert "memmock ask" not in text


def test_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(live_command.command, ["--port", str(port)])
    assert str(result.exception).startswith(f"cannot listen on 127.0.0.1 port {port}: ")


def test_log_says_once_that_sessions_were_dropped(capsys):
    live = Live(Lives(max_lives=1))
    for _ in range(2):
        live(Request("POST", LIVES_PATH, (("Host", "localhost"),), b"{}", client="127.0.0.1"))
    with live_log(live, str, as_json=False):
        pass
    printed = capsys.readouterr().out
    assert printed.count("          1 older live session dropped so far: the latest 1 are kept\n") == 1


# ---- serve --live


def test_serve_stands_in_for_the_live_service_too():
    with process(SERVE, "serve", "--live", "--port", 0) as server:
        text = until(server, "Calls")
        url = re.search(r"(http://\S+)/live/v1/lives", text)[1]
        live_id = create(url)
        output = run("ask", "--live", f"{url}{LIVES_PATH}", "--live-id", live_id, "茶", "--format", "json")
        printed = stopped(server)
    assert json.loads(output)["ok"]
    assert f"200  POST /live/v1/lives: live {live_id}\n" in printed
    assert '200  "茶" (all types): ' in printed


def test_create_that_serve_prints_makes_a_session():
    with process(SERVE, "serve", "--live", "--port", 0) as server:
        text = until(server, "Calls")
        command = re.search(r"^curl -s \S+/live/v1/lives(?:.*\\\n)+.*$", text, re.MULTILINE)[0]
        done = subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=20)
        assert json.loads(done.stdout)["live"]["status"] == "waiting"


def test_serve_says_where_sessions_are_in_json():
    with process(SERVE, "serve", "--live", "--port", 0, "--format", "json", "--seed", 3) as server:
        ready = json.loads(server.stdout.readline())
        live_id = post(ready["lives"], {}).json()["live"]["id"]
    assert ready["lives"].endswith("/live/v1/lives")
    assert live_id == Lives(seed=3).create({}).id


def test_path_of_the_sessions_is_not_for_the_provider():
    output = run("serve", "--live", "--path", "/live/v1/lives/m", code=2)
    assert output == "Error: the path /live/v1/lives/m is where live sessions are; choose another one\n"


# ---- ask --live


def test_ask_lets_the_session_ask(twin):
    live_id = create(twin)
    output = run("ask", "--live", twin, "--live-id", live_id, "暗号", "--type", "history", "--max-results", 1)
    assert "月亮醒了" in output
    assert re.search(r"^1 memory in \d+ ms, \d+ bytes, no violations$", output, re.MULTILINE)


def test_ask_exits_with_1_for_an_error_result(twin):
    live_id = create(twin, authorization="Bearer another-one")
    output = run("ask", "--live", f"{twin}/", "--live-id", live_id, "暗号", code=1)
    assert output.startswith("http_error: the provider answered with status 401\n\nno memories in ")


def test_ask_shows_violations_of_both_sides(twin):
    with Server(lambda request: Reply.json({"memories": [{"summary": "没查到"}]})) as server:
        output = run("ask", "--live", twin, "--live-id", create(twin, endpoint=server.url), " ")
    assert "2 violations" not in output
    assert "  REQ203 warning at body /query: is white space only\n" in output
    assert "  RES202 error at body /memories/0/summary: " in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--live needs --live-id, the id that CreateLive answered"),
        (
            ("--live-id", "1", "--timeout-ms", "5"),
            "--timeout-ms is not for --live: the live session was created with its own",
        ),
        (
            ("--live-id", "1", "--endpoint", "http://a/"),
            "--endpoint is not for --live: the live session was created with its own",
        ),
        (("--live-id", "../7"), 'there is no live "..%2F7"; CreateLive answers the id of one'),
    ],
)
def test_ask_with_what_does_not_fit_is_refused(twin, arguments, message):
    assert run("ask", "--live", twin, *arguments, "茶", code=2).endswith(f"Error: {message}\n")


def test_ask_tells_that_retrieval_is_not_enabled(twin):
    live_id = post(twin + LIVES_PATH, {}).json()["live"]["id"]
    output = run("ask", "--live", twin, "--live-id", live_id, "茶", code=2)
    assert output == (
        f"Error: memory retrieval is not enabled for live {live_id}: it was created without "
        "memory_retrieval\n"
    )


@pytest.mark.parametrize("url", ["127.0.0.1:8766", "ftp://a/", "x"])
def test_ask_refuses_what_is_no_address(url):
    output = run("ask", "--live", url, "--live-id", 1, "茶", code=2)
    assert output == "Error: the URL of --live must be an absolute http or https URL\n"


def test_ask_tells_when_there_is_no_twin():
    with Server(Reply.json) as server:
        url = server.url
    output = run("ask", "--live", url, "--live-id", 1, "茶", code=2)
    assert output == (f"Error: no answer from the live twin at {url[7:]}: the connection was refused\n")


@pytest.mark.parametrize("answer", [Reply(200, (), b"<html>"), Reply.json([]), Reply.json({})])
def test_ask_tells_when_it_is_no_twin(answer):
    with Server(lambda request: answer) as server:
        output = run("ask", "--live", server.url, "--live-id", 1, "茶", code=2)
    assert output.startswith(f"Error: {server.url} does not answer as memmock's live twin does")


def test_ask_sends_the_control_token():
    live = Live(Lives(), token="t0ken", other=Provider(builtin()))
    with Server(live) as server:
        live_id = create(server.url)
        assert "control-token" in run("ask", "--live", server.url, "--live-id", live_id, "茶", code=2)
        run("ask", "--live", server.url, "--live-id", live_id, "茶", "--control-token", "t0ken")


# ---- demo --through-live


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def without_times(text):
    return re.sub(r'"elapsed_ms":[0-9.]+', '"elapsed_ms":0', text)


def steps(output):
    """Return each command of the demo with what it gave."""
    found = re.findall(r"^\d\. .*\n\n((?:.+\n)+)\n(\{.+\})\n", output, re.MULTILINE)
    return [(command, json_text) for command, json_text in found]


def test_demo_through_live_finds_the_three_points():
    output = run("demo", "--through-live", "--port", 0)
    assert output.count("✓ found") == 3
    assert output.endswith("\n3 of 3 points come first.\n")


def test_commands_of_the_demo_give_what_is_shown():
    port = free_port()
    output = run("demo", "--through-live", "--port", port)
    assert f"\nmemmock serve --live --port {port}\n" in output
    shown = steps(output)
    assert len(shown) == 4
    with process(SERVE, "serve", "--live", "--port", port) as server:
        until(server, "Calls")
        script = "\n".join(command for command, _ in shown)
        done = subprocess.run(["sh", "-c", script], capture_output=True, encoding="utf-8", timeout=60)
    assert done.stderr == ""
    given = "\n".join(text for _, text in shown)
    assert without_times(done.stdout.rstrip("\n")) == without_times(given)


def test_demo_takes_another_port_when_the_usual_one_is_taken(monkeypatch):
    from memmock.cli import live_demo

    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(live_demo, "DEFAULT_PORT", taken.getsockname()[1])
        output = run("demo", "--through-live")
    port = re.search(r"^memmock serve --live --port (\d+)$", output, re.MULTILINE)[1]
    assert f"http://127.0.0.1:{port}/live/v1/lives" in output


def test_port_of_the_demo_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = run("demo", "--through-live", "--port", port, code=2)
    assert output.startswith(f"Error: cannot listen on 127.0.0.1 port {port}: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--port", 1), "--port is for --through-live, which is not given"),
        (
            ("--through-live", "--endpoint", "http://a/"),
            "--endpoint is not for --through-live, which asks the built-in provider",
        ),
        (
            ("--through-live", "--timeout-ms", 5),
            "--timeout-ms is not for --through-live, which asks the built-in provider",
        ),
    ],
)
def test_options_of_the_demo_that_do_not_fit_are_refused(arguments, message):
    assert run("demo", *arguments, code=2).endswith(f"Error: {message}\n")
