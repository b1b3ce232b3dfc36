"""When moving averages move in the real library."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import averages
import mxnet as mx


def make(folder: Path) -> None:
    """Write `averages.json`."""
    warnings.simplefilter("ignore")
    record = {name: run(mx, mx.cpu()) for name, run in averages.CASES.items()}
    (folder / "averages.json").write_text(json.dumps(record, indent=1) + "\n")
