"""The table of what came before, and the methods of expressions that native code looks it up for.

State: *idle* until launches have run so often that it pays: every method is Python's. Then the
code of `call_cache_code.py` (50 ms to compile, 1 ms from disk) takes the places of the operators of
`Expr`, of the call of a `ScalarFn`, and of the item access and assignments of tensors (`serve`),
and the table fills. An entry holds for as long as no tensor has taken another shape: the first
thing entered after one did empties the table, which until then is not read. What is entered was
seen in one epoch: who looked says which one that was when the look began. The GIL
guards what native code reads, one thread at a time writes, and when the interpreter ends, Python's
methods take over again. Without a GIL they stay.

What statements cost: `python benchmarks/start.py statements`.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.dtype import DType
from gnomon.expr.arguments import MEMORY, Memory
from gnomon.expr.composite import Composite
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.pattern import EPOCH, Pattern, drop_older, holds, is_known, pattern_of
from gnomon.expr.reducer import Reducer
from gnomon.ground.lock import exclusive, if_free
from gnomon.native.method import for_good
from gnomon.native.serve import methods
from gnomon.plan.statement import SAVERS, Saver
from gnomon.runtime.ffi import ffi
from gnomon.runtime.statements import call_cache_code, call_cache_tensor, fields
from gnomon.runtime.statements.call_cache_code import (
    BITS,
    ENTRY,
    HEAD,
    MIDDLE,
    MOST,
    NODES,
    PYTHON,
    TABLE,
    TINY,
    mixed_in,
    place_of,
)
from gnomon.runtime.statements.call_cache_tensor import ABSENT, LARGE, ROW, Handle
from gnomon.runtime.statements.launch import Launch, roles

PATIENCE = 16  # launches before native code takes over
_NUMBERS = (float, int, np.float32, np.float64)
_savers = {saver: saver for saver in SAVERS}
_BITWISE = {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_OPERATORS = [
    ("__neg__", "neg", "own"),
    *((f"__{name}__", name, "left") for name in "add sub mul lt le gt ge eq ne".split()),
    *((f"__r{name}__", name, "right") for name in ("add", "sub", "mul")),
    ("__truediv__", "div", "left"),
    ("__rtruediv__", "div", "right"),
    ("__pow__", "power", "left"),
    ("__rpow__", "power", "right"),
    ("__invert__", "invert", "own"),
    *(
        (f"__{side}{name}__", fn, "right" if side else "left")
        for side in ("", "r")
        for name, fn in _BITWISE.items()
    ),
]
_ASSIGNMENTS = {
    "__iadd__": "plusto",
    "__isub__": "minusto",
    "__imul__": "multo",
    "__itruediv__": "divto",
}

_NEVER = -1  # an epoch that never is

_memory = ffi.buffer(ffi.cast("char *", TABLE.address), 8 * (HEAD + (ENTRY << BITS)))
#: held while the table is written; never waited for, as finalizers may come back here any time
_writing = [exclusive()]
#: what the entries are about, by place: it lives as long as they stand
_kept: dict[int, tuple[object, ...]] = {}
#: how often launches have asked
_asked = itertools.count()
_installing = exclusive()
#: the native methods
_installed: list[object] = []


def serve(tensor: type[Buffer]) -> None:
    """The type whose item access and assignments native code takes over."""
    Handle.tensor = tensor


# -- the table --------------------------------------------------------------------------------


def clear() -> None:
    """Forget everything."""
    TABLE[1] = _NEVER
    gone: list[object] = []
    if_free(_writing[0], lambda: _empty(gone))


def renew() -> None:
    """In a forked child: another thread of the parent may have been writing the table."""
    _writing[0] = exclusive()


def enter(keys: Sequence[object], found: Sequence[object], epoch: int) -> bool:
    """From now on `found` is found for `keys`: objects, or whole numbers of 64 bits.

    False where that is not so, as the table is being written already. Nothing is entered of an
    `epoch` that has ended; if it ends meanwhile, the table is not read.
    """
    gone: list[object] = []
    return if_free(_writing[0], lambda: _write(keys, found, epoch, gone))


def _write(keys: Sequence[object], found: Sequence[object], epoch: int, gone: list[object]) -> None:
    if epoch != EPOCH.value:
        return
    if TABLE[1] != epoch:
        _empty(gone)
        TABLE[1] = epoch
    wanted = (*map(_word, keys), 0, 0, 0)[:4]
    place = place_of(*wanted)
    places = (place, place ^ 1)
    same = [p for p in places if _words(p)[:4] == wanted]
    free = [p for p in places if p not in _kept]
    chosen = [*same, *free, place][0]
    words = (*wanted, *map(_word, found), 0, 0, 0)[:ENTRY]
    gone.append(_kept.get(chosen))
    _kept[chosen] = (*keys, *found)
    _put(chosen, words)


def _empty(gone: list[object]) -> None:
    """Take everything out, and into `gone`: letting go of it may run anything."""
    gone += _kept.values()
    for place in _kept:
        _put(place, [0] * ENTRY)
    _kept.clear()


def _put(place: int, words: Sequence[int]) -> None:
    """The words of an entry, at once: no other thread runs, and native code sees all or none."""
    struct.pack_into(f"{ENTRY}q", _memory, 8 * (HEAD + ENTRY * place), *words)


def _words(place: int) -> tuple[int, ...]:
    """The words of an entry."""
    return struct.unpack_from(f"{ENTRY}q", _memory, 8 * (HEAD + ENTRY * place))


def _word(x: object) -> int:
    return x if isinstance(x, int) else id(x)


def note_launch(dest: Buffer, saver: Saver, value: Expr, launch: Launch) -> bool:
    """`launch` carried out a statement: from now on at once, if that is known here afterwards."""
    patterns = _patterns(dest, value)
    if not _ready() or patterns is None:
        return False
    kinds: list[object] = [patterns[1]]
    if type(value) is Scalar:
        kinds += [kind for kind in (float, int, TINY, MIDDLE) if _held(kind, dest.dtype)]
    found = (launch.recipe, launch)
    return all(enter((_savers[saver], kind, patterns[0]), found, launch.epoch) for kind in kinds)


def note_view(tensor: Buffer, key: Any, made: Buffer, epoch: int) -> None:
    """`tensor[key]`, asked for in an epoch, is `made`, another place in its memory."""
    address = tensor.address
    if not _installed or tensor.owner is None or not address or not made.address:
        return
    words = _key_words(key)
    patterns = _patterns(tensor, made)
    if words is None or patterns is None:
        return
    distance = made.address - address
    enter((patterns[0], *words), (made.shape, made.strides, patterns[1], distance), epoch)


def _key_words(key: Any) -> tuple[int, int, int] | None:
    """An index as native code looks for it; None where it has no such form."""
    if not isinstance(key, slice):
        return (key, 0, ROW) if type(key) is int and abs(key) < LARGE else None
    bounds = (key.start, key.stop, key.step)
    if any(b is not None and (type(b) is not int or abs(b) >= LARGE) for b in bounds):
        return None
    start, stop, step = [ABSENT if b is None else b for b in bounds]
    return start, stop, step


def _note_map(fn: ScalarFn, operands: Sequence[Any], made: Any, epoch: int) -> None:
    """`fn` of these operands, asked for in an epoch, is `made`."""
    if type(made) is not Map or made.fn is not fn or len(made.args) != len(operands):
        return
    first = not _came(operands)
    keys: list[object] = [fn]
    for operand, arg in zip(operands, made.args, strict=True):
        if operand is arg:
            patterns = None if first else _patterns(arg)
            if patterns is None and not first:
                return
            keys.append(patterns[0] if patterns else arg.dtype)
        elif type(operand) in _NUMBERS and _held(_kind(operand), made.dtype):
            keys.append(_kind(operand))
        else:
            return
    found: Sequence[object] | None = [made.dtype] if first else _patterns(made)
    if found is not None and len(keys) <= 4:
        enter(keys, (*found, False), epoch)


def _came(operands: Sequence[Any]) -> bool:
    """Whether all operands were in a statement that came again: others may never do."""
    return all(x.pattern is not None for x in operands if isinstance(x, Expr))


def _kind(number: float) -> object:
    """The kind of a number, as native code tells it."""
    if type(number) is not int:
        return float
    middle = MIDDLE if -(1 << 31) <= number < 1 << 31 else int
    return TINY if 0 <= number < 128 else middle


def _held(kind: object, dtype: DType) -> bool:
    """Whether a dtype holds all numbers of a kind, or rounds them."""
    if kind is TINY:
        return dtype.kind in "fiu"
    return dtype.kind == "f" or (kind is MIDDLE and dtype.kind == "i" and dtype.size >= 4)


def _patterns(*nodes: Expr) -> list[Pattern] | None:
    """The patterns of nodes, where all have one that holds; those that do not go."""
    found = [pattern_of(node) for node in nodes]
    if all(map(holds, found)):
        return found
    drop_older(*nodes)
    return None


def _note_call(function: Callable[..., Any], args: tuple[Any, ...], made: Any, epoch: int) -> None:
    """`function`, called in an epoch, made a node or a tensor over an argument's memory."""
    view = type(made) is Handle.tensor
    if not (view or isinstance(made, (Cast, Composite))) or len(args) >= MOST:
        return
    if not view and not all(is_known(arg) for arg in args if isinstance(arg, Expr)):
        return
    given = [id(arg) for arg in args if isinstance(arg, Expr)]
    if id(made) in given or len(set(given)) < len(given):
        return  # it may have stored into what it gives back; twins are not told apart
    if not view and "many" in roles(made).values():
        pattern_of(made)  # what is made of it is found by that
        return
    mixed, noted = 0, []
    for arg in args:
        found = _lasting_form(arg)
        if found is None:
            return
        mixed = mixed_in(mixed, arg)
        noted.append(found[0])
    program = _viewed(args, made) if view else _program(args, made)
    if program is not None:
        enter((function, mixed, len(args) + 1), (tuple(noted), *program), epoch)


