"""Patterns: what an expression is apart from addresses and numbers, interned: `is` compares.

Two expressions of one pattern have the same functions over leaves of the same shapes, strides and
dtypes, so what was checked and compiled for one of them holds for the other. A pattern is noted on
its node while that is built, or when it is first asked for.

State: one table for the process, emptied when it is full. A tensor takes another shape by `change`:
patterns made of it before would still tell of the old one, so an *epoch* ends when that begins and
another one when it is done, the table is emptied, and who keeps anything by patterns compares
`EPOCH` with the one noted. While a tensor is being changed the epoch is odd.
A pattern may be noted on its node just after that has changed. So it carries the epoch that was
when the look at the node began, or an earlier one of its operands' patterns, and tells the truth
about its node while that lasts; `drop_older` takes older ones off.
Entering an equal pattern twice, as threads may, costs a second entry, no error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from gnomon.dtype import DType, float32
from gnomon.ground.lock import in_child, reentrant
from gnomon.ground.record import Frozen, put, whole

if TYPE_CHECKING:
    from gnomon.expr.node import Expr

T = TypeVar("T")
LARGEST = 160  # nodes, shared ones counted as often as they are used; beyond, nothing is interned
KEPT = 1 << 15

CHANGING = 1  # the bit of an epoch in which a tensor is being changed
#: counts the beginnings and the ends of changes of tensors' shapes; native code reads it
EPOCH = ctypes.c_int64(0)
#: held by the thread that changes a tensor
_changing = [reentrant()]


@whole
class Pattern(Frozen):
    """What an expression is, apart from addresses and numbers."""

    __slots__ = ("__weakref__", "dtype", "epoch", "exp_type", "number", "shape", "size")

    dtype: DType
    epoch: int
    exp_type: int
    number: Pattern
    shape: tuple[int, ...]
    size: int

    def __init__(
        self, shape: tuple[int, ...], dtype: DType, exp_type: int, size: int, epoch: int
    ) -> None:
        put(self, "shape", shape)
        put(self, "dtype", dtype)
        put(self, "exp_type", exp_type)
        put(self, "size", size)
        put(self, "number", self)  # of a number beside such an expression
        put(self, "epoch", epoch)


#: of expressions that are too large, or whose parts cannot be told apart: equal to no other
NONE = Pattern((), float32, 0, LARGEST, EPOCH.value)

KNOWN: dict[Hashable, Pattern] = {}


def pattern_of(root: Expr) -> Pattern:
    """The pattern of an expression; `NONE` where it has none."""
    found: Pattern | None = root.pattern
    if found is not None:
        return found
    stack = [root]
    while stack:
        node = stack[-1]
        children = node.children
        waiting = [c for c in children if c.pattern is None]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        if node.pattern is None:
            found = entered(node, children)
            object.__setattr__(node, "pattern", found)
    return root.pattern or NONE


def is_known(node: Expr) -> bool:
    """Whether a node has a pattern, or is a leaf of one that others have."""
    return node.pattern is not None or (not node.children and node.outline() in KNOWN)


def pattern_now(node: Expr) -> Pattern:
    """The pattern that tells of a node in this epoch; `NONE` where there is none."""
    found = pattern_of(node)
    if holds(found):
        return found
    drop_older(node)
    found = pattern_of(node)
    return found if holds(found) else NONE


def entered(node: Expr, children: Sequence[Expr]) -> Pattern:
    """The pattern of a node over operands that have theirs."""
    epoch = EPOCH.value
    key = node.outline()
    if children:
        key += tuple([c.pattern for c in children])
    try:
        found = KNOWN.get(key)
    except TypeError:  # a part that is not hashable
        return NONE
    if found is None:
        below = [pattern_of(c) for c in children]
        size = 1 + sum([p.size for p in below])
        if size >= LARGEST:
            return NONE
        if len(KNOWN) >= KEPT:
            KNOWN.clear()
        epoch = min([epoch, *[p.epoch for p in below]])
        found = Pattern(node.shape, node.dtype, node.exp_type, size, epoch)
        number = (None, node.dtype)
        beside = KNOWN.get(number) or KNOWN.setdefault(number, _number(node.dtype))
        put(found, "number", beside)
        if epoch == EPOCH.value:
            KNOWN[key] = found
    return found if found.shape == node.shape and found.dtype is node.dtype else NONE


def _number(dtype: DType) -> Pattern:
    """What every number of `dtype` is."""
    return Pattern((), dtype, 1, 1, EPOCH.value)


def holds(pattern: Pattern | None) -> bool:
    """Whether a pattern is one, and of this epoch."""
    if pattern is None or pattern is NONE:
        return False
    epoch = EPOCH.value
    return pattern.epoch == epoch and not epoch & CHANGING


def drop_older(*roots: Expr) -> None:
    """Take patterns of earlier epochs off these and what they are made of: they get new ones."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        found = node.pattern
        if id(node) not in seen and found is not NONE and not holds(found):
            seen.add(id(node))
            object.__setattr__(node, "pattern", None)
            stack.extend(node.children)


def steady(look: Callable[[], T]) -> T:
    """What `look` gives of tensors, none of which took another shape meanwhile.

    Threads take turns between any two instructions, and shape, address and owner are read one after
    the other. Where a tensor did change, this looks again, and others wait with such changes.
    """
    epoch = EPOCH.value
    if not epoch & CHANGING:
        try:
            found = look()
        except Exception:
            if epoch == EPOCH.value:
                raise
        else:
            if epoch == EPOCH.value:
                return found
    with _changing[0]:
        return look()


def change(make: Callable[[], None]) -> None:
    """Let `make` give a tensor another shape or other memory: what patterns told holds no more."""
    with _changing[0]:
        _end_epoch()
        try:
            make()
        finally:
            _end_epoch()


def _end_epoch() -> None:
    EPOCH.value += 1
    KNOWN.clear()


def _in_child() -> None:
    """In a forked child: another thread of the parent may have been changing a tensor."""
    _changing[0] = reentrant()
    EPOCH.value += EPOCH.value & CHANGING


in_child(_in_child)
