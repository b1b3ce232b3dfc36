"""Declared fields of operators: parsed from keyword arguments or strings, printed as strings."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import operator
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import DTypeError, ParamError, ShapeError, complaint, nearest, shown
from gnomon.ground.record import record

REQUIRED = inspect.Parameter.empty

Dims = tuple[int, ...]
# names, nodes or numbers in a tuple that one parameter may ask for: a file that asks for more would
# take all memory
MOST = 1 << 14


class Axis(int):
    """The number of an axis, negative from the end; it knows whose parameter it is.

    >>> Axis(-1).of((2, 3)), Axis(1).of(4)
    (1, 1)
    """

    where: str = "axis"
    field: str = "axis"

    @classmethod
    def named(cls, number: int, where: str, field: str) -> Axis:
        """The axis `number`, for errors of the operator `where`."""
        made = cls(number)
        made.where, made.field = where, field
        return made

    def of(self, shape: Sequence[int] | int) -> int:
        """Its number from the front, in a shape or among so many axes; ShapeError if missing."""
        ndim = shape if isinstance(shape, int) else len(shape)
        if not -ndim <= self < ndim:
            expected = f"an axis of {ndim} axes"
            raise ShapeError(complaint(self.where, self.field, expected, int(self)))
        return int(self) % ndim


OptionalDims = tuple[int | None, ...]
Floats = tuple[float, ...]


@record()
class Kind:
    """What values a field takes: its name in messages, and a reader of values and strings."""

    name: str
    read: Callable[[Any], Any]
    optional: bool = False

    def parse(self, value: Any) -> Any:
        """Return `value` as this kind's Python type; ValueError or TypeError when it is not one."""
        if self.optional and (value is None or value == "None"):
            return None
        return self.read(value)

    def __str__(self) -> str:
        return f"{self.name} or None" if self.optional else self.name


def _read_int(value: Any) -> int:
    if isinstance(value, str):
        return int(value.strip().rstrip("lL"))
    if isinstance(value, bool):
        raise TypeError("a bool is not an int")
    return operator.index(value)


def _read_float(value: Any) -> float:
    if value is None:
        raise TypeError("None is not a number")
    return float(value)


_TRUTH = {"true": True, "1": True, "false": False, "0": False}
#: values of these types that are equal differ in their types alone
_FLOATS = frozenset((float, np.float16, np.float32, np.float64))


