"""Steps and programs: order, failure, timing, ownership, use without the GIL."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

from gnomon.base import GnomonError
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution.program import Program, Status, Step
from gnomon.runtime.ffi import Block

from .jobs import APPEND

CODE = """
declare i32 @usleep(i32)
define void @fail(ptr %block) {  ; block: status, code
  %code.at = getelementptr i64, ptr %block, i64 1
  %code = load i32, ptr %code.at
  store i32 %code, ptr %block
  ret void
}
define void @doze(ptr %block) {
  %us = load i32, ptr %block
  %r = call i32 @usleep(i32 %us)
  ret void
}
"""


@pytest.fixture(scope="module")
def code() -> jit.Module:
    return jit.compile_ir(APPEND + CODE)


def append(code: jit.Module, log: Block, value: int) -> Step:
    block = Block([log.address, value])
    return Step(code.address("append"), block.address, keep=(block, log), name=f"append{value}")


def failing(code: jit.Module, status: int) -> Step:
    block = Block([0, status])
    report = Status(block.address, lambda n: f"status {n}")
    return Step(code.address("fail"), block.address, block, "failing", status=report)


def test_step_runs(code: jit.Module) -> None:
    log = Block(4)
    append(code, log, 5).run()
    assert list(log.words) == [1, 5, 0, 0]


def test_program_runs_in_order_and_takes_programs_apart(code: jit.Module) -> None:
    log = Block(8)
    steps = [append(code, log, n) for n in range(1, 4)]
    program = Program([steps[0], Program(steps[1:]), Program([])])
    program.run()
    assert list(log.words)[:4] == [3, 1, 2, 3]
    assert program.steps == tuple(steps)


def test_empty_program() -> None:
    Program([]).run()
    assert Program([]).profile() == []


def test_failure_stops_and_names(code: jit.Module) -> None:
    log = Block(8)
    program = Program([append(code, log, 1), failing(code, 3), append(code, log, 2)], name="net")
    with pytest.raises(GnomonError, match=r"net, step 1: step 'failing' failed: status 3"):
        program.run()
    with pytest.raises(GnomonError, match="status 3"):
        program.profile()
    assert list(log.words)[:3] == [2, 1, 1]


def test_failure_passes(code: jit.Module) -> None:
    step = failing(code, 7)
    program = Program([step])
    with pytest.raises(GnomonError, match="step 'failing' failed: status 7"):
        step.run()
    step.keep.words[1] = 0
    step.run()
    program.run()


def test_profile(code: jit.Module) -> None:
    blocks = [Block([2000]), Block([0])]
    steps = [
        Step(code.address("doze"), b.address, b, f"doze{i}", bytes=i, flops=10 * i)
        for i, b in enumerate(blocks)
    ]
    rows = Program(steps).profile()
    assert [(r.name, r.bytes, r.flops) for r in rows] == [("doze0", 0, 0), ("doze1", 1, 10)]
    assert rows[0].seconds >= 0.002
    assert rows[1].seconds >= 0


def test_program_keeps_owners(code: jit.Module) -> None:
    owner = np.zeros(3)
    gone = weakref.ref(owner)
    block = Block([0])
    program = Program([Step(code.address("doze"), block.address, (owner, block))])
    del owner
    program.run()
    assert gone() is not None
    del program
    assert gone() is None


def test_runs_without_the_gil(code: jit.Module) -> None:
    block = Block([300_000])
    program = Program([Step(code.address("doze"), block.address, block)])
    ticks = 0
    thread = threading.Thread(target=program.run)
    thread.start()
    while thread.is_alive():
        ticks += 1
    thread.join()
    assert ticks > 1000
