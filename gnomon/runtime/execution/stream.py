"""The stream: native work runs behind the program, in the order in which it was entered.

States of a task: *made*; *pending* from `enter` on; *over*, when `done()` has reached its number:
it ran, or `skip` left it out. One that fails halts the stream until `revive`, so that code that
knows what depends on it can have that left out. The stream's own thread starts with the first task,
which it runs without Python's lock; `wait` helps it. stream_code.py has the native side and its
rules.

There is none where threads cannot sleep on a word of memory, in a forked child, with libgomp's
threads, and where the setting `streams` is off: `available()` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from gnomon import config
from gnomon.ground.record import inner
from gnomon.native.method import Method, bound, for_good
from gnomon.native.serve import raw_code
from gnomon.native.words import call, native
from gnomon.runtime.execution import stream_code as code
from gnomon.runtime.execution import thread_code, threads
from gnomon.runtime.execution.program import LONG, Done, Step
from gnomon.runtime.execution.stream_code import Record
from gnomon.runtime.ffi import Block, ffi, function, pointer
from gnomon.runtime.once import once

WOKEN = 5 * LONG  # pending work from which on the thread is woken; the waiting thread runs less
HELPED = 250 * LONG  # work that a waiter does not help with: signals' handlers would wait for it
ROOM = code.ROOM * 3 // 4  # tasks that may be pending; the rest is for threads that come together

# the places of a task's words, and of a wait's answer
NUMBER, CODE, BEGIN, END = Record.number, Record.code, Record.begin, Record.end
BEFORE, AFTER, _SKIP, _ANSWER = Record.before, Record.after, Record.skip, code.Wait.answer
PAIRS = 8 * (NUMBER + 1)  # where its pairs begin, in bytes

#: the address of a word, and what is put there
Pair = tuple[int, int]


class Timed(Protocol):
    """What takes note of how long its work took, and of a task that is settled, and unseen."""

    def took(self, seconds: float) -> None: ...

    def settled(self, task: Task) -> None: ...


@inner
class Task:
    """One run of a step: `before` and `after` it, words are put where pairs say.

    `keep` holds the memory that it uses, `timed` is to be told how long it took, and `told`, if
    any, is to be called when it is over.
    """

    __slots__ = ("_block", "address", "keep", "step", "timed", "told")

    address: int
    step: Any
    timed: Any
    told: Callable[[], object] | None

    def __init__(
        self,
        step: Step,
        before: Sequence[Pair] = (),
        after: Sequence[Pair] = (),
        keep: Any = None,
        timed: Timed | None = None,
    ) -> None:
        run, block, status, self.told = step.entry()
        words = [run, block, status, len(before), len(after), 0, 0, 0, 0, step.expected, 0]
        for pair in before:
            words += pair
        for pair in after:
            words += pair
        self._block = Block(words)
        self.address = self._block.address
        self.step, self.keep = step, keep
        self.timed = timed or step

    @property
    def number(self) -> int:
        """Its place among all tasks, from 1 on; 0 before it was entered."""
        return int(self._block.words[NUMBER])

    @property
    def failed(self) -> bool:
        """Whether the step has told of a failure."""
        return bool(self._block.words[CODE])

    @property
    def times(self) -> tuple[float, float]:
        """When it began and ended, as `time.perf_counter` counts; zeros where it was left out."""
        words = self._block.words
        return words[BEGIN] * 1e-9, words[END] * 1e-9

    def skip(self) -> None:
        """Have it left out."""
        self._block.words[_SKIP] = 1

    def rest(self, work: int) -> None:
        """Be as before it was entered, of so much work, and keep nothing but what it runs."""
        for k in (NUMBER, BEGIN, END):
            self._block.words[k] = 0
        self._block.words[Record.work] = work
        self.keep = self.timed = None


class Turn:
    """One run of a program, as the engine calls it: called again, it goes on where it was."""

    __slots__ = ("done", "program")

    resumable = True

    def __init__(self, program: Step) -> None:
        self.program = program
        self.done: Done = []

    def __call__(self, run_ctx: Any) -> None:
        self.program.run_once(self.done)

    @property
    def is_long(self) -> bool:
        """Whether it is worth to be run behind the program."""
        return self.program.is_long

    def task(self) -> Task:
        """It as a task."""
        return Task(self.program)

    def anew(self) -> Turn:
        """Another run."""
        return Turn(self.program)


class _Native(NamedTuple):
    """The functions of the native side, and where it counts."""

    enter: Callable[[int], None]
    wait: Any
    hold: Any
    let_go: Any
    revive: Any
    renew: Any
    head: Any
    done: Any


_CALLS = ("wait", "hold", "let_go", "revive", "renew")


@inner
class _State:
    """Whether this process is a forked child, and what it runs natively."""

    __slots__ = ("available", "entered", "native", "over", "refuses", "settings")

    available: bool
    entered: int  # the address of a native function that enters a task
    native: _Native | None
    over: bool  # a forked child's, and a process's at its end
    refuses: bool  # it takes no more work: a process's that begins to end
    settings: int  # those that `available` was found with

    def __init__(self) -> None:
        self.available = self.over = self.refuses = False
        self.native, self.entered, self.settings = None, 0, -1


_state = _State()
_changes = config.changes


@once
def _native() -> _Native | None:
    if thread_code.FUTEX == 0:
        return None
    module = raw_code(*code.FUNCTIONS)
    method = for_good(Method("enter", module.address("stream_enter")))
    code.THREAD.spins, code.THREAD.threshold = threads.looks(), WOKEN
    calls = [function(module.address(f"stream_{name}")) for name in _CALLS]
    counts = [ffi.cast("int64_t *", words.address) for words in (code.HEAD, code.DONE)]
    _state.entered = module.address("stream_entered")
    _state.native = _Native(bound(method, None), *calls, *counts)
    return _state.native


def available() -> bool:
    """Whether work may be entered."""
    if _state.settings != _changes.count:
        ended = _state.over or _state.refuses
        wanted = not ended and config.get("streams") and threads.kind() == "own"
        _state.available = wanted and _native() is not None
        _state.settings = _changes.count
    return _state.available


@native
def is_known_available() -> bool:
    """Whether `available` has said so under the present settings."""
    return _state.available and _state.settings == config.changes.count


@native
def is_entered(task: Task) -> bool:
    """Have a task run after all others, if there is room; for native code, where it is known to be
    available."""
    return call(_state.entered, task.address) != 0


def enter(task: Task, entered: list[Any]) -> None:
    """Have a task run after all others; `entered` gets an element in the same instant."""
    native = _state.native or _native()
    assert native is not None
    entered.extend(map(native.enter, (task.address,)))


def pending() -> int:
    """How many tasks are not over."""
    native = _state.native
    return 0 if native is None else int(native.head[0] - native.done[0])


def done() -> int:
    """How many tasks are over: those of numbers up to that."""
    native = _state.native
    return 0 if native is None else int(native.done[0])


def wait(number: int, helps: bool = True) -> bool:
    """Return when the task of that number is over, or, with False, when the stream halts.

    The caller runs what was not begun, unless that would take too long, or it never `helps`.
    Signals' handlers run meanwhile, which may raise.
    """
    native = _state.native
    if native is None or _state.over:
        return True
    words = Block([number, HELPED if helps else -1, 0])
    while True:
        native.wait(pointer(words.address))
        answer = int(words.words[_ANSWER])
        if answer != code.AGAIN:
            return answer == code.OVER


def hold() -> None:
    """From now on no task runs, when the one that runs now is over; until `let_go`."""
    if _state.native is not None:
        _state.native.hold(pointer(0))


def let_go() -> None:
    """Go on after `hold`."""
    if _state.native is not None:
        _state.native.let_go(pointer(0))


def revive() -> None:
    """Go on after a failure."""
    if _state.native is not None:
        _state.native.revive(pointer(0))


def refuse() -> None:
    """From now on `available()` is False; what was entered before is done."""
    _state.refuses, _state.settings = True, -1


def close() -> None:
    """At the end of the process: no task runs any more, and no thread waits for one."""
    if not _state.over:
        hold()
        _state.over, _state.settings = True, -1


def restart() -> None:
    """After a fork, in the child: nothing is pending, and there is no stream any more."""
    _state.over, _state.settings = True, -1
    if _state.native is not None:
        _state.native.renew(pointer(0))


def place_of(words: Any, k: int) -> int:
    """The address of a word of a block."""
    return int(ffi.cast("intptr_t", words)) + 8 * k
