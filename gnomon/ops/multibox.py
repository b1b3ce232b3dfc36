"""Operators of detectors that predict for anchors: the anchors, what to learn, what was found."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np

from gnomon.base import ParamError, complaint
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.native.serve import served
from gnomon.ops.box_choice import match, match_single
from gnomon.ops.boxes import centers, sided, survivors
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, one_dtype, times
from gnomon.ops.op import Op, op
from gnomon.ops.param import Floats, param


def decoded(moves: Array, anchors: Array) -> Array:
    """Corners (4, n) of anchors (x, y, width, height) moved by shares of their size, and scaled."""
    middle = moves[:2] * anchors[2:] + anchors[:2]
    half = np.exp(moves[2:]) * anchors[2:] / 2
    return np.concatenate([middle - half, middle + half])


def encoded(boxes: Array, anchors: Array) -> Array:
    """What moves anchors so that they are boxes: both (..., 4) x, y, width and height."""
    middle = (boxes[..., :2] - anchors[..., :2]) / anchors[..., 2:]
    return np.concatenate([middle, np.log(boxes[..., 2:] / anchors[..., 2:])], -1)


@op("_contrib_MultiBoxPrior")
class MultiBoxPrior(Op):
    """Anchors around each pixel of `data` (N, C, h, w), as corners (1, anchors, 4).

    One for each size, of the first ratio; then one for each further ratio, of the first size. A
    size is a share of the height.
    """

    sizes: Floats = param((1,), doc="Shares of the height.")
    ratios: Floats = param((1,), low=0, doc="Width by height.")
    clip: bool = param(False, doc="Corners are kept within 0 and 1.")
    steps: Floats = param(
        (-1, -1), lengths=(2,), doc="Distance of centers (y, x); by the pixels where negative."
    )
    offsets: Floats = param((0.5, 0.5), lengths=(2,), doc="Where in a pixel centers lie (y, x).")
    cases = (
        case((1, 1, 2, 3), sizes=(0.5, 0.2), ratios=(1, 2, 0.5)),
        case((2, 1, 3, 2), sizes=(0.7,), clip=True, steps=(0.3, 0.2), offsets=(0, 0.4)),
        case((1, 1, 0, 2)),
    )  # fmt: skip
    types = one_dtype(kinds="f")
    gradient = Op.without_gradient

    def check(self) -> None:
        for name in ("sizes", "ratios"):
            if not getattr(self, name):
                raise ParamError(complaint(self.name, name, "1 number or more", ()))
        if self.steps[0] * self.steps[1] < 0:
            raise self.wrong("steps", "both or neither")

    def shapes(self, s: Shapes) -> None:
        _, _, h, w = s.rank("data", 4)
        s["output"] = (1, h * w * (len(self.sizes) + len(self.ratios) - 1), 4)

    def forms(self, space: Sequence[int]) -> list[tuple[float, float]]:
        """Half of the width and of the height of each anchor around a pixel."""
        forms = [(size, sqrt(self.ratios[0])) for size in self.sizes]
        forms += [(self.sizes[0], sqrt(ratio)) for ratio in self.ratios[1:]]
        stretch = space[0] / max(space[1], 1)
        return [(size * stretch * r / 2, size / r / 2 if r else inf) for size, r in forms]

    def middles(self, space: Sequence[int]) -> list[tuple[float, float]]:
        """How far the middles of anchors lie apart, and the place of the first; y, then x."""
        parts = zip(space, self.steps, self.offsets, strict=True)
        return [(s if s > 0 else 1 / max(n, 1), o) for n, s, o in parts]

    def forward(self, data: Expr) -> Expr:
        space = data.shape[2:]
        shape = (*space, 1)
        y, x = (
            (ext.iota(shape, axis, data.dtype) + offset) * step
            for axis, (step, offset) in enumerate(self.middles(space))
        )
        forms = self.forms(space)
        corners = [(x - w, y - h, x + w, y + h) for w, h in forms]
        found = ext.concat([side for each in corners for side in each], 2)
        found = ext.reshape(found, (1, times(space) * len(forms), 4))
        return fn.minimum(fn.maximum(found, 0), 1) if self.clip else found

    def reference(self, data: Array) -> Array:
        space = data.shape[2:]
        (down, top), (right, left) = self.middles(space)
        found = [
            ((j + left) * right + m * w, (i + top) * down + m * h)
            for i, j in np.ndindex(*space) for w, h in self.forms(space) for m in (-1, 1)
        ]  # fmt: skip
        boxes = np.array(found).reshape(1, -1, 4)
        return np.clip(boxes, 0, 1) if self.clip else boxes


@op(
    "_contrib_MultiBoxTarget",
    inputs=("anchor", "label", "cls_pred"),
    outputs=("loc_target", "loc_mask", "cls_target"),
)
class MultiBoxTarget(HostOp):
    """What to learn for each of `anchor` (1, n, 4): moves, where they count, classes from 1 on.

    `label` (batch, boxes, 5 or more) has rows (class, left, top, right, bottom), and ends at a
    class of -1; `cls_pred` (batch, classes, n) tells hard negatives. Each box gets the anchor that
    overlaps it most, and every anchor that overlaps one above `overlap_threshold` learns it, too.
    """

    overlap_threshold: float = param(0.5, doc="Above it an anchor is positive; none if not > 0.")
    ignore_label: float = param(-1, doc="The class of anchors that are not learnt from.")
    negative_mining_ratio: float = param(-1, doc="Negatives for each positive; all if not > 0.")
    negative_mining_thresh: float = param(0.5, doc="Negatives overlap boxes less than this.")
    minimum_negative_samples: int = param(0, doc="Ignored, as MXNet does.")
    variances: Floats = param((0.1, 0.1, 0.2, 0.2), lengths=(4,), doc="What moves are divided by.")
    types = one_dtype(kinds="f")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s["anchor"] = (1, -1, 4)
        batch, _, width = s.rank("label", 3)
        if -1 < width < 5:
            raise s.refuse("label", "rows of 5 numbers or more", s["label"])
        n = s.need("anchor")[1]
        s["cls_pred"] = (batch, -1, n)
        s["loc_target"], s["loc_mask"], s["cls_target"] = (batch, 4 * n), (batch, 4 * n), (batch, n)

    def matches(self, anchors: Array, label: Array) -> tuple[Array, Array]:
        """For each image: the box of each anchor, or -1, and its largest overlap."""
        n, (batch, count) = len(anchors), label.shape[:2]
        sides = np.concatenate([sided(label[..., 1:5].reshape(-1, 4)), sided(anchors)], 1)
        sizes = np.logical_and.accumulate(label[..., 0] != -1, 1).sum(1).tolist()
        best, top = np.empty((batch, n), np.int64), np.empty((batch, n))
        shares, room = np.empty((count, n)), np.empty(count, np.int64)
        above = self.overlap_threshold if self.overlap_threshold > 0 else np.inf
        limits = [float(anchors.dtype.type(x)) for x in (1e-6, above)]
        run = served(match, match_single)[anchors.dtype == np.float32]
        at = [a.ctypes.data for a in (sides, shares, room, best, top)]
        for k, size in enumerate(sizes):
            places = (*at[:3], *(where + 8 * n * k for where in at[3:]))
            run(*places, sides.shape[1], k * count, size, n, *limits)
        return best, top

    def negatives(self, best: Array, top: Array, scores: Array) -> Array:
        """Which anchors are learnt to be background: the hardest ones where that is asked for."""
        free = best < 0
        if not self.negative_mining_ratio > 0:
            return free
        count = int((~free).sum() * np.float32(self.negative_mining_ratio))
        limit = float(scores.dtype.type(self.negative_mining_thresh))
        places = np.flatnonzero(free & (top < limit))
        powers = np.exp(scores - scores.max(0))
        order = np.argsort((powers[0] / powers.sum(0))[places], kind="stable")
        chosen = np.zeros(len(best), bool)
        chosen[places[order[:count]]] = True
        return chosen

    def compute(self, anchor: Array, label: Array, cls_pred: Array) -> tuple[Array, ...]:
        n = anchor.shape[1]
        moves, mask = np.zeros((2, len(label), n, 4), label.dtype)
        classes = np.full((len(label), n), self.ignore_label)
        best, top = self.matches(anchor[0], label)
        for k in np.flatnonzero((label[:, :1, 0] != -1).any(1)):
            classes[k, self.negatives(best[k], top[k], cls_pred[k])] = 0
        on = best >= 0
        images, places = np.nonzero(on)
        boxes = label[images, best[on]]
        classes[on] = boxes[:, 0] + 1
        targets = encoded(centers(boxes[:, 1:5], "corner"), centers(anchor[0], "corner")[places])
        moves[on] = targets / np.array(self.variances)
        mask[on] = 1
        return moves.reshape(len(label), 4 * n), mask.reshape(len(label), 4 * n), classes


@op("_contrib_MultiBoxDetection", inputs=("cls_prob", "loc_pred", "anchor"))
class MultiBoxDetection(HostOp):
    """Rows (class, score, left, top, right, bottom) of what was found (batch, n, 6), best first.

    `cls_prob` (batch, classes, n) has the background first, which the classes found do not count;
    `loc_pred` (batch, 4 n) moves the anchors `anchor` (1, n, 4). A class of -1 is no detection.
    """

    clip: bool = param(True, doc="Corners are kept within 0 and 1.")
    threshold: float = param(0.01, doc="Scores below it are left out.")
    background_id: int = param(0, doc="Ignored, as MXNet does: the background comes first.")
    nms_threshold: float = param(0.5, doc="Overlap of boxes to drop; in (0, 1], else none are.")
    force_suppress: bool = param(False, doc="Boxes of other classes suppress, too.")
    variances: Floats = param((0.1, 0.1, 0.2, 0.2), lengths=(4,), doc="What multiplies moves.")
    nms_topk: int = param(-1, doc="Only so many best boxes are detections; all where not > 0.")
    types = one_dtype(kinds="f")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s["anchor"] = (1, -1, 4)
        batch, classes, n = s.rank("cls_prob", 3)
        if classes in (0, 1):
            raise s.refuse("cls_prob", "a background and 1 class or more", s["cls_prob"])
        s["anchor"] = (1, n, 4)
        n = s.need("anchor")[1]
        s["cls_prob"], s["loc_pred"] = (batch, -1, n), (batch, 4 * n)
        s["output"] = (batch, n, 6)

    def compute(self, cls_prob: Array, loc_pred: Array, anchor: Array) -> Array:
        scores = cls_prob[:, 1:].max(1)
        taken = ~(scores < np.float32(self.threshold))
        images, places = np.nonzero(taken)
        moves = loc_pred.reshape(*scores.shape, 4)[taken].T.copy()
        moves *= np.array(self.variances, moves.dtype)[:, None]
        boxes = decoded(moves, centers(anchor[0], "corner").T.copy()[:, places])
        rows = np.empty((len(images), 6))
        rows[:, 0] = cls_prob[images, 1:, places].argmax(1)
        rows[:, 1] = scores[taken]
        rows[:, 2:] = (np.clip(boxes, 0, 1, out=boxes) if self.clip else boxes).T
        found = np.full((*scores.shape, 6), -1, boxes.dtype)
        end = 0
        for row, count in zip(found, taken.sum(1).tolist(), strict=True):
            row[:count] = self.suppressed(rows[end : end + count])
            end += count
        return found

    def suppressed(self, rows: Array) -> Array:
        """Rows in order; those that are suppressed get a class of -1."""
        if not 0 < self.nms_threshold <= 1:
            return rows
        count = self.nms_topk if self.nms_topk > 0 else len(rows)
        order = np.argsort(-rows[:, 1], kind="stable")[:count]
        found = np.concatenate([rows[order], rows[count:]])
        found[count:, 0] = -1
        best = found[:count]
        classes = np.zeros(len(best)) if self.force_suppress else best[:, 0]
        kept = survivors(best[:, 2:], classes, self.nms_threshold)
        names = best[kept, 0]
        best[:, 0] = -1
        best[kept, 0] = names
        return found
