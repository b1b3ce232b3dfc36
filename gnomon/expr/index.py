"""Index: the position of an element, one Term an axis, and what an index rule may ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gnomon import dtype as dt
from gnomon.expr import coerce
from gnomon.expr.term import Arena, Number, Term, compute_dtype

if TYPE_CHECKING:
    from gnomon.dtype import DType
    from gnomon.expr.node import Buffer, Expr
    from gnomon.expr.reducer import Reducer


class Index(tuple[Term, ...]):
    """A tuple of Terms that knows its arena; `at(i)` of an expression is written with it."""

    arena: Arena

    def __new__(cls, items: Iterable[Term | Number], arena: Arena) -> Index:
        if arena.watched:
            items = [coerce.component(arena, x) for x in items]
        terms = (x if isinstance(x, Term) else arena.const(x) for x in items)
        index = super().__new__(cls, terms)
        index.arena = arena
        return index

    def put(self, axis: int, value: Term | Number) -> Index:
        """The same index with another component at `axis`."""
        return Index((value if a == axis else x for a, x in enumerate(self)), self.arena)

    def put_all(self, items: Iterable[Term | Number]) -> Index:
        """An index of these components."""
        return Index(items, self.arena)

    def drop(self, axis: int) -> Index:
        """The index without the component at `axis`."""
        return Index((x for a, x in enumerate(self) if a != axis), self.arena)

    def insert(self, axis: int, value: Term | Number) -> Index:
        """The index with a further component before `axis`."""
        return Index((*self[:axis], value, *self[axis:]), self.arena)

    def elem(self, src: Expr, index: Sequence[Term | Number]) -> Term:
        """The element of `src` at `index`."""
        return self.arena.elem(src, Index(index, self.arena))

    def guard(self, inside: Term, value: Term | Number, other: Term | Number) -> Term:
        """`value` where `inside` holds, else `other`; loads of `value` happen only inside."""
        return self.arena.guard(inside, *coerce.chosen(inside, value, other))

    def select(self, cond: Term, yes: Term | Number, no: Term | Number) -> Term:
        """`yes` where `cond` holds, else `no`; both may be evaluated."""
        return self.arena.select(cond, *coerce.chosen(cond, yes, no))

    def cast(self, value: Term | Number, dtype: object) -> Term:
        """`value` as `dtype`, as `tcast` converts; half floats are computed in float32."""
        to = compute_dtype(dt.of(dtype))
        if isinstance(value, Term):
            return self.arena.cast(value, to)
        return self.arena.const(coerce.plain(self.arena, value), to)

    def fold(
        self, reducer: Reducer, extents: Sequence[Term | int], body: Callable[[Index], Term]
    ) -> Term:
        """`reducer` over `body(k)` for every k below `extents`.

        Reducers of several values see the position in row-major order after the value, and give
        their last result.
        """
        arena, dtypes = self.arena, list["DType"]()
        if arena.watched:
            extents = [coerce.component(arena, n) for n in extents]

        def bodies(k: tuple[Term, ...]) -> tuple[Term, ...]:
            value = body(Index(k, arena))
            if not isinstance(value, Term):
                raise coerce.refusal(
                    arena, "body", "what has a dtype; i.cast(1, 'int64') does", (value,)
                )
            if reducer.arity == 1:
                dtypes.append(value.dtype)
                return (arena.cast(value, reducer.computed(value.dtype)),)
            position = arena.const(0)
            for var, extent in zip(k, extents, strict=True):
                position = position * extent + var
            return (value, position)

        found = arena.fold(reducer, extents, bodies)[-1]
        return arena.cast(found, dtypes[0]) if dtypes else found

    def load(self, buffer: Buffer, mask: Term | None = None) -> Term:
        """What `buffer` holds here, in the dtype of computing; read only where `mask` holds."""
        if self.arena.clips:  # asked for by a rule that is not known to stay inside
            return self.arena.elem(buffer, self)
        where = tuple(self) if mask is None else (*self, mask)
        raw = self.arena.make("load", where, buffer.dtype, buffer)
        return self.arena.cast(raw, compute_dtype(buffer.dtype))
