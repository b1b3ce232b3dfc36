"""What native functions use beside Python's own: words of memory, addresses, new objects.

Each has a meaning in plain Python, here, and one in native code, in `calls.py`. The first is slow,
and defines what is right.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from types import FunctionType
from typing import Annotated, Any, ClassVar, Generic, Protocol, Self, TypeVar

from gnomon.base import GnomonError
from gnomon.ground.record import whole as whole  # noqa: PLC0414  a word of native functions
from gnomon.runtime.ffi import Block

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
N = TypeVar("N", int, float)
#: an integer as the object that it is: passed on without being read; `int` is 64 bits of a register
Boxed = Annotated[int, "boxed"]

#: the `*rest` of a function, as those take it that are given it
Given = Annotated[tuple[Any, ...], "given"]

MOST = 1 << 13  # words that `scratch` gives
_MASK, _SIGN = (1 << 64) - 1, 1 << 63
_WORD = struct.Struct("<I")


def native(function: F) -> F:
    """A function that native code may be made of, and that Python runs as it stands."""
    function.native = True  # type: ignore[attr-defined]
    return function


def variant(function: Any, name: str, doc: str | None, **meant: Any) -> Any:
    """A native function under another name, some of whose names mean what is given.

    That is a function of its module or a text, or a table of its module with a key: the item.
    """
    space = function.__globals__
    words, shown = {**space}, dict[str, str]()
    for word, thing in meant.items():
        if isinstance(thing, tuple):
            table, key = thing
            words[word] = table[key]
            named = next(n for n, known in space.items() if known is table and n not in meant)
            shown[word] = f"{named}[{key!r}]"
        else:
            words[word] = thing
            shown[word] = repr(thing) if isinstance(thing, str) else thing.__name__
    made: Any = FunctionType(function.__code__, {**words, "__meant__": shown}, name)
    made.__annotations__, made.__doc__ = function.__annotations__, doc
    made.__qualname__ = name
    return native(made)


def wrapped(number: int) -> int:
    """The lowest 64 bits of an integer, with a sign.

    >>> wrapped(2**64 - 1), wrapped(5)
    (-1, 5)
    """
    return ((number & _MASK) ^ _SIGN) - _SIGN


class KitError(GnomonError):
    """A function that no native code can be made of: file, line, and what is not supported."""

    def __init__(self, said: str, placed: bool = False) -> None:
        super().__init__(said)
        self.placed = placed  # it says file and line


def not_annotated(function: Any, name: str, line: int | None = None) -> KitError:
    """The error of a parameter without annotation; by default where its function begins."""
    code = function.__code__
    place = f"{code.co_filename}:{line or code.co_firstlineno}: {function.__name__}()"
    said = f"{place}: parameter {name!r} has no annotation, as `{name}: object`"
    return KitError(said, placed=True)


class Memory(Generic[N]):
    """Numbers in native memory, from an address on; their user owns the memory."""

    __slots__ = ("_block", "address")

    _number: ClassVar[Any]  # what ctypes calls one of them
    _size: ClassVar[int]  # how many bytes it has

    def __init__(self, address: int, block: Block | None = None) -> None:
        self.address = address
        self._block = block

    def __getitem__(self, index: int) -> N:
        found: N = self._number.from_address(self.address + self._size * index).value
        return found

    def __setitem__(self, index: int, number: N) -> None:
        self._number.from_address(self.address + self._size * index).value = number

    def __add__(self, count: int) -> Self:
        return type(self)(self.address + self._size * count, self._block)

    def __len__(self) -> int:
        """How many words `scratch` gave; not for native code."""
        return 0 if self._block is None else len(self._block.words)


class Numbers(Protocol):
    """Integers by place: `Words` in native code, in plain Python a list as well."""

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, number: int, /) -> None: ...


class Words(Memory[int]):
    """Words of 64 bits with a sign.

    >>> w = scratch(3)
    >>> w[1] = 2**64 - 5
    >>> (w + 1)[0], len(w)
    (-5, 3)
    """

    __slots__ = ()

    _number: ClassVar[Any] = ctypes.c_int64
    _size = 8


class Ints(Words):
    """Integers of 32 bits with a sign.

    >>> w = scratch(1)
    >>> w[0] = 5 << 32 | 7
    >>> sorted(Ints(w.address)[k] for k in range(2))
    [5, 7]
    """

    __slots__ = ()

    _number: ClassVar[Any] = ctypes.c_int32
    _size = 4


class Reals(Memory[float]):
    """Floats of 64 bits.

    >>> w = scratch(2)
    >>> x = Reals(w.address)
    >>> x[1] = 0.5
    >>> (x + 1)[0]
    0.5
    """

    __slots__ = ()

    _number: ClassVar[Any] = ctypes.c_double
    _size = 8


class Singles(Reals):
    """Floats of 32 bits.

    >>> w = scratch(1)
    >>> x = Singles(w.address)
    >>> x[1] = 0.1
    >>> (x + 1)[0] == single(0.1)
    True
    """

    __slots__ = ()

    _number: ClassVar[Any] = ctypes.c_float
    _size = 4


def scratch(count: int) -> Words:
    """New words of any contents, gone when the function ends; it asks for them in no loop.

    Raises:
        ValueError: there are more than `MOST`, or less than none.
    """
    if not 0 <= count <= MOST:
        raise ValueError("scratch: too many words")
    block = Block(count or 1)
    return Words(block.address, block)


def call(address: int, *arguments: int) -> int:
    """The answer of the native function there, all of whose arguments and answer are words."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    answer: int = kind(address)(*arguments)
    return answer


