"""Random numbers in programs: each draw has a state of its own that every run begins anew.

States: a program's draws are fixed when it is laid out; `place` gives their states memory of the
device, where that is none of the processor's; `reserve` takes positions of the device's generator,
when a run is *called*; `put` writes them where the kernels read them, when it *runs*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnomon import dtype as dtypes
from gnomon.context import Context
from gnomon.dtype import DType
from gnomon.expr.ext import philox
from gnomon.expr.node import Buffer, Expr, set_address
from gnomon.resource import generator
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.device import find
from gnomon.runtime.execution.stream import Pair
from gnomon.shape import prod

Positions = list[tuple[int, int]]


class Draws:
    """What operators of one program ask for random numbers."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._device = find(ctx)
        self._there: list[Buffer] = []  # states in the memory of a device that is no processor
        self._block: pool.Storage | None = None  # which has them
        self.owners: list[str] = []  # the name of the operator of each draw
        self._owner = ""
        self._counts: list[int] = []
        self._states: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []

    def __len__(self) -> int:
        return len(self._counts)

    def of(self, name: str) -> Draws:
        """Itself, for the operator of this name from now on."""
        self._owner = name
        return self

    def uniform(self, shape: Sequence[int], dtype: DType = dtypes.float32) -> Expr:
        """Numbers in [0, 1)."""
        return philox(self._state(prod(shape)), shape, "uniform", dtype)

    def normal(self, shape: Sequence[int], dtype: DType = dtypes.float32) -> Expr:
        """Normal numbers of mean 0 and variance 1."""
        return philox(self._state(prod(shape)), shape, "normal", dtype)

    def _state(self, count: int) -> Buffer:
        held = np.zeros(2, np.int64)
        self.owners.append(self._owner)
        self._counts.append(count)
        self._states.append(held)
        if not self._device.host:
            self._there.append(Buffer((2,), dtypes.int64, device=self._device.name))
            return self._there[-1]
        return Buffer((2,), dtypes.int64, None, held.__array_interface__["data"][0], held)

    def place(self) -> None:
        """Decide where the states lie that are read from a device's own memory, side by side."""
        if not self._there:
            return
        rows = np.zeros((len(self._there), 2), np.int64)
        self._states, self._block = list(rows), pool.allocate(rows.nbytes, self.ctx)
        for k, state in enumerate(self._there):
            set_address(state, self._block.address + k * rows[0].nbytes, self._block)

    def reserve(self) -> Positions:
        """Positions for one run, which no other run gets."""
        source = generator(self.ctx)
        return [source.reserve(count) for count in self._counts]

    def put(self, positions: Positions) -> None:
        """Let the kernels that run from now on draw at `positions`."""
        for state, position in zip(self._states, positions, strict=True):
            state[:] = position
        if self._block is not None:
            first = self._states[0].__array_interface__["data"][0]
            self._device.copy(self._block.address, first, self._block.nbytes)

    def pairs(self, positions: Positions) -> list[Pair]:
        """What `put` puts where."""
        found = []
        for state, position in zip(self._states, positions, strict=True):
            first = state.__array_interface__["data"][0]
            found += [(first + 8 * k, word) for k, word in enumerate(position)]
        return found
