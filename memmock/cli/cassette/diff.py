"""`memmock cassette diff`: how two cassettes differ."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from memmock.cli.cassette.interactions import as_shown, called, learn, loaded, matcher_names
from memmock.cli.text import count
from memmock.strictjson import printable, shortened

if TYPE_CHECKING:
    from memmock.cassette import Interaction
    from memmock.matching import Difference, Matcher

MOST_SHOWN = 20
"""So many differences of one reply are listed as text."""


class Pair(NamedTuple):
    """The same retrieval in two cassettes: its number in each, None where it is not there."""

    query: str
    first: int | None
    second: int | None
    differences: list[Difference]


@click.command("diff", short_help="Compare two cassettes, retrieval by retrieval.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--match-on",
    metavar="NAMES",
    help="What makes two requests the same retrieval, with commas; method,path,query,memory_types,time_hint,"
    "max_results when not given; also live_id, reason, target, body.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the differences as data.",
)  # fmt: skip
def command(first: str, second: str, match_on: str | None, form: str) -> None:
    """Compare the replies of two cassettes, retrieval by retrieval and field by field.

    What is expected is what A has, what is received is what B has. A retrieval that was recorded several
    times is compared in that order. Credentials are not compared.

    Exits with 0 when they are the same, 1 when they differ, 2 when one cannot be read.
    """
    from memmock.matching import Matcher
    from memmock.redaction import Redactor

    matcher = Matcher(matcher_names(match_on))
    redactor = Redactor()
    one, other = loaded(first), loaded(second)
    learn([*one, *other], redactor)
    one, other = ([as_shown(each, redactor) for each in side] for side in (one, other))
    pairs = list(_pairs(one, other, matcher))
    if form == "json":
        click.echo(json.dumps([as_json(pair) for pair in pairs], ensure_ascii=False, indent=2))
    else:
        lines = [line for pair in pairs for line in _lines(pair, first, second)]
        click.echo(redactor.text("\n".join([*lines, _summary(pairs, first, second)])))
    if any(pair.differences or pair.first is None or pair.second is None for pair in pairs):
        raise SystemExit(1)


def _pairs(one: Sequence[Interaction], other: Sequence[Interaction], matcher: Matcher) -> Iterator[Pair]:
    """Yield the retrievals in the order of the first cassette, then those of the second only."""
    from memmock.comparison import reply_differences

    here, there = _by_key(one, matcher), _by_key(other, matcher)
    for key in dict.fromkeys([*here, *there]):
        for n, m in zip_longest(here.get(key, ()), there.get(key, ())):
            asked = one[n].request if n is not None else other[m].request
            both = n is not None and m is not None
            found = reply_differences(one[n].reply, other[m].reply) if both else []
            yield Pair(called(asked), _number(n), _number(m), found)


def _by_key(interactions: Sequence[Interaction], matcher: Matcher) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for n, each in enumerate(interactions):
        found.setdefault(matcher.key(each.request), []).append(n)
    return found


def _number(index: int | None) -> int | None:
    return None if index is None else index + 1


def as_json(pair: Pair) -> dict[str, Any]:
    """Return a pair as a JSON object."""
    return {**pair._asdict(), "differences": plain_differences(pair.differences)}


def plain_differences(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """Return differences as JSON objects; null stands for what is absent, and for null."""
    from memmock.comparison import NULL

    return [
        {name: None if value is NULL else value for name, value in found._asdict().items()}
        for found in differences
    ]


def difference_lines(differences: Sequence[Difference]) -> list[str]:
    """Return differences as lines, the last one for those that are too many."""
    lines = [f"  {printable(str(found))}" for found in differences[:MOST_SHOWN]]
    if (more := len(differences) - MOST_SHOWN) > 0:
        lines.append(f"  and {count(more, 'more difference')}")
    return lines


def _lines(pair: Pair, first: str, second: str) -> list[str]:
    query = shortened(pair.query)
    if pair.second is None:
        return [f"only in {first}, interaction {pair.first}: {query}"]
    if pair.first is None:
        return [f"only in {second}, interaction {pair.second}: {query}"]
    if not pair.differences:
        return []
    where = f"interaction {pair.first}"
    if pair.first != pair.second:
        where += f", in {second} interaction {pair.second}"
    return [f"{where}: {query}", *difference_lines(pair.differences)]


def _summary(pairs: Sequence[Pair], first: str, second: str) -> str:
    both = [pair for pair in pairs if pair.first is not None and pair.second is not None]
    differ = sum(bool(pair.differences) for pair in both)
    parts = [f"{len(both) - differ} the same", f"{differ} {'differs' if differ == 1 else 'differ'}"]
    for name, only in ((first, [p for p in pairs if p.second is None]),
                       (second, [p for p in pairs if p.first is None])):  # fmt: skip
        parts += [f"{len(only)} only in {name}"] if only else []
    return f"{count(len(pairs), 'retrieval')}: {', '.join(parts)}"
