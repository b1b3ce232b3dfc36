"""Recurrent layers as steps: large matrix products before and after, small ones and cells between.

What all steps in time get from the input is one product, and so are the gradients of the weights;
only the products with the state stay inside. A step's cell is one kernel with several destinations,
the same for every step: addresses and the time are its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.expr.call.cell import Kept
from gnomon.expr.call.rnn import (
    Areas,
    Recurrence,
    RecurrenceGradient,
    active,
    step,
    step_gradient,
)
from gnomon.expr.composite import Call
from gnomon.expr.ext import broadcast_axis, reduce
from gnomon.expr.node import Buffer, Expr
from gnomon.plan.cut import Invoke
from gnomon.plan.statement import Store, Structure
from gnomon.runtime import gemm
from gnomon.runtime.cache import CACHE
from gnomon.runtime.neural import saved
from gnomon.runtime.program import Step
from gnomon.runtime.scratch import copied, temporary
from gnomon.shape import prod


def supported(call: Call) -> bool:
    """Whether matrix products of this dtype are done by a library, and nothing is empty."""
    return gemm.supports(call.dtype) and not any(0 in e.shape for e in call.children)


def steps(invoke: Invoke) -> list[Step]:
    """The work of a recurrence or of its gradient, on buffers."""
    call = invoke.call
    made = _Work(call)
    straight = invoke.saver == "saveto" and invoke.scale == 1.0
    out = invoke.dest if straight else temporary(call)
    if isinstance(call, Recurrence):
        _Forward(made, call, out).run()
    else:
        assert isinstance(call, RecurrenceGradient)
        _Backward(made, call, out).run()
    if not straight:
        made.steps.append(saved(invoke, out))
    return made.steps


class _Work:
    """The steps so far, and ways to add one."""

    def __init__(self, call: Call) -> None:
        self.steps: list[Step] = []
        self.dtype = call.dtype

    def dense(self, operand: Any) -> Buffer:
        """An operand without gaps: itself, or a copy."""
        assert isinstance(operand, Buffer)
        if operand.contiguous:
            return operand
        copy, making = copied(operand)
        self.steps.extend(making)
        return copy

    def kernel(self, stores: Sequence[Store], name: str) -> None:
        """One kernel with all these destinations."""
        structure = Structure(stores)
        self.steps.append(CACHE.get(stores, structure).bind(structure, name))

    def product(
        self,
        a: Buffer,
        b: Buffer,
        c: Buffer,
        *,
        beta: float = 0.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> None:
        """c = a b + beta c, all without gaps; more than two axes count as rows."""
        m, k = rows_of(a)[:: -1 if transpose_a else 1]
        made = gemm.gemm_step(
            self.dtype, m, rows_of(c)[1], k, a.address, b.address, c.address,
            transpose_a=transpose_a, transpose_b=transpose_b, beta=beta, keep=(a, b, c),
        )  # fmt: skip
        self.steps.append(made)


def rows_of(matrix: Buffer) -> tuple[int, int]:
    """The sizes of a buffer seen as rows."""
    return prod(matrix.shape[:-1]), matrix.shape[-1]


def inside(vector: Buffer, start: int, shape: tuple[int, ...], strides: Any = None) -> Buffer:
    """A buffer on part of a vector's memory."""
    address = vector.address + start * vector.dtype.size
    return Buffer(shape, vector.dtype, strides, address, vector)


def area(vector: Buffer, areas: Areas, name: str) -> Buffer:
    """The array `name` in the vector."""
    return inside(vector, areas.starts[name], areas.shapes[name])


def slot(states: Buffer, k: int, count: int | None = None) -> Buffer:
    """`states[k]`, or `count` of them from there on."""
    one = states.shape[1:]
    return inside(states, k * prod(one), one if count is None else (count, *one))


def parts(gates: Buffer, count: int) -> list[Buffer]:
    """(rows, count * size) as `count` matrices side by side."""
    rows, width = gates.shape
    size = width // count
    return [inside(gates, k * size, (rows, size), (width, 1)) for k in range(count)]


