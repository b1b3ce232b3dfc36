"""Where Python keeps what its objects hold: found by looking, for native code that reads it.

An object with `__slots__` holds pointers to its attributes at fixed distances from its own address.
These are no part of Python's stable interface, so nothing is assumed of them: a mark is put into an
attribute, and looked for in the object's memory.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from types import MemberDescriptorType
from typing import Any, NamedTuple

from gnomon import config
from gnomon.ground.lock import reentrant

WORD = ctypes.sizeof(ctypes.c_size_t)
_MOST_CALLS = 1 << 20
_STATE = 48  # numbers at the beginning of a thread's state that are looked at


class Field(NamedTuple):
    """An attribute of the instances of `kind`, and of its subclasses, at so many bytes."""

    kind: type
    offset: int


def readable() -> bool:
    """Whether native code may work on objects: there is a GIL, and the settings allow it."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    usual = sys.implementation.name == "cpython" and (enabled is None or bool(enabled()))
    return usual and bool(config.get("native"))


def field(kind: type, name: str) -> Field | None:
    """As `slot`; None where native code may not work on objects."""
    return slot(kind, name) if readable() else None


@functools.cache
def slot(kind: type, name: str) -> Field | None:
    """Where instances of `kind` hold the attribute `name`; None where there is no slot for it.

    >>> class Point:
    ...     __slots__ = ("x", "y")
    >>> slot(Point, "y").offset - slot(Point, "x").offset
    8
    """
    found = getattr(kind, name, None)
    if not isinstance(found, MemberDescriptorType):
        return None
    owner: type = found.__objclass__
    mark = object()
    instance: Any = object.__new__(owner)
    found.__set__(instance, mark)
    return Field(owner, _found(instance, mark))


@functools.cache
def type_offset() -> int:
    """Where an object holds its type."""
    return _found(object(), object)


@functools.cache
def count_offset() -> int | None:
    """Where an object has the number of its references; None where native code is not to count.

    That is so where some objects are not counted (3.12 and later), or references are traced.
    """

    def change(thing: object) -> list[int]:
        before = words(thing)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
        after = words(thing)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(thing))
        return [new - old for old, new in zip(before, after, strict=True)]

    found = change(object())
    usual = sorted(found) == [0] * (len(found) - 1) + [1] and change(None) == found
    return found.index(1) * WORD if usual and not hasattr(sys, "gettotalrefcount") else None


@functools.cache
def lock_owner() -> int | None:
    """Where a reentrant lock keeps its owner, 0 while it is free; None where none is seen."""
    lock = reentrant()
    free = words(lock)
    with lock:
        held = words(lock)
    mine = threading.get_ident()
    places = [k for k, (a, b) in enumerate(zip(free, held, strict=True)) if not a and b == mine]
    return places[0] * WORD if places and words(lock) == free else None


@functools.cache
def frames_left() -> int | None:
    """Where a thread's state keeps how many frames more it may have; None where none is seen.

    That and the limit change when the limit does.
    """
    ints = _thread_state()
    limit = sys.getrecursionlimit()
    before = list(ints)
    sys.setrecursionlimit(limit + 1)
    after = list(ints)
    sys.setrecursionlimit(limit)
    grown = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if b == a + 1]
    places = [k for k in grown if 0 < after[k] <= limit]
    return places[0] * 4 if len(grown) == 2 and len(places) == 1 else None


@functools.cache
def calls_left() -> int | None:
    """Where it keeps how many calls in C more it may have, if these are counted apart.

    That is behind the frames and their limit; the number falls with such calls.
    """
    frames, ints = frames_left(), _thread_state()
    if frames is None:
        return None
    place = frames // 4 + 2
    before, seen = ints[place], list[int]()

    def look(_: int) -> int:
        seen.append(ints[place])
        return 0

    sorted([0], key=look)
    return 4 * place if 0 < seen[0] < before < _MOST_CALLS else None


def _thread_state() -> ctypes.Array[ctypes.c_int32]:
    """What the interpreter knows of this thread, in integers."""
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_Get", ctypes.pythonapi))()
    return (ctypes.c_int32 * _STATE).from_address(address)


@functools.cache
def slice_offsets() -> dict[str, int]:
    """Where a slice holds its start, stop and step."""
    marks = [object(), object(), object()]
    made = slice(*marks)
    return {n: _found(made, m) for n, m in zip(("start", "stop", "step"), marks, strict=True)}


def _found(instance: Any, mark: object) -> int:
    """Bytes from the address of an object to its pointer to `mark`."""
    return words(instance).index(id(mark)) * WORD


def words(instance: Any) -> list[int]:
    """What an object's memory holds now."""
    count = type(instance).__basicsize__ // WORD
    return list((ctypes.c_size_t * count).from_address(id(instance)))
