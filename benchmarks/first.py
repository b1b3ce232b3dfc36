"""What first uses cost: `python benchmarks/first.py [--rounds N] [--peer mxnet=PYTHON]`.

`statements`: over shapes and axes that the process has not met, milliseconds of processor time of
each in a fresh process that starts with an empty cache, and in one that finds every kernel on disk;
in the row `all`, as many of each kind by turns, of float32 and int32; in `expressions`, 5 to 20
operations each on 10,000 numbers. The time before the first statement, for imports, is left out.

`sizes`: steps of networks on batches of `--count` sizes, milliseconds of processor time: the first
of a size, with kernels known; a later one, where the sizes take turns; one of many of one size.

`programs`: seconds from the start of a process to the end of its first training step, with an empty
cache and a full one; with PyTorch's, where it is installed.

With MXNet as a peer, its figures and gnomon's ratios to them, in processes that take turns.

These sources are measured, which carry no kernels; with `--installed` it is the package that is
installed for this Python, with the kernels that its wheel carries.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSTALLED, PEERS = "--installed", str(ROOT / "benchmarks" / "peers")
PROGRAM = """
import random, sys, time
import numpy as np
if sys.argv[3] == "gnomon":
    from gnomon import nd
else:
    from mxnet import nd

row, count = sys.argv[1], int(sys.argv[2])
draw = random.Random(7)

def shape():
    return tuple(draw.choice((1, 2, 3, 5, 8, 13)) for _ in range(draw.randint(1, 5)))

def axes(rank):
    return tuple(sorted(draw.sample(range(rank), draw.randint(1, rank))))

def work(row, dtype="float32"):
    sizes = shape()
    rank = len(sizes)
    x = nd.array(np.ones(sizes, dtype), dtype=dtype)
    if row == "sums":
        along = axes(rank)
        return lambda: nd.sum(x, axis=along)
    if row == "means":
        along = axes(rank)
        return lambda: nd.mean(x, axis=along, keepdims=True)
    if row == "broadcasts":
        y = nd.array(np.ones([n if draw.random() < 0.5 else 1 for n in sizes], dtype), dtype=dtype)
        return lambda: nd.broadcast_add(x, y)
    if row == "slices":
        begin = [draw.randrange(n) for n in sizes]
        end = [draw.randint(b + 1, n) for b, n in zip(begin, sizes)]
        return lambda: nd.slice(x, begin=begin, end=end)
    order = draw.sample(range(rank), rank)
    return lambda: nd.transpose(x, axes=order)

def expression():
    parts = [nd.array(np.random.rand(10_000)) for _ in range(3)]
    unary = [draw.choice((nd.tanh, nd.exp, nd.sqrt, nd.sigmoid, nd.square)) for _ in range(20)]
    binary = [draw.choice("+-*") for _ in range(20)]
    operands, count = [draw.randrange(3) for _ in range(20)], draw.randint(5, 20)

    def run():
        x = parts[0]
        for k in range(count):
            y = parts[operands[k]]
            if k % 2:
                x = x + y if binary[k] == "+" else x - y if binary[k] == "-" else x * y
            else:
                x = unary[k](x)
        return x

    return run

nd.ones((3,)).asnumpy()
ROWS = ("sums", "means", "broadcasts", "transposes", "slices")
if row == "expressions":
    all_work = [expression() for _ in range(count)]
elif row == "all":
    kinds = [(r, d) for r in ROWS for d in ("float32", "int32")]
    all_work = [work(*kinds[k % len(kinds)]) for k in range(count)]
else:
    all_work = [work(row) for _ in range(count)]
nd.waitall()
start = time.process_time()
for one in all_work:
    one().wait_to_read()
