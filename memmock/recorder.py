"""The recording proxy: a handler that forwards to one upstream, and hands on what passed.

An interaction is handed on before its reply is sent, so that what a client has seen is recorded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from http import HTTPStatus
from os import PathLike
from pathlib import Path

from memmock.cassette import Interaction
from memmock.client import Exchange
from memmock.errors import MemmockError
from memmock.http import Reply, Request, check_path
from memmock.journal import Journal
from memmock.redaction import Redactor
from memmock.rules import reply_violations, request_violations
from memmock.tool_result import ToolError
from memmock.upstream import Upstream, end_to_end, no_reply


class Recorder:
    """Forwards each request to the upstream, and hands the interaction to `keep`, its secrets hidden.

    The journal has the calls as they were recorded, or with what is known to be secret hidden.

    What cannot be recorded is answered all the same, and its reason added to `failures`.

    Args:
        upstream: where everything goes.
        keep: takes an interaction; called on the server's loop.
        redactor: takes the secrets out.
        path: where the proxy answers, any gateway prefix may stand before it.
        unanswered: takes why a request was not answered by the upstream, or why it was refused there.
        record_errors: also record the 502 and 504 that stand for a reply that never came.
        before: how many interactions there are already.
        failures: what takes the reasons.
    """

    def __init__(
        self,
        upstream: Upstream,
        keep: Callable[[Interaction], object],
        *,
        redactor: Redactor,
        path: str,
        record_errors: bool = False,
        before: int = 0,
        failures: list[str] | None = None,
        unanswered: Callable[[Request, str], object] | None = None,
    ) -> None:
        check_path(path)
        self.upstream = upstream
        self.journal = Journal()
        self.failures: list[str] = [] if failures is None else failures
        self.recorded = 0
        """How many interactions were handed on."""
        self._keep = keep
        self._redactor = redactor
        self._path = path
        self._record_errors = record_errors
        self._before = before
        self._unanswered = unanswered or (lambda request, why: None)
        self._calls: set[asyncio.Task[Reply]] = set()  # the loop itself does not hold on to them

    async def __call__(self, request: Request) -> Reply:
        """Forward a request and return the reply to it.

        When the client does not wait for it, the call goes on all the same, and is recorded: what a slow
        provider would have answered is worth having.
        """
        call = asyncio.get_running_loop().create_task(self._call(request))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        await asyncio.wait([call])
        return call.result()

    async def _call(self, request: Request) -> Reply:
        received_at, start = time.time(), time.perf_counter()
        refused = self._refused(request)
        reply, shown, recording = (refused, refused, "") if refused else await self._forwarded(request)
        duration_s = time.perf_counter() - start
        self.journal.add(self._redactor.request(request), shown, received_at, duration_s, recording=recording)
        return reply

    async def close(self) -> None:
        """End the calls that are under way, and close the connections to the upstream."""
        await self.upstream.close()

    def _refused(self, request: Request) -> Reply | None:
        if request.method in ("CONNECT", "TRACE", "HEAD"):  # a HEAD's reply has a length, and no body
            return Reply.error(405, "method_not_allowed", f"{request.method} is not forwarded")
        if not request.target.startswith("/") or not request.path.endswith(self._path):
            return Reply.error(404, "not_found", f"nothing is here; what is forwarded is {self._path}")
        return None

    async def _forwarded(self, request: Request) -> tuple[Reply, Reply, str]:
        """Return the reply to a request, what may be shown of it, and what it was recorded as."""
        try:
            exchange = await self.upstream.exchange(request)
        except MemmockError:
            why = "the recording was stopped during the call"
            self._unanswered(request, why)
            self.failures.append(f"a call was not recorded: {why}")
            stopped = Reply.error(503, "stopped", why)
            return stopped, stopped, "not recorded"
        if exchange.complete and exchange.reply is not None and exchange.reply.status >= 200:
            reply = exchange.reply._replace(headers=end_to_end(exchange.reply.headers))
            reason = exchange.reason
        else:
            error = exchange.result.error or ToolError(
                "connection_failed", "the provider sent no final answer"
            )
            reply = no_reply(error)
            reason = HTTPStatus(reply.status).phrase
            why = error.message.replace("provider", "upstream")
            self._unanswered(request, why)
            if not self._record_errors:
                return reply, reply, "not recorded"
        if reply.status in _REFUSALS:
            self._unanswered(request, f"the upstream answered {reply.status}")
        return reply, *await self._recorded(request, exchange, reply, reason)

    async def _recorded(
        self, request: Request, exchange: Exchange, reply: Reply, reason: str
    ) -> tuple[Reply, str]:
        def made() -> Interaction:
            return interaction(
                exchange.request,
                self.upstream.uri(request),
                reply,
                reason,
                elapsed_ms=exchange.elapsed_s * 1000,
                redactor=self._redactor,
            )

        try:
            if len(request.body) + len(reply.body) <= _AT_ONCE_BYTES:
                recorded = made()
            else:  # to look into it takes a while, and others shall not wait for it
                recorded = await asyncio.to_thread(made)
            self._keep(recorded)
        except (MemmockError, OSError) as error:
            self.failures.append(str(error))
            reason = str(error).removeprefix("a call was not recorded: ")
            return Reply(reply.status), f"not recorded: {reason}"
        self.recorded += 1
        return recorded.reply, f"interaction {self.recorded + self._before}"


def interaction(
    request: Request, uri: str, reply: Reply, reason: str, *, elapsed_ms: float | None, redactor: Redactor
) -> Interaction:
    """Return what is recorded of a call: redacted, with when it was and which rules it broke.

    Raises:
        MemmockError: the body cannot be looked into for secrets, or one is still there.
    """
    broken = request_violations(request)
    if len(reply.body) <= _JUDGED_BYTES:
        broken += reply_violations(reply, request)
    recorded = Interaction(
        request,
        uri,
        reply,
        reason,
        recorded_at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        elapsed_ms=None if elapsed_ms is None else round(elapsed_ms, 3),
        violations=tuple(sorted({found.code for found in broken})),
    )
    return redacted(recorded, redactor)


_AT_ONCE_BYTES = 32 * 1024
_REFUSALS = (401, 403)
_JUDGED_BYTES = 1024 * 1024
"""Larger replies are not judged while a recording runs: it takes seconds, and no consumer takes them."""


def redacted(recorded: Interaction, redactor: Redactor) -> Interaction:
    """Return an interaction with its secrets hidden.

    Raises:
        MemmockError: the body cannot be looked into for secrets, or one is still there.
    """
    request, reply = redactor.exchange(recorded.request, recorded.reply)
    hidden = recorded._replace(
        request=request, uri=redactor.uri(recorded.uri), reply=reply, reason=redactor.text(recorded.reason)
    )
    if found := redactor.leaks(_content(hidden)):
        raise MemmockError(f"a call was not recorded: {', '.join(found)} would still be in it")
    return hidden


def settled(
    recorded: Iterable[Interaction], redactor: Redactor, *, before: int = 0
) -> tuple[list[Interaction], list[str]]:
    """Return interactions redacted once more, and why some had to be left out.

    A value that is to be hidden may have become known only after an interaction that holds it. The first
    `before` were there already: such a one is never left out, but stays as it is.
    """
    kept, failures = [], []
    for number, each in enumerate(recorded, 1):
        try:
            kept.append(redacted(each, redactor) if _is_doubtful(each, redactor) else each)
        except MemmockError as error:
            if number <= before:
                kept.append(each)
            what = "stays as it was" if number <= before else "was taken out"
            failures.append(f"interaction {number} {what}: {error}")
    return kept, failures


def _is_doubtful(recorded: Interaction, redactor: Redactor) -> bool:
    """Whether something may have to be hidden; most interactions are as they should be, and this is quick."""
    packed = recorded.request.header("Content-Encoding") or recorded.reply.header("Content-Encoding")
    return bool(packed or redactor.leaks(_content(recorded)))


def leaks(path: str | PathLike[str], redactor: Redactor) -> list[str]:
    """Return what was to be hidden and is still in a file; that it cannot be read counts as such."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        return [f"{path} cannot be read again: {error.strerror}"]
    return [f"{path} still holds {found}" for found in redactor.leaks(content)]


def _content(recorded: Interaction) -> bytes:
    """Return everything that is written down of an interaction."""
    request, reply = recorded.request, recorded.reply
    headers = "\n\n".join(f"{name}: {value}" for name, value in (*request.headers, *reply.headers))
    text = "\n\n".join([request.method, request.target, recorded.uri, recorded.reason, headers])
    return b"\n\n".join([text.encode("utf-8", "surrogatepass"), request.body, reply.body])
