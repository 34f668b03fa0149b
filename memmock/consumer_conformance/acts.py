"""The fixed catalogue of acts: what is asked of a consumer, and what the provider does to it.

All scenarios are played, then what takes other settings or several calls to see: retrievals of every kind,
other limits, bodies that pass the limit and stall, and a certificate that nobody trusts.
"""

from __future__ import annotations

import difflib
import gzip
import random
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from memmock.consumer_conformance.act import PLAIN, Act
from memmock.contract import MEMORY_TYPES
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply
from memmock.scenarios import CATALOGUE, FAMILIES, Scenario, Stage, members, named
from memmock.scenarios.framing import padded

GOOD = Act(name="success", summary="The honest answer.", make=lambda stage: stage.answer(), outcomes=("ok",))
"""What is played between all others."""
LIMITS = (4096, 200_000)
"""Limits other than the usual one."""
OVER_BYTES = 128 * 1024
"""How much comes beyond the limit before a body stalls: more than any client reads at once."""
_JSON = (("Content-Type", JSON_TYPE),)


def chosen(names: Collection[str] | None = None) -> list[Act]:
    """Return the acts, or those with these names; a family of scenarios, `more` or `requests` stands for all.

    Raises:
        MemmockError: there is no such scenario.
    """
    acts = [*scenario_acts(), *more_acts(), *request_acts()]
    if names is None:
        return acts
    own = {act.name for act in acts if act.scenario is None or act.name != act.scenario.name}
    wanted: set[str] = set()
    for name in names:
        if name in _OWN_FAMILIES:
            wanted |= {act.name for act in acts if family_of(act) == name}
        else:
            wanted |= {name} if name in own else _of_catalogue(name, own)
    return [act for act in acts if act.name in wanted]


_OWN_FAMILIES = ("more", "requests")


def _of_catalogue(name: str, own: set[str]) -> set[str]:
    """Return the scenarios that a name stands for.

    Raises:
        MemmockError: there is none; near names of acts that are no scenarios are told too.
    """
    try:
        return {each.name for each in members(name)}
    except MemmockError:
        ours = own.union(_OWN_FAMILIES)
        near = difflib.get_close_matches(name.lower(), sorted(ours.union(FAMILIES, CATALOGUE)), 3, 0.4)
        if ours.isdisjoint(near):
            raise
        hint = f"near it are {', '.join(near)}"
        raise MemmockError(f"there is no scenario {name!r}; {hint}; `memmock scenarios` lists all") from None


def act_of(scenario: Scenario, **parameters: float) -> Act:
    """Return the act that plays a scenario."""
    given = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return Act(
        name=f"{scenario.name}({given})" if given else scenario.name,
        summary=scenario.summary,
        make=lambda stage: scenario.reply(stage, **parameters),
        outcomes=scenario.outcomes,
        door=scenario.door,
        scenario=scenario,
    )


def family_of(act: Act) -> str:
    """Return the family of scenarios that an act is of; `requests` or `more` for the others."""
    if act.scenario is not None and act.name == act.scenario.name:
        return act.scenario.family
    return "requests" if act.name.startswith(_ASKS) else "more"


def scenario_acts() -> Iterator[Act]:
    """Yield an act for each scenario; those that take the consumer's time last within their family."""
    for family in FAMILIES:
        yield from (act_of(scenario) for scenario in CATALOGUE.values() if scenario.family == family)


# ---- more of the same kinds


def more_acts() -> Iterator[Act]:
    """Yield what no scenario has."""
    for limit in LIMITS:
        for name in ("exact-limit", "over-limit-by-one"):
            act = act_of(named(name))
            yield replace(act, name=f"{name}, limit {limit}", max_response_bytes=limit)
    yield act_of(named("rate-limited"), retry_after=0)
    yield act_of(named("unavailable"), retry_after=0)
    yield from _OWN
    yield Act(
        name="untrusted-certificate",
        summary="The endpoint is https, with a certificate of an authority that nobody knows.",
        make=lambda stage: stage.answer(),
        outcomes=("connection_failed",),
        tls=True,
    )


