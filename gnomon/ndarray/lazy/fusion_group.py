"""Fusion groups: what is pending in one thread, and how it is computed; `pending.py` says when.

States of a group: *open*: its thread adds operators, without a lock, and publishes each by setting
`trace`; *busy*: in the midst of adding one (found so by another, it was interrupted there, or a
finaliser runs: nothing more is added); *working*: a thread computes it, with the lock of its thread
held; *closed*: nothing is added any more; *done*: closed and empty, and its thread opens it again.
A thread closes a group before it computes it.

A result is *in place* in memory that its array had before it became pending: there its value goes.
No other array knows that memory meanwhile.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from gnomon import config, engine
from gnomon.base import MidwayError
from gnomon.context import Context
from gnomon.engine.behind import is_certain
from gnomon.ground.lock import in_child, reentrant
from gnomon.ground.record import Frozen, put
from gnomon.native.serve import methods
from gnomon.native.words import native, whole
from gnomon.ndarray.core.array import Array, pending_in
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.lazy.fused import LACK, Storing, apart, fused_or_not, held, lone, one_by_one
from gnomon.ndarray.lazy.trace import EMPTY, SMALL, TraceNode

HELD = 16 << 20  # bytes that a group may keep from being freed, beside one result
GROUPS = 8  # open at a time in one thread
# A short chain's operators cost 10 us each when they run alone, and 2 to 5 ms each when they are
# compiled together: that pays after some hundred runs, if these come.
OFTEN = 64

_getrefcount = sys.getrefcount
_changes = config.changes


def _in_place(chunk: object) -> int:
    """The count of what a local name and an in-place target alone refer to."""
    in_place = {0: (chunk, 0)}
    return _getrefcount(chunk) + 0 * len(in_place)


_IN_PLACE = _in_place(object())


def unsure(array: Any) -> bool:
    """Whether an array in memory waits for others' functions, or could not be computed."""
    if array._pending_in is not None:
        return False
    return not is_certain(array._chunk)


def alone(array: Any, group: FusionGroup) -> bool:
    """Whether no other array seems to look at this one's memory; `group` may read it."""
    chunk = array._chunk
    return not chunk.shared and _getrefcount(chunk) <= _IN_PLACE + group.read.count(chunk)


@whole
class Own(Frozen):
    """What is pending in one thread: a group for each shape, and the lock to compute them."""

    __slots__ = (
        "__weakref__",
        "eager",
        "groups",
        "ident",
        "large",
        "lock",
        "noted",
        "predicted",
        "settings",
    )  # fmt: skip

    eager: bool  # nothing is to wait
    ident: int
    large: FusionGroup | None  # the one that may hold many bytes
    noted: Any  # what the thread records, as far as it is not computed; None at first
    predicted: Any  # as `noted`, of what it predicts
    settings: int  # those that `eager` was found with
    groups: dict[tuple[int, ...], FusionGroup]

    def __init__(self) -> None:
        put(self, "ident", threading.get_ident())
        put(self, "lock", reentrant())
        put(self, "large", None)
        put(self, "noted", None)
        put(self, "predicted", None)
        put(self, "groups", {})
        put(self, "eager", False)
        put(self, "settings", -1)

    def group(self, shape: tuple[int, ...], ctx: Context, arrays: Sequence[Any]) -> FusionGroup:
        """A group that takes an operator of this shape and context on `arrays`."""
        if self.settings != _changes.count:
            self.look()
        found = self.groups.get(shape)
        if self.large is not None and self.large is not found:
            large = self.large
            put(self, "large", None)
            large()
        if found is None or found.busy or (found.ctx is not ctx and found.ctx != ctx):
            return self._begin(shape, ctx)
        if found.closed:
            if not found.done:  # a thread is, or was interrupted, computing it
                return self._begin(shape, ctx)
            found.open()
        if found.trace is not EMPTY and any(map(unsure, arrays)):
            return self._begin(shape, ctx)  # what failed must fail alone
        return found

    def compute(self) -> list[Exception]:
        """Compute all that is pending in the thread; why results are lost, if memory is lacking."""
        for record in filter(None, (self.noted, self.predicted)):
            record.read()
        return [error for group in tuple(self.groups.values()) for error in group()]

    def look(self) -> None:
        """Compute what was pending under other settings, or another engine."""
        self.compute()
        put(self, "settings", _changes.count)
        present = engine.get()
        present.on_wait_all(compute_all)
        eager = not config.get("lazy") or isinstance(present, engine.NaiveEngine)
        put(self, "eager", eager)
        for group in self.groups.values():  # which opened under the settings before
            put(group, "eager", eager)

    def _begin(self, shape: tuple[int, ...], ctx: Context) -> FusionGroup:
        """A new group."""
        groups = self.groups
        every = [*groups]  # at once: a handler that computes may begin and end groups
        for old in (shape, *every[: max(0, len({*every, shape}) - GROUPS)]):
            if (group := groups.pop(old, None)) is not None:
                group()
        made = groups[shape] = FusionGroup(self, ctx)
        return made


