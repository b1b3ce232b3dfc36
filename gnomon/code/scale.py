"""x * 2^n by the instruction that AVX-512 has for it, a register at a time."""

from __future__ import annotations

from gnomon import dtype as dt
from gnomon.code.emit import Emitter, Value, type_of

NAMES = {dt.float32: "ps", dt.float64: "pd"}
SMALLEST = 16  # bytes of the smallest vector that there is an instruction for
NEAREST = 4  # the rounding that is set anyhow


def scales(e: Emitter, x: Value) -> bool:
    """Whether the target has an instruction for as many lanes."""
    return "scalb" in e.target.has and x.lanes * x.dtype.size >= SMALLEST


def scaled(e: Emitter, x: Value, n: Value) -> Value:
    """`x` times two to the power of `n`, rounded once; `n` is integral."""
    lanes, dtype = x.lanes, x.dtype
    width = min(lanes, e.target.vector_bytes // dtype.size)
    pieces = [
        _piece(e, _slice(e, x, k, width), _slice(e, n, k, width)) for k in range(0, lanes, width)
    ]
    while len(pieces) > 1:
        pieces = [_joined(e, a, b) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces[0]


def _piece(e: Emitter, x: Value, n: Value) -> Value:
    mask = "i16" if x.lanes == 16 else "i8"
    name = f"@llvm.x86.avx512.mask.scalef.{NAMES[x.dtype]}.{8 * x.dtype.size * x.lanes}"
    rounding = x.dtype.size * x.lanes == 64  # an operand of the widest alone
    types = [x.type] * 3 + [mask] + ["i32"] * rounding
    e.declared.add(f"declare {x.type} {name}({', '.join(types)})")
    last = f", i32 {NEAREST}" if rounding else ""
    return e.do(f"call {x.type} {name}({x}, {n}, {x}, {mask} -1{last})", x.dtype, x.lanes)


def _slice(e: Emitter, x: Value, first: int, lanes: int) -> Value:
    if lanes == x.lanes:
        return x
    picks = ", ".join(f"i32 {first + k}" for k in range(lanes))
    text = f"shufflevector {x}, {x.type} poison, <{lanes} x i32> <{picks}>"
    return e.do(text, x.dtype, lanes)


def _joined(e: Emitter, a: Value, b: Value) -> Value:
    picks = ", ".join(f"i32 {k}" for k in range(2 * a.lanes))
    text = f"shufflevector {a}, {b}, <{2 * a.lanes} x i32> <{picks}>"
    assert type_of(a.dtype, a.lanes) == b.type
    return e.do(text, a.dtype, 2 * a.lanes)
