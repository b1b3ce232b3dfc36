"""The table of what came before, and the methods of expressions that native code looks it up for.

State: *idle* until launches have run so often that it pays: every method is Python's. Then the
code of `quick_code.py` (50 ms to compile, 1 ms from disk) takes the places of the operators of
`Expr`, of the call of a `ScalarFn`, and of the item access and assignments of tensors (`serve`),
and the table fills. An entry holds for as long as no tensor has taken another shape: the first
thing entered after one did empties the table, which until then nobody finds anything in. The GIL
guards what native code reads, one thread at a time writes, and when the interpreter ends, Python's
methods take over again. Without a GIL they stay.

What statements cost: `python benchmarks/start.py statements`.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import inspect
import itertools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.dtype import DType
from gnomon.expr.arguments import MEMORY
from gnomon.expr.composite import Composite
from gnomon.expr.node import MAPPER, RVALUE, Buffer, Expr, Map, Scalar
from gnomon.expr.pattern import EPOCH, NONE, Pattern, pattern_of
from gnomon.expr.reducer import Reducer
from gnomon.expr.scalar import SCALAR, ScalarFn
from gnomon.lock import exclusive, if_free
from gnomon.native.method import Method, for_good, method_of, native_code
from gnomon.plan.statement import SAVERS, Saver
from gnomon.runtime import fields, jit, launch_code, quick_call, quick_code, quick_tensor
from gnomon.runtime.fields import offset
from gnomon.runtime.launch import Launch
from gnomon.runtime.native import Block, ffi
from gnomon.runtime.quick_code import BITS, MIDDLE, MIX, TINY
from gnomon.runtime.quick_tensor import ABSENT, ROW

PATIENCE = 16  # launches before native code takes over
_WORD = (1 << 64) - 1
_HEAD, _ENTRY = 2, 8  # words
_NUMBERS = (float, int, np.float32, np.float64)
_savers = {saver: saver for saver in SAVERS}
_OPERATORS = [
    ("__neg__", "neg", "own"),
    *((f"__{name}__", name, "left") for name in "add sub mul lt le gt ge eq ne".split()),
    *((f"__r{name}__", name, "right") for name in ("add", "sub", "mul")),
    ("__truediv__", "div", "left"),
    ("__rtruediv__", "div", "right"),
    ("__pow__", "power", "left"),
    ("__rpow__", "power", "right"),
]
_ASSIGNMENTS = [
    ("__iadd__", "plusto"),
    ("__isub__", "minusto"),
    ("__imul__", "multo"),
    ("__itruediv__", "divto"),
]

_NEVER = -1  # an epoch that never is

#: the head of the table, then its entries
_table = Block(_HEAD + (_ENTRY << BITS))
_table.words[0] = ctypes.addressof(EPOCH)
_memory = ffi.buffer(_table.words)
#: held by who writes the table; nobody waits for it, as finalizers may come back here at any time
_writing = [exclusive()]
#: what the entries are about, by place: it lives as long as they stand
_kept: dict[int, tuple[object, ...]] = {}
#: the type of tensors, once there is one
_tensors: list[type[Buffer]] = []
#: how often launches have asked
_asked = itertools.count()
_installing = exclusive()
#: native code, and what Python needs to call it
_installed: list[object] = []


def serve(tensor: type[Buffer]) -> None:
    """The type whose item access and assignments native code takes over."""
    _tensors.append(tensor)


# -- the table --------------------------------------------------------------------------------


def clear() -> None:
    """Forget everything."""
    _table.words[1] = _NEVER
    gone: list[object] = []
    if_free(_writing[0], lambda: _empty(gone))


def renew() -> None:
    """In a forked child: another thread of the parent may have been writing the table."""
    _writing[0] = exclusive()


def enter(keys: Sequence[object], found: Sequence[object]) -> bool:
    """From now on `found` is found for `keys`: objects, or whole numbers of 64 bits.

    False where that is not so, as the table is being written already.
    """
    gone: list[object] = []
    return if_free(_writing[0], lambda: _write(keys, found, gone))


def _write(keys: Sequence[object], found: Sequence[object], gone: list[object]) -> None:
    if _table.words[1] != EPOCH.value:
        _empty(gone)
        _table.words[1] = EPOCH.value
    wanted = [_word(k) for k in keys] + [0] * (4 - len(keys))
    mixed = 0
    for word, mix in zip(wanted, MIX, strict=True):
        mixed ^= (word * mix) & _WORD
    place = mixed >> (64 - BITS)
    places = (place, place ^ 1)
    start = {p: _HEAD + _ENTRY * p for p in places}
    same = [p for p in places if list(_table.words[start[p] : start[p] + 4]) == wanted]
    free = [p for p in places if p not in _kept]
    chosen = [*same, *free, place][0]
    words = wanted + [_word(x) for x in found] + [0] * (4 - len(found))
    gone.append(_kept.get(chosen))
    _kept[chosen] = (*keys, *found)
    _put(chosen, words)


def _empty(gone: list[object]) -> None:
    """Take everything out, and into `gone`: letting go of it may run anything."""
    gone += _kept.values()
    for place in _kept:
        _put(place, [0] * _ENTRY)
    _kept.clear()


def _put(place: int, words: Sequence[int]) -> None:
    """The words of an entry, at once: no other thread runs, and native code sees all or none."""
    start = 8 * (_HEAD + _ENTRY * place)
    _memory[start : start + 8 * _ENTRY] = struct.pack(f"{_ENTRY}q", *words)


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
    return all(enter((_savers[saver], kind, patterns[0]), found) for kind in kinds)


def note_view(tensor: Buffer, key: Any, made: Buffer) -> None:
    """`tensor[key]` is `made`, another place in its memory."""
    if not _installed or tensor.owner is None or not tensor.address or not made.address:
        return
    words = _key_words(key)
    patterns = _patterns(tensor, made)
    if words is None or patterns is None:
        return
    distance = made.address - tensor.address
    enter((patterns[0], *words), (made.shape, made.strides, patterns[1], distance))


def _key_words(key: Any) -> tuple[int, int, int] | None:
    """An index as native code looks for it; None where it has no such form."""
    if not isinstance(key, slice):
        return (key, 0, ROW) if type(key) is int and abs(key) < 1 << 62 else None
    bounds = (key.start, key.stop, key.step)
    if any(b is not None and (type(b) is not int or abs(b) >= 1 << 62) for b in bounds):
        return None
    start, stop, step = [ABSENT if b is None else b for b in bounds]
    return start, stop, step


def _note_map(fn: ScalarFn, operands: Sequence[Any], made: Any) -> None:
    """`fn` of these operands is `made`."""
    if type(made) is not Map or made.fn is not fn or len(made.args) != len(operands):
        return
    keys: list[object] = [fn]
    for operand, arg in zip(operands, made.args, strict=True):
        if operand is arg:
            patterns = _patterns(arg)
            if patterns is None:
                return
            keys.append(patterns[0])
        elif type(operand) in _NUMBERS and _held(_kind(operand), made.dtype):
            keys.append(_kind(operand))
        else:
            return
    patterns = _patterns(made)
    if patterns is not None and len(keys) <= 4:
        enter(keys, (*patterns, fn.modular))


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
    """The patterns of nodes, where all have one that holds."""
    found = [pattern_of(node) for node in nodes]
    fine = all(p is not NONE and p.epoch == EPOCH.value for p in found)
    return found if fine else None


def _note_call(function: Callable[..., Any], args: tuple[Any, ...], made: Any) -> None:
    """`function` made a node, or a tensor over an argument's memory, of these arguments."""
    view = type(made) is _tensors[0]
    if not (view or isinstance(made, Composite)) or len(args) >= quick_call.MOST:
        return
    given = [id(arg) for arg in args if isinstance(arg, Expr)]
    if id(made) in given or len(set(given)) < len(given):
        return  # it may have stored into what it gives back; twins are not told apart
    if not view and "many" in made.roles().values():
        pattern_of(made)  # what is made of it is found by that
        return
    words, noted = 0, []
    for arg in args:
        word = _argument(arg)
        if word is None:
            return
        words = _mixed_in(words, word[0])
        noted.append(word[1])
    program = _viewed(args, made) if view else _program(args, made)
    if program is not None:
        signed = words - (words >> 63 << 64)
        enter((function, signed, len(args) + 1), (tuple(noted), *program))


