"""Code for CPUs: a `Kernel` of loop nests as LLVM IR with explicit vectors.

The argument block is an array of 8-byte slots: the address of `parallel` (see `runtime.threads`), for each phase the
number of tasks and of inner iterations in a block, then the kernel's arguments. `kernel(block)` runs the phases in
turn; a phase of one task runs on the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

from gnomon import dtype as dt
from gnomon.code import math
from gnomon.code.emit import RULES, Emitter, Value, memory_type, overload, type_of
from gnomon.code.target import Target
from gnomon.dtype import DType
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Term
from gnomon.plan.ir import Body, Fold, Kernel, Let, Phase, Put
from gnomon.plan.operand import Operand
from gnomon.plan.schedule import stride
from gnomon.plan.statement import SAVERS

HEADER_SLOTS = 1  # `parallel`; then two slots a phase


def first_argument(phases: int) -> int:
    """The slot of the first kernel argument."""
    return HEADER_SLOTS + 2 * phases


def write(kernel: Kernel, target: Target) -> str:
    """The LLVM IR of a kernel; its entry is `kernel`."""
    slots = {key: first_argument(len(kernel.phases)) + k for k, key in enumerate(kernel.args)}
    declared: set[str] = set()
    functions = []
    for number, phase in enumerate(kernel.phases):
        writer = PhaseWriter(kernel, phase, number, slots, target)
        functions.append(writer.write())
        declared |= writer.e.declared
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{8 * target.vector_bytes}" }}'
    parts = [*sorted(declared), *functions, _entry(len(kernel.phases)), attributes]
    return "\n".join(parts) + "\n"


def _entry(phases: int) -> str:
    lines = ["define void @kernel(ptr %b) #0 {", "entry:", "  %parallel = load ptr, ptr %b"]
    for k in range(phases):
        lines += [
            f"  %p{k} = getelementptr i64, ptr %b, i64 {HEADER_SLOTS + 2 * k}",
            f"  %n{k} = load i64, ptr %p{k}",
            f"  %many{k} = icmp sgt i64 %n{k}, 1",
            f"  br i1 %many{k}, label %all{k}, label %one{k}",
            f"all{k}:",
            f"  call void %parallel(ptr @phase{k}, ptr %b, i64 %n{k})",
            f"  br label %next{k}",
            f"one{k}:",
            f"  call void @phase{k}(ptr %b, i64 0, i64 1)",
            f"  br label %next{k}",
            f"next{k}:",
        ]
    return "\n".join([*lines, "  ret void", "}"])


class PhaseWriter:
    """One phase as a function `phaseK(block, task, tasks)`."""

    def __init__(
        self, kernel: Kernel, phase: Phase, number: int, slots: dict[Hashable, int], target: Target
    ) -> None:
        self.kernel, self.phase, self.number, self.slots = kernel, phase, number, slots
        self.e = Emitter()
        self.scopes: list[dict[Hashable, Value]] = [{}]
        self.base: dict[int, Value] = {}
        self.vec: int | None = None
        self.lanes = 1
        self.mask: Value | None = None
        self.short = target.lanes(phase)
        self.long = self.short * target.unroll(phase)
        self.nothing: str | None = None

    # -- the function ---------------------------------------------------------------------------

    def write(self) -> str:
        e, phase = self.e, self.phase
        self.load_arguments()
        self.body(phase.entry)
        if phase.inner is None:
            self.body(phase.body)
        else:
            self.blocks(phase.inner)
        head = f"define internal void @phase{self.number}(ptr %b, i64 %task, i64 %tasks) #0 {{"
        return "\n".join([head, "entry:", *e.allocas, *e.lines, "  ret void", "}"])

    def load_arguments(self) -> None:
        for key, slot in self.slots.items():
            place = self.e.do(f"getelementptr i64, ptr %b, i64 {slot}", dt.int64).name
            dtype = self.scalar_dtypes.get(key, dt.int64)
            if isinstance(key, tuple) and key[0] in ("leaf", "scratch"):
                self.scopes[0][key] = self.e.do(f"load ptr, ptr {place}", dt.int64)
            else:
                self.scopes[0][key] = self.load(place, dtype)

    @property
    def scalar_dtypes(self) -> dict[Hashable, DType]:
        return {t.payload: t.dtype for t in self.kernel.arena.table.values() if t.op == "arg"}

    def blocks(self, inner: int) -> None:
        """The task's share of all blocks of rows x inner."""
        e, phase = self.e, self.phase
        n = self.extent(inner)
        block = self.slot(HEADER_SLOTS + 2 * self.number + 1)
        rows = e.index(1)
        for v in phase.rows:
            rows = self.int("mul", rows, self.extent(v))
        per_row = self.int("udiv", self.int("add", n, self.int("sub", block, e.index(1))), block)
        total = self.int("mul", rows, per_row)
        task, tasks = Value("%task", dt.int64), Value("%tasks", dt.int64)
        low = self.int("udiv", self.int("mul", total, task), tasks)
        high = self.int("udiv", self.int("mul", total, self.int("add", task, e.index(1))), tasks)
        with e.for_range(low, high) as number, self.scope():
            row = self.int("udiv", number, per_row)
            start = self.int("mul", self.int("sub", number, self.int("mul", row, per_row)), block)
            stop = self.smaller(self.int("add", start, block), n)
            self.decode(row)
            self.body(phase.row)
            self.inner_loop(inner, start, stop)

    def decode(self, row: Value) -> None:
        """The outer variables of a row number."""
        for v in reversed(self.phase.rows[1:]):
            n = self.extent(v)
            rest = self.int("udiv", row, n)
            self.base[v] = self.int("sub", row, self.int("mul", rest, n))
            row = rest
        if self.phase.rows:
            self.base[self.phase.rows[0]] = row

    def inner_loop(self, inner: int, start: Value, stop: Value) -> None:
        def once() -> None:
            self.body(self.phase.body)

        if self.phase.vector:
            self.vector_loop(inner, start, stop, self.short, once)
            return
        with self.e.for_range(start, stop) as i, self.scope():
            self.base[inner] = i
            once()

    # -- loops and scopes -----------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is forgotten at the end."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    @contextmanager
    def over(self, var: int, base: Value, lanes: int, mask: Value | None) -> Iterator[None]:
        """`lanes` iterations of `var` at once from `base`, those of `mask`."""
        before = self.vec, self.lanes, self.mask
        self.vec, self.lanes, self.mask = var, lanes, mask
        self.base[var] = base
        with self.scope():
            yield
        self.vec, self.lanes, self.mask = before

    def vector_loop(
        self, var: int, start: Value, stop: Value, tail: int, body: Callable[[], None]
    ) -> None:
        """Whole vectors first, then what is left, `tail` masked lanes at a time."""
        e, lanes = self.e, self.long
        whole = self.int("and", self.int("sub", stop, start), e.index(-lanes))
        middle = self.int("add", start, whole)
        with e.for_range(start, middle, lanes) as i, self.over(var, i, lanes, None):
            body()
        with e.for_range(middle, stop, tail) as i:
            left = e.convert(self.int("sub", stop, i), dt.int32)
            numbers = e.lane_numbers(tail, dt.int32)
            mask = e.primitive("lt", [numbers, left], dt.bool_)
            with self.over(var, i, tail, mask):
                body()

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

    def fold_loops(self, fold: Fold, depth: int, innermost: Callable[[], None]) -> None:
        var, last = fold.vars[depth], depth == len(fold.vars) - 1

        def inside() -> None:
            self.body(fold.bodies[depth])
            if last:
                innermost()
            else:
                self.fold_loops(fold, depth + 1, innermost)

        start, stop = self.e.index(0), self.extent(var)
        if last and fold.vector:
            self.vector_loop(var, start, stop, self.long, inside)
            return
        with self.e.for_range(start, stop) as i, self.scope():
            self.base[var] = i
            inside()

    def accumulate(self, fold: Fold, places: Sequence[str], starts: Sequence[Value]) -> None:
        """One step of a fold; lanes beyond the end take the neutral element."""
        new = []
        for arg, start in zip(fold.term.args, starts, strict=True):
            value = self.e.spread(self.value(arg), start.lanes)
            if fold.vector and self.mask is not None:
                value = self.e.primitive("select", [self.mask, value, start], value.dtype)
            new.append(value)
        old = [
            self.e.do(f"load {s.type}, ptr {place}", s.dtype, s.lanes)
            for place, s in zip(places, starts, strict=True)
        ]
        for place, result in zip(places, self.combine(fold.reducer, old, new), strict=True):
            self.e.line(f"store {result}, ptr {place}")

    def combine(self, reducer: Reducer, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """The reducer's formula on values."""
        arena = self.kernel.arena
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

    def part(self, value: Value, lanes: range) -> Value:
        if len(lanes) == 1:
            return self.e.do(f"extractelement {value}, i64 {lanes[0]}", value.dtype)
        return self.shuffle(value, lanes)

    def shuffle(self, value: Value, lanes: Sequence[int]) -> Value:
        picks = ", ".join(f"i32 {k}" for k in lanes)
        text = f"shufflevector {value}, {value.type} poison, <{len(lanes)} x i32> <{picks}>"
        return self.e.do(text, value.dtype, len(lanes))

    # -- values ---------------------------------------------------------------------------------

    def value(self, root: Term, base: bool = False) -> Value:
        """The value of a Term here; with `base`, of its first lane alone (for addresses)."""
        found = self.known(root, base)
        if found is not None:
            return found
        stack = [root]
        while stack:
            term = stack[-1]
            if self.known(term, base) is not None:
                stack.pop()
                continue
            waiting = [a for a in self.needs(term) if self.known(a, base) is None]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            self.scopes[-1][self.key(term, base)] = self.compute(term, base)
        result = self.known(root, base)
        assert result is not None
        return result

    def needs(self, term: Term) -> tuple[Term, ...]:
        """The Terms that `compute` asks for; folds and reads find their own."""
        return () if term.op in ("part", "read") else term.args

    def key(self, term: Term, base: bool) -> Hashable:
        one_lane = base and self.vec is not None and term.free >> self.vec & 1
        return ("base", term.id) if one_lane else term.id

    def known(self, term: Term, base: bool) -> Value | None:
        key = self.key(term, base)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def compute(self, term: Term, base: bool) -> Value:
        op, e = term.op, self.e
        if op == "const":
            return e.constant(term.payload, term.dtype)
        if op == "arg":
            return self.scopes[0][term.payload]
        if op == "var":
            return self.variable(term.payload, base)
        if op == "part":
            return self.result(term)
        if op == "read":
            mask = term.args[1] if len(term.args) == 2 else None
            return self.fetch(term.payload, term.args[0], mask, False, term)
        args = [self.value(a, base) for a in term.args]
        if op == "cast":
            return e.convert(args[0], term.dtype)
        if op == "bitcast":
            target = type_of(term.dtype, args[0].lanes)
            return e.do(f"bitcast {args[0]} to {target}", term.dtype, args[0].lanes)
        if op not in RULES:
            return self.value(math.expand(term), base)
        return e.primitive(op, args, term.dtype)

    def variable(self, var: int, base: bool) -> Value:
        start = self.base[var]
        if var != self.vec or base or self.lanes == 1:
            return start
        return self.e.primitive("add", [start, self.e.lane_numbers(self.lanes)], dt.int64)

    def result(self, part: Term) -> Value:
        key = ("part", part.args[0].id, part.payload)
        return next(scope[key] for scope in reversed(self.scopes) if key in scope)

    # -- memory ---------------------------------------------------------------------------------

    def fetch(
        self,
        operand: Operand,
        offset: Term,
        where: Term | None,
        whole: bool,
        term: Term | None = None,
    ) -> Value:
        """Elements of `operand`: one for all lanes, a vector in a row, or a gather."""
        free = offset.free if term is None else term.free
        if self.vec is None or not (whole or free >> self.vec & 1):
            return self.fetch_one(operand, offset, where)
        mask = self.mask
        if where is not None:
            inside = self.e.spread(self.value(where), self.lanes)
            mask = inside if mask is None else self.e.primitive("and", [mask, inside], dt.bool_)
        step = stride(offset, self.vec) if offset.free >> self.vec & 1 else None
        if step == 1:
            return self.vector(operand, self.value(offset, True), mask)
        if step == -1:
            first = self.int("sub", self.value(offset, True), self.e.index(self.lanes - 1))
            back = range(self.lanes - 1, -1, -1)
            turned = None if mask is None else self.shuffle(mask, back)
            return self.shuffle(self.vector(operand, first, turned), back)
        return self.gather(operand, offset, mask)

    def fetch_one(self, operand: Operand, offset: Term, where: Term | None) -> Value:
        place = self.address(operand, self.value(offset, True))
        if where is not None:
            allowed = self.value(where)
            safe = f"select {allowed}, ptr {place}, ptr {self.somewhere()}"
            place = self.e.do(safe, dt.int64).name
        return self.load(place, operand.dtype)

    def somewhere(self) -> str:
        """Memory that may always be read."""
        if self.nothing is None:
            self.nothing = "%nothing"
            self.e.allocas += ["  %nothing = alloca i64", "  store i64 0, ptr %nothing"]
        return self.nothing

    def address(self, operand: Operand, offset: Value) -> str:
        pointer = self.scopes[0][operand.slot].name
        element = memory_type(operand.dtype)
        kind = dt.int64
        return self.e.do(
            f"getelementptr {element}, ptr {pointer}, {offset}", kind, offset.lanes
        ).name

    def load(self, place: str, dtype: DType, lanes: int = 1) -> Value:
        text = f"load {memory_type(dtype, lanes)}, ptr {place}, align {dtype.size}"
        return self.from_memory(self.e.do(text, in_memory(dtype), lanes), dtype)

    def from_memory(self, value: Value, dtype: DType) -> Value:
        return (
            self.e.convert(value, dtype)
            if dtype.kind == "b"
            else Value(*value[:1], dtype, value.lanes)
        )

    def vector(self, operand: Operand, first: Value, mask: Value | None) -> Value:
        """`lanes` elements in a row from `first`."""
        dtype, lanes = operand.dtype, self.lanes
        place = self.address(operand, first)
        if mask is None:
            return self.load(place, dtype, lanes)
        stored, kind = in_memory(dtype), memory_type(dtype, lanes)
        name = f"@llvm.masked.load.{overload(stored, lanes)}.p0"
        self.e.declared.add(f"declare {kind} {name}(ptr, i32, <{lanes} x i1>, {kind})")
        text = f"call {kind} {name}(ptr {place}, i32 {dtype.size}, {mask}, {kind} zeroinitializer)"
        return self.from_memory(self.e.do(text, stored, lanes), dtype)

    def gather(self, operand: Operand, offset: Term, mask: Value | None) -> Value:
        dtype, lanes = operand.dtype, self.lanes
        places = self.address(operand, self.e.spread(self.value(offset), lanes))
        allowed = mask or self.e.constant(True, dt.bool_, lanes)
        stored, kind = in_memory(dtype), memory_type(dtype, lanes)
        name = f"@llvm.masked.gather.{overload(stored, lanes)}.v{lanes}p0"
        self.e.declared.add(f"declare {kind} {name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
        args = f"<{lanes} x ptr> {places}, i32 {dtype.size}, {allowed}, {kind} zeroinitializer"
        return self.from_memory(self.e.do(f"call {kind} {name}({args})", stored, lanes), dtype)

    def store(self, operand: Operand, offset: Term, value: Value) -> None:
        stored = in_memory(operand.dtype)
        if operand.dtype.kind == "b":
            value = self.e.do(
                f"zext {value} to {type_of(stored, value.lanes)}", stored, value.lanes
            )
        if self.vec is None or not self.phase.vector:
            place = self.address(operand, self.value(offset, True))
            self.e.line(f"store {value}, ptr {place}, align {operand.dtype.size}")
            return
        value = self.e.spread(value, self.lanes)
        step = stride(offset, self.vec)
        if step == 1:
            self.store_vector(operand, self.value(offset, True), value)
        else:
            self.scatter(operand, offset, value)

    def store_vector(self, operand: Operand, first: Value, value: Value) -> None:
        place, size = self.address(operand, first), operand.dtype.size
        if self.mask is None:
            self.e.line(f"store {value}, ptr {place}, align {size}")
            return
        name = f"@llvm.masked.store.{overload(value.dtype, value.lanes)}.p0"
        self.e.declared.add(f"declare void {name}({value.type}, ptr, i32, <{value.lanes} x i1>)")
        self.e.line(f"call void {name}({value}, ptr {place}, i32 {size}, {self.mask})")

    def scatter(self, operand: Operand, offset: Term, value: Value) -> None:
        lanes, size = value.lanes, operand.dtype.size
        places = self.address(operand, self.e.spread(self.value(offset), lanes))
        allowed = self.mask or self.e.constant(True, dt.bool_, lanes)
        name = f"@llvm.masked.scatter.{overload(value.dtype, lanes)}.v{lanes}p0"
        pointers = f"<{lanes} x ptr>"
        self.e.declared.add(f"declare void {name}({value.type}, {pointers}, i32, <{lanes} x i1>)")
        self.e.line(f"call void {name}({value}, {pointers} {places}, i32 {size}, {allowed})")

    # -- integers -------------------------------------------------------------------------------

    def extent(self, var: int) -> Value:
        return self.value(self.kernel.arena.extent[var], True)

    def slot(self, number: int) -> Value:
        place = self.e.do(f"getelementptr i64, ptr %b, i64 {number}", dt.int64).name
        return self.load(place, dt.int64)

    def int(self, op: str, a: Value, b: Value) -> Value:
        return self.e.do(f"{op} {a}, {b.name}", dt.int64)

    def smaller(self, a: Value, b: Value) -> Value:
        return self.e.primitive("min", [a, b], dt.int64)


def in_memory(dtype: DType) -> DType:
    """The dtype whose register type is `dtype`'s type in memory."""
    return dt.uint8 if dtype.kind == "b" else dtype
