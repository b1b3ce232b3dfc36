"""Pending arrays: element-wise operators wait, so that a chain of them becomes one kernel.

What is pending. An operator that only maps elements (and stretches axes of operands that lie in
memory) gives an array without memory. It stands in a *window* of its thread: a trace of such
operators of one shape and context, with the memory that they read. Errors in shapes and dtypes come
at the call; values are those that computing at once would give, bit for bit.

When it is computed. A window is *open* until something needs it; then all its results that anybody
can still ask for are computed by one kernel, those that nobody holds any more never are, and the
window is *done*:
- an array of it is needed in memory: a read, a wait, a view, an operator of another kind or shape
  or thread that takes it, a gradient that will read it, an export (whoever asks an array for
  `_chunk` or `_address` has it computed);
- a write to memory that it reads is about to be pushed, by whomever: the engine's variable of that
  memory has the window among its `promised`. A write of a pending value is the last statement of
  the kernel and goes straight to its destination, without memory of its own;
- `wait_for_all`; a change of the engine or of settings;
- it has as many operators as pay (few for small arrays, whose kernels are compiled for the sake of
  a microsecond each), or keeps more bytes from being freed than computing would, or reads many
  bytes and its thread goes on with another shape;
- it reads memory that others than gnomon may write (shared by DLPack or with NumPy), laziness is
  off (`config lazy`), or the engine is the naive one: then at once, after each operator.
An operator that writes into a pending array (`y += x`) gives it another place in the window: it has
no memory yet that anybody could look at. A chain on small arrays that is met for the first time is
computed by its operators' own kernels, since most of those are not met again.

Who may do what. Only a window's own thread adds to it, without a lock: it publishes an operator by
setting `stage`, and begins anew where it then finds the window closed. A window that is found
*busy* was interrupted, or its thread is in a finaliser in the midst of adding: nothing more is
added. Whoever computes a window, from any thread, holds the lock of its thread and closes it first;
when it is done, its thread opens it again for what comes next. An interrupt leaves an array pending
until its memory is assigned, which comes last.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from gnomon import config, engine
from gnomon.context import Context
from gnomon.ndarray.chunk import Chunk
from gnomon.ndarray.core import Array
from gnomon.ndarray.fused import Storing, at_once, one_by_one
from gnomon.ndarray.layout import Layout
from gnomon.ndarray.numbers import Home, home_of
from gnomon.ndarray.trace import EMPTY, SMALL, Stage, rule_of
from gnomon.ops import registry

HELD = 16 << 20  # bytes that a window may keep from being freed, beside one result
WINDOWS = 8  # open at a time in one thread

_new = object.__new__
_getrefcount = sys.getrefcount


def _counts(results: Sequence[Any]) -> list[int]:
    return [_getrefcount(x) for x in results]


_UNHELD = _counts([object()])[0]  # the count of what a list alone refers to, seen from a loop


class Own:
    """What is pending in one thread: a window for each shape, and the lock to compute them."""

    __slots__ = ("__weakref__", "eager", "large", "lock", "settings", "windows")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.large: Window | None = None  # the one that may hold many bytes
        self.windows: dict[tuple[int, ...], Window] = {}
        self.eager = False  # nothing is to wait
        self.settings = -1  # those that `eager` was found with

    def window(self, shape: tuple[int, ...], ctx: Context) -> Window:
        """A window that takes operators of this shape and context."""
        if self.settings != config.changes.count:
            self._look()
        found = self.windows.get(shape)
        if self.large is not None and self.large is not found:
            large, self.large = self.large, None
            large()
        if found is None or found.busy or (found.ctx is not ctx and found.ctx != ctx):
            return self._begin(shape, ctx)
        if found.closed:
            if not found.done:  # somebody is, or was interrupted, computing it
                return self._begin(shape, ctx)
            found.open()
        return found

    def compute(self) -> None:
        """Compute all that is pending in the thread."""
        for window in tuple(self.windows.values()):
            window()

    def _look(self) -> None:
        """Compute what was pending under other settings, or another engine."""
        self.compute()
        self.settings = config.changes.count
        present = engine.get()
        present.on_wait_all(compute_all)
        self.eager = not config.get("lazy") or isinstance(present, engine.NaiveEngine)

    def _begin(self, shape: tuple[int, ...], ctx: Context) -> Window:
        """A new window."""
        windows = self.windows
        if shape in windows:
            windows.pop(shape)()
        while len(windows) >= WINDOWS:
            windows.pop(next(iter(windows)))()
        made = windows[shape] = Window(self, ctx)
        return made


class _Thread(threading.local):
    """What is pending in this thread."""

    def __init__(self) -> None:
        self.own = Own()
        with _entering:
            _threads.add(self.own)


_entering = threading.Lock()
_threads: weakref.WeakSet[Own] = weakref.WeakSet()
_thread = _Thread()


class Window:
    """Operators of one thread, shape and context that are computed together; see above.

    Calling it computes it: that is how the promise to read its leaves is kept.
    """

    __slots__ = (
        "busy",
        "closed",
        "ctx",
        "done",
        "eager",
        "held",
        "leaves",
        "numbers",
        "own",
        "places",
        "results",
        "stage",
        "working",
    )

    def __init__(self, own: Own, ctx: Context) -> None:
        self.own = own
        self.ctx = ctx
        self.leaves: list[tuple[Chunk, int]] = []  # memory, and the address of the first element
        self.places: dict[tuple[int, Layout], int] = {}  # numbers of the leaves
        self.numbers: list[float] = []
        self.results: list[Any] = []
        self.busy = False  # its thread is adding an operator
        self.working = False  # somebody computes it
        self.open()

    # --- its thread adds ------------------------------------------------------------------------

    def open(self) -> None:
        """Begin with an empty trace."""
        self.stage = EMPTY
        self.held = 0
        self.eager = self.own.eager
        self.done = False  # it is closed, and empty
        self.closed = False  # nothing is added any more

    def leaf(self, array: Any) -> int:
        """The number of an operand that lies in memory."""
        chunk = array._chunk
        place = array._address, array._layout
        found = self.places.get(place)
        if found is None:
            found = ~len(self.leaves)
            self.leaves.append((chunk, place[0]))
            chunk.promised.append(self)
            self.places[place] = found
            self.held += chunk.nbytes
            if chunk.shared:
                self.eager = True
            if self.held > HELD:
                self.own.large = self
        return found

    def add(self, stage: Stage, values: Sequence[float]) -> Any:
        """A pending array of one more operator; None where the window was closed meanwhile."""
        made = _new(Array.main)
        made._layout, made._tape = stage.layout, None
        made._window, made._index = self, stage.count - 1
        self.numbers += values
        self.results.append(made)
        self.stage = stage
        self.busy = False
        if not self.closed:
            return made
        with self.own.lock:
            self._forget()
        return None

    def full(self) -> bool:
        """Whether it is to be computed now: it has enough operators, or holds too many bytes."""
        if self.eager or self.stage.full:
            return True
        most = HELD + 2 * self.stage.layout.nbytes
        if self.held > most:
            self.held = self._held_alone()
        return self.held > most

    def _held_alone(self) -> int:
        """The bytes that nobody else holds."""
        entries: dict[Chunk, int] = {}
        for chunk, _ in self.leaves:
            entries[chunk] = entries.get(chunk, 0) + 1
        # beside its entries: that of the dictionary, the loop's variable, the call's argument
        return sum(c.nbytes for c, n in entries.items() if _getrefcount(c) <= n + 4)

    # --- anybody computes -----------------------------------------------------------------------

    def __call__(self) -> None:
        """Compute what anybody can still ask for."""
        with self.own.lock:
            if not self.working:
                self._compute(None, self._is_news())

    def settle(self, array: Any) -> None:
        """Give an array of this window its memory."""
        self()
        if array._window is self:
            raise engine.EngineError("an array was asked for while it was being computed")

    def store(self, value: Any, dest: Any, kept: bool) -> bool:
        """Compute the window, of which `value` is, with that in `dest`; whether it did.

        Where it did not, `value` has memory. Where it is `kept`, it keeps its value.
        """
        with self.own.lock:
            if self.working or value._window is not self:
                return False
            news = self._is_news()
            self._compute(None if news else (value, dest, kept), news)
            return not news

    def _compute(self, storing: Storing | None, news: bool) -> None:
        self.closed = self.working = True
        try:
            count = self.stage.count
            value = None if storing is None else storing[0]
            held = [x for x in self.results if _getrefcount(x) > _UNHELD and x is not value]
            alive = [x for x in held if x is not None and x._window is self and x._index < count]
            if news:
                one_by_one(self, alive)
            elif storing is not None or alive:
                at_once(self, alive, storing)
            self._forget()
        finally:
            self.working = False

    def settled(self, alive: Sequence[Any], chunks: Sequence[Chunk], storing: Any) -> None:
        """Give arrays their memory, whose contents were pushed."""
        if storing is not None and storing[2]:
            storing[0]._window = Mirror(storing[0], storing[1], self.ctx)
        for x, chunk in zip(alive, chunks, strict=True):
            x._address, x._chunk, x._window = chunk.address, chunk, None

    def _is_news(self) -> bool:
        """Whether this is a short piece of work that was not met before; from now on it was."""
        stage = self.stage
        if stage.met or stage.count < 2 or stage.layout.nbytes >= SMALL:
            return False
        stage.met = True
        return True

    def _forget(self) -> None:
        """Let go of all memory: the window is done."""
        self.results.clear()
        self.numbers.clear()
        self.places.clear()
        leaves = self.leaves
        while leaves:
            promised = leaves.pop()[0].promised
            if self in promised:
                promised.remove(self)
        self.done = True


class Mirror:
    """The place of an array whose value was stored elsewhere: it copies that before it changes."""

    __slots__ = ("__weakref__", "array", "ctx", "dest")

    def __init__(self, array: Any, dest: Any, ctx: Context) -> None:
        self.array = weakref.ref(array)
        self.dest = Array._at(dest._chunk, dest._address, dest._layout)
        self.ctx = ctx
        chunk: Chunk = dest._chunk
        chunk.promised.append(Reminder(self, chunk))

    def __call__(self) -> None:
        array = self.array()
        if array is not None:
            self.settle(array)

    def settle(self, array: Any) -> None:
        """Give the array memory of its own, with the copy."""
        with _mirrors:
            if array._window is self:
                made = pend(*_copy(), (self.dest,), self.ctx)
                array._address, array._chunk, array._window = made._address, made._chunk, None


class Reminder:
    """The promise of a mirror, which goes with its array; it keeps no memory either."""

    __slots__ = ("chunk", "mirror")

    def __init__(self, mirror: Mirror, chunk: Chunk) -> None:
        self.mirror, self.chunk = weakref.ref(mirror), weakref.ref(chunk)

    def __call__(self) -> None:
        mirror, chunk = self.mirror(), self.chunk()
        if mirror is not None:
            mirror()
        if chunk is not None and self in chunk.promised:
            chunk.promised.remove(self)


_mirrors = threading.RLock()


@functools.cache
def _copy() -> tuple[Any, Home]:
    op = registry.find("_copy").parse({})
    return op, home_of(op)


# --- operators --------------------------------------------------------------------------------


def pend(op: Any, home: Home, arrays: Sequence[Any], ctx: Context, hold: bool = False) -> Any:
    """The pending result of an operator; None where it is none of those that wait.

    It is computed now if the window is full, unless `hold` says that it will be at once.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    layouts = tuple([x._layout for x in arrays])
    rule = rule_of(op, home, layouts)
    if rule is None:
        return None
    for k in rule.spread:
        arrays[k]._chunk  # noqa: B018
    own = _thread.own
    made = None
    while made is None:
        window = own.window(rule.layout.shape, ctx)
        window.busy = True
        operands = tuple([x._index if x._window is window else window.leaf(x) for x in arrays])
        made = window.add(window.stage.next(rule, operands, layouts), home.values)
    if not hold and window.full():
        window()
    return made


