"""What networks hold, in gnomon and in MXNet: `python benchmarks/memory.py --peer mxnet=...`.

Bytes between operators as each plans them (MXNet's `debug_str()` gives whole MB, rounded down), and
the peak of a process that does nothing else; in brackets what that is above what it held after the
import, where MXNet has loaded its libraries and gnomon has not; `later` what the process and its
children hold above that two seconds after the step (proportional set size). An empty folder as
GNOMON_CACHE_DIR makes it a cold run. Rows that end in `again` compute
forward values a second time in the backward pass; those of `steps` train operator by operator, as
`imperative.py` has them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import measure

PEERS = Path(__file__).parent / "peers"
BOUND, STEPS = "memory_module.py", "memory_imperative.py"
ROWS = [("mlp", 32), ("mlp", 128), ("lenet", 32), ("lenet", 128), ("resnet20", 32), ("words", 20),
        ("resnet110", 32)]  # fmt: skip
TRAINED = [("mlp", 32), ("transformer", 2), ("transformer", 16), ("transformer", 64), ("lstm", 16),
           ("conv", 64)]  # fmt: skip


def held(
    python: str, worker: str, package: str, net: str, batch: int, *mirror: str
) -> dict[str, Any] | None:
    """What a process of its own reports; None where it fails."""
    command = [python, str(PEERS / worker), package, net, str(batch), *mirror]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def show(row: str, name: str, found: dict[str, Any] | None) -> None:
    """One line of the table."""
    if found is not None:
        peak, more, later = (found[key] / 2**20 for key in ("peak", "more", "later"))
        planned = f"planned {found['planned'] / 2**20:8.2f} MB" if "planned" in found else ""
        print(f"{row:20s} {name:8s} {planned:19s}  peak {peak:8.2f} MB (+{more:.2f})  "
              f"later +{later:.2f}  {found['seconds'] * 1e3:8.1f} ms",
              flush=True)  # fmt: skip


def main() -> None:
    """Print the table."""
    options = measure.arguments(__doc__ or "").parse_args()
    pythons = measure.interpreters(options)
    contenders = {"gnomon": sys.executable, "mxnet": pythons.get("mxnet", sys.executable)}
    rows = [(f"{net} {batch}", BOUND, net, batch) for net, batch in ROWS]
    rows += [(f"steps {net} {size}", STEPS, net, size) for net, size in TRAINED]
    for row, worker, net, batch in rows:
        if options.rows and not any(row.startswith(start) for start in options.rows):
            continue
        for package, python in contenders.items():
            if not options.only or package in options.only:
                show(row, package, held(python, worker, package, net, batch))
        if net.startswith("resnet"):
            again = held(sys.executable, worker, "gnomon", net, batch, "mirror")
            show(f"{row} again", "gnomon", again)


if __name__ == "__main__":
    main()
