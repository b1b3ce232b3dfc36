"""Code for NVIDIA GPUs: the phases of a `Kernel` as PTX entries, by LLVM's NVPTX back end.

Each phase is an entry of its own, launched one after the other on a stream: what a phase writes the
next one reads. An entry takes the kernel's arguments by value, as one array of 8-byte slots in the
order of `Kernel.args`; they are at most 32764 bytes. Blocks have `x` threads times `y`:

    threads   one thread takes an element of rows x inner, then that a whole grid further
    rows      the x threads of a team take a row: its folds together, its elements by turns
    elements  the x threads of a team take an element: its folds together, the first one stores

A team is a warp, or all of a block of several warps. It folds by shuffles, then, if it is more than
a warp, by way of shared memory in the order of the warps: the same sizes give the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gnomon import dtype as dt
from gnomon.code.emit import Value, type_of
from gnomon.code.loops import LoopWriter
from gnomon.code.target import Target
from gnomon.code.values import Arguments
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan.ir import Fold, Kernel, Phase, Put
from gnomon.plan.operand import Operand
from gnomon.plan.terms import host_value

Kind = Literal["threads", "rows", "elements"]
WARP = 32
BLOCK = 256  # threads of a block at most: each may then have all the registers there are
LONG = 1024  # elements that a team of a whole block is for
RESIDENT = 32  # blocks for each processor of the GPU: more only take their turn


@dataclass(frozen=True, slots=True)
class Launch:
    """How a phase is launched: its entry, how many items of work there are, for threads or teams.

    `length` is how many elements a team goes through for an item; None: many.
    """

    entry: str
    kind: Kind
    items: Term
    length: Term | None

    def shape(self, env: Mapping[Hashable, int], processors: int) -> tuple[int, int, int]:
        """Blocks, and the threads x and y of each, for these sizes on a GPU; no blocks: no work."""
        items = host_value(self.items, env)
        if self.kind == "threads":
            x, y = BLOCK, 1
        else:
            long = self.length is None or host_value(self.length, env) >= LONG
            x, y = (BLOCK, 1) if long else (WARP, BLOCK // WARP)
        each = x if self.kind == "threads" else y
        return min(-(-items // each), processors * RESIDENT), x, y


class Module(NamedTuple):
    """LLVM IR of the entries, and how to launch them, in order."""

    text: str
    launches: tuple[Launch, ...]


def write(kernel: Kernel, target: Target, name: str = "kernel") -> Module:
    """The entries `name`_0, `name`_1, ... of a kernel's phases."""
    arguments = Arguments(kernel.arena, 0, kernel.args)
    block = f"[{max(1, len(kernel.args))} x i64]"
    declared: set[str] = set()
    functions, notes, launches = [], [], []
    for number, phase in enumerate(kernel.phases):
        entry = f"{name}_{number}"
        writer = PhaseWriter(kernel.arena, arguments, phase, entry, target)
        functions.append(writer.write(block))
        launches.append(writer.launch())
        declared |= writer.e.declared
        notes.append(f'!{number} = !{{ptr @{entry}, !"maxntidx", i32 {BLOCK}}}')
    listed = ", ".join(f"!{k}" for k in range(len(notes)))
    parts = [*sorted(declared), *functions, f"!nvvm.annotations = !{{{listed}}}", *notes]
    return Module("\n".join(parts) + "\n", tuple(launches))


