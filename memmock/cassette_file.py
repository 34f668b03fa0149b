"""Cassette files: read whatever vcrpy wrote, save what vcrpy reads, append while a recording runs.

The format is vcrpy's, version 1, in YAML or JSON. What vcrpy has no field for is in the key `memmock` of an
interaction, beside its request and response; vcrpy passes over it. A file is only ever replaced whole, or
appended to so that it can be read at every moment. One process at a time writes to a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memmock import documents
from memmock.cassette import Interaction
from memmock.cassette_format import TAGS, CassetteError, interactions_of, plain

__all__ = ["CassetteError", "Recording", "load", "save", "update"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO


LARGEST = 512 << 20
"""How many bytes of a cassette are the most that is read [ours]."""

LOCK_WAIT_S = 10.0
"""How long a save waits for another process that is saving the same file [ours]."""


# ---- reading


def load(path: str | os.PathLike[str]) -> list[Interaction]:
    """Return the interactions of a cassette in the order of the file.

    Nothing in the file is run. Unknown keys are passed over. A JSON file whose recording was killed is read
    up to its last complete interaction; any other file that is cut off is an error.

    Raises:
        CassetteError: the file cannot be read or is not a cassette.
    """
    text = documents.read(path, "a cassette", CassetteError, LARGEST)
    _refuse_conflict(path, text)
    is_json = _is_json(path)
    if is_json and text.startswith(_JSON_HEAD):
        text = _completed(text)
    try:
        return documents.parse(path, text, interactions_of, CassetteError, TAGS)
    except CassetteError as wrong:
        whole = text.rstrip().endswith("}") if is_json else _VERSION.search(text)
        if whole or not _BEGINNING.match(text):
            raise
        raise CassetteError(f"{wrong}; is the file cut off?") from None


def _refuse_conflict(path: object, text: str) -> None:
    if not any(marker in text for marker in ("<<<<<<<", "=======", ">>>>>>>")):
        return  # nearly always, and found out a hundred times as fast
    if found := _MARKER.search(text):
        where = f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
        raise CassetteError(f"{where}: a merge conflict of git: settle it, or record the cassette again")


_MARKER = re.compile(r"^(?:<{7}|={7}|>{7})(?:[ \r]|$)", re.MULTILINE)
_VERSION = re.compile(r"^version *:", re.MULTILINE)
_BEGINNING = re.compile(r'\s*(?:\{|"?interactions)')


def save(path: str | os.PathLike[str], interactions: Sequence[Interaction]) -> None:
    """Replace a cassette, or make it, in the layout of vcrpy; its directory is made when it is missing.

    The file is the old one until it is the new one. Its permissions stay.

    Raises:
        CassetteError: it cannot be written, or another process is writing it for more than `LOCK_WAIT_S`.
    """
    with _locked(path):
        _write(path, _finished(path, interactions))


def update(
    path: str | os.PathLike[str], change: Callable[[list[Interaction]], Sequence[Interaction]]
) -> None:
    """Save what `change` makes of the interactions of a cassette; of none when there is no such file.

    No other process saves the file in between.

    Raises:
        CassetteError: as `load` and `save`; the file is as it was.
    """
    with _locked(path):
        old = load(path) if os.path.lexists(path) else []
        _write(path, _finished(path, change(old)))


def _finished(path: str | os.PathLike[str], interactions: Sequence[Interaction]) -> bytes:
    is_json = _is_json(path)
    items = [plain(path, one, is_json, ("interactions", n)) for n, one in enumerate(interactions)]
    write = documents.json_text if is_json else documents.yaml_text
    return write({"interactions": items, "version": 1}).encode()


def _is_json(path: str | os.PathLike[str]) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix not in documents.SUFFIXES:
        raise CassetteError(f"{path}: a cassette ends in .yaml, .yml or .json")
    return suffix == ".json"


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    try:
        documents.replace(path, content)
    except OSError as wrong:
        raise CassetteError(f"{path}: not saved: {wrong.strerror or wrong}") from None


@contextlib.contextmanager
def _locked(path: str | os.PathLike[str], wait_s: float | None = None) -> Iterator[None]:
    """Hold the lock of a cassette.

    It is in a directory of the user's, not beside the cassette, where it would be taken for a part of it.
    """
    import filelock

    wait_s = LOCK_WAIT_S if wait_s is None else wait_s
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    directory = Path(tempfile.gettempdir()) / f"memmock-locks-{user}"
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    lock = filelock.FileLock(directory / f"{name}.lock", timeout=wait_s, thread_local=False)
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise CassetteError(f"{path}: another process is writing this cassette: wait until it is done, or "
                            "record to another file") from None  # fmt: skip
    except OSError as wrong:
        raise CassetteError(f"{path}: cannot be locked in {directory}: {wrong.strerror or wrong}") from None
    try:
        yield
    finally:
        lock.release()


# ---- appending

_JSON_HEAD = '{"version": 1, "interactions": [\n'
_JSON_TAIL = b"]}\n"
_YAML_HEAD = b"version: 1\ninteractions:\n"


def _completed(text: str) -> str:
    """Return the text of a JSON recording, closed behind its last complete line if it was killed.

    Each interaction has a line to itself; only the last line can be torn.
    """
    if text.endswith("]}\n"):
        return text
    lines = text[len(_JSON_HEAD) :].split("\n")
    last = next((line for line in reversed(lines) if line), "")
    try:
        json.loads(last.removeprefix(","))
    except ValueError:
        text = text[: text.rindex(last)] if last else text
    return f"{text}{_JSON_TAIL.decode()}"


class Recording:
    """A cassette that is appended to, and can be read at every moment, whatever ends the process.

    `append` may be called by any thread. While it is open no other process writes to the file; when it is
    closed the file has the layout of `save`.

    Args:
        path: the cassette; interactions that it has stay in front.

    Raises:
        CassetteError: an existing file is not a cassette, the file cannot be written, or another process is
            writing it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._is_json = _is_json(path)
        self._mutex = threading.Lock()
        self._file: FileIO | None = None
        self._held = contextlib.ExitStack()
        self._held.enter_context(_locked(path, 0))
        try:
            self._interactions = load(path) if os.path.lexists(path) else []
            self._begin([self._record(one) for one in self._interactions])
        except BaseException:
            self._held.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def interactions(self) -> list[Interaction]:
        """What the file holds by now."""
        with self._mutex:
            return list(self._interactions)

    def append(self, interaction: Interaction) -> None:
        """Write an interaction; when this returns it is in the file.

        Raises:
            CassetteError: it cannot be written; the file is as it was.
        """
        record = self._record(interaction)
        with self._mutex:
            if self._file is None:
                raise CassetteError(f"{self._path}: the recording is closed")
            if self._was_replaced():
                raise CassetteError(f"{self._path}: not recorded: another program has replaced the file")
            if self._interactions:
                self._add(record)
            else:
                self._begin([record])
            self._interactions.append(interaction)

    def close(self) -> None:
        """Finish the file; nothing happens when that is done already."""
        self.finish()

    def finish(self, interactions: Sequence[Interaction] | None = None) -> None:
        """Finish the file, with `interactions` in place of those that it holds, if any are given.

        Raises:
            CassetteError: it cannot be written; it stays as it was while the recording ran, and is closed.
        """
        with self._mutex:
            if self._file is None:
                return
            if interactions is not None:
                self._interactions = list(interactions)
            replaced = self._was_replaced()
            self._file.close()
            self._file = None
            with self._held:
                if replaced:
                    beside = self._beside()
                    _write(beside, _finished(beside, self._interactions))
                    raise CassetteError(
                        f"{self._path}: another program has replaced the file; "
                        f"what was recorded is in {beside}"
                    )
                _write(self._path, _finished(self._path, self._interactions))

    def _was_replaced(self) -> bool:
        """Whether the file is another one now, as after an editor has saved it."""
        if self._file is None or self._file.closed:
            return False
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), Path(self._path).stat())
        except OSError:
            return True

    def _beside(self) -> Path:
        """Return a name beside the file that nothing has."""
        path = Path(self._path)
        number = 1
        while (beside := path.with_name(f"{path.stem}.recorded{number}{path.suffix}")).exists():
            number += 1
        return beside

    def _record(self, interaction: Interaction) -> bytes:
        """Return an interaction on one line of ASCII, so that no character can be torn."""
        value = plain(self._path, interaction, self._is_json)
        line = json.dumps if self._is_json else documents.yaml_line
        return line(value).encode() + b"\n"

    def _begin(self, records: list[bytes]) -> None:
        """Replace the file by one with these records."""
        if self._file is not None:
            self._file.close()
        if self._is_json:
            content = _JSON_HEAD.encode() + b",".join(records) + _JSON_TAIL
        elif records:
            content = _YAML_HEAD + b"".join(b"- " + record for record in records)
        else:
            content = b"version: 1\ninteractions: []\n"
        _write(self._path, content)
        self._file = open(os.path.realpath(self._path), "r+b", buffering=0)  # noqa: PTH123, SIM115
        self._end = len(content) - (len(_JSON_TAIL) if self._is_json else 0)

    def _add(self, record: bytes) -> None:
        """Write a record behind the last one.

        In YAML it is a comment at first, which one byte makes an item: a write of one byte is not torn. In
        JSON the brackets behind it are written with it.
        """
        try:
            if self._is_json:
                self._put(self._end, b"," + record + _JSON_TAIL)
                self._end += 1 + len(record)
            else:
                self._put(self._end, b"# " + record)
                self._put(self._end, b"-")
                self._end += 2 + len(record)
        except BaseException as wrong:  # also when a key is pressed: what is torn must not stay behind
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)  # type: ignore[union-attr]
                if self._is_json:
                    self._put(self._end, _JSON_TAIL)
            if isinstance(wrong, OSError):
                raise CassetteError(f"{self._path}: not recorded: {wrong.strerror or wrong}") from None
            raise

    def _put(self, at: int, content: bytes) -> None:
        file: Any = self._file
        file.seek(at)
        view = memoryview(content)
        while view:
            view = view[file.write(view) :]
