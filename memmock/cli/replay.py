"""`memmock replay`: serves what was recorded, and nothing else."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import click

from memmock.cli.listening import listen_options
from memmock.cli.redacting import redact_options, redactor
from memmock.cli.text import count
from memmock.contract import DEFAULT_PATH
from memmock.http import check_path
from memmock.strictjson import printable

if TYPE_CHECKING:
    from memmock.cassette import Cassette, Interaction
    from memmock.replay import Replay


@click.command("replay", short_help="Serve cassettes, offline.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--repeats",
    type=click.Choice(["last", "cycle", "none"]),
    default="last",
    show_default=True,
    help="What comes after the last recording of a retrieval: that one again, all again, or a 404.",
)
@click.option(
    "--latency",
    type=click.Choice(["recorded", "none"]),
    default="none",
    show_default=True,
    help="recorded answers as late as the provider did.",
)
@click.option(
    "--match-on",
    metavar="NAMES",
    help="What must be the same, with commas; method,path,query,memory_types,time_hint,max_results when not "
    "given; also live_id, reason, target, body.",
)
@redact_options
@listen_options(None, "Where to answer; where it was recorded when not given.")
def command(
    files: tuple[str, ...],
    repeats: str,
    latency: str,
    match_on: str | None,
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    redact_patterns: tuple[str, ...],
    host: str,
    port: int,
    path: str | None,
    form: str,
) -> None:
    """Serve recorded interactions until Ctrl-C. Nothing is ever sent to a network.

    A retrieval that was not recorded is answered with 404, which names the nearest recording and what
    differs. What was redacted in the recording has to be redacted here too, with the same options.
    """
    from memmock.admin import PREFIX, is_local
    from memmock.cassette import Cassette
    from memmock.cassette_file import load
    from memmock.cli.call_log import CallLog, as_json, as_json_at_end, as_text
    from memmock.inspector import Inspected, Inspector, Subject
    from memmock.matching import MATCH_ON, Matcher
    from memmock.replay import Replay
    from memmock.server import Server

    wanted = MATCH_ON if match_on is None else tuple(name.strip() for name in match_on.split(","))
    hidden = redactor(redact_headers, redact_fields, redact_patterns)
    loaded = [(file, load(file)) for file in files]
    paths = _paths(path, [each for _, interactions in loaded for each in interactions])
    if paths:  # they stand for the path that was recorded
        wanted = tuple(name for name in wanted if name not in ("path", "target"))
    cassette = Cassette(
        [each for _, interactions in loaded for each in interactions],
        matcher=Matcher(wanted),
        redactor=hidden,
        repeats=repeats,  # type: ignore[arg-type]  # one of the choices
    )
    names = [
        f"interaction {number}{f' of {file}' if len(files) > 1 else ''}"
        for file, interactions in loaded
        for number in range(1, len(interactions) + 1)
    ]
    replay = Replay(cassette, paths=paths, latency=latency == "recorded", names=names)
    subject = Subject(kind="replay", journal=replay.journal, endpoint=lambda: endpoint, redactor=hidden)
    inspected = Inspected(replay, Inspector(subject), host=host)
    server = Server(inspected, host=host, port=port)
    server.bind()
    endpoint = server.url + (paths[0] if paths else cassette.interactions[0].request.path)
    watched = server.url + PREFIX if is_local(host) else ""
    ready = (
        json.dumps({"endpoint": endpoint}) if form == "json" else _welcome(cassette, files, endpoint, watched)
    )
    line = as_json if form == "json" else as_text
    end = as_json_at_end if form == "json" else lambda *_: ""
    with CallLog(
        replay.journal,
        lambda call, again: hidden.text(line(call, again)),
        lambda call, again: hidden.text(end(call, again)),
        all_of_them=form == "json",
    ):
        server.run(ready=lambda: click.echo(ready))
    click.echo(_summed_up(cassette, replay, form))


def _paths(path: str | None, recorded: list[Interaction]) -> tuple[str, ...]:
    """Return where to answer whatever was recorded; nothing where several paths have to be told apart.

    The path that `memmock record` answers at is one of them: who was pointed there finds the recording too.
    """
    if path is not None:
        check_path(path)
        return (path,)
    known = list(dict.fromkeys(each.request.path for each in recorded))
    return () if len(known) > 1 else tuple(dict.fromkeys([*known, DEFAULT_PATH]))


def _summed_up(cassette: Cassette, replay: Replay, form: str) -> str:
    unplayed = len(cassette.unplayed)
    played = sum(cassette.plays)
    if form == "json":
        return json.dumps({"played": played, "missed": replay.missed, "unplayed": unplayed})
    return (
        f"\n{count(played, 'call')} played, {replay.missed} not recorded; "
        f"{count(unplayed, 'interaction')} never played"
    )


def _welcome(cassette: Cassette, files: tuple[str, ...], endpoint: str, watched: str) -> str:
    named = files[0] if len(files) == 1 else f"{len(files)} cassettes"
    lines = [f"memmock replays {named} ({count(len(cassette), 'interaction')}) at {endpoint}", ""]
    if cassette.interactions:
        body = cassette.interactions[0].request.body.decode(errors="replace")
        lines += [
            "Ask it:",
            "",
            f"curl -s {shlex.quote(endpoint)} \\",
            "  -H 'Content-Type: application/json' -H 'Accept: application/json' \\",
            f"  -d {shlex.quote(printable(body))}",
            "",
        ]
    if watched:
        lines += ["Watch it in a browser:", "", watched, ""]
    return "\n".join([*lines, "Calls (Ctrl-C to stop):"])
