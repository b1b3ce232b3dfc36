"""Operators applied again: a kernel that is known for the operands' layouts is run at once.

`repeat(known, arrays, out, ctx)` runs the kernel that a dictionary has for these arrays, and gives
the results, in new memory: one array, or a list of several. `ctx` is the device where there are no
arrays. `out`, if it is not None, is an array that the only result goes to; then that is returned.
Arrays that are pending are computed first where there is no `out`. For anything unusual it gives
None, with nothing done: an array of another class, or in use, while recording one on the tape,
layouts that are new, an `out` that lies partly where an operand does, an engine that observes or
holds back.

Memory is taken first, since other code may run meanwhile; then everything is decided, and no code
else has seen the results. As native code does it, nothing comes between that and the kernel; Python
cannot say so, and so goes the usual way where native code is not served.
"""

from __future__ import annotations

from typing import Any, cast

from gnomon.context import Context
from gnomon.engine.current import PROCESS, is_unobserved
from gnomon.engine.engine import Engine
from gnomon.engine.fast_path import fire
from gnomon.engine.native_behind import entered_behind, goes_behind, is_coming
from gnomon.engine.var import is_free, is_unread
from gnomon.ground.collector import resting
from gnomon.ground.record import Frozen, put
from gnomon.native.serve import Later
from gnomon.native.words import Parts, Words, native, popped, scratch, whole, wrapped
from gnomon.ndarray.core.array import Array, address_of
from gnomon.ndarray.core.chunk import GPU, Chunk
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.core.mode import is_recording
from gnomon.ndarray.core.result import results
from gnomon.ndarray.lazy.materialize import is_there
from gnomon.ndarray.lazy.recipe import Recipe
from gnomon.runtime.execution.stream import PAIRS, Task
from gnomon.runtime.kernels.template import Streamed, Template

#: of a kernel: its fast path's record, the results' layouts, further integers, the record's owner,
#: and, if it is long and that is 0, a `Long`, else None
Entry = tuple[int, tuple[Layout, ...], tuple[int, ...], Recipe, object]

WORTH = 1000  # calls: without native code one takes 20 us more, and compiling that 0.2 s
LONG = 10  # calls that one is counted as which goes behind the program: it takes 200 us more
UNUSUAL = object()  # what the key has of an array that is left to Python
_MEMORY = "_chunk"


@whole
class Long(Frozen):
    """How a long kernel goes behind the program: by a spare task of its template's."""

    __slots__ = ("integers", "name", "streamed", "template")

    integers: int  # that it takes: addresses and numbers
    name: str
    streamed: Streamed
    template: Template

    def __init__(self, template: Template, streamed: Streamed, integers: int, name: str) -> None:
        put(self, "integers", integers)
        put(self, "name", name)
        put(self, "streamed", streamed)
        put(self, "template", template)

    @property
    def is_current(self) -> bool:
        """Whether the stream still keeps the copy that it knows of."""
        return self.template.streamed is self.streamed


@native
def _is_usual(thing: object, recording: bool) -> bool:
    """Whether something is an array of the usual class, while recording one off the tape."""
    return type(thing) is Array.main and not (recording and thing._tape is not None)


@native
def _part(array: Array, out: Array | None) -> object:
    """What the key has of an array in memory: its layout, or None where it is `out` itself."""
    if out is None or out._chunk is not array._chunk:
        return array._layout
    if out._layout is array._layout and out._offset == array._offset:
        return None
    return UNUSUAL


@native
def _key(
    arrays: tuple[object, ...], out: Array | None, recording: bool
) -> tuple[object, ...] | None:
    """What a kernel for these arrays is known by; None where one of them is not usual."""
    count = len(arrays)
    key = Parts(count + 1)
    if out is not None:
        if not _is_usual(out, recording) or out._pending_in is not None:
            return None
        key[count] = out._layout
    for k in range(count):
        if not _is_usual(arrays[k], recording):
            return None
        array = cast(Array, arrays[k])
        if array._pending_in is not None:
            if out is not None:
                return None
            if not is_there(array):
                getattr(array, _MEMORY)  # computes it
        part = _part(array, out)
        if part is UNUSUAL:
            return None
        key[k] = part
    return tuple(key)


@native
def _is_noted(array: Array, engine: Engine | None, addresses: Words, k: int) -> bool:
    """Whether the address of an array is noted: one that is not written, nor about to be.

    With an `engine`, work that it does behind the program may still be writing it.
    """
    if array._pending_in is not None:
        return False
    if not (is_free(array._chunk) if engine is None else is_coming(engine, array._chunk)):
        return False
    addresses[k] = address_of(array)
    return True


@native
def _is_writable(out: Array, layout: object, addresses: Words, k: int) -> bool:
    """Whether an array may be written to at once, and so is noted."""
    if out._layout is not layout or not _is_noted(out, None, addresses, k):
        return False
    chunk = out._chunk
    return is_unread(chunk) and not chunk.shared and not chunk.pending_readers


