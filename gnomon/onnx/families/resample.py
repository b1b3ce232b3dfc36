"""Where each place of a resized axis lies in the old one, and what it takes of its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.onnx.fold import bounded

Array = Any


def places(old: int, new: int, scale: float, how: str) -> Array:
    """The places in the old axis of those in the new one, by ONNX's name of the rule."""
    at = np.arange(new, dtype=np.float64)
    if how == "align_corners":
        return at * (old - 1) / (old * scale - 1) if new > 1 else at * 0.0
    if how == "asymmetric":
        return at / scale
    if how == "pytorch_half_pixel" and new == 1:
        return at * 0.0
    if how == "half_pixel_symmetric":
        adjustment = new / (scale * old)
        return old / 2 * (1 - adjustment) + (at + 0.5) / scale - 0.5
    return (at + 0.5) / scale - 0.5


def nearest(old: int, new: int, scale: float, how: str, rounding: str) -> Array:
    """The nearest old place of each new one."""
    bounded((new,))
    at = places(old, new, scale, how)
    down, up = np.floor(at), np.ceil(at)
    found = {
        "floor": down,
        "ceil": up,
        "round_prefer_floor": np.ceil(at - 0.5),
        "round_prefer_ceil": np.floor(at + 0.5),
    }[rounding]
    return np.clip(found, 0, old - 1).astype(np.int64)


def matrix(old: int, new: int, scale: float, how: str, cubic: float | None) -> Array:
    """The share of each old place in each new one, (new, old): linear, or cubic of this number."""
    bounded((new, old))
    at = places(old, new, scale, how)
    weights = np.zeros((new, old))
    base = np.floor(at).astype(np.int64)
    reach = range(-1, 3) if cubic is not None else range(2)
    for k in reach:
        away = np.abs(at - (base + k))
        share = _cubic(away, cubic) if cubic is not None else np.maximum(1 - away, 0)
        np.add.at(weights, (np.arange(new), np.clip(base + k, 0, old - 1)), share)
    return weights


def _cubic(away: Array, a: float) -> Array:
    """The weight of a neighbour at a distance below 2 (Keys 1981)."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return np.where(away <= 1, near, np.where(away < 2, far, 0))
