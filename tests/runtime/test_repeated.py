"""Steps that native code does many times, at addresses that move."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings

import numpy as np

from gnomon.expr.node import Buffer
from gnomon.runtime.execution.program import Step
from gnomon.runtime.execution.repeated import Moved, repeated
from gnomon.runtime.kernels.template import blocks_of
from gnomon.runtime.statements.prepare import Store, prepare

TIMES, ROWS = 4, 12
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def counting(rows: np.ndarray, beside: list[Step]) -> Step:
    """Each row but the first is one more than the row before, up to TIMES; `beside` run as well."""
    places = [Buffer(row.shape, address=row.ctypes.data, owner=rows) for row in rows[:3]]
    made = [prepare([Store(places[k + 1], "saveto", places[k] + 1.0)]) for k in range(2)]
    pairs = zip(*(blocks_of(steps[0]) for steps in made), strict=True)
    moved = [Moved(places[k].address, places[k + 1].address, rows[0].nbytes) for k in range(2)]
    return repeated([*made[0], *beside], pairs, moved, TIMES, "counting")


def test_child_forked_amid_a_run_begins_at_the_first_time() -> None:
    reached, goes_on = threading.Event(), threading.Event()
    calls = []

    def pause(_: object) -> None:
        calls.append(1)
        if len(calls) == TIMES - 1:
            reached.set()
            goes_on.wait(60)

    function = CALLBACK(pause)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    rows = np.zeros((ROWS, 3), np.float32)
    step = counting(rows, [Step(address, 0, keep=(function,), name="pause")])
    runner = threading.Thread(target=step.run)
    runner.start()
    assert reached.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks amid threads: that is meant
        child = os.fork()
    if not child:
        rows[:] = 0
        step.run()
        os._exit(0 if rows[:, 0].tolist() == [*range(TIMES + 1)] + [0] * (ROWS - TIMES - 1) else 1)
    goes_on.set()
    runner.join()
    assert os.waitpid(child, 0)[1] == 0
    assert rows[:, 0].tolist() == [*range(TIMES + 1)] + [0] * (ROWS - TIMES - 1)
    rows[:] = 0
    step.run()
    assert rows[TIMES, 0] == TIMES
