"""Inputs: arguments whose memory only an executor has seen, so that a batch may stay where it lies.

States of an input. *Hidden*: the array that users get has no memory yet, it is pending with the
input as its pending source; programs know the memory that it will have, its `home`. A batch that is
fed is not copied then: programs read it where it lies, which is `source`, and the copy is a pending
reader. It is made (`bring`) before anybody could notice: before a write to the batch's memory is
pushed, before a program that reads `home`, and when the array is asked for its memory. *Seen*:
it was asked for. The array has `home` for good, since other code may look there now, and
batches are copied. *Read once*: only the program that is fed reads it, so nothing is held for
later. The gradients of outputs are such inputs.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from gnomon import engine
from gnomon.expr.node import Buffer
from gnomon.ground.lock import in_child, reentrant
from gnomon.ground.record import put
from gnomon.ndarray.core.array import Array
from gnomon.runtime.execution.program import Done, Step
from gnomon.runtime.execution.stream import Pair, Task
from gnomon.runtime.kernels.template import Template
from gnomon.runtime.statements.prepare import Store, prepare


class Copy:
    """The copy of an array that lies elsewhere at a run into a bound one, or back: it `gives`."""

    __slots__ = ("_copy", "step", "var")

    def __init__(self, bound: Any, gives: bool = False) -> None:
        layout = bound._layout
        here = Buffer((layout.size,), layout.dtype, None, bound._address, bound)

        def make(addresses: Sequence[int]) -> list[Step]:
            there = Buffer((layout.size,), layout.dtype, None, addresses[0])
            dest, source = (there, here) if gives else (here, there)
            return prepare([Store(dest, "saveto", source)], "give" if gives else "load")

        self._copy = Template(make, 1).own()
        self.step, self.var = self._copy.step, bound._chunk

    def put(self, address: int) -> None:
        """Let the next run copy from, or to, `address`."""
        self._copy.place((address,))

    def pairs(self, address: int) -> list[Pair]:
        """What `put` puts where."""
        return self._copy.pairs((address,))


class Input:
    """The pending source of an array that was not looked at, with the memory that it will have."""

    __slots__ = (
        "__weakref__", "_load", "_once", "_reminder", "chunk", "ctx", "home", "offset", "source",
        "taken",
    )  # fmt: skip

    def __init__(self, home: Any, once: bool) -> None:
        self.home, self._once = home, once
        self.ctx = home.context
        self.source: Any = None  # an array: what `home` is to hold; None where it does
        self.chunk: Any = None  # of the source
        self.offset = 0  # of the source, in there
        self.taken = False  # by an executor
        self._load: Copy | None = None
        self._reminder: Reminder | None = None  # reads the source's memory

    def __del__(self) -> None:  # perhaps amidst whatever a thread does: without the lock
        chunk = getattr(self, "chunk", None)  # or an interrupt came before it was there
        if chunk is not None and self._reminder in chunk.pending_readers:
            chunk.pending_readers.remove(self._reminder)

    def materialize(self, array: Any) -> bool:
        """Give the array its memory, which is asked for."""
        with _lock[0]:
            if array._pending_in is self:
                self.bring()
                array._materialize(self.home._chunk, self.home._offset)
        return False

    def hold(self, source: Any) -> None:
        """From now on the elements are those of `source`, an array of the same layout."""
        if self._once:
            return
        with _lock[0]:
            self.forget()
            self.source = source = source._detached()
            self._reminder = Reminder(self, source._chunk)
            source._chunk.pending_readers.append(self._reminder)
            self.chunk, self.offset = source._chunk, source._offset

    def forget(self) -> None:
        """The elements are what `home` holds, or what is about to be put there."""
        with _lock[0]:
            chunk, reminder = self.chunk, self._reminder
            self.source = self._reminder = self.chunk = None
            if chunk is not None and reminder in chunk.pending_readers:
                chunk.pending_readers.remove(reminder)

    def bring(self) -> None:
        """Have the copy made that was put off."""
        with _lock[0]:
            source = self.source
            if source is None:
                return
            if self._load is None:
                self._load = Copy(self.home)
            turn = _Turn(self._load, source)
            const, mutate = (source._chunk,), (self.home._chunk,)
            self.forget()
            engine.get().push_inline(turn, self.ctx, const, mutate, name="load")


class Reminder:
    """The pending reader that is an input's copy; it goes with the input, and keeps no memory."""

    __slots__ = ("chunk", "input")

    def __init__(self, input: Input, chunk: Any) -> None:
        self.input, self.chunk = weakref.ref(input), weakref.ref(chunk)

    def __call__(self) -> None:
        input, chunk = self.input(), self.chunk()
        if input is not None and input._reminder is self:
            input.bring()
        if chunk is not None and self in chunk.pending_readers:
            chunk.pending_readers.remove(self)


class _Turn:
    """One run of a load; called again, it goes on where it was."""

    __slots__ = ("done", "load", "source")

    resumable = True

    def __init__(self, load: Copy, source: Any) -> None:
        self.load, self.source = load, source
        self.done: Done = []

    def __call__(self, run_ctx: Any) -> None:
        if not self.done:
            self.load.put(self.source._address)
        self.load.step.run_once(self.done)

    @property
    def is_long(self) -> bool:
        """Whether it is worth to be run behind the program."""
        return self.load.step.is_long

    def task(self) -> Task:
        """It as a task of the stream."""
        return Task(self.load.step, self.load.pairs(self.source._address), keep=self.source)


def hidden(home: Any, once: bool = False) -> Any:
    """An array in whose place programs use `home`, until it is looked at; perhaps read `once`.

    `home` itself, where it does not lie in memory of the processor.
    """
    if home.__class__ is not Array.main:
        return home
    made = object.__new__(Array.main)
    put(made, "_layout", home._layout)
    put(made, "_tape", None)
    put(made, "_pending_in", Input(home, once))
    return made


def taken(arguments: Sequence[Any]) -> list[Input]:
    """An empty list for the inputs of one executor; an input has one, so others' are shown."""
    for array in arguments:
        pending = array._pending_in
        if type(pending) is Input:
            if pending.taken:
                pending.materialize(array)
            pending.taken = True
    return []


def own(array: Any) -> Any:
    """The array that programs use in place of `array`: its input's home, or itself."""
    pending = array._pending_in
    return pending.home if type(pending) is Input else array


_lock = [reentrant()]  # a forked child gets another one


def _in_child() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    _lock[0] = reentrant()


in_child(_in_child)
