"""The mock provider: a handler that answers retrievals from a persona's memories, or plays a scenario.

It answers what keeps the contract, refuses with 400 what it cannot understand and says why, and writes
every call to its journal. What it can answer although it breaks a rule, it answers: the violation is in
the journal. By default it is as open as the live service's own fake provider [seed]: the authorization is
ignored, and so are `live_id`, `user_id` and `character_id`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from memmock import strictjson
from memmock.contract import (
    DEFAULT_MAX_RESPONSE_BYTES,
    DEFAULT_MAX_RESULTS,
    DEFAULT_PATH,
    DEFAULT_TIMEOUT_MS,
    MEMORY_TYPES,
)
from memmock.errors import MemmockError
from memmock.http import AT_ONCE, JSON_TYPE, Delivery, Reply, Request, Sent, check_path
from memmock.journal import Journal
from memmock.memories import Memories
from memmock.playbook import Play, Playbook
from memmock.rules import Severity, body_violations
from memmock.scenarios import MOVED, Stage

_JSON_HEADERS = (("Content-Type", JSON_TYPE),)
_EXPLAINED_BYTES = 128 * 1024
"""How large a wrong body may be to be explained: longer ones would keep the other clients waiting."""
_START, _END = b'{"memories":[', b"]}"


Asked = tuple[str, list[str], str, int, dict[str, Any]]
"""What a request asks for, understood: query, memory types, time hint, max results, and the whole object. No
named tuple: there is one for each call, and a plain one is made in a fifth of the time."""


class Provider:
    """Answers `POST <any gateway prefix><path>` from `memories`, unless `playbook` has something to play.

    With an `authorization`, any other value gets 401. An honest answer never grows past
    `max_response_bytes`: memories that would not fit are left out, as if `max_results` were smaller.
    `timeout_ms` is what the consumer is told; scenarios go by it. All of it may be changed between two calls,
    from any thread.

    A scenario is played to a retrieval that would have been answered: what is refused with 400, 401, 404 or
    405 is refused under any scenario, and does not count as played. `elsewhere` gives the URL of the same
    handler at another port.

    Raises:
        MemmockError: `path` is not one that a request can have.
    """

    def __init__(
        self,
        memories: Memories,
        *,
        path: str = DEFAULT_PATH,
        authorization: str | None = None,
        max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        playbook: Playbook | None = None,
        elsewhere: Callable[[], str] | None = None,
    ) -> None:
        check_path(path)
        self.memories = memories
        self.path = path
        self.authorization = authorization
        self.max_response_bytes = max_response_bytes
        self.timeout_ms = timeout_ms
        self.playbook = Playbook() if playbook is None else playbook
        self.elsewhere = elsewhere
        self.journal = Journal()

    def __call__(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer a request, and write the call to the journal before the answer is sent."""
        received_at, start = time.time(), time.perf_counter()
        asked = self._asked(request)
        if isinstance(asked, Reply):
            reply = asked
        elif (
            self.playbook.active and (play := self._next_play(request, asked, received_at, start)) is not None
        ):
            return self._played(play, request, asked, received_at, start)
        else:
            reply = self._found(asked)
        call = self.journal.add(request, reply, received_at, time.perf_counter() - start, self.timeout_ms)
        if request.target != self.path and request.target.startswith(MOVED):
            call.followed = True
        return reply

    def _next_play(self, request: Request, asked: Asked, received_at: float, start: float) -> Play | None:
        try:
            return self.playbook.next(request, asked[-1])
        except Exception as error:  # of a function that chooses calls
            reply = Reply.error(500, "internal_error", f"a function of `when` raised {type(error).__name__}")
            self.journal.add(request, reply, received_at, time.perf_counter() - start, self.timeout_ms)
            error.add_note("raised by a function that was given to memmock as `when`")
            raise

    def _asked(self, request: Request) -> Asked | Reply:
        """Return what a request asks for, or why that will not be answered."""
        if request.target != self.path:
            if not request.path.endswith(self.path):
                message = f"nothing is here; the path of the provider is {self.path}"
                return Reply.error(404, "not_found", message)
            if request.target.startswith(MOVED):
                return self._moved(request)
        if request.method != "POST":
            message = f"a retrieval is a POST, not a {request.method}"
            return Reply.error(405, "method_not_allowed", message, (("Allow", "POST"),))
        if self.authorization is not None and not _same(request.header("Authorization"), self.authorization):
            return Reply.error(401, "unauthorized", "the Authorization header is not the one configured")
        try:
            return _understood(strictjson.parse_quickly(request.body))
        except ValueError:
            return _refused(request.body)

    def _found(self, asked: Asked) -> Reply:
        """Return the honest answer."""
        query, types, time_hint, max_results, _ = asked
        # no more memories can fit than bytes, however many are asked for
        most = min(max_results, self.max_response_bytes)
        memories = self.memories
        found = memories.find(query, memory_types=types, time_hint=time_hint, max_results=most)
        encoded = memories.encoded
        text = _START + b",".join([encoded[n] for n in found]) + _END
        if len(text) > self.max_response_bytes:
            text = _cut([encoded[n] for n in found], self.max_response_bytes)
        return Reply(200, _JSON_HEADERS, text)

    def _moved(self, request: Request) -> Reply:
        """Answer well where a redirect led to, whatever the method."""
        try:
            return self._found(_understood(strictjson.parse_quickly(request.body)))
        except ValueError:
            return self._found(_ANYTHING)

    def _played(
        self, play: Play, request: Request, asked: Asked, received_at: float, start: float
    ) -> Reply | Awaitable[Reply]:
        """Return what the scenario makes of the call."""
        stage = Stage(
            request=request,
            answer=lambda: self._found(asked),
            memory_types=asked[1],
            max_results=asked[3],
            timeout_s=self.timeout_ms / 1000,
            max_response_bytes=self.max_response_bytes,
            path=self.path,
            elsewhere=self.elsewhere,
        )

        def noted(reply: Reply) -> Reply:
            duration_s = time.perf_counter() - start
            journal = self.journal
            # whether it is late is seen when it has been sent: parameters decide it, and the client
            outcomes = play.scenario.outcomes
            fails = bool(outcomes) and {"ok", "timeout"}.isdisjoint(outcomes)
            call = journal.add(request, reply, received_at, duration_s, self.timeout_ms, play.spec, fails)
            if reply.delivery == AT_ONCE:
                return reply

            def told(sent: Sent) -> None:
                journal.end(call, sent)
                if reply.on_sent is not None:
                    reply.on_sent(sent)

            return reply._replace(on_sent=told)

        def checked(reply: Any) -> Reply:
            if not isinstance(reply, Reply):
                raise MemmockError(f"{play.spec} returned {reply!r}, not a Reply")
            return noted(reply)

        def failed(error: BaseException) -> None:
            reply = Reply.error(500, "internal_error", f"{play.spec} raised {type(error).__name__}")
            if isinstance(error, Exception):
                noted(reply)
                error.add_note(f"raised while memmock played {play.spec} to {request.method} {request.path}")
            else:  # the client left before there was a reply, and the server gave up
                reply = noted(reply._replace(status=0, delivery=_NEVER))
                if reply.on_sent is not None:
                    reply.on_sent(Sent("client closed", 0, time.perf_counter() - start))

        async def later(reply: Awaitable[Reply]) -> Reply:
            try:
                return checked(await reply)
            except BaseException as error:
                failed(error)
                raise

        try:
            reply = play.reply(stage)
            return later(reply) if isinstance(reply, Awaitable) else checked(reply)
        except Exception as error:
            failed(error)
            raise


