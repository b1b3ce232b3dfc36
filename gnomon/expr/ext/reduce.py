"""reduce, arg_reduce, broadcast_to: many elements become one along some axes, and one becomes many.

They stand together because each is the other's adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gnomon import dtype as dt
from gnomon.base import GnomonError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes, normal_axes, normal_axis
from gnomon.expr.composite import Chainer, Sizes, composite
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, Scalar, cast, check_expr, map_over
from gnomon.expr.reducer import REDUCERS, Reducer, check_numbers
from gnomon.expr.term import Term
from gnomon.expr.view import view_of

Pairs = tuple[tuple[Expr, Expr], ...]


@composite
class Broadcast(Chainer):
    """`src` repeated along the axes `along` of the shape `to`; axes meet from the right."""

    src: Expr
    to: Sizes
    along: tuple[int, ...]

    def infer(self) -> tuple[tuple[int, ...], DType]:
        return self.to, self.src.dtype

    @property
    def front(self) -> int:
        """How many axes the result has before those of `src`."""
        return len(self.to) - self.src.ndim

    def at(self, i: Index) -> Term:
        held = [0 if a in self.along else x for a, x in enumerate(i)]
        return i.elem(self.src, held[self.front :])

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        return ((self.src, reshape(reduce(g, "sum", self.along, True), self.src.shape)),)

    def view(self, src: Buffer) -> Buffer | None:
        strides = (0,) * self.front + src.strides
        return view_of(
            src, self.shape, [0 if a in self.along else s for a, s in enumerate(strides)]
        )


@composite
class Reduce(Chainer):
    """`reducer` over `axes` of `src`: its value, or the position where it has two results."""

    src: Expr
    reducer: Reducer
    axes: tuple[int, ...]
    keepdims: bool

    def infer(self) -> tuple[tuple[int, ...], DType]:
        if self.reducer.arity == 1:
            check_numbers("reduce", "src", self.src, self.reducer)
        shape = (1 if a in self.axes else n for a, n in enumerate(self.src.shape))
        kept = tuple(n for a, n in enumerate(shape) if self.keepdims or a not in self.axes)
        return kept, self.src.dtype if self.reducer.arity == 1 else dt.int64

    def at(self, i: Index) -> Term:
        def body(k: Index) -> Term:
            outer, inner = iter(i), iter(k)
            index: list[Term] = []
            for axis in range(self.src.ndim):
                if axis in self.axes:
                    index.append(next(inner))
                    if self.keepdims:
                        next(outer)
                else:
                    index.append(next(outer))
            return i.elem(self.src, index)

        return i.fold(self.reducer, [self.src.shape[a] for a in self.axes], body)

    def adjoint(self, g: Expr) -> Pairs:
        if self.reducer.arity == 2:
            return ()
        rule = ADJOINTS.get(self.reducer.name)
        if rule is None:
            raise GnomonError(f"reduce: the reducer {self.reducer.name!r} has no derivative")
        return ((self.src, rule(self, g)),)

    def spread(self, e: Expr) -> Expr:
        """An expression of the result's shape, repeated over the shape of `src`."""
        thin = tuple(1 if a in self.axes else n for a, n in enumerate(self.src.shape))
        return broadcast_to(reshape(e, thin), self.src.shape)


def _to_ties(node: Reduce, g: Expr) -> Expr:
    tied: Expr = fn.eq(node.src, node.spread(node))
    return map_over(SCALAR["where"], (tied, node.spread(g), 0))


def _to_factors(node: Reduce, g: Expr) -> Expr:
    """The product of the others: by division, and by counting where factors are 0."""
    zero = fn.eq(node.src, 0)
    rest = node.spread(Reduce(fn.where(zero, 1, node.src), node.reducer, node.axes, node.keepdims))
    zeros = node.spread(Reduce(zero, REDUCERS["sum"], node.axes, node.keepdims))
    others: Expr = fn.where(
        zero, fn.where(fn.eq(zeros, 1), rest, 0), fn.where(zeros, 0, rest / node.src)
    )
    return node.spread(g) * others


