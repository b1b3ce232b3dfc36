"""Families of statements: what was made for some sizes serves those of other sizes.

A statement of an outline (see `outline_code.py`) that comes for the first time goes the whole way;
so do the first of other sizes, and two more. Each is compared with the one before: a word of the
kernel's argument block that grew as a product of sizes did is this product (`growth.py`), others
have to be the same in both. Where two comparisons tell the same, so that none tells it by chance,
members that come for the first time, and are small, run by one native call that takes their sizes
as they are; those that come again have a launch of their own, which need not look at sizes.

State: `FAMILIES`, by outline: a `Sample`, which came; `Known`; False where there is no refill. It
is emptied when it is full, and the members that came, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from gnomon.expr.composite import Call, Composite
from gnomon.expr.node import Buffer, Expr, Scalar
from gnomon.expr.pattern import EPOCH
from gnomon.expr.walk import postorder
from gnomon.native.serve import Later
from gnomon.plan.statement import Store, identity
from gnomon.runtime.kernels.rebind import OfKernel
from gnomon.runtime.kernels.refill import FACTORS, Refill, Word
from gnomon.runtime.statements.family import Family, Slot, family_of
from gnomon.runtime.statements.growth import Growth, Product
from gnomon.runtime.statements.launch import NoLaunch, template_of, tied, work_of
from gnomon.runtime.statements.outline_code import (
    CAME,
    FAMILIES,
    KEPT,
    LEAVES,
    NUMBERS,
    Known,
    run_as,
)

TRIES = 8  # members that are compared before it is given up
WORTH = 200  # statements of unknown shapes before native code is compiled

_runner = Later(run_as, False, WORTH)


class Sample(NamedTuple):
    """A member that went the whole way: its sizes, and what was found by it."""

    sizes: tuple[int, ...]
    leaves: tuple[tuple[int, ...], ...] = ()  # of each leaf, its strides
    dims: frozenset[int] = frozenset()  # the numbers of sizes that are no strides alone
    family: Family | None = None
    operands: tuple[int, ...] = ()  # of each operand of the template, the leaf,
    numbers: tuple[int, ...] = ()  # of each number, which one
    words: tuple[Word, ...] = ()  # of the kernel, as this one and the one before tell
    tries: int = 0

    @property
    def kernel(self) -> OfKernel:
        """What the family does."""
        assert self.family is not None
        (kernel,) = self.family.steps
        assert isinstance(kernel, OfKernel)
        return kernel


def way(saver: str, dest: Buffer, value: Expr) -> Any:
    """As `run_as`."""
    return _runner.way(saver, dest, value)


def forget() -> None:
    """Let members of all families go the whole way again."""
    FAMILIES.clear()
    CAME.clear()


def learn(statement: Store, found: tuple[Any, ...], epoch: int) -> None:
    """Note a statement that went the whole way: outline, sizes, leaves and numbers of an epoch."""
    outline, sizes, leaves, numbers = found
    known = FAMILIES.get(outline)
    before: Any = known.last if isinstance(known, Known) else known
    if before is None:
        if len(FAMILIES) >= KEPT:
            forget()
        FAMILIES[outline] = Sample(sizes)
        return
    if before is False or before.sizes == sizes:
        return
    try:
        sample = _sample(statement, sizes, leaves, numbers)
    except NoLaunch:
        sample = None
    except Exception:
        if epoch == EPOCH.value:
            raise
        return
    if epoch == EPOCH.value:
        FAMILIES[outline] = False if sample is None else _next(before, sample)


def _next(before: Sample, sample: Sample) -> Any:
    """What is known of a family by one more member."""
    if before.family is None:
        return sample
    words = _words(before, sample)
    if words is None or words != before.words:
        last = before if words is None and before.words else sample._replace(words=words or ())
        return last._replace(tries=before.tries + 1) if before.tries < TRIES else False
    refill = Refill(sample.kernel.kernel, words, sample.family)
    pairs = enumerate(zip(before.sizes, sample.sizes, strict=True), 1)
    fixed = chain.from_iterable((k, now) for k, (then, now) in pairs if then == now)
    return Known(refill, tuple(fixed), sample._replace(words=words))


def _sample(
    statement: Store, sizes: tuple[int, ...], leaves: Sequence[Buffer], numbers: Sequence[Scalar]
) -> Sample | None:
    """What a member tells; None where it is not the work of one kernel on its leaves alone."""
    order = postorder([statement.value])
    composites = [node for node in order if isinstance(node, Composite)]
    if any(isinstance(node, Call) or node.rereads for node in composites):
        return None  # what is kept in memory depends on sizes
    work = work_of(statement)
    buffers = [place.buffer for place in work.places]
    regions = tied(buffers, {0})
    if any(identity(b) != identity(buffers[o]) for b, (o, _) in zip(buffers, regions, strict=True)):
        return None
    given = [scalar for _, scalar in work.numbers]
    family = family_of(template_of(buffers, given, regions, work.steps))
    if family is None or len(family.steps) > 1 or family.places is None:
        return None
    owners = dict.fromkeys(owner for owner, _ in regions)
    known = {identity(leaf): k for k, leaf in enumerate(leaves)}
    scalars = {id(scalar): k for k, scalar in enumerate(numbers)}
    shapes = chain(*(b.shape for b in leaves), *(n.shape for n in order))
    dims = {*shapes, *chain(*(node.size_values() for node in composites))}
    return Sample(
        sizes,
        tuple([leaf.strides for leaf in leaves]),
        frozenset([k for k, n in enumerate(sizes) if n in dims]),
        family,
        tuple([known[identity(buffers[owner])] for owner in owners]),
        tuple([scalars[id(scalar)] for scalar in given]),
    )


# -- refills ------------------------------------------------------------------------------------


def _words(then: Sample, now: Sample) -> tuple[Word, ...] | None:
    """The words of the kernel's arguments that two members tell; None where one is not told."""
    assert then.family is not None and now.family is not None
    alike = then.family.is_like(now.family) and then.family.places == now.family.places
    if not alike or then.operands != now.operands or then.dims != now.dims:
        return None
    grown, kernel = _Grown(then, now), now.kernel
    words = [grown.word(k, name) for k, name in enumerate(kernel.arguments, kernel.kernel.first)]
    known = [word for word in words if word is not None]
    return tuple(known) if len(known) == len(words) else None


