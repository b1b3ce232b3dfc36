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
        self.states: list[Buffer] = []  # as kernels read them
        self._block: pool.Storage | None = None  # has them where a device is no processor
        self.owners: list[str] = []  # the name of the operator of each draw
        self._owner = ""
        self.counts: list[int] = []
        self._held: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []

    def __len__(self) -> int:
        return len(self.counts)

    def of(self, name: str) -> Draws:
        """Itself, for the operator of this name from now on."""
        self._owner = name
        return self

    def uniform(self, shape: Sequence[int], dtype: DType = dtypes.float32) -> Expr:
        """Numbers in [0, 1)."""
        return philox(self.state(prod(shape)), shape, "uniform", dtype)

    def normal(self, shape: Sequence[int], dtype: DType = dtypes.float32) -> Expr:
        """Normal numbers of mean 0 and variance 1."""
        return philox(self.state(prod(shape)), shape, "normal", dtype)

    def state(self, count: int) -> Buffer:
        """What one more draw of so many numbers begins with."""
        held = np.zeros(2, np.int64)
        self.owners.append(self._owner)
        self.counts.append(count)
        self._held.append(held)
        if self._device.host:
            address = held.__array_interface__["data"][0]
            self.states.append(Buffer((2,), dtypes.int64, None, address, held))
        else:
            self.states.append(Buffer((2,), dtypes.int64, device=self._device.name))
        return self.states[-1]

    def place(self) -> None:
        """Decide where the states lie that are read from a device's own memory, side by side."""
        if self._device.host or not self.states:
            return
        rows = np.zeros((len(self.states), 2), np.int64)
        self._held, self._block = list(rows), pool.allocate(rows.nbytes, self.ctx)
        for k, state in enumerate(self.states):
            set_address(state, self._block.address + k * rows[0].nbytes, self._block)

    def reserve(self) -> Positions:
        """Positions for one run, which no other run gets."""
        source = generator(self.ctx)
        return [source.reserve(count) for count in self.counts]

    def put(self, positions: Positions) -> None:
        """Let the kernels that run from now on draw at `positions`."""
        for held, position in zip(self._held, positions, strict=True):
            held[:] = position
        if self._block is not None:
            first = self._held[0].__array_interface__["data"][0]
            self._device.copy(self._block.address, first, self._block.nbytes)

    def pairs(self, positions: Positions) -> list[Pair]:
        """What `put` puts where."""
        found = []
        for held, position in zip(self._held, positions, strict=True):
            first = held.__array_interface__["data"][0]
            found += [(first + 8 * k, word) for k, word in enumerate(position)]
        return found
