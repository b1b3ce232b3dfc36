"""Steps of a loop without an executor for each: the programs of one, at other addresses.

What belongs to a step alone lies in `Slots`: the same arrays for each step, at equal distances; so
do parts of data and of stacked outputs. Between two steps each address in a program's argument
blocks grows by the same amount then, or not at all. Executors bound for two neighbours tell which
words are addresses, and by how much they grow; `Replay` sets them for any step, and runs the first
executor's programs. A word that differs in any other way is not understood: there is no replay.

Programs are run here and now, by the thread that runs the loop; nothing is pushed to the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.context import Context
from gnomon.dtype import DType
from gnomon.executor import arrays
from gnomon.executor.arena import Arena
from gnomon.executor.executor import Executor
from gnomon.executor.network import Bound
from gnomon.executor.prepared import Prepared
from gnomon.executor.programs.draws import Positions
from gnomon.executor.programs.layout import Mode, size_of
from gnomon.executor.run import Run
from gnomon.expr.node import Buffer, set_address
from gnomon.graph.node import Entry
from gnomon.ndarray.lazy.on_data import over
from gnomon.runtime.devices import pool
from gnomon.runtime.execution.makings import Span, differing
from gnomon.runtime.execution.program import Program
from gnomon.runtime.kernels.template import blocks_of, handles_of, storages_of
from gnomon.shape import prod

_ALIGNED = 64
_SMALL = 1 << 16  # sizes of a kernel that another one, of the same statement, has not

Spec = tuple[tuple[int, ...], DType]


class Slots:
    """For each of `count` steps memory for arrays of these shapes and dtypes, and an arena."""

    def __init__(self, specs: Sequence[Spec], count: int, arena: int, ctx: Context) -> None:
        self.specs, self.ctx, self.arena_bytes = specs, ctx, arena
        sizes = [prod(shape) * dtype.size for shape, dtype in specs]
        ends = np.cumsum([0, *(-(-size // _ALIGNED) * _ALIGNED for size in (*sizes, arena))])
        self._offsets, self.stride = ends.tolist(), int(ends[-1])
        self.block = pool.allocate(max(self.stride * count, 1), ctx)
        for (_, dtype), begin, size in zip(specs, self._offsets, sizes, strict=False):
            if dtype.kind != "f":  # gradients of integers: nothing writes them
                whole = self.block.view("u1", (self.block.nbytes,))[: self.stride * count]
                whole.reshape(count, self.stride)[:, begin : begin + size] = 0

    def array(self, step: int, number: int) -> Any:
        """One of the arrays of a step."""
        shape, dtype = self.specs[number]
        address = self.block.address + step * self.stride + self._offsets[number]
        return over(Buffer(shape, dtype, None, address, self.block), self.ctx)

    def arena(self, step: int) -> Arena:
        """The working memory of a step."""
        found = Arena(self.ctx)
        begin = self.block.address + step * self.stride + self._offsets[-2]
        part: Any = Part(self.block, begin, self.arena_bytes)
        found.room(self.ctx).storage = part
        return found


class Part(NamedTuple):
    """A part of a block of memory, in the place of a whole one."""

    whole: pool.Storage
    address: int
    nbytes: int


class Step(Executor):
    """An executor whose gradients of outputs lie in given arrays."""

    def __init__(self, symbol: Any, ctx: Context, bound: Bound, heads: Any, **given: Any) -> None:
        self._given_heads = heads
        super().__init__(symbol, ctx, bound, {}, **given)

    def _make_head(self, entry: Entry) -> None:
        if entry not in self._heads:
            leaf, array = (
                self._net.heads[entry],
                self._given_heads[list(self._net.heads).index(entry)],
            )
            self._heads[entry] = array
            set_address(leaf, arrays.buffer(array).address, array)
            self._variables[id(leaf)] = arrays.var(array)


Growing = tuple[Any, int, int, int]  # a block's words, which, its value in the first step, growth


class Replay:
    """The programs of executors of the steps `at` and `at + 1`, for any step."""

    def __init__(self, run: Run, at: int, passes: dict[str, tuple[Program, list[Growing]]]) -> None:
        self._at, self._passes, self._prepared = at, passes, run._prepared
        self._draws = run.layout.draws
        self._drawn: dict[int, Positions] = {}

    def begin(self) -> None:
        """Bring up to date what is made of parameters alone."""
        if self._prepared is not None:
            self._prepared.refresh()

    def forward(self, step: int) -> None:
        """Compute the outputs of a step."""
        if len(self._draws):
            self._drawn[step] = self._draws.reserve()
        self._run("forward", step)

    def backward(self, step: int) -> None:
        """Compute the gradients of a step, whose values lie where `forward` left them."""
        self._run("backward", step)

    def _run(self, name: str, step: int) -> None:
        if len(self._draws):
            self._draws.put(self._drawn[step])
        program, places = self._passes[name]
        growths = step - self._at
        for words, number, start, growth in places:
            words[number] = start + growths * growth
        program.run()


def replay(first: Executor, second: Executor, mode: Mode, at: int) -> Replay | None:
    """The replay of two executors' programs, those of the steps `at` and `at + 1`.

    None where there is none: operators on data are among the programs; what is made of parameters
    alone depends on what a step alone reads; a word is not understood.
    """
    runs = first._run(mode), second._run(mode)
    programs: dict[str, list[Program]] = {}
    for run in runs:
        for name in ("forward", "backward") if mode.differentiate else ("forward",):
            segments = run.segments(name)
            if len(segments) != 1 or segments[0].program is None:
                return None
            programs.setdefault(name, []).append(segments[0].program)
        run._prepare()
    if runs[0]._prepared is not None and not _shared(first, second, runs[0]._prepared):
        return None
    growing = list(_growing(first, second))
    fixed = list(_fixed(*runs, *programs.values()))
    found = {}
    for name, pair in programs.items():
        places = _places(pair[0], pair[1], growing, fixed)
        if places is None:
            return None
        found[name] = pair[0], places
    return Replay(runs[0], at, found)


def _shared(first: Executor, second: Executor, prepared: Prepared) -> bool:
    """Whether what is made of parameters alone reads what both steps do."""
    pairs = zip(first.arg_arrays, second.arg_arrays, strict=True)
    return not any(a is not b and prepared.reads(arrays.var(a)) for a, b in pairs)


def _growing(first: Executor, second: Executor) -> Iterator[Span]:
    """Memory that lies elsewhere for the next step."""
    for a, b in zip(_arrays(first), _arrays(second), strict=True):
        x, y = arrays.buffer(a), arrays.buffer(b)
        if x.address != y.address:
            yield x.address, y.address, size_of(x)
    for ctx, room in first.arena._rooms.items():
        other = second.arena.room(ctx)
        if room.storage is not None and other.storage is not None:
            yield room.storage.address, other.storage.address, room.nbytes


def _arrays(executor: Executor) -> list[Any]:
    grads = (g for g in executor.grad_arrays if g is not None)
    heads = (executor._heads[e] for e in executor._net.heads if e in executor._heads)
    return [*executor.arg_arrays, *grads, *executor.aux_arrays, *executor.outputs, *heads]


def _fixed(first: Run, second: Run, *programs: Iterable[Program]) -> Iterator[Span]:
    """Memory that each program has for itself, and that all steps can use in turn."""
    for a, b in zip(first.layout.kept, second.layout.kept, strict=True):
        x, y = first.layout.buffers[a], second.layout.buffers[b]
        yield x.address, y.address, size_of(x)
    for held, its_held in zip(first.layout.draws._held, second.layout.draws._held, strict=True):
        yield held.ctypes.data, its_held.ctypes.data, held.nbytes
    for one, other in programs:
        for block, its in zip(blocks_of(one), blocks_of(other), strict=True):
            yield block.address, its.address, 8 * len(block.words)
        for (handle, nbytes), (its_handle, _) in zip(
            handles_of(one), handles_of(other), strict=True
        ):
            yield handle, its_handle, nbytes
        for storage, its_storage in zip(storages_of(one), storages_of(other), strict=True):
            if storage is not its_storage:
                yield storage.address, its_storage.address, storage.nbytes


def _places(
    first: Program, second: Program, growing: Sequence[Span], fixed: Sequence[Span]
) -> list[Growing] | None:
    """The words of the first program that grow; None where one differs that is no address."""
    found = []
    ours, theirs = list(blocks_of(first)), list(blocks_of(second))
    if [len(b.words) for b in ours] != [len(b.words) for b in theirs]:
        return None
    for word in differing(zip(ours, theirs, strict=True)):
        if 0 <= min(word.first, word.second) <= max(word.first, word.second) < _SMALL:
            continue  # no address, so of no step
        if word.within(growing):
            found.append((word.block.words, word.number, word.first, word.second - word.first))
        elif not word.within(fixed):
            return None
    return found
