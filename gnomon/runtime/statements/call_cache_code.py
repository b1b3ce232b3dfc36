"""What came before, found by native functions: operators, and functions of expressions.

`a + b` of two patterns always gives a node of the same pattern, `t[i:j]` of a pattern a tensor of
the same sizes at the same distance, and an assignment of two patterns runs the same launch. So the
Python methods run once for each; what they gave is entered into a table (`call_cache.py`), and from
then on the functions here and in `call_cache_tensor.py` make the node, the tensor or the call. What
is not in the table goes to the Python method, whatever it is: nothing is decided here, and no error
raised.

The table: two words, the address of the epoch and the epoch it holds for; then entries of eight
words: four to look for, and four that are found. It is searched in two places, next to each other.

    function, pattern, pattern or kind of a number or 0, the same  -> pattern of the node, modular
    function, dtype, dtype or kind of a number or 0, the same      -> dtype of the node, modular
    saver, pattern or kind of a number, pattern of the destination -> recipe, launch
    pattern, start, stop, step (or what marks a whole number)      -> shape, strides, pattern, bytes
    function, mixed arguments, their number -> arguments to compare, program, nodes, bytes further

The kind of a number is its type, and for whole ones how large they are: `TINY` fits every integer
type, `MIDDLE` those of 32 and 64 bits with a sign, so that none has to be checked when it comes.
A *program* makes what a function made of operands of the same patterns and of the same other
arguments: it has, for each node in turn, its class, its pattern, how many fields follow, and of
each its name, where its value is found (the number of an argument, or of a node behind the last
argument; -1 for a value of its own), and that value.

The entries keep nothing alive; `call_cache.py` does, until the table is emptied. That may happen
whenever an object is allocated, as the collector may run anything, or while a kernel lets other
threads run: so the code here holds what it found from the moment it did.
"""

from __future__ import annotations

import ctypes
from typing import Any, cast

import numpy as np

from gnomon.dtype import DType
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.node import MAPPER, Expr, Map, Scalar
from gnomon.expr.pattern import EPOCH, Pattern
from gnomon.ground.record import put
from gnomon.native.words import (
    Boxed,
    Parts,
    Words,
    native,
    new,
    there,
    variant,
    word_or,
    wrapped,
)
from gnomon.runtime.ffi import Block

BITS = 12  # of the number of places
HEAD, ENTRY = 2, 8  # words
MOST = 12  # arguments, and elements of one that is a tuple
NODES = 16  # of a program
TINY, MIDDLE = 1, 2
_A, _B, _C, _D = map(
    wrapped, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
)
_SHIFT, _PLACES = 64 - BITS, (1 << BITS) - 1
_LOW35 = (1 << 35) - 1
_LOW, _HIGH = -(1 << 31), 1 << 31

_block = Block(HEAD + (ENTRY << BITS))
TABLE = Words(_block.address, _block)
TABLE[0] = ctypes.addressof(EPOCH)

#: Python's methods, by name
PYTHON: dict[str, Any] = {}
FN: ScalarFn = SCALAR["neg"]  # in a variant: what is mapped,
METHOD: Any = None  # and what is asked of what is not known


@native
def place_of(a: int, b: int, c: int, d: int) -> int:
    """Where four words are looked for first."""
    return (wrapped(a * _A ^ b * _B ^ c * _C ^ d * _D) >> _SHIFT) & _PLACES


@native
def _is_entry(at: Words, a: int, b: int, c: int, d: int) -> bool:
    return at[0] == a and at[1] == b and at[2] == c and at[3] == d


@native
def find(a: int, b: int, c: int, d: int) -> Words:
    """What was entered for four words; at no address if nothing was."""
    if Words(TABLE[0])[0] != TABLE[1]:
        return Words(0)
    place = place_of(a, b, c, d)
    at = TABLE + (HEAD + ENTRY * place)
    if not _is_entry(at, a, b, c, d):
        at = TABLE + (HEAD + ENTRY * (place ^ 1))
        if not _is_entry(at, a, b, c, d):
            return Words(0)
    return at + 4


