"""implicit_dot: a product of matrices as an index rule, which may stand inside any expression."""

from __future__ import annotations

from collections.abc import Iterator

from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.reducer import SUM, check_numbers
from gnomon.expr.term import Term


@composite
class ImplicitDot(Chainer):
    """`op(a) @ op(b)` of matrices, or of every pair of matrices along a common first axis."""

    a: Expr
    b: Expr
    transpose_a: bool = False
    transpose_b: bool = False

    def infer(self) -> tuple[tuple[int, ...], DType]:
        for name, operand in (("a", self.a), ("b", self.b)):
            if operand.ndim not in (2, 3) or operand.ndim != self.a.ndim:
                raise ShapeError(complaint("implicit_dot", name, "a matrix", f"{operand!r}"))
        if self.a.dtype is not self.b.dtype:
            expected = f"dtype {self.a.dtype.name}"
            raise DTypeError(complaint("implicit_dot", "b", expected, f"{self.b!r}"))
        check_numbers("implicit_dot", "a", self.a)
        m, k = self.a.shape[-2:][:: -1 if self.transpose_a else 1]
        other, n = self.b.shape[-2:][:: -1 if self.transpose_b else 1]
        if k != other or self.a.shape[:-2] != self.b.shape[:-2]:
            expected = f"a shape that fits {self.a!r}"
            raise ShapeError(complaint("implicit_dot", "b", expected, f"{self.b!r}"))
        return (*self.a.shape[:-2], m, n), self.a.dtype

    def at(self, i: Index) -> Term:
        *batch, row, column = i
        inner = self.a.shape[-2] if self.transpose_a else self.a.shape[-1]

        def product(k: Index) -> Term:
            left = (k[0], row) if self.transpose_a else (row, k[0])
            right = (column, k[0]) if self.transpose_b else (k[0], column)
            return i.elem(self.a, (*batch, *left)) * i.elem(self.b, (*batch, *right))

        return i.fold(SUM, [inner], product)

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        a, b, ta, tb = self.a, self.b, self.transpose_a, self.transpose_b
        to_a = ImplicitDot(b, g, tb, True) if ta else ImplicitDot(g, b, False, not tb)
        to_b = ImplicitDot(g, a, True, ta) if tb else ImplicitDot(a, g, not ta, False)
        return (a, to_a), (b, to_b)


@explained
def implicit_dot(a: Expr, b: Expr, transpose_a: bool = False, transpose_b: bool = False) -> Expr:
    """The product of two matrices of any expressions, computed in the loop of what it stands in.

    >>> implicit_dot(Buffer((2, 3)), Buffer((4, 3)), transpose_b=True).shape
    (2, 4)

    Raises:
        ShapeError: an operand is no matrix, or the inner sizes differ.
        DTypeError: the operands' dtypes differ.
    """
    return ImplicitDot(a, b, transpose_a, transpose_b)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield implicit_dot(Buffer((2, 3)), Buffer((3, 5)))
    yield implicit_dot(Buffer((3, 2)), Buffer((5, 3)), True, True)
    yield implicit_dot(Buffer((2, 4, 3)), Buffer((2, 4, 3)), transpose_b=True)
