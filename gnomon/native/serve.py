"""What to call in place of native functions: native code where that is served, or themselves.

`served(f, g)` gives functions that take the same arguments, `methods` gives them as methods of a
class. Native code is served where Python's own lock is held, so that nothing changes meanwhile, and
where the setting `native` asks for it. What was compiled is kept on disk under the functions'
names, with what it relies on: sources, numbers, and where slots lie. Each is looked at before the
code is used again.
"""

from __future__ import annotations

import ast
import ctypes
import json
import sys
from collections.abc import Callable
from typing import Any

from gnomon.native.helpers import shared
from gnomon.native.kinds import NoSource
from gnomon.native.method import Method, bound, for_good, method_of
from gnomon.native.unit import ALWAYS, Unit, name_of, stamp
from gnomon.runtime import fields, jit, key, objects
from gnomon.runtime.once import once


@once
def served(*functions: Any) -> tuple[Callable[..., Any], ...]:
    """What to call in place of each function.

    Raises:
        KitError: no native code can be made of one of them.
    """
    code = _served(functions)
    if code is None:
        return functions
    made = []
    for function in functions:
        method = Method(function.__name__, code.address(function.__name__), function.__doc__ or "")
        made.append(bound(for_good(method), None))
    return tuple(made)


@once
def methods(cls: type, *functions: Any) -> tuple[Any, ...]:
    """What to set in a class as its methods, in place of each function of an object and arguments.

    Raises:
        KitError: as `served`.
    """
    code = _served(functions, as_methods=True)
    if code is None:
        return functions
    made = []
    for function in functions:
        bare = function.__code__.co_argcount == 1
        doc = f"{function.__name__}($self{'' if bare else ', ...'}, /)\n--\n\n{function.__doc__}"
        address = code.address(function.__name__)
        made.append(method_of(cls, for_good(Method(function.__name__, address, doc, none=bare))))
    return tuple(made)


def _served(functions: tuple[Any, ...], as_methods: bool = False) -> jit.Module | None:
    """The code of functions, if native code is served, and can be made."""
    try:
        return code_of(functions, as_methods) if fields.readable() else None
    except NoSource:
        return None


def code_of(functions: tuple[Any, ...], as_methods: bool = False) -> jit.Module:
    """The linked code of functions, never freed: from disk, or compiled now."""
    names = [f"{f.__module__}.{f.__qualname__}" for f in functions]
    name = objects.name_of("native", sys.version, str(as_methods), *names)
    kept = None if name is None else objects.load(name, _symbols)
    if kept is not None:
        return for_good(kept.module)
    unit = Unit(functions, as_methods)
    beside = json.dumps(unit.relied).encode()
    symbols = _addresses(list(unit.things.values()), unit.relied["called"])
    keep = name if _is_kept(unit, beside) else None
    return for_good(objects.make(keep, unit.text, beside, opt=jit.BRANCHES, symbols=symbols))


def _is_kept(unit: Unit, beside: bytes) -> bool:
    """Whether another process would find the same: nothing was just written, or is hidden."""
    try:
        found = _symbols(beside)
    except ValueError:
        return False
    same = found == _addresses(list(unit.things.values()), unit.relied["called"])
    return same and all(key.is_settled(file[0]) for file in unit.relied["files"])


def _symbols(beside: bytes) -> dict[str, int]:
    """The addresses that code from disk needs; ValueError where it relies on what is not so."""
    relied = json.loads(beside)
    if relied["type"] != fields.type_offset():
        raise ValueError("objects have another form")
    if any(stamp(file[0]) != file for file in relied["files"]):
        raise ValueError("a source has changed")
    if any(_found(module, shown) != number for module, shown, number in relied["numbers"]):
        raise ValueError("a number has changed")
    for module, cls, name, offset in relied["slots"]:
        found = fields.field(_found(module, cls), name)
        if found is None or found.offset != offset:
            raise ValueError("a slot lies elsewhere")
    return _addresses([_found(*place) for place in relied["things"]], relied["called"])


def _addresses(things: list[Any], called: list[str]) -> dict[str, int]:
    """Where objects lie, which stay for good, and functions in C."""
    for_good(things)
    symbols = shared() | {f"thing.{k}": id(thing) for k, thing in enumerate(things)}
    symbols |= {name_of(thing): id(thing) for thing in ALWAYS}
    for name in called:
        address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
        symbols[name] = address or 0
    return symbols


def _found(module: str, shown: str) -> Any:
    """What is called so in a module; a literal where that is none."""
    try:
        if not module:
            literal = ast.literal_eval(shown)
            return sys.intern(literal) if isinstance(literal, str) else literal
        return eval(shown, dict(vars(sys.modules[module])))
    except (KeyError, NameError, AttributeError, OSError) as error:
        raise ValueError(f"{shown} is not found") from error
