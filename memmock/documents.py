"""YAML and JSON files that people write: read strictly, and each mistake named with its line.

What belongs in a file is for others to check: they raise `Mistake` with the steps that lead to the place, and
`load` finds the line.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memmock import strictjson
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Mistake(Exception):  # it becomes an error once the file and line are known
    """Something wrong at the place that `steps` lead to, from the top."""

    def __init__(self, steps: Sequence[str | int], says: str) -> None:
        super().__init__(says)
        self.steps = tuple(steps)
        self.says = says


def load(
    path: str | PathLike[str], check: Callable[[Any], T], what: str, error: type[MemmockError] = MemmockError
) -> T:
    """Return what `check` makes of the value in a YAML or JSON file.

    Args:
        path: the file; its suffix says how it is read.
        check: raises `Mistake` when something is wrong with the value.
        what: what the file is, as "a persona file".
        error: what is raised.

    Raises:
        MemmockError: the file cannot be read, or something in it is wrong; the message has the line.
    """
    path = Path(path)
    readers = {".yaml": _read_yaml, ".yml": _read_yaml, ".json": _read_json}
    if (reader := readers.get(path.suffix.lower())) is None:
        raise error(f"{path}: {what} ends in .yaml, .yml or .json")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: not UTF-8 (byte {wrong.object[wrong.start]:#04x} at offset "
                    f"{wrong.start})") from None  # fmt: skip
    except OSError as wrong:
        raise error(f"{path}: {wrong.strerror or wrong}") from None
    if not text.strip():
        raise error(f"{path}: the file is empty")
    # Loading makes millions of objects and no cycles. With them the collector only takes time: two thirds
    # of it, for a hundred thousand memories in YAML.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return reader(path, text, check)
    except _Wrong as wrong:
        raise error(str(wrong)) from None
    except RecursionError:
        raise error(f"{path}: nested too deeply") from None
    finally:
        if collecting:
            gc.enable()


class _Wrong(Exception):
    """What is wrong with a file, as a message."""


def _read_json(path: Path, text: str, check: Callable[[Any], T]) -> T:
    data = text.encode()
    try:
        value = strictjson.parse(data)
    except json.JSONDecodeError as error:
        raise _Wrong(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from None
    except ValueError:
        # half a surrogate pair or a number beyond a double may be there too, but parse let them pass
        flaw = next(flaw for flaw in strictjson.read(data)[1] if flaw.kind not in ("surrogate", "range"))
        raise _Wrong(f"{path}: {flaw.pointer or 'not JSON'}: {flaw.detail}") from None
    try:
        return check(value)
    except Mistake as mistake:
        # JSON is near enough to YAML for its lines to be found, but for tabs
        raise _located(path, mistake, _compose(text.replace("\t", " "))) from None


def _read_yaml(path: Path, text: str, check: Callable[[Any], T]) -> T:
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
        raise _Wrong(f"{where}: {what}{says}{column}") from None
    except yaml.reader.ReaderError as error:
        raise _Wrong(f"{path}: not YAML: {error.reason} (character {error.position})") from None
    except (ArithmeticError, ValueError, LookupError) as error:
        raise _Wrong(f"{path}: a value is not what its tag says: {error}") from None
    try:
        return check(value)
    except Mistake as mistake:
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


def _located(path: Path, mistake: Mistake, node: Any) -> _Wrong:
    """Return the error for a mistake in a file, with its line if there are nodes to find it in."""
    where = str(path)
    if node is not None:
        for step in mistake.steps:
            if (child := _child(node, step)) is None:  # missing: take the line of what it should be in
                break
            node = child
        where += f":{node.start_mark.line + 1}"
    return _Wrong(f"{where}: {dotted(mistake.steps).removeprefix('.') or 'the file'} {mistake.says}")


def _child(node: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return node.value[step]
    return next((value for key, value in node.value if key.value == step), None)


def dotted(steps: Sequence[str | int]) -> str:
    """Return steps as they are written in a program: `.live.builtin_avatars["01"].memories[3]`."""
    return "".join(f".{step}" if str(step).isidentifier() else f"[{json.dumps(step)}]" for step in steps)


def shown(value: object) -> str:
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
