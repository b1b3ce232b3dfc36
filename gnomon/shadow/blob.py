"""TBlob: data whose rank, dtype and device are known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.axes import checked_sizes, normal_axis, whole
from gnomon.expr.node import Buffer
from gnomon.expr.pattern import steady
from gnomon.ground.record import Frozen, put
from gnomon.shadow.tensor import Tensor
from gnomon.shape import Shape, prod

DEVICE_MASKS = {"cpu": 1, "gpu": 2}


class TBlob(Frozen):
    """Memory with `shape_`, `stride_`, `dev_mask_` and `type_flag_`; tensors are asked of it.

    >>> import numpy as np
    >>> blob = TBlob(np.zeros((2, 3, 4), np.float32))
    >>> blob.type_flag_, blob.shape_, blob.flat_to_2d().shape
    (0, Shape(2, 3, 4), (6, 4))
    >>> blob.get(3, "float64")
    Traceback (most recent call last):
    gnomon.base.DTypeError: TBlob.get: argument 'dtype': expected float32, got float64
    """

    __slots__ = ("tensor",)
    tensor: Tensor

    def __init__(self, data: Any) -> None:
        if isinstance(data, TBlob):
            data = data.tensor
        if isinstance(data, Buffer):
            tensor = data if isinstance(data, Tensor) else Tensor.of(data)
        else:
            tensor = Tensor(data)
        put(self, "tensor", tensor)

    def __reduce__(self) -> Any:
        return TBlob, (self.tensor,)

    @property
    def dptr_(self) -> int:
        """The address of the first element."""
        return self.tensor.address

    @property
    def shape_(self) -> Shape:
        """The shape, of any rank."""
        return Shape(self.tensor.shape)

    @property
    def stride_(self) -> int:
        """Elements from one row to the next."""
        return self.tensor.stride_

    @property
    def dev_mask_(self) -> int:
        """1 for the processor's memory, 2 for a GPU's."""
        return DEVICE_MASKS["cpu" if self.tensor.device == "cpu" else "gpu"]

    @property
    def type_flag_(self) -> int:
        """The number of the dtype."""
        return self.tensor.dtype.flag

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.tensor.ndim

    def size(self) -> int:
        """The number of elements."""
        return prod(self.tensor.shape)

    def _check(self, dtype: Any) -> None:
        if dtype is not None and dt.of(dtype) is not self.tensor.dtype:
            expected = self.tensor.dtype.name
            raise DTypeError(complaint("TBlob.get", "dtype", expected, dt.of(dtype).name))

    def get(self, dim: int, dtype: Any = None) -> Tensor:
        """The tensor of `dim` axes; ShapeError, DTypeError where the blob has others."""
        self._check(dtype)
        if whole("TBlob.get", "dim", dim) != self.tensor.ndim:
            raise ShapeError(complaint("TBlob.get", "dim", f"{self.tensor.ndim}", dim))
        return self.tensor

    def get_with_shape(self, shape: Sequence[int], dtype: Any = None) -> Tensor:
        """The elements in another shape; ShapeError where their number or layout forbids it."""
        self._check(dtype)
        sizes = checked_sizes("TBlob.get_with_shape", shape)
        return steady(lambda: self._shaped(sizes))

    def _shaped(self, sizes: tuple[int, ...]) -> Tensor:
        if prod(sizes) != self.size() or not self.tensor.contiguous:
            expected = f"{self.size()} contiguous elements"
            raise ShapeError(complaint("TBlob.get_with_shape", "shape", expected, sizes))
        return self.tensor.view(sizes, None)

    def flat_to_1d(self, dtype: Any = None) -> Tensor:
        """All elements along one axis."""
        return self.get_with_shape((self.size(),), dtype)

    def flat_to_2d(self, dtype: Any = None) -> Tensor:
        """All axes but the last joined."""
        self._check(dtype)
        return self.tensor.flat_to_2d()

    def flat_to_3d(self, axis: int, dtype: Any = None) -> Tensor:
        """The axes before, at and after `axis`; ShapeError where there is no such axis."""
        shape = self.tensor.shape
        axis = normal_axis("TBlob.flat_to_3d", axis, len(shape))
        return self.get_with_shape(
            (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])), dtype
        )


def type_switch(type_flag: int) -> DType:
    """The dtype with this number.

    >>> type_switch(0)
    float32

    Raises:
        DTypeError: no dtype has it.
    """
    return dt.from_flag(type_flag)
