"""Statements and loops inside a function: vector loops, folds, stores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gnomon import dtype as dt
from gnomon.code.divide import Divider
from gnomon.code.emit import Value, type_of
from gnomon.code.index_ranges import IndexRange
from gnomon.code.target import Target
from gnomon.code.values import Arguments
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term
from gnomon.plan.ir import LONGEST, Body, Fold, Let, Put
from gnomon.plan.statement import SAVERS


class LoopWriter(Divider):
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
        self.ranges: Sequence[IndexRange] = ()
        self.edges: dict[int, tuple[Value, tuple[Value, Value]]] = {}
        self.ahead: dict[int, Value] = {}  # by range, of the present lanes where it is known
        self.sure = False  # whether all ranges hold
        self.carries: dict[int, str] = {}  # by scan, where what it came to so far lies

    @contextmanager
    def over(
        self, var: int, base: Value, lanes: int, mask: Value | None, even: bool = False
    ) -> Iterator[None]:
        with super().over(var, base, lanes, mask, even):
            for span in self.ranges:
                self.scopes[-1][span.cond.id] = self.holds(span, base)
            yield

    def holds(self, span: IndexRange, base: Value) -> Value:
        """In which lanes a range holds."""
        e = self.e
        if self.sure:
            return e.constant(True, dt.bool_)
        start, ends = self.edges[span.cond.id]
        ahead = self.ahead.get(span.cond.id)
        if ahead is None:
            ahead = self.numbers(self.int("sub", base, start), ends[0], self.lanes)
        return e.primitive("lt", [ahead, ends[1]], dt.bool_)

    def numbers(self, base: Value, low: Value, lanes: int) -> Value:
        """How far `lanes` lanes from `base` on are ahead of `low`; huge before it."""
        e = self.e
        first = e.primitive("sub", [e.convert(base, dt.uint32), low], dt.uint32)
        return e.primitive("add", [e.lane_numbers(lanes, dt.uint32), first], dt.uint32)

    def look_out(self, start: Value) -> None:
        """Note where the ranges of a row are, seen from `start`.

        An index is inside where its distance from the range's begin, which is huge where it is
        negative, is less than the range is wide.
        """
        e, zero = self.e, self.e.index(0)
        for span in self.ranges:
            low, high = (self.near_end(end, start) for end in (span.low, span.high))
            wide = e.primitive("max", [self.int("sub", high, low), zero], dt.int64)
            ends = e.convert(low, dt.uint32), e.convert(wide, dt.uint32)
            self.edges[span.cond.id] = start, ends

    def near_end(self, end: Term, start: Value) -> Value:
        """How far an end of a range is from `start`: not further than a block is long."""
        ahead = self.int("sub", self.value(end, True), start)
        some = self.e.primitive("max", [ahead, self.e.index(0)], dt.int64)
        return self.smaller(some, self.e.index(LONGEST))

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
        whole: tuple[Value, Value],
        body: Callable[[], None],
        large: Value | None,
    ) -> None:
        """A vector loop over the whole vectors between `whole`, and what is before and after them.

        Head and tail are one piece of code that is gone through twice, in the order of the index;
        once where there is nothing before the tail. Where `large` holds, whole vectors are stored
        past the caches.
        """
        e, (begin, middle) = self.e, whole
        only_tail = e.primitive("eq", [start, middle], dt.bool_)
        turn = e.primitive("select", [only_tail, e.index(1), e.index(0)], dt.int64)
        with e.for_range(turn, e.index(2)) as turn, self.scope():
            first = e.primitive("eq", [turn, e.index(0)], dt.bool_)

            def pick(a: Value, b: Value) -> Value:
                return e.primitive("select", [first, a, b], dt.int64)

            self.masked_loop(var, pick(start, middle), pick(begin, stop), self.short, body)
            low, high = pick(begin, stop), pick(middle, stop)
            self.sure = True
            self.whole_vectors(var, low, high, body, large)
            self.sure = False

    def whole_vectors(
        self, var: int, low: Value, high: Value, body: Callable[[], None], large: Value | None
    ) -> None:
        """The loops of `aligned_loop` without masks."""
        e, lanes, rest = self.e, self.long, high
        if self.ranges and lanes != self.short:
            whole = self.int("and", self.int("sub", high, low), e.index(-lanes))
            high = self.int("add", low, whole)
        if large is not None:
            past = e.primitive("select", [large, high, low], dt.int64)
            self.past_caches = True
            with e.for_range(low, past, lanes) as i, self.over(var, i, lanes, None):
                body()
            self.past_caches, low = False, past
        with e.for_range(low, high, lanes) as i, self.over(var, i, lanes, None):
            body()
        if rest is not high:
            with e.for_range(high, rest, self.short) as i, self.over(var, i, self.short, None):
                body()

    def inside_ranges(self, begin: Value, stop: Value) -> tuple[Value, Value]:
        """From where to where all ranges hold: from `begin` on by whole registers, to `stop`.

        Both are `begin` where nothing is left of them.
        """
        e, end = self.e, stop
        low = begin
        for span in self.ranges:
            low = e.primitive("max", [low, self.value(span.low, True)], dt.int64)
            end = self.smaller(end, self.value(span.high, True))
        away = self.int("add", self.int("sub", low, begin), e.index(self.short - 1))
        first = self.int("add", begin, self.int("and", away, e.index(-self.short)))
        some = e.primitive("lt", [first, end], dt.bool_)
        first, end = (e.primitive("select", [some, v, begin], dt.int64) for v in (first, end))
        return first, end

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

    def begin_scans(self, body: Body) -> None:
        """A row begins: its scans have come to nothing yet."""
        for term in (s.term for s in body if isinstance(s, Let) and s.term.op == "scan"):
            self.begin_scan(term)

    def begin_scan(self, term: Term) -> None:
        """A scan has come to nothing yet."""
        start = self.e.constant(term.payload[0].start(term.dtype)[0], term.dtype)
        place = self.carries[term.id] = self.e.alloca(term.dtype)
        self.e.line(f"store {start}, ptr {place}")

    def scan(self, term: Term) -> Value:
        """Lanes join those 1, 2, 4 ... before them, then all of them what came before the first."""
        e, lanes, place = self.e, self.lanes, self.carries[term.id]
        reducer, exclusive = term.payload
        nothing = e.constant(reducer.start(term.dtype)[0], term.dtype, lanes)
        carry = e.do(f"load {type_of(term.dtype)}, ptr {place}", term.dtype)
        value, before = e.spread(self.value(term.args[0]), lanes), e.spread(carry, lanes)
        step = 1
        while step < lanes:
            (value,) = self.combine(reducer, [self.behind(value, nothing, step)], [value])
            step *= 2
        (total,) = self.combine(reducer, [before], [value])
        last = total if lanes == 1 else self.part(total, range(lanes - 1, lanes))
        e.line(f"store {last}, ptr {place}")
        if not exclusive:
            return total
        return before if lanes == 1 else self.behind(total, before, 1)

    def behind(self, value: Value, first: Value, step: int) -> Value:
        """Lanes `step` places further on, after so many of `first`."""
        lanes = [k - step if k >= step else value.lanes + k for k in range(value.lanes)]
        return self.shuffle(value, lanes, first)

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
