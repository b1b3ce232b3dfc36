"""Which registers own what they hold, and what a function does to its callers' references.

A register that holds a borrowed object must own it where the object might go while it is needed:
where other code may run, as a finaliser does, or something is released. Releasing what registers
own runs code in turn, so the analysis goes on until no register is added:

1. *Liveness*, backwards: which registers are read behind each operation.
2. *Assignment*, forwards: which variables may be set before each block, to be released in the end.
3. *Ownership*: a register owns what is a new reference, and what is live where code may run.

A temporary is released behind its last use, or where the flow goes another way; a variable when it
is set again and when the function ends, as in Python.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gnomon.native.ir import ANY, FAIL, Assign, Block, Define, Op, Register, Return, Take, freeing
from gnomon.native.kinds import HARMLESS


class Ownership(NamedTuple):
    """What the analysis found."""

    owning: int  # the registers that own what they hold
    temporaries: int
    runs: str  # what may run in the function
    fails: bool  # it may raise an error
    lends: bool  # the object that it gives is borrowed


class _Run(NamedTuple):
    """Code may run while others are live: if `register` owns what is released there."""

    register: int  # 0: at any rate
    runs: str
    live: int


def find_ownership(
    blocks: Sequence[Block], registers: Sequence[Register], may_lend: bool
) -> Ownership:
    """Sets what blocks and operations say of liveness, and finds out what owns."""
    _link(blocks)
    _find_live(blocks)
    _find_assigned(blocks)
    temporaries = sum(r.bit for r in registers if not r.is_variable)
    ends = {r.bit: freeing(r.kind) for r in registers}
    runs = [run for block in blocks for run in _runs(block, ends, temporaries)]
    ops = [op for block in blocks for op in block.ops]
    owning = _owning(ops, registers, runs, temporaries)
    ran = {run.runs for run in runs if not run.register or run.register & owning}
    ran |= {ends[bit] for bit in bits(owning & ~temporaries)}
    lent = not any(isinstance(op, Return) and _is_owned(op, owning) for op in ops)
    fails = any(FAIL in block.targets for block in blocks)
    what = ANY if ANY in ran else "".join(ran)
    return Ownership(owning, temporaries, what, fails, may_lend and lent and not ran)


def is_moved(op: Take, owning: int) -> bool:
    """Whether an operation takes the reference of its source, which nothing reads any more."""
    return _is_owned(op, owning) and not op.source.bit & op.live  # type: ignore[union-attr]


def _is_owned(op: Take, owning: int) -> bool:
    return op.source is not None and bool(op.source.bit & owning)


def dying(op: Op, temporaries: int) -> int:
    """The temporaries that an operation is the last to use."""
    return (op.uses | op.defines) & ~op.live & temporaries


def bits(mask: int) -> Iterator[int]:
    """Each register of a set."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _link(blocks: Sequence[Block]) -> None:
    by_label = {block.label: block for block in blocks}
    for block in blocks:
        block.next = [by_label[label] for label in block.targets if label != FAIL]


def _find_live(blocks: Sequence[Block]) -> None:
    passed = {}  # of each block: what it reads before it sets that, and what it does not set
    for block in blocks:
        reads, keeps = 0, -1
        for op in reversed(block.ops):
            reads, keeps = reads & ~op.defines | op.uses, keeps & ~op.defines
        passed[block] = reads, keeps
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            reads, keeps = passed[block]
            live = reads | _union(to.live for to in block.next) & keeps
            changed |= live != block.live
            block.live = live
    for block in blocks:
        live = _union(to.live for to in block.next)
        for op in reversed(block.ops):
            op.live = live
            live = live & ~op.defines | op.uses


def _find_assigned(blocks: Sequence[Block]) -> None:
    sets = {b: _union(op.defines for op in b.ops if isinstance(op, Assign)) for b in blocks}
    changed = True
    while changed:
        changed = False
        for block in blocks:
            for to in block.next:
                assigned = to.assigned | block.assigned | sets[block]
                changed |= assigned != to.assigned
                to.assigned = assigned


def _union(masks: Iterable[int]) -> int:
    return functools.reduce(operator.or_, masks, 0)


def _runs(block: Block, ends: dict[int, str], temporaries: int) -> Iterator[_Run]:
    """Where code may run."""
    assigned = block.assigned
    for op in block.ops:
        if op.runs:
            yield _Run(0, op.runs, (op.live | op.uses) & ~op.defines)
        if isinstance(op, Assign):
            if op.register.is_variable and assigned & op.defines:
                yield _Run(op.defines, ends[op.defines], op.live & ~op.defines)
            assigned |= op.defines
        last = dying(op, temporaries)
        if last and isinstance(op, Take) and op.source is not None:
            last &= ~op.source.bit  # it is moved
        yield from (_Run(bit, ends[bit], op.live) for bit in bits(last))
    left = block.ops[-1].live & temporaries
    for live in (to.live for to in block.next):
        yield from (_Run(bit, ends[bit], live) for bit in bits(left & ~live))
    if FAIL in block.targets:
        yield from (_Run(bit, ends[bit], 0) for bit in bits(left))


def _owning(
    ops: Sequence[Op], registers: Sequence[Register], runs: Sequence[_Run], temporaries: int
) -> int:
    assigns = [op for op in ops if isinstance(op, Assign)]
    defines = [op for op in ops if isinstance(op, Define)]
    owning = sum(op.defines for op in defines if op.owned)
    loose = _loose(assigns, sum(op.defines for op in defines))
    slight = sum(r.bit for r in registers if r.kind.cls in HARMLESS or r.kind.cls is object)
    before = -1
    while before != owning:
        before = owning
        for register, what, live in runs:
            if not register or register & owning:
                owning |= live & loose & (-1 if what == ANY else slight)
        for op in assigns:
            if _is_owned(op, owning & temporaries):
                owning |= op.defines
    return owning


def _loose(assigns: Sequence[Assign], loose: int) -> int:
    """The registers that hold what may go before the function ends."""
    before = 0
    while before != loose:
        before = loose
        for op in assigns:
            if op.uses & loose:
                loose |= op.defines
    return loose
