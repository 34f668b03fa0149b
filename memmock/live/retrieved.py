"""One retrieval of a live session: what the model is given, when, and what both sides did wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from memmock.admin.shown import plain
from memmock.consumer import Consumer, Exchange
from memmock.contract import Memory, Retrieval, RetrievalConfig
from memmock.errors import MemmockError, MemmockFailure
from memmock.live.sessions import mask_for
from memmock.redaction import MASK, Redactor
from memmock.rules import RULES, Violation, reply_violations, request_violations
from memmock.strictjson import printable, shortened
from memmock.tool_result import Advice, ToolError, ToolResult, advice


@dataclass(frozen=True, repr=False)
class Retrieved:
    """One retrieval with all that came of it.

    `exchange` is the call as it was on the wire; its request holds the authorization. The repr and the
    messages do not.
    """

    config: RetrievalConfig
    exchange: Exchange
    request_violations: list[Violation]
    reply_violations: list[Violation]

    @classmethod
    def of(cls, config: RetrievalConfig, exchange: Exchange) -> Retrieved:
        """Return what came of a call, judged by the rules of the contract.

        A reply is judged only when the whole of it was read.
        """
        judged = []
        if exchange.reply is not None and exchange.complete:
            judged = reply_violations(
                exchange.reply,
                exchange.request,
                max_response_bytes=config.max_response_bytes,
                timeout_ms=config.timeout_ms,
                elapsed_s=exchange.elapsed_s,
            )
        return cls(config, exchange, request_violations(exchange.request), judged)

    @property
    def tool_result(self) -> ToolResult:
        """What the model is given."""
        return self.exchange.result

    @property
    def ok(self) -> bool:
        """Whether the model is given memories, perhaps none, rather than an error."""
        return self.tool_result.ok

    @property
    def error(self) -> ToolError | None:
        """Why there are no memories; None when there are."""
        return self.tool_result.error

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The memories that the model is given, in the provider's order."""
        return self.tool_result.memories

    @property
    def summaries(self) -> list[str]:
        """What the model reads of each memory."""
        return [memory.summary for memory in self.memories]

    @property
    def advice(self) -> list[Advice]:
        """How the model is told to treat each memory."""
        return [advice(memory.confidence) for memory in self.memories]

    @property
    def violations(self) -> list[Violation]:
        """The rules that were broken, those of the request first."""
        return [*self.request_violations, *self.reply_violations]

    @property
    def elapsed_ms(self) -> float:
        """How long the whole exchange took, in milliseconds."""
        return self.exchange.elapsed_s * 1000

    @property
    def retrieval(self) -> dict[str, Any]:
        """What was asked: the body of the request."""
        asked: dict[str, Any] = json.loads(self.exchange.request.body)
        return asked

    def to_json(self, mask: Callable[[str], str] = str) -> dict[str, Any]:
        """Return all of it as JSON, the Authorization header masked; `mask` is put over each text."""
        reply, request = self.exchange.reply, self.exchange.request
        headers = [(name, MASK if name == "Authorization" else value) for name, value in request.headers]
        shown = {
            "tool_result": self.tool_result.to_json(),
            "advice": self.advice,
            "timing": {"elapsed_ms": round(self.elapsed_ms, 1), "timeout_ms": self.config.timeout_ms},
            "request": {
                "method": request.method,
                "url": Redactor().uri(self.config.endpoint),
                "headers": headers,
                "body": self.retrieval,
            },
            "reply": {
                "status": None if reply is None else reply.status,
                "received_bytes": self.exchange.received_bytes,
            },
            "violations": {
                "request": [found.to_json() for found in self.request_violations],
                "reply": [found.to_json() for found in self.reply_violations],
            },
        }
        return dict(plain(shown, mask))

    # ---- what a test expects of it

    def assert_ok(self) -> None:
        """Fail unless the model is given memories, perhaps none.

        Raises:
            MemmockFailure: it is given an error.
        """
        __tracebackhide__ = True
        if self.error is not None:
            raise MemmockFailure(f"{self._asked} came to {self._error}, not to memories.")

    def assert_remembers(self, *points: str) -> None:
        """Fail unless each of these texts is in the summary of some memory.

        Raises:
            MemmockFailure: one is in none.
        """
        __tracebackhide__ = True
        self.assert_ok()
        missing = [point for point in points if not any(point in text for text in self.summaries)]
        if missing:
            given = [f"  {n}. {self._safe(text)}" for n, text in enumerate(self.summaries, 1)]
            what = f"The model is given {len(given)}:" if given else "The model is given none."
            raise MemmockFailure(
                "\n".join([f"{self._asked} found no memory with {shortened(missing[0])}. {what}", *given])
            )

    def assert_no_violations(self, *, allow: Collection[str] = ()) -> None:
        """Fail unless both sides kept the contract, its recommendations included.

        Args:
            allow: codes of rules that may be broken.

        Raises:
            MemmockFailure: a rule was broken.
            MemmockError: a code that no rule has.
        """
        __tracebackhide__ = True
        allow = {allow} if isinstance(allow, str) else set(allow)
        if unknown := sorted(allow - RULES.keys()):
            raise MemmockError(f"there is no rule {unknown[0]!r}; `memmock rules` lists them")
        broken = [found for found in self.violations if found.code not in allow]
        if broken:
            lines = [f"  {self._safe(str(found))}" for found in broken]
            places = "1 place" if len(lines) == 1 else f"{len(lines)} places"
            raise MemmockFailure(
                "\n".join([f"{self._asked} broke the contract in {places}.", *lines,
                           "`memmock rules CODE` says why a rule is there."])
            )  # fmt: skip

    def __repr__(self) -> str:
        result = f"{len(self.memories)} memories" if self.error is None else self._error
        codes = ", ".join(dict.fromkeys(found.code for found in self.violations)) or "no violations"
        query = shortened(self.retrieval["query"])
        return f"<Retrieved {query}: {result} in {self.elapsed_ms:.0f} ms, {codes}>"

    @property
    def _asked(self) -> str:
        where = printable(Redactor().uri(self.config.endpoint))
        return f"Asking {where} for {shortened(self.retrieval['query'])}"

    @property
    def _error(self) -> str:
        return "" if self.error is None else f"{self.error.code} ({self.error.message})"

    def _safe(self, text: str) -> str:
        return printable(mask_for(self.config.authorization)(text))


async def aretrieve(config: RetrievalConfig, retrieval: Retrieval) -> Retrieved:
    """Return one retrieval, on a connection of its own; nothing of it is done on the loop of the caller."""
    consumer = await asyncio.to_thread(Consumer, config)  # it reads the certificates that are trusted
    try:
        exchange = await consumer.aexchange(retrieval)
    finally:
        await asyncio.to_thread(consumer.close)
    return await asyncio.to_thread(Retrieved.of, config, exchange)
