"""Measures `memmock fuzz` against its aims and beside schemathesis; what is measured is in the README.

Nothing is asserted: the table has the figures, and whether each aim is met. Without schemathesis, the half
of the table that needs it is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import serve
from serve import MEMMOCK, Aim, Row, process

HERE = Path(__file__).resolve()
BUGGY = HERE.parent.parent / "fixtures" / "providers" / "buggy.py"
TOKEN = "Bearer good-token"
SEED = 1
ROUNDS = 3
SECONDS = 30
"""So long each tool may look for a bug."""
BUSY_SECONDS = 10
"""So long requests are counted."""
_START_S = 5
"""So much more a run may take, for the start and the end of its process."""


class Look(NamedTuple):
    """What a tool came to at one provider: seconds to its first finding, None when there was none."""

    seconds: float | None
    said: str = ""


# ---- The tools


class Memmock:
    """`memmock fuzz`, by a process that ends with the first finding."""

    name = "memmock"

    def command(self, url: str, seconds: int) -> list[str]:
        options = ["--authorization", TOKEN, "--seed", str(SEED), "--fail-on", "warning", "--format", "json"]
        return ["fuzz", url, "--time-limit", str(seconds), *options]

    def look(self, url: str, seconds: int, directory: Path) -> Look:
        return _timed([sys.executable, str(HERE), "--first", *self.command(url, seconds)], seconds, directory)

    def busy(self, url: str, seconds: int, directory: Path) -> list[str]:
        """Return the command of a run in which nothing is found."""
        return [MEMMOCK, *self.command(url, seconds), "--examples", "1000000"]


class Schemathesis:
    """`schemathesis run`, with memmock's own description of the contract and all that a provider is told."""

    name = "schemathesis"

    def command(self, url: str, seconds: int, directory: Path) -> list[str]:
        parts = urlsplit(url)
        document = directory / "openapi.json"
        document.write_text(json.dumps(_described(parts.path)), "utf-8")
        return [
            sys.executable, "-m", "schemathesis.cli", "run", str(document),
            "--url", f"{parts.scheme}://{parts.netloc}", "--header", f"Authorization: {TOKEN}",
            "--max-time", str(seconds), "--max-response-time", "3", "--seed", str(SEED),
            "--generation-database", "none", "--no-color", "--warnings", "off",
        ]  # fmt: skip

    def look(self, url: str, seconds: int, directory: Path) -> Look:
        return _timed([*self.command(url, seconds, directory), "--max-failures", "1"], seconds, directory)

    def busy(self, url: str, seconds: int, directory: Path) -> list[str]:
        """Return the command of a run in which nothing is found."""
        return self.command(url, seconds, directory)


def _described(path: str) -> dict[str, Any]:
    """Return the OpenAPI document, for a provider at this path that wants an authorization."""
    document = json.loads(subprocess.check_output([MEMMOCK, "schema"]))
    document["paths"] = {path: document["paths"].popitem()[1]}
    document["security"] = [each for each in document["security"] if each]
    return document


