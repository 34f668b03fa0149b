"""Which texts a query hits: tokens, and an index from each token to the texts that hold it.

A *hit* is one token of the query found in a text. Words are tokens where a script puts spaces between
them; Chinese, Japanese and Korean runs are cut into pairs of neighbouring characters. Nothing here knows
what a hit is worth, that is `ranking`'s.

Sets of texts are masks: integers with one bit for each text. Python's integers have any length, and one
operation on them treats a hundred thousand texts in about a microsecond.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from array import array
from codecs import utf_32_le_encode
from collections import defaultdict
from functools import cache, lru_cache
from itertools import chain, groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_CJK_RANGES = (
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3005-\u3007\u3031-\u3035\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u3040-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"  # kana
    "\u3100-\u312f\u31a0-\u31bf"  # Bopomofo
)

Token = str | int
"""A word is a string. What comes of a CJK run is a number, which is made and looked up several times as
fast: for two characters, their code points in the lower and the upper 32 bits; for a character by itself,
its code point; for one that stands anywhere, the complement of that."""

_RARE = 1024
"""A token that is in no more than one of `_RARE` texts has its texts listed, not masked: for 100,000 texts
a mask takes 13 KB, and most tokens are in a few texts only. To add up a longer list would take too long."""


class _Letters(dict[int, str]):
    """For `str.translate`: letters, digits and combining marks stay, all else becomes a space.

    It remembers the characters that it has seen, since `unicodedata` is slow beside a dictionary.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
            kept = ""  # a variation selector picks a glyph, it does not make another character
        else:
            kept = char if char.isalnum() or unicodedata.category(char)[0] == "M" else " "
        self[code] = kept
        return kept


_LETTERS = _Letters()


@cache
def _splitter() -> Callable[[str], list[tuple[str, str]]]:
    """Return what splits text; compiling takes milliseconds that most imports need not spend."""
    return re.compile(f"([{_CJK_RANGES}]+)|([^ {_CJK_RANGES}]+)").findall


