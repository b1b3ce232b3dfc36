"""Extensions, sorting and random numbers: gnomon.shadow beside its peers, turn by turn in one run.

    python benchmarks/extensions.py --peer torch=TORCH/bin/python --peer numba=PEERS/bin/python

Each contender computes the same rows on the same float32 operands; results are compared with
NumPy's before anything is timed. The table gives each median and, in brackets, the median ratio to
gnomon's time of the same round; then the bytes that a step must move at the least, and how fast
gnomon moves them. The first line says how fast the machine copies. C is compiled with gcc when it
is there; peers that are missing, or have no such row, are left out, and that is said.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np
from peers import ext_work as work
from peers.protocol import start

WORKERS = Path(__file__).parent / "peers"
CONTENDERS = {
    "gnomon": ("gnomon", "ext_gnomon.py"),
    "C": ("gnomon", "ext_c.py"),
    "NumPy": ("gnomon", "ext_numpy.py"),
    "torch": ("torch", "ext_torch.py"),
    "Numba": ("numba", "ext_numba.py"),
}
COPIED = 64 << 20


def bandwidth() -> float:
    """GB a second that one thread's copy reads and writes together."""
    source, dest = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    seconds = []
    for _ in range(7):
        start_time = time.perf_counter()
        np.copyto(dest, source)
        seconds.append(time.perf_counter() - start_time)
    return 2 * COPIED / statistics.median(seconds) / 1e9


def check(row: str, facts: dict[str, dict[str, Any]]) -> None:
    """Say who computed something else."""
    right = work.expected(row)
    wrong = [name for name, fact in facts.items() if not work.agrees(row, fact["probe"], right)]
    if wrong:
        print(f"{row}: another result by {', '.join(wrong)}", file=sys.stderr)


def speed(row: str, seconds: dict[str, list[float]]) -> str:
    """The row's bytes, and gnomon's speed."""
    moved = work.ROWS[row].bytes
    first = next(iter(seconds.values()), None)
    rate = "" if first is None else f"{moved / statistics.median(first) / 1e9:.1f} GB/s"
    return f" {moved / 1e6:.1f} MB | {rate} |"


def main() -> None:
    """Time and print."""
    parser = measure.arguments(__doc__.splitlines()[0])
    options = parser.parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, ())
        for name, (environment, script) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    peers = start(wanted)
    names = [peer.name for peer in peers]
    about = [peer.about["about"] for peer in peers]
    print(*about, f"{options.threads} threads, copy {bandwidth():.0f} GB/s", sep="; ")
    print(measure.header("extension", [*names, "bytes", "speed"]))
    for row in measure.chosen(list(work.ROWS), options.rows):
        able, facts = measure.prepared(peers, row=row)
        check(row, facts)
        seconds = measure.interleaved(able, options.rounds, options.block) if able else {}
        print(measure.row(row, names, seconds) + speed(row, seconds), flush=True)
    for peer in peers:
        peer.close()


if __name__ == "__main__":
    main()
