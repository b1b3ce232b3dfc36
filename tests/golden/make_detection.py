"""What the augmenters and the iterator of detection give in the real library."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import cv2
import detection
import mxnet as mx


def make(folder: Path) -> None:
    """Write `detection.json`."""
    with tempfile.TemporaryDirectory() as images:
        found = detection.results(mx, images, cv2)
    (folder / "detection.json").write_text(json.dumps(found) + "\n")
