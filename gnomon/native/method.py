"""Native code that Python calls: functions in C as Python has them, and code from text."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gnomon.runtime.compiler import jit, objects

T = TypeVar("T")
_KEYWORDS, _NO_ARGUMENTS, _ARGUMENTS = 0x02, 0x04, 0x80


class Method(ctypes.Structure):
    """Python's own record of a function in C, which takes its arguments as an array.

    With `words` it takes the names of those behind as well; with `none` it takes no arguments.
    """

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )

    def __init__(
        self, name: str, function: int, doc: str = "", none: bool = False, words: bool = False
    ) -> None:
        flags = _NO_ARGUMENTS if none else _ARGUMENTS | _KEYWORDS * words
        super().__init__(name.encode(), function, flags, doc.encode() or None)


def for_good(thing: T) -> T:
    """`thing`, which is never freed: objects that outlive every module at exit point into it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def native_code(text: str, numbers: Mapping[str, int], known: Mapping[str, int]) -> jit.Module:
    """Code that works with Python's objects.

    The functions of Python's that the text declares are called, `numbers` stand where it has
    their name in angle brackets, and `known` are addresses, of objects that must live for good.
    """
    symbols = {f"{x}": id(x) for x in (True, False, None)} | dict(known)
    for name in _DECLARED.findall(text):
        symbols[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    written = _NUMBER.sub(lambda found: str(numbers[found[1]]), text)
    return objects.compiled(written, symbols=symbols)


_DECLARED = re.compile(r"^declare .*@(Py\w+)\(", re.MULTILINE)
_NUMBER = re.compile(r"<([\w.]+)>")


def bound(method: Method, first: object) -> Callable[..., Any]:
    """A native function with its first argument given, which it keeps; not the method itself."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p),
    )
    made: Callable[..., Any] = make(ctypes.addressof(method), first, None)
    return made


def method_of(kind: type, method: Method) -> Any:
    """A native function as a method of `kind`; not the record of it, which must live for good."""
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_void_p)
    return make(kind, ctypes.addressof(method))
