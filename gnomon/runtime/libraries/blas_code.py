"""The native text of matrix products: the tasks of a product cut for the pool, calling BLAS."""

from __future__ import annotations

# the operands of a step's block, in their order: both kinds of product, then each of its own
SHARED = "a b c m k lda ta alpha beta parts piece sa sb sc gemv each units".split()
GEMM = [*SHARED, *"n ldb ldc tb by_rows".split()]
GEMV = [*SHARED, *"incx incy".split()]


def _loads(names: list[str]) -> str:
    return "".join(
        f"  %{name}.at = getelementptr i64, ptr %words, i64 {i}\n"
        f"  %{name} = load i64, ptr %{name}.at\n"
        for i, name in enumerate(names)
    )


_TEXT = """
declare void @gemm(i32, i32, i32, i32, i32, i32, ELEMENT, ptr, i32, ptr, i32, ELEMENT, ptr, i32)
declare void @gemv(i32, i32, i32, i32, ELEMENT, ptr, i32, ptr, i32, ELEMENT, ptr, i32)

define internal ELEMENT @number(i64 %bits) alwaysinline {
  %slot = alloca i64
  store i64 %bits, ptr %slot
  %value = load ELEMENT, ptr %slot
  ret ELEMENT %value
}

define internal i64 @bytes(i64 %base, i64 %elements) alwaysinline {
  %offset = mul i64 %elements, SIZE
  %at = add i64 %base, %offset
  ret i64 %at
}

; the cut: which matrix of the batch, and which part [start, start + size) of an axis of length n
define internal {i64, i64, i64} @cut(i64 %task, i64 %parts, i64 %piece, i64 %n) alwaysinline {
  %which = sdiv i64 %task, %parts
  %part = srem i64 %task, %parts
  %start = mul i64 %part, %piece
  %left = sub i64 %n, %start
  %most = call i64 @llvm.smin.i64(i64 %left, i64 %piece)
  %size = call i64 @llvm.smax.i64(i64 %most, i64 0)
  %r0 = insertvalue {i64, i64, i64} poison, i64 %which, 0
  %r1 = insertvalue {i64, i64, i64} %r0, i64 %start, 1
  %r2 = insertvalue {i64, i64, i64} %r1, i64 %size, 2
  ret {i64, i64, i64} %r2
}

define void @many(ptr %words, i64 %task, i64 %tasks) {
  %gemv.at = getelementptr i64, ptr %words, i64 GEMV_AT
  %gemv = load i64, ptr %gemv.at
  %vector = icmp ne i64 %gemv, 0
  %f = select i1 %vector, ptr @gemv_task, ptr @gemm_task
  %each.at = getelementptr i64, ptr %words, i64 EACH_AT
  %each = load i64, ptr %each.at
  %units.at = getelementptr i64, ptr %words, i64 UNITS_AT
  %units = load i64, ptr %units.at
  %first = mul i64 %task, %each
  %after = add i64 %first, %each
  %last = call i64 @llvm.smin.i64(i64 %after, i64 %units)
  br label %head
head:
  %unit = phi i64 [%first, %0], [%next, %body]
  %more = icmp slt i64 %unit, %last
  br i1 %more, label %body, label %done
body:
  call void %f(ptr %words, i64 %unit, i64 %units)
  %next = add i64 %unit, 1
  br label %head
done:
  ret void
}

define internal void @gemm_task(ptr %words, i64 %task, i64 %tasks) {
GEMM_LOADS
  %rows = icmp ne i64 %by_rows, 0
  %axis = select i1 %rows, i64 %m, i64 %n
  %cut = call {i64, i64, i64} @cut(i64 %task, i64 %parts, i64 %piece, i64 %axis)
  %which = extractvalue {i64, i64, i64} %cut, 0
  %start = extractvalue {i64, i64, i64} %cut, 1
  %size = extractvalue {i64, i64, i64} %cut, 2
  %none = icmp eq i64 %size, 0
  br i1 %none, label %out, label %work
work:
  %row = select i1 %rows, i64 %start, i64 0
  %column = select i1 %rows, i64 0, i64 %start
  %m.here = select i1 %rows, i64 %size, i64 %m
  %n.here = select i1 %rows, i64 %n, i64 %size
  %a.turned = icmp ne i64 %ta, 0
  %b.turned = icmp ne i64 %tb, 0
  %a.step = select i1 %a.turned, i64 1, i64 %lda
  %b.step = select i1 %b.turned, i64 %ldb, i64 1
  %a.matrix = mul i64 %which, %sa
  %b.matrix = mul i64 %which, %sb
  %c.matrix = mul i64 %which, %sc
  %a.inner = mul i64 %row, %a.step
  %b.inner = mul i64 %column, %b.step
  %c.row = mul i64 %row, %ldc
  %c.inner = add i64 %c.row, %column
  %a.off = add i64 %a.matrix, %a.inner
  %b.off = add i64 %b.matrix, %b.inner
  %c.off = add i64 %c.matrix, %c.inner
  %a.int = call i64 @bytes(i64 %a, i64 %a.off)
  %b.int = call i64 @bytes(i64 %b, i64 %b.off)
  %c.int = call i64 @bytes(i64 %c, i64 %c.off)
  %a.ptr = inttoptr i64 %a.int to ptr
  %b.ptr = inttoptr i64 %b.int to ptr
  %c.ptr = inttoptr i64 %c.int to ptr
  %alpha.t = call ELEMENT @number(i64 %alpha)
  %beta.t = call ELEMENT @number(i64 %beta)
  %m32 = trunc i64 %m.here to i32
  %n32 = trunc i64 %n.here to i32
  %k32 = trunc i64 %k to i32
  %lda32 = trunc i64 %lda to i32
  %ldb32 = trunc i64 %ldb to i32
  %ldc32 = trunc i64 %ldc to i32
  %ta.code = select i1 %a.turned, i32 112, i32 111
  %tb.code = select i1 %b.turned, i32 112, i32 111
  call void @gemm(i32 101, i32 %ta.code, i32 %tb.code, i32 %m32, i32 %n32, i32 %k32,
    ELEMENT %alpha.t, ptr %a.ptr, i32 %lda32, ptr %b.ptr, i32 %ldb32, ELEMENT %beta.t, ptr %c.ptr,
    i32 %ldc32)
  br label %out
out:
  ret void
}

define internal void @gemv_task(ptr %words, i64 %task, i64 %tasks) {
GEMV_LOADS
  %cut = call {i64, i64, i64} @cut(i64 %task, i64 %parts, i64 %piece, i64 %m)
  %which = extractvalue {i64, i64, i64} %cut, 0
  %start = extractvalue {i64, i64, i64} %cut, 1
  %size = extractvalue {i64, i64, i64} %cut, 2
  %none = icmp eq i64 %size, 0
  br i1 %none, label %out, label %work
work:
  %turned = icmp ne i64 %ta, 0
  %a.step = select i1 %turned, i64 1, i64 %lda
  %a.matrix = mul i64 %which, %sa
  %a.inner = mul i64 %start, %a.step
  %a.off = add i64 %a.matrix, %a.inner
  %x.off = mul i64 %which, %sb
  %y.matrix = mul i64 %which, %sc
  %y.inner = mul i64 %start, %incy
  %y.off = add i64 %y.matrix, %y.inner
  %a.int = call i64 @bytes(i64 %a, i64 %a.off)
  %x.int = call i64 @bytes(i64 %b, i64 %x.off)
  %y.int = call i64 @bytes(i64 %c, i64 %y.off)
  %a.ptr = inttoptr i64 %a.int to ptr
  %x.ptr = inttoptr i64 %x.int to ptr
  %y.ptr = inttoptr i64 %y.int to ptr
  %alpha.t = call ELEMENT @number(i64 %alpha)
  %beta.t = call ELEMENT @number(i64 %beta)
  %rows = select i1 %turned, i64 %k, i64 %size
  %columns = select i1 %turned, i64 %size, i64 %k
  %rows32 = trunc i64 %rows to i32
  %columns32 = trunc i64 %columns to i32
  %lda32 = trunc i64 %lda to i32
  %incx32 = trunc i64 %incx to i32
  %incy32 = trunc i64 %incy to i32
  %ta.code = select i1 %turned, i32 112, i32 111
  call void @gemv(i32 101, i32 %ta.code, i32 %rows32, i32 %columns32, ELEMENT %alpha.t, ptr %a.ptr,
    i32 %lda32, ptr %x.ptr, i32 %incx32, ELEMENT %beta.t, ptr %y.ptr, i32 %incy32)
  br label %out
out:
  ret void
}
"""


def text(element: str, size: int) -> str:
    """The text for elements of LLVM's type `element`, `size` bytes each."""
    filled = _TEXT.replace("GEMM_LOADS", _loads(GEMM)).replace("GEMV_LOADS", _loads(GEMV))
    for name in ("gemv", "each", "units"):
        filled = filled.replace(f"{name.upper()}_AT", str(SHARED.index(name)))
    return filled.replace("ELEMENT", element).replace("SIZE", str(size))
