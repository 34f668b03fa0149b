"""How things are put for a terminal."""

from __future__ import annotations

import json


def plain(text: str) -> str:
    """Return `text` with everything escaped that would do something to a terminal rather than be seen."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def count(n: int, noun: str, plural: str = "") -> str:
    """Return `n` and the noun in the right number, as `no violations`, `1 memory` or `2 memories`."""
    return f"{n or 'no'} {noun if n == 1 else plural or noun + 's'}"
