"""dot, batch_dot: products of matrices, either operand transposed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.composite import Call, composite
from gnomon.expr.ext.implicit_dot import ImplicitDot
from gnomon.expr.node import Expr

Array = np.ndarray[Any, Any]


@composite
class Dot(Call):
    """`op(a) @ op(b)` of matrices, op being the transposition where a flag says so."""

    a: Expr
    b: Expr
    transpose_a: bool = False
    transpose_b: bool = False
    rank: ClassVar[int] = 2
    word: ClassVar[str] = "dot"

    def infer(self) -> tuple[tuple[int, ...], DType]:
        name = self.word
        for argument, operand in (("a", self.a), ("b", self.b)):
            if operand.ndim != self.rank:
                raise ShapeError(complaint(name, argument, f"{self.rank} axes", f"{operand!r}"))
        if self.a.dtype is not self.b.dtype:
            raise DTypeError(complaint(name, "b", f"dtype {self.a.dtype.name}", f"{self.b!r}"))
        m, k = self.a.shape[-2:][:: -1 if self.transpose_a else 1]
        other, n = self.b.shape[-2:][:: -1 if self.transpose_b else 1]
        if k != other or self.a.shape[:-2] != self.b.shape[:-2]:
            flags = f"transposed {self.transpose_a}, {self.transpose_b}"
            expected = f"a shape that fits {self.a!r} ({flags})"
            raise ShapeError(complaint(name, "b", expected, f"{self.b!r}"))
        return (*self.a.shape[:-2], m, n), self.a.dtype

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        make, a, b, ta, tb = type(self), self.a, self.b, self.transpose_a, self.transpose_b
        to_a = make(b, g, tb, True) if ta else make(g, b, False, not tb)
        to_b = make(g, a, True, ta) if tb else make(a, g, not ta, False)
        return (a, to_a), (b, to_b)

    def reference(self, *operands: Array) -> Array:
        a, b = operands
        left = np.swapaxes(a, -1, -2) if self.transpose_a else a
        right = np.swapaxes(b, -1, -2) if self.transpose_b else b
        return np.asarray(np.matmul(left, right))

    def fallback(self) -> Expr:
        """The same as an expression that a loop nest computes."""
        return ImplicitDot(self.a, self.b, self.transpose_a, self.transpose_b)


@composite
class BatchDot(Dot):
    """The product of every matrix of `a` with that of `b` at the same place of the first axis."""

    rank: ClassVar[int] = 3
    word: ClassVar[str] = "batch_dot"


def dot(a: Expr, b: Expr, transpose_a: bool = False, transpose_b: bool = False) -> Dot:
    """The product of two matrices.

    >>> from gnomon.expr.node import Buffer
    >>> dot(Buffer((2, 3)), Buffer((4, 3)), transpose_b=True).shape
    (2, 4)

    Raises:
        ShapeError: an operand is no matrix, or the inner sizes differ.
        DTypeError: the operands' dtypes differ.
    """
    return Dot(a, b, transpose_a, transpose_b)


def batch_dot(a: Expr, b: Expr, transpose_a: bool = False, transpose_b: bool = False) -> BatchDot:
    """The products of rows of matrices, (batch, m, k) by (batch, k, n); raises as `dot` does."""
    return BatchDot(a, b, transpose_a, transpose_b)
