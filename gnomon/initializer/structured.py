"""Initializers whose values depend on the position in the array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.initializer.base import Initializer, register


@register
class Bilinear(Initializer):
    """Weights of an up-sampling (transposed) convolution: (outputs, inputs, height, width)."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: Any) -> None:
        if len(arr.shape) != 4:
            raise ShapeError(complaint("Bilinear", name, "4 axes", arr.shape))
        factor = math.ceil(arr.shape[3] / 2)
        centre = (2 * factor - 1 - factor % 2) / (2 * factor)
        rows, columns = (1 - abs(np.arange(n) / factor - centre) for n in arr.shape[2:])
        arr[:] = np.broadcast_to(np.outer(rows, columns), arr.shape).astype(np.float32)


@register
class LSTMBias(Initializer):
    """Zeros but for the forget gate's quarter, the second of four, which is `forget_bias`."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, _: str, arr: Any) -> None:
        quarter = arr.shape[0] // 4
        values = np.zeros(arr.shape, dtype=np.float32)
        values[quarter : 2 * quarter] = self.forget_bias
        arr[:] = values
