"""The live twin as a test of a provider holds it: create a live session, retrieve, assert."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from memmock.consumer import Consumer
from memmock.contract import DEFAULT_AUTHORIZATION, DEFAULT_TIMEOUT_MS, Retrieval
from memmock.errors import MemmockError
from memmock.live.retrieved import Retrieved
from memmock.live.sessions import Lives, LiveSession


class TwinSession:
    """One live session; `session` is what the twin knows of it."""

    def __init__(self, session: LiveSession) -> None:
        self.session = session
        self._consumer = Consumer(session.settings)

    @property
    def id(self) -> str:
        """The id of the session, which its retrievals send as `live_id`."""
        return self.session.id

    def retrieve(self, query: str, **fields: Any) -> Retrieved:
        """Return what came of one retrieval; what the provider does wrong is in it, never raised.

        Args:
            query: what to look up.
            fields: `reason`, `memory_types`, `time_hint` and `max_results` of the request.

        Raises:
            MemmockError: a field that a retrieval does not have, or that JSON cannot carry.
        """
        __tracebackhide__ = True
        try:
            retrieval = Retrieval(query, **{"live_id": self.id, **fields})
        except TypeError:
            wrong = next(name for name in fields if name not in Retrieval.__slots__)
            raise MemmockError(f"a retrieval has no field {wrong!r}") from None
        return Retrieved.of(self.session.settings, self._consumer.exchange(retrieval))

    def close(self) -> None:
        """Close its connections."""
        self._consumer.close()

    def __repr__(self) -> str:
        return f"<TwinSession {self.id}>"


class LiveTwin:
    """Live sessions against providers under test, created as CreateLive does; it closes their connections."""

    def __init__(self) -> None:
        self.lives = Lives()
        self._open: list[TwinSession] = []

    def create(
        self,
        endpoint: str,
        authorization: str = DEFAULT_AUTHORIZATION,
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        **fields: Any,
    ) -> TwinSession:
        """Return a new live session that looks memories up at `endpoint`.

        Args:
            endpoint: absolute http or https URL of the provider.
            authorization: sent verbatim as the Authorization header.
            timeout_ms: how long one whole exchange may take, in milliseconds.
            fields: other fields of CreateLive, which are kept and ignored.

        Raises:
            MemmockError: CreateLive refuses it; the message names all mistakes.
        """
        __tracebackhide__ = True
        block = {"endpoint": endpoint, "authorization": authorization, "timeout_ms": timeout_ms}
        try:
            session = self.lives.create({**fields, "memory_retrieval": {"enabled": True, **block}})
        except MemmockError as error:
            raise MemmockError(str(error)) from None
        live = TwinSession(session)
        self._open.append(live)
        return live

    def close(self) -> None:
        """Close the connections of all sessions."""
        for live in self._open:
            live.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