@native
def is_same(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes, or strides, are equal."""
    if len(a) != len(b):
        return False
    for k in range(len(a)):
        x: int = a[k]
        y: int = b[k]
        if x != y:
            return False
    return True


@native
def _kind(number: Boxed) -> int:
    """The kind of a whole number."""
    value = word_or(number, _HIGH)
    if value >= 0 and value < 128:
        return TINY
    return MIDDLE if value >= _LOW and value < _HIGH else id(int)


@native
def word_of(x: object) -> int:
    """An operand as a word to look for: its pattern, or the kind of a number; 0 for neither."""
    if type(x) is int:
        return _kind(x)
    if type(x) is float or type(x) is np.float64 or type(x) is np.float32:
        return id(float)
    if isinstance(x, Expr):
        pattern = x.pattern
        return 0 if pattern is None else id(pattern)
    return 0


@native
def operand(x: object, dtype: DType, pattern: Pattern | None, modular: bool) -> object:
    """An operand of a node of that dtype; numbers become Scalars of that pattern."""
    numpy = type(x) is np.float64 or type(x) is np.float32
    if not numpy and type(x) is not float and type(x) is not int:
        return x
    value = float(cast(Any, x)) if numpy else x
    made = new(Scalar)
    put(made, "value", value)
    put(made, "modular", modular)
    put(made, "shape", ())
    put(made, "exp_type", MAPPER)
    put(made, "dtype", dtype)
    put(made, "pattern", pattern)
    return made


@native
def _applied(fn: ScalarFn, count: int, a: object, b: object, c: object) -> Map | None:
    """A function over one to three operands; None where it is not known."""
    first = word_of(a)
    second = word_of(b) if count > 1 else 0
    third = word_of(c) if count > 2 else 0
    if first == 0 or (count > 1 and second == 0) or (count > 2 and third == 0):
        return _first_applied(fn, count, a, b, c)
    entry = find(id(fn), first, second, third)
    if entry.address == 0:
        return None
    pattern = cast(Pattern, there(entry[0]))
    modular = entry[1] != 0
    dtype = pattern.dtype
    number = pattern.number
    x = operand(a, dtype, number, modular)
    y = operand(b, dtype, number, modular) if count > 1 else None
    z = operand(c, dtype, number, modular) if count > 2 else None
    args: tuple[Any, ...] = (x, y) if count == 2 else (x,) if count == 1 else (x, y, z)
    made = new(Map)
    put(made, "fn", fn)
    put(made, "args", args)
    put(made, "pattern", pattern)
    put(made, "shape", pattern.shape)
    put(made, "dtype", pattern.dtype)
    put(made, "exp_type", pattern.exp_type)
    return made


@native
def _dtype_word(x: object, shape: tuple[int, ...]) -> int:
    """An operand of that shape as a word to look for: its dtype, or the kind of a number."""
    if not isinstance(x, Expr):
        return word_of(x)
    return id(x.dtype) if is_same(x.shape, shape) else 0


@native
def _kinds(x: object) -> int:
    """The kinds of all nodes of an operand."""
    return x.exp_type if isinstance(x, Expr) else MAPPER


@native
def _first_applied(fn: ScalarFn, count: int, a: object, b: object, c: object) -> Map | None:
    """As `_applied`, of operands of one shape, some of whose patterns were not asked for."""
    one = a if isinstance(a, Expr) else b if isinstance(b, Expr) else c
    if not isinstance(one, Expr) or not one.shape:
        return None
    shape = one.shape
    first = _dtype_word(a, shape)
    second = _dtype_word(b, shape) if count > 1 else 0
    third = _dtype_word(c, shape) if count > 2 else 0
    if first == 0 or (count > 1 and second == 0) or (count > 2 and third == 0):
        return None
    entry = find(id(fn), first, second, third)
    if entry.address == 0:
        return None
    dtype = cast(DType, there(entry[0]))
    modular = entry[1] != 0
    x = operand(a, dtype, None, modular)
    y = operand(b, dtype, None, modular) if count > 1 else None
    z = operand(c, dtype, None, modular) if count > 2 else None
    kinds = _kinds(x) | MAPPER
    if count > 1:
        kinds = kinds | _kinds(y)
    if count > 2:
        kinds = kinds | _kinds(z)
    args: tuple[Any, ...] = (x, y) if count == 2 else (x,) if count == 1 else (x, y, z)
    made = new(Map)
    put(made, "fn", fn)
    put(made, "args", args)
    put(made, "pattern", None)
    put(made, "shape", shape)
    put(made, "dtype", dtype)
    put(made, "exp_type", kinds)
    return made


@native
def _of_one(self: Expr) -> object:
    made = _applied(FN, 1, self, None, None)
    return METHOD(self) if made is None else made


@native
def _of_two(fn: ScalarFn, method: Any, self: Expr, other: object, is_right: bool) -> object:
    made = _applied(fn, 2, other, self, None) if is_right else _applied(fn, 2, self, other, None)
    return method(self, other) if made is None else made


@native
def _left(self: Expr, other: object) -> object:
    return _of_two(FN, METHOD, self, other, False)


@native
def _right(self: Expr, other: object) -> object:
    return _of_two(FN, METHOD, self, other, True)


@native
def _call(self: ScalarFn, *args: object) -> object:
    count = len(args)
    if count > 0 and count < 4:
        second = args[1] if count > 1 else None
        third = args[2] if count > 2 else None
        made = _applied(self, count, args[0], second, third)
        if made is not None:
            return made
    return METHOD(self, *args)


_ORDERS: dict[str, Any] = {"own": _of_one, "left": _left, "right": _right}


def operator(name: str, function: str, order: str) -> Any:
    """The method of an operator: a function over self alone, or with its operand on a side."""
    words = {"FN": (SCALAR, function), "METHOD": (PYTHON, name)}
    return variant(_ORDERS[order], name, PYTHON[name].__doc__, **words)


def calling() -> Any:
    """The call of a scalar function."""
    return variant(_call, "__call__", PYTHON["__call__"].__doc__, METHOD=(PYTHON, "__call__"))


# -- functions of expressions -------------------------------------------------------------------


@native
def _plain(x: object) -> int:
    """What an argument, or an element of one, is looked for by: its value or its address."""
    return word_or(x, id(x)) if type(x) is int else id(x)


@native
def spread(so_far: int, more: int) -> int:
    """A word that is mixed of another and one more."""
    mixed = wrapped((so_far ^ more) * _B)
    return mixed ^ ((mixed >> 29) & _LOW35)


@native
def mixed_in(so_far: int, x: object) -> int:
    """The words of one argument more: of its pattern, its value or its elements."""
    if isinstance(x, Expr):
        return spread(so_far, id(x.pattern))
    if type(x) is not tuple:
        return spread(so_far, _plain(x))
    for k in range(len(x)):
        so_far = spread(so_far, _plain(x[k]))
    return spread(so_far, len(x))


@native
def _is_alike(x: object, y: object) -> bool:
    return x is y or (type(x) is int and type(y) is int and _plain(x) == _plain(y))


@native
def _is_as_noted(x: object, noted: object) -> bool:
    """Whether an argument is what was noted: a pattern, a value or the thing itself."""
    if isinstance(x, Expr):
        return x.pattern is not None and x.pattern is noted
    if type(x) is not tuple:
        return _is_alike(x, noted)
    if type(noted) is not tuple or len(x) != len(noted):
        return False
    return all(_is_alike(x[k], noted[k]) for k in range(len(x)))


@native
def known_call(function: object, given: tuple[Any, ...]) -> Words:
    """What was entered for a call of a function; at no address if nothing was."""
    count = len(given)
    if count >= MOST:
        return Words(0)
    mixed = 0
    for k in range(count):
        mixed = mixed_in(mixed, given[k])
    entry = find(id(function), mixed, count + 1, 0)
    if entry.address == 0:
        return entry
    noted = cast("tuple[object, ...]", there(entry[0]))
    return entry if all(_is_as_noted(given[j], noted[j]) for j in range(count)) else Words(0)


@native
def made_by(program: tuple[Any, ...], nodes: int, given: tuple[Any, ...]) -> object:
    """The last of the nodes that a program makes."""
    earlier: Parts | None = Parts(nodes) if nodes > 1 else None
    at = 0
    made: Expr | None = None
    for node in range(nodes):
        pattern = cast(Pattern, program[at + 1])
        made = cast(Expr, new(cast(type, program[at])))
        put(made, "pattern", pattern)
        put(made, "shape", pattern.shape)
        put(made, "dtype", pattern.dtype)
        put(made, "exp_type", pattern.exp_type)
        fields = cast(int, program[at + 2])
        at += 3
        for _ in range(fields):
            place = cast(int, program[at + 1])
            value = program[at + 2] if place < 0 or place >= len(given) else given[place]
            if earlier is not None and place >= len(given):
                put(made, cast(str, program[at]), earlier[place - len(given)])
            else:
                put(made, cast(str, program[at]), value)
            at += 3
        if earlier is not None:
            earlier[node] = made
    return made
