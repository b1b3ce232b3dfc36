"""The runtime's raw functions as Python runs them: they do what their native code does."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import program
from gnomon.runtime.execution.program import Program, Status, Step, Table, Timed
from gnomon.runtime.ffi import Block, symbol
from gnomon.runtime.libraries import blas, blas_code
from gnomon.runtime.libraries.product import product

from .jobs import APPEND


@pytest.mark.parametrize("failing", [None, 0, 1, 2])
def test_programs(failing):
    code, log = jit.compile_ir(APPEND), Block(8)
    blocks = [Block([log.address, value, int(value == failing)]) for value in range(3)]
    steps = [
        Step(code.address("append"), b.address, status=Status(b.address + 16, str)) for b in blocks
    ]
    made = Program(steps)
    made._call(*made._arguments)
    found = list(log.words), made.table.words[1]
    times = Block(12)
    given = Block([made.block, times.address])
    for run, struct in ((program.run, Table(made.block)), (program.timed, Timed(given.address))):
        log.words[0:8] = [0] * 8
        made.table.words[1] = -1
        run(struct)
        assert (list(log.words), made.table.words[1]) == found
    count = 3 if failing is None else failing + 1
    assert [bool(times.words[4 * k + 2]) for k in range(3)] == [k < count for k in range(3)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 3, 4), (40, 7, 4), (7, 40, 4), (6, 1, 5), (1, 6, 5)])
def test_products(dtype, shape, monkeypatch):
    m, n, k = shape
    assert blas.supports(dtype)  # its native code is made before Python's form has other names
    for name in ("sgemm", "dgemm", "sgemv", "dgemv"):
        declared = getattr(blas_code, name)
        monkeypatch.setattr(blas_code, name, by_ctypes(declared))
    a, b = (np.arange(x * y, dtype=dtype).reshape(x, y) for x, y in ((m, k), (k, n)))
    results = np.empty((2, m, n), dtype)
    for result, native in zip(results, (True, False), strict=True):
        step = blas.step(product(dtype, m, n, k))
        step.bind(a.ctypes.data, b.ctypes.data, result.ctypes.data)
        if native:
            step.run()
            continue
        _, operands, tasks, *_ = step._words.words
        for task in range(tasks):
            blas_code.many(blas_code.Shared(operands), task, tasks)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], a @ b, rtol=1e-5)


def by_ctypes(declared):
    """What calls BLAS's function of that declaration."""
    types = {"int": ctypes.c_int32, "void *": ctypes.c_void_p}
    types |= {"float": ctypes.c_float, "double": ctypes.c_double}
    kind = ctypes.CFUNCTYPE(None, *(types[k] for k in declared.kinds))
    return kind(symbol(blas.library(), f"scipy_cblas_{declared.name}"))


POOL = """
from gnomon.runtime.execution import thread_code as code
order = []
@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
def task(block, k, count):
    order.append((block, k, count))
    return 0
place = ctypes.cast(task, ctypes.c_void_p).value
code.own_renew(0)
code.own_parallel(place, 7, 3)  # one thread: alone
assert order == [(7, 0, 3), (7, 1, 3), (7, 2, 3)], order
code.share(place, 8, 2)
assert order[3:] == [(8, 0, 2), (8, 1, 2)], order
code.TICKET[0] = (code.TICKET[0] & ~0xFFFFFFFF) | 5 << 16 | 3  # tasks 5 to 7, as a worker
code.PENDING[0] = 3
code.drain(False)
assert [k for _, k, _ in order[5:]] == [7, 6, 5] and code.PENDING[0] == 0, order
"""

STREAM = """
from gnomon.runtime.execution import stream_code as code
from gnomon.runtime.ffi import Block
ran = []
@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def work(block):
    ran.append((block, list(words.words)))
    return 0
place = ctypes.cast(work, ctypes.c_void_p).value
words, status = Block(2), Block(1)
at = words.address, words.address + 8
def enter(block, skip=0):
    made = Block([place, block, status.address, 1, 1, 0, 0, 0, skip, 50, 0, at[0], block, at[1], 9])
    code.RING[code.HEAD[0] % code.ROOM] = made.address
    code.HEAD[0] += 1
    code.LOAD[0] += 50
    return made
code.THREAD.spins, code.THREAD.threshold = 3, 1 << 40
tasks = [enter(1), enter(2, skip=1), enter(3)]
wait = Block([3, 100, -1])
def waited():
    code.stream_wait(code.Wait(wait.address))
    return waited() if wait.words[2] == code.AGAIN else wait.words[2]  # after 20 ms of help
assert not code.run_next(49)  # too long to help with
assert waited() == code.OVER and ran == [(1, [1, 0]), (3, [3, 9])], ran
assert (code.DONE[0], code.LOAD[0], list(words.words)) == (3, 0, [3, 9])
assert 0 < tasks[0].words[5] <= tasks[0].words[6] and tasks[1].words[5] == 0
status.words[0] = 4
tasks += [enter(5), enter(6)]
wait.words[0] = 5
assert waited() == code.STANDS and (code.DONE[0], tasks[3].words[7]) == (4, 4)
code.stream_renew(0)
assert code.HEAD[0] == code.DONE[0] == 4 and not code.waits()
"""


@pytest.mark.parametrize("script", [POOL, STREAM], ids=["pool", "stream"])
def test_words_of_threads(script):
    done = subprocess.run(
        [sys.executable, "-c", "import ctypes\n" + textwrap.dedent(script)],
        cwd=Path(__file__).parents[2], env=dict(os.environ), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
