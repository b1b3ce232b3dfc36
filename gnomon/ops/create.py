"""Operators without inputs: constants, ranges, the identity matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType, float64, from_flag, int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.expr.term import Number, cast_number
from gnomon.ops.infer import (
    Shape,
    Shapes,
    Types,
    fixed_dtypes,
    from_border,
    show_shape,
    times,
    zero_is_unknown,
)
from gnomon.ops.op import Op, op
from gnomon.ops.param import Dims, param

FLOATS = ("float16", "float32", "float64")
NUMBERS = ("bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8")
MORE = ("int16", "uint16", "uint32", "uint64")  # NumPy's, which no array of MXNet 1.9.1 has
ANY = ("bool", *NUMBERS, *MORE)


Known = Sequence[Shape] | None


def full(shape: tuple[int, ...], value: Number, dtype: DType) -> Expr:
    """`value` everywhere; true where `dtype` is bool and `value` is not 0, as 0.3 and NaN."""
    one = cast(Scalar(value, float64), dtype) if dtype.kind == "b" else Scalar(value, dtype)
    return ext.broadcast_to(one, shape)


class Created(Op):
    """What the operators without inputs have in common: shape, dtype and place are parameters.

    A shape may be left open (0, or None for all of it); then the graph says what it has become.
    """

    leading: ClassVar[tuple[str, ...]] = (
        "start", "stop", "step", "repeat", "infer_range", "N", "M", "k", "shape", "ctx",
    )  # fmt: skip
    ctx: str = param("", doc="Where the array is made.")

    def size(self) -> Shape | None:
        """The shape of the output, as far as the parameters say it."""
        return from_border(self.shape, zero_is_unknown())

    def made(self, out_shapes: Known) -> Shape:
        """The shape of the output: what was inferred, else what the parameters say."""
        shape = out_shapes[0] if out_shapes else self.size() or self.shape
        if shape is None or min(shape, default=0) < 0:
            raise ShapeError(complaint(self.name, "shape", "every size", show_shape(shape)))
        return shape

    def shapes(self, s: Shapes) -> None:
        s["output"] = self.size()

    def types(self, t: Types) -> None:
        t["output"] = self.real()

    def real(self) -> DType:
        """The dtype of the output."""
        found: DType = self.dtype
        return found


class Filled(Created):
    """One value everywhere."""

    dtype: DType = param("float32", choices=ANY, doc="Dtype of the output.")
    shape: Dims = param((), doc="Shape of the output.")
    fill = 0

    def forward(self, *, out_shapes: Known = None) -> Expr:
        return full(self.made(out_shapes), self.fill, self.dtype)


@op("_zeros", inputs=())
class Zeros(Filled):
    """Zeros."""


@op("_ones", inputs=())
class Ones(Filled):
    """Ones."""

    fill = 1


@op("_zeros_without_dtype", inputs=())
class ZerosWithoutDtype(Created):
    """Zeros whose dtype is a number of MXNet's, or -1 for float32."""

    shape: Dims | None = param(None, doc="Shape of the output.")
    dtype: int = param(-1, doc="Number of the dtype, -1 for the default.")

    def real(self) -> DType:
        """The dtype the number stands for."""
        return from_flag(max(self.dtype, 0))

    def forward(self, *, out_shapes: Known = None) -> Expr:
        return full(self.made(out_shapes), 0, self.real())


@op("_full", inputs=())
class Full(Created):
    """One number everywhere."""

    shape: Dims | None = param(None, doc="Shape of the output.")
    dtype: DType = param("float32", choices=ANY, doc="Dtype of the output.")
    value: float = param(doc="The number.")

    def numbers(self) -> dict[str, float]:
        """Its number; as a truth value many are one."""
        return {} if self.dtype.kind == "b" else {"value": self.value}

    def forward(self, *, out_shapes: Known = None) -> Expr:
        return full(self.made(out_shapes), self.value, self.dtype)


