"""`memmock cassette verify`: whether the provider still answers as it was recorded."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from memmock.cli.cassette.diff import difference_lines, plain_differences
from memmock.cli.cassette.interactions import as_shown, called, learn, loaded
from memmock.cli.redacting import redact_options, redactor
from memmock.cli.text import count
from memmock.errors import MemmockError
from memmock.strictjson import shortened

if TYPE_CHECKING:
    from memmock.cassette import Interaction
    from memmock.client import Exchange
    from memmock.http import Reply, Request
    from memmock.matching import Difference
    from memmock.redaction import Redactor
    from memmock.upstream import Upstream

AT_ONCE = 4
"""So many requests are under way at once [ours]."""


class Outcome(NamedTuple):
    """What became of one retrieval: `same`, `differs`, `no answer` or `not sent`, and why."""

    interactions: list[int]
    query: str
    outcome: str
    why: str = ""
    differences: Sequence[Difference] = ()


@click.command("verify", short_help="Ask the provider again, and find what has changed.")
@click.argument("file")
@click.option(
    "--upstream",
    envvar="MEMMOCK_UPSTREAM",
    required=True,
    metavar="URL",
    help="The provider; every request goes there, whatever address was recorded.  [env: MEMMOCK_UPSTREAM]",
)
@click.option(
    "--authorization",
    envvar="MEMMOCK_UPSTREAM_AUTHORIZATION",
    metavar="VALUE",
    help="Sent as the Authorization; what is in the cassette never is.  "
    "[env: MEMMOCK_UPSTREAM_AUTHORIZATION]",
)
@click.option(
    "--timeout-ms",
    type=click.IntRange(1, 86_400_000),
    metavar="MS",
    default=30_000,
    show_default=True,
    help="How long one answer may take.",
)
@click.option("--ca-file", metavar="FILE", help="Certificates to trust for the upstream, in PEM.")
@redact_options
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the outcomes as data.",
)  # fmt: skip
def command(
    file: str,
    upstream: str,
    authorization: str | None,
    timeout_ms: int,
    ca_file: str | None,
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    redact_patterns: tuple[str, ...],
    form: str,
) -> None:
    """Send each recorded retrieval to the provider, and compare its answers with the recorded ones.

    One that was recorded several times is sent once; any of its replies will do. Headers that are redacted or
    hold a credential are not sent. What was redacted in the recording has to be redacted here too, with the
    same options.

    Exits with 0 when all answers are the same, 1 when one differs or did not come, 2 when none came.
    """
    from memmock.upstream import Upstream

    hides = redactor(redact_headers, redact_fields, redact_patterns, authorization)
    provider = Upstream(upstream, authorization=authorization, timeout_ms=timeout_ms, ca_file=ca_file)
    recorded = loaded(file)
    learn(recorded, hides)
    recorded = [as_shown(each, hides) for each in recorded]
    outcomes = _outcomes(recorded, provider, hides)
    if not any(each.outcome in ("same", "differs") for each in outcomes):
        raise MemmockError(hides.text(_nothing(file, provider, outcomes)))
    if form == "json":
        click.echo(json.dumps([_as_json(each) for each in outcomes], ensure_ascii=False, indent=2))
    else:
        lines = [line for each in outcomes for line in _lines(each)]
        summary = _summary(outcomes)
        click.echo(hides.text("\n".join([*lines, f"{file} against {upstream}: {summary}"])))
    if any(each.outcome in ("differs", "no answer") for each in outcomes):
        raise SystemExit(1)


def _outcomes(recorded: Sequence[Interaction], upstream: Upstream, hides: Redactor) -> list[Outcome]:
    """Return what became of each retrieval, in the order in which they were first recorded."""
    from memmock.matching import Matcher

    matcher = Matcher()
    groups: dict[Hashable, list[int]] = {}
    for n, each in enumerate(recorded):
        groups.setdefault(matcher.key(each.request), []).append(n)
    firsts = [recorded[group[0]].request for group in groups.values()]
    requests = [_sendable(request) for request in firsts]
    exchanges = asyncio.run(_exchanges(upstream, requests))
    return [
        _outcome([n + 1 for n in group], [recorded[n] for n in group], exchange, hides, upstream)
        for group, exchange in zip(groups.values(), exchanges, strict=True)
    ]


async def _exchanges(upstream: Upstream, requests: Sequence[Request | None]) -> list[Exchange | None]:
    """Return what came of each request; None for those that are not to be sent."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def exchange(request: Request | None) -> Exchange | None:
        if request is None:
            return None
        async with gate:
            return await upstream.exchange(request)

    try:
        return await asyncio.gather(*map(exchange, requests))
    finally:
        await upstream.close()


