"""Which memories answer a retrieval best: the built-in provider's rule [seed].

Filter by type, order by simple hits of the query and the time hint in summary and keywords, cut. Ordering
is not filtering: memories without a hit come last. The order is exact, and the same on every run.

There are two ways to the same order. `_Lanes` is the quicker one for a persona's few dozen memories,
`_Planes` for many thousands. Both treat all memories at once, as digits of long integers.
"""

from __future__ import annotations

import struct
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from memmock.hits import Index, Token, query_tokens, standing_alone, text_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

# A hit is worth the product of where it is and what it is of [ours]. Keywords were chosen to be found, a
# summary only happens to hold its words; and what is looked up says more than when it was.
IN_SUMMARY = 1
IN_KEYWORDS = 2
OF_HINT = 1
OF_QUERY = 4

_LONGEST = 10_000
"""How many characters of a query or a time hint are looked at: enough for any question, and the server
answers nobody else meanwhile."""

_FEW = 255
"""Up to so many memories, `_Lanes` is the quicker way; the lowest byte of a lane numbers no more."""


class Ranking:
    """Ranks a fixed sequence of memories.

    `summaries`, `keywords` and `types` are parallel: item n of each is of memory number n. Building takes
    time in proportion to the text; a retrieval then takes microseconds among dozens of memories, and
    around a millisecond among 100,000.
    """

    def __init__(
        self, summaries: Sequence[str], keywords: Sequence[Sequence[str]], types: Sequence[str]
    ) -> None:
        way = _Lanes if len(summaries) <= _FEW else _Planes
        # a line break parts two keywords as a space does two words, so no token spans them
        self._way = way(summaries, ["\n".join(words) for words in keywords], types)
        self._alone = standing_alone(self._way.tokens())

    def best(
        self, query: str, *, types: Collection[str] | None = None, time_hint: str = "", count: int
    ) -> list[int]:
        """Return the numbers of the best `count` memories, best first; on a tie the earlier one.

        Each distinct token of `query` and of `time_hint` counts at most once in a memory's summary and
        once in its keywords. Types None or empty mean all types.
        """
        query, time_hint = query[:_LONGEST], time_hint[:_LONGEST]
        hint = query_tokens(time_hint, self._alone) if time_hint else None
        return self._way.best(query_tokens(query, self._alone), hint, types, count if count > 0 else 0)


class _Lanes:
    """Scores side by side in one integer, 32 bits each: one addition adds to all of them.

    A score fits as long as a memory has fewer than a million distinct tokens. The lowest byte of a lane is
    how many memories there are from this one on. It breaks a tie in favour of the earlier memory, it tells
    the memory after sorting, and it is never 0.
    """

    def __init__(self, summaries: Sequence[str], keywords: Sequence[str], types: Sequence[str]) -> None:
        self._size = len(summaries)
        self._lanes = struct.Struct(f"<{self._size}I")
        self._start = sum((self._size - number) << 32 * number for number in range(self._size))
        self._of_type: Counter[str] = Counter()
        self._of_token: Counter[Token] = Counter()
        for number, kind in enumerate(types):
            self._of_type[kind] |= (2**32 - 1) << 32 * number
        for texts, weight in ((summaries, IN_SUMMARY), (keywords, IN_KEYWORDS)):
            for number, text in enumerate(texts):
                hit = weight << 8 << 32 * number
                for token in text_tokens(text):
                    self._of_token[token] += hit

    def tokens(self) -> Iterable[Token]:
        return self._of_token

    def best(
        self, query: set[Token], hint: set[Token] | None, types: Collection[str] | None, count: int
    ) -> list[int]:
        worth = self._of_token
        scores = self._start + OF_QUERY * sum(map(worth.__getitem__, query & worth.keys()))
        if hint:
            scores += OF_HINT * sum(map(worth.__getitem__, hint & worth.keys()))
        if types:
            scores &= sum(map(self._of_type.__getitem__, set(types)))  # lanes of other types become 0
        lanes = self._lanes.unpack(scores.to_bytes(self._lanes.size, "little"))
        size = self._size
        return [size - (lane & 0xFF) for lane in sorted(lanes, reverse=True)[:count] if lane]


