"""Extensions, sorting and random numbers: gnomon.shadow beside its peers, turn by turn in one run.

    python benchmarks/extensions.py --peer torch=TORCH/bin/python --peer numba=PEERS/bin/python

Each contender computes the same rows on the same float32 operands; results are compared with
NumPy's before anything is timed. The table gives each median and, in brackets, the median ratio to
gnomon's time of the same round; then the bytes that a step must move at the least, and how fast
gnomon moves them. The first line says how fast the machine copies. C is compiled with gcc when it
is there; peers that are missing, or have no such row, are left out, and that is said.

Rows that wait for memory depend on where a process's pages happen to lie: two processes of one
contender differ by some per cent. `--processes N` starts every contender N times and gives the
median of the N ratios, and the least and the greatest of them; `--again` runs gnomon against
itself, whose ratio would be 1.00 if there were no noise.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np
from peers import ext_work as work
from peers.protocol import Peer, start

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


def speed(row: str, runs: list[measure.Seconds]) -> str:
    """The row's bytes, and gnomon's speed."""
    moved = work.ROWS[row].bytes
    first = [s for seconds in runs for s in next(iter(seconds.values()), [])]
    rate = f"{moved / statistics.median(first) / 1e9:.1f} GB/s" if first else ""
    return f" {moved / 1e6:.1f} MB | {rate} |"


def timed(row: str, peers: list[Peer], options: argparse.Namespace) -> measure.Seconds:
    """Seconds for a step of each peer that can do the row."""
    able, facts = measure.prepared(peers, row=row)
    check(row, facts)
    return measure.interleaved(able, options.rounds, options.block) if able else {}


def main() -> None:
    """Time and print."""
    parser = measure.arguments(__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=1, help="starts of each contender")
    parser.add_argument("--again", action="store_true", help="gnomon as its own peer as well")
    options = parser.parse_args()
    pythons = measure.interpreters(options)
    wanted = {
        name: (pythons.get(environment, sys.executable), WORKERS / script, ())
        for name, (environment, script) in CONTENDERS.items()
        if options.only is None or name in options.only
    }
    if options.again:
        wanted["again"] = (sys.executable, WORKERS / CONTENDERS["gnomon"][1], ())
    chosen = measure.chosen(list(work.ROWS), options.rows)
    runs: dict[str, list[measure.Seconds]] = {row: [] for row in chosen}
    for process in range(options.processes):
        peers = start(wanted)
        names = [peer.name for peer in peers]
        if process == 0:
            about = [peer.about["about"] for peer in peers]
            print(*about, f"{options.threads} threads, copy {bandwidth():.0f} GB/s", sep="; ")
            print(measure.header("extension", [*names, "bytes", "speed"]))
        for row in chosen:
            runs[row].append(timed(row, peers, options))
            if process == options.processes - 1:
                print(measure.row(row, names, *runs[row]) + speed(row, runs[row]), flush=True)
        for peer in peers:
            peer.close()


if __name__ == "__main__":
    main()
