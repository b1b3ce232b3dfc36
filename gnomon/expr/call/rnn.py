"""recurrence: one layer of a recurrent network in one direction, all steps in time as one call.

The result is one vector of areas: the states before and after every step (`h`, for LSTM `c`), and
the gates, which the gradient reads, where one is wanted. `Areas` says where each lies; outputs are
views of it. A state `h` is what the cell gives, or the projection of that: its product with a
matrix (Sak, Senior and Beaufays, arXiv:1402.1128).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gnomon.base import DTypeError, GnomonError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn, oracle
from gnomon.expr.call.cell import CELLS, After, Back, Cell, Kept, clipped
from gnomon.expr.call.dot import dot
from gnomon.expr.composite import Call, composite
from gnomon.expr.ext import (
    broadcast_axis,
    broadcast_to,
    concat,
    pad,
    reduce,
    reshape,
    slice_,
    transpose,
)
from gnomon.expr.node import Expr, Scalar
from gnomon.ground.record import record
from gnomon.shape import prod

Shape = tuple[int, ...]


class Areas:
    """Named arrays one after the other in a vector: where each begins, and its shape."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self.shapes, self.starts, self.size = dict(shapes), {}, 0
        for name, shape in shapes.items():
            self.starts[name] = self.size
            self.size += prod(shape)

    def of(self, vector: Expr, name: str) -> Expr:
        """The array `name` in `vector`, a view."""
        start, shape = self.starts[name], self.shapes[name]
        return reshape(slice_(vector, (start,), (start + prod(shape),)), shape)


@record(slots=False)
class Layer:
    """What a layer is: its cell, the direction, and the sizes; whether a gradient is `wanted`.

    With a `projection`, states `h` have that size.
    """

    kind: str
    reverse: bool
    steps: int
    batch: int
    inputs: int
    hidden: int
    clip: tuple[float, float, bool] | None = None
    wanted: bool = True
    projection: int | None = None

    @property
    def cell(self) -> Cell:
        """The formulas of a step."""
        found = CELLS[self.kind]
        return found if self.clip is None else clipped(found, *self.clip)

    @property
    def width(self) -> int:
        """The gates of one step, side by side."""
        return self.cell.gates * self.hidden

    @property
    def state(self) -> int:
        """Numbers of a state `h`."""
        return self.projection or self.hidden

    @property
    def weights(self) -> dict[str, Shape]:
        """The matrices: from the input, from the state before, and of the projection."""
        found: dict[str, Shape] = {"w_in": (self.width, self.inputs)}
        found["w_hid"] = (self.width, self.state)
        if self.projection:
            found["w_out"] = (self.projection, self.hidden)
        return found

    def order(self) -> Iterator[tuple[int, int, int]]:
        """Steps as they come: the time, and the slots of the states before and after it."""
        for k in range(self.steps):
            t = self.steps - 1 - k if self.reverse else k
            yield (t, t + 1, t) if self.reverse else (t, t, t + 1)

    @property
    def first(self) -> int:
        """The slot of the initial state."""
        return self.steps if self.reverse else 0

    @property
    def last(self) -> int:
        """The slot of the final state."""
        return 0 if self.reverse else self.steps

    def slots(self, before: bool) -> tuple[int, int]:
        """The slots of the states before, or after, the steps by their time: a range."""
        late = before == self.reverse
        return (1, self.steps + 1) if late else (0, self.steps)

    def areas(self) -> Areas:
        """What the recurrence gives: the states, and where a gradient is wanted the gates."""
        count = self.steps + 1, self.batch
        found = {"h": (*count, self.state)}
        if self.cell.has_cell:
            found["c"] = (*count, self.hidden)
        return Areas(found | self.gates() if self.wanted else found)

    def gates(self) -> dict[str, Shape]:
        """The gates of all steps, and where a gradient needs it, what they get from the state, and
        what a cell gives to be projected (`raw`)."""
        shape = (self.steps, self.batch, self.width)
        found: dict[str, Shape] = {"gates": shape}
        if self.cell.apart:
            found["apart"] = shape
        if self.projection:
            found["raw"] = (self.steps, self.batch, self.hidden)
        return found

    def gradients(self) -> Areas:
        """What its gradient gives; the last ones are work space: the gradients of the gates (`z`,
        `r`), and of the projected states (`top`)."""
        gates = (self.steps, self.batch, self.width)
        found = {
            "data": (self.steps, self.batch, self.inputs),
            **self.weights,
            "b_in": (self.width,),
            "b_hid": (self.width,),
            "h0": (self.batch, self.state),
        }
        if self.cell.has_cell:
            found["c0"] = (self.batch, self.hidden)
        found["z"] = gates
        if self.cell.apart:
            found["r"] = gates
        if self.projection:
            found["top"] = (self.steps, self.batch, self.projection)
        return Areas(found)

    def parts(self, gates: Any, rows: int) -> list[Any]:
        """(rows, width) as the gates of one step, each (rows, hidden)."""
        size = self.hidden
        return [
            slice_(gates, (0, k * size), (rows, (k + 1) * size)) for k in range(self.cell.gates)
        ]


