"""The memories that the mock provider holds, and retrieval from them.

A `Memories` never changes; adding to one makes another. Reading files is `persona`'s, the order of what is
found is `ranking`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from memmock import persona
from memmock.contract import DEFAULT_MAX_RESULTS, Memory, MemoryType
from memmock.http import encode_json
from memmock.persona import PersonaError, PersonaMemory
from memmock.ranking import Ranking

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Memories", "PersonaError", "PersonaMemory", "builtin", "load"]


class Memories(Sequence[PersonaMemory]):
    """An immutable sequence of memories that can be searched.

    A mapping has the fields of a persona file and is checked as one. A `Memory` is taken as it is, so that
    a test can hold what the contract forbids; equal ids are not looked for either.

    The index is built by the first retrieval, which takes about a millisecond for a persona and seconds
    for 100,000 memories; where that matters, `prepare` beforehand.

    Raises:
        PersonaError: a mapping is not a memory; the message says which, and why.
    """

    def __init__(self, memories: Iterable[Memory | Mapping[str, Any]] = ()) -> None:
        self._memories = tuple(
            _persona_memory(memory, f"memories[{number}]") for number, memory in enumerate(memories)
        )

    def plus(self, *memories: Memory | Mapping[str, Any]) -> Memories:
        """Return these memories with `memories` after them."""
        return Memories([*self._memories, *Memories(memories)])

    def retrieve(
        self,
        query: str,
        *,
        memory_types: Collection[str] | None = None,
        time_hint: str = "",
        max_results: int = DEFAULT_MAX_RESULTS,
    ) -> list[PersonaMemory]:
        """Return the memories that the built-in provider answers with, best first [seed].

        Filter by type, order by hits, cut. A memory without a hit comes last but is not left out, and ties
        keep the order of the sequence. Types None or empty mean all; a memory without a type is `other`.
        The same arguments always give the same answer.
        """
        found = self.find(query, memory_types, time_hint, max_results)
        return [self._memories[number] for number in found]

    def find(
        self,
        query: str,
        memory_types: Collection[str] | None = None,
        time_hint: str = "",
        max_results: int = DEFAULT_MAX_RESULTS,
    ) -> list[int]:
        """Return the same as `retrieve`, as indices: for `encoded`, where every microsecond counts."""
        return self._ranking.best(query, types=memory_types, time_hint=time_hint, count=max_results)

    def prepare(self) -> None:
        """Build now what the first retrieval would build."""
        self.find("")
        _ = self.encoded

    @cached_property
    def encoded(self) -> tuple[bytes, ...]:
        """Each memory as the JSON that goes on the wire, by index; without keywords.

        Raises:
            ValueError: a confidence is not finite, which JSON cannot carry.
        """
        return tuple(encode_json(memory.to_json()) for memory in self._memories)

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(
            [memory.summary for memory in self._memories],
            [memory.keywords for memory in self._memories],
            [memory.type or MemoryType.OTHER.value for memory in self._memories],
        )

    def __len__(self) -> int:
        return len(self._memories)

    @overload
    def __getitem__(self, index: int) -> PersonaMemory: ...
    @overload
    def __getitem__(self, index: slice) -> Memories: ...
    def __getitem__(self, index: int | slice) -> PersonaMemory | Memories:
        if isinstance(index, slice):
            return Memories(self._memories[index])
        return self._memories[index]

    def __eq__(self, other: object) -> bool:
        return self._memories == other._memories if isinstance(other, Memories) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._memories)

    def __repr__(self) -> str:
        return f"<Memories: {len(self)}>"


def load(path: str | PathLike[str]) -> Memories:
    """Return the memories in a persona file: `live.builtin_avatars["01"].memories` in YAML or JSON.

    Raises:
        PersonaError: the file cannot be used; the message has the line and what is wrong.
    """
    return Memories(persona.read(path))


@cache
def builtin() -> Memories:
    """Return the memories of the character 01 that comes with memmock: 灵绯, who knows the user as 阿澈."""
    from importlib import resources  # slow to import, and most runs of the plugin never get here

    with resources.as_file(resources.files("memmock") / "data" / "persona_01.yaml") as path:
        return load(path)


def _persona_memory(memory: Memory | Mapping[str, Any], place: str) -> PersonaMemory:
    if isinstance(memory, PersonaMemory):
        return memory
    if isinstance(memory, Memory):
        return PersonaMemory(**{spec.name: getattr(memory, spec.name) for spec in fields(memory)})
    return persona.from_mapping(memory, place)