def _runs(text: str) -> list[tuple[str, str]]:
    """Return the CJK runs and the words of `text`, each in a pair whose other half is empty.

    Case and width make no difference: the text is normalised (NFKC) and case-folded.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    if not text.isalnum():  # else there is nothing to translate, as in most short Chinese queries
        text = text.translate(_LETTERS)
    return _splitter()(text)


@lru_cache(64)
def _unpacker(count: int) -> Callable[[bytes, int], tuple[int, ...]]:
    return struct.Struct(f"<{count}Q").unpack_from


def _pairs(run: str) -> tuple[int, ...]:
    """Return the tokens of each two neighbours in a run."""
    codes = utf_32_le_encode(run)[0]
    size = len(run)
    return _unpacker(size // 2)(codes, 0) + _unpacker((size - 1) // 2)(codes, 4)


def text_tokens(text: str) -> set[Token]:
    """Return the tokens by which `text` can be hit.

    These are its words, the pairs in its CJK runs, and each CJK character twice over: as one found
    anywhere, and as one by itself if its run is no longer.
    """
    tokens: set[Token] = set()
    for run, word in _runs(text):
        if word:
            tokens.add(word)
            continue
        tokens.update(_pairs(run))
        tokens.update(~ord(char) for char in run)
        if len(run) == 1:
            tokens.add(ord(run))
    return tokens


def standing_alone(tokens: Iterable[Token]) -> Callable[[str], list[str]] | None:
    """Return what finds, in a run, the characters that are among the tokens by themselves; None for none."""
    characters = "".join(chr(token) for token in tokens if isinstance(token, int) and 0 < token < 2**32)
    return re.compile(f"[{characters}]").findall if characters else None


def query_tokens(text: str, alone: Callable[[str], list[str]] | None) -> set[Token]:
    """Return the tokens that `text` looks for.

    Single characters say little, so one counts only where it stands by itself on one side: 猫 finds
    小猫, and 我的猫 finds the keyword 猫, but not 小猫. For the latter, `alone` (see `standing_alone`) tells
    which characters are worth a token.
    """
    tokens: set[Token] = set()
    characters = []
    for run, word in _runs(text):
        if word:
            tokens.add(word)
        elif len(run) == 1:
            characters.append(ord(run))
        else:
            tokens.update(_pairs(run))
            if alone is not None:
                tokens.update(map(ord, alone(run)))
    for code in characters:  # last, and instead of the character by itself: one character is one token
        tokens.discard(code)
        tokens.add(~code)
    return tokens


def marked(text: str, tokens: set[Token]) -> list[tuple[str, bool]]:
    """Return `text` in parts, each with whether one of the tokens is found in it."""
    if not tokens:
        return [(text, False)] if text else []
    hit = [False] * len(text)
    kinds = [_kind(char) for char in text]
    for kind, group in groupby(range(len(text)), lambda at: kinds[at]):
        places = [*group]
        start, end = places[0], places[-1] + 1
        if kind == "word":
            if text_tokens(text[start:end]) & tokens:
                hit[start:end] = [True] * (end - start)
        elif kind == "run":
            for at in places:
                # by itself in the text, it stands alone in its run; in a longer one it is found anywhere
                single = text_tokens(text[at]) if end - start == 1 else _anywhere(text[at])
                hit[at] |= bool(single & tokens)
                if at + 1 < end and _pair(text[at : at + 2]) & tokens:
                    hit[at] = hit[at + 1] = True
    parts = ((found, [*group]) for found, group in groupby(range(len(text)), hit.__getitem__))
    return [(text[group[0] : group[-1] + 1], found) for found, group in parts]


def _kind(char: str) -> str:
    tokens = text_tokens(char)
    if not tokens:
        return "space"
    return "run" if any(isinstance(token, int) for token in tokens) else "word"


def _anywhere(char: str) -> set[Token]:
    return {token for token in text_tokens(char) if isinstance(token, int) and token < 0}


def _pair(chars: str) -> set[Token]:
    return {token for token in text_tokens(chars) if isinstance(token, int) and token >= 2**32}


class Index:
    """Tells which of a fixed sequence of texts are hit.

    In a mask, text number i is the bit `1 << (width - 1 - i)`: the first text is the highest bit, since
    the highest bit of an integer is the one that is cheap to find.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._bytes = (len(texts) + 7) // 8
        self.width = 8 * self._bytes
        postings: defaultdict[Token, array[int]] = defaultdict(lambda: array("I"))
        for number, text in enumerate(texts):
            for token in text_tokens(text):
                postings[token].append(number)
        limit = len(texts) // _RARE
        self._common = {
            token: self.mask(numbers) for token, numbers in postings.items() if len(numbers) > limit
        }
        self._rare = {token: numbers for token, numbers in postings.items() if len(numbers) <= limit}

    def tokens(self) -> Iterable[Token]:
        """Return all tokens by which a text can be hit."""
        return chain(self._common, self._rare)

    def mask(self, numbers: Iterable[int]) -> int:
        """Return the mask of the texts with these numbers; each may be given once."""
        return (self._planes(numbers) or [0])[0]

    def hits(self, tokens: set[Token]) -> list[list[int]]:
        """Return how often each text is hit by `tokens`, as masks to be added up.

        A text has 2**k hits for each mask of list k that it is in. A token unknown to the texts costs
        no more than a look-up.
        """
        # A set and the keys of a dictionary: the shorter of the two is gone through.
        common = self._common
        masks = [[common[token] for token in tokens & common.keys()]]
        if self._rare and (found := tokens & self._rare.keys()):
            numbers = chain.from_iterable([self._rare[token] for token in found])
            for level, plane in enumerate(self._planes(numbers)):
                if level == len(masks):
                    masks.append([])
                masks[level].append(plane)
        return masks

    def _planes(self, numbers: Iterable[int]) -> list[int]:
        """Return how often each number is given, in binary: mask k has the bits worth 2**k."""
        planes: list[bytearray] = []
        for number in numbers:
            place, bit = number >> 3, 0x80 >> (number & 7)
            for plane in planes:
                plane[place] ^= bit
                if plane[place] & bit:
                    break  # it was 0, so there is nothing to carry
            else:
                planes.append(bytearray(self._bytes))
                planes[-1][place] = bit
        return [int.from_bytes(plane, "big") for plane in planes]
