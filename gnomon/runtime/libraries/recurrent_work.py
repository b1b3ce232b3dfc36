"""What the steps of recurrent layers are made of: products, kernels and copies, added one by one.

`Work` is what every device shares, `HostWork` the processor's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from gnomon.dtype import DType
from gnomon.expr.call.rnn import Areas, Layer
from gnomon.expr.node import Buffer
from gnomon.plan.cut import reach
from gnomon.plan.statement import Store, Structure
from gnomon.runtime import cpu_caches
from gnomon.runtime.execution.parallel_chains import parallel_chains
from gnomon.runtime.execution.program import Step
from gnomon.runtime.execution.repeated import Moved, repeated
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.kernels.rebind import OfKernel, kernel_of, locator, pattern
from gnomon.runtime.kernels.scratch import copied, temporary
from gnomon.runtime.kernels.template import blocks_of
from gnomon.runtime.libraries import gemm, tile
from gnomon.runtime.libraries.product import Product, product
from gnomon.shape import prod

_FEWEST = 3  # steps in time that native code goes through
_KEPT = 1024  # kernels that are known
_EARN = 64  # rows of all steps in time that packing the weights pays for


class Factor(NamedTuple):
    """The right operand of products: its columns, and how it lies."""

    stored: Buffer
    columns: int
    how: dict[str, Any]


Time = tuple[int, int, int]  # a step in time, and the states before and after it, by number
Make = Callable[..., list[Buffer]]
Stores = Callable[[], Sequence[Store]]
Chain = Sequence[Any]  # steps one after the other


_known: dict[Hashable, OfKernel] = {}


class Work(ABC):
    """The steps so far, and ways to add one."""

    def __init__(self, dtype: DType) -> None:
        self.steps: list[Any] = []
        self.dtype = dtype

    @abstractmethod
    def fresh(self) -> Work:
        """The same without steps."""

    @abstractmethod
    def temporary(self, shape: Sequence[int]) -> Buffer:
        """Memory for an array, which lives as long as the steps."""

    @abstractmethod
    def copied(self, buffer: Buffer) -> tuple[Buffer, list[Any]]:
        """A dense buffer, and the steps that copy `buffer` there."""

    @abstractmethod
    def kernel(self, stores: Sequence[Store], name: str) -> None:
        """One kernel with all these destinations."""

    def alike(self, what: Hashable, operands: Sequence[Buffer], stores: Stores, name: str) -> None:
        """The kernel of these stores; `what` says all about it but what the operands are."""
        self.kernel(stores(), name)

    @abstractmethod
    def multiply(self, what: Product, a: Buffer, b: Buffer, c: Buffer) -> None:
        """A product by a library."""

    def spread(self, chains: Sequence[Chain], name: str) -> None:
        """What several chains of steps do, at once where the device can."""
        for chain in chains:
            self.steps.extend(chain)

    def packs(self, layer: Layer, weights: int) -> bool:
        """Whether the weights are packed, of which each step reads so many numbers."""
        return False

    def each(self, times: Sequence[Time], make: Make, name: str, alike: bool) -> None:
        """What `make` adds for each of `times`, which follow each other.

        It gives the operands that lie elsewhere each time; times may be `alike` in all but these.
        """
        for time in times:
            make(self, *time)

    def dense(self, operand: Any) -> Buffer:
        """An operand without gaps: itself, or a copy."""
        assert isinstance(operand, Buffer)
        if operand.contiguous:
            return operand
        copy, making = self.copied(operand)
        self.steps.extend(making)
        return copy

    def rows(self, operand: Any) -> Buffer:
        """An operand whose rows, along its last axis, have no gaps: itself, or a copy."""
        dense = operand.strides[-1] == 1 and operand.strides[-2] >= operand.shape[-1]
        return operand if dense else self.dense(operand)

    def product(
        self, a: Buffer, b: Factor, c: Buffer, *, beta: float = 0.0, transpose_a: bool = False
    ) -> None:
        """c = a b + beta c; more than two axes of both count as rows, or as many products."""
        batch, strides = 1, None
        if a.contiguous and c.contiguous:
            a, c = flat(a), flat(c)
        elif len(a.shape) > 2:
            batch, strides = a.shape[0], (a.strides[0], 0, c.strides[0])
        m, k = a.shape[-2:][:: -1 if transpose_a else 1]
        what = product(
            self.dtype, m, b.columns, k, transpose_a=transpose_a, lda=a.strides[-2],
            ldc=c.strides[-2], beta=beta, batch=batch, strides=strides, **b.how,
        )  # fmt: skip
        self.multiply(what, a, b.stored, c)

    def factors(self, packed: bool, **matrices: tuple[Any, bool]) -> dict[str, Factor]:
        """Right operands of products, `packed` or as they are; those marked are transposed."""
        found = {}
        for name, (operand, turned) in matrices.items():
            matrix = self.dense(operand)
            columns = matrix.shape[0 if turned else 1]
            found[name] = Factor(matrix, columns, {"transpose_b": turned})
        return found


class HostWork(Work):
    """Work of the processor."""

    def fresh(self) -> Work:
        return HostWork(self.dtype)

    def temporary(self, shape: Sequence[int]) -> Buffer:
        return temporary(Buffer(shape, self.dtype))

    def copied(self, buffer: Buffer) -> tuple[Buffer, list[Any]]:
        return copied(buffer)

    def kernel(self, stores: Sequence[Store], name: str) -> None:
        self.steps.append(_bound(stores, name))

    def alike(self, what: Hashable, operands: Sequence[Buffer], stores: Stores, name: str) -> None:
        """As `Work.alike`; where one was made before no expression is read."""
        same = pattern(operands)
        layouts = tuple([(b.shape, b.strides) for b in operands])
        key = what, self.dtype, layouts, same
        known = None if same is None else _known.get(key)
        if known is not None:
            owned = [operands[w.operand] for w in known.where]
            self.steps += known.made([b.address for b in owned], {}, 1.0, owned)
            return
        self.kernel(stores(), name)
        made = kernel_of(self.steps[-1], locator(operands))
        if same is not None and made is not None:
            if len(_known) >= _KEPT:
                _known.clear()
            _known[key] = made

    def multiply(self, what: Product, a: Buffer, b: Buffer, c: Buffer) -> None:
        made = gemm.step(what, keep=(a, b, c))
        made.bind(a.address, b.address, c.address)
        self.steps.append(made)

    def packs(self, layer: Layer, weights: int) -> bool:
        return packs(layer, self.dtype, weights)

    def each(self, times: Sequence[Time], make: Make, name: str, alike: bool) -> None:
        """As `Work.each`; native code goes through times that are alike."""
        if not alike or len(times) < _FEWEST:
            super().each(times, make, name, alike)
            return
        works = HostWork(self.dtype), HostWork(self.dtype)
        operands = [make(work, *time) for work, time in zip(works, times, strict=False)]
        blocks = ([b for s in work.steps for b in blocks_of(s)] for work in works)
        moved = starmap(_moved, zip(*operands, strict=True))
        pairs = zip(*blocks, strict=True)
        self.steps.append(repeated(works[0].steps, pairs, list(moved), len(times), name))

    def factors(self, packed: bool, **matrices: tuple[Any, bool]) -> dict[str, Factor]:
        if not packed:
            return super().factors(packed, **matrices)
        found, chains = {}, []
        for name, (operand, turned) in matrices.items():
            matrix = self.dense(operand)
            inner, columns = matrix.shape[:: -1 if turned else 1]
            strides = (1, inner) if turned else (columns, 1)
            seen = Buffer((inner, columns), matrix.dtype, strides, matrix.address, matrix)
            panels, packing = tile.panels(seen)
            work = self.fresh()
            work.alike("pack", [seen, panels], packing, "pack")
            chains.append(work.steps)
            found[name] = Factor(panels, columns, {"packed": True})
        self.spread(chains, "pack")
        return found

    def spread(self, chains: Sequence[Chain], name: str) -> None:
        """What several chains of steps do, at once; one chain step by step."""
        if len(chains) < 2:
            super().spread(chains, name)
        else:
            self.steps.append(parallel_chains(chains, name))


def _moved(first: Buffer, second: Buffer) -> Moved:
    (begin, end), (then, _) = reach(first), reach(second)
    return Moved(begin, then, end - begin)


def _bound(stores: Sequence[Store], name: str) -> Step:
    """The step of one kernel with all these destinations."""
    structure = Structure(stores)
    return CACHE.get(stores, structure).bind(structure, name)


def packs(layer: Layer, dtype: DType, weights: int) -> bool:
    """Whether the processor packs the weights, of which each step reads so many numbers.

    Larger ones than a core's cache pass by it in every step, whichever way they lie: two layers of
    650 states then take 1.1 times the time of products by a library.
    """
    many = layer.batch > 1 and layer.steps * layer.batch >= _EARN
    return many and tile.packs(dtype) and weights * dtype.size <= cpu_caches.own()


def flat(matrix: Buffer) -> Buffer:
    """A buffer seen as rows: itself where it has two axes."""
    if len(matrix.shape) == 2:
        return matrix
    shape = prod(matrix.shape[:-1]), matrix.shape[-1]
    return Buffer(shape, matrix.dtype, None, matrix.address, matrix, matrix.device)


def area(vector: Buffer, areas: Areas, name: str) -> Buffer:
    """The array `name` in the vector."""
    address = vector.address + areas.starts[name] * vector.dtype.size
    return Buffer(areas.shapes[name], vector.dtype, None, address, vector, vector.device)


def part(array: Buffer, axis: int, begin: int, end: int) -> Buffer:
    """The elements from `begin` to `end` along an axis."""
    shape = list(array.shape)
    shape[axis] = end - begin
    address = array.address + begin * array.strides[axis] * array.dtype.size
    return Buffer(shape, array.dtype, array.strides, address, array, array.device)


def slot(states: Buffer, k: int) -> Buffer:
    """`states[k]`."""
    address = states.address + k * states.strides[0] * states.dtype.size
    shape, strides = states.shape[1:], states.strides[1:]
    return Buffer(shape, states.dtype, strides, address, states, states.device)


def parts(gates: Buffer, count: int) -> list[Buffer]:
    """An array as `count` of them side by side along its last axis."""
    size = gates.shape[-1] // count
    return [part(gates, -1, k * size, (k + 1) * size) for k in range(count)]
