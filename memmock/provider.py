"""The mock provider: a handler that answers retrievals from a persona's memories.

It answers what keeps the contract, refuses with 400 what it cannot understand and says why, and writes
every call to its journal. What it can answer although it breaks a rule, it answers: the violation is in
the journal. By default it is as open as the live service's own fake provider [seed]: the authorization is
ignored, and so are `live_id`, `user_id` and `character_id`.
"""

from __future__ import annotations

import re
import time

from memmock import strictjson
from memmock.contract import (
    DEFAULT_MAX_RESPONSE_BYTES,
    DEFAULT_MAX_RESULTS,
    DEFAULT_PATH,
    MEMORY_TYPES,
)
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request
from memmock.journal import Journal
from memmock.memories import Memories
from memmock.rules import Severity, body_violations

_JSON_HEADERS = (("Content-Type", JSON_TYPE),)
_NO_TYPES: list[str] = []
_EXPLAINED_BYTES = 128 * 1024
"""How large a wrong body may be to be explained: longer ones would keep the other clients waiting."""
_START, _END = b'{"memories":[', b"]}"


class Provider:
    """Answers `POST <any gateway prefix><path>` from `memories`.

    With an `authorization`, any other value gets 401. A response never grows past `max_response_bytes`:
    memories that would not fit are left out, as if `max_results` were smaller. All of it may be changed
    between two calls, from any thread.

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
    ) -> None:
        if not re.fullmatch(r"/[!-~]*", path) or "?" in path or "#" in path:
            raise MemmockError(
                f"the path must start with / and hold no ?, # or space, and what is not ASCII "
                f"percent-encoded, not {path!r}"
            )
        self.memories = memories
        self.path = path
        self.authorization = authorization
        self.max_response_bytes = max_response_bytes
        self.journal = Journal()

    def __call__(self, request: Request) -> Reply:
        """Answer a request, and write the call to the journal before the answer is sent."""
        received_at, start = time.time(), time.perf_counter()
        reply = self._answer(request)
        self.journal.add(request, reply, received_at, time.perf_counter() - start)
        return reply

    def _answer(self, request: Request) -> Reply:
        if request.target != self.path and not request.path.endswith(self.path):
            return Reply.error(404, "not_found", f"nothing is here; the path of the provider is {self.path}")
        if request.method != "POST":
            message = f"a retrieval is a POST, not a {request.method}"
            return Reply.error(405, "method_not_allowed", message, (("Allow", "POST"),))
        if self.authorization is not None and not _same(request.header("Authorization"), self.authorization):
            return Reply.error(401, "unauthorized", "the Authorization header is not the one configured")
        return self._retrieve(request.body)

    def _retrieve(self, body: bytes) -> Reply:
        try:
            query, types, time_hint, max_results = _understood(strictjson.parse_quickly(body))
        except ValueError:
            return _refused(body)
        # no more memories can fit than bytes, however many are asked for
        most = min(max_results, self.max_response_bytes)
        memories = self.memories
        found = memories.find(query, memory_types=types, time_hint=time_hint, max_results=most)
        encoded = memories.encoded
        text = _START + b",".join([encoded[n] for n in found]) + _END
        if len(text) > self.max_response_bytes:
            text = _cut([encoded[n] for n in found], self.max_response_bytes)
        return Reply(200, _JSON_HEADERS, text)


def _same(sent: str | None, configured: str) -> bool:
    """Tell whether a header has the configured value; what is not ASCII was sent as UTF-8."""
    if sent is None:
        return False
    configured = configured.strip()
    return sent == configured or sent.encode("latin-1", "replace") == configured.encode()


def _understood(asked: object) -> tuple[str, list[str], str, int]:
    """Return what a parsed body asks for: query, memory types, time hint, max results.

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
    return query, types, time_hint, max_results


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
