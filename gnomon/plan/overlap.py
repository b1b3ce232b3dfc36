"""Overlap: whether a map may be computed in place although its destination is read elsewhere too.

A loop that walks through memory in one direction has not yet written what lies ahead. So a
statement whose reads of the destination's memory all lie ahead is safe on one thread, and one whose
reads all lie behind is safe when every axis is walked backwards. A statement that reads the mirror
image of its destination is done for each element and its image at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon.expr.node import Buffer, Cast, Expr, Map
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.plan.cut import overlap
from gnomon.plan.statement import Store, identity, leaves_of


def directed(store: Store) -> Store | None:
    """`store`, or the same walked backwards, if one pass in order is safe; None if neither is."""
    ahead = distances(store.dest, leaves_of([store.value]))
    if ahead is None:
        return None
    if min(ahead, default=0) >= 0:
        return store
    return backwards(store) if max(ahead) <= 0 else None


def distances(dest: Buffer, leaves: Sequence[Buffer]) -> list[int] | None:
    """How far each overlapping leaf lies beyond the destination; None where that varies."""
    if not monotone(dest):
        return None
    found = []
    for leaf in leaves:
        if not overlap(dest, leaf):
            continue
        alike = (leaf.shape, leaf.strides, leaf.dtype) == (dest.shape, dest.strides, dest.dtype)
        if not alike or (leaf.address - dest.address) % dest.dtype.size:
            return None
        found.append(leaf.address - dest.address)
    return found


def monotone(buffer: Buffer) -> bool:
    """Whether walking through the index in order walks through memory in order."""
    reach = 0
    for n, s in zip(reversed(buffer.shape), reversed(buffer.strides), strict=True):
        if n > 1:
            if s <= reach:
                return False
            reach += (n - 1) * s
    return True


def repeats(buffer: Buffer) -> bool:
    """Whether several indices may mean one element of `buffer`."""
    if 0 in buffer.shape:
        return False
    reach = 0
    axes = [(abs(s), n) for n, s in zip(buffer.shape, buffer.strides, strict=True) if n > 1]
    for stride, n in sorted(axes):
        if stride <= reach:
            return True
        reach += (n - 1) * stride
    return False


def backwards(store: Store) -> Store:
    """The same statement with every axis of every leaf reversed."""
    turned: dict[Expr, Expr] = {b: reversed_buffer(b) for b in leaves_of([store.value])}
    (value,) = substitute([store.value], turned)
    return Store(reversed_buffer(store.dest), store.saver, value)


def reversed_buffer(buffer: Buffer) -> Buffer:
    """The elements of `buffer` from the last to the first along every axis."""
    rows = zip(buffer.shape, buffer.strides, strict=True)
    last = buffer.address + sum((n - 1) * s for n, s in rows) * buffer.dtype.size
    strides = [-s for s in buffer.strides]
    return Buffer(buffer.shape, buffer.dtype, strides, last, buffer, buffer.device)


def mirrored(store: Store) -> list[list[Store]] | None:
    """Groups that do a map of its own mirror image in place, in turn; None where it is none.

    The first group does one half and its image together: all that it reads of the destination is
    what it stores at the same time. Where an axis is odd, its middle is a statement of its own.
    """
    plain = changed(store, straight)
    if {*map(identity, leaves_of([plain.value]))} != {*map(identity, leaves_of([store.value]))}:
        return [[plain]]
    dest, leaves = store.dest, leaves_of([store.value])
    met = [b for b in leaves if overlap(dest, b) and identity(b) != identity(dest)]
    if not met or repeats(dest):
        return None
    axes = [
        k
        for k, (n, a, b) in enumerate(zip(dest.shape, dest.strides, met[0].strides, strict=False))
        if n > 1 and a == -b
    ]
    image = turned(dest, axes)
    if not axes or any(identity(b) != identity(image) for b in met):
        return None
    axis, half = axes[0], dest.shape[axes[0]] // 2
    first, rest = range(half), range(half, dest.shape[axis] - half)
    groups = [[part(store, axis, first), part(flipped(store, axes), axis, first)]]
    return [*groups, [part(store, axis, rest)]] if rest else groups


def straight(buffer: Buffer) -> Buffer:
    """A buffer whose axes of one element are not mirrored."""
    rows = zip(buffer.shape, buffer.strides, strict=True)
    return placed(buffer, buffer.shape, [abs(s) if n == 1 else s for n, s in rows], buffer.address)


def turned(buffer: Buffer, axes: Sequence[int]) -> Buffer:
    """A buffer mirrored along some of its axes."""
    last = sum((buffer.shape[a] - 1) * buffer.strides[a] for a in axes) * buffer.dtype.size
    strides = [-s if a in axes else s for a, s in enumerate(buffer.strides)]
    return placed(buffer, buffer.shape, strides, buffer.address + last)


def placed(buffer: Buffer, shape: Sequence[int], strides: Sequence[int], address: int) -> Buffer:
    """Other elements of the same memory."""
    return Buffer(shape, buffer.dtype, strides, address, buffer, buffer.device)


def flipped(store: Store, axes: Sequence[int]) -> Store:
    """The same statement with all of its leaves mirrored."""
    return changed(store, lambda b: turned(b, axes))


def part(store: Store, axis: int, rows: range) -> Store:
    """A statement for some of the places along an axis."""

    def taken(b: Buffer) -> Buffer:
        shape = (*b.shape[:axis], len(rows), *b.shape[axis + 1 :])
        start = rows.start * b.strides[axis] * b.dtype.size
        return placed(b, shape, b.strides, b.address + start)

    return changed(store, taken)


def changed(store: Store, change: Callable[[Buffer], Buffer]) -> Store:
    """A map with every leaf, and its destination, exchanged for another of one shape."""
    dest = change(store.dest)
    new: dict[Expr, Expr] = {}
    for node in postorder([store.value]):
        if isinstance(node, Buffer):
            new[node] = change(node)
        elif isinstance(node, Map):
            shape = dest.shape if node.shape else ()
            new[node] = Map(node.fn, tuple(new[a] for a in node.args), shape, node.dtype)
        elif isinstance(node, Cast):
            new[node] = Cast(new[node.src], node.dtype)
        else:
            new[node] = node
    return Store(dest, store.saver, new[store.value])
