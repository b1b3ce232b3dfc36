"""Steps of networks on batches of many sizes: `first_sizes.py PACKAGE ROW COUNT`.

Prints milliseconds of processor time, medians: of a size's first step, of its fourth where all
sizes take turns, and of one that follows others of the same size.
"""

from __future__ import annotations

import importlib
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import symbols

PACKAGE, ROW, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
mx = importlib.import_module(PACKAGE)
gluon = importlib.import_module(f"{PACKAGE}.gluon")
nn = gluon.nn
RATE = {"learning_rate": 0.01}
DRAW = np.random.RandomState(0)
Step = Callable[[], Any]
Steps = Callable[[int], Step]


def arrays(*shape: int) -> Any:
    return mx.nd.array(DRAW.standard_normal(shape))


def module() -> Steps:
    """LeNet by `Module`, which is bound for another batch size as a batch comes."""
    net = mx.sym.SoftmaxOutput(symbols.lenet(mx, 0), name="softmax")
    made = mx.mod.Module(net)
    made.bind([("data", (32, 1, 28, 28))], [("softmax_label", (32,))])
    made.init_params(mx.init.Xavier())
    made.init_optimizer(optimizer_params=RATE)

    def of_size(n: int) -> Step:
        batch = mx.io.DataBatch([arrays(n, 1, 28, 28)], [mx.nd.zeros((n,))])

        def step() -> None:
            made.forward_backward(batch)
            made.update()
            made.get_outputs()[0].wait_to_read()

        return step

    return of_size


def lstm() -> Steps:
    """Two layers, bound anew for each sequence, which is what is timed, with one pass each way."""

    def of_size(n: int) -> Step:
        x = symbols.recurrent(mx, mx.sym.Variable("data"), 8)
        net = mx.sym.MakeLoss(mx.sym.sum(x))
        given = arrays(n, 8, 200)

        def step() -> None:
            bound = net.simple_bind(mx.cpu(), data=(n, 8, 200))
            bound.forward(is_train=True, data=given)
            bound.backward()
            bound.grad_dict["rnn_parameters"].wait_to_read()

        return step

    return of_size


def lenet() -> Any:
    net = nn.HybridSequential()
    for width in (20, 50):
        net.add(nn.Conv2D(width, 5, activation="tanh"), nn.MaxPool2D())
    net.add(nn.Dense(500, activation="tanh"), nn.Dense(10))
    return net


class Attention(gluon.HybridBlock):  # type: ignore[misc,name-defined]
    """Four heads over 64 numbers, then two dense layers; normalized before each."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.first, self.second = (nn.LayerNorm(in_channels=64) for _ in range(2))
            sizes = (192, 64), (64, 64), (256, 64), (64, 256)
            layers = [nn.Dense(n, flatten=False, in_units=k) for n, k in sizes]
            self.parts, self.joined, self.wide, self.narrow = layers

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        heads = F.transpose(F.reshape(self.parts(self.first(x)), (0, 0, 3, 4, 16)), (2, 0, 3, 1, 4))
        parts = F.split(F.reshape(heads, (3, -3, 0, 0)), 3, axis=0, squeeze_axis=True)
        query, key, value = parts
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) * 0.25)
        found = F.reshape(F.batch_dot(weights, value), (-4, -1, 4, 0, 0))
        x = x + self.joined(F.reshape(F.transpose(found, (0, 2, 1, 3)), (0, 0, -3)))
        return x + self.narrow(F.relu(self.wide(self.second(x))))


def trained(net: Any, hybrid: bool, *shape: int) -> Steps:
    """A block's step by `Trainer`; the size stands for -1 in the shape of a batch."""
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    net(arrays(*(3 if n < 0 else n for n in shape)))
    trainer = gluon.Trainer(net.collect_params(), "sgd", RATE)

    def of_size(size: int) -> Step:
        x = arrays(*(size if n < 0 else n for n in shape))

        def step() -> None:
            with mx.autograd.record():
                y = net(x)
                loss = (y * y).mean()
            loss.backward()
            trainer.step(1)
            loss.wait_to_read()
            mx.nd.waitall()

        return step

    return of_size


ROWS: dict[str, Callable[[], Steps]] = {
    "module": module,
    "lstm": lstm,
    "block": lambda: trained(lenet(), True, -1, 1, 28, 28),
    "attention": lambda: trained(Attention(), True, 4, -1, 64),
    "recorded": lambda: trained(Attention(), False, 4, -1, 64),
}


def taken(steps: Iterable[Step]) -> list[float]:
    found = []
    for step in steps:
        start = time.process_time()
        step()
        found.append((time.process_time() - start) * 1e3)
    return found


def main() -> None:
    of_size = ROWS[ROW]()
    sizes = random.Random(5).sample(range(5, 120 + COUNT), COUNT + 5)
    known = [of_size(n) for n in sizes[:5]]
    for step in known * 3:
        step()
    mx.nd.waitall()
    steps = [of_size(n) for n in sizes[5:]]
    turns = [taken(steps) for _ in range(4)]
    fixed = [taken([step] * 6)[-1] for step in steps[:: max(1, COUNT // 20)]]
    print(*(statistics.median(each) for each in (turns[0], turns[-1], fixed)))


if __name__ == "__main__":
    main()
