"""The tasks of matrix products by tiles, in native code: which parts of C come when.

Where operands are read as they lie, a task goes over its part of C at once. Else it takes a piece
of the inner axis, so long that a panel of B stays in a core's own cache, and some rows of C at a
time: each panel is packed once for these rows, on the thread's own stack. A is read as it lies.
"""

from __future__ import annotations

from gnomon.native.memory import CFunction, Struct, divided
from gnomon.native.words import native, scratch

gather = CFunction("void gather(void *, long, long, long, void *, long)")
turn = CFunction(gather.declared.replace("gather", "turn"))
outer = CFunction("void outer(void *, long, long, void *, void *, void *)")
inner = CFunction(outer.declared.replace("outer", "inner"))

_LINE = 64  # bytes that a cache holds together
INNER, PANELS, OUTER, GATHERS, TURNS = range(5)  # B lies in its columns, panels, rows; is packed

_PANEL = (36 * 1024 + _LINE) // 8  # words of a panel at most, which lies on the stack
_SHARED = 18  # words of `Blocks`, behind which a block has those of `Tiles`
_OWN = 12  # words of `Tiles`


class Tiles(Struct):
    """What tiles read: `tiles.WORDS`."""

    k: int
    row: int
    along: int
    ldb: int
    across: int
    ldc: int
    alpha: int
    beta: int
    batch: int
    sa: int
    sc: int
    table: int


class Blocks(Struct):
    """A product: operands, what tiles read of them, and how it is cut.

    `parts` pieces of an axis of C, of `piece` elements each but the last, are a unit each; a task
    does `each` of the `units` of all products of a batch, from one to the next of which are `sa`,
    `sb` and `sc` elements. A piece of the inner axis has `deep` elements, the rows that share a
    packed panel are `tall`. A panel is `wide` columns, `two` of them two registers. `one` is the
    number 1, `size` the bytes of an element.
    """

    a: int
    b: int
    c: int
    m: int
    n: int
    sb: int
    way: int
    by_rows: int
    piece: int
    parts: int
    units: int
    each: int
    tall: int
    deep: int
    wide: int
    two: int
    one: int
    size: int


@native
def blocks(p: Blocks, task: int, tasks: int) -> None:
    given = Tiles((p + _SHARED).address)
    first = task * p.each
    for unit in range(first, min(first + p.each, p.units)):
        which = divided(unit, p.parts)
        start = (unit - which * p.parts) * p.piece
        row = start if p.by_rows != 0 else 0
        column = 0 if p.by_rows != 0 else start
        m = min(p.m - row, p.piece) if p.by_rows != 0 else p.m
        n = p.n if p.by_rows != 0 else min(p.n - column, p.piece)
        a = p.a + (which * given.sa + row * given.row) * p.size
        b = p.b + (which * p.sb + column * given.across) * p.size
        c = p.c + (which * given.sc + row * given.ldc + column) * p.size
        if p.way == INNER:
            inner(given, m, n, a, b, c)
        elif p.way == PANELS:
            outer(given, n, m, a, b, c)
        elif p.way == OUTER:
            strips(p, given, given.ldb, m, n, a, b, c, 0)
        else:
            packed(p, given, m, n, a, b, c)


@native
def packed(p: Blocks, given: Tiles, m: int, n: int, a: int, b: int, c: int) -> None:
    """A part of C by panels: `own` is what tiles read where operands lie as they are packed."""
    room = scratch(_PANEL)
    panel = (room.address + _LINE - 1) & -_LINE
    own = Tiles(scratch(_OWN).address)
    for k in range(_OWN):
        own[k] = given[k]
    own.ldb = p.wide
    down = 1 if p.way == TURNS else given.ldb
    begin = 0
    while begin < given.k:
        own.k = min(given.k - begin, p.deep)
        row = 0
        while row < m:
            rows = min(m - row, p.tall)
            at = a + (row * given.row + begin * given.along) * p.size
            there = c + row * given.ldc * p.size
            strips(p, own, given.ldb, rows, n, at, b + begin * down * p.size, there, panel)
            row += rows
        own.beta = p.one
        begin += own.k


@native
def strips(
    p: Blocks, own: Tiles, ldb: int, rows: int, n: int, a: int, b: int, c: int, panel: int
) -> None:
    """Some rows of C, as many columns at a time as a panel has."""
    column = 0
    while column < n:
        columns = min(n - column, p.wide)
        if columns < n - column and n - column <= 2 * p.two:
            columns = p.two  # four registers are better two and two than three and one
        at = b + column * own.across * p.size
        place = at if p.way == OUTER else panel
        if p.way == TURNS:
            turn(at, own.across, own.k, columns, panel, p.wide)
        elif p.way == GATHERS:
            gather(at, ldb, own.k, columns, panel, p.wide)
        outer(own, columns, rows, a, place, c + column * p.size)
        column += columns
