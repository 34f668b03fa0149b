"""Who may use the control API: clients on this machine that mean this server, no page of another origin."""

from __future__ import annotations

import hmac
import ipaddress
import re
from typing import NamedTuple

from memmock.errors import MemmockError
from memmock.http import JSON_TYPE, Reply, Request
from memmock.strictjson import shortened

PRIVATE = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
"""Headers of every answer that is given behind a gate."""

_TOKEN = "its control API needs a token: start it with --control-token"
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:[0-9]*)?", re.IGNORECASE)


class Gate(NamedTuple):
    """Lets only those in who are on this machine and mean this server; `host` is in lower case.

    `way_out` says what there is to do where others may reach the server and there is no token.
    """

    host: str
    token: str | None
    way_out: str = _TOKEN

    @classmethod
    def of(cls, host: str, token: str | None, way_out: str = _TOKEN) -> Gate:
        """Return the gate of a server that listens on `host`.

        Raises:
            MemmockError: the token is empty, or cannot be sent in a header.
        """
        if token is not None and not re.fullmatch(r"[!-~]+", token):
            raise MemmockError("the control token must be printable ASCII without spaces, and not empty")
        return cls(host.lower().removesuffix("."), token, way_out)

    def refusal(self, request: Request, *, proof: bool = True, own: bool = False) -> Reply | None:
        """Return why a request is not let in; None when it is.

        Args:
            request: the request.
            proof: whether the token has to be there, if there is one.
            own: whether a page of another origin may not even read, as it may not change.
        """
        if not _is_loopback(request.client):
            who = request.client or "an address that is not known"
            return _forbidden(f"the control API is for clients on this machine, not for {who}")
        return (
            (self._unproven(request) if proof or self.token is None else None)
            or self._misdirected(request)
            or (_foreign(request) if own or request.method != "GET" else None)
        )

    def _unproven(self, request: Request) -> Reply | None:
        if self.token is None:
            if is_local(self.host):
                return None
            return _forbidden(
                f"the server listens on {self.host}, where others may reach it, so {self.way_out}"
            )
        scheme, _, sent = (request.header("Authorization") or "").partition(" ")
        same = hmac.compare_digest(sent.strip().encode("utf-8", "replace"), self.token.encode())
        if same and scheme.lower() == "bearer":
            return None
        message = (
            "the control API needs the header `Authorization: Bearer …` with the value of --control-token"
        )
        if request.header("Authorization"):
            message += ", not the one that was sent"
        return Reply.error(401, "unauthorized", message, (("WWW-Authenticate", 'Bearer realm="memmock"'),))

    def _misdirected(self, request: Request) -> Reply | None:
        """Refuse a name that only leads here: another site's, which its own pages may make lead here."""
        hosts = [value for name, value in request.headers if name.lower() == "host"]
        if len(hosts) != 1:
            return _forbidden(f"the Host header must be there once, not {len(hosts)} times")
        found = _HOST.fullmatch(hosts[0])
        name = found[1].strip("[]").lower().removesuffix(".") if found else ""
        if name and (is_local(name) or name == self.host):
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


def is_local(host: str) -> bool:
    """Whether a host name or address stands for this machine only."""
    return host == "localhost" or _is_loopback(host)


def _is_loopback(address: str) -> bool:
    """Whether an address is one of this machine only; one that is not known is none."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback
