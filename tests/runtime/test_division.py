"""Divisions of kernels into tasks, and steps with sizes: by native code as by Python."""

from __future__ import annotations

import ctypes
import random

from gnomon.expr.functions.primitive import FOLD_INT
from gnomon.native.serve import raw_code
from gnomon.plan.signature import ARITY, OPS, Loops, Shared
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels import refill
from gnomon.runtime.kernels.division import BY_ROWS, SHARE, divide

SIZES = 6


def loops_of(chance: random.Random, k: int) -> Loops:
    """The loops of phase number `k`."""
    size = chance.choice([*range(SIZES)])
    kind = [chance.random() < 0.5 for _ in range(3)]
    if chance.random() < 0.2:
        return Loops(None, (), *kind[:2], False, ())
    rows = tuple(chance.choices(range(SIZES), k=chance.randrange(3)))
    times = [None, *range(SIZES)]
    cost = tuple((chance.randrange(50), chance.choice(times)) for _ in range(chance.randrange(4)))
    own = Shared(*chance.choices(range(SIZES), k=2), k > 0 and chance.random() < 0.5)
    return Loops(size, rows, *kind, cost, own if chance.random() < 0.3 else None)


def test_native_code_and_python_divide_alike():
    code = raw_code(divide)
    native = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(code.address("divide"))
    chance, by_rows = random.Random(7), 0
    for _ in range(2000):
        sizes = [chance.choice([0, 1, 2, 7, chance.randrange(3000)]) for _ in range(SIZES)]
        phases = [loops_of(chance, k) for k in range(chance.randrange(1, 5))]
        words = [word for loops in phases for word in loops.words()]
        count, threads = len(phases), chance.choice([1, 2, 3, 8])
        shares = [-1] * (SHARE * count)
        total = divide(words, count, sizes, threads, shares)
        blocks = [Block(words), Block(sizes), Block([-1] * len(shares))]
        given = [block.address for block in blocks]
        assert native(given[0], count, given[1], threads, given[2]) == total
        assert list(blocks[2].words) == shares, (phases, sizes, threads)
        for k, loops in enumerate(phases):
            tasks, block, each, every = shares[SHARE * k : SHARE * (k + 1)]
            inner = 1 if loops.inner is None else sizes[loops.inner]
            covers = block * each >= inner or each == BY_ROWS or tasks == 0
            assert covers, "every iteration is in a block, but of a phase left to the next"
            assert tasks <= max(every, 1), "no task is without work"
            by_rows += each == BY_ROWS and inner > 0
    assert by_rows, "some are cut by rows"


def test_native_steps_with_sizes_are_those_of_python():
    code, numbers = raw_code(refill._folded), (-9, -4, -1, 0, 1, 3, 4, 7, 2**30)
    native = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(code.address("_folded"))
    for name, fold in FOLD_INT.items():
        op = OPS.index(name)
        for a, b in ((a, b) for a in numbers for b in numbers if b >= 0 or name[0] != "i"):
            expected = fold(*(a, b)[: ARITY.get(name, 2)])
            assert refill._folded(op, a, b) == native(op, a, b) == expected, (name, a, b)