def call_aside(address: int, block: int) -> None:
    """Call `void f(void *)` there while other threads of Python's may run."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(block)


def there(address: int) -> Any:
    """The object at an address, as `id` gives it: one that lives.

    >>> there(id(call)) is call
    True
    """
    return ctypes.cast(address, ctypes.py_object).value


def keep_alive(thing: object) -> None:
    """A variable keeps what it holds until here: native code lets go of it after its last use."""


def word(number: int) -> int:
    """An integer of 64 bits with a sign.

    Raises:
        OverflowError: it has more.
    """
    if wrapped(number) != number:
        raise OverflowError("an integer has more than 64 bits")
    return number


@native
def word_or(number: Boxed, other: int) -> int:
    """An integer of 64 bits with a sign, or another in place of one that has more."""
    try:
        return word(number)
    except OverflowError:
        return other


def word_at(data: bytes, at: int) -> int:
    r"""The word of 32 bits without a sign that bytes hold at a place.

    >>> word_at(b"-\x07\x01\x00\x00", 1)
    263

    Raises:
        IndexError: they do not hold one there.
    """
    if not 0 <= at <= len(data) - 4:
        raise IndexError("word_at: no word there")
    found: int = _WORD.unpack_from(data, at)[0]
    return found


def double_bits(number: float) -> int:
    """The bits of a number.

    >>> hex(double_bits(1.0))
    '0x3ff0000000000000'
    """
    bits: int = struct.unpack("q", struct.pack("d", number))[0]
    return bits


def single_bits(number: float) -> int:
    """The bits of a number as a single float, to which it is rounded.

    >>> hex(single_bits(1.0))
    '0x3f800000'
    """
    return ctypes.c_int32.from_buffer(ctypes.c_float(number)).value


def single(number: float) -> float:
    """A number rounded to a float of 32 bits.

    >>> single(0.1), single(1e300)
    (0.10000000149011612, inf)
    """
    return ctypes.c_float(number).value


def popped(items: list[T]) -> T | None:
    """The last of a list, taken out; None where that is empty, by then.

    >>> popped([1, 2]), popped([])
    (2, None)
    """
    try:
        return items.pop()
    except IndexError:
        return None


class Parts(list[Any]):
    """So many places, None at first, that become a tuple by `tuple(parts)`, once all are set."""

    def __init__(self, count: int) -> None:
        super().__init__([None] * count)


new = object.__new__  #: an object of a class, with no slot set
