"""One client connection: bytes in, requests to the handler, replies out, in order.

An `asyncio.Protocol` over httptools (llhttp). It keeps HTTP/1.1 and 1.0 connections alive, answers
pipelined requests in the order they came, and refuses with one structured error, then closes, whatever is
malformed, too large or too slow. A reply with a delivery of its own is played step by step, and the reply is
told how that ended.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import httptools

from memmock.errors import MemmockError
from memmock.http import AT_ONCE, Handler, Headers, How, Reply, Request, Sent
from memmock.player import Player, reset
from memmock.reply_writer import encoded, scripted
from memmock.sockets import LINGER_S


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may take of the server; sizes in bytes, times in seconds.

    `request_s` runs from a request's first byte to its last, `idle_s` from a reply to the next request.
    """

    head_bytes: int = 64 * 1024
    body_bytes: int = 1024 * 1024
    request_s: float = 20.0
    idle_s: float = 75.0


MAX_WAITING = 32
"""How many pipelined requests may wait behind the one being answered before reading stops."""


class Head(NamedTuple):
    """What a request line and headers mean, with the length of the body that is to follow."""

    method: str
    target: str
    headers: Headers
    version: str
    keep_alive: bool
    body_bytes: int


MAX_AT_ONCE = 4 * 1024
"""How many bytes of a client that sends without a pause are looked at before the others have their turn."""
MAX_HEADS = 256
MAX_HEAD_BYTES = 4096
"""How many heads are remembered, and how large they may be. A client sends the same few again and again:
each is parsed once."""


class _Turn(NamedTuple):
    """What is to be answered next: a request, or a refusal that is ready."""

    request: Request
    keep_alive: bool
    refusal: Reply | None = None


class _Stop(Exception):
    """Raised out of a parser's callback, to stop the parsing."""


class Hub:
    """What the connections of one server share.

    Args:
        handler: answers the requests.
        limits: what a client may take.
        failed: told of each exception that the handler raises.
    """

    def __init__(self, handler: Handler, limits: Limits, failed: Callable[[BaseException], None]) -> None:
        self.handler = handler
        self.limits = limits
        self.failed = failed
        self.greets: Callable[[], bool] = lambda: True  # asked whether a new connection is to be served
        self.connections: set[Connection] = set()
        self.numbers = itertools.count(1)  # of the connections
        self.connected = 0  # how many there were so far
        self.stopped = False
        self.heads: dict[bytes, Head] = {}  # those that were parsed so far, by their bytes
        self._out: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes, loop: asyncio.AbstractEventLoop) -> None:
        """Write `data` at the end of the loop's pass, together with what else is to be written.

        With several clients that serves a fifth more requests than to write each reply when it is made:
        every write wakes a client, and the two then take the processor from each other.
        """
        out = self._out
        if not out:
            loop.call_soon(self.flush)
        out.append((transport, data))
        if len(out) >= MAX_OUT:
            self.flush()

    def flush(self) -> None:
        """Write now."""
        out, self._out = self._out, []
        for transport, data in out:
            if not transport.is_closing():
                transport.write(data)


MAX_OUT = 32
"""How many replies are written together at most, so that a client that does not read is noticed."""


