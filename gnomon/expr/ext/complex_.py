"""Complex numbers in interleaved pairs: along the last axis, real and imaginary part by turns.

A function's name ends in what its operands are: c for pairs, r for real numbers, whose last axis is
half as long. Each is a row of a table, a formula on the parts; their gradients follow from it, and
treat the two parts as two real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from gnomon.base import ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.arguments import explained
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.slice_ import slice_
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, Scalar
from gnomon.expr.term import Term

Pair: TypeAlias = "tuple[Expr, Expr]"


@composite
class Interleave(Chainer):
    """`real` and `imag` by turns along the last axis."""

    real: Expr
    imag: Expr

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return (*self.real.shape[:-1], 2 * self.real.shape[-1]), self.real.dtype

    def at(self, i: Index) -> Term:
        *front, x = i
        half = (*front, x // 2)
        return i.select((x % 2).eq(0), i.elem(self.real, half), i.elem(self.imag, half))

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return (self.real, part(g, 0)), (self.imag, part(g, 1))


def part(pairs: Expr, which: int) -> Expr:
    """The real parts (0) or the imaginary ones (1)."""
    whole: list[int | None] = [None] * pairs.ndim
    return slice_(pairs, [*whole[1:], which], whole, [*whole[1:], 2])


def split(where: str, name: str, pairs: Expr) -> Pair:
    """Both parts of `pairs`; a ShapeError where the last axis has no pairs."""
    if not pairs.shape or pairs.shape[-1] % 2:
        raise ShapeError(complaint(where, name, "an even last axis", f"{pairs!r}"))
    return part(pairs, 0), part(pairs, 1)


def _cc(name: str, rule: Callable[[Pair, Pair], Pair], doc: str) -> Callable[[Expr, Expr], Expr]:
    def apply(a: Expr, b: Expr) -> Expr:
        return Interleave(*rule(split(name, "a", a), split(name, "b", b)))

    return _named(apply, name, doc)


def _cr(name: str, rule: Callable[[Pair, Expr], Pair], doc: str) -> Callable[[Expr, Expr], Expr]:
    def apply(a: Expr, b: Expr) -> Expr:
        return Interleave(*rule(split(name, "a", a), b))

    return _named(apply, name, doc)


def _rc(name: str, rule: Callable[[Expr, Pair], Pair], doc: str) -> Callable[[Expr, Expr], Expr]:
    def apply(a: Expr, b: Expr) -> Expr:
        return Interleave(*rule(a, split(name, "b", b)))

    return _named(apply, name, doc)


def _c(name: str, rule: Callable[[Pair], Pair], doc: str) -> Callable[[Expr], Expr]:
    def apply(src: Expr) -> Expr:
        return Interleave(*rule(split(name, "src", src)))

    return _named(apply, name, doc)


def _r(name: str, rule: Callable[[Pair], Expr], doc: str) -> Callable[[Expr], Expr]:
    def apply(src: Expr) -> Expr:
        return rule(split(name, "src", src))

    return _named(apply, name, doc)


def _named(apply: Callable[..., Expr], name: str, doc: str) -> Callable[..., Expr]:
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{doc}.\n\nRaises:\n    ShapeError: the shapes do not fit.\n"
    return explained(apply)


def _times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _over(a: Pair, b: Pair) -> Pair:
    size = _square(b)
    return (a[0] * b[0] + a[1] * b[1]) / size, (a[1] * b[0] - a[0] * b[1]) / size


def _real_over(a: Expr, b: Pair) -> Pair:
    size = _square(b)
    return a * b[0] / size, -(a * b[1]) / size


def _square(a: Pair) -> Expr:
    return a[0] * a[0] + a[1] * a[1]


@explained
def complex_pad_imag(src: Expr) -> Expr:
    """Real numbers as pairs with an imaginary part of 0.

    >>> complex_pad_imag(Buffer((2, 3))).shape
    (2, 6)

    Raises:
        ShapeError: `src` has no axis.
    """
    if not src.shape:
        raise ShapeError(complaint("complex_pad_imag", "src", "at least one axis", f"{src!r}"))
    return Interleave(src, broadcast_to(Scalar(0, src.dtype), src.shape))


complex_mul_cc = _cc("complex_mul_cc", _times, "Products of complex numbers")
complex_mul_cr = _cr(
    "complex_mul_cr", lambda a, b: (a[0] * b, a[1] * b), "Complex numbers times real ones"
)
complex_mul_rc = _rc(
    "complex_mul_rc", lambda a, b: (a * b[0], a * b[1]), "Real numbers times complex ones"
)
complex_div_cc = _cc("complex_div_cc", _over, "Quotients of complex numbers")
complex_div_cr = _cr(
    "complex_div_cr", lambda a, b: (a[0] / b, a[1] / b), "Complex numbers by real ones"
)
complex_div_rc = _rc("complex_div_rc", _real_over, "Real numbers by complex ones")
conj = _c("conj", lambda a: (a[0], -a[1]), "The conjugates of complex numbers")
complex_exchange = _c(
    "complex_exchange", lambda a: (a[1], a[0]), "Real and imaginary parts exchanged"
)
complex_toreal = _r("complex_toreal", lambda a: a[0], "The real parts")
complex_abs_square = _r("complex_abs_square", _square, "Squares of absolute values")
complex_sum_real_imag = _r(
    "complex_sum_real_imag", lambda a: a[0] + a[1], "Sums of real and imaginary parts"
)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    pairs, others, real = Buffer((2, 6)), Buffer((2, 6)), Buffer((2, 3))
    for both in (complex_mul_cc, complex_div_cc):
        yield both(pairs, others)
    for left in (complex_mul_cr, complex_div_cr):
        yield left(pairs, real)
    for right in (complex_mul_rc, complex_div_rc):
        yield right(real, pairs)
    for one in (conj, complex_exchange, complex_toreal, complex_abs_square, complex_sum_real_imag):
        yield one(pairs)
    yield complex_pad_imag(real * 2.0)
