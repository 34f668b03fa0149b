"""The control API: what the mock plays, remembers and was asked, over HTTP, under a path of its own.

A page in a browser can send requests to this machine too, so each control request has to show that it comes
from here and is meant for here before anything else of it is looked at. The mocked path asks for none of
that, and what is asked of the control API never gets into the journal.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from memmock import __version__
from memmock.admin.gate import PRIVATE, Gate
from memmock.admin.ranked import ranking
from memmock.admin.schemas import SCHEMAS, fields
from memmock.admin.shown import plain, shown
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request
from memmock.journal import retries
from memmock.memories import Memories, PersonaError, load
from memmock.persona import CHARACTER
from memmock.provider import Provider
from memmock.redaction import mask_of
from memmock.scenarios import CATALOGUE, named
from memmock.strictjson import shortened

PREFIX = "/__memmock__/"
"""What the path of every control request starts with."""

_BARE = PREFIX[:-1]
_POLL_S = 0.01


class Admin:
    """Answers control requests, and passes everything else on to `provider`.

    Control requests are taken from this machine only. `host` is where the server listens: when others may
    reach it there, a `token` is needed, and one that is given is always asked for.

    `reset` brings back the memories of this moment, forgets calls and rules, and then calls `restore`, which
    plays again what is to be played from the start. To clear the rules alone leaves none. `settle` is awaited
    after each change, so that an answer tells of a server that has followed it. `pages` answers first, when
    it has an answer: the inspector's page and what it asks for.

    Raises:
        MemmockError: the token is empty, or cannot be sent in a header.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        restore: Callable[[], None] = lambda: None,
        settle: Callable[[], Awaitable[None]] | None = None,
        pages: Callable[[Request, Gate], Reply | Awaitable[Reply] | None] = lambda *_: None,
    ) -> None:
        if provider.path.startswith(_BARE):
            raise MemmockError(f"the path {provider.path} is where the control API is; choose another one")
        self.provider = provider
        self._gate = Gate.of(host, token)
        self._restore = restore
        self._settle = settle
        self._pages = pages
        self._memories = provider.memories

    def __call__(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer a control request; let the provider answer any other."""
        if not request.target.startswith(_BARE):
            return self.provider(request)
        if request.path != _BARE and not request.target.startswith(PREFIX):
            return self.provider(request)
        if (paged := self._pages(request, self._gate)) is not None:
            return paged
        answer = self._gate.refusal(request) or self._answer(request)
        return self._private(answer) if isinstance(answer, Reply) else self._later(answer)

    async def _later(self, answer: Awaitable[Any]) -> Reply:
        try:
            return self._private(Reply.json(await answer))
        except MemmockError as error:
            return self._private(Reply.error(400, "invalid_request", str(error)))

    def _private(self, reply: Reply) -> Reply:
        headers = (*reply.headers, *PRIVATE)
        if not self.provider.playbook.is_open():  # kept connections are about to be closed: say so
            headers += (("Connection", "close"),)
        return reply._replace(headers=headers)

    def _answer(self, request: Request) -> Reply | Awaitable[Any]:
        name = request.path[len(PREFIX) :]
        allowed = [method for resource, method in ROUTES if resource == name]
        if not allowed:
            there = ", ".join(dict.fromkeys(resource for resource, _ in ROUTES))
            message = f"the control API has no resource {shortened(name)}; it has {there}"
            return Reply.error(404, "not_found", message)
        if request.method not in allowed:
            message = f"{name} takes {' and '.join(allowed)}, not {request.method}"
            return Reply.error(405, "method_not_allowed", message, (("Allow", ", ".join(allowed)),))
        try:
            answer = ROUTES[name, request.method].run(self, request)
            if self._settle is not None and request.method != "GET":
                return self._settled(answer, self._settle())
            return answer if isinstance(answer, Awaitable) else Reply.json(answer)
        except MemmockError as error:
            return Reply.error(400, "invalid_request", str(error))

    async def _settled(self, answer: Any, settled: Awaitable[None]) -> Any:
        await settled
        return await answer if isinstance(answer, Awaitable) else answer

    # ---- what the mock plays

    def _health(self, _: Request) -> Any:
        calls, memories = self.provider.journal.total, len(self.provider.memories)
        return {"status": "ok", "version": __version__, "calls": calls, "memories": memories}

    def _scenarios(self, _: Request) -> Any:
        both = [*CATALOGUE.values(), *self.provider.playbook.scenarios.values()]
        return {"scenarios": [scenario.to_json() for scenario in both]}

    def _rules(self, _: Request) -> Any:
        return {"rules": plain([rule.to_json() for rule in self.provider.playbook.rules], self._mask())}

    def _mask(self, *more: str | None) -> Callable[[str], str]:
        return mask_of(self.provider.authorization, self._gate.token, *more)

    def _plans(self, _: Request) -> Any:
        plans = [rule.to_json() for rule in self.provider.playbook.rules if rule.planned]
        return {"plans": plain(plans, self._mask())}

    def _use(self, request: Request) -> Any:
        given = fields(request, "Use")
        times, for_s = given.get("times"), given.get("for_s")
        self._check_door(given["use"], times, for_s)
        self.provider.playbook.use(
            given["use"], times=times, when=given.get("when"), for_s=for_s, parameters=given.get("with")
        )
        return self._rules(request)

    def _check_door(self, use: str, times: int | None, for_s: float | None) -> None:
        """Refuse what would shut the control API out for good."""
        scenario = named(use.partition("(")[0], self.provider.playbook.scenarios)
        ends = {"refuse": for_s is not None, "reset": times is not None or for_s is not None}
        if scenario.door is not None and not ends[scenario.door]:
            limits = "for_s" if scenario.door == "refuse" else "times or for_s"
            raise MemmockError(
                f"{scenario.name} holds for connections to the control API too, so nothing sent to it "
                f"could end it: give {limits}"
            )

    def _plan(self, request: Request) -> Any:
        # the plans of a test have to finish, and the test is told; nobody would be told of this one
        self.provider.playbook.plan(fields(request, "Plan")["plan"], must_finish=False)
        return self._plans(request)

    def _chaos(self, request: Request) -> Any:
        given = fields(request, "Chaos")
        self.provider.playbook.chaos(given["chaos"], given["seed"])
        return self._rules(request)

    def _clear_rules(self, request: Request) -> Any:
        self.provider.playbook.clear()
        return self._rules(request)

    def _clear_plans(self, request: Request) -> Any:
        self.provider.playbook.drop(planned=True)
        return self._plans(request)

    def _clear_chaos(self, request: Request) -> Any:
        self.provider.playbook.drop(drawn=True)
        return self._rules(request)

    # ---- what it remembers, and what it was asked

    def _remembered(self, _: Request) -> Any:
        memories = self.provider.memories
        return plain({"memories": [{**item.to_json(), "keywords": item.keywords} for item in memories]})

    async def _remember(self, request: Request) -> Any:
        # in a thread: thousands of memories take a second, and the other clients go on meanwhile
        self.provider.memories = await asyncio.to_thread(self._prepared, request)
        return self._remembered(request)

    async def _add(self, request: Request) -> Any:
        more = await asyncio.to_thread(lambda: Memories(fields(request, "Memories")["memories"]))
        self.provider.memories = self.provider.memories.plus(*more)
        return self._remembered(request)

    def _prepared(self, request: Request) -> Memories:
        return _ready(Memories(fields(request, "Memories")["memories"]))

    def _persona(self, _: Request) -> Any:
        memories = [
            {**item.to_json(), **({"keywords": list(item.keywords)} if item.keywords else {})}
            for item in self.provider.memories
        ]
        return plain({"live": {"builtin_avatars": {CHARACTER: {"memories": memories}}}})

    async def _take_persona(self, request: Request) -> Any:
        self.provider.memories = await asyncio.to_thread(_imported, request)
        return self._remembered(request)

    async def _rank(self, request: Request) -> Any:
        given = fields(request, "Rank")
        return await asyncio.to_thread(ranking, self.provider.memories, given.pop("query"), **given)

    def _calls(self, request: Request) -> Any:
        since, wait_s = _since(request.target.partition("?")[2])
        return self._calls_once_over(since, wait_s)

    async def _calls_once_over(self, since: int, wait_s: float) -> Any:
        """Return the calls after `since`, as soon as there are some and none of them is under way."""
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            newer = self.provider.journal.since(since)
            if newer and all(call.over for call in newer):
                break
            await asyncio.sleep(_POLL_S)
        return await asyncio.to_thread(self._calls_after, since)

    def _calls_after(self, since: int) -> Any:
        journal = self.provider.journal
        calls = journal.calls
        again = retries(calls)
        newer = [call for call in calls if call.number > since]
        return {
            "calls": [
                shown(call, again.get(call.number), self._mask(call.request.header("Authorization")))
                for call in newer
            ],
            "last": newer[-1].number if newer else since,
            "total": journal.total,
            "dropped": journal.dropped,
        }

    def _forget_calls(self, request: Request) -> Any:
        self.provider.journal.clear()
        return self._calls(request)

    def _reset(self, request: Request) -> Any:
        if request.body:
            fields(request, "Nothing")
        self.provider.journal.clear()
        self.provider.memories = self._memories
        self.provider.playbook.clear()
        self._restore()
        return self._health(request)

    def _openapi(self, _: Request) -> Any:
        return openapi()


def _since(query: str) -> tuple[int, float]:
    """Return after which call to start, and how long to wait for one, in seconds."""
    given = dict(parse_qsl(query, keep_blank_values=True))
    since, wait_s = given.pop("since", "0"), given.pop("wait_s", "0")
    if given:
        raise MemmockError(f"calls has no parameter {shortened(next(iter(given)))}; it has since and wait_s")
    if not re.fullmatch("[0-9]{1,18}", since):
        raise MemmockError(f"since must be the number of a call, not {shortened(since)}")
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?", wait_s):
        raise MemmockError(f"wait_s must be a number of seconds below 100, not {shortened(wait_s)}")
    return int(since), float(wait_s)


def _ready(memories: Memories) -> Memories:
    memories.prepare()  # not in the first retrieval, whose time is looked at
    return memories


def _imported(request: Request) -> Memories:
    """Return the memories in the text of a persona file, read as a file is."""
    given = fields(request, "Persona")
    if given["format"] not in ("json", "yaml"):
        raise MemmockError(f"format must be json or yaml, not {shortened(given['format'])}")
    with TemporaryDirectory(prefix="memmock-persona-") as directory:
        path = Path(directory, f"persona.{given['format']}")
        path.write_text(given["text"], encoding="utf-8", errors="backslashreplace")
        try:
            return _ready(load(path))
        except PersonaError as error:
            raise MemmockError(str(error).replace(str(path), "the persona")) from None


# ---- the routes, and their document


class Route(NamedTuple):
    """What is done for a resource and a method; `takes` and `gives` name the schemas of the two bodies."""

    run: Callable[[Admin, Request], Any]
    summary: str
    gives: str
    takes: str = ""


ROUTES: dict[tuple[str, str], Route] = {
    ("health", "GET"): Route(Admin._health, "Whether the mock serves", "Health"),
    ("scenarios", "GET"): Route(Admin._scenarios, "All scenarios, your own ones last", "Scenarios"),
    ("scenario", "GET"): Route(Admin._rules, "What is played, the newest first", "Rules"),
    ("scenario", "PUT"): Route(Admin._use, "Play a scenario from now on", "Rules", "Use"),
    ("scenario", "DELETE"): Route(Admin._clear_rules, "Clear all rules: scenarios, plans, chaos", "Rules"),
    ("plan", "GET"): Route(Admin._plans, "The plans that are not played to their end", "Plans"),
    ("plan", "PUT"): Route(Admin._plan, "Play scenarios one after the other", "Plans", "Plan"),
    ("plan", "DELETE"): Route(Admin._clear_plans, "Clear the plans", "Plans"),
    ("chaos", "PUT"): Route(Admin._chaos, "Play scenarios by chance", "Rules", "Chaos"),
    ("chaos", "DELETE"): Route(Admin._clear_chaos, "Play nothing by chance", "Rules"),
    ("memories", "GET"): Route(Admin._remembered, "What the mock remembers", "Memories"),
    ("memories", "PUT"): Route(Admin._remember, "Replace what the mock remembers", "Memories", "Memories"),
    ("memories", "POST"): Route(Admin._add, "Remember more", "Memories", "Memories"),
    ("persona", "GET"): Route(Admin._persona, "What it remembers, as a persona file", "PersonaFile"),
    ("persona", "PUT"): Route(Admin._take_persona, "Remember a persona file", "Memories", "Persona"),
    ("rank", "POST"): Route(Admin._rank, "How a query ranks the memories, and why", "Ranking", "Rank"),
    ("calls", "GET"): Route(Admin._calls, "The calls, the oldest first", "Calls"),
    ("calls", "DELETE"): Route(Admin._forget_calls, "Forget the calls; their numbers go on", "Calls"),
    ("reset", "POST"): Route(Admin._reset, "Be as at the start", "Health", "Nothing"),
    ("openapi.json", "GET"): Route(Admin._openapi, "This document", "Document"),
}
"""What the control API can do, by resource and method."""


def openapi() -> dict[str, Any]:
    """Return the control API as an OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for (name, method), route in ROUTES.items():
        paths.setdefault(PREFIX + name, {})[method.lower()] = _operation(name, method, route)
    token = {"type": "http", "scheme": "bearer", "description": "The token of --control-token."}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memmock control",
            "version": __version__,
            "summary": "What a mock provider plays, remembers and was asked.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": deepcopy(SCHEMAS), "securitySchemes": {"token": token}},
    }


def _operation(name: str, method: str, route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": method.lower() + name.partition(".")[0].capitalize(),
        "summary": route.summary,
        "responses": {
            "200": {"description": "Done", **_content(route.gives)},
            "4XX": {"description": "Refused, and why", **_content("Error")},
        },
    }
    if route.takes:
        needed = bool(SCHEMAS[route.takes]["required"])
        operation["requestBody"] = {"required": needed, **_content(route.takes)}
    if (name, method) == ("calls", "GET"):
        since = {"type": "integer", "minimum": 0, "default": 0}
        about = "the number of a call: only later ones are shown; `last` of an answer, to ask for what is new"
        wait_s = {"type": "number", "minimum": 0, "exclusiveMaximum": 100, "default": 0}
        until = "how long to wait, in seconds, until there are some and the answers to all of them are sent"
        operation["parameters"] = [
            {"name": "since", "in": "query", "description": about, "schema": since},
            {"name": "wait_s", "in": "query", "description": until, "schema": wait_s},
        ]
    return operation


def _content(schema: str) -> dict[str, Any]:
    return {"content": {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
