"""What is wrong with what a consumer sent while one act was played: how often, to whom, and what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from memmock.consumer_conformance.act import Arrival, Seen
from memmock.consumer_conformance.finding import Problem
from memmock.contract import DEFAULT_MAX_RESULTS
from memmock.http import Request
from memmock.reply_parsing import values
from memmock.rules import RULES, request_violations
from memmock.scenarios import MOVED
from memmock.strictjson import shortened

_FIELDS = ("live_id", "query", "reason", "memory_types", "time_hint", "max_results")
_REPLACED = re.compile("[\ud800-\udfff\ufffd]+")


def first_arrival(seen: Seen) -> Arrival | None:
    """Return the request that was answered with what the act plays; None when none came."""
    return next((each for each in seen.arrivals if not _was_led(each)), None)


def request_problems(seen: Seen) -> Iterator[Problem]:
    """Yield what is wrong with what was sent."""
    first = first_arrival(seen)
    if seen.act.tls:
        if seen.arrivals:
            message = "the request was sent to a provider whose certificate nobody trusts"
            yield Problem(RULES["CON404"], message, "", "connection_failed, before anything is sent")
        return
    if first is None and seen.act.door is None and not seen.told.failure:
        count = seen.connections
        made = f"; {count} connection{' was' if count == 1 else 's were'} made" if count else ""
        message = f"an answer was given although no complete request came{made}"
        yield Problem(RULES["CON406"], message, "", "one request to the endpoint")
    yield from _redirects(seen)
    yield from _repeats(seen)
    if first is not None:
        yield from _request(seen, first.request)
        if first.request.header("Cookie"):
            message = "the request has a cookie, which an earlier answer asked for"
            yield Problem(RULES["CON405"], message, "Cookie", "no header that earlier answers decide")


def _was_led(arrival: Arrival) -> bool:
    """Whether a request came to where a redirect leads."""
    return arrival.elsewhere or arrival.request.path.startswith(MOVED)


def _is_redirect(arrival: Arrival) -> bool:
    return 300 <= arrival.reply.status < 400 and arrival.reply.header("Location") is not None


# ---- to whom, and how often


def _redirects(seen: Seen) -> Iterator[Problem]:
    led = [each for each in seen.arrivals if _was_led(each)]
    first = first_arrival(seen)
    again = [each for each in seen.arrivals if not _was_led(each)][1:]
    if not led and again and first is not None and _is_redirect(first):
        led = again  # back to the endpoint itself
    if led:
        request = led[0].request
        where = "another port" if led[0].elsewhere else shortened(request.target)
        message = f"the redirect was followed: {request.method} to {where}"
        yield Problem(RULES["CON402"], message, "", "http_error, and no other request")
    if any(each.elsewhere and each.request.header("Authorization") for each in seen.arrivals):
        message = "the authorization was sent to another port, to which a redirect led"
        yield Problem(RULES["CON403"], message, "Authorization", "no request there, least of all with it")


def _repeats(seen: Seen) -> Iterator[Problem]:
    mine = [each for each in seen.arrivals if not _was_led(each)]
    if len(mine) > 1 and not _is_redirect(mine[0]):
        gaps = sorted(round((later.at_s - sooner.at_s) * 1000) for sooner, later in pairwise(mine))
        apart = f"{gaps[0]} ms apart" if gaps[0] == gaps[-1] else f"{gaps[0]} to {gaps[-1]} ms apart"
        message = f"{len(mine)} requests came, {apart}"
        yield Problem(RULES["CON401"], message, "", "one request")
    elif seen.act.door == "reset" and seen.connections > 1:
        message = f"{seen.connections} connections were made, each was reset"
        yield Problem(RULES["CON401"], message, "", "one connection, then connection_failed")


# ---- what was sent


def _request(seen: Seen, request: Request) -> Iterator[Problem]:
    violations = request_violations(request)
    for violation in violations:
        message = f"{violation.place}: {violation.message}"
        yield Problem(violation.rule, message, violation.pointer, violation.rule.title)
    told = {violation.pointer for violation in violations}
    yield from _target(seen, request)
    yield from _authorization(seen, request)
    said = values(request.body)
    if said is not None and isinstance(said.all[0], dict):
        for name in _FIELDS:
            message = _field_difference(name, seen.act.retrieval, said.all[0])
            if message and not any(pointer.startswith(f"/{name}") for pointer in told):
                yield Problem(RULES["CON601"], message, f"/{name}", "the request as it was asked for")


def _field_difference(name: str, asked: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return how a field differs from what was asked, empty when it does not."""
    wanted, sent = asked.get(name), body.get(name)
    if _same(wanted, sent):
        return ""
    default = DEFAULT_MAX_RESULTS if name == "max_results" else None
    nothing: tuple[Any, ...] = (None, "", [], default)
    if wanted in nothing and sent in nothing:
        return ""
    if name not in asked:
        return f"{name} is {shortened(sent)}, and was not asked for"
    if name not in body:
        return f"{name} is left out, {shortened(wanted)} was asked for"
    if isinstance(wanted, str) and isinstance(sent, str) and wanted.startswith(sent):
        return f"{name} is cut after {len(sent)} of {len(wanted)} characters"
    if isinstance(wanted, list) and isinstance(sent, list):
        return f"{name} is {_listed(sent)}, {_listed(wanted)} was asked for"
    return f"{name} is {shortened(sent)}, {shortened(wanted)} was asked for"


def _listed(items: list[Any]) -> str:
    return f"[{', '.join(shortened(item, 20) for item in items[:9])}]"


def _same(wanted: Any, sent: Any) -> bool:
    if isinstance(wanted, str) and isinstance(sent, str):
        return _REPLACED.sub("\ufffd", wanted) == _REPLACED.sub("\ufffd", sent)
    return isinstance(wanted, bool) == isinstance(sent, bool) and bool(wanted == sent)


def _target(seen: Seen, request: Request) -> Iterator[Problem]:
    wanted, sent = _normal(str(seen.memory_retrieval["endpoint"])), _normal(request.target)
    if wanted != sent:
        message = f"the request went to {shortened(sent, 100)}, the endpoint is {shortened(wanted, 100)}"
        yield Problem(RULES["CON602"], message, "", f"POST {wanted}")


_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _normal(url: str) -> str:
    """Return path and query of an address, percent-encoded in one way."""

    def escaped(match: re.Match[str]) -> str:
        char = chr(int(match[1], 16))
        return char if char in _UNRESERVED else match[0].upper()

    target = re.sub(r"^[A-Za-z][\w+.-]*://[^/?#]*", "", url).partition("#")[0]
    target = target if target.startswith("/") else f"/{target}"
    return re.sub("%([0-9A-Fa-f]{2})", escaped, quote(target, safe="!#$%&'()*+,/:;=?@[]~"))


def _authorization(seen: Seen, request: Request) -> Iterator[Problem]:
    wanted = str(seen.memory_retrieval["authorization"])
    same = {wanted.strip(), wanted.encode("utf-8", "surrogatepass").decode("latin-1").strip()}
    sent = [value for name, value in request.headers if name.lower() == "authorization" and value.strip()]
    if sent and sent[0].strip() not in same:
        message = "the authorization that was sent differs from the configured one (neither is shown)"
        yield Problem(RULES["CON603"], message, "Authorization", "the configured value, as it is")