def step(cell: Cell, z: Any, r: Any, h: Any, c: Any, active: Any) -> After:
    """One step in time; where a sequence is over (`active` is 0) the states stay.

    `h` is None where the cell's output is projected: `projected` says what becomes of it.
    """
    made = cell.step(z, r, h, c)
    if active is None:
        return made
    kept = None if c is None else fn.where(active, made.c, c)
    return replace(made, h=made.h if h is None else fn.where(active, made.h, h), c=kept)


def projected(new: Any, h: Any, active: Any) -> Any:
    """The state after a step whose output is projected to `new`; it stays where it is over."""
    return new if active is None else fn.where(active, new, h)


def projected_gradient(g: Any, active: Any) -> tuple[Any, Any]:
    """Of the gradient of a state after a step: the projection's, and what reaches the state before
    it besides (None: nothing)."""
    if active is None:
        return g, None
    return fn.where(active, g, 0.0), fn.where(active, 0.0, g)


def step_gradient(cell: Cell, kept: Kept, dh: Any, dc: Any, active: Any) -> Back:
    """The gradient of `step`."""
    made = cell.gradient(kept, dh, dc)
    if active is None:
        return made

    def stopped(values: Any) -> list[Any]:
        return [fn.where(active, value, 0.0) for value in values]

    h = fn.where(active, 0.0 if made.h is None else made.h, dh)
    c = None if made.c is None else fn.where(active, made.c, dc)
    return Back(stopped(made.gates), stopped(made.apart), h, c)


