"""A raw socket that makes one call and takes notes: which bytes came when, and how the connection ended.

Nothing of memmock's server or consumer is used here, so that it can testify for or against either.
"""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass, field
from typing import Literal

SeenEnd = Literal["open", "close", "reset", "refused"]
"""Whether the connection was still open, was closed (FIN), was reset (RST), or was never made."""

READ_BYTES = 64 * 1024


@dataclass
class Seen:
    """What arrived. `arrivals` has, for each read, the seconds since the start and the bytes so far."""

    end: SeenEnd = "open"
    end_s: float = 0.0
    data: bytearray = field(default_factory=bytearray)
    arrivals: list[tuple[float, int]] = field(default_factory=list)

    def arrived_s(self, offset: int) -> float:
        """Return when the byte at `offset` was there, in seconds since the start."""
        return next((at for at, so_far in self.arrivals if so_far > offset), float("inf"))


@dataclass(frozen=True)
class SeenReply:
    """One complete reply among the bytes; interim ones are none."""

    status: int
    headers: dict[str, str]
    body: bytes
    end: int


class Probe:
    """One connection. Everything is noted in `seen`, and nothing that the peer does raises."""

    def __init__(self, host: str, port: int, patience_s: float = 10.0) -> None:
        self.seen = Seen()
        self._was_reset = False
        self._patience_s = patience_s
        self._start = time.monotonic()
        try:
            self._socket: socket.socket | None = socket.create_connection((host, port), patience_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except ConnectionRefusedError:
            self._socket = None
            self._ended("refused")
        except ConnectionResetError:
            self._socket = None
            self._ended("reset")

    def send(self, data: bytes) -> None:
        """Send bytes, as far as the peer takes them."""
        if self._socket is not None:
            self._socket.settimeout(self._patience_s)
            try:
                self._socket.sendall(data)
            except ConnectionResetError:  # the system tells of a reset once: now, or when reading
                self._was_reset = True
            except OSError:
                pass  # what became of the connection shows when reading

    def read(self, size: int, until_s: float) -> None:
        """Read until `size` bytes are there in all, the connection ends, or so many seconds are over.

        The seconds are counted from when the connection was asked for.
        """
        while self.seen.end == "open" and self._socket is not None and len(self.seen.data) < size:
            left = self._start + until_s - time.monotonic()
            if left <= 0:
                return
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(READ_BYTES)
            except TimeoutError:
                return
            except OSError:
                self._ended("reset")
                return
            if not data:
                self._ended("reset" if self._was_reset else "close")
                return
            self.seen.data += data
            self.seen.arrivals.append((self.elapsed_s, len(self.seen.data)))

    @property
    def is_open(self) -> bool:
        """Whether the connection was made and has not ended, as far as was read."""
        return self.seen.end == "open"

    @property
    def elapsed_s(self) -> float:
        """Seconds since the connection was asked for."""
        return time.monotonic() - self._start

    def close(self) -> None:
        """Leave."""
        if self._socket is not None:
            self._socket.close()

    def _ended(self, how: SeenEnd) -> None:
        self.seen.end, self.seen.end_s = how, self.elapsed_s


def replies_in(data: bytes, *, closed: bool) -> list[SeenReply]:
    """Return the complete replies that bytes begin with; what is not HTTP ends the list.

    Args:
        data: what was received.
        closed: whether that is all, which ends a body without a length.
    """
    replies = []
    start = 0
    while (head_end := data.find(b"\r\n\r\n", start)) >= 0:
        status = _status(data[start : data.find(b"\r\n", start)])
        if status is None:
            break
        lines = data[start:head_end].decode("latin-1").split("\r\n")[1:]
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        start = head_end + 4
        if 100 <= status < 200:
            continue
        body, start = _body(data, start, status, headers, closed)
        if body is None:
            break
        replies.append(SeenReply(status, headers, body, start))
    return replies


def status_in(data: bytes) -> int | None:
    """Return the status of the final status line that bytes hold first, interim ones passed over."""
    while True:
        line, mark, _ = data.partition(b"\r\n")
        status = _status(line) if mark else None
        if status is None or not 100 <= status < 200:
            return status
        data = data.partition(b"\r\n\r\n")[2]


def _status(line: bytes) -> int | None:
    words = line.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        return None
    return int(words[1])


def _body(
    data: bytes, start: int, status: int, headers: dict[str, str], closed: bool
) -> tuple[bytes | None, int]:
    """Return the body that begins at `start`, None when it is not complete, and where it ends."""
    if status in (204, 304):
        return b"", start
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(data, start)
    if (length := headers.get("content-length")) is not None:
        if not re.fullmatch("[0-9]{1,18}", length):
            return None, start
        end = start + int(length)
        return (data[start:end], end) if len(data) >= end else (None, start)
    return (data[start:], len(data)) if closed else (None, start)


def _chunks(data: bytes, start: int) -> tuple[bytes | None, int]:
    body = b""
    while (line_end := data.find(b"\r\n", start)) >= 0:
        digits = data[start:line_end].partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9a-fA-F]{1,15}", digits):
            return None, start
        size = int(digits, 16)
        start = line_end + 2
        if size == 0:
            while (line_end := data.find(b"\r\n", start)) >= 0:
                trailer, start = data[start:line_end], line_end + 2
                if not trailer:
                    return body, start
            return None, start
        body += data[start : start + size]
        start += size + 2
        if data[start - 2 : start] != b"\r\n":
            return None, start
    return None, start
