"""Answers that are not complete when the consumer's time is over. Times are relative to `timeout_ms`."""

from __future__ import annotations

import math

from memmock.http import Reply
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("timing")

_SLICES = 40
"""In how many slices a dripping part comes, so that every single read is quick."""


@shelf("timeout", late=True)
def late(stage: Stage, *, factor: float = 1.5) -> Reply:
    """The answer begins when the time is over, after `factor` times `timeout_ms`."""
    return stage.answer().delayed(factor * stage.timeout_s)


@shelf("timeout", status=None, end="hang", late=True)
def hang(stage: Stage) -> Reply:
    """The provider takes the request and never answers."""
    return stage.answer().cut_head(0).hanging()


@shelf("timeout", end="hang", late=True)
def hang_after_headers(stage: Stage) -> Reply:
    """The headers come, the body does not."""
    return stage.answer().cut(0).hanging()


@shelf("timeout", end="hang", late=True)
def hang_mid_body(stage: Stage) -> Reply:
    """Half of the body comes."""
    reply = stage.answer()
    return reply.cut(len(reply.body) // 2).hanging()


@shelf("timeout", late=True)
def drip(stage: Stage, *, factor: float = 2.0) -> Reply:
    """Every read is quick, but the whole body takes `factor` times `timeout_ms`."""
    reply = stage.answer()
    reply = reply._replace(body=reply.body.ljust(_SLICES))
    return reply.dripped(*_spread(len(reply.body), factor * stage.timeout_s))


@shelf("timeout", late=True)
def slow_body(stage: Stage, *, factor: float = 0.7) -> Reply:
    """The headers come after `factor` times `timeout_ms`, and the body after as much time again."""
    reply = stage.answer()
    pause_s = factor * stage.timeout_s
    return reply.delayed(pause_s).dripped(max(1, len(reply.body)), pause_s)


@shelf("timeout", late=True)
def slow_headers(stage: Stage, *, factor: float = 2.0) -> Reply:
    """The headers come a few bytes at a time, and take `factor` times `timeout_ms`."""
    reply = stage.answer()
    lines = [("HTTP/1.1", "200 OK"), ("Content-Length", str(len(reply.body))), *reply.headers]
    size = sum(len(name) + len(value) + 4 for name, value in lines)
    return reply.dripped(*_spread(size, factor * stage.timeout_s), part="head")


def _spread(size: int, total_s: float) -> tuple[int, float]:
    """Return how large the slices are, and how far apart, when `size` bytes take so long."""
    slice_bytes = math.ceil(size / _SLICES)
    return slice_bytes, total_s / math.ceil(size / slice_bytes)
