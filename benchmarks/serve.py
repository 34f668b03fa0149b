"""Measures memmock against its aims, in one run; what is measured is in the README beside this file.

Nothing is asserted: the table has the figures, and whether each aim is met. Sections whose tools are not
installed (wrk, nginx) are skipped, and say so.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

PATH = "/memory_retrieval"
HERE = Path(__file__).resolve()
LUA = HERE.with_name("retrievals.lua")
MEMMOCK = str(Path(sys.executable).with_name("memmock"))
QUERY = {"query": "用户和灵绯之前约定的暗号", "max_results": 5}
"""Its answer is what the other servers answer to everything."""
WARM_UP = 20_000
SAMPLES = 10
MEMORIES = 100_000
QUERIES = 300


# ---- What comes out


@dataclass(frozen=True)
class Aim:
    """A bound on a figure: at most `bound`, or at least."""

    at: str
    bound: float

    def met(self, figure: float) -> bool:
        return figure <= self.bound if self.at == "<=" else figure >= self.bound


@dataclass(frozen=True)
class Row:
    """One line of the table: the median of some samples, or a line that says why there are none."""

    what: str
    samples: Sequence[float] = ()
    unit: str = ""
    aim: Aim | None = None

    def __str__(self) -> str:
        if not self.samples:
            return f"  {self.what}"
        spread = ""
        if len(self.samples) > 1:
            spread = f"{_number(min(self.samples))} … {_number(max(self.samples))}"
        figure = median(self.samples)
        aim = verdict = ""
        if self.aim:
            aim = f"{self.aim.at} {_number(self.aim.bound)}"
            verdict = "met" if self.aim.met(figure) else "NOT MET"
        line = f"  {self.what:<50}{_number(figure):>9} {self.unit:<4}{spread:>19}  {aim:>7}  {verdict}"
        return line.rstrip()

    def to_json(self) -> dict[str, Any]:
        value = asdict(self)
        if self.samples:
            value["median"] = median(self.samples)
            value["met"] = self.aim.met(value["median"]) if self.aim else None
        return value


def _number(figure: float) -> str:
    if figure >= 100 or figure == int(figure):
        return f"{figure:,.0f}"
    return f"{figure:.1f}" if figure >= 10 else f"{figure:.2f}" if figure >= 0.1 else f"{figure:.3f}"


@dataclass(frozen=True)
class Run:
    """What this run is to do, and a directory of its own."""

    directory: Path
    rounds: int
    requests: int


FLAT = Aim("<=", 2)
"""In MiB: of a million requests, nothing that is kept for each would fit into two bytes."""


# ---- Processes


@contextmanager
def process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command for the time of a `with`; it is ended however that is left."""
    running = subprocess.Popen(command, **options)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        if running.stdout:
            running.stdout.close()


