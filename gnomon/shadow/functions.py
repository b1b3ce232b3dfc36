"""Functions that compute into tensors: softmax, products, scattered sums, sorting, reductions.

The results of all of them are the same for any number of threads: what meets in one place is summed
or stored in the order of its index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint
from gnomon.expr import call, ext, fn
from gnomon.expr.arguments import explained
from gnomon.expr.node import Expr, Operand, cast
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Number
from gnomon.plan.cut import overlap
from gnomon.plan.statement import Saver
from gnomon.runtime.statements.dispatch import store
from gnomon.shadow.assign import check_products, plusto
from gnomon.shadow.container import TensorContainer, write
from gnomon.shadow.language import batch_dot
from gnomon.shadow.sorting import order_of
from gnomon.shadow.tensor import Tensor

Array = np.ndarray[Any, Any]


def class_axis(where: str, e: Expr) -> int:
    """The axis of the classes: the second of (rows, classes) and of (rows, classes, places)."""
    if e.ndim not in (1, 2, 3):
        raise ShapeError(complaint(where, "energy", "one to three axes", f"{e!r}"))
    return 0 if e.ndim == 1 else 1


@explained
def softmax(dst: Tensor, energy: Expr) -> Tensor:
    """Store the softmax of `energy` along its second axis (of a vector, the only one) in `dst`.

    >>> from gnomon.shadow.container import TensorContainer
    >>> softmax(TensorContainer((2, 4)), TensorContainer((2, 4), init=3.0)).numpy()[0]
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
    """
    axis = class_axis("softmax", energy)
    highest = ext.broadcast_to(ext.reduce(energy, "max", axis, True), energy.shape)
    e: Expr = fn.exp(energy - highest)
    return dst.assign(e / ext.broadcast_to(ext.reduce(e, "sum", axis, True), e.shape))


@explained
def softmax_grad(dst: Tensor, src: Expr, label: Expr, ignore_label: Number | None = None) -> Tensor:
    """Store `src` less 1 at the class `label` names: the gradient of the loss by the energy.

    `label` has the shape of `src` without its class axis; where it is `ignore_label`, 0 is stored.

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
    """
    axis = class_axis("softmax_grad", src)
    if label.shape != src.shape[:axis] + src.shape[axis + 1 :]:
        expected = f"the shape of {src!r} without axis {axis}"
        raise ShapeError(complaint("softmax_grad", "label", expected, f"{label!r}"))
    thin = (*src.shape[:axis], 1, *src.shape[axis + 1 :])
    wide = ext.broadcast_to(ext.reshape(cast(label, dt.int64), thin), src.shape)
    hit = cast(fn.eq(ext.iota(src.shape, axis), wide), src.dtype)
    grad: Expr = src - hit
    if ignore_label is not None:
        grad = fn.where(cast(fn.eq(wide, int(ignore_label)), src.dtype), 0, grad)
    return dst.assign(grad)


@explained
def vector_dot(dst: Tensor, lhs: Expr, rhs: Expr) -> Tensor:
    """Store the inner product of two vectors in `dst`, of shape (1,).

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
    """
    if lhs.ndim != 1 or dst.shape != (1,):
        expected = "dst of shape (1,) and vectors"
        raise ShapeError(complaint("vector_dot", "dst, lhs", expected, f"{dst!r}, {lhs!r}"))
    return dst.assign(ext.reduce(lhs * rhs, "sum", 0, keepdims=True))


@explained
def batch_gemm(
    dst: Tensor,
    lhs: Expr,
    rhs: Expr,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_left: bool = False,
    transpose_right: bool = False,
) -> Tensor:
    """Store `alpha * lhs @ rhs + beta * dst`, a matrix of each along the first axis, in `dst`.

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
        GnomonError: `dst` lies over an operand, or an operand is no data.
    """
    product: Expr = batch_dot(lhs, rhs, transpose_left, transpose_right)
    if product.shape != dst.shape:
        raise ShapeError(complaint("batch_gemm", "dst", f"shape {product.shape}", f"{dst!r}"))
    if product.dtype is not dst.dtype:
        raise DTypeError(complaint("batch_gemm", "dst", product.dtype.name, f"{dst!r}"))
    check_products(product, plusto)
    if any(isinstance(e, Tensor) and overlap(dst, e) for e in (lhs, rhs)):
        raise GnomonError(complaint("batch_gemm", "dst", "memory apart from the operands", dst))
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return dst.assign(product)
    if beta != 1:
        dst *= beta
    return dst.assign(product, plusto)


@explained
def add_take_grad(dst: Tensor, index: Expr, src: Expr) -> Tensor:
    """Add each row of `src` to the row of `dst` that `index` names; equal ones in their order.

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
    """
    if not dst.shape:
        raise ShapeError(complaint("add_take_grad", "dst", "rows", f"{dst!r}"))
    return dst.assign(ext.take_grad(index, src, dst.shape[0]), plusto)


@explained
def add_take_grad_large_batch(dst: Tensor, sorted: Expr, index: Expr, src: Expr) -> Tensor:
    """Add row `index[k]` of `src` to row `sorted[k]` of `dst`, for every k in order.

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
    """
    return add_take_grad(dst, sorted, ext.take(src, index))


@explained
def index_fill(dst: Tensor, index: Tensor, src: Tensor) -> Tensor:
    """Store each row of `src` in the row of `dst` that `index` names; of equal ones the last stays.

    Raises:
        ShapeError, DTypeError: the operands do not fit; `dst` is untouched.
        ParamError: a number that names no row; `dst` is untouched.
    """
    where = "index_fill"
    if index.dtype.kind not in "iu":
        raise DTypeError(complaint(where, "index", "integers", f"{index!r}"))
    if src.dtype is not dst.dtype:
        raise DTypeError(complaint(where, "src", f"dtype {dst.dtype.name}", f"{src!r}"))
    if not dst.shape or index.ndim != 1 or src.shape != (*index.shape, *dst.shape[1:]):
        expected = f"a row of {dst!r} for each number of {index!r}"
        raise ShapeError(complaint(where, "src", expected, f"{src!r}"))
    rows = np.asarray(index.numpy(), np.int64)
    if rows.size and not 0 <= rows.min() <= rows.max() < dst.shape[0]:
        expected = f"rows from 0 to {dst.shape[0] - 1}"
        raise ParamError(complaint(where, "index", expected, f"{rows.min()} to {rows.max()}"))
    # NumPy stores in no promised order: keep the last of each row only
    last = np.full(dst.shape[0], -1)
    np.maximum.at(last, rows, np.arange(rows.size))
    (named,) = np.nonzero(last >= 0)
    rows = src.numpy()[last[named]]
    if dst.device == "cpu":
        dst.numpy()[named] = rows
        return dst
    whole = dst.numpy().copy()
    whole[named] = rows
    write(dst, whole)
    return dst


@explained
def sort_by_key(keys: Tensor, values: Tensor, is_ascend: bool = True) -> None:
    """Sort `keys`, and `values` with them, in place; equal keys keep their order, NaN comes last.

    Raises:
        ShapeError: they are not two vectors of one length; both are untouched.
    """
    if keys.ndim != 1 or values.shape != keys.shape:
        expected = "vectors of one length"
        raise ShapeError(complaint("sort_by_key", "values", expected, f"{keys!r}, {values!r}"))
    if on_one_gpu(keys, values):
        reorder_there(order_there(keys, is_ascend, keys.device), keys, values)
    else:
        reorder(order_of(keys.numpy(), is_ascend), keys, values)


@explained
def vectorized_sort(values: Tensor, segments: Tensor) -> None:
    """Sort by `segments` and within each by `values`, in place; equal ones keep their order.

    Raises:
        ShapeError: they are not two vectors of one length; both are untouched.
    """
    if values.ndim != 1 or values.shape != segments.shape:
        expected = "vectors of one length"
        got = f"{values!r}, {segments!r}"
        raise ShapeError(complaint("vectorized_sort", "segments", expected, got))
    if on_one_gpu(values, segments):
        first_there = order_there(values, True, values.device)
        places = order_there(ext.take(segments, first_there), True, values.device)
        reorder_there(ext.take(first_there, places), values, segments)
        return
    first = order_of(values.numpy(), True)
    reorder(first[order_of(segments.numpy()[first], True)], values, segments)


def reorder(order: Array, *tensors: Tensor) -> None:
    """Let each vector hold its elements in this order."""
    contents = [tensor.numpy()[order] for tensor in tensors]
    for tensor, content in zip(tensors, contents, strict=True):
        write(tensor, content)  # all are read before any is written: they may overlap


def on_one_gpu(*tensors: Tensor) -> bool:
    """Whether the memory of all of them is on the same GPU."""
    return len({t.device for t in tensors}) == 1 and tensors[0].device.startswith("gpu")


def order_there(keys: Expr, is_ascend: bool, device: str) -> Tensor:
    """Where the elements of a vector on a GPU in order come from, on that GPU."""
    (count,) = keys.shape
    found = call.Order(ext.reshape(keys, (1, count)), is_ascend, count)
    order = TensorContainer((count,), dt.int32, device=device)
    store(order, "saveto", ext.reshape(found, (count,)))
    return order


def reorder_there(order: Expr, *tensors: Tensor) -> None:
    """Let each vector on a GPU hold its elements in this order."""
    contents = [TensorContainer(t.shape, t.dtype, device=t.device) for t in tensors]
    for content, tensor in zip(contents, tensors, strict=True):
        content.assign(ext.take(tensor, order))
    for content, tensor in zip(contents, tensors, strict=True):
        tensor.assign(content)


@explained
def map_exp(saver: Saver, dst: Tensor, e: Operand) -> Tensor:
    """`dst saver e`; raises as an assignment does."""
    return dst.assign(e, saver)


@explained
def map_reduce_keep_lowest(
    saver: Saver, red: str | Reducer, dst: Tensor, e: Expr, scale: Number = 1
) -> Tensor:
    """`dst saver scale * red` over all axes but the last: a vector; raises as assigning does."""
    return dst.assign(ext.reduce_except_dim(red, e, -1, scale), saver)


@explained
def map_reduce_keep_high_dim(
    saver: Saver, red: str | Reducer, dst: Tensor, e: Expr, dim: int, scale: Number = 1
) -> Tensor:
    """`dst saver scale * red` over all axes but `dim`: a vector; raises as assigning does."""
    return dst.assign(ext.reduce_except_dim(red, e, dim, scale), saver)
