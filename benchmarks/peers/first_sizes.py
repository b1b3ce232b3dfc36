"""Steps of networks, and others, on data of many sizes: `first_sizes.py PACKAGE ROW COUNT`.

Prints milliseconds of processor time, medians: of a size's first step, of its fourth where all
sizes take turns, and of one that follows others of the same size.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import gluon_nets
import numpy as np
import symbols

mx = gluon_nets.mx
ROW, COUNT = sys.argv[2], int(sys.argv[3])
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


def trained(net: Any, hybrid: bool, *shape: int) -> Steps:
    """A block's step by `Trainer`; the size stands for -1 in the shape of a batch."""
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    net(arrays(*(3 if n < 0 else n for n in shape)))
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", RATE)

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


def images() -> Steps:
    """Images of many sizes, normalised, and their channels brought to the front."""
    mean, deviation = mx.nd.array([0.485, 0.456, 0.406]), mx.nd.array([0.229, 0.224, 0.225])

    def of_size(n: int) -> Step:
        pixels = mx.nd.array(DRAW.randint(0, 256, (n, 2 * n + 3, 3)))

        def step() -> None:
            found = mx.nd.transpose((pixels / 255 - mean) / deviation, axes=(2, 0, 1))
            found.wait_to_read()

        return step

    return of_size


ROWS: dict[str, Callable[[], Steps]] = {
    "module": module,
    "lstm": lstm,
    "block": lambda: trained(gluon_nets.lenet(), True, -1, 1, 28, 28),
    "attention": lambda: trained(gluon_nets.Layer(), True, 4, -1, 64),
    "images": images,
    "recorded": lambda: trained(gluon_nets.Layer(), False, 4, -1, 64),
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
