"""Runs grid programs in lockstep over the memory of NumPy's arrays."""

from __future__ import annotations

import bisect
import ctypes
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from gnomon.code import lockstep
from gnomon.code.races import Actors, Watch
from gnomon.expr.node import Buffer
from gnomon.plan.cut import reach
from gnomon.plan.gpu import grid
from gnomon.plan.gpu.grid import Entry, Grid
from gnomon.plan.gpu.spread import spread
from gnomon.plan.ir import Kernel
from gnomon.plan.pipeline import plan
from gnomon.plan.scratch import TASKS
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.devices import pool
from gnomon.runtime.kernels import kernel
from gnomon.runtime.statements.prepare import pieces


class Here:
    """The memory of this process between some ends, every element of it watched."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.ranges = sorted(ranges)
        self.watches: dict[tuple[int, int], Watch] = {}

    def places(self, addresses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, Watch]:
        """The bytes there, the places in it, and what watches them."""
        first, last = int(addresses.min()), int(addresses.max())
        low, high = self.ranges[bisect.bisect(self.ranges, (first, sys.maxsize)) - 1]
        assert low <= first and last + size <= high, "outside of all operands"
        held = (ctypes.c_uint8 * (high - low)).from_address(low)
        count = (high - low) // size
        watch = self.watches.setdefault((low, size), Watch(hex(low), count))
        return np.frombuffer(held, np.uint8)[: count * size], (addresses - low) // size, watch

    def load(self, addresses: np.ndarray, dtype: np.dtype, actors: Actors) -> np.ndarray:
        held, places, watch = self.places(addresses, dtype.itemsize)
        watch.read(places, actors)
        return held.view(dtype)[places]

    def store(self, addresses: np.ndarray, values: np.ndarray, actors: Actors) -> None:
        held, places, watch = self.places(addresses, values.itemsize)
        watch.write(places, actors, values)
        held.view(values.dtype)[places] = values


def run(
    stores: Sequence[Store], block_shape: tuple[int, int] = (64, 1), blocks: int = 2
) -> list[str]:
    """Carry out statements as a GPU would, in blocks of this shape: the kinds of entries."""
    return [kind for group in groups(stores) for kind in run_group(group, block_shape, blocks)]


def groups(stores: Sequence[Store]) -> Iterator[list[Store]]:
    """The groups of statements that have a kernel each."""
    for piece in pieces(stores):
        assert isinstance(piece, list), "a call of a library"
        yield piece


def run_group(
    stores: Sequence[Store],
    block_shape: tuple[int, int],
    blocks: int,
    change: Callable[[Grid], None] = lambda program: None,
) -> list[str]:
    """Carry out one group of statements, by a grid program that `change` may spoil."""
    structure = Structure(stores)
    program = spread(plan(stores, structure))
    change(program)
    values = bound(program.kernel, structure, blocks * block_shape[1])
    ranges = extents(structure.buffers)
    scratch = []
    signature = signature_of(program.kernel)
    sizes = signature.sizes([values.get(slot, 0) for slot in signature.args])
    for piece in signature.scratch:
        memory = pool.allocate(max(1, sizes[piece.elements]) * piece.itemsize)
        values[piece.slot] = memory.address
        ranges.append((memory.address, memory.address + memory.nbytes))
        scratch.append(memory)
    for entry in program.entries:
        shape = entry.shape(values, 100)
        assert shape[0] >= 0 and shape[1] * shape[2] <= 256
        alone = (grid.BLOCK if entry.shared else grid.WARP), 1
        x, y = alone if entry.kind == "threads" else block_shape
        lockstep.run(program, entry, values, (blocks, x, y), Here(ranges))
    return [entry.kind for entry in program.entries]


def bound(nests: Kernel, structure: Structure, tasks: int) -> dict[Hashable, Any]:
    """The arguments of a kernel whose groups are so many, but for scratch memory."""
    return {**kernel.arguments(structure), TASKS: tasks}


def extents(buffers: Sequence[Buffer]) -> list[tuple[int, int]]:
    """From where to where buffers have memory, as few ranges."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(map(reach, buffers)):
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def entries(stores: Sequence[Store]) -> list[Entry]:
    """The entries of a group of statements."""
    program: Grid = spread(plan(stores, Structure(stores)))
    return program.entries
