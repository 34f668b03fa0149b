"""A file of what was found before: later runs tell only what is new, and what is gone.

Findings are told apart by their keys: the same rule at the same place with the same kind of reply is the
same finding, whatever was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

from memmock import documents
from memmock.errors import MemmockError

_WHAT = "a baseline"


class Keyed(Protocol):
    """A finding, of either side."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What is the same for findings with one cause; one for each place that shows it."""


K = TypeVar("K", bound=Keyed)


def read(path: str | PathLike[str]) -> frozenset[str]:
    """Return the keys of the findings in a baseline.

    Raises:
        MemmockError: the file cannot be read, or is no baseline.
    """
    return documents.load(path, _keys, _WHAT)


def check_path(path: str | PathLike[str]) -> None:
    """Raise for what cannot be a baseline: a file of another kind, or one that is none.

    Raises:
        MemmockError: its name does not end in .yaml, .yml or .json, or what is there is no baseline.
    """
    if Path(path).suffix.lower() not in documents.SUFFIXES:
        raise MemmockError(f"{path}: {_WHAT} ends in .yaml, .yml or .json")
    if Path(path).exists():
        read(path)


def write(
    path: str | PathLike[str], findings: Iterable[Keyed], hide: Callable[[str], str] = str
) -> frozenset[str]:
    """Write a baseline of findings, in place of an old one, and return its keys.

    Args:
        path: the file; its directories are made.
        findings: what it is to hold; the order does not matter.
        hide: takes secrets out of a text. `new_ones` and `gone` are then given the same.

    Raises:
        MemmockError: it cannot be written.
    """
    path = Path(path)
    check_path(path)
    keys = _keys_of(findings, hide)
    text = documents.json_text({"findings": sorted(keys)})
    try:
        documents.replace(path, text.encode("utf-8", "backslashreplace"))  # as JSON escapes half a pair
    except OSError as error:
        raise MemmockError(f"{path}: {error.strerror or error}") from None
    return keys


def new_ones(findings: Iterable[K], baseline: frozenset[str], hide: Callable[[str], str] = str) -> list[K]:
    """Return the findings that are not in a baseline, or not with all their keys, in their order."""
    return [finding for finding in findings if not _keys_of([finding], hide) <= baseline]


def gone(findings: Iterable[Keyed], baseline: frozenset[str], hide: Callable[[str], str] = str) -> list[str]:
    """Return the keys in a baseline that no finding has any more, sorted."""
    return sorted(baseline - _keys_of(findings, hide))


def _keys_of(findings: Iterable[Keyed], hide: Callable[[str], str]) -> frozenset[str]:
    return frozenset(hide(key) for finding in findings for key in finding.keys)


def _keys(value: Any) -> frozenset[str]:
    if not isinstance(value, dict) or set(value) != {"findings"}:
        raise documents.Mistake((), 'must be {"findings": […]}')
    if not isinstance(value["findings"], list):
        raise documents.Mistake(("findings",), "must be a list")
    for n, key in enumerate(value["findings"]):
        if not isinstance(key, str):
            raise documents.Mistake(("findings", n), f"must be a text, not {documents.shown(key)}")
    return frozenset(value["findings"])
