"""TensorContainer: a tensor that owns its memory; and explicit allocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gnomon import dtype as dt
from gnomon.base import Later, ParamError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes
from gnomon.expr.deferred import TRACED
from gnomon.expr.layout import stride_classes
from gnomon.expr.node import Buffer, Expr, Operand, set_address
from gnomon.expr.pattern import change
from gnomon.ground.record import put
from gnomon.runtime.devices import pool
from gnomon.shadow.tensor import Array, Tensor
from gnomon.shape import prod, row_major

if TYPE_CHECKING:
    from gnomon.runtime.statements import transfer
else:  # only between devices
    transfer = Later("gnomon.runtime.statements.transfer")

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

    __slots__ = ("padded", "settled")
    padded: bool

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any = dt.default_real,
        init: Operand | None = None,
        pad: bool = True,
        device: str = "cpu",
    ) -> None:
        sizes, kind = checked_sizes("TensorContainer", shape), dt.of(dtype)
        strides = padded_strides(sizes, kind) if pad else row_major(sizes)
        storage = pool.allocate(max(1, span(sizes, strides) * kind.size), device)
        Buffer.__init__(self, sizes, kind, strides, storage.address, storage, storage.device)
        self.stream_ = None
        put(self, "padded", pad)
        put(self, "settled", True)
        if init is not None:
            self.assign(init)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return restored, (self.numpy().copy(), self.padded, self.device)

    @property
    def freed(self) -> bool:  # type: ignore[override]
        """Whether `free_space` gave the memory back, and `resize` took none since."""
        return self.owner is None

    @property
    def layout(self) -> tuple[int, ...]:
        """What code may assume of the strides; not kept, as a change may come before it is."""
        return stride_classes(self.shape, self.strides)

    def resize(self, shape: Sequence[int]) -> Self:
        """Take another shape; the memory stays where it suffices, the content is then undefined.

        Views made before keep the memory they saw; expressions of the old shape are refused. What
        other threads compute with it meanwhile ends on the old memory; what they begin is refused.
        """
        sizes = checked_sizes("resize", shape)
        change(lambda: self._take(sizes))
        return self

    def _take(self, sizes: tuple[int, ...]) -> None:
        strides = padded_strides(sizes, self.dtype) if self.padded else row_major(sizes)
        needed = max(1, span(sizes, strides) * self.dtype.size)
        fits = self.owner is not None and needed <= self.owner.nbytes
        storage = self.owner if fits else pool.allocate(needed, self.device)
        # code that looks from now on finds no memory, until all is as it will be
        set_address(self, 0, self.owner)
        changed = {"owner": storage, "settled": False}
        changed |= {"shape": sizes, "strides": strides, "pattern": None}
        for name, value in changed.items():
            put(self, name, value)
        set_address(self, storage.address, storage)


def restored(array: Array, pad: bool, device: str) -> TensorContainer:
    """A container that holds the numbers of an array."""
    made = TensorContainer(array.shape, array.dtype, None, pad, device)
    copy(made, Tensor(array))
    return made


@explained
def new_tensor(
    shape: Sequence[int],
    init: Operand | None = None,
    dtype: Any = dt.default_real,
    pad: bool = True,
    device: str = "cpu",
) -> TensorContainer:
    """A tensor with new memory, filled with `init` where given; raises as TensorContainer does."""
    return TensorContainer(shape, dtype, init, pad, device)


@explained
def alloc_space(
    shape: Sequence[int], dtype: Any = dt.default_real, pad: bool = True, device: str = "cpu"
) -> Tensor:
    """A tensor with new memory, its content undefined; `free_space` gives the memory back."""
    return TensorContainer(shape, dtype, None, pad, device)


@explained
def free_space(tensor: Tensor) -> None:
    """Give the memory of an `alloc_space` back, once no view holds it.

    The tensor then has none: using it is an error until `resize` gives it some.

    Raises:
        ParamError: the tensor does not own memory.
    """
    if not isinstance(tensor, TensorContainer) or tensor.owner is None:
        raise ParamError(complaint("free_space", "tensor", "one that owns memory", f"{tensor!r}"))
    change(lambda: _give_back(tensor))


def _give_back(tensor: TensorContainer) -> None:
    tensor._take((0,) * max(1, tensor.ndim))
    set_address(tensor, 0, None)


@explained
def copy(dest: Tensor, source: Expr) -> Tensor:
    """Store `source` into `dest` of one shape and dtype, whatever their strides; gives `dest`.

    Between the memories of two devices tensors can be copied; an expression is computed where its
    operands and the destination are.
    """
    if isinstance(source, Buffer) and _differ(source.device, dest.device):
        transfer.transfer(dest, source)
        return dest
    return dest.assign(source)


def _differ(*devices: str) -> bool:
    """Whether these are two devices; stand-ins, while a function is traced, are on none."""
    return len({*devices}) > 1 and TRACED not in devices


def write(tensor: Tensor, array: Array) -> None:
    """Give a tensor the numbers of an array of its shape and dtype, wherever its memory is."""
    if tensor.device == "cpu":
        tensor.numpy()[...] = array
    else:
        copy(tensor, Tensor(np.ascontiguousarray(array)))


def padded_strides(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """Strides with every row at a multiple of the alignment, where there is more than one row."""
    if len(shape) < 2 or prod(shape[:-1]) <= 1:
        return row_major(shape)
    unit = ALIGNMENT // dtype.size
    return row_major((*shape[:-1], -(-shape[-1] // unit) * unit))


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to behind the last row."""
    return shape[0] * strides[0] if shape and len(shape) > 1 else prod(shape)
