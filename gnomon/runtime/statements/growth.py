"""How numbers follow from sizes: two samples of each tell.

A number that grew as a product of sizes did is this product, times a whole number; for other sizes
it is told so, if all products that grew as it did come to the same there. Numbers that are no
products of sizes may be said beside these, for samples and for other sizes: a number that grew as
one of them did is this, times a whole number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from math import gcd
from typing import NamedTuple

from gnomon.shape import prod

Shape = tuple[int, ...]
Pair = tuple[int, int]  # a number of one sample, and of a later one
Pairs = tuple[Pair, ...]

DEGREE = 4  # sizes that are multiplied
BEYOND = 2  # times smaller or larger than in samples: what pays there may not pay any more


class Product(NamedTuple):
    """The sizes of these axes multiplied, and times a number."""

    axes: Shape
    times: int

    def of(self, sizes: Sequence[int]) -> int:
        """What it is for these sizes."""
        return self.times * prod([sizes[k] for k in self.axes])


class Growth:
    """How numbers of two samples follow from their sizes, and from numbers `said` of both.

    >>> growth = Growth((4, 10, 64), (4, 15, 64))
    >>> growth.tells([(2560, 3840), (64, 64), (100, 225)]), growth.tells([(9, 14)])
    (True, False)
    >>> growth.numbers((4, 20, 64))
    {(2560, 3840): 5120, (100, 225): 400}
    """

    def __init__(self, then: Shape, now: Shape, said: Sequence[Pair] = ()) -> None:
        self._sizes, self._said = paired(then, now), said
        moved = {pair: k for k, pair in enumerate(self._sizes) if pair[0] != pair[1]}
        products = [
            (axes, prod([then[k] for k in axes]), prod([now[k] for k in axes]))
            for count in range(1, DEGREE + 1)
            for axes in combinations_with_replacement(moved.values(), count)
        ]
        #: where a product stayed the same, what stayed the same need not be one of the others
        self.is_clear = bool(moved) and all(a != b for _, a, b in products)
        self.is_clear &= all(min(pair) > 1 for pair in moved)
        self._told: dict[Pair, list[Product]] = {}
        self._grew: dict[Pair, list[tuple[Shape, Pair]]] = {}  # by their ratio
        for axes, a, b in products:
            self._grew.setdefault(_ratio(a, b), []).append((axes, (a, b)))
        for k, (a, b) in enumerate(said, len(then)):
            if a != b and min(a, b) > 0 and not self._products((a, b)):
                self._grew.setdefault(_ratio(a, b), []).append(((k,), (a, b)))

    def tells(self, pairs: Iterable[Pair]) -> bool:
        """Whether it is clear what these numbers are, for sizes where all that may be agrees."""
        return all(pair[0] == pair[1] or self._of(pair) for pair in pairs)

    def product(self, then: int, now: int) -> Product | None:
        """What a number that grew is; None where that is not clear."""
        found = self._of((then, now))
        return found[0] if len(found) == 1 else None

    def _of(self, pair: Pair) -> list[Product]:
        """What a number that grew may be, from now on one of those that are told."""
        found = self._told.get(pair) or self._products(pair)
        if found:
            self._told[pair] = found
        return found

    def _products(self, pair: Pair) -> list[Product]:
        then, now = pair
        every = self._grew.get(_ratio(then, now), ()) if then > 0 and now > 0 else ()
        return [Product(axes, now // b) for axes, (_, b) in every if now % b == 0]

    def numbers(self, sizes: Shape, said: Sequence[int] = ()) -> dict[Pair, int] | None:
        """For sizes, and what is said for them, what the told numbers are, those that grew.

        None if the sizes are none of these: others differ, equal ones do not stay equal, are far
        from those in samples, or what a number may be comes to several.
        """
        of: dict[Pair, int] = {}
        for pair, n in zip(self._sizes, sizes, strict=True):
            least, most = min(pair), max(pair)
            near = n == least if least == most else n > 1 and least / BEYOND <= n <= most * BEYOND
            if not near or of.setdefault(pair, n) != n:
                return None
        if len(said) != len(self._said):
            return None
        for pair, n in zip(self._said, said, strict=True):
            if of.setdefault(pair, n) != n or (pair[0] == pair[1] and n != pair[0]):
                return None
        every, told = (*sizes, *said), {}
        for pair, products in self._told.items():
            values = {product.of(every) for product in products}
            told[pair] = values.pop()
            if values or of.get(pair, told[pair]) != told[pair]:
                return None
        return told


def _ratio(then: int, now: int) -> Pair:
    common = gcd(then, now)
    return then // common, now // common


def paired(then: Shape, now: Shape) -> Pairs:
    """The numbers of one sample, each with that of the other."""
    return tuple(zip(then, now, strict=True))
