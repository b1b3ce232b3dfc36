"""Images of another size: means of regions, and bilinear interpolation."""

from __future__ import annotations

import numpy as np

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ops.case import case
from gnomon.ops.host import Array
from gnomon.ops.infer import UNKNOWN, Shapes
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param

Sizes = tuple[int, int]


@op("_contrib_AdaptiveAvgPooling2D")
class AdaptiveAvgPooling2D(Op):
    """Means of regions that together are the whole image, `output_size` of them along the axes."""

    output_size: Dims = param(
        (), low=1, lengths=(0, 1, 2), doc="Rows and columns of the result; one each if empty."
    )
    cases = (
        case((2, 3, 5, 7), output_size=(3, 2)),
        case((1, 2, 4, 4), output_size=2),
        case((2, 1, 3, 2)),
        case((1, 1, 2, 3), output_size=(5, 4)),
    )

    @property
    def sizes(self) -> Sizes:
        """Rows and columns of the result."""
        given = self.output_size or (1,)
        return given[0], given[-1]

    def shapes(self, s: Shapes) -> None:
        n, c, *_ = s.rank("data", 4)
        s["output"] = (n, c, *self.sizes)

    def forward(self, data: Expr) -> Expr:
        for axis, count in zip((2, 3), self.sizes, strict=True):
            size = data.shape[axis]
            data = ext.regions(data, axis, count)
            place = ext.iota(data.shape, axis, data.dtype) * float(size)
            begin = fn.floor((place + 0.5) / count)  # halves: quotients are not exact
            data = data / (fn.ceil((place + (size - 0.5)) / count) - begin)
        return data

    def reference(self, data: Array) -> Array:
        (h, w), (rows, columns) = data.shape[2:], self.sizes
        found = np.empty((*data.shape[:2], rows, columns))
        for i, j in np.ndindex(rows, columns):
            top, bottom = i * h // rows, -(-(i + 1) * h // rows)
            left, right = j * w // columns, -(-(j + 1) * w // columns)
            found[:, :, i, j] = data[:, :, top:bottom, left:right].mean((2, 3))
        return found


MODES = ("like", "odd_scale", "size", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up")


@op("_contrib_BilinearResize2D", inputs=("data", "like"))
class BilinearResize2D(Op):
    """Images of another size by bilinear interpolation."""

    height: int = param(1, low=1, doc="Rows of the result.")
    width: int = param(1, low=1, doc="Columns of the result.")
    scale_height: float | None = param(None, doc="Rows as a multiple of those of `data`.")
    scale_width: float | None = param(None, doc="Columns as a multiple of those of `data`.")
    mode: str = param("size", choices=MODES, doc="What decides the size of the result.")
    align_corners: bool = param(True, doc="Whether outermost pixels fall on outermost pixels.")
    cases = (
        case((2, 3, 4, 5), height=7, width=3),
        case((2, 1, 3, 4), height=5, width=8, align_corners=False),
        case((1, 1, 3, 4), height=1, width=2, align_corners=False),
        case((1, 1, 3, 3), scale_height=2.0, scale_width=0.5),
        case((1, 2, 4, 3), (1, 2, 2, 6), mode="like"),
    )

    def arguments(self) -> tuple[str, ...]:
        return ("data", "like") if self.mode == "like" else ("data",)

    def sizes(self, h: int, w: int) -> Sizes:
        """Rows and columns of the result, of an image of this size."""
        if self.mode.startswith("to_"):
            return self.next_to(h), self.next_to(w)
        if self.scale_height is None or self.scale_width is None:
            return self.height, self.width
        rows, columns = float(self.scale_height), float(self.scale_width)
        if self.mode == "odd_scale":
            return _odd(h, rows), _odd(w, columns)
        return _scaled(h, rows), _scaled(w, columns)

    def next_to(self, size: int) -> int:
        """The next even or odd size."""
        away = size % 2 if "even" in self.mode else 1 - size % 2
        return size + away if self.mode.endswith("up") else size - away

    def shapes(self, s: Shapes) -> None:
        n, c, h, w = s.rank("data", 4)
        if self.mode == "like":
            s["output"] = (n, c, *s.rank("like", 4)[2:])
        elif UNKNOWN in (h, w):
            s["output"] = (n, c, UNKNOWN, UNKNOWN)
        else:
            s["output"] = (n, c, *self.sizes(h, w))

    def forward(self, data: Expr, like: Expr | None = None) -> Expr:
        to = self.sizes(*data.shape[2:]) if like is None else like.shape[2:]
        if to == data.shape[2:]:
            return fn.identity(data)
        for axis, count in zip((2, 3), to, strict=True):
            data = ext.interpolate(data, axis, count, self.align_corners)
        return data

    def reference(self, data: Array, like: Array | None = None) -> Array:
        to = self.sizes(*data.shape[2:]) if like is None else like.shape[2:]
        for axis, count in zip((2, 3), to, strict=True):
            size = data.shape[axis]
            if self.align_corners or count == 1:
                places = np.linspace(0, size - 1, count)
            else:
                places = np.clip((np.arange(count) + 0.5) * size / count - 0.5, 0, size - 1)
            low = np.floor(places).astype(int)
            high, part = np.minimum(low + 1, size - 1), places - low
            shape = [count if a == axis else 1 for a in range(4)]
            part = part.reshape(shape)
            data = data.take(low, axis) * (1 - part) + data.take(high, axis) * part
        return data


def _odd(size: int, scale: float) -> int:
    """A size whose scaled number of steps is kept where it is odd."""
    return _scaled(size - 1, scale) + 1 if size % 2 else _scaled(size, scale)


def _scaled(size: int, scale: float) -> int:
    """A multiple of a size in single precision, in which 100 * 0.29 is 29."""
    return int(np.float32(size) * np.float32(scale))
