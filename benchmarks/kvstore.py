"""Push and pull of a store between processes, beside a plain all-reduce of the same bytes.

    python benchmarks/kvstore.py --ranks 2 4

Starts itself by `gnomon launch`. Contenders take turns on the same arrays: the store (`push` and
`pull` of the sum, which keeps a copy), one blocking MPI all-reduce of all bytes at once, and
PyTorch's gloo, where it is installed. Each rank computes with one thread. A ratio above 1: the
store is faster. The processor time is that of all ranks in a turn of the store: with fewer cores
than ranks, a turn takes at least as long as the cores need for it.

    python tests/distributed/hosts.py --rate 1gbit 2 benchmarks/kvstore.py --rank --model

With `--model` the store alone, over sizes and counts of keys, and the two numbers of the model in
docs/distributed.md that fit these points best.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gnomon as mx
from gnomon.launch.addresses import addresses

ROOT = Path(__file__).parent.parent
ROWS = {
    "64 MB": [1 << 24],
    "1,000 keys of 64 KB": [1 << 14] * 1000,
    "64 keys of 1 MB": [1 << 18] * 64,
    "10 keys of 4 KB": [1 << 10] * 10,
}

#: bytes of a key, and how many keys, that the model is fitted to
POINTS = [
    (4096, 1), (1 << 16, 1), (1 << 16, 16), (1 << 20, 1), (1 << 20, 12), (1 << 16, 320),
    (1 << 22, 1), (1 << 22, 4), (1 << 25, 1),
]  # fmt: skip


def options() -> argparse.ArgumentParser:
    """The arguments of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 4], help="counts of processes")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender")
    parser.add_argument("--rows", nargs="*", help="rows to run, by the start of their name")
    parser.add_argument("--scale", type=int, default=1, help="divide all sizes, for a quick look")
    parser.add_argument("--no-gloo", action="store_true", help="leave PyTorch out")
    parser.add_argument("--model", action="store_true", help="fit the cost model instead")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    return parser


def store_turn(store: Any, name: str, sizes: list[int]) -> Callable[[], None]:
    """A push and a pull of keys of these sizes."""
    keys = [f"{name} {k}" for k in range(len(sizes))]
    values = [mx.nd.ones((size,)) for size in sizes]
    outs = [mx.nd.zeros((size,)) for size in sizes]
    store.init(keys, values)

    def turn() -> None:
        store.push(keys, values)
        store.pull(keys, out=outs)
        for out in outs:
            out.wait_to_read()

    turn()
    assert outs[0].asnumpy()[0] == store.num_workers
    return turn


def mpi_turn(mpi: Any, count: int) -> Callable[[], None]:
    """One all-reduce of as many elements."""
    mine, found = np.ones(count, np.float32), np.empty(count, np.float32)
    return lambda: mpi.COMM_WORLD.Allreduce(mine, found)


def gloo(mpi: Any) -> Any:
    """PyTorch's distributed module, of one thread, or None where it is not installed."""
    try:
        import torch
        import torch.distributed as group
    except ImportError:
        return None
    torch.set_num_threads(1)
    world = mpi.COMM_WORLD
    hosts = set(world.allgather(socket.gethostname()))
    name, own = ("lo", "127.0.0.1") if len(hosts) == 1 else next(iter(addresses().items()))
    os.environ["GLOO_SOCKET_IFNAME"] = name
    url = f"tcp://{world.bcast(own)}:{world.bcast(20_000 + os.getpid() % 20_000)}"
    group.init_process_group("gloo", init_method=url, rank=world.rank, world_size=world.size)
    return group


def gloo_turn(group: Any, count: int) -> Callable[[], None]:
    """One all-reduce of as many elements, in place."""
    import torch

    values = torch.ones(count)
    return lambda: group.all_reduce(values)


def timed(mpi: Any, turns: dict[str, Callable[[], None]], rounds: int) -> dict[str, Any]:
    """Of each contender's turns the seconds of the slowest rank, and all ranks' processor time."""
    world, found = mpi.COMM_WORLD, {name: [] for name in turns}
    for _ in range(rounds + 1):
        for name, turn in turns.items():
            world.Barrier()
            start, used = time.perf_counter(), time.process_time()
            turn()
            seconds, used = time.perf_counter() - start, time.process_time() - used
            found[name].append((world.allreduce(seconds, mpi.MAX), world.allreduce(used)))
    return {name: np.array(each[1:]).T for name, each in found.items()}


def measure(given: argparse.Namespace) -> None:
    """What one rank does; rank 0 prints."""
    store = mx.kv.create("dist_sync")
    from mpi4py import MPI

    if given.model:
        model(store, MPI, given.rounds)
        return
    group = None if given.no_gloo else gloo(MPI)
    for name, sizes in ROWS.items():
        if given.rows and not name.startswith(tuple(given.rows)):
            continue
        sizes = [max(1, size // given.scale) for size in sizes]
        turns = {
            "store": store_turn(store, name, sizes),
            "MPI": mpi_turn(MPI, sum(sizes)),
        }
        if group is not None:
            turns["gloo"] = gloo_turn(group, sum(sizes))
        seconds = timed(MPI, turns, given.rounds)
        if store.rank == 0:
            print(row(f"{store.num_workers} ranks, {name}", seconds), flush=True)


def model(store: Any, mpi: Any, rounds: int) -> None:
    """Points, and `a` and `s` of `seconds = a * buckets + s * bytes` by least relative squares."""
    limit, points = store._comm.bucket_bytes, []
    for size, count in POINTS:
        turn = store_turn(store, f"{size} times {count}", [size // 4] * count)
        times = timed(mpi, {"store": turn}, rounds)["store"][0]
        buckets = count if size >= limit else -(-count // (limit // size))
        points.append((buckets, size * count, statistics.median(times)))
    table = np.array([(k, n) for k, n, _ in points], float)
    times = np.array([t for *_, t in points])
    (a, s), *_ = np.linalg.lstsq(table / times[:, None], np.ones(len(times)), rcond=None)
    if store.rank == 0:
        for (k, n, t), guess in zip(points, table @ (a, s), strict=True):
            print(f"{k} buckets, {n} bytes: {t * 1e3:.2f} ms, model {guess * 1e3:.2f} ms")
        print(f"{store.num_workers} ranks: a = {a * 1e3:.3f} ms, 1 / s = {1e-6 / s:.0f} MB/s")


def row(name: str, found: dict[str, Any]) -> str:
    """Median times, and the median of the ratios of turns that came one after the other."""
    store, used = found["store"]
    cells = [f"{statistics.median(store) * 1e3:.2f} ms", f"{statistics.median(used) * 1e3:.0f} ms"]
    for peer in ("MPI", "gloo"):
        if peer in found:
            times = found[peer][0]
            faster = statistics.median(times / store)
            cells.append(f"{statistics.median(times) * 1e3:.2f} ms ({faster:.2f})")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Start the ranks, and print the table."""
    given = options().parse_args()
    if given.rank:
        measure(given)
        return
    print("| | store | processor time | MPI all-reduce | gloo all-reduce |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    for ranks in given.ranks:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
        environment |= {"GNOMON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "gnomon", "launch", "-n", str(ranks)]
        command += [sys.executable, __file__, "--rank", *sys.argv[1:]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            if line.startswith("[0] |"):
                print(line.removeprefix("[0] "), flush=True)
        if done.returncode:
            sys.exit(done.stderr)


if __name__ == "__main__":
    main()