def pair(op: Any, home: Home, a: Any, b: Any, hold: bool = False) -> Any:
    """`pend` of two arrays of one shape, by few look-ups where such a chain was met before."""
    first, second = layouts = a._layout, b._layout
    before = a._window
    ctx = a._chunk.ctx if before is None else before.ctx
    rule = home.kind.rules.get(layouts)
    if rule is None:
        return pend(op, home, (a, b), ctx, hold)
    window = _thread.own.window(first.shape, ctx)
    window.busy = True
    i = a._index if before is window else window.leaf(a)
    j = b._index if b._window is window else window.leaf(b)
    stage = window.stage.after.get((home.kind, i, j, first, second))
    if stage is None:
        stage = window.stage.next(rule, (i, j), layouts)
    made = window.add(stage, ())
    if made is None:
        return pend(op, home, (a, b), ctx, hold)
    if not hold and (window.eager or stage.full or window.held > HELD) and window.full():
        window()
    return made


def single(op: Any, home: Home, number: float, a: Any, hold: bool = False) -> Any:
    """`pend` of an array and a number, by few look-ups where such a chain was met before."""
    layouts = (a._layout,)
    before = a._window
    ctx = a._chunk.ctx if before is None else before.ctx
    rule = home.kind.rules.get(layouts)
    if rule is None:
        return pend(op, home._replace(values=(number,)), (a,), ctx, hold)
    window = _thread.own.window(a._layout.shape, ctx)
    window.busy = True
    i = a._index if before is window else window.leaf(a)
    made = window.add(window.stage.next(rule, (i,), layouts), (number,))
    if made is None:
        return pend(op, home._replace(values=(number,)), (a,), ctx, hold)
    if not hold and (window.eager or window.stage.full or window.held > HELD) and window.full():
        window()
    return made


