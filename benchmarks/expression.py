"""One expression at a time: gnomon.shadow beside its peers, turn by turn in one run.

    python benchmarks/expression.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python
    python benchmarks/expression.py --kernels --only gnomon C --rows sgd gelu --sizes 1000 1e6

Each contender computes the same rows on the same operands; results are compared with NumPy's
before anything is timed. The table gives each median and, in brackets, the median ratio to gnomon's
time of the same round. With `--kernels` it is the prepared kernels of gnomon and C that are timed,
each called many times by one native loop on one thread; without, it is whole statements. C is
compiled with gcc when it is there; peers that are missing, or have no such row, are left out, and
that is said.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure
import numpy as np
from peers import work
from peers.protocol import Peer, start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "expr_gnomon.py", ()),
    "C": ("gnomon", "expr_c.py", ()),
    "NumPy": ("gnomon", "expr_numpy.py", ("plain",)),
    "NumPy out=": ("gnomon", "expr_numpy.py", ("out",)),
    "Numba": ("numba", "expr_jit.py", ("numba",)),
    "numexpr": ("numexpr", "expr_jit.py", ("numexpr",)),
    "JAX": ("jax", "expr_jax.py", ()),
    "torch": ("torch", "expr_torch.py", ("eager",)),
    "torch.compile": ("torch", "expr_torch.py", ("compile",)),
    "MXNet": ("mxnet", "expr_mxnet.py", ()),
}
KERNELS = ("gnomon", "C")  # the contenders whose kernels can be called prepared
CALL = 50_000  # elements that one call of `--kernels` goes through, at least
SMALLEST = 1000  # of kernels; below, it is the call that is measured
LARGE = 50_000_000  # several copies of the operands: only with --large, or asked for
TOLERANCE = {"float32": (2e-3, 2e-4), "float64": (1e-5, 2e-6)}


def disagreement(facts: dict[str, dict[str, Any]], right: list[float], dtype: str) -> str:
    """Who computed something else; empty where nobody did."""
    wrong = []
    for name, fact in facts.items():
        found = np.array(fact["probe"])
        if found.shape != np.shape(right) or not np.allclose(found, right, *TOLERANCE[dtype]):
            wrong.append(name)
    return f"another result by {', '.join(wrong)}" if wrong else ""


def sizes(row: str, options: argparse.Namespace) -> list[int]:
    """The numbers of elements to run a row with."""
    if options.sizes:
        return [int(n) for n in options.sizes]
    own = [n for n in work.ROWS[row].sizes if n < LARGE or options.large]
    return [n for n in own if n >= SMALLEST] if options.kernels else own


def compare(peers: Sequence[Peer], row: str, n: int, options: argparse.Namespace) -> None:
    """One line of the table."""
    repeats = max(1, CALL // n) if options.kernels else 0
    asked = {"row": row, "n": n, "dtype": options.dtype, "repeats": repeats}
    able, facts = measure.prepared(peers, **asked)
    if problem := disagreement(facts, work.expected(row, n, options.dtype), options.dtype):
        print(f"{row} {n}: {problem}", file=sys.stderr)
    seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
    each = {k: [s / max(1, repeats) for s in taken] for k, taken in seconds.items()}
    print(measure.row(f"{row} {n:.0e}", [p.name for p in peers], each), flush=True)


def main() -> None:
    """Time and print."""
    parser = measure.arguments(__doc__.splitlines()[0])
    parser.add_argument("--kernels", action="store_true", help="prepared kernels on one thread")
    parser.add_argument("--dtype", choices=list(TOLERANCE), default="float32")
    parser.add_argument(
        "--sizes", nargs="*", type=float, help="elements, in place of the rows' own"
    )
    parser.add_argument("--large", action="store_true", help="also the rows of 50 million elements")
    options = parser.parse_args()
    if options.kernels:
        options.threads, options.only = 1, options.only or KERNELS
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, arguments)
        for name, (environment, script, arguments) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    peers = start(wanted)
    about = [peer.about["about"] for peer in peers]
    print(*about, options.dtype, f"{options.threads} threads", sep="; ")
    print(measure.header("kernel" if options.kernels else "expression", [p.name for p in peers]))
    for row in measure.chosen(list(work.ROWS), options.rows):
        for n in sizes(row, options):
            compare(peers, row, n, options)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
