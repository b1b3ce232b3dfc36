"""`python -m tests.fuzz --seconds N`: random and hostile programs against the tensor language.

Findings are printed, made small, and kept as programs in a folder; the status says whether there
were any. `python -m tests.fuzz --replay FILE` runs one of them again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.hunt import hunt, outcome


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, help="a folder for the programs that fail")
    parser.add_argument("--replay", type=Path, help="a program to run again")
    chosen = parser.parse_args()
    if chosen.replay is not None:
        text = chosen.replay.read_text().splitlines()
        found = outcome([line for line in text if not line.startswith("#")])
        print(found or "nothing")
        return int(bool(found))
    report = hunt(chosen.seconds, chosen.seed, chosen.keep, lambda text: print(text, flush=True))
    print(f"seed {chosen.seed}, {chosen.seconds:g} s: {report}")
    return int(bool(report.findings))


if __name__ == "__main__":
    sys.exit(main())
