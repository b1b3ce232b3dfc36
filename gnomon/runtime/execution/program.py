"""Steps, the unit of native work, and programs, a sequence of them as one native call.

A step is a native `void f(void *block)` with the address of its argument block. A step that may
fail owns a status word (int32) and writes it at every run: zero for success. A program is a
step too: its block is `[steps, failed, (function, block, status) ...]`, its function loops over
the triples, stops after the first one whose status is not zero, and leaves in `failed` that
step's number plus one, or zero. Steps that cannot fail share one status word that stays zero, so
the loop has a single branch. Neither takes the GIL while it runs.

Measured (`python benchmarks/runtime.py step`): `Step.run` costs 0.20 us, of which the call through
cffi is 0.15; ctypes takes 0.16 for the same call. A program adds 3 ns for each of its steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.runtime.compiler import jit, objects
from gnomon.runtime.ffi import STATUS, Block, ffi, function, pointer
from gnomon.runtime.once import once

_RUN = """
define void @run(ptr %block) {
  %count = load i64, ptr %block
  %failed = getelementptr i64, ptr %block, i64 1
  %table = getelementptr i64, ptr %block, i64 2
  br label %head
head:
  %i = phi i64 [0, %0], [%next, %step]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %step, label %done
step:
  %entry = getelementptr [3 x ptr], ptr %table, i64 %i
  %f = load ptr, ptr %entry
  %b.at = getelementptr ptr, ptr %entry, i64 1
  %b = load ptr, ptr %b.at
  %s.at = getelementptr ptr, ptr %entry, i64 2
  %s = load ptr, ptr %s.at
  call void %f(ptr %b)
  %status = load i32, ptr %s
  %next = add i64 %i, 1
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %head, label %stop
stop:
  store i64 %next, ptr %failed
  ret void
done:
  store i64 0, ptr %failed
  ret void
}

"""

_TIMED = """
declare i32 @clock_gettime(i32, ptr)
declare void @gnomon_run(ptr)

