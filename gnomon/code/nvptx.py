"""Code for NVIDIA GPUs: the phases of a `Kernel` as PTX entries, by LLVM's NVPTX back end.

Each phase is an entry of its own, launched one after the other on a stream: what a phase writes the
next one reads. An entry takes the kernel's arguments by value, as one array of 8-byte slots in the
order of `Kernel.args`; where those are more than an entry may have, their address in the GPU's
memory. Blocks have `x` threads times `y`:

    threads   one thread takes an element of rows x inner, then that a whole grid further
    rows      the x threads of a group take a row: its folds together, its elements by turns
    elements  the x threads of a group take an element: its folds together, the first one stores
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gnomon import dtype as dt
from gnomon.code.emit import Value
from gnomon.code.segment import Segments, statements
from gnomon.code.target import Target
from gnomon.code.thread_block import BLOCK, WARP, ThreadBlockWriter
from gnomon.code.values import Arguments
from gnomon.expr.term import Term
from gnomon.plan.ir import Fold, Kernel, Phase, Put
from gnomon.plan.scratch import TASK
from gnomon.plan.show import size, slot
from gnomon.plan.terms import host_value

Kind = Literal["threads", "rows", "elements"]
LONG = 1024  # elements that a group of a whole block is for
SLOTS = 4095  # that an entry may have by value: 32764 bytes
RESIDENT = 32  # blocks for each processor of the GPU: more only take their turn


@dataclass(frozen=True, slots=True)
class Launch:
    """How a phase is launched: its entry, how many items of work there are, for threads or groups.

    `length` is how many elements a group goes through for an item; None: many.
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
    """LLVM IR of the entries, how to launch them, in order; whether slots come by value."""

    text: str
    launches: tuple[Launch, ...]
    by_value: bool


def write(kernel: Kernel, target: Target, name: str = "kernel") -> Module:
    """The entries `name`_0, `name`_1, ... of a kernel's phases."""
    arguments = Arguments(kernel.arena, 0, kernel.args)
    by_value = len(kernel.args) <= SLOTS
    parameter = f"ptr byval([{len(kernel.args)} x i64]) align 8 %b" if by_value else "ptr %b"
    declared: set[str] = set()
    functions, notes, launches = [], [], []
    for number, phase in enumerate(kernel.phases):
        entry = f"{name}_{number}"
        writer = PhaseWriter(kernel, phase, number, entry, arguments, target)
        functions.append(writer.write(parameter))
        if writer.segments is not None:
            functions.extend(writer.segments.functions)
            declared |= writer.segments.declared
        launches.append(writer.launch())
        declared |= writer.e.declared
        notes.append(f'!{number} = !{{ptr @{entry}, !"maxntidx", i32 {BLOCK}}}')
    listed = ", ".join(f"!{k}" for k in range(len(notes)))
    attributes = "attributes #0 = { nounwind }"
    parts = [
        *sorted(declared),
        *functions,
        attributes,
        f"!nvvm.annotations = !{{{listed}}}",
        *notes,
    ]
    return Module("\n".join(parts) + "\n", tuple(launches), by_value)


def notes(kernel: Kernel, module: Module) -> str:
    """What a caller must know of the entries, as comments: the slots, the work of each."""
    how = "by value" if module.by_value else "by address"
    lines = [f"// slots {how}: {' '.join(map(slot, kernel.args))}"]
    for launch in module.launches:
        items = size(kernel, launch.items)
        who = "a thread" if launch.kind == "threads" else "a group of threads"
        what = "row" if launch.kind == "rows" else "element"
        lines.append(f"// {launch.entry}: {who} for each {what}, of which there are {items}")
    return "\n".join(lines) + "\n"


class PhaseWriter(ThreadBlockWriter):
    """One phase as an entry; every value is one lane, a thread's own."""

    def __init__(
        self,
        kernel: Kernel,
        phase: Phase,
        number: int,
        entry: str,
        arguments: Arguments,
        target: Target,
    ) -> None:
        self.phase = phase
        self.row_folds = [s for s in phase.row if isinstance(s, Fold)]
        self.joint = [s for s in phase.body if isinstance(s, Fold) and s.vector]
        self.kind: Kind = "elements" if self.joint else "rows" if self.row_folds else "threads"
        together = {t.id for s in (*self.row_folds, *self.joint) for t in s.terms}
        super().__init__(kernel.arena, arguments, target, entry, together)
        self.segments: Segments | None = None
        if self.kind == "threads" and statements(phase.body) > target.segment:
            self.segments = Segments(kernel.arena, arguments, phase, number, target.segment)
        self.leader: Value | None = None  # where the first of a group alone stores

    def launch(self) -> Launch:
        """How to launch the entry."""
        items = self.arena.const(1)
        for v in self.spread_variables():
            items = items * self.arena.extent[v]
        return Launch(self.entry, self.kind, items, self.length())

    def spread_variables(self) -> tuple[int, ...]:
        """The variables whose combinations are the items of work."""
        rows, inner = self.phase.rows, self.phase.inner
        by_rows = self.row_folds or inner is None or self.phase.ordered
        return rows if by_rows or inner is None else (*rows, inner)

    def length(self) -> Term | None:
        """The longest fold that a group shares, where sizes alone tell."""
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

    def argument(self, key: Hashable) -> Value:
        """A kernel argument; the number of the group that goes through a row."""
        if key != TASK:
            return super().argument(key)
        size = self.register("ntid.y")
        return self.int(
            "add", self.int("mul", self.register("ctaid.x"), size), self.register("tid.y")
        )

    # -- the entry ------------------------------------------------------------------------------

    def write(self, parameter: str) -> str:
        """The function, and its shared memory."""
        self.body(self.phase.entry)
        with self.items():
            self.item()
        e = self.e
        head = f"define ptx_kernel void @{self.entry}({parameter}) {{"
        lines = [head, "entry:", *e.allocas, *e.lines, "  ret void", "}"]
        if self.shared:
            kind = f"[{self.shared} x i8]"
            lines.insert(
                0, f"@{self.entry}_shared = internal addrspace(3) global {kind} undef, align 8"
            )
        return "\n".join(lines)

    @contextmanager
    def items(self) -> Iterator[None]:
        """The items of a thread or a group, a grid apart; the variables are known inside."""
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

    def item(self) -> None:
        """What is done for one item."""
        phase = self.phase
        if self.kind == "elements":
            self.leader = self.e.primitive(
                "eq", [self.register("tid.x"), self.e.index(0)], dt.bool_
            )
        self.in_turn(phase.turns, self.turn)

    def turn(self) -> None:
        """What is done for one item in one turn."""
        phase, inner = self.phase, self.phase.inner
        self.body(phase.row)
        if self.segments is not None:
            self.segments.run(self)
            return
        if inner is None or inner in self.spread_variables():
            self.body(phase.body)
            return
        self.begin_scans(phase.body)
        group = self.kind == "rows" and not phase.ordered  # else it goes through the row together
        first = self.register("tid.x") if group else self.e.index(0)
        step = self.register("ntid.x") if group else self.e.index(1)
        with self.e.for_range(first, self.extent(inner), step) as i, self.scope():
            self.base[inner] = i
            self.body(phase.body)

    def put(self, put: Put) -> None:
        if self.leader is None:
            super().put(put)
            return
        with self.e.when(self.leader), self.scope():
            super().put(put)
