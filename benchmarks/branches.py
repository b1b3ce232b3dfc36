"""Networks with branches, which run side by side or one after the other: `benchmarks/branches.py`.

Both are bound in one process and run turn by turn. The table gives the medians of a pass one after
the other, the median ratio of side by side to that, and the bytes that both plan.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import measure

import gnomon as mx
from gnomon.graph.tasks import regions

sym = mx.sym
NEVER = 1 << 60


def conv(x: Any, filters: int, size: int = 1) -> Any:
    """A convolution of the same size, and what of it is positive."""
    pad = (size // 2, size // 2)
    x = sym.Convolution(x, num_filter=filters, kernel=(size, size), pad=pad)
    return sym.Activation(x, act_type="relu")


def inception(x: Any) -> Any:
    """Two modules of GoogLeNet."""
    for _ in range(2):
        pooled = sym.Pooling(x, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type="max")
        wide = conv(conv(x, 96), 128, 3), conv(conv(x, 16), 32, 5)
        x = sym.Concat(conv(x, 64), *wide, conv(pooled, 32), dim=1)
    return x


def detector(x: Any) -> Any:
    """Three scales, each with two heads."""
    heads = []
    for _ in range(3):
        x = conv(x, 128, 3)
        how = {"kernel": (3, 3), "pad": (1, 1)}
        heads += [sym.Convolution(x, num_filter=filters, **how) for filters in (24, 16)]
        x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    return sym.Group(heads)


def towers(width: int) -> Callable[[Any], Any]:
    """Two towers of 8 layers."""

    def make(x: Any) -> Any:
        ends = []
        for _ in range(2):
            y = x
            for _ in range(8):
                y = sym.Activation(sym.FullyConnected(y, num_hidden=width), act_type="relu")
            ends.append(y)
        return ends[0] + ends[1]

    return make


def attention(x: Any) -> Any:
    """Two layers of attention with one head each."""
    for _ in range(2):
        q, k, v = (sym.FullyConnected(x, num_hidden=128, no_bias=True) for _ in range(3))
        weights = sym.softmax(sym.dot(q, k, transpose_b=True) * 128**-0.5)
        x = x + sym.FullyConnected(sym.dot(weights, v), num_hidden=128, no_bias=True)
    return x


ROWS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "two Inception modules, 28x28x64, batch 1": (inception, (1, 64, 28, 28)),
    "heads of an SSD, 10x10x128, batch 1": (detector, (1, 128, 10, 10)),
    "attention of 32 by 128": (attention, (32, 128)),
    "two towers of 64, batch 16": (towers(64), (16, 64)),
    "two towers of 128, batch 32": (towers(128), (32, 128)),
    "two towers of 256, batch 64": (towers(256), (64, 256)),
}


def bound(make: Callable[[Any], Any], shape: tuple[int, ...], train: bool, least: int) -> Any:
    """A network on random arrays; regions are those that save more than `least`."""
    regions.LEAST = least
    executor = make(sym.Variable("data")).simple_bind(
        mx.cpu(), "write" if train else "null", data=shape
    )
    for array in executor.arg_arrays:
        array[:] = mx.nd.random.normal(0, 0.05, shape=array.shape)
    return executor


def step(executor: Any, train: bool) -> Callable[[], None]:
    """A pass of an executor, or both."""
    grads = [mx.nd.ones(o.shape) for o in executor.outputs]

    def run() -> None:
        executor.forward(is_train=train)
        if train:
            executor.backward(grads)

    return run


def seconds(run: Callable[[], None], times: int) -> float:
    """The time of one of so many runs."""
    begin = time.perf_counter()
    for _ in range(times):
        run()
    mx.nd.waitall()
    return (time.perf_counter() - begin) / times


def row(title: str, train: bool, options: argparse.Namespace) -> str:
    """A line of the table."""
    make, shape = ROWS[title]
    usual = regions.LEAST
    executors = [bound(make, shape, train, least) for least in (NEVER, usual)]
    regions.LEAST = usual
    runs = [step(e, train) for e in executors]
    for run in runs:
        seconds(run, 3)
    times = max(1, round(options.block / seconds(runs[0], 3)))
    turns = []
    for turn in range(options.rounds):
        order = (0, 1) if turn % 2 else (1, 0)
        taken = {k: seconds(runs[k], times) for k in order}
        turns.append((taken[0], taken[1]))
    alone = measure.readable(statistics.median(a for a, _ in turns))
    ratio = statistics.median(b / a for a, b in turns)
    planned = [e.memory_plan(train).total >> 10 for e in executors]
    kind = "training" if train else "predicting"
    return f"| {title}, {kind} | {alone} | {ratio:.2f} | {planned[0]} KB, {planned[1]} KB |"


def main() -> None:
    """Time and print."""
    options = measure.arguments((__doc__ or "").splitlines()[0]).parse_args()
    measure.interpreters(options)
    mx.config.set("num_threads", options.threads)
    print("| network | one after the other | side by side | planned |\n|---|---|---|---|")
    for title in measure.chosen(list(ROWS), options.rows):
        for train in (False, True):
            print(row(title, train, options), flush=True)


if __name__ == "__main__":
    main()