def _read_bool(value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in _TRUTH:
        raise ValueError(f"{value!r} is not a truth value")
    return _TRUTH[text]


def _read_str(value: Any) -> str:
    if value is None:
        raise TypeError("None is not a string")
    return str(value)


def _read_tuple(element: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = _literal_tuple(value)
        if not isinstance(value, Iterable):
            value = (value,)
        found = tuple(map(element, itertools.islice(value, MOST + 1)))
        if len(found) > MOST:
            raise ValueError(f"more than {MOST} numbers")
        return found

    return read


@functools.lru_cache(maxsize=1024)  # networks say the same few shapes and strides many times
def _literal_tuple(text: str) -> Any:
    """The tuple or number written in `text`; Python 2's long suffix is forgiven."""
    try:
        value = ast.literal_eval(text.strip().replace("L", ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: deep nesting
        value = text
    if isinstance(value, (str, bytes, dict, set)):
        raise ValueError(f"{text!r} is not a tuple of numbers")
    return value


def _read_int_or_none(value: Any) -> int | None:
    return None if value is None else _read_int(value)


_KINDS: Mapping[Any, Kind] = {
    int: Kind("int", _read_int),
    float: Kind("float", _read_float),
    bool: Kind("bool", _read_bool),
    str: Kind("string", _read_str),
    dtypes.DType: Kind("dtype", dtypes.of),
    Dims: Kind("tuple of ints", _read_tuple(_read_int)),
    OptionalDims: Kind("tuple of ints or None", _read_tuple(_read_int_or_none)),
    Axis: Kind("int", lambda value: Axis(_read_int(value))),
    Floats: Kind("tuple of floats", _read_tuple(_read_float)),
    Any: Kind("any value", lambda value: value),
}


# known in every declaration, wherever it stands
_NAMES = {
    "Axis": Axis,
    "Dims": Dims,
    "OptionalDims": OptionalDims,
    "Floats": Floats,
    "DType": dtypes.DType,
}
_PLAIN: dict[Any, Any] = {**_NAMES, **{kind.__name__: kind for kind in (int, float, bool, str)}}


def kind_of(annotation: Any) -> Kind:
    """The kind a field's annotation stands for: int, float, Dims, `int | None`, ...

    >>> kind_of(Dims).parse("(2, 2)"), kind_of(int | None).parse("None")
    ((2, 2), None)
    """
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        inner = next(a for a in typing.get_args(annotation) if a is not type(None))
        kind = _KINDS[inner]
        return Kind(kind.name, kind.read, optional=True)
    return _KINDS[annotation]


@record(frozen=False)
class Param:
    """One declared field of an operator: kind, default, what is allowed and a line of text.

    The limits are those of the number, or of each in a tuple; a tuple may have one of `lengths`.
    """

    default: Any = REQUIRED
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()
    lengths: tuple[int, ...] = ()
    doc: str = ""
    name: str = ""
    kind: Kind = _KINDS[Any]

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED

    def expected(self) -> str:
        """What this field takes: `int >= 1`, `tuple of 1 or 2 ints`, `one of 'relu', 'tanh'`."""
        if self.choices:
            text = "one of " + ", ".join(repr(c) for c in self.choices)
            return text + " or None" if self.kind.optional else text
        bounds = [f">= {self.low}"] if self.low is not None else []
        bounds += [f"<= {self.high}"] if self.high is not None else []
        *most, last = map(str, self.lengths or ("",))
        counts = f"{', '.join(most)} or {last}" if most else last
        kind = str(self.kind).replace("tuple of", f"tuple of {counts}".rstrip())
        return " ".join([kind, " and ".join(bounds)]).strip()

    def describe(self) -> str:
        """What this field takes and its default, as one line of documentation."""
        rest = "required" if self.required else f"optional, default={show(self.default)}"
        return f"{self.expected()}, {rest}"

    def declared(self) -> str:
        """The same in MXNet's words: `{'relu', 'tanh'}, required`."""
        if all(isinstance(c, str) for c in self.choices) and self.choices:
            names = ["None"] * self.kind.optional + sorted(map(repr, self.choices))
            text, default = f"{{{', '.join(names)}}}", repr(str(self.default))
            return f"{text}, required" if self.required else f"{text},optional, default={default}"
        text = str(self.kind)
        for ours, theirs in (("bool", "boolean"), ("tuple of ints", "Shape(tuple)")):
            text = text.replace(ours, theirs)
        return f"{text}, required" if self.required else f"{text}, optional, default={self._shown}"

    @property
    def _shown(self) -> str:
        """The default as MXNet writes it: integers and texts are quoted."""
        value = self.default
        if isinstance(value, tuple):
            return str(list(value))
        if isinstance(value, bool | float):
            return f"{value:.9g}"
        return repr(str(value)) if self.kind.name in ("int", "string") else str(value)

    def parse(self, where: str, value: Any) -> Any:
        """Return `value` (or the value its string stands for), checked; ParamError otherwise."""
        try:
            parsed = self.kind.parse(value)
        except (TypeError, ValueError, OverflowError, DTypeError):
            raise self._refuse(where, value) from None
        if parsed is not None and not self._allows(parsed):
            raise self._refuse(where, value)
        return self.owned(where, parsed)

    def owned(self, where: str, parsed: Any) -> Any:
        """A parsed value that knows whose parameter it is, where that is an axis."""
        return Axis.named(parsed, where, self.name) if isinstance(parsed, Axis) else parsed

    def _allows(self, parsed: Any) -> bool:
        if self.choices:
            return (parsed.name if isinstance(parsed, dtypes.DType) else parsed) in self.choices
        parts = parsed if isinstance(parsed, tuple) else (parsed,)
        if self.lengths and len(parts) not in self.lengths:
            return False
        numbers = [p for p in parts if p is not None]
        if self.low is not None and not all(n >= self.low for n in numbers):
            return False
        return self.high is None or all(n <= self.high for n in numbers)

    def _refuse(self, where: str, value: Any) -> ParamError:
        got = shown(value) + nearest(str(value), map(str, self.choices))
        return ParamError(complaint(where, self.name, self.expected(), got))


def param(
    default: Any = REQUIRED,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[Any] = (),
    lengths: Iterable[int] = (),
    doc: str = "",
) -> Any:
    """A field of an operator: `num_hidden: int = param(low=1)`; without a default it is required.

    The annotation gives the kind: int, float, bool, str, DType, Axis, Dims, Floats, or one
    `| None`.
    """
    return Param(default, low, high, tuple(choices), tuple(lengths), doc)


def count(default: Any = REQUIRED, *, doc: str = "") -> Any:
    """A field that says how many inputs, outputs or nodes there are."""
    return param(default, low=1, high=MOST, doc=doc)


def checked_count(where: str, name: str, value: Any) -> int:
    """`value`, where it may be such a number; ParamError otherwise.

    >>> checked_count("RNN", "num_layers", 2)
    2
    """
    found: int = Param(low=1, high=MOST, name=name, kind=kind_of(int)).parse(where, value)
    return found


def declared(owner: type) -> dict[str, Param]:
    """The fields `owner` declares or inherits, in order, each with its kind filled in.

    Those in `owner.leading` come first: what shared fields stand behind, in calls by position.
    """
    found: dict[str, Param] = {}
    for base in reversed(owner.__mro__):
        for name in [n for n in found if n in vars(base)]:
            del found[name]  # declared anew, or set to a fixed value
        found.update(_own(base))
    leading = [name for name in getattr(owner, "leading", ()) if name in found]
    return {name: found[name] for name in dict.fromkeys((*leading, *found))}


_known: WeakKeyDictionary[type, dict[str, Param]] = WeakKeyDictionary()


def _own(owner: type) -> dict[str, Param]:
    """The fields that a class declares itself; they are kept as long as it."""
    own = _known.get(owner)
    if own is None:
        own = {k: v for k, v in vars(owner).items() if isinstance(v, Param)}
        for name, field in own.items():
            field.name, field.kind = name, kind_of(_hint(owner, name))
        _known[owner] = own
    return own


def annotated(owner: type) -> dict[str, Any]:
    """Those of a class itself, not of its bases."""
    return vars(owner).get("__annotations__") or inspect.get_annotations(owner)


def _hint(owner: type, name: str) -> Any:
    """The annotation of a field; `typing.get_type_hints` would evaluate those of all bases."""
    for base in owner.__mro__:
        hint = annotated(base).get(name)
        if hint is not None:
            known = _PLAIN.get(hint, hint)
            return _evaluated(known, base.__module__) if isinstance(known, str) else known
    return Any


@functools.lru_cache(maxsize=256)
def _evaluated(hint: str, module: str) -> Any:
    return eval(hint, vars(sys.modules[module]), _NAMES)


def parse_fields(
    where: str, fields: Mapping[str, Param], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Every field's value, from `given` (values or strings) and the defaults.

    ParamError for an unknown name, a missing field and a value that is not allowed. Where there
    are no fields at all, any name is taken and means nothing, as in MXNet.
    """
    for name in given:
        if fields and name not in fields:
            expected = "one of the parameters " + ", ".join(fields)
            got = shown(given[name]) + nearest(name, fields)
            raise ParamError(complaint(where, name, expected, got))
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given:
            values[name] = field.parse(where, given[name])
        elif field.required:
            raise ParamError(complaint(where, name, field.describe(), "nothing"))
        else:
            default = None if field.default is None else field.kind.parse(field.default)
            values[name] = field.owned(where, default)
    return values


class Parameter:
    """A parameter structure on its own: a class whose fields are declared with `param`.

    >>> class Size(Parameter):
    ...     kernel: Dims = param(low=1)
    ...     no_bias: bool = param(False)
    >>> Size(kernel="(3, 3)").kernel, Size(kernel=3).as_strings()
    ((3, 3), {'kernel': '(3,)', 'no_bias': 'False'})
    """

    fields: ClassVar[Mapping[str, Param]] = {}

    def __init_subclass__(cls) -> None:
        cls.fields = declared(cls)

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(parse_fields(type(self).__name__, self.fields, given))

    def values(self) -> dict[str, Any]:
        """Every field's value."""
        return {name: getattr(self, name) for name in self.fields}

    def as_strings(self) -> dict[str, str]:
        """Every field's value as MXNet's files hold it."""
        return {name: show(value) for name, value in self.values().items()}


def told_apart(value: Any) -> Any:
    """What tells values apart that are equal: 1 from 1.0 and True, 0.0 from -0.0, also in tuples
    and lists, and these from each other.

    >>> told_apart(1), told_apart(1.0), told_apart(-0.0)
    (<class 'int'>, <class 'float'>, (<class 'float'>, '-0.0'))
    """
    return kinds((value,))[0]


def kinds(values: Collection[Any]) -> tuple[Any, ...]:
    """What tells each of some values apart from those that are equal, as `told_apart`."""
    found: list[Any] = []
    for value in values:
        kind = value.__class__
        if kind is tuple:
            kind = kinds(value)
        elif kind is list:
            kind = kind, *kinds(value)
        elif kind in _FLOATS and not value:
            kind = kind, str(value)
        found.append(kind)
    return tuple(found)


def show(value: Any) -> str:
    """The string MXNet's files hold for `value`.

    >>> [show(v) for v in ((1, 1), [3], True, 1e-05, np.float32(0.1), np.array(2), None)]
    ['(1, 1)', '[3]', 'True', '1e-05', '0.1', '2', 'None']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dtypes.DType):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.ndim):
        inner = ", ".join(map(show, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, type):
        return dtypes.of(value).name
    return str(value)