def _viewed(args: tuple[Any, ...], made: Buffer) -> tuple[object, ...] | None:
    """The form of a tensor over the memory of an argument, and where it begins there."""
    patterns = _patterns(made)
    tensors = [(k, arg) for k, arg in enumerate(args) if isinstance(arg, Expr)]
    if patterns is None or len(tensors) != 1:
        return None
    k, arg = tensors[0]
    if not isinstance(arg, Handle.tensor) or not arg.address or not made.address:
        return None
    if arg.owner is None or arg.owner is not made.owner:
        return None
    return (made.shape, made.strides, patterns[0], k), 0, made.address - arg.address


def _lasting_form(arg: Any) -> tuple[Any] | None:
    """What an argument is compared with; None where it has no lasting form."""
    if isinstance(arg, Expr):
        patterns = _patterns(arg)
        return None if patterns is None else (patterns[0],)
    if type(arg) is tuple:
        return (arg,) if len(arg) <= MOST and all(_lasting(x) for x in arg) else None
    return (arg,) if _lasting(arg) else None


def _lasting(x: object) -> bool:
    """Whether something is equal to nothing but itself, or a number."""
    return x is None or type(x) in (int, bool, str, type, DType, Reducer)


def _program(args: tuple[Any, ...], root: Cast | Composite) -> tuple[object, ...] | None:
    """How the nodes between the arguments and `root` are made; None where that is not known."""
    places = {id(arg): k for k, arg in enumerate(args) if isinstance(arg, Expr)}
    code: list[Any] = []
    waiting: list[Cast | Composite] = [root]
    nodes = 0
    while waiting:
        node = waiting[-1]
        below = [c for c in node.children if id(c) not in places]
        if not all(isinstance(c, (Cast, Composite)) for c in below) or nodes >= NODES:
            return None
        if below:
            waiting += [c for c in below if isinstance(c, (Cast, Composite))]
            continue
        waiting.pop()
        if id(node) in places:
            continue
        patterns, held = _patterns(node), roles(node)
        if patterns is None or "many" in held.values():
            return None
        clips = isinstance(node, Composite) and node.clips
        code += [type(node), patterns[0], len(held) + clips]
        code += ["clips", -1, True] if clips else []
        for name, role in held.items():
            value = getattr(node, name)
            operand = role == "one" and value is not None
            code += [
                sys.intern(name),
                places[id(value)] if operand else -1,
                None if operand else value,
            ]
        places[id(node)] = len(args) + nodes
        nodes += 1
    return tuple(code), nodes


