"""Measures cassettes against their aims and against other recorders; what is measured is in the README.

Nothing is asserted: the table has the figures, and whether each aim is met. A tool that is not installed is
skipped, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import serve
from serve import MEMMOCK, PATH, SERVERS, Aim, Row, process, serving

HERE = Path(__file__).resolve()
SIZES = (100, 1000, 5000, 50_000)
SERVED = 5000
"""So many interactions are replayed over HTTP, and are in the fuller cassette that is recorded to."""
ROUNDS = {100: 5, 1000: 5, 5000: 3, 50_000: 1}
LOOKUPS, MISSES, TURNS = 2000, 20, 5
"""So many requests are looked up, so often; fewer where that takes long."""
WARM_UP = 100
PROVIDER = "http://127.0.0.1:8765"
WRK = """
local requests, turn = {}, 0

function init(args)
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Accept"] = "application/json"
  wrk.headers["Authorization"] = "Bearer memmock"
  for body in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, nil, body)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'JSON {"requests":%d,"duration_us":%d,"p99_us":%d,"errors":%d}\\n',
    summary.requests, summary.duration, latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
"""


# ---- What is recorded

Pairs = tuple[tuple[str, str], ...]


class Item(NamedTuple):
    """An interaction that belongs to no tool."""

    asked: Pairs
    body: bytes
    answered: Pairs
    reply: bytes


_ZH_TEXT = (
    "用户灵绯之前约定暗号喜欢称呼自己格式建议睡前放松结论理由咖啡早餐周末旅行家人同事项目进度"
    "预算电影音乐跑步过敏工作城市生日礼物计划语气简短代码学习目标习惯最近提到记得怎么"
)
_EN_TEXT = (
    "what does the user prefer to drink in mornings which project is due next week favourite style "
    "of answers allergies travel plans with family budget limits how should I address them birthday gifts"
)
_ZH, _EN = re.findall("..", _ZH_TEXT), re.findall(r"\w+", _EN_TEXT)
_TYPES = ("preference", "profile", "history", "project", "constraint", "relationship", "style", "other")
_HINTS = ("", "", "", "最近", "上周", "last winter", "三个月前")
_SOURCES = ("conversation_summary", "explicit_user_statement", "profile_form")


def items(count: int) -> list[Item]:
    """Return so many interactions with different queries, the same ones on every run."""
    chance = random.Random(20260101)
    return [_item(chance, number) for number in range(count)]


def _item(chance: random.Random, number: int) -> Item:
    types = chance.sample(_TYPES, chance.randint(0, 3))
    asked = {
        "live_id": f"7{chance.randrange(10**17):017}",
        "query": f"{_phrase(chance, 3, 9)} {number}",
        "reason": _phrase(chance, 4, 9),
        "memory_types": types,
        "time_hint": chance.choice(_HINTS),
        "max_results": chance.choice((5, 5, 5, 6, 10)),
    }
    memories = [_memory(chance, f"m{number:06}-{place}", types) for place in range(chance.randint(3, 5))]
    body, reply = _json(asked), _json({"memories": memories})
    at = f"Tue, 03 Mar 2026 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} GMT"
    return Item(
        (
            ("Host", "127.0.0.1:8765"),
            ("Accept", "application/json"),
            ("Content-Type", "application/json"),
            ("Authorization", "***"),
            ("User-Agent", "live-session/2.4"),
            ("Content-Length", str(len(body))),
        ),
        body,
        (
            ("Content-Type", "application/json; charset=utf-8"),
            ("Content-Length", str(len(reply))),
            ("Date", at),
            ("Server", "memory/1.9"),
            ("X-Request-Id", f"{chance.getrandbits(128):032x}"),
        ),
        reply,
    )


def _memory(chance: random.Random, name: str, types: Sequence[str]) -> dict[str, Any]:
    return {
        "id": name,
        "summary": f"{_phrase(chance, 8, 20)}。",
        "type": chance.choice(types or _TYPES),
        "confidence": round(chance.uniform(0.4, 1), 2),
        "updated_at": f"2026-0{chance.randint(1, 3)}-{chance.randint(10, 28)}T21:14:00+08:00",
        "source": chance.choice(_SOURCES),
    }


def _phrase(chance: random.Random, least: int, most: int) -> str:
    words = chance.randint(least, most)
    if chance.random() < 0.6:
        return "".join(chance.choices(_ZH, k=words))
    return " ".join(chance.choices(_EN, k=words))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def live(item: Item) -> Item:
    """Return the request as a client sends it; the credential was hidden in the recording."""
    shown = dict(item.asked) | {"Authorization": "Bearer memmock", "Content-Length": str(len(item.body))}
    return item._replace(asked=tuple(shown.items()))


def missing(item: Item) -> Item:
    """Return what was not recorded: the same but for one word more."""
    asked = json.loads(item.body)
    asked["query"] += "？"
    return item._replace(body=_json(asked))


# ---- The tools; each is only imported in a process of its own


class Tool:
    """A recorder: it saves and loads a cassette, and plays from it."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix

    def made(self, path: Path, recorded: Sequence[Item]) -> Any:
        """Return the tool's own cassette of these interactions, to be saved."""

    def save(self, path: Path, made: Any) -> None: ...

    def load(self, path: Path) -> Any:
        """Return what a request can be looked up in."""

    def request(self, item: Item) -> Any:
        """Return a request as the tool is given it."""

    def play(self, loaded: Any, request: Any) -> Any:
        """Return the recorded reply; None when there is none."""

    def explain(self, loaded: Any, request: Any) -> Any:
        """Play nothing, and find what is nearest, as is done for a message."""

    def body(self, played: Any) -> object:
        """Return the JSON of what was played."""


