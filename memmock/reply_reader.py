"""One reply, read from bytes as they arrive, without I/O.

`ReplyReader` decides as early as the contract lets it: an error status when the head is there, a size over
the limit when it is announced or reached. It keeps no more than the limit, whatever a provider sends. What
a complete reply means is for `tool_result`; sockets and time are for `consumer`.
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from memmock.http import Headers, Reply, header
from memmock.tool_result import ToolResult, too_large, tool_result

MAX_HEAD_BYTES = 65_536
"""How much may come around a body: the head, interim replies, chunk extensions, trailers [ours]."""
MAX_FRAMING = 8
"""How many bytes of framing each byte of a body may have besides; a chunk of one byte has five [ours]."""


class ReplyReader:
    """Reads one reply.

    `result` is what the model is given, None until that is decided; `reusable` says whether the connection
    is in order for another request. The first decision stands: what is broken after it, a surplus reply for
    example, only makes the connection unusable.

    The framing is taken strictly, as llhttp does, the parser of Node: lines end with CR LF, a length stands
    once, and never beside chunks.

    Args:
        max_response_bytes: how large the body may be, as received.
        whole: do not decide before the whole body is there, whatever the status, nor what it means.
    """

    def __init__(self, max_response_bytes: int, *, whole: bool = False) -> None:
        self.result: ToolResult | None = None
        self.received_bytes = 0
        self.reason = ""
        """The words after the status."""
        self._limit = max_response_bytes
        self._reads_errors = whole
        self._parser = HttpResponseParser(self)
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._body = bytearray()
        self._body_bytes = self._announced_bytes = 0
        self._head_read = self._whole = self._keep_alive = False
        self._until_close = self._surplus = self._broken = False

    @property
    def reply(self) -> Reply | None:
        """The reply as far as it was received, its body up to the limit; None before a complete head.

        The body of an error is read only when the whole is asked for: else what came with the head is there.
        """
        if not self._head_read:
            return None
        return Reply(self._status, tuple(self._headers), bytes(self._body))

    @property
    def complete(self) -> bool:
        """Whether the body is there, the whole of it."""
        return self._whole and self._body_bytes <= self._limit

    @property
    def surplus(self) -> bool:
        """Whether something came after the reply, or broke its framing once it was decided."""
        return self._surplus or self._broken

    @property
    def reusable(self) -> bool:
        """Whether the reply is complete, nothing follows it, and the connection stays open."""
        return self.complete and self._keep_alive and not self.surplus

    def feed(self, data: bytes | memoryview) -> None:
        """Take what was received."""
        self.received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._broken = True
        if self.result is None:
            self.result = self._decision()

    def end(self, *, reset: bool = False) -> None:
        """Take note that nothing more will come: the provider closed or reset the connection."""
        if self.result is not None:
            return
        if reset:
            self.result = _failed("the connection was reset")
        elif self._until_close:
            self._whole = True
            self.result = self._meaning()
        elif not self.received_bytes:
            self.result = _failed("the provider closed the connection without an answer")
        else:
            self.result = _failed("the provider closed the connection before the end of its answer")

    def _decision(self) -> ToolResult | None:
        """Return what is decided by what was received so far, None for nothing yet."""
        if self._head_read:
            # decides before the body is read
            if not 200 <= self._status < 300 and not self._reads_errors:
                return self._meaning()
            if max(self._body_bytes, self._announced_bytes) > self._limit:
                return too_large(self._limit)
            if self._whole:  # whatever follows it
                return self._meaning()
        if self._broken:
            return _failed("the answer is not valid HTTP")
        if self.received_bytes - self._body_bytes > MAX_HEAD_BYTES + MAX_FRAMING * self._body_bytes:
            return too_large(MAX_HEAD_BYTES)
        return None

    def _meaning(self) -> ToolResult:
        assert self.reply is not None
        if self._reads_errors:  # somebody wants the reply, not what it means
            return ToolResult(True)
        return tool_result(self.reply, self._limit)

    # ---- called by the parser: these take notes, `_decision` decides

    def on_message_begin(self) -> None:
        """Start a reply: an interim one, the reply, or one that nobody asked for."""
        self._surplus = self._head_read
        if not self._head_read:
            self._headers, self.reason = [], ""

    def on_status(self, reason: bytes) -> None:
        """Take the words after the status, those of a surplus reply aside."""
        if not self._head_read:
            self.reason = reason.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those of a surplus reply and of the trailers are passed over."""
        if not self._head_read:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        """Take note of the head, unless another one follows."""
        status = self._parser.get_status_code()
        # 101 is no interim reply here: nobody asked for another protocol
        if self._head_read or (100 <= status < 200 and status != 101):
            return
        self._head_read, self._status = True, status
        self._keep_alive = self._parser.should_keep_alive()
        headers: Headers = tuple(self._headers)
        coding, length = header(headers, "Transfer-Encoding"), header(headers, "Content-Length")
        self._announced_bytes = int(length or 0)  # the parser has refused what is no number
        self._until_close = coding is None and length is None
        self._broken = coding is not None and coding.lower() != "chunked"

    def on_body(self, data: bytes) -> None:
        """Take a part of the body, up to the limit; that of a surplus reply is passed over."""
        if self._whole:
            return
        self._body_bytes += len(data)
        self._body += data[: self._limit - len(self._body)]

    def on_message_complete(self) -> None:
        """Take note of the end, unless it was the end of an interim reply."""
        self._whole = self._head_read


def _failed(message: str) -> ToolResult:
    return ToolResult.failed("connection_failed", message)
