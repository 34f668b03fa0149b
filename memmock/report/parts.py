"""What a report is made of, whichever side of the contract was checked: nothing in it is a secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from memmock.http import Headers
from memmock.rules import Severity
from memmock.strictjson import printable


class Side(NamedTuple):
    """Which side of the contract was checked, in words.

    Attributes:
        heading: the question that the report answers.
        noun: what is counted, in the singular.
        check: the command that checks it.
        fuzz: the command that looks for more.
    """

    heading: str
    noun: str
    check: str
    fuzz: str


PROVIDER = Side("Does this provider keep the contract?", "request", "check", "fuzz")
CONSUMER = Side("Does this consumer keep the contract?", "call", "check-consumer", "fuzz-consumer")


class Text(NamedTuple):
    """The beginning of a body, and how many bytes the whole has."""

    start: str
    size: int
    cut: bool

    def upto(self, chars: int) -> Text:
        """Return less of it."""
        return self if len(self.start) <= chars else Text(self.start[:chars], self.size, True)

    def __str__(self) -> str:
        return f"{self.start}… ({self.size:,} bytes in all)" if self.cut else self.start


class ShownReply(NamedTuple):
    """A reply; `body` is decoded, if it could be."""

    status: int
    headers: Headers
    body: Text


class Block(NamedTuple):
    """Some lines of what shows a finding.

    Attributes:
        label: what they are, in a word; empty when they belong to the block before.
        rows: the lines. Those of prose may be broken anew.
        kind: `code` is shown as it is; a `command` is to be copied; `prose` are sentences; a `note` is one
            line; an `aside` is one that matters less.
        value: what a note ends with, as it is.
    """

    label: str
    rows: tuple[str, ...]
    kind: Literal["code", "command", "prose", "note", "aside"] = "code"
    value: str = ""


class Evidence(Protocol):
    """What shows a finding: the calls that were made, or what the provider played to a consumer."""

    def blocks(self, *, brief: bool) -> Sequence[Block]:
        """Return it for people.

        Args:
            brief: for a terminal: less of long bodies.
        """

    def calls(self) -> Sequence[dict[str, Any]]:
        """Return each call as data, in their order: the last one is the one that is judged."""

    def to_json(self) -> dict[str, Any]:
        """Return what else there is to tell of the calls, as data."""


@dataclass(frozen=True)
class Entry:
    """One finding; the fields are those of its rule and of the finding.

    Attributes:
        evidence: what shows it.
        scenario: what was played, of a consumer's finding.
        steps: what can be done to see it again, behind everything else.
    """

    code: str
    severity: Severity
    title: str
    reason: str
    message: str
    pointer: str
    expected: str
    evidence: Evidence
    flaky: bool
    scenario: str = ""
    steps: tuple[Block, ...] = ()

    @property
    def seen(self) -> str:
        """What was seen, in one line: where, unless the message says so, what, and how often."""
        scenario = f"{self.scenario}: " if self.scenario else ""
        place = f"at {self.pointer}: " if self.pointer and self.pointer not in self.message else ""
        return f"{scenario}{place}{self.message}{' (not every time)' if self.flaky else ''}"


class Verdict(NamedTuple):
    """What became of one rule."""

    code: str
    severity: Severity
    title: str
    state: str
    reason: str


class Row(NamedTuple):
    """One scenario: what a good consumer shows, what this one showed, and the rules that it broke there."""

    scenario: str
    family: str
    expected: tuple[str, ...]
    seen: str
    ok: bool
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A result that may be shown to anybody.

    Attributes:
        target: the provider, or the consumer.
        ok: whether nothing was found that weighs enough to fail.
        fail_on: what weighs enough.
        entries: the findings, errors first, otherwise in their order.
        rules: what became of each rule; empty for fuzzing.
        calls: how many there were, requests or calls.
        seconds: how long it took.
        seed: of a fuzz run.
        stopped: why it ended early.
        known: how many findings were left out because the baseline has them; None without a baseline.
        gone: what the baseline has and was not found any more.
        side: which side of the contract was checked.
        matrix: what became of each scenario; empty when none was played by itself.
    """

    target: str
    ok: bool
    fail_on: Severity
    entries: tuple[Entry, ...]
    rules: tuple[Verdict, ...]
    calls: int
    seconds: float
    seed: int | None
    stopped: str
    known: int | None = None
    gone: tuple[str, ...] = ()
    side: Side = PROVIDER
    matrix: tuple[Row, ...] = ()

    @property
    def errors(self) -> int:
        """How many of the findings are errors."""
        return sum(entry.severity is Severity.ERROR for entry in self.entries)

    @property
    def warnings(self) -> int:
        """How many of the findings are warnings."""
        return len(self.entries) - self.errors

    @property
    def found(self) -> str:
        """How many findings there are, in words."""
        new = "new " if self.known is not None else ""
        both = ((self.errors, f"{new}error"), (self.warnings, f"{new}warning"))
        return ", ".join(count(n, noun) for n, noun in both if n) or f"nothing {new}was found"

    @property
    def summary(self) -> str:
        """What the run came to, in one line."""
        seed = f", seed {self.seed}" if self.seed is not None else ""
        calls = count(self.calls, self.side.noun)
        return f"{self.found.capitalize()}: {calls} in {self.seconds:.1f} s{seed}."

    @property
    def as_expected(self) -> str:
        """How many scenarios went as they are to go, in words; empty when none was played."""
        right = sum(row.ok for row in self.matrix)
        return f"{right} of {count(len(self.matrix), 'scenario')} as expected" if self.matrix else ""


def count(n: int, noun: str) -> str:
    """Return `n` and the noun in the right number."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def lines(text: str) -> list[str]:
    """Return a text as printable lines: only its line feeds end one."""
    return [printable(line) for line in text.split("\n")]
