"""Chains of steps side by side: each runs from its first step to its last on one thread.

Chains that need nothing of each other need not wait for each other either. Inside of one the pool
is taken, so each of its steps does all of its tasks itself. A chain ends at a step that fails; the
others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnomon.native.memory import Struct, address_of
from gnomon.native.serve import raw_code
from gnomon.native.words import Words, native
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Nested, Program, Status, Step, Table, failure, run
from gnomon.runtime.execution.threads import gnomon_parallel
from gnomon.runtime.ffi import Block
from gnomon.runtime.once import once


class Job(Struct):
    """Programs to run, whose blocks' addresses begin at the last word, and the first that failed.

    The number of that is one more, and zero is none.
    """

    count: int
    failed: int
    programs: int


@native
def chain(programs: Words, task: int, tasks: int) -> None:
    run(Table(programs[task]))


@native
def run_chains(job: Job) -> None:
    programs = job + Job.programs
    gnomon_parallel(address_of(chain), programs, job.count)
    job.failed = 0
    for k in range(job.count):
        if Table(programs[k]).failed != 0:
            job.failed = k + 1
            return


@once
def _code() -> jit.Module:
    return raw_code(run_chains, symbols={"gnomon_parallel": threads.parallel_address()})


def parallel_chains(chains: Iterable[Sequence[Step]], name: str) -> Step:
    """One step that does all of `chains`; it fails where a step of theirs does.

    >>> parallel_chains([[], []], "nothing").run()
    """
    programs = [Program(chain, name) for chain in chains]
    code = _code()
    job = Block([len(programs), 0, *(each.block for each in programs)])
    return Nested(
        programs,
        code.address("run_chains"),
        job.address,
        keep=(code, programs, job),
        name=name,
        bytes=sum(each.bytes for each in programs),
        flops=sum(each.flops for each in programs),
        status=Status(job.address + 8, lambda number: failure(programs[number - 1])),
        work=sum(each.work for each in programs),
    )