class _Thread(threading.local):
    """What is pending in this thread."""

    def __init__(self) -> None:
        self.own = Own()
        with _entering[0]:
            _threads.add(self.own)


_entering = [reentrant()]  # for signal handlers that compute; a forked child gets another one
_threads: weakref.WeakSet[Own] = weakref.WeakSet()
here = _Thread()


@whole
class FusionGroup(Frozen):
    """Operators of one thread, shape and context that are computed together; see above.

    Calling it computes it: it is a pending reader of its leaves.
    """

    __slots__ = (
        "addresses",
        "busy",
        "closed",
        "ctx",
        "done",
        "eager",
        "held",
        "in_place",
        "numbers",
        "own",
        "places",
        "read",
        "results",
        "trace",
        "working",
    )

    addresses: list[int]  # of the first element of each leaf
    busy: bool  # its thread is adding an operator
    closed: bool  # nothing is added any more
    ctx: Final[Context]
    done: bool  # it is closed, and empty
    eager: bool
    held: int
    in_place: dict[int, tuple[Chunk, int]]  # of results: memory and offset
    numbers: list[float]
    own: Own
    places: dict[tuple[int, Layout], int]  # numbers of the leaves
    read: list[Chunk]  # the memory of each leaf
    results: list[Any]
    trace: TraceNode
    working: bool  # a thread computes it

    def __init__(self, own: Own, ctx: Context) -> None:
        put(self, "own", own)
        put(self, "ctx", ctx)
        for name in ("read", "addresses", "numbers", "results"):
            put(self, name, [])
        put(self, "places", {})
        put(self, "in_place", {})
        put(self, "busy", False)
        put(self, "working", False)
        put(self, "done", False)
        put(self, "closed", False)
        self.open()

    # --- changes in one step --------------------------------------------------------------------

    def open(self) -> None:
        """Begin with an empty trace."""
        serve()
        self.open()

    def enter(self, trace: TraceNode) -> Array | None:
        """The result of one more operator; None where the group is closed."""
        serve()
        return self.enter(trace)

    def empty(self, again: bool) -> None:
        """Let go of all memory; then the group is done, or begins `again`."""
        serve()
        self.empty(again)

    # --- its thread adds ------------------------------------------------------------------------

    def leaf(self, array: Any) -> int:
        """The number of an operand that lies in memory."""
        chunk = array._chunk
        address = chunk.address + array._offset
        place = address, array._layout
        found = self.places.get(place)
        if found is None:
            read = self.read
            found = ~len(read)
            read.append(chunk)
            self.addresses.append(address)
            chunk.pending_readers.append(self)
            self.places[place] = found
            put(self, "held", self.held + chunk.nbytes)
            if chunk.shared or unsure(array):
                put(self, "eager", True)
            if self.held > HELD:
                put(self.own, "large", self)
        return found

    def add(self, trace: TraceNode, values: Sequence[float]) -> Any:
        """A pending array of one more operator; None where the group was closed meanwhile."""
        if values:
            self.numbers.extend(values)
        made = self.enter(trace)
        if not self.closed:
            return made
        with self.own.lock:
            self._forget()
        return None

    def full(self) -> bool:
        """Whether it is to be computed now: it has enough operators, or holds too many bytes."""
        trace = self.trace
        if self.eager or trace.full or trace is EMPTY:
            return trace is not EMPTY  # else a handler has had it computed since
        most = HELD + 2 * trace.layout.nbytes
        if self.held > most:
            put(self, "held", self._held_alone())
        return self.held > most

    def _held_alone(self) -> int:
        """The bytes that nothing else holds, beside those where results are in place.

        What others work with now counts: they let go of it when they are done.
        """
        read = Counter(self.read)
        for chunk, _ in self.in_place.values():
            read.pop(chunk, None)
        most = _IN_PLACE + 1  # beside its own: a name's, the counter's, that of an item's tuple
        found = (c for c, n in read.items() if c.writer or c.readers or _getrefcount(c) <= n + most)
        return sum(c.nbytes for c in found)

    def house(self, made: Any, dest: Any) -> bool:
        """Have the value of `made` computed in the memory of `dest`, which then is pending.

        Where another array may look at that memory, nothing changes, and the answer is False.
        """
        chunk = dest._chunk
        near = chunk.ctx is self.ctx or chunk.ctx == self.ctx
        with self.own.lock:
            own, alone = self.read.count(chunk), False
            # no call from here to that of `defer`: no other thread comes between
            if (
                made._pending_in is not self
                or dest._pending_in is not None
                or dest._chunk is not chunk
            ):
                return False
            if self.working or chunk.shared or not near:
                return False
            index, offset = made._index, dest._offset
            self.in_place[index] = chunk, offset
            self.results[index] = dest
            try:
                dest._defer(self, index)  # a thread that asks for memory from here on waits
                alone = _getrefcount(chunk) <= _IN_PLACE + own
            finally:  # an interrupt, too, leaves it in its place
                if not alone:
                    dest._materialize(chunk, offset)
                    self.results[index] = made
                    del self.in_place[index]
            return alone

    # --- anybody computes -----------------------------------------------------------------------

    def __call__(self) -> Sequence[Exception]:
        """Compute what anybody can still ask for; why results are lost, if memory is lacking."""
        told: list[Exception] = []
        with self.own.lock:
            if not self.working:
                self._compute(None, self._is_news(), told)
        return told

    def materialize(self, array: Any) -> bool:
        """Give an array of this group its memory; whether its value is known to be there.

        Raises:
            DeviceError, MemoryError: there is no memory for it; it may be asked for again.
        """
        with self.own.lock:
            if self.working:
                raise MidwayError("an array was asked for while it was being computed")
            put(self, "closed", True)
            if self.trace.count == 1 and lone(self, array):
                self._forget()
                return True
            self._compute(None, self._is_news(), [], array)
        return False

    def store(self, storing: Storing) -> bool:
        """Compute the group, of which a value is, with that in its place; whether it did.

        Where it did not, the value has memory.

        Raises:
            DeviceError, MemoryError: there is no memory for it, and nothing was stored.
        """
        with self.own.lock:
            # no call from here to `closed`: no other thread comes between
            if self.working or storing.value._pending_in is not self:
                return False
            put(self, "closed", True)
            news = self._is_news()
            return self._compute(None if news else storing, news, [])

    def _compute(
        self, storing: Storing | None, news: bool, told: list[Exception], asked: Any = None
    ) -> bool:
        """Compute what anybody can still ask for; whether it was done by one kernel.

        Where there is not memory enough for all of it, what is `asked` for comes alone, and the
        others wait; if nothing is asked for, what there is no memory for is lost, and `told`.
        """
        if not self.closed:
            put(self, "closed", True)
        failure: Exception | None = None
        try:
            put(self, "working", True)
            alive, enough = held(self, None if storing is None else storing.value), True
            try:
                if news:
                    one_by_one(self, alive)
                else:
                    failure = fused_or_not(self, alive, storing)
            except LACK:
                enough = False  # and on without the error, which keeps memory from being freed
            if not enough and asked is not None and asked._index not in self.in_place:
                if asked._pending_in is self:
                    fused_or_not(self, [asked], None)
                return False
            if not enough:
                failure = apart(self, alive, storing, told)
            self._forget()
        finally:
            put(self, "working", False)
        if failure is not None:
            text = f"operators computed one by one, for want of one kernel: {failure!r}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        return not news and failure is None

    def _is_news(self) -> bool:
        """Whether this is a short piece of work that was not met often enough to be compiled."""
        trace = self.trace
        if trace.count < 2 or trace.layout.nbytes >= SMALL or self.in_place:
            return False
        put(trace, "met", trace.met + 1)
        return trace.met <= OFTEN

    def _forget(self) -> None:
        """Let go of all memory: the group is done, and opened again if this is its thread."""
        self.empty(not self.busy and here.own is self.own)


