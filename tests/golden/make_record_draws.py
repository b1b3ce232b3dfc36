"""What the real library's `ImageRecordIter` gives: quantiles of 3,000 draws, and images.

One epoch of many records: a new epoch draws the same again. The images are those of augmenters that
draw nothing.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import cv2
import det_crops
import mxnet as mx
import numpy as np
import record_draws


def make(folder: Path) -> None:
    """Write `record_draws.json` and `record_images.npz`."""
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/x.rec"
        det_crops.write(mx, path, 3000, cv2)
        found = {
            name: det_crops.quantiles(record_draws.drawn(mx, path, 1, **options), 21)
            for name, options in record_draws.CASES.items()
        }
    (folder / "record_draws.json").write_text(json.dumps(found) + "\n")
    files = record_draws.photographs(cv2)
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/x.rec"
        record_draws.pack(mx, path, files)
        images = {
            name: record_draws.batch(mx, path, **options)
            for name, options in record_draws.FIXED.items()
        }
    jpegs = {f"file {k}": np.frombuffer(data, np.uint8) for k, data in enumerate(files)}
    np.savez_compressed(folder / "record_images.npz", **images, **jpegs)
