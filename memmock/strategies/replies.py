"""Hypothesis strategies for replies of a provider: mostly plain ones, with one thing that is odd."""

from __future__ import annotations

from functools import partial
from typing import Final

from hypothesis import strategies as st

from memmock.consumer_conformance import parts
from memmock.consumer_conformance.making import made
from memmock.consumer_conformance.parts import PLAIN_CHANGE, Change
from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.reply_case import ReplyCase

# As in `requests`: a choice is from a table of whole values that can be hashed, the plain one first. What
# takes the consumer's time stands in a table once, what is quick and telling often.

_GOOD: Final = (
    PLAIN_CHANGE,
    *parts.SUMMARIES * 2,
    *parts.OPTIONAL * 3,
    *parts.ITEMS,
    *parts.TOPS * 2,
    *parts.WRITES * 3,
    *parts.HEADERS * 4,
    *parts.GOOD_STATUSES * 2,
    *parts.STYLES * 4,
    *parts.SLOW_STYLES,
    *parts.FITTING,
)
"""Changes after which the memories are still read by everybody."""
_BAD: Final = (
    *parts.UNUSABLE * 6,
    *parts.NO_RESPONSE * 4,
    *parts.NO_JSON * 2,
    *parts.STATUSES * 3,
    *parts.OVERSIZED * 2,
    *parts.BROKEN * 2,
    *parts.NESTED,
    *parts.HUGE,
    *parts.BLANK,
    *parts.OPEN_JSON * 2,
    *parts.CODINGS * 4,
    *parts.OPEN_HEADERS,
    *parts.OPEN_STYLES * 2,
    *parts.STALLS * 2,
    *parts.LATE,
)
"""Changes after which something else is to come, or may."""

_FIRST: Final = {True: _GOOD, False: _BAD, None: (*_GOOD, *_BAD)}
_MORE: Final = (
    *parts.SUMMARIES, *parts.OPTIONAL, *parts.WRITES * 4, *parts.HEADERS * 2, *parts.STYLES * 4,
)  # fmt: skip
_SECOND: Final = (*(PLAIN_CHANGE,) * len(_MORE), *_MORE)
_COUNTS: Final = st.sampled_from((*parts.COUNTS[:4] * 3, *parts.COUNTS))
_PLACES: Final = st.sampled_from((0, 0, 1, 2, 5, 19, 59))


def _case(changes: tuple[Change, Change], count: int, place: int, max_response_bytes: int) -> ReplyCase:
    return made(*changes, count=count, place=place, max_response_bytes=max_response_bytes)


def _is_valid(case: ReplyCase, max_response_bytes: int) -> bool:
    return all(reading.outcome == "ok" for reading in case.readings(max_response_bytes))


def memory_replies(
    valid: bool | None = None, max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
) -> st.SearchStrategy[ReplyCase]:
    """Strategy for replies: what providers send, and what trips a consumer up; one or two things are odd.

    Args:
        valid: True for those that every good consumer reads, so that it has memories; False for the others;
            None for both.
        max_response_bytes: the limit of the consumer: some bodies are as large as that, or a little larger.
    """
    changes = st.tuples(st.sampled_from(_FIRST[valid]), st.sampled_from(_SECOND))
    drawn = st.builds(partial(_case, max_response_bytes=max_response_bytes), changes, _COUNTS, _PLACES)
    if valid is None:
        return drawn
    return drawn.filter(lambda case: _is_valid(case, max_response_bytes) == valid)
