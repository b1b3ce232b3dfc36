"""What a function made from an operator looks like: its signature, documentation and namespace.

The `nd` and the `sym` functions are both made with this file: a closure takes any arguments,
`sort` tells which of them are inputs and which parameters, and `__signature__` and `__doc__`
say what the declaration says. Nothing is generated as text.

    def function(*args, **kwargs):
        inputs, named, params = sort(cls, args, kwargs, is_array, "an NDArray")
        ...
    dress(function, cls, "NDArray", tail)
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnomon.base import GnomonError, complaint, shown
from gnomon.ops.op import Op
from gnomon.ops.param import Param

ANY_KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD
NAMESPACES = ("contrib", "linalg", "random", "image", "sparse")


class Required:
    """Stands as default for parameters that must be given, since optional inputs come before."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = Required()


def namespaced(name: str) -> tuple[str, str]:
    """The namespace a registered name belongs to ('' is the top) and its name there.

    >>> namespaced("FullyConnected"), namespaced("_contrib_box_iou"), namespaced("_plus_scalar")
    (('', 'FullyConnected'), ('contrib', 'box_iou'), ('_internal', '_plus_scalar'))
    """
    for space in NAMESPACES:
        if name.startswith(f"_{space}_"):
            return space, name[len(space) + 2 :]
    return ("_internal" if name.startswith("_") else ""), name


def refused_input(op: Op, name: str) -> str:
    """What is expected in place of the input `name`, which the parameters take away.

    >>> from gnomon.ops import registry
    >>> refused_input(registry.find("softmax").parse({}), "length")
    'nothing unless use_length=True'
    """
    for field, declared in op.fields.items():
        for value in _choices(declared):
            try:
                other = op.with_parameters({**op.attrs(), field: value})
            except GnomonError:  # it does not go together with the others
                continue
            if name in other.inputs():
                return f"nothing unless {field}={value!r}"
    return "one of the inputs " + (", ".join(op.inputs()) or "no inputs")


def spared_input(op: Op, name: str) -> str:
    """What an error adds about the input `name`, which is missing: the switch that takes it away.

    >>> from gnomon.ops import registry
    >>> convolution = registry.find("Convolution").parse({"kernel": (3,), "num_filter": 1})
    >>> spared_input(convolution, "bias"), spared_input(convolution, "weight")
    (', or no_bias=True', '')
    """
    attributes = op.attrs()
    for field, declared in op.fields.items():
        if declared.kind.name != "bool":
            continue
        turned = not getattr(op, field)
        try:
            other = op.with_parameters({**attributes, field: turned})
        except GnomonError:  # it does not go together with the others
            continue
        if name not in other.inputs():
            return f", or {field}={turned}"
    return ""


def _choices(field: Param) -> tuple[Any, ...]:
    """The values of a parameter that takes one of a few, or None where it may be left out."""
    if field.kind.name == "bool":
        return True, False
    return field.choices or ((None,) if field.kind.optional else ())


