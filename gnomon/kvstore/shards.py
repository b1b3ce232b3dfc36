"""Which rank owns what of a key, and in what order a bucket of keys lies in memory.

Every element of a key has an owner, the rank that sums its gradients, updates it and keeps its
optimizer's states. A large key is cut into one piece a rank, unless its optimizer looks at a whole
weight, as one that divides by norms; a small one goes to the rank that owns least so far. Ownership
is settled when a key is first pushed, and is the same whichever keys are pushed together.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from gnomon import optimizer as opt
from gnomon.ndarray.core.layout import dense
from gnomon.shape import prod

SPLIT_BYTES = 1 << 18  # from here on, a key is cut into pieces
ALIGNED = 16  # elements that a piece's start is a multiple of

#: optimizers whose new element depends on old ones at the same place alone
ELEMENTWISE = frozenset(
    (
        opt.SGD, opt.ccSGD, opt.NAG, opt.Signum, opt.Test, opt.Adam, opt.AdamW, opt.AdaGrad,
        opt.RMSProp, opt.AdaDelta, opt.Adamax, opt.DCASGD, opt.FTML, opt.Ftrl,
    )
)  # fmt: skip

#: optimizers with a state common to all weights: every rank has to see every update
INDIVISIBLE = (opt.Nadam,)


class Piece(NamedTuple):
    """Elements `start` to `stop` of a key, which a rank owns."""

    key: Hashable
    owner: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.stop - self.start


class Shards:
    """The pieces of all keys of a store between `ranks` ranks.

    >>> shards = Shards(2)
    >>> [tuple(p) for p in shards.pieces("w", (1 << 16,), 4, True)]
    [('w', 0, 0, 32768), ('w', 1, 32768, 65536)]
    >>> [shards.pieces(k, (8,), 4, True)[0].owner for k in "abc"]
    [0, 1, 0]
    """

    def __init__(self, ranks: int) -> None:
        self._owned = [0] * ranks
        self._known: dict[Hashable, tuple[Piece, ...]] = {}

    def pieces(
        self, key: Hashable, shape: Sequence[int], itemsize: int, splits: bool
    ) -> tuple[Piece, ...]:
        """The pieces of a key, in order; cut if it is large and `splits`."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._assigned(key, prod(tuple(shape)), itemsize, splits)
        return found

    def known(self, key: Hashable) -> tuple[Piece, ...] | None:
        """The pieces of a key that was pushed already."""
        return self._known.get(key)

    def _assigned(self, key: Hashable, size: int, itemsize: int, splits: bool) -> tuple[Piece, ...]:
        ranks = len(self._owned)
        if splits and size * itemsize >= SPLIT_BYTES:
            step = -(-size // (ranks * ALIGNED)) * ALIGNED
            cuts = [min(size, step * rank) for rank in range(ranks + 1)]
            found = tuple(
                Piece(key, rank, cuts[rank], cuts[rank + 1])
                for rank in range(ranks)
                if cuts[rank] < cuts[rank + 1]
            )
        else:
            found = (Piece(key, self._owned.index(min(self._owned)), 0, size),)
        for piece in found:
            self._owned[piece.owner] += piece.size * itemsize
        return found


def view(array: Any, start: int, stop: int) -> Any:
    """Elements `start` to `stop` of a dense array in a row, on the same memory."""
    layout, chunk = array._layout, array._chunk
    offset = array._offset + start * layout.dtype.size
    return array._at(chunk, dense((stop - start,), layout.dtype), offset)


def in_a_row(array: Any, pieces: Sequence[Piece]) -> list[Any]:
    """The elements of each piece in a dense array, where they lie one after the other."""
    stops = itertools.accumulate(p.size for p in pieces)
    return [view(array, stop - p.size, stop) for p, stop in zip(pieces, stops, strict=True)]


def shaped(array: Any, shape: tuple[int, ...]) -> Any:
    """A dense array in another shape, on the same memory."""
    return array._at(array._chunk, dense(shape, array._layout.dtype), array._offset)
