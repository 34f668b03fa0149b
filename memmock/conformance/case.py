"""One request to a provider as a value: what is asked, and how that is written on the wire."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from memmock.http import JSON_TYPE, Headers, Request

Names = Literal["title", "lower", "upper"]
Framing = Literal["length", "chunked"]


class Form(NamedTuple):
    r"""How a request is written; all of these forms are the same request to HTTP and JSON.

    Attributes:
        spaced: white space around the colons and commas of the JSON.
        escaped: characters beyond ASCII as `\\u` escapes.
        reverse: the fields in the reverse of their order.
        framing: the body with its length, or in chunks.
        slices: in how many parts the request is sent, with a moment between them.
        names: the case of the names of headers.
        content_type: the value of Content-Type.
        accept: the value of Accept.
        user_agent: whether there is a User-Agent.
        kept: whether a connection that is still open is used again.
    """

    spaced: bool = False
    escaped: bool = False
    reverse: bool = False
    framing: Framing = "length"
    slices: int = 1
    names: Names = "title"
    content_type: str = JSON_TYPE
    accept: str = JSON_TYPE
    user_agent: bool = True
    kept: bool = True


PLAIN = Form()


@dataclass(frozen=True)
class Case:
    """One request.

    Attributes:
        fields: the JSON object that is sent.
        form: how it is written.
        authorization: what is sent in place of the right one; "" sends no header, None the right one.
        body: what is sent in place of the fields, for what is no JSON object.
        method: when not POST.
        headers: headers that are added.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    form: Form = PLAIN
    authorization: str | None = None
    body: bytes | None = None
    method: str = "POST"
    headers: Headers = ()

    def with_fields(self, **fields: Any) -> Case:
        """Return the same case with fields added or replaced."""
        return replace(self, fields={**self.fields, **fields})

    def without(self, *names: str) -> Case:
        """Return the same case without some fields."""
        return replace(self, fields={name: value for name, value in self.fields.items() if name not in names})

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        if self.body is not None:
            return self.body
        items = list(self.fields.items())
        value = dict(reversed(items) if self.form.reverse else items)
        separators = (" , ", " : ") if self.form.spaced else (",", ":")
        try:
            text = json.dumps(value, ensure_ascii=self.form.escaped, separators=separators)
            return text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair can only be escaped
            return json.dumps(value, separators=separators).encode()

    def request(self, target: str, host: str, authorization: str | None, extra: Headers = ()) -> Request:
        """Return the request as it goes to a provider.

        Args:
            target: path and query string of the provider.
            host: the value of Host.
            authorization: the right one; None when there is none.
            extra: headers of every request.
        """
        sent = authorization if self.authorization is None else self.authorization
        content = self.content
        headers = [("Host", host), ("Accept", self.form.accept), ("Content-Type", self.form.content_type)]
        if sent:
            headers.append(("Authorization", sent.encode().decode("latin-1")))
        if self.form.user_agent:
            headers.append(("User-Agent", "memmock"))
        headers += [*extra, *self.headers]
        if self.form.framing == "length":
            headers.append(("Content-Length", str(len(content))))
        else:
            headers.append(("Transfer-Encoding", "chunked"))
        if not self.form.kept:
            headers.append(("Connection", "close"))
        named = tuple((_in_case(name, self.form.names), value) for name, value in headers)
        return Request(self.method, target, named, content)


def on_the_wire(request: Request) -> bytes:
    """Return the bytes of a request, its body in chunks where its headers say so."""
    head = [
        f"{request.method} {request.target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in request.headers),
    ]
    body = request.body
    if request.header("Transfer-Encoding"):
        middle = max(1, len(body) // 2)
        parts = [part for part in (body[:middle], body[middle:]) if part]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def as_curl(request: Request, url: str) -> str:
    """Return a command that sends a request; the authorization is `$AUTHORIZATION`, never its value.

    Args:
        request: what to send.
        url: where to.
    """
    parts = ["curl -sS", *([] if request.method == "POST" else [f"-X {request.method}"]), shlex.quote(url)]
    for name, value in request.headers:
        if name.lower() == "authorization":
            parts.append(f'-H "{name}: $AUTHORIZATION"')
        elif name.lower() not in ("host", "user-agent", "content-length", "connection"):
            parts.append(f"-H {shlex.quote(f'{name}: {value}')}")
    if request.method == "POST" or request.body:
        text = request.body.decode("utf-8", "surrogateescape")
        readable = text.isprintable() and not text.startswith("@")
        data = shlex.quote(text) if readable else _ansi_quoted(request.body)
        parts.append(f"--data-binary {data}")
    return " \\\n  ".join(parts)


def _ansi_quoted(data: bytes) -> str:
    """Return bytes as bash, zsh and others take them in `$'…'`; what can be read stays as it is."""
    quoted = []
    for char in data.decode("utf-8", "surrogateescape"):
        if char in "'\\":
            quoted.append(f"\\{char}")
        elif char.isprintable():
            quoted.append(char)
        else:
            quoted += [f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape")]
    return f"$'{''.join(quoted)}'"


def _in_case(name: str, case: Names) -> str:
    return {"title": name, "lower": name.lower(), "upper": name.upper()}[case]
