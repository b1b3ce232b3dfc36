"""How numbers follow from sizes: two samples of each tell.

A number that grew as one product of sizes did, and as no other, is this product, times a whole
number; for other sizes it is told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
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
    """How numbers of two samples follow from their sizes.

    >>> growth = Growth((4, 10, 64), (4, 15, 64))
    >>> growth.tells([(2560, 3840), (64, 64), (100, 225)]), growth.tells([(9, 14)])
    (True, False)
    >>> growth.numbers((4, 20, 64))
    {(2560, 3840): 5120, (100, 225): 400}
    """

    def __init__(self, then: Shape, now: Shape) -> None:
        self._pairs = paired(then, now)
        moved = {pair: k for k, pair in enumerate(self._pairs) if pair[0] != pair[1]}
        self._products = [
            (axes, prod([then[k] for k in axes]), prod([now[k] for k in axes]))
            for count in range(1, DEGREE + 1)
            for axes in combinations_with_replacement(moved.values(), count)
        ]
        self._told: dict[Pair, Product] = {}
        #: where a product stayed the same, what stayed the same need not be one of the others
        self.is_clear = bool(moved) and all(a != b for _, a, b in self._products)
        self.is_clear &= all(min(pair) > 1 for pair in moved)

    def tells(self, pairs: Iterable[Pair]) -> bool:
        """Whether it is clear what these numbers are for other sizes."""
        return all(then == now or self.product(then, now) for then, now in pairs)

    def product(self, then: int, now: int) -> Product | None:
        """What a number that grew is; None where that is not clear."""
        if (then, now) not in self._told:
            found = [
                Product(axes, now // b)
                for axes, a, b in self._products
                if then * b == now * a and now % b == 0
            ]
            if len(found) != 1:
                return None
            self._told[then, now] = found[0]
        return self._told[then, now]

    def numbers(self, sizes: Shape) -> dict[Pair, int] | None:
        """For sizes what the told numbers are, those that grew; None if the sizes are none of
        these: others differ, equal ones do not stay equal, or are far from those in samples."""
        of: dict[Pair, int] = {}
        for pair, n in zip(self._pairs, sizes, strict=True):
            least, most = min(pair), max(pair)
            near = n == least if least == most else n > 1 and least / BEYOND <= n <= most * BEYOND
            if not near or of.setdefault(pair, n) != n:
                return None
        return {pair: product.of(sizes) for pair, product in self._told.items()}


def paired(then: Shape, now: Shape) -> Pairs:
    """The numbers of one sample, each with that of the other."""
    return tuple(zip(then, now, strict=True))
