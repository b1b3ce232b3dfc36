"""The native text of functions around the tiles of matrix products, see `tiles.py`.

What stands in capitals is filled in there: VECTOR, MASK, ELEMENT, SUFFIX, LANES and SIZE by the
machine, PANEL by the columns of a panel, NUMBERED by 0, 1, 2, ... in a register, LOADS and EACH by
what reads words of the block, and TAKES by what each function takes.
"""

from __future__ import annotations

#: a task's part: some rows or columns of C, or some products as a whole
FRAME = """
define void @tiles(ptr %words, i64 %task, i64 %tasks) {
EACH
  %one = icmp eq i64 %own, 1
  %start = mul i64 %task, %share
  %behind = add i64 %start, %share
  %last = call i64 @llvm.smin.i64(i64 %behind, i64 %own)
  %begin = select i1 %one, i64 0, i64 %start
  %end = select i1 %one, i64 1, i64 %last
  %part = select i1 %one, i64 %task, i64 0
  br label %head
head:
  %q = phi i64 [%begin, %0], [%next, %body]
  %more = icmp slt i64 %q, %end
  br i1 %more, label %body, label %done
body:
  %a.q = mul i64 %q, %sa
  %b.q = mul i64 %q, %sb
  %c.q = mul i64 %q, %sc
  call void @part(ptr %words, i64 %part, i64 %a.q, i64 %b.q, i64 %c.q)
  %next = add i64 %q, 1
  br label %head
done:
  ret void
}

define internal void @part(ptr %words, i64 %task, i64 %a.q, i64 %b.q, i64 %c.q) noinline {
LOADS
  %rows = icmp ne i64 %by_rows, 0
  %axis = select i1 %rows, i64 %m, i64 %n
  %start = mul i64 %task, %piece
  %left = sub i64 %axis, %start
  %size = call i64 @llvm.smin.i64(i64 %left, i64 %piece)
  %i = select i1 %rows, i64 %start, i64 0
  %j = select i1 %rows, i64 0, i64 %start
  %m.here = select i1 %rows, i64 %size, i64 %m
  %n.here = select i1 %rows, i64 %n, i64 %size
  %a.i = mul i64 %i, %row
  %a.off = add i64 %a.i, %a.q
  %b.j = mul i64 %j, %across
  %b.off = add i64 %b.j, %b.q
  %c.i = mul i64 %i, %ldc
  %c.ij = add i64 %c.i, %j
  %c.off = add i64 %c.ij, %c.q
  %a.all = inttoptr i64 %a to ptr
  %b.all = inttoptr i64 %b to ptr
  %c.all = inttoptr i64 %c to ptr
  %a.at = getelementptr ELEMENT, ptr %a.all, i64 %a.off
  %b.at = getelementptr ELEMENT, ptr %b.all, i64 %b.off
  %c.at = getelementptr ELEMENT, ptr %c.all, i64 %c.off
  switch i64 %way, label %outer [i64 1, label %inner i64 2, label %packed i64 3, label %strips]
outer:
  call void @outer(ptr %words, i64 %n.here, i64 %m.here, ptr %a.at, ptr %b.at, ptr %c.at)
  ret void
inner:
  call void @inner(ptr %words, i64 %m.here, i64 %n.here, ptr %a.at, ptr %b.at, ptr %c.at)
  ret void
packed:
  call void @packed(ptr %words, i64 %n.here, i64 %m.here, ptr %a.at, ptr %b.at, ptr %c.at)
  ret void
strips:
  call void @strips(ptr %words, i64 %n.here, i64 %m.here, ptr %a.at, ptr %b.at, ptr %c.at)
  ret void
}
"""

#: a strip of C, in each product of a batch that shares B
BATCH = """
define internal void @batch(TAKES, ptr %strip) noinline {
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
  call void %strip(ptr %words, i64 %extent, i64 %other, ptr %a.at, ptr %b, ptr %c.at)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
"""

#: a strip of C, whose columns of B are brought into a panel, and what does that
STRIP = """
define internal void @strips.strip(TAKES) noinline "probe-stack"="inline-asm" {
LOADS
  %count = mul i64 %k, PANEL
  %panel = alloca ELEMENT, i64 %count, align 64
  %columns = call i64 @llvm.smin.i64(i64 %other, i64 PANEL)
  call void @pack(ptr %words, i64 %columns, ptr %b, ptr %panel)
  call void @packed(ptr %words, i64 %columns, i64 %extent, ptr %a, ptr %panel, ptr %c)
  ret void
}

declare VECTOR @llvm.masked.load.SUFFIX.p0(ptr, i32, MASK, VECTOR)
declare VECTOR @llvm.masked.gather.SUFFIX.vLANESp0(<LANES x ptr>, i32, MASK, VECTOR)
declare MASK @llvm.get.active.lane.mask.vLANESi1.i64(i64, i64)

define internal void @pack(ptr %words, i64 %columns, ptr %b, ptr %panel) noinline {
LOADS
  %is.dense = icmp eq i64 %across, 1
  %apart = trunc i64 %across to i32
  %first = insertelement <LANES x i32> poison, i32 %apart, i64 0
  %all = shufflevector <LANES x i32> %first, <LANES x i32> poison, <LANES x i32> zeroinitializer
  %places = mul <LANES x i32> %all, NUMBERED
  br label %next
next:
  %j = phi i64 [0, %0], [%j.next, %end]
  %mask = call MASK @llvm.get.active.lane.mask.vLANESi1.i64(i64 %j, i64 %columns)
  %b.off = mul i64 %j, %across
  %b.j = getelementptr ELEMENT, ptr %b, i64 %b.off
  %panel.j = getelementptr ELEMENT, ptr %panel, i64 %j
  br label %head
head:
  %p = phi i64 [0, %next], [%p.next, %stored]
  %more = icmp slt i64 %p, %k
  br i1 %more, label %body, label %end
body:
  %off = mul i64 %p, %down
  %from = getelementptr ELEMENT, ptr %b.j, i64 %off
  br i1 %is.dense, label %dense, label %turned
dense:
  %row = call VECTOR @llvm.masked.load.SUFFIX.p0(ptr %from, i32 SIZE, MASK %mask,
    VECTOR zeroinitializer)
  br label %stored
turned:
  %each = getelementptr ELEMENT, ptr %from, <LANES x i32> %places
  %column = call VECTOR @llvm.masked.gather.SUFFIX.vLANESp0(<LANES x ptr> %each, i32 SIZE,
    MASK %mask, VECTOR zeroinitializer)
  br label %stored
stored:
  %x = phi VECTOR [%row, %dense], [%column, %turned]
  %panel.off = mul i64 %p, PANEL
  %to = getelementptr ELEMENT, ptr %panel.j, i64 %panel.off
  store VECTOR %x, ptr %to, align SIZE
  %p.next = add i64 %p, 1
  br label %head
end:
  %j.next = add i64 %j, LANES
  %again = icmp slt i64 %j.next, PANEL
  br i1 %again, label %next, label %done
done:
  ret void
}
"""
