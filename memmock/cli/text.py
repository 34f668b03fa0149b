"""How things are put for a terminal."""

from __future__ import annotations


def count(n: int, noun: str, plural: str = "") -> str:
    """Return `n` and the noun in the right number, as `no violations`, `1 memory` or `2 memories`."""
    return f"{n or 'no'} {noun if n == 1 else plural or noun + 's'}"
