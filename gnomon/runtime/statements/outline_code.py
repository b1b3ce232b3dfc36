"""Outlines of statements: what they are apart from sizes, and runs by it; native functions.

An *outline* is a tuple that holds all of a statement that its kernel depends on: functions, dtypes,
the class of each stride, which leaves and nodes are one, and which sizes are equal. What it leaves
out are the *sizes*, those and strides of no class, each value once, addresses and numbers. Statements
of one outline are a family; `families.py` finds how the words of its kernel's argument block
follow from sizes, and writes a *form* that the code here follows:

    0  arguments, their address          each: kind, value, and up to four sizes to multiply it by
    2  steps, their address              each: operation, two operands; see `plan/signature.py`
    4  phases, their address             each: inner, is split, by columns, rows, costs, their address
    6  sizes that are fixed, their address
    8  function, block, first argument   of the step
   11  how many words of `scratch` all that takes
   12  steps that say of how many elements memory has to be, their address

Kinds of arguments: `CONSTANT`; `PRODUCT` of sizes; `LEAF`, the address of the leaf `value`; then
numbers as `launch_code` writes them. Small work alone is done so, all of it as one task.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

from gnomon.expr.composite import Composite
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.layout import is_read_only
from gnomon.ground.record import Frozen, put
from gnomon.native.words import Words, call, native, popped, scratch, whole, wrapped
from gnomon.plan.ir import LONGEST
from gnomon.plan.overlap import repeats
from gnomon.plan.signature import OPS
from gnomon.plan.statement import told
from gnomon.runtime.execution.program import LONG
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.kernel import COLUMN, SINGLE
from gnomon.runtime.statements.call_cache_code import is_same
from gnomon.runtime.statements.launch_code import number_word

CONSTANT, PRODUCT, LEAF, NUMBER = range(4)
ARGUMENT = 6  # words of an argument,
STEP, PHASE, COST = 3, 6, 2  # of a step, a phase, a cost of it
SIZES = 40  # that an outline may have
NODES = 60
LARGEST = LONG // 2  # work that one thread does at once, others waiting
KEPT = 4096  # outlines, and shapes that came
ONE = -1  # in the place of the number of a size
_ANY, _UNIT, _ZERO, _JOINED, _REVERSED, _TWO = range(6)  # as `expr/layout.py` has them
_CONST, _ARG, _ADD, _SUB, _MUL, _NEG, _IDIV, _IMOD, _MIN, _MAX, _LT, _LE, _EQ, _NE = range(len(OPS))
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)
_LOW = (1 << 35) - 1
# what a dtype calls the bytes of an element, and a leaf whether it has kept its shape
_SIZE, _SETTLED = "size", "settled"


@whole
class Form(Frozen):
    """How members of a family of statements run that come for the first time."""

    __slots__ = ("keep", "record")

    keep: object
    record: int

    def __init__(self, record: int, keep: object) -> None:
        put(self, "record", record)
        put(self, "keep", keep)


#: by outline: forms, and what else is known of a family
FORMS: dict[Any, Any] = {}
#: members that ran by a form: mixed words of form and sizes
CAME: dict[int, None] = {}


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
        if at == address and leaf.dtype is other.dtype and is_same(leaf.shape, other.shape):
            if is_same(leaf.strides, other.strides):
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
        again = -1
        for k in range(len(order)):
            if order[k] is node:
                again = k
        if again >= 0:
            parts.append(again)
        elif len(order) >= NODES:
            return False
        else:
            order.append(node)
            if isinstance(node, Map):
                parts.append(node.fn)
                args = node.args
                for k in range(len(args)):
                    stack.append(args[len(args) - 1 - k])
            elif isinstance(node, Buffer):
                if not _is_leaf(node, parts, leaves, sizes):
                    return False
            elif isinstance(node, Scalar):
                parts.append(None)
                parts.append(node.dtype)
                numbers.append(node)
            elif isinstance(node, Cast):
                parts.append(Cast)
                parts.append(node.dtype)
                stack.append(node.src)
            elif isinstance(node, Composite):
                told_of = cast("tuple[Any, ...]", told(node))
                parts.append(told_of[0])
                if not _is_entered(cast("tuple[int, ...]", told_of[1]), parts, sizes):
                    return False
                below = cast("tuple[Expr, ...]", told_of[2])
                parts.append(len(below))
                for child in below:
                    stack.append(child)
            else:
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
def _is_first(form: Form, sizes: Words) -> bool:
    """Whether a member of a family comes for the first time, which is noted."""
    mixed = form.record
    for k in range(sizes[0]):
        mixed = wrapped((mixed ^ sizes[k + 1]) * _MIX)
        mixed = mixed ^ ((mixed >> 29) & _LOW)
    if mixed in CAME:
        return False
    if len(CAME) >= KEPT:
        CAME.clear()
    CAME[mixed] = None
    return True


@native
def _argument(row: Words, sizes: Words, leaves: list[Buffer], numbers: list[Scalar]) -> int:
    """A word of the argument block."""
    kind = row[0]
    if kind == LEAF:
        address: int = leaves[row[1]].address
        return address + row[2]
    if kind >= NUMBER:
        return number_word(kind - NUMBER, numbers[row[1]].value)
    found = row[1]
    if kind == PRODUCT:
        for k in range(4):
            if row[k + 2] > 0:
                found = found * sizes[row[k + 2]]
    return found


@native
def _quotient(a: int, b: int) -> int:
    """`a // b` of a divisor that is not below 0; 0 of 0."""
    if b <= 0:
        return 0
    found = int(float(a) / float(b))
    while found * b > a:
        found -= 1
    while (found + 1) * b <= a:
        found += 1
    return found


@native
def _folded(op: int, a: int, b: int) -> int:
    """A step with sizes; as `FOLD_INT` has it."""
    if op == _ADD:
        return a + b
    if op == _SUB:
        return a - b
    if op == _MUL:
        return a * b
    if op == _NEG:
        return -a
    if op == _IDIV:
        return _quotient(a, b)
    if op == _IMOD:
        return a - _quotient(a, b) * b if b != 0 else 0
    if op == _MIN or op == _LT:
        return (a if a < b else b) if op == _MIN else (1 if a < b else 0)
    if op == _MAX:
        return a if a > b else b
    if op == _LE:
        return 1 if a <= b else 0
    return 1 if (a == b) == (op == _EQ) else 0


@native
def _fold(record: Words, arguments: Words, values: Words) -> None:
    """The steps with sizes, of these arguments."""
    row = Words(record[3])
    for k in range(record[2]):
        if row[0] == _CONST:
            values[k] = row[1]
        elif row[0] == _ARG:
            values[k] = arguments[row[1]]
        else:
            values[k] = _folded(row[0], values[row[1]], values[row[2]])
        row = row + STEP


@native
def _shared(record: Words, values: Words, shares: Words) -> int:
    """How phases are done as one task; gives the work of all. See `kernel.division`."""
    total = 0
    row = Words(record[5])
    for k in range(record[4]):
        share = shares + 4 * k
        if row[0] < 0:
            for j in range(4):
                share[j] = 1
            total += SINGLE
        else:
            inner = values[row[0]]
            block = inner if inner > 1 else 1
            if row[1] and block > LONGEST:
                block = LONGEST
            if row[2] and block > COLUMN:
                block = COLUMN
            each = _quotient(inner + block - 1, block)
            more = Words(row[4])
            rows = 1
            for j in range(row[3]):
                rows = rows * values[more[j]]
            cost = more + row[3]
            work = 0
            for _ in range(row[5]):
                work += cost[0] if cost[1] < 0 else cost[0] * values[cost[1]]
                cost = cost + COST
            total += inner * rows * work
            share[0] = 1
            share[1] = block
            share[2] = each
            share[3] = rows * each
        row = row + PHASE
    return total


@native
def _is_fixed(record: Words, sizes: Words) -> bool:
    """Whether sizes that have to be one number are that."""
    row = Words(record[7])
    for _ in range(record[6]):
        if sizes[row[0]] != row[1]:
            return False
        row = row + 2
    return True


@native
def _needs_memory(record: Words, values: Words) -> bool:
    """Whether a kernel is to have memory of its own, as it has where threads share its work."""
    row = Words(record[13])
    for k in range(record[12]):
        if values[row[k]] != 0:
            return True
    return False


@native
def _is_run(record: Words, sizes: Words, leaves: list[Buffer], numbers: list[Scalar]) -> bool:
    """Whether the work was done: it is small."""
    count = record[0]
    steps = record[2]
    words = scratch(record[11])
    shares = words + count
    values = shares + 4 * record[4]
    row = Words(record[1])
    for k in range(count):
        words[k] = _argument(row, sizes, leaves, numbers)
        row = row + ARGUMENT
    _fold(record, words, values)
    if _needs_memory(record, values) or _shared(record, values, shares) > LARGEST:
        return False
    block = Words(record[9])
    block[0] = 0
    for k in range(4 * record[4]):
        block[k + 1] = shares[k]
    for k in range(count):
        block[record[10] + k] = words[k]
    call(record[8], record[9])
    return True


@native
def run_as(saver: str, dest: Buffer, value: Expr) -> object:
    """True where a statement was done: a member of its family that comes for the first time.

    Nothing was done otherwise: None of one that came, False of others, or what there is to be
    learned of one: outline, sizes, leaves and numbers.
    """
    parts: list[object] = []
    leaves: list[Buffer] = []
    numbers: list[Scalar] = []
    sizes = scratch(SIZES + 1)
    if not _is_walked(saver, dest, value, parts, leaves, numbers, sizes):
        return False
    outline = tuple(parts)
    known = FORMS.get(outline)
    if type(known) is Form:
        form = cast(Form, known)
        record = Words(form.record)
        if _is_fixed(record, sizes):
            if not _is_writable(dest) or not _are_apart(leaves):
                return False
            if not _is_first(form, sizes):
                return None
            return _is_run(record, sizes, leaves, numbers)
    elif known is not None and type(known) is bool:
        return False
    found: list[int] = []
    for k in range(sizes[0]):
        found.append(sizes[k + 1])
    return outline, tuple(found), tuple(leaves), tuple(numbers)
