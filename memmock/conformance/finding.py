"""What a run of checks found, as data: for reports, exit codes, and tests that reproduce it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from memmock.conformance.case import as_curl
from memmock.conformance.session import Answer
from memmock.rules import Rule, Severity

SHOWN_CHARS = 2000
"""So much of a body is in a finding."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, with the smallest requests that show it.

    Attributes:
        rule: what is broken.
        message: what was seen, in one line.
        pointer: where, as in a `Violation`; empty for the whole.
        answers: the calls that show it, in their order; the last one is the one that is wrong.
        expected: what a good provider does.
        together: whether the calls were made at the same time.
        flaky: whether it did not show every time.
    """

    rule: Rule
    message: str
    pointer: str
    answers: tuple[Answer, ...]
    expected: str
    together: bool = False
    flaky: bool = False

    @property
    def key(self) -> str:
        """What is the same for findings with one cause, as far as can be told: rule, place and kind.

        A baseline and the known failures of earlier runs go by it.
        """
        last = self.answers[-1]
        place = re.sub(r"/\d+", "/*", self.pointer)
        seen = last.failure.partition(":")[0] or str(last.status)
        return f"{self.rule.code} {place} {seen}".replace("  ", " ")

    @property
    def keys(self) -> tuple[str, ...]:
        """The key: there is one place that shows it."""
        return (self.key,)


State = Literal["passed", "violated", "not applicable"]


@dataclass(frozen=True)
class Outcome:
    """What became of one check."""

    rule: Rule
    state: State
    reason: str = ""


@dataclass
class Result:
    """What a run came to.

    Attributes:
        url: the provider.
        findings: what is wrong, errors first.
        outcomes: one for each rule that was checked; empty when fuzzing.
        requests: how many were sent.
        seconds: how long it took.
        seed: what makes a fuzz run the same again; None for checks.
        stopped: why it ended early, empty when it did not.
    """

    url: str
    findings: list[Finding] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0
    seed: int | None = None
    stopped: str = ""

    def ok(self, fail_on: Severity = Severity.ERROR) -> bool:
        """Whether nothing of this weight or more was found."""
        return not any(weighs(finding.rule, fail_on) for finding in self.findings)


def weighs(rule: Rule, fail_on: Severity) -> bool:
    """Whether a rule weighs at least as much."""
    return rule.severity is Severity.ERROR or fail_on is Severity.WARNING


def curls(finding: Finding, url: str) -> list[str]:
    """Return the commands that show a finding, in their order."""
    return [as_curl(answer.request, url) for answer in finding.answers]
