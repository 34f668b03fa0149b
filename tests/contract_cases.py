"""The cases of fixtures/contract, as messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from memmock.http import Headers, Reply, Request, encode_json

_FOLDER = Path(__file__).parent.parent / "fixtures" / "contract"
_REQUEST_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Authorization": "Bearer test-key",
}
_REPLY_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Case:
    """One message, the request it answers if it is a reply, and the rules it breaks."""

    name: str
    message: Any
    broken: list[str]
    to: Request | None = None
    elapsed_s: float | None = None

    def __str__(self) -> str:
        return self.name


def request_cases() -> list[Case]:
    return [Case(given["name"], request_of(given), given["broken"]) for given in _read("requests.yaml")]


def reply_cases() -> list[Case]:
    cases = []
    for given in _read("replies.yaml"):
        request = {"json": given["to"]} if "to" in given else given.get("request")
        reply = Reply(given.get("status", 200), _headers(given, _REPLY_HEADERS), _body(given))
        to = request and request_of(request)
        cases.append(Case(given["name"], reply, given["broken"], to, given.get("elapsed_s")))
    return cases


def request_of(given: dict[str, Any]) -> Request:
    return Request(
        given.get("method", "POST"), "/memory_retrieval", _headers(given, _REQUEST_HEADERS), _body(given)
    )


def _read(name: str) -> Any:
    return yaml.safe_load((_FOLDER / name).read_text("utf-8"))


def _headers(given: dict[str, Any], usual: dict[str, str]) -> Headers:
    values = {**usual, **given.get("headers", {})}
    return tuple(
        (name, item)
        for name, value in values.items()
        if value is not None
        for item in (value if isinstance(value, list) else [value])
    )


def _body(given: dict[str, Any]) -> bytes:
    if "bytes" in given:
        return given["bytes"]
    return given["text"].encode() if "text" in given else encode_json(given["json"])
