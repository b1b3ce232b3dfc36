"""What first uses cost: `python benchmarks/first.py [--rounds N] [--peer mxnet=PYTHON]`.

Statements over shapes and axes that the process has not met, milliseconds of processor time of each
in a fresh process that starts with an empty cache, and in one that finds every kernel on disk; in
the row `all`, as many of each kind by turns, of float32 and int32. With MXNet as a peer, its time
and gnomon's ratios to it. The time before the first statement, for imports, is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
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

nd.ones((3,)).asnumpy()
ROWS = ("sums", "means", "broadcasts", "transposes", "slices")
if row == "all":
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
ROWS = {"sums": 100, "means": 100, "broadcasts": 100, "transposes": 100, "slices": 100, "all": 1000}


def milliseconds(row: str, package: str, python: str, cache: str) -> float:
    """Processor time of a statement, in a fresh process."""
    paths = {"PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": cache, "MXNET_SUBGRAPH_BACKEND": "NONE"}
    command = [python, "-c", PROGRAM, row, str(ROWS[row]), package]
    done = subprocess.run(
        command, env=os.environ | paths, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def turn(row: str, mxnet: str | None) -> list[float]:
    """One time each: with an empty cache, with a full one, and MXNet's if it is there."""
    with tempfile.TemporaryDirectory() as cache:
        found = [milliseconds(row, "gnomon", sys.executable, cache) for _ in range(2)]
        return found if mxnet is None else [*found, milliseconds(row, "mxnet", mxnet, cache)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--peer", default="", metavar="mxnet=PYTHON")
    options = parser.parse_args()
    mxnet = options.peer.partition("=")[2] or None
    print("milliseconds of each first use: an empty cache, a full one, and MXNet's with ratios")
    for row in options.rows:
        turns = [turn(row, mxnet) for _ in range(options.rounds)]
        cold, warm, *peer = (statistics.median(each) for each in zip(*turns, strict=True))
        line = f"{row:<12}{cold:8.2f}{warm:8.2f}"
        if peer:
            ratios = [statistics.median(t[k] / t[2] for t in turns) for k in (0, 1)]
            line += f"{peer[0]:8.2f}   ratios {ratios[0]:.1f} {ratios[1]:.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
