"""The control API: what the mock plays, remembers and was asked, over HTTP, under a path of its own.

A page in a browser can send requests to this machine too, so each control request has to show that it comes
from here and is meant for here before anything else of it is looked at. The mocked path asks for none of
that, and what is asked of the control API never gets into the journal.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import deepcopy
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from memmock import __version__, strictjson
from memmock.contract import MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request
from memmock.journal import Call, retries
from memmock.memories import Memories
from memmock.provider import Provider
from memmock.scenarios import CATALOGUE, named
from memmock.strictjson import shortened

PREFIX = "/__memmock__/"
"""What the path of every control request starts with."""

_BARE = PREFIX[:-1]
_MOST_TEXT = 10_000
"""How long a text may be that names scenarios: they are read on the server's loop."""


class Admin:
    """Answers control requests, and passes everything else on to `provider`.

    Control requests are taken from this machine only. `host` is where the server listens: when others may
    reach it there, a `token` is needed, and one that is given is always asked for.

    `reset` brings back the memories of this moment, forgets calls and rules, and then calls `restore`, which
    plays again what is to be played from the start. To clear the rules alone leaves none.

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
    ) -> None:
        if token is not None and not re.fullmatch(r"[!-~]+", token):
            raise MemmockError("the control token must be printable ASCII without spaces, and not empty")
        self.provider = provider
        self._gate = _Gate(host.lower().removesuffix("."), token)
        self._restore = restore
        self._memories = provider.memories

    def __call__(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answer a control request; let the provider answer any other."""
        if not request.target.startswith(_BARE):
            return self.provider(request)
        if request.path != _BARE and not request.target.startswith(PREFIX):
            return self.provider(request)
        reply = self._gate.refusal(request) or self._answer(request)
        return reply._replace(headers=(*reply.headers, *_KEPT_PRIVATE))

    def _answer(self, request: Request) -> Reply:
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
            return Reply.json(ROUTES[name, request.method].run(self, request))
        except MemmockError as error:
            return Reply.error(400, "invalid_request", str(error))

    # ---- what the mock plays

    def _health(self, _: Request) -> Any:
        calls, memories = self.provider.journal.total, len(self.provider.memories)
        return {"status": "ok", "version": __version__, "calls": calls, "memories": memories}

    def _scenarios(self, _: Request) -> Any:
        both = [*CATALOGUE.values(), *self.provider.playbook.scenarios.values()]
        return {"scenarios": [scenario.to_json() for scenario in both]}

    def _rules(self, _: Request) -> Any:
        return {"rules": _plain([rule.to_json() for rule in self.provider.playbook.rules])}

    def _plans(self, _: Request) -> Any:
        plans = [rule.to_json() for rule in self.provider.playbook.rules if rule.planned]
        return {"plans": _plain(plans)}

    def _use(self, request: Request) -> Any:
        given = _fields(request, "Use")
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
        self.provider.playbook.plan(_fields(request, "Plan")["plan"], must_finish=False)
        return self._plans(request)

    def _chaos(self, request: Request) -> Any:
        given = _fields(request, "Chaos")
        self.provider.playbook.chaos(given["chaos"], given["seed"])
        return self._rules(request)

    def _clear_rules(self, request: Request) -> Any:
        self.provider.playbook.clear()
        return self._rules(request)

    def _clear_plans(self, request: Request) -> Any:
        self._clear_rules(request)
        return self._plans(request)

    # ---- what it remembers, and what it was asked

    def _remembered(self, _: Request) -> Any:
        memories = self.provider.memories
        return _plain({"memories": [{**item.to_json(), "keywords": item.keywords} for item in memories]})

    def _remember(self, request: Request) -> Any:
        memories = Memories(_fields(request, "Memories")["memories"])
        memories.prepare()  # not in the first retrieval, whose time is looked at
        self.provider.memories = memories
        return self._remembered(request)

    def _calls(self, request: Request) -> Any:
        since = _since(request.target.partition("?")[2])
        journal = self.provider.journal
        calls = journal.calls
        again = retries(calls)
        mask = _mask(self.provider.authorization, self._gate.token)
        newer = [call for call in calls if call.number > since]
        return {
            "calls": [_shown(call, again.get(call.number), mask) for call in newer],
            "last": newer[-1].number if newer else since,
            "total": journal.total,
            "dropped": journal.dropped,
        }

    def _forget_calls(self, request: Request) -> Any:
        self.provider.journal.clear()
        return self._calls(request)

    def _reset(self, request: Request) -> Any:
        if request.body:
            _fields(request, "Nothing")
        self.provider.journal.clear()
        self.provider.memories = self._memories
        self.provider.playbook.clear()
        self._restore()
        return self._health(request)

    def _openapi(self, _: Request) -> Any:
        return openapi()