class Connection(asyncio.Protocol):
    """Serves one client."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._handler = hub.handler
        self._limits = hub.limits
        self._heads = hub.heads
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._answering: asyncio.Task[None] | None = None
        self._waiting: deque[_Turn] = deque()
        self._receiving = False  # part of a request is here
        self._in_head = False  # part of its head is here, and about so many bytes of it:
        self._fed = 0
        self._completed = False  # a request became complete with the last bytes that came
        self._whole: bytes | None = None  # the last bytes that came, if a request began with them
        self._unparsed = memoryview(b"")  # what came, and is not looked at yet: the others have their turn
        self._turn_owed = False  # it goes on when the others have had theirs
        self._progress = False  # the last bytes that came held some of a body
        self._offered: bytes | None = None  # the request line of a request that offers another protocol
        self._welcomed = False  # its body was looked at before it came
        self._continue_owed = False  # the client waits for a 100 that is not its turn yet
        self._client = ""  # its address
        self._number = 0  # that of the connection
        self._player: Player | None = None  # plays the delivery that is under way
        self._farewell: Callable[[], None] | None = None  # told when the connection is closed
        self._deaf = False  # what still comes in is thrown away
        self._blocked = False  # the client does not read what was sent
        self._deadline = self._loop.time() + hub.limits.idle_s

    @property
    def number(self) -> int:
        """The number of the connection."""
        return self._number

    @property
    def playing(self) -> bool:
        """Whether a delivery is under way."""
        return self._player is not None

    @property
    def sent_bytes(self) -> int:
        """How much was sent of the delivery that is under way."""
        player = self._player
        return 0 if player is None else player.sent_bytes

    # ---- the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start serving."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        hub = self._hub
        hub.connections.add(self)
        hub.connected += 1
        self._number = next(hub.numbers)
        peer = transport.get_extra_info("peername")
        self._client = peer[0] if isinstance(peer, tuple) else ""
        if not hub.greets():
            self._reset()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what is not answered yet."""
        self._hub.connections.discard(self)
        self._deaf = True
        self._unparsed = memoryview(b"")
        self._waiting.clear()
        if self._answering is not None:
            self._answering.cancel()
        self._say_farewell()

    def data_received(self, data: bytes) -> None:
        """Parse; the callbacks below do the rest."""
        if self._deaf:
            return
        if not self._receiving:
            end = data.find(b"\r\n\r\n") + 4
            head = self._heads.get(data[:end])
            if head is not None and len(data) - end == head.body_bytes:
                request = Request(
                    head.method,
                    head.target,
                    head.headers,
                    data[end:],
                    head.version,
                    self._client,
                    self._number,
                )
                self._take(request, head.keep_alive)
                return
        self._whole = None if self._receiving else data
        self._unparsed = memoryview(data)  # to cut it costs no copy
        self._parse_on()

    def _parse_on(self) -> None:
        """Parse what came, in pieces: the other clients have their turn behind each that held a request."""
        while self._unparsed and not self._deaf:
            more = len(self._unparsed) > MAX_AT_ONCE
            data, self._unparsed = self._unparsed[:MAX_AT_ONCE], self._unparsed[MAX_AT_ONCE:]
            self._completed = self._progress = False
            if rest := self._parse(data):
                self._unparsed = memoryview(b"".join((rest, self._unparsed)))
            if self._turn_owed:  # it came to be, from `_regulate`
                return
            if more and self._completed:
                self._yield_turn()
                return
        self._unparsed = memoryview(b"")

    def _yield_turn(self) -> None:
        self._turn_owed = True
        self._transport.pause_reading()
        self._loop.call_soon(self._have_turn)

    def _have_turn(self) -> None:
        if self._transport.is_closing():
            return
        self._turn_owed = False
        if self._blocked or len(self._waiting) >= MAX_WAITING:
            return  # `_regulate` goes on
        self._parse_on()
        self._regulate()

    def _parse(self, data: memoryview) -> bytes | memoryview:
        """Parse, and return what is still to be parsed, by a new parser."""
        self._long = self._fed + len(data) > self._limits.head_bytes
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            return self._declined(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Stop):
                raise
        except httptools.HttpParserInvalidMethodError:
            if _REQUEST_LINE.match(data) and not self._completed:
                self._refuse(501, "not_implemented", "the method is unknown; a retrieval is a POST")
            else:
                self._refuse(400, "bad_request", "the request is not HTTP")
        except httptools.HttpParserError as error:
            self._refuse(400, "bad_request", f"the request is malformed: {error}")
        else:
            if self._receiving:
                self._wait_for_more(len(data))
        return b""

    def _wait_for_more(self, came: int) -> None:
        """See to it that the rest of a request is worth waiting for, and may come."""
        if self._in_head:
            if not self._completed:
                self._fed += came
            if self._fed > self._limits.head_bytes:
                self._refuse_head()
            return
        if not self._welcomed:
            self._welcomed = True
            self._welcome_body({name.lower(): value.lower() for name, value in self._headers})
        if not self._progress:  # a chunk's size or extension, or a trailer
            self._fed += came
            if self._fed > self._limits.head_bytes:
                self._refuse_head()

    def _welcome_body(self, headers: dict[bytes, bytes]) -> None:
        """Refuse a body that is too large before it comes, and let a client that asks send its body."""
        expected = headers.get(b"expect")
        if int(headers.get(b"content-length", b"0")) > self._limits.body_bytes:
            self._refuse_body()
        elif expected is None or self._parser.get_http_version() == "1.0":
            return
        elif expected != b"100-continue":
            self._refuse(417, "expectation_failed", "only 100-continue can be expected")
        elif self._answering is None:
            self._write(_CONTINUE)
        else:
            self._continue_owed = True

    def _declined(self, rest: memoryview) -> bytes | memoryview:
        """Decline the protocol that a client offers, by going on in HTTP/1.1; return what to parse.

        The parser takes an offer for accepted, and what follows for that protocol. So the head is parsed
        again without the offer.
        """
        self._parser = httptools.HttpRequestParser(self)
        if self._offered is None:  # CONNECT is such an offer too, and was answered
            return rest
        lines = [b"%s: %s" % field for field in self._headers if field[0].lower() != b"upgrade"]
        head, self._offered = self._offered, None
        return b"\r\n".join([head, *lines, b"", rest])

    def eof_received(self) -> bool:
        """Close: a client that has done sending has left, as far as anyone can tell."""
        self._hub.flush()
        return False

    def pause_writing(self) -> None:
        """Answer no more while the client does not read, and wait for it as for an idle one."""
        self._blocked = True
        if self._player is not None:
            self._player.pause()
        self._deadline = self._loop.time() + self._limits.idle_s
        self._regulate()

    def resume_writing(self) -> None:
        """Go on answering."""
        self._blocked = False
        if self._player is not None:
            self._player.resume()
            self._deadline = math.inf
        else:
            self._deadline = self._loop.time() + self._limits.idle_s
        self._answer_waiting()

    # ---- the parser calls

    def on_message_begin(self) -> None:
        """Make room for a request."""
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._body_size = self._fed = 0
        self._receiving = self._in_head = True
        self._welcomed = False
        if not self._blocked:
            self._deadline = self._loop.time() + self._limits.request_s

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those behind a chunked body are let go."""
        if self._in_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Refuse a head that is too large."""
        self._in_head = False
        self._fed = 0
        self._progress = True
        self._check_framing()
        if self._long:  # what came is longer than a head may be; how long is the head?
            size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers)
            if size > self._limits.head_bytes:
                self._refuse_head()
                raise _Stop

    def _check_framing(self) -> None:
        """Refuse a body whose end another server might see elsewhere."""
        fields = [(name.lower(), value) for name, value in self._headers]
        codings = [value.strip().lower() for name, value in fields if name == b"transfer-encoding"]
        if self._parser.get_method() == b"CONNECT" and (
            codings or any(n == b"content-length" for n, _ in fields)
        ):
            self._refuse(400, "bad_request", "a CONNECT has no body")
        elif codings and self._parser.get_http_version() == "1.0":
            self._refuse(400, "bad_request", "HTTP/1.0 has no Transfer-Encoding")
        elif codings and codings != [b"chunked"]:
            self._refuse(501, "not_implemented", "the only Transfer-Encoding that is understood is chunked")
        else:
            return
        raise _Stop

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._fed = 0
        self._progress = True
        self._body_size += len(data)
        if self._body_size > self._limits.body_bytes:
            self._refuse_body()
            raise _Stop
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Answer the request, when it is its turn."""
        self._receiving = self._continue_owed = False
        self._completed = True
        parser = self._parser
        method, version = parser.get_method(), parser.get_http_version()
        if parser.should_upgrade() and method != b"CONNECT":
            self._offered = b"%s %s HTTP/%s" % (method, self._target, version.encode())
            return
        if version not in _VERSIONS:
            self._refuse(400, "bad_request", "the request is not HTTP/1.1 or HTTP/1.0")
            return
        headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers])
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        target = self._target.decode("latin-1")
        request = Request(method.decode(), target, headers, body, version, self._client, self._number)
        keep_alive = parser.should_keep_alive()
        self._remember(request, keep_alive)
        self._take(request, keep_alive)

    def _remember(self, request: Request, keep_alive: bool) -> None:
        """Remember the head of a request that came whole, by itself, and with a length."""
        data, self._whole = self._whole, None
        if data is None or request.header("Transfer-Encoding") or request.header("Expect"):
            return
        end = data.find(b"\r\n\r\n") + 4
        if len(data) - end == len(request.body) and end <= MAX_HEAD_BYTES:
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            self._heads[data[:end]] = Head(
                request.method,
                request.target,
                request.headers,
                request.version,
                keep_alive,
                len(request.body),
            )

    # ---- answering

    def _take(self, request: Request, keep_alive: bool, refusal: Reply | None = None) -> None:
        """Answer now, or after the answers that come first."""
        if not self._blocked:
            self._deadline = math.inf
        if not keep_alive:
            self._deaf = True
        if self._answering is None and not self._blocked:
            self._answer(request, keep_alive, refusal)
        else:
            self._waiting.append(_Turn(request, keep_alive, refusal))
            self._regulate()

    def _answer(self, request: Request, keep_alive: bool, refusal: Reply | None) -> None:
        try:
            reply = refusal or self._handler(request)
        except BaseException as error:
            reply = self._failure(error)
        if type(reply) is Reply and reply.delivery is AT_ONCE:
            self._send(reply, request, keep_alive, refusal)
        else:
            self._answering = self._loop.create_task(
                self._answer_later(reply, _Turn(request, keep_alive, refusal))
            )

    async def _answer_later(self, reply: Reply | Awaitable[Reply], turn: _Turn) -> None:
        try:
            start = time.monotonic()
            if not isinstance(reply, Reply | Awaitable):
                raise MemmockError(f"the handler returned {reply!r}, not a Reply")
            ready = reply if isinstance(reply, Reply) else await reply
            if not isinstance(ready, Reply):
                raise MemmockError(f"the handler returned {ready!r}, not a Reply")
            if ready.delivery != AT_ONCE:
                await self._play(ready, turn, start)
                return
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            ready = self._failure(error)
        self._answering = None
        self._send(ready, *turn)
        self._answer_waiting()

    async def _play(self, reply: Reply, turn: _Turn, start: float) -> None:
        """Do what a delivery says, step by step, and tell the reply how that ended."""
        try:
            script = scripted(reply, turn.request, turn.keep_alive)
        except Exception:
            if reply.on_sent is not None:
                reply.on_sent(Sent("closed", 0, time.monotonic() - start))
            raise
        self._hub.flush()  # what was answered before goes first
        self._say_farewell()
        self._player = player = Player(self._transport)
        serves = script.serves and script.end_s > 0
        if not serves and (script.ending != "keep" or reply.delivery.endless):
            self._hear_no_more()  # nothing else will be answered here: read on only to see the client leave
            self._regulate()

        def tell(how: How) -> None:
            if reply.on_sent is not None:
                try:
                    reply.on_sent(Sent(how, player.sent_bytes, time.monotonic() - start))
                except Exception as error:  # the reply is sent: there is nobody to answer for it
                    self._hub.failed(error)

        try:
            await player.play(script)
        except asyncio.CancelledError:
            tell("stopped" if self._hub.stopped else "client closed")
            raise
        finally:
            self._player = None
        self._answering = None
        how: How = "reset" if script.ending == "reset" else "closed" if reply.delivery.cut else "completed"
        if script.ending == "keep":
            self._transport.set_write_buffer_limits()
            tell(how)
            self._idle()
            self._answer_waiting()
        elif serves:
            self._transport.set_write_buffer_limits()
            self._farewell = lambda: tell(how)
            self._loop.call_later(script.end_s, self._close_when_idle)
            self._idle()
            self._answer_waiting()
        else:
            self._farewell = lambda: tell(how)
            if script.ending == "reset":
                self._reset()
            else:
                self._leave()

    def _say_farewell(self) -> None:
        """Tell how the last delivery ended, which is known when the connection ends or another follows."""
        farewell, self._farewell = self._farewell, None
        if farewell is not None:
            farewell()

    def _reset(self) -> None:
        self._deaf = True
        reset(self._transport)

    def _answer_waiting(self) -> None:
        while self._waiting and self._answering is None and not self._blocked:
            self._answer(*self._waiting.popleft())
        self._regulate()
        if self._waiting or self._answering is not None:
            return
        if self._continue_owed:
            self._continue_owed = False
            self._write(_CONTINUE)

    def _regulate(self) -> None:
        """Read on only when what was read is being answered, or is thrown away."""
        if self._deaf:
            self._transport.resume_reading()
        elif self._blocked or self._turn_owed or len(self._waiting) >= MAX_WAITING:
            self._transport.pause_reading()
        elif self._unparsed:
            self._yield_turn()
        else:
            self._transport.resume_reading()

    def _send(self, reply: Reply, request: Request, keep_alive: bool, refusal: Reply | None) -> None:
        try:
            data, keep_alive = encoded(reply, request, keep_alive)
        except Exception as error:  # a reply that is not one, or has headers that cannot be sent
            data, keep_alive = encoded(self._failure(error), request, keep_alive)
        self._write(data)
        if keep_alive:
            self._idle()
            return
        self._hub.flush()
        if refusal is None:
            self._leave()
        else:  # the client may still be sending: let it read the refusal first
            self._hear_no_more()
            self._deadline = self._loop.time() + LINGER_S
            self._transport.write_eof()

    def _idle(self) -> None:
        """Wait for the next request."""
        if not (self._receiving or self._blocked):
            self._deadline = self._loop.time() + self._limits.idle_s

    def _leave(self) -> None:
        """Close, once what was written is sent."""
        self._hear_no_more()
        self._deadline = self._loop.time() + LINGER_S
        self._transport.close()

    def _hear_no_more(self) -> None:
        self._deaf = True
        self._receiving = False
        self._waiting.clear()

    def _write(self, data: bytes) -> None:
        self._hub.write(self._transport, data, self._loop)

    def _failure(self, error: BaseException) -> Reply:
        """Keep an exception of the handler, and answer for it."""
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error
        self._hub.failed(error)
        return Reply.error(500, "internal_error", f"the handler raised {type(error).__name__}")

    # ---- refusing

    def _refuse(self, status: int, code: str, message: str) -> None:
        if not self._deaf:
            self._take(_NO_REQUEST, False, Reply.error(status, code, message))

    def _refuse_head(self) -> None:
        limit = self._limits.head_bytes
        self._refuse(431, "headers_too_large", f"the head of the request is larger than {limit:,} bytes")

    def _refuse_body(self) -> None:
        limit = self._limits.body_bytes
        self._refuse(413, "body_too_large", f"the body of the request is larger than {limit:,} bytes")

    # ---- the server calls

    def check_time(self, now: float) -> None:
        """Part from a client that takes too long; `now` is the time of the loop."""
        if now < self._deadline:
            return
        if self._receiving and not (self._deaf or self._blocked):
            limit = self._limits.request_s
            self._refuse(408, "request_timeout", f"the request was not complete after {limit:g} s")
        else:
            self.close()

    def _close_when_idle(self) -> None:
        if not self._transport.is_closing():
            self.close_if_idle()
            self._loop.call_later(_AGAIN_S, self._close_when_idle)

    def close_if_idle(self) -> None:
        """Close, unless a request is under way."""
        if not (self._receiving or self._waiting or self._answering):
            self._hub.flush()  # its last reply may still wait there
            self._leave()

    def close(self) -> None:
        """Close at once; what the client has not taken by now is lost."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()


_AGAIN_S = 0.01
_VERSIONS = ("1.1", "1.0")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_REQUEST = Request("", "")
_REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ \S+ HTTP/1\.[01]\r?\n")
