"""Sums and copies between arrays as single engine operations with a priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def total(values: Sequence[Any], like: Any, priority: int) -> Any:
    """The sum of `values` on the device of `like`; a single value itself, not a copy."""
    moved = [value.as_in_context(like.context) for value in values]
    result = moved[0]
    for value in moved[1:]:
        result = result + value
    return result


def copy(source: Any, targets: Sequence[Any], priority: int) -> None:
    """Copy `source` into each of `targets`, cast to their dtypes."""
    for target in targets:
        source.copyto(target)
