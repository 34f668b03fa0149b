"""How memories are ranked for one query, with the hits that decide it, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memmock.contract import DEFAULT_MAX_RESULTS, MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.hits import Token, marked, query_tokens, standing_alone, text_tokens
from memmock.memories import Memories
from memmock.persona import PersonaMemory
from memmock.ranking import IN_KEYWORDS, IN_SUMMARY, OF_HINT, OF_QUERY
from memmock.strictjson import shortened

MOST_SHOWN = 100
"""So many memories of a ranking are shown, the best ones."""
_OF = {"query": OF_QUERY, "time_hint": OF_HINT}
_IN = {"summary": IN_SUMMARY, "keywords": IN_KEYWORDS}
"""What a hit is worth: the product of what it is of and where it is."""


def ranking(
    memories: Memories,
    query: str,
    *,
    memory_types: Sequence[str] = (),
    time_hint: str = "",
    max_results: int = DEFAULT_MAX_RESULTS,
) -> dict[str, Any]:
    """Return the order in which a retrieval finds the memories, each with its score and its hits.

    The first `max_results` are sent. Memories of other types are counted in `left_out`.

    Raises:
        MemmockError: a value is not one that a retrieval has.
    """
    if unknown := [kind for kind in memory_types if kind not in MEMORY_TYPES]:
        known = ", ".join(MEMORY_TYPES)
        raise MemmockError(f"memory_types must be of {known}, not {shortened(unknown[0])}")
    if max_results < 1:
        raise MemmockError(f"max_results must be at least 1, not {max_results}")
    order = memories.find(query, memory_types, time_hint, len(memories))
    ranked = []
    for rank, number in enumerate(order[:MOST_SHOWN]):
        hits = _hits(memories[number], {"query": query, "time_hint": time_hint})
        ranked.append({"index": number, "sent": rank < max_results, **hits})
    return {"ranking": ranked, "found": len(order), "left_out": len(memories) - len(order)}


def _hits(memory: PersonaMemory, asked: dict[str, str]) -> dict[str, Any]:
    texts = {"summary": [memory.summary], "keywords": [*memory.keywords]}
    held = {place: set().union(*map(text_tokens, its)) for place, its in texts.items()}
    # a character by itself is a hit only where the memory has it by itself: other memories do not matter here
    alone = standing_alone(set().union(*held.values()))
    score = 0
    wanted: dict[str, set[Token]] = {place: set() for place in texts}
    for what, text in asked.items():
        tokens = query_tokens(text, alone)
        for place, its in held.items():
            found = tokens & its
            score += _OF[what] * _IN[place] * len(found)
            wanted[place] |= found
    return {
        "id": memory.id,
        "type": memory.type,
        "score": score,
        "summary": marked(memory.summary, wanted["summary"]),
        "keywords": [marked(word, wanted["keywords"]) for word in memory.keywords],
    }
