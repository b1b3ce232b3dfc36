"""Numbers that change from step to step, such as the weight of a part of a loss, as operands.

An operator with another number is another operator, so a step whose number is another one each time
never comes again. Where many of them were noted in one place (`notes.py`), the operator is noted
*opened* instead: its numbers are an array then, an operand behind its others.

What an operator's numbers are it says (`Op.numbers`). That is not taken on trust: its expressions
are made with two sets of stand-ins (see `numbers.py`), and each scalar in which they differ is one
of these, or the operator stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.context import Context
from gnomon.dtype import DType, float32, float64, int64
from gnomon.expr import ext
from gnomon.expr.node import Buffer, Expr, Map, Scalar
from gnomon.expr.rewrite import with_children
from gnomon.expr.walk import postorder
from gnomon.native.words import Ints, Reals, native, single_bits
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.result import result
from gnomon.ndarray.lazy.numbers import but_numbers, probed, stand_ins
from gnomon.ndarray.lazy.recipe import Draws
from gnomon.ops.infer import Inferred, Partly
from gnomon.ops.op import Op, describe

MOST = 4  # numbers that are noted in one place as they are
_LARGEST = {float32: 3e38, float64: 1e308}

Maybe = Sequence[Any]


class Said(NamedTuple):
    """An operator as it was called, on so many arrays, and the array of its numbers."""

    op: Any
    count: int
    number: Array


#: an operator with its numbers as operands, all its operands, and what was called instead
Called = tuple["Opened", list[Any], Said]


class Closed(GnomonError):
    """An operator whose numbers do more than to stand in its expressions."""


class Opened(Op):
    """An operator with an operand in the place of its numbers.

    `places` are those of its numbers that stand in its expressions, all of one `dtype`.
    """

    places: list[int]
    dtype: DType
    layout: Layout  # of its numbers

    name = "opened"
    input_names = output_names = ()

    def __init__(self, op: Any, names: Sequence[str]) -> None:
        """`names` are those of its numbers."""
        self.__dict__.update(name=f"opened {op.name}", takes_random=op.takes_random, _given={})
        self.__dict__["_probes"] = probed(op, names)
        self.__dict__["_pairs"] = {stand_ins(k): k for k in range(len(names))}
        self.__dict__["places"] = []
        self.__dict__["_key"] = (Opened, *self._probes)

    @property
    def is_random(self) -> bool:
        return bool(self._probes[0].is_random)

    def arguments(self) -> tuple[str, ...]:
        return (*self._probes[0].arguments(), "numbers")

    def outputs(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self._probes[0].outputs()
        return names

    @property
    def num_visible_outputs(self) -> int:
        return int(self._probes[0].num_visible_outputs)

    @property
    def num_heads(self) -> int:
        return int(self._probes[0].num_heads)

    def infer_shape(
        self, in_shapes: Partly, out_shapes: Partly | None = None, *, zero_unknown: bool = True
    ) -> Inferred:
        given = self._probes[0].infer_shape(in_shapes[:-1], out_shapes, zero_unknown=zero_unknown)
        return [*given[0], (len(self.places),)], given[1], given[2]

    def infer_type(
        self, in_types: Sequence[DType | None], out_types: Sequence[DType | None] | None = None
    ) -> tuple[list[DType | None], list[DType | None], list[DType | None]]:
        given = self._probes[0].infer_type(in_types[:-1], out_types)
        return [*given[0], self.dtype], given[1], given[2]

    def forward(self, *inputs: Any, **context: Any) -> tuple[Expr, ...]:
        own, numbers = inputs[:-1], inputs[-1]
        other = {**context, "random": _no_numbers()} if "random" in context else context
        values = self._probes[0].apply(own, **context), self._probes[1].apply(own, **other)
        return tuple(self._opened(*values, numbers))

    def backward(
        self, out_grads: Maybe, inputs: Maybe, outputs: Maybe, **context: Any
    ) -> tuple[Expr | None, ...]:
        kind = type(self._probes[0])
        if kind.backward is Op.backward and kind.gradient is None:
            return super().backward(out_grads, inputs, outputs, **context)
        own, numbers = inputs[:-1], inputs[-1]
        found, other = (x.backward(out_grads, own, outputs, **context) for x in self._probes)
        given = [[x for x in grads if x is not None] for grads in (found, other)]
        values = iter(self._opened(*given, numbers))
        return *(x if x is None else next(values) for x in found), None

    def _opened(self, values: Sequence[Expr], others: Sequence[Expr], numbers: Expr) -> list[Expr]:
        """Expressions with numbers in the place of the scalars in which they differ from others."""
        given = {k: ext.slice_(numbers, (n,), (n + 1,)) for n, k in enumerate(self.places)}
        places = dict(self._differing(values, others))
        new: dict[Expr, Expr] = {}
        for node in postorder(values):
            children = [
                _spread(given[places[c]], node) if c in places else new[c] for c in node.children
            ]
            new[node] = with_children(node, children) if children else node
        return [new[value] for value in values]

    def _differing(
        self, values: Sequence[Expr], others: Sequence[Expr]
    ) -> Iterator[tuple[Scalar, int]]:
        """The scalars that are numbers, and which.

        Raises:
            Closed: one is made of numbers.
        """
        ours, theirs = postorder(list(values)), postorder(list(others))
        if [type(x) for x in ours] != [type(x) for x in theirs]:
            raise Closed(self.name)
        for a, b in zip(ours, theirs, strict=True):
            if isinstance(a, Scalar) and isinstance(b, Scalar) and a.value != b.value:
                place = self._pairs.get((a.value, b.value))
                if place is None:
                    raise Closed(self.name)
                yield a, place

    def learn(self, layouts: Sequence[Layout], train: bool) -> None:
        """Find which numbers are operands, for arrays like these.

        Raises:
            GnomonError: the numbers do more than to stand in expressions.
        """
        leaves = [Buffer(x.shape, x.dtype, x.strides) for x in layouts]
        context = {"train": train, "random": _no_numbers()}
        found = (x.apply(leaves, **context) for x in self._probes)
        scalars = dict(self._differing(*found))
        kinds = {scalar.dtype for scalar in scalars}
        if len(kinds) != 1 or kinds.isdisjoint(_LARGEST):
            raise Closed(self.name)
        self.places.extend(dict.fromkeys(scalars.values()))
        self.__dict__["dtype"] = kinds.pop()
        self.__dict__["layout"] = dense((len(self.places),), self.dtype)
        self.__dict__["_key"] = (*self._key, self.dtype, *self.places)
        numbers = Buffer((len(self.places),), self.dtype)
        values = self.forward(*leaves, numbers, **context)
        grads = [Buffer(x.shape, x.dtype) for x in values[: self.num_visible_outputs]]
        stored = [Buffer(x.shape, x.dtype) for x in values]
        self.backward(grads, [*leaves, numbers], stored, train=train)

    def called(self, op: Any, arrays: Sequence[Any], make: Callable[..., Array]) -> Called | None:
        """It for an operator on arrays; None where the numbers do not fit.

        `make` is `numbered`.
        """
        given = tuple(op.numbers().values())
        values, most = tuple([given[k] for k in self.places]), _LARGEST[self.dtype]
        for x in values:
            if not -most < x < most:  # nor a NaN
                return None
        numbers = make(arrays[0].context, self.layout, values, self.dtype is float32)
        return self, [*arrays, numbers], Said(op, len(arrays), numbers)


describe(Opened)


def _no_numbers() -> Draws:
    """Random numbers of which none is drawn."""
    return Draws(lambda: Buffer((2,), int64))


def _spread(number: Expr, over: Expr) -> Expr:
    """A number, an array of one element, as an operand of a map.

    Raises:
        Closed: it stands elsewhere.
    """
    if not isinstance(over, Map) or not over.shape:
        raise Closed("a number of an operator")
    return ext.broadcast_to(number, over.shape)


def varied(op: Any) -> Any:
    """What operators that differ in their numbers alone have in common; None without numbers."""
    try:
        return op.__dict__["_varied"]
    except KeyError:
        numbers = op.numbers() if isinstance(op, Op) and not op.aux_names else {}
        found = op.__dict__["_varied"] = but_numbers(op, numbers) if numbers else None
        return found


def opened(op: Any, arrays: Sequence[Any], key: Any) -> Opened | None:
    """An operator with its numbers as operands; None where there is none. `key` is of `varied`."""
    layouts = tuple([x._layout for x in arrays])
    full = key, layouts, mode.training
    try:
        return _known[full]
    except KeyError:
        both = _made(op, layouts)
        LEARNT.put(_known, full, both)
        return both


_known: dict[Any, Opened | None] = {}


def _made(op: Any, layouts: Sequence[Layout]) -> Opened | None:
    """An operator with its numbers as operands; None where they do more than it says."""
    try:
        both = Opened(op, tuple(op.numbers()))
        both.learn(layouts, mode.training)
    except GnomonError:
        return None
    return both


@native
def numbered(ctx: Context, layout: Layout, numbers: tuple[object, ...], is_single: bool) -> Array:
    """Numbers as an array of floats of 32 bits, or of 64."""
    made = result(ctx, layout)
    address: int = made._chunk.address
    singles = Ints(address)
    doubles = Reals(address)
    for k in range(len(numbers)):
        if is_single:
            singles[k] = single_bits(float(numbers[k]))  # type: ignore[arg-type]
        else:
            doubles[k] = float(numbers[k])  # type: ignore[arg-type]
    return made
