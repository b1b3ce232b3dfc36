"""All weights of a network updated by one operation of the engine.

The formula of an optimizer is an expression, so the updates of any number of weights are compiled
into one native call; equal kernels of them are compiled once. What may differ from one update to
the next (rates, decays, the factor on gradients) is read from memory and compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter, is_
from struct import Struct
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gnomon.base import complaint
from gnomon.dtype import DType, float64
from gnomon.expr import fn
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.ground.record import record
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import check_together
from gnomon.ndarray.core.layout import dense, strided
from gnomon.ndarray.lazy.batch import Batch, Group, flat, overlapping
from gnomon.runtime.execution.stream import Pair
from gnomon.runtime.statements.prepare import Store

_PLACE = attrgetter("_address")
_MEMORY = attrgetter("_chunk", "_offset")  #: where an array is; what is pending gets its memory

Exprs = Sequence[Expr]
#: (weight, gradient, states, rates) -> the new weight and the new states, all of one dtype
Formula = Callable[[Expr, Expr, Exprs, "Rates"], Exprs]


@record(slots=False)
class Rates:
    """What an update reads from memory, as expressions of the weight's shape.

    `more` are the numbers that the optimizer's `_numbers` gives behind rate and decay.
    """

    lr: Expr
    wd: Expr
    more: tuple[Expr, ...] = ()

    def __getattr__(self, name: str) -> NoReturn:
        expected = f"lr, wd, or more, what `_numbers` adds (the optimizer's own are `self.{name}`)"
        raise AttributeError(complaint("formula", "rates", expected, f"rates.{name}"))

    def moved(self, new: Sequence[Expr], old: Sequence[Expr]) -> tuple[Expr, ...]:
        """`new`, for formulas that divide by the rate; `old` where that is 0."""
        at_all = fn.ne(self.lr, 0)
        return tuple(fn.where(at_all, n, o) for n, o in zip(new, old, strict=True))


class Item(NamedTuple):
    """A weight with its gradient and states; with `master`, that is what the formula is about."""

    weight: Any
    grad: Any
    states: tuple[Any, ...]
    master: Any = None

    def arrays(self) -> list[Any]:
        """All its arrays: the weight, the gradient, the states, the master copy."""
        return [self.weight, self.grad, *self.states, *self._masters()]

    def written(self) -> list[Any]:
        """All but the gradient."""
        return [self.weight, *self.states, *self._masters()]

    def _masters(self) -> list[Any]:
        return [] if self.master is None else [self.master]


class Given:
    """What is updated together, and what was found out of it, for when it comes again.

    State: `rates` are those of the last time, made of `numbers`. `counts` is the dictionary in
    which all of it has the count `count`; None where counts differ. `is_plain` says that no factor
    is on any rate, as of `changes` and the table `things`; `is_usual` that arrays are of the usual
    class, `is_sparse` that one is in sparse storage. `bound` is the work of `owner` on the arrays
    where they were in `memory`.
    """

    __slots__ = (
        "arrays", "bound", "changes", "count", "counts", "grads", "indices", "is_plain",
        "is_sparse", "is_steady", "is_usual", "items", "memory", "numbers", "owner", "rates",
        "states", "things", "weights",
    )  # fmt: skip

    def __init__(
        self,
        indices: Sequence[Any],
        weights: Sequence[Any],
        grads: Sequence[Any],
        states: Sequence[Any],
        items: Sequence[Item],
    ) -> None:
        self.indices, self.weights, self.grads, self.states = indices, weights, grads, states
        self.items = items
        self.arrays = [x for item in items for x in item.arrays()]
        self.is_usual = all(x.__class__ is Array.main for x in self.arrays)
        self.is_sparse = not self.is_usual and any(x.stype != "default" for x in self.arrays)
        if not self.is_usual:
            self._check_together()
        tuples = type(indices) is type(weights) is type(grads) is tuple
        self.is_steady = tuples and list not in map(type, states)
        self.rates: list[float] = []
        self.numbers: tuple[float, ...] | None = None
        self.counts: Any = None
        self.count = 0
        self.things: Any = None
        self.changes = -1
        self.is_plain = False
        self.owner: Any = None
        self.memory: list[Any] = []
        self.bound: Bound | None = None

    def _check_together(self) -> None:
        """Refuse arrays on several devices: one operation updates all of them."""
        first = self.items[0].weight.context
        for index, item in zip(self.indices, self.items, strict=True):
            where = f"update of {index!r}"
            whose = f"the weight of {self.indices[0]!r}"
            check_together(where, "weight", item.weight, first, whose)
            check_together(where, "grad", item.grad, first, "its weight")
            for state in item.written()[1:]:
                check_together(where, "state", state, first, "its weight")

    def same(
        self,
        indices: Sequence[Any],
        weights: Sequence[Any],
        grads: Sequence[Any],
        states: Sequence[Any],
    ) -> bool:
        """Whether these are the very same; lists never are, since what is in them may change."""
        return (
            self.is_steady
            and weights is self.weights
            and grads is self.grads
            and indices is self.indices
            and len(states) == len(self.states)
            and (states is self.states or all(map(is_, states, self.states)))
        )


class Bound:
    """The updates of some arrays as native work of their own, to be run one at a time."""

    __slots__ = (
        "_keep", "_last", "_memory", "_packed", "_pairs", "_places", "_rates", "_words", "reads",
        "step", "writes",
    )  # fmt: skip

    def __init__(self, batch: Batch, arrays: Sequence[Any], written: Sequence[int], count: int):
        self._memory = np.zeros(count, np.float64)
        self._places = _places(self._memory)
        self.step = batch.fixed([*(x._address for x in arrays), *self._places])
        self.step.keep = self.step.keep, self._memory  # as long as it may run
        self.writes = [arrays[k]._var for k in written]
        self.reads = [x._var for x in arrays if x._var not in self.writes]
        self._keep = list(arrays)
        self._rates, self._words = Struct(f"{count}d"), Struct(f"{count}q")
        self._last: Sequence[float] = ()  # the rates in memory
        self._packed: Sequence[float] = ()  # the rates that the pairs are of
        self._pairs: list[Pair] = []

    def put(self, rates: Sequence[float]) -> None:
        """Set the rates that the next run reads."""
        if rates is not self._last:
            self._last = ()
            self._rates.pack_into(self._memory, 0, *rates)
            self._last = rates

    def pairs(self, rates: Sequence[float]) -> list[Pair]:
        """What `put` puts where; from then on, what is in memory is not known."""
        self._last = ()
        if rates is not self._packed:
            words = self._words.unpack(self._rates.pack(*rates))
            self._pairs = list(zip(self._places, words, strict=True))
            self._packed = rates
        return self._pairs


#: takes over an update with its rates, and says whether it did
Join = Callable[[Bound, Sequence[float]], bool]


class FusedUpdates:
    """Batches of updates by a formula, kept by the layouts of what they update.

    Where an executor takes updates over, those of the same arrays are also kept by their places.
    """

    KEPT = 64
    KEPT_BOUND = 8

    def __init__(self, formula: Formula) -> None:
        self._formula = formula
        self._batches: dict[Any, tuple[Batch, list[int]]] = {}
        self._bound: dict[Any, Bound | None] = {}

    def push(self, given: Given, rates: Sequence[float], join: Join | None = None) -> None:
        """Update all items; `rates` are the factor on gradients, then the numbers of each."""
        items = given.items
        if join is not None and given.is_usual:
            bound = self._bound_to(given, len(rates))
            if bound is not None and join(bound, rates):
                return
        if not _overlap(items):
            self._push(items, given.arrays, rates)
            return
        width = (len(rates) - 1) // len(items)  # numbers of each update
        for start, item in zip(range(1, len(rates), width), items, strict=True):
            if overlapping(item.written(), [item.grad]):
                item = item._replace(grad=item.grad.copy())
            self._push([item], item.arrays(), [rates[0], *rates[start : start + width]])

    def _bound_to(self, given: Given, count: int) -> Bound | None:
        """The updates of these very arrays, by `count` rates; None where they share memory."""
        if given.owner is self and list(map(_MEMORY, given.arrays)) == given.memory:
            return given.bound
        key = (*map(_PLACE, given.arrays), *[x._layout for x in given.arrays])
        if key not in self._bound:
            made = None
            if not _overlap(given.items):
                made = Bound(*self._batch(given.items, given.arrays, count), count)
            if len(self._bound) >= self.KEPT_BOUND:
                self._bound.clear()
            self._bound[key] = made
        given.owner, given.bound = self, self._bound[key]
        given.memory = list(map(_MEMORY, given.arrays))
        return given.bound

    def _push(self, items: Sequence[Item], arrays: Sequence[Any], rates: Sequence[float]) -> None:
        batch, _, written = self._batch(items, arrays, len(rates))
        memory = np.array(rates, dtype=np.float64)
        batch.push(arrays, written, _places(memory), memory)

    def _batch(
        self, items: Sequence[Item], arrays: Sequence[Any], count: int
    ) -> tuple[Batch, Sequence[Any], list[int]]:
        """The batch for arrays of these layouts, the arrays, and which of them are written."""
        key = tuple([x._layout for x in arrays])
        if key not in self._batches:
            made = self._made(items, count), self._written(items)
            if len(self._batches) >= self.KEPT:
                self._batches.clear()
            self._batches[key] = made
        batch, written = self._batches[key]
        return batch, arrays, written

    @staticmethod
    def _written(items: Sequence[Item]) -> list[int]:
        numbers, start = [], 0
        for item in items:
            count = len(item.arrays())
            numbers += [start, *range(start + 2, start + count)]
            start += count
        return numbers

    def _made(self, items: Sequence[Item], count: int) -> Batch:
        width = (count - 1) // len(items)  # numbers of each update
        layouts = [x._layout for item in items for x in item.arrays()]
        shapes = [(len(item.arrays()), item.master is not None) for item in items]
        updates = {shape: partial(self._statements, *shape) for shape in shapes}

        def groups(buffers: Sequence[Buffer]) -> Iterator[Group]:
            memory = buffers[len(layouts) :]
            start = 0
            for number, shape in enumerate(shapes):
                own = flat(buffers[start : start + shape[0]])
                first = 1 + width * number
                operands = [*own, memory[0], *memory[first : first + width]]
                yield Group(operands, updates[shape])
                start += shape[0]

        return Batch("update", layouts, groups, [dense((1,), float64)] * count)

    def _statements(self, count: int, has_master: bool, operands: Sequence[Buffer]) -> list[Store]:
        """The update of one weight: `count` arrays come before the places of its numbers."""
        weight, grad, *rest = operands[:count]
        states = rest[:-1] if has_master else rest
        source = rest[-1] if has_master else weight
        rescale, lr, wd, *more = (
            _spread(place, source.shape, source.dtype) for place in operands[count:]
        )
        gradient = cast(grad, source.dtype) * rescale
        new, *new_states = self._formula(source, gradient, states, Rates(lr, wd, tuple(more)))
        stores = [Store(s, "saveto", v) for s, v in zip(states, new_states, strict=True)]
        if has_master:
            stores.append(Store(source, "saveto", new))
            new = cast(new, weight.dtype)
        return [Store(weight, "saveto", new), *stores]


def _spread(place: Buffer, shape: tuple[int, ...], dtype: DType) -> Expr:
    """The number in memory at `place` for every element of `shape`."""
    layout = strided(shape, (0,) * len(shape), place.dtype)
    spread = Buffer(shape, place.dtype, layout.strides, place.address, place.owner, place.device)
    return cast(spread, dtype)


def _places(memory: np.ndarray[Any, Any]) -> range:
    """The address of each number in `memory`."""
    start = memory.__array_interface__["data"][0]
    return range(start, start + memory.nbytes, memory.itemsize)


def _overlap(items: Sequence[Item]) -> bool:
    """Whether something that is written shares memory with anything else."""
    written = [x for item in items for x in item.written()]
    return overlapping(written, [item.grad for item in items])
