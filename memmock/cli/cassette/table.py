"""Tables for a terminal, in which a Chinese character is as wide as two others."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def width(text: str) -> int:
    """Return how many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def fitted(text: str, most: int) -> str:
    """Return a text, cut short with "…" where it takes more than `most` columns."""
    if width(text) <= most:
        return text
    kept, taken = [], 1
    for char in text:
        taken += _columns(char)
        if taken > most:
            break
        kept.append(char)
    return f"{''.join(kept)}…"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, its columns as wide as need be."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_padded, row, widths)).rstrip() for row in rows]


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
