"""One expression at a time: gnomon.shadow beside its peers, turn by turn in one run.

    python benchmarks/expression.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python

Each contender computes the same rows on the same float32 operands; results are compared with
NumPy's before anything is timed. The table gives each median and, in brackets, the median ratio to
gnomon's time of the same round. C is compiled with gcc when it is there; peers that are missing,
or have no such row, are left out, and that is said.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import measure
import numpy as np
from peers import work
from peers.protocol import start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "expr_gnomon.py", ()),
    "C": ("gnomon", "expr_c.py", ()),
    "NumPy": ("gnomon", "expr_numpy.py", ("plain",)),
    "NumPy out=": ("gnomon", "expr_numpy.py", ("out",)),
    "Numba": ("numba", "expr_jit.py", ("numba",)),
    "numexpr": ("numexpr", "expr_jit.py", ("numexpr",)),
    "torch": ("torch", "expr_torch.py", ("eager",)),
    "torch.compile": ("torch", "expr_torch.py", ("compile",)),
    "MXNet": ("mxnet", "expr_mxnet.py", ()),
}
LARGE = 50_000_000  # several copies of the operands: only with --large


def disagreement(facts: dict[str, dict[str, Any]], right: list[float]) -> str:
    """Who computed something else; empty where nobody did."""
    wrong = []
    for name, fact in facts.items():
        found = np.array(fact["probe"])
        if found.shape != np.shape(right) or not np.allclose(found, right, 2e-3, 2e-4):
            wrong.append(name)
    return f"another result by {', '.join(wrong)}" if wrong else ""


def main() -> None:
    """Time and print."""
    parser = measure.arguments(__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also the rows of 50 million elements")
    options = parser.parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, arguments)
        for name, (environment, script, arguments) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    peers = start(wanted)
    names = [peer.name for peer in peers]
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    print(measure.header("expression", names))
    for row in measure.chosen(list(work.ROWS), options.rows):
        for n in work.ROWS[row].sizes:
            if n >= LARGE and not options.large:
                continue
            able, facts = measure.prepared(peers, row=row, n=n)
            if problem := disagreement(facts, work.expected(row, n)):
                print(f"{row} {n}: {problem}", file=sys.stderr)
            seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
            print(measure.row(f"{row} {n:.0e}", names, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