define void @timed(ptr %arguments) {
  %block = load ptr, ptr %arguments
  %times.at = getelementptr ptr, ptr %arguments, i64 1
  %times = load ptr, ptr %times.at
  %clock.at = getelementptr i64, ptr %arguments, i64 2
  %clock = load i32, ptr %clock.at
  %count = load i64, ptr %block
  %one = getelementptr i64, ptr %arguments, i64 3
  store i64 1, ptr %one
  %failed = getelementptr i64, ptr %block, i64 1
  %one.failed = getelementptr i64, ptr %one, i64 1
  %triple = getelementptr i64, ptr %one, i64 2
  store i64 0, ptr %failed
  br label %head
head:
  %i = phi i64 [0, %0], [%next, %step]
  %now = getelementptr [4 x i64], ptr %times, i64 %i
  %more = icmp ult i64 %i, %count
  br i1 %more, label %step, label %done
step:
  %at = mul i64 %i, 3
  %word = add i64 %at, 2
  %entry = getelementptr i64, ptr %block, i64 %word
  call void @llvm.memcpy.p0.p0.i64(ptr %triple, ptr %entry, i64 24, i1 false)
  %r0 = call i32 @clock_gettime(i32 %clock, ptr %now)
  call void @gnomon_run(ptr %one)
  %after = getelementptr i64, ptr %now, i64 2
  %r1 = call i32 @clock_gettime(i32 %clock, ptr %after)
  %next = add i64 %i, 1
  %status = load i64, ptr %one.failed
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %head, label %stop
stop:
  store i64 %next, ptr %failed
  ret void
done:
  ret void
}
"""

_TIMED_WORDS = 8  # block, times, clock, and a program of one step: count, failed, triple


@once
def _runner() -> jit.Module:
    return objects.compiled(_RUN)


def run_address() -> int:
    """The address of the function of every program."""
    return _runner().address("run")


@once
def _timer() -> jit.Module:
    return objects.compiled(_TIMED, symbols={"gnomon_run": run_address()})


UNKNOWN = 1 << 40  # work without an estimate
LONG = 3_000_000  # work (see `kernel.GRAIN`) that is worth to be done behind the program: 100 us
LONG_SECONDS = 100e-6


def estimated(bytes: int, flops: int) -> int:
    """The work of a library's step that moves so many bytes and does so many operations.

    In the unit of `kernel.GRAIN`, some 0.03 ns; UNKNOWN where nothing is said.

    >>> estimated(400_000, 200_000), estimated(0, 0) == UNKNOWN
    (250000, True)
    """
    return bytes // 2 + flops // 4 if bytes or flops else UNKNOWN


def is_long(work: int, seconds: float | None) -> bool:
    """Whether work is worth to be done behind the program: as it was seen to take, or estimated."""
    return work > LONG if seconds is None else seconds > LONG_SECONDS


class Status(NamedTuple):
    """Where a step that may fail writes its int32 status, and what the numbers mean."""

    address: int
    meaning: Callable[[int], str]


#: what native code calls: function, block, the address of its status; and who is told of its end
Entry = tuple[int, int, int, Callable[[], object] | None]

#: Filled in the same instant as the work of `Step.run_once` is done. A signal's handler may raise
#: an exception between any two instructions of the interpreter, but a `list.extend` is one of them.
Done = list[Any]


_no_status = Block(1)
_ALWAYS_WELL = Status(_no_status.address, str)


class Timing(NamedTuple):
    """One row of a profile: the time a step took and the work it declared."""

    name: str
    seconds: float
    bytes: int
    flops: int
    begin: float = 0.0  # as time.perf_counter counts


class Step:
    """One piece of native work: `function(block)` without the GIL.

    `function` is the address of a native `void f(void *)`, `block` that of its argument block,
    `keep` whatever must live as long as the step (code, blocks, storage); `name`, `bytes` moved
    and `flops` done are for profiles, `status` for steps that may fail, `work` estimates how long
    it takes (see `kernel.GRAIN`). `seconds` is the shortest time that it was seen to take.
    """

    __slots__ = (
        "_arguments", "_call", "block", "bytes", "flops", "function", "keep", "name", "seconds",
        "status", "work",
    )  # fmt: skip

    def __init__(
        self,
        function_address: int,
        block: int,
        keep: Any = None,
        name: str = "",
        bytes: int = 0,
        flops: int = 0,
        status: Status | None = None,
        work: int = UNKNOWN,
    ) -> None:
        self.function = function_address
        self.block = block
        self.keep = keep
        self.name = name
        self.bytes = bytes
        self.flops = flops
        self.status = status
        self.work = work
        self.seconds: float | None = None
        self._call = function(function_address)
        self._arguments = (pointer(block),)

    def run(self) -> None:
        """Does the work now; GnomonError when the step reports a failure."""
        self._call(*self._arguments)
        if self.status is not None:
            self.check()

    def run_once(self, done: Done) -> None:
        """Does the work now, unless `done` says that it is; called again it goes on where it was.

        Raises:
            GnomonError: the step reports a failure, at each call.
        """
        if self.status is None:
            if not done:
                done.extend(map(self._call, self._arguments))
        elif done:
            finish(done)
        else:
            done.extend(zip(map(self._call, self._arguments), (self,), strict=False))
            self.check()

    @property
    def is_long(self) -> bool:
        """Whether it takes so long that it is worth to be done behind the program."""
        return is_long(self.work, self.seconds)

    def took(self, seconds: float) -> None:
        """Note how long a run took: the shortest is what the work takes, the rest are others."""
        if self.seconds is None or seconds < self.seconds:
            self.seconds = seconds

    def entry(self) -> Entry:
        """What native code calls to do the work."""
        return self.function, self.block, (self.status or _ALWAYS_WELL).address, None

    def check(self) -> None:
        """Raises GnomonError when the last run of this step failed."""
        if self.status is not None and (code := ffi.cast(STATUS, self.status.address)[0]):
            raise GnomonError(f"step {self.name!r} failed: {self.status.meaning(code)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Program(Step):
    """A sequence of steps as one step: a single native call without the GIL.

    Programs among the steps are taken apart, so that a profile shows their steps. A step that
    fails ends the run, and the error names it.

    >>> Program([]).run()
    """

    __slots__ = ("_table", "steps")

    def __init__(self, steps: Iterable[Step], name: str = "program") -> None:
        given = tuple(steps)
        self.steps = tuple(_flat(given))
        self._table = Block([len(self.steps), 0, *_triples(self.steps)])
        fails = any(step.status is not None for step in self.steps)
        super().__init__(
            run_address(),
            self._table.address,
            keep=given,
            name=name,
            bytes=sum(step.bytes for step in self.steps),
            flops=sum(step.flops for step in self.steps),
            status=Status(self._table.address + 8, str) if fails else None,
            work=sum(step.work for step in self.steps),
        )

    def check(self) -> None:
        """Raises GnomonError when the last run failed, naming the step that did."""
        failed = self._table.words[1]
        if failed:
            step = self.steps[failed - 1]
            raise GnomonError(f"{self.name}, step {failed - 1}: {failure(step)}")

    def run_once(self, done: Done) -> None:
        """As `Step.run_once`; tells who watches programs of the time of each step."""
        if done:
            finish(done)
        elif _watched.by is None:
            done.extend(zip(map(self._call, self._arguments), (self,), strict=False))
            self.check()
        else:
            timings = self._timed()
            done.append((None, self))
            _watched.by(self, timings)
            self.check()

    def entry(self) -> Entry:
        """As for any step; who watches programs is told of the time of each step."""
        if (watcher := _watched.by) is None:
            return super().entry()
        times, arguments = self._timer_words()
        status = (self.status or _ALWAYS_WELL).address
        run = _timer().address("timed")
        return run, arguments.address, status, lambda: watcher(self, self._rows(times, arguments))

    def profile(self) -> list[Timing]:
        """Runs the program once and gives the time of each step.

        Raises:
            GnomonError: a step failed.
        """
        timings = self._timed()
        self.check()
        return timings

    def _timed(self) -> list[Timing]:
        times, arguments = self._timer_words()
        function(_timer().address("timed"))(pointer(arguments.address))
        return self._rows(times)

    def _timer_words(self) -> tuple[Block, Block]:
        """Memory for the times of one run, and what the native code of such a run takes."""
        times = Block(4 * len(self.steps))
        arguments = Block(_TIMED_WORDS)
        arguments.words[0:3] = [self.block, times.address, time.CLOCK_MONOTONIC]
        return times, arguments

    def _rows(self, times: Block, keep: object = None) -> list[Timing]:
        """What the times of one run say."""
        rows = (times.words[4 * i : 4 * i + 4] for i in range(len(self.steps)))
        return [
            Timing(
                step.name,
                (t[2] - t[0]) + (t[3] - t[1]) * 1e-9,
                step.bytes,
                step.flops,
                t[0] + t[1] * 1e-9,
            )
            for step, t in zip(self.steps, rows, strict=True)
        ]


Watcher = Callable[[Program, list[Timing]], object]


class _Watched:
    """Who is told of the steps of each program that runs."""

    by: Watcher | None = None


_watched = _Watched()


def watch(watcher: Watcher | None) -> None:
    """Have `watcher(program, timings)` told after each run of a program; None ends it.

    Each step is timed then, by two looks at the clock, which cost 50 ns.
    """
    _watched.by = watcher


def finish(done: Done) -> None:
    """Raises the GnomonError of a run that `done` says is over, if it failed."""
    for entry in done:
        if entry is not None:
            entry[1].check()


def _flat(steps: Iterable[Step]) -> Iterable[Step]:
    for step in steps:
        if isinstance(step, Program):
            yield from step.steps
        else:
            yield step


def _triples(steps: Iterable[Step]) -> Iterable[int]:
    for step in steps:
        status = step.status.address if step.status else _ALWAYS_WELL.address
        yield from (step.function, step.block, status)


def failure(step: Step) -> str:
    """What went wrong when a step ran last."""
    try:
        step.check()
    except GnomonError as error:
        return str(error)
    return f"step {step.name!r} failed"
