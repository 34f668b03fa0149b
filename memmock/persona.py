"""Persona files: the memories of a built-in character, as the live service's configuration holds them.

A file is YAML or JSON, and of it only `live.builtin_avatars["01"].memories` is read [seed]; what else is
there is ignored. What is read is checked, and a mistake is named with its line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memmock import documents
from memmock.contract import MEMORY_TYPES, Memory
from memmock.documents import Mistake, dotted, shown
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

CHARACTER = "01"
"""The one character whose memories are served [seed]."""

_PATH = ("live", "builtin_avatars", CHARACTER, "memories")
_TEXTS = ("id", "summary", "type", "updated_at", "source")


class PersonaError(MemmockError):
    """A persona file, or a memory of one, that cannot be used; the message names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaMemory(Memory):
    """A memory with the keywords by which it is found. Keywords are never sent [seed]."""

    keywords: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that goes on the wire: the contract's fields, without the keywords."""
        # not super(): `slots` makes the class anew, and super() would look for the old one
        value = Memory.to_json(self)
        value.pop("keywords", None)
        return value


def read(path: str | PathLike[str]) -> list[PersonaMemory]:
    """Return the memories in a persona file, in file order.

    Raises:
        PersonaError: the file cannot be read, or is not as the live service's configuration.
    """
    return documents.load(path, _memories, "a persona file", PersonaError)


def from_mapping(value: object, place: str) -> PersonaMemory:
    """Return the memory that a mapping describes, with the fields of a persona file.

    Args:
        value: the mapping; unknown fields are ignored, None stands for an absent field.
        place: what to call it in a message, as `memories[3]`.

    Raises:
        PersonaError: a field is missing or wrong.
    """
    try:
        return _memory(value, ())
    except Mistake as mistake:
        raise PersonaError(f"{place}{dotted(mistake.steps)} {mistake.says}") from None


def _memories(value: object) -> list[PersonaMemory]:
    for depth, step in enumerate(_PATH):
        value = _level(value, _PATH[:depth], step)
    if not isinstance(value, list):
        raise Mistake(_PATH, f"must be a list of memories, not {shown(value)}")
    memories = []
    first: dict[str, int] = {}
    for number, item in enumerate(value):
        memory = _memory(item, (*_PATH, number))
        if memory.id is not None and first.setdefault(memory.id, number) != number:
            says = f"{shown(memory.id)} is the id of memories[{first[memory.id]}] too; each needs its own"
            raise Mistake((*_PATH, number, "id"), says)
        memories.append(memory)
    return memories


def _level(value: object, steps: Sequence[str], name: str) -> object:
    if not isinstance(value, Mapping):
        raise Mistake(steps, f"must be a mapping with {shown(name)} in it, not {shown(value)}")
    if name in value:
        return value[name]
    if name == CHARACTER and 1 in value:
        raise Mistake(steps, 'has the number 1 as a key, which is how YAML reads 01; write "01" in quotes')
    there = ", ".join(shown(key) for key in list(value)[:5]) or "nothing"
    raise Mistake(steps, f"has no {shown(name)}; there is {there}{' …' if len(value) > 5 else ''}")


def _memory(value: object, steps: Sequence[str | int]) -> PersonaMemory:
    if not isinstance(value, Mapping):
        raise Mistake(steps, f"must be a mapping with a summary, not {shown(value)}")
    for name, says in _field_mistakes(value):
        raise Mistake((*steps, name), says)
    if value.get("summary") is None:
        raise Mistake(steps, "has no summary")
    fields: dict[str, Any] = {name: value.get(name) for name in (*_TEXTS, "confidence")}
    return PersonaMemory(**fields, keywords=tuple(value.get("keywords") or ()))


def _field_mistakes(value: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name in _TEXTS:
        item = value.get(name)
        if item is not None and not isinstance(item, str):
            quotes = "" if isinstance(item, Mapping | list) else "; write it in quotes"
            yield name, f"must be text, not {shown(item)}{quotes}"
    if isinstance(summary := value.get("summary"), str) and not summary.strip():
        yield "summary", "is blank"
    if (kind := value.get("type")) is not None and kind not in MEMORY_TYPES:
        yield "type", f"must be one of {', '.join(MEMORY_TYPES)}, not {shown(kind)}"
    sure = value.get("confidence")
    if sure is not None and (
        isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1
    ):
        yield "confidence", f"must be a number from 0 to 1, not {shown(sure)}"
    words = value.get("keywords")
    if words is not None and not isinstance(words, list | tuple):
        yield "keywords", f"must be a list of texts, not {shown(words)}"
    for word in words or ():
        if not isinstance(word, str):
            quotes = "" if isinstance(word, Mapping | list) else "; write it in quotes"
            yield "keywords", f"must be a list of texts, and {shown(word)} is none{quotes}"
