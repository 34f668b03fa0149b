"""What a run of checks of a consumer found, as data: for reports, exit codes, and tests that reproduce it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from memmock.conformance.finding import Outcome as RuleOutcome
from memmock.conformance.finding import weighs
from memmock.consumer_conformance.act import Seen
from memmock.report.parts import Row
from memmock.rules import Rule, Severity

_KEPT_CHARS = 80


class Problem(NamedTuple):
    """One thing that is wrong with what was seen of one act.

    Attributes:
        rule: what is broken.
        message: what was seen, in one line.
        pointer: where: a JSON pointer into the tool result or the request; empty for the whole.
        expected: what a good consumer does.
    """

    rule: Rule
    message: str
    pointer: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a consumer, with the acts that show it.

    Attributes:
        rule: what is broken.
        message: what was seen, in one line.
        pointer: where: a JSON pointer into the tool result or the request; empty for the whole.
        expected: what a good consumer does.
        seen: the acts, in their order; the last one is the one that is judged.
        also: the names of other scenarios that show the same.
        flaky: whether it did not show every time.
    """

    rule: Rule
    message: str
    pointer: str
    expected: str
    seen: tuple[Seen, ...]
    also: tuple[str, ...] = ()
    flaky: bool = False

    @property
    def scenario(self) -> str:
        """The name of what was played; the first, where several calls show it."""
        return self.seen[0].act.name

    @property
    def keys(self) -> tuple[str, ...]:
        """What is the same for findings with one cause, one for each scenario. A baseline goes by them."""
        place = re.sub(r"/\d+", "/*", self.pointer)
        if self.seen[0].act.case is not None:  # what was generated has no name to tell it from others
            place = f"{place} {re.sub(r'[0-9]+', '#', self.message)[:_KEPT_CHARS]}".strip()
        return tuple(f"{self.rule.code} {name} {place}".strip() for name in (self.scenario, *self.also))


@dataclass
class Result:
    """What a run came to.

    Attributes:
        name: the consumer.
        findings: what is wrong, errors first.
        outcomes: one for each rule that was checked; empty when fuzzing.
        matrix: one row a scenario, in the order of the catalogue; empty when fuzzing.
        calls: how often the consumer was called.
        seconds: how long it took.
        seed: what makes a fuzz run the same again; None for checks.
        stopped: why it ended early, empty when it did not.
    """

    name: str
    findings: list[Finding] = field(default_factory=list)
    outcomes: list[RuleOutcome] = field(default_factory=list)
    matrix: list[Row] = field(default_factory=list)
    calls: int = 0
    seconds: float = 0.0
    seed: int | None = None
    stopped: str = ""

    def ok(self, fail_on: Severity = Severity.ERROR) -> bool:
        """Whether nothing of this weight or more was found."""
        return not any(weighs(finding.rule, fail_on) for finding in self.findings)
