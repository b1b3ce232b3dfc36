"""Native code that tests run: a step that appends to a log, and a job for the pool of threads.

The job counts every task, notes its thread, nests and dozes.
"""

from __future__ import annotations

import functools

from gnomon.runtime.compiler import jit
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Step
from gnomon.runtime.ffi import Block

APPEND = """
define void @append(ptr %block) {  ; block: log, value; log: count, entries
  %log = load ptr, ptr %block
  %v.at = getelementptr i64, ptr %block, i64 1
  %v = load i64, ptr %v.at
  %n = load i64, ptr %log
  %m = add i64 %n, 1
  store i64 %m, ptr %log
  %at = getelementptr i64, ptr %log, i64 %m
  store i64 %v, ptr %at
  ret void
}
"""

# block of a task: counts, thread of each task, microseconds to doze, counts of the nested job
CODE = """
declare void @gnomon_parallel(ptr, ptr, i64)
declare i64 @pthread_self()
declare i32 @usleep(i32)

define void @task(ptr %block, i64 %task, i64 %tasks) {
  %counts = load ptr, ptr %block
  %count.at = getelementptr i64, ptr %counts, i64 %task
  %old = atomicrmw add ptr %count.at, i64 1 monotonic
  %threads.at = getelementptr ptr, ptr %block, i64 1
  %threads = load ptr, ptr %threads.at
  %thread.at = getelementptr i64, ptr %threads, i64 %task
  %me = call i64 @pthread_self()
  store i64 %me, ptr %thread.at
  %doze.at = getelementptr i64, ptr %block, i64 2
  %doze = load i32, ptr %doze.at
  %tired = icmp ne i32 %doze, 0
  br i1 %tired, label %sleep, label %nest
sleep:
  %r = call i32 @usleep(i32 %doze)
  br label %nest
nest:
  %inner.at = getelementptr ptr, ptr %block, i64 3
  %inner = load ptr, ptr %inner.at
  %nested = icmp ne ptr %inner, null
  br i1 %nested, label %again, label %out
again:
  call void @gnomon_parallel(ptr @inner, ptr %inner, i64 4)
  br label %out
out:
  ret void
}

define void @inner(ptr %counts, i64 %task, i64 %tasks) {
  %count.at = getelementptr i64, ptr %counts, i64 %task
  %old = atomicrmw add ptr %count.at, i64 1 monotonic
  ret void
}
"""


@functools.cache
def code() -> jit.Module:
    return jit.compile_ir(CODE, symbols={"gnomon_parallel": threads.parallel_address()})


class Job:
    """`tasks` counted tasks as a step."""

    def __init__(self, tasks: int, doze: int = 0, nested: bool = False) -> None:
        self.counts, self.threads, self.inner = Block(tasks or 1), Block(tasks or 1), Block(4)
        inner = self.inner.address if nested else 0
        self.block = Block([self.counts.address, self.threads.address, doze, inner])
        self.job = Block([code().address("task"), self.block.address, tasks])
        self.step = Step(threads.spread_address(), self.job.address, self)
        self.tasks = tasks

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            self.step.run()

    def complete(self, times: int = 1) -> bool:
        return list(self.counts.words)[: self.tasks] == [times] * self.tasks

    def used(self) -> int:
        return len(set(self.threads.words))
