"""augmenters.json.gz: functions and augmenters of `mx.image`."""

import gzip
import json
from pathlib import Path

import augmenters
import mxnet as mx


def make(folder: Path) -> None:
    """Write the record."""
    text = json.dumps(augmenters.results(mx)).encode()
    (folder / "augmenters.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
