"""The one provider that recordings are made of, and what is forwarded to it."""

from __future__ import annotations

import ssl
import time
from urllib.parse import urlsplit

from memmock.client import Address, Client, Exchange
from memmock.errors import MemmockError
from memmock.http import Headers, Reply, Request
from memmock.redaction import Redactor
from memmock.tool_result import ToolError

DEFAULT_TIMEOUT_MS = 30_000
"""How long the upstream may take: longer than any consumer waits [ours]."""
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
"""How large a reply may be: far more than any consumer takes, whose limit is its own business [ours]."""

_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade", "expect", "content-length",
})  # fmt: skip
"""Headers for one connection only (RFC 9110, 7.6.1), and those that frame or announce a body."""
_CODINGS = ("gzip", "deflate")
"""What a recording can look into."""


class Upstream:
    """One provider at a fixed URL; nothing is ever sent anywhere else.

    Args:
        url: absolute http or https URL.
        authorization: replaces the client's own Authorization, when given.
        timeout_ms: how long one call may take, in milliseconds.
        ca_file: certificates to trust, in PEM, in place of the system's.

    Raises:
        MemmockError: the URL is none, or a header or the certificates cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        authorization: str | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        ca_file: str | None = None,
    ) -> None:
        _check(url, authorization)
        self.url = url
        self.authorization = authorization
        try:
            self._address = Address.of(url)
        except MemmockError:
            raise MemmockError(f"the upstream has no usable host name: {url!r}") from None
        self._client = Client(
            self._address,
            timeout_ms=timeout_ms,
            max_response_bytes=MAX_RESPONSE_BYTES,
            ssl_context=_context(ca_file),
            whole=True,
        )

    @property
    def port(self) -> int:
        """The port it is at."""
        return self._address.port

    @property
    def host(self) -> str:
        """The host name or address it is at."""
        return self._address.host

    def uri(self, request: Request) -> str:
        """Return where a request is sent to, absolute."""
        scheme = "https" if self._address.tls else "http"
        return f"{scheme}://{self._address.netloc}{self._target(request)}"

    def forwarded(self, request: Request) -> Request:
        """Return a request as it is sent on."""
        headers = [("Host", self._address.netloc)]
        headers += [pair for pair in end_to_end(request.headers) if pair[0].lower() != "host"]
        if self.authorization is not None:
            value = self.authorization.strip().encode().decode("latin-1")
            headers = [pair for pair in headers if pair[0].lower() != "authorization"]
            headers.append(("Authorization", value))
        headers = [_understood(pair) for pair in headers]
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            headers.append(("Content-Length", str(len(request.body))))
        return Request(request.method, self._target(request), tuple(headers), request.body)

    async def exchange(self, request: Request) -> Exchange:
        """Send a request on, and return what came of it."""
        return await self._client.exchange(self.forwarded(request), time.monotonic())

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _target(self, request: Request) -> str:
        query = request.target.partition("?")[2]
        target = self._address.target
        return f"{target}{'&' if '?' in target else '?'}{query}" if query else target


def end_to_end(headers: Headers) -> Headers:
    """Return the headers that go on to the other end, in their order."""
    named = {
        name.strip().lower()
        for key, value in headers
        if key.lower() == "connection"
        for name in value.split(",")
    }
    return tuple(pair for pair in headers if pair[0].lower() not in _HOP_BY_HOP | named)


def no_reply(error: ToolError) -> Reply:
    """Return what a client is told when the upstream gave no reply: 504 when it was late, else 502."""
    if error.code == "timeout":
        return Reply.error(504, "upstream_timeout", error.message.replace("provider", "upstream"))
    return Reply.error(502, "upstream_failed", error.message.replace("provider", "upstream"))


def _understood(pair: tuple[str, str]) -> tuple[str, str]:
    """Ask only for codings of the body that can be looked into for secrets."""
    name, value = pair
    if name.lower() != "accept-encoding":
        return pair
    wanted = [part.strip() for part in value.split(",")]
    known = [part for part in wanted if part.partition(";")[0].strip().lower() in _CODINGS]
    return name, ", ".join(known) or "identity"


def _check(url: str, authorization: str | None) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or url != url.strip():
        shown = Redactor().uri(url)
        raise MemmockError(f"the upstream must be an absolute http or https URL, not {shown!r}")
    if parts.username is not None:
        raise MemmockError("the upstream must not hold a user name or password; use the authorization")
    if authorization is None:
        return
    if not authorization.strip() or any(ord(char) < 32 or ord(char) == 127 for char in authorization):
        raise MemmockError("the upstream's authorization must not be empty, nor hold control characters")


def _context(ca_file: str | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # a mistake in the file is an SSLError, which is one too
        reason = (getattr(error, "reason", None) or error.strerror or str(error)).replace("_", " ").lower()
        raise MemmockError(f"{ca_file}: no certificates can be read: {reason}") from None