class PhaseWriter(LoopWriter):
    """One phase as an entry; every value is one lane, a thread's own."""

    def __init__(
        self, arena: Arena, arguments: Arguments, phase: Phase, entry: str, target: Target
    ) -> None:
        super().__init__(arena, arguments, target, (1, 1))
        self.phase, self.entry = phase, entry
        self.row_folds = [s for s in phase.row if isinstance(s, Fold)]
        self.joint = [s for s in phase.body if isinstance(s, Fold) and s.vector]
        self.kind: Kind = "elements" if self.joint else "rows" if self.row_folds else "threads"
        self.together = {s.term.id for s in (*self.row_folds, *self.joint)}
        self.leader: Value | None = None  # where the first of a team alone stores
        self.shared = 0  # bytes of shared memory

    def launch(self) -> Launch:
        """How to launch the entry."""
        items = self.arena.const(1)
        for v in self.spread_variables():
            items = items * self.arena.extent[v]
        return Launch(self.entry, self.kind, items, self.length())

    def spread_variables(self) -> tuple[int, ...]:
        """The variables whose combinations are the items of work."""
        rows, inner = self.phase.rows, self.phase.inner
        by_rows = self.row_folds or inner is None
        return rows if by_rows or inner is None else (*rows, inner)

    def length(self) -> Term | None:
        """The longest fold that a team shares, where sizes alone tell."""
        if self.kind == "threads":
            return None
        longest = self.arena.const(1)
        for fold in (*self.row_folds, *self.joint):
            count = self.arena.const(1)
            for v in fold.vars:
                count = count * self.arena.extent[v]
            if count.free:
                return None
            longest = self.arena.op("max", longest, count)
        return longest

    # -- the entry ------------------------------------------------------------------------------

    def write(self, block: str) -> str:
        """The function, and its shared memory."""
        self.body(self.phase.entry)
        with self.items():
            self.item()
        e = self.e
        head = f"define ptx_kernel void @{self.entry}(ptr byval({block}) align 8 %b) {{"
        lines = [head, "entry:", *e.allocas, *e.lines, "  ret void", "}"]
        if self.shared:
            kind = f"[{self.shared} x i8]"
            lines.insert(0, f"@{self.entry}_shared = internal addrspace(3) global {kind} undef, align 8")
        return "\n".join(lines)

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

    @contextmanager
    def items(self) -> Iterator[None]:
        """The items of a thread or a team, a grid apart; the variables are known inside."""
        e, variables = self.e, self.spread_variables()
        axis = "x" if self.kind == "threads" else "y"
        within, size = self.register(f"tid.{axis}"), self.register(f"ntid.{axis}")
        first = self.int("add", self.int("mul", self.register("ctaid.x"), size), within)
        step = self.int("mul", self.register("nctaid.x"), size)
        total = e.index(1)
        for v in variables:
            total = self.int("mul", total, self.extent(v))
        with e.for_range(first, total, step) as item, self.scope():
            self.locate(variables, item)
            yield

    def locate(self, variables: Sequence[int], number: Value) -> None:
        """Sets `variables`, the last one fastest, to combination `number`."""
        for v in reversed(variables[1:]):
            n = self.extent(v)
            rest = self.int("udiv", number, n)
            self.base[v] = self.int("sub", number, self.int("mul", rest, n))
            number = rest
        if variables:
            self.base[variables[0]] = number

    def item(self) -> None:
        """What is done for one item."""
        phase, inner = self.phase, self.phase.inner
        if self.kind == "elements":
            self.leader = self.e.primitive(
                "eq", [self.register("tid.x"), self.e.index(0)], dt.bool_
            )
        self.body(phase.row)
        if inner is None or inner in self.spread_variables():
            self.body(phase.body)
            return
        team = self.kind == "rows"  # else it goes through the row together
        first = self.register("tid.x") if team else self.e.index(0)
        step = self.register("ntid.x") if team else self.e.index(1)
        with self.e.for_range(first, self.extent(inner), step) as i, self.scope():
            self.base[inner] = i
            self.body(phase.body)

    def put(self, put: Put) -> None:
        if self.leader is None:
            super().put(put)
            return
        with self.e.when(self.leader), self.scope():
            super().put(put)

    def fetch_one(self, operand: Operand, offset: Term, where: Term | None) -> Value:
        """An element, or 0 without a load where `where` does not hold."""
        if where is None:
            return super().fetch_one(operand, offset, None)
        e, allowed = self.e, self.value(where)
        before = e.label
        with e.when(allowed), self.scope():
            loaded = super().fetch_one(operand, offset, None)
            after = e.label
        ways = f"[ zeroinitializer, %{before} ], [ {loaded.name}, %{after} ]"
        return e.do(f"phi {loaded.type} {ways}", loaded.dtype)

    # -- folds ----------------------------------------------------------------------------------

    def fold(self, fold: Fold) -> None:
        e, term, reducer = self.e, fold.term, fold.reducer
        dtypes = reducer.dtypes(tuple(a.dtype for a in term.args))
        starts = reducer.start(term.args[0].dtype)
        places = [e.alloca(d) for d in dtypes]
        for place, start, d in zip(places, starts, dtypes, strict=True):
            e.line(f"store {e.constant(start, d)}, ptr {place}")
        together = term.id in self.together
        alone = self._alone(fold) if together else len(fold.vars)

        def step() -> None:
            new = [self.value(a) for a in term.args]
            combined = self.combine(reducer, self.read(places, dtypes), new)
            for place, result in zip(places, combined, strict=True):
                e.line(f"store {result}, ptr {place}")

        self.nest(fold, 0, alone, step)
        results = self.read(places, dtypes)
        if together:
            results = self.across_team(fold, results)
        for k, result in enumerate(results):
            self.scopes[-1][("part", term.id, k)] = result

    def _alone(self, fold: Fold) -> int:
        """How many outer variables each thread goes through; the team shares the ones below.

        Those are taken as one, unless something is computed between their loops.
        """
        alone = len(fold.vars) - 1
        while alone > 0 and not any(isinstance(s, Fold) for s in fold.bodies[alone - 1]):
            below = (self.arena.extent[v].free for v in fold.vars[alone:])
            if any(free & mask_of(fold.vars[alone - 1 :]) for free in below):
                break
            alone -= 1
        return alone

    def read(self, places: Sequence[str], dtypes: Sequence[dt.DType]) -> list[Value]:
        """The values kept on the stack."""
        pairs = zip(places, dtypes, strict=True)
        return [self.e.do(f"load {type_of(d)}, ptr {place}", d) for place, d in pairs]

    def nest(self, fold: Fold, depth: int, alone: int, step: Callable[[], None]) -> None:
        """The loops of a fold from `depth` on."""
        e = self.e
        if depth == len(fold.vars):
            step()
            return
        if depth < alone:
            with e.for_range(e.index(0), self.extent(fold.vars[depth])) as i, self.scope():
                self.base[fold.vars[depth]] = i
                self.body(fold.bodies[depth])
                self.nest(fold, depth + 1, alone, step)
            return
        shared = fold.vars[alone:]
        total = e.index(1)
        for v in shared:
            total = self.int("mul", total, self.extent(v))
        mine, team = self.register("tid.x"), self.register("ntid.x")
        with e.for_range(mine, total, team) as i, self.scope():
            self.locate(shared, i)
            for body in fold.bodies[alone:]:
                self.body(body)
            step()

    def across_team(self, fold: Fold, values: list[Value]) -> list[Value]:
        """What the threads of a team have, as one; every thread gets it."""
        e = self.e
        for distance in (16, 8, 4, 2, 1):
            other = [self.shuffled("down", v, distance) for v in values]
            values = self.combine(fold.reducer, values, other)
        values = [self.shuffled("idx", v, 0) for v in values]
        places = [e.alloca(v.dtype) for v in values]
        for place, value in zip(places, values, strict=True):
            e.line(f"store {value}, ptr {place}")
        many = e.primitive("lt", [e.index(WARP), self.register("ntid.x")], dt.bool_)
        with e.when(many), self.scope():
            self.across_warps(fold, values, places)
        return self.read(places, [v.dtype for v in values])

    def across_warps(self, fold: Fold, values: list[Value], places: Sequence[str]) -> None:
        """Combines the warps' values by way of shared memory, in the order of the warps."""
        e = self.e
        dtypes = [v.dtype for v in values]
        self.shared = max(self.shared, 8 * len(values) * (BLOCK // WARP))
        self.barrier()  # what was there before has been read
        warp = self.int("udiv", self.register("tid.x"), e.index(WARP))
        for k, value in enumerate(values):  # all lanes of a warp write the same
            e.line(f"store {value}, ptr addrspace(3) {self.shared_place(k, len(values), warp)}")
        self.barrier()
        warps = self.int("udiv", self.register("ntid.x"), e.index(WARP))
        for k, d in enumerate(dtypes):
            first = self.shared_place(k, len(values), e.index(0))
            got = e.do(f"load {type_of(d)}, ptr addrspace(3) {first}", d)
            e.line(f"store {got}, ptr {places[k]}")
        with e.for_range(e.index(1), warps) as w, self.scope():
            spots = [self.shared_place(k, len(values), w) for k in range(len(values))]
            other = [
                e.do(f"load {type_of(d)}, ptr addrspace(3) {spot}", d)
                for spot, d in zip(spots, dtypes, strict=True)
            ]
            combined = self.combine(fold.reducer, self.read(places, dtypes), other)
            for place, result in zip(places, combined, strict=True):
                e.line(f"store {result}, ptr {place}")

    def shared_place(self, k: int, count: int, warp: Value) -> str:
        """Where a warp keeps result `k` of `count`."""
        slot = self.int("add", self.int("mul", warp, self.e.index(count)), self.e.index(k))
        base = f"ptr addrspace(3) @{self.entry}_shared"
        return self.e.do(f"getelementptr i64, {base}, {slot}", dt.int64).name

    def barrier(self) -> None:
        """Every thread of the block arrives before one goes on."""
        self.e.declared.add("declare void @llvm.nvvm.barrier0()")
        self.e.line("call void @llvm.nvvm.barrier0()")

    def shuffled(self, mode: str, value: Value, place: int) -> Value:
        """The value of another thread of the warp, by words of 32 bits."""
        e, dtype = self.e, value.dtype
        unsigned = dt.of(f"uint{8 * dtype.size}")
        bits = e.convert(value, dt.uint8) if dtype.kind == "b" else e.bitcast(value, unsigned)
        if dtype.size < 8:
            word = self.shuffled_word(mode, e.convert(bits, dt.uint32), place)
            bits = e.convert(word, bits.dtype)
        else:
            shift = e.constant(32, dt.uint64)
            upper = e.convert(e.primitive("lshr", [bits, shift], dt.uint64), dt.uint32)
            words = [
                e.convert(self.shuffled_word(mode, half, place), dt.uint64)
                for half in (e.convert(bits, dt.uint32), upper)
            ]
            high = e.primitive("shl", [words[1], shift], dt.uint64)
            bits = e.primitive("or", [words[0], high], dt.uint64)
        return e.convert(bits, dtype) if dtype.kind == "b" else e.bitcast(bits, dtype)

    def shuffled_word(self, mode: str, word: Value, place: int) -> Value:
        full = f"@llvm.nvvm.shfl.sync.{mode}.i32"
        self.e.declared.add(f"declare i32 {full}(i32, i32, i32, i32)")
        return self.e.do(f"call i32 {full}(i32 -1, {word}, i32 {place}, i32 31)", dt.uint32)
