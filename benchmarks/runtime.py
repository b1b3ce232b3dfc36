"""What the runtime itself costs: `python benchmarks/runtime.py [jit step threads pool gemm conv]`.

Every figure is the least of several rounds, so that other work on the machine shows little.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from gnomon import config
from gnomon.runtime.compiler import jit
from gnomon.runtime.devices import pool
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Program, Step
from gnomon.runtime.ffi import Block, function, pointer
from gnomon.runtime.libraries import blas, dnn, gemm
from gnomon.runtime.libraries.product import product

CODE = """
declare void @gnomon_parallel(ptr, ptr, i64)

define void @nothing(ptr %block) {
  ret void
}

define internal void @work(ptr %turns, i64 %task, i64 %tasks) {
  %n = load i64, ptr %turns
  br label %loop
loop:
  %i = phi i64 [0, %0], [%next, %loop]
  %seen = load volatile i64, ptr %turns
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

define void @jobs(ptr %block) {  ; block: jobs, turns of a task, turns between jobs, tasks
  %jobs = load i64, ptr %block
  %turns = getelementptr i64, ptr %block, i64 1
  %gap = getelementptr i64, ptr %block, i64 2
  %tasks.at = getelementptr i64, ptr %block, i64 3
  %tasks = load i64, ptr %tasks.at
  br label %loop
loop:
  %i = phi i64 [0, %0], [%next, %loop]
  call void @gnomon_parallel(ptr @work, ptr %turns, i64 %tasks)
  call void @work(ptr %gap, i64 0, i64 1)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %jobs
  br i1 %more, label %loop, label %out
out:
  ret void
}
"""


def best(work: Callable[[], Any], seconds: float = 0.01, rounds: int = 15) -> float:
    """Microseconds of one call: the least mean of `rounds` turns of about `seconds`."""
    work()
    start = time.perf_counter()
    work()
    calls = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    least = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        least = min(least, (time.perf_counter() - start) / calls)
    return least * 1e6


@functools.cache
def code() -> jit.Module:
    return jit.compile_ir(CODE, symbols={"gnomon_parallel": threads.parallel_address()})


def bench_jit() -> None:
    text = "define i64 @f(i64 %a) {{ %r = add i64 %a, {}\n ret i64 %r }}"
    numbers = iter(range(1 << 30))
    code = jit.object_code(text.format(0))
    compiled = best(lambda: jit.compile_ir(text.format(next(numbers))))
    linked = best(lambda: jit.load_object(code))
    print(f"compile a function      {compiled:9.1f} us")
    print(f"load an object          {linked:9.1f} us")


def bench_step() -> None:
    block = Block(1)
    step = Step(code().address("nothing"), block.address, block)
    by_cffi, by_ctypes = function(step.function), ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    one, other = pointer(block.address), ctypes.c_void_p(block.address)
    called = by_ctypes(step.function)
    empty = best(lambda: None)
    program = Program([step] * 1000)
    print(f"Step.run                {best(step.run):9.3f} us")
    print(f"the call by cffi        {best(lambda: by_cffi(one)) - empty:9.3f} us")
    print(f"the call by ctypes      {best(lambda: called(other)) - empty:9.3f} us")
    print(f"Program of 1000 steps   {best(program.run) / 1000:9.4f} us a step")


def bench_threads() -> None:
    many, before = 200, threads.num_threads()
    turn = best(functools.partial(jobs, 1, 1_000_000, 1, 1)) / 1_000_000
    print(f"{threads.kind()}: microseconds of a job of two tasks on 1 and on 2 threads")
    for work, gap in ((0, 0), (6, 0), (6, 6), (6, 40), (25, 10), (25, 200)):
        run = functools.partial(jobs, many, work / turn, gap / turn, 2)
        times = []
        for number in (1, 2):
            threads.set_num_threads(number)
            times.append(best(run) / many)
        print(f"tasks of {work:2} us, then {gap:3} us alone: {times[0]:7.2f} {times[1]:7.2f}")
    threads.set_num_threads(before)


def jobs(number: int, turns: float, gap: float, tasks: int) -> None:
    block = Block([number, max(1, int(turns)), max(1, int(gap)), tasks])
    Step(code().address("jobs"), block.address, block).run()


def bench_pool() -> None:
    print(f"allocate and free, 1 KB {best(lambda: pool.allocate(1000)):9.2f} us")
    print(f"allocate and free, 5 MB {best(lambda: pool.allocate(5_000_000)):9.2f} us")
    storage = pool.allocate(4000)
    print(f"Storage.view            {best(lambda: storage.view('float32', (10, 100))):9.2f} us")
    print(f"first touch of 8 MB     {first_touch(8 << 20) * 1e3:9.2f} ms")


def first_touch(nbytes: int) -> float:
    least = float("inf")
    for _ in range(9):
        pool.release_all()
        fresh = pool.allocate(nbytes).view("uint8", (nbytes,))
        start = time.perf_counter()
        fresh.fill(1)
        least = min(least, time.perf_counter() - start)
        del fresh
    return least


def bench_gemm() -> None:
    shapes = [
        (32, 64, 128), (32, 128, 784), (128, 128, 784), (256, 256, 256), (512, 512, 512),
        (1024, 64, 64), (4096, 128, 576), (1, 1024, 1024),
    ]  # fmt: skip
    print("float32; microseconds and GFLOP/s of OpenBLAS, oneDNN, and the one that gemm takes")
    for m, n, k in shapes:
        arrays = [np.ones(shape, "float32") for shape in ((m, k), (k, n), (m, n))]
        at = [array.ctypes.data for array in arrays]
        what = product("float32", m, n, k)
        steps: list[Any] = [blas.step(what), dnn.matmul(what)]
        for step in steps:
            step.bind(*at)
        steps.append(gemm.gemm_step("float32", m, n, k, *at))
        times = [best(step.run) for step in steps]
        shown = "   ".join(f"{t:8.1f} {2 * m * n * k / t / 1e3:5.0f}" for t in times)
        print(f"({m:4}, {n:4}, {k:4}):  {shown}")


def bench_conv() -> None:
    shapes = [
        ((32, 1, 28, 28), (20, 1, 5, 5)), ((32, 20, 12, 12), (50, 20, 5, 5)),
        ((32, 16, 8, 8), (32, 16, 3, 3)), ((32, 64, 56, 56), (64, 64, 3, 3)),
        ((32, 256, 14, 14), (256, 256, 3, 3)), ((32, 256, 14, 14), (1024, 256, 1, 1)),
    ]  # fmt: skip
    print("plain float32 data; microseconds and GFLOP/s: forward, gradient of data, of weight")
    for data, weight in shapes:
        conv = dnn.Convolution(data, weight)
        x, w, y = (np.ones(shape, "float32").ctypes for shape in (data, weight, conv.out))
        steps = [dnn.convolution_forward(conv), dnn.convolution_backward_data(conv)]
        steps.append(dnn.convolution_backward_weight(conv))
        for step in steps:
            step.bind(x.data, w.data, y.data)
        times = [best(step.run, rounds=7) for step in steps]
        shown = "   ".join(f"{t:8.0f} {2 * conv.work / t / 1e3:5.0f}" for t in times)
        print(f"{data} {weight}:  {shown}")


def main() -> None:
    table = {
        "jit": bench_jit, "step": bench_step, "threads": bench_threads, "pool": bench_pool,
        "gemm": bench_gemm, "conv": bench_conv,
    }  # fmt: skip
    if "GNOMON_GOMP" in os.environ:
        print("libgomp:", config.get("gomp"))
    for name in sys.argv[1:] or table:
        print(f"--- {name}")
        table[name]()


if __name__ == "__main__":
    main()
