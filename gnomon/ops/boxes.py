"""Operators on boxes: how much they overlap, and which of those that overlap are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import ParamError, complaint
from gnomon.dtype import int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.native.serve import served
from gnomon.ops.box_choice import survive, survive_single
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shape, Shapes, one_dtype
from gnomon.ops.op import Op, op
from gnomon.ops.param import param

FORMATS = ("corner", "center")


def corners(boxes: Array, form: str) -> Array:
    """Boxes as (left, top, right, bottom)."""
    if form == "corner":
        return boxes
    half = boxes[..., 2:] / 2
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def centers(boxes: Array, form: str) -> Array:
    """Boxes as (x, y, width, height)."""
    if form == "center":
        return boxes
    low, high = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([(low + high) / 2, high - low], -1)


def sided(boxes: Array) -> Array:
    """Left, top, right, bottom and area (0 where a side is negative) of boxes of corners (n, 4).

    Each is a row of float64, as native functions take them.
    """
    sides = np.empty((5, len(boxes)))
    across = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    sides[:4], sides[4] = boxes.T, across[:, 0] * across[:, 1]
    return sides


def survivors(boxes: Array, classes: Array, threshold: float, most: int = -1) -> Array:
    """Places of boxes, best first, that no better survivor of their class overlaps too much.

    That is by more than `threshold` of their union. With `most`, of the first so many alone.
    """
    sides = sided(boxes)
    classes, kept = np.ascontiguousarray(classes, np.float64), np.empty(len(boxes), np.int64)
    limit = float(boxes.dtype.type(threshold))
    run = served(survive, survive_single)[0]
    if boxes.dtype == np.float32:  # a quotient is above the limit where it is not rounded to it
        limit = (limit + float(np.nextafter(np.float32(limit), np.float32(np.inf)))) / 2
        run = served(survive, survive_single)[1]
    places = (a.ctypes.data for a in (sides, classes, kept))
    return kept[: run(*places, len(boxes), most, limit)]


@op("_contrib_box_iou", inputs=("lhs", "rhs"))
class BoxIOU(Op):
    """Intersection over union of each box of `lhs` (..., 4) with each one of `rhs` (..., 4)."""

    format: str = param("corner", choices=FORMATS, doc="Corners, or center, width and height.")
    cases = (
        case((2, 3, 4), (5, 4), format="center", differentiable=()),
        case((0, 4), (2, 4), differentiable=()),
    )
    types = one_dtype(kinds="f")

    def shapes(self, s: Shapes) -> None:
        for name in ("lhs", "rhs"):
            shape = s.need(name)
            if len(shape) < 2 or shape[-1] not in (-1, 4):
                raise s.refuse(name, "shape (..., 4) of 2 axes or more", shape)
            s[name] = (*shape[:-1], 4)
        s["output"] = (*s.need("lhs")[:-1], *s.need("rhs")[:-1])

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        across = ext.reshape(lhs, (*lhs.shape[:-1], *(1,) * (rhs.ndim - 1), 4))
        shape = (*lhs.shape[:-1], *rhs.shape[:-1])
        sides = [_sides(box, self.format, shape) for box in (across, rhs)]
        (x0, y0, x1, y1), (u0, v0, u1, v1) = sides
        shared = _area(
            fn.maximum(x0, u0), fn.maximum(y0, v0), fn.minimum(x1, u1), fn.minimum(y1, v1)
        )
        union = _area(*sides[0]) + _area(*sides[1]) - shared
        return fn.where(union > 0, shared / union, 0)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[None, None]:
        return None, None

    def reference(self, lhs: Any, rhs: Any) -> Any:
        flat = [np.asarray(corners(b, self.format)).reshape(-1, 4) for b in (lhs, rhs)]
        found = [[_overlap(a, b) for b in flat[1]] for a in flat[0]]
        return np.array(found).reshape(*lhs.shape[:-1], *rhs.shape[:-1])


def _sides(boxes: Expr, form: str, shape: Shape) -> list[Expr]:
    """Left, top, right and bottom of boxes, over `shape`."""
    parts = []
    for k in range(4):
        picked = ext.slice_(
            boxes, (*(None,) * (boxes.ndim - 1), k), (*(None,) * (boxes.ndim - 1), k + 1)
        )
        parts.append(ext.broadcast_to(ext.reshape(picked, boxes.shape[:-1]), shape))
    if form == "corner":
        return parts
    x, y, width, height = parts
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def _area(x0: Expr, y0: Expr, x1: Expr, y1: Expr) -> Expr:
    """The area of boxes; 0 where a side is negative."""
    return fn.maximum(x1 - x0, 0) * fn.maximum(y1 - y0, 0)


def _overlap(a: Any, b: Any) -> float:
    """Intersection over union of two boxes, number by number."""
    sides = [max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]), 0) for k in (0, 1)]
    whole = [max(c[2] - c[0], 0) * max(c[3] - c[1], 0) for c in (a, b)]
    union = sum(whole) - sides[0] * sides[1]
    return sides[0] * sides[1] / union if union > 0 else 0.0


@op(
    "_contrib_box_nms",
    outputs=("output0", "output1"),
    aliases=("_contrib_box_non_maximum_suppression",),
)
class BoxNMS(HostOp):
    """The rows of `data` (..., n, k) whose boxes are kept, best score first; then rows of -1.

    A box goes where one of its class with a better score is kept and overlaps it more than
    `overlap_thresh`. The gradient of a row goes to where it came from.
    """

    overlap_thresh: float = param(0.5, doc="Above it, boxes overlap.")
    valid_thresh: float = param(0, doc="Scores not above it are left out.")
    topk: int = param(-1, doc="Only so many best boxes are looked at; -1: all; 0: `data` as it is.")
    coord_start: int = param(2, doc="Where in a row the four coordinates begin.")
    score_index: int = param(1, doc="Where in a row the score stands.")
    id_index: int = param(-1, doc="Where in a row the class stands; -1: all are of one.")
    background_id: int = param(-1, doc="A class that is left out, where `id_index` is given.")
    force_suppress: bool = param(False, doc="Boxes of other classes suppress, too.")
    in_format: str = param("corner", choices=FORMATS, doc="What coordinates are in `data`.")
    out_format: str = param("corner", choices=FORMATS, doc="What coordinates are in the output.")
    num_visible_outputs = 1
    types = one_dtype("data", "output0", kinds="f", output1=int64)

    def check(self) -> None:
        taken = range(self.coord_start, self.coord_start + 4)
        wanted = [("coord_start", self.coord_start), ("score_index", self.score_index)]
        for name, place in [*wanted, ("id_index", max(self.id_index, 0))]:
            if place < 0:
                raise ParamError(complaint(self.name, name, "a place, 0 or more", place))
        for name, place in (("score_index", self.score_index), ("id_index", self.id_index)):
            if place in taken:
                expected = f"a place that is no coordinate's ({taken[0]} to {taken[-1]})"
                raise ParamError(complaint(self.name, name, expected, place))

    def shapes(self, s: Shapes) -> None:
        shape = s.need("data")
        least = max(self.coord_start + 4, self.score_index + 1, self.id_index + 1)
        if len(shape) < 2 or -1 < shape[-1] < least:
            raise s.refuse("data", f"shape (..., boxes, {least} or more)", shape)
        s["output0"], s["output1"] = shape, shape[:-1]
        s["data"] = s.need("output0")

    def kept(self, rows: Array) -> Array:
        """Where the rows lie that are kept, best first."""
        scores = rows[:, self.score_index]
        valid = scores > self.valid_thresh
        classes = np.zeros(len(rows))
        if self.id_index >= 0:
            named = rows[:, self.id_index]
            valid &= named != self.background_id
            classes = np.trunc(named)
        places = np.flatnonzero(valid)
        order = places[np.argsort(-scores[places], kind="stable")]
        order = order[: self.topk] if self.topk > 0 else order
        boxes = corners(rows[order, self.coord_start : self.coord_start + 4], self.in_format)
        same = np.zeros(len(order)) if self.force_suppress else classes[order]
        return np.asarray(order[survivors(boxes, same, self.overlap_thresh)])

    def compute(self, data: Array) -> tuple[Array, Array]:
        places = np.full(data.shape[:-1], -1, np.int64)
        if self.topk == 0:
            places[:] = np.arange(data.shape[-2])
            return data, places
        found = np.full_like(data, -1)
        box = slice(self.coord_start, self.coord_start + 4)
        change = corners if self.out_format == "corner" else centers
        for batch in np.ndindex(data.shape[:-2]):
            kept = self.kept(data[batch])
            places[batch][: len(kept)] = kept
            found[batch][: len(kept)] = data[batch][kept]
            boxes = data[batch][kept, box]
            found[batch][: len(kept), box] = change(boxes, self.in_format)
        return found, places

    def gradient(self, grad: Array, output1: Array) -> Array:
        found = np.zeros_like(grad)
        for batch in np.ndindex(grad.shape[:-2]):
            places = output1[batch]
            found[batch][places[places >= 0]] = grad[batch][places >= 0]
        return found
