"""Examples drawn from a strategy: the same ones for the same seed, whatever else is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final, TypeVar

from hypothesis import Verbosity, given, settings
from hypothesis import strategies as st

T = TypeVar("T")
DRAWN_BYTES: Final = 1024
"""So much chance makes one example of a request: several times what it takes."""


def drawn(
    strategy: st.SearchStrategy[T], seed: int, examples: int, drawn_bytes: int = DRAWN_BYTES
) -> Iterator[T]:
    """Return examples drawn by chance.

    Hypothesis reads them from bytes of ours, as a fuzzer has it do. Left to itself it would draw numbers from
    the source of the modules that are loaded, and keep what it found there in the working directory.

    Args:
        strategy: what they are drawn from.
        seed: the same one draws the same examples.
        examples: how many are drawn.
        drawn_bytes: how much chance makes one example; seldom should it be too little.
    """
    made: list[T] = []

    @settings(database=None, verbosity=Verbosity.quiet)
    @given(strategy)
    def draw(example: T) -> None:
        made.append(example)

    target: Any = draw
    random = Random(seed)
    for _ in range(examples):
        while not made:
            target.hypothesis.fuzz_one_input(random.randbytes(drawn_bytes))
        yield made.pop()
