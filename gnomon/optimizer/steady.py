"""Whether what is updated is what it was the last time: looked at one by one, at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gnomon.native.serve import served
from gnomon.native.words import Boxed, native
from gnomon.ndarray.core.array import Array, address_of
from gnomon.runtime.once import once

MANY = 8  # things that pay for a millisecond in which native code is loaded


@native
def are_at(arrays: list[Any], places: list[int]) -> bool:
    """Whether arrays of the usual class have memory, each at the address where it was."""
    if len(arrays) != len(places):
        return False
    for k in range(len(arrays)):
        array = cast(Array, arrays[k])
        if array._pending_in is not None or address_of(array) != places[k]:
            return False
    return True


@native
def are_known(states: dict[Any, Any], indices: tuple[Any, ...], last: tuple[Any, ...]) -> bool:
    """Whether the states of `indices` are those of the last time."""
    if len(indices) != len(last):
        return False
    for k in range(len(last)):
        state = states.get(indices[k])
        if state is not last[k] or (state is None and indices[k] not in states):
            return False
    return True


@native
def count_updates(counts: dict[Any, Any], indices: tuple[Any, ...], count: Boxed) -> None:
    """All of `indices` have been updated so often."""
    for index in indices:
        counts[index] = count


@once
def _natively() -> tuple[Callable[..., Any], ...]:
    return served(are_at, are_known, count_updates)


def ways(count: int) -> tuple[Callable[..., Any], ...]:
    """The functions above, for so many things: native ones for many."""
    return _natively() if count >= MANY else (are_at, are_known, count_updates)
