"""What first uses cost: `python benchmarks/first.py [--rounds N]`.

Statements over shapes and axes that the process has not met, milliseconds of processor time of each
in a fresh process that starts with an empty cache, and in one that finds every kernel on disk. The
time before the first statement, for imports, is left out.
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
COUNT = 100
PROGRAM = """
import random, sys, time
import numpy as np
from gnomon import nd

row, count = sys.argv[1], int(sys.argv[2])
draw = random.Random(7)

def shape():
    return tuple(draw.choice((1, 2, 3, 5, 8, 13)) for _ in range(draw.randint(1, 5)))

def axes(rank):
    return tuple(sorted(draw.sample(range(rank), draw.randint(1, rank))))

def work():
    sizes = shape()
    x = nd.array(np.ones(sizes, np.float32))
    if row == "sums":
        return lambda: nd.sum(x, axis=axes(len(sizes)))
    if row == "means":
        return lambda: nd.mean(x, axis=axes(len(sizes)), keepdims=True)
    order = draw.sample(range(len(sizes)), len(sizes))
    return lambda: nd.transpose(x, axes=order) + 1

nd.ones((3,)).asnumpy()
all_work = [work() for _ in range(count)]
start = time.process_time()
for one in all_work:
    one().wait_to_read()
print((time.process_time() - start) * 1e3 / count)
"""
ROWS = ("sums", "means", "transposes")


def milliseconds(row: str, cache: str) -> float:
    """Processor time of a statement, in a fresh process."""
    paths = {"PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": cache}
    command = [sys.executable, "-c", PROGRAM, row, str(COUNT)]
    done = subprocess.run(
        command, env=os.environ | paths, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    options = parser.parse_args()
    print(f"milliseconds of each of {COUNT} first uses: an empty cache, a full one")
    for row in options.rows:
        turns = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as cache:
                turns.append([milliseconds(row, cache) for _ in range(2)])
        cold, warm = (statistics.median(each) for each in zip(*turns, strict=True))
        print(f"{row:<12}{cold:8.2f}{warm:8.2f}", flush=True)


if __name__ == "__main__":
    main()
