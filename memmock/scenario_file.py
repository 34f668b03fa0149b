"""Files with scenarios of one's own: YAML or JSON, checked, with the line of each mistake.

scenarios:
  sleepy:
    summary: Half a second late, in chunks.
    body: {memories: []}
    delivery: {delay_ms: 500, framing: chunked}
    when: {query: 暗号}
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from memmock import documents, strictjson
from memmock.documents import Mistake, shown
from memmock.http import JSON_TYPE, Delivery, Ending, Framing, Headers, Part, Reply, encode_json, header
from memmock.matching import FIELDS
from memmock.scenarios import CATALOGUE, Outcome, Scenario, Stage
from memmock.tool_result import ERROR_CODES

if TYPE_CHECKING:
    from os import PathLike

Steps = tuple[str | int, ...]
"""What leads from the top of a file to a place in it."""


@dataclass(frozen=True)
class OwnScenarios:
    """Scenarios by name; those in `always` are played, from the start, to the calls that it says."""

    scenarios: dict[str, Scenario] = field(default_factory=dict)
    always: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def read(path: str | PathLike[str]) -> OwnScenarios:
    """Return the scenarios in a file.

    Raises:
        MemmockError: the file cannot be read, or something in it is wrong; the message has the line.
    """
    return documents.load(path, _own_scenarios, "a file of scenarios")


def _own_scenarios(value: Any) -> OwnScenarios:
    named = _mapping(_mapping(value, (), ("scenarios",)).get("scenarios"), ("scenarios",))
    own = OwnScenarios()
    taken = {*CATALOGUE, *(alias for scenario in CATALOGUE.values() for alias in scenario.aliases)}
    for name, described in named.items():
        steps: Steps = ("scenarios", name)
        if not isinstance(name, str) or not re.fullmatch(r"[^\s()=,*]+", name):
            raise Mistake(
                ("scenarios",), f"has {shown(name)} as a name; a name is text without space ( ) = , *"
            )
        if name.lower().replace("_", "-") in taken:
            raise Mistake(steps, "is a scenario of memmock's own; give yours another name")
        fields = _mapping(described, steps, _FIELDS)
        _check_size(fields, steps)
        if "when" in fields:
            own.always[name] = _mapping(fields["when"], (*steps, "when"), FIELDS)
            if not own.always[name]:
                raise Mistake(
                    (*steps, "when"), "is empty; leave it out for a scenario that is chosen by name"
                )
        own.scenarios[name] = Scenario.own(
            name,
            _made(fields, steps),
            _text(fields.get("summary", ""), (*steps, "summary")),
            tuple(
                _choice(item, (*steps, "outcomes", n), _OUTCOMES)
                for n, item in enumerate(_list(fields.get("outcomes", []), (*steps, "outcomes")))
            ),
        )
    return own


def described(reply: Reply) -> dict[str, Any]:
    """Return the fields of a scenario that plays this reply, for a file.

    Read back, it is an equal reply, but for the order of headers of different names, and for parts of its
    delivery that mean nothing.

    Raises:
        ValueError: these fields cannot tell it: it has no Content-Type, a header that is not UTF-8, or a
            status that no reply has. Its bytes can be told, as `wire`.
    """
    delivery = reply.delivery
    sent = _described_delivery(delivery)
    if delivery.wire is not None:
        fields: dict[str, Any] = {"wire_base64": base64.b64encode(delivery.wire).decode()}
        if not delivery.cut:
            sent["ending"] = delivery.ending
    else:
        if reply.header("Content-Type") is None or not 200 <= reply.status <= 999:
            raise ValueError("a scenario of a file has a Content-Type, and a status from 200 to 999")
        fields = {"status": reply.status, "headers": _described_headers(reply.headers)}
        fields |= _described_body(reply.body)
    return {**fields, **({"delivery": sent} if sent else {})}


def _described_delivery(delivery: Delivery) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    for name in ("delay_s", "every_s", "end_s"):
        if (seconds := getattr(delivery, name)) and (name != "every_s" or delivery.slice_bytes):
            ms = round(seconds * 1000, 6)
            sent[f"{name.removesuffix('_s')}_ms"] = int(ms) if ms == int(ms) else ms
    if delivery.interim:
        sent["interim"] = [
            {"status": status, **({"headers": _described_headers(headers)} if headers else {})}
            for status, headers in delivery.interim
        ]
    if delivery.wire is None and delivery.framing != "length":
        sent["framing"] = delivery.framing
        if delivery.framing == "chunked":
            sent["chunk_bytes"] = delivery.chunk_bytes
    if delivery.slice_bytes:
        sent |= {"slice_bytes": delivery.slice_bytes, "sliced": delivery.sliced}
    if delivery.cut_head is not None:
        sent["cut_head"] = delivery.cut_head
    elif delivery.cut_body is not None:
        sent["cut_body"] = delivery.cut_body
    if delivery.endless:
        sent["endless"] = True
        if delivery.wire is None:
            sent["framing"] = delivery.framing
    if delivery.ending != "keep" or (delivery.framing == "close" and not delivery.cut):
        sent["ending"] = delivery.ending
    return sent


def _described_headers(headers: Headers) -> dict[str, str | list[str]]:
    named: dict[str, list[str]] = {}
    for name, value in headers:
        if not _HEADER.fullmatch(name) or name.lower() in _FRAMED or re.search(r"[\r\n\0]", value):
            raise ValueError(f"a scenario of a file cannot have the header {name!r}")
        named.setdefault(name, []).append(value.encode("latin-1").decode())
    return {name: values[0] if len(values) == 1 else values for name, values in named.items()}


def _described_body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMED = ("content-length", "transfer-encoding")
_FIELDS = (
    "summary",
    "status",
    "headers",
    "body",
    "body_base64",
    "wire",
    "wire_base64",
    "delivery",
    "when",
    "outcomes",
)
_OUTCOMES: tuple[Outcome, ...] = ("ok", *ERROR_CODES)
_BODIES = ("body", "body_base64", "wire", "wire_base64")


_LONG = 10**40
_MOST_BYTES = 16 * 1024 * 1024


def _check_size(described: Any, steps: Steps) -> None:
    """Refuse what is small in YAML and grows: an alias stands for a copy."""
    size = 0
    for _, value in strictjson.walk(described):
        size += len(value) + 8 if isinstance(value, str | bytes) else 8
        if size > _MOST_BYTES:
            raise Mistake(steps, f"is larger than {_MOST_BYTES:,} bytes, once its aliases are written out")


def _made(fields: Mapping[str, Any], steps: Steps) -> Callable[[Stage], Reply]:
    """Return what makes the reply that the fields of a scenario describe."""
    status = _integer(fields.get("status", 200), (*steps, "status"), 100, 999)
    headers = _headers(fields.get("headers", {}), (*steps, "headers"))
    given = [name for name in _BODIES if name in fields]
    wire = any(name.startswith("wire") for name in given)  # most likely no HTTP: nothing can follow it
    delivery = _delivery(fields.get("delivery", {}), (*steps, "delivery"), closes=wire)
    if len(given) > 1:
        raise Mistake((*steps, given[1]), f"cannot be there beside {given[0]}")
    if not given:  # the honest answer, delivered in another way

        def honest(stage: Stage) -> Reply:
            reply = stage.answer()
            own = {name.lower() for name, _ in headers}
            kept = tuple((name, value) for name, value in reply.headers if name.lower() not in own)
            return Reply(status, (*kept, *headers), reply.body, delivery)

        return honest
    body, content_type = _body(fields[given[0]], (*steps, given[0]), given[0])
    if given[0].startswith("wire"):
        if unused := {"status", "headers"} & fields.keys():
            raise Mistake((*steps, min(unused)), f"cannot be there beside {given[0]}, which has it all")
        raw = Reply.raw(body)
        return lambda stage: raw._replace(delivery=delivery._replace(wire=body))
    if header(headers, "Content-Type") is None:
        headers = (("Content-Type", content_type), *headers)
    reply = Reply(status, headers, body, delivery)
    return lambda stage: reply


def _body(value: Any, steps: Steps, name: str) -> tuple[bytes, str]:
    """Return a body as bytes, and what it is."""
    if name.endswith("base64"):
        try:
            text = "".join(_text(value, steps).split())
            return base64.b64decode(text, validate=True), "application/octet-stream"
        except ValueError:
            raise Mistake(steps, "is not base64") from None
    if isinstance(value, bytes):  # !!binary
        return value, "application/octet-stream"
    if name == "wire" or isinstance(value, str):
        return _text(value, steps).encode(errors="surrogatepass"), "text/plain; charset=utf-8"
    try:
        return encode_json(value), JSON_TYPE
    except (TypeError, ValueError) as error:
        raise Mistake(steps, f"cannot be written as JSON: {error}") from None


def _headers(value: Any, steps: Steps) -> Headers:
    headers = []
    for name, content in _mapping(value, steps).items():
        place = (*steps, name)
        if not isinstance(name, str) or not _HEADER.fullmatch(name):
            raise Mistake(steps, f"has {shown(name)}, which is no name of a header")
        if name.lower() in _FRAMED:
            raise Mistake(place, "is added by the framing; for a wrong one, write the reply out as `wire`")
        for n, item in enumerate(content if isinstance(content, list) else [content]):
            where = (*place, n) if isinstance(content, list) else place
            if isinstance(item, int | float) and not isinstance(item, bool):
                if abs(item) >= _LONG:
                    raise Mistake(where, "is too long for a number; write it in quotes")
                item = str(item)
            text = _text(item, where)
            if re.search(r"[\r\n\0]", text):
                raise Mistake(where, "holds a line break; for a broken head, write the reply out as `wire`")
            headers.append((name, text.encode(errors="surrogatepass").decode("latin-1")))
    return tuple(headers)


def _delivery(value: Any, steps: Steps, *, closes: bool) -> Delivery:
    fields = _mapping(value, steps, _DELIVERY)
    changes: dict[str, Any] = {}
    for name, item in fields.items():
        place = (*steps, name)
        if name.endswith("_ms"):
            changes[f"{name.removesuffix('_ms')}_s"] = _number(item, place) / 1000
        elif name in _CHOICES:
            changes[name] = _choice(item, place, _CHOICES[name])
        elif name == "endless":
            changes[name] = _flag(item, place)
        elif name == "interim":
            changes[name] = tuple(_interim(each, (*place, n)) for n, each in enumerate(_list(item, place)))
        else:
            changes[name] = _integer(item, place, 0 if name.startswith("cut") else 1, 1_000_000_000)
    for name, other in (("chunk_bytes", "framing"), ("sliced", "slice_bytes")):
        if name in changes and other not in changes:
            raise Mistake((*steps, name), f"means nothing without {other}")
    if {"cut_head", "cut_body"} <= changes.keys():
        raise Mistake((*steps, "cut_body"), "means nothing beside cut_head: nothing is sent after that")
    if "every_s" in changes and "slice_bytes" not in changes:
        raise Mistake((*steps, "every_ms"), "means nothing without slice_bytes")
    if changes.get("ending") == "keep" and {"cut_head", "cut_body"} & changes.keys():
        raise Mistake(
            (*steps, "ending"), "cannot be keep after a cut, as no other reply can follow: it may be hang"
        )
    if changes.get("endless"):
        changes.setdefault("framing", "close")
    if closes or {"cut_head", "cut_body"} & changes.keys() or changes.get("framing") == "close":
        changes.setdefault("ending", "close")
    return Delivery()._replace(**changes)


_CHOICES: dict[str, tuple[str, ...]] = {
    "framing": get_args(Framing),
    "sliced": get_args(Part),
    "ending": get_args(Ending),
}
_DELIVERY = (
    "delay_ms", "interim", "framing", "chunk_bytes", "slice_bytes", "every_ms", "sliced", "cut_head",
    "cut_body", "endless", "ending", "end_ms",
)  # fmt: skip


def _interim(value: Any, steps: Steps) -> tuple[int, Headers]:
    fields = _mapping(value, steps, ("status", "headers"))
    status = _integer(fields.get("status"), (*steps, "status"), 100, 199)
    return status, _headers(fields.get("headers", {}), (*steps, "headers"))


# ---- single values


def _mapping(value: Any, steps: Steps, known: Collection[str] = ()) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Mistake(steps, f"must be a mapping, not {shown(value)}")
    for name in value:
        if known and name not in known:
            raise Mistake(steps, f"has no field {shown(name)}; its fields are {', '.join(known)}")
    return value


def _list(value: Any, steps: Steps) -> list[Any]:
    if not isinstance(value, list):
        raise Mistake(steps, f"must be a list, not {shown(value)}")
    return value


def _text(value: Any, steps: Steps) -> str:
    if not isinstance(value, str):
        raise Mistake(steps, f"must be text, not {shown(value)}")
    return value


def _flag(value: Any, steps: Steps) -> bool:
    if not isinstance(value, bool):
        raise Mistake(steps, f"must be true or false, not {shown(value)}")
    return value


def _choice(value: Any, steps: Steps, choices: Collection[Any]) -> Any:
    if value not in choices:
        raise Mistake(steps, f"must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def _integer(value: Any, steps: Steps, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Mistake(steps, f"must be an integer from {least} to {most:,}, not {shown(value)}")
    return value


def _number(value: Any, steps: Steps) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_MS:
        raise Mistake(steps, f"must be a number of milliseconds from 0 to {_MOST_MS:,}, not {shown(value)}")
    return value


_MOST_MS = 86_400_000
