"""Families of statements: what was made for some sizes serves those of other sizes.

A statement of an outline (see `outline_code.py`) that comes for the first time goes the whole way;
so does the first of other sizes, and one more. These two are compared: a word of the kernel's
argument block that grew as a product of sizes did is this product (`growth.py`), others have to be
the same in both. From then on members that come for the first time, and are small, run by one
native call that takes their sizes as they are; those that come again have a launch of their own,
which need not look at sizes.

State: `FORMS`, by outline: a `Sample`, which came; a `Form`; False where there is none. It is
emptied when it is full, and the members that came, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.expr.composite import Call, Composite
from gnomon.expr.node import Buffer, Scalar
from gnomon.expr.pattern import EPOCH
from gnomon.expr.walk import postorder
from gnomon.native.serve import Later
from gnomon.plan.signature import OPS, Signature
from gnomon.plan.statement import Store, identity
from gnomon.runtime.ffi import Block
from gnomon.runtime.statements.family import Family, Slot, family_of
from gnomon.runtime.statements.growth import Growth, Product
from gnomon.runtime.statements.launch import NoLaunch, kind_of, template_of, tied, work_of
from gnomon.runtime.statements.outline_code import (
    ARGUMENT,
    CAME,
    CONSTANT,
    FORMS,
    KEPT,
    LEAF,
    NUMBER,
    PRODUCT,
    Form,
    run_as,
)

TRIES = 8  # members that are compared before it is given up
WORTH = 200  # statements of unknown shapes before native code is compiled
_AXES = 4  # of a product

_runner = Later(run_as, False, WORTH)


class Sample(NamedTuple):
    """A member that went the whole way: its sizes, and what was found by it."""

    sizes: tuple[int, ...]
    leaves: tuple[tuple[int, ...], ...] = ()  # of each leaf, its strides
    dims: frozenset[int] = frozenset()  # the numbers of sizes that are no strides alone
    family: Family | None = None
    operands: tuple[int, ...] = ()  # of each operand of the template, the leaf,
    numbers: tuple[tuple[int, int], ...] = ()  # of each number the scalar, and its kind
    tries: int = 0


def way(saver: str, dest: Buffer, value: Any) -> Any:
    """As `run_as`."""
    return _runner.way(saver, dest, value)


def forget() -> None:
    """Let members of all families go the whole way again."""
    FORMS.clear()
    CAME.clear()


def learn(statement: Store, found: tuple[Any, ...]) -> None:
    """Note a statement that went the whole way, of this outline, sizes, leaves and numbers."""
    outline, sizes, leaves, numbers = found
    known = FORMS.get(outline)
    before: Sample | None = known.keep[0] if isinstance(known, Form) else known
    if before is None:
        if len(FORMS) >= KEPT:
            forget()
        FORMS[outline] = Sample(sizes)
        return
    if before is False or before.sizes == sizes:
        return
    epoch = EPOCH.value
    try:
        sample = _sample(statement, sizes, leaves, numbers)
    except (NoLaunch, GnomonError):
        sample = None
    if epoch != EPOCH.value:
        return
    FORMS[outline] = False if sample is None else _next(before, sample)


def _next(before: Sample, sample: Sample) -> Any:
    """What is known of a family by one more member."""
    if before.family is None:
        return sample
    form = _form(before, sample)
    if form is not None:
        return form
    return sample._replace(tries=before.tries + 1) if before.tries < TRIES else False


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
    family = family_of(template_of(work, regions))
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
        tuple([(scalars[id(scalar)], kind_of(scalar)) for _, scalar in work.numbers]),
    )


# -- forms ------------------------------------------------------------------------------------


def _form(then: Sample, now: Sample) -> Form | None:
    """The form that two members tell; None where they do not tell one."""
    assert then.family is not None and now.family is not None
    (kernel,) = now.family.steps
    signature: Signature = kernel.kernel.signature
    alike = then.family.is_like(now.family) and then.family.places == now.family.places
    if not alike or then.operands != now.operands or then.dims != now.dims:
        return None
    rows = _arguments(then, now, signature)
    if rows is None:
        return None
    pairs = enumerate(zip(then.sizes, now.sizes, strict=True), 1)
    fixed = [(k, n) for k, (before, n) in pairs if before == n]
    return _written(now, signature, rows, fixed)


def _arguments(then: Sample, now: Sample, signature: Signature) -> list[list[int]] | None:
    """The rows of the arguments of a kernel."""
    assert then.family is not None and now.family is not None
    (kernel,) = now.family.steps
    begin = len(kernel.kernel.signature.phases) * 4 + 1
    places = {place.word - begin: place for place in now.family.places or ()}
    grown = _Grown(then, now)
    before, after = then.family.values(), now.family.values()
    rows: list[list[int]] = []
    for k, name in enumerate(signature.args):
        place, slot = places.get(k), Slot(0, name)
        if place is not None and place.operand < now.family.count:
            row = [LEAF, now.operands[place.operand], place.offset]
        elif place is not None:
            scalar, kind = now.numbers[place.operand - now.family.count]
            row = [NUMBER + kind, scalar]
        elif before[slot] == after[slot]:
            row = [CONSTANT, int(after[slot])]
        elif name[0] in ("dim", "stride"):
            leaf = None
            if name[0] == "stride":
                leaf = now.operands[kernel.where[name[1][1]].operand]
            product = grown.product(int(before[slot]), int(after[slot]), leaf)
            if product is None:
                return None
            row = [PRODUCT, product.times, *[axis + 1 for axis in product.axes]]
        else:
            return None
        rows.append(row + [0] * (ARGUMENT - len(row)))
    return rows


class _Grown:
    """Which products of sizes numbers are, by two members."""

    def __init__(self, then: Sample, now: Sample) -> None:
        self._then, self._now = then, now
        self._growths: dict[tuple[int, ...], Growth] = {}

    def product(self, before: int, after: int, leaf: int | None) -> Product | None:
        """What a number is that grew; of a stride, those of its leaf may be in it."""
        axes = sorted(self._now.dims)
        if leaf is not None:
            then, now = (
                [s.sizes.index(n) if n in s.sizes else -1 for n in s.leaves[leaf]]
                for s in (self._then, self._now)
            )
            own = [k for k, j in zip(then, now, strict=True) if k == j and k >= 0]
            for k in own:
                if (self._then.sizes[k], self._now.sizes[k]) == (before, after):
                    return Product((k,), 1)
            axes = sorted({*axes, *own})
        growth = self._growths.get(tuple(axes))
        if growth is None:
            sizes = [tuple([s.sizes[k] for k in axes]) for s in (self._then, self._now)]
            growth = self._growths[tuple(axes)] = Growth(*sizes)
        found = growth.product(before, after) if growth.is_clear else None
        if found is None or len(found.axes) > _AXES:
            return None
        return Product(tuple([axes[k] for k in found.axes]), found.times)


def _written(
    sample: Sample,
    signature: Signature,
    rows: Sequence[Sequence[int]],
    fixed: Sequence[tuple[int, int]],
) -> Form:
    """A form in words."""
    assert sample.family is not None
    (kernel,) = sample.family.steps
    step = kernel.blank()
    steps = [(OPS.index(op), *operands, 0)[:3] for op, operands in signature.steps]
    phases, keep = _phases(signature)
    tables = [
        Block([w for row in part for w in row] or 1) for part in (rows, steps, phases, fixed)
    ]
    words: list[int] = []
    for part, table in zip((rows, steps, phases, fixed), tables, strict=True):
        words += [len(part), table.address]
    count = len(rows) + 4 * len(phases) + len(steps)
    needs = Block([piece.elements for piece in signature.scratch] or 1)
    words += [step.function, step.block, 1 + 4 * len(phases), count]
    words += [len(signature.scratch), needs.address]
    record = Block(words)
    return Form(record.address, (sample, record, tables, keep, needs, step))


def _phases(signature: Signature) -> tuple[list[list[int]], list[Block]]:
    """The rows of a kernel's phases, and the tables that they point to."""
    rows, keep = list[list[int]](), list[Block]()
    for loops in signature.phases:
        inner = -1 if loops.inner is None else loops.inner
        more = Block([*loops.rows, *_costs(loops.cost)] or 1)
        keep.append(more)
        row = [inner, loops.split, loops.columns, len(loops.rows), more.address, len(loops.cost)]
        rows.append(row)
    return rows, keep


def _costs(costs: Sequence[tuple[int, int | None]]) -> Iterator[int]:
    for work, times in costs:
        yield from (work, -1 if times is None else times)