def _sendable(request: Request) -> Request | None:
    """Return a recorded request as it can be sent, without what is hidden; None when its body is."""
    from memmock.redaction import MASK

    if MASK.encode() in request.body:
        return None
    path, _, query = request.target.partition("?")
    kept = "&".join(part for part in query.split("&") if MASK not in part)
    headers = tuple(pair for pair in request.headers if MASK not in pair[1])
    return request._replace(target=f"{path}?{kept}" if kept else path, headers=headers)


def _outcome(
    numbers: list[int],
    recorded: Sequence[Interaction],
    exchange: Exchange | None,
    hides: Redactor,
    upstream: Upstream,
) -> Outcome:
    query = called(recorded[0].request)
    if exchange is None:
        return Outcome(numbers, query, "not sent", "its body was redacted, so it is not known")
    if exchange.reply is None or not exchange.complete:
        error = exchange.result.error
        why = "the answer is not complete" if error is None else error.message
        return Outcome(numbers, query, "no answer", why)
    try:
        now = hides.exchange(exchange.request, exchange.reply)[1]
    except MemmockError as error:
        return Outcome(numbers, query, "differs", str(error))
    found = _fewest([each.reply for each in recorded], now)
    if not found:
        return Outcome(numbers, query, "same")
    why = ""
    if now.status in (401, 403) and upstream.authorization is None:
        why = "no Authorization was sent: name it with --authorization"
    return Outcome(numbers, query, "differs", why, found)


def _fewest(recorded: Sequence[Reply], now: Reply) -> list[Difference]:
    """Return the differences from the recorded reply that is nearest, from the first on a tie."""
    from memmock.comparison import reply_differences

    return min((reply_differences(each, now) for each in recorded), key=len)


# ---- output


def _nothing(file: str, upstream: Upstream, outcomes: Sequence[Outcome]) -> str:
    """Return why nothing could be compared."""
    if not outcomes:
        return f"{file}: there are no interactions to verify"
    if failed := [each for each in outcomes if each.outcome == "no answer"]:
        return f"{upstream.url}: no answer to any of {count(len(failed), 'retrieval')}: {failed[0].why}"
    return f"{file}: no retrieval can be sent: {outcomes[0].why}"


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {**outcome._asdict(), "differences": plain_differences(outcome.differences)}


def _lines(outcome: Outcome) -> list[str]:
    if outcome.outcome == "same":
        return []
    numbers = ", ".join(map(str, outcome.interactions))
    where = f"interaction{'s' if len(outcome.interactions) > 1 else ''} {numbers}"
    why = f" ({outcome.why})" if outcome.why else ""
    first = f"{where}: {shortened(outcome.query)}: {outcome.outcome}{why}"
    return [first, *difference_lines(outcome.differences)]


def _summary(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(each.outcome for each in outcomes)
    names = {"same": "the same"}
    if counts["differs"] > 1:
        names["differs"] = "differ"
    parts = [
        f"{counts[key]} {names.get(key, key)}"
        for key in ("same", "differs", "no answer", "not sent")
        if counts[key]
    ]
    return f"{count(len(outcomes), 'retrieval')}, {', '.join(parts)}"
