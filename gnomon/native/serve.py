"""What to call in place of native functions: native code where that is served, or themselves.

`served(f, g)` gives functions that take the same arguments, `methods` gives them as methods of a
class. Native code is served where Python's own lock is held, so that nothing changes meanwhile, and
where the setting `native` asks for it. What was compiled is kept on disk under the functions'
names, with what it relies on: sources, numbers, and where slots lie. Each is looked at before the
code is used again.
"""

from __future__ import annotations

import functools
import marshal
import sys
from collections.abc import Callable, Mapping
from inspect import CO_VARARGS
from typing import Any

from gnomon.base import GnomonError
from gnomon.ground.lock import load_module
from gnomon.native.dependencies import NoSource, addresses, file_of, symbols_of
from gnomon.native.method import Method, bound, for_good, method_of
from gnomon.runtime.compiler import jit, key, objects
from gnomon.runtime.compiler.disk import is_kept
from gnomon.runtime.ffi import function
from gnomon.runtime.once import once
from gnomon.runtime.statements import fields


@once
def served(*functions: Any) -> tuple[Callable[..., Any], ...]:
    """What to call in place of each function.

    Raises:
        KitError: no native code can be made of one of them.
    """
    return _bare(functions, _served(functions))


@once
def served_from_disk(*functions: Any) -> tuple[Callable[..., Any], ...] | None:
    """What `served` gives; None where it would have to compile."""
    if not fields.readable():
        return functions
    code = _kept(_name(functions), _helpers())
    return None if code is None else _bare(functions, code)


class Later:
    """A function that is native from the time on that this pays: call it by `way`.

    Its code comes from disk at the first call, or is compiled when `calls` of them are `worth` it;
    callers may add to these where one takes long without. Until then, and for good where no native
    code is served, the answer is `refusal`.
    """

    def __init__(self, function: Any, refusal: object, worth: int) -> None:
        self._function, self._refusal, self.worth = function, refusal, worth
        self._has_looked = False
        self.calls = 0
        self.way: Callable[..., Any] = self._refuse

    def _refuse(self, *given: Any) -> Any:
        """Answer a call for which there is no native code yet."""
        self.calls += 1
        ways: tuple[Callable[..., Any], ...] | None = None
        if not self._has_looked:
            self._has_looked = True
            ways = served_from_disk(self._function)
        if ways is None and self.calls >= self.worth:
            ways = served(self._function)
        if ways is None or ways[0] is self._function:
            return self._refusal
        self.way = ways[0]
        return self.way(*given)


class Due:
    """Tells whether native methods pay: where they are on disk, else from `worth` questions on."""

    def __init__(self, worth: int, *functions: Any) -> None:
        self._functions, self.worth, self._asked = functions, worth, 0

    def __call__(self) -> bool:
        """Whether that pays by now."""
        self._asked += 1
        return self._asked >= self.worth or (self._asked == 1 and self._found())

    def _found(self) -> bool:
        """Whether they are on disk, as they are from now on."""
        name = _name(self._functions, as_methods=True)
        found = name is not None and is_kept(name)
        self.worth = 0 if found else self.worth
        return found


@once
def compiled(*functions: Any) -> tuple[Callable[..., Any], ...]:
    """Functions as native code in every interpreter, if their source is there.

    For those that Python cannot stand for, and that read no slots.

    Raises:
        KitError: as `served`.
    """
    return _bare(functions, _served(functions, everywhere=True))


def _bare(functions: tuple[Any, ...], code: jit.Module | None) -> tuple[Callable[..., Any], ...]:
    """What to call in place of each function: itself where there is no code."""
    if code is None:
        return functions
    return tuple([bound(_method(code, function, 0), None) for function in functions])


@once
def methods(*pairs: tuple[type, Any]) -> tuple[Any, ...]:
    """What to set in classes as methods, in place of each function of an object and arguments.

    Raises:
        KitError: as `served`.
    """
    functions = tuple([function for _, function in pairs])
    code = _served(functions, as_methods=True)
    if code is None:
        return functions
    return tuple(method_of(cls, _method(code, function, 1)) for cls, function in pairs)


