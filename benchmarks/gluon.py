"""A step by Gluon: gnomon, hybridized and not, beside MXNet and PyTorch, turn by turn.

    python benchmarks/gluon.py --peer mxnet=ORACLE/bin/python
    python benchmarks/gluon.py --cost

A step is `record`, forward, loss, `backward` and `Trainer.step` with momentum; rows with `predict`
are forward and loss alone. All start from the same parameters, and their losses after a few steps
are compared before anything is timed. The table gives each median and, in brackets, the median
ratio to gnomon's hybridized step of the same round. Each contender has made 25 steps before.

`--cost` measures what Python costs in a hybridized step of twenty small layers: the processor time
of a step of the thread, less that of its native programs run alone.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
from peers.protocol import PeerError, start

PEERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "hybrid"),
    "gnomon plain": ("gnomon", "plain"),
    "mxnet": ("mxnet", "hybrid"),
    "mxnet plain": ("mxnet", "plain"),
    "torch": ("torch", "eager"),
    "torch compiled": ("torch", "compile"),
}
TRAINED = {"lstm": 20, "transformer": 16, "resnet18": 32}  # alone, at these sizes of a batch
ROWS = {
    f"{kind}{net} {size}": (net, size, not kind)
    for kind in ("", "predict ")
    for net, size in (("deep", 4), ("mlp", 32), ("mlp", 128), ("lenet", 32))
} | {f"{net} {size}": (net, size, True) for net, size in TRAINED.items()}
TOLERANCE = 2e-3
TRIES, STEPS = 40, 50  # of `--cost`: the least of so many means over so many steps


def worker(package: str) -> Path:
    """The script of a contender."""
    return PEERS / ("gluon_torch.py" if package == "torch" else "gluon_module.py")


def disagreement(facts: dict[str, dict[str, float]]) -> str:
    """Whose loss differs from the middle one by more than rounding; empty where all agree."""
    losses = {name: fact["loss"] for name, fact in facts.items()}
    middle = statistics.median_low(losses.values()) if losses else 0.0
    odd = [f"{n} {x:.4f}" for n, x in losses.items() if not abs(x - middle) <= TOLERANCE]
    return f"losses that are not {middle:.4f}: {', '.join(odd)}" if odd else ""


def least(step: Callable[[], object]) -> float:
    """Microseconds of processor time of a step, the least mean of some."""
    found = []
    for _ in range(TRIES):
        begin = time.thread_time()
        for _ in range(STEPS):
            step()
        found.append((time.thread_time() - begin) / STEPS)
    return min(found) * 1e6


def cost() -> None:
    """Print what Python costs in forward, in forward and backward, and in a whole step."""
    mx = importlib.import_module("gnomon")
    watch = importlib.import_module("gnomon.runtime.execution.program").watch
    net = mx.gluon.nn.HybridSequential()
    net.add(*(mx.gluon.nn.Dense(8, activation="relu", in_units=8) for _ in range(20)))
    net.initialize()
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-3})
    x = mx.nd.ones((4, 8))

    def differentiate() -> None:
        with mx.autograd.record():
            y = net(x)
        y.backward()

    def step() -> None:
        differentiate()
        trainer.step(4)

    print("| twenty layers | a step | its native programs | Python |\n|---|---|---|---|")
    for name, work in {
        "forward": lambda: net(x),
        "forward and backward": differentiate,
        "forward, backward and update": step,
    }.items():
        programs: list[Any] = []
        for _ in range(STEPS):
            work()
        watch(lambda program, timings, seen=programs: seen.append(program))
        work()
        mx.nd.waitall()
        watch(None)
        whole, native = least(work), sum(least(program.run) for program in programs)
        print(f"| {name} | {whole:.1f} us | {native:.1f} us | {whole - native:.1f} us |")


def main() -> None:
    """Time and print."""
    parser = measure.arguments(__doc__.splitlines()[0])
    parser.add_argument("--cost", action="store_true", help="measure what Python costs instead")
    options = parser.parse_args()
    pythons = measure.interpreters(options)
    if options.cost:
        cost()
        return
    peers = start(
        {
            name: (pythons.get(package, sys.executable), worker(package), (package, kind))
            for name, (package, kind) in CONTENDERS.items()
            if name in (options.only or CONTENDERS)
        }
    )
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    print(measure.header("a step", names))
    for title in measure.chosen(list(ROWS), options.rows):
        net, size, train = ROWS[title]
        able, facts = measure.prepared(peers, net=net, size=size, train=train)
        if problem := disagreement(facts):
            print(f"{title}: {problem}", file=sys.stderr)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(title, names, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:
        sys.exit(f"a contender failed: {error}")
