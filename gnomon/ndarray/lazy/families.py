"""Recipes of one family: what was made for operands of some shape serves those of other shapes.

What an operator does is told here apart from sizes, where it says how: by an outline. A map of
dense operands has one axis; what moves elements, or stretches them, has those that memory does not
allow to join, with a stride of each operand along each; a reduction has those that are kept and
reduced by turns. Outlines of one key are the work of one kernel, whose arguments are their sizes,
strides and numbers. That the kernel takes these and no others, in these places, is looked at when
the first recipe is made, by the usual way: where it is not so, each shape has a recipe of its own.

Of others the operator says which sizes do nothing but count (`Op.free`). Two recipes of the usual
way, whose sizes differ, tell where these go: to what grew as a product of them did (`growth.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

from gnomon import config
from gnomon.base import GnomonError
from gnomon.dtype import DType
from gnomon.expr.layout import UNIT
from gnomon.expr.node import Scalar
from gnomon.ndarray.core.bounded_cache import RECIPES
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.lazy.infer import infer
from gnomon.ndarray.lazy.landing import Passage, passage_of
from gnomon.ndarray.lazy.numbers import Number
from gnomon.ndarray.lazy.recipe import Recipe, Work, template_for
from gnomon.ops.infer import Free
from gnomon.plan.canonical import WORDS, form_of
from gnomon.plan.statement import Axis
from gnomon.plan.view import merged
from gnomon.runtime.kernels.kernel import bits
from gnomon.runtime.kernels.template import Template
from gnomon.runtime.statements.family import Family, Slot, family_of
from gnomon.runtime.statements.growth import Growth, Product
from gnomon.shape import prod, row_major

Shape = tuple[int, ...]
Make = Callable[[], tuple[Work, Any]]


class Outline(NamedTuple):
    """What work is: all that its kernel depends on, and all that this is given.

    `strides` has those of each operand along the axes of `sizes`, `offsets` how many bytes further
    than its first element each begins; the numbers follow from sizes.
    """

    key: Hashable
    shape: Shape  # of the result
    sizes: Sequence[int]
    strides: Sequence[Sequence[int]] = ()
    offsets: Sequence[int] = ()
    numbers: Sequence[float] = ()
    maps: bool = True  # each operand has an element for each of the result's
    free: Free | None = None  # of an operator that says it: `sizes` are its


class Kin(NamedTuple):
    """What the recipes of a family share, and where the kernel takes what."""

    family: Family
    numbers: list[Number]
    sizes: list[tuple[Slot, Product]]  # slots, and what they are given
    strides: list[tuple[Slot, int, int]]  # slots, operands and axes
    scalars: list[Slot]  # slots
    dtype: DType  # of the result
    width: int = 0  # bytes moved for an element of the result; 0 where others count too
    fixed: Sequence[tuple[int, int]] = ()  # axes, and the sizes that they need to have
    passage: Passage | None = None


class Seen(NamedTuple):
    """One of those whose sizes count, and what was found by it and others."""

    sizes: Sequence[int]
    family: Family
    size: int  # of the result
    kins: list[Kin]  # the last first


MOST = 8  # kins of one key
_known: dict[Any, Kin | Seen | None] = {}  # None: there is no family


# -- outlines ---------------------------------------------------------------------------------


def flat(key: Hashable, layout: Layout) -> Outline:
    """A map of dense operands of one shape."""
    return Outline(key, layout.shape, (layout.size,))


def moving(op: Any, data: Layout) -> Outline | None:
    """An operator whose result has elements of `data` in other places."""
    shape, axes, steps, begin = op.moves(data.shape)
    theirs = data.steps()
    strides = [0 if a < 0 else theirs[a] * s for a, s in zip(axes, steps, strict=True)]
    offset = sum(b * s for b, s in zip(begin, theirs, strict=False)) * data.dtype.size
    return spreading(_moved(data), shape, [strides], [offset, 0])


def _moved(data: Layout) -> Hashable:
    """What moves elements does so with their bits, whatever they mean."""
    return "moved", WORDS.get(data.dtype, data.dtype)


def reshaping(op: Any, data: Layout) -> Outline | None:
    """The elements of dense data in another shape."""
    return _in_order(infer(op, [data])[0][0], data)


def _in_order(shape: Shape, data: Layout) -> Outline | None:
    """Dense data as it is, as a result of this shape."""
    if data.strides is not None:
        return None
    return spreading(_moved(data), shape, [row_major(shape)], [0, 0])


def of_gradient(gradient: Any, train: bool, wanted: tuple[int, ...], work: Work) -> Outline | None:
    """The gradients of a map, or of an operator that moves, reshapes or joins: dense, and apart
    from what is read. None where they are something else, or its class says them itself."""
    op, first = gradient.op, work.layouts[0]
    if not op.is_expression or not first.size or not _is_plain(work):
        return None
    savers = tuple([dest.saver for dest in work.dests])
    if op.free is not None:
        what = "gradient", op, gradient.flow, train, wanted, savers
        return _counted(what, op.free(*gradient.shapes[0]), work)
    if not op.derives:
        return None
    if op.elementwise and all(x.shape == first.shape for x in work.layouts):
        types = tuple([x.dtype for x in work.layouts])
        return flat(("gradient", op, gradient.flow, train, wanted, savers, types), first)
    if savers != ("saveto",) or len(work.layouts) != 2 or op.elementwise:
        return None
    shape = gradient.shapes[0][0]
    if op.reshapes:
        return _in_order(shape, first)
    if op.reduces is not None:
        return _spread_back(op, shape, first, work.layouts[1])
    return None if op.moves is None else _moved_back(op.moves(shape), shape, first)


def of_forward(op: Any, train: bool, work: Work) -> Outline | None:
    """An operator that says which sizes do nothing but count; None of another, or of its numbers,
    or where operands have gaps."""
    if op.free is None or work.probes or not _is_plain(work):
        return None
    free = op.free(*[x.shape for x in work.layouts[: work.first]])
    return _counted(("forward", op, train), free, work)


def _is_plain(work: Work) -> bool:
    """Whether all operands are dense, and apart."""
    apart = all(anchor == (k, 0) for k, anchor in enumerate(work.anchors))
    return apart and all(x.strides is None for x in work.layouts)


def _counted(what: Hashable, free: Free | None, work: Work) -> Outline | None:
    """Work of which these sizes do nothing but count, equal ones being one."""
    if free is None or min(free.sizes, default=0) < 2 or 0 in (*free.fixed, *free.spans):
        return None
    types = [(x.dtype, len(x.shape)) for x in work.layouts]
    fixed = *free.fixed, *free.spans
    every = [*_runs(free.sizes), *fixed]  # kernels take equal ones as one
    libraries = config.get("onednn")  # products count on those that there were
    key = (what, tuple(map(every.index, every)), fixed, libraries, *types)
    return Outline(key, (), free.sizes, maps=False, free=free)


def _runs(sizes: Sequence[int]) -> list[int]:
    """Sizes, and those that neighbours join to.

    >>> _runs((2, 3, 5))
    [2, 3, 5, 6, 15, 30]
    """
    count = len(sizes)
    return [prod(sizes[k : k + n]) for n in range(1, count + 1) for k in range(count + 1 - n)]


def _moved_back(moves: Any, shape: Shape, data: Layout) -> Outline | None:
    """The elements of dense `data` where they were in `shape`; None where not all axes moved."""
    apart = any(n != 1 for n in moves.steps) or any(moves.begin) or data.shape != moves.shape
    axes = list(moves.axes)
    if apart or sorted(axes) != list(range(len(shape))) or data.size != prod(shape):
        return None
    steps = data.steps()
    strides = [steps[axes.index(a)] for a in range(len(shape))]
    return spreading(_moved(data), shape, [strides], [0, 0])


def _spread_back(op: Any, shape: Shape, head: Layout, dest: Layout) -> Outline | None:
    """The gradient of what joined axes of `shape`: that of its result, along them; what divides by
    their sizes is a kernel over all axes."""
    axes, _ = op.reduces(shape)
    if not axes or 1 in shape:
        return None
    rest = iter(row_major([n for a, n in enumerate(shape) if a not in axes]))
    strides = [0 if a in axes else next(rest) for a in range(len(shape))]
    what = ("spread", op.alike, head.dtype, dest.dtype)
    numbers = [1 / n for n in op.counted(prod([shape[a] for a in axes]))]
    if not numbers:
        return spreading(what, shape, [strides], [0, 0])
    key = (what, tuple(map(shape.index, shape)), axes)
    return Outline(key, shape, shape, [strides, row_major(shape)], [0, 0], numbers, maps=False)


def spreading(
    what: Hashable,
    shape: Shape,
    strides: list[Sequence[int]],
    offsets: Sequence[int] = (),
    results: int = 1,
) -> Outline | None:
    """A map of operands that have these strides over `shape`, the results being dense."""
    if 0 in shape:
        return None
    dest = row_major(shape)
    every = [*strides, *[dest] * results]
    form = form_of(shape, dest, every)
    sizes = form.sizes
    if form.layouts.count((UNIT,)) == len(form.layouts):
        return Outline((what, "flat"), shape, sizes, (), offsets)
    equal = form.across and sizes[0] == sizes[1]
    key = (what, len(sizes), equal, *form.layouts)
    return Outline(key, shape, sizes[:1] if equal else sizes, form.strides, offsets)


def reducing(op: Any, data: Layout) -> Outline | None:
    """A reduction of dense data; one over no axes, as `exclude` may have it, is a map."""
    if data.strides is not None or not data.size:
        return None
    axes, shape = op.reduces(data.shape)
    if not axes:
        return None
    sizes, gone = merged(data.shape, axes)
    count = 1
    for n, along in zip(sizes, gone, strict=True):
        count *= n if along else 1
    key = (op.alike, data.dtype, tuple(gone))
    return Outline(key, shape, sizes, (), (), op.counted(count), maps=False)


# -- recipes ----------------------------------------------------------------------------------


def recipe_of_one(op: Any, data: Layout, make: Make) -> Recipe | None:
    """The recipe of an operator that moves, reshapes or reduces; None where it has no outline.

    `make` gives its work, and what the recipe remembers.
    """
    outlined = (
        moving if op.moves else reducing if op.reduces else reshaping if op.reshapes else None
    )
    if outlined is None:
        return None
    try:
        outline = outlined(op, data)
    except GnomonError:  # the usual way tells what is wrong
        return None
    if outline is None:
        return None
    kin = _kin_of(outline)
    if kin is None:
        work, given = make()
        return _first(outline, work, given)
    layout = dense(outline.shape, data.dtype if op.reduces is None else kin.dtype)
    return _member(kin, outline, (data, layout), 1, ([layout], []))


def recipe_like(outline: Outline | None, work: Work, given: Any) -> Recipe:
    """The recipe of a work with this outline, or none; it remembers what is `given`."""
    kin = None if outline is None else _kin_of(outline)
    if outline is None or kin is None:
        return _first(outline, work, given)
    return _member(kin, outline, work.layouts, work.first, given)


def _kin_of(outline: Outline) -> Kin | None:
    """What is known of an outline's family; None where it is made the usual way."""
    known = _known.get(outline.key)
    if not isinstance(known, Seen):
        return known
    sizes = outline.sizes
    return next((k for k in known.kins if all(sizes[axis] == n for axis, n in k.fixed)), None)