@native
def reopened(group: FusionGroup) -> None:
    """Have a group begin with an empty trace."""
    put(group, "trace", EMPTY)
    put(group, "held", 0)
    put(group, "eager", group.own.eager)
    if group.done:
        put(group, "done", False)
    if group.closed:
        put(group, "closed", False)


@native
def entered(group: FusionGroup, trace: TraceNode) -> Array | None:
    """The result of one more operator of a group; None where that was closed meanwhile."""
    made = pending_in(group, trace.index, trace.layout, None)
    if group.closed:  # what the trace reads is gone: it must not be computed
        put(group, "busy", False)
        return None
    group.results.append(made)
    put(group, "trace", trace)
    put(group, "busy", False)
    return made


@native
def _remove_reader(group: FusionGroup, chunk: Chunk) -> None:
    """Remove a group from the pending readers of what it read."""
    readers = chunk.pending_readers
    k = len(readers) - 1
    while k >= 0:
        if readers[k] is group:
            del readers[k]
            return
        k -= 1


@native
def emptied(group: FusionGroup, again: bool) -> None:
    """Have a group let go of all memory; then it is done, or begins `again`."""
    read = group.read
    for k in range(len(read)):
        _remove_reader(group, read[k])
    group.results.clear()
    group.addresses.clear()
    group.numbers.clear()
    group.places.clear()
    if group.in_place:
        group.in_place.clear()
    if again:
        reopened(group)
    else:
        put(group, "done", True)
    read.clear()  # memory may go with that, and its owner have a finaliser


def serve() -> None:
    """From now on groups change by native code, where there may be such."""
    made = methods((FusionGroup, reopened), (FusionGroup, entered), (FusionGroup, emptied))
    FusionGroup.open, FusionGroup.enter, FusionGroup.empty = made  # type: ignore[method-assign]


def compute_all() -> None:
    """Compute all that is pending, in all threads.

    Raises:
        DeviceError, MemoryError: there is no memory for some of it.
    """
    with _entering[0]:
        threads = list(_threads)
    told: list[Exception] = []
    for own in threads:
        told += own.compute()
        put(own, "settings", -1)  # the engine may be another one from now on
    if told:
        raise told[0]


def _in_child() -> None:
    """A forked child has one thread: what others were about to do is to be done anew."""
    _entering[0] = reentrant()
    for own in list(_threads):
        put(own, "lock", reentrant())
        for group in own.groups.values():
            put(group, "working", False)
        for record in filter(None, (own.noted, own.predicted)):
            record.begin_in_child()


in_child(_in_child)