def _viewed(args: tuple[Any, ...], made: Buffer) -> tuple[object, ...] | None:
    """The form of a tensor over the memory of an argument, and where it begins there."""
    patterns = _patterns(made)
    tensors = [(k, arg) for k, arg in enumerate(args) if isinstance(arg, Expr)]
    if patterns is None or len(tensors) != 1:
        return None
    k, arg = tensors[0]
    if not isinstance(arg, _tensors[0]) or not arg.address or not made.address:
        return None
    if arg.owner is None or arg.owner is not made.owner:
        return None
    return (made.shape, made.strides, patterns[0], k), 0, made.address - arg.address


def _argument(arg: Any) -> tuple[tuple[int, ...], Any] | None:
    """The words of an argument, and what it is compared with; None where it has no lasting form."""
    if isinstance(arg, Expr):
        patterns = _patterns(arg)
        return None if patterns is None else ((id(patterns[0]),), patterns[0])
    if type(arg) is tuple:
        if len(arg) > quick_call.MOST or not all(_lasting(x) for x in arg):
            return None
        return (*map(_word_of, arg), len(arg)), arg
    return ((_word_of(arg),), arg) if _lasting(arg) else None


def _lasting(x: object) -> bool:
    """Whether something is equal to nothing but itself, or a number."""
    return x is None or type(x) in (int, bool, str, DType, Reducer)


