"""Updates where a weight, its gradient or its states are in sparse storage.

A row-sparse gradient that an optimizer applies lazily changes the rows that it has, and the
states' rows with them. Everything else is done on all elements.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon.ndarray.sparse.apply import update_rows
from gnomon.ndarray.sparse.arrays import wide
from gnomon.optimizer.fused import Item


def push_sparse(item: Item, lazy: bool, push: Callable[[Item], None]) -> None:
    """Carry an update out by `push`, which takes dense arrays and writes into them."""
    weight, grad, states, master = item
    kept = item.written()[1:]
    alike = all(x.stype == weight.stype for x in kept)
    if lazy and alike and grad.stype == "row_sparse" and weight.stype != "csr":
        count = len(states)
        update_rows(weight, grad, kept, lambda w, g, s: push(Item(w, g, (*s[:count],), *s[count:])))
        return
    dense = Item(
        wide(weight), wide(grad), tuple(map(wide, states)), None if master is None else wide(master)
    )
    push(dense)
    for sparse, twin in zip(item.written(), dense.written(), strict=True):
        if twin is not sparse:
            sparse[:] = twin
