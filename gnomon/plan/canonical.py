"""Canonical forms: many shapes and strides brought to few, so that few kernels serve them all.

The axes of a map's operands are joined where all their memories allow it, in the order of the
destination's memory. What is left of strides decides code on the two innermost axes alone; on
others they are arguments, those of 0 too. Of three axes and more, each size is an argument of its
own. Square matrices have kernels of their own: one argument less makes a transpose 1.04 to 1.1
times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon import dtype as dt
from gnomon.expr.layout import ANY, KNOWN, ZERO
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.walk import postorder
from gnomon.plan.statement import Axis, Store, Structure
from gnomon.record import put

MANY = 3  # axes whose sizes are not told apart by value
_CLASSES = {**KNOWN, 0: ZERO}
_WORDS = {dt.float32: dt.int32, dt.float64: dt.int64}  # a copy of bits, whatever they mean


def canonical(stores: Sequence[Store], structure: Structure) -> Sequence[Store]:
    """The same statements over as few axes as can be; others than maps of leaves stay as they are.

    They belong to `structure`, whose leaves have an element for each of the destination's.
    """
    dest = stores[0].dest
    alike = all(b.shape == dest.shape for b in structure.buffers)
    if structure.composite or structure.flat or not alike:
        return stores
    axes = joined_axes(dest.shape, dest.strides, [b.strides for b in structure.buffers])
    if not axes:
        return stores
    sizes = [n for n, _ in axes]
    shape = tuple(sizes if len(axes) < MANY else map(Axis, sizes, range(len(axes))))
    places = [place for _, place in axes]
    copies = len(stores) == 1 and stores[0].saver == "saveto" and stores[0].value is not dest
    words = _WORDS if copies and isinstance(stores[0].value, Buffer) else {}
    made = [_over(b, shape, places, words.get(b.dtype, b.dtype)) for b in structure.buffers]
    new: dict[Expr, Expr] = {}
    for node in postorder([s.value for s in stores]):
        if isinstance(node, Buffer):
            new[node] = made[structure.slot(node)]
        else:
            new[node] = _again(node, new, shape)
    return [Store(made[structure.slot(s.dest)], s.saver, new[s.value]) for s in stores]


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
        if found and all(s[found[-1][1]] == s[axis] * n for s in strides):
            found[-1] = found[-1][0] * n, axis
        else:
            found.append((n, axis))
    return found


def _over(buffer: Buffer, shape: tuple[int, ...], places: Sequence[int], dtype: dt.DType) -> Buffer:
    """A leaf over the joined axes: dense, or with strides that are arguments."""
    strides = [buffer.strides[a] for a in places]
    made = Buffer(shape, dtype, strides, buffer.address, buffer, buffer.device)
    if not made.contiguous:
        put(made, "_layout", classes(strides))
    return made


def classes(strides: Sequence[int]) -> tuple[int, ...]:
    """What code may assume of a leaf's strides over joined axes, where it is not dense."""
    outer = len(strides) - 2
    return tuple([ANY if k < outer else _CLASSES.get(s, ANY) for k, s in enumerate(strides)])


def _again(node: Expr, new: dict[Expr, Expr], shape: tuple[int, ...]) -> Expr:
    """A map, or a number, of the new leaves."""
    shape = shape if node.shape else ()
    if isinstance(node, Map):
        return Map(node.fn, tuple(new[a] for a in node.args), shape, node.dtype)
    if isinstance(node, Cast):
        return Cast(new[node.src], node.dtype, shape)
    assert isinstance(node, Scalar), type(node)
    return node
