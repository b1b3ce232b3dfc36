"""Statements on arrays: gnomon's NDArray beside its peers, turn by turn in one run.

    python benchmarks/ndarray.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python
    python benchmarks/ndarray.py --only gnomon MXNet --rows "64 a+b"

"one a+b" is an operator and the wait for its result; "64 a+b" and "64 a+=b" are 64 operators, one
on the result of the other, that nobody waits for; "sgd" is `w[:] = -eta * (g + lam * w)`; "twenty"
is a function of twenty operators, and its result. A second table has the small statements of
`peers/nd_small.py`, beside MXNet alone: "wait X" is X and the wait for its result, "call X" is X
again and again. A table gives each median for a step and, in
brackets, the median ratio to gnomon's time of the same round. Peers that are missing, or have no
such row, are left out, and that is said.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import measure
from peers.nd_small import STATEMENTS
from peers.protocol import Peer, start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "nd_gnomon.py", ("lazy",)),
    "lazy off": ("gnomon", "nd_gnomon.py", ("eager",)),
    "shadow": ("gnomon", "nd_shadow.py", ()),
    "MXNet": ("mxnet", "nd_mxnet.py", ()),
    "NumPy": ("gnomon", "nd_numpy.py", ()),
    "torch": ("torch", "nd_torch.py", ()),
}
ROWS = [
    ("one a+b", 10),
    ("64 a+b", 10),
    ("64 a+=b", 10),
    ("sgd", 10),
    ("sgd", 10**5),
    ("sgd", 10**7),
    ("twenty", 10),
    ("twenty", 10**6),
]
SMALL = [
    (f"{how} {name}", n) for n in (10, 1024) for how in ("wait", "call") for name in STATEMENTS
]
ALIKE = ("gnomon", "MXNet")  # those that have the names of the small statements


def main() -> None:
    """Time and print."""
    options = measure.arguments(__doc__.splitlines()[0]).parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, arguments)
        for name, (environment, script, arguments) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    peers = start(wanted)
    print(*(peer.about["about"] for peer in peers), f"{options.threads} threads", sep="; ")
    table(options, peers, ROWS)
    table(options, [peer for peer in peers if peer.name in ALIKE], SMALL)
    for peer in peers:
        peer.close()


def table(options: Namespace, peers: Sequence[Peer], rows: Sequence[tuple[str, int]]) -> None:
    """Time and print those of the rows that are wanted, if there are any."""
    wanted = measure.chosen([name for name, _ in rows], options.rows)
    names = [peer.name for peer in peers]
    if peers and wanted:
        print(measure.header("statement", names))
    for row, n in rows:
        if row not in wanted:
            continue
        able, _ = measure.prepared(peers, row=row, n=n)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(f"{row} {n:.0e}", names, seconds), flush=True)


if __name__ == "__main__":
    main()
