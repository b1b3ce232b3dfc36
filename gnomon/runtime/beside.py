"""Chains of steps side by side: each runs from its first step to its last on one thread.

Chains that need nothing of each other need not wait for each other either. Inside of one the pool
is taken, so each of its steps does all of its tasks itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnomon.base import GnomonError
from gnomon.runtime import jit, objects, program, threads
from gnomon.runtime.native import Block
from gnomon.runtime.once import once
from gnomon.runtime.program import Program, Step

_TEXT = """
declare void @gnomon_run(ptr)

define void @chain(ptr %blocks, i64 %task, i64 %tasks) {
  %at = getelementptr ptr, ptr %blocks, i64 %task
  %block = load ptr, ptr %at
  call void @gnomon_run(ptr %block)
  ret void
}
"""


@once
def _code() -> jit.Module:
    return objects.compiled(_TEXT, symbols={"gnomon_run": program.run_address()})


def beside(chains: Iterable[Sequence[Step]], name: str) -> Step:
    """One step that does all of `chains`, whose steps must not be able to fail.

    >>> beside([[], []], "nothing").run()

    Raises:
        GnomonError: a step may fail, which nobody would be told.
    """
    programs = [Program(chain, name) for chain in chains]
    steps = [step for each in programs for step in each.steps]
    for step in steps:
        if step.status is not None:
            raise GnomonError(f"beside: {step!r} may fail")
    code, blocks = _code(), Block([each.block for each in programs])
    job = Block([code.address("chain"), blocks.address, len(programs)])
    return Step(
        threads.spread_address(),
        job.address,
        keep=(code, programs, blocks, job),
        name=name,
        bytes=sum(step.bytes for step in steps),
        flops=sum(step.flops for step in steps),
        work=sum(step.work for step in steps),
    )
