"""The native text of matrix products that pack nothing: tiles of C kept in registers.

Two ways, by where the elements of op(B) lie. *Outer*: its rows are dense; a tile is some rows of C
by some registers of columns, and each step of the inner axis adds the product of a column of op(A),
each element spread over a register, and a row of op(B). Two steps make a turn, and only tiles at an
edge have masks: what a thread waits for, with a busy neighbour on its core, are instructions.
*Inner*: the columns of op(B) are dense, and the rows of op(A); their registers are multiplied one
by one, and what the registers of sums hold is added up at the end. Tiles are taken in strips, whose
part of one operand stays in the first cache, for all products of a batch.

A product needs few of the tiles that there are, and each takes LLVM 12 ms. So a tile is a text of
its own, compiled when a product first needs it, and is called through a table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

_AHEAD = 8  # steps of the inner axis between a prefetch of A and its load
WIDEST = 3  # registers of columns that a tile has at most, and a panel of B has

#: The words that tiles read. Distances are in elements: `row` and `along` those of op(A) from row
#: to row and along a row, `ldb` and `ldc` those of B and C from one stored row to the next, and
#: `across` that of op(B) from column to column: where B lies in panels, a column's part of its
#: panel. Where op(B)'s rows are dense, `batch` products share it, `sa` and `sc` from one A and C to
#: the next. `table` is where the addresses of tiles are.
WORDS = "k row along ldb across ldc alpha beta batch sa sc table".split()


class Machine(NamedTuple):
    """What decides on tiles: LLVM's word for an element, its bytes, elements and registers."""

    element: str
    size: int
    lanes: int
    registers: int

    def filled(self, text: str) -> str:
        """`text` with this machine's words for what stands there in capitals."""
        words = {
            "VECTOR": f"<{self.lanes} x {self.element}>",
            "MASK": f"<{self.lanes} x i1>",
            "ELEMENT": self.element,
            "SUFFIX": f"v{self.lanes}f{8 * self.size}",
            "LANES": str(self.lanes),
        }
        for name, word in words.items():
            text = text.replace(name, word)
        return text


_KIT = """
declare VECTOR @llvm.fma.SUFFIX(VECTOR, VECTOR, VECTOR)
declare VECTOR @llvm.masked.load.SUFFIX.p0(ptr, i32, MASK, VECTOR)
declare void @llvm.masked.store.SUFFIX.p0(VECTOR, ptr, i32, MASK)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare MASK @llvm.get.active.lane.mask.vLANESi1.i64(i64, i64)

define internal VECTOR @spread(ELEMENT %x) alwaysinline {
  %first = insertelement VECTOR poison, ELEMENT %x, i64 0
  %all = shufflevector VECTOR %first, VECTOR poison, <LANES x i32> zeroinitializer
  ret VECTOR %all
}

define internal VECTOR @load(ptr %at, MASK %mask) alwaysinline {
  %x = call VECTOR @llvm.masked.load.SUFFIX.p0(ptr %at, i32 SIZE, MASK %mask,
    VECTOR zeroinitializer)
  ret VECTOR %x
}

"""

_NUMBERS = """
  %alpha.at = getelementptr i64, ptr %words, i64 ALPHA
  %alpha = load ELEMENT, ptr %alpha.at
  %beta.at = getelementptr i64, ptr %words, i64 BETA
  %beta = load ELEMENT, ptr %beta.at
""".replace("ALPHA", str(WORDS.index("alpha"))).replace("BETA", str(WORDS.index("beta")))

_BATCH = """
define internal void @outer.batch.WIDTH(TAKES) noinline {
LOADS
  br label %head
head:
  %i = phi i64 [0, %0], [%next, %body]
  %more = icmp slt i64 %i, %batch
  br i1 %more, label %body, label %done
body:
  %a.off = mul i64 %i, %sa
  %c.off = mul i64 %i, %sc
  %a.at = getelementptr ELEMENT, ptr %a, i64 %a.off
  %c.at = getelementptr ELEMENT, ptr %c, i64 %c.off
  call void @outer.strip.WIDTH(ptr %words, i64 %extent, i64 %other, ptr %a.at, ptr %b, ptr %c.at)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
"""

_TAKES = "ptr %words, i64 %extent, i64 %other, ptr %a, ptr %b, ptr %c"


