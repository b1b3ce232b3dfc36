"""Chains side by side: each in order, for any threads, within another, and in a forked child."""

from __future__ import annotations

import os

import pytest

from gnomon.base import GnomonError
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.parallel_chains import parallel_chains
from gnomon.runtime.execution.program import Program, Status, Step
from gnomon.runtime.ffi import Block

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
        Program([parallel_chains(given, "chains")]).run()
        assert list(where.words) == [12, 123, 1233, 12333, 123333]
        inner, where = chains(3)
        parallel_chains([[parallel_chains(inner, "inner")], []], "outer").run()
        assert list(where.words) == [12, 123, 1233]
    finally:
        threads.set_num_threads(before)


def test_what_fails_ends_its_chain_and_is_told() -> None:
    module, word = jit.compile_ir(CODE), Block([0, 7])  # a step writes its own status
    status = Status(word.address, lambda code: f"code {code}")
    failing = Step(module.address("next"), Block([word.address, 7]).address, name="one")
    given, where = chains(3)
    block = Block([word.address, 7])
    failing = Step(module.address("next"), block.address, (module, block), "one", status=status)
    given[1].insert(1, failing)
    step = parallel_chains(given, "chains")
    expected = "step 'chains' failed: chains, step 1: step 'one' failed: code 7"
    with pytest.raises(GnomonError, match=expected):
        step.run()
    assert list(where.words) == [12, 1, 1233]
    block.words[1] = word.words[0] = where.words[0] = where.words[1] = where.words[2] = 0
    Program([step]).run()
    assert list(where.words) == [12, 123, 1233]


def test_in_a_forked_child() -> None:
    given, where = chains(2)
    step = parallel_chains(given, "chains")
    step.run()
    pid = os.fork()
    if not pid:
        where.words[0] = where.words[1] = 0
        step.run()
        os._exit(0 if list(where.words) == [12, 123] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
