"""A cassette in memory: recorded interactions, found by what is asked.

Files are for `cassette_file`, secrets for `redaction`; what makes two requests the same is in `matching`.
"""

from __future__ import annotations

from typing import NamedTuple

from memmock.http import Reply, Request


class Interaction(NamedTuple):
    """One request and the reply to it, as they were recorded.

    Attributes:
        request: what was sent; its target is the path and query string of `uri`.
        uri: where it was sent to, absolute.
        reply: what came back, its body without transfer coding; the delivery is not recorded.
        reason: the words after the status.
        recorded_at: when, RFC 3339 in UTC; empty when that is not known.
        elapsed_ms: how long the reply took; None when that is not known.
        violations: the codes of the rules that were broken then, by the request or the reply.
    """

    request: Request
    uri: str
    reply: Reply
    reason: str = ""
    recorded_at: str = ""
    elapsed_ms: float | None = None
    violations: tuple[str, ...] = ()
