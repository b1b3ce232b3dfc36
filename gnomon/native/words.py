"""What native functions use beside Python's own: words of memory, addresses, new objects.

Each has a meaning in plain Python, here, and one in native code, in `calls.py`. The first is slow,
and defines what is right.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from gnomon.record import Frozen
from gnomon.runtime.native import Block

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])
F = TypeVar("F", bound=Callable[..., Any])
#: an integer as the object that it is: passed on without being read; `int` is 64 bits of a register
Boxed = Annotated[int, "boxed"]

MOST = 1024  # words that `scratch` gives
_MASK, _SIGN = (1 << 64) - 1, 1 << 63


def native(function: F) -> F:
    """A function that native code may be made of, and that Python runs as it stands."""
    function.native = True  # type: ignore[attr-defined]
    return function


def whole(cls: C) -> C:
    """A class of which all slots are set, to what they are said to be, before anybody sees one.

    Native code then does not look whether they are.

    Raises:
        TypeError: its instances do not refuse assignments, so that it cannot promise that.
    """
    if not issubclass(cls, Frozen):
        raise TypeError(f"{cls.__name__}: a whole class is a Frozen one")
    cls.whole = cls  # type: ignore[attr-defined]  # not its subclasses
    return cls


def wrapped(number: int) -> int:
    """The lowest 64 bits of an integer, with a sign.

    >>> wrapped(2**64 - 1), wrapped(5)
    (-1, 5)
    """
    return ((number & _MASK) ^ _SIGN) - _SIGN


class Words:
    """Words of 64 bits in native memory, from an address on; whoever uses them owns the memory.

    >>> w = scratch(3)
    >>> w[1] = 2**64 - 5
    >>> (w + 1)[0], len(w)
    (-5, 3)
    """

    __slots__ = ("_block", "address")

    def __init__(self, address: int, block: Block | None = None) -> None:
        self.address = address
        self._block = block

    def __getitem__(self, index: int) -> int:
        return ctypes.c_int64.from_address(self.address + 8 * index).value

    def __setitem__(self, index: int, number: int) -> None:
        ctypes.c_int64.from_address(self.address + 8 * index).value = wrapped(number)

    def __add__(self, count: int) -> Words:
        return Words(self.address + 8 * count, self._block)

    def __len__(self) -> int:
        """How many `scratch` gave; not for native code."""
        return 0 if self._block is None else len(self._block.words)


def scratch(count: int) -> Words:
    """New words, gone when the function ends that asked for them; it does so in no loop.

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


def double_bits(number: float) -> int:
    """The bits of a number.

    >>> hex(double_bits(1.0))
    '0x3ff0000000000000'
    """
    bits: int = struct.unpack("q", struct.pack("d", number))[0]
    return bits


def single_bits(number: float) -> int:
    """The bits of a number as a single float, to which it is rounded; it fits in one.

    >>> hex(single_bits(1.0))
    '0x3f800000'
    """
    bits: int = struct.unpack("i", struct.pack("f", number))[0]
    return bits


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