@once
def binding(function: Any) -> Callable[[Any], Callable[..., Any]]:
    """What gives the function with its first argument set.

    Raises:
        KitError: as `served`.
    """
    code = _served((function,), as_methods=True)
    if code is None:
        return functools.partial(functools.partial, function)
    return functools.partial(bound, _method(code, function, 1))


def _method(code: jit.Module, function: Any, own: int) -> Method:
    """The record of a function, whose first argument is an object's own where `own` is 1."""
    inner, name = function.__code__, function.__name__
    left_out = function.__defaults__ or ()
    names = ["$self"] * own + [*inner.co_varnames[own : inner.co_argcount]]
    plain = len(names) - len(left_out)
    names[plain:] = [f"{n}={x!r}" for n, x in zip(names[plain:], left_out, strict=True)]
    names += ["/"] if names and not left_out else []
    if inner.co_flags & CO_VARARGS:
        names.append(f"*{inner.co_varnames[inner.co_argcount]}")
    doc = f"{name}({', '.join(names)})\n--\n\n{function.__doc__ or ''}"
    none = names == ["$self", "/"]
    return for_good(Method(name, code.address(name), doc, none, words=bool(left_out)))


def _served(
    functions: tuple[Any, ...], as_methods: bool = False, everywhere: bool = False
) -> jit.Module | None:
    """The code of functions, if native code is served, or asked for everywhere, and can be made."""
    try:
        return code_of(functions, as_methods) if everywhere or fields.readable() else None
    except NoSource:
        return None


def raw_code(*functions: Any, symbols: Mapping[str, int] | None = None) -> jit.Module:
    """The linked code of functions that need no Python, never freed: native code may call them.

    They have their own names there. `symbols` gives addresses of functions in C that the process
    does not have.

    Raises:
        KitError: no such code can be made of one of them.
        GnomonError: the source of one is not there, or was changed since it was imported.
    """
    try:
        return code_of(functions, raw=True, symbols=symbols)
    except NoSource:
        names = ", ".join(f.__qualname__ for f in functions)
        raise GnomonError(
            f"{names}: compiled from source, which is not there or was changed since it was "
            "imported; gnomon needs its .py files, and to be imported anew where they change"
        ) from None


@once
def raw_function(code: Any) -> Any:
    """The callable of a function of one block that needs no Python: it releases the GIL."""
    return function(raw_code(code).address(code.__name__))


def code_of(
    functions: tuple[Any, ...],
    as_methods: bool = False,
    *,
    raw: bool = False,
    symbols: Mapping[str, int] | None = None,
) -> jit.Module:
    """The linked code of functions, never freed: from disk, or compiled now."""
    name = _name(functions, as_methods, raw)
    given = dict(symbols or {}) if raw else _helpers()
    kept = _kept(name, given)
    if kept is not None:
        return kept
    units = load_module("gnomon.native.unit")
    unit = units.RawUnit(functions) if raw else units.Unit(functions, as_methods)
    beside = marshal.dumps(unit.relied)
    found = addresses(list(unit.things.values()), unit.relied) | given
    keep = name if _is_kept(unit, beside) else None
    return for_good(objects.make(keep, unit.text, beside, symbols=found))


def _kept(name: str | None, given: dict[str, int]) -> jit.Module | None:
    """The linked code of functions, never freed, if it is on disk under their name."""
    kept = name and objects.load(name, lambda beside: symbols_of(beside) | given)
    return for_good(kept.module) if kept else None


def _name(functions: tuple[Any, ...], as_methods: bool = False, raw: bool = False) -> str | None:
    """The name of functions' code on disk; None where nothing is kept."""
    names = [f"{f.__module__}.{f.__qualname__}" for f in functions]
    return objects.name_of("native", sys.version, str(as_methods), str(raw), *names)


@once
def _helpers() -> dict[str, int]:
    """The addresses of what native functions share."""
    functions = load_module("gnomon.native.helpers").FUNCTIONS
    code = code_of(functions, raw=True)
    return {f"kit.{f.__name__}": code.address(f.__name__) for f in functions}


def _is_kept(unit: Any, beside: bytes) -> bool:
    """Whether another process would find the same: nothing was just written, or is hidden."""
    try:
        found = symbols_of(beside)
    except ValueError:
        return False
    same = found == addresses(list(unit.things.values()), unit.relied)
    return same and all(key.is_settled(file_of(module)) for module, _ in unit.relied["sources"])
