"""What each primitive function costs beside the table of the scheduler: `benchmarks/primitives.py`.

One kernel each over operands that stay in the cache, on one thread, turn by turn. The table gives
the shortest time an element beyond that of a negation, of float32 and of float64, and `COSTS` (see
`gnomon.plan.schedule`) as that time: its exponential of float32 is the unit.
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any

import numpy as np

from gnomon import config, shadow
from gnomon.expr.functions.formula import prim, write
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.functions.scalar import ScalarFn
from gnomon.plan.schedule import COSTS
from gnomon.runtime.execution.program import Program
from gnomon.runtime.statements.prepare import Store, prepare

SIZE, REPEATS = 4096, 50
RANGES = {"erfinv": (-0.9, 0.9), "arcsin": (-1, 1), "arccos": (-1, 1)}
POSITIVE = "log log2 log10 log1p sqrt pow gamma gammaln digamma trigamma".split()
DTYPES = "float32", "float64"
NAMES = [name for name in COSTS if name in PRIMITIVES and PRIMITIVES[name].floats_only] + ["div"]


def program(name: str, dtype: str) -> Any:
    """A program that calls the kernel of a primitive `REPEATS` times."""
    rng = np.random.default_rng(0)
    low, high = RANGES.get(name, (0.1, 8) if name in POSITIVE else (-4, 4))
    arity = PRIMITIVES[name].arity
    bounds = [(low, high), (0.5, 3)][:arity]
    operands = [shadow.Tensor(rng.uniform(*b, SIZE).astype(dtype)) for b in bounds]
    out = shadow.Tensor(np.zeros(SIZE, dtype))
    function = ScalarFn(f"{name} alone", write(arity, functools.partial(prim, name)), None, False)
    return Program(prepare([Store(out, shadow.saveto, function(*operands))]) * REPEATS)


def measured(programs: dict[Any, Any], rounds: int) -> dict[Any, float]:
    """The least nanoseconds an element of each program."""
    least = dict.fromkeys(programs, float("inf"))
    for _ in range(rounds):
        for key, each in programs.items():
            begin = time.thread_time_ns()
            each.run()
            taken = time.thread_time_ns() - begin
            least[key] = min(least[key], taken / SIZE / REPEATS)
    return least


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with config.using(num_threads=1):
        programs = {(name, d): program(name, d) for name in ("neg", "add", *NAMES) for d in DTYPES}
        least = measured(programs, options.rounds)
    plain = {1: "neg", 2: "add"}  # as many operands read
    beyond = {(n, d): t - least[plain[PRIMITIVES[n].arity], d] for (n, d), t in least.items()}
    unit = beyond["exp", "float32"] / COSTS["exp"][0]
    print("| primitive | " + " | ".join(f"{d}, ns | `COSTS` as ns" for d in DTYPES) + " |")
    print("|---" * 5 + "|")
    for name in NAMES:
        pairs = [(beyond[name, d], unit * COSTS[name][k]) for k, d in enumerate(DTYPES)]
        print(f"| {name} | " + " | ".join(f"{a:.2f} | {b:.2f}" for a, b in pairs) + " |")


if __name__ == "__main__":
    main()
