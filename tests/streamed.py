"""What tests of work behind the program share: slow native work, engines that send all there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gnomon.engine import Engine, ThreadedEngine
from gnomon.ndarray.core.bounded_cache import LEARNT, RECIPES
from gnomon.ndarray.lazy import recipe
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import program, stream
from gnomon.runtime.execution.program import Program, Status, Step
from gnomon.runtime.execution.stream import Turn
from gnomon.runtime.ffi import Block
from gnomon.runtime.once import once

_SLOW = """
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() {
  %time = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %ns.at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.at
  %s.ns = mul i64 %s, 1000000000
  %both = add i64 %s.ns, %ns
  ret i64 %both
}

; words: nanoseconds, status, count, and a word whose value the count is set to after
define void @slow(ptr %block) {
  %ns = load i64, ptr %block
  %begin = call i64 @now()
  %end = add i64 %begin, %ns
  br label %head
head:
  %now = call i64 @now()
  %more = icmp slt i64 %now, %end
  br i1 %more, label %head, label %out
out:
  %count.at = getelementptr i64, ptr %block, i64 2
  %count = load i64, ptr %count.at
  %next = add i64 %count, 1
  store i64 %next, ptr %count.at
  ret void
}
"""


@once
def _code() -> jit.Module:
    return jit.compile_ir(_SLOW)


class Slow:
    """A step that takes so many seconds, and fails where `fails`; it counts its runs."""

    def __init__(self, seconds: float, fails: bool = False, long: bool = True) -> None:
        self.block = Block([int(seconds * 1e9), int(fails), 0])
        status = Status(self.block.address + 8, "status {}".format) if fails else None
        work = stream.WOKEN if long else 1
        address = _code().address("slow")
        self.step = Step(address, self.block.address, self.block, "slow", status=status, work=work)

    @property
    def runs(self) -> int:
        return self.block.words[2]

    def turn(self) -> Turn:
        """A run of it, as engines take it."""
        return Turn(Program([self.step], "slow"))


@contextmanager
def all_behind(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """A scope in which all native work that is pushed goes to the stream."""
    with patch.context() as scope:
        scope.setattr(program, "is_long", lambda *given: True)
        scope.setattr("gnomon.runtime.kernels.template.is_long", lambda *given: True)
        scope.setattr(ThreadedEngine, "try_fast_path", _refused)
        scope.setattr(ThreadedEngine, "run_brief", _refused)
        scope.setattr(recipe, "fits", lambda step: False)
        _forget()  # what was learnt of short work
        yield
    _forget()


def _forget() -> None:
    RECIPES.forget()
    LEARNT.forget()


def _refused(engine: Engine, *arguments: Any) -> bool:
    return False
