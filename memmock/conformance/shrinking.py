"""The smallest case that still fails, and which cases fail for the same cause.

Nothing here sends anything: whether a case still fails is asked of a function. The same answers of it make
the same case, without chance.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from memmock.conformance.case import PLAIN, Case, Form

SIMPLEST_QUERY = "a"
"""What a query is when it does not matter."""
_ROUNDS = 3
_LONG = 60
"""A longer text is cut by searching for its length before it is looked at character by character."""

Fails = Callable[[Case], bool]


@dataclass
class Budget:
    """What shrinking may cost.

    Attributes:
        calls: so many more times it may be asked whether a case fails.
        until: not later than this, by `time.monotonic`.
    """

    calls: int
    until: float = float("inf")

    @property
    def left(self) -> bool:
        """Whether it may be asked once more."""
        return self.calls > 0 and time.monotonic() < self.until


def shrunk(case: Case, still_fails: Fails, budget: Budget) -> Case:
    """Return the smallest case that was found to fail; `case` itself when none is smaller.

    In this order: without the fields that may be absent, in the plain form, with fewer kinds, with a smaller
    max_results, with shorter and then plainer texts; all over again while that helps.

    Args:
        case: one that fails.
        still_fails: whether a case fails in the same way; never asked twice for one case.
        budget: `calls` of it are used up.
    """
    search = _Search(case, still_fails, budget)
    for _ in range(_ROUNDS):
        before = search.case
        search.leap()
        search.drop_fields()
        search.plain_form()
        search.fewer_kinds()
        search.smaller_number()
        for name, value in list(search.case.fields.items()):
            if isinstance(value, str) and value:
                search.shorter(name)
                search.plainer(name)
        if search.case == before or not budget.left:
            break
    return search.case


class _Search:
    """The smallest case so far, and the steps that make it smaller."""

    def __init__(self, case: Case, still_fails: Fails, budget: Budget) -> None:
        self.case = case
        self._fails = still_fails
        self._budget = budget
        self._known: set[tuple[Any, ...]] = {_identity(case)}

    def takes(self, case: Case) -> bool:
        """Go on from a case if it still fails."""
        identity = _identity(case)
        if identity in self._known or not self._budget.left:
            return False
        self._known.add(identity)
        self._budget.calls -= 1
        if self._fails(case):
            self.case = case
            return True
        return False

    def leap(self) -> None:
        """Try what is so often enough: any query, or this query, and nothing else."""
        query = self.case.fields.get("query")
        if isinstance(query, str) and query:
            bare = replace(self.case, fields={"query": query})
            _ = (
                self.takes(replace(bare, form=PLAIN, fields={"query": SIMPLEST_QUERY}))
                or self.takes(replace(bare, form=PLAIN))
                or self.takes(replace(self.case, form=PLAIN))
                or self.takes(bare)
            )
            if self.case.fields.get("query") != SIMPLEST_QUERY:
                self.takes(self.case.with_fields(query=SIMPLEST_QUERY))

    def drop_fields(self) -> None:
        """Leave out each field but the query."""
        for name in [name for name in self.case.fields if name != "query"]:
            self.takes(self.case.without(name))
        if self.case.headers:
            self.takes(replace(self.case, headers=()))

    def plain_form(self) -> None:
        """Write it plainly, attribute by attribute."""
        for name in Form._fields:
            if getattr(self.case.form, name) != getattr(PLAIN, name):
                self.takes(replace(self.case, form=self.case.form._replace(**{name: getattr(PLAIN, name)})))
        if self.case.form.slices > 2:
            self.takes(replace(self.case, form=self.case.form._replace(slices=2)))

    def fewer_kinds(self) -> None:
        """Ask for fewer kinds."""
        kinds = self.case.fields.get("memory_types")
        if not isinstance(kinds, list):
            return
        for kind in kinds:
            if self.takes(self.case.with_fields(memory_types=[kind])):
                return
        for kind in kinds:
            left = [each for each in self.case.fields["memory_types"] if each != kind]
            self.takes(self.case.with_fields(memory_types=left))

    def smaller_number(self) -> None:
        """Ask for fewer memories: the least that fails, if more fail too."""
        most = self.case.fields.get("max_results")
        if not isinstance(most, int) or isinstance(most, bool):
            return
        for low in (1, 2):
            if low < most and self.takes(self.case.with_fields(max_results=low)):
                return
        passes, fails = 2, most
        while fails - passes > 1 and self._budget.left:
            middle = (passes + fails) // 2
            if self.takes(self.case.with_fields(max_results=middle)):
                fails = middle
            else:
                passes = middle

    def shorter(self, name: str) -> None:
        """Cut a text down: to its shortest beginning when it is long, then by what may be left out of it."""
        if len(self._text(name)) > _LONG:
            self._shortest_beginning(name)
        size = max(1, len(self._text(name)) // 2)
        while self._budget.left:
            start = 0
            while start < len(text := self._text(name)) and self._budget.left:
                rest = text[:start] + text[start + size :]
                if not rest or not self.takes(self.case.with_fields(**{name: rest})):
                    start += size
            if size == 1 or len(self._text(name)) > 10 * _LONG:
                return
            size = max(1, size // 2)

    def plainer(self, name: str) -> None:
        """Replace characters by 'a' and '0' where it still fails."""
        text = self._text(name)
        if set(text) <= {"a"}:
            return
        for letter in "a0":
            for length in sorted({len(text), len(text.encode("utf-8", "replace"))}):
                if self.takes(self.case.with_fields(**{name: letter * length})):
                    self.shorter(name)
                    return
        if len(text) > _LONG:
            return
        for place, character in enumerate(text):
            for letter in "a0":
                if character == letter:
                    break
                now = self._text(name)
                if self.takes(self.case.with_fields(**{name: now[:place] + letter + now[place + 1 :]})):
                    break

    def _shortest_beginning(self, name: str) -> None:
        """Search for the length at which it starts to fail."""
        text, passes = self._text(name), 0
        fails = len(text)
        while fails - passes > 1 and self._budget.left:
            middle = (passes + fails) // 2
            if self.takes(self.case.with_fields(**{name: text[:middle]})):
                fails = middle
            else:
                passes = middle

    def _text(self, name: str) -> str:
        text = self.case.fields[name]
        assert isinstance(text, str)
        return text


def _identity(case: Case) -> tuple[Any, ...]:
    return case.content, case.form, case.authorization, case.method, case.headers


# ---- causes


def signature(case: Case) -> tuple[Any, ...]:
    """Return what two shrunk cases of one cause have in common.

    One emoji is as good as another, a backslash is not a quotation mark, and of two numbers of memories both
    are small or both are large.
    """
    fields = tuple(sorted((name, _kind_of(name, value)) for name, value in case.fields.items()))
    return fields, tuple(name for name, _ in _changes(case.form)), case.method


def contains(case: Case, trigger: Case) -> bool:
    """Whether a case has in it what makes a shrunk case fail, so that it says nothing new."""
    form = dict(_changes(case.form))
    if any(form.get(name) != value for name, value in _changes(trigger.form)):
        return False
    for name, value in trigger.fields.items():
        if name not in case.fields or not _covers(case.fields[name], value):
            return False
    return True


def _covers(value: Any, part: Any) -> bool:
    if isinstance(part, str) and isinstance(value, str):
        return _text_covers(value, part)
    if isinstance(part, list) and isinstance(value, list):
        return len(value) >= min(len(part), 2)
    if isinstance(part, int) and isinstance(value, int):
        return value >= part if part > _SMALL else value <= _SMALL
    return type(value) is type(part)


def _text_covers(text: str, part: str) -> bool:
    odd = _odd(part)
    if odd:
        return odd <= _odd(text)
    if len(set(part)) <= 1:  # any text that is so long
        return len(text) >= len(part)
    return part in text


def between(case: Case, other: Case) -> Case | None:
    """Return a case half way between two shrunk ones that differ in one character, which is beyond ASCII.

    When it fails as they do, the cause is a range of characters, whatever kinds these are of.
    """
    if case.fields.keys() != other.fields.keys() or replace(case, fields=other.fields) != other:
        return None
    pairs = [(name, text, other.fields[name]) for name, text in case.fields.items()]
    differing = [(name, text, its) for name, text, its in pairs if text != its]
    if len(differing) != 1:
        return None
    ((name, text, its),) = differing
    if not all(isinstance(each, str) and len(each) == 1 and not each.isascii() for each in (text, its)):
        return None
    middle = chr((ord(text) + ord(its)) // 2)
    return None if unicodedata.category(middle) == "Cs" else case.with_fields(**{name: middle})


_PALETTE = ("～", "é", "☕", "²", "\u0301", "\u200b", "?", ".", "#", ";", "~")
"""Characters of different kinds, those of ASCII last."""
_FEW_KINDS = 3
_ASCII_KIND = "ASCII"
"""Every character of ASCII that is neither letter nor digit."""


def kinds_of_trigger(case: Case, still_fails: Fails, budget: Budget) -> frozenset[str]:
    """Return the kinds of characters that make a shrunk case fail; empty when it is not about one character.

    When many kinds do, no single one is the cause; when some of ASCII are among them, all of ASCII are taken
    to be.
    """
    place = _odd_field(case)
    if place is None:
        return frozenset()
    name, own = place
    text = case.fields[name]
    found = {own}
    for character in _PALETTE:
        (kind,) = _odd(character)
        if kind != own and budget.left:
            budget.calls -= 1
            changed = "".join(character if _odd(each) else each for each in text)
            if still_fails(case.with_fields(**{name: changed})):
                found.add(kind)
    if len(found) <= _FEW_KINDS:  # these may be as many causes
        return frozenset({own})
    if sum(not kind.startswith("U+") for kind in found) > 2:
        found.add(_ASCII_KIND)
    return frozenset(found)


def has_kind(case: Case, trigger: Case, kinds: frozenset[str]) -> bool:
    """Whether a case has a character of these kinds where the trigger has its own."""
    place = _odd_field(trigger)
    text = case.fields.get(place[0]) if place else None
    if not isinstance(text, str):
        return False
    odd = _odd(text)
    return bool(odd & kinds) or (_ASCII_KIND in kinds and any(not kind.startswith("U+") for kind in odd))


def _odd_field(case: Case) -> tuple[str, str] | None:
    """Return the only text that has one kind of odd characters, and the kind."""
    odd = {name: _odd(value) for name, value in case.fields.items() if isinstance(value, str) and _odd(value)}
    if len(odd) != 1:
        return None
    ((name, kinds),) = odd.items()
    return (name, next(iter(kinds))) if len(kinds) == 1 and len(case.fields[name]) <= _SMALL else None


_SMALL = 5
_MIRRORED = str.maketrans(")]}>\r", "([{<\n")


def _kind_of(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return tuple(sorted(_odd(value))) or (len(value) > _SMALL, len(set(value)) > 1)
    if isinstance(value, list):
        return min(len(value), 2)
    if name == "max_results" and isinstance(value, int):
        return value > _SMALL
    return type(value).__name__


def _odd(text: str) -> frozenset[str]:
    """Return what is in a text beside letters and digits of ASCII; beyond ASCII, only of which kinds."""
    found = set()
    for character in set(text):
        if character.isascii():
            if not character.isalnum():
                found.add(character.translate(_MIRRORED))
        else:
            found.add(f"U+{_category(character)}")
    return frozenset(found)


def _category(character: str) -> str:
    """Return what kind of character it is; a picture is one also when it is newer than this Python."""
    return "S" if "\U0001f000" <= character <= "\U0001faff" else unicodedata.category(character)[0]


def _changes(form: Form) -> Iterator[tuple[str, Any]]:
    for name, value, plain in zip(Form._fields, form, PLAIN, strict=True):
        if value != plain:
            yield name, value