class _Grown:
    """How words of a kernel's arguments follow from sizes, by two members."""

    def __init__(self, then: Sample, now: Sample) -> None:
        assert then.family is not None and now.family is not None
        self._then, self._now = then, now
        self._values = then.family.values(), now.family.values()
        self._places = {place.word: place for place in now.family.places or ()}
        self._count = now.family.count
        self._growths: dict[tuple[int, ...], Growth] = {}

    def word(self, k: int, name: Any) -> Word | None:
        """The word `k` of the block, an argument of this name; None where it is not told."""
        place = self._places.get(k)
        if place is not None and place.operand < self._count:
            return Word(1, place.offset, (LEAVES + self._now.operands[place.operand],))
        if place is not None:
            return Word(1, 0, (NUMBERS + self._now.numbers[place.operand - self._count],))
        before, after = (int(values[Slot(0, name)]) for values in self._values)
        if name[0] not in ("dim", "stride"):
            return Word(0, after) if before == after else None
        product = self._product(before, after, name)
        if product is None or len(product.axes) > FACTORS:
            return None
        return Word(product.times, 0, tuple([axis + 1 for axis in product.axes]))

    def _product(self, before: int, after: int, name: Any) -> Product | None:
        """What a size or a stride is: in a stride may be those of its leaf.

        One that stayed the same is a number where no product of sizes that grew did: 2 by 6 are as
        many as 3 by 4.
        """
        own = self._strides(name[1][1]) if name[0] == "stride" else []
        for k in own:
            if (self._then.sizes[k], self._now.sizes[k]) == (before, after):
                return Product((k,), 1)
        axes = tuple(sorted({*self._now.dims, *own}))
        growth = self._growths.get(axes)
        then, now = (tuple([s.sizes[k] for k in axes]) for s in (self._then, self._now))
        if growth is None:
            growth = self._growths[axes] = Growth(then, now)
        if before == after:
            return Product((), after) if growth.is_clear or then == now else None
        found = growth.product(before, after) if growth.is_clear else None
        return found and Product(tuple([axes[k] for k in found.axes]), found.times)

    def _strides(self, leaf: int) -> list[int]:
        """The numbers of sizes that are strides of a leaf of the kernel."""
        which = self._now.operands[self._now.kernel.where[leaf].operand]
        then, now = (
            [s.sizes.index(n) if n in s.sizes else -1 for n in s.leaves[which]]
            for s in (self._then, self._now)
        )
        return [k for k, j in zip(then, now, strict=True) if k == j >= 0]
