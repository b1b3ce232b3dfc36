"""The 1,797 handwritten digits of 8 by 8 pixels that the package carries, for the examples."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

import gnomon as mx

HELD_OUT = 360


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pictures (n, 1, 8, 8) from 0 to 1, and labels (n,)."""
    path = str(files("gnomon") / "data" / "digits.rec")
    record, pictures, labels = mx.recordio.MXRecordIO(path, "r"), [], []
    while content := record.read():
        header, pixels = mx.recordio.unpack(content)
        pictures.append(np.frombuffer(pixels, np.uint8, 64).reshape(1, 8, 8))
        labels.append(header.label)
    return np.float32(pictures) / 16, np.float32(labels)


def divided(seed: int = 1) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Pictures and labels to train on, and those held out, in an order that `seed` decides."""
    pictures, labels = digits()
    order = np.random.default_rng(seed).permutation(len(labels))
    held, rest = order[:HELD_OUT], order[HELD_OUT:]
    return (pictures[rest], labels[rest]), (pictures[held], labels[held])
