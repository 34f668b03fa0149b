"""What is inspected: a journal, and what is known of the handler that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from memmock.contract import DEFAULT_MAX_RESPONSE_BYTES
from memmock.errors import MemmockError
from memmock.http import Request
from memmock.journal import Call, Journal
from memmock.provider import Provider
from memmock.redaction import Redactor, mask_of
from memmock.scenarios import Scenario, named

Kind = Literal["serve", "record", "replay", "live"]
"""Which command serves."""

_SECRET_FIELDS = ("authorization", "access_token", "api_key", "apikey", "password", "secret", "token")
"""Fields of a body that are hidden; no retrieval has one, but who looks for a mistake may well send it."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the inspector shows.

    Attributes:
        kind: which command serves.
        journal: the calls.
        endpoint: gives the URL of the mocked path, known once the server is bound.
        redactor: hides secrets in messages.
        provider: the mock provider, when it is one: then scenarios and memories can be seen and changed.
        secrets: more values that are never shown, as the control token.
        limit_bytes: how large a body the consumer takes, where no provider says so.
    """

    kind: Kind
    journal: Journal
    endpoint: Callable[[], str]
    redactor: Redactor = field(default_factory=Redactor)
    provider: Provider | None = None
    secrets: tuple[str | None, ...] = ()
    limit_bytes: int = DEFAULT_MAX_RESPONSE_BYTES

    @classmethod
    def of_provider(
        cls, provider: Provider, endpoint: Callable[[], str], *, token: str | None = None
    ) -> Subject:
        """Return what `memmock serve` shows: everything; `token` is that of the control API."""
        secrets = (provider.authorization, token)
        return cls(
            kind="serve",
            journal=provider.journal,
            endpoint=endpoint,
            redactor=Redactor(secrets=[secret for secret in secrets if secret], fields=_SECRET_FIELDS),
            provider=provider,
            secrets=secrets,
        )

    @property
    def max_response_bytes(self) -> int:
        """How large a body the consumer takes."""
        return self.limit_bytes if self.provider is None else self.provider.max_response_bytes

    def url(self, request: Request) -> str:
        """Return where a request went to: here, or for a live session to its provider."""
        here = urlsplit(self.endpoint())
        host = request.header("Host") if self.kind == "live" else None
        return f"{here.scheme}://{host or here.netloc}{request.target}"

    def mask(self, call: Call | None = None) -> Callable[[str], str]:
        """Return what hides secrets in short texts, those that the call was sent with too."""
        own = None if call is None else call.request.header("Authorization")
        current = None if self.provider is None else self.provider.authorization
        return mask_of(current, own, *self.secrets)

    def scenario(self, played: str) -> Scenario | None:
        """Return the scenario that was played, as "late(factor=2)"; None for one of the test's own."""
        own: Mapping[str, Scenario] = {} if self.provider is None else self.provider.playbook.scenarios
        try:
            return named(played.partition("(")[0], own) if played else None
        except MemmockError:
            return None

    def rules(self) -> list[dict[str, Any]]:
        """Return what is played, the newest first."""
        return [] if self.provider is None else [rule.to_json() for rule in self.provider.playbook.rules]
