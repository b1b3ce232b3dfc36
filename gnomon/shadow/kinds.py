"""mshadow's names for the kinds of expressions, to ask what an expression is and what it is of."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from gnomon.dtype import DType
from gnomon.expr.call.dot import Dot as DotExp
from gnomon.expr.ext.transpose import Transpose as TransposeExp
from gnomon.expr.node import Buffer, Expr, Map, Scalar, check_expr
from gnomon.shadow.lvalue import Joined

__all__ = [
    "BinaryMapExp",
    "DotExp",
    "ExpInfo",
    "RValueExp",
    "TernaryMapExp",
    "TransposeExp",
    "UnaryMapExp",
]

#: what may stand left of an assignment
RValueExp = Buffer | Joined


class _MapOf(type):
    """The type of a name for maps of `operands` expressions."""

    operands: int

    def __instancecheck__(cls, e: Any) -> bool:
        return isinstance(e, Map) and len(e.args) == cls.operands


class UnaryMapExp(metaclass=_MapOf):
    """A scalar operator mapped over one expression."""

    operands = 1


class BinaryMapExp(metaclass=_MapOf):
    """A scalar operator mapped over two expressions.

    >>> x = Buffer((3,))
    >>> isinstance(x + 1.0, BinaryMapExp), isinstance(-x, BinaryMapExp)
    (True, False)
    """

    operands = 2


class TernaryMapExp(metaclass=_MapOf):
    """A scalar operator mapped over three expressions."""

    operands = 3


class _Info(NamedTuple):
    exp_type: int
    dtype: DType
    dim: int | None
    shape: tuple[int, ...] | None


class ExpInfo(_Info):
    """The type, dtype, rank and shape of a whole expression, which its parts were checked to have.

    `dim`, the number of axes, and `shape` are None for a number, which fits any shape.

    >>> ExpInfo(Buffer((2, 3)) * 2.0)
    ExpInfo(exp_type=1, dtype=float32, dim=2, shape=(2, 3))

    Raises:
        TypeError: `e` is no expression.
    """

    __slots__ = ()

    def __new__(cls, e: Expr) -> Self:
        check_expr("ExpInfo", "e", e)
        if isinstance(e, Scalar):
            return super().__new__(cls, e.exp_type, e.dtype, None, None)
        return super().__new__(cls, e.exp_type, e.dtype, e.ndim, tuple(e.shape))