def _timed(command: Sequence[str], seconds: int, directory: Path) -> Look:
    """Run a tool until it ends; its exit code is 1 when it found something, 0 when it did not."""
    start = time.perf_counter()
    with process(
        command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as tool:
        overdue = threading.Timer(seconds + _START_S, tool.kill)
        overdue.start()
        said = tool.communicate()[0].decode(errors="replace")
        overdue.cancel()
    took = time.perf_counter() - start
    if tool.returncode not in (0, 1, -signal.SIGKILL):
        raise SystemExit(f"{shlex.join(command)} ended with {tool.returncode}:\n{said[-2000:]}")
    return Look(took if tool.returncode == 1 else None, said)


def first(arguments: Sequence[str]) -> None:
    """Be `memmock`, and end with the first finding."""
    from memmock.__main__ import main
    from memmock.cli.conforming import Progress

    def phase(_: object, phase: str, requests: int, findings: int) -> None:
        if findings:
            print(f"{phase}: {requests:,} requests", flush=True)
            os._exit(1)

    Progress.phase = phase  # type: ignore[method-assign]
    sys.argv[1:] = arguments
    main()


# ---- The providers


@contextmanager
def provided(command: Sequence[str], name: str) -> Iterator[str]:
    """Serve one provider for the time of a `with`; yield its URL."""
    with process([*command, "serve", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout
        yield server.stdout.readline().decode().split()[1]


def listed(command: Sequence[str]) -> dict[str, str]:
    """Return the names of the providers, and whether each is `ok` or a `mutant`."""
    lines = subprocess.check_output([*command, "list"], text=True).splitlines()
    return {name: kind for name, kind, *_ in (line.split("\t") for line in lines)}


# ---- 1. Requests a second


def rates(
    tools: Sequence[Memmock | Schemathesis], seconds: int, rounds: int, directory: Path
) -> Iterator[Row]:
    """`memmock serve` writes a line for each call, which are counted; starts of processes are in the time."""
    found: dict[str, list[float]] = {tool.name: [] for tool in tools}
    for _ in range(rounds):
        for tool in tools:
            command = [MEMMOCK, "serve", "--port", "0", "--authorization", TOKEN, "--format", "json"]
            with process(command, stdout=subprocess.PIPE) as server:
                assert server.stdout
                url = json.loads(server.stdout.readline())["endpoint"]
                lines: list[bytes] = []
                counting = threading.Thread(target=lambda out=server.stdout, to=lines: to.extend(out))
                counting.start()
                start = time.perf_counter()
                subprocess.run(
                    tool.busy(url, seconds, directory), cwd=directory, check=False, capture_output=True
                )
                took = time.perf_counter() - start
                server.terminate()
                counting.join()
            found[tool.name].append(len(lines) / took)
    for name, samples in found.items():
        aim = Aim(">=", 400) if name == "memmock" else None
        yield Row(f"{name}: requests to memmock serve", samples, "/s", aim)


# ---- 2. Bugs


def bugs(
    tools: Sequence[Memmock | Schemathesis], options: argparse.Namespace, directory: Path
) -> Iterator[Row]:
    """All tools in turn at each provider, with a process of its own for each."""
    kinds = {
        name: kind
        for name, kind in listed(options.providers).items()
        if not options.only or name in options.only
    }
    looks: dict[str, dict[str, Look]] = {}
    for name in kinds:
        looks[name] = {}
        for tool in tools:
            # a server of its own: some bugs are in what a provider remembers
            with provided(options.providers, name) as url, TemporaryDirectory(dir=directory) as own:
                looks[name][tool.name] = look = tool.look(url, options.seconds, Path(own))
            if kinds[name] == "ok" and look.seconds is not None:
                print(f"  {tool.name} finds something at {name}, which is correct:\n{look.said[-1500:]}")
        took = "  ".join(_told(tool.name, looks[name][tool.name]) for tool in tools)
        print(f"  {name:<34}{took}", flush=True)
    mutants = [name for name, kind in kinds.items() if kind == "mutant"]
    for tool in tools:
        times = [looks[name][tool.name].seconds for name in mutants]
        share = 100 * sum(each is not None for each in times) / len(times)
        aim = Aim(">=", 100) if tool.name == "memmock" else None
        yield Row(f"{tool.name}: buggy providers found, of {len(mutants)}", [share], "%", aim)
        alarms = sum(looks[name][tool.name].seconds is not None for name in kinds if name not in mutants)
        yield Row(f"{tool.name}: correct ones with a finding", [alarms])
        if some := [each for each in times if each is not None]:
            yield Row(f"{tool.name}: to the first finding", some, "s")
    if len(tools) < 2:
        return
    pairs = [
        (a, b) for a, b in ([looks[name][tool.name].seconds for tool in tools] for name in mutants) if a and b
    ]
    if not pairs:
        yield Row("none was found by both")
        return
    for tool, times in zip(tools, zip(*pairs, strict=True), strict=True):
        yield Row(f"{tool.name}: the same, of the {len(pairs)} found by both", times, "s")
    ours, theirs = (median(times) for times in zip(*pairs, strict=True))
    yield Row("memmock / schemathesis, of these medians", [ours / theirs], "x", Aim("<=", 0.5))


def _told(name: str, look: Look) -> str:
    return f"{name} {'–' if look.seconds is None else format(look.seconds, '.2f'):>6}"


# ---- The run


def main() -> None:
    if sys.argv[1:2] == ["--first"]:
        first(sys.argv[2:])
        return
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    tools: list[Memmock | Schemathesis] = [Memmock()]
    try:
        tools.append(Schemathesis())
        print(f"{serve._machine()}, schemathesis {version('schemathesis')}")
    except PackageNotFoundError:
        tools.pop()
        print(f"{serve._machine()}; schemathesis is not installed")
    table: dict[str, list[Row]] = {}
    with TemporaryDirectory(prefix="memmock-benchmark-") as name:
        directory = Path(name)
        seconds, rounds = (3, 1) if options.quick else (BUSY_SECONDS, ROUNDS)
        sections = {
            f"Requests a second, in runs of {seconds} s": rates(tools, seconds, rounds, directory),
            f"Bugs, {options.seconds} s at most": bugs(tools, options, directory),
        }
        try:
            for title, rows in sections.items():
                print(f"\n{title}", flush=True)
                table[title] = []
                for row in rows:
                    table[title].append(row)
                    print(row, flush=True)
        except KeyboardInterrupt:
            sys.exit(130)
    if options.json:
        text = {title: [row.to_json() for row in rows] for title, rows in table.items()}
        options.json.write_text(json.dumps(text, ensure_ascii=False, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure memmock fuzz against its aims.")
    parser.add_argument(
        "--quick", action="store_true", help="a look of 5 s at each provider, one short round"
    )
    parser.add_argument("--seconds", type=int, metavar="S", help=f"for each provider; {SECONDS} if not given")
    parser.add_argument(
        "--providers",
        type=shlex.split,
        default=[sys.executable, str(BUGGY)],
        metavar="COMMAND",
        help="another corpus: what `COMMAND list` lists and `COMMAND serve NAME` serves",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these providers only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there too")
    options = parser.parse_args()
    options.seconds = options.seconds or (5 if options.quick else SECONDS)
    return options


if __name__ == "__main__":
    main()
