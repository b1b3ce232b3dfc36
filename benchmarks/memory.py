"""What bound networks hold, in gnomon and in MXNet: `python benchmarks/memory.py --peer mxnet=...`.

Bytes between operators as each plans them (MXNet's `debug_str()` gives whole MB, rounded down), and
the peak of a process that does nothing else; in brackets what that is above what it held after the
import, where MXNet has loaded its libraries and gnomon has not. Rows that end in `again` compute
forward values a second time in the backward pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import measure

WORKER = Path(__file__).parent / "peers" / "memory_module.py"
ROWS = [("mlp", 32), ("mlp", 128), ("lenet", 32), ("lenet", 128), ("resnet20", 32), ("words", 20),
        ("resnet110", 32)]  # fmt: skip


def held(python: str, package: str, net: str, batch: int, *mirror: str) -> dict[str, Any] | None:
    """What a process of its own reports; None where it fails."""
    command = [python, str(WORKER), package, net, str(batch), *mirror]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def show(row: str, name: str, found: dict[str, Any] | None) -> None:
    """One line of the table."""
    if found is not None:
        planned, peak, more = (found[key] / 2**20 for key in ("planned", "peak", "more"))
        time = found["seconds"] * 1e3
        print(f"{row:18s} {name:8s} planned {planned:8.2f} MB  peak {peak:8.2f} MB "
              f"(+{more:.2f})  {time:8.1f} ms",
              flush=True)  # fmt: skip


def main() -> None:
    """Print the table."""
    options = measure.arguments(__doc__ or "").parse_args()
    pythons = measure.interpreters(options)
    contenders = {"gnomon": sys.executable, "mxnet": pythons.get("mxnet", sys.executable)}
    for net, batch in ROWS:
        row = f"{net} {batch}"
        if options.rows and not any(row.startswith(start) for start in options.rows):
            continue
        for package, python in contenders.items():
            if not options.only or package in options.only:
                show(row, package, held(python, package, net, batch))
        if net.startswith("resnet"):
            show(f"{row} again", "gnomon", held(sys.executable, "gnomon", net, batch, "mirror"))


if __name__ == "__main__":
    main()
