"""Functions of integers that no machine has: powers and remainders, modulo a power of two."""

from __future__ import annotations

from gnomon.expr.term import Arena, Term

NEAR = 6  # bits of an exponent that is not rare


def pow(arena: Arena, has: frozenset[str], a: Term, b: Term) -> Term:
    """a^b by squaring; where b is negative, 1 / a^-b, which is 0 but for 1 and -1."""
    dtype = a.dtype
    zero, one = arena.const(0, dtype), arena.const(1, dtype)
    signed = dtype.kind == "i"
    near = _raised(arena, a, b, NEAR)
    whole = _raised(arena, a, b, 8 * dtype.size - signed)
    rare = "rare" if "rare" in has else "select"
    value = arena.op(rare, arena.op("le", arena.const(1 << NEAR, dtype), b), whole, near)
    if not signed:
        return value
    odd = arena.op("and", b, one)
    minus = arena.select(a.eq(-1), one - odd - odd, arena.select(a.eq(1), one, zero))
    return arena.select(b < zero, minus, value)


def fmod(arena: Arena, has: frozenset[str], a: Term, b: Term) -> Term:
    """What is left of a, with its sign; a where b is 0."""
    return a - a / b * b


def _raised(arena: Arena, a: Term, b: Term, bits: int) -> Term:
    """a to the power of the lowest bits of b."""
    value = arena.const(1, a.dtype)
    for k in range(bits):
        unset = arena.op("and", b, arena.const(1 << k, a.dtype)).eq(0)
        value = arena.select(unset, value, value * a)
        a = a * a
    return value
