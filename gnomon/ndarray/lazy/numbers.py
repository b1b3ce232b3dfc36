"""Numbers as kernel arguments: operators that differ in such a number alone share their recipes.

`x * 0.1` and `x * 0.2`, or an update whose learning rate moves, are different operators, and a
recipe takes half a millisecond to make. What an operator's numbers are it says (`Op.numbers`): they
only enter expressions, as scalars. That is not taken on trust: a recipe is made with two sets of
stand-ins for them, and each scalar of the expression must be one of these, or the same in both;
otherwise the operator keeps its own.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from gnomon.dtype import DType, float32
from gnomon.expr.node import Expr, Scalar
from gnomon.expr.walk import postorder
from gnomon.ops.binary import WithScalar
from gnomon.ops.create import Full
from gnomon.ops.update import Update
from gnomon.runtime.kernels.kernel import bits

# operators that share recipes; others that pend are quicker without
_SHARING = WithScalar, Update, Full

Pair = tuple[float, float]


class Kind:
    """What operators that differ in such numbers alone share: recipes, and rules of traces.

    `results` are the dtypes of element-wise results, by those of the operands; `no_maps` the ranks
    and dtypes of operands of which it made something else than a map.
    """

    __slots__ = ("no_maps", "recipes", "results", "rules")

    def __init__(self) -> None:
        self.recipes: dict[Any, Any] = {}
        self.rules: dict[Any, Any] = {}
        self.results: dict[tuple[DType, ...], DType] = {}
        self.no_maps: set[tuple[tuple[int, DType], ...]] = set()


class Sharing(NamedTuple):
    """What an operator shares with those that differ in numbers alone, and its own such numbers."""

    kind: Kind
    fields: tuple[str, ...]
    values: tuple[float, ...]


class Number(NamedTuple):
    """A word that a run fills in: which of the numbers it is given, in one dtype."""

    place: int
    dtype: DType
    modular: bool


_FLOAT, _WORD = struct.Struct("<f"), struct.Struct("<i")
_LARGEST = 3e38  # from here on, floats need a closer look
_shared: dict[Any, Kind] = {}
_alone: set[type] = set()  # classes whose expressions do more with the fields than said
_SHARED_KEPT = 1024


def sharing_of(op: Any) -> Sharing:
    """What `op` shares, and its numbers; looked up once for each operator."""
    found: Sharing | None = op.__dict__.get("_sharing")
    if found is None or (found.fields and type(op) in _alone):
        found = op.__dict__["_sharing"] = _sharing(op)
    return found


def _sharing(op: Any) -> Sharing:
    kind = type(op)
    numbers = op.numbers() if isinstance(op, _SHARING) and kind not in _alone else {}
    if not numbers:
        return Sharing(Kind(), (), ())
    if len(_shared) >= _SHARED_KEPT:
        _shared.clear()
    shared = _shared.setdefault(but_numbers(op, numbers), Kind())
    return Sharing(shared, tuple(numbers), tuple(numbers.values()))


def but_numbers(op: Any, numbers: Collection[str]) -> Any:
    """What operators have in common that differ in these numbers alone."""
    return type(op), tuple([value for name, value in op._key[1:] if name not in numbers])


def keep_alone(op: Any, alike: bool = False) -> Sharing:
    """From now on operators of this class share nothing; where `alike`, this one alone does not."""
    if alike:
        op.__dict__["_sharing"] = Sharing(Kind(), (), ())
    else:
        _alone.add(type(op))
    return sharing_of(op)


def stand_ins(place: int) -> Pair:
    """Two stand-ins for the number at a place: whole numbers that every dtype holds.

    >>> stand_ins(0), stand_ins(61)
    ((66.0, 63.0), (67.0, 62.0))
    """
    return 66.0 + place % 60, 63.0 - place // 60


def probed(op: Any, fields: Sequence[str], first: int = 0) -> tuple[Any, Any]:
    """The operator with each set of stand-ins in `fields`, the numbers from place `first` on."""
    ours, theirs = (
        op.with_numbers({name: stand_ins(first + k)[side] for k, name in enumerate(fields)})
        for side in (0, 1)
    )
    return ours, theirs


def matched(first: Sequence[Expr], second: Sequence[Expr], count: int) -> list[Number] | None:
    """Which of `count` numbers are in an expression, seen with both stand-ins.

    None where one of its scalars is made of a number, and is not the number itself.
    """
    pairs = {stand_ins(place): place for place in range(count)}
    ours, theirs = _scalars(first), _scalars(second)
    if len(ours) != len(theirs):
        return None
    found = []
    for a, b in zip(ours, theirs, strict=True):
        if a.value != b.value:
            pair = (float(a.value), float(b.value))
            if pair not in pairs:
                return None
            modular = a.modular and a.dtype.kind != "f"  # floats are one word either way
            found.append(Number(pairs[pair], a.dtype, modular))
    return found


def words_of(number: Number) -> tuple[int, int]:
    """Both stand-ins of a number as a kernel is given them; equal where its dtype is bool."""
    first, second = stand_ins(number.place)
    return word(first, number), word(second, number)


def _scalars(values: Sequence[Expr]) -> list[Scalar]:
    return [node for node in postorder(list(values)) if isinstance(node, Scalar)]


def word(value: float, number: Number) -> int:
    """A number as a kernel's argument block holds it."""
    if number.dtype is float32 and abs(value) < _LARGEST:
        found: int = _WORD.unpack(_FLOAT.pack(value))[0]
        return found
    return bits(Scalar(value, number.dtype, number.modular))
