"""Recipes of one family: what was made for operands of some shape serves those of other shapes.

What an operator does is told here apart from sizes, where it says how: by an outline. A map of
dense operands has one axis; what moves elements, or stretches them, has those that memory does not
allow to join, with a stride of each operand along each; a reduction has those that are kept and
reduced by turns. Outlines of one key are the work of one kernel, whose arguments are their sizes,
strides and numbers. That the kernel takes these and no others, in these places, is looked at when
the first recipe is made, by the usual way: where it is not so, each shape has a recipe of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.dtype import DType
from gnomon.expr.layout import UNIT
from gnomon.expr.node import Scalar
from gnomon.ndarray.core.bounded_cache import RECIPES
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.lazy.infer import infer
from gnomon.ndarray.lazy.numbers import Number
from gnomon.ndarray.lazy.recipe import Recipe, Work, template_for
from gnomon.plan.canonical import form_of
from gnomon.plan.statement import Axis
from gnomon.plan.view import merged
from gnomon.runtime.kernels.family import Family, family_of
from gnomon.runtime.kernels.kernel import bits
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


class Kin(NamedTuple):
    """What the recipes of a family share, and where the kernel takes what."""

    family: Family
    numbers: list[Number]
    sizes: list[tuple[Hashable, int]]  # slots, and axes
    strides: list[tuple[Hashable, int, int]]  # slots, operands and axes
    scalars: list[Hashable]  # slots
    dtype: DType  # of the result
    width: int  # bytes moved for an element of the result; 0 of reductions


_known: dict[Any, Kin | None] = {}  # None: there is no family


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
    return spreading(("moved", data.dtype), shape, [strides], [offset, 0])


def reshaping(op: Any, data: Layout) -> Outline | None:
    """The elements of dense data in another shape."""
    return _in_order(infer(op, [data])[0][0], data)


def _in_order(shape: Shape, data: Layout) -> Outline | None:
    """Dense data as it is, as a result of this shape."""
    if data.strides is not None:
        return None
    return spreading(("moved", data.dtype), shape, [row_major(shape)], [0, 0])


def of_gradient(gradient: Any, train: bool, wanted: tuple[int, ...], work: Work) -> Outline | None:
    """The gradients of a map, or of an operator that moves or reshapes: dense, and apart from what
    is read. None where they are something else, or the class of the operator says them itself."""
    op, first = gradient.op, work.layouts[0]
    if not op.derives or not op.is_expression or not first.size:
        return None
    apart = all(anchor == (k, 0) for k, anchor in enumerate(work.anchors))
    if not apart or any(x.strides is not None for x in work.layouts):
        return None
    savers = tuple([dest.saver for dest in work.dests])
    if op.elementwise and all(x.shape == first.shape for x in work.layouts):
        types = tuple([x.dtype for x in work.layouts])
        return flat(("gradient", op, gradient.needs, train, wanted, savers, types), first)
    if savers != ("saveto",) or len(work.layouts) != 2 or op.elementwise:
        return None
    shape = gradient.shapes[0][0]
    if op.reshapes:
        return _in_order(shape, first)
    return None if op.moves is None else _moved_back(op.moves(shape), shape, first)


def _moved_back(moves: Any, shape: Shape, data: Layout) -> Outline | None:
    """The elements of dense `data` where they were in `shape`; None where not all axes moved."""
    apart = any(n != 1 for n in moves.steps) or any(moves.begin) or data.shape != moves.shape
    axes = list(moves.axes)
    if apart or sorted(axes) != list(range(len(shape))) or data.size != prod(shape):
        return None
    steps = data.steps()
    strides = [steps[axes.index(a)] for a in range(len(shape))]
    return spreading(("moved", data.dtype), shape, [strides], [0, 0])


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
    if all(layout == (UNIT,) for layout in form.layouts):
        return Outline((what, "flat"), shape, sizes, (), offsets)
    equal = form.across and sizes[0] == sizes[1]
    key = (what, len(sizes), equal, *form.layouts)
    return Outline(key, shape, sizes, form.strides, offsets)


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
    kin = _known.get(outline.key)
    if kin is None:
        work, given = make()
        return _first(outline, work, given)
    layout = dense(outline.shape, kin.dtype)
    return _member(kin, outline, (data, layout), 1, ([layout], []))


def recipe_like(outline: Outline | None, work: Work) -> Recipe:
    """The recipe of a work with this outline, or none."""
    kin = None if outline is None else _known.get(outline.key)
    if outline is None or kin is None:
        return _first(outline, work, work.name)
    return _member(kin, outline, work.layouts, work.first, work.name)


def _member(
    kin: Kin, outline: Outline, layouts: Sequence[Layout], first: int, given: Any
) -> Recipe:
    sizes, strides = outline.sizes, outline.strides
    values: dict[Hashable, int] = {slot: sizes[axis] for slot, axis in kin.sizes}
    values.update((slot, strides[k][axis]) for slot, k, axis in kin.strides)
    if kin.scalars:
        numbers = zip(kin.scalars, outline.numbers, strict=True)
        values.update((slot, bits(Scalar(x, kin.dtype))) for slot, x in numbers)
    moved = kin.width * layouts[first].size or sum([x.nbytes for x in layouts])
    template = kin.family.member(values, moved, outline.offsets)
    return Recipe(first, template, [], kin.numbers, given)


def _first(outline: Outline | None, work: Work, given: Any) -> Recipe:
    """A recipe made by the usual way, which begins a family where it has an outline."""
    template, draws, numbers = template_for(work)
    if outline is not None and outline.key not in _known:
        kin = None if draws else _kin(outline, work, template, numbers)
        if kin is not None or 1 not in outline.sizes:  # of which kernels may take no notice
            RECIPES.put(_known, outline.key, kin)
    return Recipe(work.first, template, draws, numbers, given)


def _kin(outline: Outline, work: Work, template: Any, numbers: list[Number]) -> Kin | None:
    """What members of the family of a template share; None where it is not as its outline says."""
    family = family_of(template)
    if family is None:
        return None
    sizes: list[tuple[Hashable, int]] = []
    strides: list[tuple[Hashable, int, int]] = []
    scalars: list[Hashable] = []
    for slot in family.args:
        if slot[0] == "dim":
            n = family.dims[slot[1]]
            if n not in outline.sizes:
                return None
            axis = n.number if isinstance(n, Axis) else outline.sizes.index(n)
            sizes.append((slot, axis))
        elif slot[0] == "stride":
            strides.append((slot, family.operand(slot[1]), slot[2]))
        elif slot[0] == "scalar" and outline.numbers:
            scalars.append(slot)
    result = work.layouts[work.first]
    width = template.bytes // result.size if outline.maps else 0
    made = Kin(family, numbers, sizes, strides, scalars, result.dtype, width)
    return made if _holds(made, outline) else None


def _holds(kin: Kin, outline: Outline) -> bool:
    """Whether the first of a family is given what its outline says."""
    wanted = [(slot, outline.sizes[axis]) for slot, axis in kin.sizes]
    over = outline.strides
    if {axis for _, axis in kin.sizes} != set(range(len(outline.sizes))):
        return False  # a size that the kernel is not given would be the first one's for ever
    if len(kin.scalars) != len(outline.numbers):
        return False
    if any(k >= len(over) or axis >= len(over[k]) for _, k, axis in kin.strides):
        return False
    strides = [(slot, over[k][axis]) for slot, k, axis in kin.strides]
    numbers = [bits(Scalar(x, kin.dtype)) for x in outline.numbers]
    given = kin.family.values()
    every = chain(wanted, strides, zip(kin.scalars, numbers, strict=True))
    offsets = outline.offsets
    return all(given[slot] == n for slot, n in every) and all(
        p.offset == offsets[p.operand] for p in kin.family.places if p.operand < len(offsets)
    )