class _Forward:
    """A recurrence: everything lies in its result."""

    def __init__(self, work: _Work, call: Recurrence, out: Buffer) -> None:
        self.work, self.call, self.layer = work, call, call.layer
        areas = call.layer.areas()
        self.arrays = {name: area(out, areas, name) for name in areas.shapes}
        self.weights = {n: work.dense(getattr(call, n)) for n in ("w_in", "w_hid")}
        self.bias_in, self.bias_hid = (
            [self._wide(slot_of_bias(getattr(call, n), k, call.layer.hidden)) for k in self._gates]
            for n in ("b_in", "b_hid")
        )

    @property
    def _gates(self) -> range:
        return range(self.layer.cell.gates)

    def _wide(self, bias: Buffer) -> Expr:
        return broadcast_axis(bias, (self.layer.batch, self.layer.hidden), 1)

    def run(self) -> None:
        """Add all steps."""
        y, work = self.layer, self.work
        initial = {"h": self.call.h0, "c": self.call.c0}
        for name, value in initial.items():
            if value is not None:
                work.kernel([Store(slot(self.arrays[name], y.first), "saveto", value)], "state")
        data = work.dense(self.call.data)
        work.product(data, self.weights["w_in"], self.arrays["gates"], transpose_b=True)
        for t, before, after in y.order():
            self._step(t, before, after)

    def _step(self, t: int, before: int, after: int) -> None:
        y, cell = self.layer, self.layer.cell
        h, gates = self.arrays["h"], slot(self.arrays["gates"], t)
        into = slot(self.arrays["apart"], t) if cell.apart else gates
        beta = 0.0 if cell.apart else 1.0
        self.work.product(slot(h, before), self.weights["w_hid"], into, beta=beta, transpose_b=True)
        mine = parts(gates, cell.gates)
        theirs = parts(into, cell.gates) if cell.apart else []
        r: list[Any] = [e + b for e, b in zip(theirs, self.bias_hid, strict=False)]
        z: list[Any] = [e + b for e, b in zip(mine, self.bias_in, strict=True)]
        if not cell.apart:
            z = [e + b for e, b in zip(z, self.bias_hid, strict=True)]
        c = self.arrays.get("c")
        old = None if c is None else slot(c, before)
        made = step(cell, z, r, slot(h, before), old, active(self.call.length, t, y))
        stores = list(zip(mine, made.gates, strict=True))
        stores += zip(theirs, made.apart, strict=True)
        stores.append((slot(h, after), made.h))
        if c is not None:
            stores.append((slot(c, after), made.c))
        self.work.kernel([Store(d, "saveto", v) for d, v in stores], cell.name)


def slot_of_bias(bias: Any, k: int, size: int) -> Buffer:
    """The bias of gate `k`."""
    (stride,) = bias.strides
    return inside(bias, k * size * stride, (size,), (stride,))


class _Backward:
    """The gradient of a recurrence: the states' gradients are carried in their final places."""

    def __init__(self, work: _Work, call: RecurrenceGradient, out: Buffer) -> None:
        self.work, self.call, self.layer = work, call, call.layer
        kept, areas, grads = work.dense(call.kept), call.layer.areas(), call.layer.gradients()
        self.kept = {name: area(kept, areas, name) for name in areas.shapes}
        self.grads = {name: area(out, grads, name) for name in grads.shapes}
        self.weights = {n: work.dense(getattr(call, n)) for n in ("w_in", "w_hid")}
        self.apart = self.grads["r"] if call.layer.cell.apart else self.grads["z"]

    def run(self) -> None:
        """Add all steps."""
        y, work, grads = self.layer, self.work, self.grads
        dy = work.dense(self.call.dy)
        self._begin()
        for t, before, after in reversed(list(y.order())):
            self._step(t, before, after, slot(dy, t))
        begin, end = y.slots(before=True)
        states, data = slot(self.kept["h"], begin, end - begin), work.dense(self.call.data)
        work.product(grads["z"], self.weights["w_in"], grads["data"])
        work.product(grads["z"], data, grads["w_in"], transpose_a=True)
        work.product(self.apart, states, grads["w_hid"], transpose_a=True)
        rows = (y.steps * y.batch, y.width)
        for name, gates in (("b_in", grads["z"]), ("b_hid", self.apart)):
            total = reduce(inside(gates, 0, rows), "sum", 0)
            work.kernel([Store(grads[name], "saveto", total)], "bias")

    def _begin(self) -> None:
        """What the final states get besides."""
        for name, value in (("h0", self.call.dh), ("c0", self.call.dc)):
            dest = self.grads.get(name)
            if dest is not None:
                start: Any = dest * 0.0 if value is None else value
                self.work.kernel([Store(dest, "saveto", start)], "state")

    def _step(self, t: int, before: int, after: int, dy: Buffer) -> None:
        y, cell = self.layer, self.layer.cell
        dh, dc = self.grads["h0"], self.grads.get("c0")
        kept = self._seen(t, before, after)
        back = step_gradient(cell, kept, dy + dh, dc, active(self.call.length, t, y))
        z = slot(self.grads["z"], t)
        stores = list(zip(parts(z, cell.gates), back.gates, strict=True))
        if cell.apart:
            stores += zip(parts(slot(self.apart, t), cell.gates), back.apart, strict=True)
        if back.h is not None:
            stores.append((dh, back.h))
        if dc is not None:
            stores.append((dc, back.c))
        self.work.kernel([Store(d, "saveto", v) for d, v in stores], f"{cell.name} gradient")
        beta = 0.0 if back.h is None else 1.0
        self.work.product(slot(self.apart, t), self.weights["w_hid"], dh, beta=beta)

    def _seen(self, t: int, before: int, after: int) -> Kept:
        cell, kept = self.layer.cell, self.kept
        gates = parts(slot(kept["gates"], t), cell.gates)
        apart = parts(slot(kept["apart"], t), cell.gates) if cell.apart else []
        c = kept.get("c")
        states = (None, None) if c is None else (slot(c, before), slot(c, after))
        return Kept(gates, apart, slot(kept["h"], before), *states)