@composite
class Recurrence(Call):
    """All steps of `layer` on `data` (steps, batch, inputs); the vector of `layer.areas()`.

    `w_in`, `w_hid` and `w_out`, the matrix of a projection, may lie in `panels`.
    """

    unrolls = True

    data: Expr
    w_in: Expr
    w_hid: Expr
    b_in: Expr
    b_hid: Expr
    h0: Expr
    c0: Expr | None
    length: Expr | None
    layer: Layer
    w_out: Expr | None = None

    def infer(self) -> tuple[Shape, DType]:
        y = self.layer
        expected: dict[str, Shape] = {
            "data": (y.steps, y.batch, y.inputs),
            **y.weights,
            "b_in": (y.width,),
            "b_hid": (y.width,),
            "h0": (y.batch, y.state),
            "c0": (y.batch, y.hidden),
            "length": (y.batch,),
        }
        if self.packed:
            for name in y.weights:
                expected[name] = in_panels(expected[name], self.w_in.shape[-1])
        for name, shape in expected.items():
            operand = getattr(self, name)
            if operand is None:
                continue
            if operand.shape != shape:
                raise ShapeError(complaint("recurrence", name, f"shape {shape}", f"{operand!r}"))
            if operand.dtype is not self.data.dtype:
                wanted = f"dtype {self.data.dtype.name}"
                raise DTypeError(complaint("recurrence", name, wanted, f"{operand!r}"))
        if self.data.dtype.kind != "f" or not y.steps:
            wanted = "floating-point numbers of at least one step"
            raise ShapeError(complaint("recurrence", "data", wanted, f"{self.data!r}"))
        if (self.w_out is None) != (y.projection is None) or (y.projection and y.kind != "lstm"):
            wanted = "a matrix where states of an lstm are projected, None elsewhere"
            raise ShapeError(complaint("recurrence", "w_out", wanted, f"{self.w_out!r} of {y}"))
        return (y.areas().size,), self.data.dtype

    @property
    def packed(self) -> bool:
        """Whether the weights lie in panels."""
        return self.w_in.ndim > 2

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        layer, areas = self.layer, self.layer.areas()
        if not layer.wanted:
            raise GnomonError("recurrence: its gates are not kept, which the gradient reads")
        dh = areas.of(g, "h")
        dy = slice_(dh, *((k,) for k in layer.slots(before=False)))
        dc = slot(areas.of(g, "c"), layer.last) if self.c0 is not None else None
        found = RecurrenceGradient(
            self.data, self.w_in, self.w_hid, self, dy, None, dc, self.length, layer, self.w_out
        )
        grads = layer.gradients()
        states = ("h0",) if dc is None else ("h0", "c0")
        names = ("data", *layer.weights, "b_in", "b_hid", *states)
        pairs = {name: grads.of(found, name) for name in names}
        pairs["h0"] = pairs["h0"] + slot(dh, layer.first)
        return tuple((getattr(self, name), value) for name, value in pairs.items())

    def reference(self, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return oracle.evaluate(self.fallback(), dict(zip(self.children, operands, strict=True)))

    def fallback(self) -> Expr:
        """Step by step, as expressions; of 16 bits, in float32."""
        if (wide := self.in_single()) is not None:
            return wide
        y, cell = self.layer, self.layer.cell
        rows = reshape(self.data, (y.steps * y.batch, y.inputs))
        w_in, w_hid = (_unpacked(w, y.width) for w in (self.w_in, self.w_hid))
        w_out = None if self.w_out is None else _unpacked(self.w_out, y.state)
        into = _with_bias(dot(rows, w_in, transpose_b=True), self.b_in)
        given = reshape(into, (y.steps, y.batch, y.width))
        h: dict[int, Any] = {y.first: self.h0}
        c: dict[int, Any] = {y.first: self.c0}
        gates, apart, raw = {}, {}, {}
        for t, before, after in y.order():
            kept = _with_bias(dot(h[before], w_hid, transpose_b=True), self.b_hid)
            z, r = slot(given, t), kept
            if not cell.apart:
                z = z + kept
            parts = y.parts(z, y.batch), y.parts(r, y.batch)
            old = h[before] if w_out is None else None
            made = step(cell, *parts, old, c[before], active(self.length, t, y.batch, y.hidden))
            h[after], c[after] = made.h, made.c
            gates[t], apart[t] = concat(made.gates, 1), r
            if w_out is not None:
                new, on = dot(made.h, w_out, transpose_b=True), self._projects(t)
                raw[t], h[after] = made.h, projected(new, h[before], on)
        found = {"h": h, "c": c, "gates": gates, "apart": apart, "raw": raw}
        pieces = [
            reshape(found[name][k], (prod(shape[1:]),))
            for name, shape in y.areas().shapes.items()
            for k in range(shape[0])
        ]
        return concat(pieces, 0)

    def _projects(self, t: int) -> Expr | None:
        """1 for each number of a state of a sequence that has a step at time `t`."""
        return active(self.length, t, self.layer.batch, self.layer.state)


def active(length: Expr | None, t: int, batch: int, size: int) -> Expr | None:
    """1 for each of `size` numbers of a sequence that has a step at time `t`; None if all have."""
    if length is None:
        return None
    whole: Expr = fn.gt(broadcast_axis(length, (batch, size), 0), float(t))
    return whole


@composite
class RecurrenceGradient(Call):
    """The gradients of a recurrence: the vector of `layer.gradients()`.

    `kept` is what the recurrence gave, `dy` the gradient of the states after each step, `dh` and
    `dc` what the final states get besides.
    """

    unrolls = True

    data: Expr
    w_in: Expr
    w_hid: Expr
    kept: Expr
    dy: Expr
    dh: Expr | None
    dc: Expr | None
    length: Expr | None
    layer: Layer
    w_out: Expr | None = None

    def infer(self) -> tuple[Shape, DType]:
        return (self.layer.gradients().size,), self.data.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        raise GnomonError("recurrence: there is no gradient of its gradient")

    def reference(self, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return oracle.evaluate(self.fallback(), dict(zip(self.children, operands, strict=True)))

    def fallback(self) -> Expr:
        """Step by step from the end, as expressions; of 16 bits, in float32."""
        if (wide := self.in_single()) is not None:
            return wide
        y, cell = self.layer, self.layer.cell
        dh, dc = (
            broadcast_to(Scalar(0.0, self.dtype), (y.batch, size)) if end is None else end
            for end, size in ((self.dh, y.state), (self.dc, y.hidden))
        )
        z: dict[int, Expr] = {}
        r: dict[int, Expr] = {}
        top: dict[int, Expr] = {}
        for t, before, after in reversed(list(y.order())):
            on, g, carried = active(self.length, t, y.batch, y.hidden), slot(self.dy, t) + dh, None
            if self.w_out is not None:
                wide = active(self.length, t, y.batch, y.state)
                top[t], carried = projected_gradient(g, wide)
                g = dot(top[t], self.w_out)
            back = step_gradient(cell, self._seen(t, before, after), g, dc, on)
            z[t] = concat(back.gates, 1)
            r[t] = concat(back.apart, 1) if cell.apart else z[t]
            through, besides = dot(r[t], self.w_hid), back.h if self.w_out is None else carried
            dh, dc = through if besides is None else besides + through, back.c
        return concat([reshape(e, (prod(e.shape),)) for e in self._pieces(z, r, top, dh, dc)], 0)

    def _seen(self, t: int, before: int, after: int) -> Kept:
        """What the gradient of the step at time `t` reads."""
        y, areas = self.layer, self.layer.areas()
        gates = y.parts(slot(areas.of(self.kept, "gates"), t), y.batch)
        apart, c_before, c = [], None, None
        if y.cell.apart:
            apart = y.parts(slot(areas.of(self.kept, "apart"), t), y.batch)
        if y.cell.has_cell:
            cells = areas.of(self.kept, "c")
            c_before, c = slot(cells, before), slot(cells, after)
        return Kept(gates, apart, slot(areas.of(self.kept, "h"), before), c_before, c)

    def _pieces(
        self, z: dict[int, Expr], r: dict[int, Expr], top: dict[int, Expr], dh: Expr, dc: Any
    ) -> Iterator[Expr]:
        """The areas of the result, in order."""
        y = self.layer
        rows = y.steps * y.batch

        def rows_of(g: dict[int, Expr]) -> Expr:
            return concat([g[t] for t in range(y.steps)], 0)

        dz, dr = rows_of(z), rows_of(r)
        states = slice_(y.areas().of(self.kept, "h"), *((k,) for k in y.slots(before=True)))
        found: dict[str, Callable[[], Expr]] = {
            "data": lambda: dot(dz, self.w_in),
            "w_in": lambda: dot(dz, reshape(self.data, (rows, y.inputs)), transpose_a=True),
            "w_hid": lambda: dot(dr, reshape(states, (rows, y.state)), transpose_a=True),
            "w_out": lambda: dot(rows_of(top), self._raw(rows), transpose_a=True),
            "b_in": lambda: reduce(dz, "sum", 0),
            "b_hid": lambda: reduce(dr, "sum", 0),
            "h0": lambda: dh,
            "c0": lambda: dc,
            "z": lambda: dz,
            "r": lambda: dr,
            "top": lambda: rows_of(top),
        }
        for name in y.gradients().shapes:
            yield found[name]()

    def _raw(self, rows: int) -> Expr:
        """What the cell gave to be projected, as rows."""
        return reshape(self.layer.areas().of(self.kept, "raw"), (rows, self.layer.hidden))


def slot(states: Expr, k: int) -> Expr:
    """`states[k]`."""
    return reshape(slice_(states, (k,), (k + 1,)), states.shape[1:])


def panels(matrix: Expr, columns: int) -> Expr:
    """The transpose of `matrix` (n, k) by so many columns at a time: (panels, k, columns).

    The last panel is filled up with zeros.
    """
    count, k, _ = in_panels(matrix.shape, columns)
    filled = pad(matrix, (0, 0), (-matrix.shape[0] % columns, 0))
    return transpose(reshape(filled, (count, columns, k)), (0, 2, 1))


def _unpacked(weights: Expr, rows: int) -> Expr:
    """The matrix of so many rows: what lies in panels brought back."""
    if weights.ndim == 2:
        return weights
    count, inner, columns = weights.shape
    matrix = reshape(transpose(weights, (0, 2, 1)), (count * columns, inner))
    return slice_(matrix, (0,), (rows,))


def in_panels(shape: Shape, columns: int) -> Shape:
    """The shape of the panels of a matrix of this shape."""
    return -(-shape[0] // max(columns, 1)), shape[1], columns


def _with_bias(rows: Expr, bias: Expr) -> Expr:
    whole: Expr = rows + broadcast_axis(bias, rows.shape, 1)
    return whole
