"""What is shown of a consumer's result: what was played, what came of it, how to play it again by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from memmock.conformance.finding import SHOWN_CHARS
from memmock.consumer_conformance.act import PLAIN, Act, Arrival, Seen
from memmock.consumer_conformance.acts import GOOD
from memmock.consumer_conformance.finding import Finding, Result
from memmock.consumer_conformance.scenario_export import names_of, played
from memmock.consumer_conformance.secrets import Hide, hiding
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.contract import DEFAULT_TIMEOUT_MS as SERVED_TIMEOUT_MS
from memmock.http import AT_ONCE, Delivery, Reply
from memmock.report.parts import CONSUMER, Block, Entry, Report, ShownReply, Text, Verdict, count
from memmock.report.shown import beginning, opened, reply_rows
from memmock.rules import Severity
from memmock.scenarios import CATALOGUE

_BRIEF_CHARS = 500
"""So much of a text is shown on a terminal; the other formats have more."""
_ERROR_LINES = 8
"""So many lines of what the consumer wrote to standard error are shown, the last ones."""
_OF_REQUESTS = ("REQ", "CON6")
"""What the codes of rules begin with that are about what a consumer sends."""
_MOST_RECEIVED = 4
_MOST_ALSO = 12
_LOOKED_AT_CHARS = 64 * 1024
_TELLING = frozenset({
    "accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length",
    "content-type", "expect", "transfer-encoding",
})  # fmt: skip


def report_of(
    result: Result,
    *,
    fail_on: Severity = Severity.ERROR,
    known: int | None = None,
    gone: Iterable[str] = (),
    scenarios_file: str | None = None,
) -> Report:
    """Return what may be shown of a result.

    Args:
        result: its findings are those to report: without what the baseline has.
        fail_on: what weighs enough to fail.
        known: how many findings were left out because a baseline has them; None when there is no baseline.
        gone: what a baseline has and was not found any more.
        scenarios_file: the file of scenarios that was written of this result.
    """
    hide = hiding(result.name, result.findings)
    names = names_of(result.findings) if scenarios_file is not None else [""] * len(result.findings)
    entries = [
        _entry(finding, hide, _by_hand(finding, scenarios_file, name))
        for finding, name in zip(result.findings, names, strict=True)
    ]
    return Report(
        target=hide(result.name),
        ok=result.ok(fail_on),
        fail_on=fail_on,
        entries=tuple(sorted(entries, key=lambda entry: entry.severity is not Severity.ERROR)),
        rules=tuple(
            Verdict(each.rule.code, each.rule.severity, each.rule.title, each.state, hide(each.reason))
            for each in result.outcomes
        ),
        calls=result.calls,
        seconds=result.seconds,
        seed=result.seed,
        stopped=hide(result.stopped),
        known=known,
        gone=tuple(map(hide, gone)),
        side=CONSUMER,
        matrix=tuple(row._replace(seen=hide(row.seen)) for row in result.matrix),
    )


def _entry(finding: Finding, hide: Hide, steps: Block) -> Entry:
    rule = finding.rule
    return Entry(
        code=rule.code,
        severity=rule.severity,
        title=rule.title,
        reason=rule.reason,
        message=hide(finding.message),
        pointer=hide(finding.pointer),
        expected=hide(finding.expected),
        evidence=Exchange(finding, hide, "\n".join(steps.rows)),
        flaky=finding.flaky,
        scenario=hide(finding.scenario),
        steps=(steps,),
    )


@dataclass(frozen=True)
class Exchange:
    """What shows a finding of a consumer, as evidence: what was played to it, and what it gave.

    Attributes:
        finding: the finding.
        hide: takes the secrets out of a text.
        by_hand: how it is played by hand.
    """

    finding: Finding
    hide: Hide
    by_hand: str

    def blocks(self, *, brief: bool) -> list[Block]:
        """Return it for people: what matters for the rule that is broken."""
        chars = _BRIEF_CHARS if brief else SHOWN_CHARS
        last = self.finding.seen[-1]
        blocks = [Block("scenario", tuple(self._scenes()), "prose")]
        for seen in self.finding.seen[:-1]:
            blocks.append(Block("before", (f"{seen.act.name}: {self._told(seen, chars)[0]}",)))
        of_request = self.finding.rule.code.startswith(_OF_REQUESTS)
        if of_request or last.act.retrieval != PLAIN:
            blocks.append(Block("asked", (str(self._cut(_json(dict(last.act.retrieval))).upto(chars)),)))
        if of_request or (len(last.arrivals) != 1 and last.act.door is None and not last.act.tls):
            blocks.append(Block("received", tuple(self._received(last, chars, of_request))))
        if not of_request:
            blocks.append(Block("reply", tuple(self._reply(last, chars))))
        blocks.append(Block("result", tuple(self._told(last, chars))))
        return blocks

    def calls(self) -> list[dict[str, Any]]:
        """Return each call of the consumer as data."""
        return [self._call(seen) for seen in self.finding.seen]

    def to_json(self) -> dict[str, Any]:
        """Return the scenarios that show it, and how it is played by hand."""
        return {
            "scenario": self.hide(self.finding.scenario),
            "also": [self.hide(name) for name in self.finding.also],
            "try": self.by_hand,
        }

    # ---- for people

    def _scenes(self) -> Iterator[str]:
        scenes = dict.fromkeys((seen.act.name, _summary(seen.act)) for seen in self.finding.seen)
        for name, summary in scenes:
            yield self.hide(f"{name}: {summary}")
        if also := self.finding.also:
            more = f" and {len(also) - _MOST_ALSO} more" if len(also) > _MOST_ALSO else ""
            comma = "; " if any(", " in name for name in also) else ", "
            yield self.hide(f"also: {comma.join(also[:_MOST_ALSO])}{more}")

    def _received(self, seen: Seen, chars: int, whole: bool) -> Iterator[str]:
        """Yield the requests that came; of some only where they went."""
        if not seen.arrivals:
            yield "no request came"
        for n, arrival in enumerate(seen.arrivals[:_MOST_RECEIVED], 1):
            request = arrival.request
            number = f"{n}: " if len(seen.arrivals) > 1 else ""
            where = " at the other address, to which the redirect led" if arrival.elsewhere else ""
            line = f"{request.method} {request.target} after {arrival.at_s * 1000:,.0f} ms{where}"
            yield self.hide(f"{number}{line}")
            if not whole and not arrival.elsewhere:
                continue
            pointer = self.finding.pointer.lower()
            for name, value in request.headers:
                if name.lower() in _TELLING or name.lower() == pointer:
                    yield self.hide(f"{name}: {value}")
            yield str(self._body(request.body).upto(chars)) or "(no body)"
        if (left := len(seen.arrivals) - _MOST_RECEIVED) > 0:
            yield f"and {count(left, 'more request')}"

    def _reply(self, seen: Seen, chars: int) -> Iterator[str]:
        arrival = played(seen)
        if arrival is None:
            yield f"none: {_why_no_reply(seen.act)}"
            return
        reply, wire = arrival.reply, arrival.reply.delivery.wire
        if reply.delivery.cut_head == 0:
            yield "not a byte of one"
        elif wire is None:
            yield str(reply.status)
            yield from reply_rows(self._shown_reply(reply), chars)
        else:
            start = wire[:chars].decode("utf-8", "backslashreplace")
            yield from self.hide(start).replace("\r\n", "\n").rstrip("\n").split("\n")
            if len(wire) > chars:
                yield f"… ({len(wire):,} bytes in all)"
        if way := in_words(reply.delivery):
            yield f"({way})"
        if went := _how_it_went(arrival):
            yield f"({went})"

    def _told(self, seen: Seen, chars: int) -> list[str]:
        """Return what the consumer gave, or why it gave nothing, as lines."""
        told = seen.told
        time = f"in {told.elapsed_s * 1000:,.0f} ms, timeout_ms {seen.timeout_ms}"
        if not told.failure:
            return [str(self._cut(_json(told.value)).upto(chars)), f"({time})"]
        errors = self.hide(told.errors).strip().splitlines()[-_ERROR_LINES:]
        log = ["standard error, the end of it:", *errors] if errors else []
        return [f"none, {self.hide(told.message)} ({time})", *log]

    # ---- as data

    def _call(self, seen: Seen) -> dict[str, Any]:
        told, arrival = seen.told, played(seen)
        return {
            "scenario": self.hide(seen.act.name),
            "summary": self.hide(_summary(seen.act)),
            "memory_retrieval": dict(seen.memory_retrieval),
            "asked": dict(seen.act.retrieval),
            "received": [self._received_json(each) for each in seen.arrivals],
            "connections": seen.connections,
            "reply": None if arrival is None else self._reply_json(arrival),
            "result": None if told.failure else str(self._cut(_json(told.value)).upto(SHOWN_CHARS)),
            "failure": self.hide(told.message),
            "errors": self.hide(told.errors),
            "elapsed_ms": round(told.elapsed_s * 1000, 1),
        }

    def _received_json(self, arrival: Arrival) -> dict[str, Any]:
        request = arrival.request
        return {
            "method": request.method,
            "target": self.hide(request.target),
            "headers": [(name, self.hide(value)) for name, value in request.headers],
            "body": str(self._body(request.body).upto(SHOWN_CHARS)),
            "at_ms": round(arrival.at_s * 1000, 1),
            "elsewhere": arrival.elsewhere,
        }

    def _reply_json(self, arrival: Arrival) -> dict[str, Any]:
        reply = arrival.reply
        shown = self._shown_reply(reply)
        wire = reply.delivery.wire
        return {
            "status": reply.status,
            "headers": shown.headers,
            "body": str(shown.body if wire is None else beginning(wire[:_LOOKED_AT_CHARS], len(wire))),
            "sent": ", ".join(filter(None, (in_words(reply.delivery), _how_it_went(arrival)))) or "at once",
        }

    # ---- texts

    def _shown_reply(self, reply: Reply) -> ShownReply:
        plain, note = opened(reply)
        body = Text(note, len(reply.body), False) if note else beginning(plain.body, len(reply.body))
        return ShownReply(reply.status, reply.headers, body._replace(start=self.hide(body.start)))

    def _body(self, body: bytes) -> Text:
        start = self.hide(body[:_LOOKED_AT_CHARS].decode("utf-8", "backslashreplace"))
        return Text(start, len(body), len(body) > _LOOKED_AT_CHARS)

    def _cut(self, text: str) -> Text:
        size = len(text.encode("utf-8", "surrogatepass"))
        return Text(self.hide(text[:_LOOKED_AT_CHARS]), size, len(text) > _LOOKED_AT_CHARS)


def _json(value: Any) -> str:
    """Return a value that a consumer gave as compact JSON, or as Python shows it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


