"""Contenders timed turn by turn in one run, and their table of ratios."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from peers.protocol import Peer, PeerError

Seconds: TypeAlias = dict[str, list[float]]  # for a step of each peer, one for each round

PAUSE = 0.02  # lets a peer's threads stop spinning before the next one's turn


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="interpreter of the environment a peer is installed in; without it, this one",
    )
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender")
    parser.add_argument("--block", type=float, default=0.2, help="seconds of a turn, about")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads for everybody")
    parser.add_argument("--only", nargs="*", help="contenders to run, by name")
    parser.add_argument("--rows", nargs="*", help="rows to run, by the start of their name")
    return parser


def interpreters(options: argparse.Namespace) -> dict[str, str]:
    """Name to interpreter, as given on the command line; sets the number of threads for all."""
    for variable in ("OMP_NUM_THREADS", "GNOMON_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # its default gives wrong results in 1.9.1
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)  # gnomon, installed or not
    return dict(pair.split("=", 1) for pair in options.peer)


def processor_time() -> float:
    """Seconds that the processor has worked for this process and its children."""
    mine = os.getpid()
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if mine in (int(stat.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def calibrated(peer: Peer, block: float) -> int:
    """How many steps of `peer` fill a turn of `block` seconds.

    Of two tries, as what a peer does only once may fall into one of them.
    """
    peer.ask("run", steps=2)
    steps = 1
    while True:
        seconds = min(peer.ask("run", steps=steps)["seconds"] for _ in range(2))
        if seconds >= block / 4:
            return max(1, round(steps * block / seconds))
        steps *= 4


def interleaved(peers: Sequence[Peer], rounds: int, block: float) -> Seconds:
    """Seconds for a step of each peer, one value for each round."""
    steps = {peer.name: calibrated(peer, block) for peer in peers}
    seconds: Seconds = {peer.name: [] for peer in peers}
    for turn in range(rounds):
        for peer in [*peers[turn % len(peers) :], *peers[: turn % len(peers)]]:
            time.sleep(PAUSE)
            taken = peer.ask("run", steps=steps[peer.name])["seconds"]
            seconds[peer.name].append(taken / steps[peer.name])
    return seconds


def prepared(peers: Sequence[Peer], **work: Any) -> tuple[list[Peer], dict[str, dict[str, Any]]]:
    """The peers that can do this work, and what they say about it."""
    able, facts = [], {}
    for peer in peers:
        try:
            facts[peer.name] = peer.ask("setup", **work)
            able.append(peer)
        except PeerError as e:
            print(f"{work}: {peer.name} left out: {e}", file=sys.stderr)
    return able, facts


def readable(seconds: float) -> str:
    """A time with its unit."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def row(title: str, names: Sequence[str], *runs: Seconds) -> str:
    """A line of the table: each contender's median, and the median of its ratios to the first.

    Of several runs, the median of each one's ratio, with the least and the greatest of them.
    """
    base = next((name for name in names if name in runs[0]), None)
    cells = []
    for name in names:
        seconds = [run[name] for run in runs if name in run]
        if not seconds or base is None:
            cells.append("")
            continue
        pairs = [zip(run[name], run[base], strict=True) for run in runs if name in run]
        ratios = sorted(statistics.median(a / b for a, b in pair) for pair in pairs)
        spread = f", {ratios[0]:.2f} to {ratios[-1]:.2f}" if len(ratios) > 1 else ""
        ratio = "" if name == base else f" ({statistics.median(ratios):.2f}{spread})"
        cells.append(readable(statistics.median(s for run in seconds for s in run)) + ratio)
    return "| " + " | ".join([title, *cells]) + " |"


def header(title: str, names: Sequence[str]) -> str:
    """The head of the table."""
    return f"| {title} | " + " | ".join(names) + " |\n|---|" + "---|" * len(names)


def chosen(names: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The names that begin as one of those wanted, or all."""
    return [n for n in names if wanted is None or any(n.startswith(w) for w in wanted)]