@contextmanager
def serving(run: Run, name: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run one of the `SERVERS`; give its port and its process once it accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    log = run.directory / f"{name}.log"
    with (
        log.open("wb") as out,
        process(SERVERS[name](port, run.directory), stdout=out, stderr=subprocess.STDOUT) as server,
    ):
        deadline = time.monotonic() + 20
        while not _accepts(port):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{name} does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        yield port, server


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def seconds_for(command: Sequence[str], directory: Path) -> float:
    """Return how long a command takes; its output is thrown away."""
    start = time.perf_counter()
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


# ---- The servers that are compared


def _memmock(port: int, _: Path) -> list[str]:
    return [MEMMOCK, "serve", "--port", str(port)]


def _nginx(port: int, directory: Path) -> list[str]:
    prefix = directory / "nginx"
    prefix.mkdir(exist_ok=True)
    answer = (directory / "answer.json").read_text().replace("\\", "\\\\").replace("'", "\\'")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {kind};" for kind in kinds)
    config = f"""
        daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
        events {{ worker_connections 256; }}
        http {{
          access_log off; keepalive_timeout 1d; keepalive_requests 1000000000; {places}
          server {{
            listen 127.0.0.1:{port};
            location = {PATH} {{ default_type application/json; return 200 '{answer}'; }}
          }}
        }}
    """
    (prefix / "nginx.conf").write_text(config)
    return ["nginx", "-e", "stderr", "-p", str(prefix), "-c", "nginx.conf"]


def _own(name: str) -> Callable[[int, Path], list[str]]:
    return lambda port, directory: [
        sys.executable, str(HERE), "--answer", name, str(port), str(directory / "answer.json")
    ]  # fmt: skip


SERVERS: dict[str, Callable[[int, Path], list[str]]] = {
    "memmock serve": _memmock,
    "pytest-httpserver": _own("pytest-httpserver"),
    "nginx": _nginx,
    "bare protocol": _own("bare protocol"),
}


def answer_with_pytest_httpserver(port: int, answer: bytes) -> None:
    from pytest_httpserver import HTTPServer

    server = HTTPServer(port=port, threaded=True)
    server.expect_request(PATH, method="POST").respond_with_data(answer, content_type="application/json")
    server.start()
    signal.pause()


def answer_with_bare_protocol(port: int, answer: bytes) -> None:
    import httptools
    import uvloop

    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)

    class FixedAnswer(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self._write = transport.write
            self._parser = httptools.HttpRequestParser(self)

        def data_received(self, data: bytes) -> None:
            self._parser.feed_data(data)

        def on_message_complete(self) -> None:
            self._write(head + answer)

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(FixedAnswer, "127.0.0.1", port)
        await server.serve_forever()

    uvloop.run(serve())


def memmocks_answer(port: int) -> bytes:
    """Return the body of memmock's answer to `QUERY`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", PATH, json.dumps(QUERY), {"Content-Type": "application/json"})
        return connection.getresponse().read()
    finally:
        connection.close()


# ---- 1. Throughput and latency


def throughput(run: Run) -> Iterator[Row]:
    """All servers in turn, round after round: the machine's speed changes, ratios within a round less."""
    if not shutil.which("wrk"):
        yield Row("skipped: wrk is not installed")
        return
    with serving(run, "memmock serve") as (port, _):
        (run.directory / "answer.json").write_bytes(memmocks_answer(port))
    names = [name for name in SERVERS if name != "nginx" or shutil.which("nginx")]
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(run.rounds):
        for name in names:
            with serving(run, name) as (port, _):
                figures[name].append(driven(port))
    rates = {name: [f["requests"] / f["duration_us"] * 1e6 for f in found] for name, found in figures.items()}
    for name in names:
        yield Row(f"{name}: requests", rates[name], "/s")
    ratio_aims = {"pytest-httpserver": Aim(">=", 15), "nginx": Aim(">=", 0.3), "bare protocol": None}
    for name in names[1:]:
        ratios = [ours / theirs for ours, theirs in zip(rates["memmock serve"], rates[name], strict=True)]
        yield Row(f"memmock serve / {name}", ratios, "x", ratio_aims[name])
    if "nginx" not in names:
        yield Row("skipped: nginx is not installed")
    for name in names:
        p99 = [found["p99_us"] / 1000 for found in figures[name]]
        yield Row(f"{name}: p99", p99, "ms", Aim("<=", 2) if name == "memmock serve" else None)
    for name in names:
        sizes = [found["bytes"] / found["requests"] for found in figures[name]]
        yield Row(f"{name}: bytes an answer, with the head", sizes, "B")
    for name in names:
        if errors := sum(found["errors"] for found in figures[name]):
            yield Row(f"{name}: errors", [errors])


def driven(port: int) -> dict[str, float]:
    """Return what wrk measures in five seconds."""
    command = ["wrk", "-t1", "-c16", "-d5s", "--latency", "-s", str(LUA), f"http://127.0.0.1:{port}{PATH}"]
    with process(command, stdout=subprocess.PIPE) as wrk:
        out, _ = wrk.communicate()
    return next(json.loads(line[5:]) for line in out.splitlines() if line.startswith(b"JSON "))


# ---- 2. Memory


def memory(run: Run) -> Iterator[Row]:
    """`memmock serve` over many requests."""
    if not shutil.which("wrk"):
        yield Row("skipped: wrk is not installed")
        return
    with serving(run, "memmock serve") as (port, server):
        sizes = [rss_mib(server.pid)]
        for requests in (WARM_UP, *[(run.requests - WARM_UP) // SAMPLES] * SAMPLES):
            sent(port, requests)
            sizes.append(rss_mib(server.pid))
    yield Row("RSS before the first request", sizes[:1], "MiB")
    yield Row(f"RSS after {WARM_UP:,} requests", sizes[1:2], "MiB")
    yield Row(f"RSS after {run.requests:,}", sizes[-1:], "MiB")
    yield Row(f"RSS in {SAMPLES} samples on the way", sizes[2:], "MiB")
    yield Row("growth after the warm-up", [sizes[-1] - sizes[1]], "MiB", FLAT)


def sent(port: int, requests: int) -> None:
    """Send so many requests, and wait for the answers."""
    url = f"http://127.0.0.1:{port}{PATH}"
    command = ["wrk", "-t1", "-c16", "-d1h", "-s", str(LUA), url, "--", str(requests)]
    with process(command, stdout=subprocess.DEVNULL) as wrk:
        wrk.wait()


def rss_mib(pid: int) -> float:
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) / 1024


# ---- 3. The command line


def command_line(run: Run) -> Iterator[Row]:
    """Each command is run once before it counts."""
    ready = [seconds_until_ready() for _ in range(10)][1:]
    yield Row("memmock serve: start to ready line", ready, "s", Aim("<=", 0.3))
    for command in ([MEMMOCK, "--version"], [MEMMOCK, "--help"], [sys.executable, "-c", ""]):
        name = " ".join(["python" if command[0] == sys.executable else "memmock", *command[1:]])
        took = [seconds_for(command, run.directory) for _ in range(10)][1:]
        yield Row(name if command[-1] else 'python -c "", for comparison', took, "s")


def seconds_until_ready() -> float:
    start = time.perf_counter()
    command = [MEMMOCK, "serve", "--port", "0", "--format", "json"]
    with process(command, stdout=subprocess.PIPE) as server:
        assert server.stdout
        json.loads(server.stdout.readline())
        return time.perf_counter() - start


# ---- 4. The pytest plugin


def plugin(run: Run) -> Iterator[Row]:
    """The fixtures, and what everybody pays who has memmock installed."""
    took = [start_and_stop_ms() for _ in range(51)][1:]
    yield Row("MockServer: start and stop", took, "ms", Aim("<=", 20))
    yield Row("MockServer: start and stop, the slowest", [max(took)], "ms")
    plain, mocked = run.directory / "test_plain.py", run.directory / "test_mocked.py"
    plain.write_text("".join(f"def test_{n}(): pass\n" for n in range(500)))
    mocked.write_text("".join(f"def test_{n}(memmock): pass\n" for n in range(500)))
    pairs = [[seconds_for(_pytest(file), run.directory) for file in (plain, mocked)] for _ in range(10)][1:]
    each = [(with_it - without) / 500 * 1000 for without, with_it in pairs]
    without, with_it = (min(took) for took in zip(*pairs, strict=True))
    yield Row("the memmock fixture, a test", each, "ms", Aim("<=", 1))
    yield Row("the same, from the fastest runs", [(with_it - without) / 500 * 1000], "ms", Aim("<=", 1))
    yield Row("import of memmock.plugin", [plugin_import_ms() for _ in range(6)][1:], "ms", Aim("<=", 15))


def start_and_stop_ms() -> float:
    from memmock.mock_server import MockServer

    start = time.perf_counter()
    server = MockServer()
    server.start()
    server.stop()
    return (time.perf_counter() - start) * 1000


def _pytest(file: Path) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(file)]


def plugin_import_ms() -> float:
    """Return what the import takes beyond pytest's own."""
    code = "import pytest; import memmock.plugin"
    command = [sys.executable, "-X", "importtime", "-c", code]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    split = [[part.strip() for part in line.split("|")] for line in lines]
    return sum(int(parts[1]) for parts in split if parts[-1] in ("memmock", "memmock.plugin")) / 1000


# ---- 5. Retrieval from many memories

_TEXT = (
    "喜欢讨厌习惯计划打算曾经每天周末早上晚上咖啡红茶牛奶面包米饭火锅跑步游泳瑜伽登山"
    "电影音乐小说游戏摄影绘画编程代码项目会议报告预算客户同事老板家人妈妈爸爸妹妹朋友"
    "猫咪小狗生日礼物旅行海边山里北京上海杭州成都冬天夏天下雨过敏花生海鲜睡眠失眠头疼"
    "简短详细语气结论理由例子表格列表中文英文手机电脑耳机键盘房子装修搬家地铁单车考试"
    "论文老师学校目标存钱投资保险月亮"
)
_WORDS = [_TEXT[n : n + 2] for n in range(0, len(_TEXT), 2)]
_RARE_CHARACTERS = [chr(code) for code in range(0x4E00, 0x4E00 + 6000)]


def retrieval(run: Run) -> Iterator[Row]:
    """Retrieval among 100,000 memories, without a server."""
    from memmock.memories import load

    chance = random.Random(20260101)
    file = run.directory / "persona.json"
    memories = [_memory(chance, number) for number in range(MEMORIES)]
    persona = {"live": {"builtin_avatars": {"01": {"memories": memories}}}}
    file.write_text(json.dumps(persona, ensure_ascii=False))
    del memories, persona
    start = time.perf_counter()
    loaded = load(file)
    yield Row(f"load {MEMORIES:,} memories from JSON", [time.perf_counter() - start], "s")
    start = time.perf_counter()
    loaded.prepare()
    yield Row("build the index", [time.perf_counter() - start], "s")
    queries = [_query(chance) for _ in range(QUERIES)]
    times = [[_ms(lambda asked=asked: loaded.retrieve(**asked)) for asked in queries] for _ in range(3)]
    best = [min(takes) for takes in zip(*times, strict=True)]
    yield Row(f"a retrieval, {QUERIES} queries", times[0], "ms", Aim("<=", 2))
    yield Row("the slowest query", [max(times[0])], "ms", Aim("<=", 2))
    yield Row("the slowest query, best of three", [max(best)], "ms", Aim("<=", 2))


def _ms(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _memory(chance: random.Random, number: int) -> dict[str, Any]:
    """Return a memory whose tokens are common words, rare characters, and 用户 and 记忆 as in all others."""
    from memmock.contract import MEMORY_TYPES

    words = chance.choices(_WORDS, k=8)
    rare = "".join(chance.choices(_RARE_CHARACTERS, k=3))
    return {
        "id": f"m{number:06}",
        "summary": f"用户{''.join(words)}{rare}。",
        "type": MEMORY_TYPES[number % len(MEMORY_TYPES)],
        "confidence": 0.9,
        "updated_at": "2026-03-02T21:14:00+08:00",
        "source": "conversation_summary",
        "keywords": ["记忆", rare, *chance.choices(_WORDS, k=4)],
    }


def _query(chance: random.Random) -> dict[str, Any]:
    """Return a query of one to eight words; every third has only tokens that all memories have."""
    from memmock.contract import MEMORY_TYPES

    everywhere = chance.random() < 1 / 3
    words = chance.sample(["用户", "记忆"], chance.randint(1, 2)) if everywhere else _words(chance, 8)
    return {
        "query": "".join(words),
        "time_hint": "".join(_words(chance, 2)) if chance.random() < 0.5 else "",
        "memory_types": chance.sample(MEMORY_TYPES, chance.randint(1, 3)) if chance.random() < 0.5 else None,
        "max_results": chance.choice((1, 5, 5, 20)),
    }


def _words(chance: random.Random, most: int) -> list[str]:
    return chance.choices([*_WORDS, "用户", "记忆"], k=chance.randint(1, most))


# ---- The run

SECTIONS: dict[str, Callable[[Run], Iterable[Row]]] = {
    "Throughput and latency: wrk, 1 thread, 16 connections, 5 s each": throughput,
    "Memory of memmock serve": memory,
    "The command line": command_line,
    "The pytest plugin": plugin,
    "Retrieval among many memories": retrieval,
}


def main() -> None:
    options = _options()
    if options.answer:
        name, port, file = options.answer
        answer = answer_with_bare_protocol if name == "bare protocol" else answer_with_pytest_httpserver
        answer(int(port), Path(file).read_bytes())
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    machine = _machine()
    print(f"{machine}\nEach figure is a median, with the least and the greatest beside it.")
    try:
        table = _measured(options)
    except KeyboardInterrupt:
        sys.exit(130)
    if options.json:
        rows = {title: [row.to_json() for row in rows] for title, rows in table.items()}
        options.json.write_text(json.dumps({"machine": machine, **rows}, ensure_ascii=False, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure memmock against its aims.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds; 100,000 requests for the memory")
    parser.add_argument("--requests", type=int, metavar="N", help="for the memory; 1,000,000 when not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--answer", nargs=3, help=argparse.SUPPRESS)  # be one of the other servers
    return parser.parse_args()


def _measured(options: argparse.Namespace) -> dict[str, list[Row]]:
    table: dict[str, list[Row]] = {}
    requests = options.requests or (100_000 if options.quick else 1_000_000)
    with TemporaryDirectory(prefix="memmock-benchmark-") as directory:
        run = Run(Path(directory), rounds=2 if options.quick else 5, requests=max(requests, 2 * WARM_UP))
        for title, section in SECTIONS.items():
            print(f"\n{title}", flush=True)
            rows = table[title] = []
            for row in section(run):
                rows.append(row)
                print(row, flush=True)
    return table


def _machine() -> str:
    system, python = platform.system(), platform.python_version()
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"{os.cpu_count()} processors, {system}, {platform.python_implementation()} {python}, {load}"


if __name__ == "__main__":
    main()
