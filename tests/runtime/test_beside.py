"""Chains side by side: each in order, for any threads, within another, and in a forked child."""

from __future__ import annotations

import os

import pytest

from gnomon.base import GnomonError
from gnomon.runtime import jit, threads
from gnomon.runtime.beside import beside
from gnomon.runtime.native import Block
from gnomon.runtime.program import Program, Status, Step

CODE = """
define void @next(ptr %block) {  ; block: where, value; where * 10 + value
  %where = load ptr, ptr %block
  %v.at = getelementptr i64, ptr %block, i64 1
  %v = load i64, ptr %v.at
  %n = load i64, ptr %where
  %m = mul i64 %n, 10
  %r = add i64 %m, %v
  store i64 %r, ptr %where
  ret void
}
"""


def chains(count: int) -> tuple[list[list[Step]], Block]:
    """Chain k writes 123 with k threes."""
    module, where = jit.compile_ir(CODE), Block(count)
    found = []
    for k in range(count):
        blocks = [Block([where.address + 8 * k, v]) for v in (1, 2, *[3] * k)]
        found.append([Step(module.address("next"), b.address, (module, b)) for b in blocks])
    return found, where


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_chain_in_order(count: int) -> None:
    before = threads.num_threads()
    try:
        threads.set_num_threads(count)
        given, where = chains(5)
        Program([beside(given, "chains")]).run()
        assert list(where.words) == [12, 123, 1233, 12333, 123333]
        inner, where = chains(3)
        beside([[beside(inner, "inner")], []], "outer").run()
        assert list(where.words) == [12, 123, 1233]
    finally:
        threads.set_num_threads(before)


def test_what_may_fail_is_refused() -> None:
    word = Block(1)
    status = Status(word.address, str)
    step = Step(threads.spread_address(), word.address, name="one", status=status)
    with pytest.raises(GnomonError, match=r"beside: Step\('one'\) may fail"):
        beside([[step]], "chains")


def test_in_a_forked_child() -> None:
    given, where = chains(2)
    step = beside(given, "chains")
    step.run()
    pid = os.fork()
    if not pid:
        where.words[0] = where.words[1] = 0
        step.run()
        os._exit(0 if list(where.words) == [12, 123] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
