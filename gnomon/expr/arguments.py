"""Arguments of public functions: what is wrong about them is said in words, at no cost when right.

A function that is `explained` runs as it is. Where it fails with an error of Python's own
(an attribute that a NumPy array lacks, a comparison of a string), its arguments are held against
its annotations, and the first that does not fit is named. Where something that it calls complains
of an argument of its own, the complaint tells in which call of which function that was.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from gnomon.base import GnomonError, complaint, nearest
from gnomon.expr import node
from gnomon.expr.node import Expr
from gnomon.expr.pattern import EPOCH

P = ParamSpec("P")
T = TypeVar("T")
PYTHONS = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError)
WORD = 1 << 63  # whole numbers lie below
NAMED = "".join(("names", ":"))  # known by its identity: what follows it was given by name
_WORDS: dict[Any, str] = {
    Expr: "an expression (Tensor wraps arrays)",
    int: "a whole number",
    float: "a number",
    str: "a string",
    type(None): "None",
}


class Memory:
    """What functions made of their arguments before: nothing, until `call_cache.py` knows.

    Where some were given by name, a tuple of `NAMED` and the names stands before their values.
    """

    def recall(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What `function` made of arguments like these; None if unknown."""
        return None

    def note(
        self, function: Callable[..., Any], args: tuple[Any, ...], made: Any, epoch: int
    ) -> None:
        """`function` made this of these arguments, having been called in an epoch of patterns."""


MEMORY = Memory()


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, with errors that name the argument which is not what its annotation says.

    >>> @explained
    ... def rows(src: Expr) -> int:
    ...     return src.shape[0]
    >>> rows([1, 2])
    Traceback (most recent call last):
    TypeError: rows: argument 'src': expected an expression (Tensor wraps arrays), got a list
    """

    memory = MEMORY

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given: tuple[Any, ...] = (*args, (NAMED, *kwargs), *kwargs.values()) if kwargs else args
        known = memory.recall(function, given)
        if known is not None:
            return known  # type: ignore[no-any-return]
        epoch = EPOCH.value
        try:
            made = function(*args, **kwargs)
            memory.note(function, given, made, epoch)
            return made
        except (*PYTHONS, GnomonError) as error:
            message = None if isinstance(error, GnomonError) else wrong(function, args, kwargs)
            if message is None:
                located(error, function, args, kwargs)
                raise
            raise TypeError(message) from None

    return call


def located(
    error: Exception,
    function: Callable[..., Any],
    args: Iterable[Any],
    kwargs: dict[str, Any],
) -> None:
    """Let the complaint of another function tell that it came up in this call.

    Of calls within calls the outermost is told: the one that is the user's own.
    """
    name = function.__name__
    said: str = error.__dict__.get("said") or str(error)
    complains = isinstance(error, GnomonError) or ": argument '" in said
    if name.startswith("_") or said.startswith(f"{name}:") or not complains:
        return
    values = [*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())]
    own = next(iter(inspect.signature(function).parameters), "") == "self"
    error.__dict__["said"] = said
    error.args = (f"{said}, in {name}({', '.join(values[own:])})",)


def wrong(function: Callable[..., Any], args: Iterable[Any], kwargs: dict[str, Any]) -> str | None:
    """The complaint about the first argument that does not fit; None where all do."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        names = [name for name in signature.parameters if name != "self"]
        unknown = next((k for k in kwargs if k not in names), None)
        hint = "" if unknown is None else nearest(unknown, names)
        return f"{function.__name__}({', '.join(names)}): {error}{hint}"
    for name, value in given.items():
        parameter = signature.parameters[name]
        hint = meaning(function, parameter.annotation)
        for one in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            if name != "self" and not fits(one, hint):
                return complaint(function.__name__, name, spoken(hint), shown(one))
    return None


def meaning(function: Callable[..., Any], annotation: Any) -> Any:
    """What an annotation stands for; nothing in particular where that is not known here."""
    try:
        found = eval(annotation, {**vars(typing), **function.__globals__})
        return eval(found, vars(node)) if isinstance(found, str) else found  # a quoted alias
    except (NameError, TypeError, SyntaxError):
        return inspect.Parameter.empty


def fits(value: Any, hint: Any) -> bool:
    """Whether `value` is what an annotation says, as far as that can be told."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0])
    if origin in (Union, types.UnionType):
        return any(fits(value, h) for h in inner)
    if origin is Literal:
        return isinstance(value, str | int) and value in inner
    if origin in (Sequence, Iterable, list, tuple):
        return all_fit(value, [h for h in inner if h is not ...])
    if hint is int:
        return whole(value)
    if hint is float:
        return isinstance(value, int | float | np.number)
    if isinstance(hint, TypeVar):
        return fits(value, hint.__bound__)
    if hint is Any or hint is inspect.Parameter.empty or not isinstance(hint, type):
        return True
    return isinstance(value, hint)


def all_fit(values: Any, hints: Sequence[Any]) -> bool:
    """Whether these are several, each one of what the hints say."""
    if isinstance(values, str | bytes | Expr):
        return False
    try:
        return all(any(fits(v, h) for h in hints) for v in values)
    except TypeError:
        return False


def whole(value: Any) -> bool:
    """Whether `value` is a whole number of 64 bits."""
    try:
        return -WORD <= operator.index(value) < WORD
    except TypeError:
        return False


def spoken(hint: Any) -> str:
    """What an annotation asks for, in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return spoken(inner[0])
    if origin in (Union, types.UnionType):
        others = [h for h in inner if float not in inner or h not in (int, bool)]
        return " or ".join(dict.fromkeys(spoken(h) for h in others))
    if origin in (Sequence, Iterable, list, tuple):
        return f"a sequence, each {spoken(inner[0])}"
    return _WORDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"


def shown(value: Any) -> str:
    """What came, in words that stay short."""
    if isinstance(value, Expr) or type(value) in (int, float, str, tuple, list):
        text = repr(value)
        return text if len(text) <= 60 and not isinstance(value, list) else f"a {kind(value)}"
    return f"a {kind(value)}"


def kind(value: Any) -> str:
    """The name of the type of a value."""
    return type(value).__name__