# ---- who may

_KEPT_PRIVATE = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:[0-9]*)?", re.IGNORECASE)


class _Gate(NamedTuple):
    """Lets only those in who are on this machine and mean this server; `host` is in lower case."""

    host: str
    token: str | None

    def refusal(self, request: Request) -> Reply | None:
        """Return why a request is not let in; None when it is."""
        if not _is_loopback(request.client):
            who = request.client or "an address that is not known"
            return _forbidden(f"the control API is for clients on this machine, not for {who}")
        return (
            self._unproven(request)
            or self._misdirected(request)
            or (None if request.method == "GET" else _foreign(request))
        )

    def _unproven(self, request: Request) -> Reply | None:
        if self.token is None:
            if _is_local(self.host):
                return None
            return _forbidden(
                f"the server listens on {self.host}, where others may reach it, so its control API needs "
                f"a token: start it with --control-token"
            )
        scheme, _, sent = (request.header("Authorization") or "").partition(" ")
        same = hmac.compare_digest(sent.strip().encode("utf-8", "replace"), self.token.encode())
        if same and scheme.lower() == "bearer":
            return None
        message = "the control API needs the header `Authorization: Bearer …` with its token"
        return Reply.error(401, "unauthorized", message, (("WWW-Authenticate", 'Bearer realm="memmock"'),))

    def _misdirected(self, request: Request) -> Reply | None:
        """Refuse a name that only leads here: another site's, which its own pages may make lead here."""
        hosts = [value for name, value in request.headers if name.lower() == "host"]
        if len(hosts) != 1:
            return _forbidden(f"the Host header must be there once, not {len(hosts)} times")
        found = _HOST.fullmatch(hosts[0])
        name = found[1].strip("[]").lower().removesuffix(".") if found else ""
        if name and (_is_local(name) or name == self.host):
            return None
        return _forbidden(
            f"the Host header must name this server, as localhost or 127.0.0.1, not {shortened(hosts[0])}"
        )


def _foreign(request: Request) -> Reply | None:
    """Refuse what a page of another origin can make a browser send."""
    origin, own = request.header("Origin"), f"http://{request.header('Host')}"
    if origin is not None and origin != own:
        return _forbidden(f"a page of {shortened(origin)} cannot change the mock at {own}")
    site = request.header("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return _forbidden(
            f"a page of another origin cannot change the mock (Sec-Fetch-Site: {shortened(site)})"
        )
    media_type = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
    if request.method in ("PUT", "POST") and media_type != JSON_TYPE:  # others go without a preflight
        message = f"a {request.method} to the control API needs the header `Content-Type: {JSON_TYPE}`"
        return Reply.error(415, "unsupported_media_type", message)
    return None


def _forbidden(message: str) -> Reply:
    return Reply.error(403, "forbidden", message)


def _is_local(host: str) -> bool:
    return host == "localhost" or _is_loopback(host)