def _member(
    kin: Kin, outline: Outline, layouts: Sequence[Layout], first: int, given: Any
) -> Recipe:
    passage = kin.passage
    passing = None if passage is None else passage.of(_values(kin, outline), outline.offsets)
    make = partial(_template, kin, outline, layouts, first)
    return Recipe(first, make, [], kin.numbers, given, passing)


def _values(kin: Kin, outline: Outline) -> list[int]:
    """What a member's slots hold in place of the first one's."""
    sizes, strides = outline.sizes, outline.strides
    values = [product.of(sizes) for _, product in kin.sizes]
    values += [strides[k][axis] for _, k, axis in kin.strides]
    return values + [bits(Scalar(x, kin.dtype)) for x in outline.numbers]


def _slots(kin: Kin) -> list[Slot]:
    """The slots that hold what each member says."""
    sized = [*(slot for slot, _ in kin.sizes), *(slot for slot, _, _ in kin.strides)]
    return [*sized, *kin.scalars]


def _template(kin: Kin, outline: Outline, layouts: Sequence[Layout], first: int) -> Template:
    """What a member has for itself."""
    moved = kin.width * layouts[first].size or sum([x.nbytes for x in layouts])
    values = dict(zip(_slots(kin), _values(kin, outline), strict=True))
    return kin.family.member(values, moved, outline.offsets)


