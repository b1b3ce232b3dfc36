"""Worker: work behind the program; `stream_work.py gnomon`, `stream_work.py off` or `... mxnet`.

Each step gives the seconds that count: of a push alone, or of all that is done.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

from protocol import serve

Measured = Callable[[], float]

SECONDS = 0.1  # of work, and of what Python does beside it
SIDE, BATCH, WIDTH = 1500, 512, 1024


def pushes(mx: Any, push: Callable[[], Any]) -> Measured:
    """The time of a call whose work is waited for outside."""

    def step() -> float:
        begin = time.perf_counter()
        push()
        end = time.perf_counter()
        mx.nd.waitall()
        return end - begin

    return step


def whole(mx: Any, work: Callable[[], object]) -> Measured:
    """The time of some work and the wait for it."""

    def step() -> float:
        begin = time.perf_counter()
        work()
        mx.nd.waitall()
        return time.perf_counter() - begin

    return step


def compute() -> None:
    """Let Python compute for a while."""
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        sum(range(100))


def network(mx: Any) -> Any:
    """A bound network of three layers."""
    x = mx.sym.Variable("data")
    for _ in range(3):
        x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=WIDTH), act_type="relu")
    return mx.sym.SoftmaxOutput(x, name="softmax").simple_bind(mx.cpu(), data=(BATCH, WIDTH))


def beside(mx: Any, dot: Callable[[], Any], other: Callable[[], object]) -> Measured:
    """Products that take as long as what Python does meanwhile."""
    seconds = min(whole(mx, dot)() for _ in range(5))
    count = max(1, round(SECONDS / seconds))

    def work() -> None:
        for _ in range(count):
            dot()
        other()

    return whole(mx, work)


def measured(mx: Any, row: str) -> Measured:
    """What a row measures."""
    nd = mx.nd
    a, b = nd.ones((SIDE, SIDE)), nd.ones((SIDE, SIDE))
    x, weight, bias = nd.ones((16, 32, 56, 56)), nd.ones((64, 32, 3, 3)), nd.ones((64,))
    small = nd.ones((10,))
    if row.endswith(("forward", "backward")):
        net = network(mx)
        if row == "push forward":
            return pushes(mx, lambda: net.forward(is_train=True))

        def backward() -> float:
            net.forward(is_train=True)
            mx.nd.waitall()
            return pushes(mx, net.backward)()

        return backward

    def dot() -> Any:
        return nd.dot(a, b)

    def convolve() -> Any:
        return nd.Convolution(x, weight, bias, kernel=(3, 3), num_filter=64)

    def wait_small() -> float:
        begin = time.perf_counter()
        (small + 1).wait_to_read()
        return time.perf_counter() - begin

    rows: dict[str, Callable[[], Measured]] = {
        "push dot": lambda: pushes(mx, dot),
        "push Convolution": lambda: pushes(mx, convolve),
        "dot": lambda: whole(mx, dot),
        "100 ms of dot": lambda: beside(mx, dot, lambda: None),
        "and a sleep": lambda: beside(mx, dot, lambda: time.sleep(SECONDS)),
        "and Python": lambda: beside(mx, dot, compute),
        "wait a+1": lambda: wait_small,
    }
    return rows[row]()


def sums(step: Any, wait: Any, steps: int) -> float:
    """The seconds that so many steps give."""
    return float(sum(step() for _ in range(steps)))


def main() -> None:
    """Serve."""
    kind = sys.argv[1]
    mx: Any = importlib.import_module("mxnet" if kind == "mxnet" else "gnomon")
    if kind == "off":
        mx.config.set("streams", False)

    def setup(row: str) -> tuple[Measured, Callable[[], object], dict[str, Any]]:
        step = measured(mx, row)
        step()
        return step, mx.nd.waitall, {}

    name = "gnomon" if kind == "off" else kind
    serve(f"{name} {mx.__version__}", setup, sums)


if __name__ == "__main__":
    main()