def _is_loopback(address: str) -> bool:
    """Whether an address is one of this machine only; one that is not known is none."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


# ---- what is sent


def _fields(request: Request, schema: str) -> dict[str, Any]:
    """Return the fields of a body, which are of the kinds that its schema says; null is as absent.

    Raises:
        MemmockError: the body is not one.
    """
    known, required = SCHEMAS[schema]["properties"], SCHEMAS[schema]["required"]
    names = ", ".join(known) or "none"
    try:
        given = strictjson.parse(request.body)
    except ValueError as error:
        raise MemmockError(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise MemmockError(f"the body must be an object with the fields {names}, not {shortened(given)}")
    if unknown := [name for name in given if name not in known]:
        raise MemmockError(f"the body has no field {shortened(unknown[0])}; its fields are {names}")
    given = {name: value for name, value in given.items() if value is not None}
    if missing := [name for name in required if name not in given]:
        raise MemmockError(f"the body needs the field {missing[0]}; its fields are {names}")
    for name, value in given.items():
        kinds = known[name]["type"]
        kind = kinds if isinstance(kinds, str) else kinds[0]
        if not isinstance(value, _PYTHON[kind]) or isinstance(value, bool):
            raise MemmockError(f"{name} must be {_CALLED[kind]}, not {shortened(value)}")
        if isinstance(value, str) and len(value) > _MOST_TEXT:
            raise MemmockError(f"{name} must have at most {_MOST_TEXT:,} characters, not {len(value):,}")
    return given


_PYTHON: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "object": dict,
    "array": list,
}
_CALLED = {"string": "text", "integer": "an integer", "number": "a number", "object": "an object",
           "array": "an array"}  # fmt: skip


def _since(query: str) -> int:
    given = dict(parse_qsl(query, keep_blank_values=True))
    since = given.pop("since", "0")
    if given:
        raise MemmockError(f"calls has no parameter {shortened(next(iter(given)))}; it has since")
    if not re.fullmatch("[0-9]{1,18}", since):
        raise MemmockError(f"since must be the number of a call, not {shortened(since)}")
    return int(since)


# ---- what is shown


def _shown(call: Call, retry_of: int | None, mask: Callable[[str], str]) -> dict[str, Any]:
    request, sent = call.request, call.sent
    facts = {
        "number": call.number,
        "time": datetime.fromtimestamp(call.received_at).astimezone().isoformat(timespec="milliseconds"),
        "method": request.method,
        "target": request.target,
        "headers": [(name, "***" if _SECRET.search(name) else value) for name, value in request.headers],
        "retrieval": call.retrieval,
        "status": call.reply.status,
        "played": call.played,
        "ending": call.ending,
        "sent_bytes": None if sent is None else sent.sent_bytes,
        "elapsed_ms": round(call.elapsed_s * 1000, 3),
        "timeout_ms": call.timeout_ms,
        "connection": request.connection,
        "over": call.over,
        "retry_of": retry_of,
        "violations": [found.to_json() for found in call.violations],
        "results": len(call.memories),
    }
    shown: dict[str, Any] = _plain(facts, mask)
    return shown


_SECRET = re.compile("authorization|cookie|api-?key|token|secret|password", re.IGNORECASE)
_DEEPEST = 64


def _plain(value: Any, mask: Callable[[str], str] = str, depth: int = 0) -> Any:
    """Return what JSON can carry of any value: a test may match by objects, a client may send NaN."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): _plain(item, mask, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, mask, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return shortened(value)
    return value if value is None or isinstance(value, bool | int | float) else mask(repr(value))


_LONG_ENOUGH = 8
"""A credential of so many characters is hidden without its scheme too: shorter ones may be common words."""
_CUT_AT = 64
"""Longer beginnings of a value are never shown: `shortened` cuts before."""


@lru_cache(8)
def _mask(*secrets: str | None) -> Callable[[str], str]:
    """Return a function that hides the secrets in a text, however they are escaped there."""
    hidden = {secret.strip(): None for secret in secrets if secret and secret.strip()}
    parts = [secret.partition(" ")[2].strip() for secret in hidden]
    hidden |= dict.fromkeys(part for part in parts if len(part) >= _LONG_ENOUGH)
    if not hidden:
        return str
    pattern = re.compile("|".join(form for secret in hidden for form in _forms(secret)))
    return lambda text: pattern.sub("***", text)


def _forms(secret: str) -> Iterable[str]:
    """Yield what a secret looks like, and its beginning where a text was cut short, as patterns."""
    chars = [_spellings(char) for char in secret]
    yield "".join(chars)
    start, rest = chars[:4], chars[4:_CUT_AT]
    if rest:
        yield f"{''.join(start)}{''.join(f'(?:{char}' for char in rest)}{')?' * len(rest)}(?=…)"


