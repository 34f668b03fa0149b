"""What is shown of a result: its secrets hidden, its long bodies cut, in the order of a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from memmock.codings import undone
from memmock.conformance.case import as_curl
from memmock.conformance.finding import SHOWN_CHARS, Finding, Outcome, Result
from memmock.conformance.reproduction import made_from, secrets_of
from memmock.conformance.session import Answer, Target
from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request, header
from memmock.redaction import Redactor, mask_of
from memmock.rules import Severity
from memmock.strictjson import printable

AUTHORIZATION = "$AUTHORIZATION"
ALTERED = "$ALTERED_AUTHORIZATION"
_LOOKED_AT_BYTES = 64 * 1024
"""So much of a reply is searched for secrets, and no more is shown."""
_CURL_BYTES = 300
"""So much of a long body is in the short form of a command."""
_LONG_BYTES = 800


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


@dataclass(frozen=True)
class Call:
    """One request and what came of it.

    Attributes:
        method: the method.
        target: path and query string.
        headers: `$AUTHORIZATION` stands for the right one.
        body: the beginning of the body.
        curl: the complete command.
        short_curl: the same with the beginning of a long body.
        altered: how the authorization was made from the right one; empty when it was the right one or none.
        reply: None when none came.
        failure: why none came.
        elapsed_ms: how long it took.
    """

    method: str
    target: str
    headers: Headers
    body: Text
    curl: str
    short_curl: str
    altered: str
    reply: ShownReply | None
    failure: str
    elapsed_ms: float


@dataclass(frozen=True)
class Entry:
    """One finding; the fields are those of its rule and of `Finding`."""

    code: str
    severity: Severity
    title: str
    reason: str
    message: str
    pointer: str
    expected: str
    calls: tuple[Call, ...]
    together: bool
    flaky: bool

    @property
    def seen(self) -> str:
        """What was seen, in one line: where, unless the message says so, what, and how often."""
        place = f"at {self.pointer}: " if self.pointer and self.pointer not in self.message else ""
        return f"{place}{self.message}{' (not every time)' if self.flaky else ''}"


class Verdict(NamedTuple):
    """What became of one rule."""

    code: str
    severity: Severity
    title: str
    state: str
    reason: str


@dataclass(frozen=True)
class Report:
    """A result that may be shown to anybody.

    Attributes:
        target: the provider.
        ok: whether nothing was found that weighs enough to fail.
        fail_on: what weighs enough.
        entries: the findings, errors first, otherwise in their order.
        rules: what became of each rule; empty for fuzzing.
        requests: how many were sent.
        seconds: how long it took.
        seed: of a fuzz run.
        stopped: why it ended early.
        known: how many findings were left out because the baseline has them; None without a baseline.
        gone: what the baseline has and was not found any more.
    """

    target: str
    ok: bool
    fail_on: Severity
    entries: tuple[Entry, ...]
    rules: tuple[Verdict, ...]
    requests: int
    seconds: float
    seed: int | None
    stopped: str
    known: int | None = None
    gone: tuple[str, ...] = ()

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
        return f"{self.found.capitalize()}: {count(self.requests, 'request')} in {self.seconds:.1f} s{seed}."


def count(n: int, noun: str) -> str:
    """Return `n` and the noun in the right number."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def report_of(
    result: Result,
    target: Target,
    *,
    fail_on: Severity = Severity.ERROR,
    redactor: Redactor | None = None,
    known: int | None = None,
    gone: Iterable[str] = (),
) -> Report:
    """Return what may be shown of a result.

    Args:
        result: its findings are those to report: without what the baseline has.
        target: where its requests were sent; its secrets are hidden.
        fail_on: what weighs enough to fail.
        redactor: hides more than the secrets of the target, which it is to know too.
        known: how many findings were left out because a baseline has them; None when there is no baseline.
        gone: what a baseline has and was not found any more.
    """
    hiding = _Hiding(result.findings, target, redactor)
    entries = [_entry(finding, hiding) for finding in result.findings]
    hide = hiding.text
    return Report(
        target=hide(hiding.url),
        ok=result.ok(fail_on),
        fail_on=fail_on,
        entries=tuple(sorted(entries, key=lambda entry: entry.severity is not Severity.ERROR)),
        rules=tuple(_verdict(outcome, hide) for outcome in result.outcomes),
        requests=result.requests,
        seconds=result.seconds,
        seed=result.seed,
        stopped=hide(result.stopped),
        known=known,
        gone=tuple(map(hide, gone)),
    )


def lines(text: str) -> list[str]:
    """Return a text as printable lines: only its line feeds end one."""
    return [printable(line) for line in text.split("\n")]


def _verdict(outcome: Outcome, hide: Callable[[str], str]) -> Verdict:
    rule = outcome.rule
    return Verdict(rule.code, rule.severity, rule.title, outcome.state, hide(outcome.reason))


def _entry(finding: Finding, hiding: _Hiding) -> Entry:
    calls = tuple(hiding.call(answer) for answer in finding.answers)
    rule = finding.rule
    return Entry(
        code=rule.code,
        severity=rule.severity,
        title=rule.title,
        reason=rule.reason,
        message=hiding.text(finding.message),
        pointer=hiding.text(finding.pointer),
        expected=hiding.text(finding.expected),
        calls=calls,
        together=finding.together,
        flaky=finding.flaky,
    )


