"""What native code from disk relies on, and whether it is still so."""

from __future__ import annotations

import ast
import builtins
import ctypes
import functools
import marshal
import os
import sys
from _blake2 import blake2b  # hashlib would load OpenSSL as well (4 ms)
from collections.abc import Mapping
from typing import Any

from gnomon.native.method import for_good
from gnomon.native.words import Words
from gnomon.runtime.compiler.disk import DIGEST
from gnomon.runtime.statements import fields

ALWAYS = (None, True, False, AttributeError, IndexError, MemoryError, OverflowError, TypeError,
          ValueError, ZeroDivisionError)  # fmt: skip


class NoSource(Exception):
    """The source of a function is not there, or no more what runs."""


def name_of(thing: Any) -> str:
    """The name in the text of what is always known."""
    return str(getattr(thing, "__name__", thing))


def file_of(module: str) -> str:
    """Where the source of a module lies; "" for none."""
    return str(getattr(sys.modules.get(module), "__file__", None) or "")


@functools.cache
def content(module: str) -> str:
    """A digest of a module's source, wherever it lies; "" for none.

    Read once: what the process imported stays as it is.
    """
    try:
        descriptor = os.open(file_of(module), os.O_RDONLY)  # a third of the time of Path.read_bytes
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        return blake2b(stream.read(), digest_size=DIGEST).hexdigest()


def symbols_of(beside: bytes) -> dict[str, int]:
    """The addresses that code from disk needs; ValueError where it relies on what is not so."""
    relied = marshal.loads(beside)
    if relied["type"] not in (None, fields.type_offset()):
        raise ValueError("objects have another form")
    if any(content(module) != digest for module, digest in relied["sources"]):
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
        name, *inner = shown.split(".")
        space = vars(sys.modules[module])
        found = space[name] if name in space else getattr(builtins, name)
        return functools.reduce(getattr, inner, found)
    except (KeyError, AttributeError, OSError) as error:
        raise ValueError(f"{shown} is not found") from error
