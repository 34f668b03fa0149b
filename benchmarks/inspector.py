"""Measures what the inspector costs `memmock serve`: nobody watching, a watcher, and an idle one.

Nothing is asserted. The watcher is a process of its own that reads the stream as the page does, and drops it;
the idle one opens the stream and does not read. Processor time is that of the server, from /proc.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from serve import Aim, Row, Run, driven, process, serving

WATCHERS = ("nobody watches", "one watcher", "one idle watcher")
HERE = str(Path(__file__).resolve())


def watch(port: int, reads: bool) -> None:
    """Read the stream until killed; print a line once it is there."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(b"GET /__memmock__/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        stream.recv(65_536)
        print("watching", flush=True)
        if not reads:
            signal.pause()
        while stream.recv(65_536):
            pass


@contextmanager
def watched(port: int, how: str) -> Iterator[None]:
    """Have the stream watched for the time of a `with`."""
    if how == WATCHERS[0]:
        yield
        return
    command = [sys.executable, HERE, "--watch", str(port), "yes" if how == WATCHERS[1] else "no"]
    with process(command, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout
        watcher.stdout.readline()
        yield


def measured(run: Run) -> Iterator[Row]:
    """All three in turn, round after round: ratios are taken within a round."""
    rates: dict[str, list[float]] = {how: [] for how in WATCHERS}
    p99: dict[str, list[float]] = {how: [] for how in WATCHERS}
    cost: dict[str, list[float]] = {how: [] for how in WATCHERS}
    for _ in range(run.rounds):
        for how in WATCHERS:
            with ExitStack() as stack:
                port, server = stack.enter_context(serving(run, "memmock serve"))
                stack.enter_context(watched(port, how))
                time.sleep(0.2)
                before = processor_s(server.pid)
                figures = driven(port)
                cost[how].append((processor_s(server.pid) - before) / figures["requests"] * 1e6)
            rates[how].append(figures["requests"] / figures["duration_us"] * 1e6)
            p99[how].append(figures["p99_us"] / 1000)
    for how in WATCHERS:
        yield Row(f"{how}: requests", rates[how], "/s")
        yield Row(f"{how}: p99", p99[how], "ms")
        yield Row(f"{how}: processor time a request", cost[how], "µs")
    for how in WATCHERS[1:]:
        ratios = [some / none for some, none in zip(rates[how], rates[WATCHERS[0]], strict=True)]
        yield Row(f"{how} / nobody: requests", ratios, "x", Aim(">=", 0.8))
        ratios = [some / none for some, none in zip(cost[how], cost[WATCHERS[0]], strict=True)]
        yield Row(f"{how} / nobody: processor time", ratios, "x", Aim("<=", 1.25))


def processor_s(pid: int) -> float:
    """Return how much processor time a process has had, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a watcher costs; needs wrk.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--watch", nargs=2, help=argparse.SUPPRESS)  # be a watcher
    options = parser.parse_args()
    if options.watch:
        watch(int(options.watch[0]), options.watch[1] == "yes")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with TemporaryDirectory(prefix="memmock-benchmark-") as directory:
        rows = list(measured(Run(Path(directory), rounds=options.rounds, requests=0)))
    for row in rows:
        print(row, flush=True)


if __name__ == "__main__":
    main()
