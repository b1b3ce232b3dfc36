"""Operators that choose, place or count elements by position, and compare arrays."""

from __future__ import annotations

import math

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.dtype import float64, int64, uint8
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import UNKNOWN, Free, Shape, Shapes, fixed_dtypes, normal_axis, one_dtype
from gnomon.ops.op import Op, op
from gnomon.ops.param import Axis, Dims, param


@op("_contrib_boolean_mask", inputs=("data", "index"), aliases=("_npi_boolean_mask",))
class BooleanMask(HostOp):
    """The parts of `data` along its first axis where `index` is not 0."""

    axis: int = param(0, low=0, high=0, doc="The axis; only the first one.")
    cases = (case((3, 2), [0, 1, 1], axis=0), case((3,), [0, 0, 0]), case((2, 0), [1.0, 0.0]))
    types = one_dtype("data", "output")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if not data:
            raise s.refuse("data", "axes", "none")
        s["index"] = (data[0],)
        s["output"] = (UNKNOWN, *data[1:])

    def compute(self, data: Array, index: Array) -> Array:
        return np.compress(index != 0, data, 0)

    def reference(self, data: Array, index: Array) -> Array:
        return np.asarray(data[index != 0])

    def gradient(self, grad: Array, data: Array, index: Array) -> dict[str, Array]:
        found = np.zeros_like(data)
        found[index != 0] = grad
        return {"data": found}


