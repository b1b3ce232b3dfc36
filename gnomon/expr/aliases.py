"""Data that lies in the memory of other data, as an expression of that: `x[1:3]` beside `x`.

A part of a tensor is a tensor again, which says nothing of the one it was cut from. Where it lies
says it: the strides of one are multiples of the other's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gnomon.base import GnomonError
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.ext.slice_ import Slice, slice_
from gnomon.expr.ext.transpose import transpose
from gnomon.expr.layout import array_at
from gnomon.expr.node import Buffer, Expr

TRIES = 10_000  # of NumPy's search for an element that both have


def as_part(view: Buffer, whole: Buffer) -> Expr | None:
    """`view` as a part of `whole`, None where they share no memory.

    >>> import numpy as np
    >>> from gnomon.shadow import Tensor
    >>> x = Tensor(np.zeros((3, 4), np.float32))
    >>> as_part(x[1:3], x).shape, as_part(x[1:3], x[0:1])
    ((2, 4), None)

    Raises:
        GnomonError: they do, but `view` is no slice, mirror image, transpose or reshape of `whole`.
    """
    if not _share(view, whole):
        return None
    found = _run(view, whole) if view.dtype is whole.dtype else None
    if found is None and view.dtype is whole.dtype:
        found = _box(view, whole)
    if found is None:
        text = f"vjp: {view!r} lies in the memory of the input {whole!r}, but is no part of it"
        raise GnomonError(f"{text}: use slices of the input itself")
    return found


def _share(a: Buffer, b: Buffer) -> bool:
    if a.device != b.device or not (a.address and b.address) or 0 in (*a.shape, *b.shape):
        return False
    x, y = (array_at(e.address, e.shape, e.strides, e.dtype, None) for e in (a, b))
    try:
        return bool(np.shares_memory(x, y, TRIES))  # type: ignore[arg-type]  # any count
    except np.exceptions.TooHardError:
        return True


def _run(view: Buffer, whole: Buffer) -> Expr | None:
    """A part of elements that follow each other, in any shape."""
    first = (view.address - whole.address) // view.dtype.size
    size = int(np.prod(view.shape))
    total = int(np.prod(whole.shape))
    if not (view.contiguous and whole.contiguous and 0 <= first <= total - size):
        return None
    flat = reshape(whole, (total,))
    return reshape(slice_(flat, (first,), (first + size,)), view.shape)


def _box(view: Buffer, whole: Buffer) -> Expr | None:
    """A slice along each axis, then the axes in another order."""
    begin = _start(view, whole)
    if begin is None:
        return None
    to, step = [1] * whole.ndim, [1] * whole.ndim
    order: list[int] = []
    for n, stride in zip(view.shape, view.strides, strict=True):
        if n == 1:
            continue
        axis = _axis(stride, n, begin, whole, order)
        if axis is None:
            return None
        order.append(axis)
        to[axis], step[axis] = n, stride // whole.strides[axis]
    rest = [a for a in range(whole.ndim) if a not in order]
    cut = Slice(whole, tuple(begin), tuple(to), tuple(step))
    return reshape(transpose(cut, (*order, *rest)), view.shape)


def _start(view: Buffer, whole: Buffer) -> list[int] | None:
    """The index in `whole` of the first element of `view`."""
    offset = (view.address - whole.address) // view.dtype.size
    axes = [a for a in range(whole.ndim) if whole.shape[a] > 1]
    lowest = sum(whole.strides[a] * (whole.shape[a] - 1) for a in axes if whole.strides[a] < 0)
    offset -= lowest
    index = [0] * whole.ndim
    for a in sorted(axes, key=lambda a: -abs(whole.strides[a])):
        size, stride = whole.shape[a], whole.strides[a]
        if stride == 0:
            return None
        index[a], offset = divmod(offset, abs(stride))
        if not 0 <= index[a] < size:
            return None
        if stride < 0:
            index[a] = size - 1 - index[a]
    return None if offset else index


def _axis(
    stride: int, n: int, begin: Sequence[int], whole: Buffer, taken: Sequence[int]
) -> int | None:
    """The axis of `whole` along which `n` elements lie `stride` apart."""
    for a in sorted(range(whole.ndim), key=lambda a: -abs(whole.strides[a])):
        own = whole.strides[a]
        if a in taken or whole.shape[a] == 1 or own == 0 or stride == 0 or stride % own:
            continue
        if 0 <= begin[a] + (n - 1) * (stride // own) < whole.shape[a]:
            return a
    return None
