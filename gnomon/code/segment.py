"""Segments: a body of very many statements as several functions, called in turn for each vector.

Compilers take more than linear time over a function. What one segment computes and another needs
passes through memory on the caller's stack, `live`, that stays in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from gnomon import dtype as dt
from gnomon.code.emit import Value, type_of
from gnomon.code.loops import LoopWriter
from gnomon.code.reductions import ReductionWriter
from gnomon.code.values import Arguments
from gnomon.expr.term import Arena, Term
from gnomon.plan.ir import Body, Let, Phase, Put, Stmt, every

LANE_BYTES = 8  # of the widest value


def statements(body: Body) -> int:
    """How many statements a body has, those of its folds included."""
    return sum(1 for _ in every(body))


def _computed(stmt: Stmt) -> list[Term]:
    """The Terms that a statement computes."""
    if isinstance(stmt, Put):
        return []
    return [stmt.term] if isinstance(stmt, Let) else stmt.terms


class Segments:
    """The pieces of one body: which statements, and which values cross between them.

    `before` are the statements around it, whose values it may need.
    """

    def __init__(
        self,
        arena: Arena,
        arguments: Arguments,
        before: Body,
        body: Body,
        number: int,
        size: int,
    ) -> None:
        self.arena, self.arguments, self.number = arena, arguments, number
        self.pieces = [body[k : k + size] for k in range(0, len(body), size)]
        everything = every([*before, *body])
        self.computed = {t.id for s in everything for t in _computed(s)}
        self.crossing = self._crossing()
        self.functions: list[str] = []
        self.declared: set[str] = set()

    @classmethod
    def of(
        cls, phase: Phase, arena: Arena, arguments: Arguments, number: int, size: int
    ) -> Segments:
        """Those of a phase's body."""
        return cls(arena, arguments, [*phase.entry, *phase.row], phase.body, number, size)

    def _crossing(self) -> dict[Hashable, None]:
        """Keys of the values that a segment needs and does not compute, in a fixed order."""
        home = {
            (term.id, k)
            for k, piece in enumerate(self.pieces)
            for stmt in every(piece)
            for term in _computed(stmt)
        }
        found: dict[Hashable, None] = {}
        for k, piece in enumerate(self.pieces):
            for term in self._needs(piece):
                whole = term.args[0] if term.op == "part" else term
                if (whole.id, k) not in home:
                    key = ("part", whole.id, term.payload) if term.op == "part" else term.id
                    found[key] = None
        return found

    def _needs(self, piece: Body) -> Iterator[Term]:
        """The computed Terms that the statements of a segment ask for."""
        seen: set[int] = set()
        for stmt in every(piece):
            if isinstance(stmt, Put):
                stack = [stmt.value, stmt.offset]
            else:
                stack = [a for t in _computed(stmt) for a in t.args]
            while stack:
                term = stack.pop()
                if term.id in seen:
                    continue
                seen.add(term.id)
                if term.op == "part" or term.id in self.computed:
                    yield term
                else:
                    stack.extend(term.args)

    def run(self, caller: LoopWriter) -> None:
        """Write the calls into `caller`, and the functions they call."""
        e = caller.e
        live = e.name("live")
        count = len(self.crossing) + len(caller.base) + 2
        slot = LANE_BYTES * caller.long
        e.allocas.append(f"  {live} = alloca [{count * slot} x i8], align 64")
        places = {key: k for k, key in enumerate(self.crossing)}
        kept = Kept(live, slot, places, {})
        for key in self.crossing:
            value = next((s[key] for s in reversed(caller.scopes) if key in s), None)
            if value is not None:
                kept.store(caller, key, value)
        for var, base in caller.base.items():
            kept.store(caller, ("base", var), base)
        if caller.mask is not None:
            kept.store(caller, "mask", caller.mask)
        for piece in self.pieces:
            name = f"@phase{self.number}_{len(self.functions)}"
            e.line(f"call void {name}(ptr %b, ptr {live})")
            self.functions.append(self.write(name, piece, caller, kept))

    def write(self, name: str, piece: Body, caller: LoopWriter, kept: Kept) -> str:
        """One segment as a function of the block and the shared memory."""
        writer = SegmentWriter(self.arena, self.arguments, caller, kept)
        writer.body(piece)
        for key in self.crossing:
            value = writer.scopes[-1].get(key)
            if value is not None and key not in kept.kinds:
                writer.kept.store(writer, key, value)
        self.declared |= writer.e.declared
        head = f"define internal void {name}(ptr %b, ptr %live) noinline #0 {{"
        return "\n".join([head, "entry:", *writer.e.allocas, *writer.e.lines, "  ret void", "}"])


class Kept:
    """Values in the shared memory: the number of their slot, their dtype and lanes."""

    def __init__(
        self,
        live: str,
        slot: int,
        places: dict[Hashable, int],
        kinds: dict[Hashable, tuple[dt.DType, int]],
    ) -> None:
        self.live, self.bytes, self.places, self.kinds = live, slot, places, kinds

    def place(self, writer: LoopWriter, key: Hashable) -> str:
        number = self.places.setdefault(key, len(self.places))
        text = f"getelementptr i8, ptr {self.live}, i64 {number * self.bytes}"
        return writer.e.do(text, dt.int64).name

    def store(self, writer: LoopWriter, key: Hashable, value: Value) -> None:
        place = self.place(writer, key)
        writer.e.line(f"store {value}, ptr {place}")
        self.kinds[key] = (value.dtype, value.lanes)

    def load(self, writer: LoopWriter, key: Hashable) -> Value:
        dtype, lanes = self.kinds[key]
        with writer.e.at_entry():
            place = self.place(writer, key)
            return writer.e.do(f"load {type_of(dtype, lanes)}, ptr {place}", dtype, lanes)


class SegmentWriter(ReductionWriter):
    """Writes a segment; what it does not find comes from the shared memory."""

    def __init__(self, arena: Arena, arguments: Arguments, caller: LoopWriter, kept: Kept) -> None:
        lanes = caller.short, caller.long
        super().__init__(arena, arguments, caller.e.target, lanes, caller.masks)
        self.kept = Kept("%live", kept.bytes, kept.places, kept.kinds)
        self.arrived = set(kept.kinds)
        self.base = {var: self.kept.load(self, ("base", var)) for var in caller.base}
        self.mask = None if caller.mask is None else self.kept.load(self, "mask")
        self.vec, self.lanes = caller.vec, caller.lanes

    def known(self, term: Term, base: bool) -> Value | None:
        found = super().known(term, base)
        key = self.key(term, base)
        if found is None and key in self.arrived:
            found = self.scopes[0][key] = self.kept.load(self, key)
        return found

    def result(self, part: Term) -> Value:
        key = ("part", part.args[0].id, part.payload)
        if key in self.arrived and key not in self.scopes[0]:
            self.scopes[0][key] = self.kept.load(self, key)
        return super().result(part)
