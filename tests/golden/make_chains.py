"""What trainings by the older modules give in the real library."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import chains
import mxnet as mx


def make(folder: Path) -> None:
    """Write `chains.json`."""
    warnings.simplefilter("ignore")
    record = {name: run(mx) for name, run in chains.RUNS.items()}
    (folder / "chains.json").write_text(json.dumps(record, indent=1) + "\n")
