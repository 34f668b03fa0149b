"""Plays a cassette: a handler that answers from recordings, and from nowhere else."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from memmock.cassette import Cassette, Miss, true_headers
from memmock.http import AT_ONCE, Handler, Headers, Reply, Request, encode_json
from memmock.journal import Journal
from memmock.upstream import end_to_end


class Replay:
    """Answers each request with its recording; 404 when there is none, and nothing ever leaves for a network.

    Args:
        cassette: what is played.
        paths: where it answers, any gateway prefix may stand before them; wherever it was recorded when there
            are none.
        latency: answer as late as the upstream did.
        names: how each interaction is called in messages, as `interaction 2 of chat.yaml`.
        play: chooses the interaction for a request without secrets, in place of the cassette.
        otherwise: answers what was not recorded, in place of the 404.
    """

    def __init__(
        self,
        cassette: Cassette,
        *,
        paths: Sequence[str] = (),
        latency: bool = False,
        names: Sequence[str] = (),
        play: Callable[[Request], int | Miss] | None = None,
        otherwise: Handler | None = None,
    ) -> None:
        self.cassette = cassette
        self.journal = Journal()
        self.missed = 0
        """How many requests were not recorded."""
        self._paths = tuple(paths)
        self._latency = latency
        self._names = names
        self._play = play or cassette.find
        self._otherwise = otherwise
        self._replies: dict[int, Reply] = {}

    def __call__(self, request: Request) -> Reply | Awaitable[Reply]:
        """Return the recorded reply, or a 404 that says what is nearest."""
        received_at, start = time.time(), time.perf_counter()
        sent, request = request, self.cassette.redactor.request(request)
        if self._paths and not request.path.endswith(self._paths):
            reply, name = Reply.error(404, "not_found", f"nothing is here; the path is {self._paths[0]}"), ""
        else:
            played = self._play(request)
            if isinstance(played, Miss):
                if self._otherwise is not None:
                    return self._otherwise(sent)
                self.missed += 1
                reply, name = missed(played, self.name), ""
            else:
                reply, name = self._reply(played), self.name(played)
        call = self.journal.add(request, reply, received_at, time.perf_counter() - start, recording=name)
        if reply.delivery == AT_ONCE:
            return reply
        return reply._replace(on_sent=lambda sent: self.journal.end(call, sent))

    def name(self, number: int) -> str:
        """Return how an interaction is called."""
        return self._names[number - 1] if number <= len(self._names) else f"interaction {number}"

    def _reply(self, number: int) -> Reply:
        reply = self._replies.get(number)
        if reply is None:
            recorded = self.cassette.interactions[number - 1]
            reply = recorded.reply._replace(headers=played_headers(recorded.reply))
            if self._latency and recorded.elapsed_ms:
                reply = reply.delayed(recorded.elapsed_ms / 1000)
            self._replies[number] = reply
        return reply


def missed(miss: Miss, name: Callable[[int], str]) -> Reply:
    """Return what a client is told whose request was not recorded."""
    details: dict[str, Any] = {}
    if miss.nearest is not None:
        details["nearest"] = {
            "interaction": name(miss.nearest),
            "played": miss.played,
            "differences": [
                {name: _carried(value) for name, value in found._asdict().items()}
                for found in miss.differences
            ],
        }
    first, *rest = explained(miss, name)
    differs = "; ".join(" ".join(line.split()) for line in rest)
    return Reply.error(404, "not_recorded", f"{first} {differs}".strip(), **details)


def _carried(value: Any) -> Any:
    """Return a value that was received as JSON can carry it: a number may be beyond a double's range."""
    try:
        encode_json(value)
    except ValueError:
        return str(value)
    return value


def explained(miss: Miss, name: Callable[[int], str]) -> list[str]:
    """Return why nothing was played to a request: a line, and one for each difference."""
    if miss.nearest is None:
        return ["there is no recording at all"]
    nearest = name(miss.nearest)
    played = f", played {miss.played} times already" if miss.played > 1 else ", already played"
    if not miss.differences:
        return [f"no recording is left: {nearest} answers it{played}"]
    return [f"nearest is {nearest}{played if miss.played else ''}:", *map(str, miss.differences)]


def played_headers(reply: Reply) -> Headers:
    """Return the headers with which a recorded reply is sent: without what framed it then."""
    return true_headers(end_to_end(reply.headers), reply.body)
