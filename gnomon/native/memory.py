"""What native functions use that need no Python: structs, atomic words, functions in C.

Each has a meaning in plain Python, here, and one in native code, in `raw.py`. The first is slow,
and has one lock for all that is atomic: threads of native code do not heed it.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import re
import typing
import zlib
from types import FunctionType
from typing import Annotated, Any, TypeVar

from gnomon.ground.lock import reentrant
from gnomon.native.words import Ints, Reals, Words, not_annotated
from gnomon.runtime.ffi import Block

R = TypeVar("R", bound=Words)
#: an integer of 32 bits, with a sign, at the beginning of a struct's word
Int32 = Annotated[int, "int32"]

LINE = 128  # bytes that processors pass between cores at once, at most
_LOOKS: dict[Any, type[Words | Reals]] = {int: Words, Int32: Ints, float: Reals}
kinds = functools.cache(functools.partial(typing.get_type_hints, include_extras=True))
_atomic = reentrant()


class Field:
    """A word of a struct: what stands there, for a struct; its number, for the class."""

    __slots__ = ("index", "name")

    def __init__(self, index: int, name: str) -> None:
        self.index, self.name = index, name

    def __get__(self, struct: Struct | None, cls: type) -> Any:
        if struct is None:
            return self.index
        return self.place(struct)[0]

    def __set__(self, struct: Struct, value: Any) -> None:
        self.place(struct)[0] = value

    def place(self, struct: Struct) -> Any:
        """Where it lies."""
        cls: Any = type(struct)
        return _LOOKS[kinds(cls)[self.name]](struct.address + 8 * self.index)


class Struct(Words):
    """Words with names, which the annotations of a class say, with those of its base before.

    A word is an `int`, which may be an address, an `Int32` or a `float`. The name of a word is its
    number in the class.

    >>> from gnomon.native.words import scratch
    >>> class Shape(Struct):
    ...     height: int
    ...     width: int
    >>> made = Shape(scratch(2).address)
    >>> made.width = 7
    >>> made[Shape.width], (made + Shape.width)[0], Shape.fields
    (7, 7, ('height', 'width'))
    """

    __slots__ = ()

    fields: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        for name in inspect.get_annotations(cls):
            setattr(cls, name, Field(len(cls.fields), name))
            cls.fields = (*cls.fields, name)


def shared(kind: type[R], count: int = 1) -> R:
    """Words on cache lines of their own, zero at first and never freed, for all threads.

    >>> words = shared(Words, 3)
    >>> words[2], words.address % LINE
    (0, 0)
    """
    block = Block(count + LINE // 8 * 2)
    address = -(-block.address // LINE) * LINE
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(block))  # threads outlive the module at exit
    return kind(address, block)


def load(place: Words, order: str = "seq_cst") -> int:
    """A word that other threads may set; orders are LLVM's names for them, always literals."""
    with _atomic:
        return place[0]


def store(place: Words, number: int, order: str = "seq_cst") -> None:
    """Set a word that other threads may look at."""
    with _atomic:
        place[0] = number


def swap(place: Words, old: int, new: int, order: str = "seq_cst") -> bool:
    """Set a word to `new` if it is `old`, at once for all threads; whether it was.

    >>> word = shared(Ints)
    >>> swap(word, 0, 1), swap(word, 0, 1)
    (True, False)
    """
    with _atomic:
        same = place[0] == old
        if same:
            place[0] = new
        return same


def add(place: Words, number: int, order: str = "seq_cst") -> int:
    """Add to a word, at once for all threads; what it was."""
    with _atomic:
        before = place[0]
        place[0] = before + number
        return before


def pause() -> None:
    """Tell the processor that a loop waits for another thread."""


def divided(number: int, by: int) -> int:
    """`number // by`, where neither is below 0 and `by` is not 0."""
    return number // by


@functools.cache
def address_of(function: FunctionType) -> int:
    """The address by which native code calls a native function that needs no Python."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    said = kinds(function)
    if missing := [name for name in names if name not in said]:
        raise not_annotated(function, missing[0])
    found = [said[name] for name in names]  # whose calls make words of addresses

    def entered(*given: int) -> int:
        return int(function(*(kind(x) for kind, x in zip(found, given, strict=True))) or 0)

    made = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(names))(entered)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return ctypes.cast(made, ctypes.c_void_p).value or 0


_IN_C = {
    "int": ctypes.c_int32, "long": ctypes.c_int64, "void *": ctypes.c_void_p, "void": None,
    "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip


class CFunction:
    """A function in C of the process, or one whose address is given when native code is made.

    It gives an integer, which may be an address, or nothing.

    >>> absolute = CFunction("int abs(int)")
    >>> absolute(-7)
    7
    """

    def __init__(self, declared: str) -> None:
        found = re.fullmatch(r"(\w+(?: \*)?) ?\b(\w+)\((.*)\)", declared)
        assert found is not None, declared
        self.declared, self.result, self.name = declared, found[1], found[2]
        self.kinds = found[3].split(", ") if found[3] else []
        self.mark = zlib.crc32(declared.encode())  # tells one declaration from another

    def __call__(self, *given: Any) -> int:
        function: Any = ctypes.PyDLL(None)[self.name]
        function.restype = _IN_C[self.result]
        types: list[Any] = [_IN_C[k] for k in self.kinds if k != "..."]
        types += [ctypes.c_int64] * (len(given) - len(types))
        plain = [getattr(x, "address", x) for x in given]
        answer: int | None = function(*(kind(x) for kind, x in zip(types, plain, strict=True)))
        return answer or 0