class Size(NamedTuple):
    """How much of an axis is taken at once: its name, from how much on, and the step."""

    name: str
    least: int
    step: int


class Sizes(NamedTuple):
    """How both ways cut C into tiles: the rows and columns of outer ones, and of inner ones."""

    tall: Sequence[Size]
    wide: Sequence[Size]
    rows: Sequence[Size]
    columns: Sequence[Size]


@functools.cache
def sizes_of(machine: Machine) -> Sizes:
    """The sizes of a machine's tiles."""
    many, lanes = machine.registers >= 32, machine.lanes
    wide = [Size("whole", WIDEST * lanes, WIDEST * lanes)]
    wide += [Size(str(v), (v - 1) * lanes + 1, v * lanes) for v in range(WIDEST, 0, -1)]
    tall, rows = ((8, 4, 2, 1), (6, 4, 2, 1)) if many else ((4, 2, 1), (2, 1))
    return Sizes(_plain(tall), wide, _plain(rows), _plain((4, 2, 1)))


def _plain(steps: Iterable[int]) -> list[Size]:
    return [Size(str(n), n, n) for n in steps]


def names(machine: Machine) -> list[str]:
    """The tiles of a machine, in the order of the table."""
    tall, wide, rows, columns = sizes_of(machine)
    outer = [f"outer.{r.name}.{v.name}" for r, v in product(tall, wide)]
    return outer + [f"inner.{r.name}.{s.name}" for r, s in product(rows, columns)]


def needed(machine: Machine, rows: Iterable[int], columns: Iterable[int], inner: bool) -> list[str]:
    """The tiles that parts of C of so many rows, each with so many columns, are cut into.

    >>> needed(Machine("float", 4, 16, 32), [20], [60], inner=False)
    ['outer.8.whole', 'outer.8.1', 'outer.4.whole', 'outer.4.1']
    """
    cut = sizes_of(machine)
    down, across = (cut.rows, cut.columns) if inner else (cut.tall, cut.wide)
    way = "inner" if inner else "outer"
    return [f"{way}.{r}.{c}" for r, c in product(_taken(rows, down), _taken(columns, across))]


