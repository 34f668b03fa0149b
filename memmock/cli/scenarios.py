"""`memmock scenarios`: what a provider can do to a consumer, and the proof that it does."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import click

from memmock.cli.text import count
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from memmock.scenarios import Scenario
    from memmock.verification import Proof


@click.command("scenarios", short_help="List what the mock can do to a client, or prove that it does.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--family", metavar="FAMILY", help="Only the scenarios of a family, as connection.")
@click.option(
    "--verify", is_flag=True, help="Play each to a raw socket and compare what arrives with what is promised."
)
@click.option(
    "--timeout-ms",
    type=click.IntRange(100, 60_000),
    metavar="MS",
    default=500,
    show_default=True,
    help="With --verify: the consumer's limit that the scenarios go by.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the scenarios as data.",
)  # fmt: skip
def command(names: tuple[str, ...], family: str | None, verify: bool, timeout_ms: int, form: str) -> None:
    """List the scenarios, or describe those with these names; the name of a family stands for all of it.

    Each has the outcomes that a good consumer may show: ok, or the code of an error. With --verify, the exit
    code is 1 when a scenario does not keep its promise.
    """
    from memmock.scenarios import CATALOGUE, members
    from memmock.scenarios import family as of_family

    chosen = list(CATALOGUE.values()) if family is None else of_family(family)
    if names:
        wanted = {scenario.name: name for name in names for scenario in members(name)}
        for scenario, name in wanted.items():
            if family is not None and CATALOGUE[scenario].family != family:
                raise MemmockError(f"the family {family} has no scenario {name!r}")
        chosen = [scenario for scenario in chosen if scenario.name in wanted]
    if verify:
        _prove(chosen, timeout_ms, form)
    elif form == "json":
        click.echo(json.dumps([scenario.to_json() for scenario in chosen], ensure_ascii=False, indent=2))
    elif names:
        click.echo("\n\n".join(_page(scenario) for scenario in chosen))
    else:
        groups = itertools.groupby(chosen, lambda scenario: scenario.family)
        click.echo("\n\n".join("\n".join([name, *map(_line, group)]) for name, group in groups))


def _line(scenario: Scenario) -> str:
    outcomes = " or ".join(scenario.outcomes)
    return f"  {scenario.name:<29} {outcomes}\n      {scenario.summary}{_parameters(scenario)}"


def _parameters(scenario: Scenario) -> str:
    settings = ", ".join(f"{parameter.name}={parameter.default}" for parameter in scenario.parameters)
    return f" ({settings})" if settings else ""


def _page(scenario: Scenario) -> str:
    settings = ", ".join(f"{parameter.name}={parameter.default}" for parameter in scenario.parameters)
    lines = [
        f"{scenario.name} ({scenario.family})",
        "",
        click.wrap_text(scenario.summary, 90, "  ", "  "),
        "",
        f"  a good consumer shows   {' or '.join(scenario.outcomes)}",
    ]
    if settings:
        lines.append(f"  parameters              {settings}")
    if scenario.aliases:
        lines.append(f"  other names             {', '.join(scenario.aliases)}")
    if scenario.needs:
        lines.append(f"  needs                   {scenario.needs}, so not for pytest-httpserver")
    spec = scenario.name
    if scenario.parameters:
        first = scenario.parameters[0]
        spec = f'"{scenario.name}({first.name}={first.default})"'
    lines += ["", f"  memmock serve --scenario {spec}"]
    return "\n".join(lines)


def _prove(scenarios: list[Scenario], timeout_ms: int, form: str) -> None:
    from memmock.verification import verify

    proofs = []
    for proof in verify(scenarios, timeout_ms):
        proofs.append(proof)
        if form == "text":
            click.echo(_verdict(proof))
    broken = [proof for proof in proofs if proof.mistakes]
    if form == "json":
        facts = [
            {"name": proof.scenario.name, "ok": not proof.mistakes, "mistakes": list(proof.mistakes),
             "seen": proof.summary}
            for proof in proofs
        ]  # fmt: skip
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        kept = f"{len(proofs) - len(broken)} of {count(len(proofs), 'scenario')}"
        click.echo(f"\n{kept} arrived as promised.")
    raise SystemExit(1 if broken else 0)


def _verdict(proof: Proof) -> str:
    mark = "broken" if proof.mistakes else "ok"
    lines = [f"{mark:<6}  {proof.scenario.name:<29} {proof.summary}"]
    lines += [f"          {mistake}" for mistake in proof.mistakes]
    return "\n".join(lines)
