"""Kernels: groups of statements compiled once by structure, and bound to memory as steps.

A `Kernel` lives in a bounded cache under its structure's key. Binding fills an argument block:
addresses, sizes, strides, numbers, and how the work is cut into tasks. The block belongs to one
step, never to the kernel.
"""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence

from gnomon.code import cpu
from gnomon.code.target import Target
from gnomon.dtype import DType
from gnomon.expr.node import Buffer, Scalar
from gnomon.expr.term import cast_number, compute_dtype
from gnomon.plan.ir import Kernel as Nests
from gnomon.plan.ir import Phase
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.plan.terms import host_value
from gnomon.runtime import jit, pool, threads
from gnomon.runtime.native import Block
from gnomon.runtime.program import Step

GRAIN = 250_000  # work (see `Phase.cost`) below which another thread does not pay
CAPACITY = 4096  # kernels kept in memory, about 90 KB each


class Kernel:
    """Machine code for one structure of statements."""

    __slots__ = ("address", "module", "nests", "text")

    def __init__(self, stores: Sequence[Store], structure: Structure) -> None:
        here = jit.host()
        self.nests = plan(stores, structure)
        self.text = cpu.write(self.nests, Target(here.cpu, here.vector_bytes))
        self.module = jit.compile_ir(self.text, opt=2 if divides(self.nests) else 1)
        self.address = self.module.address("kernel")

    def bind(self, structure: Structure, name: str = "kernel") -> Step:
        """A step that runs this kernel on the leaves of `structure`."""
        env: dict[Hashable, int] = {("dim", k): n for k, n in enumerate(structure.dims)}
        for k, buffer in enumerate(structure.buffers):
            for axis, stride in enumerate(buffer.strides):
                env["stride", ("leaf", k), axis] = stride
        scratch = [
            (operand.slot, pool.allocate(max(1, host_value(size, env)) * operand.dtype.size))
            for operand, size in self.nests.scratch
        ]
        values: dict[Hashable, int] = {slot: storage.address for slot, storage in scratch}
        values.update((("leaf", k), b.address) for k, b in enumerate(structure.buffers))
        values.update((("scalar", k), bits(s)) for k, s in enumerate(structure.scalars))
        values.update(env)
        words = [threads.parallel_address()]
        for phase in self.nests.phases:
            words.extend(division(self.nests, phase, env))
        words.extend(values.get(key, 0) for key in self.nests.args)
        block = Block(words)
        owners = [b.owner for b in structure.buffers]
        keep = (self, block, scratch, structure.buffers, owners)
        moved = sum(size_of(b) for b in structure.buffers)
        return Step(self.address, block.address, keep, name, moved)


def divides(nests: Nests) -> bool:
    """Whether loops divide by sizes: LLVM's usual pipeline then earns its time."""
    terms = nests.arena.table.values()
    return any(t.op in ("idiv", "imod") and t.free and t.args[1].constant is None for t in terms)


def division(nests: Nests, phase: Phase, env: dict[Hashable, int]) -> tuple[int, int]:
    """Tasks of a phase, and inner iterations in a block."""
    if phase.inner is None:
        return 1, 1
    extent = nests.arena.extent
    inner = host_value(extent[phase.inner], env)
    rows = 1
    for v in phase.rows:
        rows *= host_value(extent[v], env)
    each = sum(w * (1 if n is None else host_value(n, env)) for w, n in phase.cost)
    tasks = min(threads.num_threads(), 1 + inner * rows * each // GRAIN)
    if tasks == 1 or not phase.split or rows >= 4 * tasks:
        return min(tasks, max(1, rows if not phase.split or rows >= 4 * tasks else tasks)), max(
            1, inner
        )
    pieces = -(-4 * tasks // max(1, rows))
    block = -(-inner // pieces)
    return tasks, max(1, (block + 63) // 64 * 64 if phase.vector else block)


def bits(scalar: Scalar) -> int:
    """A number as the kernel's 8-byte slot holds it."""
    dtype: DType = compute_dtype(scalar.dtype)
    value = cast_number(scalar.value, dtype)
    if dtype.kind != "f":
        return int(value)
    if dtype.size == 8:
        return int(_WORD.unpack(_DOUBLE.pack(value))[0])
    try:
        return int(_HALF_WORD.unpack(_FLOAT.pack(value))[0])
    except OverflowError:  # beyond float32's range is infinity
        return int(_HALF_WORD.unpack(_FLOAT.pack(float("inf") if value > 0 else -float("inf")))[0])


_WORD, _HALF_WORD = struct.Struct("<q"), struct.Struct("<i")
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")


def size_of(buffer: Buffer) -> int:
    """Bytes of the elements of a buffer."""
    count = buffer.dtype.size
    for n in buffer.shape:
        count *= n
    return count


class Cache:
    """Kernels by key; the one used longest ago goes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.kernels: OrderedDict[Hashable, Kernel] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, stores: Sequence[Store], structure: Structure) -> Kernel:
        """The kernel of `structure`, compiled now if it is new."""
        with self.lock:
            kernel = self.kernels.get(structure.key)
            if kernel is not None:
                self.kernels.move_to_end(structure.key)
                return kernel
        kernel = Kernel(stores, structure)
        with self.lock:
            kernel = self.kernels.setdefault(structure.key, kernel)
            while len(self.kernels) > self.capacity:
                self.kernels.popitem(last=False)
        return kernel


CACHE = Cache(CAPACITY)
