"""Record and replay inside the process, for code whose endpoint cannot be configured.

vcrpy's patches stand between the HTTP clients and the network; a `Tape` answers them. What matches, files
and redaction are the tape's; the conversion of messages, threads, and the network itself are dealt with here.
`vcr` is imported when the patches are made: it loads every HTTP client that is installed.
"""

from __future__ import annotations

import contextlib
import http.client
import inspect
import json
import time
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from memmock.cassette import Interaction
from memmock.codings import is_encoded, undone
from memmock.errors import MemmockError
from memmock.guard import Guard, replaced
from memmock.http import JSON_TYPE, Headers, Reply, Request, header


class NotRecorded(MemmockError):
    """A request has no recording, and nothing may be sent; the client under test sees this error."""


class Tape(Protocol):
    """What plays and records. Its methods are called in whatever thread or task a request is made."""

    def play(self, request: Request, uri: str) -> Interaction | None:
        """Return what was recorded for a request; None when that is nothing.

        It is asked once for each request, and what it returns is played. A tape that plays only should raise
        `NotRecorded`, with what it knows of the miss, and note the miss: clients may swallow the error.

        Raises:
            NotRecorded: nothing was recorded, and the request must not be sent.
        """
        ...

    def record(self, request: Request, uri: str, reply: Reply, reason: str, elapsed_ms: float | None) -> None:
        """Take a reply that came from the network, before the client has it.

        The time is None for what aiohttp received on the way of a redirect.
        """
        ...


class Patched(NamedTuple):
    """What can be asked while the patches are in place, and afterwards.

    Attributes:
        leaks: the connections that were refused, as `127.0.0.1:8080`, in their order.
    """

    leaks: list[str]


@contextmanager
def patched(tape: Tape, *, records: bool, allow_hosts: Collection[str] = ()) -> Iterator[Patched]:
    """Let `tape` answer the HTTP clients of this process, in all of its threads.

    With `records`, what the tape does not play is sent, and recorded. Without, it is an error in the client,
    and a guard refuses every other connection that Python code opens: TCP, UDP, and those of uvloop.

    Args:
        tape: what plays and records.
        records: whether requests may be sent.
        allow_hosts: what the guard lets pass: names or addresses, each with or without `:port`. HTTP clients
            that vcrpy patches go to the tape all the same.

    Raises:
        MemmockError: one of `allow_hosts` cannot be read.
    """
    from vcr import patch  # type: ignore[import-untyped]

    guard = Guard(allow_hosts)
    with ExitStack() as stack:
        stack.enter_context(_without_reset(patch))
        for patcher in patch.CassettePatcherBuilder(_Cassette(tape, records)).build():
            stack.enter_context(patcher)
        if not records:
            stack.enter_context(guard.installed())
        yield Patched(guard.leaks)


# ---- vcrpy


class _Cassette:
    """What vcrpy's patches use of a cassette, answered by a tape.

    They ask whether a request can be played, and then for the response. The first answer is kept on vcrpy's
    request, which belongs to one call, so that the two are one decision in every thread.
    """

    _path = ""
    skip_patchers = ()
    custom_patches = ()

    def __init__(self, tape: Tape, records: bool) -> None:
        self.write_protected = not records
        self._tape = tape

    def can_play_response_for(self, asked: Any) -> bool:
        __tracebackhide__ = True
        if not hasattr(asked, "memmock_found"):
            found = self._tape.play(_request(asked), asked.uri)
            if found is None and self.write_protected:
                raise _not_recorded(asked)
            asked.memmock_found, asked.memmock_asked_at = found, time.perf_counter()
        return asked.memmock_found is not None

    def play_response(self, asked: Any) -> dict[str, Any]:
        if not self.can_play_response_for(asked):
            raise _not_recorded(asked)  # aiohttp, on the way of a redirect whose beginning is recorded
        return _vcr_response(asked.memmock_found)

    def append(self, asked: Any, response: Mapping[str, Any]) -> None:
        since = getattr(asked, "memmock_asked_at", None)
        elapsed_ms = None if since is None else (time.perf_counter() - since) * 1000
        reason = _latin1(response["status"]["message"] or "")
        self._tape.record(_request(asked), asked.uri, _reply(response), reason, elapsed_ms)

    def filter_request(self, asked: Any) -> Any:
        return asked

    def find_requests_with_most_matches(self, asked: Any) -> list[tuple[Any, list[str], list[str]]]:
        return [(asked, [], [])]  # aiohttp asks what a redirect leads to: to whatever the tape has for it


def _not_recorded(asked: Any) -> NotRecorded:
    return NotRecorded(f"memmock: {asked.method} {asked.uri} was not recorded, and nothing is sent")


@contextmanager
def _without_reset(patch: Any) -> Iterator[None]:
    """Let vcrpy make real connections without taking its patches away meanwhile.

    vcrpy's stand-in for a connection holds a real one. While that is made or opened, `force_reset` puts the
    real classes back for the whole process, and other threads get past the cassette: not played, not
    recorded. Two such windows that overlap leave the real classes in place until the cassette ends. vcrpy
    needs the window because `http.client.HTTPSConnection.__init__` looks up its own class by name, and the
    name is patched; so do a few others. Those functions are given the real classes to find; then no window
    is needed.
    """
    real = _real_classes(patch)
    names = {name for classes in real.values() for name in classes}
    with ExitStack() as stack:
        for owner in {owner for classes in real.values() for owner in classes.values()}:
            for name, value in list(vars(owner).items()):
                if isinstance(value, types.FunctionType) and names & set(value.__code__.co_names):
                    stack.enter_context(replaced(owner, name, lambda f: _with_real_classes(f, real)))
        stack.enter_context(replaced(patch, "force_reset", lambda _: contextlib.nullcontext))
        yield


