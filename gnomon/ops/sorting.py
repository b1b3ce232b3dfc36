"""Operators that put elements in order: they work on data, by NumPy on one of the engine's workers.
GPUs compute expressions instead, whose `Order` their own kernels find.

Equal elements stay in their order, and NaN comes last, whichever way is sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gnomon.dtype import DType, int8
from gnomon.expr import call, ext
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.ops.derive import Needs
from gnomon.ops.host import BRIEF
from gnomon.ops.infer import Shape, Shapes, Types, normal_axis
from gnomon.ops.op import Op, op
from gnomon.ops.param import param
from gnomon.ops.requests import check_requests, kAddTo, kNullOp
from gnomon.shadow.sorting import order_of
from gnomon.shape import prod

Array = np.ndarray[Any, Any]

POSITIONS = ("float16", "float32", "float64", "int32", "int64", "uint8")


def store(blob: Any, request: Any, values: Array) -> None:
    """Store values into memory as a request says."""
    if request == kNullOp:
        return
    memory = blob.tensor.numpy()
    values = values.reshape(memory.shape)
    if request == kAddTo:
        memory += values.astype(memory.dtype)
    else:
        np.copyto(memory, values, casting="unsafe")


class Ordering(Op):
    """What the operators share: the axis, the direction, and gradients by position."""

    axis: int | None = param(-1, doc="The axis; all elements in a row where None.")
    is_ascend: bool = param(True, doc="Whether the least comes first.")
    has_gradient: ClassVar[bool] = False
    forward_elsewhere = True
    brief = BRIEF

    def rows(self, data: Array) -> Array:
        """The elements with the axis last."""
        return data.reshape(-1) if self.axis is None else np.moveaxis(data, self.axis, -1)

    def back(self, rows: Array) -> Array:
        """Rows with the axis where it was."""
        return rows if self.axis is None else np.moveaxis(rows, -1, self.axis)

    def places(self, data: Array, count: int | None = None) -> Array:
        """The positions, along the last axis, of the elements in order: the first `count`."""
        return order_of(self.rows(data), self.is_ascend, count)

    def length(self, shape: Shape) -> int:
        """How many elements are put in order together."""
        if self.axis is None:
            return int(np.prod(shape))
        return shape[normal_axis(self.name, self.axis, len(shape))]

    def sized(self, shape: Shape, count: int) -> Shape:
        """The shape of so many elements of each row."""
        if self.axis is None:
            return (count,)
        axis = normal_axis(self.name, self.axis, len(shape))
        return (*shape[:axis], count, *shape[axis + 1 :])

    # -- as expressions -------------------------------------------------------------------------

    def as_rows(self, e: Expr) -> Expr:
        """A matrix whose rows are put in order."""
        if self.axis is None:
            return ext.reshape(e, (1, prod(e.shape)))
        axis = normal_axis(self.name, self.axis, e.ndim)
        e = ext.transpose(e, (*range(axis), *range(axis + 1, e.ndim), axis))
        return ext.reshape(e, (prod(e.shape[:-1]), e.shape[-1]))

    def from_rows(self, rows: Expr, shape: Shape) -> Expr:
        """Such a matrix as what is made of data of a shape."""
        shape, length = self.sized(shape, rows.shape[1]), rows.shape[1]
        if self.axis is None:
            return ext.reshape(rows, shape)
        axis = normal_axis(self.name, self.axis, len(shape))
        moved = ext.reshape(rows, (*shape[:axis], *shape[axis + 1 :], length))
        return ext.transpose(moved, (*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)))

    def restored(self, rows: Expr, shape: Shape) -> Expr:
        """A matrix of all elements as the data was."""
        return ext.reshape(rows, shape) if self.axis is None else self.from_rows(rows, shape)

    def order(self, data: Expr, count: int | None = None) -> Expr:
        """Where the elements of each row in order come from: the first `count`."""
        rows = self.as_rows(data)
        return call.Order(rows, self.is_ascend, rows.shape[1] if count is None else count)

    def backward(self, *parts: Any, **context: Any) -> tuple[Expr | None, ...]:
        (grad, *_), (data,), _ = parts
        found: Expr = ext.broadcast_to(Scalar(0, data.dtype), data.shape)
        if self.gives_values() and prod(grad.shape):
            rows = self.as_rows(grad)
            places = self.order(data, rows.shape[1])
            length = self.length(data.shape)
            found = self.restored(call.put_along(places, rows, length), data.shape)
        return (found,)

    def backward_needs(
        self, in_shapes: Sequence[Shape], in_types: Sequence[DType], **context: Any
    ) -> Needs:
        return Needs((0,), (0,), ()) if self.gives_values() else Needs((), (), ())

    def gives_values(self) -> bool:
        """Whether the first output are values, which have a gradient."""
        return self.has_gradient

    def run_backward(
        self, ctx: Any, out_grad: Any, in_data: Any, out_data: Any, req: Any, in_grad: Any, aux: Any
    ) -> None:
        check_requests(self.name, req, in_grad)
        if in_grad[0] is None:
            return
        found = np.zeros(in_grad[0].shape_, in_grad[0].tensor.numpy().dtype)
        if self.gives_values():
            data, grad = in_data[0].tensor.numpy(), out_grad[0].tensor.numpy()
            rows = self.rows(np.zeros_like(found))
            places = self.places(data, self.rows(grad).shape[-1])
            np.put_along_axis(rows, places, self.rows(grad), axis=-1)
            found = self.back(rows)
        store(in_grad[0], req[0], found)


@op("sort")
class Sort(Ordering):
    """The elements in order along an axis."""

    has_gradient = True

    def forward(self, data: Expr) -> Expr:
        return self.from_rows(call.along(self.as_rows(data), self.order(data)), data.shape)

    def outputs(self) -> tuple[str, ...]:
        return ("output0",)

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output0"] = self.sized(data, self.length(data))

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        check_requests(self.name, req, out_data)
        data = in_data[0].tensor.numpy()
        values = np.take_along_axis(self.rows(data), self.places(data), axis=-1)
        store(out_data[0], req[0], self.back(values))


@op("argsort")
class ArgSort(Ordering):
    """Where the elements in order come from, along an axis."""

    dtype: DType = param("float32", choices=POSITIONS, doc="Dtype of the positions.")

    def forward(self, data: Expr) -> Expr:
        return cast(self.from_rows(self.order(data), data.shape), self.dtype)

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        s["output"] = self.sized(data, self.length(data))

    def types(self, t: Types) -> None:
        t["output"] = self.dtype

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        check_requests(self.name, req, out_data)
        store(out_data[0], req[0], self.back(self.places(in_data[0].tensor.numpy())))


@op("topk")
class TopK(Ordering):
    """The first `k` elements in order along an axis: positions, values, both, or a mask."""

    k: int = param(1, doc="How many; all of them if less than 1.")
    ret_typ: str = param(
        "indices", choices=("both", "indices", "mask", "value"), doc="What is given."
    )
    is_ascend: bool = param(False, doc="Whether the least count, not the greatest.")
    dtype: DType = param("float32", choices=POSITIONS, doc="Dtype of the positions.")

    def forward(self, data: Expr) -> tuple[Expr, ...]:
        length = self.length(data.shape)
        places = self.order(data, self.k if self.k > 0 else length)
        if self.ret_typ == "mask":
            marks = call.put_along(places, ext.broadcast_to(Scalar(1, int8), places.shape), length)
            return (cast(self.restored(marks, data.shape), data.dtype),)
        found = [] if self.ret_typ == "indices" else [call.along(self.as_rows(data), places)]
        found += [] if self.ret_typ == "value" else [cast(places, self.dtype)]
        return tuple(self.from_rows(e, data.shape) for e in found)

    def outputs(self) -> tuple[str, ...]:
        named = {"both": ("output0", "output1"), "value": ("output0",)}
        return named.get(self.ret_typ, ("output",))

    def gives_values(self) -> bool:
        return self.ret_typ in ("value", "both")

    def shapes(self, s: Shapes) -> None:
        data = s.need("data")
        length = self.length(data)
        if self.k > length:
            raise self.wrong("k", f"at most {length}, the elements of a row")
        for name in self.outputs():
            s[name] = (
                data
                if self.ret_typ == "mask"
                else self.sized(data, self.k if self.k > 0 else length)
            )

    def types(self, t: Types) -> None:
        first, *places = self.outputs()
        if self.ret_typ == "indices":
            places = [first]
        else:
            t.same("data", first)
        for name in places:
            t[name] = self.dtype

    def run(self, ctx: Any, in_data: Any, req: Any, out_data: Any, aux: Any) -> None:
        check_requests(self.name, req, out_data)
        data = in_data[0].tensor.numpy()
        rows = self.rows(data)
        places = self.places(data, self.k if self.k > 0 else rows.shape[-1])
        if self.ret_typ == "mask":
            marks = np.zeros(rows.shape, data.dtype)
            np.put_along_axis(marks, places, np.ones(1, data.dtype), axis=-1)
            store(out_data[0], req[0], self.back(marks))
            return
        found = [] if self.ret_typ == "indices" else [np.take_along_axis(rows, places, axis=-1)]
        found += [] if self.ret_typ == "value" else [places]
        for blob, request, each in zip(out_data, req, found, strict=True):
            store(blob, request, self.back(each))
