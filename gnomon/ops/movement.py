"""Operators that move elements along axes: transposition, slices, repetition, stretching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gnomon.base import ShapeError, complaint
from gnomon.expr import ext
from gnomon.expr.node import Expr
from gnomon.ops.infer import (
    UNKNOWN,
    Free,
    Shape,
    Shapes,
    normal_axes,
    normal_axis,
    one_dtype,
    show_shape,
    times,
)
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, OptionalDims, param
from gnomon.ops.reshape import known_output


class Moves(NamedTuple):
    """Where the elements of a result come from: an entry for each of its axes.

    Along an axis of the result, the place along axis `axes` of the input (-1: none) grows by
    `steps`; the first element is at `begin`.
    """

    shape: Shape
    axes: Sequence[int]
    steps: Sequence[int]
    begin: Sequence[int] = ()


class Turned(Op):
    """The axes of the input in another order."""

    def order(self, ndim: int) -> Sequence[int]:
        """Hook: the axes of the input in the order of the output's."""
        raise TypeError(f"{self.name} says nothing of order")

    def moves(self, shape: Shape) -> Moves:
        order = self.order(len(shape))
        return Moves(tuple([shape[a] for a in order]), order, (1,) * len(order))

    def forward(self, data: Expr) -> Expr:
        return ext.transpose(data, self.order(data.ndim))


@op("transpose")
class Transpose(Turned):
    """The axes in the order `axes`."""

    axes: Dims = param((), doc="The order of the axes; reversed where empty.")

    def order(self, ndim: int) -> tuple[int, ...]:
        """The axes of the input in the order of the output's."""
        if not self.axes:
            return tuple(reversed(range(ndim)))
        order = tuple(normal_axis(self.name, a, ndim) for a in self.axes)
        if sorted(order) != list(range(ndim)):
            expected = f"each of {ndim} axes once"
            raise ShapeError(complaint(self.name, "axes", expected, self.axes))
        return order

    def shapes(self, s: Shapes) -> None:
        known = s.need("output") if s["data"] is None else s["data"]
        order = self.order(len(known))
        if s["data"] is not None:
            s["output"] = tuple(s.need("data")[a] for a in order)
        output = s.need("output")
        s["data"] = tuple(output[order.index(a)] for a in range(len(order)))


@op("SwapAxis", aliases=("swapaxes",))
class SwapAxis(Turned):
    """Two axes in each other's place."""

    dim1: int = param(0, doc="One axis.")
    dim2: int = param(0, doc="The other axis.")

    def order(self, ndim: int) -> list[int]:
        """The axes of the input in the order of the output's."""
        order = list(range(ndim))
        a, b = (normal_axis(self.name, d, ndim) for d in (self.dim1, self.dim2))
        order[a], order[b] = b, a
        return order

    def shapes(self, s: Shapes) -> None:
        for one, other in (("data", "output"), ("output", "data")):
            shape = s[one]
            if shape is not None:
                s[other] = tuple(shape[a] for a in self.order(len(shape)))


@op("reverse", aliases=("flip",))
class Reverse(Op):
    """Mirrored along axes."""

    axis: Dims = param(doc="The axes.")

    def moves(self, shape: Shape) -> Moves:
        back = normal_axes(self.name, self.axis, len(shape))
        steps = [-1 if a in back else 1 for a in range(len(shape))]
        begin = [n - 1 if a in back else 0 for a, n in enumerate(shape)]
        return Moves(shape, range(len(shape)), steps, begin)

    def forward(self, data: Expr) -> Expr:
        for axis in normal_axes(self.name, self.axis, data.ndim):
            data = ext.flip(data, axis)
        return data


class Sliced(Op):
    """What a slice is told, for reading and writing it."""

    begin: OptionalDims = param(doc="First positions; None: from the start.")
    end: OptionalDims = param(doc="Positions after the last; None: to the end.")
    step: OptionalDims = param((), doc="Steps, 1 where missing; negative ones go backwards.")

    def check(self) -> None:
        if 0 in self.step:
            raise self.wrong("step", "no 0")
        if len(self.begin) != len(self.end) or len(self.step) > len(self.begin):
            raise self.wrong("end", f"as many entries as begin, {len(self.begin)}")

    @property
    def steps(self) -> OptionalDims:
        """As many steps as there are bounds."""
        return (*self.step, *[None] * (len(self.begin) - len(self.step)))

    def spans(self, shape: Shape, name: str = "data") -> list[range]:
        """The places along each axis that has bounds, of an input of this shape."""
        if len(self.begin) > len(shape):
            expected = f"at least {len(self.begin)} axes"
            raise ShapeError(complaint(self.name, name, expected, f"shape {shape}"))
        bounds = zip(shape, self.begin, self.end, self.steps, strict=False)
        return [range(*slice(a, b, step).indices(max(n, 0))) for n, a, b, step in bounds]

    def cut(self, s: Shapes, name: str) -> Shape:
        """The shape of the slice of `name`."""
        data = s.need(name)
        spans = self.spans(data, name)
        cut = [d if d == UNKNOWN else len(x) for d, x in zip(data, spans, strict=False)]
        return (*cut, *data[len(cut) :])

    def part(self, whole: Expr) -> Expr:
        """The slice of `whole`."""
        return ext.slice_(whole, self.begin, self.end, self.steps)


