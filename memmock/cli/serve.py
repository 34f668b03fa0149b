"""`memmock serve`: the mock provider for manual checks and for clients in any language."""

from __future__ import annotations

import json
import shlex
import textwrap

import click

from memmock.cli.target import limit_options
from memmock.contract import (
    DEFAULT_AUTHORIZATION,
    DEFAULT_PATH,
    RetrievalConfig,
)

DEFAULT_PORT = 8765


@click.command("serve", short_help="Serve the mock provider and show each call.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option(
    "--path",
    default=DEFAULT_PATH,
    show_default=True,
    help="Where to answer; any gateway prefix may stand before it.",
)
@click.option(
    "--persona",
    metavar="FILE",
    help='YAML or JSON with live.builtin_avatars["01"].memories; character 01\'s when not given.',
)
@click.option(
    "--authorization",
    metavar="VALUE",
    help="The only Authorization that is accepted; any when not given.",
)
@limit_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one line when ready and one a call.",
)
def command(
    host: str,
    port: int,
    path: str,
    persona: str | None,
    authorization: str | None,
    timeout_ms: int,
    max_response_bytes: int,
    form: str,
) -> None:
    """Serve the mock provider until Ctrl-C, and show each call."""
    from memmock.cli.call_log import CallLog, as_json, as_text
    from memmock.memories import builtin, load
    from memmock.provider import Provider
    from memmock.server import Server

    memories = builtin() if persona is None else load(persona)
    memories.prepare()
    provider = Provider(
        memories, path=path, authorization=authorization, max_response_bytes=max_response_bytes
    )
    server = Server(provider, host=host, port=port)
    server.bind()
    try:
        # CreateLive insists on an authorization, also for a provider that ignores it [seed]
        config = RetrievalConfig(
            server.url + path,
            DEFAULT_AUTHORIZATION if authorization is None else authorization,
            timeout_ms=timeout_ms,
            max_response_bytes=max_response_bytes,
        )
        if form == "json":
            ready = json.dumps({"endpoint": config.endpoint, "authorization": config.authorization})
        else:
            whose = "character 01" if persona is None else persona
            ready = _welcome(config, f"{len(memories):,} memories of {whose}")
        with CallLog(provider.journal, as_json if form == "json" else as_text, all_of_them=form == "json"):
            server.run(ready=lambda: click.echo(ready))
    finally:
        server.stop()


def _welcome(config: RetrievalConfig, what: str) -> str:
    body = json.dumps({"query": "用户和灵绯之前约定的暗号", "max_results": 1}, ensure_ascii=False)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": config.authorization,
    }
    lines = [f"  -H {shlex.quote(f'{name}: {value}')} \\" for name, value in headers.items()]
    block = json.dumps({"memory_retrieval": config.to_json()}, ensure_ascii=False, indent=2)
    return "\n".join(
        [
            f"memmock serves {what} at {config.endpoint}",
            "",
            "Ask it:",
            "",
            f"curl -s {shlex.quote(config.endpoint)} \\",
            *lines,
            f"  -d {shlex.quote(body)}",
            "",
            "Point a live session at it, in the body of CreateLive:",
            "",
            textwrap.dedent(block[2:-2]),
            "",
            "Calls (Ctrl-C to stop):",
        ]
    )
