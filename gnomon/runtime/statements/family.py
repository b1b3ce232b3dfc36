"""Families: templates of the same kernels and products that differ in sizes and strides alone.

A kernel takes sizes and strides as arguments, so the template of a kernel's work for some sizes
serves for all others whose statements have the same structure: the words of its block that hold
them are written anew, with how the work is cut into tasks. A product is made anew by its sizes.
Nothing is planned for that, and no expression is read. That two statements do have the same
structure is for the caller to know.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gnomon.base import Later
from gnomon.expr.node import Buffer
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.kernel import Kernel
from gnomon.runtime.kernels.rebind import Where
from gnomon.runtime.kernels.template import SPACING, Place, Template
from gnomon.runtime.libraries.product import SIZES, Product

if TYPE_CHECKING:
    from gnomon.runtime.libraries import gemm
else:  # what has no product needs no library
    gemm = Later("gnomon.runtime.libraries.gemm")

Values = Mapping[Hashable, int]
Locate = Callable[[int], Where | None]  # where an address lies among operands


class Slot(NamedTuple):
    """What one of a family's steps is given: a kernel's argument, or the name of a size."""

    step: int
    name: Any  # hashable: a pair or more words of a kernel's, one word of a product's


class OfKernel:
    """A step of a kernel."""

    def __init__(self, step: Step, where: Sequence[Where]) -> None:
        self.where, self._name, self._bytes = where, step.name, step.bytes
        self.kernel, block, _, _, _, self.dims = step.keep
        self._words = tuple(block.words)

    def values(self) -> dict[Hashable, int]:
        """What its slots hold, and where leaves are within operands."""
        args = self.kernel.signature.args
        held = dict(zip(args, self._words[len(self._words) - len(args) :], strict=True))
        return {**held, **{("offset", k): w.offset for k, w in enumerate(self.where)}}

    def is_like(self, other: Any) -> bool:
        """Whether both are one kernel, on the same operands."""
        if not isinstance(other, OfKernel) or self.kernel is not other.kernel:
            return False
        return [w.operand for w in self.where] == [w.operand for w in other.where]

    def words(self, values: Values) -> tuple[list[int], int] | None:
        """What its block holds with these values, and the work; see `Kernel.words`."""
        found: tuple[list[int], int] | None = self.kernel.words(self._words, values)
        return found

    def blank(self) -> Step:
        """The same with nothing in its block."""
        step: Step = self.kernel.blank(self._name, len(self._words))
        return step

    def made(
        self, operands: Sequence[int], values: Values, times: float, owned: Sequence[Buffer] = ()
    ) -> Step:
        """The same with these values, so many times as large, on operands at other addresses, one
        for each leaf. These belong to the buffers `owned`, or are kept by others.
        """
        given = dict(values)
        for k, (at, w) in enumerate(zip(operands, self.where, strict=False)):
            given["leaf", k] = at + given.pop(("offset", k), w.offset)
        moved = round(self._bytes * times)
        step: Step = self.kernel.resized(self._name, self._words, given, moved, owned)
        return step


class OfProduct:
    """A library's step, of operands whose matrices of a batch have no gaps."""

    kernel, dims = None, ()

    def __init__(self, product: Product, where: Sequence[Where]) -> None:
        self._product, self.where = product, where

    def values(self) -> dict[Hashable, int]:
        """Its sizes by name."""
        return {name: getattr(self._product, name) for name in SIZES}

    def is_like(self, other: Any) -> bool:
        """Whether both are one product but for its sizes, on the same operands."""
        if not isinstance(other, OfProduct) or self.where != other.where:
            return False
        return self._product.resized(other.values()) == other._product

    def made(
        self, operands: Sequence[int], values: Values, times: float, owned: Sequence[Buffer] = ()
    ) -> Any:
        """The same of other sizes, on operands at other addresses; see `OfKernel.made`."""
        step = gemm.step(self._product.resized(values), owned)
        step.bind(*[at + w.offset for at, w in zip(operands, self.where, strict=True)])
        return step


