"""Statements on arrays: gnomon's NDArray beside its peers, turn by turn in one run.

    python benchmarks/ndarray.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python
    python benchmarks/ndarray.py --only gnomon MXNet --rows "64 a+b"

"one a+b" is an operator and the wait for its result; "64 a+b" and "64 a+=b" are 64 operators, one
on the result of the other, that nobody waits for; "sgd" is `w[:] = -eta * (g + lam * w)`; "twenty"
is a function of twenty operators, and its result. The table gives each median for a step and, in
brackets, the median ratio to gnomon's time of the same round. Peers that are missing, or have no
such row, are left out, and that is said.
"""

from __future__ import annotations

import sys
from pathlib import Path

import measure
from peers.protocol import start

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
    print(measure.header("statement", [peer.name for peer in peers]))
    for row, n in ROWS:
        if row not in measure.chosen([name for name, _ in ROWS], options.rows):
            continue
        able, _ = measure.prepared(peers, row=row, n=n)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(f"{row} {n:.0e}", [p.name for p in peers], seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
