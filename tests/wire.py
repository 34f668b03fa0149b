"""A raw-socket client, for tests that look at bytes."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 10.0


@dataclass
class Answer:
    """One reply as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to a server; reads replies by their Content-Length."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._unread = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def post(self, body: bytes, *headers: str, path: str = "/memory_retrieval", method: str = "POST") -> None:
        self.send(request(body, *headers, path=path, method=method))

    def answer(self, *, body: bool = True) -> Answer:
        head, self._unread = self._until(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        size = int(headers.get("content-length", 0)) if body else 0
        while len(self._unread) < size:
            self._unread += self._more()
        answer = Answer(int(line.split()[1]), headers, self._unread[:size])
        self._unread = self._unread[size:]
        return answer

    def rest(self) -> bytes:
        """Everything until the server closes."""
        while data := self.socket.recv(65536):
            self._unread += data
        return self._unread

    def _until(self, mark: bytes) -> tuple[bytes, bytes]:
        while mark not in self._unread:
            self._unread += self._more()
        before, _, after = self._unread.partition(mark)
        return before, after

    def _more(self) -> bytes:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(f"closed after {self._unread!r}")
        return data


def request(body: bytes, *headers: str, path: str = "/memory_retrieval", method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
