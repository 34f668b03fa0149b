"""YAML and JSON files for people: read strictly, each mistake named with its line, and written to be read.

What belongs in a file is for others to check: they raise `Mistake` with the steps that lead to the place, and
`load` finds the line.
"""

from __future__ import annotations

import base64
import errno
import gc
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memmock import strictjson
from memmock.errors import MemmockError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

SUFFIXES = (".yaml", ".yml", ".json")

Tags = tuple[tuple[str, Callable[[Any, Any], Any]], ...]
"""Tags of YAML, each with what makes a value of a node that has it: given PyYAML's loader and the node, it
raises ValueError for a node that is not as it should be."""


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
    return parse(path, read(path, what, error), check, error)


def read(
    path: str | PathLike[str], what: str, error: type[MemmockError] = MemmockError, most: int | None = None
) -> str:
    """Return the text of a YAML or JSON file.

    Args:
        path: the file; it has a suffix of `SUFFIXES`.
        what: what the file is, as "a persona file".
        error: what is raised.
        most: how many bytes are the most that is read; a larger file is refused unread.

    Raises:
        MemmockError: the file cannot be read, is empty, not UTF-8, or has another suffix.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise error(f"{path}: {what} ends in .yaml, .yml or .json")
    try:
        if most is not None:
            _refuse_large(path, path.stat(), most, error)
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(f"{path}: not UTF-8 (byte {wrong.object[wrong.start]:#04x} at offset "
                    f"{wrong.start})") from None  # fmt: skip
    except OSError as wrong:
        raise error(f"{path}: {wrong.strerror or wrong}") from None
    if not text.strip():
        raise error(f"{path}: the file is empty")
    return text


def _refuse_large(path: Path, state: os.stat_result, most: int, error: type[MemmockError]) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise error(f"{path}: not a file")
    if state.st_size > most:
        raise error(f"{path}: {state.st_size >> 20} MiB are too much, at most {most >> 20} MiB are read")


def parse(
    path: str | PathLike[str],
    text: str,
    check: Callable[[Any], T],
    error: type[MemmockError] = MemmockError,
    tags: Tags = (),
) -> T:
    """Return what `check` makes of the value in the text of a file.

    Args:
        path: where the text is from; its suffix says how it is read.
        text: what `read` returned.
        check: raises `Mistake` when something is wrong with the value.
        error: what is raised.
        tags: what is read beyond plain YAML.

    Raises:
        MemmockError: something in it is wrong; the message has the line.
    """
    path = Path(path)
    # Loading makes millions of objects and no cycles. With them the collector only takes time: two thirds
    # of it, for a hundred thousand memories in YAML.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if path.suffix.lower() == ".json":
            return _read_json(path, text, check)
        return _read_yaml(path, text, check, tags)
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
        # JSON is near enough to YAML for its lines to be found, but for a few characters
        near = _PAIR.sub(r"\\ufffd", _ODD_IN_BLOCK.sub(" ", text))
        raise _located(path, mistake, _compose(near)) from None


def _read_yaml(path: Path, text: str, check: Callable[[Any], T], tags: Tags) -> T:
    import yaml

    try:
        opened = _yaml_loader(tags)(text)
        try:
            node = opened.get_single_node()
            value = None if node is None else opened.plain_value(node)
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


_STR, _MAP, _SEQ = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))


@cache
def _yaml_loader(tags: Tags = ()) -> Any:
    """Return the safe loader, made stricter: timestamps are text, no name twice, no merge keys.

    Aliases are harmless, since they share what they stand for; but a merge key (`<<`) copies it, and a few
    lines of them fill any memory.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    scalar: Any = yaml.ScalarNode

    class Loader(base):  # type: ignore[misc]
        def plain_value(self, top: Any) -> Any:
            """Return the value of a node, in a third of the time that PyYAML takes.

            Text, mappings and lists are nearly all there is; PyYAML makes the rest.
            """
            made: dict[int, Any] = {}  # what aliases stand for is made once

            def value_of(node: Any) -> Any:
                if node.tag == _STR and type(node) is scalar:
                    return node.value
                if id(node) in made:
                    return made[id(node)]
                if node.tag == _MAP and node.id == "mapping":
                    return fill_mapping(node)
                if node.tag == _SEQ and node.id == "sequence":
                    items = made[id(node)] = []
                    items.extend(map(value_of, node.value))
                    return items
                value = made[id(node)] = self.construct_object(node, deep=True)
                return value

            def fill_mapping(node: Any) -> Any:
                mapping = made[id(node)] = {}
                for key, child in node.value:
                    name = key.value if key.tag == _STR and type(key) is scalar else self.key_value(key)
                    if child.tag == _STR and type(child) is scalar:
                        mapping[name] = child.value
                    else:
                        mapping[name] = value_of(child)
                if len(mapping) < len(node.value):
                    self.refuse_repeated(node)
                return mapping

            return value_of(top)

        def key_value(self, node: Any) -> Any:
            self.refuse_merge(node)
            value = self.construct_object(node, deep=True)
            if not isinstance(value, Hashable):
                self.refuse(node, "found unhashable key")
            return value

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            value = super().construct_mapping(node, deep)
            if len(value) < len(node.value):
                self.refuse_repeated(node)
            return value

        def flatten_mapping(self, node: Any) -> None:
            for key, _ in node.value:
                self.refuse_merge(key)

        def refuse_repeated(self, node: Any) -> None:
            names = [key.value for key, _ in node.value if isinstance(key.value, str)]
            name = next((key for n, key in enumerate(names) if key in names[:n]), "a key")
            self.refuse(node, f"{name} occurs more than once in a mapping")

        def refuse_merge(self, key: Any) -> None:
            if key.tag == "tag:yaml.org,2002:merge":
                self.refuse(key, "merge keys (<<) are not read, write the fields out")

        def refuse(self, node: Any, problem: str) -> None:
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

    def located(construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def constructed(loader: Any, node: Any) -> Any:
            try:
                return construct(loader, node)
            except (TypeError, ValueError, LookupError, AttributeError):
                return loader.refuse(node, f"this is not what its tag {node.tag} says")

        return constructed

    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    for tag, construct in tags:
        Loader.add_constructor(tag, located(construct))
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
        return strictjson.printable(json.dumps(value, ensure_ascii=False))
    return type(value).__name__


# ---- writing

_WRITTEN = "# Written by memmock: "


def marked(what: str) -> str:
    """Return the first line of a file that memmock writes anew each time; `what` are written in it."""
    return f"{_WRITTEN}what is changed here is lost when the {what} are written again.\n"


def check_own(path: str | PathLike[str]) -> None:
    """Raise for a file that is there and does not begin as those that memmock writes.

    Raises:
        MemmockError: it is somebody else's, or cannot be read.
    """
    try:
        if Path(path).exists() and not Path(path).read_bytes().startswith(_WRITTEN.encode()):
            raise MemmockError(f"{path} was not written by memmock: choose another place, or move it")
    except OSError as error:
        raise MemmockError(f"{path}: {error.strerror or error}") from None


def write_own(path: str | PathLike[str], content: bytes) -> None:
    """Put a file that memmock writes anew each time in place.

    Raises:
        MemmockError: what is there is somebody else's, or it cannot be written.
    """
    check_own(path)
    try:
        replace(path, content)
    except OSError as error:
        raise MemmockError(f"{path}: {error.strerror or error}") from None


def replace(path: str | PathLike[str], content: bytes) -> None:
    """Put a file in place at once, on the disk when this returns; it is the old one when that fails.

    Directories that are missing are made; the permissions of an old file stay; of a link, the target is
    replaced. The caller sees to it that nobody else replaces the file at the same time.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    target = Path(path).resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "its directory is a file") from None
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    # the same name each time, so that what a killed process leaves does not pile up
    new = target.with_name(f".memmock-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}.tmp")
    try:
        new.unlink(missing_ok=True)
        with new.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            new.chmod(mode)
        new.replace(target)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def json_text(value: Any) -> str:
    """Return a value in JSON for people: indented, printable text as it is."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def yaml_text(value: Mapping[str, Any]) -> str:
    """Return a mapping in YAML for people: in blocks, no line folded, printable text as it is.

    Names of more than 1,000 characters cannot be read again.

    It looks as PyYAML writes it, which takes five times as long; but text of several lines is a literal
    block whenever that is exact.
    """
    lines: list[str] = []
    _add_block(lines, value, "")
    return "\n".join([*lines, ""])


def yaml_line(value: Any) -> str:
    """Return a value in YAML on one line of ASCII: JSON with YAML's escapes, and binary as `!!binary`.

    Raises:
        UnicodeEncodeError: a text holds half of a surrogate pair.
    """
    raw: list[bytes] = []

    def mark(content: bytes) -> str:
        raw.append(content)
        return _MARK

    text = json.dumps(value, ensure_ascii=False, default=mark)
    for content in raw:
        text = text.replace(f'"{_MARK}"', f'!!binary "{base64.b64encode(content).decode()}"', 1)
    text.encode()
    return text.encode("ascii", "backslashreplace").decode().replace("\x7f", "\\x7f")


_MARK = "\ud800binary"
"""Stands for binary; no text can hold it, since it holds half of a surrogate pair."""


def _add_block(lines: list[str], value: Any, indent: str) -> None:
    """Add the lines of a mapping or list that is not empty."""
    if isinstance(value, Mapping):
        for name, child in value.items():
            if isinstance(child, Mapping | list) and child:
                lines.append(f"{indent}{_text(name)}:")
                _add_block(lines, child, indent if isinstance(child, list) else f"{indent}  ")
            else:
                lines.append(f"{indent}{_text(name)}: {_scalar(child, indent)}")
        return
    for child in value:
        if isinstance(child, Mapping | list) and child:
            first = len(lines)
            _add_block(lines, child, f"{indent}  ")
            lines[first] = f"{indent}- {lines[first][len(indent) + 2 :]}"
        else:
            lines.append(f"{indent}- {_scalar(child, indent)}")


def _scalar(value: Any, indent: str) -> str:
    """Return what has no block of its own; the lines that it has are indented below `indent`."""
    if isinstance(value, bytes):
        return "!!binary |\n" + _indented(base64.encodebytes(value).decode().rstrip("\n"), indent)
    if not isinstance(value, str):
        return json.dumps(value)
    if "\n" in value and value.strip("\n ") and not _ODD_IN_BLOCK.search(value):
        indicator = "2" if value[0] in " \n" else ""
        chomping = "-" if value[-1] != "\n" else "+" if value.endswith("\n\n") else ""
        return f"|{indicator}{chomping}\n{_indented(value.removesuffix(chr(10)), indent)}"
    return _text(value)


def _text(value: str) -> str:
    """Return text on one line."""
    if _ODD.search(value):
        dumped = json.dumps(value, ensure_ascii=False)
        return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", dumped)
    if len(value) > 80:
        return "'" + value.replace("'", "''") + "'"
    return value if _PLAIN.fullmatch(value) and not _NOT_TEXT.fullmatch(value) else _quoted(value)


def _indented(text: str, indent: str) -> str:
    return "\n".join(f"{indent}  {line}" if line else "" for line in text.split("\n"))


@lru_cache(4096)
def _quoted(text: str) -> str:
    """Return a short line as PyYAML writes it, in quotes only if it needs them."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumped = str(yaml.dump(text, Dumper=base, allow_unicode=True, width=1 << 30))
    return dumped.removesuffix("\n").removesuffix("\n...")


_PLAIN = re.compile(r"[A-Za-z](?:[!-9;-~]|:(?! |\Z)| (?! |#|\Z))*")
_NOT_TEXT = re.compile(r"y|n|yes|no|on|off|true|false|null", re.IGNORECASE)
_ODD = re.compile("[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What is not printable in YAML, or breaks a line."""
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
"""A surrogate pair, as JSON escapes what YAML escapes as one character."""
_ODD_IN_BLOCK = re.compile(_ODD.pattern.replace("[^", "[^\n", 1))
