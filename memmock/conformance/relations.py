"""What several answers show together: judgements that one answer alone does not allow.

Each is a function from answers to what is wrong with the last of them, in one line, or None. None is also
said when the answers cannot be compared: what is wrong with one of them alone is for `rules`. Memories are
told apart by their id or their summary, so that values that change from call to call are no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memmock import strictjson
from memmock.conformance.session import Answer
from memmock.contract import DEFAULT_MAX_RESULTS, MEMORY_TYPES

_MANY_REQUESTS = 429
_SMALLEST_CAP = DEFAULT_MAX_RESULTS
"""No provider is expected to give fewer memories than this of its own accord."""


def same_again(first: Answer, again: Answer) -> str | None:
    """Return how the answer to the same retrieval has changed (RES602)."""
    return _difference(first, again, "the same retrieval again is answered with")


def begins_with(fewer: Answer, more: Answer) -> str | None:
    """Return how a larger max_results changes what comes first (RES603).

    How many come when there is no max_results is for the provider, so then only what is in both is compared.

    Args:
        fewer: the answer with the smaller max_results.
        more: the answer with the larger one; nothing else differs in the request.
    """
    few, many = fewer.memories, more.memories
    least, most = wanted_results(fewer), wanted_results(more)
    if few is None or many is None or least is None or most is None or least >= most:
        return None
    if len(few) > least:  # that is RES302
        return None
    if any("max_results" not in answer.case.fields for answer in (fewer, more)):
        least = min(len(few), len(many))
        few = few[:least]
    first = many[:least]
    if _same(few, first):
        return None
    if _same(few, first[: len(few)]):
        return f"max_results {least} gives {told(few)}, although {most} gives {told(many)}"
    if _same(few[: len(first)], first):  # more were there with the smaller number
        return f"max_results {least} gives {told(few)}, and {most} gives {told(many)} only"
    return f"max_results {least} gives {told(few)}, but {most} gives {told(many)}"


def narrowed(wide: Answer, narrow: Answer) -> str | None:
    """Return how fewer memory_types change what is not filtered out (RES604).

    Args:
        wide: the answer with more kinds, or with all.
        narrow: the answer with a part of them; nothing else differs in the request.
    """
    all_of_them, left = wide.memories, narrow.memories
    kinds, most = wanted_types(narrow), wanted_results(wide)
    if all_of_them is None or left is None or not kinds or most is None:
        return None
    if not all(_kind(memory) in MEMORY_TYPES for memory in (*all_of_them, *left)):
        return None
    if len(all_of_them) > most or len(left) > most or not all(_kind(memory) in kinds for memory in left):
        return None  # that is RES302, or RES303
    kept = [memory for memory in all_of_them if _kind(memory) in kinds]
    asked, before = ", ".join(kinds), ", ".join(wanted_types(wide) or ()) or "all kinds"
    if not _same(kept, left[: len(kept)]):
        return f"of {before} there are {told(kept)} of kind {asked}; asked for alone, {told(left)}"
    if len(left) > len(kept) and len(all_of_them) < min(most, _SMALLEST_CAP):
        return f"{asked} alone gives {told(left)}, but {before} gives only {told(all_of_them)}"
    return None


def matters_not(plain: Answer, other: Answer) -> str | None:
    """Return how an answer differs although its request means the same (RES605).

    Args:
        plain: the answer to the request in its plain form.
        other: the answer to the same request in another form.
    """
    return _answered(plain, other) or _difference(plain, other, "written otherwise, it is answered with")


def undisturbed(alone: Answer, together: Answer) -> str | None:
    """Return how a call among others is answered otherwise than alone (RES606).

    A refusal with 429 is no disturbance: it says what it is.
    """
    if together.status == _MANY_REQUESTS:
        return None
    return _answered(alone, together) or _difference(alone, together, "beside other calls, it gives")


def gives_away(answer: Answer) -> str | None:
    """Return that memories were given for an authorization that is not the right one (RES601)."""
    found = answer.memories
    return f"{told(found)} for an authorization that is not the right one" if found else None


# ---- what was asked


def wanted_results(answer: Answer) -> int | None:
    """Return the max_results that was asked for, or stands for none; None when it is not a number."""
    most = answer.case.fields.get("max_results", DEFAULT_MAX_RESULTS)
    return most if isinstance(most, int) and not isinstance(most, bool) else None


def wanted_types(answer: Answer) -> tuple[str, ...] | None:
    """Return the memory_types that were asked for, empty for all; None when they are not a list."""
    kinds = answer.case.fields.get("memory_types", ())
    return tuple(kinds) if isinstance(kinds, (list, tuple)) else None


# ---- what came


def told(memories: Sequence[Any]) -> str:
    """Return memories in a few words: how many, and which."""
    if not memories:
        return "no memory"
    shown = ", ".join(_name(memory) for memory in memories[:5]) + (", …" if len(memories) > 5 else "")
    return f"{len(memories)} {'memory' if len(memories) == 1 else 'memories'} ({shown})"


def _answered(before: Answer, other: Answer) -> str | None:
    """Return that there are no memories where there were some to compare with."""
    if before.memories is None or other.memories is not None:
        return None
    if other.reply is None:
        return other.failure.partition(": ")[2] or other.failure
    return f"status {other.status}" if other.status != 200 else "200 without an array of memories"


def _difference(first: Answer, other: Answer, what: str) -> str | None:
    before, after = first.memories, other.memories
    if before is None or after is None or _same(before, after):
        return None
    for name in (_id, _summary):
        if len(before) == len(after) and _sorted(before, name) == _sorted(after, name):
            return f"{what} the same memories in another order: {told(after)}, not {told(before)}"
    return f"{what} {told(after)}, not {told(before)}"


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether these are the same memories in the same order, by their ids or by their summaries."""
    return len(some) == len(others) and any(
        [name(each) for each in some] == [name(each) for each in others] for name in (_id, _summary)
    )


def _sorted(memories: Sequence[Any], name: Callable[[Any], str]) -> list[str]:
    return sorted(name(each) for each in memories)


def _id(memory: Any) -> str:
    name = memory.get("id") if isinstance(memory, dict) else None
    # null is no id: without one, only memories that are otherwise the same are the same
    return repr(memory if name is None else name)


def _summary(memory: Any) -> str:
    text = memory.get("summary") if isinstance(memory, dict) else None
    return repr(memory if text is None else text)


def _kind(memory: Any) -> Any:
    kind = memory.get("type") if isinstance(memory, dict) else None
    return kind if isinstance(kind, str) else None


def _name(memory: Any) -> str:
    if isinstance(memory, dict):
        memory = memory.get("id", memory.get("summary", memory))
    return strictjson.shortened(memory)
