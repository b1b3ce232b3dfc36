"""How numbers follow from sizes: two samples of each tell.

A number that grew as a product of sizes did is this product, times a whole number; for other sizes
it is told so, if all products that grew as it did come to the same there. Numbers that are no
products of sizes may be said beside these, for samples and for other sizes: a number that grew as
one of them did is this, times a whole number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import NamedTuple

Shape = tuple[int, ...]
Pair = tuple[int, int]  # a number of one sample, and of a later one
Pairs = tuple[Pair, ...]

Grown = tuple[Shape, Pair]  # a product's axes, and what it was

DEGREE = 4  # sizes that are multiplied
MOST = 3000  # products
BEYOND = 2  # times smaller or larger than in samples: what pays there may not pay any more


class Product(NamedTuple):
    """The sizes of these axes multiplied, and times a number."""

    axes: Shape
    times: int

    def of(self, sizes: Sequence[int]) -> int:
        """What it is for these sizes."""
        n = self.times
        for k in self.axes:
            n *= sizes[k]
        return n


class Growth:
    """How numbers of two samples follow from their sizes, and from numbers that are known besides.

    Those are `shapes`, what is no product of sizes being one more to multiply, and what is `said`.

    >>> growth = Growth((4, 10, 64), (4, 15, 64))
    >>> growth.tells([(2560, 3840), (64, 64), (100, 225)]), growth.tells([(9, 14)])
    (True, False)
    >>> growth.numbers((4, 20, 64))
    {(2560, 3840): 5120, (100, 225): 400}
    """

    def __init__(
        self, then: Shape, now: Shape, shapes: Sequence[Pair] = (), said: Sequence[Pair] = ()
    ) -> None:
        self._sizes, self._known = paired(then, now), (*shapes, *said)
        self._products: list[Grown] = [((), (1, 1))]
        self._grew: dict[Pair, list[Grown]] = {}  # the same by their ratio
        self._told: dict[Pair, list[Product]] = {}
        moved = {pair: k for k, pair in enumerate(self._sizes) if pair[0] != pair[1]}
        for pair, k in moved.items():
            self._multiply(k, pair)
        for k, pair in enumerate(shapes, len(then)):
            if pair[0] != pair[1] and not self._of(pair):
                moved[pair] = k
                self._multiply(k, pair)
        #: where a product stayed the same, what stayed the same need not be one of the others
        self.is_clear = bool(moved) and all(a != b for _, (a, b) in self._products[1:])
        self.is_clear &= all(min(pair) > 1 for pair in moved) and len(self._products) < MOST
        self._moved = moved.values()
        for k, pair in enumerate(said, len(then) + len(shapes)):
            if pair[0] != pair[1] and min(pair) > 0 and not self._of(pair):
                self._grew.setdefault(_ratio(pair), []).append(((k,), pair))

    def _multiply(self, k: int, pair: Pair) -> None:
        """From now on products have the number `k` too."""
        if len(self._products) >= MOST:
            return
        for axes, (a, b) in tuple(self._products):
            for times in range(1, DEGREE - len(axes) + 1):
                grown = (*axes, *[k] * times), (a * pair[0] ** times, b * pair[1] ** times)
                self._products.append(grown)
                self._grew.setdefault(_ratio(grown[1]), []).append(grown)

    def tells(self, pairs: Iterable[Pair]) -> bool:
        """Whether it is clear what these numbers are, for sizes where all that may be agrees."""
        return all(pair[0] == pair[1] or self._of(pair) for pair in pairs)

    def product(self, then: int, now: int) -> Product | None:
        """What a number that grew is; None where that is not clear."""
        found = self._of((then, now))
        return found[0] if len(found) == 1 else None

    def _of(self, pair: Pair) -> list[Product]:
        """What a number that grew may be, from now on one of those that are told: for sizes for
        which it is known, that has to be the same."""
        found = self._told.get(pair) or self._may_be(pair)
        if found:
            self._told[pair] = found
        return found

    def _may_be(self, pair: Pair) -> list[Product]:
        every = self._grew.get(_ratio(pair), ()) if min(pair) > 0 else ()
        return [Product(axes, pair[1] // b) for axes, (_, b) in every if pair[1] % b == 0]

    def numbers(self, sizes: Shape, known: Sequence[int] = ()) -> dict[Pair, int] | None:
        """For sizes, and what is `known` for these, `shapes` and `said`: what the told numbers are,
        those that grew.

        None if the sizes are none of these: others differ, equal ones do not stay equal, are far
        from those in samples, or what a number may be comes to several.
        """
        of: dict[Pair, int] = {}
        for pair, n in zip(self._sizes, sizes, strict=True):
            least, most = min(pair), max(pair)
            near = n == least if least == most else n > 1 and least / BEYOND <= n <= most * BEYOND
            if not near or of.setdefault(pair, n) != n:
                return None
        every, told = (*sizes, *known), dict[Pair, int]()
        if len(known) != len(self._known) or any(every[k] < 2 for k in self._moved):
            return None
        for pair, n in zip(self._known, known, strict=True):
            if of.setdefault(pair, n) != n or (pair[0] == pair[1] and n != pair[0]):
                return None
        for pair, products in self._told.items():
            values = {product.of(every) for product in products}
            told[pair] = values.pop()
            if values or of.get(pair, told[pair]) != told[pair]:
                return None
        return told


def _ratio(pair: Pair) -> Pair:
    common = gcd(*pair)
    return pair[0] // common, pair[1] // common


def paired(then: Shape, now: Shape) -> Pairs:
    """The numbers of one sample, each with that of the other."""
    return tuple(zip(then, now, strict=True))
