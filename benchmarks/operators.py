"""Operators at one typical size, forward and with their gradients, beside their peers.

    python benchmarks/operators.py --peer mxnet=ORACLE/bin/python --peer torch=TORCH/bin/python

The rows stand in `peers/operators.py`. A forward row waits for each result: what is pending and
dropped would never be computed. The table gives each median and, in brackets, the median
ratio to gnomon's time of the same round; below it stand the geometric mean of the ratios to each
peer, and the rows below 1.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import measure
from peers.operators import FORWARD, ROWS
from peers.protocol import start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "operators_module.py", ("gnomon",)),
    "MXNet": ("mxnet", "operators_module.py", ("mxnet",)),
    "torch": ("torch", "operators_torch.py", ()),
}


def main() -> None:
    """Time and print."""
    parser = measure.arguments(__doc__.splitlines()[0])
    parser.set_defaults(rounds=5, block=0.05)
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
    print(measure.header("operator", names))
    ratios: dict[str, dict[str, float]] = {name: {} for name in names[1:]}
    for row in measure.chosen(list(ROWS), options.rows):
        for train in (False, True)[: 1 if row in FORWARD else 2]:
            title = f"{row}, {'gradients' if train else 'forward'}"
            able, _ = measure.prepared(peers, row=row, train=train)
            seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
            print(measure.row(title, names, seconds), flush=True)
            for name in seconds.keys() & ratios.keys() if names[0] in seconds else ():
                pairs = zip(seconds[name], seconds[names[0]], strict=True)
                ratios[name][title] = statistics.median(a / b for a, b in pairs)
    for name, found in ratios.items():
        if found:
            mean = statistics.geometric_mean(found.values())
            slow = sorted((ratio, title) for title, ratio in found.items() if ratio < 1)
            told = "; ".join(f"{title} {ratio:.2f}" for ratio, title in slow)
            print(f"\n{name}: {mean:.2f} over {len(found)} rows; below 1: {told or 'none'}")
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
