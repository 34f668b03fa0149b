"""A reply in the form in which it is searched: folded, cut into sentences and clauses, each with its place.

Folding takes away what makes no difference to a reader: width and case, spaces beside Chinese, emphasis,
characters that cannot be seen. What is found in the folded text is told by offsets into the original one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Span(NamedTuple):
    """A part of a folded text, from `start` to before `end`."""

    start: int
    end: int


class Prose:
    """One text, folded.

    Attributes:
        text: the folded text.
        letters: only its letters and digits, without spacing and punctuation.
        sentences: its sentences in order, with the punctuation that ends them.
    """

    def __init__(self, original: str) -> None:
        self.original = original
        self.text, self._starts, self._ends = _folded(original)
        kept = [place for place, char in enumerate(self.text) if _is_letter(char)]
        self.letters = "".join(self.text[place] for place in kept)
        self._places = kept
        self.sentences = list(_sentences(self.text))
        self._sentence_ends = [span.end for span in self.sentences]

    @property
    def first_letter(self) -> int:
        """Where the first letter is in the original text, or what it is joined to. There must be one."""
        return self._starts[self._places[0]]

    def original_span(self, start: int, end: int) -> Span:
        """Return where a part of the folded text is in the original one, without white space around it.

        There is more than white space in it.
        """
        while self.text[end - 1].isspace():
            end -= 1
        while self.text[start].isspace():
            start += 1
        return Span(self._starts[start], self._ends[end - 1])

    def find(self, point: Prose) -> Iterator[Span]:
        """Yield where the letters of `point` are; not inside of a longer word, though a plural will do."""
        needle = point.letters
        found = self.letters.find(needle)
        while found >= 0:
            start, last = self._places[found], self._places[found + len(needle) - 1]
            if not self._cuts_a_word(start, last + 1):
                yield Span(start, last + 1)
            found = self.letters.find(needle, found + 1)

    def _cuts_a_word(self, start: int, end: int) -> bool:
        if start and _same_word(self.text[start - 1], self.text[start]):
            return True
        rest = end
        while rest < len(self.text) and _same_word(self.text[rest - 1], self.text[rest]):
            rest += 1
        return self.text[end:rest] not in ("", "s", "es")

    def sentence_at(self, place: int) -> int:
        """Return the number of the sentence that holds a place of the folded text."""
        return min(bisect_right(self._sentence_ends, place), len(self.sentences) - 1)


def clauses(text: str, span: Span) -> list[Span]:
    """Return the parts of a sentence between commas, colons, dashes and brackets, as places of `text`."""
    found, start = [], span.start
    for mark in _CLAUSE_MARK.finditer(text, span.start, span.end):
        found.append(Span(start, mark.end()))
        start = mark.end()
    found.append(Span(start, span.end))
    return [part for part in found if any(map(_is_letter, text[part.start : part.end]))]


_CLAUSE_MARK = re.compile(r"(?<![0-9])[,:]|[,:](?![0-9])|[;()\[\]【】—–~]+|\.{2,}|\s-{1,3}\s|\n")

_SENTENCE_END = re.compile(r"[。!?.]+[。!?.\"'”’」』)\]~]*\s*|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:[a-z]|mr|mrs|ms|dr|st|vs|etc)|(?:^|\n) ?[0-9]{1,2})$")


_LONGEST_SENTENCE = 500
"""What goes on for more characters is cut there, so that a hostile text costs no time."""


def _sentences(text: str) -> Iterator[Span]:
    for span in _whole_sentences(text):
        for start in range(span.start, span.end, _LONGEST_SENTENCE):
            end = min(start + _LONGEST_SENTENCE, span.end)
            if any(map(_is_letter, text[start:end])):
                yield Span(start, end)


def _whole_sentences(text: str) -> Iterator[Span]:
    start = looked = 0
    says_something = False
    for mark in _SENTENCE_END.finditer(text):
        says_something = says_something or any(map(_is_letter, text[looked : mark.start()]))
        looked = mark.start()
        if says_something and _ends_sentence(text, mark):
            yield Span(start, mark.end())
            start = looked = mark.end()
            says_something = False
    if any(map(_is_letter, text[start:])):
        yield Span(start, len(text))


def _ends_sentence(text: str, mark: re.Match[str]) -> bool:
    if mark[0].rstrip(" \"'”’」』)]~").strip("."):
        return True
    if mark[0].startswith(".."):  # an ellipsis goes on as often as not
        return "\n" in mark[0]
    before, after = text[max(mark.start() - 6, 0) : mark.start()], text[mark.end() :][:1]
    if _ABBREVIATION.search(before) or (before[-1:].isdigit() and not mark[0][-1].isspace() and after):
        return False
    return not after or mark[0][-1].isspace() or _is_wide(after)


# ---- folding

_SPECIAL = {"’": "'", "‘": "'", "\r": "\n", "\u2028": "\n", "\u2029": "\n", "\t": " ", "\n": "\n"}
_SPECIAL |= {chr(0x2460 + n): f"{n + 1}." for n in range(20)}  # ① … ⑳
_SPECIAL |= {chr(0x2776 + n): f"{n + 1}." for n in range(10)}  # ❶ … ❿
_KEYCAP = "\u20e3"


def _folded(original: str) -> tuple[str, list[int], list[int]]:
    """Return the folded text and, for each of its characters, where it starts and ends in the original."""
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(original):
        for char in _fold(original[start:end]):
            if char == " " and (not chars or chars[-1].isspace() or _is_wide(chars[-1])):
                continue
            if chars and chars[-1] == " " and (char == "\n" or _is_wide(char)):
                for column in (chars, starts, ends):
                    column.pop()
            chars.append(char)
            starts.append(start)
            ends.append(end)
    kept = [n for n, char in enumerate(chars) if char not in "*`" or _is_markup(chars, n)]
    return "".join(chars[n] for n in kept), [starts[n] for n in kept], [ends[n] for n in kept]


def _is_markup(chars: list[str], place: int) -> bool:
    """Tell a bullet and a code fence from emphasis, which is left out."""
    if chars[place] == "`":
        return "".join(chars[max(place - 2, 0) : place + 3]).count("`") >= 3
    opens = place == 0 or chars[place - 1] == "\n" or chars[place - 1] == " "
    following = chars[place + 1] if place + 1 < len(chars) else ""
    return opens and (following == " " or _is_wide(following))


def _clusters(text: str) -> Iterator[Span]:
    """Yield the characters of a text, each with the marks that join it when it is normalised."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not _joins(text[place]):
            yield Span(start, place)
            start = place