def _own(name: str, summary: str, make: Any, *outcomes: Any, **more: Any) -> Act:
    return Act(name=name, summary=summary, make=make, outcomes=outcomes, **more)


def _over(stage: Stage) -> bytes:
    return padded(stage, stage.max_response_bytes + 2 * OVER_BYTES).body


def _stalled(stage: Stage) -> Reply:
    body = _over(stage)
    return Reply(200, _JSON, body).chunked(8192).cut(stage.max_response_bytes + OVER_BYTES).hanging()


def _stalled_close(stage: Stage) -> Reply:
    reply = Reply(200, _JSON, _over(stage)).until_close()
    return reply.cut(stage.max_response_bytes + OVER_BYTES).hanging()


def _stalled_gzip(stage: Stage) -> Reply:
    noise = random.Random(1).randbytes(stage.max_response_bytes + 2 * OVER_BYTES)
    reply = Reply(200, (*_JSON, ("Content-Encoding", "gzip")), gzip.compress(noise, 1, mtime=0))
    return reply.chunked(8192).cut(stage.max_response_bytes + OVER_BYTES).hanging()


def _flood(stage: Stage) -> Reply:
    memory = '{"summary":"用户喜欢喝茉莉花茶，也喜欢下雨天。"},'.encode()
    return Reply(200, _JSON, b'{"memories":[' + memory * 900).chunked(65536).endless()


def _exact_chunks(stage: Stage) -> Reply:
    return padded(stage, stage.max_response_bytes).chunked(256)


def _exact_gzip(stage: Stage) -> Reply:
    body = gzip.compress(padded(stage, stage.max_response_bytes).body, mtime=0)
    return Reply(200, (*_JSON, ("Content-Encoding", "gzip")), body)


def _many(stage: Stage) -> Reply:
    mine = stage.memories[0]["summary"]
    return Reply.json({"memories": [{"summary": f"{n}: {mine}", "type": "other"} for n in range(24)]})


def _cookie(stage: Stage) -> Reply:
    reply = stage.answer()
    return reply._replace(headers=(*reply.headers, ("Set-Cookie", "session=4711; Path=/")))


def _large_error(stage: Stage) -> Reply:
    return Reply(500, (("Content-Type", "text/plain"),), b"no memories today, sorry. " * 12_000)


def _error_hangs(stage: Stage) -> Reply:
    return Reply.error(500, "internal_error", "something went wrong").cut(10).hanging()


def _error_reset(stage: Stage) -> Reply:
    return Reply.error(503, "unavailable", "down for maintenance").dripped(10, 0.02).cut(20).reset()


def _error_gzip(stage: Stage) -> Reply:
    return Reply(502, (*_JSON, ("Content-Encoding", "gzip")), b"this is no gzip at all")


def _in_long_time(stage: Stage) -> Reply:
    return stage.answer().delayed(0.4 * stage.timeout_s)


_OWN = (
    _own("many-memories", "24 memories come, none with an id.", _many, "ok"),
    _own("sets-a-cookie", "The answer sets a cookie, which must not come back.", _cookie, "ok"),
    _own(
        "exact-limit-chunked", "The body has exactly the allowed size, in small chunks.", _exact_chunks, "ok"
    ),
    _own("exact-limit-gzip", "The body has exactly the allowed size once it is decoded.", _exact_gzip),
    _own(
        "stalls-over-limit",
        "The chunked body passes the limit, and then nothing comes.",
        _stalled,
        "response_too_large",
    ),
    _own(
        "stalls-over-limit-without-length",
        "The body without a length passes the limit, and then stalls.",
        _stalled_close,
        "response_too_large",
    ),
    _own(
        "gzip-stalls-over-limit",
        "The gzip body passes the limit as it is received, and then stalls.",
        _stalled_gzip,
        "response_too_large",
    ),
    _own(
        "flood", "The body never ends, and comes as fast as the client reads.", _flood, "response_too_large"
    ),
    _own(
        "error-large", "A 500 with a page of 300 kB, which nobody needs to read.", _large_error, "http_error"
    ),
    _own(
        "error-hangs", "A 500 whose body stops after ten bytes, and stays open.", _error_hangs, "http_error"
    ),
    _own("error-reset", "A 503 whose connection is reset within the body.", _error_reset, "http_error"),
    _own(
        "error-broken-gzip",
        "A 502 whose body is not the gzip that it claims to be.",
        _error_gzip,
        "http_error",
    ),
    _own(
        "long-timeout",
        "The answer takes longer than the usual timeout_ms, but not than that of this call.",
        _in_long_time,
        "ok",
        time_factor=10.0,
    ),
)


