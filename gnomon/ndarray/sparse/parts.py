"""Parts: the arrays that a sparse array is made of, and what NumPy knows of them.

They are the values that are kept (`data`) and where these belong (`aux`, int64): for `csr` the
column of each value and where each row starts among them (`indices`, `indptr`), for `row_sparse`
the number of each row that is kept (`indices`). Index arrays are never written in place: a write
replaces them, so that two arrays may have the same one. Values are written by lazy updates alone.

All of them lie on the array's device. What belongs where is found out by NumPy: indices are read
once from a GPU, which waits for its work, and never where NumPy made them; values stay there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gnomon.context import Context

Indices = np.ndarray[Any, np.dtype[np.int64]]


class Parts:
    """What a sparse array keeps; `_known` has index arrays by their numbers, as NumPy read them."""

    __slots__ = ("_known", "aux", "data")

    def __init__(self, data: Any, aux: Sequence[Any], known: Mapping[int, Indices]) -> None:
        self.data, self.aux, self._known = data, tuple(aux), dict(known)

    def index(self, number: int) -> Indices:
        """An index array for NumPy, which nothing writes to, once it is computed."""
        known, aux = self._known, self.aux  # `become` may come from another thread while this waits
        found = known.get(number)
        if found is None:
            aux[number].wait_to_read()
            found = known[number] = aux[number]._numpy()
        return found

    def over(self, data: Any) -> Parts:
        """Other values at the same places."""
        return Parts(data, self.aux, self._known)

    def on(self, ctx: Context) -> Parts:
        """Copies on a device."""
        return Parts(self.data.copyto(ctx), [x.copyto(ctx) for x in self.aux], self._known)

    def become(self, other: Parts) -> None:
        """Keep what others keep from now on."""
        self.data, self.aux = other.data, other.aux
        self._known = dict(other._known)  # at last: see `index`