# what the source receives; of several extremes each receives all
ADJOINTS: dict[str, Callable[[Reduce, Expr], Expr]] = {
    "sum": Reduce.spread,
    "max": _to_ties,
    "min": _to_ties,
    "prod": _to_factors,
}


@explained
def broadcast_to(src: Expr, shape: Sequence[int]) -> Expr:
    """`src` over `shape`: axes meet from the right, and those of size 1 or missing are repeated.

    >>> broadcast_to(Buffer((3, 1)), (2, 3, 4)).shape
    (2, 3, 4)

    Raises:
        ShapeError: an axis of `src` is neither 1 nor what `shape` says.
    """
    check_expr("broadcast_to", "src", src)
    to = checked_sizes("broadcast_to", shape)
    front = len(to) - src.ndim
    fits = front >= 0 and all(n in (1, m) for n, m in zip(src.shape, to[front:], strict=True))
    if not fits:
        raise ShapeError(complaint("broadcast_to", "shape", f"one that {src!r} stretches to", to))
    if to == src.shape and not isinstance(src, Scalar):
        return src
    theirs = (0,) * front + src.shape
    return Broadcast(src, to, tuple(a for a, n in enumerate(theirs) if n != to[a] or a < front))


@explained
def reduce(
    src: Expr,
    reducer: str | Reducer,
    axes: int | Iterable[int] | None = None,
    keepdims: bool = False,
) -> Expr:
    """`src` by 'sum', 'prod', 'max', 'min', 'argmax', 'argmin' or a `Reducer` along `axes`.

    Without `axes` along all; of all axes, an 'arg...' counts elements in row-major order. Integers
    have 'bitwise_and', 'bitwise_or' and 'bitwise_xor' as well.

    >>> reduce(Buffer((2, 3, 4)), "sum", (0, 2)).shape
    (3,)

    Raises:
        ShapeError: no such axis, or one is named twice.
        GnomonError: no such reducer.
    """
    if isinstance(reducer, str):
        found = REDUCERS.get(reducer)
        if found is None:
            expected = f"one of {', '.join(REDUCERS)}"
            raise GnomonError(complaint("reduce", "reducer", expected, repr(reducer)))
        reducer = found
    along = normal_axes("reduce", axes, src.ndim)
    return Reduce(src, reducer, along, keepdims) if along else src


@explained
def arg_reduce(src: Expr, reducer: str, axis: int, keepdims: bool = False) -> Expr:
    """Where along `axis` the 'max' or 'min' stands, as int64: the first of equals, NaN before all.

    >>> arg_reduce(Buffer((2, 3)), "max", 1).dtype.name
    'int64'

    Raises:
        ShapeError: no such axis, or it is empty.
        GnomonError: no such reducer.
    """
    if reducer not in ("max", "min"):
        raise GnomonError(complaint("arg_reduce", "reducer", "'max' or 'min'", repr(reducer)))
    axis = normal_axis("arg_reduce", axis, src.ndim)
    if src.shape[axis] == 0:
        raise ShapeError(complaint("arg_reduce", "src", f"elements along axis {axis}", f"{src!r}"))
    return Reduce(src, REDUCERS[f"arg{reducer}"], (axis,), keepdims)


def cases() -> Iterator[Expr]:
    """What the generic tests try."""
    yield broadcast_to(Buffer((3, 1)), (2, 3, 4))
    yield broadcast_to(Buffer((1, 3, 1)), (2, 3, 4))
    yield broadcast_to(Buffer(()), (2, 2))
    yield broadcast_to(Buffer((1,)), (0, 3))
    yield broadcast_to(Scalar(2.5, dt.float32), (3,))
    yield reduce(Buffer((2, 3, 4)), "sum", (0, 2))
    yield reduce(Buffer((2, 3, 4)), "sum", 1, keepdims=True)
    yield reduce(Buffer((3, 4)), "max", 0)
    yield reduce(Buffer((3, 4)), "min")
    yield reduce(Buffer((3, 4)), "prod", -1)
    yield reduce(Buffer((0, 3)), "sum", 0)
    yield cast(arg_reduce(Buffer((3, 5)), "max", 1), dt.float32)
    yield cast(arg_reduce(Buffer((3, 5)), "min", 0, keepdims=True), dt.float32)