# -- the methods ------------------------------------------------------------------------------


def count() -> None:
    """A statement was carried out whose operands are not known here."""
    if not _installed:
        _ready()


def _ready() -> bool:
    """Whether the table is in use; native code takes over when this has been asked often."""
    wanted = not _installed and next(_asked) >= PATIENCE and Handle.tensor and fields.readable()
    if wanted and _installing.acquire(blocking=False):  # for good
        _install(Handle.tensor)
    return bool(_installed)


def _install(tensor: type[Buffer]) -> None:
    """Let native code take the places of Python's methods."""
    found: list[tuple[type, Any]] = []
    for name, function, order in _OPERATORS:
        PYTHON[name] = _noting(getattr(Expr, name), SCALAR[function], order)
        found.append((Expr, call_cache_code.operator(name, function, order)))
    PYTHON["__call__"] = _noting_call(ScalarFn.__call__)
    found.append((ScalarFn, call_cache_code.calling()))
    for name in (*_ASSIGNMENTS, "__getitem__", "__setitem__"):
        PYTHON[name] = getattr(tensor, name)
    found += [(tensor, each) for each in call_cache_tensor.assignments(_ASSIGNMENTS)]
    found.append((Memory, call_cache_tensor.recall))
    served = methods(*found)
    for (kind, function), method in zip(found, served, strict=True):
        setattr(kind, function.__name__, method)
    # bound once: a method is bound anew at each call whose arguments are given by `*`
    MEMORY.__dict__.update(recall=MEMORY.recall, note=_note_call)
    _installed.extend(served)
    for_good((_installed, _kept, TABLE, EPOCH))
    atexit.register(_close)


def _close() -> None:
    """From now on everything is Python's: what kernels need goes when the interpreter ends."""
    _writing[0].acquire(timeout=1)  # for good
    TABLE[1] = _NEVER


def _noting(method: Callable[..., Any], fn: ScalarFn, order: str) -> Callable[..., Any]:
    """A method of an operator that enters what it gave."""

    @functools.wraps(method)
    def noting(*operands: Any) -> Any:
        epoch = EPOCH.value
        made = method(*operands)
        _note_map(fn, operands[::-1] if order == "right" else operands, made, epoch)
        return made

    return noting


def _noting_call(method: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a scalar function, which enters what it gave."""

    @functools.wraps(method)
    def noting(fn: ScalarFn, *operands: Any) -> Any:
        epoch = EPOCH.value
        made = method(fn, *operands)
        _note_map(fn, operands, made, epoch)
        return made

    return noting
