"""Convolution by oneDNN, 1 to 3 axes: forward, and the gradients of data and weight.

The batch is cut into as many tasks as there are threads, and each task into slices small enough
that the copies of a slice in oneDNN's layout stay in the cache between the operations on them. The
weight is brought into its layout once, before. The gradient of the weight is computed for each task
on its own and added up after.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from gnomon.runtime.execution import threads
from gnomon.runtime.libraries.dnn.geometry import Convolution, pieces
from gnomon.runtime.libraries.dnn.layout import NOTHING, PLAIN, Layout, Side, choose, plain, sides
from gnomon.runtime.libraries.dnn.library import Description, Primitive, Unsupported, total
from gnomon.runtime.libraries.dnn.phases import (
    WORKSPACE,
    Arena,
    Copies,
    DnnStep,
    Phase,
    Place,
    Task,
)
from gnomon.runtime.libraries.dnn.primitives import (
    data_primitive,
    forward_primitive,
    weight_primitive,
)
from gnomon.shape import prod

_GRAIN = 2_000_000  # multiply-adds below which another thread does not pay
_SLICE = 1 << 20  # bytes of a slice's data and output together
_SHARE = 1 << 20  # bytes of a weight from which the threads share its copy
_VECTOR = 16  # channels that a vector has at most
_BLOCK = 64  # filters that no layout of a weight takes apart


def convolution_forward(
    conv: Convolution,
    *,
    bias: bool = False,
    layouts: Mapping[str, Layout] = NOTHING,
    name: str = "convolution",
) -> DnnStep:
    """out = convolution of data with weight, plus bias where there is one.

    Operands to bind: `data`, `weight`, `out`, and `bias` (one number a filter).
    float32; every operand is plain unless `layouts` says otherwise.

    Raises:
        DeviceError: oneDNN is not available.
        Unsupported: oneDNN does not do it.
    """
    operands = ("data", "weight", "out", *(("bias",) if bias else ()))
    make = functools.partial(forward_primitive, bias=bias)
    ours = sides(layouts, data=conv.data, weight=conv.grouped, out=conv.out)
    work = _Streamed(conv, make, ours, ("src", "weights", "dst"))
    if bias:
        work.extra["bias"] = Side(4, conv.weight[:1], PLAIN).whole()
    return work.step(name, operands)


def convolution_backward_data(
    conv: Convolution,
    *,
    layouts: Mapping[str, Layout] = NOTHING,
    name: str = "convolution_backward_data",
) -> DnnStep:
    """out = the gradient of the data, from `grad` of the result and the weight.

    Operands to bind: `grad`, `weight`, `out`; raises as `convolution_forward`.
    """
    ours = sides(layouts, out=conv.data, weight=conv.grouped, grad=conv.out)
    work = _Streamed(conv, data_primitive, ours, ("diff_src", "weights", "diff_dst"))
    return work.step(name, ("out", "weight", "grad"))


def convolution_backward_weight(
    conv: Convolution,
    *,
    layouts: Mapping[str, Layout] = NOTHING,
    name: str = "convolution_backward_weight",
) -> DnnStep:
    """out = the gradient of the weight, from the data and `grad` of the result.

    Operands to bind: `data`, `out`, `grad`; raises as `convolution_forward`.
    """
    _check_scratch(conv, layouts)
    ours = sides(layouts, data=conv.data, out=conv.grouped, grad=conv.out)
    return _Gathered(conv, ours).step(name, ("data", "out", "grad"))


def _check_scratch(conv: Convolution, layouts: Mapping[str, Layout]) -> None:
    """Refuses what writes behind the scratch memory that it asked for: oneDNN's windows of one
    element that lie apart, where a pixel's channels, side by side, fill no whole vector."""
    apart, last = max(conv.weight[2:]) == 1 < max(conv.stride), [x.kind for x in layouts.values()]
    if apart and conv.weight[1] % _VECTOR and "last" in last:
        raise Unsupported("oneDNN: channels side by side that fill no vector")


