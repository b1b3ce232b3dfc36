"""Kernels of GPUs: grid programs by structure, and bound to memory as launches on a queue.

A `GpuKernel` is the program and what it is called with; each GPU loads its module when it first
runs there. The PTX is written when a driver asks for it: the simulated one does not.
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

from gnomon.code import nvptx, target
from gnomon.lock import exclusive
from gnomon.plan import pipeline
from gnomon.plan.cut import reach
from gnomon.plan.grid import Grid, nested
from gnomon.plan.ir import Put
from gnomon.plan.scratch import TASKS
from gnomon.plan.signature import signature_of
from gnomon.plan.spread import spread
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import cross
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.driver import Image
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue, Ranges
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels import stages
from gnomon.runtime.kernels.kernel import arguments, divides, size_of

CAPACITY = 4096  # kernels kept in memory


class GpuStep:
    """A kernel on some memory: `run` gives it to its queue and does not wait for it."""

    status = None

    def __init__(
        self,
        launches: Sequence[tuple[int, tuple[int, int, int]]],
        words: Sequence[int],
        ranges: tuple[Ranges, Ranges],
        queue: Queue,
        name: str,
        keep: Any,
        moved: int,
    ) -> None:
        self.launches, self.words, self.ranges, self.queue = launches, words, ranges, queue
        self.name, self.keep, self.bytes = name, keep, moved

    def run(self) -> None:
        """Launch the kernel's entries, one after the other.

        Raises:
            DeviceError: the driver refuses; or work given before has failed.
        """
        with self.queue.gpu.working(self.queue, *self.ranges) as driver:
            for function, shape in self.launches:
                driver.launch(function, shape, self.words, self.queue.handle)


class GpuKernel:
    """A grid program for one structure of statements, and what to call it with."""

    def __init__(self, program: Grid, name: str) -> None:
        nests = program.kernel
        self.program, self.signature = program, signature_of(nests)
        self.written = written(program)
        text = functools.cache(functools.partial(ptx, program, name))
        by_value = len(nests.args) <= nvptx.SLOTS
        self.image = Image(program, nvptx.names(program, name), by_value, text)
        self._functions: dict[Gpu, list[int]] = {}

    def functions(self, gpu: Gpu) -> list[int]:
        """The entries on a GPU."""
        found = self._functions.get(gpu)
        if found is None:
            found = self._functions[gpu] = gpu.load(self.image)
        return found

    def bind(self, structure: Structure, name: str, queue: Queue) -> GpuStep:
        """A step that runs this kernel on the leaves of `structure`, by `queue`."""
        gpu = queue.gpu
        values: dict[Hashable, int] = {**arguments(structure), TASKS: 1}
        shapes = [e.shape(values, gpu.properties.processors) for e in self.program.entries]
        values[TASKS] = max(1, *(blocks * y for blocks, _, y in shapes))
        sizes = self.signature.sizes(values)
        scratch = [
            (slot, pool.allocate(max(1, sizes[elements]) * itemsize, gpu.name))
            for slot, elements, itemsize in self.signature.scratch
        ]
        values.update((slot, storage.address) for slot, storage in scratch)
        words = [values.get(slot, 0) for slot in self.signature.args]
        reads: list[tuple[int, int]] = []
        writes = [(s.address, s.address + s.nbytes) for _, s in scratch]
        for k, buffer in enumerate(structure.buffers):
            (writes if ("leaf", k) in self.written else reads).append(reach(buffer))
        owners = [b.owner for b in structure.buffers]
        keep: list[Any] = [scratch, structure.buffers, owners]
        if not self.image.by_value:
            words = [_uploaded(words, queue, keep, reads)]
        launches = [
            (function, shape)
            for function, shape in zip(self.functions(gpu), shapes, strict=True)
            if shape[0] > 0
        ]
        moved = sum(map(size_of, structure.buffers))
        return GpuStep(launches, words, (reads, writes), queue, name, keep, moved)


def written(program: Grid) -> set[Hashable]:
    """The slots of what a program stores into, or keeps something in."""
    statements = [s for entry in program.entries for s in nested(entry.body)]
    found = {s.dest.slot for s in statements if isinstance(s, Put)}
    terms = program.kernel.arena.table.values()
    return found | {t.payload.slot for t in terms if t.op == "keep"}


def _uploaded(words: Sequence[int], queue: Queue, keep: list[Any], reads: list[Any]) -> int:
    """Where a GPU has the words that are too many for an entry."""
    block = Block(words)
    memory = pool.allocate(8 * len(words), queue.gpu.name)
    queue.gpu.copy_on(queue, memory.address, block.address, memory.nbytes)
    keep.append(memory)
    reads.append((memory.address, memory.address + memory.nbytes))
    return memory.address


def ptx(program: Grid, name: str, arch: str) -> str:
    """The PTX of a grid program."""
    machine = target.gpu(arch)
    opt = 2 if divides(program.kernel) else 1
    return cross.assembly(nvptx.write(program, machine, name).text, machine, opt)


class Cache:
    """Kernels by structure; the one used longest ago goes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.kernels: OrderedDict[Hashable, GpuKernel] = OrderedDict()
        self.lock = exclusive()

    def get(self, stores: Sequence[Store], structure: Structure) -> GpuKernel:
        """The kernel of `structure`: from memory, or planned now."""
        with self.lock:
            kernel = self.kernels.get(structure.key)
            if kernel is not None:
                self.kernels.move_to_end(structure.key)
                return kernel
        began = time.perf_counter()
        kernel = GpuKernel(spread(pipeline.plan(stores, structure)), "kernel")
        stages.tell(stores, structure, "planned for a GPU", time.perf_counter() - began)
        with self.lock:
            kernel = self.kernels.setdefault(structure.key, kernel)
            while len(self.kernels) > self.capacity:
                self.kernels.popitem(last=False)
        return kernel


CACHE = Cache(CAPACITY)
