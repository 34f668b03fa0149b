"""Persona files: the memories of a built-in character, as the live service's configuration holds them.

A file is YAML or JSON, and of it only `live.builtin_avatars["01"].memories` is read [seed]; what else is
there is ignored. What is read is checked, and a mistake is named with its line.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memmock import strictjson
from memmock.contract import MEMORY_TYPES, Memory
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class _Mistake(Exception):  # it becomes a PersonaError once the file and line are known
    """Something wrong at the place that `steps` lead to, from the top."""

    def __init__(self, steps: Sequence[str | int], says: str) -> None:
        super().__init__(says)
        self.steps = tuple(steps)
        self.says = says


def read(path: str | PathLike[str]) -> list[PersonaMemory]:
    """Return the memories in a persona file, in file order.

    Raises:
        PersonaError: the file cannot be read, or is not as the live service's configuration.
    """
    path = Path(path)
    readers = {".yaml": _read_yaml, ".yml": _read_yaml, ".json": _read_json}
    if (reader := readers.get(path.suffix.lower())) is None:
        raise PersonaError(f"{path}: a persona file ends in .yaml, .yml or .json")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PersonaError(f"{path}: not UTF-8 (byte {error.object[error.start]:#04x} at offset "
                           f"{error.start})") from None  # fmt: skip
    except OSError as error:
        raise PersonaError(f"{path}: {error.strerror or error}") from None
    if not text.strip():
        raise PersonaError(f"{path}: the file is empty")
    # Loading makes millions of objects and no cycles. With them the collector only takes time: two thirds
    # of it, for a hundred thousand memories in YAML.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return reader(path, text)
    except RecursionError:
        raise PersonaError(f"{path}: nested too deeply") from None
    finally:
        if collecting:
            gc.enable()


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
    except _Mistake as mistake:
        raise PersonaError(f"{place}{_dotted(mistake.steps)} {mistake.says}") from None


# ---- Reading


def _read_json(path: Path, text: str) -> list[PersonaMemory]:
    data = text.encode()
    try:
        value = strictjson.parse(data)
    except json.JSONDecodeError as error:
        raise PersonaError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from None
    except ValueError:
        # half a surrogate pair or a number beyond a double may be there too, but parse let them pass
        flaw = next(flaw for flaw in strictjson.read(data)[1] if flaw.kind not in ("surrogate", "range"))
        raise PersonaError(f"{path}: {flaw.pointer or 'not JSON'}: {flaw.detail}") from None
    try:
        return _memories(value)
    except _Mistake as mistake:
        # JSON is near enough to YAML for its lines to be found, but for tabs
        raise _located(path, mistake, _compose(text.replace("\t", " "))) from None


def _read_yaml(path: Path, text: str) -> list[PersonaMemory]:
    import yaml

    try:
        opened = _yaml_loader()(text)
        try:
            node = opened.get_single_node()
            value = None if node is None else opened.construct_document(node)
        finally:
            opened.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # a constructor error is about what is written, not how
        what = "" if isinstance(error, yaml.constructor.ConstructorError) else "not YAML: "
        says = " ".join(str(error.problem).split())
        where = f"{path}:{mark.line + 1}" if mark else path
        column = f" (column {mark.column + 1})" if mark else ""
        raise PersonaError(f"{where}: {what}{says}{column}") from None
    except yaml.reader.ReaderError as error:
        raise PersonaError(f"{path}: not YAML: {error.reason} (character {error.position})") from None
    except (ValueError, LookupError) as error:
        raise PersonaError(f"{path}: a value is not what its tag says: {error}") from None
    try:
        return _memories(value)
    except _Mistake as mistake:
        raise _located(path, mistake, node) from None


@cache
def _yaml_loader() -> Any:
    """Return the safe loader, made stricter: timestamps are text, no name twice, no merge keys.

    Aliases are harmless, since they share what they stand for; but a merge key (`<<`) copies it, and a few
    lines of them fill any memory.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            value = super().construct_mapping(node, deep)
            if len(value) < len(node.value):
                names = [key.value for key, _ in node.value if isinstance(key.value, str)]
                name = next((key for n, key in enumerate(names) if key in names[:n]), "a key")
                self.refuse(node, f"{name} occurs more than once in a mapping")
            return value

        def flatten_mapping(self, node: Any) -> None:
            for key, _ in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    self.refuse(key, "merge keys (<<) are not read, write the fields out")

        def refuse(self, node: Any, problem: str) -> None:
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    return Loader