def _taken(extents: Iterable[int], sizes: Sequence[Size]) -> list[str]:
    """The sizes that axes are cut into by `_sweep`."""
    found: dict[str, None] = {}
    for extent in extents:
        for name, least, step in sizes:
            if extent >= least:
                found[name] = None
                extent -= ((extent - least) // step + 1) * step
    return [*found]


def tile(machine: Machine, name: str) -> str:
    """The text of one of the tiles `names`, a function `tile`."""
    cut, (way, first, second) = sizes_of(machine), name.split(".")
    if way == "outer":
        wide = next(size for size in cut.wide if size.name == second)
        body = _outer_tile(int(first), wide, machine.lanes, first == cut.tall[0].name)
    else:
        body = _inner_tile(int(first), int(second), machine.lanes)
    return filled(machine, body)


def text(machine: Machine) -> str:
    """The text of `outer` and `inner`, which go over C and call tiles by way of the table.

    Both take the words, how many columns and rows of C (`inner`: rows and columns), and where the
    parts of A, B and C begin.
    """
    tall, wide, rows, columns = sizes_of(machine)
    table = {name: number for number, name in enumerate(names(machine))}
    parts = []
    parts += [
        _sweep(f"outer.strip.{v.name}", f"outer.%s.{v.name}", tall, "row 0 ldc", table)
        for v in wide
    ]
    parts += [
        _sweep(f"inner.strip.{r.name}", f"inner.{r.name}.%s", columns, "0 across 1", table)
        for r in rows
    ]
    for v in wide:
        each = _BATCH.replace("WIDTH", v.name).replace("TAKES", _TAKES)
        parts.append(each.replace("LOADS", _loads(("batch", "sa", "sc"))))
    parts += [_sweep("outer", "outer.batch.%s", wide, "0 across 1")]
    parts += [_sweep("inner", "inner.strip.%s", rows, "row 0 ldc")]
    return filled(machine, "".join(parts))


def filled(machine: Machine, text: str) -> str:
    """`text` behind what it needs, with a machine's words."""
    return machine.filled(_KIT + text).replace("SIZE", str(machine.size))


def _loads(names: Iterable[str]) -> str:
    return "".join(
        f"  %{name}.word = getelementptr i64, ptr %words, i64 {WORDS.index(name)}\n"
        f"  %{name} = load i64, ptr %{name}.word\n"
        for name in names
    )


def _sweep(
    name: str,
    callee: str,
    sizes: Sequence[Size],
    moves: str,
    table: Mapping[str, int] | None = None,
) -> str:
    """A function that goes along an axis of length `extent`, by the larger sizes first.

    `moves` are the words for how far each operand moves with each element. What is called gets the
    other axis as its extent, and what is left of this one; it is a tile where a `table` has it.
    """
    lines = [
        f"define void @{name}({_TAKES}) noinline {{",
        _loads(n for n in dict.fromkeys(moves.split()) if n not in "01"),
        "  %place = alloca i64\n  store i64 0, ptr %place",
    ]
    if table is not None:
        lines += [_loads(["table"]), "  %all = inttoptr i64 %table to ptr"]
    for size in sizes:
        s = size.name
        lines += [
            f"  br label %look.{s}\nlook.{s}:",
            f"  %i.{s} = load i64, ptr %place",
            f"  %left.{s} = sub i64 %extent, %i.{s}",
            f"  %go.{s} = icmp sge i64 %left.{s}, {size.least}",
            f"  br i1 %go.{s}, label %do.{s}, label %end.{s}\ndo.{s}:",
        ]
        for operand, by in zip("abc", moves.split(), strict=True):
            factor = by if by in "01" else f"%{by}"
            lines += [
                f"  %{operand}.off.{s} = mul i64 %i.{s}, {factor}",
                f"  %{operand}.{s} = getelementptr ELEMENT, ptr %{operand}, i64 %{operand}.off.{s}",
            ]
        called = f"@{callee % s}"
        if table is not None:
            called = f"%tile.{s}"
            lines += [
                f"  %entry.{s} = getelementptr ptr, ptr %all, i64 {table[callee % s]}",
                f"  {called} = load ptr, ptr %entry.{s}",
            ]
        lines += [
            f"  call void {called}(ptr %words, i64 %other, i64 %left.{s}, "
            f"ptr %a.{s}, ptr %b.{s}, ptr %c.{s})",
            f"  %next.{s} = add i64 %i.{s}, {size.step}\n  store i64 %next.{s}, ptr %place",
            f"  br label %look.{s}\nend.{s}:",
        ]
    return "\n".join([*lines, "  ret void\n}\n"])


def _loop(count: str, sums: int, body: Iterable[str], step: int) -> list[str]:
    """Lines of a loop over the inner axis while `count` of it is left; `%p` is the place."""
    phis = [f"  %s{i} = phi VECTOR [zeroinitializer, %entry], [%t{i}, %body]" for i in range(sums)]
    return [
        "  br label %head\nhead:",
        "  %p = phi i64 [0, %entry], [%p.next, %body]",
        *phis,
        f"  %p.next = add i64 %p, {step}",
        f"  %more = icmp sle i64 %p.next, {count}",
        "  br i1 %more, label %body, label %done\nbody:",
        *body,
        "  br label %head\ndone:",
    ]


def _last(sums: int, body: Iterable[str]) -> list[str]:
    """Lines for what a loop leaves of the inner axis; `%w0`, `%w1`, ... are the sums then."""
    return [
        "  %rest = icmp slt i64 %p, %k\n  br i1 %rest, label %last, label %all\nlast:",
        *body,
        "  br label %all\nall:",
        *(f"  %w{i} = phi VECTOR [%s{i}, %done], [%u{i}, %last]" for i in range(sums)),
    ]


def _fma(i: int, x: str, y: str, before: str = "s", after: str = "t") -> str:
    operands = f"VECTOR {x}, VECTOR {y}, VECTOR %{before}{i}"
    return f"  %{after}{i} = call VECTOR @llvm.fma.SUFFIX({operands})"


def _outer_tile(rows: int, wide: Size, lanes: int, prefetches: bool) -> str:
    """Some rows of C by some registers of columns, the last of which ends early if not `whole`.

    Where columns of op(A) are dense, each lies in a line of its own, too far from the last for the
    processor to see it coming: `prefetches` asks for it. A product with many rows takes 0.9 of the
    time then; tiles of few rows have too little to do between for one more instruction.
    """
    registers, whole = wide.step // lanes, wide.least == wide.step
    everything = "<" + ", ".join(["i1 true"] * lanes) + ">"
    mask = [everything] * (registers - 1) + [everything if whole else "%mask"]
    count = rows * registers

    def body(place: str, before: str, after: str) -> list[str]:
        found = [
            f"  %a.{after} = mul i64 {place}, %along\n  %b.{after} = mul i64 {place}, %ldb",
            f"  %b.p{after} = getelementptr ELEMENT, ptr %b, i64 %b.{after}",
        ]
        for v in range(registers):
            found += [
                f"  %b.{after}{v} = getelementptr ELEMENT, ptr %b.p{after}, i64 {v * lanes}",
                f"  %b{after}{v} = call VECTOR @load(ptr %b.{after}{v}, MASK {mask[v]})",
            ]
        if prefetches:
            found += [
                f"  %ahead.{after} = add i64 {place}, {_AHEAD}",
                f"  %far.{after} = mul i64 %ahead.{after}, %along",
                f"  %line.{after} = getelementptr ELEMENT, ptr %a, i64 %far.{after}",
                f"  call void @llvm.prefetch.p0(ptr %line.{after}, i32 0, i32 3, i32 1)",
            ]
        for r in range(rows):
            found += [
                f"  %a.{after}{r} = getelementptr ELEMENT, ptr %a{r}, i64 %a.{after}",
                f"  %x.{after}{r} = load ELEMENT, ptr %a.{after}{r}",
                f"  %a{after}{r} = call VECTOR @spread(ELEMENT %x.{after}{r})",
            ]
            for v in range(registers):
                i = registers * r + v
                found.append(_fma(i, f"%a{after}{r}", f"%b{after}{v}", before, after))
        return found

    lines = [f"define void @tile({_TAKES}) {{\nentry:"]
    lines += [_loads(("k", "row", "along", "ldb", "ldc"))]
    lines += [
        "  %mask = call MASK @llvm.get.active.lane.mask.vLANESi1.i64("
        f"i64 {(registers - 1) * lanes}, i64 %extent)"
    ]
    twice = [*body("%p", "s", "h"), "  %p.odd = add i64 %p, 1", *body("%p.odd", "h", "t")]
    lines += _starts("a", rows, "row") + _loop("%k", count, twice, 2)
    lines += _last(count, body("%p", "s", "u"))
    lines += _starts("c", rows, "ldc")
    places = list(product(range(rows), range(registers)))
    lines += [
        f"  %c.{r}.{v} = getelementptr ELEMENT, ptr %c{r}, i64 {v * lanes}" for r, v in places
    ]
    sums = [(f"%w{registers * r + v}", f"%c.{r}.{v}", mask[v]) for r, v in places]
    return "\n".join([*lines, *_stored(sums)])


def _stored(sums: Sequence[tuple[str, str, str]]) -> list[str]:
    """Lines that store alpha times sums, each at its place and by its mask, and leave.

    Beta times what is there is added where beta is not 0: asked once, not for each register.
    """
    each = list(enumerate(sums))
    lines = [_NUMBERS, "  %alpha.all = call VECTOR @spread(ELEMENT %alpha)"]
    lines += [f"  %n{i} = fmul VECTOR %alpha.all, {total}" for i, (total, _, _) in each]
    lines += ["  %fresh = fcmp oeq ELEMENT %beta, 0.0"]
    lines += ["  br i1 %fresh, label %over, label %onto\nover:"]
    lines += [_store(f"%n{i}", place, mask) for i, (_, place, mask) in each]
    lines += ["  ret void\nonto:\n  %beta.all = call VECTOR @spread(ELEMENT %beta)"]
    for i, (_, place, mask) in each:
        lines += [
            f"  %old{i} = call VECTOR @load(ptr {place}, MASK {mask})",
            f"  %both{i} = call VECTOR @llvm.fma.SUFFIX("
            f"VECTOR %beta.all, VECTOR %old{i}, VECTOR %n{i})",
            _store(f"%both{i}", place, mask),
        ]
    return [*lines, "  ret void\n}\n"]


def _store(value: str, place: str, mask: str) -> str:
    given = f"VECTOR {value}, ptr {place}, i32 SIZE, MASK {mask}"
    return f"  call void @llvm.masked.store.SUFFIX.p0({given})"


def _starts(operand: str, count: int, distance: str) -> list[str]:
    """Pointers `%a0`, `%a1`, ... to the rows of an operand."""
    lines = []
    for r in range(count):
        lines += [
            f"  %{operand}.start{r} = mul i64 {r}, %{distance}",
            f"  %{operand}{r} = getelementptr ELEMENT, ptr %{operand}, i64 %{operand}.start{r}",
        ]
    return lines


def _inner_tile(rows: int, columns: int, lanes: int) -> str:
    """`rows` by `columns` of C, each the sum over a register at the end."""
    count = rows * columns

    def body(place: str, mask: str, before: str, after: str) -> list[str]:
        found = []
        for name, number in (("a", rows), ("b", columns)):
            for r in range(number):
                found += [
                    f"  %{name}.{after}{r} = getelementptr ELEMENT, ptr %{name}{r}, i64 {place}",
                    f"  %{name}{after}{r} = call VECTOR @load(ptr %{name}.{after}{r}, MASK {mask})",
                ]
        for i in range(count):
            x, y = f"%a{after}{i // columns}", f"%b{after}{i % columns}"
            found.append(_fma(i, x, y, before, after))
        return found

    everything = "<" + ", ".join(["i1 true"] * lanes) + ">"
    lines = [f"define void @tile({_TAKES}) {{\nentry:"]
    lines += [_loads(("k", "row", "across", "ldc"))]
    lines += _starts("a", rows, "row") + _starts("b", columns, "across")
    lines += _loop("%k", count, body("%p", everything, "s", "t"), lanes)
    mask = "  %mask = call MASK @llvm.get.active.lane.mask.vLANESi1.i64(i64 %p, i64 %k)"
    lines += _last(count, [mask, *body("%p", "%mask", "s", "u")])
    found, totals = _totals([f"%w{i}" for i in range(count)], lanes)
    lines += found + _starts("c", rows, "ldc")
    chosen = "<" + ", ".join(f"i1 {'true' if i < columns else 'false'}" for i in range(lanes)) + ">"
    for r in range(rows):
        lines += _row(r, columns, lanes, totals)
    return "\n".join([*lines, *_stored([(f"%row{r}", f"%c{r}", chosen) for r in range(rows)])])


def _totals(sums: list[str], lanes: int) -> tuple[list[str], list[str]]:
    """The totals of registers, in the elements of as few registers as there can be, in order."""
    lines: list[str] = []
    group, level = lanes, 0
    while group > 1:
        half, merged = group // 2, []
        sums = sums + ["zeroinitializer"] * (len(sums) % 2)
        for i in range(0, len(sums), 2):
            pair = f"VECTOR {sums[i]}, VECTOR {sums[i + 1]}"
            parts = []
            for side in (0, half):
                places = product((0, lanes), range(0, lanes, group), range(side, side + half))
                index = [sum(place) for place in places]
                parts.append(f"%l{level}.{i}.{side}")
                lines.append(f"  {parts[-1]} = shufflevector {pair}, {_indices(index)}")
            merged.append(f"%l{level}.{i}")
            lines.append(f"  {merged[-1]} = fadd VECTOR {parts[0]}, {parts[1]}")
        sums, group, level = merged, half, level + 1
    return lines, sums


def shuffled(one: str, other: str, index: Sequence[int]) -> str:
    """The register of these elements of two."""
    return f"shufflevector VECTOR {one}, VECTOR {other}, {_indices(index)}"


def _indices(index: Sequence[int]) -> str:
    return f"<{len(index)} x i32> <" + ", ".join(f"i32 {i}" for i in index) + ">"


def _row(r: int, columns: int, lanes: int, totals: Sequence[str]) -> list[str]:
    """`%rowR`: the totals of row `r` in the first elements of a register."""
    first = r * columns
    here, behind = totals[first // lanes], totals[min(first // lanes + 1, len(totals) - 1)]
    index = [min(first % lanes + j, 2 * lanes - 1) for j in range(lanes)]
    return [f"  %row{r} = shufflevector VECTOR {here}, VECTOR {behind}, {_indices(index)}"]
