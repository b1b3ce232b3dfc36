"""Native code that Python calls: functions in C as Python has them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_KEYWORDS, _NO_ARGUMENTS, _ARGUMENTS = 0x02, 0x04, 0x80
_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))


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


def bound(method: Method, first: object) -> Callable[..., Any]:
    """A native function with its first argument given, which it keeps; not the method itself."""
    made: Callable[..., Any] = _new_function(ctypes.addressof(method), first, None)
    return made


def method_of(kind: type, method: Method) -> Any:
    """A native function as a method of `kind`; not the record of it, which must live for good."""
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_void_p)
    return make(kind, ctypes.addressof(method))
