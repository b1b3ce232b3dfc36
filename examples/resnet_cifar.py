"""Train a residual network on small colour images, fed by a DataLoader with transforms.

    python examples/resnet_cifar.py --epochs 4
    python examples/resnet_cifar.py --folder ~/cifar10 --epochs 60    # CIFAR-10's files

Without a folder the images are made here: a figure in one of four forms, in a random colour, at a
random place on noise.
"""

from __future__ import annotations

import argparse

import numpy as np

import gnomon as mx
from gnomon.gluon.data import ArrayDataset, DataLoader, Dataset
from gnomon.gluon.data.vision import CIFAR10, transforms
from gnomon.gluon.model_zoo.vision import BasicBlockV1, ResNetV1

SIZE = 32


def drawn(count: int, seed: int) -> Dataset:
    """Images (32, 32, 3) in bytes, each with the number of its figure."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-5:6, -5:6]
    figures = [abs(x) + abs(y) < 6, x**2 + y**2 < 26, abs(x * y) < 3, abs(x - y) < 3]
    images = rng.integers(0, 128, (count, SIZE, SIZE, 3), np.uint8)
    labels = rng.integers(0, 4, count)
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, SIZE - 11, 2)
        part = image[top : top + 11, left : left + 11]
        part[figures[label]] = rng.integers(128, 256, 3)
    return ArrayDataset(mx.nd.array(images, dtype="uint8"), labels.astype(np.int32))


def main() -> None:
    """Train, and print the accuracy on images that were held back after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--images", type=int, default=2000, help="how many to draw")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", help="with CIFAR-10's files")
    options = parser.parse_args()
    mx.random.seed(0)
    np.random.seed(0)
    if options.folder:
        train, test = (CIFAR10(options.folder, train=part) for part in (True, False))
    else:
        train, test = drawn(options.images, 0), drawn(200, 1)
    change = [transforms.ToTensor(), transforms.Normalize(0.4, 0.25)]
    mirror = [transforms.RandomFlipLeftRight()] if options.folder else []
    how = {"batch_size": 50, "num_workers": options.workers}
    loader = DataLoader(
        train.transform_first(transforms.Compose(mirror + change)), shuffle=True, **how
    )
    held_out = DataLoader(test.transform_first(transforms.Compose(change)), **how)

    net = ResNetV1(BasicBlockV1, [1, 1, 1], [8, 8, 16, 32], classes=10, thumbnail=True)
    net.initialize(mx.init.MSRAPrelu())
    net.hybridize()
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    steps = options.epochs * len(loader)
    schedule = mx.lr_scheduler.CosineScheduler(steps, base_lr=0.05, warmup_steps=steps // 8)
    trainer = mx.gluon.Trainer(
        net.collect_params(), "nag", {"momentum": 0.9, "wd": 1e-4, "lr_scheduler": schedule}
    )
    for epoch in range(options.epochs):
        for x, y in loader:
            with mx.autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(len(x))
        metric = mx.metric.Accuracy()
        for x, y in held_out:
            metric.update(y, net(x))
        print(f"epoch {epoch}: accuracy {metric.get()[1]:.3f}")


if __name__ == "__main__":
    main()