FAILURES = (
    *("server-error",) * 5,
    *("close-without-reply",) * 3,
    *("unavailable",) * 6,
    *("bad-request", "plain-text"),
    *("hang",) * 3,
)
"""Scenarios that are played one after the other, without a good one between them."""


# ---- what is asked

_ASKS = "asks "
_MANY = dict.fromkeys(("live_id", "reason", "time_hint"), "")


def _asked(what: str, **fields: Any) -> Act:
    more = {name: fields.pop(name) for name in ("query_string", "authorization") if name in fields}
    retrieval = {**PLAIN, **fields}
    retrieval = {name: value for name, value in retrieval.items() if value is not None}
    act = replace(GOOD, name=f"{_ASKS}{what}", retrieval=retrieval)
    if "query_string" in more:
        act = replace(act, query=more["query_string"])
    return replace(act, authorization=more["authorization"]) if "authorization" in more else act


_NOTHING_ELSE = dict.fromkeys((name for name in PLAIN if name != "query"), None)


def request_acts() -> Iterator[Act]:
    """Yield retrievals of every kind, all answered honestly."""
    yield _asked("with the query only", query="用户喜欢喝什么", **_NOTHING_ELSE)
    yield _asked("with empty fields", **_MANY, memory_types=[])
    yield _asked("with a 64-bit live_id", live_id="18446744073709551615")
    for kind in ("other", "style"):
        yield _asked(f"for one type, {kind}", memory_types=[kind])
    yield _asked("for all types", memory_types=[*MEMORY_TYPES])
    for most in (1, 20, 1000):
        yield _asked(f"for {most} results", max_results=most)
    for what, query in QUERIES.items():
        yield _asked(f"with {what}", query=query, reason=query[:200])
    yield _asked("at an endpoint with a query string", query_string="?Tenant=A%2Fb&v=2")
    yield _asked("with an authorization without a scheme", authorization="k-3f9c27d0b1e84a56")
    yield _asked("with another scheme of authorization", authorization="Basic bWVtbW9jazpub3Qtc2VjcmV0PT0=")


QUERIES = {
    "capital letters": "Does Ann still like ASSAM Tea, as in 北京 (BEIJING)?",
    "quotation marks and backslashes": 'say "hi" or C:\\temp\\new, it\'s {"a": 1}',
    "line breaks and tabs": "first line\nsecond\r\n\tthird",
    "control characters": "a\u0001b\u001b[31mc\u007f",
    "markup and placeholders": "<b>&amp;</b> %s {0} {{x}} ${y} #{z} %20+",
    "emoji": "👩🏽‍🚀 🏳️‍🌈 👨‍👩‍👧 ☕️",
    "rare CJK characters": "姓𠮷的人住在𪚥村，髙橋",
    "right-to-left text": "ماذا يحب المستخدم؟ מה המשתמש אוהב",
    "combining marks": "Cafe\u0301 Zoe\u0308 ﬁ Å",
    "line separators": "one\u2028two\u2029three\u00a0four\u200bfive",
    "spaces around it": "  tea  ",
    "a long query": "用户上次说过的那件事" * 40,
    "a very long query": "what does the user like, 用户喜欢什么; " * 300,
}


def act_named(name: str, *, timeout_ms: int | None = None, max_response_bytes: int | None = None) -> Act:
    """Return the act with this name.

    Raises:
        MemmockError: there is none.
    """
    for act in chosen():
        if act.name == name:
            break
    else:
        raise MemmockError(
            f"there is nothing named {name!r} to play; `memmock scenarios` lists the scenarios"
        )
    if timeout_ms is not None:
        act = replace(act, timeout_ms=timeout_ms)
    return act if max_response_bytes is None else replace(act, max_response_bytes=max_response_bytes)