@lru_cache(4096)
def _joins(char: str) -> bool:
    first = unicodedata.normalize("NFKC", char)[:1]
    return bool(first) and (unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff")


@lru_cache(4096)
def _fold(cluster: str) -> str:
    if (special := _SPECIAL.get(cluster)) is not None:
        return special
    if cluster[-1] == _KEYCAP:
        return f"{cluster[0]}."
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    folded = folded.replace("’", "'").replace("‘", "'")
    return "".join(" " if char.isspace() else char for char in folded if not _is_invisible(char))


def _is_invisible(char: str) -> bool:
    return 0xFE00 <= ord(char) <= 0xFE0F or unicodedata.category(char) in ("Cf", "Cc", "Cs")


@lru_cache(4096)
def _is_letter(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def _is_wide(char: str) -> bool:
    """Tell characters of scripts without spaces, and their punctuation."""
    return "\u2e80" <= char <= "\ud7ff" or "\uf900" <= char <= "\ufaff" or char >= "\U00020000"


def _same_word(left: str, right: str) -> bool:
    """Tell whether neighbours are in one word, of a script that puts spaces between words, or one number."""
    if left.isdigit() or right.isdigit():
        return left.isdigit() and right.isdigit()
    return all(_is_letter(char) and char < "\u1100" for char in (left, right))
