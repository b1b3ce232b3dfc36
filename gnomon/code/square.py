"""Squares: what is read across is turned in registers, as many rows at a time as those have lanes.

Where a phase reads densely along its rows and stores along its columns, a vector of a row would be
gathered: each lane from a cache line of its own, and where rows lie a power of two apart all those
lines share a few places of the cache. A square of rows and columns is read along what is dense, and
exchanged between registers, so that every line is read once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.code.column_reduction import ColumnReductionWriter
from gnomon.code.emit import Value, memory_type
from gnomon.code.segment import statements
from gnomon.expr.term import Term, mask_of
from gnomon.plan.ir import Fold, Let, Phase
from gnomon.plan.schedule import stride
from gnomon.plan.terms import postorder

SIDE = 16  # of a square at most: so many registers are under way
LIGHT = 8  # statements of a body that is written once for each row of a square
NEAR = (1, -1, 2)  # steps along a row that take no gather


def across(phase: Phase) -> list[Term]:
    """What a phase reads across, where its rows may be taken in squares; else nothing."""
    inner, body = phase.inner, phase.body
    if not phase.columns or inner is None or statements(body) > LIGHT:
        return []
    if phase.row or phase.turns or any(isinstance(s, Fold) for s in body):
        return []
    order = postorder([s.term for s in body if isinstance(s, Let)])
    reads = [t for t in order if t.op == "read" and t.free >> inner & 1]
    found = [t for t in reads if stride(t.args[0], inner) not in NEAR]
    plain = all(len(t.args) == 1 and stride(t.args[0], phase.rows[-1]) == 1 for t in found)
    return found if plain else []


class SquareWriter(ColumnReductionWriter):
    """Writes phases that go down columns of blocks; `across` is what squares turn."""

    across: Sequence[Term] = ()

    @property
    def side(self) -> int:
        """Rows and columns of a square."""
        return min(self.short, SIDE)

    @abstractmethod
    def settle(self, known: int) -> None:
        """Compute what the index arithmetic further in takes from the variables `known`."""

    @abstractmethod
    def row(self, inner: int, start: Value, stop: Value) -> None:
        """A part of the present row, in the present turn."""

    def in_columns(self, inner: int, share: tuple[Value, Value], block: Value) -> None:
        """Blocks of columns: of a share, which counts them one below the other."""
        e, row = self.e, self.phase.rows[-1]
        n = e.primitive("max", [self.extent(row), e.index(1)], dt.int64)
        beyond = self.int("add", share[1], self.int("sub", n, e.index(1)))
        first, last = self.int("udiv", share[0], n), self.int("udiv", beyond, n)
        with e.for_range(first, last) as number, self.scope():
            before = self.int("mul", number, n)
            low, high = (self.int("sub", end, before) for end in share)
            rows = e.primitive("max", [low, e.index(0)], dt.int64), self.smaller(high, n)
            start = self.int("mul", number, block)
            stop = self.smaller(self.int("add", start, block), self.extent(inner))
            self.part_of_column(inner, rows, (start, stop))

    def part_of_column(
        self, inner: int, rows: tuple[Value, Value], columns: tuple[Value, Value]
    ) -> None:
        """Some rows of some columns: squares, the last one perhaps narrow, and rows below them."""
        whole = rows[0]
        if self.across:
            whole = self.whole_squares(*rows)
            with self.e.for_range(rows[0], whole, self.side) as i, self.scope():
                self.in_squares(inner, i, columns)
        with self.e.for_range(whole, rows[1]) as i, self.scope():
            self.base[self.phase.rows[-1]] = i
            self.settle(mask_of(self.phase.rows))
            self.in_turn(self.phase.turns, lambda: self.row(inner, *columns))

    def in_squares(self, inner: int, i: Value, columns: tuple[Value, Value]) -> None:
        """As many rows from `i` as a square has; with masks, whole ones go as narrow ones."""
        e, (start, stop) = self.e, columns
        edge = stop if self.masks else self.whole_squares(start, stop)
        with e.for_range(start, edge, self.side) as j, self.scope():
            self.square(inner, i, j, stop if self.masks else None)
        if not self.masks:
            with e.when(e.primitive("lt", [edge, stop], dt.bool_)), self.scope():
                self.square(inner, i, edge, stop)

    def whole_squares(self, begin: Value, end: Value) -> Value:
        """Where the last whole square that begins at `begin` or later ends, before `end`."""
        whole = self.int("and", self.int("sub", end, begin), self.e.index(-self.side))
        return self.int("add", begin, whole)

    def square(self, inner: int, i: Value, j: Value, stop: Value | None) -> None:
        """As many rows from `i` as there are columns from `j`; between them they lie on the stack.

        It is narrow where there are fewer columns, up to `stop`: the last is read in place of those
        behind it, and without masks each is stored by itself. The loop over the rows has one body,
        however many registers a square has.
        """
        e, row, lanes = self.e, self.phase.rows[-1], self.side
        places = {t.id: self.onto_stack(t, (inner, j, stop), (row, i)) for t in self.across}
        mask = None
        if stop is not None:
            self.left = e.convert(self.int("sub", stop, j), dt.int32)
            mask = self.inside(lanes)
        with e.for_range(e.index(0), e.index(lanes)) as k, self.scope():
            self.base[row] = self.int("add", i, k)

            def line() -> None:
                at = self.int("sub", self.base[inner], j)
                for term in self.across:
                    self.scopes[-1][term.id] = self.line_of(places[term.id], term, k, at)
                self.body(self.phase.body)

            if stop is None or self.masks:
                with self.over(inner, j, lanes, mask):
                    line()
            else:
                self.masked_loop(inner, j, stop, lanes, line)

    def onto_stack(
        self, term: Term, across: tuple[int, Value, Value | None], along: tuple[int, Value]
    ) -> str:
        """Where a square lies of what is read along one variable, turned to lanes of another."""
        e, lanes, (var, first, stop), (dense, start) = self.e, self.side, across, along
        vectors = []
        for k in range(lanes):
            column = self.int("add", first, e.index(k))
            if stop is not None:
                column = self.smaller(column, self.int("sub", stop, e.index(1)))
            self.base[var] = column
            with self.over(dense, start, lanes, None):
                vectors.append(self.fetch(term.payload, term.args[0], None, True, term))
        turned = [self.to_memory(v, term.dtype) for v in self.turned(vectors)]
        kind, place = turned[0].type, e.name("square")
        e.allocas.append(f"  {place} = alloca [{lanes} x {kind}], align 64")
        for number, vector in enumerate(turned):
            at = e.do(f"getelementptr {kind}, ptr {place}, i64 {number}", dt.int64)
            e.line(f"store {vector}, ptr {at.name}")
        return place

    def line_of(self, place: str, term: Term, k: Value, column: Value) -> Value:
        """The present lanes of row `k` of a square that lies on the stack, from `column` on."""
        element = memory_type(term.dtype)
        number = self.int("add", self.int("mul", k, self.e.index(self.side)), column)
        at = self.e.do(f"getelementptr {element}, ptr {place}, {number}", dt.int64)
        return self.load(at.name, term.dtype, self.lanes)

    def turned(self, vectors: Sequence[Value]) -> list[Value]:
        """Lane k of vector i as lane i of vector k: each half is dealt out with the other."""
        found, n = list(vectors), len(vectors)
        low, high = ([k // 2 + n * (k % 2) + at for k in range(n)] for at in (0, n // 2))
        for _ in range(n.bit_length() - 1):
            pairs = list(zip(found[: n // 2], found[n // 2 :], strict=True))
            found = [self.shuffle(a, lanes, b) for a, b in pairs for lanes in (low, high)]
        return found
