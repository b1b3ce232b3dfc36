"""The other processes of a job, for layers below the stores that join them.

State: `job`, whose `count` and `carry` are set once, by the first store of this process that joins
several; until then a process is its own only rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon.base import DTypeError, complaint

Array = np.ndarray[Any, Any]


class Ranks:
    """The ranks of this process's job: how many there are, and sums over them.

    Attributes:
        count: how many ranks work; 1 until a store joins several.
        rank: this one's number, from 0.
        carry: gives the sum of all ranks' arrays under a name.
    """

    count = 1
    rank = 0
    carry: Callable[[str, Array], Array] | None = None

    def total(self, name: str, values: Array) -> Array:
        """The elementwise sum of all ranks' `values`, with the same bits on all ranks.

        Blocks until each rank has called it with this `name` as often as this one. Calls of other
        names, and what stores send, may go on meanwhile in any order; a name is in one call at a
        time. It may be called from a function of the engine, of which it holds the worker. Every
        rank sends its array to each other one: meant for kilobytes.

        >>> Ranks().total("mean", np.array([1.0, 2.0]))
        array([1., 2.])

        Args:
            name: what is summed; the same on all ranks.
            values: numbers, of the same shape and dtype on all ranks.

        Raises:
            DTypeError: `values` is no array of numbers.
            GnomonError: the name is in another call, or this process was forked.
        """
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf":
            kind = getattr(values, "dtype", type(values).__name__)
            raise DTypeError(complaint("total", "values", "a NumPy array of numbers", kind))
        return values.copy() if self.carry is None else self.carry(name, values)


job = Ranks()
