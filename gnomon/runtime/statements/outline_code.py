"""Outlines of statements: what they are apart from sizes, and runs by it; native functions.

An *outline* is a tuple that holds all of a statement that its kernel depends on: functions, dtypes,
the class of each stride, which leaves and nodes are one, and which sizes are equal. What it leaves
out are the *sizes*, those and strides of no class, each value once, addresses and numbers.
Statements of one outline are a family; `families.py` finds its refill (see `kernels/refill.py`).

The integers that refills of statements take are `GIVEN` words: how many sizes there are, the sizes,
from `LEAVES` on the addresses of the leaves, from `NUMBERS` on the numbers.
"""

from __future__ import annotations

from typing import Any, cast

from gnomon import dtype
from gnomon.dtype import DType
from gnomon.expr.composite import Composite
from gnomon.expr.layout import is_read_only
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.pattern import CHANGING
from gnomon.ground.record import Frozen, put
from gnomon.native.words import Parts, Words, native, popped, scratch, whole
from gnomon.plan.overlap import repeats
from gnomon.plan.statement import told
from gnomon.runtime.kernels.refill import Refill, follow
from gnomon.runtime.statements.call_cache_code import TABLE, is_same, spread
from gnomon.runtime.statements.launch import kind_of
from gnomon.runtime.statements.launch_code import number_word

SIZES = 40  # that an outline may have
NODES = 60
LEAVES = SIZES + 1
NUMBERS = LEAVES + NODES
GIVEN = NUMBERS + NODES
KEPT = 4096  # outlines, and shapes that came
ONE = -1  # in the place of the number of a size
_ANY, _UNIT, _ZERO, _JOINED, _REVERSED, _TWO = range(6)  # as `expr/layout.py` has them
# what a dtype calls the bytes of an element, and a leaf whether it has kept its shape
_SIZE, _SETTLED = "size", "settled"

#: how numbers of a dtype are written
KINDS: dict[DType, int] = {
    x: kind_of(Scalar(0, x)) for x in vars(dtype).values() if type(x) is DType and x.kind != "b"
}


@whole
class Known(Frozen):
    """The refill of a family, and sizes that have to be as they are: pairs of a number and a size.

    `last` is the member that went the whole way last.
    """

    __slots__ = ("fixed", "last", "refill")

    fixed: tuple[int, ...]
    refill: Refill
    last: object

    def __init__(self, refill: Refill, fixed: tuple[int, ...], last: object) -> None:
        put(self, "refill", refill)
        put(self, "fixed", fixed)
        put(self, "last", last)


#: by outline: what is known of a family; see `families.py`
FAMILIES: dict[Any, Any] = {}
#: members that ran by a refill: mixed words of refill and sizes
CAME: dict[int, bool] = {}


@native
def _token(n: int, sizes: Words) -> int:
    """The number of a size; `sizes` has how many there are, and their values behind that."""
    if n == 1:
        return ONE
    count = sizes[0]
    for k in range(count):
        if sizes[k + 1] == n:
            return k
    if count < SIZES:
        sizes[count + 1] = n
    sizes[0] = count + 1
    return count


@native
def _is_entered(sizes: tuple[int, ...], parts: list[object], known: Words) -> bool:
    """Whether sizes, none of which is 0, were noted."""
    for n in sizes:
        if n <= 0:
            return False
        parts.append(_token(n, known))
    return True


@native
def _enter_strides(leaf: Buffer, parts: list[object], sizes: Words) -> None:
    """Note the class of each stride, the last first, and the value of one that has none."""
    shape = leaf.shape
    strides = leaf.strides
    follows = False
    inner = 0
    count = len(shape)
    for k in range(count):
        n: int = shape[count - 1 - k]
        s: int = strides[count - 1 - k]
        if n == 1 or s == 0:
            parts.append(_ZERO)
            follows = follows and n == 1
        else:
            if follows and s == inner:
                parts.append(_JOINED)
            elif s == 1:
                parts.append(_UNIT)
            elif s == -1:
                parts.append(_REVERSED)
            elif s == 2:
                parts.append(_TWO)
            else:
                parts.append(_ANY)
                parts.append(_token(s, sizes))
            follows = True
            inner = s * n


@native
def _is_leaf(leaf: Buffer, parts: list[object], leaves: list[Buffer], sizes: Words) -> bool:
    """Whether a leaf was noted: one that has memory, and never had another shape."""
    address: int = leaf.address
    if address <= 0 or getattr(leaf, _SETTLED) is not True:
        return False
    for k in range(len(leaves)):
        other = leaves[k]
        at: int = other.address
        same = at == address and leaf.dtype is other.dtype and is_same(leaf.shape, other.shape)
        if same and is_same(leaf.strides, other.strides):
            parts.append(Buffer)
            parts.append(k)
            return True
    leaves.append(leaf)
    parts.append(leaf.dtype)
    parts.append(leaf.device)
    parts.append(len(leaf.shape))
    if not _is_entered(leaf.shape, parts, sizes):
        return False
    _enter_strides(leaf, parts, sizes)
    return True


