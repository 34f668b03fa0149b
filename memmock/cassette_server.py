"""A server for cassettes in tests: started once, with the tape of one test at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from memmock.contract import DEFAULT_AUTHORIZATION, DEFAULT_PATH, RetrievalConfig
from memmock.errors import MemmockError
from memmock.http import Handler, Reply, Request, check_path
from memmock.journal import Call
from memmock.recorder import Recorder
from memmock.replay import Replay
from memmock.server import Server
from memmock.tape import Tape
from memmock.upstream import Upstream


class Playing:
    """A tape that is being served: what a test holds."""

    def __init__(self, tape: Tape, endpoint: str, upstream: Upstream | None, path: str) -> None:
        self.tape = tape
        self.endpoint = endpoint
        recorder = None
        if tape.records:
            if upstream is None:
                raise MemmockError(
                    f"to record, an upstream is needed: give --memmock-upstream=URL, MEMMOCK_UPSTREAM or "
                    f"memmock_upstream in the ini file (the mode is {tape.mode})"
                )
            recorder = Recorder(
                upstream,
                tape.keep,
                redactor=tape.redactor,
                path=path,
                failures=tape.failures,
                unanswered=tape.unanswered,
            )
        self._replay = Replay(tape.cassette, paths=(path,), play=tape.play, otherwise=recorder)
        self.handler: Handler = self._replay if tape.plays or recorder is None else recorder
        self._journals = [self._replay.journal, *([recorder.journal] if recorder else [])]

    @property
    def calls(self) -> list[Call]:
        """The calls so far, in the order in which they were answered."""
        calls = [call for journal in self._journals for call in journal.calls]
        return sorted(calls, key=lambda call: call.received_at)

    def config(self, **overrides: Any) -> dict[str, Any]:
        """Return the `memory_retrieval` block that points at the endpoint, with `overrides`.

        Raises:
            MemmockError: no live session could be created with these values.
        """
        block = {"endpoint": self.endpoint, "authorization": DEFAULT_AUTHORIZATION, **overrides}
        return RetrievalConfig(**block).to_json()


class CassetteServer:
    """Serves tapes from a thread of its own, one at a time.

    The endpoint stays the same, so that a service under test may be started once. Between two tapes, each
    request is answered with 404.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, path: str = DEFAULT_PATH) -> None:
        check_path(path)
        self._path = path
        self._handler: Handler = _nothing_plays
        self._server = Server(self._answer, host=host, port=port)

    @property
    def endpoint(self) -> str:
        """Where the tape is served; known once the server was started."""
        return self._server.url + self._path

    @contextmanager
    def playing(self, tape: Tape, upstream: Upstream | None = None) -> Iterator[Playing]:
        """Serve a tape for the time of a `with`.

        Raises:
            MemmockError: another tape is being served, or there is no upstream to record from.
        """
        if self._handler is not _nothing_plays:
            raise MemmockError("a cassette is being served already; leave its `with` before the next")
        playing = Playing(tape, self.endpoint, upstream, self._path)
        self._server.forget()
        self._handler = playing.handler
        try:
            yield playing
        finally:
            self._handler = _nothing_plays
            if upstream is not None:
                self._server.do(upstream.close())
        self._server.check()

    def start(self) -> None:
        """Start serving; return once connections are accepted.

        Raises:
            MemmockError: the address cannot be had.
        """
        self._server.start()

    def stop(self) -> None:
        """Stop serving; no thread and no socket is left."""
        self._server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answer(self, request: Request) -> Reply | Awaitable[Reply]:
        return self._handler(request)


def _nothing_plays(request: Request) -> Reply:
    return Reply.error(404, "not_found", "no cassette is being played: the test that did is over")
