"""`memmock cassette check`: whether recordings are fit to be kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from memmock.cli.cassette.interactions import (
    age_s,
    duration,
    hidden,
    in_words,
    learn,
    loaded,
    reason,
    violations,
)
from memmock.cli.redacting import redact_options, redactor
from memmock.cli.text import count
from memmock.errors import MemmockError
from memmock.strictjson import printable

if TYPE_CHECKING:
    from memmock.cassette import Interaction
    from memmock.redaction import Redactor


class Finding(NamedTuple):
    """One thing that is wrong with a cassette; of the whole file when there is no interaction."""

    file: str
    interaction: int | None
    kind: str
    severity: str
    message: str

    def __str__(self) -> str:
        if self.kind == "load":
            return printable(self.message)
        what = (
            self.message if self.kind.isupper() or self.kind[-1].isdigit() else f"{self.kind}: {self.message}"
        )
        return printable(f"{self.file}: interaction {self.interaction}: {what}")


@click.command("check", short_help="Find what is wrong with cassettes.")
@click.argument("paths", metavar="FILE...|DIR", nargs=-1, required=True)
@click.option(
    "--max-age", callback=duration, metavar="AGE",
    help="How old a recording may be, as 30d or 12h; any age when not given.",
)  # fmt: skip
@click.option(
    "--fail-on", type=click.Choice(["error", "warning"]), default="error", show_default=True,
    help="warning also fails for broken recommendations of the contract.",
)  # fmt: skip
@click.option(
    "--authorization",
    envvar="MEMMOCK_UPSTREAM_AUTHORIZATION",
    metavar="VALUE",
    help="A value that must not be in a cassette.  [env: MEMMOCK_UPSTREAM_AUTHORIZATION]",
)
@redact_options
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="json prints the findings as data.",
)  # fmt: skip
def command(
    paths: tuple[str, ...],
    max_age: int | None,
    fail_on: str,
    authorization: str | None,
    redact_headers: tuple[str, ...],
    redact_fields: tuple[str, ...],
    redact_patterns: tuple[str, ...],
    form: str,
) -> None:
    """Find what is wrong with cassettes: a line for each thing.

    A file must load, each interaction keep the contract, and hold no secret; none may be older than
    --max-age, nor be in the file twice. In a directory all .yaml, .yml and .json files are looked at, those
    in directories below it too; what is no cassette is passed over.

    Exits with 0 when nothing is wrong, 1 when something is, 2 for a usage error.
    """
    findings: list[Finding] = []
    total = undated = 0
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    for file in files:
        hides = redactor(redact_headers, redact_fields, redact_patterns, authorization)
        try:
            interactions = loaded(file)
        except MemmockError as error:
            findings.append(Finding(file, None, "load", "error", str(error)))
            continue
        total += len(interactions)
        undated += sum(age_s(each) is None for each in interactions)
        findings += _findings(file, interactions, hides, max_age)
    undated = 0 if max_age is None else undated
    (_print_json if form == "json" else _print_text)(findings, len(files), total, undated)
    if any(fail_on == "warning" or found.severity == "error" for found in findings):
        raise SystemExit(1)


# ---- files


def _files(path: str) -> Iterator[str]:
    """Yield the cassettes that a path stands for: itself, or all that are in the directory."""
    from memmock.documents import SUFFIXES

    place = Path(path)
    if not place.is_dir():
        if not place.exists():
            raise MemmockError(f"{path}: No such file or directory")
        yield path
        return
    found = [str(file) for file in sorted(place.rglob("*")) if file.suffix.lower() in SUFFIXES]
    cassettes = [file for file in found if _may_be_cassette(Path(file))]
    if not cassettes:
        raise MemmockError(f"{path}: there are no cassettes in this directory")
    yield from cassettes


_LOOKED_AT = 1 << 20
_INTERACTIONS = re.compile(rb"(?:^|[{,\s])[\"']?interactions[\"']?\s*:")


def _may_be_cassette(path: Path) -> bool:
    """Tell whether a file has interactions; also True for one that cannot be read, or has nothing at all.

    A cassette is empty or full of NULs after a crash, a document of another kind hardly ever.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT)
    except OSError:
        return True
    return not start.strip(b" \t\r\n\0") or bool(_INTERACTIONS.search(start))


# ---- findings


def _findings(
    file: str, interactions: Sequence[Interaction], hides: Redactor, max_age: int | None
) -> Iterator[Finding]:
    """Yield what is wrong with the interactions of a file, in their order."""
    learn(interactions, hides)
    twins = _twins(interactions)
    for number, each in enumerate(interactions, 1):
        for kind, severity, message in _broken(each):
            yield Finding(file, number, kind, severity, hides.text(message))
        for message in _secrets(each, hides):
            yield Finding(file, number, "secret", "error", message)
        age = age_s(each)
        if max_age is not None and age is not None and age > max_age:
            message = f"recorded at {each.recorded_at}, more than {in_words(max_age)} ago"
            yield Finding(file, number, "age", "error", message)
        if twin := twins.get(number):
            message = f"the same retrieval and reply as interaction {twin}"
            yield Finding(file, number, "duplicate", "error", message)


def _broken(recorded: Interaction) -> Iterator[tuple[str, str, str]]:
    """Yield the broken rules: code, severity and the words for it."""
    from memmock.rules import RULES

    found = violations(recorded)
    for violation in found:
        yield violation.code, str(violation.severity), str(violation)
    seen = {violation.code for violation in found}
    for code in recorded.violations:
        if code not in seen and code in RULES:
            severity = RULES[code].severity
            yield code, str(severity), f"{code} {severity}: was broken when this was recorded"


def _secrets(recorded: Interaction, hides: Redactor) -> Iterator[str]:
    try:
        places = hidden(recorded, hides).places
    except MemmockError as error:
        yield reason(error)
        return
    for place in places:
        yield f"{place} holds one: memmock cassette redact takes it out"


def _twins(interactions: Sequence[Interaction]) -> dict[int, int]:
    """Return the numbers of interactions that are there before, each with that of the first."""
    from memmock.comparison import reply_key
    from memmock.matching import Matcher

    matcher = Matcher()
    firsts: dict[object, int] = {}
    twins = {}
    for number, each in enumerate(interactions, 1):
        first = firsts.setdefault((matcher.key(each.request), reply_key(each.reply)), number)
        if first != number:
            twins[number] = first
    return twins


# ---- output


def _print_text(findings: Sequence[Finding], files: int, interactions: int, undated: int) -> None:
    for found in findings:
        click.echo(str(found))
    if undated:
        click.echo(f"{count(undated, 'interaction')} without a date: the age is not known")
    errors = sum(found.severity == "error" for found in findings)
    warnings = len(findings) - errors
    parts = [count(errors, "error")] if errors else []
    parts += [count(warnings, "warning")] if warnings else []
    looked_at = f"{count(files, 'cassette')}, {count(interactions, 'interaction')}"
    click.echo(f"{looked_at}: {', '.join(parts) or 'nothing is wrong'}")


def _print_json(findings: Sequence[Finding], files: int, interactions: int, undated: int) -> None:
    facts = {
        "cassettes": files,
        "interactions": interactions,
        "without_date": undated,
        "findings": [found._asdict() for found in findings],
    }
    click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
