"""The words of the tensor language that are not tensors: scalars, maps, products, types, plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon import dtype as dt
from gnomon.base import DTypeError, ParamError, ShapeError, complaint, nearest, shown
from gnomon.expr import fn
from gnomon.expr.arguments import explained
from gnomon.expr.call.dot import BatchDot, Dot
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.functions.scalar import ScalarFn
from gnomon.expr.node import Buffer, Expr, Map, Operand, Scalar, cast
from gnomon.expr.pattern import steady
from gnomon.expr.term import Number

kRValue, kMapper, kChainer, kComplex = 0, 1, 3, 7
kDevCPU, kDevGPU = 1, 2


@explained
def scalar(x: Number, dtype: Any = dt.default_real) -> Scalar:
    """The number `x` as an expression that fits any shape; another value never recompiles.

    >>> scalar(3, "uint8")
    <3 scalar uint8>

    Raises:
        DTypeError: a whole number that `dtype` does not hold.
    """
    made = Scalar(x, dt.of(dtype))
    if made.dtype.kind in "iu" and isinstance(made.value, int) and made.value != x:
        raise DTypeError(complaint("scalar", "x", f"a number that {made.dtype} holds", shown(x)))
    return made


@explained
def tcast(dtype: Any, e: Expr) -> Expr:
    """`e` converted: floats to integers truncate toward zero and saturate, NaN gives 0."""
    return cast(e, dt.of(dtype))


@explained
def exp_type(e: Expr) -> int:
    """The bitwise or of the kinds of all parts: kRValue, kMapper, kChainer, kComplex.

    >>> x = Buffer((2, 2))
    >>> exp_type(x), exp_type(x + 1.0), exp_type(Transpose(x, (1, 0)) + x)
    (0, 1, 3)
    """
    return e.exp_type


def F(op: ScalarFn | str) -> Callable[..., Map]:
    """The scalar operator `op`, or the built-in of that name, to be mapped over expressions.

    >>> F("maximum")(Buffer((3,)), 0.0)
    <maximum 3 float32>

    Raises:
        ParamError: there is no such operator.
    """
    found = getattr(fn, op, None) if isinstance(op, str) else op
    if not isinstance(found, ScalarFn):
        hint = nearest(op, dir(fn)) if isinstance(op, str) else ""
        expected = "a scalar operator, or the name of a built-in one"
        raise ParamError(complaint("F", "op", expected, op) + hint)
    return found


@explained
def make_exp(op: ScalarFn | str, *operands: Operand) -> Map:
    """`F(op)` of one to three expressions; raises where shapes or dtypes differ."""
    return F(op)(*operands)


@explained
def dot(left: Expr, right: Expr) -> Expr:
    """The product of matrices, of a vector with a matrix, or the outer product `dot(v1.T, v2)`.

    Operands are tensors or their `.T`; `scale * dot(a, b)` stays one call of BLAS.

    >>> dot(Buffer((2, 3)), Transpose(Buffer((4, 3)), (1, 0))).shape
    (2, 4)
    >>> dot(Buffer((3,)), Buffer((3, 5))).shape
    (5,)

    Raises:
        ShapeError: the shapes do not fit.
    """
    if left.ndim == right.ndim == 2:
        return Dot(left, right)
    if left.ndim == 1 and right.ndim == 2:
        product = Dot(row(left), right)
        return reshape(product, product.shape[1:])
    if isinstance(left, Transpose) and left.ndim == right.ndim == 1:
        return Dot(row(left.src), row(right), transpose_a=True)
    expected = "two matrices, a vector and a matrix, or v1.T and v2"
    raise ShapeError(complaint("dot", "left, right", expected, f"{left!r}, {right!r}"))


def row(vector: Expr) -> Expr:
    """A vector as a matrix of one row, over the same memory."""
    if not isinstance(vector, Buffer):
        return reshape(vector, (1, *vector.shape))
    return steady(lambda: _row(vector))


def _row(vector: Buffer) -> Expr:
    (n,), (step,) = vector.shape, vector.strides
    strides = (n * step, step)
    owner = vector if vector.owner is None else vector.owner
    return Buffer((1, n), vector.dtype, strides, vector.address, owner, vector.device)


@explained
def batch_dot(
    left: Expr, right: Expr, transpose_left: bool = False, transpose_right: bool = False
) -> Expr:
    """The product of every matrix of `left` with that of `right`; ShapeError if they do not fit."""
    return BatchDot(left, right, transpose_left, transpose_right)
