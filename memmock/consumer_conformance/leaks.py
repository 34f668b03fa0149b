"""What must not get to the model: the authorization, and raw text of the provider."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

from memmock.consumer_conformance.act import Seen
from memmock.consumer_conformance.finding import Problem
from memmock.http import Reply
from memmock.reply_parsing import codings, decoded, received, values
from memmock.rules import RULES
from memmock.strictjson import pointer, shortened, walk

_SHORTEST_TOKEN = 8
"""A shorter authorization may stand in any text by chance."""
_SHORTEST_PART = 6
"""So many characters at either end of a long authorization are more than logs are wont to show [ours]."""
_RUN = 16
"""So many characters in common are no chance [ours]."""
_MOST_MESSAGE = 4000
_MOST_BODY = 256 * 1024
_USUAL_HEADERS = ("content-type", "content-encoding", "location")
"""What these say, a consumer may repeat."""
_MARKUP = re.compile(r"<html|<!doctype|traceback \(most recent call last\)", re.IGNORECASE)
_OWN_WORDS = re.compile(
    r"memories|summary|confidence|updated_at|source|type|error|code|message|status|true|false|null|[\W_]"
)
"""What any message about a reply may hold: the names of the contract, and the marks of JSON."""
_LEAST_LEFT = 8


def leak_problems(seen: Seen) -> Iterator[Problem]:
    """Yield what was told that should not have been."""
    if seen.told.value is None:
        return
    texts = [text for arrival in seen.arrivals for text in _texts_of(arrival.reply)]
    yield from _authorization(seen, texts)
    error = seen.told.value.get("error") if isinstance(seen.told.value, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    if isinstance(message, str) and (raw := _raw_text(message[:_MOST_MESSAGE], texts, _known(seen))):
        said = f"the message holds text of the provider: {shortened(raw)}"
        yield Problem(RULES["CON502"], said, "/error/message", "a message in the consumer's own words")


def _authorization(seen: Seen, texts: list[str]) -> Iterator[Problem]:
    value = str(seen.memory_retrieval["authorization"]).strip()
    token = value.rpartition(" ")[2]
    coded = [base64.b64encode(each.encode()).decode().rstrip("=") for each in (value, token)]
    secrets = [each for each in (value, token, *coded) if len(each) >= _SHORTEST_TOKEN]
    if len(token) >= 2 * _SHORTEST_PART:
        secrets += [token[-_SHORTEST_PART:], token[:_SHORTEST_PART]]
    # what the provider itself has said is not told by the consumer
    secrets = [each for each in secrets if not any(each in text for text in texts)]
    for steps, told in walk(seen.told.value):
        names = list(told) if isinstance(told, dict) else [told]
        if any(isinstance(name, str) and each in name for name in names for each in secrets):
            message = "the authorization is in what the model is given (it is not shown)"
            yield Problem(RULES["CON501"], message, pointer(*steps), "no part of the authorization")
            return


# ---- raw text


def _texts_of(reply: Reply) -> list[str]:
    """Return what a reply says: its body decoded, and the strings in its JSON; all of what is no HTTP."""
    coding, body = reply.header("Content-Encoding"), reply.body
    if reply.delivery.wire is not None:
        came = received(reply.delivery.wire)
        is_read = came.status and came.flaw != "broken"
        coding, body = came.coding, came.body if is_read else reply.delivery.wire
    for name in reversed(codings(coding)):
        if name in ("gzip", "x-gzip", "deflate"):
            body = decoded(body, name, _MOST_BODY)[0]
    body = body[:_MOST_BODY]
    said = values(body)
    strings = [] if said is None else [text for _, text in walk(said.all[0]) if isinstance(text, str)]
    told = [value for name, value in reply.headers if name.lower() not in _USUAL_HEADERS]
    return [body.decode("utf-8", "replace"), *strings, *told]


def _known(seen: Seen) -> list[str]:
    """Return what the consumer knew before the reply came."""
    asked = [text for _, text in walk(dict(seen.act.retrieval)) if isinstance(text, str)]
    return [*asked, str(seen.memory_retrieval["endpoint"]), "application/json; charset=utf-8"]


def _raw_text(message: str, texts: list[str], known: list[str]) -> str:
    """Return what a message has from the texts of a provider; empty for nothing."""
    for text in texts:
        for mark in _MARKUP.findall(message):
            if mark.lower() in text.lower():
                return str(mark)
        short = text.strip()
        if short in message and _is_distinctive(short) and not any(short in each for each in known):
            return short
        for start in range(len(message) - _RUN + 1):
            if message[start : start + _RUN] in text:
                run = _longest(message, start, text)
                if not any(run in each for each in known) and len(_OWN_WORDS.sub("", run)) >= _LEAST_LEFT:
                    return run
    return ""


def _longest(message: str, start: int, text: str) -> str:
    end = start + _RUN
    while end < len(message) and message[start : end + 1] in text:
        end += 1
    return message[start:end]


def _is_distinctive(text: str) -> bool:
    """Whether a text in a message cannot be there by chance, although it is short."""
    return not text.isascii() and len(_OWN_WORDS.sub("", text)) > 2