class _Hiding:
    """Hides the secrets of a target in all that is told of calls to it."""

    def __init__(self, findings: Iterable[Finding], target: Target, redactor: Redactor | None) -> None:
        secrets = secrets_of(target, (answer.case for finding in findings for answer in finding.answers))
        self._right = target.authorization or ""
        self._redactors = [Redactor(secrets=secrets), *([redactor] if redactor else [])]
        self._mask = mask_of(*secrets)
        self.url = self._in_texts(target.url, Redactor.uri)

    def text(self, text: str) -> str:
        """Return a text, which may have been cut, without secrets."""
        return self._mask(self._in_texts(text, Redactor.text))

    def call(self, answer: Answer) -> Call:
        """Return what may be told of a call."""
        asked, reply = self._exchanged(answer)
        sent = answer.request.header("Authorization")
        changed = self._altered(sent)
        authorization = AUTHORIZATION if not changed else ALTERED if sent else ""
        headers = tuple(
            (name, authorization if name.lower() == "authorization" else value)
            for name, value in asked.headers
        )
        curl = as_curl(asked, self.url)
        short = _short_curl(asked, self.url)
        if changed:
            curl, short = _with_altered(curl, sent), _with_altered(short, sent)
        return Call(
            method=asked.method,
            target=asked.target,
            headers=headers,
            body=_beginning(asked.body, len(asked.body)),
            curl=curl,
            short_curl=short,
            altered=changed,
            reply=reply,
            failure=self.text(answer.failure),
            elapsed_ms=round(answer.elapsed_s * 1000, 1),
        )

    def _in_texts(self, text: str, hide: Callable[[Redactor, str], str]) -> str:
        for redactor in self._redactors:
            text = hide(redactor, text)
        return text

    def _altered(self, sent: str | None) -> str:
        """Return how an authorization was made from the right one; empty when it was not."""
        if sent is None:
            return ""
        sent = sent.encode("latin-1", "replace").decode("utf-8", "replace")
        return "" if sent == self._right else made_from(self._right, sent)

    def _exchanged(self, answer: Answer) -> tuple[Request, ShownReply | None]:
        """Return a request without secrets, and what may be shown of the reply."""
        asked, reply = answer.request, answer.reply
        if reply is None:
            for redactor in self._redactors:
                asked = redactor.request(asked)
            return asked, None
        plain, note = _opened(reply)
        for redactor in self._redactors:
            try:
                asked, plain = redactor.exchange(asked, plain)
            except MemmockError:  # the request is encoded, which no case of ours is
                asked, (_, plain) = redactor.request(asked), redactor.exchange(Request("", ""), plain)
        shown = self._headers(reply.headers)
        body = Text(note, len(reply.body), False) if note else _beginning(plain.body, len(reply.body))
        return asked, ShownReply(reply.status, shown, body)

    def _headers(self, headers: Headers) -> Headers:
        """Return the headers of a reply as they were sent, but for secrets and for what is not Latin-1."""
        for redactor in self._redactors:
            headers = redactor.exchange(Request("", ""), Reply(headers=headers))[1].headers
        return tuple((name, _as_utf8(value)) for name, value in headers)


_CODING = "content-encoding"


def _opened(reply: Reply) -> tuple[Reply, str]:
    """Return a reply with its body decoded, cut, and a note in place of a body that cannot be shown."""
    coding = header(reply.headers, _CODING)
    headers = tuple(pair for pair in reply.headers if pair[0].lower() != _CODING)
    body, note = reply.body, ""
    if coding:
        body, left, _ = undone(body, coding)
        if left and not _is_text(body):
            note = f"(encoded, not shown: {len(reply.body):,} bytes)"
            body = b""
    return Reply(reply.status, headers, body[:_LOOKED_AT_BYTES]), note


def _is_text(body: bytes) -> bool:
    return b"\0" not in body[:1024] and not re.search(rb"[\x80-\xff]", body[:1024])


def _beginning(body: bytes, size: int) -> Text:
    text = body.decode("utf-8", "backslashreplace")
    return Text(text[:SHOWN_CHARS], size, len(text) > SHOWN_CHARS or size > _LOOKED_AT_BYTES)


def _with_altered(curl: str, sent: str | None) -> str:
    """Return a command with another authorization; curl has its own way to write an empty one."""
    if sent:
        return curl.replace(f'{AUTHORIZATION}"', f'{ALTERED}"', 1)
    return curl.replace(f': {AUTHORIZATION}"', ';"', 1)


def _as_utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode()
    except ValueError:
        return value


def _short_curl(request: Request, url: str) -> str:
    """Return the command, or one that says that it has the beginning of the body only."""
    size = len(request.body)
    if size <= _LONG_BYTES:
        return as_curl(request, url)
    start = request.body[:_CURL_BYTES].decode("utf-8", "ignore").encode()
    short = as_curl(request._replace(body=start or request.body[:_CURL_BYTES]), url)
    return f"{short}…\n# the beginning of a body of {size:,} bytes; the JSON report has all of it"
