"""Canonical forms: many shapes and strides brought to few, so that few kernels serve them all.

The axes of a map's operands are joined where all their memories allow it, in the order of the
destination's memory. What is left of strides decides code on the two innermost axes alone, and
there only where it makes other code; elsewhere they are arguments, those of 0 too. Three axes and
four become five on a processor, the first ones of one element: that is two counters more around a
plane, 1.5 to 2.6 ns for each, and half the kernels. A GPU would divide for each element. Each size
is an argument of its own, but in square matrices that are read across: one argument less makes a
transpose 1.04 to 1.1 times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.expr.layout import ANY, JOINED, KNOWN, UNIT, ZERO
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.walk import postorder
from gnomon.ground.record import put
from gnomon.plan.statement import Axis, Store, Structure
from gnomon.shape import is_row_major

AXES = 5  # of a processor's forms with three axes or four
_CLASSES = {**KNOWN, 0: ZERO}
WORDS = {dt.float32: dt.int32, dt.float64: dt.int64}  # a copy of bits, whatever they mean


class Form(NamedTuple):
    """What is left of operands' axes: their sizes, and of each operand its strides and layout."""

    sizes: tuple[int, ...]
    strides: Sequence[Sequence[int]]
    layouts: Sequence[tuple[int, ...]]

    @property
    def across(self) -> bool:
        """Whether there are two axes, and something is dense along the first one."""
        return (UNIT, ANY) in self.layouts


def canonical(stores: Sequence[Store], structure: Structure) -> Sequence[Store]:
    """The same statements over as few axes as can be; others than maps of leaves stay as they are.

    They belong to `structure`, whose leaves have an element for each of the destination's.
    """
    dest = stores[0].dest
    alike = all(b.shape == dest.shape for b in structure.buffers)
    copies = len(stores) == 1 and stores[0].saver == "saveto" and stores[0].value is not dest
    words = WORDS if copies and isinstance(stores[0].value, Buffer) else {}
    if structure.composite or (structure.flat and dest.dtype not in words) or not alike:
        return stores
    axes = AXES if dest.device == "cpu" else 0
    form = form_of(dest.shape, dest.strides, [b.strides for b in structure.buffers], axes)
    shape = form.sizes if form.across else tuple(map(Axis, form.sizes, range(len(form.sizes))))
    made = [
        _over(b, shape, strides, layout, words.get(b.dtype, b.dtype))
        for b, strides, layout in zip(structure.buffers, form.strides, form.layouts, strict=True)
    ]
    new: dict[Expr, Expr] = {}
    for node in postorder([s.value for s in stores]):
        if isinstance(node, Buffer):
            new[node] = made[structure.slot(node)]
        else:
            new[node] = _again(node, new, shape)
    return [Store(made[structure.slot(s.dest)], s.saver, new[s.value]) for s in stores]


def form_of(
    shape: Sequence[int], dest: Sequence[int], strides: Sequence[Sequence[int]], least: int = AXES
) -> Form:
    """The canonical form of operands over `shape`; more than two axes are made `least`.

    `dest` are the destination's strides, by which axes are ordered, `strides` those of every leaf,
    the destination among them.

    >>> form = form_of((2, 3, 4, 5), (60, 20, 5, 1), [(60, 20, 5, 1), (20, 0, 5, 1)])
    >>> form.sizes, form.strides[1], form.layouts
    ((1, 1, 2, 3, 20), [0, 0, 20, 0, 1], [(3, 3, 3, 3, 1), (0, 0, 0, 2, 1)])
    """
    axes = joined_axes(shape, dest, strides)
    if not axes:  # a single element
        return Form((1,), [[1]] * len(strides), [(UNIT,)] * len(strides))
    more = least - len(axes) if 2 < len(axes) < least else 0
    sizes = (*[1] * more, *[n for n, _ in axes])
    over = [[0] * more + [s[place] for _, place in axes] for s in strides]
    return Form(sizes, over, [layout_of(sizes, s) for s in over])


def joined_axes(
    shape: Sequence[int], dest: Sequence[int], strides: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    """The extents of the joined axes, outermost first, each with the innermost that is in it.

    `dest` are the destination's strides, by which they are ordered, `strides` those of every leaf.
    """
    order = [a for a, n in enumerate(shape) if n != 1]
    order.sort(key=lambda a: -abs(dest[a]))
    found: list[tuple[int, int]] = []
    for axis in order:
        n = shape[axis]
        if found and [s[found[-1][1]] for s in strides] == [s[axis] * n for s in strides]:
            found[-1] = found[-1][0] * n, axis
        else:
            found.append((n, axis))
    return found


def layout_of(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """What code may assume of a leaf's strides over joined axes.

    That is how the last one is read; along the one before, that the same is read again, or that the
    leaf is dense there alone, and is read across.
    """
    if is_row_major(sizes, strides):
        return (*[JOINED] * (len(sizes) - 1), UNIT)
    last = _CLASSES.get(strides[-1], ANY)
    if len(sizes) == 1:
        return (last,)
    before = {0: ZERO, 1: UNIT if last == ANY else ANY}.get(strides[-2], ANY)
    return (*[ANY] * (len(sizes) - 2), before, last)


def _over(
    buffer: Buffer,
    shape: tuple[int, ...],
    strides: Sequence[int],
    layout: tuple[int, ...],
    dtype: dt.DType,
) -> Buffer:
    """A leaf over the joined axes."""
    made = Buffer(shape, dtype, strides, buffer.address, buffer, buffer.device)
    put(made, "_layout", layout)
    return made


def _again(node: Expr, new: dict[Expr, Expr], shape: tuple[int, ...]) -> Expr:
    """A map, or a number, of the new leaves."""
    shape = shape if node.shape else ()
    if isinstance(node, Map):
        return Map(node.fn, tuple(new[a] for a in node.args), shape, node.dtype)
    if isinstance(node, Cast):
        return Cast(new[node.src], node.dtype, shape)
    assert isinstance(node, Scalar), type(node)
    return node
