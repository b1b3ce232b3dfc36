"""Gradients in one or two bits an element, with what is lost added to the next gradient.

The residual of a gradient is what earlier ones lost. With residual `r`, gradient `g` and threshold
`t`, `r + g` is sent as one of few levels, and becomes the new residual less that level:

| type | level | where `r + g` is |
|---|---|---|
| 2bit | `t`, `-t`, 0 | at least `t`, at most `-t`, between |
| 1bit | 1, -1 | above `t`, at most `t` |

A residual that is NaN or infinite stays so, as MXNet's does: its level is 0, or plus or minus `t`,
from then on.

Source: F. Seide et al., "1-bit stochastic gradient descent and its application to data-parallel
distributed training of speech DNNs", Interspeech 2014; the levels are MXNet's.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from gnomon.base import DTypeError, ParamError, complaint, nearest

TYPES = ("1bit", "2bit")


class Compression:
    """Quantizes gradients; keeps a residual for each name that it is given.

    >>> import gnomon as mx
    >>> coarse = Compression({"type": "2bit", "threshold": 0.5})
    >>> gradient = mx.nd.array([0.3, 0.7, -0.6])
    >>> coarse.quantized("weight", gradient).asnumpy().tolist()
    [0.0, 0.5, -0.5]
    >>> coarse.quantized("weight", gradient).asnumpy().tolist()
    [0.5, 0.5, -0.5]

    Args:
        params: `type`, one of '1bit' and '2bit', and `threshold`, a finite number above 0, 0.5 by
            default.

    Raises:
        ParamError: something else in `params`.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        where = "KVStore.set_gradient_compression"
        if not isinstance(params, Mapping):
            got = type(params).__name__
            raise ParamError(complaint(where, "compression_params", "a dictionary", got))
        for name in params:
            if name not in ("type", "threshold"):
                got = repr(name) + nearest(str(name), ("type", "threshold"))
                raise ParamError(complaint(where, "compression_params", "type, threshold", got))
        self.type = params.get("type")
        if self.type not in TYPES:
            raise ParamError(complaint(where, "type", "one of " + ", ".join(TYPES), self.type))
        try:
            self.threshold = float(params.get("threshold", 0.5))
        except (TypeError, ValueError):
            self.threshold = 0.0
        if not 0 < self.threshold < float("inf"):
            got = params.get("threshold")
            raise ParamError(complaint(where, "threshold", "a finite number above 0", got))
        self._residuals: dict[Hashable, Any] = {}

    def __str__(self) -> str:
        return f"{self.type} of {self.threshold:g}"

    def applies_to(self, key: Any, value: Any) -> bool:
        """Whether `value` is compressed: all but row-sparse arrays.

        Raises:
            DTypeError: its elements are no floating-point numbers.
        """
        if value.stype == "default" and np.issubdtype(value.dtype, np.integer):
            where = "KVStore.push with compression"
            expected = "a floating-point type"
            raise DTypeError(complaint(where, f"value of key {key!r}", expected, value.dtype))
        return bool(value.stype == "default")

    def quantized(self, name: Hashable, gradient: Any) -> Any:
        """The level of each element, as a new array; the residual of `name` takes the rest."""
        residual = self._residuals.get(name)
        total = gradient if residual is None else residual + gradient
        levels = self._levels(total)
        self._residuals[name] = total - levels
        return levels

    def _levels(self, total: Any) -> Any:
        if self.type == "1bit":
            return (total > self.threshold) * 2 - 1
        return ((total >= self.threshold) - (total <= -self.threshold)) * self.threshold

    def packed(self, levels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Levels in a row as bytes, eight (1bit) or four (2bit) a byte."""
        if self.type == "1bit":
            return np.packbits(levels > 0)
        codes = (levels > 0).view(np.uint8) | (levels < 0).view(np.uint8) << 1
        codes = np.concatenate([codes, np.zeros(-codes.size % 4, np.uint8)]).reshape(-1, 4)
        return codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6

    def packed_size(self, count: int) -> int:
        """The bytes of `count` packed levels."""
        return -(-count // (8 if self.type == "1bit" else 4))

    def unpacked(self, data: np.ndarray[Any, Any], count: int, dtype: Any) -> Any:
        """The `count` levels that `packed` made the bytes `data` of."""
        if self.type == "1bit":
            return np.array([-1, 1], dtype)[np.unpackbits(data, count=count)]
        codes = (data[:, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
        steps = np.array([0, self.threshold, -self.threshold, 0], dtype)
        return steps[codes.reshape(-1)[:count]]
