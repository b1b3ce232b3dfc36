"""Train a small convolutional network on digits in several processes.

    gnomon launch -n 2 python examples/distributed_mnist.py --kv-store dist_sync --epochs 3
    gnomon launch -n 2 python examples/distributed_mnist.py --folder /tmp/digits --every 20
    gnomon launch -n 4 python examples/distributed_mnist.py --folder /tmp/digits --every 20 --resume

The data are the 1,797 digits of 8 by 8 pixels that the package carries. Every process takes its
share of each batch, so that the result is the same, but for rounding, whatever their number.
Rank 0 writes a checkpoint every so many steps; `--resume` goes on from the last one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from digits import divided

import gnomon as mx
from gnomon.gluon import Trainer, nn
from gnomon.gluon.loss import SoftmaxCrossEntropyLoss


def network() -> nn.HybridSequential:
    """Two convolutions and two dense layers; nothing in it is random."""
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(
            nn.Conv2D(16, 3, padding=1, activation="relu"),
            nn.MaxPool2D(),
            nn.Conv2D(32, 3, padding=1, activation="relu"),
            nn.MaxPool2D(),
            nn.Dense(64, activation="relu"),
            nn.Dense(10),
        )
    return net


def shares(count: int, epoch: int, batch: int, store: Any) -> Iterator[np.ndarray]:
    """The numbers of this process's pictures in each batch of an epoch, in the epoch's order."""
    order = np.random.default_rng(epoch).permutation(count)
    for start in range(0, count - batch + 1, batch):
        yield np.array_split(order[start : start + batch], store.num_workers)[store.rank]


class Checkpoints:
    """Files of a folder: weights and states of a step, and which step is the last whole one."""

    def __init__(self, folder: Path | None, every: int, rank: int) -> None:
        self._folder, self._every, self._rank = folder, every, rank

    def save(self, step: int, net: nn.HybridSequential, trainer: Trainer) -> None:
        """Write the step's files, if it is one of those to keep; the note of it comes last."""
        if self._folder is None or step % self._every:
            return
        if self._rank == 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            net.save_parameters(str(self._folder / f"{step}.params"))
        trainer.save_states(str(self._folder / f"{step}.states"))  # all ranks have a part of them
        if self._rank == 0:
            note = self._folder / "last.new"
            note.write_text(json.dumps({"step": step}))
            note.replace(self._folder / "last")  # at once, or not at all

    def resume(self, net: nn.HybridSequential, trainer: Trainer) -> int:
        """Take over the last checkpoint; gives its step, 0 where there is none."""
        if self._folder is None or not (self._folder / "last").exists():
            return 0
        step: int = json.loads((self._folder / "last").read_text())["step"]
        net.load_parameters(str(self._folder / f"{step}.params"))
        trainer.load_states(str(self._folder / f"{step}.states"))
        return step


def accuracy(net: nn.HybridSequential, pictures: np.ndarray, labels: np.ndarray) -> float:
    """The part of the pictures that the network names rightly."""
    return float((net(mx.nd.array(pictures)).asnumpy().argmax(1) == labels).mean())


def main() -> None:
    """Train, and print the accuracy on pictures that were held back after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kv-store", default="dist_sync", help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=60, help="of all processes together")
    parser.add_argument("--folder", type=Path, help="where checkpoints go")
    parser.add_argument("--every", type=int, default=25, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    given = parser.parse_args()

    mx.random.seed(1)
    store = mx.kv.create(given.kv_store)
    (pictures, labels), held_out = divided()
    net, loss = network(), SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.array(pictures[:1]))
    settings = {"learning_rate": 0.005}
    trainer = Trainer(net.collect_params(), "adam", settings, kvstore=store)
    checkpoints = Checkpoints(given.folder, given.every, store.rank)
    done = checkpoints.resume(net, trainer) if given.resume else 0
    step = 0
    for epoch in range(given.epochs):
        for mine in shares(len(labels), epoch, given.batch_size, store):
            step += 1
            if step <= done:
                continue
            with mx.autograd.record():
                value = loss(net(mx.nd.array(pictures[mine])), mx.nd.array(labels[mine]))
            value.backward()
            trainer.step(given.batch_size)
            checkpoints.save(step, net, trainer)
        if store.rank == 0 and step > done:
            right = accuracy(net, *held_out)
            print(f"epoch {epoch + 1}: accuracy {right:.4f}", flush=True)


if __name__ == "__main__":
    main()