@native
def _are_gathered(
    arrays: tuple[object, ...], out: Array | None, key: tuple[object, ...], addresses: Words,
    recording: bool, engine: Engine | None,
) -> bool:  # fmt: skip
    """Whether all arrays are there as the key has them, and their addresses are noted.

    With an `engine`, work that it does behind the program may still be writing them.
    """
    for k in range(len(arrays)):
        if not _is_usual(arrays[k], recording):
            return False
        array = cast(Array, arrays[k])
        if not _is_noted(array, engine, addresses, k):
            return False
        if _part(array, out) is not key[k]:
            return False
        if array._chunk.shared and (out is not None or engine is not None):
            return False  # `out`, or what that work writes, may be the same memory
    return True


@native
def _put_numbers(numbers: tuple[int, ...], words: Words) -> None:
    """Have words hold the numbers of an entry."""
    for k in range(len(numbers)):
        words[k] = wrapped(numbers[k])


@native
def _applied(
    entry: Entry, arrays: tuple[object, ...], out: Array | None, key: tuple[object, ...],
    ctx: Context | None, recording: bool,
) -> Any:  # fmt: skip
    """An operator's results by what is known; None where that cannot be."""
    fast_path = Words(entry[0])
    integers = scratch(fast_path[0])
    count = len(arrays)
    own = integers + count
    if out is None:
        if ctx is None or ctx.device_typeid == GPU:  # where no fast path leads
            return None
        made = results(ctx, entry[1], own)
    else:
        if not _is_writable(out, key[count], integers, count):
            return None
        made = [out]
    if not is_unobserved() or not _are_gathered(arrays, out, key, integers, recording, None):
        return None
    _put_numbers(entry[2], own + len(made))
    fire(fast_path, integers)
    if out is not None:
        chunk = out._chunk
        put(chunk, "version", chunk.version + 1)
    return made[0] if len(made) == 1 else made


@native
def _pushed(
    entry: Entry, arrays: tuple[object, ...], key: tuple[object, ...], ctx: Context | None,
    recording: bool,
) -> Any:  # fmt: skip
    """As `_applied` without an `out`, of a long kernel, which goes behind the program."""
    long = cast(Long, entry[4])
    if len(long.streamed.spare) == 0 or ctx is None or ctx.device_typeid == GPU:
        return None
    integers = scratch(long.integers)
    own = integers + len(arrays)
    made = results(ctx, entry[1], own)
    _put_numbers(entry[2], own + len(made))
    if not _is_begun(long, arrays, key, integers, made, recording):
        return None
    return made[0] if len(made) == 1 else made


@native
def _is_begun(
    long: Long, arrays: tuple[object, ...], key: tuple[object, ...], integers: Words,
    made: list[Array], recording: bool,
) -> bool:  # fmt: skip
    """Whether a long kernel went behind the program."""
    engine = PROCESS.engine
    if engine is None or not goes_behind(engine):
        return False
    with resting():
        if not is_unobserved() or not _are_gathered(arrays, None, key, integers, recording, engine):
            return False
        task = popped(long.streamed.spare)
        if task is None:
            return False
        return _is_entered(engine, long, task, arrays, integers, made)


@native
def _is_entered(
    engine: Engine, long: Long, task: Task, arrays: tuple[object, ...], integers: Words,
    made: list[Array],
) -> bool:  # fmt: skip
    """Whether a spare task was filled in, and entered behind the program."""
    streamed = long.streamed
    row = Words(streamed.rows)
    pair = Words(task.address + PAIRS)
    for _ in range(streamed.count):
        pair[1] = integers[row[0]] + row[1]
        pair = pair + 2
        row = row + 2
    task.timed = long.template
    const: list[Chunk] = []
    for k in range(len(arrays)):
        chunk = cast(Array, arrays[k])._chunk
        if not any(one is chunk for one in const):
            const.append(chunk)
    mutate: list[Chunk] = []
    for array in made:
        put(array._chunk, "version", 0)
        mutate.append(array._chunk)
    return entered_behind(engine, long.template, tuple(const), tuple(mutate), long.name, task)


@native
def repeat(
    known: dict[Any, Entry], arrays: tuple[object, ...], given: object, ctx: Context | None
) -> Any:
    """The results of the kernel that is known for these arrays; None with nothing done."""
    out: Array | None = None
    if given is not None:
        if type(given) is not Array.main:
            return None
        out = given
    recording = is_recording()
    key = _key(arrays, out, recording)
    if key is None:
        return None
    entry = known.get(key)
    if entry is None:
        return None
    if len(arrays) > 0:
        ctx = cast(Array, arrays[0])._chunk.ctx
    if entry[0] == 0:
        return None if out is not None else _pushed(entry, arrays, key, ctx, recording)
    return _applied(entry, arrays, out, key, ctx, recording)


repeater = Later(repeat, None, WORTH)
