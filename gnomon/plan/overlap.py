"""Overlap: whether a map may be computed in place although its destination is read elsewhere too.

A loop that walks through memory in one direction has not yet written what lies ahead. So a
statement whose reads of the destination's memory all lie ahead is safe on one thread, and one whose
reads all lie behind is safe when every axis is walked backwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from gnomon.expr.node import Buffer, Expr
from gnomon.expr.rewrite import substitute
from gnomon.plan.cut import overlap
from gnomon.plan.statement import Store, leaves_of


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