# ---- how a reply is sent


def in_words(delivery: Delivery) -> str:
    """Return how a reply is sent, in one line; empty when it is sent at once.

    As `after 150 ms, in slices of 20 bytes every 30 ms, cut after 40 bytes of the body, then reset`.
    """
    return ", ".join(_ways(delivery))


def _ways(delivery: Delivery) -> Iterator[str]:
    if delivery.delay_s:
        yield f"after {_ms(delivery.delay_s)}"
    if delivery.interim:
        yield f"behind {', '.join(str(status) for status, _ in delivery.interim)}"
    if delivery.wire is None and delivery.framing != "length":
        chunked = delivery.framing == "chunked"
        yield f"in chunks of {count(delivery.chunk_bytes, 'byte')}" if chunked else "without a length"
    if delivery.slice_bytes:
        part = {"body": "the body ", "head": "the head ", "all": ""}[delivery.sliced]
        yield f"{part}in slices of {count(delivery.slice_bytes, 'byte')} every {_ms(delivery.every_s)}"
    if delivery.cut_head:
        yield f"cut after {count(delivery.cut_head, 'byte')} of the head"
    elif delivery.cut_body is not None and delivery.cut_head is None:
        yield f"cut after {count(delivery.cut_body, 'byte')} of the body"
    if delivery.endless:
        yield "the body again and again, without an end"
    if delivery.ending != "keep":
        end = {"close": "closed", "reset": "reset", "hang": "left open without another byte"}[delivery.ending]
        yield f"then {end}{f' {_ms(delivery.end_s)} later' if delivery.end_s else ''}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.4g} ms" if seconds < 1 else f"{seconds * 1000:,.0f} ms"