class Memmock(Tool):
    _seen: ClassVar[dict[Pairs, Pairs]] = {}

    def made(self, path: Path, recorded: Sequence[Item]) -> Any:
        from memmock.cassette import Interaction
        from memmock.http import Reply

        uri, at = PROVIDER + PATH, "2026-03-03T09:00:00.000Z"
        return [
            Interaction(self.request(each), uri, Reply(200, each.answered, each.reply), "OK", at, 12.5)
            for each in recorded
        ]

    def save(self, path: Path, made: Any) -> None:
        from memmock import cassette_file

        cassette_file.save(path, made)

    def load(self, path: Path) -> Any:
        from memmock import cassette_file
        from memmock.cassette import Cassette

        return Cassette(cassette_file.load(path))

    def request(self, item: Item) -> Any:
        from memmock.http import Request

        return Request("POST", PATH, (*item.asked,), item.body)  # headers that were never seen

    def served(self, item: Item) -> Any:
        """Return a request as the server gives it, which has equal headers as one object."""
        request = self.request(item)
        return request._replace(headers=self._seen.setdefault(request.headers, request.headers))

    def play(self, loaded: Any, request: Any) -> Any:
        played = loaded.play(request)
        return loaded.interactions[played - 1] if type(played) is int else None

    def explain(self, loaded: Any, request: Any) -> Any:
        return loaded.play(request)

    def body(self, played: Any) -> object:
        return json.loads(played.reply.body)


class Vcrpy(Tool):
    def made(self, path: Path, recorded: Sequence[Item]) -> Any:
        cassette = self._cassette("__call__", path)
        for each in recorded:
            headers = {name: [value] for name, value in each.answered}
            status, body = {"code": 200, "message": "OK"}, {"string": each.reply}
            cassette.append(self.request(each), {"status": status, "headers": headers, "body": body})
        return cassette

    def save(self, path: Path, made: Any) -> None:
        made._save()

    def load(self, path: Path) -> Any:
        return self._cassette("load", path)

    def _cassette(self, how: str, path: Path) -> Any:
        from vcr import matchers
        from vcr.cassette import Cassette
        from vcr.serializers import jsonserializer, yamlserializer

        make = Cassette.load if how == "load" else Cassette
        return make(
            path=str(path),
            serializer=jsonserializer if self.suffix == ".json" else yamlserializer,
            match_on=(matchers.method, matchers.path, matchers.body),
            allow_playback_repeats=True,
        )

    def request(self, item: Item) -> Any:
        from vcr.request import Request

        return Request("POST", PROVIDER + PATH, item.body, dict(item.asked))

    def play(self, loaded: Any, request: Any) -> Any:
        return loaded.play_response(request) if loaded.can_play_response_for(request) else None

    def explain(self, loaded: Any, request: Any) -> Any:
        return loaded.can_play_response_for(request) or loaded.find_requests_with_most_matches(request)

    def body(self, played: Any) -> object:
        return json.loads(played["body"]["string"])


