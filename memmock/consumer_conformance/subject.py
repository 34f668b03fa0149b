"""The consumer under test: a process that speaks JSON lines, or a callable of this program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

Failure = Literal["", "died", "silent", "garbled"]
"""Why a call has no result: the consumer ended or raised, gave nothing in time, or gave no tool result."""


class Told(NamedTuple):
    """What a consumer gave back for one call.

    Attributes:
        value: the tool result as it came, without the `id`; None when there was none.
        elapsed_s: from the call to its result, or until it was given up.
        failure: why there is no result; empty when there is one.
        message: that in one line, as "the process ended with exit code 1".
        errors: what it wrote to standard error meanwhile, the end of it; or a traceback.
    """

    value: Any
    elapsed_s: float
    failure: Failure = ""
    message: str = ""
    errors: str = ""


class Subject(Protocol):
    """A consumer that can be called. One call at a time."""

    @property
    def name(self) -> str:
        """How it is called in reports: the command, or the name of the function."""

    def call(
        self, memory_retrieval: Mapping[str, Any], request: Mapping[str, Any], patience_s: float
    ) -> Told:
        """Return what it makes of one retrieval.

        A consumer that died, or was silent for `patience_s` seconds, is ended and started anew with the next
        call.

        Args:
            memory_retrieval: `enabled`, `endpoint`, `authorization`, `timeout_ms`, `max_response_bytes`.
            request: the retrieval, a body of a request that keeps the contract.
            patience_s: how long it may be silent.
        """

    @property
    def fresh(self) -> bool:
        """Whether the next call starts it."""

    def restart(self) -> None:
        """Forget its state: the next call starts it anew."""

    def close(self) -> None:
        """End it, and all that it has started."""
