"""Cassette files: read whatever vcrpy wrote, save what vcrpy reads, append while a recording runs.

The format is vcrpy's, version 1, in YAML or JSON. What vcrpy has no field for is in the key `memmock` of an
interaction, beside its request and response; vcrpy passes over it. A file is only ever replaced whole, or
appended to so that it can be read at every moment. One process at a time writes to a file.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from memmock import documents, strictjson
from memmock.cassette import Interaction
from memmock.documents import Mistake, shown
from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request, encode_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import FileIO

    Place = tuple[str | int, ...]

LARGEST = 512 << 20
"""How many bytes of a cassette are the most that is read [ours]."""

MOST_VALUES = 100_000
"""How many values a body may hold that was recorded as a value [ours]."""

LOCK_WAIT_S = 10.0
"""How long a save waits for another process that is saving the same file [ours]."""


class CassetteError(MemmockError):
    """A cassette cannot be read or written; the message is one line, with the place and the way out."""


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
        return documents.parse(path, text, _interactions, CassetteError, _TAGS)
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


def _bytes_io(loader: Any, node: Any) -> bytes:
    """Return the content of a body that vcrpy wrote as a pickled `BytesIO`."""
    state = loader.construct_mapping(node, deep=True).get("state") or (b"",)
    return _raw(state[0])


def _chunks(loader: Any, node: Any) -> bytes:
    """Return the content of a body that was sent in chunks, which vcrpy wrote as an iterator."""
    args: Any = loader.construct_mapping(node, deep=True).get("args") or ([],)
    if isinstance(args[0], str | bytes):
        return _raw(args[0])
    return b"".join(_raw(chunk) for chunk in args[0])


def _raw(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(memoryview(value))


_PYTHON = "tag:yaml.org,2002:python/"
_TAGS: documents.Tags = (
    (_PYTHON + "str", lambda loader, node: loader.construct_scalar(node)),
    (_PYTHON + "unicode", lambda loader, node: loader.construct_scalar(node)),
    (_PYTHON + "tuple", lambda loader, node: tuple(loader.construct_sequence(node, deep=True))),
    (_PYTHON + "object/new:_io.BytesIO", _bytes_io),
    (_PYTHON + "object/apply:builtins.iter", _chunks),
)


def _interactions(value: Any) -> list[Interaction]:
    if isinstance(value, list) and value and isinstance(value[0], dict) and "request" in value[0]:
        raise Mistake((), "is a cassette of vcrpy before 1.0: record it again, or convert it with "
                          "`python -m vcr.migration`")  # fmt: skip
    if not isinstance(value, dict):
        raise Mistake((), f"must be a mapping with `interactions` and `version`, not {shown(value)}")
    if value.get("version") is None:
        raise Mistake((), "has no `version: 1` at its end")
    if type(value["version"]) is not int or value["version"] != 1:
        raise Mistake(("version",), f"must be 1, not {shown(value['version'])}")
    if not isinstance(found := value.get("interactions"), list):
        raise Mistake(("interactions",), f"must be a list, not {shown(found)}")
    return [_interaction(item, ("interactions", number)) for number, item in enumerate(found)]


def _interaction(item: Any, place: Place) -> Interaction:
    item = _mapping(item, place)
    request, uri = _request(item.get("request"), (*place, "request"))
    reply, reason = _reply(item.get("response"), (*place, "response"))
    return Interaction(request, uri, reply, reason, *_extras(item.get("memmock")))


def _request(value: Any, place: Place) -> tuple[Request, str]:
    value = _mapping(value, place)
    if not isinstance(method := value.get("method"), str) or not _TOKEN.fullmatch(method):
        raise Mistake((*place, "method"), f"must be a method of HTTP, not {shown(method)}")
    uri = value.get("uri")
    if not isinstance(uri, str) or not (match := _URI.fullmatch(uri)) or _UNSENDABLE.search(uri):
        raise Mistake((*place, "uri"), f"must be an absolute address of http or https, not {shown(uri)}")
    target = match[1] if match[1].startswith("/") else f"/{match[1]}"
    headers = _headers(value.get("headers"), (*place, "headers"))
    body = value.get("body")
    is_value = isinstance(body, list | tuple | int | float)
    if is_value or (isinstance(body, dict) and body.keys() != {"base64_string"}):
        content = _encoded(body, (*place, "body"))
    else:
        content = _body(body, (*place, "body"))
    return Request(method, target, headers, content), uri


def _reply(value: Any, place: Place) -> tuple[Reply, str]:
    value = _mapping(value, place)
    headers = _headers(value.get("headers"), (*place, "headers"))
    if "status_code" in value:  # as vcrpy before 6 wrote what httpx received
        code, reason = value["status_code"], None
        code_place: Place = (*place, "status_code")
        body = _body(value.get("content"), (*place, "content"))
    else:
        status = _mapping(value.get("status"), (*place, "status"))
        code, reason = status.get("code"), status.get("message")
        code_place = (*place, "status", "code")
        body = _reply_body(value.get("body"), (*place, "body"))
    if type(code) is not int or not 200 <= code <= 999:
        raise Mistake(code_place, f"must be a status of HTTP, not {shown(code)}")
    reason_place = (*place, "status", "message")
    if reason is not None and not isinstance(reason, str):
        raise Mistake(reason_place, f"must be text, not {shown(reason)}")
    return Reply(code, headers, body), _sendable(reason or "", reason_place)


def _reply_body(value: Any, place: Place) -> bytes:
    if isinstance(value, dict) and "string" in value:
        return _body(value["string"], (*place, "string"))
    return _body(value, place)


def _body(value: Any, place: Place) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise Mistake(place, "holds half of a surrogate pair") from None
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    if isinstance(value, dict) and isinstance(text := value.get("base64_string"), str):
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise Mistake((*place, "base64_string"), "must be base64") from None
    raise Mistake(place, f"must be text, binary or null, not {shown(value)}")


def _encoded(value: Any, place: Place) -> bytes:
    """Return a body that vcrpy recorded as a value, before the client made JSON of it."""
    # a few lines of aliases stand for more values than any memory holds
    if any(number == MOST_VALUES for number, _ in enumerate(strictjson.walk(value))):
        raise Mistake(place, f"holds more than {MOST_VALUES:,} values")
    try:
        return encode_json(value)
    except (TypeError, ValueError):
        raise Mistake(place, "holds what JSON cannot carry") from None


def _headers(value: Any, place: Place) -> Headers:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise Mistake(place, f"must be a mapping, not {shown(value)}")
    found: list[tuple[str, str]] = []
    for name, values in value.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise Mistake((*place, str(name)), "is no name of a header")
        for one in values if isinstance(values, list | tuple) else (values,):
            if isinstance(one, bytes):
                one = one.decode("latin-1")
            elif not isinstance(one, str):
                raise Mistake((*place, name), f"must be text, not {shown(one)}: put it in quotes")
            found.append((name, _sendable(one, (*place, name))))
    return tuple(found)


def _sendable(text: str, place: Place) -> str:
    if _UNSENDABLE.search(text):
        raise Mistake(place, "holds a line break, NUL or half of a surrogate pair, which cannot be sent")
    return _latin_1(text)


def _latin_1(text: str) -> str:
    """Return text as the wire carries it: what Latin-1 has no letters for goes as UTF-8."""
    return text if text.isascii() or _LATIN_1.fullmatch(text) else text.encode().decode("latin-1")


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,999}")  # YAML has no longer keys on a line
_URI = re.compile(r"https?://[^/?#]+([^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_LATIN_1 = re.compile("[\0-\xff]*")
_UNSENDABLE = re.compile("[\r\n\0\ud800-\udfff]")


def _mapping(value: Any, place: Place) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise Mistake(place, f"must be a mapping, not {shown(value)}")
    return value


class _Extras(NamedTuple):
    recorded_at: str = ""
    elapsed_ms: float | None = None
    violations: tuple[str, ...] = ()


def _extras(value: Any) -> _Extras:
    """Return what memmock added to an interaction; what somebody made of it since is passed over."""
    if not isinstance(value, dict):
        return _Extras()
    at, elapsed, broken = (value.get(name) for name in _Extras._fields)
    if not isinstance(elapsed, int | float) or isinstance(elapsed, bool) or not 0 <= elapsed < 1e15:
        elapsed = None
    codes = [code for code in broken if _is_line(code)] if isinstance(broken, list) else []
    return _Extras(str(at) if _is_line(at) else "", elapsed, tuple(codes))


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and not _UNSENDABLE.search(value)


# ---- writing


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
    items = [_plain(path, one, is_json, ("interactions", n)) for n, one in enumerate(interactions)]
    write = documents.json_text if is_json else documents.yaml_text
    return write({"interactions": items, "version": 1}).encode()


def _is_json(path: str | os.PathLike[str]) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix not in documents.SUFFIXES:
        raise CassetteError(f"{path}: a cassette ends in .yaml, .yml or .json")
    return suffix == ".json"


def _plain(path: object, one: Interaction, is_json: bool, place: Place = ()) -> dict[str, Any]:
    """Return an interaction as vcrpy's mapping, its keys in order; only one that can be read again."""
    content = _as_json if is_json else _as_yaml
    body = content(one.reply.body)
    value: dict[str, Any] = {
        "request": {
            "body": content(one.request.body) if one.request.body else None,
            "headers": _grouped(one.request.headers),
            "method": one.request.method,
            "uri": one.uri,
        },
        "response": {
            "body": body if isinstance(body, dict) else {"string": body},
            "headers": _grouped(one.reply.headers),
            "status": {"code": one.reply.status, "message": one.reason},
        },
    }
    if kept := _kept(one):
        value["memmock"] = kept
    try:
        _interaction(value, place)
    except Mistake as wrong:
        what = documents.dotted(wrong.steps).removeprefix(".")
        raise CassetteError(f"{path}: not saved: {what} {wrong.says}") from None
    return value


def _kept(one: Interaction) -> dict[str, Any]:
    """Return what vcrpy has no field for."""
    elapsed_ms = None if one.elapsed_ms is None else round(one.elapsed_ms, 3)
    extras = _extras({**one._asdict(), "elapsed_ms": elapsed_ms, "violations": list(one.violations)})
    found = {"elapsed_ms": extras.elapsed_ms, "recorded_at": extras.recorded_at}
    found = {name: value for name, value in found.items() if value not in (None, "")}
    return found | ({"violations": list(extras.violations)} if extras.violations else {})


def _as_yaml(body: bytes) -> Any:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _as_json(body: bytes) -> Any:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64_string": base64.b64encode(body).decode()}


def _grouped(headers: Headers) -> dict[str, list[str]]:
    """Return headers by name, in the order of names; one name in several spellings is one name."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), (name, []))[1].append(value)
    return dict(sorted(found.values()))


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
        value = _plain(self._path, interaction, self._is_json)
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
