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

from collections.abc import Callable, Iterable, Sequence
from time import CLOCK_MONOTONIC
from typing import Any, NamedTuple

from gnomon.base import GnomonError
from gnomon.ground.record import inner
from gnomon.native.memory import CFunction, Struct
from gnomon.native.serve import raw_code
from gnomon.native.words import Ints, Words, call, native
from gnomon.runtime.compiler import jit
from gnomon.runtime.ffi import STATUS, Block, ffi, function, pointer
from gnomon.runtime.once import once

_gettime = CFunction("int clock_gettime(int, void *)")


class Triple(Struct):
    """A step as a program calls it."""

    function: int
    block: int
    status: int


class Table(Struct):
    """A program's block; the triples begin at its last word."""

    steps: int
    failed: int
    triples: int


class Timed(Struct):
    """A run with looks at the clock: the program's block, and four words for each step."""

    table: int
    times: int


@native
def run(table: Table) -> None:
    triple = Triple((table + Table.triples).address)
    for k in range(table.steps):
        call(triple.function, triple.block)
        if Ints(triple.status)[0] != 0:
            table.failed = k + 1
            return
        triple = triple + 3
    table.failed = 0


@native
def timed(given: Timed) -> None:
    table = Table(given.table)
    times = Words(given.times)
    triple = Triple((table + Table.triples).address)
    for k in range(table.steps):
        _gettime(CLOCK_MONOTONIC, times)
        call(triple.function, triple.block)
        _gettime(CLOCK_MONOTONIC, times + 2)
        if Ints(triple.status)[0] != 0:
            table.failed = k + 1
            return
        triple = triple + 3
        times = times + 4
    table.failed = 0


@once
def _code() -> jit.Module:
    return raw_code(run, timed)


def run_address() -> int:
    """The address of the function of every program."""
    return _code().address("run")


UNKNOWN = 1 << 40  # work without an estimate
# What is worth to be done behind the program: waking the stream takes 50 to 100 us of both threads.
LONG = 6_000_000  # work (see `division.GRAIN`)
LONG_SECONDS = 200e-6
LONG_PASS = LONG // 4  # of a pass, which native code pushes again in a few microseconds
SPARE = 1024  # tasks that are kept of one step: none is taken where no native code is served


def estimated(bytes: int, flops: int) -> int:
    """The work of a library's step that moves so many bytes and does so many operations.

    In the unit of `division.GRAIN`, some 0.03 ns; UNKNOWN where nothing is said.

    >>> estimated(400_000, 200_000), estimated(0, 0) == UNKNOWN
    (250000, True)
    """
    return bytes // 2 + flops // 4 if bytes or flops else UNKNOWN


def is_long(work: int, seconds: float | None, least: int = LONG) -> bool:
    """Whether work is worth to be done behind the program: as it was seen to take, or estimated."""
    return expected(work, seconds) > least


def expected(work: int, seconds: float | None) -> int:
    """How long work takes, in its unit: as it was seen to, else as estimated."""
    return work if seconds is None else int(seconds / LONG_SECONDS * LONG)


class Status(NamedTuple):
    """Where a step that may fail writes its int32 status, and what the numbers mean."""

    address: int
    meaning: Callable[[int], str]


#: what native code calls: function, block, the address of its status; and who is told of its end
Entry = tuple[int, int, int, Callable[[], object] | None]

#: Filled in the same instant as the work of `Step.run_once` is done. A signal's handler may come,
#: and raise an exception, after any call that the interpreter makes; a `list.extend` is one. It may
#: also do that work itself (see `engine/execution.py`), so nothing is called between the look at
#: `done` and that.
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
    it takes (see `division.GRAIN`), `held` are bytes that a library keeps for it. `seconds` is the
    shortest time that it was seen to take. Steps of a library have their call's `Invoke` as their
    `origin`, by which they are made for other sizes.
    """

    __slots__ = (
        "_arguments", "_call", "block", "bytes", "flops", "function", "held", "keep", "name",
        "origin", "seconds", "spare", "status", "work",
    )  # fmt: skip

    spare: list[Any] | None  # tasks that may be entered again; None where none is to be kept
    name: str

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
        self.held = 0
        self.seconds: float | None = None
        self.origin: Any = None
        self.spare = None
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
            calls: Iterable[Any] = map(self._call, self._arguments)
            if not done:
                done.extend(calls)
            return
        calls = zip(map(self._call, self._arguments), (self,), strict=False)
        if done:
            finish(done)
        else:
            done.extend(calls)
            self.check()

    @property
    def is_long(self) -> bool:
        """Whether it takes so long that it is worth to be done behind the program."""
        return is_long(self.work, self.seconds)

    @property
    def expected(self) -> int:
        """How long it takes, in units of work."""
        return expected(self.work, self.seconds)

    def took(self, seconds: float) -> None:
        """Note how long a run took: the shortest is what the work takes, the rest are others."""
        if self.seconds is None or seconds < self.seconds:
            self.seconds = seconds

    def settled(self, task: Any) -> None:
        """A task that ran it is not needed any more: it may be entered again, if that is wanted."""
        spare = self.spare
        if spare is not None and len(spare) < SPARE and task.told is None and self.is_long:
            task.rest(self.expected)
            task.step = None  # which has it
            spare.append(task)

    def kept_tasks(self) -> list[Any]:
        """Where its tasks go from now on, for native code to enter them again."""
        if self.spare is None:
            self.spare = []
        return self.spare

    def places(self) -> Sequence[int]:
        """Where its operands are, if `moved` makes it for others; else there are none."""
        return ()

    def moved(self, addresses: Sequence[int], owners: object) -> Step:
        """The step for operands at other addresses, in the order of `places`; `owners` are kept."""
        # steps that say `places` define it: `Rebinder` asks no others
        raise NotImplementedError(f"{self!r} has no places")

    def entry(self) -> Entry:
        """What native code calls to do the work."""
        return self.function, self.block, (self.status or _ALWAYS_WELL).address, None

    def check(self) -> None:
        """Raises GnomonError when the last run of this step failed."""
        if self.status is not None and (code := ffi.cast(STATUS, self.status.address)[0]):
            raise GnomonError(f"step {self.name!r} failed: {self.status.meaning(code)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Nested(Step):
    """A step that runs `programs` by a way of its own; its block holds no operands' addresses."""

    __slots__ = ("programs",)

    def __init__(self, programs: Sequence[Program], *given: Any, **words: Any) -> None:
        super().__init__(*given, **words)
        self.programs = programs