def sort(
    cls: type[Op],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_array: Callable[[Any], bool],
    wanted: str,
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """The arguments of a call as inputs in order, inputs by name, and parameters.

    None among the inputs means 'not given'; a `dtype` that is None is NumPy's, float64. What
    `is_array` says yes to, errors call `wanted`.

    Raises:
        TypeError: an input that is no array, an argument given twice, too many of them.
    """
    if cls.variadic is not None:
        return _sort_many(cls, args, kwargs, is_array, wanted)
    count = len(cls.input_names)
    more = list(itertools.takewhile(is_array, args[count:]))  # operators whose names a user decides
    rest = args[count + len(more) :]
    if cls.open_inputs and rest:
        place = f"args[{count + len(more)}]"
        raise TypeError(complaint(cls.name, place, wanted, shown(rest[0])))
    names = (*cls.input_names, *cls.fields)
    if len(rest) > len(cls.fields):
        expected = f"at most {len(names)} ({', '.join(names)})"
        raise TypeError(complaint(cls.name, "args", expected, f"{len(args)} positional arguments"))
    given = dict(zip(cls.input_names, args, strict=False))
    given.update(zip(cls.fields, rest, strict=False))
    twice = given.keys() & kwargs.keys()
    if twice:
        raise TypeError(f"{cls.name}: argument {min(twice)!r} is given twice")
    given.update(kwargs)
    inputs = [given.pop(n, None) for n in cls.input_names]
    for name, value in zip(cls.input_names, inputs, strict=True):
        if value is not None and not is_array(value):
            raise TypeError(complaint(cls.name, name, wanted, shown(value)))
    inputs += more
    while inputs and inputs[-1] is None:
        inputs.pop()
    named = {k: v for k, v in given.items() if is_array(v) and k not in cls.fields}
    if "dtype" in cls.fields and given.get("dtype", "") is None:
        given["dtype"] = "float64"
    return inputs, named, {k: v for k, v in given.items() if k not in named}


def _sort_many(
    cls: type[Op],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    is_array: Callable[[Any], bool],
    wanted: str,
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """The same for operators whose number of inputs varies; it is counted where not given."""
    for k, value in enumerate(args):
        if not is_array(value):
            raise TypeError(complaint(cls.name, f"arg{k}", wanted, shown(value)))
    named = {k: v for k, v in kwargs.items() if is_array(v)}
    params = {k: v for k, v in kwargs.items() if k not in named}
    if cls.variadic in cls.fields and not cls.interleaved:
        params.setdefault(str(cls.variadic), len(args) + len(named))
    return list(args), named, params


def signature(cls: type[Op], tail: Sequence[inspect.Parameter] = ()) -> inspect.Signature:
    """The signature of a function that applies `cls`: inputs, parameters, then `tail`.

    >>> from gnomon.ops import registry
    >>> signature(registry.find("Activation"))
    <Signature (data=None, act_type=<required>)>
    """
    own = [n for n in cls.fields if n != cls.variadic]
    kind: Any = ANY_KIND
    inputs = [inspect.Parameter(n, kind, default=None) for n in cls.usual_inputs()]
    many = cls.input_names[0] if cls.variadic is not None else "" if inputs else "args"
    if cls.variadic is not None or cls.open_inputs:
        kind = inspect.Parameter.KEYWORD_ONLY
        if many:
            inputs = [inspect.Parameter(many, inspect.Parameter.VAR_POSITIONAL)]
        tail = [p.replace(kind=kind) if p.kind is ANY_KIND else p for p in tail]
    fields = [inspect.Parameter(n, kind, default=_default(cls, n)) for n in own]
    return inspect.Signature([*inputs, *fields, *tail])


def _default(cls: type[Op], name: str) -> Any:
    field = cls.fields[name]
    return REQUIRED if field.required else field.default


def document(cls: type[Op], array: str) -> str:
    """The documentation of such a function: the declaration's, then each argument in a line."""
    lines = [inspect.getdoc(cls) or cls.name, "", "Parameters", "----------"]
    if cls.variadic is not None:
        lines += [f"{cls.input_names[0]} : {array}[]", "    The inputs, any number of them."]
    else:
        lines += [f"{name} : {array}" for name in cls.usual_inputs()]
    for name, field in cls.fields.items():
        if name != cls.variadic:
            lines += [f"{name} : {field.describe()}", *([f"    {field.doc}"] if field.doc else [])]
    count = len(cls.output_names)
    returns = f"{array} or list of {array}" if count > 1 else array
    return "\n".join([*lines, "", "Returns", "-------", returns])


def dress(
    function: Any, cls: type[Op], name: str, module: str, array: str, tail: Sequence[Any] = ()
) -> Any:
    """`function` with the name, signature and documentation of what it does."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__signature__ = signature(cls, tail)
    function.__doc__ = document(cls, array)
    return function