class Cassetter(Tool):
    def made(self, path: Path, recorded: Sequence[Item]) -> Any:
        cassette = self._cassette(path, "ALL")
        for each in recorded:
            asked = {name: [value] for name, value in each.asked}
            answered = {name: [value] for name, value in each.answered}
            cassette.record("POST", PROVIDER + PATH, asked, each.body, 200, answered, each.reply)
        return cassette

    def save(self, path: Path, made: Any) -> None:
        made.save()

    def load(self, path: Path) -> Any:
        return self._cassette(path, "NONE")

    def _cassette(self, path: Path, mode: str) -> Any:
        from cassetter import MatchConfig, RecordMode
        from cassetter.cassette import Cassette

        match = MatchConfig(["method", "uri", "json_body"])
        cassette = Cassette(path, record_mode=RecordMode[mode], match_config=match)
        cassette.load()
        return cassette

    def request(self, item: Item) -> Any:
        return "POST", PROVIDER + PATH, {name: [value] for name, value in item.asked}, item.body

    def play(self, loaded: Any, request: Any) -> Any:
        from cassetter.cassette import NoMatchError

        try:
            return loaded.play(*request)
        except NoMatchError:
            return None

    explain = play

    def body(self, played: Any) -> object:
        return played.body.content


TOOLS: dict[str, Tool] = {
    "memmock YAML": Memmock(".yaml"),
    "memmock JSON": Memmock(".json"),
    "vcrpy YAML": Vcrpy(".yaml"),
    "vcrpy JSON": Vcrpy(".json"),
    "cassetter YAML": Cassetter(".yaml"),
}


def work(name: str, task: str, source: Path, path: Path) -> dict[str, Any]:
    """Do a task of one tool in this process, and return how long it took."""
    tool = TOOLS[name]
    recorded = [Item(*each) for each in pickle.loads(source.read_bytes())]
    small = path.with_name(f"warm-up{path.suffix}")
    tool.save(small, tool.made(small, recorded[:2]))
    tool.load(small)
    if task == "save":
        made = tool.made(path, recorded)
        return {"ms": _ms(lambda: tool.save(path, made))[0], "mib": path.stat().st_size / 2**20}
    if task == "load":
        recorded.clear()
        ms, loaded = _ms(lambda: tool.load(path))
        return {"ms": ms, "rss_mib": _peak_mib(), "there": loaded is not None}
    return _looked_up(tool, tool.load(path), recorded, float(task.removeprefix("look up for ")))


def _looked_up(tool: Tool, loaded: Any, recorded: Sequence[Item], enough_s: float) -> dict[str, Any]:
    """Return in µs how long each lookup takes, at its best; the last recording is among them."""
    chance = random.Random(20260102)
    hits = [recorded[-1], *chance.sample(recorded, min(len(recorded) - 1, LOOKUPS))]
    misses = [live(missing(each)) for each in chance.sample(recorded, MISSES)]
    hits = [live(each) for each in hits]
    first = live(recorded[0])
    if tool.body(tool.play(loaded, tool.request(first))) != json.loads(first.reply):
        raise SystemExit("it does not play what it recorded")
    served = hits if isinstance(tool, Memmock) else []
    return {
        "served": _best_us(served, lambda each: partial(tool.play, loaded, tool.served(each)), enough_s),
        "hits": _best_us(hits, lambda each: partial(tool.play, loaded, tool.request(each)), enough_s),
        "misses": _best_us(misses, lambda each: partial(tool.explain, loaded, tool.request(each)), enough_s),
    }


def _best_us(
    asked: Sequence[Item], prepared: Callable[[Item], Callable[[], object]], enough_s: float
) -> list[float]:
    best: dict[int, float] = {}
    until = time.perf_counter() + enough_s
    for _ in range(TURNS):
        for number, each in enumerate(asked):
            ms, _played = _ms(prepared(each))
            best[number] = min(best.get(number, ms), ms)
            if time.perf_counter() > until:
                return [ms * 1000 for ms in best.values()]
    return [ms * 1000 for ms in best.values()]