def _how_it_went(arrival: Arrival) -> str:
    """Return how far the consumer let it be sent; empty when that is plain."""
    if arrival.sent is None:
        if arrival.reply.delivery == AT_ONCE:
            return ""
        return f"{count(arrival.sent_bytes, 'byte')} sent when the result was there"
    if arrival.sent.how == "client closed":
        return f"the consumer left after {count(arrival.sent.sent_bytes, 'byte')}"
    return ""


def _summary(act: Act) -> str:
    return act.summary if act.case is None else act.case.summary


def _why_no_reply(act: Act) -> str:
    if act.tls:
        return "the certificate is not one to trust"
    doors = {"refuse": "connections are refused", "reset": "connections are reset before there is a request"}
    return doors[act.door] if act.door is not None else "no request came"


# ---- how it is played by hand


def _by_hand(finding: Finding, scenarios_file: str | None, name: str) -> Block:
    """Return a command that plays a finding, or what leads to one."""
    seen = finding.seen[0]
    if name and scenarios_file is not None:
        plays = f" --scenarios {shlex.quote(scenarios_file)} --scenario {name}"
    elif (expression := _expression(seen.act)) is not None:
        plays = expression and f" --scenario {shlex.quote(expression)}"
    elif seen.act.tls:
        return Block(
            "try", ("Give the consumer an https endpoint with a certificate that it cannot know.",), "prose"
        )
    else:
        return Block(
            "try",
            ("again with `--scenarios found.yaml`, which writes the reply for `memmock serve`",),
            "prose",
        )
    if seen.timeout_ms != SERVED_TIMEOUT_MS:
        plays += f" --timeout-ms {seen.timeout_ms}"
    if seen.act.max_response_bytes != DEFAULT_MAX_RESPONSE_BYTES:
        plays += f" --max-response-bytes {seen.act.max_response_bytes}"
    return Block("try", (f"memmock serve{plays}",), "command")


def _expression(act: Act) -> str | None:
    """Return what `--scenario` takes; empty for the honest answer, None when there is nothing."""
    if act.case is not None or act.tls:
        return None
    if act.scenario is not None:
        return act.name if act.name.startswith(f"{act.scenario.name}(") else act.scenario.name
    if act.name in CATALOGUE:
        return act.name
    return "" if act.make is GOOD.make else None