class _Planes:
    """Scores in binary, one integer for each binary digit, which has one bit for each memory.

    A token's mask (see `hits`) is a column of ones, and columns are added with the logic of a hardware
    adder. The best are then found by descending from the highest digit. Known as bit-sliced scoring.
    """

    def __init__(self, summaries: Sequence[str], keywords: Sequence[str], types: Sequence[str]) -> None:
        self._summaries = Index(summaries)
        self._keywords = Index(keywords)
        self._width = self._summaries.width
        numbers: dict[str, list[int]] = {}
        for number, kind in enumerate(types):
            numbers.setdefault(kind, []).append(number)
        self._of_type = {kind: self._summaries.mask(its) for kind, its in numbers.items()}

    def tokens(self) -> Iterable[Token]:
        return chain(self._summaries.tokens(), self._keywords.tokens())

    def best(
        self, query: set[Token], hint: set[Token] | None, types: Collection[str] | None, count: int
    ) -> list[int]:
        levels: list[list[int]] = []
        for tokens, what in ((query, OF_QUERY), (hint, OF_HINT)):
            if tokens:
                _put(levels, what * IN_SUMMARY, self._summaries.hits(tokens))
                _put(levels, what * IN_KEYWORDS, self._keywords.hits(tokens))
        candidates = 0
        for kind in types or self._of_type:
            candidates |= self._of_type.get(kind, 0)
        return _highest(_sum(levels), candidates, count, self._width)


def _put(levels: list[list[int]], weight: int, hits: list[list[int]]) -> None:
    """Add hits that are worth `weight` each, a power of two, to the level of that power and those above."""
    for level, masks in enumerate(hits, weight.bit_length() - 1):
        while level >= len(levels):
            levels.append([])
        levels[level] += masks


def _sum(levels: list[list[int]]) -> list[int]:
    """Return the scores in binary: digit k is the mask of the memories whose score has 2**k in it.

    The masks on level k of `levels`, worth 2**k each, are used up.
    """
    digits = []
    for masks in levels:  # which grows meanwhile, while there is something to carry
        carries = []
        while len(masks) > 2:  # a full adder: three columns become their sum and their carry
            a, b, c = masks.pop(), masks.pop(), masks.pop()
            either = a ^ b
            masks.append(either ^ c)
            carries.append(a & b ^ either & c)
        if len(masks) == 2:
            a, b = masks
            masks = [a ^ b]
            carries.append(a & b)
        digits.append(masks[0] if masks else 0)
        if any(carries):
            if len(digits) == len(levels):
                levels.append([])
            levels[len(digits)] += carries
    return digits


def _highest(digits: list[int], candidates: int, count: int, width: int) -> list[int]:
    """Return the numbers of the `count` candidates with the highest scores, in order."""
    numbers: list[int] = []
    waiting = [(candidates, len(digits))]  # groups alike in the digits from there up; the best one is last
    while waiting and len(numbers) < count:
        group, level = waiting.pop()
        while level:
            level -= 1
            if high := group & digits[level]:
                if high != group:
                    waiting.append((group ^ high, level))
                group = high
        numbers += _first(group, count - len(numbers), width)
    return numbers


def _first(group: int, count: int, width: int) -> list[int]:
    """Return the first `count` numbers in a mask."""
    numbers: list[int] = []
    if count <= 32:
        while group and len(numbers) < count:
            bit = group.bit_length() - 1
            numbers.append(width - 1 - bit)
            group ^= 1 << bit
    else:  # the above is quick for a few, but quadratic; this is linear
        bits = f"{group:0{width}b}"
        number = bits.find("1")
        while number >= 0 and len(numbers) < count:
            numbers.append(number)
            number = bits.find("1", number + 1)
    return numbers
