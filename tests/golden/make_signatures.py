"""Names and parameters of Gluon, the older layers and helpers in the real library."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import mxnet as mx
import signatures


def make(folder: Path) -> None:
    """Write `signatures.json.gz`."""
    text = json.dumps(signatures.described(mx), separators=(",", ":")).encode()
    (folder / "signatures.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
