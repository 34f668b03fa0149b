"""Requests to a live twin: one call, with JSON both ways."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from urllib.parse import quote

from memmock import strictjson
from memmock.contract import DEFAULT_TIMEOUT_MS, url_mistake
from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply
from memmock.strictjson import printable

_MAX_RESPONSE_BYTES = 16 * 1024 * 1024
_SPARE_MS = 5000
"""How much longer the twin may take than the exchange that it makes."""


def base_of(url: str) -> str:
    """Return the address of a twin, with or without the path of its live sessions, without a path.

    Raises:
        MemmockError: it is no absolute http or https URL.
    """
    from memmock.live import LIVES_PATH

    if mistake := url_mistake(url):
        raise MemmockError(f"the URL of --live {mistake}")
    return url.rstrip("/").removesuffix(LIVES_PATH)


def retrieved(url: str, live_id: str, asked: dict[str, Any], *, token: str | None = None) -> dict[str, Any]:
    """Return what came of a retrieval that the live session of a twin made, as the twin answers it.

    Raises:
        MemmockError: there is no twin, no such session, or it does not look memories up.
    """
    from memmock.live import LIVES_PATH, retrieve_path

    base, live_id = base_of(url), quote(live_id, safe="")
    live = answered(_send(f"{base}{LIVES_PATH}/{live_id}"), base).get("live", {})
    timeout_ms = live.get("memory_retrieval", {}).get("timeout_ms", DEFAULT_TIMEOUT_MS)
    body = json.dumps(asked, ensure_ascii=False)
    reply = post(base + retrieve_path(live_id), body, token=token, timeout_ms=timeout_ms + _SPARE_MS)
    answer = answered(reply, base)
    if not {"tool_result", "advice", "timing", "reply", "violations"} <= answer.keys():
        raise MemmockError(f"{base} does not answer as memmock's live twin does")
    return answer


def post(url: str, body: str, *, token: str | None = None, timeout_ms: int = _SPARE_MS) -> Reply:
    """Return the reply to a body of JSON.

    Raises:
        MemmockError: there is no complete reply within the time.
    """
    headers = [("Content-Type", JSON_TYPE)]
    if token is not None:
        headers.append(("Authorization", f"Bearer {token}"))
    return _send(url, "POST", headers, body.encode("utf-8", "surrogateescape"), timeout_ms)


def answered(reply: Reply, base: str) -> dict[str, Any]:
    """Return the object that a twin answered.

    Raises:
        MemmockError: it refused; the message is its own.
    """
    try:
        answer = strictjson.parse(reply.body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise MemmockError(f"{base} does not answer as memmock's live twin does (status {reply.status})")
    if reply.status == 200:
        return answer
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else answer.get("message")
    raise MemmockError(printable(str(message)) if message else f"{base} answers with status {reply.status}")


def _send(
    url: str,
    method: str = "GET",
    headers: list[tuple[str, str]] | None = None,
    body: bytes = b"",
    timeout_ms: int = _SPARE_MS,
) -> Reply:
    from memmock.client import Address, Client
    from memmock.http import Request

    address = Address.of(url)
    given = [("Host", address.netloc), ("Accept", JSON_TYPE), *(headers or [])]
    if body:
        given.append(("Content-Length", str(len(body))))
    request = Request(method, address.target, tuple(given), body)

    async def exchanged() -> Reply:
        client = Client(address, timeout_ms=timeout_ms, max_response_bytes=_MAX_RESPONSE_BYTES, whole=True)
        try:
            exchange = await client.exchange(request, time.monotonic())
        finally:
            await client.close()
        if exchange.reply is None or not exchange.complete:
            error = exchange.result.error
            why = "it was too large" if error is None else error.message
            raise MemmockError(f"no answer from the live twin at {address.netloc}: {why}")
        return exchange.reply

    return asyncio.run(exchanged())
