"""Recurrent layers as steps: large matrix products before and after, small ones and cells between.

The gradients of the weights are one product over all steps in time; the products with the state
stay inside. A step's cell is one kernel with several destinations, the same for every step:
addresses and the time are its arguments.

Where weights stay in a core's own cache they are packed once for all steps (`tile.panels`). The
rows of a batch need nothing of each other: if there is a tile of them or more for each thread, they
are *shared out*, and a thread goes through all steps in time with its rows without waiting for
others. Else what all steps get from the input is one product, and the threads share each step. A
row's numbers are the same either way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from gnomon.dtype import DType
from gnomon.expr.call.cell import Kept
from gnomon.expr.call.rnn import (
    Layer,
    Recurrence,
    RecurrenceGradient,
    active,
    projected,
    projected_gradient,
    step,
    step_gradient,
)
from gnomon.expr.composite import Call
from gnomon.expr.ext import broadcast_axis, reduce
from gnomon.expr.node import Buffer, Expr, Scalar
from gnomon.plan.cut import Invoke
from gnomon.plan.statement import Store
from gnomon.runtime import cpu_caches
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Step
from gnomon.runtime.libraries import gemm, tile
from gnomon.runtime.libraries.recurrent_work import (
    Factor,
    HostWork,
    Work,
    area,
    flat,
    packs,
    part,
    parts,
    slot,
)
from gnomon.shape import prod

_ROWS = 8  # rows of a batch that are worth a thread of their own
_PART = 8  # of the second-level cache: what gates may fill beside the weights


def supported(call: Call) -> bool:
    """Whether matrix products of this dtype are done by a library, and nothing is empty."""
    filled = not any(0 in e.shape for e in call.children)
    return filled and gemm.supports(call.dtype) and _readable(call)


def _readable(call: Call) -> bool:
    """Whether weights that lie in panels lie in those of this machine's tiles, and so pay."""
    if not isinstance(call, Recurrence) or not call.packed:
        return True
    pays = packs_forward(call.layer, call.dtype)
    return pays and call.w_in.shape[-1] == tile.columns(call.dtype)


def steps(invoke: Invoke) -> list[Step]:
    """The work of a recurrence or of its gradient, on buffers."""
    return steps_of(HostWork(invoke.call.dtype), invoke)


def steps_of(work: Work, invoke: Invoke) -> list[Any]:
    """The same of the device that `work` is for."""
    call = invoke.call
    straight = invoke.saver == "saveto" and invoke.scale == 1.0
    out = invoke.dest if straight else work.temporary(call.shape)
    if isinstance(call, Recurrence):
        _forward(work, call, out)
    else:
        assert isinstance(call, RecurrenceGradient)
        _backward(work, call, out)
    if not straight:
        value = out if invoke.scale == 1.0 else out * invoke.scale
        work.kernel([Store(invoke.dest, invoke.saver, value)], "store")
    return work.steps


def packs_forward(layer: Layer, dtype: DType) -> bool:
    """Whether a recurrence of this layer reads packed weights."""
    return packs(layer, dtype, sum(map(prod, layer.weights.values())))


