"""What a digital human says to the end user after a retrieval: is it what the demo promises?

Three things are judged: that the memory points are there, that nothing tells of machinery, and that memories
of low confidence are asked and not stated [seed]. Prose is judged by its surface, so these are signs and not
proof; they are made to let good replies pass rather than to catch every bad one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from memmock.errors import MemmockError
from memmock.reply_check.certainty import stated
from memmock.reply_check.machinery import signs
from memmock.reply_check.prose import Prose
from memmock.reply_check.structure import fault

CONCLUSION_THEN_REASONS = "conclusion, then reasons"
"""A memory point that is told by structure: the conclusion first, and then two or three reasons.

The third row of the demo has it in Chinese, as 先给结论，再补充两三条理由; both names are understood.
"""

_STRUCTURE = {Prose(name).letters for name in (CONCLUSION_THEN_REASONS, "先给结论，再补充两三条理由")}


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong with a reply.

    Attributes:
        kind: `missing` for a memory point that is not there, `machinery` for a place that tells of tools,
            stores or raw data, `stated` for a memory of low confidence told as a fact, `structure` for a
            reply that is not in the form that was asked for.
        message: what is wrong, on one line.
        quote: the very piece of the reply; empty when something is missing.
        start: where the quote starts in the reply, in characters.
        end: where it ends.
    """

    kind: Literal["missing", "machinery", "stated", "structure"]
    message: str
    quote: str = ""
    start: int = 0
    end: int = 0

    def to_json(self) -> dict[str, str | int]:
        """Return the flaw as a mapping with its attributes."""
        return asdict(self)


def check_reply(text: str, remembers: Iterable[str] = (), unsure: Iterable[str] = ()) -> list[Flaw]:
    """Return what is wrong with what the digital human said after a retrieval; nothing, for a good reply.

    Points are found whatever their width and case, and without spacing and punctuation: "月亮 醒了！" holds
    月亮醒了. A point in letters is not found inside of a longer word.

    Args:
        text: the reply, in Chinese or English.
        remembers: the memory points that must be there; `CONCLUSION_THEN_REASONS` stands for the structure.
        unsure: memory points of low confidence. One may be absent; where it is, it must be asked or hedged.

    Returns:
        The flaws: first the points that are missing, then the others in the order of the text.

    Raises:
        MemmockError: the text or a point is not a text, or a point has no letter or digit.
    """
    if not isinstance(text, str):
        raise MemmockError(f"the reply must be a text, not {_kind(text)}")
    wanted, doubtful = _points("remembers", remembers), _points("unsure", unsure)
    prose = Prose(text)
    if not prose.letters:
        return [Flaw("missing", "the reply is empty: it has no letter or digit")]
    missing, others = [], list(_told_of_machinery(prose))
    for name, point in wanted:
        if point.letters in _STRUCTURE:
            others += _structure(prose)
        elif next(prose.find(point), None) is None:
            missing.append(Flaw("missing", f"the memory point “{name}” is not in the reply"))
    for name, point in doubtful:
        says = f"“{name}” is of low confidence and stated as a fact; it should be asked or hedged"
        others += [_flaw("stated", says, prose, *span) for span in stated(prose, point)]
    return [*missing, *sorted(others, key=lambda flaw: flaw.start)]


def _points(argument: str, points: Iterable[str]) -> list[tuple[str, Prose]]:
    if isinstance(points, str | bytes) or not isinstance(points, Iterable):
        raise MemmockError(f"{argument} must be a list of texts, not {_kind(points)}")
    found = []
    for name in points:
        if not isinstance(name, str):
            raise MemmockError(f"a point of {argument} must be a text, not {_kind(name)}")
        point = Prose(name)
        if not point.letters:
            raise MemmockError(f"a point of {argument} must have a letter or digit, not {name!r}")
        found.append((" ".join(name.split()), point))
    return found


def _kind(value: object) -> str:
    return "one text" if isinstance(value, str) else type(value).__name__


def _told_of_machinery(prose: Prose) -> Iterator[Flaw]:
    for sign in signs(prose):
        yield _flaw("machinery", f"the reply {sign.says}; a character just remembers", prose, *sign.span)


def _structure(prose: Prose) -> Iterator[Flaw]:
    if (found := fault(prose)) is not None:
        start, end = found.span
        yield Flaw("structure", f"the reply {found.says}", prose.original[start:end], start, end)


def _flaw(kind: Literal["machinery", "stated"], message: str, prose: Prose, start: int, end: int) -> Flaw:
    span = prose.original_span(start, end)
    return Flaw(kind, message, prose.original[span.start : span.end], span.start, span.end)