def _real_classes(patch: Any) -> dict[str, dict[str, type]]:
    """Return the classes that vcrpy patches in modules, as they were: by module and name."""
    classes: dict[str, dict[str, type]] = {}
    for patcher in patch.reset_patchers():
        target = patcher.getter()
        if inspect.ismodule(target) and isinstance(patcher.new, type):
            classes.setdefault(target.__name__, {})[patcher.attribute] = patcher.new
    return classes


def _with_real_classes(function: types.FunctionType, real: dict[str, dict[str, type]]) -> types.FunctionType:
    """Return a copy of a function that finds the real classes under their names."""
    names = {**function.__globals__, **real.get(function.__module__, {})}
    if names.get("http") is http:  # httplib2 writes http.client.HTTPConnection
        client = types.SimpleNamespace(**{**vars(http.client), **real["http.client"]})
        names["http"] = types.SimpleNamespace(**{**vars(http), "client": client})
    copy = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


# ---- messages


def _request(asked: Any) -> Request:
    """Return vcrpy's request as ours."""
    parts = urlsplit(asked.uri)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = _headers(asked.headers.items())
    body, is_json = _body(asked.body)
    if is_json and header(headers, "Content-Type") is None:
        headers += (("Content-Type", JSON_TYPE),)
    return Request(asked.method, target, headers, body)


def _body(body: Any) -> tuple[bytes, bool]:
    """Return the bytes of whatever a client was given as a body, and whether it is to be sent as JSON."""
    if hasattr(body, "read"):
        body = body.read()
    if isinstance(body, str):
        return body.encode(), False
    if body is None or isinstance(body, bytes | bytearray):
        return bytes(body or b""), False
    if isinstance(body, Iterator) or (isinstance(body, list) and body and isinstance(body[0], bytes)):
        return b"".join(_part(part) for part in body), False
    try:
        return json.dumps(body).encode(), True  # aiohttp's json=, before aiohttp has written it
    except TypeError:
        kind = type(body).__name__
        raise MemmockError(
            f"memmock cannot read a request body of type {kind}: send it as bytes, text or JSON"
        ) from None


def _part(part: str | int | bytes) -> bytes:
    if isinstance(part, str):
        return part.encode()
    return bytes([part]) if isinstance(part, int) else bytes(part)


_SKIPPED = "@@@SKIP_HEADER@@@"  # what urllib3 writes for a header that it must not add


def _headers(pairs: Iterable[tuple[Any, Any]]) -> Headers:
    return tuple(
        (_latin1(name), _latin1(value))
        for name, values in pairs
        for value in (values if isinstance(values, list | tuple) else [values])
        if value != _SKIPPED
    )


def _latin1(value: Any) -> str:
    """Return a name or value as Latin-1 text, whatever a client had for it."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    text = str(value)
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")
    return text


_FRAMING = ("content-length", "transfer-encoding")
_CODING = "content-encoding"


def _reply(response: Mapping[str, Any]) -> Reply:
    """Return vcrpy's response as a reply: without framing, and without a coding that is undone already.

    The headers are sorted by name: http.client's come in an order that differs from run to run.
    """
    received = response["headers"]
    pairs = received.items() if isinstance(received, Mapping) else received
    headers = _headers(sorted(pairs, key=lambda pair: str(pair[0]).lower()))
    body = response["body"].get("string") or b""
    coding = header(headers, _CODING) or ""
    dropped = _FRAMING if is_encoded(body, coding) else (*_FRAMING, _CODING)
    headers = tuple(pair for pair in headers if pair[0].lower() not in dropped)
    return Reply(response["status"]["code"], headers, body)


def _vcr_response(found: Interaction) -> dict[str, Any]:
    """Return a recorded reply as vcrpy's response, its coding undone: only httpx would undo it."""
    reply = found.reply
    body, coding, _ = undone(reply.body, reply.header(_CODING) or "")
    pairs = [pair for pair in reply.headers if pair[0].lower() not in ("transfer-encoding", _CODING)]
    if is_encoded(body, coding):
        pairs.append(("Content-Encoding", coding))
    if body or (found.request.method != "HEAD" and reply.status not in (204, 304)):
        pairs = [pair for pair in pairs if pair[0].lower() not in _FRAMING]
        pairs.append(("Content-Length", str(len(body))))
    spelled: dict[str, str] = {}
    headers: dict[str, list[str]] = {}
    for name, value in pairs:
        headers.setdefault(spelled.setdefault(name.lower(), name), []).append(_Text(value))
    reason = found.reason or http.client.responses.get(reply.status, "")
    status = {"code": reply.status, "message": _Text(reason)}
    return {"status": status, "headers": headers, "body": {"string": body}}


class _Text(str):
    """Text of a header, which is Latin-1 on the wire; the patches would write UTF-8, or ASCII and fail."""

    __slots__ = ()

    def encode(self, encoding: str = "latin-1", errors: str = "strict") -> bytes:
        return super().encode("latin-1", errors)