def shares(layer: Layer) -> list[tuple[int, int]]:
    """The rows of the batch that each thread has, where the weights are packed."""
    count = threads.num_threads()
    if layer.batch < _ROWS * count:
        return [(0, layer.batch)]
    ends = [layer.batch * k // count for k in range(count + 1)]
    return list(pairwise(ends))


def _forward(work: Work, call: Recurrence, out: Buffer) -> None:
    """Add the steps of a recurrence: everything lies in its result."""
    y, areas = call.layer, call.layer.areas()
    arrays = {name: area(out, areas, name) for name in areas.shapes}
    for name, value in (("h", call.h0), ("c", call.c0)):
        if value is not None:
            _begin(work, slot(arrays[name], y.first), value)
    matrices: dict[str, Any] = {name: getattr(call, name) for name in y.weights}
    if call.packed:
        packed, how = True, {"packed": True}
        weights = {n: Factor(work.dense(w), y.weights[n][0], how) for n, w in matrices.items()}
    else:
        packed = work.packs(y, sum(map(prod, y.weights.values())))
        weights = work.factors(packed, **{n: (w, True) for n, w in matrices.items()})
    found = shares(y) if packed else [(0, y.batch)]
    data = work.rows(call.data) if len(found) > 1 else work.dense(call.data)
    chains = [_Forward(call, arrays, *rows).chain(work.fresh(), data, weights) for rows in found]
    work.spread(chains, y.cell.name)


class _Forward:
    """The steps of a recurrence with some rows of the batch, in order."""

    def __init__(self, call: Recurrence, arrays: dict[str, Buffer], begin: int, end: int) -> None:
        self.layer = replace(call.layer, batch=end - begin)
        self.alike = "step", replace(self.layer, steps=0, inputs=0, reverse=False)
        self.rows = begin, end
        self.arrays = {name: part(array, 1, begin, end) for name, array in arrays.items()}
        self.length = length_of(call, begin, end)
        gates = self.layer.cell.gates
        biases: Any = call.b_in, call.b_hid
        self.biases = list(biases)
        self.bias_in, self.bias_hid = (
            [broadcast_axis(e, (end - begin, self.layer.hidden), 1) for e in parts(b, gates)]
            for b in biases
        )

    def chain(self, work: Work, data: Buffer, weights: dict[str, Factor]) -> list[Any]:
        """All steps in time, with as many products of `data` at once as have room in the cache."""
        y, given = self.layer, part(data, 1, *self.rows)
        count = y.steps if y.batch == data.shape[1] else self._room(data.dtype)
        shapes = {} if y.wanted else y.gates()
        scratch = {n: work.temporary((count, *s[1:])) for n, s in shapes.items()}
        order = list(y.order())
        for times in (order[k : k + count] for k in range(0, y.steps, count)):
            first = min(times)[0]
            whole = scratch or {n: part(self.arrays[n], 0, first, y.steps) for n in y.gates()}
            room = part(whole["gates"], 0, 0, len(times))
            work.product(part(given, 0, first, first + len(times)), weights["w_in"], room)
            make = partial(self._step, weights, whole, first)
            work.each(times, make, y.cell.name, alike=self.length is None)
        return work.steps

    def _room(self, dtype: DType) -> int:
        """How many steps have their gates in a part of the cache that the weights leave free."""
        each = self.layer.batch * self.layer.width * dtype.size
        return max(1, min(self.layer.steps, cpu_caches.own() // _PART // each))

    def _step(
        self,
        weights: dict[str, Factor],
        whole: dict[str, Buffer],
        first: int,
        work: Work,
        t: int,
        before: int,
        after: int,
    ) -> list[Buffer]:
        """Add what is done at one time, whose gates are `t - first` of `whole`."""
        cell, h, c = self.layer.cell, self.arrays["h"], self.arrays.get("c")
        gates = {name: slot(array, t - first) for name, array in whole.items()}
        into = gates["apart" if cell.apart else "gates"]
        work.product(slot(h, before), weights["w_hid"], into, beta=0.0 if cell.apart else 1.0)
        states = [slot(s, k) for s in (h, c) if s is not None for k in (before, after)]
        make = partial(self._stores, gates, t, before, after)
        if self.length is None:
            operands = [*gates.values(), *states, *self.biases]
            work.alike(self.alike, operands, make, cell.name)
        else:
            work.kernel(make(), cell.name)
        if "raw" in gates:
            work.product(gates["raw"], weights["w_out"], slot(h, after))
            on = self._active(t, self.layer.state)
            if on is not None:
                new = projected(slot(h, after), slot(h, before), on)
                work.kernel([Store(slot(h, after), "saveto", new)], "projection")
        return [*gates.values(), *states]

    def _stores(self, gates: dict[str, Buffer], t: int, before: int, after: int) -> list[Store]:
        """What a step makes of its gates."""
        cell, h, c = self.layer.cell, self.arrays["h"], self.arrays.get("c")
        into = gates["apart" if cell.apart else "gates"]
        mine = parts(gates["gates"], cell.gates)
        theirs = parts(into, cell.gates) if cell.apart else []
        r: list[Any] = [e + b for e, b in zip(theirs, self.bias_hid, strict=False)]
        z: list[Any] = [e + b for e, b in zip(mine, self.bias_in, strict=True)]
        if not cell.apart:
            z = [e + b for e, b in zip(z, self.bias_hid, strict=True)]
        old = None if c is None else slot(c, before)
        raw, on = gates.get("raw"), self._active(t, self.layer.hidden)
        made = step(cell, z, r, slot(h, before) if raw is None else None, old, on)
        stores = [(slot(h, after) if raw is None else raw, made.h)]
        if c is not None:
            stores.append((slot(c, after), made.c))
        if self.layer.wanted:
            stores += zip(mine, made.gates, strict=True)
            stores += zip(theirs, made.apart, strict=True)
        return [Store(d, "saveto", v) for d, v in stores]

    def _active(self, t: int, size: int) -> Expr | None:
        return active(self.length, t, self.layer.batch, size)


def length_of(call: Any, begin: int, end: int) -> Expr | None:
    """The lengths of some of the sequences; None where all go on to the end."""
    return None if call.length is None else part(call.length, 0, begin, end)


def _begin(work: Work, dest: Buffer, value: Any) -> None:
    """Let states, or their gradients, begin with a value; None: zeros."""
    start = Scalar(0.0, work.dtype) if value is None else value
    operands = [dest] if value is None else [dest, value]
    work.alike("state", operands, lambda: [Store(dest, "saveto", start)], "state")


def _backward(work: Work, call: RecurrenceGradient, out: Buffer) -> None:
    """Add the steps of a gradient: the states' gradients are carried in their final places."""
    y, areas = call.layer, call.layer.gradients()
    kept, before = work.dense(call.kept), y.areas()
    grads = {name: area(out, areas, name) for name in areas.shapes}
    seen = {name: area(kept, before, name) for name in before.shapes}
    for name, value in (("h0", call.dh), ("c0", call.dc)):
        dest = grads.get(name)
        if dest is not None:
            _begin(work, dest, value)
    dy = work.dense(call.dy)
    matrices = {name: (getattr(call, name), False) for name in y.weights if name != "w_in"}
    packed = work.packs(y, sum(prod(y.weights[name]) for name in matrices))
    weights = work.factors(packed, **matrices)
    found = shares(y) if packed else [(0, y.batch)]
    chains = [
        _Backward(call, seen, grads, *rows).chain(work.fresh(), dy, weights) for rows in found
    ]
    work.spread(chains, f"{y.cell.name} gradient")
    states, data = part(seen["h"], 0, *y.slots(before=True)), work.dense(call.data)
    z, r = grads["z"], grads["r" if y.cell.apart else "z"]
    plain = work.factors(
        False, w_in=(call.w_in, False), data=(flat(data), False), states=(flat(states), False)
    )
    work.product(z, plain["w_in"], grads["data"])
    work.product(z, plain["data"], grads["w_in"], transpose_a=True)
    work.product(r, plain["states"], grads["w_hid"], transpose_a=True)
    if y.projection:
        raw = work.factors(False, raw=(flat(seen["raw"]), False))["raw"]
        work.product(grads["top"], raw, grads["w_out"], transpose_a=True)
    for name, gates in (("b_in", z), ("b_hid", r)):
        work.kernel([Store(grads[name], "saveto", reduce(flat(gates), "sum", 0))], "bias")


class _Backward:
    """The steps of a gradient with some rows of the batch, from the last to the first."""

    def __init__(
        self,
        call: RecurrenceGradient,
        kept: dict[str, Buffer],
        grads: dict[str, Buffer],
        begin: int,
        end: int,
    ) -> None:
        self.layer = replace(call.layer, batch=end - begin)
        self.alike = "gradient", replace(self.layer, steps=0, inputs=0, reverse=False)
        self.rows = begin, end
        self.kept = {name: part(array, 1, begin, end) for name, array in kept.items()}
        states = {n: part(a, 0, begin, end) for n, a in grads.items() if n in ("h0", "c0")}
        self.dh, self.dc = states["h0"], states.get("c0")
        self.z = part(grads["z"], 1, begin, end)
        self.apart = part(grads["r"], 1, begin, end) if self.layer.cell.apart else self.z
        self.top = part(grads["top"], 1, begin, end) if "top" in grads else None
        self.raw: Buffer | None = None  # the gradient of what a cell gave to be projected
        self.length = length_of(call, begin, end)

    def chain(self, work: Work, dy: Buffer, weights: dict[str, Factor]) -> list[Any]:
        """All steps in time; `dy` are the gradients of the states after them."""
        mine = part(dy, 1, *self.rows)
        if self.top is not None:
            self.raw = work.temporary((self.layer.batch, self.layer.hidden))
        times = list(self.layer.order())[::-1]
        name, make = f"{self.layer.cell.name} gradient", partial(self._step, mine, weights)
        work.each(times, make, name, alike=self.length is None)
        return work.steps

    def _step(
        self,
        dy: Buffer,
        weights: dict[str, Factor],
        work: Work,
        t: int,
        before: int,
        after: int,
    ) -> list[Buffer]:
        """Add what is done at one time."""
        cell, kept, top = self.layer.cell, self.kept, []
        g: Expr = slot(dy, t) + self.dh
        if self.top is not None and self.raw is not None:
            top = [slot(self.top, t)]
            work.kernel(self._projected(t, g), "projection gradient")
            work.product(top[0], weights["w_out"], self.raw)
            g = self.raw
        states = [slot(kept[n], k) for n in ("h", "c") if n in kept for k in (before, after)]
        gates = [slot(kept[n], t) for n in ("gates", "apart") if n in kept]
        moved = [slot(self.z, t), slot(self.apart, t), slot(dy, t), *top, *gates, *states]
        stay = [b for b in (self.dh, self.dc, self.raw) if b is not None]
        make, name = partial(self._stores, t, before, after, g), f"{cell.name} gradient"
        if self.length is None:
            work.alike(self.alike, [*moved, *stay], make, name)
        else:
            work.kernel(make(), name)
        carried = cell.carries or self.length is not None  # the product adds to what is there
        work.product(slot(self.apart, t), weights["w_hid"], self.dh, beta=float(carried))
        return moved

    def _projected(self, t: int, g: Expr) -> list[Store]:
        """What becomes of the gradient of a state that is a projection."""
        assert self.top is not None
        top, before = projected_gradient(g, active(self.length, t, *g.shape))
        stores = [Store(slot(self.top, t), "saveto", top)]
        return stores if before is None else [*stores, Store(self.dh, "saveto", before)]

    def _stores(self, t: int, before: int, after: int, g: Expr) -> list[Store]:
        """The gradients of a step, of which `g` is that of what the cell gave."""
        cell, dc = self.layer.cell, self.dc
        kept, on = self._seen(t, before, after), active(self.length, t, *g.shape)
        back = step_gradient(cell, kept, g, dc, on)
        stores = list(zip(parts(slot(self.z, t), cell.gates), back.gates, strict=True))
        if cell.apart:
            stores += zip(parts(slot(self.apart, t), cell.gates), back.apart, strict=True)
        if back.h is not None and self.raw is None:
            stores.append((self.dh, back.h))
        if dc is not None:
            stores.append((dc, back.c))
        return [Store(d, "saveto", v) for d, v in stores]

    def _seen(self, t: int, before: int, after: int) -> Kept:
        cell, kept = self.layer.cell, self.kept
        gates = parts(slot(kept["gates"], t), cell.gates)
        apart = parts(slot(kept["apart"], t), cell.gates) if cell.apart else []
        c = kept.get("c")
        states = (None, None) if c is None else (slot(c, before), slot(c, after))
        return Kept(gates, apart, slot(kept["h"], before), *states)
