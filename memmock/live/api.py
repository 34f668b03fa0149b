"""The live service's own API, as far as memory retrieval needs it, and the retrieval on demand.

`POST /live/v1/lives` and the two reads of it answer in the vendor's form, as the live service does.
`POST /__memmock__/lives/{id}/retrieve` makes a request to wherever a session points, so it belongs to the
control API: its rules of who may use it hold, and its form of errors.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from memmock import strictjson
from memmock.admin import PREFIX
from memmock.admin.gate import PRIVATE, Gate, is_local
from memmock.contract import MEMORY_TYPES, Retrieval
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Delivery, Handler, Headers, How, Reply, Request, Sent
from memmock.journal import Journal
from memmock.live.retrieved import Retrieved, aretrieve
from memmock.live.sessions import Lives, NoSuchLiveError, RefusedError, mask_for
from memmock.strictjson import shortened

LIVES_PATH = "/live/v1/lives"
"""Where live sessions are created and read [ref]."""
DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 100
"""How many sessions a page of the list has [ours]."""

_CONTROL = f"{PREFIX}lives"


def retrieve_path(live_id: str) -> str:
    """Return where a retrieval of a session is asked for."""
    return f"{_CONTROL}/{live_id}/retrieve"


_LARGE_BYTES = 16 * 1024
"""A body over this is read in a thread, since it would keep the other clients waiting."""
_REASONS = {400: "BAD_REQUEST", 403: "FORBIDDEN", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}


class Live:
    """Answers for `lives`, and passes every other request on to `other`, or says that nothing is there.

    Retrievals are made for clients on this machine only. `host` is where the server listens: when others may
    reach it there, a `token` is needed, and one that is given is always asked for. `pages` answers first what
    is under the control API's prefix, when it has an answer: the inspector's page and what it asks for.

    `journal` has the requests that were answered here, without headers and secrets; `retrievals`, if there is
    one, the calls that were made to providers, as they were on the wire.

    Raises:
        MemmockError: the token is empty, or cannot be sent in a header.
    """

    def __init__(
        self,
        lives: Lives,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        other: Handler | None = None,
        retrievals: Journal | None = None,
        pages: Callable[[Request, Gate], Reply | Awaitable[Reply] | None] = lambda *_: None,
    ) -> None:
        self.lives = lives
        self.journal = Journal()
        self.retrievals = retrievals
        self._gate = Gate.of(host, token)
        self._other = other
        self._pages = pages

    def __call__(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer a request for a live session; let `other` answer what is for none."""
        received_at, start = time.time(), time.perf_counter()
        path = request.path
        if path == LIVES_PATH or path.startswith(f"{LIVES_PATH}/"):
            if (why := self._unwanted(request)) is not None:
                return self._noted(request, _refused(403, why), received_at, start)
            if len(request.body) > _LARGE_BYTES:
                answer = asyncio.to_thread(self._vendor, request, path)
                return self._later(request, answer, received_at, start)
            return self._noted(request, self._vendor(request, path), received_at, start)
        if path == _CONTROL or path.startswith(f"{_CONTROL}/"):
            reply = self._gate.refusal(request) or self._retrieval(request, path)
            if isinstance(reply, Reply):
                return self._noted(request, reply, received_at, start)
            return self._later(request, reply, received_at, start)
        under_prefix = path == PREFIX[:-1] or path.startswith(PREFIX)
        if under_prefix and (paged := self._pages(request, self._gate)) is not None:
            return paged
        if self._other is not None:
            return self._other(request)
        message = f"nothing is here; live sessions are at {LIVES_PATH}"
        return self._noted(request, _refused(404, message), received_at, start)

    async def _later(
        self, request: Request, reply: Awaitable[Reply], received_at: float, start: float
    ) -> Reply:
        return self._noted(request, await reply, received_at, start)

    def _noted(self, request: Request, reply: Reply, received_at: float, start: float) -> Reply:
        kept = Request(request.method, request.path, client=request.client, connection=request.connection)
        shown = reply if request.method == "POST" or reply.status != 200 else reply._replace(body=b"")
        self.journal.add(kept, shown, received_at, time.perf_counter() - start)
        return reply._replace(headers=(*reply.headers, *PRIVATE))

    # ---- the live service's API

    def _unwanted(self, request: Request) -> str | None:
        """Return why a request is not let in: what a page of another origin can make a browser send."""
        origin, own = request.header("Origin"), f"http://{request.header('Host')}"
        if origin is not None and origin != own:
            return f"a page of {shortened(origin)} cannot use the live sessions at {shortened(own)}"
        site = request.header("Sec-Fetch-Site")
        if site is not None and site not in ("same-origin", "none"):
            return (
                f"a page of another origin cannot use the live sessions (Sec-Fetch-Site: {shortened(site)})"
            )
        if not is_local(self._gate.host):  # others may reach it, by whatever name
            return None
        refusal = self._gate.refusal(request._replace(method="GET"), proof=False)
        return None if refusal is None else str(strictjson.parse(refusal.body)["error"]["message"])

    def _vendor(self, request: Request, path: str) -> Reply:
        live_id = path[len(LIVES_PATH) + 1 :] if path != LIVES_PATH else None
        allowed = ("GET",) if live_id is not None else ("POST", "GET")
        if request.method not in allowed:
            message = f"{path[:100]} takes {' and '.join(allowed)}, not {request.method}"
            return _refused(405, message, headers=(("Allow", ", ".join(allowed)),))
        try:
            if live_id is not None:
                body = b'{"live":' + self.lives.get(live_id).to_json() + b"}"
                return Reply(200, (("Content-Type", JSON_TYPE),), body)
            return self._created(request) if request.method == "POST" else self._page(request)
        except NoSuchLiveError as error:
            return _refused(404, str(error))
        except RefusedError as error:
            return _refused(400, str(error), error.mistakes)

    def _created(self, request: Request) -> Reply:
        try:
            session = self.lives.create(_object(request.body))
        except ValueError as error:
            return _refused(400, str(error))
        return Reply.json({"live": session.summary(), "rtc": session.rtc()})

    def _page(self, request: Request) -> Reply:
        given = dict(parse_qsl(request.target.partition("?")[2], keep_blank_values=True))
        size, token = given.pop("page_size", str(DEFAULT_PAGE_SIZE)), given.pop("page_token", "")
        mistakes = dict.fromkeys(given, "is not a parameter of the list; it has page_size and page_token")
        if not re.fullmatch("0*[1-9][0-9]{0,2}", size) or int(size) > MAX_PAGE_SIZE:
            mistakes["page_size"] = f"must be an integer from 1 to {MAX_PAGE_SIZE}, not {shortened(size)}"
        if token and not self.lives.created(token):
            mistakes["page_token"] = "must be the next_page_token of another page"
        if mistakes:
            raise RefusedError(mistakes)
        found, following = self.lives.page(int(size), token)
        return Reply.json(
            {
                "lives": [each.summary() | {"created_at": str(each.created_at)} for each in found],
                "next_page_token": following,
                "dropped": self.lives.dropped,
            }
        )

    # ---- a retrieval on demand

    def _retrieval(self, request: Request, path: str) -> Reply | Awaitable[Reply]:
        live_id, slash, what = path[len(_CONTROL) + 1 :].partition("/")
        if not slash or what != "retrieve":
            return Reply.error(404, "not_found", f"the control API has {_CONTROL}/{{id}}/retrieve for lives")
        if request.method != "POST":
            message = f"retrieve takes POST, not {request.method}"
            return Reply.error(405, "method_not_allowed", message, (("Allow", "POST"),))
        try:
            session = self.lives.get(live_id)
            config = session.settings
            retrieval = _retrieval(_object(request.body), live_id)
        except NoSuchLiveError as error:
            return Reply.error(404, "not_found", str(error))
        except MemmockError as error:
            return Reply.error(409, "not_enabled", str(error))
        except ValueError as error:
            return Reply.error(400, "invalid_request", str(error))

        def shown(retrieved: Retrieved) -> Reply:
            return Reply.json(retrieved.to_json(mask_for(config.authorization)))

        async def made() -> Reply:
            started_at = time.time()
            retrieved = await aretrieve(config, retrieval)
            if self.retrievals is not None:
                _note(self.retrievals, retrieved, started_at)
            return await asyncio.to_thread(shown, retrieved)

        return made()