def _spellings(char: str) -> str:
    """Return a pattern for a character as it is, in JSON, in a JSON pointer, in a URL and in a header."""
    data = char.encode("utf-8", "surrogatepass")
    plain = {char, json.dumps(char)[1:-1], strictjson.pointer(char)[1:], data.decode("latin-1")}
    forms = [*map(re.escape, sorted(plain)), f"(?i:{''.join(f'%{byte:02x}' for byte in data)})"]
    return f"(?:{'|'.join(forms)}{'|[+]' if char == ' ' else ''})"


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
    ("plan", "DELETE"): Route(Admin._clear_plans, "Clear all rules: scenarios, plans, chaos", "Plans"),
    ("chaos", "PUT"): Route(Admin._chaos, "Play scenarios by chance", "Rules", "Chaos"),
    ("memories", "GET"): Route(Admin._remembered, "What the mock remembers", "Memories"),
    ("memories", "PUT"): Route(Admin._remember, "Replace what the mock remembers", "Memories", "Memories"),
    ("calls", "GET"): Route(Admin._calls, "The calls, the oldest first", "Calls"),
    ("calls", "DELETE"): Route(Admin._forget_calls, "Forget the calls; their numbers go on", "Calls"),
    ("reset", "POST"): Route(Admin._reset, "Be as at the start", "Health", "Nothing"),
    ("openapi.json", "GET"): Route(Admin._openapi, "This document", "Document"),
}
"""What the control API can do, by resource and method."""


def _object(needs: str | None = None, **kinds: Any) -> dict[str, Any]:
    """Return the schema of an object with these fields, all needed if it is not said which; ? is or null."""
    properties = {
        name: {"type": [kind[:-1], "null"] if kind.endswith("?") else kind} if isinstance(kind, str) else kind
        for name, kind in kinds.items()
    }
    required = [*properties] if needs is None else needs.split()
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _array(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


_ANY = {"type": "object"}
_NAMES = {"type": "string", "maxLength": _MOST_TEXT}
_RULE = _object(
    needs="steps", use="string", plan="string", chaos="string", seed="integer",
    when={"type": ["object", "string"]}, for_s="number",
    steps=_array(_object(play="string", times="integer?", played="integer")),
)  # fmt: skip

SCHEMAS: dict[str, dict[str, Any]] = {
    "Health": _object(status={"const": "ok"}, version="string", calls="integer", memories="integer"),
    "Scenarios": _object(
        scenarios=_array(
            _object(
                name="string", family="string", summary="string", outcomes=_array({"type": "string"}),
                parameters=_ANY, aliases=_array({"type": "string"}),
            )
        )
    ),
    "Use": _object(
        needs="use", use=_NAMES, times="integer?", when="object?", for_s="number?", **{"with": "object?"}
    ),
    "Plan": _object(plan=_NAMES),
    "Chaos": _object(chaos=_NAMES, seed="integer"),
    "Nothing": _object(),
    "Rules": _object(rules=_array(_RULE)),
    "Plans": _object(plans=_array(_RULE)),
    "Memories": _object(
        memories=_array(
            {
                "type": "object",
                "properties": {
                    **{name: {"type": ["string", "null"]} for name in ("id", "updated_at", "source")},
                    "summary": {"type": "string", "pattern": r"\S"},
                    "type": {"enum": [*MEMORY_TYPES, None]},
                    "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                    "keywords": {"type": ["array", "null"], "items": {"type": "string"}},
                },
                "required": ["summary"],
            }
        )
    ),
    "Calls": _object(
        calls=_array(
            _object(
                number="integer", time={"type": "string", "format": "date-time"}, method="string",
                target="string", headers=_array(_array({"type": "string"})), retrieval=_ANY,
                status="integer", played="string", ending="string", sent_bytes="integer?",
                elapsed_ms="number", timeout_ms="integer", connection="integer", over="boolean",
                retry_of="integer?", violations=_array(_ANY), results="integer",
            )
        ),
        last="integer", total="integer", dropped="integer",
    ),
    "Document": _ANY,
    "Error": _object(error={"type": "object", "required": ["code", "message"]}),
}  # fmt: skip
"""What is sent and answered, as JSON Schema; bodies that are sent are checked by it."""


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
        operation["parameters"] = [{"name": "since", "in": "query", "description": about, "schema": since}]
    return operation


def _content(schema: str) -> dict[str, Any]:
    return {"content": {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
