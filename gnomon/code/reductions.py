"""Reductions on a CPU: several accumulators along a row, and rows of accumulators across rows.

A fold whose innermost variable is spread over lanes takes several vectors at a time, which are
joined like a tournament before they meet the accumulators: that is fast, and sums lose less. Long
rows go by blocks, whose results are joined in float64. The positions of an arg-reduction are
numbers of 32 bits within their block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon import dtype as dt
from gnomon.code.emit import Value, type_of
from gnomon.code.loops import LoopWriter
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Term, mask_of
from gnomon.ground.record import record
from gnomon.plan.ir import Fold, Phase, reducer_of
from gnomon.plan.schedule import stride

BLOCK = 1 << 14  # elements of a row whose sum is one of many: rounding errors do not pile up
FAR = 1 << 20  # elements of a row whose positions are told by 32 bits
TREE = 4  # vectors that are joined before they meet the accumulators
REGISTERS = 2  # that hold a row which is folded without loops
PART = 4  # elements, and what part of a register: rows that are folded in fewer steps
BRIEF = 4  # statements of a fold of which one more loop is compiled, for single vectors
EXACT = ("max", "min")  # joined in any order they give the same
COMPARED = {"max": "ogt", "min": "olt"}  # whether the first of two is the one


@record(frozen=False)
class Partial:
    """A fold that is under way: its values so far lie at `places`, and began as `starts`.

    `narrow` tells that positions are distances from the start of a block.
    """

    term: Term
    reducer: Reducer
    starts: list[Value]
    places: list[str]
    narrow: bool = False


class ReductionWriter(LoopWriter):
    """Writes folds for one thread of a processor."""

    phase: Phase

    def fold(self, fold: Fold) -> None:
        if fold.vector:
            self.along(fold)
            return
        across = self.vec is not None and bool(fold.free >> self.vec & 1)
        partials = [self.begin(t, self.lanes if across else 1) for t in fold.terms]

        def step() -> Value | None:
            for partial in partials:
                self.accumulate(partial, [self.step_values(partial)])
            return self.enough(partials[0]) if len(partials) == 1 else None

        self.nest(fold, 0, step)
        for partial in partials:
            self.results(partial.term, self.current(partial))

    def results(self, term: Term, values: Sequence[Value]) -> None:
        """The results of a fold are known from here on."""
        for k, value in enumerate(values):
            self.scopes[-1]["part", term.id, k] = value

    def nest(self, fold: Fold, depth: int, innermost: Callable[[], Value | None]) -> None:
        """The loops of a fold from `depth` on, one element after the other."""
        until: list[Value] = []
        start, stop = self.e.index(0), self.extent(fold.vars[depth])
        with self.e.for_range(start, stop, until=until) as i, self.scope():
            self.base[fold.vars[depth]] = i
            self.body(fold.bodies[depth])
            if depth < len(fold.vars) - 1:
                self.nest(fold, depth + 1, innermost)
            elif (final := innermost()) is not None:
                until.append(final)

    def enough(self, partial: Partial) -> Value | None:
        """Whether partial results are final in all lanes, for reducers that can tell."""
        if partial.reducer.enough is None:
            return None
        values = self.current(partial)
        terms = tuple(self.arena.arg(("left", k), v.dtype) for k, v in enumerate(values))
        with self.scope():
            self.scopes[-1].update((t.id, v) for t, v in zip(terms, values, strict=True))
            final = self.value(partial.reducer.enough(self.arena, terms))
        if final.lanes == 1:
            return final
        missing = self.e.primitive("not", [final], dt.bool_)
        if self.mask is not None:
            missing = self.e.primitive("and", [missing, self.mask], dt.bool_)
        return self.e.primitive("not", [self.any_lane(missing)], dt.bool_)

    # -- accumulators ---------------------------------------------------------------------------

    def begin(self, term: Term, lanes: int, var: int | None = None) -> Partial:
        """Accumulators that hold nothing yet; positions along `var` may be narrow."""
        reducer = reducer_of(term)
        dtypes = list(reducer.dtypes(tuple(a.dtype for a in term.args)))
        narrow = var is not None and reducer.follow is not None and stride(term.args[1], var) == 1
        if narrow:
            dtypes[1] = dt.int32
        starts = [
            self.e.constant(s, d, lanes)
            for s, d in zip(reducer.start(term.args[0].dtype), dtypes, strict=True)
        ]
        places = [self.e.alloca(s.dtype, lanes) for s in starts]
        partial = Partial(term, reducer, starts, places, narrow)
        self.put_back(partial, starts)
        return partial

    def current(self, partial: Partial) -> list[Value]:
        """What the accumulators hold."""
        return [
            self.e.do(f"load {s.type}, ptr {place}", s.dtype, s.lanes)
            for place, s in zip(partial.places, partial.starts, strict=True)
        ]

    def put_back(self, partial: Partial, values: Sequence[Value]) -> None:
        for place, value in zip(partial.places, values, strict=True):
            self.e.line(f"store {value}, ptr {place}")

    def step_values(self, partial: Partial) -> list[Value]:
        """What one step of a fold adds, as wide as its accumulators."""
        return [
            self.e.spread(self.value(a), s.lanes)
            for a, s in zip(partial.term.args, partial.starts, strict=True)
        ]

    def accumulate(self, partial: Partial, new: Sequence[list[Value]]) -> None:
        """Join steps that come one after the other with the accumulators."""
        self.put_back(partial, self.joined(partial.reducer, self.current(partial), new))

    def joined(
        self, reducer: Reducer, old: list[Value], steps: Sequence[list[Value]]
    ) -> list[Value]:
        """Partial results with steps behind them, which meet two by two before."""
        while len(steps) > 1:
            pairs = zip(steps[::2], steps[1::2], strict=True)
            steps = [self.combine(reducer, a, b, True) for a, b in pairs]
        return self.combine(reducer, old, steps[0], True)

    # -- along a row ----------------------------------------------------------------------------

    def along(self, fold: Fold) -> None:
        """A fold whose innermost variable is spread over the lanes."""
        outer, lanes = (self.vec, self.lanes, self.mask), (self.short, self.long)
        self.vec, self.lanes, self.mask = None, 1, None
        self.short, self.long = self.e.target.fold_lanes(fold)
        self.reciprocals(fold.bodies, mask_of(fold.vars))
        values = self.by_length(fold) if self.may_be_short(fold) else self.by_loops(fold)
        (self.vec, self.lanes, self.mask), (self.short, self.long) = outer, lanes
        for term, result in zip(fold.terms, values, strict=True):
            self.results(term, result)

    def may_be_short(self, fold: Fold) -> bool:
        """Whether code of their own pays for rows that few registers hold.

        For a fold that runs once a kernel it would save nanoseconds, and take a third of all that
        LLVM does.
        """
        n = self.arena.extent[fold.vars[-1]].constant
        few = n is None or n <= max(self.short_rows(fold))
        return self.masks and few and self.phase.inner is not None

    def short_rows(self, fold: Fold) -> list[int]:
        """The lengths of rows up to which there is code without loops; of little, for several."""
        if not self.is_light(fold):
            return [self.short]
        part = min(self.short, max(PART, self.short // PART))
        return [part, *(self.short << k for k in range(REGISTERS) if self.short << k > part)]

    def is_light(self, fold: Fold) -> bool:
        """Whether another copy of a fold's body is little code."""
        plain = all(reducer_of(term).follow is None for term in fold.terms)
        return plain and sum(map(len, fold.bodies)) <= BRIEF and not self.e.target.calls(fold)

    def by_length(self, fold: Fold) -> list[list[Value]]:
        """The results of a fold: of a row that few registers hold, without loops, and of others.

        They are the same to the bit as if all rows went by the loops.
        """
        e, n = self.e, self.extent(fold.vars[-1])
        if len(fold.vars) > 1 or self.long == self.short:
            return self.by_loops(fold)
        kept = [self.begin(t, 1) for t in fold.terms]

        def keep(values: Sequence[list[Value]]) -> None:
            for partial, result in zip(kept, values, strict=True):
                self.put_back(partial, result)

        def choose(lengths: Sequence[int]) -> None:
            if not lengths:
                keep(self.by_loops(fold))
                return
            few = e.primitive("le", [n, e.index(lengths[0])], dt.bool_)
            with e.when(few), self.scope():
                keep(self.masked_row(fold, n, lengths[0]))
            with e.when(e.primitive("not", [few], dt.bool_)), self.scope():
                choose(lengths[1:])

        choose(self.short_rows(fold))
        return [self.current(partial) for partial in kept]

    def masked_row(self, fold: Fold, n: Value, lanes: int) -> list[list[Value]]:
        """The results of a fold over at most `lanes` elements."""
        zero, var = self.e.index(0), fold.vars[-1]
        partials = [self.begin(t, lanes) for t in fold.terms]
        self.left = self.e.convert(n, dt.int32)
        with self.over(var, zero, lanes, self.inside(lanes)):
            self.body(fold.bodies[-1])
            for partial in partials:
                self.accumulate(partial, [self.lane_values(partial, var, zero)])
        return [self.join(p.reducer, self.current(p)) for p in partials]

    def by_loops(self, fold: Fold) -> list[list[Value]]:
        """The results of a fold over a row of any length, or over several."""
        *rest, last = fold.vars
        n, zero = self.extent(last), self.e.index(0)
        exact = all(reducer_of(t).name in EXACT for t in fold.terms)
        if not rest and not exact and self.arena.extent[last].constant is None:
            return self.by_blocks(fold, n)
        partials = [self.begin(t, self.long) for t in fold.terms]
        self.nest_to_last(fold, 0, lambda: self.whole_row(fold, partials, zero, n, zero))
        return [self.join(p.reducer, self.current(p)) for p in partials]

    def nest_to_last(self, fold: Fold, depth: int, row: Callable[[], None]) -> None:
        """The loops around the innermost one."""
        if depth == len(fold.vars) - 1:
            row()
            return
        with self.e.for_range(self.e.index(0), self.extent(fold.vars[depth])) as i, self.scope():
            self.base[fold.vars[depth]] = i
            self.body(fold.bodies[depth])
            self.nest_to_last(fold, depth + 1, row)

    def by_blocks(self, fold: Fold, n: Value) -> list[list[Value]]:
        """The results of a fold over one variable, block by block."""
        e, (var,) = self.e, fold.vars
        size = FAR if all(reducer_of(t).follow for t in fold.terms) else BLOCK
        whole = [self.begin(t, 1) for t in fold.terms]
        wide = [self.widened(p) for p in whole]
        with e.for_range(e.index(0), n, size) as first, self.scope():
            stop = self.smaller(self.int("add", first, e.index(size)), n)
            partials = [self.begin(t, self.long, var) for t in fold.terms]
            self.whole_row(fold, partials, first, stop, first)
            for partial, total in zip(partials, wide, strict=True):
                result = self.finish(partial, var, first)
                result = [e.convert(r, s.dtype) for r, s in zip(result, total.starts, strict=True)]
                self.accumulate(total, [result])
        return [
            [e.convert(v, s.dtype) for v, s in zip(self.current(p), q.starts, strict=True)]
            for p, q in zip(wide, whole, strict=True)
        ]

    def widened(self, partial: Partial) -> Partial:
        """Accumulators of blocks' sums: in float64."""
        if partial.reducer.name != "sum" or partial.starts[0].dtype is not dt.float32:
            return partial
        start = self.e.constant(0, dt.float64)
        wide = Partial(partial.term, partial.reducer, [start], [self.e.alloca(dt.float64)])
        self.put_back(wide, wide.starts)
        return wide

    def whole_row(
        self, fold: Fold, partials: list[Partial], start: Value, stop: Value, origin: Value
    ) -> None:
        """The elements from `start` to `stop`: several vectors at a time, one, then the rest."""
        e, var, lanes = self.e, fold.vars[-1], self.long
        for many in self.vectors(fold):
            whole = self.int("and", self.int("sub", stop, start), e.index(-lanes * many))
            middle = self.int("add", start, whole)
            with e.for_range(start, middle, lanes * many) as i, self.scope():
                found = [
                    self.vector_step(fold, partials, i, k * lanes, origin) for k in range(many)
                ]
                for partial, new in zip(partials, zip(*found, strict=True), strict=True):
                    self.accumulate(partial, new)
            start = middle

        if self.goes_by_registers(fold, partials):
            with e.when(e.primitive("lt", [start, stop], dt.bool_)), self.scope():
                self.by_registers(fold, partials, start, stop, origin)
            return

        def tail() -> None:
            self.body(fold.bodies[-1])
            for partial in partials:
                self.accumulate(partial, [self.lane_values(partial, var, origin)])

        self.masked_loop(var, start, stop, lanes, tail)

    def goes_by_registers(self, fold: Fold, partials: Sequence[Partial]) -> bool:
        """Whether a register at a time is less work at the end of a row than all of them masked.

        The loops before must leave fewer elements than accumulators have lanes.
        """
        if not self.masks or self.long == self.short or self.is_light(fold):
            return False
        in_bits = any(s.dtype.kind == "b" for p in partials for s in p.starts)
        return self.vectors(fold)[-1] == 1 and not in_bits

    def by_registers(
        self, fold: Fold, partials: Sequence[Partial], start: Value, stop: Value, origin: Value
    ) -> None:
        """The last elements of a row, fewer than accumulators have lanes: some at a time.

        Each meets the lanes that it meets in a whole step, so a result is the same to the bit. The
        accumulators lie in memory meanwhile, copied: those of whole steps stay in registers.
        """
        var = fold.vars[-1]
        copies = [self.copied(partial) for partial in partials]

        def step() -> None:
            away = self.int("sub", self.base[var], start)
            self.body(fold.bodies[-1])
            for copy in copies:
                part = self.register_of(copy, away)
                new = self.lane_values(part, var, self.int("add", origin, away))
                self.accumulate(part, [new])

        self.masked_loop(var, start, stop, self.short, step)
        for partial, copy in zip(partials, copies, strict=True):
            self.put_back(partial, self.current(copy))

    def copied(self, partial: Partial) -> Partial:
        """The same accumulators in other places."""
        places = [self.e.alloca(s.dtype, s.lanes) for s in partial.starts]
        copy = Partial(partial.term, partial.reducer, partial.starts, places, partial.narrow)
        self.put_back(copy, self.current(partial))
        return copy

    def register_of(self, partial: Partial, lane: Value) -> Partial:
        """The accumulators of a register from `lane` on."""
        e, begins = self.e, partial.reducer.start(partial.term.args[0].dtype)
        kinds = [s.dtype for s in partial.starts]
        starts = [e.constant(b, d, self.short) for b, d in zip(begins, kinds, strict=True)]
        places = [
            e.do(f"getelementptr {type_of(d)}, ptr {place}, {lane}", dt.int64).name
            for d, place in zip(kinds, partial.places, strict=True)
        ]
        return Partial(partial.term, partial.reducer, starts, places, partial.narrow)

    def vectors(self, fold: Fold) -> tuple[int, ...]:
        """How many vectors the loops over a row take at a time, one loop after the other."""
        if self.long < 4 * self.short or self.e.target.calls(fold):
            return (1,)
        return (TREE, 1) if self.is_light(fold) else (TREE,)

    def vector_step(
        self, fold: Fold, partials: list[Partial], first: Value, away: int, origin: Value
    ) -> list[list[Value]]:
        """What a whole vector adds to each fold, `away` elements behind the first one."""
        var = fold.vars[-1]
        here = self.int("add", first, self.e.index(away)) if away else first
        with self.over(var, here, self.long, None):
            self.body(fold.bodies[-1])
            return [self.lane_values(partial, var, origin) for partial in partials]

    def lane_values(self, partial: Partial, var: int, origin: Value) -> list[Value]:
        """A step along a row; lanes beyond its end take what changes nothing."""
        found = []
        for k, (arg, start) in enumerate(zip(partial.term.args, partial.starts, strict=True)):
            if k and partial.narrow:
                away = self.e.convert(self.int("sub", self.base[var], origin), start.dtype)
                found.append(self.e.spread(away, start.lanes))
                continue
            value = self.value(arg)
            if self.vec is None and start.lanes > 1:  # a tail without masks
                found.append(self.e.in_first_lane(value, start))
                continue
            value = self.e.spread(value, start.lanes)
            if self.mask is not None:
                value = self.e.primitive("select", [self.mask, value, start], value.dtype)
            found.append(value)
        return found

    def finish(self, partial: Partial, var: int, origin: Value) -> list[Value]:
        """The lanes as one; narrow positions as what they are."""
        values = self.current(partial)
        if not partial.narrow:
            return self.join(partial.reducer, values)
        numbers = self.e.lane_numbers(values[1].lanes, values[1].dtype)
        values[1] = self.e.primitive("add", [values[1], numbers], values[1].dtype)
        best, place = self.join(partial.reducer, values)
        with self.scope():
            self.base[var] = origin
            first = self.value(partial.term.args[1])
        return [best, self.int("add", first, self.e.convert(place, dt.int64))]

    def join(self, reducer: Reducer, values: list[Value]) -> list[Value]:
        """All lanes into one, halves upon halves."""
        if values[0].lanes > 1 and values[0].dtype.kind == "f" and reducer.name in EXACT:
            return [self.extreme(reducer.name, values[0])]
        while values[0].lanes > 1:
            half = values[0].lanes // 2
            low = [self.part(v, range(half)) for v in values]
            high = [self.part(v, range(half, 2 * half)) for v in values]
            values = self.combine(reducer, low, high)
        return values

    def extreme(self, name: str, value: Value) -> Value:
        """The greatest or least lane, or NaN if there is one, which is looked for apart.

        Comparing alone takes one instruction a step, with care for NaN four; going around NaN takes
        0.8 of the time of a select.
        """
        e, missing = self.e, self.e.do(f"fcmp uno {value}, {value.name}", dt.bool_, value.lanes)
        while value.lanes > 1:
            half = value.lanes // 2
            low, high = self.part(value, range(half)), self.part(value, range(half, 2 * half))
            first = e.do(f"fcmp {COMPARED[name]} {low}, {high.name}", dt.bool_, half)
            value = e.do(f"select {first}, {low}, {high}", value.dtype, half)
        wrong = e.constant(float("nan"), value.dtype)
        return self.detour(self.any_lane(missing), value, lambda: wrong)
