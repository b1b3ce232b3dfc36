"""The functions of `mx.nd` that the registry gives, made when they are first asked for."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from gnomon.base import ParamError, check_kind, complaint, shown
from gnomon.context import Context
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import LEARNT
from gnomon.ndarray.lazy.applied import Applied
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ops import registry
from gnomon.ops.infer import check_count
from gnomon.ops.namespace import Functions
from gnomon.ops.param import kinds
from gnomon.ops.signature import ANY_KIND, dress, refused_input, sort, spared_input

_TAIL = [inspect.Parameter(name, ANY_KIND, default=None) for name in ("out", "name")]


def is_array(value: object) -> bool:
    """Whether an argument is an input."""
    return isinstance(value, Array)


def function(registered: str, name: str, module: str) -> Callable[..., Any]:
    """The function that applies the operator `registered`, as `name` of `module`."""
    cls = registry.find(registered)
    many = bool(cls.variadic or cls.open_inputs)
    count = sys.maxsize if many else len(cls.input_names)
    names = frozenset(() if many else cls.input_names)
    # calls of what `Applied` has, by the number of arrays, and the parameters
    known: dict[Any, Callable[..., Any]] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        out = None
        if kwargs:
            out = kwargs.pop("out", None)
            if kwargs and not names.isdisjoint(kwargs):
                args = _in_place(cls, args, kwargs)
        arrays, given = args, ()
        key: Any = len(args)
        if key > count:
            arrays, given = args[:count], args[count:]
        elif key and args[key - 1] is None and not many:
            arrays = args = _without_end(args)
            key = len(args)
        if kwargs or given:
            given = [*given, *kwargs.values()]
            key = (key, *given, *kwargs, *kinds(given))
        try:
            applied = known.get(key)
        except TypeError:
            key = _with_hash(key)
            applied = None if key is None else known.get(key)
        if applied is not None:
            made = applied(arrays, out)
            if made is not None:
                return made
        op, inputs, out, ctx = _understood(cls, args, kwargs, out)
        alike = key is not None and not (cls.open_inputs or cls.interleaved)
        if alike and ctx is None and not any(map(is_array, given)):
            LEARNT.put(known, key, Applied(op).__call__)
        return invoke(op, inputs, out, ctx)

    return dress(call, cls, name, module, "NDArray", _TAIL)


def _with_hash(key: Any) -> Any:
    """The key of a call with lists among its parameters; None where something else has no hash.

    That these are no tuples, the key says already.

    >>> _with_hash((1, [1, [0.5]], "axes"))
    (1, (1, (0.5,)), 'axes')
    """
    made = _tuples(key)
    try:
        hash(made)
    except TypeError:
        return None
    return made


def _tuples(values: Any) -> Any:
    """Lists as tuples, also within those."""
    return tuple([_tuples(v) if v.__class__ in (list, tuple) else v for v in values])


def _own(value: Any) -> Any:
    """A copy of a list: the operator is kept, and the caller may change what was given."""
    if value.__class__ is not list:
        return value
    return [_own(v) if v.__class__ is list else v for v in value]


def _in_place(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Inputs given by name among those by place, where they follow them."""
    for name in cls.input_names[len(args) :]:
        if name not in kwargs:
            break
        args = (*args, kwargs.pop(name))
    return args


