"""Arrays that a traced function makes, and that end with it: they are made anew at each call.

A function that runs on its own makes such an array each time it is called; a traced one is run
once. So the numbers that the array holds before the statements are kept, and go into it again at
each call. An array that outlives the function is left as it is: it was there before, or is kept in
what was.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from gnomon.expr.node import Buffer, Expr, set_address
from gnomon.expr.walk import postorder
from gnomon.plan.statement import Store, identity
from gnomon.shadow.tensor import Array, Tensor


class Scratch:
    """The arrays of NumPy that `stores` write to.

    `others` has a buffer for each leaf that lies in one: put in their places, they leave this list
    as all that holds an array, unless something that outlives the function does.
    """

    def __init__(self, stores: Iterable[Store], leaves: Iterable[Buffer]) -> None:
        found = {id(array): array for s in stores if (array := array_of(s.dest)) is not None}
        self._arrays, self._alone = [*found.values()], [np.empty(0)]
        self._within: list[list[Buffer]] = [[] for _ in found]
        self.others: dict[Expr, Expr] = {}
        places = {key: place for place, key in enumerate(found)}
        for leaf in leaves:
            place = places.get(id(array_of(leaf)))
            if place is not None:
                other = Buffer(leaf.shape, leaf.dtype, leaf.strides, leaf.address)
                self.others[leaf] = other
                self._within[place].append(other)

    def _ended(self) -> list[bool]:
        """Of each array whether nothing holds it but this list, once the leaves have gone."""
        self.others.clear()
        alone = sys.getrefcount(self._alone[0])
        return [sys.getrefcount(self._arrays[k]) == alone for k in range(len(self._arrays))]

    def settle(self, stores: Sequence[Store]) -> list[Store]:
        """Give the buffers their owners; what has to be done before `stores`, at each call."""
        if not all(self._ended()):
            gc.collect()  # cycles that the function left behind hold nothing
        before = []
        for array, within, its_own in zip(self._arrays, self._within, self._ended(), strict=True):
            if its_own and reads_first(stores, within):
                before.append(Store(Tensor(array), "saveto", Tensor(array.copy("K"))))
            for buffer in within:
                set_address(buffer, buffer.address, array)
        return before


def array_of(buffer: Buffer) -> Array | None:
    """The array of NumPy whose memory a buffer lies in; None where it is another's."""
    owner = buffer.owner
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner if isinstance(owner, np.ndarray) else None


def reads_first(stores: Sequence[Store], within: Sequence[Buffer]) -> bool:
    """Whether what an array holds counts: not where all of it that is used is stored to first."""
    used = {id(b) for b in within}
    for store in stores:
        read = any(id(n) in used for n in postorder([store.value]))
        if read:
            return True
        if id(store.dest) in used:
            whole = all(identity(b) == identity(store.dest) for b in within)
            return store.saver != "saveto" or not whole
    return False
