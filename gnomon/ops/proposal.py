"""Proposals of regions: anchors at each pixel, moved by a network, and the best that are left."""

from __future__ import annotations

import numpy as np

from gnomon.base import GnomonError, ParamError, complaint
from gnomon.ops.boxes import survivors
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import UNKNOWN, Shapes, one_dtype
from gnomon.ops.op import op
from gnomon.ops.param import Floats, param


class Proposals(HostOp):
    """What both operators share; `images` says for how many images there are proposals."""

    rpn_pre_nms_top_n: int = param(6000, doc="Best boxes looked at; all where not > 0.")
    rpn_post_nms_top_n: int = param(300, low=1, doc="Boxes of each image.")
    threshold: float = param(0.7, doc="Above it, boxes overlap.")
    rpn_min_size: int = param(16, doc="Boxes with shorter sides get a score of -1.")
    scales: Floats = param((4, 8, 16, 32), doc="Sizes of anchors in strides.")
    ratios: Floats = param((0.5, 1, 2), low=0, doc="Height by width of anchors.")
    feature_stride: int = param(16, low=1, doc="Pixels of the image for one of `cls_prob`.")
    output_score: bool = param(False, doc="Scores are visible, too.")
    iou_loss: bool = param(False, doc="`bbox_pred` are moves of corners.")
    types = one_dtype(kinds="f")
    gradient = HostOp.without_gradient

    def check(self) -> None:
        for name in ("scales", "ratios"):
            if not getattr(self, name):
                raise ParamError(complaint(self.name, name, "1 number or more", ()))
        if min(self.ratios) <= 0:
            raise self.wrong("ratios", "numbers above 0")

    @property
    def num_visible_outputs(self) -> int:
        return 1 + self.output_score

    @property
    def count(self) -> int:
        """Anchors of a pixel."""
        return len(self.scales) * len(self.ratios)

    def images(self, batch: int) -> int:
        """For how many images of a batch there are proposals."""
        return batch

    def shapes(self, s: Shapes) -> None:
        s["cls_prob"] = (-1, 2 * self.count, -1, -1)
        s["bbox_pred"] = (-1, 4 * self.count, -1, -1)
        batch, _, h, w = s.need("cls_prob")
        s["bbox_pred"] = (batch, 4 * self.count, h, w)
        s["im_info"] = (batch, 3)
        rows = self.rpn_post_nms_top_n * (UNKNOWN if batch == UNKNOWN else self.images(batch))
        s["output"], s["score"] = (rows, 5), (rows, 1)

    def base(self) -> Array:
        """The anchors of the first pixel, as corners of whole pixels (count, 4)."""
        side = self.feature_stride
        middle = (side - 1) / 2
        found = []
        for ratio in self.ratios:
            wide = np.floor(np.sqrt(np.floor(side * side / ratio)) + 0.5)
            high = np.floor(wide * ratio + 0.5)
            for scale in self.scales:
                w, h = (wide * scale - 1) / 2, (high * scale - 1) / 2
                found.append((middle - w, middle - h, middle + w, middle + h))
        return np.array(found, np.float32)

    def anchors(self, h: int, w: int) -> Array:
        """The anchors of all pixels, (h w count, 4)."""
        y, x = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
        shift = np.stack([x, y, x, y], -1)[:, :, None] * self.feature_stride
        return (shift + self.base()).reshape(-1, 4).astype(np.float32)

    def moved(self, anchors: Array, moves: Array) -> Array:
        """Anchors moved as the network says."""
        if self.iou_loss:
            return anchors + moves
        size = anchors[:, 2:] - anchors[:, :2] + 1
        middle = moves[:, :2] * size + (anchors[:, :2] + (size - 1) / 2)
        half = (np.exp(moves[:, 2:]) * size - 1) / 2
        return np.concatenate([middle - half, middle + half], 1)

    def proposed(self, prob: Array, pred: Array, info: Array) -> tuple[Array, Array]:
        """The boxes of an image and their scores.

        Raises:
            GnomonError: the image has no size.
        """
        count, (h, w) = self.count, prob.shape[1:]
        high, wide, scale = info
        if not np.isfinite(info).all():
            raise GnomonError(complaint(self.name, "im_info", "finite numbers", info.tolist()))
        scores = prob[count:].transpose(1, 2, 0).ravel().copy()
        moves = pred.reshape(count, 4, h, w).transpose(2, 3, 0, 1).reshape(-1, 4)
        most = np.array([wide - 1, high - 1] * 2, prob.dtype)
        boxes = np.clip(self.moved(self.anchors(h, w), moves), 0, most)
        y, x = np.divmod(np.arange(len(boxes)) // count, w)
        stride = self.feature_stride
        scores[(y >= int(high / stride)) | (x >= int(wide / stride))] = -1
        least = self.rpn_min_size * scale
        small = ((boxes[:, 2:] - boxes[:, :2] + 1) < least).any(1)
        boxes[small] += np.array([-1, -1, 1, 1], prob.dtype) * (least / 2)
        scores[small] = -1
        kept = np.argsort(-scores, kind="stable")
        kept = kept[: self.rpn_pre_nms_top_n] if self.rpn_pre_nms_top_n > 0 else kept
        return boxes[kept], scores[kept]

    def best(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """As many boxes as are asked for; those that are left are repeated."""
        wanted = self.rpn_post_nms_top_n
        ends = boxes + np.array([0, 0, 1, 1], boxes.dtype)
        left = survivors(ends, np.zeros(len(boxes)), self.threshold, wanted)
        places = left[np.arange(wanted) % len(left)]
        return boxes[places], scores[places]

    def compute(self, cls_prob: Array, bbox_pred: Array, im_info: Array) -> tuple[Array, Array]:
        images, wanted = self.images(len(cls_prob)), self.rpn_post_nms_top_n
        rows = np.zeros((images, wanted, 5), cls_prob.dtype)
        found = np.zeros((images, wanted, 1), cls_prob.dtype)
        for k in range(images):
            boxes, scores = self.proposed(cls_prob[k], bbox_pred[k], im_info[k])
            if len(boxes):
                rows[k, :, 1:], found[k, :, 0] = self.best(boxes, scores)
            rows[k, :, 0] = k
        return rows.reshape(-1, 5), found.reshape(-1, 1)


@op("_contrib_Proposal", inputs=("cls_prob", "bbox_pred", "im_info"), outputs=("output", "score"))
class Proposal(Proposals):
    """The best regions (n, 5) of one image, rows (0, x0, y0, x1, y1), and their scores (n, 1).

    `cls_prob` (1, 2 anchors, h, w) has scores of the background first, `bbox_pred` (1, 4 anchors,
    h, w) moves anchors, `im_info` (1, 3) is height, width and scale of the image. (Ren et al.,
    Faster R-CNN, 2015.)
    """

    def images(self, batch: int) -> int:
        return 1

    def shapes(self, s: Shapes) -> None:
        s["cls_prob"] = (1, -1, -1, -1)
        super().shapes(s)


@op(
    "_contrib_MultiProposal",
    inputs=("cls_prob", "bbox_pred", "im_info"),
    outputs=("output", "score"),
)
class MultiProposal(Proposals):
    """As `Proposal`, for each image of a batch in turn: rows (image, x0, y0, x1, y1)."""