def _word_of(x: object) -> int:
    return x if type(x) is int and -(1 << 63) <= x < 1 << 63 else id(x)


def _mixed_in(so_far: int, words: Sequence[int]) -> int:
    """The words of one argument more, mixed as native code does."""
    for word in words:
        so_far = ((so_far ^ word) & _WORD) * MIX[1] & _WORD
        so_far ^= so_far >> 29
    return so_far


def _program(args: tuple[Any, ...], root: Composite) -> tuple[object, ...] | None:
    """How the nodes between the arguments and `root` are made; None where that is not known."""
    places = {id(arg): k for k, arg in enumerate(args) if isinstance(arg, Expr)}
    code: list[Any] = []
    waiting: list[Composite] = [root]
    nodes = 0
    while waiting:
        node = waiting[-1]
        below = [c for c in node.children if id(c) not in places]
        if not all(isinstance(c, Composite) for c in below) or nodes >= quick_call.NODES:
            return None
        if below:
            waiting += [c for c in below if isinstance(c, Composite)]
            continue
        waiting.pop()
        if id(node) in places:
            continue
        patterns, roles = _patterns(node), node.roles()
        if patterns is None or "many" in roles.values():
            return None
        code += [type(node), patterns[0], len(roles) + node.clips]
        code += ["clips", -1, True] if node.clips else []
        for name, role in roles.items():
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


def _ready() -> bool:
    """Whether the table is in use; native code takes over when this has been asked often."""
    wanted = not _installed and next(_asked) >= PATIENCE and _tensors and fields.readable()
    if wanted and _installing.acquire(blocking=False):  # for good
        _install(_tensors[0])
    return bool(_installed)