_CUT_SHORT: dict[str, How] = {
    "timeout": "client closed",
    "response_too_large": "client closed",
    "connection_failed": "closed",
}
"""Who ended a call before its reply was complete, by the error that it came to."""


def _note(journal: Journal, retrieved: Retrieved, started_at: float) -> None:
    """Write a call to a provider down, with how it ended when that was before its end."""
    exchange = retrieved.exchange
    how = None if retrieved.error is None else _CUT_SHORT.get(retrieved.error.code)
    reply = exchange.reply or Reply(0)
    if how is not None:
        wire = b"" if exchange.reply is None else _incomplete(reply)
        reply = reply._replace(delivery=Delivery(wire=wire, ending="close"))
    timeout_ms = retrieved.config.timeout_ms
    call = journal.add(exchange.request, reply, started_at, exchange.elapsed_s, timeout_ms)
    if how is not None:
        journal.end(call, Sent(how, len(reply.delivery.wire or b""), exchange.elapsed_s))


def _incomplete(reply: Reply) -> bytes:
    """Return what came of a reply, as bytes that are still to be continued."""
    length = reply.header("Content-Length")
    framing = ("transfer-encoding",) if length else ("transfer-encoding", "content-length")
    lines = [f"HTTP/1.1 {reply.status} "]
    lines += [f"{name}: {value}" for name, value in reply.headers if name.lower() not in framing]
    if not length:
        lines.append(f"Content-Length: {len(reply.body) + 1}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body


def _refused(
    status: int, message: str, metadata: dict[str, str] | None = None, headers: Headers = ()
) -> Reply:
    """Return an error in the vendor's form [ref]."""
    error = {"code": status, "reason": _REASONS[status], "message": message, "metadata": metadata or {}}
    return Reply.json(error, status, headers)


def _object(body: bytes) -> dict[str, Any]:
    """Return the object of a body.

    Raises:
        ValueError: it is none.
    """
    try:
        given = strictjson.parse(body)
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError(f"the body must be an object, not {shortened(given)}")
    return given


_FIELDS = ("query", "reason", "memory_types", "time_hint", "max_results")


def _retrieval(given: dict[str, Any], live_id: str) -> Retrieval:
    """Return what is to be retrieved; null is as absent.

    Raises:
        ValueError: the fields are not those of a retrieval; the message names all mistakes.
    """
    given = {name: value for name, value in given.items() if value is not None}
    mistakes = [
        f"a retrieval has no field {shortened(name)}; its fields are {', '.join(_FIELDS)}"
        for name in given
        if name not in _FIELDS
    ]
    if not isinstance(query := given.get("query"), str) or not query:
        mistakes.append("query must be a string that is not empty")
    mistakes += [
        f"{name} must be a string, not {shortened(given[name])}"
        for name in ("reason", "time_hint")
        if not isinstance(given.get(name, ""), str)
    ]
    kinds = given.get("memory_types", [])
    if not isinstance(kinds, list) or not all(kind in MEMORY_TYPES for kind in kinds):
        mistakes.append(f"memory_types must be an array of {', '.join(MEMORY_TYPES)}")
    most = given.get("max_results", 1)
    if type(most) is not int or most < 1:
        mistakes.append(f"max_results must be an integer of at least 1, not {shortened(most)}")
    if mistakes:
        raise ValueError("; ".join(mistakes))
    types = tuple(kinds) if "memory_types" in given else None
    return Retrieval(**{**given, "memory_types": types}, live_id=live_id)
