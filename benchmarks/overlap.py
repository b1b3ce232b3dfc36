"""How much of the communication of a training step goes on beside its backward pass.

    python tests/distributed/hosts.py --rate 1gbit 2 benchmarks/overlap.py
    gnomon launch -n 2 python benchmarks/overlap.py

Takes turns of a step by `dist_sync`, of its work alone (no store), and of its communication alone
(a push of gradients that are there, and a pull). If all of the one went on beside the other, a step
would take the longer of both, and the last bucket, which nothing is left to go on beside. The last
column is a step without its last bucket, by the longer of both. With `--ddp`, PyTorch's
DistributedDataParallel over gloo takes turns with them, of one thread: set GNOMON_NUM_THREADS=1; a
ratio above 1: gnomon's step is faster.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from kvstore import gloo

import gnomon as mx


def options() -> argparse.ArgumentParser:
    """The arguments of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=8, help="dense layers")
    parser.add_argument("--width", type=int, default=1024, help="units of each")
    parser.add_argument("--batch", type=int, default=256, help="rows of a rank's batch")
    parser.add_argument("--ddp", action="store_true", help="beside PyTorch's steps")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each contender")
    return parser


def module_step(given: argparse.Namespace, kvstore: Any) -> tuple[Callable[[], None], Any]:
    """A step of a `Module`, and its store."""
    net = mx.sym.Variable("data")
    for k in range(given.layers):
        net = mx.sym.FullyConnected(net, num_hidden=given.width, name=f"f{k}")
        net = mx.sym.Activation(net, act_type="relu")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    module.bind([("data", (given.batch, given.width))], [("softmax_label", (given.batch,))])
    module.init_params(mx.init.Xavier())
    module.init_optimizer(kvstore, "sgd", (("learning_rate", 1e-4),))
    batch = mx.io.DataBatch(
        [mx.nd.random.uniform(shape=(given.batch, given.width))], [mx.nd.zeros((given.batch,))]
    )

    def step() -> None:
        module.forward_backward(batch)
        module.update()
        mx.nd.waitall()

    return step, module


def gluon_step(given: argparse.Namespace, kvstore: Any) -> tuple[Callable[[], None], Any]:
    """A step of a hybridized block by a `Trainer`."""
    net = mx.gluon.nn.HybridSequential()
    for _ in range(given.layers):
        net.add(mx.gluon.nn.Dense(given.width, activation="relu", in_units=given.width))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = mx.gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 1e-4}, kvstore=kvstore
    )
    loss, data = mx.gluon.loss.L2Loss(), mx.nd.random.uniform(shape=(given.batch, given.width))

    def step() -> None:
        with mx.autograd.record():
            value = loss(net(data), data)
        value.backward()
        trainer.step(given.batch)
        mx.nd.waitall()

    return step, net


def ddp_step(given: argparse.Namespace) -> Callable[[], None]:
    """The same step by PyTorch; its process group is there."""
    import torch

    net = torch.nn.Sequential()
    for _ in range(given.layers):
        net.extend((torch.nn.Linear(given.width, given.width), torch.nn.ReLU()))
    ranks = torch.nn.parallel.DistributedDataParallel(net)
    trainer = torch.optim.SGD(ranks.parameters(), 1e-4)
    data = torch.rand(given.batch, given.width)

    def step() -> None:
        trainer.zero_grad()
        ((ranks(data) - data) ** 2).mean().backward()
        trainer.step()

    return step


def exchange(store: Any, given: argparse.Namespace, name: str) -> Callable[[], None]:
    """A push and a pull of gradients as those of a step."""
    shapes = [(given.width, given.width), (given.width,)] * given.layers
    keys = [f"{name} {k}" for k in range(len(shapes))]
    values, outs = ([mx.nd.zeros(s) for s in shapes] for _ in range(2))
    store.init(keys, values)
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=1e-4))

    def turn() -> None:
        store.push(keys, values)
        store.pull(keys, out=outs)
        mx.nd.waitall()

    return turn


def timed(store: Any, turns: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each contender's turns on this rank."""
    found: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds + 2):
        for name, turn in turns.items():
            store.barrier()
            start = time.perf_counter()
            turn()
            found[name].append(time.perf_counter() - start)
    return {name: each[2:] for name, each in found.items()}


def main() -> None:
    """Measure both ways of training; rank 0 prints."""
    given = options().parse_args()
    store = mx.kv.create("dist_sync")
    nbytes = 4 * given.layers * given.width * (given.width + 1)
    last = min(1.0, max(store._comm.bucket_bytes, 4 * given.width**2) / nbytes)
    peers = {}
    if given.ddp:
        from mpi4py import MPI

        peers = {"DDP": ddp_step(given)} if gloo(MPI) is not None else {}
    if store.rank == 0:
        heads = ["", "step", "work", "communication", "last bucket", "rest / longer", *peers]
        print(f"| {' | '.join(heads)} |", flush=True)
    for name, make in (("Module", module_step), ("hybridized block", gluon_step)):
        together, keep = make(given, "dist_sync")
        alone, keep_too = make(given, None)
        turns = {"step": together, "work": alone, "sent": exchange(store, given, name), **peers}
        seconds = timed(store, turns, given.rounds)
        step, work, sent = (np.array(seconds[k]) for k in ("step", "work", "sent"))
        longer = np.maximum(work, sent)
        cells = [statistics.median(x) * 1e3 for x in (step, work, sent, last * sent)]
        if store.rank == 0:
            times = " | ".join(f"{cell:.0f} ms" for cell in cells)
            ratio = statistics.median((step - last * sent) / longer)
            cells = [name, times, f"{ratio:.2f}"]
            for peer in peers:
                faster = statistics.median(np.array(seconds[peer]) / step)
                cells.append(f"{statistics.median(seconds[peer]) * 1e3:.0f} ms ({faster:.2f})")
            print(f"| {' | '.join(cells)} |", flush=True)
        del keep, keep_too


if __name__ == "__main__":
    sys.exit(main())
