"""`memmock serve`: the mock provider for manual checks and for clients in any language."""

from __future__ import annotations

import json
import random
import shlex
import textwrap
from contextlib import nullcontext

import click

from memmock.cli.listening import listen_options
from memmock.cli.target import limit_options
from memmock.contract import DEFAULT_AUTHORIZATION, RetrievalConfig


@click.command("serve", short_help="Serve the mock provider and show each call.")
@listen_options()
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
    "--scenario",
    metavar="NAME",
    help="What to play in place of the honest answer, as late or 'late(factor=2)'.",
)
@click.option(
    "--plan", metavar="PLAN", help='What to play one after the other, as "server-error*2, success".'
)
@click.option(
    "--chaos", metavar="CHANCES", help='What to play by chance, as "reset-mid-body=0.1, late=0.05".'
)
@click.option("--seed", type=int, help="Makes --chaos the same on every run; by chance when not given.")
@click.option(
    "--scenarios",
    "own",
    metavar="FILE",
    help="YAML or JSON with scenarios of your own; see docs/faults.md.",
)
@click.option(
    "--live",
    "twin",
    is_flag=True,
    help="Stand in for the live service too, under /live/v1/lives; see docs/live.md.",
)
@click.option(
    "--control-token",
    envvar="MEMMOCK_CONTROL_TOKEN",
    metavar="TOKEN",
    help="What the control API asks for as a Bearer token.  [env: MEMMOCK_CONTROL_TOKEN]",
)
def command(
    host: str,
    port: int,
    path: str,
    persona: str | None,
    authorization: str | None,
    timeout_ms: int,
    max_response_bytes: int,
    scenario: str | None,
    plan: str | None,
    chaos: str | None,
    seed: int | None,
    own: str | None,
    twin: bool,
    control_token: str | None,
    form: str,
) -> None:
    """Serve the mock provider until Ctrl-C, and show each call.

    Which scenario is played can be changed while it runs: the control API is under /__memmock__/.
    """
    from memmock.admin import PREFIX, Admin, is_local
    from memmock.cli.call_log import CallLog, as_json, as_json_at_end, as_text, as_text_at_end
    from memmock.cli.live import mounted, twin_help
    from memmock.cli.live_log import live_log
    from memmock.inspector import Inspector, Subject
    from memmock.live import LIVES_PATH, Lives
    from memmock.memories import builtin, load
    from memmock.playbook import EVERYTHING, Playbook
    from memmock.provider import Provider
    from memmock.redaction import mask_of
    from memmock.scenario_file import OwnScenarios, read
    from memmock.server import Elsewhere, Server

    if seed is not None and chaos is None and not twin:
        raise click.UsageError("--seed is for --chaos, which is not given")
    memories = builtin() if persona is None else load(persona)
    memories.prepare()
    scenarios = OwnScenarios() if own is None else read(own)
    playbook = Playbook(scenarios.scenarios, EVERYTHING)
    provider = Provider(
        memories,
        path=path,
        authorization=authorization,
        max_response_bytes=max_response_bytes,
        timeout_ms=timeout_ms,
        playbook=playbook,
    )
    live_seed = seed or 0
    if chaos is not None and seed is None:
        seed = random.SystemRandom().randrange(1_000_000)

    def set_up() -> None:
        if scenario is not None:
            playbook.use(scenario)
        for name, when in scenarios.always.items():
            playbook.use(name, when=when)
        if chaos is not None:
            playbook.chaos(chaos, seed or 0)
        if plan is not None:
            playbook.plan(plan, must_finish=False)

    set_up()
    inspector = Inspector(Subject.of_provider(provider, lambda: server.url + path, token=control_token))
    admin = Admin(
        provider,
        host=host,
        token=control_token,
        restore=set_up,
        settle=lambda: server.follow_door(),
        pages=inspector.answer,
    )
    lives = Lives(seed=live_seed, max_response_bytes=max_response_bytes)
    live = mounted(admin, lives, host=host, token=control_token) if twin else None
    server = Server(live or admin, host=host, port=port, door=playbook)
    playbook.changed = server.look
    elsewhere = Elsewhere(server)
    provider.elsewhere = elsewhere.url
    server.bind()
    try:
        # CreateLive insists on an authorization, also for a provider that ignores it [seed]
        config = RetrievalConfig(
            server.url + path,
            DEFAULT_AUTHORIZATION if authorization is None else authorization,
            timeout_ms=timeout_ms,
            max_response_bytes=max_response_bytes,
        )
        control = server.url + PREFIX
        reachable = control_token is not None or is_local(host)
        if form == "json":
            facts = {"endpoint": config.endpoint, "authorization": config.authorization, "control": control}
            facts |= {"lives": server.url + LIVES_PATH} if twin else {}
            ready = json.dumps(facts if seed is None else {**facts, "seed": seed})
        else:
            whose = "character 01" if persona is None else persona
            lines = [f"memmock serves {len(memories):,} memories of {whose} at {config.endpoint}"]
            lines += _plays([rule.description for rule in playbook.rules])
            lines += _asking(config)
            lines += ["", *twin_help(server.url, config, reachable=reachable)] if twin else []
            lines += _controlling(control, token=control_token is not None) if reachable else _NO_CONTROL
            ready = "\n".join([*lines, "", "Calls (Ctrl-C to stop):"])
        line, end = (as_json, as_json_at_end) if form == "json" else (as_text, as_text_at_end)
        mask = mask_of(authorization, control_token)
        calls = CallLog(
            provider.journal,
            lambda call, again: mask(line(call, again)),
            lambda call, again: mask(end(call, again)),
            all_of_them=form == "json",
        )
        with calls, nullcontext() if live is None else live_log(live, mask, as_json=form == "json"):
            server.run(ready=lambda: click.echo(ready))
    finally:
        server.stop()
        elsewhere.stop()


def _plays(plays: list[str]) -> list[str]:
    return ["", "It plays, the first that applies:", *(f"  {play}" for play in plays)] if plays else []


def _asking(config: RetrievalConfig) -> list[str]:
    """Return the lines that say how to ask the provider, by hand and by a live session."""
    body = json.dumps({"query": "用户和灵绯之前约定的暗号", "max_results": 1}, ensure_ascii=False)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": config.authorization,
    }
    block = json.dumps({"memory_retrieval": config.to_json()}, ensure_ascii=False, indent=2)
    return [
        "",
        "Ask it:",
        "",
        f"curl -s {shlex.quote(config.endpoint)} \\",
        *(f"  -H {shlex.quote(f'{name}: {value}')} \\" for name, value in headers.items()),
        f"  -d {shlex.quote(body)}",
        "",
        "Point a live session at it, in the body of CreateLive:",
        "",
        textwrap.dedent(block[2:-2]),
    ]


_CHANGE = ["", "Change what it plays (memmock scenarios lists it all):", ""]
_NO_CONTROL = [
    *_CHANGE,
    "Others may reach this server, so its control API is off; --control-token turns it on.",
]


def _controlling(control: str, *, token: bool) -> list[str]:
    """Return the lines that say how to watch, and how to change what is played."""
    return [
        "",
        "Watch it in a browser:",
        "",
        control,
        *_CHANGE,
        f"curl -s -X PUT {control}scenario \\",
        *(['  -H "Authorization: Bearer $MEMMOCK_CONTROL_TOKEN" \\'] if token else []),
        "  -H 'Content-Type: application/json' -d '{\"use\": \"late\"}'",
    ]
