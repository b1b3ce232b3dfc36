"""Code for CPUs: a `Kernel` of loop nests as LLVM IR with explicit vectors.

The argument block is an array of 8-byte slots: the address of `parallel` (see `runtime.threads`),
for each phase how it is divided, then the kernel's arguments. A phase is divided into blocks of
`block` inner iterations, `each` of them for a row and `total` for all rows, dealt to `tasks` tasks.
`kernel(block)` runs the phases in turn; a phase of one task runs on the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.code.coarse import Quotients
from gnomon.code.emit import Value
from gnomon.code.segment import Segments, statements
from gnomon.code.sweep import SweepWriter
from gnomon.code.target import Target
from gnomon.code.values import STREAM, Arguments
from gnomon.plan.ir import Kernel, Phase, Put
from gnomon.plan.schedule import stride

HEADER_SLOTS = 1  # `parallel`
TASKS, BLOCK, EACH, TOTAL, PHASE_SLOTS = range(5)  # the slots of a phase
ALIGNED = 4  # registers: a loop over fewer elements does not begin at a boundary


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
    lines = ["define void @kernel(ptr %b) #0 {", "entry:", "  %parallel = load ptr, ptr %b"]
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
            f"define internal void @task{k}(ptr %b, i64 %task, i64 %tasks) #0 {{",
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


class PhaseWriter(SweepWriter):
    """One phase as a function `phaseK(block, low, high)` of its blocks from low to before high."""

    def __init__(
        self, kernel: Kernel, phase: Phase, number: int, arguments: Arguments, target: Target
    ) -> None:
        quotients = Quotients(kernel.arena, phase)
        short = target.lanes(phase, quotients.terms)
        self.segments: Segments | None = None
        if phase.vector and statements(phase.body) > target.segment:
            self.segments = Segments(kernel.arena, arguments, phase, number, target.segment)
        unroll = 1 if self.segments else target.unroll(phase)
        if quotients.terms and not self.segments:  # whole registers of quotients, but short rows
            unroll = 1 if phase.rows else max(2, unroll)
        masks = target.masks(phase)
        super().__init__(kernel.arena, arguments, target, (short, short * unroll), masks)
        self.phase, self.number, self.register = phase, number, target.vector_bytes
        if quotients.terms and self.segments is None:
            self.quotients = quotients
        self.streamed = target.streamed(phase, short * unroll) if phase.vector else None
        self.large: Value | None = None

    # -- the function ---------------------------------------------------------------------------

    def write(self) -> str:
        e, phase = self.e, self.phase
        self.body(phase.entry)
        if phase.inner is None:
            self.in_turn(phase.turns, lambda: self.body([*phase.row, *phase.body]))
        else:
            self.blocks(phase.inner)
        head = (
            "define internal void "
            f"@phase{self.number}(ptr %b, i64 %low, i64 %high, i64 %task) noinline #0 {{"
        )
        return "\n".join([head, "entry:", *e.allocas, *e.lines, "  ret void", "}"])

    def blocks(self, inner: int) -> None:
        """The blocks of a share, row by row, or column by column."""
        share = Value("%low", dt.int64), Value("%high", dt.int64)
        first = HEADER_SLOTS + PHASE_SLOTS * self.number
        block, each = self.slot(first + BLOCK), self.slot(first + EACH)
        counted: list[int | None] = [*self.phase.rows, None]  # None: the block within a row
        if self.phase.columns:
            counted[-2:] = counted[:-3:-1]
        extents = [each if v is None else self.extent(v) for v in counted]
        if self.streamed is not None:
            elements = self.int("mul", self.slot(first + TOTAL), block)
            most = self.e.index(self.e.target.stream // self.streamed.dest.dtype.size)
            self.large = self.e.primitive("lt", [most, elements], dt.bool_)
        where = self.position(share[0], extents)
        with self.e.for_range(*share), self.scope():
            places = dict(zip(counted, where, strict=True))
            self.base.update((v, self.counter(places[v])) for v in self.phase.rows)
            start = self.int("mul", self.counter(places[None]), block)
            stop = self.smaller(self.int("add", start, block), self.extent(inner))
            self.in_turn(self.phase.turns, lambda: self.row(inner, start, stop))
            self.advance(extents, where)
        if self.large is not None:  # what went past the caches must be there for other threads
            with self.e.when(self.large):
                self.e.declared.add("declare void @llvm.x86.sse.sfence()")
                self.e.line("call void @llvm.x86.sse.sfence()")

    def row(self, inner: int, start: Value, stop: Value) -> None:
        """What a row computes once, and a block of its inner loop."""
        self.body(self.phase.row)
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
        if self.phase.swept:
            self.sweep(self.phase.body, inner, start, stop)
            return
        first = self.phase.body[-1]
        ahead = self.phase.vector and not self.phase.turns and self.quotients is None
        if ahead and isinstance(first, Put) and stride(first.offset, inner) == 1:
            head = self.before_boundary(first, inner, start, self.int("sub", stop, start))
            self.aligned_loop(inner, start, stop, head, once, self.large)
            return
        if self.phase.vector:
            self.vector_loop(inner, start, stop, self.short, once)
            return
        with self.e.for_range(start, stop) as i, self.scope():
            self.base[inner] = i
            once()

    def before_boundary(self, put: Put, inner: int, start: Value, n: Value) -> Value:
        """Of n elements from `start`, those to where a store is aligned as wide as registers are.

        None where n is small, unless what is stored past the caches must be aligned: the masked
        vector they take is one more than there would be.
        """
        with self.scope():
            self.base[inner] = start
            place = self.address(put.dest, self.value(put.offset, True))
            address = self.e.do(f"ptrtoint ptr {place} to i64", dt.int64)
        away = self.int("sub", self.e.index(0), address)
        bytes_before = self.int("and", away, self.e.index(self.register - 1))
        before = self.int("udiv", bytes_before, self.e.index(put.dest.dtype.size))
        long = self.e.primitive("lt", [self.e.index(ALIGNED * self.short), n], dt.bool_)
        if self.large is not None:
            long = self.e.primitive("or", [long, self.large], dt.bool_)
        return self.e.primitive("select", [long, before, self.e.index(0)], dt.int64)

    def segments_in_turn(self) -> None:
        """The body of a large phase as calls of functions that share memory on the stack."""
        assert self.segments is not None
        self.segments.run(self)
