"""What the real library's `ImageDetRecordIter` draws, as quantiles of 1,200 draws."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import cv2
import det_crops
import mxnet as mx


def make(folder: Path) -> None:
    """Write `det_crops.json`."""
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/x.rec"
        det_crops.write(mx, path, 300, cv2)
        found = {
            name: det_crops.quantiles(det_crops.drawn(mx, path, 4, **options))
            for name, options in det_crops.CASES.items()
        }
    (folder / "det_crops.json").write_text(json.dumps(found) + "\n")