def _without_end(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs without those None at their end, which the parameters take away, as a bias."""
    while args and args[-1] is None:
        args = args[:-1]
    return args


def _understood(
    cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
) -> tuple[Any, list[Any], Any, Context | None]:
    """The operator that a call means, its inputs, where the outputs go, and the device."""
    kwargs.pop("name", None)
    ctx = kwargs.pop("ctx", None)
    args, out = _out_at_the_end(cls, args, out)
    inputs, named, params = sort(cls, args, kwargs, is_array, "an NDArray")
    op = cls.parse({k: _own(v) for k, v in params.items() if v is not None or _may_be_none(cls, k)})
    if not (cls.variadic or cls.open_inputs):
        _refuse_unwanted(op, inputs)
    if named:
        inputs = ordered(op, inputs, named)
    elif any(x is None for x in inputs):
        inputs = _without_holes(op, inputs)
    elif cls.interleaved:
        inputs = op.arranged(inputs)
    if not cls.variadic:
        _check_count(op, inputs)
    return op, inputs, out, context_of(ctx)


def _may_be_none(cls: Any, field: str) -> bool:
    """Whether None is a value of the field, and not another way to leave it out."""
    return field in cls.fields and cls.fields[field].kind.optional


def _out_at_the_end(cls: Any, args: tuple[Any, ...], out: Any) -> tuple[tuple[Any, ...], Any]:
    """Positional arguments without `out`, which MXNet's wrappers take after all parameters.

    Where arrays stand in place of parameters, too many are given, and none is `out`.
    """
    first, count = len(cls.input_names), len(cls.input_names) + len(cls.fields)
    if cls.variadic or cls.open_inputs or out is not None or len(args) != count + 1:
        return args, out
    surplus = first < count and is_array(args[first])
    return (args, out) if surplus else (args[:count], args[count])


def _without_holes(op: Any, inputs: list[Any]) -> list[Any]:
    """Inputs in the declared order without those that the parameters take away.

    Raises:
        ParamError: one that the operator has is missing.
    """
    pairs = list(zip(op.input_names, inputs, strict=False))
    for name, value in pairs:
        if value is None and name in op.inputs():
            raise ParamError(complaint(op.name, name, "an array", None))
    return [value for _, value in pairs if value is not None]


def _refuse_unwanted(op: Any, inputs: list[Any]) -> None:
    """ParamError where arrays are given that the parameters take away, as lengths without a flag.

    By place the inputs that there are may follow each other: only more than these are too many.
    """
    names = op.inputs()
    given = {n: x for n, x in zip(op.input_names, inputs, strict=False) if x is not None}
    unwanted = [name for name in given if name not in names]
    if unwanted and len(given) > len(names):
        expected = refused_input(op, unwanted[0])
        raise ParamError(complaint(op.name, unwanted[0], expected, shown(given[unwanted[0]])))


def _refuse_missing(op: Any, inputs: list[Any]) -> None:
    """An error if the operator has more inputs than are given; ParamError names the first."""
    names = op.inputs()
    if len(inputs) < len(names):
        raise _missing(op, names[len(inputs)])


def _missing(op: Any, name: str) -> ParamError:
    """The error about an input, or a state, that was not given."""
    expected = "an array, its state" if name in op.auxiliary() else "an array"
    if not op.open_inputs:
        expected += spared_input(op, name)
    return ParamError(complaint(_shown(op), name, expected, None))


def _check_count(op: Any, inputs: list[Any]) -> None:
    """ParamError unless each input has its array, and there are no others."""
    _refuse_missing(op, inputs)
    check_count(_shown(op), op.inputs(), len(inputs))


def _shown(op: Any) -> str:
    """What messages call an operator; one registered under `Custom` with its `op_type`."""
    return repr(op) if op.open_inputs else op.name


def ordered(op: Any, inputs: list[Any], named: dict[str, Any]) -> list[Any]:
    """Inputs by position and by name in the operator's order.

    Raises:
        ParamError: a name that the operator does not have, or one without an array.
    """
    names = op.inputs()
    unknown = [name for name in named if name not in names]
    if unknown:
        expected = ", ".join(names)
        raise ParamError(f"{op.name}: no input is called {unknown[0]!r}; there are {expected}")
    rest = iter(inputs)
    found = [named[name] if name in named else next(rest, None) for name in names]
    for name, value in zip(names, found, strict=True):
        if value is None:
            raise _missing(op, name)
    return [*found, *rest]


def context_of(ctx: Any) -> Context | None:
    """A context given as itself, as text ('cpu(0)', 'gpu') or not at all."""
    if ctx is None or isinstance(ctx, Context):
        return ctx
    check_kind("context", "ctx", ctx, str, "a Context, or text such as 'cpu(0)'")
    kind, _, number = ctx.partition("(")
    number = number.rstrip(")") or "0"
    if not number.isdecimal():
        raise ParamError(complaint("context", "ctx", "text such as 'cpu(0)'", repr(ctx)))
    return Context(kind, int(number))


_FUNCTIONS = Functions("gnomon.ndarray", function)
find, attributes, top = _FUNCTIONS.find, _FUNCTIONS.attributes, _FUNCTIONS.top
