"""A handler on the suite's own pytest-httpserver, for suites that have one already.

Werkzeug frames the replies, so each connection carries one request, and a delay holds a thread.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from memmock.http import Handler, Reply, Request

if TYPE_CHECKING:
    import pytest_httpserver
    import werkzeug


def mount(handler: Handler, httpserver: pytest_httpserver.HTTPServer, path: str) -> None:
    """Let `handler` answer every method at `path`, behind any gateway prefix."""
    from werkzeug import Response

    def respond(received: werkzeug.Request) -> Response:
        answer = handler(_request(received))
        reply = answer if isinstance(answer, Reply) else asyncio.run(_result(answer))
        time.sleep(reply.delivery.delay_s)
        return Response(reply.body, reply.status, list(reply.headers))

    httpserver.expect_request(re.compile(f".*{re.escape(path)}$")).respond_with_handler(respond)


def _request(received: werkzeug.Request) -> Request:
    version = received.environ.get("SERVER_PROTOCOL", "HTTP/1.1").removeprefix("HTTP/")
    target = received.environ.get("RAW_URI") or received.full_path.removesuffix("?")
    return Request(received.method, target, tuple(received.headers.items()), received.get_data(), version)


async def _result(answer: Awaitable[Reply]) -> Reply:
    return await answer
