"""Conversions of the half floats as integer arithmetic, for targets that have no instruction.

float16 has 5 bits of exponent and 10 of mantissa, bfloat16 is the upper half of a float32. Rounding
is to nearest, ties to even; denormal numbers, infinities and NaN are what they should be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon import dtype as dt

if TYPE_CHECKING:
    from gnomon.code.emit import Emitter, Value

SIGN, MAGNITUDE = 0x8000_0000, 0x7FFF_FFFF
INFINITE = 0x7F80_0000  # the bits of float32's infinity
TOP = 143 << 23  # those of 65536: from there on float16 is infinite
NORMAL = 113 << 23  # those of 2^-14, float16's smallest normal number
HALF = 126 << 23  # those of 0.5, whose last bit is worth float16's smallest number
REBIAS = (15 - 127) << 23 & 0xFFFF_FFFF


def widen(e: Emitter, value: Value) -> Value:
    """A half float as float32."""
    bits = e.convert(e.bitcast(value, dt.uint16), dt.uint32)
    if value.dtype is dt.bfloat16:
        return e.bitcast(_int(e, "shl", bits, 16), dt.float32)
    sign = _int(e, "shl", _int(e, "and", bits, 0x8000), 16)
    below = e.bitcast(_int(e, "shl", _int(e, "and", bits, 0x7FFF), 13), dt.float32)
    scaled = e.primitive("mul", [below, e.constant(2.0**112, dt.float32)], dt.float32)
    beyond = e.primitive("le", [e.constant(65536.0, dt.float32), scaled], dt.bool_)
    number = e.bitcast(scaled, dt.uint32)
    special = _int(e, "or", number, INFINITE)
    number = e.primitive("select", [beyond, special, number], dt.uint32)
    return e.bitcast(e.primitive("or", [number, sign], dt.uint32), dt.float32)


def narrow_bfloat16(e: Emitter, value: Value) -> Value:
    """A float32 as bfloat16."""
    bits = e.bitcast(value, dt.uint32)
    upper = _int(e, "lshr", bits, 16)
    carry = _int(e, "add", _int(e, "and", upper, 1), 0x7FFF)
    rounded = _int(e, "lshr", e.primitive("add", [bits, carry], dt.uint32), 16)
    nan = e.primitive("ne", [value, value], dt.bool_)
    result = e.primitive("select", [nan, _int(e, "or", upper, 0x40), rounded], dt.uint32)
    return e.bitcast(e.convert(result, dt.uint16), dt.bfloat16)


def narrow_float16(e: Emitter, value: Value) -> Value:
    """A float32 as float16."""
    bits = e.bitcast(value, dt.uint32)
    sign = _int(e, "lshr", _int(e, "and", bits, SIGN), 16)
    number = _int(e, "and", bits, MAGNITUDE)
    odd = _int(e, "and", _int(e, "lshr", number, 13), 1)
    carry = e.primitive("add", [number, _int(e, "add", odd, REBIAS + 0xFFF)], dt.uint32)
    normal = _int(e, "lshr", carry, 13)
    # the sum with 0.5 rounds to multiples of float16's smallest number
    shifted = e.primitive(
        "add", [e.bitcast(number, dt.float32), e.constant(0.5, dt.float32)], dt.float32
    )
    denormal = _int(e, "sub", e.bitcast(shifted, dt.uint32), HALF)
    small = e.primitive("lt", [number, e.constant(NORMAL, dt.uint32)], dt.bool_)
    result = e.primitive("select", [small, denormal, normal], dt.uint32)
    nan = e.primitive("lt", [e.constant(INFINITE, dt.uint32), number], dt.bool_)
    quiet, infinite = e.constant(0x7E00, dt.uint32), e.constant(0x7C00, dt.uint32)
    special = e.primitive("select", [nan, quiet, infinite], dt.uint32)
    beyond = e.primitive("le", [e.constant(TOP, dt.uint32), number], dt.bool_)
    result = e.primitive("select", [beyond, special, result], dt.uint32)
    result = e.primitive("or", [result, sign], dt.uint32)
    return e.bitcast(e.convert(result, dt.uint16), dt.float16)


def _int(e: Emitter, op: str, value: Value, number: int) -> Value:
    """An operation with a constant on the bits of a number."""
    return e.primitive(op, [value, e.constant(number & 0xFFFF_FFFF, dt.uint32)], dt.uint32)
