"""The handler of the page: the page itself, the stream of calls, and one call in full."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable
from typing import Any
from urllib.parse import parse_qsl

from memmock import __version__
from memmock.admin import PREFIX
from memmock.admin.gate import PRIVATE, Gate
from memmock.contract import MEMORY_TYPES
from memmock.demo import DEMO
from memmock.errors import MemmockError
from memmock.http import Handler, Reply, Request
from memmock.inspector.events import MOST_WATCHERS, Feed
from memmock.inspector.page import page
from memmock.inspector.subject import Subject
from memmock.journal import Call
from memmock.scenarios import FAMILIES
from memmock.strictjson import shortened

_STREAM = (("Content-Type", "text/event-stream"), *PRIVATE)
_BARE = PREFIX[:-1]


class Inspector:
    """Answers what the page asks for: `/`, `events?since=N` and `call?number=N` under the prefix.

    The page is for this machine only. It holds no data, so it is given without the control token, which it
    then asks for; all else needs it. The stream is for the page itself, as changes are.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._id = secrets.token_hex(8)  # tells a server that was started anew: its calls count from 1 again
        self._feed = Feed(subject, self._hello)

    @property
    def watchers(self) -> int:
        """How many pages watch now."""
        return self._feed.watchers

    def answer(self, request: Request, gate: Gate) -> Reply | Awaitable[Reply] | None:
        """Return the answer to a request under the prefix; None when it is not the page's."""
        name = request.path[len(PREFIX) :]
        if name not in ("", "events", "call"):
            return None
        if refusal := gate.refusal(request, proof=name != "", own=name == "events"):
            return _private(refusal)
        if request.method != "GET":
            message = f"{name or 'the page'} takes GET, not {request.method}"
            return _private(Reply.error(405, "method_not_allowed", message, (("Allow", "GET"),)))
        if not name:
            if request.path == _BARE:  # what the page asks for is relative to the prefix
                return _private(Reply(307, (("Location", PREFIX),)))
            return _private(page())
        try:
            if name == "events":
                return self._events(request)
            return self._call(_number(request, "number"))
        except MemmockError as error:
            return _private(Reply.error(400, "invalid_request", str(error)))

    def _events(self, request: Request) -> Reply:
        since = _number(request, "since")
        if self.watchers >= MOST_WATCHERS:
            message = f"{MOST_WATCHERS} pages watch already; close one of them"
            return _private(Reply.error(503, "too_many_watchers", message))
        return Reply.streamed(self._feed.stream(since), _STREAM)

    async def _call(self, number: int) -> Reply:
        # in a thread: to judge a large reply takes a while, and the calls go on meanwhile
        for call in self.subject.journal.since(number - 1):
            if call.number == number:
                return _private(Reply.json(await asyncio.to_thread(_opened, call, self.subject)))
        kept = self.subject.journal.max_calls
        message = f"call {number} is not in the journal any more; it keeps the latest {kept:,} calls"
        return _private(Reply.error(404, "not_found", message))

    def _hello(self) -> dict[str, Any]:
        subject = self.subject
        return {
            "server": self._id,
            "kind": subject.kind,
            "version": __version__,
            "endpoint": subject.redactor.uri(subject.endpoint()),
            "mock": subject.provider is not None,
            "kept": subject.journal.max_calls,
            "memory_types": list(MEMORY_TYPES),
            "families": list(FAMILIES),
            "demo": [{"query": each.query, "question": each.question, "point": each.point} for each in DEMO],
        }


class Inspected:
    """Puts the inspector in front of a handler.

    `host` is where the handler's server listens; where others may reach it there, there is no page.
    """

    def __init__(self, handler: Handler, inspector: Inspector, *, host: str) -> None:
        self._handler = handler
        self._inspector = inspector
        self._gate = Gate.of(host, None, _WAY_OUT)

    def __call__(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer for the page, and pass everything else on."""
        if request.target.startswith(_BARE) and f"{request.path}/".startswith(PREFIX):
            answer = self._inspector.answer(request, self._gate)
            if answer is not None:
                return answer
        return self._handler(request)


_WAY_OUT = "its inspector is off; listen on 127.0.0.1 to have it"


def _opened(call: Call, subject: Subject) -> dict[str, Any]:
    from memmock.inspector.opened import opened  # slow to import, and a server starts without it

    return opened(call, subject)


def _private(reply: Reply) -> Reply:
    return reply._replace(headers=(*reply.headers, *PRIVATE))


def _number(request: Request, name: str) -> int:
    given = dict(parse_qsl(request.target.partition("?")[2], keep_blank_values=True))
    value = given.pop(name, "0")
    if given:
        raise MemmockError(f"there is no parameter {shortened(next(iter(given)))}; there is {name}")
    if not re.fullmatch("[0-9]{1,18}", value):
        raise MemmockError(f"{name} must be the number of a call, not {shortened(value)}")
    return int(value)