@op("slice", aliases=("crop", "_sparse_slice"))
class Slice(Sliced):
    """From `begin` to before `end` in steps, an axis an entry; bounds outside are clipped."""

    def shapes(self, s: Shapes) -> None:
        s["output"] = self.cut(s, "data")

    def moves(self, shape: Shape) -> Moves:
        spans = self.spans(shape)
        whole = shape[len(spans) :]
        cut, steps = (*map(len, spans), *whole), [s.step for s in spans] + [1] * len(whole)
        return Moves(cut, range(len(shape)), steps, [s.start for s in spans])

    def forward(self, data: Expr) -> Expr:
        return self.part(data)


@op("slice_axis")
class SliceAxis(Op):
    """From `begin` to before `end` along one axis."""

    axis: int = param(doc="The axis.")
    begin: int = param(doc="First position; from the end where negative.")
    end: int | None = param(doc="Position after the last; None: to the end.")

    def bounds(self, shape: Shape) -> tuple[int, int, int]:
        """The axis, the first position and the one after the last."""
        axis = normal_axis(self.name, self.axis, len(shape))
        size = shape[axis]
        if not size:  # any part of nothing
            return axis, 0, 0
        begin = self.begin + size if self.begin < 0 else self.begin
        end = size if self.end is None else self.end + size if self.end < 0 else self.end
        if not 0 <= begin < end <= size:
            expected = f"a part of the {size} elements along axis {axis}"
            raise ShapeError(complaint(self.name, "begin", expected, (self.begin, self.end)))
        return axis, begin, end

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        axis = s.axis("data", self.axis)
        size = UNKNOWN
        if data[axis] != UNKNOWN:
            _, begin, end = self.bounds(data)
            size = end - begin
        s["output"] = (*data[:axis], size, *data[axis + 1 :])

    def moves(self, shape: Shape) -> Moves:
        axis, begin, end = self.bounds(shape)
        cut = (*shape[:axis], end - begin, *shape[axis + 1 :])
        return Moves(cut, range(len(shape)), (1,) * len(shape), [*[0] * axis, begin])

    def forward(self, data: Expr) -> Expr:
        axis, begin, end = self.bounds(data.shape)
        return along(data, axis, begin, end)


def along(data: Expr, axis: int, begin: int, end: int) -> Expr:
    """`data` from `begin` to before `end` along `axis`."""
    first, last = [0] * data.ndim, list(data.shape)
    first[axis], last[axis] = begin, end
    return ext.slice_(data, first, last)


@op("slice_like", inputs=("data", "shape_like"))
class SliceLike(Op):
    """The first elements of `data`, as many along `axes` as `shape_like` has."""

    axes: Dims = param((), doc="Which axes are cut; all where empty.")
    types = one_dtype("data", "output")

    def shapes(self, s: Shapes) -> None:
        data, like = s.need("data"), s.need("shape_like")
        axes = {normal_axis(self.name, a, len(data)) for a in self.axes or range(len(data))}
        if any(a >= len(like) or like[a] > data[a] != UNKNOWN for a in axes):
            expected = f"sizes within {show_shape(data)} along {tuple(sorted(axes))}"
            raise s.refuse("shape_like", expected, show_shape(like))
        s["output"] = tuple(like[a] if a in axes else d for a, d in enumerate(data))

    def free(self, data: Shape, shape_like: Shape) -> Free:
        return Free(shape_like, data)

    def forward(self, data: Expr, shape_like: Expr) -> Expr:
        shape = known_output(self, data, shape_like)
        return ext.slice_(data, (0,) * len(shape), shape)


@op("tile")
class Tile(Op):
    """The whole repeated along each axis."""

    reps: Dims = param(low=1, doc="How often along each axis; shorter ones count from the right.")

    def stretched(self, shape: Shape) -> tuple[Shape, Shape]:
        """Input shape and repetitions, both with ones in front for the same number of axes."""
        rank = max(len(self.reps), len(shape))
        return (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(self.reps)) + self.reps

    def shapes(self, s: Shapes) -> None:
        shape, reps = self.stretched(s.need("data"))
        s["output"] = tuple(d * r for d, r in zip(shape, reps, strict=True))

    def free(self, data: Shape) -> Free:
        return Free(data)

    def forward(self, data: Expr) -> Expr:
        shape, reps = self.stretched(data.shape)
        apart = tuple(d for pair in zip((1,) * len(shape), shape, strict=True) for d in pair)
        wide = tuple(d for pair in zip(reps, shape, strict=True) for d in pair)
        return ext.reshape(
            ext.broadcast_to(ext.reshape(data, apart), wide), known_output(self, data)
        )


