"""TensorContainer: a tensor that owns its memory; and explicit allocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from gnomon import dtype as dt
from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.node import Buffer, Expr, Operand
from gnomon.runtime import pool
from gnomon.shadow.tensor import Tensor
from gnomon.shape import prod, row_major

ALIGNMENT = 64


class TensorContainer(Tensor):
    """A tensor with memory of its own, 64-byte aligned; `pad` starts every row on such a boundary.

    >>> t = TensorContainer((2, 3), init=1.5)
    >>> t.numpy()
    array([[1.5, 1.5, 1.5],
           [1.5, 1.5, 1.5]], dtype=float32)

    Raises:
        ShapeError: a negative size.
    """

    __slots__ = ("padded",)

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any = dt.default_real,
        init: Operand | None = None,
        pad: bool = True,
        device: str = "cpu",
    ) -> None:
        sizes, kind = checked(shape), dt.of(dtype)
        strides = padded_strides(sizes, kind) if pad else row_major(sizes)
        storage = pool.allocate(max(1, span(sizes, strides) * kind.size), device)
        Buffer.__init__(self, sizes, kind, strides, storage.address, storage, device)
        self.stream_, self.padded = None, pad
        if init is not None:
            self.assign(init)

    def resize(self, shape: Sequence[int]) -> Self:
        """Take another shape; the memory stays where it suffices, the content is then undefined."""
        sizes = checked(shape)
        strides = padded_strides(sizes, self.dtype) if self.padded else row_major(sizes)
        needed = max(1, span(sizes, strides) * self.dtype.size)
        if needed > self.owner.nbytes:
            self.owner = pool.allocate(needed, self.device)
            self.address = self.owner.address
        self.shape, self.strides, self._layout = sizes, strides, None
        return self


def new_tensor(
    shape: Sequence[int],
    init: Operand | None = None,
    dtype: Any = dt.default_real,
    pad: bool = True,
    device: str = "cpu",
) -> TensorContainer:
    """A tensor with new memory, filled with `init` where given; raises as TensorContainer does."""
    return TensorContainer(shape, dtype, init, pad, device)


def alloc_space(shape: Sequence[int], dtype: Any = dt.default_real, pad: bool = True) -> Tensor:
    """A tensor with new memory, its content undefined; `free_space` gives the memory back."""
    return TensorContainer(shape, dtype, None, pad)


def free_space(tensor: Tensor) -> None:
    """Give the memory of an `alloc_space` back; the tensor then has none.

    Raises:
        ShapeError: the tensor does not own its memory.
    """
    if not isinstance(tensor.owner, pool.Storage):
        raise ShapeError(
            complaint("free_space", "tensor", "one that owns its memory", f"{tensor!r}")
        )
    tensor.owner.free()
    tensor.address, tensor.owner = 0, None
    tensor.shape, tensor.strides, tensor._layout = (0,) * tensor.ndim, (1,) * tensor.ndim, None


def copy(dest: Tensor, source: Expr) -> Tensor:
    """Store `source` into `dest` of one shape and dtype, whatever their strides; gives `dest`."""
    return dest.assign(source)


def checked(shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple; ShapeError where a size is negative."""
    sizes = tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise ShapeError(complaint("TensorContainer", "shape", "sizes of at least 0", sizes))
    return sizes


def padded_strides(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """Strides with every row at a multiple of the alignment, where there is more than one row."""
    if len(shape) < 2 or prod(shape[:-1]) <= 1:
        return row_major(shape)
    unit = ALIGNMENT // dtype.size
    return row_major((*shape[:-1], -(-shape[-1] // unit) * unit))


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to behind the last row."""
    return shape[0] * strides[0] if shape and len(shape) > 1 else prod(shape)
