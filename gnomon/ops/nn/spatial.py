"""Images sampled at places that a grid names, and such grids."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import ParamError, complaint
from gnomon.dtype import int64
from gnomon.expr import call, ext, fn
from gnomon.expr.diff import vjp
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.ops.infer import Shapes
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param


def sampled(data: Expr, grid: Expr) -> Expr:
    """`data` (N, C, h, w) at the places of `grid` (N, 2, rows, columns): x and y from -1 to 1.

    Between four pixels it is interpolated; those outside of the image are 0.
    """
    n, c, h, w = data.shape
    shape = (n, c, *grid.shape[2:])
    # one axis of all pixels: what is taken lies at its index, which no division takes apart again
    pixels = ext.reshape(data, (n * c * h * w,))
    images = ext.iota(shape, 0, int64) * (c * h * w) + ext.iota(shape, 1, int64) * (h * w)
    total: Expr | None = None
    for place, share in corners(grid, h, w):
        taken = ext.take(pixels, images + ext.broadcast_to(place, shape))
        part = taken * ext.broadcast_to(share, shape)
        total = part if total is None else total + part
    assert total is not None
    return total


def received(grad: Expr, data: Expr, grid: Expr) -> Expr:
    """What `data` receives where `sampled` receives `grad`.

    It is added up by rows of all channels, which threads share, and not by single pixels.
    """
    n, c, h, w = data.shape
    rows = ext.transpose(grad, (0, 2, 3, 1))
    images = ext.iota((n, 1, *grid.shape[2:]), 0, int64) * (h * w)
    total: Expr | None = None
    for place, share in corners(grid, h, w):
        at = ext.reshape(images + place, rows.shape[:3])
        scaled = rows * ext.broadcast_to(ext.reshape(share, (*at.shape, 1)), rows.shape)
        part = ext.take_grad(at, scaled, n * h * w)
        total = part if total is None else total + part
    assert total is not None
    return ext.transpose(ext.reshape(total, (n, h, w, c)), (0, 3, 1, 2))


def corners(grid: Expr, h: int, w: int) -> Iterator[tuple[Expr, Expr]]:
    """Four times the pixel (N, 1, rows, columns) of an image that is read, and its share."""
    n = grid.shape[0]
    x, y = (
        (ext.slice_(grid, (0, k), (n, k + 1)) + 1.0) * ((size - 1) / 2)
        for k, size in enumerate((w, h))
    )
    left, top = fn.floor(x), fn.floor(y)
    over, under = x - left, y - top  # at a pixel itself, too, the slope is that to the next one
    for row, high in ((top, 1.0 - under), (top + 1.0, under)):
        for column, wide in ((left, 1.0 - over), (left + 1.0, over)):
            share = wide * high * (inside(column, w) * inside(row, h))
            yield within(row, h) * w + within(column, w), share


def inside(place: Expr, size: int) -> Expr:
    """1 where there is such a place."""
    return fn.logical_and(fn.ge(place, 0), fn.le(place, size - 1))


def within(place: Expr, size: int) -> Expr:
    """The nearest place that there is, as int64."""
    return cast(fn.clip(place, 0.0, max(size - 1.0, 0.0)), int64)


def affine(theta: Expr, size: Dims) -> Expr:
    """The grid (N, 2, rows, columns) of transformations (N, 6)."""
    rows, columns = size
    n = theta.shape[0]
    x, y = (even(size, axis, theta) for axis in (1, 0))
    ones = ext.broadcast_to(Scalar(1.0, theta.dtype), (1, rows * columns))
    flat = [ext.reshape(e, (1, rows * columns)) for e in (x, y)]
    places = ext.concat([*flat, ones], 0)
    found = call.dot(ext.reshape(theta, (n * 2, 3)), places)
    return ext.reshape(found, (n, 2, rows, columns))


def even(size: Dims, axis: int, like: Expr) -> Expr:
    """Numbers from -1 to 1 along an axis."""
    step = 2.0 / max(size[axis] - 1, 1)
    return ext.iota(tuple(size), axis, like.dtype) * step - 1.0


@op("BilinearSampler", inputs=("data", "grid"))
class BilinearSampler(Op):
    """`data` at the places of `grid`, x and y from -1 to 1; what lies outside of it is 0."""

    cudnn_off: bool | None = param(None, doc="No meaning here.")

    def shapes(self, s: Shapes) -> None:
        n, c, *_ = s.rank("data", 4)
        s["grid"] = (n, 2, -1, -1)
        s["output"] = (n, c, *s.need("grid")[2:])

    def forward(self, data: Expr, grid: Expr) -> Expr:
        return sampled(data, grid)

    def gradient(self, grad: Expr, data: Expr, grid: Expr) -> tuple[Expr | None, ...]:
        (to_grid,) = vjp([sampled(data, grid)], [grad], [grid])
        return received(grad, data, grid), to_grid


def check_target(op: Op, size: Dims) -> None:
    """ParamError unless `target_shape` are two sizes."""
    if len(size) != 2 or min(size) < 1:
        raise ParamError(complaint(op.name, "target_shape", "rows and columns above 0", size))


@op("GridGenerator")
class GridGenerator(Op):
    """Grids for `BilinearSampler`: of affine transformations (N, 6), or flows (N, 2, h, w)."""

    transform_type: str = param(choices=("affine", "warp"), doc="What `data` is.")
    target_shape: Dims = param((0, 0), doc="Rows and columns of an affine grid.")

    def check(self) -> None:
        if self.transform_type == "affine":
            check_target(self, self.target_shape)

    def shapes(self, s: Shapes) -> None:
        if self.transform_type == "warp":
            data = s.rank("data", 4)
            s["data"] = (data[0], 2, *data[2:])
            return s.same()
        s["data"] = (-1, 6)
        s["output"] = (s.need("data")[0], 2, *self.target_shape)
        return None

    def forward(self, data: Expr) -> Expr:
        if self.transform_type == "affine":
            return affine(data, self.target_shape)
        size = data.shape[2:]
        n = data.shape[0]
        both = []
        for k, axis in enumerate((1, 0)):
            flow = ext.slice_(data, (0, k), (n, k + 1))
            base = even(size, axis, data)
            both.append(flow * (2.0 / max(size[axis] - 1, 1)) + ext.broadcast_to(base, flow.shape))
        return ext.concat(both, 1)


@op("SpatialTransformer", inputs=("data", "loc"))
class SpatialTransformer(Op):
    """`data` under the affine transformations `loc` (N, 6)."""

    target_shape: Dims = param((0, 0), doc="Rows and columns of the result.")
    transform_type: str = param(choices=("affine",), doc="The kind of transformation.")
    sampler_type: str = param(choices=("bilinear",), doc="How it is sampled.")
    cudnn_off: bool | None = param(None, doc="No meaning here.")

    def check(self) -> None:
        check_target(self, self.target_shape)

    def shapes(self, s: Shapes) -> None:
        n, c, *_ = s.rank("data", 4)
        s["loc"] = (n, 6)
        s["output"] = (n, c, *self.target_shape)

    def forward(self, data: Expr, loc: Expr) -> Expr:
        return sampled(data, affine(loc, self.target_shape))

    def gradient(self, grad: Expr, data: Expr, loc: Expr) -> tuple[Expr | None, ...]:
        grid = affine(loc, self.target_shape)
        (to_loc,) = vjp([sampled(data, grid)], [grad], [loc])
        return received(grad, data, grid), to_loc


@op("Crop", variadic="num_args")
class Crop(Op):
    """The part of an image (N, C, h, w) of the size of a second one, or of `h_w`."""

    num_args: int = param(low=1, high=2, doc="1 or 2: whether another image gives the size.")
    offset: Dims = param((0, 0), low=0, lengths=(2,), doc="Rows and columns before the part.")
    h_w: Dims = param(
        (0, 0), low=0, lengths=(2,), doc="Rows and columns of the part, without a second image."
    )
    center_crop: bool = param(False, doc="Take the middle.")

    def shapes(self, s: Shapes) -> None:
        n, c, *space = s.rank("arg0", 4)
        size = self.h_w if self.num_args == 1 else s.rank("arg1", 4)[2:]
        starts = self.starts(tuple(space), tuple(size))
        known = -1 not in (*space, *size)
        if known and any(a < 0 or a + m > n for a, m, n in zip(starts, size, space, strict=True)):
            raise s.refuse("arg0", f"room for {tuple(size)} from {starts}", tuple(space))
        s["output"] = (n, c, *size)

    def starts(self, space: Dims, size: Dims) -> Dims:
        """Where the part begins."""
        if self.center_crop:
            return tuple((n - m) // 2 for n, m in zip(space, size, strict=True))
        return self.offset

    def forward(self, *args: Expr) -> Expr:
        data = args[0]
        size = self.h_w if self.num_args == 1 else args[1].shape[2:]
        y, x = self.starts(data.shape[2:], size)
        ends = (*data.shape[:2], y + size[0], x + size[1])
        return ext.slice_(data, (0, 0, y, x), ends)
