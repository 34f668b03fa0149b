"""Recordings that other tools made, read as interactions: cassettes of cassetter, and HAR files.

They are read as strictly as cassettes are. Saving them, and taking secrets out, is for others.
"""

from __future__ import annotations

import base64
import codecs
import re
import stat
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from memmock import documents
from memmock.cassette import Interaction
from memmock.documents import Mistake, dotted, shown
from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request, encode_json, header

if TYPE_CHECKING:
    from os import PathLike

    Place = tuple[str | int, ...]


LARGEST = 512 << 20
"""How many bytes of a file are the most that is read [ours]."""


class Imported(NamedTuple):
    """What a file holds: its interactions, and in words what of it could not be taken."""

    interactions: list[Interaction]
    left_out: list[str]


def read(path: str | PathLike[str]) -> Imported:
    """Return the interactions of a cassette of cassetter (.toml, .yaml) or of a HAR file, in their order.

    Raises:
        MemmockError: the file cannot be read or is none of these.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".har":
        return _read_har(path)
    if suffix == ".toml":
        return _read_toml(path)
    if suffix not in documents.SUFFIXES:
        raise MemmockError(f"{path}: what is converted ends in .yaml, .yml, .json, .toml or .har")
    return documents.parse(path, _text(path), _cassetter, tags=_PLAIN_TAGS)


def is_cassetter(path: str | PathLike[str]) -> bool:
    """Tell whether a YAML file is a cassette of cassetter; False also when it cannot be read."""
    try:
        return documents.parse(path, _text(path), _has_its_form, tags=_PLAIN_TAGS)
    except MemmockError:
        return False


def _has_its_form(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if any(name in value for name in _NOT_HTTP):
        return True
    items = value.get("interactions")
    first = items[0] if isinstance(items, list) and items else None
    reply = first.get("response") if isinstance(first, dict) else None
    return isinstance(reply, dict) and type(reply.get("status")) is int


# ---- files


def _text(path: str | PathLike[str]) -> str:
    """Return the text of a file.

    Raises:
        MemmockError: it cannot be read, is empty, not UTF-8 or too large.
    """
    path = Path(path)
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise MemmockError(f"{path}: not a file")
        if state.st_size > LARGEST:
            size, most = state.st_size >> 20, LARGEST >> 20
            raise MemmockError(f"{path}: {size} MiB are too much, at most {most} MiB are read")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        where = f"byte {wrong.object[wrong.start]:#04x} at offset {wrong.start}"
        raise MemmockError(f"{path}: not UTF-8 ({where})") from None
    except OSError as wrong:
        raise MemmockError(f"{path}: {wrong.strerror or wrong}") from None
    if not text.strip():
        raise MemmockError(f"{path}: the file is empty")
    return text


def _as_written(loader: Any, node: Any) -> Any:
    return loader.construct_scalar(node)


def _unless_time(construct: str) -> Callable[[Any, Any], Any]:
    """Return what makes a number of a node, but leaves `12:30` the text that it is in YAML 1.2."""

    def constructed(loader: Any, node: Any) -> Any:
        return node.value if ":" in str(node.value) else getattr(loader, construct)(node)

    return constructed


_YAML = "tag:yaml.org,2002:"
_PLAIN_TAGS: documents.Tags = (
    (_YAML + "int", _unless_time("construct_yaml_int")),
    (_YAML + "float", _unless_time("construct_yaml_float")),
    (_YAML + "value", _as_written),
    (_YAML + "merge", _as_written),
)
"""Cassetter writes YAML 1.2, in which these are what is written there."""


def _read_har(path: str | PathLike[str]) -> Imported:
    text = _text(path)
    as_json = f"{path}.json"  # by this name it is read as JSON
    try:
        return documents.parse(as_json, text, _har)
    except MemmockError as wrong:
        raise MemmockError(f"{path}{str(wrong).removeprefix(as_json)}") from None


def _read_toml(path: str | PathLike[str]) -> Imported:
    text = _text(path)
    try:
        value = tomllib.loads(text)
    except ValueError as wrong:  # also a number that is too long
        says, line, column = _TOML_PLACE.fullmatch(str(wrong)).groups()  # type: ignore[union-attr]
        where = f":{line}" if line else ""
        column = f" (column {column})" if column else ""
        raise MemmockError(f"{path}{where}: not TOML: {says}{column}") from None
    except RecursionError:
        raise MemmockError(f"{path}: nested too deeply") from None
    try:
        return _cassetter(value)
    except Mistake as wrong:
        what = dotted(wrong.steps).removeprefix(".") or "the file"
        raise MemmockError(f"{path}{_toml_line(text, value, wrong)}: {what} {wrong.says}") from None


_TOML_PLACE = re.compile(r"(.*?)(?: \(at (?:line (\d+), column (\d+)|end of document)\))?", re.DOTALL)
_TOML_ITEM = re.compile(r"^\[\[interactions\]\]", re.MULTILINE)


def _toml_line(text: str, value: Any, mistake: Mistake) -> str:
    """Return where the interaction begins that a mistake is in; nothing when that cannot be told."""
    begins = [found.start() for found in _TOML_ITEM.finditer(text)]
    items = value.get("interactions")
    if len(mistake.steps) < 2 or not isinstance(items, list) or len(begins) != len(items):
        return ""
    number = mistake.steps[1]
    return f":{text.count(chr(10), 0, begins[number]) + 1}" if isinstance(number, int) else ""


# ---- cassetter

_NOT_HTTP = {
    "grpc_interactions": ("gRPC interaction", "gRPC interactions"),
    "ws_interactions": ("WebSocket interaction", "WebSocket interactions"),
    "observed_requests": ("observed request", "observed requests"),
}


def _cassetter(value: Any) -> Imported:
    if not isinstance(value, dict):
        raise Mistake((), f"must be a mapping with `version` and `interactions`, not {shown(value)}")
    if type(value.get("version")) is not int or value["version"] != 1:
        raise Mistake(("version",), f"must be 1, not {shown(value.get('version'))}")
    items = value.get("interactions", [] if any(name in value for name in _NOT_HTTP) else None)
    if not isinstance(items, list):
        raise Mistake(("interactions",), f"must be a list, not {shown(items)}")
    left_out = []
    for name, (one, several) in _NOT_HTTP.items():
        if isinstance(others := value.get(name), list) and others:
            left_out.append(f"{len(others)} {one if len(others) == 1 else several}")
    return Imported([_cassetter_item(item, ("interactions", n)) for n, item in enumerate(items)], left_out)


def _cassetter_item(item: Any, place: Place) -> Interaction:
    item = _mapping(item, place)
    asked, answered = (_mapping(item.get(name), (*place, name)) for name in ("request", "response"))
    request, uri = _request(asked.get("method"), asked.get("uri"), (*place, "request"), "uri")
    body = _cassetter_body(asked, (*place, "request"))
    headers = _cassetter_headers(asked.get("headers"), (*place, "request", "headers"))
    request = request._replace(headers=_with_length(headers, body), body=body)
    status = _status(answered.get("status"), (*place, "response", "status"))
    body = _cassetter_body(answered, (*place, "response"))
    headers = _cassetter_headers(answered.get("headers"), (*place, "response", "headers"))
    reply = Reply(status, _with_length(headers, body), body)
    return Interaction(request, uri, reply, recorded_at=_utc(item.get("recorded_at")))


def _cassetter_body(message: dict[str, Any], place: Place) -> bytes:
    """Return a body: in YAML a mapping of `type` and `content`, in TOML two fields, with JSON as text."""
    if "body_type" in message:
        kind, content, place = message["body_type"], message.get("body_content"), (*place, "body_content")
        if kind == "json":
            return _encoded(_text_of(content, place), place)
    else:
        body = message.get("body") or {"type": "none"}
        body = _mapping(body, (*place, "body"))
        kind, content, place = body.get("type"), body.get("content"), (*place, "body", "content")
        if kind == "json":
            try:
                return encode_json(content)
            except (TypeError, ValueError):
                raise Mistake(place, "holds what JSON cannot carry") from None
    if kind in (None, "none"):
        return b""
    if kind == "text":
        return _encoded(_text_of(content, place), place)
    if kind == "binary":
        try:
            return bytes.fromhex(_text_of(content, place))
        except ValueError:
            raise Mistake(place, "must be hexadecimal digits") from None
    raise Mistake(place[:-1], f"must be of type json, text, binary or none, not {shown(kind)}")


def _cassetter_headers(value: Any, place: Place) -> Headers:
    pairs: list[tuple[str, str]] = []
    for name, values in _mapping({} if value is None else value, place).items():
        if not isinstance(values, list):
            raise Mistake((*place, str(name)), f"must be a list, not {shown(values)}")
        pairs += [_header(name, one, (*place, str(name))) for one in values]
    return tuple(pairs)


# ---- HAR


def _har(value: Any) -> Imported:
    log = value.get("log") if isinstance(value, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise Mistake((), "is no HAR file: it has no list log.entries")
    found, left_out = [], []
    for n, entry in enumerate(entries):
        place: Place = ("log", "entries", n)
        if why := _not_taken(_mapping(entry, place), place):
            left_out.append(f"entry {n + 1}: {why}")
        else:
            found.append(_har_entry(entry, place))
    return Imported(found, left_out)


def _not_taken(entry: dict[str, Any], place: Place) -> str:
    """Return why an entry is no interaction, in words; empty when it is one."""
    url = str(_mapping(entry.get("request"), (*place, "request")).get("url"))
    scheme = url.partition(":")[0].lower()
    if scheme in ("ws", "wss") or "_webSocketMessages" in entry:
        return "a WebSocket"
    if scheme not in ("http", "https"):
        return f"not HTTP, but {scheme[:20]}:" if url.partition(":")[1] else ""
    answered = entry.get("response")
    if answered is None or (isinstance(answered, dict) and answered.get("status") in (0, -1)):
        return "there was no response"
    content = answered.get("content") if isinstance(answered, dict) else None
    size = content.get("size") if isinstance(content, dict) else None
    if isinstance(content, dict) and content.get("text") is None and isinstance(size, int) and size > 0:
        return "the body of its response was not saved"
    return ""


def _har_entry(entry: dict[str, Any], place: Place) -> Interaction:
    asked, answered = entry["request"], _mapping(entry.get("response"), (*place, "response"))
    request, uri = _request(asked.get("method"), asked.get("url"), (*place, "request"), "url")
    headers = _har_headers(asked.get("headers"), (*place, "request", "headers"))
    body = _posted(asked.get("postData"), (*place, "request", "postData"), headers)
    status = _status(answered.get("status"), (*place, "response", "status"))
    request = request._replace(headers=_with_length(_as_saved(headers), body), body=body)
    headers = _har_headers(answered.get("headers"), (*place, "response", "headers"))
    content = answered.get("content")
    body = _har_body({} if content is None else content, (*place, "response", "content"), headers)
    reply = Reply(status, _with_length(_as_saved(headers), body), body)
    reason = answered.get("statusText")
    return Interaction(
        request,
        uri,
        reply,
        reason if isinstance(reason, str) and reason.isprintable() else "",
        recorded_at=_utc(entry.get("startedDateTime")),
        elapsed_ms=_milliseconds(entry.get("time")),
    )


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return round(value, 3)


def _posted(value: Any, place: Place, headers: Headers) -> bytes:
    if value is None:
        return b""
    value = _mapping(value, place)
    params = value.get("params")
    if not value.get("text") and isinstance(params, list) and params:
        each = [item for item in params if isinstance(item, dict)]
        return urlencode([(str(item.get("name")), str(item.get("value") or "")) for item in each]).encode()
    return _har_body(value, place, headers)


def _har_body(content: Any, place: Place, headers: Headers) -> bytes:
    """Return a body that a browser saved as text, decoded from its charset, or in Base64."""
    content = _mapping(content, place)
    if (text := content.get("text")) is None:
        return b""
    text = _text_of(text, (*place, "text"))
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except ValueError:
            raise Mistake((*place, "text"), "must be base64") from None
    found = _CHARSET.search(header(headers, "Content-Type") or str(content.get("mimeType", "")))
    return _encoded(text, (*place, "text"), found[1] if found else "utf-8")


_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)


def _har_headers(value: Any, place: Place) -> Headers:
    if not isinstance(value := [] if value is None else value, list):
        raise Mistake(place, f"must be a list, not {shown(value)}")
    pairs = []
    for n, item in enumerate(value):
        item = _mapping(item, (*place, n))
        name, values = item.get("name"), _text_of(item.get("value"), (*place, n, "value"))
        if isinstance(name, str) and name.startswith(":"):
            continue  # HTTP/2 writes the request line like this
        # some browsers put the values of a repeated header on lines
        pairs += [_header(name, one, (*place, n)) for one in values.split("\n")]
    return tuple(pairs)


def _as_saved(headers: Headers) -> Headers:
    """Return headers without what was true of the body on the wire only."""
    gone = ("content-encoding", "transfer-encoding")
    return tuple(pair for pair in headers if pair[0].lower() not in gone)


# ---- both


def _mapping(value: Any, place: Place) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise Mistake(place, f"must be a mapping, not {shown(value)}")
    return value


def _text_of(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        raise Mistake(place, f"must be text, not {shown(value)}")
    return value


def _encoded(text: str, place: Place, charset: str = "utf-8") -> bytes:
    try:
        if charset != "utf-8" and codecs.lookup(charset)._is_text_encoding:
            return text.encode(charset)
    except (LookupError, UnicodeError):
        pass  # then it was not that charset
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Mistake(place, "holds half of a surrogate pair") from None


def _request(method: Any, uri: Any, place: Place, called: str) -> tuple[Request, str]:
    if not isinstance(method, str) or not _TOKEN.fullmatch(method):
        raise Mistake((*place, "method"), f"must be a method of HTTP, not {shown(method)}")
    try:
        parts = urlsplit(uri) if isinstance(uri, str) and not _UNSENDABLE.search(uri) else None
        usable = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable or parts is None:
        raise Mistake((*place, called), f"must be an absolute address of http or https, not {shown(uri)}")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Request(method, target), uri.partition("#")[0]


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE = re.compile("[\r\n\0\ud800-\udfff]")


def _status(value: Any, place: Place) -> int:
    if type(value) is not int or not 0 < value <= 999:
        raise Mistake(place, f"must be a status of HTTP, not {shown(value)}")
    return value


def _header(name: Any, value: Any, place: Place) -> tuple[str, str]:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise Mistake(place, f"must be the name of a header, not {shown(name)}")
    value = _text_of(value, place)
    if _UNSENDABLE.search(value):
        raise Mistake(place, "holds a line break or NUL, which no header can")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        value = value.encode().decode("latin-1")
    return name, value


def _with_length(headers: Headers, body: bytes) -> Headers:
    """Return headers whose Content-Length, if any, is that of the body; it was that of a packed one."""
    return tuple(
        (name, str(len(body)) if name.lower() == "content-length" else value) for name, value in headers
    )


def _utc(value: Any) -> str:
    """Return a time as RFC 3339 in UTC, to the millisecond; empty when it is none."""
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return ""
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    try:
        return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return ""
