"""Kernels of GPUs: grid programs by structure, and bound to memory as launches on a queue.

A `GpuKernel` is the program and what it is called with; each GPU loads its module when it first
runs there. The PTX is written when a driver asks for it: the simulated one does not.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gnomon.code import nvptx, target
from gnomon.expr.node import Buffer
from gnomon.ground.lock import in_child
from gnomon.plan import pipeline
from gnomon.plan.cut import reach
from gnomon.plan.gpu.grid import Grid, nested
from gnomon.plan.gpu.spread import spread
from gnomon.plan.ir import Put
from gnomon.plan.scratch import TASKS
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import cross
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.driver import Driver, Image
from gnomon.runtime.devices.cuda.gpu import Gpu, Queue
from gnomon.runtime.devices.pool import Storage
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.cache import Cache
from gnomon.runtime.kernels.kernel import arguments, divides, size_of


class Span(NamedTuple):
    """The word of a step that is an address, and the bytes around it that the step touches."""

    word: int
    low: int
    high: int
    writes: bool


class Issue(Protocol):
    """What a step has the driver do."""

    def __call__(self, driver: Driver, words: Sequence[int], queue: Queue) -> None:
        """Give it to the queue, with these words."""


class GpuStep:
    """Work on some memory: `run` gives it to its queue and does not wait for it.

    Of its `words`, those that `spans` name are addresses.
    """

    __slots__ = ("bytes", "issue", "keep", "name", "queue", "spans", "words")

    status = None

    def __init__(
        self,
        issue: Issue,
        words: Sequence[int],
        spans: Sequence[Span],
        queue: Queue,
        name: str,
        keep: Any,
        moved: int,
    ) -> None:
        self.issue, self.words, self.spans, self.queue = issue, words, spans, queue
        self.name, self.keep, self.bytes = name, keep, moved

    def places(self) -> Sequence[int]:
        """As of a step of the processor: none, it is bound anew to other operands."""
        return ()

    def with_words(self, words: Sequence[int], keep: Any, queue: Queue | None = None) -> GpuStep:
        """The same work with other words, by another queue where one is given."""
        by = queue or self.queue
        return GpuStep(self.issue, words, self.spans, by, self.name, keep, self.bytes)

    def run(self) -> None:
        """Give the work to the queue.

        Raises:
            DeviceError: the driver refuses; or work given before has failed.
        """
        words, queue = self.words, self.queue
        queue.gpu.give(queue, *self.ranges(), lambda driver: self.issue(driver, words, queue))

    def ranges(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The bytes that it reads, and those that it writes."""
        words = self.words
        reads: list[tuple[int, int]] = []
        writes: list[tuple[int, int]] = []
        for word, low, high, is_written in self.spans:
            at = words[word]
            (writes if is_written else reads).append((at + low, at + high))
        return reads, writes


class Launches:
    """A kernel's entries on a GPU with the shapes of their grids, one after the other."""

    __slots__ = ("by_value", "entries")

    def __init__(self, entries: Sequence[tuple[int, tuple[int, int, int]]], by_value: bool) -> None:
        self.entries, self.by_value = entries, by_value

    def __call__(self, driver: Driver, words: Sequence[int], queue: Queue) -> None:
        if self.by_value:
            self._launch(driver, words, queue.handle)
            return
        memory = uploaded(words, queue)  # returns to the pool when this does: queues are in order
        span = memory.address, memory.address + memory.nbytes
        words = [memory.address]
        queue.gpu.give(queue, [span], (), lambda driver: self._launch(driver, words, queue.handle))

    def _launch(self, driver: Driver, words: Sequence[int], stream: int) -> None:
        for function, shape in self.entries:
            driver.launch(function, shape, words, stream)


class GpuKernel:
    """A grid program for one structure of statements, and what to call it with."""

    def __init__(self, program: Grid, name: str) -> None:
        nests = program.kernel
        self.program, self.signature = program, signature_of(nests, False)
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
        sizes = self.signature.sizes([values.get(slot, 0) for slot in self.signature.args])
        scratch = [
            (slot, pool.allocate(max(1, sizes[elements]) * itemsize, gpu.name))
            for slot, elements, itemsize in self.signature.scratch
        ]
        values.update((slot, storage.address) for slot, storage in scratch)
        words = [values.get(slot, 0) for slot in self.signature.args]
        entries = [
            (function, shape)
            for function, shape in zip(self.functions(gpu), shapes, strict=True)
            if shape[0] > 0
        ]
        issue = Launches(entries, self.image.by_value)
        spans = self._spans(structure.buffers, dict(scratch))
        keep = [scratch, structure.buffers, [b.owner for b in structure.buffers]]
        moved = sum(map(size_of, structure.buffers))
        return GpuStep(issue, words, spans, queue, name, keep, moved)

    def _spans(self, buffers: Sequence[Buffer], scratch: Mapping[Hashable, Storage]) -> list[Span]:
        """What the words are that are addresses."""
        places = {slot: word for word, slot in enumerate(self.signature.args)}
        found = [
            Span(places[slot], 0, storage.nbytes, True)
            for slot, storage in scratch.items()
            if slot in places
        ]
        for k, buffer in enumerate(buffers):
            slot = "leaf", k
            if slot in places:
                low, high = (end - buffer.address for end in reach(buffer))
                found.append(Span(places[slot], low, high, slot in self.written))
        return found


def written(program: Grid) -> set[Hashable]:
    """The slots of what a program stores into, or keeps something in."""
    statements = [s for entry in program.entries for s in nested(entry.body)]
    found = {s.dest.slot for s in statements if isinstance(s, Put)}
    terms = program.kernel.arena.table.values()
    return found | {t.payload.slot for t in terms if t.op == "keep"}


def uploaded(words: Sequence[int], queue: Queue) -> Storage:
    """A GPU's memory with the words that are too many for an entry."""
    block = Block(words)
    memory = pool.allocate(8 * len(words), queue.gpu.name)
    queue.gpu.copy_on(queue, memory.address, block.address, memory.nbytes)
    return memory


def ptx(program: Grid, name: str, arch: str) -> str:
    """The PTX of a grid program; LLVM, which takes 20 to 130 ms of a kernel's 40 to 160, once."""
    machine = target.gpu(arch)
    opt = 2 if divides(program.kernel) else 1
    return cross.kept_assembly(nvptx.write(program, machine, name).text, machine, opt)


def _planned(stores: Sequence[Store], structure: Structure) -> tuple[GpuKernel, str]:
    nests = spread(pipeline.plan(stores, structure))
    return GpuKernel(nests, "kernel"), "planned for a GPU"


CACHE = Cache(_planned)
in_child(CACHE.unlock)
