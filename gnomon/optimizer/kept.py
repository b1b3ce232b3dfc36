"""The arrays that updates of a weight keep between calls."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gnomon.ndarray.core.array import kept_zeros


def zeros_like(weight: Any) -> Any:
    """Zeros of `weight`'s shape, dtype and storage, on its device."""
    return kept_zeros(weight.shape, weight._dtype, weight.context, weight.stype)


def arrays_of(state: Any) -> tuple[Any, ...]:
    """The arrays of what `create_state` gave."""
    several = state if isinstance(state, (list, tuple)) else (state,)
    return tuple([each for each in several if each is not None])


def warn_of_half(where: str, weight: Any) -> None:
    """Warn where updates are summed in float16."""
    if np.dtype(weight.dtype) == np.float16:
        text = f"{where}: the weight is float16, small updates are lost: see multi_precision=True"
        warnings.warn(text, stacklevel=3)
