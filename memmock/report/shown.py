"""What is shown of a provider's result: its secrets hidden, its long bodies cut, in the order of a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memmock.codings import undone
from memmock.conformance.case import as_curl
from memmock.conformance.finding import SHOWN_CHARS, Finding, Outcome, Result
from memmock.conformance.reproduction import made_from, secrets_of
from memmock.conformance.session import Answer, Target
from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request, header
from memmock.redaction import Redactor, mask_of
from memmock.report.parts import Block, Entry, Report, ShownReply, Text, Verdict, count
from memmock.rules import Severity

AUTHORIZATION = "$AUTHORIZATION"
ALTERED = "$ALTERED_AUTHORIZATION"
_LOOKED_AT_BYTES = 64 * 1024
"""So much of a reply is searched for secrets, and no more is shown."""
_CURL_BYTES = 300
"""So much of a long body is in the short form of a command."""
_LONG_BYTES = 800
_MOST_CALLS = 3
_BESIDE_CHARS = 80
_BODY_CHARS = 500
"""So much of a body is shown on a terminal; the other formats have more."""


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

    def to_json(self) -> dict[str, Any]:
        """Return the call as data."""
        request = {
            "method": self.method,
            "target": self.target,
            "headers": self.headers,
            "body": str(self.body),
        }
        if self.altered:
            request["altered_authorization"] = self.altered
        return {"request": request, "reply": self._reply_json(), "curl": self.curl}

    def _reply_json(self) -> dict[str, Any]:
        if self.reply is None:
            return {"failure": self.failure}
        return {
            "status": self.reply.status,
            "headers": self.reply.headers,
            "body": str(self.reply.body),
            "elapsed_ms": self.elapsed_ms,
        }


@dataclass(frozen=True)
class Calls:
    """The calls that show a finding of a provider, as evidence.

    Attributes:
        made: in their order; the last one is the one that is wrong.
        together: whether they were made at the same time.
        pointer: where it is wrong; a header of this name is shown.
    """

    made: tuple[Call, ...]
    together: bool
    pointer: str

    def blocks(self, *, brief: bool) -> list[Block]:
        """Return the calls for people, with numbers; of many together, a terminal gets the last in full."""
        if brief and self.together and len(self.made) > _MOST_CALLS:
            beside = [str(call.body.upto(_BESIDE_CHARS)) for call in self.made[:-1]]
            with_others = f"with {count(len(beside), 'other call')}:"
            return [*self._call(self.made[-1], "", brief), Block("together", (with_others, *beside))]
        blocks: list[Block] = []
        for n, call in enumerate(self.made, 1):
            blocks += self._call(call, f" {n}" if len(self.made) > 1 else "", brief)
        if self.together:
            said = f"The {len(self.made)} calls were made at the same time."
            blocks.append(Block("together", (said,), "aside"))
        return blocks

    def calls(self) -> list[dict[str, Any]]:
        """Return each call as data."""
        return [call.to_json() for call in self.made]

    def to_json(self) -> dict[str, Any]:
        """Return whether the calls were made together."""
        return {"together": self.together}

    def _call(self, call: Call, number: str, brief: bool) -> Iterator[Block]:
        yield Block(
            f"request{number}", tuple((call.short_curl if brief else call.curl).split("\n")), "command"
        )
        if call.altered:
            yield Block("", ("ALTERED_AUTHORIZATION is ",), "note", call.altered)
        yield Block(f"reply{number}", tuple(self._reply(call, _BODY_CHARS if brief else SHOWN_CHARS)))

    def _reply(self, call: Call, chars: int) -> list[str]:
        """Return a reply as lines: its status and time, the headers that matter, and its body."""
        if call.reply is None:
            return [f"none: {call.failure}"]
        head = f"{call.reply.status} in {call.elapsed_ms:,.0f} ms"
        return [head, *reply_rows(call.reply, chars, self.pointer)]


def reply_rows(reply: ShownReply, chars: int, wanted: str = "") -> list[str]:
    """Return the headers of a reply that matter, the one that is `wanted` too, and its body, as lines."""
    names = {"content-type", "content-encoding", "location", "retry-after", wanted.lower()}
    told = [f"{name}: {value}" for name, value in reply.headers if name.lower() in names]
    return [*told, str(reply.body.upto(chars)) or "(no body)"]


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
        calls=result.requests,
        seconds=result.seconds,
        seed=result.seed,
        stopped=hide(result.stopped),
        known=known,
        gone=tuple(map(hide, gone)),
    )


def _verdict(outcome: Outcome, hide: Callable[[str], str]) -> Verdict:
    rule = outcome.rule
    return Verdict(rule.code, rule.severity, rule.title, outcome.state, hide(outcome.reason))


def _entry(finding: Finding, hiding: _Hiding) -> Entry:
    calls = tuple(hiding.call(answer) for answer in finding.answers)
    rule, pointer = finding.rule, hiding.text(finding.pointer)
    return Entry(
        code=rule.code,
        severity=rule.severity,
        title=rule.title,
        reason=rule.reason,
        message=hiding.text(finding.message),
        pointer=pointer,
        expected=hiding.text(finding.expected),
        evidence=Calls(calls, finding.together, pointer),
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
            body=beginning(asked.body, len(asked.body)),
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
        plain, note = opened(reply)
        for redactor in self._redactors:
            try:
                asked, plain = redactor.exchange(asked, plain)
            except MemmockError:  # the request is encoded, which no case of ours is
                asked, (_, plain) = redactor.request(asked), redactor.exchange(Request("", ""), plain)
        shown = self._headers(reply.headers)
        body = Text(note, len(reply.body), False) if note else beginning(plain.body, len(reply.body))
        return asked, ShownReply(reply.status, shown, body)

    def _headers(self, headers: Headers) -> Headers:
        """Return the headers of a reply as they were sent, but for secrets and for what is not Latin-1."""
        for redactor in self._redactors:
            headers = redactor.exchange(Request("", ""), Reply(headers=headers))[1].headers
        return tuple((name, _as_utf8(value)) for name, value in headers)


_CODING = "content-encoding"


def opened(reply: Reply) -> tuple[Reply, str]:
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


def beginning(body: bytes, size: int) -> Text:
    """Return what is shown of a body of so many bytes."""
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