class Family:
    """What templates share, read off the `first` of them and its steps.

    >>> import numpy as np
    >>> from gnomon.expr.node import Buffer
    >>> from gnomon.runtime.statements.prepare import Store, prepare
    >>> def make(addresses):
    ...     source, dest = (Buffer((3,), address=a) for a in addresses)
    ...     return prepare([Store(dest, "saveto", source * 2.0)])
    >>> family = family_of(Template(make, 2))
    >>> a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    >>> family.member({Slot(0, ("dim", 0)): 5}, moved=40).run([a.ctypes.data, b.ctypes.data])
    >>> b
    array([0., 2., 4., 6., 8.], dtype=float32)
    """

    __slots__ = ("_numbers", "bytes", "count", "places", "steps")

    def __init__(self, first: Template, steps: Sequence[OfKernel | OfProduct]) -> None:
        self.steps = steps
        self.count, self._numbers, self.bytes = first.count, first.numbers, first.bytes
        #: where addresses and numbers go; None where a library may take them elsewhere
        self.places = first.places if all(step.kernel for step in steps) else None

    def is_like(self, other: Family) -> bool:
        """Whether both do the same, but for sizes, strides and numbers."""
        if len(self.steps) != len(other.steps):
            return False
        pairs = zip(self.steps, other.steps, strict=True)
        return all(mine.is_like(theirs) for mine, theirs in pairs)

    def values(self) -> dict[Slot, int]:
        """What the first one's slots hold; sizes may be those of an axis."""
        found: dict[Slot, int] = {}
        for k, step in enumerate(self.steps):
            dims: dict[Hashable, int] = {("dim", number): n for number, n in enumerate(step.dims)}
            found |= {Slot(k, name): dims.get(name, n) for name, n in step.values().items()}
        return found

    def member(
        self, values: Mapping[Slot, int], moved: int, offsets: Sequence[int] = ()
    ) -> Template:
        """The template where sizes, strides and numbers, by slot, have other values.

        It moves `moved` bytes. Each operand begins `offsets` bytes behind its address, where these
        are given.
        """
        given: list[dict[Hashable, int]] = [{} for _ in self.steps]
        for (k, name), value in values.items():
            given[k][name] = value

        def make(addresses: Sequence[int], which: int = 0) -> list[Step]:
            made = []
            for step, mine in zip(self.steps, given, strict=True):
                # where places are known, the first one's stand-ins serve
                owners = [addresses[w.operand] for w in step.where] if places is None else ()
                made.append(step.made(owners, mine, moved / self.bytes))
            return made

        places = self.places
        if offsets and places is not None:
            places = [
                Place(block, word, k, offsets[k] if k < len(offsets) else offset)
                for block, word, k, offset in places
            ]
        return Template(make, self.count, self._numbers, places)


def family_of(template: Template) -> Family | None:
    """The family of a template that has not run yet; None where its work is something else than
    kernels and products of operands, or takes numbers beside products."""
    copy = template.reserve()
    template.give_back(copy)

    def stand_in(address: int) -> Where | None:
        k, x = divmod(address + SPACING // 2, SPACING)
        return Where(k - 1, x - SPACING // 2) if 1 <= k <= template.count else None

    steps = read(copy.steps, stand_in)
    if not steps:
        return None
    family = Family(template, steps)
    return family if family.places is not None or not template.numbers else None


def read(steps: Sequence[Step], locate: Locate) -> list[OfKernel | OfProduct] | None:
    """What steps do on operands; None where one does something else, or has temporaries."""
    found = [made for step in steps if (made := _read(step, locate)) is not None]
    return found if len(found) == len(steps) else None


def _read(step: Step, locate: Locate) -> OfKernel | OfProduct | None:
    keep = step.keep
    if type(step) is Step and Kernel.of(step) is not None:
        words, args = list(keep[1].words), keep[0].signature.args
        held = dict(zip(args, words[len(words) - len(args) :], strict=True))
        own = [held.get(("leaf", k), b.address) for k, b in enumerate(keep[3])]
        leaves = _every(own, locate)
        return None if leaves is None else OfKernel(step, leaves)
    found = _multiplied(keep) if hasattr(step, "bind") else None
    if found is None:
        return None
    product, operands = found[0], _every([b.address for b in found[1:]], locate)
    if operands is None or product != product.resized({}):
        return None
    return OfProduct(product, operands)


def _every(addresses: Sequence[int], locate: Locate) -> list[Where] | None:
    """Where all addresses lie; None where one lies elsewhere."""
    found = [where for at in addresses if (where := locate(at)) is not None]
    return found if len(found) == len(addresses) else None


def _multiplied(keep: Any) -> Any:
    """The product that a step computes and its operands, of what it keeps; None: no product."""
    if not isinstance(keep, (tuple, list)):
        return None
    if keep and isinstance(keep[0], Product):
        return keep
    return next((found for x in keep if (found := _multiplied(x)) is not None), None)
