"""Code for CPUs: a `Kernel` of loop nests as LLVM IR with explicit vectors.

The argument block is an array of 8-byte slots: the address of `parallel` (see `runtime.threads`),
for each phase how it is divided, then the kernel's arguments. A phase is divided into blocks of
`block` inner iterations, `each` of them for a row and `total` for all rows, dealt to `tasks` tasks.
`kernel(block)` runs the phases in turn; a phase of one task runs on the caller. Where `each` is 0,
tasks have rows of the destination, `block` long (see `plan.ir.Own`), and may run the phase before
for them, whose own `total` is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from gnomon import dtype as dt
from gnomon.code.emit import Value
from gnomon.code.index_ranges import IndexRange, ranges, roots
from gnomon.code.repeated_lanes import Quotients
from gnomon.code.segment import Segments, statements
from gnomon.code.square import SquareWriter, across
from gnomon.code.target import Target
from gnomon.code.values import STREAM, Arguments
from gnomon.expr.term import Term, mask_of
from gnomon.plan.ir import Kernel, Own, Phase, Put
from gnomon.plan.schedule import row_offset, stride
from gnomon.plan.terms import index_terms, postorder

HEADER_SLOTS = 1  # `parallel`
TASKS, BLOCK, EACH, TOTAL, PHASE_SLOTS = range(5)  # the slots of a phase
SEVERAL = 2  # whole vectors of the main loop: shorter rows are not stored past the caches
NEAR = 2  # counters of the innermost loop over blocks
#: what hands out tasks: LLVM's work on it would be a tenth of that on a small kernel, for nothing
AS_IT_IS = "nounwind noinline optnone"
ALIGNED = 4  # registers: a loop over fewer elements does not begin at a boundary

Range: TypeAlias = tuple[Value, Value]
Counted: TypeAlias = tuple[int | None, Value]  # a variable, None for a row's blocks; its extent


def first_argument(phases: int) -> int:
    """The slot of the first kernel argument."""
    return HEADER_SLOTS + PHASE_SLOTS * phases


def write(kernel: Kernel, target: Target) -> str:
    """The LLVM IR of a kernel; its entry is `kernel`."""
    arguments = Arguments(kernel.arena, first_argument(len(kernel.phases)), kernel.args)
    declared: set[str] = set()
    functions = []
    for number, phase in enumerate(kernel.phases):
        writer = PhaseWriter(kernel, phase, number, arguments, target)
        functions += [writer.write(), _task(number)]
        if writer.segments is not None:
            functions.extend(writer.segments.functions)
            declared |= writer.segments.declared
        declared |= writer.e.declared
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{8 * target.vector_bytes}" }}'
    stream = f"{STREAM} = !{{i32 1}}"
    parts = [*sorted(declared), *functions, _entry(len(kernel.phases)), attributes, stream]
    return "\n".join(parts) + "\n"


def _entry(phases: int) -> str:
    """The phases in turn."""
    head = f"define void @kernel(ptr %b) {AS_IT_IS} {{"
    lines = [head, "entry:", "  %parallel = load ptr, ptr %b"]
    for k in range(phases):
        lines += [
            *_load(k, TASKS, "tasks"),
            *_load(k, TOTAL, "total"),
            f"  %many{k} = icmp sgt i64 %tasks{k}, 1",
            f"  br i1 %many{k}, label %all{k}, label %one{k}",
            f"all{k}:",
            f"  call void %parallel(ptr @task{k}, ptr %b, i64 %tasks{k})",
            f"  br label %next{k}",
            f"one{k}:",
            f"  call void @phase{k}(ptr %b, i64 0, i64 %total{k}, i64 0)",
            f"  br label %next{k}",
            f"next{k}:",
        ]
    return "\n".join([*lines, "  ret void", "}"])


def _task(k: int) -> str:
    """A task's share of a phase's blocks."""
    return "\n".join(
        [
            f"define internal void @task{k}(ptr %b, i64 %task, i64 %tasks) {AS_IT_IS} {{",
            *_load(k, TOTAL, "total"),
            "  %next = add i64 %task, 1",
            f"  %before = mul i64 %total{k}, %task",
            f"  %after = mul i64 %total{k}, %next",
            "  %low = udiv i64 %before, %tasks",
            "  %high = udiv i64 %after, %tasks",
            f"  call void @phase{k}(ptr %b, i64 %low, i64 %high, i64 %task)",
            "  ret void",
            "}",
        ]
    )


def _load(phase: int, slot: int, name: str) -> list[str]:
    number = HEADER_SLOTS + PHASE_SLOTS * phase + slot
    return [
        f"  %{name}{phase}.at = getelementptr i64, ptr %b, i64 {number}",
        f"  %{name}{phase} = load i64, ptr %{name}{phase}.at",
    ]


class PhaseWriter(SquareWriter):
    """One phase as a function `phaseK(block, low, high)` of its blocks from low to before high."""

    def __init__(
        self, kernel: Kernel, phase: Phase, number: int, arguments: Arguments, target: Target
    ) -> None:
        quotients = Quotients(kernel.arena, phase)
        found = ranges(phase, kernel.arena) if aligned(phase) else []
        decided = {t.id for t in postorder([w.cond for w in found])}
        short = target.lanes(phase, quotients.terms, decided)
        self.segments: Segments | None = None
        if phase.vector and not phase.ordered and statements(phase.body) > target.segment:
            self.segments = Segments.of(phase, kernel.arena, arguments, number, target.segment)
        unroll = 1 if self.segments else target.unroll(phase)
        if quotients.terms and not self.segments:  # whole registers of quotients, but short rows
            unroll = 1 if phase.rows else max(2, unroll)
        if phase.ordered:  # what an element comes to depends on none behind it, to the bit
            unroll = 1
        masks = target.masks(phase)
        super().__init__(kernel.arena, arguments, target, (short, short * unroll), masks)
        self.phase, self.number, self.register = phase, number, target.vector_bytes
        if quotients.terms and self.segments is None:
            self.quotients = quotients
        self.aligned = self.segments is None and self.quotients is None and aligned(phase)
        if self.aligned:
            self.ranges = found
        self.across = [] if self.ranges or quotients.terms else across(phase)
        self.arithmetic = arithmetic(phase, self.ranges)
        if phase.vector and not self.ranges:  # whose rows have ends that go through the caches
            self.streamed = target.streamed(phase, short * unroll)
        self.large: Value | None = None
        self.registers: list[Register] = []
        light = self.masks and self.long > self.short
        self.brief = bool(self.aligned and phase.rows) and light

    # -- the function ---------------------------------------------------------------------------

    def write(self) -> str:
        e, phase = self.e, self.phase
        self.body(phase.entry)
        if phase.inner is None:
            self.in_turn(phase.turns, lambda: self.body([*phase.row, *phase.body]))
        else:
            everything = mask_of((*phase.rows, *phase.turns, phase.inner))
            self.reciprocals([phase.row, phase.body] if phase.vector else [], everything)
            if phase.own is None:
                self.blocks(phase.inner)
            else:
                self.owned(phase.inner, phase.own)
        head = (
            "define internal void "
            f"@phase{self.number}(ptr %b, i64 %low, i64 %high, i64 %task) noinline #0 {{"
        )
        return "\n".join([head, "entry:", *e.allocas, *e.lines, "  ret void", "}"])

    def blocks(self, inner: int) -> None:
        """The blocks of a share, row by row, or column by column."""
        share = Value("%low", dt.int64), Value("%high", dt.int64)
        first = HEADER_SLOTS + PHASE_SLOTS * self.number
        block, each = self.block(), self.slot(first + EACH)
        counted: list[int | None] = [*self.phase.rows, None]  # None: the block within a row
        if self.phase.columns:
            counted[-2:] = counted[:-3:-1]
        extents = [each if v is None else self.extent(v) for v in counted]
        if self.streamed is not None:
            caches = self.e.index(self.e.target.streamed_from(self.phase))
            elements = self.int("mul", self.slot(first + TOTAL), block)
            size = self.int("mul", elements, self.e.index(self.streamed.dest.dtype.size))
            most = self.int("mul", caches, self.e.cache_bytes())
            self.large = self.e.primitive("lt", [most, size], dt.bool_)
        if self.phase.rows or self.ranges:
            self.runs(inner, share, list(zip(counted, extents, strict=True)))
        else:  # blocks are in a row: one long one
            start, stop = (self.int("mul", number, block) for number in share)
            stop = self.smaller(stop, self.extent(inner))
            with self.e.when(self.e.primitive("lt", [start, stop], dt.bool_)), self.scope():
                self.in_turn(self.phase.turns, lambda: self.row(inner, start, stop))
        if self.large is not None:  # what went past the caches must be there for other threads
            with self.e.when(self.large):
                self.e.declared.add("declare void @llvm.x86.sse.sfence()")
                self.e.line("call void @llvm.x86.sse.sfence()")

    def owned(self, inner: int, own: Own) -> None:
        """A share of the inner loop for all rows of the destination, or of the rows, whole."""
        e, put = self.e, self.phase.body[-1]
        assert isinstance(put, Put)
        low, high = Value("%low", dt.int64), Value("%high", dt.int64)
        first = HEADER_SLOTS + PHASE_SLOTS * self.number
        block, stop = self.block(), self.extent(inner)
        ends = [self.int("mul", number, block) for number in (low, high)]
        by_rows = e.primitive("eq", [self.slot(first + EACH), e.index(0)], dt.bool_)
        if own.filled:
            with e.when(by_rows):
                e.line(f"call void @phase{self.number - 1}(ptr %b, {low}, {high}, i64 %task)")

        def pick(a: Value, b: Value) -> Value:
            return e.primitive("select", [by_rows, a, b], dt.int64)

        elements = self.int("mul", self.value(own.rows, True), stop)
        rows = pick(ends[0], e.index(0)), pick(ends[1], elements)
        part = pick(e.index(0), ends[0]), pick(stop, self.smaller(ends[1], stop))
        begin = row_offset(put.offset, inner)
        assert begin is not None

        def turn() -> None:
            place = self.value(begin, True)
            after = e.primitive("le", [rows[0], place], dt.bool_)
            before = e.primitive("lt", [place, rows[1]], dt.bool_)
            with e.when(e.primitive("and", [after, before], dt.bool_)), self.scope():
                self.row(inner, *part)

        self.in_turn(self.phase.turns, turn)

    def runs(self, inner: int, share: Range, counted: Sequence[Counted]) -> None:
        """Blocks from `share[0]` to before `share[1]`, counted by loops: the last two by one.

        What is the same along the rows of a plane is then computed once a plane.
        """
        further, near = counted[:-NEAR], counted[-NEAR:]
        if not further:
            self.run(inner, share, near)
            return
        one = self.e.index(1)
        each = one
        for _, n in near:
            each = self.int("mul", each, n)
        each = self.e.primitive("max", [each, one], dt.int64)
        first = self.int("udiv", share[0], each)
        beyond = self.int("add", share[1], self.int("sub", each, one))
        extents = [n for _, n in further]
        where = self.position(first, extents)
        with self.e.for_range(first, self.int("udiv", beyond, each)) as k, self.scope():
            places = zip(variables(further), where, strict=True)
            self.base.update((v, self.counter(place)) for v, place in places)
            before = self.int("mul", k, each)
            ends = [self.int("sub", end, before) for end in share]
            begin = self.e.primitive("max", [ends[0], self.e.index(0)], dt.int64)
            self.settle(mask_of(variables(further)))
            self.run(inner, (begin, self.smaller(ends[1], each)), near)
            self.advance(extents, where)

    def run(self, inner: int, share: Range, counted: Sequence[Counted]) -> None:
        """Blocks one after the other; where the rows are short and whole, by less code for each."""
        block = self.block()
        if self.phase.columns:
            self.in_columns(inner, share, block)
            return
        if self.brief:
            e, n = self.e, self.extent(inner)
            few = e.primitive("le", [n, e.index(ALIGNED * self.short)], dt.bool_)
            whole = e.primitive("le", [n, block], dt.bool_)
            both = e.primitive("and", [few, whole], dt.bool_)
            middle = e.primitive("select", [both, share[1], share[0]], dt.int64)
            with self.scope():
                self.registers = self.registers_of_row(n)
                self.count((share[0], middle), counted[:-1], lambda _: self.brief_row(inner))
            share = middle, share[1]
        self.count(share, counted, lambda number: self.block_of_row(inner, number, block))

    def count(
        self, share: Range, counted: Sequence[Counted], inside: Callable[[Value], None]
    ) -> None:
        """`inside` for each block of a share, found by counting: it gets its number in its row."""
        extents = [n for _, n in counted]
        where = self.position(share[0], extents)
        with self.e.for_range(*share), self.scope():
            number = self.e.index(0)
            for (v, _), place in zip(counted, where, strict=True):
                if v is None:
                    number = self.counter(place)
                else:
                    self.base[v] = self.counter(place)
            self.settle(mask_of(self.phase.rows))
            inside(number)
            self.advance(extents, where)

    def block_of_row(self, inner: int, number: Value, block: Value) -> None:
        """A block, of `block` elements, of the present row."""
        start = self.int("mul", number, block)
        stop = self.smaller(self.int("add", start, block), self.extent(inner))
        self.in_turn(self.phase.turns, lambda: self.row(inner, start, stop))

    def brief_row(self, inner: int) -> None:
        """A row of few registers, masked, without a loop."""
        e, n, lanes = self.e, self.extent(inner), self.short
        self.body(self.phase.row)
        self.reciprocals([self.phase.body], 1 << inner)
        self.look_out(e.index(0))

        def register(k: int) -> None:
            first, bits = e.index(k * lanes), self.registers[k].bits
            with e.when(e.primitive("lt", [first, n], dt.bool_)):
                mask = e.do(f"bitcast i{lanes} {bits} to <{lanes} x i1>", dt.bool_, lanes)
                self.ahead = self.registers[k].ahead
                with self.over(inner, first, lanes, mask):
                    self.body(self.phase.body)
                self.ahead = {}
                if k + 1 < ALIGNED:
                    register(k + 1)

        register(0)

    def registers_of_row(self, n: Value) -> list[Register]:
        """What the registers of all brief rows share: rows of one loop differ in their last place.

        Masks are kept as bits, for LLVM would make them anew for each row.
        """
        e, lanes = self.e, self.short
        found: list[Register] = []
        before = mask_of(self.phase.rows[:-1])
        steady = [w for w in self.ranges if not w.low.free & ~before]
        lows = {w.cond.id: self.near_end(w.low, e.index(0)) for w in steady}
        for k in range(ALIGNED):
            first = e.index(k * lanes)
            self.left = e.convert(self.int("sub", n, first), dt.int32)
            bits = e.do(f"bitcast {self.inside(lanes)} to i{lanes}", dt.uint64).name
            starts = {key: e.convert(low, dt.uint32) for key, low in lows.items()}
            ahead = {key: self.numbers(first, low, lanes) for key, low in starts.items()}
            found.append(Register(bits, ahead))
        return found

    def block(self) -> Value:
        """Inner iterations of a block."""
        return self.slot(HEADER_SLOTS + PHASE_SLOTS * self.number + BLOCK)

    def settle(self, known: int) -> None:
        """Compute here what the index arithmetic further in takes from the variables `known`."""
        for term in self.arithmetic:
            if not term.free & ~known:
                self.value(term, True)

    def row(self, inner: int, start: Value, stop: Value) -> None:
        """What a row computes once, and a block of its inner loop."""
        self.body(self.phase.row)
        if self.phase.ordered:
            self.begin_scans(self.phase.body)
        if self.phase.vector:
            self.reciprocals([self.phase.body], 1 << inner)
        self.inner_loop(inner, start, stop)

    def position(self, number: Value, extents: Sequence[Value]) -> list[str]:
        """Counters below `extents`, the last one fastest, set to block `number`.

        They are divided out once; from then on they count, because a division takes longer than
        a short row.
        """
        e = self.e
        places = [e.alloca(dt.int64, stem="at") for _ in extents]
        for place in places:
            e.line(f"store i64 0, ptr {place}")
        with e.when(e.primitive("ne", [number, e.index(0)], dt.bool_)):
            for place, n in reversed(list(zip(places, extents, strict=True))[1:]):
                rest = self.int("udiv", number, n)
                inside = self.int("sub", number, self.int("mul", rest, n))
                e.line(f"store {inside}, ptr {place}")
                number = rest
            e.line(f"store {number}, ptr {places[0]}")
        return places

    def counter(self, place: str) -> Value:
        return self.e.do(f"load i64, ptr {place}", dt.int64)

    def advance(self, extents: Sequence[Value], places: Sequence[str]) -> None:
        """The next position: the last counter steps, and what is full carries over."""
        after = self.int("add", self.counter(places[-1]), self.e.index(1))
        self.e.line(f"store {after}, ptr {places[-1]}")
        if len(places) == 1:
            return
        full = self.e.primitive("eq", [after, extents[-1]], dt.bool_)
        with self.e.when(full):
            self.e.line(f"store i64 0, ptr {places[-1]}")
            self.advance(extents[:-1], places[:-1])

    def inner_loop(self, inner: int, start: Value, stop: Value) -> None:
        def once() -> None:
            self.body(self.phase.body)

        if self.segments is not None:
            loop = self.masked_loop if self.masks else self.vector_loop
            loop(inner, start, stop, self.short, self.segments_in_turn)
            return
        if self.phase.striped:
            self.reduce_columns(self.phase.body, inner, start, stop)
            return
        put = self.phase.body[-1]
        if self.aligned and isinstance(put, Put):
            n = self.int("sub", stop, start)
            large = self.long_enough(n)
            whole = self.whole(put, inner, (start, stop), large)
            self.aligned_loop(inner, start, stop, whole, once, large)
            return
        if self.phase.vector:
            self.vector_loop(inner, start, stop, self.short, once)
            return
        with self.e.for_range(start, stop) as i, self.scope():
            self.base[inner] = i
            once()

    def long_enough(self, n: Value) -> Value | None:
        """Whether `n` elements of a row are stored past the caches; None where that never is."""
        if self.large is None:
            return None
        several = self.e.primitive("lt", [self.e.index(SEVERAL * self.long), n], dt.bool_)
        return self.e.primitive("and", [several, self.large], dt.bool_)

    def whole(self, put: Put, inner: int, row: Range, large: Value | None) -> Range:
        """From where to where `row` is stored in whole vectors, inside of all ranges.

        A long row begins them where a store is aligned as wide as registers are, and so does what
        is stored past the caches, which must be: the masked vector before is one more than there
        would be. A short row with ranges goes masked from end to end.
        """
        e, (start, stop) = self.e, row
        long = e.primitive(
            "lt", [e.index(ALIGNED * self.short), self.int("sub", stop, start)], dt.bool_
        )
        if large is not None:
            long = e.primitive("or", [long, large], dt.bool_)
        begin, middle = e.alloca(dt.int64, stem="begin"), e.alloca(dt.int64, stem="middle")
        end = start if self.ranges else self.after_whole(start, stop, self.long)
        for place, value in ((begin, start), (middle, end)):
            e.line(f"store {value}, ptr {place}")
        self.look_out(start)
        with e.when(long), self.scope():
            first = self.smaller(
                self.int("add", start, self.before_boundary(put, inner, start)), stop
            )
            if self.ranges:
                first, stop = self.inside_ranges(first, stop)
            last = self.after_whole(first, stop, self.short if self.ranges else self.long)
            for place, value in ((begin, first), (middle, last)):
                e.line(f"store {value}, ptr {place}")
        return self.counter(begin), self.counter(middle)

    def after_whole(self, begin: Value, end: Value, lanes: int) -> Value:
        """Where the last whole vector that begins at `begin` or later ends, before `end`."""
        some = self.e.primitive("max", [self.int("sub", end, begin), self.e.index(0)], dt.int64)
        return self.int("add", begin, self.int("and", some, self.e.index(-lanes)))

    def before_boundary(self, put: Put, inner: int, start: Value) -> Value:
        """The elements from `start` to where a store is aligned."""
        self.base[inner] = start
        place = self.address(put.dest, self.value(put.offset, True))
        address = self.e.do(f"ptrtoint ptr {place} to i64", dt.int64)
        away = self.int("sub", self.e.index(0), address)
        rest = self.int("and", away, self.e.index(self.register - 1))
        return self.int("udiv", rest, self.e.index(put.dest.dtype.size))

    def segments_in_turn(self) -> None:
        """The body of a large phase as calls of functions that share memory on the stack."""
        assert self.segments is not None
        self.segments.run(self)


class Register(NamedTuple):
    """Which lanes of a row a register has, as bits, and how far ahead of ranges they are."""

    bits: str
    ahead: dict[int, Value]


def variables(counted: Sequence[Counted]) -> list[int]:
    """The variables among counters."""
    return [v for v, _ in counted if v is not None]


def aligned(phase: Phase) -> bool:
    """Whether a phase stores rows of memory: then whole vectors begin where that is aligned."""
    put = phase.body[-1] if phase.body else None
    if phase.inner is None or not phase.vector or phase.striped or phase.turns or phase.ordered:
        return False
    return isinstance(put, Put) and stride(put.offset, phase.inner) == 1


def arithmetic(phase: Phase, found: Sequence[IndexRange]) -> list[Term]:
    """The index arithmetic of a phase's inner loop, arguments first, that cannot fail.

    A division by a size may stand where that is 0 and the loop is empty.
    """
    if phase.turns:
        return []
    order = postorder([*roots(phase.body), *(end for w in found for end in (w.low, w.high))])
    known = index_terms(order)
    safe: dict[int, Term] = {}
    for term in order:
        risky = term.op in ("idiv", "imod") and not term.args[1].constant
        plain = all(a.id in safe or not a.args for a in term.args)
        if term.id in known and term.args and plain and not risky:
            safe[term.id] = term
    return list(safe.values())