@native
def _is_node(
    node: Expr, parts: list[object], leaves: list[Buffer], numbers: list[Scalar],
    stack: list[Expr], sizes: Words,
) -> bool:  # fmt: skip
    """Whether a node that was not seen was noted; its operands come next."""
    if isinstance(node, Map):
        parts.append(node.fn)
        args = node.args
        for k in range(len(args)):
            stack.append(args[len(args) - 1 - k])  # noqa: PERF401  native code has no `extend`
        return True
    if isinstance(node, Buffer):
        return _is_leaf(node, parts, leaves, sizes)
    if isinstance(node, Scalar):
        parts.append(None)
        parts.append(node.dtype)
        numbers.append(node)
        return True
    if isinstance(node, Cast):
        parts.append(Cast)
        parts.append(node.dtype)
        stack.append(node.src)
        return True
    if not isinstance(node, Composite):
        return False
    known = cast("tuple[Any, ...]", told(node))
    parts.append(known[0])
    below = cast("tuple[Expr, ...]", known[2])
    parts.append(len(below))
    for child in below:
        stack.append(child)  # noqa: PERF402  native code has no `extend`
    return _is_entered(cast("tuple[int, ...]", known[1]), parts, sizes)


@native
def _seen(order: list[Expr], node: Expr) -> int:
    """The number of a node that was seen, -1 of others."""
    for k in range(len(order)):
        if order[k] is node:
            return k
    return -1


@native
def _is_walked(
    saver: str, dest: Buffer, value: Expr, parts: list[object], leaves: list[Buffer],
    numbers: list[Scalar], sizes: Words,
) -> bool:  # fmt: skip
    """Whether a statement has an outline; its parts are there then, and what it leaves out."""
    parts.append(saver)
    sizes[0] = 0
    order: list[Expr] = []
    stack: list[Expr] = [value, dest]
    node = popped(stack)
    while node is not None:
        again = _seen(order, node)
        if again >= 0:
            parts.append(again)
        elif len(order) >= NODES:
            return False
        else:
            order.append(node)
            if not _is_node(node, parts, leaves, numbers, stack, sizes):
                return False
        node = popped(stack)
    return sizes[0] <= SIZES


# -- runs -------------------------------------------------------------------------------------


@native
def _low(leaf: Buffer, high: bool) -> int:
    """Where a leaf begins, or where it ends."""
    at: int = leaf.address
    size = cast(int, getattr(leaf.dtype, _SIZE))
    shape = leaf.shape
    strides = leaf.strides
    for k in range(len(shape)):
        n: int = shape[k]
        s: int = strides[k]
        if (s > 0) == high:
            at += (n - 1) * s * size
    return at + size if high else at


@native
def _are_apart(leaves: list[Buffer]) -> bool:
    """Whether what is stored into, the first leaf, overlaps no other one."""
    dest = leaves[0]
    low = _low(dest, False)
    high = _low(dest, True)
    for k in range(len(leaves)):
        if k > 0 and _low(leaves[k], False) < high and low < _low(leaves[k], True):
            return False
    return True


@native
def _is_monotone(dest: Buffer) -> bool:
    """Whether a walk through the indices goes up in memory; no two then are one element."""
    reach = 0
    shape = dest.shape
    strides = dest.strides
    count = len(shape)
    for k in range(count):
        n: int = shape[count - 1 - k]
        s: int = strides[count - 1 - k]
        if n > 1:
            if s <= reach:
                return False
            reach += (n - 1) * s
    return True


@native
def _is_writable(dest: Buffer) -> bool:
    """Whether a statement may be stored there; the whole way tells why not."""
    return not is_read_only(dest.owner) and (_is_monotone(dest) or not repeats(dest))


@native
def _is_first(refill: Refill, sizes: Words) -> bool:
    """Whether a member of a family comes for the first time, which is noted."""
    mixed = refill.record
    for k in range(sizes[0]):
        mixed = spread(mixed, sizes[k + 1])
    if CAME.get(mixed) is not None:
        return False
    if len(CAME) >= KEPT:
        CAME.clear()
    CAME[mixed] = True
    return True


@native
def _is_fixed(fixed: tuple[int, ...], sizes: Words) -> bool:
    """Whether sizes that have to be one number are that: pairs say which one, and the number."""
    return all(k & 1 == 0 or sizes[fixed[k - 1]] == fixed[k] for k in range(len(fixed)))


@native
def _is_given(leaves: list[Buffer], numbers: list[Scalar], given: Words) -> bool:
    """Whether all integers are there: addresses and numbers, beside sizes."""
    for k in range(len(leaves)):
        address: int = leaves[k].address
        given[LEAVES + k] = address
    for k in range(len(numbers)):
        number = numbers[k]
        kind = KINDS.get(number.dtype)
        if kind is None:
            return False
        given[NUMBERS + k] = number_word(kind, number.value)
    return True


@native
def _sizes(given: Words) -> tuple[int, ...]:
    """The sizes as a tuple."""
    found = Parts(given[0])
    for k in range(given[0]):
        found[k] = given[k + 1]
    return tuple(found)


@native
def run_as(saver: str, dest: Buffer, value: Expr) -> object:
    """True where a statement was done: a member of its family that comes for the first time.

    Nothing was done otherwise: None of one that came, False of others, or what there is to be
    learned of one: outline, sizes, leaves and numbers.
    """
    parts: list[object] = []
    leaves: list[Buffer] = []
    numbers: list[Scalar] = []
    given = scratch(GIVEN)
    if Words(TABLE[0])[0] & CHANGING != 0:  # a tensor has another shape, or is about to
        return False
    if not _is_walked(saver, dest, value, parts, leaves, numbers, given):
        return False
    outline = tuple(parts)
    known = FAMILIES.get(outline)
    if known is False:
        return False
    if type(known) is Known and _is_fixed(known.fixed, given):
        if not _is_writable(dest) or not _are_apart(leaves):
            return False
        if not _is_first(known.refill, given):
            return None
        return _is_given(leaves, numbers, given) and follow(Words(known.refill.record), given)
    return outline, _sizes(given), tuple(leaves), tuple(numbers)
