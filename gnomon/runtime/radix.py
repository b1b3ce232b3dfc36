"""A stable sort of pairs of 32 bits, by the threads of the pool.

The result is the same for any number of threads: equal keys keep their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.runtime import objects, threads
from gnomon.runtime.jit import Module
from gnomon.runtime.native import Block
from gnomon.runtime.once import once
from gnomon.runtime.program import Step
from gnomon.runtime.radix_code import DIGIT, DIGITS, FIELDS, PASSES, TEXT

Array = np.ndarray[Any, Any]
EACH = 1 << 15  # pairs that are worth a task
_TOP = 1 << 31
_HOW = {"f": (-1, _TOP), "i": (0, _TOP), "u": (0, 0)}  # signed and top by kind of key


@once
def _code() -> Module:
    return objects.compiled(TEXT)


def sort_pairs(keys: Array, beside: Array, ascending: bool = True) -> None:
    """Sort dense vectors of 32-bit elements by `keys`, in place; equal keys keep their order.

    Keys are compared by their bits: -0.0 comes before 0.0, and NaN beyond infinity, by its sign.

    >>> keys, beside = np.array([3, -1, 2], np.int32), np.array([0, 1, 2], np.uint32)
    >>> sort_pairs(keys, beside)
    >>> keys.tolist(), beside.tolist()
    ([-1, 2, 3], [1, 2, 0])
    """
    n = len(keys)
    tasks = max(1, min(threads.num_threads(), n // EACH))
    words, other = np.empty(n, np.uint64), np.empty(n, np.uint64)
    counts = np.empty((tasks, DIGITS), np.uint32)
    signed, top = _HOW[keys.dtype.kind]
    fixed = {
        "n": n,
        "counts": counts.ctypes.data,
        "beside": beside.ctypes.data,
        "signed": signed,
        "top": top,
        "flip": 0 if ascending else -1,
    }

    def run(name: str, source: Array, dest: Array, shift: int = 32) -> None:
        values = {**fixed, "source": source.ctypes.data, "dest": dest.ctypes.data, "shift": shift}
        block = Block([values[field] for field in FIELDS])
        job = Block([_code().address(name), block.address, tasks])
        Step(threads.spread_address(), job.address, (job, block)).run()

    run("pack", keys, words)
    for number in range(PASSES):
        shift = 32 + DIGIT * number
        if number:
            run("count", words, other, shift)
        _starts(counts)
        run("scatter", words, other, shift)
        words, other = other, words
    run("unpack", words, keys)


def _starts(counts: Array) -> None:
    """How many there are of each digit for each task becomes where its first one goes."""
    flat = counts.T.reshape(-1)
    counts[:] = (np.cumsum(flat) - flat).reshape(DIGITS, -1).T
