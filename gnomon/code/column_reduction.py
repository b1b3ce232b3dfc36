"""Column reductions: folds across rows, with rows of partial results in the first-level cache.

Going down a column for every vector would touch every page for a few bytes. So rows of memory are
gone through one after the other, a few at a time, and what each column of a strip has so far lies
on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from gnomon.code.emit import Value, type_of
from gnomon.code.reductions import TREE, ReductionWriter
from gnomon.dtype import DType
from gnomon.expr.term import Term
from gnomon.ground.record import record
from gnomon.plan.ir import Body, Fold, Let, Stmt, reducer_of
from gnomon.plan.share import CHEAP
from gnomon.plan.terms import postorder

STRIP = 2048  # columns that are gone through together


@record()
class Row:
    """A value of every column, on the stack."""

    name: str
    dtype: DType


@record()
class Strip:
    """The columns `start` to `stop` of the variable `var`; `known` are the rows that are ready."""

    var: int
    start: Value
    stop: Value
    known: dict[Hashable, Row]


class ColumnReductionWriter(ReductionWriter):
    """Writes the bodies of phases that reduce columns."""

    strip: Strip | None = None

    def reduce_columns(self, body: Body, var: int, start: Value, stop: Value) -> None:
        """`body` for every value of `var` from `start` to `stop`."""
        e = self.e
        with e.for_range(start, stop, STRIP) as first, self.scope():
            end = self.smaller(self.int("add", first, e.index(STRIP)), stop)
            self.strip = Strip(var, first, end, {})
            for k, stmt in enumerate(body):
                if isinstance(stmt, Fold):
                    self.reduce_strip(self.strip, stmt)
                elif isinstance(stmt, Let) and _is_dear(stmt.term, body[k:]):
                    self.keep_row(self.strip, stmt.term)
            rest: Body = [s for s in body if not isinstance(s, Fold)]
            self.along_strip(self.strip, lambda: self.body(rest))
            self.strip = None

    def along_strip(self, strip: Strip, body: Callable[[], None]) -> None:
        """The columns of the strip, in lanes."""
        self.vector_loop(strip.var, strip.start, strip.stop, self.short, body)
        self.base.pop(strip.var)

    # -- rows on the stack ----------------------------------------------------------------------

    def new_row(self, dtype: DType) -> Row:
        """A new row."""
        name = self.e.name("row")
        kind = f"[{STRIP + self.long} x {type_of(dtype)}]"
        self.e.allocas.append(f"  {name} = alloca {kind}, align 64")
        return Row(name, dtype)

    def place(self, strip: Strip, row: Row) -> str:
        """Where the value of the first of the present columns lies."""
        column = self.int("sub", self.base[strip.var], strip.start)
        text = f"getelementptr {type_of(row.dtype)}, ptr {row.name}, {column}"
        return self.e.do(text, row.dtype).name

    def from_row(self, strip: Strip, row: Row) -> Value:
        """The values of the present columns; lanes beyond the end hold anything."""
        kind = type_of(row.dtype, self.lanes)
        text = f"load {kind}, ptr {self.place(strip, row)}, align {row.dtype.size}"
        return self.e.do(text, row.dtype, self.lanes)

    def to_row(self, strip: Strip, row: Row, value: Value) -> None:
        """Keeps a value for each of the present columns, and for lanes beyond the end."""
        value = self.e.spread(value, self.lanes)
        self.e.line(f"store {value}, ptr {self.place(strip, row)}, align {row.dtype.size}")

    def keep_row(self, strip: Strip, term: Term) -> None:
        """What is dear and does not depend on the rows of memory is computed once."""
        row = self.new_row(term.dtype)
        self.along_strip(strip, lambda: self.to_row(strip, row, self.value(term)))
        strip.known[term.id] = row

    def known(self, term: Term, base: bool) -> Value | None:
        found = super().known(term, base)
        strip = self.strip
        if found is None and strip is not None and term.id in strip.known:
            found = self.scopes[-1][term.id] = self.from_row(strip, strip.known[term.id])
        return found

    def result(self, part: Term) -> Value:
        key, strip = ("part", part.args[0].id, part.payload), self.strip
        row = strip and strip.known.get(key)
        if strip and row and not any(key in scope for scope in self.scopes):
            self.scopes[-1][key] = self.from_row(strip, row)
        return super().result(part)

    # -- folds ----------------------------------------------------------------------------------

    def reduce_strip(self, strip: Strip, fold: Fold) -> None:
        """The results of a fold for every column."""
        rows: dict[Term, list[Row]] = {}
        for term in fold.terms:
            dtypes = reducer_of(term).dtypes(tuple(a.dtype for a in term.args))
            rows[term] = [self.new_row(d) for d in dtypes]
        self.along_strip(strip, lambda: self.clear(strip, rows))
        self.down(strip, fold, 0, rows)
        for term, results in rows.items():
            strip.known.update((("part", term.id, k), row) for k, row in enumerate(results))

    def clear(self, strip: Strip, rows: dict[Term, list[Row]]) -> None:
        """Every column has what changes nothing."""
        for term, results in rows.items():
            starts = reducer_of(term).start(term.args[0].dtype)
            for row, start in zip(results, starts, strict=True):
                self.to_row(strip, row, self.e.constant(start, row.dtype))

    def down(self, strip: Strip, fold: Fold, depth: int, rows: dict[Term, list[Row]]) -> None:
        """The loops of a fold from `depth` on."""
        e, var = self.e, fold.vars[depth]
        zero, n = e.index(0), self.extent(var)
        if depth < len(fold.vars) - 1:
            with e.for_range(zero, n) as i, self.scope():
                self.base[var] = i
                self.statements(strip, fold.bodies[depth], False)
                self.down(strip, fold, depth + 1, rows)
            return
        many = TREE if self.long == 4 * self.short else 1
        whole = self.int("and", n, e.index(-many))
        self.rows(strip, fold, (zero, whole), many, rows)
        if many > 1:
            self.rows(strip, fold, (whole, n), 1, rows)

    def rows(
        self,
        strip: Strip,
        fold: Fold,
        share: tuple[Value, Value],
        many: int,
        rows: dict[Term, list[Row]],
    ) -> None:
        """`many` rows of memory at a time."""
        var = fold.vars[-1]
        with self.e.for_range(*share, many) as i, self.scope():
            before: list[tuple[Value, dict[Hashable, Value]]] = []
            for k in range(many):
                with self.scope():
                    self.base[var] = self.int("add", i, self.e.index(k)) if k else i
                    self.statements(strip, fold.bodies[-1], False)
                    before.append((self.base[var], self.scopes[-1]))
            self.along_strip(strip, lambda: self.step(strip, fold, before, rows))

    def step(
        self,
        strip: Strip,
        fold: Fold,
        before: Sequence[tuple[Value, dict[Hashable, Value]]],
        rows: dict[Term, list[Row]],
    ) -> None:
        """Some rows of memory meet the partial results of the present columns."""
        steps: dict[Term, list[list[Value]]] = {t: [] for t in fold.terms}
        for here, known in before:
            with self.scope():
                self.scopes[-1].update(known)
                self.base[fold.vars[-1]] = here
                for body in fold.bodies:
                    self.statements(strip, body, True)
                for term, found in steps.items():
                    found.append([self.e.spread(self.value(a), self.lanes) for a in term.args])
        for term, found in steps.items():
            old = [self.from_row(strip, row) for row in rows[term]]
            new = self.joined(reducer_of(term), old, found)
            for row, value in zip(rows[term], new, strict=True):
                self.to_row(strip, row, value)

    def statements(self, strip: Strip, body: Body, columns: bool) -> None:
        """The statements of a loop that are, or are not, others for every column."""
        self.body([s for s in body if bool(_free(s) >> strip.var & 1) is columns])


def _free(stmt: Stmt) -> int:
    """The variables that a statement inside of a fold depends on."""
    assert isinstance(stmt, Let | Fold)
    return stmt.term.free if isinstance(stmt, Let) else stmt.free


def _is_dear(term: Term, after: Body) -> bool:
    """Whether a later fold would compute `term` anew for every row of memory."""
    if term.op in CHEAP or term.dtype.kind == "b":
        return False
    folds = [t for s in after if isinstance(s, Fold) for t in s.terms]
    return any(t is term for t in postorder(folds))
