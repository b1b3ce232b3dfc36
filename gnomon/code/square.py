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
from gnomon.code.emit import Value
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
    if phase.row or any(isinstance(s, Fold) for s in body):
        return []
    order = postorder([s.term for s in body if isinstance(s, Let)])
    reads = [t for t in order if t.op == "read" and t.free >> inner & 1]
    found = [t for t in reads if stride(t.args[0], inner) not in NEAR]
    plain = all(len(t.args) == 1 and stride(t.args[0], phase.rows[-1]) == 1 for t in found)
    return found if plain else []


class SquareWriter(ColumnReductionWriter):
    """Writes phases that go down columns of blocks; `across` is what squares turn."""

    phase: Phase
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
        """A part of the present row."""

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
        """Some rows of some columns: whole squares, then what is left beside and below them."""
        e, row, (start, stop) = self.e, self.phase.rows[-1], columns
        whole, edge = rows[0], start
        if self.across:
            whole, edge = (self.whole_squares(*ends) for ends in (rows, columns))
            steps = (rows[0], whole, self.side), (start, edge, self.side)
            with e.for_range(*steps[0]) as i, e.for_range(*steps[1]) as j, self.scope():
                self.square(inner, i, j)
        with e.for_range(*rows) as i, self.scope():
            done = e.primitive("lt", [i, whole], dt.bool_)
            begin = e.primitive("select", [done, edge, start], dt.int64)
            with e.when(e.primitive("lt", [begin, stop], dt.bool_)), self.scope():
                self.base[row] = i
                self.settle(mask_of(self.phase.rows))
                self.row(inner, begin, stop)

    def whole_squares(self, begin: Value, end: Value) -> Value:
        """Where the last whole square that begins at `begin` or later ends, before `end`."""
        whole = self.int("and", self.int("sub", end, begin), self.e.index(-self.side))
        return self.int("add", begin, whole)

    def square(self, inner: int, i: Value, j: Value) -> None:
        """As many rows from `i` as there are columns from `j`."""
        row, lanes = self.phase.rows[-1], range(self.side)
        rows, columns = ([self.int("add", at, self.e.index(k)) for k in lanes] for at in (i, j))
        lines: dict[int, list[Value]] = {}
        for term in self.across:
            lines[term.id] = []
            for column in columns:
                self.base[inner] = column
                with self.over(row, i, self.side, None):
                    lines[term.id].append(self.fetch(term.payload, term.args[0], None, True, term))
        turned = {key: self.turned(vectors) for key, vectors in lines.items()}
        for k in lanes:
            self.base[row] = rows[k]
            with self.scope(), self.over(inner, j, self.side, None):
                self.scopes[-1].update({key: vectors[k] for key, vectors in turned.items()})
                self.body(self.phase.body)

    def turned(self, vectors: Sequence[Value]) -> list[Value]:
        """Lane k of vector i as lane i of vector k: two quarters change places, then theirs do."""
        found, n = list(vectors), len(vectors)
        distance = n // 2
        while distance:
            upper = [k for k in range(n) if not k & distance]
            for k in upper:
                a, b = found[k], found[k + distance]
                first = [n + m - distance if m & distance else m for m in range(n)]
                second = [n + m if m & distance else m + distance for m in range(n)]
                found[k], found[k + distance] = (
                    self.shuffle(a, first, b),
                    self.shuffle(a, second, b),
                )
            distance //= 2
        return found