@op("_arange", inputs=())
class Arange(Created):
    """Numbers from `start` (included) to `stop` (excluded) in steps, each `repeat` times."""

    start: float = param(doc="First number; the end, counted from 0, where `stop` is None.")
    stop: float | None = param(None, doc="End of the numbers.")
    step: float = param(1.0, doc="Distance of neighbours.")
    repeat: int = param(1, low=1, doc="How often each number comes.")
    infer_range: bool = param(False, doc="Take the length from what the output goes into.")
    dtype: DType = param("float32", choices=NUMBERS, doc="Dtype of the output.")
    shape = None

    def check(self) -> None:
        if self.step == 0:
            raise self.wrong("step", "not 0")

    def size(self) -> Shape | None:
        if self.infer_range and self.stop is None:
            return None
        first, last = (0.0, self.start) if self.stop is None else (self.start, self.stop)
        return (max(math.ceil((last - first) / self.step), 0) * self.repeat,)

    def forward(self, *, out_shapes: Known = None) -> Expr:
        first = 0.0 if self.stop is None else self.start
        count = ext.iota(self.made(out_shapes), 0, int64)
        number = cast(count / self.repeat if self.repeat > 1 else count, self.dtype)
        step, start = (Scalar(self.held(x), self.dtype) for x in (self.step, first))
        return number * step + start

    def held(self, x: float) -> float:
        """`x` in the dtype of the output; whole numbers keep their low bits, as sums of them do."""
        return cast_number(int(x), self.dtype) if self.dtype.kind in "iu" else x


@op("_linspace", inputs=())
class Linspace(Created):
    """Numbers at equal distances from `start` to `stop`, which is the last one or left out."""

    leading: ClassVar[tuple[str, ...]] = ("start", "stop", "num", "endpoint", "ctx")
    start: float = param(doc="First number.")
    stop: float = param(doc="End of the numbers.")
    num: int = param(low=0, doc="How many numbers.")
    endpoint: bool = param(True, doc="Whether `stop` is one of them.")
    dtype: DType = param("float32", choices=NUMBERS, doc="Dtype of the output.")
    shape = None

    def size(self) -> Shape | None:
        return (self.num,)

    def forward(self) -> Expr:
        place = cast(ext.iota((self.num,), 0, int64), float64)
        gaps = max(self.num - self.endpoint, 1)
        found = place * ((self.stop - self.start) / gaps) + self.start
        if self.endpoint and self.num > 1:  # to the bit, whatever the distances round to
            found = fn.where(fn.eq(place, self.num - 1), self.stop, found)
        return cast(found, self.dtype)


class Told(Op):
    """What operators that tell of an array's shape share."""

    types = fixed_dtypes(output=int64)

    def listed(self, numbers: Sequence[int]) -> Expr:
        """`numbers` as an array."""
        place = ext.iota((len(numbers),), 0, int64)
        found = place * 0
        for k, n in enumerate(numbers):
            found = fn.where(fn.eq(place, k), n, found)
        return found


@op("shape_array")
class ShapeArray(Told):
    """The sizes of `data`, one an axis."""

    def shapes(self, s: Shapes) -> None:
        s["output"] = (len(s.need("data")),)

    def forward(self, data: Expr) -> Expr:
        return self.listed(data.shape)


@op("size_array")
class SizeArray(Told):
    """The number of elements of `data`."""

    def shapes(self, s: Shapes) -> None:
        s["output"] = (1,)

    def forward(self, data: Expr) -> Expr:
        return self.listed((times(data.shape),))


@op("_eye", inputs=())
class Eye(Created):
    """Ones on the `k`-th diagonal, zeros elsewhere."""

    N: int = param(low=0, doc="Rows.")
    M: int = param(0, low=0, doc="Columns; as many as rows where 0.")
    k: int = param(0, doc="Which diagonal: above the main one where positive.")
    dtype: DType = param("float32", choices=NUMBERS[1:], doc="Dtype of the output.")

    def size(self) -> Shape:
        return (self.N, self.M or self.N)

    def forward(self) -> Expr:
        row, column = (ext.iota(self.size(), axis, int64) for axis in (0, 1))
        return cast(fn.eq(column - row, self.k), self.dtype)