def _first(outline: Outline | None, work: Work, given: Any) -> Recipe:
    """A recipe made by the usual way, which begins a family where it has an outline."""
    template, draws, numbers = template_for(work)
    if outline is not None and outline.free is not None:
        if not draws:
            _see(outline, work, template, numbers)
    elif outline is not None and outline.key not in _known:
        kin = None if draws else _kin(outline, work, template, numbers)
        if kin is not None or 1 not in outline.sizes:  # of which kernels may take no notice
            RECIPES.put(_known, outline.key, kin)
    return Recipe(work.first, lambda: template, draws, numbers, given)


def _see(outline: Outline, work: Work, template: Any, numbers: list[Number]) -> None:
    """Note what was made the usual way where sizes count; two of them may make a family."""
    known = _known.get(outline.key)
    if known is None and outline.key in _known:
        return
    family = family_of(template)
    kins: list[Kin] = known.kins if isinstance(known, Seen) else []
    if family is not None and isinstance(known, Seen):
        kin = _kin_like(known, family, numbers, work.layouts[work.first])
        related = _related(known, outline, kin, work.first)
        if related is not None:
            kins = [related, *kins[: MOST - 1]]
    size = work.layouts[work.first].size
    seen = None if family is None else Seen(outline.sizes, family, size, kins)
    RECIPES.put(_known, outline.key, seen)


