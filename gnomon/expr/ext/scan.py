"""scan: along an axis, what a reducer makes of all elements up to each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gnomon import dtype as dt
from gnomon.base import DTypeError, GnomonError, ParamError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.arguments import explained
from gnomon.expr.axes import normal_axis
from gnomon.expr.composite import Chainer, composite
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, cast, check_expr
from gnomon.expr.reducer import SCANNED, Reducer, check_numbers
from gnomon.expr.term import Term
from gnomon.shape import prod

Pairs = tuple[tuple[Expr, Expr], ...]


@composite
class Scan(Chainer):
    """`reducer` over all elements of `src` along `axis` up to each one; without it if `exclusive`.

    `reverse` begins at the end. A kernel goes along the axis once: each element of the result is
    made of the one before (see `plan/carry.py`); the index rule says what that is.
    """

    src: Expr
    reducer: Reducer
    axis: int
    exclusive: bool
    reverse: bool

    def infer(self) -> tuple[tuple[int, ...], DType]:
        check_numbers("scan", "src", self.src, self.reducer)
        return self.src.shape, self.src.dtype

    def at(self, i: Index) -> Term:
        here, n = i[self.axis], self.shape[self.axis]

        def body(k: Index) -> Term:
            value = i.elem(self.src, i.put(self.axis, k[0]))
            first, last = (here, k[0]) if self.reverse else (k[0], here)
            inside = first < last if self.exclusive else first <= last
            return i.select(inside, value, self.neutral)

        return i.fold(self.reducer, [n], body)

    @property
    def neutral(self) -> int | float | bool:
        """What changes nothing: the first element of an exclusive scan."""
        return self.reducer.start(self.dtype)[0]

    def adjoint(self, g: Expr) -> Pairs:
        rule = ADJOINTS.get(self.reducer.name)
        if rule is None:
            raise GnomonError(f"scan: the reducer {self.reducer.name!r} has no derivative")
        return ((self.src, rule(self, g)),)

    def back(self, e: Expr, reducer: str = "sum") -> Expr:
        """A scan of `e` the other way round: over all that an element has gone into."""
        return Scan(e, SCANNED[reducer], self.axis, self.exclusive, not self.reverse)


def _to_factors(node: Scan, g: Expr) -> Expr:
    """By division; at the first 0 by products without it, and behind that there is nothing."""
    src, axis = node.src, node.axis
    zero = cast(fn.eq(src, 0), g.dtype)
    before = Scan(zero, SCANNED["sum"], axis, True, node.reverse)
    first = zero * fn.eq(before, 0)
    filled = fn.where(first, 1, src)
    others = Scan(filled, node.reducer, axis, node.exclusive, node.reverse)
    plain = node.back(g * node) / fn.where(zero, 1, src)
    alone = fn.where(first, node.back(g * others), plain)
    passed: Expr = fn.where(before, 0, alone)
    return passed


def _to_exponents(node: Scan, g: Expr) -> Expr:
    """The sum of g * exp(src - node), gone back; in logarithms, by sign, since exp overflows."""

    def share(part: Expr) -> Expr:
        found: Expr = fn.exp(node.src + node.back(fn.log(part) - node, "logaddexp"))
        return found

    return share(fn.maximum(g, 0)) - share(fn.maximum(-g, 0))


# what the source receives
ADJOINTS: dict[str, Callable[[Scan, Expr], Expr]] = {
    "sum": Scan.back,
    "prod": _to_factors,
    "logaddexp": _to_exponents,
}


@explained
def scan(
    src: Expr,
    reducer: str | Reducer = "sum",
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Expr:
    """`src` up to each element along `axis` by 'sum', 'prod', 'max', 'min', 'logaddexp' or another.

    Without `axis` all elements stand in a row. `exclusive` leaves the element itself out, `reverse`
    begins at the end. A `Reducer` of your own gets its operands in the order of the scan.

    >>> scan(Buffer((2, 3)), "prod", 1).shape, scan(Buffer((2, 3))).shape
    ((2, 3), (6,))

    Raises:
        ShapeError: no such axis.
        DTypeError: the elements are truth values, or not floating-point for 'logaddexp'.
        GnomonError: no such reducer, or one of two values.
    """
    return _scan("scan", src, reducer, axis, exclusive, reverse)


def _scan(
    where: str,
    src: Expr,
    reducer: str | Reducer,
    axis: int | None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Expr:
    """`scan` for errors that name `where`."""
    check_expr(where, "src", src)
    if isinstance(reducer, str):
        found = SCANNED.get(reducer)
        if found is None:
            expected = f"one of {', '.join(SCANNED)}"
            raise ParamError(complaint(where, "reducer", expected, repr(reducer)))
        reducer = found
    if reducer.arity != 1:
        raise ParamError(complaint(where, "reducer", "one of single values", reducer.name))
    if reducer.name == "logaddexp" and src.dtype.kind != "f":
        raise DTypeError(complaint(where, "src", "floating-point numbers", f"{src!r}"))
    if axis is None:
        src, axis = reshape(src, (prod(src.shape),)), 0
    return Scan(src, reducer, normal_axis(where, axis, src.ndim), bool(exclusive), bool(reverse))


@explained
def cumsum(src: Expr, axis: int | None = None) -> Expr:
    """The sum of all elements up to each one along `axis`; raises as `scan` does.

    >>> cumsum(Buffer((2, 3)), 1).shape
    (2, 3)
    """
    return _scan("cumsum", src, "sum", axis)


@explained
def cumprod(src: Expr, axis: int | None = None) -> Expr:
    """The product of all elements up to each one along `axis`; raises as `scan` does.

    >>> cumprod(Buffer((2, 3)), 1).shape
    (2, 3)
    """
    return _scan("cumprod", src, "prod", axis)


@explained
def logcumsumexp(src: Expr, axis: int | None = None) -> Expr:
    """The logarithm of the sum of `exp` of all elements up to each one; raises as `scan` does.

    >>> logcumsumexp(Buffer((2, 3)), 1).shape
    (2, 3)
    """
    return _scan("logcumsumexp", src, "logaddexp", axis)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    for reducer in ("sum", "prod", "logaddexp"):
        yield scan(Buffer((2, 3, 4)), reducer, 1)
        exclusive = reducer != "logaddexp"  # whose first element is infinite
        yield scan(Buffer((3, 5)) * 2.0, reducer, -1, exclusive, reverse=True)
        yield scan(Buffer((7,)), reducer, 0, exclusive)
        yield scan(Buffer((2, 3)), reducer, reverse=True)
    yield scan(Buffer((5,), dt.int32), "max", 0)
    yield scan(Buffer((0, 3)), "sum", 0)
    yield cumsum(Buffer((3, 4)), 0)
    yield cumprod(Buffer((3, 4)), 0)
    yield logcumsumexp(Buffer((3, 4)), 0)