_NEVER = Delivery(cut_head=0)
_NO_TYPES: list[str] = []
_ANYTHING: Asked = ("", _NO_TYPES, "", DEFAULT_MAX_RESULTS, {})


def _same(sent: str | None, configured: str) -> bool:
    """Tell whether a header has the configured value; what is not ASCII was sent as UTF-8."""
    if sent is None:
        return False
    configured = configured.strip()
    return sent == configured or sent.encode("latin-1", "replace") == configured.encode()


def _understood(asked: object) -> Asked:
    """Return what a parsed body asks for.

    This is the fast way, for what keeps the contract; `body_violations` explains what does not.

    Raises:
        ValueError: the body breaks a rule that makes it impossible to understand.
    """
    if type(asked) is not dict:
        raise ValueError("not an object")
    get = asked.get
    query, types, time_hint = get("query"), get("memory_types", _NO_TYPES), get("time_hint", "")
    max_results = get("max_results", DEFAULT_MAX_RESULTS)
    if type(max_results) is float and max_results.is_integer():
        max_results = int(max_results)
    if (
        type(query) is not str or not query
        or type(types) is not list or (types and not all(kind in MEMORY_TYPES for kind in types))
        or type(time_hint) is not str
        or type(max_results) is not int or max_results < 1
        or type(get("live_id", "")) is not str
        or type(get("reason", "")) is not str
    ):  # fmt: skip
        raise ValueError("a field breaks its rule")
    return query, types, time_hint, max_results, asked


def _refused(body: bytes) -> Reply:
    if len(body) > _EXPLAINED_BYTES:
        message = f"the body breaks the contract; at {len(body):,} bytes it is too large to be told how"
        return Reply.error(400, "invalid_request", message, rules=[])
    errors = [found for found in body_violations(body) if found.severity is Severity.ERROR]
    return Reply.error(
        400,
        "invalid_request",
        "; ".join(str(found) for found in errors),
        rules=[found.code for found in errors],
    )


def _cut(parts: list[bytes], limit: int) -> bytes:
    """Return a body of the first memories that fit into `limit` bytes."""
    size, fitting = len(_START) + len(_END), 0
    for part in parts:
        size += len(part) + (fitting > 0)
        if size > limit:
            break
        fitting += 1
    return _START + b",".join(parts[:fitting]) + _END
