"""Operators that look up or place elements by several indices, and diagonals."""

from __future__ import annotations

from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.bounds import InBounds
from gnomon.ops.infer import UNKNOWN, Shape, Shapes, normal_axis, one_dtype, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


def flat_places(indices: Expr, shape: Shape) -> Expr:
    """Where rows of `indices` lead in an array of `shape`, in row-major order.

    Those below 0 count from the end; outside is nearest.

    `indices` has one row for each of the leading axes of `shape`.
    """
    place: Expr | None = None
    for axis in range(indices.shape[0]):
        begin, end = (axis, *[0] * (indices.ndim - 1)), (axis + 1, *indices.shape[1:])
        row = ext.reshape(ext.slice_(indices, begin, end), indices.shape[1:])
        at = cast(row, int64)
        at = fn.clip(fn.where(fn.lt(at, 0), at + shape[axis], at), 0, max(shape[axis] - 1, 0))
        place = at if place is None else place * shape[axis] + at
    assert place is not None
    return place


@op("gather_nd", inputs=("data", "indices"))
class GatherNd(Op):
    """The parts of `data` at `indices`, whose first axis goes through the axes of `data`."""

    def shapes(self, s: Shapes) -> None:
        data, indices = s.need("data"), s.need("indices")
        if not indices or not 0 < indices[0] <= len(data):
            expected = f"1 to {len(data)} rows, one an axis of data"
            raise s.refuse("indices", expected, f"shape {indices}")
        s["output"] = (*indices[1:], *data[indices[0] :]) or (1,)

    types = one_dtype("data", "output")

    def guard(self, data: Shape, indices: Shape) -> InBounds | None:
        sizes = data[: indices[0]]
        return None if 0 in indices else InBounds(low=tuple(-n for n in sizes), high=sizes)

    def forward(self, data: Expr, indices: Expr) -> Expr:
        named = data.shape[: indices.shape[0]]
        rest = data.shape[indices.shape[0] :]
        rows = ext.reshape(data, (times(named), *rest))
        found = ext.take(rows, flat_places(indices, named))
        return ext.reshape(found, (*indices.shape[1:], *rest) or (1,))


@op("scatter_nd", inputs=("data", "indices"))
class ScatterNd(Op):
    """An array of zeros but for `data` at `indices`; what meets at one place is summed."""

    shape: Dims = param(doc="Shape of the output.")
    types = one_dtype("data", "output")

    def shapes(self, s: Shapes) -> None:
        s["output"] = self.shape
        indices = s.need("indices")
        if not indices or not 0 < indices[0] <= len(self.shape):
            expected = f"1 to {len(self.shape)} rows, one an axis of the output"
            raise s.refuse("indices", expected, f"shape {indices}")
        s["data"] = (*indices[1:], *self.shape[indices[0] :])

    def forward(self, data: Expr, indices: Expr) -> Expr:
        named, rest = self.shape[: indices.shape[0]], self.shape[indices.shape[0] :]
        places = flat_places(indices, named)
        found = ext.take_grad(places, data, times(named))
        return ext.reshape(found, (*named, *rest))


@op("diag")
class Diag(Op):
    """The diagonal of two axes, as the last one; of a vector, the matrix that has it."""

    k: int = param(0, doc="Which diagonal: above the main one, or below it if negative.")
    axis1: int = param(0, doc="The axis of rows.")
    axis2: int = param(1, doc="The axis of columns.")

    def parts(self, shape: Shape) -> tuple[int, int, int]:
        """The axes of rows and columns, and the diagonal's length."""
        rows, columns = (normal_axis(self.name, a, len(shape)) for a in (self.axis1, self.axis2))
        length = min(shape[rows] + min(self.k, 0), shape[columns] - max(self.k, 0))
        return rows, columns, max(length, 0)

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        if len(data) == 1:
            s["output"] = (data[0] + abs(self.k),) * 2
            return
        rows, columns, length = self.parts(data)
        if rows == columns or not -data[rows] <= self.k <= data[columns]:
            got = f"axes {self.axis1} and {self.axis2} of {data} with k={self.k}"
            raise s.refuse("data", "two axes with such a diagonal", got)
        s["output"] = (*(n for a, n in enumerate(data) if a not in (rows, columns)), length)

    def forward(self, data: Expr) -> Expr:
        if data.ndim == 1:
            width = data.shape[0] + abs(self.k)
            found = ext.take_grad(self.places(data.shape[0], width), data, width * width)
            return ext.reshape(found, (width, width))
        rows, columns, length = self.parts(data.shape)
        others = [a for a in range(data.ndim) if a not in (rows, columns)]
        front = ext.transpose(data, [rows, columns, *others])
        rest = front.shape[2:]
        flat = ext.reshape(front, (times(front.shape[:2]), *rest))
        found = ext.take(flat, self.places(length, front.shape[1]))
        return ext.transpose(found, [*range(1, found.ndim), 0]) if rest else found

    def places(self, length: int, width: int) -> Expr:
        """Where the diagonal lies in a matrix, in row-major order."""
        first = max(-self.k, 0) * width + max(self.k, 0)
        return ext.iota((length,)) * (width + 1) + first


class Flat(Op):
    """What goes between indices of several axes, and positions in row-major order."""

    shape: Dims | None = param(None, doc="Shape of the array meant; its first size may be -1.")

    def check(self) -> None:
        if not self.shape or any(size < 0 for size in self.shape[1:]):
            raise self.wrong("shape", "a shape whose sizes are known, but for the first")

    @property
    def sizes(self) -> Shape:
        """The shape, which `check` has seen."""
        return self.shape or ()

    def backward(self, out_grads: object, inputs: object, outputs: object) -> tuple[None]:
        return (None,)


@op("_ravel_multi_index", aliases=("ravel_multi_index",))
class RavelMultiIndex(Flat):
    """Where the columns of `data`, one row an axis, lead in an array of `shape`.

    What lies outside is counted on like the rest.
    """

    def shapes(self, s: Shapes) -> None:
        s["data"] = (len(self.sizes), UNKNOWN)
        s["output"] = s.need("data")[1:]
        s["data"] = (len(self.sizes), *s.need("output"))

    def forward(self, data: Expr) -> Expr:
        whole, count = cast(data, int64), data.shape[1]
        place: Expr | None = None
        for axis, size in enumerate(self.sizes):
            row = ext.reshape(ext.slice_(whole, (axis, 0), (axis + 1, count)), (count,))
            place = row if place is None else place * size + row
        assert place is not None
        return cast(place, data.dtype)


@op("_unravel_index", aliases=("unravel_index",))
class UnravelIndex(Flat):
    """Indices in an array of `shape`, one row an axis, for each position in `data`.

    A position outside gives an index outside of the first axis.
    """

    def shapes(self, s: Shapes) -> None:
        output = s["output"]
        if output is not None:
            s["data"] = output[1:]
        s["output"] = (len(self.sizes), *s.need("data"))

    def forward(self, data: Expr) -> Expr:
        rest, rows = cast(data, int64), []
        for size in self.sizes[:0:-1]:
            above = rest / size  # whole numbers, cut off towards 0
            rows.append(rest - above * size)
            rest = above
        rows.append(rest)
        thin = [ext.reshape(row, (1, *data.shape)) for row in reversed(rows)]
        return cast(ext.concat(thin, 0) if len(thin) > 1 else thin[0], data.dtype)
