"""Train a single-shot detector (Liu et al., arXiv:1512.02325) to find figures in images.

    python examples/detection.py --steps 120

The images are made here: a filled square or a ring on noise, 32 by 32 pixels.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx
from gnomon.gluon import HybridBlock, Trainer, nn

SIZE, CLASSES = 32, 2
SIZES, RATIOS = [[0.3, 0.4], [0.5, 0.6]], [1.0]  # of boxes, at each of two scales


def batch(rng: np.random.Generator, count: int) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """Images (n, 1, 32, 32), and for each its figure: (n, 1, 5), class and corners from 0 to 1."""
    images = rng.normal(0, 0.2, (count, 1, SIZE, SIZE))
    labels = np.zeros((count, 1, 5))
    for image, label in zip(images[:, 0], labels[:, 0], strict=True):
        kind, side = rng.integers(CLASSES), rng.integers(9, 20)
        top, left = rng.integers(0, SIZE - side, 2)
        image[top : top + side, left : left + side] += 1
        if kind:
            image[top + 3 : top + side - 3, left + 3 : left + side - 3] -= 1
        label[:] = kind, *np.array([left, top, left + side, top + side]) / SIZE
    return mx.nd.array(images), mx.nd.array(labels)


class Detector(HybridBlock):
    """Images to boxes, scores of classes at each box, and how each box is to be moved."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        count = len(SIZES[0]) + len(RATIOS) - 1
        with self.name_scope():
            self.stages, self.scores, self.moves = (nn.HybridSequential() for _ in range(3))
            for channels in ((16, 32), (64,)):
                stage = nn.HybridSequential()
                for number in channels:
                    stage.add(nn.Conv2D(number, 3, padding=1), nn.BatchNorm())
                    stage.add(nn.Activation("relu"), nn.MaxPool2D())
                self.stages.add(stage)
                self.scores.add(nn.Conv2D(count * (CLASSES + 1), 3, padding=1))
                self.moves.add(nn.Conv2D(count * 4, 3, padding=1))

    def hybrid_forward(self, F, x):
        boxes, scores, moves = [], [], []
        heads = zip(self.stages, self.scores, self.moves, SIZES, strict=True)
        for stage, score, move, sizes in heads:
            x = stage(x)
            boxes.append(F.contrib.MultiBoxPrior(x, sizes=sizes, ratios=RATIOS))
            scores.append(score(x).transpose((0, 2, 3, 1)).reshape((0, -1, CLASSES + 1)))
            moves.append(move(x).transpose((0, 2, 3, 1)).flatten())
        return F.concat(*boxes, dim=1), F.concat(*scores, dim=1), F.concat(*moves, dim=1)


def overlaps(net: Detector, images: mx.nd.NDArray, labels: mx.nd.NDArray) -> tuple[float, float]:
    """The part of the best boxes whose class is right, and their mean overlap with the figure."""
    boxes, scores, moves = net(images)
    chances = scores.softmax(axis=2).transpose((0, 2, 1))
    found = mx.nd.contrib.MultiBoxDetection(chances, moves, boxes, nms_threshold=0.5)
    best = found[:, 0].asnumpy()  # class, score, corners; the best one first
    truth = labels[:, 0].asnumpy()
    pairs = zip(mx.nd.array(best[:, None, 2:]), mx.nd.array(truth[:, None, 1:]), strict=True)
    overlap = [mx.nd.contrib.box_iou(a, b, format="corner").asscalar() for a, b in pairs]
    return (best[:, 0] == truth[:, 0]).mean(), np.mean(overlap)


def main() -> None:
    """Train, and print how well figures of new images are found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120)
    steps = parser.parse_args().steps
    mx.random.seed(0)
    rng = np.random.default_rng(0)
    net = Detector()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    class_loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})
    held_out = batch(np.random.default_rng(1), 64)
    for step in range(1, steps + 1):
        x, y = batch(rng, 32)
        with mx.autograd.record():
            boxes, scores, moves = net(x)
            with mx.autograd.pause():
                chances = scores.transpose((0, 2, 1))
                wanted, near, classes = mx.nd.contrib.MultiBoxTarget(
                    boxes, y, chances, negative_mining_ratio=3, negative_mining_thresh=0.5
                )
            counts = mx.nd.expand_dims(classes >= 0, 2)  # -1: passed over
            loss = class_loss(scores, classes.clip(0, CLASSES), counts).mean() * 10
            loss = loss + (mx.nd.smooth_l1((moves - wanted) * near, scalar=1.0)).sum(axis=1).mean()
        loss.backward()
        trainer.step(1)
        if step % 40 == 0 or step == steps:
            right, overlap = overlaps(net, *held_out)
            print(f"step {step}: class {right:.3f}, overlap {overlap:.3f}")


if __name__ == "__main__":
    main()