def _install(tensor: type[Buffer]) -> None:
    """Let native code take the places of Python's methods."""
    kept: list[tuple[type, str, Callable[..., Any]]] = []
    text = [quick_code.QUICK, quick_tensor.TENSOR, quick_call.CALL]
    for name, function, order in _OPERATORS:
        kept.append((Expr, name, _noting(getattr(Expr, name), SCALAR[function], order)))
        text.append(quick_code.operator(name, function, order))
    kept.append((ScalarFn, "__call__", _noting_call(ScalarFn.__call__)))
    for name, saver in _ASSIGNMENTS:
        kept.append((tensor, name, getattr(tensor, name)))
        text.append(quick_tensor.assignment(name, saver))
    kept += [(tensor, name, getattr(tensor, name)) for name in ("__getitem__", "__setitem__")]
    known = {f"python.{name}": id(method) for _, name, method in kept} | _things(tensor)
    text += [f"@{name} = external global i64\n" for name in known]
    whole = launch_code.START + "".join(text)
    code = native_code(whole, _places(tensor), known)
    _recalling(code)
    _installed.extend([code, kept, *(_replaced(*each, code) for each in kept)])
    for_good((_installed, _kept, _table, EPOCH))
    atexit.register(_close)


def _close() -> None:
    """From now on everything is Python's: what kernels need goes when the interpreter ends."""
    _writing[0].acquire(timeout=1)  # for good
    _table.words[1] = _NEVER


def _replaced(kind: type, name: str, method: Callable[..., Any], code: jit.Module) -> Method:
    """Put native code in the place of a method."""
    native = Method(name, code.address(name), documented(name, method))
    setattr(kind, name, method_of(kind, native))
    return native


def documented(name: str, method: Callable[..., Any]) -> str:
    """The signature and the documentation of a method, as Python finds them in native code."""
    plain = inspect.unwrap(method)
    several = plain.__code__.co_flags & inspect.CO_VARARGS
    given = plain.__code__.co_varnames[1 : plain.__code__.co_argcount + bool(several)]
    rest = f"*{given[0]}" if several else ", ".join([*given, "/"])
    return f"{name}($self, {rest})\n--\n\n{plain.__doc__ or ''}"


def _recalling(code: jit.Module) -> None:
    """Let functions of expressions ask for what they made before."""
    recall = Method("recall", code.address("recall"))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
    _installed.append(recall)
    MEMORY.__dict__.update(recall=make(ctypes.addressof(recall), None, None), note=_note_call)


def _noting(method: Callable[..., Any], fn: ScalarFn, order: str) -> Callable[..., Any]:
    """A method of an operator that enters what it gave."""

    @functools.wraps(method)
    def noting(*operands: Any) -> Any:
        made = method(*operands)
        _note_map(fn, operands[::-1] if order == "right" else operands, made)
        return made

    return noting


def _noting_call(method: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a scalar function, which enters what it gave."""

    @functools.wraps(method)
    def noting(fn: ScalarFn, *operands: Any) -> Any:
        made = method(fn, *operands)
        _note_map(fn, operands, made)
        return made

    return noting


def _things(tensor: type[Buffer]) -> dict[str, int]:
    """What native code knows by its address."""
    types = (Expr, Map, Scalar, float, int, slice, tuple)
    known: dict[str, object] = {kind.__name__: kind for kind in types}
    known |= {"Tensor": tensor, "numpy.float32": np.float32, "numpy.float64": np.float64}
    known |= {"NONE": NONE, "nothing": (), "rvalue": RVALUE, "mapper": MAPPER} | _savers
    known |= {name: SCALAR[name] for _, name, _ in _OPERATORS}
    return {name: id(thing) for name, thing in known.items()} | {"Table": _table.address}


def _places(tensor: type[Buffer]) -> dict[str, int]:
    """Where objects hold what native code reads and writes."""
    names = {
        Expr: ("shape", "dtype", "exp_type", "pattern"),
        Map: ("fn", "args"),
        Scalar: ("value", "modular"),
        Buffer: ("strides", "address", "owner", "device", "_layout"),
        Pattern: ("shape", "dtype", "exp_type", "number"),
    }
    found = {f"{kind.__name__}.{n}": offset(kind, n) for kind, of in names.items() for n in of}
    found |= {f"slice.{name}": place for name, place in fields.slice_offsets().items()}
    found |= {"Tensor.stream_": offset(tensor, "stream_"), "type": fields.type_offset()}
    return found | quick_code.numbers() | quick_tensor.NUMBERS | quick_call.NUMBERS
