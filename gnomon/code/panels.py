"""The native text that packs panels of B, the second operand of large products.

A panel is as many columns as a tile has, one row behind the other: what a tile reads is one
piece of memory then. `gather` packs one where the rows of B are dense; `turn` does it where its
columns are, a square of registers at a time.
"""

from __future__ import annotations

from gnomon.code.tiles import Machine, filled, shuffled

_GATHER = """
define void @gather(ptr %from, i64 %by, i64 %rows, i64 %columns, ptr %to, i64 %wide) {
  br label %row
row:
  %i = phi i64 [0, %0], [%i.next, %row.end]
  %from.off = mul i64 %i, %by
  %from.row = getelementptr ELEMENT, ptr %from, i64 %from.off
  %to.off = mul i64 %i, %wide
  %to.row = getelementptr ELEMENT, ptr %to, i64 %to.off
  br label %look
look:
  %j = phi i64 [0, %row], [%j.next, %whole]
  %left = sub i64 %columns, %j
  %from.at = getelementptr ELEMENT, ptr %from.row, i64 %j
  %to.at = getelementptr ELEMENT, ptr %to.row, i64 %j
  %many = icmp sge i64 %left, LANES
  br i1 %many, label %whole, label %some
whole:
  %x = load VECTOR, ptr %from.at, align SIZE
  store VECTOR %x, ptr %to.at, align SIZE
  %j.next = add i64 %j, LANES
  br label %look
some:
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %part, label %row.end
part:
  %last = call MASK @llvm.get.active.lane.mask.vLANESi1.i64(i64 %j, i64 %columns)
  %y = call VECTOR @load(ptr %from.at, MASK %last)
  store VECTOR %y, ptr %to.at, align SIZE
  br label %row.end
row.end:
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %rows
  br i1 %more, label %row, label %done
done:
  ret void
}
"""

_TURN = """
define void @turn(ptr %from, i64 %by, i64 %rows, i64 %columns, ptr %to, i64 %wide) {
  %edge = sub i64 %columns, 1
  br label %column
column:
  %j = phi i64 [0, %0], [%j.next, %column.end]
STARTS
  %to.column = getelementptr ELEMENT, ptr %to, i64 %j
  br label %row
row:
  %i = phi i64 [0, %column], [%i.next, %row]
  %mask = call MASK @llvm.get.active.lane.mask.vLANESi1.i64(i64 %i, i64 %rows)
  %to.off = mul i64 %i, %wide
  %to.row = getelementptr ELEMENT, ptr %to.column, i64 %to.off
SQUARE
  %i.next = add i64 %i, LANES
  %more.rows = icmp slt i64 %i.next, %rows
  br i1 %more.rows, label %row, label %column.end
column.end:
  %j.next = add i64 %j, LANES
  %more = icmp slt i64 %j.next, %columns
  br i1 %more, label %column, label %done
done:
  ret void
}
"""


def text(machine: Machine) -> str:
    """The text of `gather` and `turn`.

    Both store `rows` rows of at most `wide` columns, `wide` apart, each as whole registers: what
    stands behind `columns` is of no use. `turn` stores as many rows as registers have, and reads
    the last column again where there is no other.
    """
    starts, square = [], []
    for r in range(machine.lanes):
        starts += [
            f"  %j{r} = add i64 %j, {r}",
            f"  %c{r} = call i64 @llvm.smin.i64(i64 %j{r}, i64 %edge)",
            f"  %off{r} = mul i64 %c{r}, %by",
            f"  %from{r} = getelementptr ELEMENT, ptr %from, i64 %off{r}",
        ]
        square += [
            f"  %at{r} = getelementptr ELEMENT, ptr %from{r}, i64 %i",
            f"  %x{r} = call VECTOR @load(ptr %at{r}, MASK %mask)",
        ]
    lines, turned = _transposed(machine.lanes)
    square += lines
    for r, name in enumerate(turned):
        square += [
            f"  %to.off{r} = mul i64 %wide, {r}",
            f"  %to{r} = getelementptr ELEMENT, ptr %to.row, i64 %to.off{r}",
            f"  store VECTOR {name}, ptr %to{r}, align SIZE",
        ]
    turn = _TURN.replace("STARTS", "\n".join(starts)).replace("SQUARE", "\n".join(square))
    return filled(machine, _GATHER + turn)


def _transposed(lanes: int) -> tuple[list[str], list[str]]:
    """Lines that turn registers `%x0`, `%x1`, ... as the rows of a square; the names of the turned.

    Each round exchanges the elements that lie off the diagonal in squares of half the size.
    """
    lines, rows, half = [], [f"%x{r}" for r in range(lanes)], lanes // 2
    while half:
        for r in range(lanes):
            if r & half:
                continue
            pair, low, high = (rows[r], rows[r + half]), [], []
            for lane in range(lanes):
                off = bool(lane & half)
                low.append(lane + (lanes - half) * off)
                high.append(lane + half + (lanes - half) * off)
            for place, index in ((r, low), (r + half, high)):
                rows[place] = f"%y{half}.{place}"
                lines.append(f"  {rows[place]} = {shuffled(*pair, index)}")
        half //= 2
    return lines, rows
