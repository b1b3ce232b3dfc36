"""Numbers that change from step to step, such as the weight of a part of a loss, as operands.

`x * 0.1` and `x * 0.2` are two operators, as `x > 0.1` and `x > 0.2` are, so a step whose number is
another one each time never comes again. Where many of them were noted in one place (`notes.py`),
the operator of two arrays is noted instead, of the array and of one element with the number: an
operand as any other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gnomon.dtype import float32, float64
from gnomon.ndarray.core.array import Array, of_zeros
from gnomon.ops import registry
from gnomon.ops.binary import FORMS, WithScalar
from gnomon.runtime.once import once

MOST = 4  # numbers that are noted in one place as they are
_LARGEST = {float32: 3e38, float64: 1e308}


class Said(NamedTuple):
    """An operator as it was called, which number of the operands its array has, and its number."""

    op: Any
    place: int
    number: Array


@once
def _forms() -> dict[str, tuple[Any, int]]:
    """The operators of two arrays, and where the array stands in them, by those with a number."""
    found = {}
    for forms in FORMS.values():
        both = registry.find(forms.broadcast).parse({})
        found[forms.scalar] = both, 0
        if forms.reversed is not None:
            found[forms.reversed] = both, 1
    return found


def may_vary(op: Any, array: Any) -> bool:
    """Whether an operator with a number does to an array what that of two arrays does."""
    if not isinstance(op, WithScalar) or op.name not in _forms():
        return False
    return bool(abs(op.scalar) < _LARGEST.get(array._dtype, 0.0))


def opened(op: Any, array: Any) -> tuple[Any, list[Any], Said]:
    """The operator of two arrays, these, and what was said instead."""
    both, place = _forms()[op.name]
    number = of_zeros((1,) * len(array.shape), array._dtype, array.context)
    number._numpy()[...] = op.scalar
    arrays = [number, number]
    arrays[place] = array
    return both, arrays, Said(op, place, number)
