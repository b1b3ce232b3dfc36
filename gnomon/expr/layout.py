"""Layout: where the elements of data lie in memory, and a NumPy view of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.dtype import DType

# what one axis' stride is, as far as code may rely on it
ANY, UNIT, ZERO, JOINED, REVERSED, TWO = 0, 1, 2, 3, 4, 5
KNOWN = {1: UNIT, -1: REVERSED, 2: TWO}

#: how the memory of each kind of device is read: entered by `runtime/statements/prepare.py`
READERS: dict[str, Callable[[Any], np.ndarray[Any, Any]]] = {}


def stride_classes(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Per axis a class: JOINED spans the next one, ZERO is of no matter, KNOWN tells the stride."""
    classes = []
    inner: int | None = None  # what the stride must be to continue the axes after it
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1 or s == 0:
            classes.append(ZERO)
            inner = inner if n == 1 else None
            continue
        if s == inner:
            classes.append(JOINED)
        else:
            classes.append(KNOWN.get(s, ANY))
        inner = s * n
    return tuple(reversed(classes))


def array_at(
    address: int, shape: Sequence[int], strides: Sequence[int] | None, dtype: DType, owner: Any
) -> np.ndarray[Any, Any]:
    """A NumPy view of memory, which keeps `owner` alive; without strides it is dense."""
    size = dtype.size
    raw = {
        "data": (address, is_read_only(owner)),
        "shape": tuple(shape),
        "strides": strides and tuple([s * size for s in strides]),
        "typestr": dtype.numpy.str if dtype.numpy.kind != "V" else f"<V{size}",
        "version": 3,
    }
    view = np.asarray(_Memory(raw, owner))
    return view if view.dtype == dtype.numpy else view.view(dtype.numpy)


def elsewhere(buffer: Any) -> np.ndarray[Any, Any]:
    """A copy of what a buffer on another device holds; ValueError where it holds nothing."""
    read = READERS.get(buffer.device.partition("(")[0]) if buffer.address else None
    if read is None:
        raise ValueError(f"{buffer!r} has no memory of this machine's {buffer.device}")
    return read(buffer)


class _Memory:
    """Carries `__array_interface__`, and the owner of the memory."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__, self.owner = interface, owner


def is_read_only(owner: object) -> bool:
    """Whether the memory of an owner may not be written to: it is read alone."""
    return isinstance(owner, np.ndarray) and not owner.flags.writeable
