"""Learn to find squares and discs, from a record file of images and boxes.

    python examples/detect_records.py --epochs 6

`ImageDetRecordIter` mirrors, pads and crops images together with their boxes; anchors, targets and
detections are `MultiBoxPrior`, `MultiBoxTarget` and `MultiBoxDetection`, as in SSD.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import gnomon as mx
from gnomon import autograd, gluon
from gnomon.gluon import nn

SIDE, CLASSES, HEAD = 48, 2, 6  # numbers of a label before its objects
SIZES, RATIOS = (0.35, 0.5, 0.7), (1,)
ANCHORS = len(SIZES) + len(RATIOS) - 1


def sample(rng: np.random.Generator) -> tuple[np.ndarray, list[float]]:
    """An image with a square (class 0) or a disc (class 1), and its label."""
    image = rng.integers(0, 60, (SIDE, SIDE, 3)).astype(np.uint8)
    kind, half = int(rng.integers(0, 2)), int(rng.integers(8, 14))
    x, y = (int(v) for v in rng.integers(half, SIDE - half, 2))
    colour = [int(v) for v in rng.integers(150, 256, 3)]
    away = np.abs(np.indices((SIDE, SIDE)) - np.array([y, x]).reshape(2, 1, 1))
    image[(away.max(0) if kind == 0 else np.hypot(*away)) <= half] = colour
    box = [(x - half) / SIDE, (y - half) / SIDE, (x + half) / SIDE, (y + half) / SIDE]
    return image, [2, 5, kind, *box]


def pack(path: str, count: int, seed: int) -> None:
    """Write a record file of samples."""
    rng = np.random.default_rng(seed)
    with mx.recordio.MXRecordIO(path, "w") as out:
        for k in range(count):
            image, label = sample(rng)
            out.write(mx.recordio.pack_img((0, label, k, 0), image, 3, ".png"))


of_class, of_box = gluon.loss.SoftmaxCrossEntropyLoss(axis=1), gluon.loss.HuberLoss()


class Detector(gluon.HybridBlock):
    """A few convolutions, and for each anchor scores of the classes and a box."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.body = nn.HybridSequential()
            for filters in (16, 32, 32):
                self.body.add(nn.Conv2D(filters, 3, padding=1), nn.BatchNorm(),
                              nn.Activation("relu"), nn.MaxPool2D())  # fmt: skip
            self.scores = nn.Conv2D(ANCHORS * (CLASSES + 1), 3, padding=1)
            self.boxes = nn.Conv2D(ANCHORS * 4, 3, padding=1)

    def hybrid_forward(self, F, x):
        """Anchors (1, n, 4), scores (batch, classes + 1, n) and boxes (batch, 4 n)."""
        x = self.body(x)
        anchors = F.contrib.MultiBoxPrior(x, sizes=SIZES, ratios=RATIOS)
        scores = F.transpose(self.scores(x), axes=(0, 2, 3, 1)).reshape((0, -1, CLASSES + 1))
        boxes = F.flatten(F.transpose(self.boxes(x), axes=(0, 2, 3, 1)))
        return anchors, F.transpose(scores, axes=(0, 2, 1)), boxes


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of two boxes."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


def learn(net: Detector, trainer: gluon.Trainer, batch: mx.io.DataBatch) -> None:
    """A step: anchors at objects learn classes and boxes, some others that they see none."""
    labels = batch.label[0][:, HEAD:].reshape((0, -1, 5))
    with autograd.record():
        anchors, scores, boxes = net(batch.data[0])
        with autograd.pause():
            goal, mask, kinds = mx.nd.contrib.MultiBoxTarget(
                anchors, labels, scores, overlap_threshold=0.5, negative_mining_ratio=3,
                negative_mining_thresh=0.5,
            )  # fmt: skip
        loss = of_class(scores, mx.nd.maximum(kinds, 0), kinds >= 0)
        loss = loss + 20 * of_box(boxes * mask, goal * mask)
    loss.backward()
    trainer.step(len(batch.data[0]))


def evaluate(net: Detector, batches: mx.io.DataIter) -> float:
    """The share of images whose best detection has the right class and half of the box."""
    right = total = 0
    batches.reset()
    for batch in batches:
        anchors, scores, boxes = net(batch.data[0])
        found = mx.nd.contrib.MultiBoxDetection(mx.nd.softmax(scores, axis=1), boxes, anchors)
        labels = batch.label[0].asnumpy()[:, HEAD:].reshape(len(found), -1, 5)
        kept = len(found) - batch.pad
        for best, truth in zip(found.asnumpy()[:kept, 0], labels[:kept, 0], strict=True):
            right += best[0] == truth[0] and overlap(best[2:], truth[1:]) > 0.5
        total += kept
    return right / total


def main() -> None:
    """Pack, train, and print the share of objects that are found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--images", type=int, default=600)
    options = parser.parse_args()
    mx.random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        pack(f"{folder}/train.rec", options.images, 1)
        pack(f"{folder}/test.rec", 100, 2)
        shared = {"data_shape": (3, SIDE, SIDE), "batch_size": 20, "preprocess_threads": 2,
                  "mean_r": 40, "mean_g": 40, "mean_b": 40, "scale": 1 / 80}  # fmt: skip
        train = mx.io.ImageDetRecordIter(
            path_imgrec=f"{folder}/train.rec", shuffle=True, seed=1, rand_mirror_prob=0.5,
            rand_crop_prob=0.5, min_crop_scales=0.7, min_crop_object_coverages=0.8,
            min_crop_aspect_ratios=0.8, max_crop_aspect_ratios=1.25, **shared,
        )  # fmt: skip
        test = mx.io.ImageDetRecordIter(path_imgrec=f"{folder}/test.rec", **shared)
        net = Detector()
        net.initialize(mx.init.Xavier())
        net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
        for epoch in range(options.epochs):
            train.reset()
            for batch in train:
                learn(net, trainer, batch)
            print(f"epoch {epoch + 1}: found {evaluate(net, test):.2f}")


if __name__ == "__main__":
    main()