def write(made: Any, dest: Any) -> None:
    """Put what `pend` held into an array of its shape and dtype."""
    if not replaced(dest, made):
        store(made, dest)


def apply(op: Any, arrays: Sequence[Any], given: Sequence[Any] | None, ctx: Context) -> Any:
    """The outputs of an operator that may wait, in a list; None where it is none of those.

    Raises:
        ShapeError, DTypeError: the operator does not take such operands.
    """
    home = home_of(op)
    if given is None:
        made = pend(op, home, arrays, ctx)
        return None if made is None else [made]
    dest = given[0]
    rule = rule_of(op, home, tuple([x._layout for x in arrays]))
    if rule is None or len(given) > 1:
        return None
    if (rule.layout.shape, rule.layout.dtype) != (dest._layout.shape, dest._layout.dtype):
        return None
    write(pend(op, home, arrays, ctx, hold=True), dest)
    return given


def replaced(dest: Any, made: Any) -> bool:
    """Give a pending array the place of another one, which nobody else holds; whether it did."""
    before, after = dest._window, made._window
    if not (type(before) is type(after) is Window) or before.own is not after.own:
        return False
    with after.own.lock:
        if dest._window is not before or made._window is not after or before.ctx != after.ctx:
            return False
        if dest._index < len(before.results):
            before.results[dest._index] = None
        dest._window, dest._index = after, made._index
        after.results[made._index] = dest
    if after.full():
        after()
    return True


def store(value: Any, dest: Any, kept: bool = False) -> None:
    """Store an array into another one of its shape and dtype; say if somebody holds it `kept`."""
    chunk = dest._chunk
    while True:
        window = value._window
        if type(window) is not Window:
            value._chunk  # noqa: B018
            value, kept = pend(*_copy(), (value,), value.context, hold=True), False
            continue
        for promise in tuple(chunk.promised):
            if promise is not window:
                promise()
        if window.store(value, dest, kept):
            return
        value._chunk  # noqa: B018


def compute_all() -> None:
    """Compute all that is pending, in all threads."""
    with _entering:
        threads = list(_threads)
    for own in threads:
        own.compute()
        own.settings = -1  # the engine may be another one from now on


def _in_child() -> None:
    """A forked child has one thread: what others were about to do is to be done anew."""
    global _entering, _mirrors
    _entering, _mirrors = threading.Lock(), threading.RLock()
    for own in list(_threads):
        own.lock = threading.RLock()
        for window in own.windows.values():
            window.working = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