print((time.process_time() - start) * 1e3 / count)
"""
ROWS = {
    **dict.fromkeys(("sums", "means", "broadcasts", "transposes", "slices", "expressions"), 100),
    "all": 1000,
}
STEP = """
import importlib, sys, time
began, worker, net, size = float(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
del sys.argv[1:5]
nets = importlib.import_module("imperative_nets" if worker.startswith("imperative") else "nets")
nets.PROOF = 1
given = (net, size) if worker.startswith("imperative") else (net, size, True)
importlib.import_module(worker).setup(*given)
print(time.time() - began)
"""
SIZES = "module", "lstm", "block", "attention", "recorded", "images"
PROGRAMS = {"lenet": ("train", 32), "transformer": ("imperative", 2), "lstm": ("train", 20),
            "resnet20": ("train", 32), "resnet50": ("train", 4)}  # fmt: skip


def printed(command: Sequence[str], cache: str) -> list[float]:
    """The numbers that a fresh process prints; byte code is kept, as of an installed package."""
    more = {
        "PYTHONPATH": PEERS if INSTALLED in sys.argv else f"{ROOT}:{PEERS}",
        "PYTHONPYCACHEPREFIX": f"{tempfile.gettempdir()}/gnomon-first-code",
        "GNOMON_CACHE_DIR": cache,
        "MXNET_SUBGRAPH_BACKEND": "NONE",
    }
    mine = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    place = (
        tempfile.gettempdir()
    )  # elsewhere than at the sources, which come before an installed one
    done = subprocess.run(
        command, env=mine | more, cwd=place, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def statement(row: str, package: str, python: str, cache: str) -> float:
    """Processor time of a statement, in a fresh process."""
    return printed([python, "-c", PROGRAM, row, str(ROWS[row]), package], cache)[0]


def step(net: str, python: str, cache: str, *package: str) -> float:
    """Seconds to the end of a first training step; of PyTorch where no `package` is named."""
    kind, size = PROGRAMS[net]
    worker = f"{kind}_module" if package else f"{kind}_torch"
    more = ["imperative"] if package and kind == "imperative" else []
    arguments = [*(package or ("eager",)), *more]
    began = str(time.time())
    return printed([python, "-c", STEP, began, worker, net, str(size), *arguments], cache)[0]


def statements(row: str, mxnet: str | None) -> list[float]:
    """One time each: with an empty cache, with a full one, and MXNet's if it is there."""
    with tempfile.TemporaryDirectory() as cache:
        found = [statement(row, "gnomon", sys.executable, cache) for _ in range(2)]
        return found if mxnet is None else [*found, statement(row, "mxnet", mxnet, cache)]


def programs(net: str, mxnet: str | None) -> list[float]:
    """Empty, full, and the peers' that are there."""
    with tempfile.TemporaryDirectory() as cache:
        found = [step(net, sys.executable, cache, "gnomon") for _ in range(2)]
        if mxnet is not None:
            found.append(step(net, mxnet, cache, "mxnet"))
        if find_spec("torch"):
            found.append(step(net, sys.executable, cache))
        return found


def sizes(row: str, mxnet: str | None, count: int, cache: str) -> list[float]:
    """A new size, one seen before, a fixed one; and the same of MXNet if it is there."""
    worker = str(ROOT / "benchmarks" / "peers" / "first_sizes.py")
    pairs = [(sys.executable, "gnomon")] + ([] if mxnet is None else [(mxnet, "mxnet")])
    commands = [[python, worker, package, row, str(count)] for python, package in pairs]
    return [n for command in commands for n in printed(command, cache)]


def bench_statements(options: argparse.Namespace, mxnet: str | None) -> None:
    print("milliseconds of each first use: an empty cache, a full one, and MXNet's with ratios")
    for row in options.rows or ROWS:
        show(row, [statements(row, mxnet) for _ in range(options.rounds)], [(0, 2), (1, 2)])


def bench_sizes(options: argparse.Namespace, mxnet: str | None) -> None:
    print("milliseconds of a step on a batch of a new size, one seen before, a fixed one; MXNet's;")
    print("ratios of new to seen, seen to fixed, new to MXNet's new")
    with tempfile.TemporaryDirectory() as cache:
        for row in options.rows or SIZES:
            sizes(row, None, options.count, cache)  # kernels are on disk from now on
            turns = [sizes(row, mxnet, options.count, cache) for _ in range(options.rounds)]
            show(row, turns, [(0, 1), (1, 2), (0, 3)])


def bench_programs(options: argparse.Namespace, mxnet: str | None) -> None:
    print("seconds to the end of a first step: an empty cache, a full one, MXNet's and PyTorch's")
    print("that are there; ratios of both to the first peer")
    for net in options.rows or PROGRAMS:
        show(net, [programs(net, mxnet) for _ in range(options.rounds)], [(0, 2), (1, 2)])


def show(row: str, turns: Sequence[Sequence[float]], pairs: Sequence[tuple[int, int]]) -> None:
    """A row of medians, and of medians of ratios."""
    line = "".join(f"{statistics.median(each):9.2f}" for each in zip(*turns, strict=True))
    there = [(a, b) for a, b in pairs if b < len(turns[0])]
    ratios = [statistics.median(t[a] / t[b] for t in turns) for a, b in there]
    print(f"{row:<12}{line}   ratios {' '.join(f'{r:.1f}' for r in ratios)}", flush=True)


BENCHES = {"statements": bench_statements, "sizes": bench_sizes, "programs": bench_programs}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", nargs="*", choices=[*BENCHES, []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", nargs="*")
    parser.add_argument(INSTALLED, action="store_true")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--peer", default="", metavar="mxnet=PYTHON")
    options = parser.parse_args()
    for name in options.bench or BENCHES:
        BENCHES[name](options, options.peer.partition("=")[2] or None)


if __name__ == "__main__":
    main()