def _kin_like(seen: Seen, family: Family, numbers: list[Number], result: Layout) -> Kin:
    """Kin without places yet; two tell whether bytes are moved for elements of the result alone."""
    width, rest = divmod(family.bytes, result.size)
    alone = not rest and width * seen.size == seen.family.bytes
    return Kin(family, numbers, [], [], [], result.dtype, width if alone else 0)


def _related(seen: Seen, outline: Outline, kin: Kin, first: int) -> Kin | None:
    """`kin`, of `outline`, with the places of sizes; None where these are not told by one seen.

    Sizes that are the same in both may go anywhere, and need to stay as they are.
    """
    if not kin.family.is_like(seen.family):
        return None
    growth = Growth(tuple(seen.sizes), tuple(outline.sizes))
    if not growth.is_clear:
        return None
    before = seen.family.values()
    for slot, now in kin.family.values().items():
        then = before[slot]
        if then == now or slot.name[0] in ("leaf", "scratch", "tasks"):
            continue
        product = growth.product(then, now)
        if product is None or slot.name[0] in ("scalar", "offset"):  # places have the first one's
            return None
        kin.sizes.append((slot, product))
    same = [
        k
        for k, (then, now) in enumerate(zip(seen.sizes, outline.sizes, strict=True))
        if then == now
    ]
    fixed = [(axis, outline.sizes[axis]) for axis in same]
    kin = kin._replace(fixed=fixed)
    return kin._replace(passage=passage_of(kin.family, first, len(kin.numbers), 0, _slots(kin)))


def _kin(outline: Outline, work: Work, template: Any, numbers: list[Number]) -> Kin | None:
    """What members of the family of a template share; None where it is not as its outline says."""
    family = family_of(template)
    if family is None or len(family.steps) > 1:
        return None
    result = work.layouts[work.first]
    width = template.bytes // result.size if outline.maps else 0
    made = Kin(family, numbers, [], [], [], result.dtype, width)
    told = all(_enter(made, outline, slot, n) for slot, n in family.values().items())
    if not told or not _is_whole(made, outline):
        return None
    shifted = len(outline.offsets)
    passage = passage_of(family, work.first, len(numbers), shifted, _slots(made))
    return made._replace(passage=passage)


def _enter(kin: Kin, outline: Outline, slot: Slot, n: int) -> bool:
    """Note what an outline says of a slot, which holds `n`; False where it does not say that."""
    kind = slot.name[0]
    if kind == "dim":
        sizes = outline.sizes
        if n not in sizes:
            return False
        axis = n.number if isinstance(n, Axis) else sizes.index(n)
        kin.sizes.append((slot, Product((axis,), 1)))
        return sizes[axis] == n
    if kind == "stride":
        _, (_, leaf), axis = slot.name
        operand = kin.family.steps[slot.step].where[leaf].operand
        kin.strides.append((slot, operand, axis))
        return [n] == [of[axis] for of in outline.strides[operand : operand + 1] if axis < len(of)]
    if kind == "scalar" and outline.numbers:
        said = outline.numbers[len(kin.scalars) : len(kin.scalars) + 1]
        kin.scalars.append(slot)
        return [n] == [bits(Scalar(x, kin.dtype)) for x in said]
    return True


def _is_whole(kin: Kin, outline: Outline) -> bool:
    """Whether the first of a family is given all that its outline says.

    A size that its kernel is not given would be the first one's for ever.
    """
    axes = {axis for _, product in kin.sizes for axis in product.axes}
    if len(axes) != len(outline.sizes) or len(kin.scalars) != len(outline.numbers):
        return False
    offsets, places = outline.offsets, kin.family.places or ()
    return all(p.offset == offsets[p.operand] for p in places if p.operand < len(offsets))