def _number_of_tasks(conv: Convolution) -> int:
    return max(1, min(threads.num_threads(), conv.data[0], conv.work // _GRAIN))


def _copied(name: str, arena: Arena, source: Place, dest: Place, filters: int) -> Phase:
    """A weight from one layout to the other, by several threads where it is large."""
    nbytes = max(source.description.nbytes, dest.description.nbytes)
    parts = min(threads.num_threads(), filters // _BLOCK) if nbytes >= _SHARE else 1
    try:
        tasks = [
            _copy_of_filters(arena, source, dest, filters, *run) for run in _runs(filters, parts)
        ]
    except Unsupported:
        tasks = [_copy_of_filters(arena, source, dest, filters, 0, filters)]
    return Phase(name, tasks, 2 * nbytes)


def _runs(filters: int, parts: int) -> list[tuple[int, int]]:
    """Whole blocks of filters for each part; the last has what is left."""
    blocks = pieces(filters // _BLOCK, parts) if parts > 1 else [(0, 0)]
    runs = [(first * _BLOCK, count * _BLOCK) for first, count in blocks]
    return [*runs[:-1], (runs[-1][0], filters - runs[-1][0])]


def _copy_of_filters(
    arena: Arena, source: Place, dest: Place, filters: int, start: int, count: int
) -> Task:
    task = Task(arena)
    if count == filters:
        task.copy(source, dest)
    else:
        task.copy(source.part(start, count), dest.part(start, count))
    return task


class _Streamed:
    """A convolution that gives an image for each image it takes: slices go through one by one."""

    def __init__(
        self,
        conv: Convolution,
        make: Callable[..., Primitive],
        sides: tuple[Side, ...],
        theirs: tuple[str, str, str],
    ) -> None:
        self.conv, self.make, self.sides, self.theirs = conv, make, sides, theirs
        self.data, self.weight, self.out = sides
        self.extra: dict[str, Place] = {}
        self.arena = Arena()
        self.weights: dict[Description, Place] = {}

    def step(self, name: str, operands: tuple[str, ...]) -> DnnStep:
        """The step whose `operands` are those of `sides`, then those of `extra`."""
        conv = self.conv
        choose(self.sides, self.theirs, functools.partial(self.make, conv))
        shares = [self._slices(*run) for run in pieces(conv.data[0], _number_of_tasks(conv))]
        found = self._primitive(shares[0][0][1])
        counts = {count for share in shares for _, count in share}
        copies = self._bring_weights(name, counts, 1 + len(operands))
        moved = 4 * (prod(conv.data) + prod(conv.weight) + prod(conv.out))
        phase = Phase(name, [self._task(s) for s in shares], moved, 2 * conv.work)
        layouts = dict(zip(operands, (side.layout for side in self.sides), strict=False))
        return DnnStep(name, operands, [phase], self.arena, found.name, copies, layouts)

    def _slices(self, start: int, count: int) -> list[tuple[int, int]]:
        """One task's share of the batch, cut to what the cache holds."""
        image = 4 * (prod(self.conv.data[1:]) + prod(self.conv.out[1:]))
        parts = min(count, -(-count * image // _SLICE))
        return [(start + first, n) for first, n in pieces(count, parts)]

    def _primitive(self, count: int) -> Primitive:
        data, out = self.data.fixed_rows(count), self.out.fixed_rows(count)
        return self.make(self.conv.of(count), data, self.weight.fixed, out)

    def _bring_weights(self, name: str, counts: set[int], operand: int) -> Copies:
        """A copy of the weight in each layout that the slices' primitives want; mostly one.

        `operand` is the number of the memory that has them.
        """
        source, arena, phases = self.weight.whole(), Arena(), []
        for count in sorted(counts):
            wanted = self._primitive(count).operands["weights"]
            if wanted in self.weights:
                continue
            self.weights[wanted] = source
            if wanted != source.description:
                copy = Place(wanted, operand, arena.reserve(wanted.nbytes))
                self.weights[wanted] = copy
                filters = self.weight.shape[0]
                phases.append(_copied(f"{name}: weight", self.arena, source, copy, filters))
        layouts = tuple(w for w, place in self.weights.items() if place is not source)
        return Copies(phases, arena.size, (source.description, *layouts))

    def _task(self, slices: list[tuple[int, int]]) -> Task:
        """Slices one after the other, in the same bytes of the workspace."""
        task, mark, before = Task(self.arena), self.arena.size, (0, 0)
        begin = 0
        for start, count in slices:
            if count == before[1]:
                end, moved = len(task.operations), start - before[0]
                task.repeat(begin, {s.number: moved * s.row_bytes for s in self._streams()})
                begin = end
            else:
                begin, self.arena.next = len(task.operations), mark
                self._slice(task, start, count)
            before = start, count
        self.arena.next = self.arena.size
        return task

    def _streams(self) -> tuple[Side, Side]:
        """What is taken, and what is given."""
        forward = self.theirs[0] == "src"
        return (self.data, self.out) if forward else (self.out, self.data)

    def _slice(self, task: Task, start: int, count: int) -> None:
        what = self._primitive(count)
        data, _, out = self.theirs
        take, give = (data, out) if data == "src" else (out, data)
        taken, given = self._streams()
        dest = given.rows(start, count)
        source = task.fetched(taken.rows(start, count), what.operands[take])
        result = task.result(dest, what.operands[give])
        weight = self.weights[what.operands["weights"]]
        task.run(what, {take: source, "weights": weight, give: result} | self.extra)
        task.store(result, dest)


class _Gathered:
    """The gradient of the weight: each task's share of the batch on its own, then the sum."""

    def __init__(self, conv: Convolution, sides: tuple[Side, ...]) -> None:
        self.conv, self.sides = conv, sides
        self.data, self.weight, self.out = sides
        self.arena = Arena()

    def step(self, name: str, operands: tuple[str, ...]) -> DnnStep:
        """The step whose `operands` are those of `sides`."""
        conv = self.conv
        make = functools.partial(weight_primitive, conv)
        choose(self.sides, ("src", "diff_weights", "diff_dst"), make)
        shares = self._shares()
        found = self._primitive(shares[0][1])
        partial = found.operands["diff_weights"]
        if len(shares) == 1:
            phases = [Phase(name, [self._task(*shares[0], self.weight.whole())])]
        else:
            phases = self._partial_and_sum(name, shares, partial)
        phases[0].flops = 2 * conv.work
        phases[0].bytes = 4 * (prod(conv.data) + prod(conv.weight) + prod(conv.out))
        layouts = dict(zip(operands, (side.layout for side in self.sides), strict=False))
        return DnnStep(name, operands, phases, self.arena, found.name, layouts=layouts)

    def _shares(self) -> list[tuple[int, int]]:
        """The tasks' shares of the batch; one where unequal shares want unequal layouts."""
        shares = pieces(self.conv.data[0], _number_of_tasks(self.conv))
        try:
            layouts = {self._primitive(n).operands["diff_weights"] for n in {n for _, n in shares}}
        except Unsupported:
            layouts = set()
        return shares if len(layouts) == 1 else [(0, self.conv.data[0])]

    def _primitive(self, count: int) -> Primitive:
        data, out = self.data.fixed_rows(count), self.out.fixed_rows(count)
        return weight_primitive(self.conv.of(count), data, self.weight.fixed, out)

    def _task(self, start: int, count: int, weight: Place) -> Task:
        task, what = Task(self.arena), self._primitive(count)
        result = task.result(weight, what.operands["diff_weights"])
        operands = {
            "src": task.fetched(self.data.rows(start, count), what.operands["src"]),
            "diff_dst": task.fetched(self.out.rows(start, count), what.operands["diff_dst"]),
            "diff_weights": result,
        }
        task.run(what, operands)
        task.store(result, weight)
        return task

    def _partial_and_sum(
        self, name: str, shares: list[tuple[int, int]], partial: Description
    ) -> list[Phase]:
        weights = self._rows_of_workspace(partial, len(shares))
        tasks = [self._task(*each, weight) for each, weight in zip(shares, weights, strict=True)]
        dest = self.weight.whole()
        whole = dest if dest.description == partial else self._rows_of_workspace(partial, 1)[0]
        elements = partial.nbytes // 4
        parts = threads.num_threads() if partial.nbytes >= _SHARE else 1
        adding = [self._sum(weights, whole, *run) for run in pieces(elements, parts)]
        phases = [Phase(name, tasks), Phase(f"{name}: sum", adding, 4 * elements * len(shares))]
        if whole is not dest:
            phases.append(_copied(f"{name}: weight", self.arena, whole, dest, self.weight.shape[0]))
        return phases

    def _rows_of_workspace(self, description: Description, count: int) -> list[Place]:
        nbytes = description.nbytes
        return [Place(description, WORKSPACE, self.arena.reserve(nbytes)) for _ in range(count)]

    def _sum(self, terms: list[Place], dest: Place, start: int, count: int) -> Task:
        """Elements of all terms added up, whatever the layout they share."""
        task, what, flat = Task(self.arena), total(count, len(terms)), plain((count,))
        operands = {
            f"src{i}": Place(flat, term.operand, term.offset + 4 * start)
            for i, term in enumerate(terms)
        }
        task.run(what, operands | {"dst": Place(flat, dest.operand, dest.offset + 4 * start)})
        return task
