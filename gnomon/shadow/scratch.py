"""Arrays that a traced function makes, and that end with it: they are made anew at each call.

A function that runs on its own makes such an array each time it is called; a traced one is run
once. So the numbers that the array holds before the statements are kept, and go into it again at
each call. An array that outlives the function is left as it is: it was there before, or somebody
looks at it afterwards.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

import numpy as np

from gnomon.expr.node import Buffer, Expr, set_address
from gnomon.expr.walk import postorder
from gnomon.plan.statement import Store, identity
from gnomon.shadow.tensor import Array, Tensor


class Scratch:
    """The arrays of NumPy that `stores` write to.

    `others` has a buffer for each leaf that lies in one: put in their places, nothing here holds
    the arrays, so that `settle` finds out who else does.
    """

    def __init__(self, stores: Iterable[Store], leaves: Iterable[Buffer]) -> None:
        found = {id(array): array for s in stores if (array := array_of(s.dest)) is not None}
        self._arrays = [(weakref.ref(a), a.ctypes.data, a.copy("K")) for a in found.values()]
        self.others: dict[Expr, Expr] = {}
        self._within: list[list[Buffer]] = [[] for _ in found]
        places = {key: place for place, key in enumerate(found)}
        for leaf in leaves:
            place = places.get(id(array_of(leaf)))
            if place is not None:
                other = Buffer(leaf.shape, leaf.dtype, leaf.strides, leaf.address)
                self.others[leaf] = other
                self._within[place].append(other)

    def settle(self, stores: Sequence[Store]) -> list[Store]:
        """Give the buffers their memory; what has to be done before `stores`, at each call."""
        self.others.clear()
        before = []
        for (reference, address, held), within in zip(self._arrays, self._within, strict=True):
            array = reference()
            if array is None:
                array = held.copy("K")
                if reads_first(stores, within):
                    before.append(Store(Tensor(array), "saveto", Tensor(held)))
            for buffer in within:
                set_address(buffer, buffer.address - address + array.ctypes.data, array)
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
