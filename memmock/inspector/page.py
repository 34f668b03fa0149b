"""The page: put together from `data/inspector`, with headers that let it do nothing but what it is for."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources

from memmock.http import Reply

_SCRIPTS = (
    "words", "sentences", "server", "calls", "call", "scenario", "memories", "durations", "frame",
)  # fmt: skip
"""The parts of the script, in the order in which they run."""


@cache
def page() -> Reply:
    """Return the page.

    It holds no data: what it shows it asks for. Its policy lets it run its own script and style, known by
    their hashes, ask this server, and nothing else; text can never become markup in it, nor can another page
    frame it.
    """
    style, script = _file("style.css"), "".join(_file(f"{name}.js") for name in _SCRIPTS)
    text = _file("page.html").replace("<style></style>", f"<style>\n{style}</style>")
    text = text.replace("<script></script>", f"<script>\n{script}</script>")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes('script', text)}",
            f"style-src {_hashes('style', text)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", policy),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    )
    return Reply(200, headers, text.encode())


def _file(name: str) -> str:
    return (resources.files("memmock") / "data" / "inspector" / name).read_text(encoding="utf-8")


def _hashes(tag: str, text: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in found]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
