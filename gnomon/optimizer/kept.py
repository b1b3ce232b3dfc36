"""The arrays that updates of a weight keep between calls."""

from __future__ import annotations

from typing import Any

from gnomon.ndarray.core.array import kept_zeros


def zeros_like(weight: Any) -> Any:
    """Zeros of `weight`'s shape, dtype and storage, on its device."""
    return kept_zeros(weight.shape, weight._dtype, weight.context, weight.stype)


def arrays_of(state: Any) -> tuple[Any, ...]:
    """The arrays of what `create_state` gave."""
    several = state if isinstance(state, (list, tuple)) else (state,)
    return tuple([each for each in several if each is not None])