def _compose(text: str) -> Any:
    import yaml

    try:
        return yaml.compose(text, _yaml_loader())
    except yaml.YAMLError:
        return None


def _located(path: Path, mistake: _Mistake, node: Any) -> PersonaError:
    """Return the error for a mistake in a file, with its line if there are nodes to find it in."""
    where = str(path)
    if node is not None:
        for step in mistake.steps:
            node = _child(node, step)
        where += f":{node.start_mark.line + 1}"
    return PersonaError(f"{where}: {_dotted(mistake.steps).removeprefix('.') or 'the file'} {mistake.says}")


def _child(node: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return node.value[step]
    return next(value for key, value in node.value if key.value == step)


def _dotted(steps: Sequence[str | int]) -> str:
    """Return steps as they are written in a program: `.live.builtin_avatars["01"].memories[3]`."""
    return "".join(f".{step}" if str(step).isidentifier() else f"[{json.dumps(step)}]" for step in steps)


# ---- Checking


def _memories(value: object) -> list[PersonaMemory]:
    for depth, step in enumerate(_PATH):
        value = _level(value, _PATH[:depth], step)
    if not isinstance(value, list):
        raise _Mistake(_PATH, f"must be a list of memories, not {_shown(value)}")
    memories = []
    first: dict[str, int] = {}
    for number, item in enumerate(value):
        memory = _memory(item, (*_PATH, number))
        if memory.id is not None and first.setdefault(memory.id, number) != number:
            says = f"{_shown(memory.id)} is the id of memories[{first[memory.id]}] too; each needs its own"
            raise _Mistake((*_PATH, number, "id"), says)
        memories.append(memory)
    return memories


def _level(value: object, steps: Sequence[str], name: str) -> object:
    if not isinstance(value, Mapping):
        raise _Mistake(steps, f"must be a mapping with {_shown(name)} in it, not {_shown(value)}")
    if name in value:
        return value[name]
    if name == CHARACTER and 1 in value:
        raise _Mistake(steps, 'has the number 1 as a key, which is how YAML reads 01; write "01" in quotes')
    there = ", ".join(_shown(key) for key in list(value)[:5]) or "nothing"
    raise _Mistake(steps, f"has no {_shown(name)}; there is {there}{' …' if len(value) > 5 else ''}")


def _memory(value: object, steps: Sequence[str | int]) -> PersonaMemory:
    if not isinstance(value, Mapping):
        raise _Mistake(steps, f"must be a mapping with a summary, not {_shown(value)}")
    for name, says in _field_mistakes(value):
        raise _Mistake((*steps, name), says)
    if value.get("summary") is None:
        raise _Mistake(steps, "has no summary")
    fields: dict[str, Any] = {name: value.get(name) for name in (*_TEXTS, "confidence")}
    return PersonaMemory(**fields, keywords=tuple(value.get("keywords") or ()))


def _field_mistakes(value: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name in _TEXTS:
        item = value.get(name)
        if item is not None and not isinstance(item, str):
            quotes = "" if isinstance(item, Mapping | list) else "; write it in quotes"
            yield name, f"must be text, not {_shown(item)}{quotes}"
    if isinstance(summary := value.get("summary"), str) and not summary.strip():
        yield "summary", "is blank"
    if (kind := value.get("type")) is not None and kind not in MEMORY_TYPES:
        yield "type", f"must be one of {', '.join(MEMORY_TYPES)}, not {_shown(kind)}"
    sure = value.get("confidence")
    if sure is not None and (
        isinstance(sure, bool) or not isinstance(sure, int | float) or not 0 <= sure <= 1
    ):
        yield "confidence", f"must be a number from 0 to 1, not {_shown(sure)}"
    words = value.get("keywords")
    if words is not None and not isinstance(words, list | tuple):
        yield "keywords", f"must be a list of texts, not {_shown(words)}"
    for word in words or ():
        if not isinstance(word, str):
            quotes = "" if isinstance(word, Mapping | list) else "; write it in quotes"
            yield "keywords", f"must be a list of texts, and {_shown(word)} is none{quotes}"


def _shown(value: object) -> str:
    """Return a value as JSON would write it, shortened; only the kind of what holds others."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str) and len(value) > 40:
        value = value[:40] + "…"
    if isinstance(value, int) and abs(value) >= 10**40:  # Python refuses to write out the longest ones
        return "a very long number"
    if value is None or isinstance(value, int | float | str):
        return json.dumps(value, ensure_ascii=False)
    return type(value).__name__