class Program(Step):
    """A sequence of steps as one step: a single native call without the GIL.

    Programs among the steps are taken apart, so that a profile shows their steps. A step that
    fails ends the run, and the error names it.

    >>> Program([]).run()
    """

    __slots__ = ("steps", "table")

    def __init__(self, steps: Iterable[Step], name: str = "program") -> None:
        given = tuple(steps)
        self.steps = tuple(_flat(given))
        self.table = Block([len(self.steps), 0, *_triples(self.steps)])
        fails = any(step.status is not None for step in self.steps)
        super().__init__(
            run_address(),
            self.table.address,
            keep=given,
            name=name,
            bytes=sum([step.bytes for step in self.steps]),
            flops=sum([step.flops for step in self.steps]),
            status=Status(self.table.address + 8, str) if fails else None,
            work=sum([step.work for step in self.steps]),
        )
        self.held = sum([step.held for step in self.steps])

    def check(self) -> None:
        """Raises GnomonError when the last run failed, naming the step that did."""
        failed = self.table.words[1]
        if failed:
            step = self.steps[failed - 1]
            raise GnomonError(f"{self.name}, step {failed - 1}: {failure(step)}")

    def run_once(self, done: Done) -> None:
        """As `Step.run_once`; tells who watches programs of the time of each step."""
        watcher = _watched.by
        if watcher is None:
            super().run_once(done)
            return
        times, arguments = self._timer_words()
        run = function(_code().address("timed"))
        calls = zip(map(run, (pointer(arguments.address),)), (self,), strict=False)
        if done:
            finish(done)
        else:
            done.extend(calls)
            watcher(self, self._rows(times))
            self.check()

    def entry(self) -> Entry:
        """As for any step; who watches programs is told of the time of each step."""
        if (watcher := _watched.by) is None:
            return super().entry()
        times, arguments = self._timer_words()
        status = (self.status or _ALWAYS_WELL).address
        run = _code().address("timed")
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
        function(_code().address("timed"))(pointer(arguments.address))
        return self._rows(times)

    def _timer_words(self) -> tuple[Block, Block]:
        """Memory for the times of one run, and what the native code of such a run takes."""
        times = Block(4 * len(self.steps))
        arguments = Block([self.block, times.address])
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


class PassProgram(Program):
    """The program of passes of an executor, with what is done before and after them."""

    __slots__ = ()

    @property
    def is_long(self) -> bool:
        """Whether it takes so long that it is worth to be done behind the program."""
        return is_long(self.work, self.seconds, LONG_PASS)


Watcher = Callable[[Program, list[Timing]], object]


@inner
class _Watched:
    """Who is told of the steps of each program that runs."""

    __slots__ = ("by",)

    by: Watcher | None

    def __init__(self) -> None:
        self.by = None


_watched = _Watched()


@native
def is_watched() -> bool:
    """Whether anybody is told of the steps of programs."""
    return _watched.by is not None


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


def _flat(steps: Iterable[Step]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        found += step.steps if isinstance(step, Program) else (step,)
    return found


def _triples(steps: Iterable[Step]) -> list[int]:
    found: list[int] = []
    for step in steps:
        found += step.function, step.block, (step.status or _ALWAYS_WELL).address
    return found


def failure(step: Step) -> str:
    """What went wrong when a step ran last."""
    try:
        step.check()
    except GnomonError as error:
        return str(error)
    return f"step {step.name!r} failed"