@op("_contrib_index_copy", inputs=("old_tensor", "index_vector", "new_tensor"))
class IndexCopy(HostOp):
    """`old_tensor` with the rows that `index_vector` names replaced by those of `new_tensor`."""

    cases = (
        case((4, 2), [2, 0], (2, 2)),
        case((3,), [1], (1,)),
        case((2, 2), [0, 0], (2, 2), differentiable=(0,)),
    )
    types = one_dtype("old_tensor", "new_tensor", "output")

    def shapes(self, s: Shapes) -> None:
        s.same("old_tensor", "output")
        old, (count,) = s.need("old_tensor"), s.rank("index_vector", 1)
        if not old:
            raise s.refuse("old_tensor", "axes", "none")
        s["new_tensor"] = (count, *old[1:])

    def rows(self, index: Array, count: int) -> Array:
        """The index as positions below `count`.

        Raises:
            ShapeError: one is not.
        """
        rows = index.astype(np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < count:
            expected = f"numbers from 0 to {count - 1}"
            got = f"{rows.min()} to {rows.max()}"
            raise ShapeError(complaint(self.name, "index_vector", expected, got))
        return rows

    def compute(
        self, old_tensor: Array, index_vector: Array, new_tensor: Array, *, room: list[Array]
    ) -> Array:
        (found,), rows = room, self.rows(index_vector, len(old_tensor))
        np.copyto(found, old_tensor)
        found[rows] = new_tensor
        return found

    def reference(self, old_tensor: Array, index_vector: Array, new_tensor: Array) -> Array:
        found = old_tensor.copy()
        for row, value in zip(index_vector, new_tensor, strict=True):
            found[row] = value
        return found

    def gradient(self, grad: Array, index_vector: Array) -> dict[str, Array]:
        rows = self.rows(index_vector, len(grad))
        old = grad.copy()
        old[rows] = 0
        return {"old_tensor": old, "new_tensor": grad[rows]}


@op("_contrib_index_array")
class IndexArray(Op):
    """The index of each element of `data` along `axes`, in a new last axis."""

    axes: Dims | None = param(None, doc="Which axes; all of them where None.")
    cases = (case((2, 3)), case((2, 3, 4), axes=(2, -3)), case((0, 2), axes=(1,)))
    types = fixed_dtypes(output=int64)

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = (*data, len(data) if self.axes is None else len(self.axes))
        self.along(len(data))

    def along(self, ndim: int) -> list[int]:
        """The axes counted from the front."""
        if self.axes is None:
            return list(range(ndim))
        return [normal_axis(self.name, axis, ndim) for axis in self.axes]

    def forward(self, data: Expr) -> Expr:
        shape = (*data.shape, 1)
        return ext.concat([ext.iota(shape, a, int64) for a in self.along(data.ndim)], data.ndim)

    def reference(self, data: Array) -> Array:
        return np.stack([np.indices(data.shape)[a] for a in self.along(data.ndim)], -1)


@op("_contrib_arange_like", aliases=("_npx_arange_like",))
class ArangeLike(Op):
    """`start`, `start + step`, ... in the shape and dtype of `data`, or as many as an axis has."""

    start: float = param(0.0, doc="The first number.")
    step: float = param(1.0, doc="What comes on top from one to the next.")
    repeat: int = param(1, low=1, doc="How often each number stands there in a row.")
    ctx: str = param("", doc="Device; taken for the sake of scripts, that of `data` counts.")
    axis: Axis | None = param(None, doc="The axis whose size counts; all elements where None.")
    cases = (case((2, 3)), case((3, 2), axis=0, start=1, step=0.5), case((5,), repeat=2))

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = data if self.axis is None else (data[self.axis.of(data)],)

    def free(self, data: Shape) -> Free:
        return Free(data)

    def forward(self, data: Expr) -> Expr:
        shape = data.shape if self.axis is None else (data.shape[self.axis.of(data.shape)],)
        places = ext.iota((math.prod(shape),), 0, int64) / self.repeat
        step, start = self.step, self.start
        if data.dtype.kind in "iu":
            step, start = int(step), int(start)
        return cast(ext.reshape(places, shape), data.dtype) * step + start

    def reference(self, data: Array) -> Array:
        shape = data.shape if self.axis is None else (data.shape[self.axis],)
        places = np.arange(math.prod(shape)) // self.repeat
        return places.reshape(shape) * self.step + self.start


@op("_contrib_allclose", inputs=("a", "b"))
class AllClose(Op):
    """1 where all elements are equal but for `atol + rtol * abs(b)`, else 0."""

    rtol: float = param(1e-5, doc="Difference as a share of `b`.")
    atol: float = param(1e-8, doc="Difference.")
    equal_nan: bool = param(True, doc="Whether NaN equals NaN.")
    cases = (
        case((2, 3), (2, 3)),
        case([1.0, np.inf, np.nan], [1.0 + 1e-7, np.inf, np.nan]),
        case([1.0, np.nan], [1.0, np.nan], equal_nan=False),
        case([2.0, 1.0], [1.0, np.inf], rtol=2),
        case((0, 2), (0, 2)),
    )
    types = one_dtype("a", "b", output=uint8)
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s.same("a", "b")
        s["output"] = ()

    def forward(self, a: Expr, b: Expr) -> Expr:
        if a.dtype.kind in "iu":
            a, b = cast(a, float64), cast(b, float64)
        near = fn.le(fn.abs(a - b), fn.abs(b) * self.rtol + self.atol)
        finite = fn.lt(fn.abs(b), math.inf)
        good = fn.logical_or(fn.eq(a, b), fn.logical_and(near, finite))
        if self.equal_nan:
            good = fn.logical_or(good, fn.logical_and(fn.ne(a, a), fn.ne(b, b)))
        whole = fn.minimum(ext.reduce(good, "min"), 1) if good.ndim else good
        return cast(whole, uint8)

    def reference(self, a: Array, b: Array) -> Array:
        found = np.allclose(a, b, self.rtol, self.atol, self.equal_nan)
        return np.array(found, np.uint8)


@op("_shuffle", aliases=("shuffle", "_npi_shuffle"))
class Shuffle(HostOp):
    """The parts of `data` along its first axis in random order; no gradient goes through."""

    brief = 1 << 20  # a permutation of rows is copied soon
    cases = (case((1, 3)), case((0, 2)))

    def compute(self, data: Array, *, random: np.random.Generator, room: list[Array]) -> Array:
        if not data.ndim:
            return data
        return data.take(random.permutation(len(data)), 0, out=room[0], mode="clip")

    def reference(self, data: Array) -> Array:
        return data
