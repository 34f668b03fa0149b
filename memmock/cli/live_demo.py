"""The demo of character 01 through a live session: memmock asks itself, over HTTP, step by step."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import click

from memmock.cli.listening import DEFAULT_PORT
from memmock.contract import DEFAULT_AUTHORIZATION, DEFAULT_PATH, RetrievalConfig
from memmock.errors import MemmockError
from memmock.strictjson import printable

_KEEP_ID = r"""LIVE_ID=$(echo "$LIVE" | sed 's/.*{"id":"\([0-9]*\)".*/\1/')"""


def through(port: int | None) -> int:
    """Play the demo, print each step, and return how many of the three points come first.

    Raises:
        MemmockError: the port cannot be had.
    """
    from memmock.cli.live import create_body
    from memmock.cli.live_client import answered, post
    from memmock.demo import DEMO
    from memmock.live import LIVES_PATH, retrieve_path

    with _serving(port) as url:
        place = url.rpartition(":")[2]
        click.echo(_INTRODUCTION.format(port="" if place == str(DEFAULT_PORT) else f" --port {place}"))
        body = create_body(RetrievalConfig(url + DEFAULT_PATH, DEFAULT_AUTHORIZATION))
        created = post(url + LIVES_PATH, body)
        live_id = answered(created, url)["live"]["id"]
        curl = _curl(url + LIVES_PATH, body)
        _show("1. create a live session that asks the provider", f'LIVE=$({curl})\necho "$LIVE"\n{_KEEP_ID}')
        click.echo(created.body.decode())
        found = 0
        for number, row in enumerate(DEMO, 2):
            body = json.dumps({"query": row.query, "max_results": 1}, ensure_ascii=False)
            reply = post(url + retrieve_path(live_id), body)
            memories = answered(reply, url)["tool_result"].get("memories", [])
            first = memories[0]["summary"] if memories else "no memory"
            there = row.found_in(first)
            found += there
            _show(f"{number}. let it look up: {row.query}", _curl(url + retrieve_path("$LIVE_ID"), body))
            lines = (
                reply.body.decode(),
                "",
                f"   it remembers first:    {printable(first)}",
                f"   point of the demo:     {row.point}  {'✓ found' if there else '✗ not found'}",
                f"   now ask the character: {row.question}",
            )
            click.echo("\n".join(lines))
    return found


_INTRODUCTION = """\
The demo of character 01 through a live session. memmock stands in for the live service and for the provider.
To try it yourself, run this in one terminal and paste the commands below into another, from the first on:

memmock serve --live{port}

They give what is shown here, with other times."""


def _show(title: str, command: str) -> None:
    click.echo(f"\n{title}\n\n{command}\n")


def _curl(url: str, body: str) -> str:
    where = f'"{url}"' if "$" in url else shlex.quote(url)
    return f"curl -sS -w '\\n' {where} \\\n  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"


@contextmanager
def _serving(port: int | None) -> Iterator[str]:
    """Serve the built-in provider and the live twin, as `memmock serve --live` does; yield the address."""
    from memmock.live import Live, Lives
    from memmock.memories import builtin
    from memmock.provider import Provider
    from memmock.server import Server

    memories = builtin()
    memories.prepare()  # not in the first retrieval, whose time is shown
    live = Live(Lives(), other=Provider(memories))
    server = Server(live, port=DEFAULT_PORT if port is None else port)
    try:
        server.bind()
    except MemmockError:
        if port is not None:
            raise
        server = Server(live)
    with server:
        yield server.url
