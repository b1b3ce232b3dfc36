"""Chains of steps side by side: each runs from its first step to its last on one thread.

Chains that need nothing of each other need not wait for each other either. Inside of one the pool
is taken, so each of its steps does all of its tasks itself. A chain ends at a step that fails; the
others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnomon.runtime.compiler import jit, objects
from gnomon.runtime.execution import program, threads
from gnomon.runtime.execution.program import Program, Status, Step, failure
from gnomon.runtime.ffi import Block
from gnomon.runtime.once import once

_TEXT = """
declare void @gnomon_run(ptr)
declare void @gnomon_parallel(ptr, ptr, i64)

define internal void @chain(ptr %blocks, i64 %task, i64 %tasks) {
  %at = getelementptr ptr, ptr %blocks, i64 %task
  %block = load ptr, ptr %at
  call void @gnomon_run(ptr %block)
  ret void
}

; job: how many chains, the number of the first that failed plus one or zero, their programs' blocks
define void @parallel_chains(ptr %job) {
  %count = load i64, ptr %job
  %failed = getelementptr i64, ptr %job, i64 1
  %blocks = getelementptr i64, ptr %job, i64 2
  store i64 0, ptr %failed
  call void @gnomon_parallel(ptr @chain, ptr %blocks, i64 %count)
  br label %head
head:
  %i = phi i64 [0, %0], [%next, %look]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %out
look:
  %at = getelementptr ptr, ptr %blocks, i64 %i
  %block = load ptr, ptr %at
  %status.at = getelementptr i64, ptr %block, i64 1
  %status = load i64, ptr %status.at
  %next = add i64 %i, 1
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %head, label %stop
stop:
  store i64 %next, ptr %failed
  ret void
out:
  ret void
}
"""


@once
def _code() -> jit.Module:
    symbols = {
        "gnomon_run": program.run_address(),
        "gnomon_parallel": threads.parallel_address(),
    }
    return objects.compiled(_TEXT, symbols=symbols)


def parallel_chains(chains: Iterable[Sequence[Step]], name: str) -> Step:
    """One step that does all of `chains`; it fails where a step of theirs does.

    >>> parallel_chains([[], []], "nothing").run()
    """
    programs = [Program(chain, name) for chain in chains]
    code = _code()
    job = Block([len(programs), 0, *(each.block for each in programs)])
    return Step(
        code.address("parallel_chains"),
        job.address,
        keep=(code, programs, job),
        name=name,
        bytes=sum(each.bytes for each in programs),
        flops=sum(each.flops for each in programs),
        status=Status(job.address + 8, lambda number: failure(programs[number - 1])),
        work=sum(each.work for each in programs),
    )
