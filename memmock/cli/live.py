"""`memmock live`: the live twin, which takes CreateLive and makes retrievals on demand."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import click

from memmock.cli.listening import DEFAULT_PORT, address_options, log_option
from memmock.contract import DEFAULT_AUTHORIZATION, DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_PATH, RetrievalConfig
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.admin import Admin
    from memmock.live import Live, Lives

DEFAULT_LIVE_PORT = 8766
_MAX_BODY_BYTES = 32 * 1024 * 1024
"""How large a body of CreateLive may be: it may hold a picture of 20 MB in Base64 [ref]."""


@click.command("live", short_help="Stand in for the live service: CreateLive, retrievals.")
@address_options(DEFAULT_LIVE_PORT)
@click.option(
    "--max-response-bytes",
    type=click.IntRange(1),
    metavar="BYTES",
    default=DEFAULT_MAX_RESPONSE_BYTES,
    show_default=True,
    help="The limit for a provider's answer; CreateLive does not carry it.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides which ids live sessions get.")
@click.option(
    "--control-token",
    envvar="MEMMOCK_CONTROL_TOKEN",
    metavar="TOKEN",
    help="What a retrieval on demand asks for as a Bearer token.  [env: MEMMOCK_CONTROL_TOKEN]",
)
@log_option("request")
def command(
    host: str, port: int, max_response_bytes: int, seed: int, control_token: str | None, form: str
) -> None:
    """Stand in for the live service until Ctrl-C: create live sessions, and let them look memories up.

    Nothing can be joined or watched there: a live session is its memory_retrieval block and an id.
    """
    from memmock.admin import PREFIX, is_local
    from memmock.cli.live_log import live_log
    from memmock.connection import Limits
    from memmock.inspector import Inspector, Subject
    from memmock.journal import Journal
    from memmock.live import LIVES_PATH, Live, Lives
    from memmock.redaction import mask_of
    from memmock.server import Server

    lives = Lives(seed=seed, max_response_bytes=max_response_bytes)
    retrievals = Journal()
    inspector = Inspector(
        Subject(
            kind="live",
            journal=retrievals,
            endpoint=lambda: server.url + LIVES_PATH,
            secrets=(control_token,),
            limit_bytes=max_response_bytes,
        )
    )
    live = Live(lives, host=host, token=control_token, retrievals=retrievals, pages=inspector.answer)
    server = Server(live, host=host, port=port, limits=Limits(body_bytes=_MAX_BODY_BYTES))
    server.bind()
    try:
        if form == "json":
            ready = json.dumps({"lives": server.url + LIVES_PATH, "control": server.url + PREFIX})
        else:
            reachable = control_token is not None or is_local(host)
            provider = RetrievalConfig(_PROVIDER, DEFAULT_AUTHORIZATION)
            ready = "\n".join(
                [
                    f"memmock stands in for the live service at {server.url}{LIVES_PATH}",
                    "",
                    *twin_help(server.url, provider, reachable=reachable),
                    "",
                    *(["Watch them in a browser:", "", server.url + PREFIX, ""] if reachable else []),
                    "Requests (Ctrl-C to stop):",
                ]
            )
        with live_log(live, mask_of(control_token), as_json=form == "json"):
            server.run(ready=lambda: click.echo(ready))
    finally:
        server.stop()


_PROVIDER = f"http://127.0.0.1:{DEFAULT_PORT}{DEFAULT_PATH}"
"""Where `memmock serve` is, as the example in the welcome says."""
_NO_RETRIEVALS = "Others may reach this server, so it makes no retrievals; --control-token turns them on."


def mounted(admin: Admin, lives: Lives, *, host: str, token: str | None) -> Live:
    """Return the live twin in front of the control API of a mock provider.

    Raises:
        MemmockError: the provider's path is that of the live sessions.
    """
    from memmock.live import LIVES_PATH, Live

    if admin.provider.path.startswith(LIVES_PATH):
        raise MemmockError(f"the path {admin.provider.path} is where live sessions are; choose another one")
    return Live(lives, host=host, token=token, other=admin)


def create_body(config: RetrievalConfig) -> str:
    """Return a body of CreateLive, as JSON, that leads to a provider."""
    return json.dumps({"call_mode": "video", "memory_retrieval": config.to_json()}, ensure_ascii=False)


def twin_help(url: str, config: RetrievalConfig, *, reachable: bool) -> list[str]:
    """Return the lines that say how to create a live session at `url`, and how to let it look memories up."""
    from memmock.live import LIVES_PATH

    ask = ["Let it look memories up:", "", f"memmock ask --live {url} --live-id ID 用户的猫"]
    return [
        "Create a live session that asks a provider; the answer has its id:",
        "",
        f"curl -s {shlex.quote(url + LIVES_PATH)} \\",
        "  -H 'Content-Type: application/json' \\",
        f"  -d {shlex.quote(create_body(config))}",
        "",
        *(ask if reachable else [_NO_RETRIEVALS]),
    ]
