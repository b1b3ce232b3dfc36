"""Statements and loops inside a function: vector loops, folds, stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from gnomon import dtype as dt
from gnomon.code.emit import Value
from gnomon.code.target import Target
from gnomon.code.values import Arguments, Values
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena
from gnomon.plan.ir import Body, Fold, Let, Put
from gnomon.plan.statement import SAVERS


class LoopWriter(Values, ABC):
    """Writes the statements of a nest; `long` lanes in the main loop, `short` ones in tails.

    Where the target has no masks, tails go one by one.
    """

    def __init__(
        self,
        arena: Arena,
        arguments: Arguments,
        target: Target,
        lanes: tuple[int, int],
        masks: bool = True,
    ) -> None:
        super().__init__(arena, arguments, target)
        self.short, self.long = lanes
        self.masks = masks

    def vector_loop(
        self, var: int, start: Value, stop: Value, tail: int, body: Callable[[], None]
    ) -> None:
        """Whole vectors first, then what is left, `tail` masked lanes at a time.

        `start` is a multiple of every vector's length.
        """
        e, lanes = self.e, self.long
        whole = self.int("and", self.int("sub", stop, start), e.index(-lanes))
        middle = self.int("add", start, whole)
        with e.for_range(start, middle, lanes) as i, self.over(var, i, lanes, None, True):
            body()
        self.masked_loop(var, middle, stop, tail, body, True)

    def aligned_loop(
        self,
        var: int,
        start: Value,
        stop: Value,
        head: Value,
        body: Callable[[], None],
        large: Value | None,
    ) -> None:
        """A vector loop that begins with `head` masked elements, so that the rest is aligned.

        Head and tail are one piece of code that is gone through twice, in the order of the index;
        once where there is nothing before the tail. Where `large` holds, whole vectors are stored
        past the caches.
        """
        e, lanes = self.e, self.long
        begin = self.smaller(self.int("add", start, head), stop)
        whole = self.int("and", self.int("sub", stop, begin), e.index(-lanes))
        middle = self.int("add", begin, whole)
        only_tail = e.primitive("eq", [start, middle], dt.bool_)
        turn = e.primitive("select", [only_tail, e.index(1), e.index(0)], dt.int64)
        with e.for_range(turn, e.index(2)) as turn, self.scope():
            first = e.primitive("eq", [turn, e.index(0)], dt.bool_)

            def pick(a: Value, b: Value) -> Value:
                return e.primitive("select", [first, a, b], dt.int64)

            self.masked_loop(var, pick(start, middle), pick(begin, stop), self.short, body)
            low, high = pick(begin, stop), pick(middle, stop)
            if large is not None:
                past = e.primitive("select", [large, high, low], dt.int64)
                self.past_caches = True
                with e.for_range(low, past, lanes) as i, self.over(var, i, lanes, None):
                    body()
                self.past_caches, low = False, past
            with e.for_range(low, high, lanes) as i, self.over(var, i, lanes, None):
                body()

    def masked_loop(
        self,
        var: int,
        start: Value,
        stop: Value,
        lanes: int,
        body: Callable[[], None],
        even: bool = False,
    ) -> None:
        """`lanes` iterations at a time, those that there are; `even` where `start` is."""
        e = self.e
        if not self.masks:
            with e.for_range(start, stop) as i, self.scope():
                self.base[var] = i
                body()
            return
        with e.for_range(start, stop, lanes) as i:
            self.left = e.convert(self.int("sub", stop, i), dt.int32)
            with self.over(var, i, lanes, self.inside(lanes), even):
                body()

    def in_turn(self, variables: Sequence[int], inside: Callable[[], None]) -> None:
        """`inside` for every combination of the variables, in order, the last one fastest."""
        if not variables:
            inside()
            return
        with self.e.for_range(self.e.index(0), self.extent(variables[0])) as i, self.scope():
            self.base[variables[0]] = i
            self.in_turn(variables[1:], inside)

    # -- statements -----------------------------------------------------------------------------

    def body(self, body: Body) -> None:
        for stmt in body:
            if isinstance(stmt, Let):
                self.value(stmt.term)
            elif isinstance(stmt, Fold):
                self.fold(stmt)
            else:
                self.put(stmt)

    def put(self, put: Put) -> None:
        value = self.value(put.value)
        update = SAVERS[put.saver]
        if update is not None:
            old = self.e.convert(self.fetch(put.dest, put.offset, None, True), value.dtype)
            value = self.e.primitive(update, [old, value], value.dtype)
        self.store(put.dest, put.offset, self.e.convert(value, put.dest.dtype))

    @abstractmethod
    def fold(self, fold: Fold) -> None:
        """The loops of a fold; its results are known afterwards."""

    def combine(
        self, reducer: Reducer, a: Sequence[Value], b: Sequence[Value], ordered: bool = False
    ) -> list[Value]:
        """The reducer's formula on values; `ordered` where those of `b` come after those of `a`."""
        arena = self.arena
        left = tuple(arena.arg(("left", k), v.dtype) for k, v in enumerate(a))
        right = tuple(arena.arg(("right", k), v.dtype) for k, v in enumerate(b))
        with self.scope():
            for term, value in zip((*left, *right), (*a, *b), strict=True):
                self.scopes[-1][term.id] = value
            formula = reducer.follow if ordered and reducer.follow else reducer.combine
            return [self.value(t) for t in formula(arena, left, right)]
