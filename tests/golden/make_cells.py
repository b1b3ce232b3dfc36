"""What the cells of `mx.rnn` are in the real library: graphs, packed weights, batches, files."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import cells
import mxnet as mx


def make(folder: Path) -> None:
    """Write `cells.json.gz` and the checkpoint `cells-0003.params`."""
    warnings.simplefilter("ignore")
    record = {
        "graphs": dict(cells.graphs(mx)),
        "unpacked": cells.unpacked(mx),
        "begun": cells.begun(mx),
        "batches": cells.batches(mx),
    }
    text = json.dumps(record).encode()
    (folder / "cells.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
    cell = cells.fused(mx, "lstm", bidirectional=True)
    size = next(size for title, _, size in cells.packings(mx) if title == "lstm 2")
    weights = {"f_parameters": mx.nd.arange(size)}
    mx.rnn.save_rnn_checkpoint(cell, str(folder / "cells"), 3, mx.sym.Variable("x"), weights, {})
    (folder / "cells-symbol.json").unlink()
