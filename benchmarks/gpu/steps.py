"""Python of a bound network's step on a GPU, without one: the simulated driver throws work away.

    python benchmarks/gpu/steps.py
    python benchmarks/gpu/steps.py --networks lenet --batch 64

For each network: microseconds of Python for a step of training and for predicting without a batch
to copy, the calls of the driver that give a step's work, and the bytes that a step works in beside
the bound arrays. What is computed is garbage.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from networks import NETWORKS

import gnomon as mx
from gnomon import config, nd
from gnomon.runtime.devices.cuda import simulated

ROUNDS, RUNS = 7, 50
calls: Counter[str] = Counter()


def _thrown(
    self: Any, stream: Any, name: str, run: Any, ready: Callable[[], bool] = lambda: True
) -> Any:
    """Take work for a stream, and forget it."""
    if stream.capture is not None:
        stream.capture.pieces.append(simulated.Piece(name, run))
    calls[name] += stream.capture is None
    work = simulated.Work(name, stream.number, 0, {})
    return simulated.Task(work, lambda: None, ready)


def _launched(self: Any, graph: int, stream: int) -> None:
    """Take the launch of a graph, and forget it."""
    calls["graph"] += 1


def microseconds(work: Callable[[], object]) -> float:
    """The least time of this process that some work takes, of a few rounds."""
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(RUNS):
            work()
        found.append((time.process_time() - begin) / RUNS)
    return 1e6 * min(found)


def row(name: str, batch: int) -> str:
    """What is to be known of a network."""
    symbol, shape = NETWORKS[name]()
    shapes = (batch, *shape), (batch,)
    module = mx.mod.Module(symbol, context=mx.gpu(0))
    module.bind([("data", shapes[0])], [("softmax_label", shapes[1])])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(kvstore=None, optimizer_params={"momentum": 0.9})
    data, label = (nd.ones(s, ctx=mx.gpu(0)) for s in shapes)
    given = mx.io.DataBatch([data], [label])
    bound = module._exec_group.execs[0]

    def step() -> None:
        module.forward_backward(given)
        module.update()

    for _ in range(3):
        step()
    nd.waitall()  # for weights whose first values come behind the program, steps wait as well
    calls.clear()
    step()
    nd.waitall()
    count, nbytes = sum(calls.values()), bound.memory_plan().total
    times = microseconds(step), microseconds(bound.forward)
    return f"| {name} | {times[0]:.0f} | {times[1]:.1f} | {count} | {nbytes:,} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    config.set("gpu", "simulated")
    simulated.Simulated.give = _thrown  # type: ignore[method-assign]
    simulated.Simulated.launch_graph = _launched  # type: ignore[method-assign]
    print("| network | us of a step | us of predicting | driver's calls | bytes |")
    print("|---|---|---|---|---|")
    for name in options.networks:
        print(row(name, options.batch), flush=True)


if __name__ == "__main__":
    main()
