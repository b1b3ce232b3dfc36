"""Refills: how a kernel's argument block follows from integers; one native call fills and runs.

A kernel takes sizes, strides, addresses and numbers as words of a block, behind those that say how
its work is cut into tasks. A step has a block of its own, which is worth to be made for work that
comes again. A *refill* has one block for all sizes: `follow` fills it in and calls the kernel,
while Python's own lock is held. It refuses work that is long, or that needs memory of its own.

The record of a refill, in words:

    0  arguments, their address    each: times, offset, four integers to multiply by or -1
    2  steps, their address        each: operation, two operands; see `plan/signature.py`
    4  phases, their address       each: the words of its loops, see `plan/signature.py`
    6  needs, their address        each: the step that says how many elements of memory
    8  function, block             of the kernel
   10  first argument              its word in the block
   11  number of the argument that is how many tasks there are, or -1
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from gnomon.ground.record import Frozen, put
from gnomon.native.memory import divided
from gnomon.native.words import Words, call, native, scratch, whole
from gnomon.plan.scratch import TASKS
from gnomon.plan.signature import OPS
from gnomon.runtime.execution.program import LONG
from gnomon.runtime.execution.threads import num_threads, parallel_address
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.division import SHARE, divide
from gnomon.runtime.kernels.kernel import Kernel

_CONST, _ARG, _ADD, _SUB, _MUL, _NEG, _IDIV, _IMOD, _MIN, _MAX, _LT, _LE, _EQ, _NE = range(len(OPS))
FACTORS = 4  # integers that a word may be the product of
_ARGUMENT, _STEP = 2 + FACTORS, 3  # words of a row


class Word(NamedTuple):
    """A word of the arguments: `offset`, and so many `times` the product of these integers."""

    times: int
    offset: int
    factors: tuple[int, ...] = ()

    def words(self) -> tuple[int, ...]:
        """It as native code reads it."""
        return (self.times, self.offset, *(*self.factors, *[-1] * FACTORS)[:FACTORS])


@whole
class Refill(Frozen):
    """A refill; `keep` is what its record points to, and what the caller wants to know again."""

    __slots__ = ("keep", "record")

    keep: tuple[object, ...]
    record: int

    def __init__(self, kernel: Kernel, words: Sequence[Word], keep: object) -> None:
        signature = kernel.signature
        steps = [(OPS.index(op), *operands, 0)[:_STEP] for op, operands in signature.steps]
        phases = [loops.words() for loops in signature.phases]
        needs = [[piece.elements] for piece in signature.scratch]
        rows = [word.words() for word in words]
        parts: list[Sequence[Sequence[int]]] = [rows, steps, phases, needs]
        tables = [Block([*chain.from_iterable(part)] or 1) for part in parts]
        head = chain.from_iterable((len(p), t.address) for p, t in zip(parts, tables, strict=True))
        tasks = signature.args.index(TASKS) if TASKS in signature.args else -1
        block = Block(kernel.first + len(words))
        record = Block([*head, kernel.address, block.address, kernel.first, tasks])
        put(self, "keep", (keep, kernel, block, record, tables))
        put(self, "record", record.address)


# -- native code ------------------------------------------------------------------------------


@native
def _quotient(a: int, b: int) -> int:
    """`a // b` of a divisor that is not below 0; 0 of 0."""
    if b <= 0:
        return 0
    return divided(a, b) if a >= 0 else -divided(b - 1 - a, b)


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
    if op == _MIN:
        return min(a, b)
    if op == _MAX:
        return max(a, b)
    if op == _LT:
        return 1 if a < b else 0
    if op == _LE:
        return 1 if a <= b else 0
    return 1 if (a == b) == (op == _EQ) else 0


@native
def _fold(refill: Words, arguments: Words, values: Words) -> None:
    """The steps with sizes, of these arguments."""
    row = Words(refill[3])
    for k in range(refill[2]):
        if row[0] == _CONST:
            values[k] = row[1]
        elif row[0] == _ARG:
            values[k] = arguments[row[1]]
        else:
            values[k] = _folded(row[0], values[row[1]], values[row[2]])
        row = row + _STEP


@native
def _needs_memory(refill: Words, values: Words) -> bool:
    """Whether the kernel is to have memory to work in."""
    row = Words(refill[7])
    return any(values[row[k]] != 0 for k in range(refill[6]))


@native
def _enter(refill: Words, given: Words, arguments: Words) -> None:
    """The words of the arguments, of these integers."""
    row = Words(refill[1])
    for k in range(refill[0]):
        product = row[0]
        for j in range(FACTORS):
            if row[j + 2] >= 0:
                product = product * given[row[j + 2]]
        arguments[k] = product + row[1]
        row = row + _ARGUMENT


@native
def follow(refill: Words, given: Words) -> bool:
    """Whether a kernel ran with the arguments that follow from integers; nothing is done else."""
    count = refill[0]
    phases = refill[4]
    arguments = scratch(count + SHARE * phases + refill[2])
    shares = arguments + count
    values = shares + SHARE * phases
    _enter(refill, given, arguments)
    if refill[11] >= 0:
        arguments[refill[11]] = 1
    _fold(refill, arguments, values)
    threads: int = num_threads()
    if divide(Words(refill[5]), phases, values, threads, shares) > LONG:
        return False
    tasks = 1
    for k in range(phases):
        tasks = max(tasks, shares[SHARE * k])
    if tasks > 1 and refill[11] >= 0:
        arguments[refill[11]] = tasks
        _fold(refill, arguments, values)
    if _needs_memory(refill, values):
        return False
    block = Words(refill[9])
    shared: int = parallel_address() if tasks > 1 else 0
    block[0] = shared
    for k in range(SHARE * phases):
        block[k + 1] = shares[k]
    block = block + refill[10]
    for k in range(count):
        block[k] = arguments[k]
    call(refill[8], refill[9])
    return True
