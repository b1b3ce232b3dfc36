"""Two makings of the same steps: the words of their argument blocks that differ.

Steps that run again on other memory, or with other numbers, are made twice, and what these are is
different in each: so the words that hold them show where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

Span = tuple[int, int, int]  # where memory begins in the first making and in the second; its size


class Word(NamedTuple):
    """A word of a block: which block it is, that of the first making, the word's place there, and
    what each making has there."""

    at: int
    block: Any
    number: int
    first: int
    second: int

    def within(self, spans: Iterable[Span]) -> bool:
        """Whether both makings mean the same place of one of these."""
        return any(
            self.first - a == self.second - b and 0 <= self.first - a < max(size, 1)
            for a, b, size in spans
        )


def differing(pairs: Iterable[tuple[Any, Any]]) -> Iterator[Word]:
    """The words that differ, of blocks of the first making, each beside that of the second.

    Raises:
        ValueError: blocks are of unlike lengths.
    """
    for at, (ours, theirs) in enumerate(pairs):
        for number, (x, y) in enumerate(zip(ours.words, theirs.words, strict=True)):
            if x != y:
                yield Word(at, ours, number, x, y)
