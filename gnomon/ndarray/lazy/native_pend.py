"""The usual statement by one native call: an operator of two arrays, an array and a number, or one.

`native_pend(own, a, b)`, or `native_pend(own, a)`, enters it in the group of the thread whose `Own`
comes first, as `pending.pair` and `pending.single` do by Python's means, and gives the pending
result. It gives None, with nothing done, for anything unusual: other operands, a chain that is new,
a group that is full or not open. It decides everything before it changes anything, and looks again,
right before it does, that its own allocations (which may run the collector, and so any code) left
the group as it was. Natively nothing comes between then; Python cannot say so, and goes the usual
way where native code is not served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gnomon import config
from gnomon.engine.var import is_free
from gnomon.ground.record import Frozen, put
from gnomon.native.serve import Due, binding
from gnomon.native.words import native, new, whole, word_or
from gnomon.ndarray.core.array import Array, address_of
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.core.mode import is_recording
from gnomon.ndarray.lazy.fusion_group import HELD, FusionGroup, Own
from gnomon.ndarray.lazy.materialize import native_wait
from gnomon.ndarray.lazy.trace import Rule
from gnomon.runtime.statements.fields import readable

#: `native_pend(own, array, other)` or `native_pend(own, array)`: the pending result, or None
NativePend = Callable[..., Any]

WORTH = 2000  # statements: without native code one takes 5 us more, and compiling that 0.4 s
_EXACT = 1 << 53  # whole numbers up to here are floats


@whole
class Rules(Frozen):
    """How an operator joins a trace, by layouts: of two arrays, and of one and maybe a number.

    There are none of one where the number is part of the operator.
    """

    __slots__ = ("pairs", "singles")

    pairs: dict[Any, Rule | None]
    singles: dict[Any, Rule | None] | None

    def __init__(self, pairs: dict[Any, Any], singles: dict[Any, Any] | None) -> None:
        put(self, "pairs", pairs)
        put(self, "singles", singles)


@native
def _is_usual(own: Own, group: FusionGroup) -> bool:
    """Whether a group takes one more operator as it stands."""
    if own.large is not None or group.closed or group.busy or group.eager:
        return False
    return own.settings == config.changes.count


@native
def _place(group: FusionGroup, array: Array) -> tuple[int, Layout] | None:
    """What a group knows an operand in memory by; None where it may not be one."""
    if array._pending_in is not None:
        return None
    chunk = array._chunk
    if chunk.shared or chunk.ctx is not group.ctx or not is_free(chunk):
        return None
    if array._offset == 0:
        return (chunk.address, array._layout)  # the integer that is there: to make one takes longer
    return (chunk.address + array._offset, array._layout)


@native
def _number(group: FusionGroup, array: Array, place: tuple[int, Layout] | None, count: int) -> int:
    """The number of an operand: of a result, of a leaf, or of a new one, behind `count` leaves."""
    if place is None:
        return array._index
    known = group.places.get(place)
    return ~count if known is None else known


@native
def _enter(group: FusionGroup, array: Array, place: tuple[int, Layout], number: int) -> None:
    """Have an operand among the leaves of a group."""
    chunk = array._chunk
    group.read.append(chunk)
    group.addresses.append(place[0])
    chunk.pending_readers.append(group)
    group.places[place] = number


@native
def _joined(own: Own, rule: Rule, a: Array, b: Array | None, value: object) -> Array | None:
    """The pending result of an operator; None, with nothing done, if it is not as usual."""
    made = new(Array.main)
    group = own.groups.get(rule.shape)
    if group is None or not _is_usual(own, group):
        return None
    trace = group.trace
    count = len(group.read)
    place = None if a._pending_in is group else _place(group, a)
    if place is None and a._pending_in is not group:
        return None
    i = _number(group, a, place, count)
    first = place is not None and i == ~count
    leaves = count + 1 if first else count
    held: int = group.held
    if first:
        held += a._chunk.nbytes
    other: tuple[int, Layout] | None = None
    j = i
    second = False
    if b is not None and b is not a:
        other = None if b._pending_in is group else _place(group, b)
        if other is None and b._pending_in is not group:
            return None
        j = _number(group, b, other, leaves)
        second = other is not None and j == ~leaves
        if second:
            held += b._chunk.nbytes
            if first and address_of(a) == address_of(b):
                return None
    after = trace.after.get((rule, i) if b is None else (rule, i, j))
    if after is None or after.full or held > HELD:
        return None
    if group.trace is not trace or len(group.read) != count or not _is_usual(own, group):
        return None
    if first:
        _enter(group, a, place, i)
    if second and b is not None:
        _enter(group, b, other, j)
    if leaves > count or second:
        put(group, "held", held)
    if value is not None:
        group.numbers.append(value)
    put(made, "_layout", after.layout)
    put(made, "_tape", None)
    put(made, "_pending_in", group)
    put(made, "_index", after.index)
    group.results.append(made)
    put(group, "trace", after)
    return made  # type: ignore[no-any-return]


@native
def _exactly(x: object) -> object:
    """A number as a float that is equal to it; None for anything else."""
    if type(x) is float:
        return x
    if type(x) is not int:
        return None
    number = word_or(x, _EXACT + 1)
    return float(number) if number >= -_EXACT and number <= _EXACT else None


@native
def native_pend(rules: Rules, own: Own, a: object, *rest: object) -> Array | None:
    """The pending result of an operator; None, with nothing done, if it is not as usual."""
    if type(a) is not Array.main or (a._tape is not None and is_recording()):
        return None
    b = rest[0] if len(rest) > 0 else None
    if type(b) is Array.main:
        if b._tape is not None and is_recording():
            return None
        both = rules.pairs.get((a._layout, b._layout))
        return None if both is None else _joined(own, both, a, b, None)
    value = _exactly(b)
    if rules.singles is None or (value is None and len(rest) > 0):
        return None
    rule = rules.singles.get((a._layout,))
    return None if rule is None else _joined(own, rule, a, None, value)


due = Due(WORTH, native_pend)


def native_pend_by(pairs: dict[Any, Any], singles: dict[Any, Any] | None) -> NativePend | None:
    """The native form of `native_pend` by rules of pairs, and of one array or one and a number.

    None where it is to be asked for again, at a later statement.
    """
    if not due():
        return None
    if not readable():
        return lambda *operands: None
    native_wait()
    made = binding(native_pend)(Rules(pairs, singles))
    return (lambda *operands: None) if isinstance(made, partial) else made
