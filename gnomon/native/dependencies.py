"""What native code from disk relies on, and whether it is still so."""

from __future__ import annotations

import ast
import ctypes
import marshal
import os
import sys
from collections.abc import Mapping
from typing import Any

from gnomon.native.method import for_good
from gnomon.native.words import Words
from gnomon.runtime.statements import fields

ALWAYS = (None, True, False, AttributeError, IndexError, MemoryError, OverflowError, TypeError,
          ValueError, ZeroDivisionError)  # fmt: skip


class NoSource(Exception):
    """The source of a function is not there, or no more what runs."""


def name_of(thing: Any) -> str:
    """The name in the text of what is always known."""
    return str(getattr(thing, "__name__", thing))


def stamp(file: str) -> list[Any]:
    """What tells one content of a file from another."""
    try:
        about = os.stat(file)  # noqa: PTH116  half the time of Path.stat
    except OSError:
        return [file]
    return [file, about.st_size, about.st_mtime_ns, about.st_ino]


def symbols_of(beside: bytes) -> dict[str, int]:
    """The addresses that code from disk needs; ValueError where it relies on what is not so."""
    relied = marshal.loads(beside)
    if relied["type"] not in (None, fields.type_offset()):
        raise ValueError("objects have another form")
    if any(stamp(file[0]) != file for file in relied["files"]):
        raise ValueError("a source has changed")
    if any(_found(module, shown) != number for module, shown, number in relied["numbers"]):
        raise ValueError("a number has changed")
    for module, cls, name, offset in relied["slots"]:
        found = fields.slot(_found(module, cls), name)
        if found is None or found.offset != offset:
            raise ValueError("a slot lies elsewhere")
    return addresses([_found(*place) for place in relied["things"]], relied)


def addresses(things: list[Any], relied: Mapping[str, Any]) -> dict[str, int]:
    """Where objects lie, which stay for good, and functions in C."""
    for_good(things)
    symbols = {f"thing.{k}": _place(thing) for k, thing in enumerate(things)}
    symbols |= {name_of(thing): id(thing) for thing in ALWAYS}
    for name in relied["called"]:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        symbols[name] = address or 0
    return symbols


def _place(thing: Any) -> int:
    """Where a thing of the text lies: an object, or words themselves."""
    return thing.address if isinstance(thing, Words) else id(thing)


def _found(module: str, shown: str) -> Any:
    """What is called so in a module; a literal where that is none."""
    try:
        if not module:
            literal = ast.literal_eval(shown)
            return sys.intern(literal) if isinstance(literal, str) else literal
        return eval(shown, dict(vars(sys.modules[module])))
    except (KeyError, NameError, AttributeError, OSError) as error:
        raise ValueError(f"{shown} is not found") from error