@op("repeat")
class Repeat(Op):
    """Each element several times in a row."""

    repeats: int = param(low=0, doc="How often.")
    axis: int | None = param(None, doc="Along which axis; all elements in a row where None.")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if self.axis is None:
            s["output"] = (times(data) * self.repeats,)
            return
        axis = s.axis("data", self.axis)
        s["output"] = (*data[:axis], data[axis] * self.repeats, *data[axis + 1 :])

    def free(self, data: Shape) -> Free:
        return Free(data)

    def forward(self, data: Expr) -> Expr:
        shape = data.shape
        at = len(shape) if self.axis is None else normal_axis(self.name, self.axis, len(shape)) + 1
        thin = ext.reshape(data, (*shape[:at], 1, *shape[at:]))
        wide = ext.broadcast_to(thin, (*shape[:at], self.repeats, *shape[at:]))
        return ext.reshape(wide, known_output(self, data))


@op("broadcast_to")
class BroadcastTo(Op):
    """Axes of size 1 stretched to `shape`."""

    shape: Dims = param((), doc="The new shape; 0 keeps a size.")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if len(data) != len(self.shape):
            raise s.refuse("data", f"{len(self.shape)} axes", f"shape {show_shape(data)}")
        s["output"] = stretch_to(s, tuple(n or d for d, n in zip(data, self.shape, strict=True)))

    def moves(self, shape: Shape) -> Moves:
        return _stretched(self, shape)

    def forward(self, data: Expr) -> Expr:
        return ext.broadcast_to(data, known_output(self, data))


def _stretched(op: Op, shape: Shape) -> Moves:
    """The output of `op`, which is data of `shape` with axes of 1 stretched."""
    made = op.infer_shape([shape], zero_unknown=False)[1][0]
    assert made is not None, "inference of complete inputs is complete"
    axes = [a if n == m else -1 for a, (n, m) in enumerate(zip(shape, made, strict=True))]
    return Moves(made, axes, (1,) * len(made))


def stretch_to(s: Shapes, shape: Shape) -> Shape:
    """`shape`, once it is certain that the first input stretches to it."""
    name = s.names[0]
    data = s.need(name)
    if any(d not in (1, UNKNOWN) and UNKNOWN != n != d for d, n in zip(data, shape, strict=True)):
        raise s.refuse(name, f"a shape that stretches to {show_shape(shape)}", show_shape(data))
    return shape


@op("broadcast_axis", aliases=("broadcast_axes",))
class BroadcastAxis(Op):
    """Axes of size 1 stretched to `size`."""

    axis: Dims = param((), doc="Which axes.")
    size: Dims = param((), doc="Their new sizes.")

    def check(self) -> None:
        if len(self.axis) != len(self.size):
            raise self.wrong("size", f"as many as axes, {len(self.axis)}")

    def shapes(self, s: Shapes) -> None:
        new = list(s.need("data"))
        for a, n in zip(self.axis, self.size, strict=True):
            new[s.axis("data", a)] = n
        s["output"] = stretch_to(s, tuple(new))

    def moves(self, shape: Shape) -> Moves:
        return _stretched(self, shape)

    def forward(self, data: Expr) -> Expr:
        return ext.broadcast_to(data, known_output(self, data))


@op("broadcast_like", inputs=("lhs", "rhs"))
class BroadcastLike(Op):
    """Axes of size 1 of `lhs` stretched to the sizes of `rhs`."""

    lhs_axes: Dims | None = param(None, doc="Which axes of `lhs`; all where one of both is None.")
    rhs_axes: Dims | None = param(None, doc="The axes of `rhs` they are stretched to.")
    types = one_dtype("lhs", "output")

    def shapes(self, s: Shapes) -> None:
        lhs, rhs = s.need("lhs"), s.need("rhs")
        left, right = self.lhs_axes, self.rhs_axes
        if left is None or right is None:  # one without the other says nothing, as in MXNet
            left, right = tuple(range(len(lhs))), tuple(range(len(rhs)))
        if len(left) != len(right):
            raise s.refuse("rhs", f"{len(left)} axes as lhs", f"shape {show_shape(rhs)}")
        new = list(lhs)
        for a, b in zip(left, right, strict=True):
            new[s.axis("lhs", a)] = rhs[s.axis("rhs", b)]
        s["output"] = stretch_to(s, tuple(new))

    def free(self, lhs: Shape, rhs: Shape) -> Free:
        return Free((*lhs, *rhs))

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return ext.broadcast_to(lhs, known_output(self, lhs, rhs))