def _ms(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1000, result


def _peak_mib() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


# ---- The run


@dataclass(frozen=True)
class Run:
    """What this run is to do, and a directory of its own."""

    directory: Path
    quick: bool
    sizes: Sequence[int]
    pythons: dict[str, str]
    """The Python of each tool that is there."""
    failed: set[tuple[str, int]] = field(default_factory=set)

    def tools(self, size: int) -> list[str]:
        """Return the tools that are there, and can do so much."""
        return [name for name in self.pythons if (name, size) not in self.failed]

    @property
    def served(self) -> int:
        return min(SERVED, self.sizes[-1])

    def source(self, size: int) -> Path:
        return self.directory / f"items-{size}.pickle"

    def cassette(self, name: str, size: int) -> Path:
        return self.directory / f"{name.replace(' ', '-')}-{size}{TOOLS[name].suffix}"

    def rounds(self, size: int) -> int:
        return 1 if self.quick else ROUNDS[size]

    def work(self, name: str, task: str, size: int, path: Path | None = None) -> dict[str, Any]:
        path = path or self.cassette(name, size)
        command = [self.pythons[name], str(HERE), "--work", name, task, str(self.source(size)), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            self.failed.add((name, size))
            errors = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+: ", line)]
            return {"failed": (errors or ["it failed"])[-1]}
        return dict(json.loads(done.stdout))


def files(run: Run) -> Iterator[Row]:
    """Save and load: a process for each, all tools in turn; the smaller the cassette the more rounds."""
    for size in run.sizes:
        run.source(size).write_bytes(pickle.dumps([tuple(each) for each in items(size)]))
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(run.rounds(size)):
            for task in ("save", "load"):
                for name in run.tools(size):
                    done = run.work(name, task, size)
                    if "failed" in done:
                        yield Row(f"{size:,}: {name} cannot {task} it: …{done['failed'][-80:]}")
                    else:
                        found.setdefault(f"{task} {name}", []).append(done)
            if "vcrpy YAML" in run.pythons:
                for name in ("memmock YAML", "memmock JSON"):
                    theirs = run.cassette(name.replace("memmock", "vcrpy"), size)
                    found.setdefault(f"load {name} of vcrpy", []).append(run.work(name, "load", size, theirs))
        times = {what: [each["ms"] for each in done] for what, done in found.items()}
        for task in ("save", "load"):
            yield from _compared(run, task, size, times)
        if size == run.sizes[-1]:
            for name in run.tools(size):
                yield Row(f"{size:,}: {name}, size of the file", [found[f"save {name}"][0]["mib"]], "MiB")
                peak = max(each["rss_mib"] for each in found[f"load {name}"])
                yield Row(f"{size:,}: {name}, peak RSS of loading it", [peak], "MiB")


def _compared(run: Run, task: str, size: int, times: dict[str, list[float]]) -> Iterator[Row]:
    for what in times:
        if what.startswith(task):
            yield Row(f"{size:,}: {what.replace(' of vcrpy', ', file of vcrpy')}", times[what], "ms")
    pairs: list[tuple[str, str, Aim | None]] = [
        ("memmock YAML", "vcrpy YAML", Aim(">=", 1) if task == "load" else None),
        ("memmock JSON", "vcrpy YAML", Aim(">=", 5) if task == "load" else None),
        ("memmock JSON", "vcrpy JSON", None),
        ("memmock YAML", "cassetter YAML", None),
    ]
    for ours, theirs, aim in pairs:
        if {ours, theirs} <= set(run.tools(size)):
            both = zip(times[f"{task} {ours}"], times[f"{task} {theirs}"], strict=True)
            yield Row(f"{size:,}: {task}, {theirs} / {ours}", [their / our for our, their in both], "x", aim)


def lookups(run: Run) -> Iterator[Row]:
    """A request that was recorded, and one that differs in a word."""
    for size in run.sizes:
        task = f"look up for {0.3 if run.quick else 10}"
        names = [name for name in run.tools(size) if name not in ("memmock YAML", "vcrpy YAML")]
        found = {name: run.work(name, task, size) for name in names}
        found = {name: done for name, done in found.items() if "failed" not in done}
        for name, done in found.items():
            aim = Aim("<=", 50) if name.startswith("memmock") else None
            tool = name.split()[0]
            yield Row(
                f"{size:,}: {tool}, hit, new headers, {len(done['hits']):,} requests", done["hits"], "µs"
            )
            yield Row(f"{size:,}: {tool}, hit, new headers, slowest", [max(done["hits"])], "µs", aim)
            if done["served"]:
                yield Row(f"{size:,}: {tool}, hit, as the server asks", done["served"], "µs")
                yield Row(
                    f"{size:,}: {tool}, hit, as the server asks, slowest", [max(done["served"])], "µs", aim
                )
            yield Row(f"{size:,}: {tool}, miss, with what is nearest", done["misses"], "µs")
        worst = {name: max(done["hits"]) for name, done in found.items()}
        for name in found:
            if not name.startswith("memmock"):
                what = f"{size:,}: hit, the slowest, {name.split()[0]} / memmock"
                yield Row(what, [worst[name] / worst["memmock JSON"]], "x")


def replays(run: Run) -> Iterator[Row]:
    """`memmock replay` with wrk, and two servers for scale."""
    if not shutil.which("wrk"):
        yield Row("skipped: wrk is not installed")
        return
    recorded = items(run.served)
    bodies, script = run.directory / "bodies.txt", run.directory / "recorded.lua"
    bodies.write_bytes(b"".join(each.body + b"\n" for each in recorded))
    script.write_text(WRK)
    (run.directory / "answer.json").write_bytes(recorded[0].reply)
    for kind in ("YAML", "JSON"):
        file = str(run.cassette(f"memmock {kind}", run.served))
        SERVERS[f"memmock replay, {kind}"] = partial(_replay, file)
    names = [*(f"memmock replay, {kind}" for kind in ("YAML", "JSON")), "memmock serve", "bare protocol"]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    ready: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(1 if run.quick else 5):
        for name in names:
            start = time.perf_counter()
            with serving(_served(run), name) as (port, server):
                ready[name].append(time.perf_counter() - start)
                before_s = cpu_s(server.pid)
                found[name].append(_driven(port, script, bodies, 1 if run.quick else 4))
                found[name][-1]["cpu_s"] = cpu_s(server.pid) - before_s
    rates = {name: [f["requests"] / f["duration_us"] * 1e6 for f in done] for name, done in found.items()}
    for name in names:
        yield Row(f"{name}: requests", rates[name], "/s", Aim(">=", 15_000) if "replay" in name else None)
    for name in names[2:]:
        both = zip(rates[names[1]], rates[name], strict=True)
        yield Row(f"memmock replay / {name}", [ours / theirs for ours, theirs in both], "x")
    for name in names:
        yield Row(f"{name}: p99", [each["p99_us"] / 1000 for each in found[name]], "ms")
    for name in names:
        costs = [each["cpu_s"] / each["requests"] * 1e6 for each in found[name]]
        yield Row(f"{name}: processor time a request", costs, "µs")
    for name in names[:2]:
        yield Row(f"{name}: start until it accepts", ready[name], "s")
    for name in names:
        if errors := sum(each["errors"] for each in found[name]):
            yield Row(f"{name}: errors", [errors])


def _served(run: Run) -> serve.Run:
    return serve.Run(run.directory, 0, 0)


def _replay(file: str, port: int, _: Path) -> list[str]:
    return [MEMMOCK, "replay", file, "--port", str(port)]


def _driven(port: int, script: Path, bodies: Path, seconds: int) -> dict[str, float]:
    url = f"http://127.0.0.1:{port}{PATH}"
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "--latency", "-s", str(script), url, "--", str(bodies)]
    with process(command, stdout=subprocess.PIPE) as wrk:
        out, _ = wrk.communicate()
    return next(json.loads(line[5:]) for line in out.splitlines() if line.startswith(b"JSON "))


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has taken: it is much the same on a busy machine."""
    if not (stat := Path(f"/proc/{pid}/stat")).exists():
        return float("nan")
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- Recording


def recording(run: Run) -> Iterator[Row]:
    """A provider asked directly and through `memmock record`, in turns, on two connections that are kept."""
    calls = WARM_UP if run.quick else 3000
    recorded = items(run.served)
    (run.directory / "answer.json").write_bytes(recorded[0].reply)
    asked = [missing(recorded[number % len(recorded)]).body for number in range(calls)]
    for before in (0, run.served):
        for kind in ("YAML", "JSON"):
            full = run.cassette(f"memmock {kind}", run.served)
            file = full.with_stem(f"recorded-{before}")
            if before:
                shutil.copy(full, file)
            with serving(_served(run), "bare protocol") as (provider, _server):
                SERVERS["memmock record"] = partial(_record, provider, file)
                with serving(_served(run), "memmock record") as (proxy, server):
                    before_s = cpu_s(server.pid)
                    added, direct = _added_ms(provider, proxy, asked)
                    cost_s = cpu_s(server.pid) - before_s
                    stopped_at = time.perf_counter()
                took = time.perf_counter() - stopped_at
            where = f"{kind}, {before:,} before"
            yield Row(f"{where}: a direct call", direct, "ms")
            yield Row(f"{where}: added to a call", added, "ms", Aim("<=", 1))
            yield Row(f"{where}: added to a call, p99", [sorted(added)[len(added) * 99 // 100]], "ms")
            yield Row(f"{where}: processor time a call", [cost_s / (calls + WARM_UP) * 1000], "ms")
            yield Row(f"{where}: from SIGTERM to the end", [took], "s")


def _record(provider: int, file: Path, port: int, _: Path) -> list[str]:
    upstream = f"http://127.0.0.1:{provider}{PATH}"
    return [MEMMOCK, "record", "--upstream", upstream, "--cassette", str(file), "--port", str(port)]


def _added_ms(provider: int, proxy: int, asked: Sequence[bytes]) -> tuple[list[float], list[float]]:
    """Return by how much each call is longer through the proxy, and how long it is without."""
    with _calling(provider) as direct, _calling(proxy) as through:
        for body in asked[:WARM_UP]:
            direct(body)
            through(body)
        added, plain = [], []
        for number, body in enumerate(asked):
            calls = (direct, through) if number % 2 else (through, direct)
            took = {call: _ms(partial(call, body))[0] for call in calls}
            added.append(took[through] - took[direct])
            plain.append(took[direct])
    return added, plain


@contextmanager
def _calling(port: int) -> Iterator[Callable[[bytes], bytes]]:
    """Connect, and give what sends a retrieval and returns the reply."""
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n"
        "Content-Type: application/json\r\nAuthorization: Bearer 5f0c1e7a9b\r\n"
        "User-Agent: live-session/2.4\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def call(body: bytes) -> bytes:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            data = connection.recv(1 << 16)
            while b"\r\n\r\n" not in data:
                data += _more(connection)
            start, _, rest = data.partition(b"\r\n\r\n")
            assert start.startswith(b"HTTP/1.1 200 "), start
            size = int(start.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            while len(rest) < size:
                rest += _more(connection)
            return rest

        yield call


def _more(connection: socket.socket) -> bytes:
    if not (data := connection.recv(1 << 16)):
        raise SystemExit("the server closed the connection in the middle of a reply")
    return data


SECTIONS: dict[str, Callable[[Run], Iterable[Row]]] = {
    "Save and load": files,
    "Lookup, each request at its best": lookups,
    "Replay over HTTP: wrk, 1 thread, 16 connections": replays,
    "Recording, with the provider asked directly in turns": recording,
}


def main() -> None:
    options = _options()
    if options.work:
        name, task, source, path = options.work
        print(json.dumps(work(name, task, Path(source), Path(path))))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    machine = serve._machine()
    print(f"{machine}\nEach figure is a median, with the least and the greatest beside it.")
    pythons = _pythons(options.cassetter_python)
    for name in TOOLS:
        if name not in pythons:
            hint = "; --cassetter-python says where" if name.startswith("cassetter") else ""
            print(f"  skipped: {name}, which is not installed{hint}")
    try:
        table = _measured(options, pythons)
    except KeyboardInterrupt:
        sys.exit(130)
    rows = [row for rows in table.values() for row in rows if row.aim and row.samples]
    print("\nAims")
    for row in rows:
        print(row)
    if options.json:
        found = {title: [row.to_json() for row in rows] for title, rows in table.items()}
        options.json.write_text(json.dumps({"machine": machine, **found}, ensure_ascii=False, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure memmock's cassettes against their aims.")
    parser.add_argument("--quick", action="store_true", help="one round with small cassettes: a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    parser.add_argument("--cassetter-python", metavar="PATH", help="the Python that has cassetter")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)  # be one of the tools
    return parser.parse_args()


def _pythons(cassetter: str | None) -> dict[str, str]:
    """Return the Python of each tool that is there, by the tool's name."""
    pythons = {"memmock": sys.executable, "vcrpy": sys.executable, "cassetter": cassetter}
    modules = {"vcrpy": "vcr.cassette", "cassetter": "cassetter", "memmock": "memmock.cassette_file"}
    there = {tool: python for tool, python in pythons.items() if python and _imports(python, modules[tool])}
    return {name: there[tool] for name in TOOLS if (tool := name.split()[0]) in there}


def _imports(python: str, module: str) -> bool:
    return not subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode


def _measured(options: argparse.Namespace, pythons: dict[str, str]) -> dict[str, list[Row]]:
    table: dict[str, list[Row]] = {}
    with TemporaryDirectory(prefix="memmock-benchmark-") as directory:
        run = Run(Path(directory), options.quick, (50, 200) if options.quick else SIZES, pythons)
        for title, section in SECTIONS.items():
            print(f"\n{title}", flush=True)
            rows = table[title] = []
            for row in section(run):
                rows.append(row)
                print(row, flush=True)
    return table


if __name__ == "__main__":
    main()
