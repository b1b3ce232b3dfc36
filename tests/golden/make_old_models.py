"""old_models.json.gz: what MXNet 1.9.1 makes of the models that older versions wrote."""

import gzip
import json
import tempfile
import warnings
from pathlib import Path

import mxnet as mx
import old_models


def make(folder: Path) -> None:
    """Write the record."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        record = {
            f"{name} {version}": old_models.checked(mx, Path(place), name, version)
            for name, version in old_models.CASES
        }
    text = json.dumps(record).encode()
    (folder / "old_models.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
