"""Statements and loops inside a function: vector loops, folds, stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon import dtype as dt
from gnomon.code.emit import Value
from gnomon.code.target import Target
from gnomon.code.values import Arguments, Values
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena
from gnomon.plan.ir import Body, Fold, Let, Put
from gnomon.plan.statement import SAVERS


class LoopWriter(Values):
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

    def fold(self, fold: Fold) -> None:
        term, reducer = fold.term, fold.reducer
        across = self.vec is not None and bool(term.free >> self.vec & 1)
        lanes = self.long if fold.vector else self.lanes if across else 1
        dtypes = reducer.dtypes(tuple(a.dtype for a in term.args))
        starts = [
            self.e.constant(s, d, lanes)
            for s, d in zip(reducer.start(term.args[0].dtype), dtypes, strict=True)
        ]
        places = [self.e.alloca(d, lanes) for d in dtypes]
        for place, start in zip(places, starts, strict=True):
            self.e.line(f"store {start}, ptr {place}")
        outer = self.vec, self.lanes, self.mask
        if fold.vector:
            self.vec, self.lanes, self.mask = None, 1, None
        self.fold_loops(fold, 0, lambda: self.accumulate(fold, places, starts))
        self.vec, self.lanes, self.mask = outer
        results = [
            self.e.do(f"load {s.type}, ptr {place}", s.dtype, s.lanes)
            for place, s in zip(places, starts, strict=True)
        ]
        for k, result in enumerate(self.join(reducer, results)):
            self.scopes[-1][("part", term.id, k)] = (
                result if fold.vector or lanes == 1 else results[k]
            )

    def fold_loops(self, fold: Fold, depth: int, innermost: Callable[[], Value | None]) -> None:
        var, last = fold.vars[depth], depth == len(fold.vars) - 1
        until: list[Value] = []

        def inside() -> None:
            self.body(fold.bodies[depth])
            if not last:
                self.fold_loops(fold, depth + 1, innermost)
                return
            enough = innermost()
            if enough is not None:
                until.append(enough)

        start, stop = self.e.index(0), self.extent(var)
        if last and fold.vector:
            self.vector_loop(var, start, stop, self.long, inside)
            return
        with self.e.for_range(start, stop, until=until) as i, self.scope():
            self.base[var] = i
            inside()

    def accumulate(
        self, fold: Fold, places: Sequence[str], starts: Sequence[Value]
    ) -> Value | None:
        """One step of a fold; lanes beyond the end take the neutral element.

        Gives whether the rest changes nothing, for reducers of which that can be said.
        """
        new = []
        for arg, start in zip(fold.term.args, starts, strict=True):
            value = self.value(arg)
            if fold.vector and self.vec is None and start.lanes > 1:  # a tail without masks
                new.append(self.e.in_first_lane(value, start))
                continue
            value = self.e.spread(value, start.lanes)
            if fold.vector and self.mask is not None:
                value = self.e.primitive("select", [self.mask, value, start], value.dtype)
            new.append(value)
        old = [
            self.e.do(f"load {s.type}, ptr {place}", s.dtype, s.lanes)
            for place, s in zip(places, starts, strict=True)
        ]
        results = self.combine(fold.reducer, old, new)
        for place, result in zip(places, results, strict=True):
            self.e.line(f"store {result}, ptr {place}")
        return None if fold.vector else self.enough(fold.reducer, results)

    def enough(self, reducer: Reducer, values: Sequence[Value]) -> Value | None:
        """Whether partial results are final in all lanes."""
        if reducer.enough is None:
            return None
        terms = tuple(self.arena.arg(("left", k), v.dtype) for k, v in enumerate(values))
        with self.scope():
            self.scopes[-1].update((t.id, v) for t, v in zip(terms, values, strict=True))
            final = self.value(reducer.enough(self.arena, terms))
        if final.lanes == 1:
            return final
        missing = self.e.primitive("not", [final], dt.bool_)
        if self.mask is not None:
            missing = self.e.primitive("and", [missing, self.mask], dt.bool_)
        return self.e.primitive("not", [self.any_lane(missing)], dt.bool_)

    def combine(self, reducer: Reducer, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The reducer's formula on values."""
        arena = self.arena
        left = tuple(arena.arg(("left", k), v.dtype) for k, v in enumerate(a))
        right = tuple(arena.arg(("right", k), v.dtype) for k, v in enumerate(b))
        with self.scope():
            for term, value in zip((*left, *right), (*a, *b), strict=True):
                self.scopes[-1][term.id] = value
            return [self.value(t) for t in reducer.combine(arena, left, right)]

    def join(self, reducer: Reducer, values: list[Value]) -> list[Value]:
        """All lanes into one, halves upon halves."""
        while values[0].lanes > 1:
            half = values[0].lanes // 2
            low = [self.part(v, range(half)) for v in values]
            high = [self.part(v, range(half, 2 * half)) for v in values]
            values = self.combine(reducer, low, high)
        return values
