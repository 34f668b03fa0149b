"""Interactions as a cassette file has them: vcrpy's mappings, and what is checked of them.

Files are for `cassette_file`.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from memmock import documents, strictjson
from memmock.cassette import Interaction
from memmock.documents import Mistake, shown
from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request, encode_json

if TYPE_CHECKING:
    Place = tuple[str | int, ...]

MOST_VALUES = 100_000
"""How many values a body may hold that was recorded as a value [ours]."""


class CassetteError(MemmockError):
    """A cassette cannot be read or written; the message is one line, with the place and the way out."""


# ---- read


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
TAGS: documents.Tags = (
    (_PYTHON + "str", lambda loader, node: loader.construct_scalar(node)),
    (_PYTHON + "unicode", lambda loader, node: loader.construct_scalar(node)),
    (_PYTHON + "tuple", lambda loader, node: tuple(loader.construct_sequence(node, deep=True))),
    (_PYTHON + "object/new:_io.BytesIO", _bytes_io),
    (_PYTHON + "object/apply:builtins.iter", _chunks),
)


def interactions_of(value: Any) -> list[Interaction]:
    """Return the interactions in the value of a cassette file.

    Raises:
        Mistake: it is not what a cassette holds.
    """
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


# ---- written


def plain(path: object, one: Interaction, is_json: bool, place: Place = ()) -> dict[str, Any]:
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
