"""The statements of a grid program as LLVM IR: what one thread of a GPU does.

The elements that a thread takes at once are the lanes of a value; else every value has one.

Special registers are read once, at the entry; accumulators are places on the stack, which LLVM
turns into registers; other threads' values come by words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from gnomon import dtype as dt
from gnomon.code.emit import Value, in_memory, memory_type, type_of
from gnomon.code.loops import LoopWriter
from gnomon.code.segment import Segments, statements
from gnomon.code.target import Target
from gnomon.code.values import Arguments
from gnomon.expr.term import Arena, Term
from gnomon.plan.gpu import grid
from gnomon.plan.ir import Fold, Let, Put, reducer_of
from gnomon.plan.operand import Operand
from gnomon.plan.scratch import TASK


class ThreadBlockWriter(LoopWriter):
    """Writes what one thread does."""

    def __init__(
        self,
        arena: Arena,
        arguments: Arguments,
        target: Target,
        entry: grid.Entry,
        name: str,
        number: int,
    ) -> None:
        super().__init__(arena, arguments, target, (1, 1))
        self.entry, self.name, self.number = entry, name, number
        self.places: dict[tuple[int, int], list[str]] = {}
        self.moved: Mapping[tuple[Hashable, int], int] = {}
        self.aligned: Value | None = None  # whether it is so, where that is not known
        self.functions: list[str] = []  # of segments
        self.handlers: dict[type, Callable[[Any], None]] = {
            Let: self.let,
            Put: self.put,
            Fold: self.fold,
            grid.Loop: self.loop,
            grid.When: self.when,
            grid.Wide: self.wide,
            grid.Elements: self.elements,
            grid.Set: self.set,
            grid.Combine: self.combined,
            grid.Join: self.join,
            grid.Running: self.running,
            grid.Shuffle: self.shuffled,
            grid.Share: self.share,
            grid.Fetch: self.fetched,
            grid.Barrier: self.barrier,
            grid.Result: self.resulting,
        }

    def program(self, body: Sequence[grid.Stmt]) -> None:
        """Statements in order."""
        for stmt in body:
            self.handlers[type(stmt)](stmt)

    def let(self, let: Let) -> None:
        self.value(let.term)

    # -- values ---------------------------------------------------------------------------------

    def argument(self, key: Hashable) -> Value:
        """A kernel argument, a special register, the number of the group that has a row."""
        if key == TASK:
            return self.value(self.entry.task)
        if isinstance(key, tuple) and key[0] == "register":
            return self.register(key[1])
        if isinstance(key, tuple) and key[0] == "address":
            return self.address_of(key[1])
        return super().argument(key)

    def register(self, name: str) -> Value:
        """A special register, as an index."""
        found = self.scopes[0].get(name)
        if found is None:
            with self.e.at_entry():
                full = f"@llvm.nvvm.read.ptx.sreg.{name}"
                self.e.declared.add(f"declare i32 {full}()")
                found = self.e.convert(self.e.do(f"call i32 {full}()", dt.uint32), dt.int64)
            self.scopes[0][name] = found
        return found

    def address_of(self, slot: Hashable) -> Value:
        """Where the memory of an operand begins, as an index."""
        return self.e.do(f"ptrtoint ptr {self.argument(slot).name} to i64", dt.int64)

    # -- memory ---------------------------------------------------------------------------------

    def fetch(
        self,
        operand: Operand,
        offset: Term,
        where: Term | None,
        whole: bool,
        term: Term | None = None,
    ) -> Value:
        """An element, or one for each lane; 0 without a load where `where` does not hold."""
        free = offset.free if term is None else term.free
        if self.vec is None or not (whole or free >> self.vec & 1):
            return self.guarded(where, lambda: self.fetch_one(operand, offset, None))
        allowed = None if where is None else self.value(where)
        places = self.value(offset)
        step = self.moved.get((operand.slot, offset.id))
        if step is None:
            return self.each(operand, places, allowed)
        first = self.first(offset, step)
        if self.aligned is None:
            return self.piece(operand, first, step)
        return self.either(
            self.aligned,
            lambda: self.piece(operand, first, step),
            lambda: self.each(operand, places, None),
        )

    def either(self, cond: Value, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """One of two values, the other of which is not computed."""
        e = self.e
        ends: list[Value] = []
        for holds, make in ((cond, yes), (e.primitive("not", [cond], dt.bool_), no)):
            before = e.label
            with e.when(holds), self.scope():
                value = make()
                after = e.label
            other = ends[-1].name if ends else "poison"
            ways = f"[ {other}, %{before} ], [ {value.name}, %{after} ]"
            ends.append(e.do(f"phi {value.type} {ways}", value.dtype, value.lanes))
        return ends[-1]

    def each(self, operand: Operand, places: Value, allowed: Value | None) -> Value:
        """The elements of all lanes, one after the other."""
        return self.joined([self.lane(operand, places, allowed, k) for k in range(self.lanes)])

    def lane(self, operand: Operand, places: Value, allowed: Value | None, k: int) -> Value:
        """The element of one lane."""

        def loaded() -> Value:
            return self.load(self.address(operand, self.picked(places, k)), operand.dtype)

        return self.guarded(None if allowed is None else self.picked(allowed, k), loaded)

    def guarded(self, where: Term | Value | None, load: Callable[[], Value]) -> Value:
        """What is loaded where `where` holds, 0 elsewhere."""
        if where is None:
            return load()
        e, allowed = self.e, self.value(where) if isinstance(where, Term) else where
        before = e.label
        with e.when(allowed), self.scope():
            loaded = load()
            after = e.label
        ways = f"[ zeroinitializer, %{before} ], [ {loaded.name}, %{after} ]"
        return e.do(f"phi {loaded.type} {ways}", loaded.dtype)

    def first(self, offset: Term, step: int) -> Value:
        """Where the elements of all lanes begin, the last one's if they go backwards."""
        if step > 0:
            return self.value(offset, True)
        return self.picked(self.value(offset), self.lanes - 1)

    def turned(self, value: Value, step: int) -> Value:
        """The lanes of a value as they lie in memory, or the other way round."""
        return value if step > 0 else self.part(value, range(self.lanes)[::step])

    def piece(self, operand: Operand, first: Value, step: int) -> Value:
        """The elements of all lanes by one instruction."""
        dtype, place = operand.dtype, self.address(operand, first)
        text = (
            f"load {memory_type(dtype, self.lanes)}, ptr {place}, align {dtype.size * self.lanes}"
        )
        found = self.from_memory(self.e.do(text, in_memory(dtype), self.lanes), dtype)
        return self.turned(found, step)

    def store(self, operand: Operand, offset: Term, value: Value) -> None:
        if self.vec is None:
            super().store(operand, offset, value)
            return
        size, value = operand.dtype.size, self.to_memory(value, operand.dtype)
        value = self.e.spread(value, self.lanes)
        places, step = self.value(offset), self.moved.get((operand.slot, offset.id))

        def whole(step: int) -> None:
            place = self.address(operand, self.first(offset, step))
            turned = self.turned(value, step)
            self.e.line(f"store {turned}, ptr {place}, align {size * self.lanes}")

        def each() -> None:
            for k in range(self.lanes):
                place = self.address(operand, self.picked(places, k))
                self.e.line(f"store {self.picked(value, k)}, ptr {place}, align {size}")

        if step is None:
            each()
        elif self.aligned is None:
            whole(step)
        else:
            with self.e.when(self.aligned):
                whole(step)
            with self.e.when(self.e.primitive("not", [self.aligned], dt.bool_)):
                each()

    def picked(self, value: Value, k: int) -> Value:
        """A lane of a value, or the value that all lanes have."""
        return value if value.lanes == 1 else self.part(value, range(k, k + 1))

    def joined(self, values: Sequence[Value]) -> Value:
        """Values as the lanes of one."""
        first, lanes = values[0], len(values)
        name = "poison"
        for k, value in enumerate(values):
            text = f"insertelement {type_of(first.dtype, lanes)} {name}, {value}, i64 {k}"
            name = self.e.do(text, first.dtype, lanes).name
        return Value(name, first.dtype, lanes)

    # -- loops ----------------------------------------------------------------------------------

    def loop(self, loop: grid.Loop) -> None:
        first, until, step = (self.value(t) for t in (loop.first, loop.until, loop.step))
        with self.e.for_range(first, until, step) as number, self.scope():
            self.locate(loop.variables, number)
            self.program(loop.body)

    def locate(self, variables: Sequence[int], number: Value) -> None:
        """Sets `variables`, the last one fastest, to combination `number`."""
        for v in reversed(variables[1:]):
            n = self.extent(v)
            rest = self.int("udiv", number, n)
            self.base[v] = self.int("sub", number, self.int("mul", rest, n))
            number = rest
        if variables:
            self.base[variables[0]] = number

    def when(self, when: grid.When) -> None:
        with self.e.when(self.value(when.condition)), self.scope():
            self.program(when.body)

    def wide(self, wide: grid.Wide) -> None:
        first = self.value(wide.first)
        if wide.width == 1:
            with self.scope():
                self.base[wide.variable] = first
                self.program(wide.body)
            return
        aligned = None if wide.aligned is None else self.value(wide.aligned)
        with self.over(wide.variable, first, wide.width, None):
            self.moved, self.aligned = wide.moved, aligned
            self.program(wide.body)
            self.moved = {}

    def elements(self, elements: grid.Elements) -> None:
        if statements(elements.body) <= self.e.target.segment:
            self.program(elements.body)
            return
        before = list(grid.nested(self.entry.body))
        segments = Segments(
            self.arena,
            self.arguments,
            before,
            elements.body,
            self.number,
            self.e.target.segment,
        )
        segments.run(self)
        self.functions.extend(segments.functions)
        self.e.declared |= segments.declared

    # -- folds ----------------------------------------------------------------------------------

    def fold(self, fold: Fold) -> None:
        """A fold that the thread makes alone."""
        for term in fold.terms:
            reducer = reducer_of(term)
            dtypes = reducer.dtypes(tuple(a.dtype for a in term.args))
            into = grid.Accumulator(-term.id, dtypes)
            starts = zip(reducer.start(term.args[0].dtype), dtypes, strict=True)
            self.store_all(into, [self.e.constant(s, d, self.lanes) for s, d in starts])
            self.nest(fold, 0, grid.Combine(reducer, into, term.args))
            self.resulting(grid.Result(term, into))

    def nest(self, fold: Fold, depth: int, step: grid.Combine) -> None:
        """The loops of a fold from `depth` on."""
        if depth == len(fold.vars):
            self.combined(step)
            return
        e, v = self.e, fold.vars[depth]
        with e.for_range(e.index(0), self.extent(v)) as i, self.scope():
            self.base[v] = i
            self.body(fold.bodies[depth])
            self.nest(fold, depth + 1, step)

    # -- accumulators ---------------------------------------------------------------------------

    def kept(self, accumulator: grid.Accumulator) -> list[str]:
        """Where an accumulator of as many lanes as values have here lies on the stack."""
        key = accumulator.number, self.lanes
        found = self.places.get(key)
        if found is None:
            found = self.places[key] = [self.e.alloca(d, self.lanes) for d in accumulator.dtypes]
        return found

    def join(self, stmt: grid.Join) -> None:
        """Lane by lane into an accumulator of one lane."""
        values, lanes = [self.value(t) for t in stmt.values], self.lanes
        self.lanes = 1
        for k in range(lanes):
            new = [self.picked(v, k) for v in values]
            self.store_all(stmt.into, self.combine(stmt.reducer, self.load_all(stmt.into), new))
        self.lanes = lanes

    def running(self, stmt: grid.Running) -> None:
        """Lane by lane into an accumulator of one lane, whose values are lanes of the scan."""
        reducer, exclusive = stmt.term.payload
        value, lanes, found = self.value(stmt.term.args[0]), self.lanes, []
        self.lanes = 1
        for k in range(lanes):
            (before,) = self.load_all(stmt.into)
            new = self.combine(reducer, [before], [self.picked(value, k)])
            self.store_all(stmt.into, new)
            found.append(before if exclusive else new[0])
        self.lanes = lanes
        self.scopes[-1][stmt.term.id] = self.joined(found) if lanes > 1 else found[0]

    def load_all(self, accumulator: grid.Accumulator) -> list[Value]:
        pairs = zip(self.kept(accumulator), accumulator.dtypes, strict=True)
        lanes = self.lanes
        return [self.e.do(f"load {type_of(d, lanes)}, ptr {p}", d, lanes) for p, d in pairs]

    def store_all(self, accumulator: grid.Accumulator, values: Sequence[Value]) -> None:
        for place, value in zip(self.kept(accumulator), values, strict=True):
            self.e.line(f"store {self.e.spread(value, self.lanes)}, ptr {place}")

    def set(self, stmt: grid.Set) -> None:
        self.store_all(stmt.into, self.given(stmt.values))

    def combined(self, stmt: grid.Combine) -> None:
        new = self.given(stmt.values)
        self.store_all(stmt.into, self.combine(stmt.reducer, self.load_all(stmt.into), new))

    def given(self, values: Sequence[Term] | grid.Accumulator) -> list[Value]:
        """The values of Terms, or those that an accumulator has."""
        if isinstance(values, grid.Accumulator):
            return self.load_all(values)
        return [self.value(t) for t in values]

    def resulting(self, stmt: grid.Result) -> None:
        for k, value in enumerate(self.load_all(stmt.source)):
            self.scopes[-1][stmt.key(k)] = value

    # -- other threads --------------------------------------------------------------------------

    def share(self, stmt: grid.Share) -> None:
        for place, value in zip(
            self.shared_places(stmt.source, stmt.area, stmt.place),
            self.load_all(stmt.source),
            strict=True,
        ):
            size = value.dtype.size  # without it the code is for four bytes
            self.e.line(f"store {value}, ptr addrspace(3) {place}, align {size}")

    def fetched(self, stmt: grid.Fetch) -> None:
        places = zip(
            self.shared_places(stmt.into, stmt.area, stmt.place), stmt.into.dtypes, strict=True
        )
        values = [
            self.e.do(f"load {type_of(d)}, ptr addrspace(3) {p}, align {d.size}", d)
            for p, d in places
        ]
        self.store_all(stmt.into, values)

    def shared_places(
        self, accumulator: grid.Accumulator, area: grid.Area, place: Term
    ) -> list[str]:
        """Where the values of an accumulator lie in shared memory."""
        e, count = self.e, len(accumulator.dtypes)
        first = self.int("mul", self.value(place), e.index(count))
        base = f"@{self.name}_shared, i64 {area.start}"
        base = f"ptr addrspace(3) getelementptr (i8, ptr addrspace(3) {base})"
        slots = [self.int("add", first, e.index(k)) for k in range(count)]
        kind = f"i{8 * area.size}"
        return [e.do(f"getelementptr {kind}, {base}, {slot}", dt.int64).name for slot in slots]

    def barrier(self, _: grid.Barrier) -> None:
        self.e.declared.add("declare void @llvm.nvvm.barrier0()")
        self.e.line("call void @llvm.nvvm.barrier0()")

    def shuffled(self, stmt: grid.Shuffle) -> None:
        values = [self.exchanged(stmt.mode, v, stmt.place) for v in self.load_all(stmt.source)]
        self.store_all(stmt.into, values)

    def exchanged(self, mode: str, value: Value, place: int) -> Value:
        """The value of another thread of the warp, by words of 32 bits."""
        e, dtype = self.e, value.dtype
        unsigned = dt.of(f"uint{8 * dtype.size}")
        bits = e.convert(value, dt.uint8) if dtype.kind == "b" else e.bitcast(value, unsigned)
        if dtype.size < 8:
            word = self.exchanged_word(mode, e.convert(bits, dt.uint32), place)
            bits = e.convert(word, bits.dtype)
        else:
            shift = e.constant(32, dt.uint64)
            upper = e.convert(e.primitive("lshr", [bits, shift], dt.uint64), dt.uint32)
            words = [
                e.convert(self.exchanged_word(mode, half, place), dt.uint64)
                for half in (e.convert(bits, dt.uint32), upper)
            ]
            high = e.primitive("shl", [words[1], shift], dt.uint64)
            bits = e.primitive("or", [words[0], high], dt.uint64)
        return e.convert(bits, dtype) if dtype.kind == "b" else e.bitcast(bits, dtype)

    def exchanged_word(self, mode: str, word: Value, place: int) -> Value:
        full = f"@llvm.nvvm.shfl.sync.{mode}.i32"
        self.e.declared.add(f"declare i32 {full}(i32, i32, i32, i32)")
        mask, ends = self.segment(mode)
        return self.e.do(f"call i32 {full}({mask}, {word}, i32 {place}, {ends})", dt.uint32)

    def segment(self, mode: str) -> tuple[Value, Value]:
        """The threads of the group in this warp as a mask, and where they end as `shfl` has it."""
        known = self.scopes[0]
        ends = "begin" if mode == "up" else "end"
        if ends not in known:
            with self.e.at_entry():
                known["threads"], known[ends] = self.threads_of_segment(0 if mode == "up" else 31)
        return known["threads"], known[ends]

    def threads_of_segment(self, last: int) -> tuple[Value, Value]:
        e, word = self.e, dt.uint32

        def number(value: int) -> Value:
            return e.constant(value, word)

        group, lane = (e.convert(self.register(name), word) for name in ("ntid.x", "laneid"))
        many = e.primitive("min", [group, number(grid.WARP)], word)
        rest = e.primitive("sub", [number(grid.WARP), many], word)
        whole = e.primitive("lshr", [number(0xFFFFFFFF), rest], word)
        first = e.primitive("and", [lane, e.primitive("neg", [many], word)], word)
        ends = e.primitive("or", [e.primitive("shl", [rest, number(8)], word), number(last)], word)
        return e.primitive("shl", [whole, first], word), ends
