"""Statuses outside 2xx, which decide before the body is read, and 204."""

from __future__ import annotations

from collections.abc import Callable

from memmock.errors import MemmockError
from memmock.http import Reply
from memmock.scenarios.scenario import Shelf, Stage

shelf = Shelf("statuses")

MOVED = "/memmock-moved"
"""What stands before the path of the place that redirects lead to; it answers well, to any method."""


@shelf("http_error", aliases=("400",), status=400)
def bad_request(stage: Stage) -> Reply:
    """400: the provider does not understand the request."""
    return Reply.error(400, "bad_request", "the request was not understood")


@shelf("http_error", aliases=("401",), status=401)
def unauthorized(stage: Stage) -> Reply:
    """401: the provider does not accept the authorization."""
    challenge = (("WWW-Authenticate", 'Bearer realm="memories"'),)
    return Reply.error(401, "unauthorized", "the authorization is not accepted", challenge)


@shelf("http_error", aliases=("403",), status=403)
def forbidden(stage: Stage) -> Reply:
    """403: the authorization is good, but not for this."""
    return Reply.error(403, "forbidden", "these memories are not yours")


@shelf("http_error", aliases=("404",), status=404)
def not_found(stage: Stage) -> Reply:
    """404: nothing is at the endpoint; that is no way to say that no memory was found."""
    return Reply.error(404, "not_found", "nothing is here")


@shelf("http_error", aliases=("405",), status=405)
def method_not_allowed(stage: Stage) -> Reply:
    """405: the endpoint does not take a POST."""
    return Reply.error(405, "method_not_allowed", "only GET is possible", (("Allow", "GET"),))


@shelf("http_error", aliases=("413",), status=413)
def content_too_large(stage: Stage) -> Reply:
    """413: the request is too large for the provider."""
    return Reply.error(413, "body_too_large", "the request is too large")


@shelf("http_error", aliases=("422",), status=422)
def unprocessable(stage: Stage) -> Reply:
    """422: the request is well-formed, and still not acceptable; the form is that of a popular framework."""
    return Reply.json(
        {"detail": [{"loc": ["body", "query"], "msg": "field required", "type": "missing"}]}, 422
    )


@shelf("http_error", aliases=("429",), status=429)
def rate_limited(stage: Stage, *, retry_after: int = 1) -> Reply:
    """429: too many requests, with a Retry-After in seconds."""
    return Reply.error(429, "rate_limited", "too many requests", (("Retry-After", str(retry_after)),))


@shelf("http_error", aliases=("500",), status=500)
def server_error(stage: Stage) -> Reply:
    """500: the provider has failed, and says so in JSON."""
    return Reply.error(500, "internal_error", "something went wrong")


@shelf("http_error", aliases=("502",), status=502)
def bad_gateway(stage: Stage) -> Reply:
    """502: a gateway answers for the provider, with an HTML page."""
    return Reply(502, (("Content-Type", "text/html"),), _PAGE)


@shelf("http_error", aliases=("503",), status=503)
def unavailable(stage: Stage, *, retry_after: int = 1) -> Reply:
    """503: the provider is down for a while, with a Retry-After in seconds."""
    return Reply.error(503, "unavailable", "down for maintenance", (("Retry-After", str(retry_after)),))


@shelf("http_error", aliases=("504",), status=504)
def gateway_timeout(stage: Stage) -> Reply:
    """504: a gateway waited too long for the provider."""
    return Reply(
        504, (("Content-Type", "text/html"),), _PAGE.replace(b"502 Bad Gateway", b"504 Gateway Time-out")
    )


@shelf("http_error", status=500)
def error_with_memories(stage: Stage) -> Reply:
    """A 500 whose body is a good answer, which must not be used."""
    return stage.answer()._replace(status=500)


@shelf("http_error", status=500)
def error_plain_text(stage: Stage) -> Reply:
    """A 500 with plain text, as a stack trace of the provider."""
    text = b"Traceback (most recent call last):\n  File \"app.py\", line 7, in recall\nKeyError: 'memories'\n"
    return Reply(500, (("Content-Type", "text/plain"),), text)


@shelf("http_error", status=500)
def error_empty(stage: Stage) -> Reply:
    """A 500 without a body."""
    return Reply(500)


@shelf("http_error", status=500, end="endless")
def error_endless(stage: Stage) -> Reply:
    """A 500 whose body never ends."""
    text = b"an error that goes on and on, " * 500
    return Reply(500, (("Content-Type", "text/plain"),), text).chunked().endless()


def _redirect(status: int, location: str) -> Reply:
    return Reply.error(status, "moved", "the memories are elsewhere", (("Location", location),))


def _moved(status: int) -> Callable[[Stage], Reply]:
    def redirect(stage: Stage) -> Reply:
        return _redirect(status, MOVED + stage.path)

    redirect.__doc__ = f"{status} to a place that would answer well; redirects are not followed."
    return redirect


for _status in (301, 302, 303, 307, 308):
    shelf("http_error", name=f"redirect-{_status}", aliases=(str(_status),), status=_status)(_moved(_status))


@shelf("http_error", status=307, needs="a second port")
def redirect_elsewhere(stage: Stage) -> Reply:
    """A redirect to another port, where the authorization must not show up."""
    if stage.elsewhere is None:
        raise MemmockError("redirect-elsewhere needs a second port: set `elsewhere` of the provider")
    return _redirect(307, stage.elsewhere() + MOVED + stage.path)


@shelf("http_error", status=307)
def redirect_loop(stage: Stage) -> Reply:
    """A redirect to the endpoint itself."""
    return _redirect(307, stage.request.target)


@shelf("http_error", aliases=("304",), status=304)
def not_modified(stage: Stage) -> Reply:
    """304, although nobody asked whether anything was modified."""
    return Reply(304, (("ETag", '"1"'),))


@shelf("invalid_json", aliases=("204",), status=204)
def no_content(stage: Stage) -> Reply:
    """204: a success without a body, which is no way to say that no memory was found."""
    return Reply(204)


_PAGE = b"""\
<html>
<head><title>502 Bad Gateway</title></head>
<body>
<center><h1>502 Bad Gateway</h1></center>
<hr><center>nginx</center>
</body>
</html>
"""
