"""What transforms, samplers, data sets and utilities of Gluon give in the real library."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import gluon_data
import mxnet as mx


def make(folder: Path) -> None:
    """Write `gluon_data.json.gz`."""
    warnings.simplefilter("ignore")
    text = json.dumps(gluon_data.record(mx)).encode()
    (folder / "gluon_data.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
