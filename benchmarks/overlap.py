"""How much of the communication of a training step goes on beside its backward pass.

    python tests/distributed/hosts.py --rate 1gbit 2 benchmarks/overlap.py
    gnomon launch -n 2 python benchmarks/overlap.py

Takes turns of a step by `dist_sync`, of its work alone (no store), and of its communication alone
(a push of gradients that are there, and a pull). If all of the one went on beside the other, a step
would take the longer of both, and the last bucket, which nothing is left to go on beside. The last
ratio is a step without its last bucket, by the longer of both. Beside it stands the processor time
of a rank's step and of its work: where ranks have no more cores than they compute with, a step
cannot take less than the first of these; other work on the machine adds to times, not to these. The
last row has a backward pass that takes as long as the communication, and a forward pass of half of
that, both asleep: what is more than 1 there is the store's own.

With `--ddp`, PyTorch's DistributedDataParallel over gloo takes turns with them, of one thread: set
GNOMON_NUM_THREADS=1; a ratio above 1: gnomon's step is faster.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from kvstore import gloo

import gnomon as mx
from gnomon import engine


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


def exchange(store: Any, given: argparse.Namespace, name: str) -> tuple[Callable[[], None], Any]:
    """A push and a pull of gradients as those of a step, and the gradients, last layer's first."""
    shapes = [(given.width,), (given.width, given.width)] * given.layers
    keys = [f"{name} {k}" for k in range(len(shapes))]
    values, outs = ([mx.nd.zeros(s) for s in shapes] for _ in range(2))
    if store is not None:
        store.init(keys, values)
        store.set_optimizer(mx.optimizer.create("sgd", learning_rate=1e-4))

    def turn() -> None:
        if store is not None:
            store.push(keys, values)
            store.pull(keys, out=outs)
        mx.nd.waitall()

    return turn, values


def asleep_step(
    given: argparse.Namespace, store: Any, seconds: float
) -> tuple[Callable[[], None], Any]:
    """A step whose backward pass takes so long, and its forward pass half of that, both asleep."""
    finish, values = exchange(store, given, "asleep")
    turn = engine.get().new_variable()

    def work(_: Any, on_complete: Callable[[], None]) -> None:
        threading.Timer(seconds / len(values), on_complete).start()

    def step() -> None:
        time.sleep(seconds / 2)
        for value in values:
            engine.get().push_async(work, None, (), (turn, value._var))
        finish()

    return step, values


def timed(store: Any, turns: dict[str, Callable[[], None]], rounds: int) -> dict[str, Any]:
    """Seconds and processor time of each contender's turns on this rank: two columns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for _ in range(rounds + 2):
        for name, turn in turns.items():
            store.barrier()
            start = time.perf_counter(), time.process_time()
            turn()
            end = time.perf_counter(), time.process_time()
            found[name].append((end[0] - start[0], end[1] - start[1]))
    return {name: np.array(each[2:]).T for name, each in found.items()}


def row(name: str, seconds: dict[str, Any], last: float) -> str:
    """Median times, ratios within a round, and each peer's step by ours."""
    (step, used), (work, needed), (sent, _) = (seconds[k] for k in ("step", "work", "sent"))
    cells = [f"{statistics.median(x) * 1e3:.0f} ms" for x in (step, work, sent, last * sent)]
    cells.append(f"{statistics.median((step - last * sent) / np.maximum(work, sent)):.2f}")
    cells.append(" / ".join(f"{statistics.median(x) * 1e3:.0f}" for x in (used, needed)) + " ms")
    for peer in seconds.keys() - {"step", "work", "sent"}:
        faster = statistics.median(seconds[peer][0] / step)
        cells.append(f"{statistics.median(seconds[peer][0]) * 1e3:.0f} ms ({faster:.2f})")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure both ways of training; rank 0 prints."""
    given = options().parse_args()
    store = mx.kv.create("dist_sync")
    nbytes = 4 * given.layers * given.width * (given.width + 1)
    last = min(1.0, max(store._comm.bucket_bytes, 4 * given.width**2) / nbytes)
    from mpi4py import MPI

    peers = {"DDP": ddp_step(given)} if given.ddp and gloo(MPI) is not None else {}
    sent, _ = exchange(store, given, "sent")
    first = statistics.median(timed(store, {"": sent}, 3)[""][0])
    asleep = functools.partial(asleep_step, seconds=MPI.COMM_WORLD.bcast(first))
    if store.rank == 0:
        heads = ["", "step", "work", "communication", "last bucket", "rest / longer", "processor"]
        print(f"| {' | '.join([*heads, *peers])} |", flush=True)
    ways = {"Module": module_step, "hybridized block": gluon_step, "asleep": asleep}
    for name, make in ways.items():
        together, keep = make(given, store if make is asleep else "dist_sync")
        alone, keep_too = make(given, None)
        turns = {"step": together, "work": alone, "sent": sent}
        seconds = timed(store, turns | ({} if make is asleep else peers), given.rounds)
        if store.rank == 0:
            print(row(name, seconds, last), flush=True)
        del keep, keep_too


if __name__ == "__main__":
    sys.exit(main())
