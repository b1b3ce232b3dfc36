"""Kinds of values in native functions, as annotations say them, and where slots of objects lie."""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections import deque
from collections.abc import Mapping
from types import FunctionType, GenericAlias, MemberDescriptorType, NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from gnomon.ground.record import Frozen
from gnomon.native.words import Given, Ints, Numbers, Reals, Singles, Words
from gnomon.native.words import KitError as KitError  # noqa: PLC0414  what all refusals are
from gnomon.runtime.statements import fields


class Kind(NamedTuple):
    """What native code has of a value: LLVM's type of it, its class, the kinds of its elements.

    `places` says that the elements have a kind each; else all have the first one's.
    """

    llvm: str
    cls: Any
    items: tuple[Kind, ...] = ()
    places: bool = False

    @property
    def is_object(self) -> bool:
        """Whether the value is an object of Python's."""
        return self.llvm == "ptr" and word_type(self.cls) is None

    def item(self, index: int | None = None) -> Kind:
        """The kind of the elements, or of the one at a place."""
        if self.places and index is not None and -len(self.items) <= index < len(self.items):
            return self.items[index]
        return self.items[-1] if self.items and not self.places else OBJECT

    def __str__(self) -> str:
        name = getattr(self.cls, "__name__", str(self.cls))
        return f"a plain {name}" if self.llvm in PLAIN else name


PLAIN = ("i64", "i1", "double")
INT, BOOL, FLOAT = Kind("i64", int), Kind("i1", bool), Kind("double", float)
WORDS, NOTHING, OBJECT = Kind("ptr", Words), Kind("i8", NoneType), Kind("ptr", object)
NONE = Kind("ptr", NoneType)
GIVEN = Kind("{ ptr, i64 }", Given)  # where the objects lie, and how many
_BY_CLASS = {int: INT, bool: BOOL, float: FLOAT}
#: classes whose truth, comparison and end run no other code
HARMLESS = (int, bool, float, str, bytes, NoneType, type)
SIZED = (list, tuple, dict, set, frozenset, deque, str, bytes)


@functools.cache
def word_type(cls: Any) -> str | None:
    """LLVM's type of what lies at addresses of a class; None where that is no address."""
    if not (isinstance(cls, type) and issubclass(cls, (Words, Reals))):
        return None
    if issubclass(cls, Words):
        return "i32" if issubclass(cls, Ints) else "i64"
    return "float" if issubclass(cls, Singles) else "double"


def kind_of(annotation: Any, space: Mapping[str, Any], plain: bool = True) -> Kind:
    """The kind that an annotation says; `plain` integers are words, others the objects they are.

    What is imported for type checkers alone is an object of any kind.
    """
    if isinstance(annotation, str):
        annotation = meaning(annotation, space)
    found = _object_kind(annotation, space)
    return _BY_CLASS[found.cls] if plain and _is_plain(annotation) else found


class _Space(dict[str, Any]):
    """Names of a module, of which those that are not known mean anything."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> Any:
        return self.module[name] if name in self.module else getattr(builtins, name, Any)


def meaning(annotation: str, space: Mapping[str, Any]) -> Any:
    """What the text of an annotation means; names that are not known mean anything."""
    try:
        return eval(_compiled(annotation), {}, _Space(space))
    except (AttributeError, TypeError):
        return Any


_compiled = functools.cache(functools.partial(compile, filename="<annotation>", mode="eval"))


def _is_plain(annotation: Any) -> bool:
    return isinstance(annotation, type) and annotation in _BY_CLASS


def _object_kind(annotation: Any, space: Mapping[str, Any]) -> Kind:
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is None:
        return NONE
    if annotation is Any:
        return OBJECT
    if annotation == Given:
        return GIVEN
    if annotation is Numbers:
        return WORDS
    if origin is Annotated:
        return _object_kind(args[0], space)
    if origin in (Union, UnionType):
        rest = [x for x in args if x is not NoneType]
        return kind_of(rest[0], space, plain=False) if len(rest) == 1 else OBJECT
    if origin in (list, dict, tuple, deque) and isinstance(annotation, GenericAlias):
        places = origin is tuple and args[-1] is not Ellipsis
        items = tuple(kind_of(x, space, plain=False) for x in args if x is not Ellipsis)
        return Kind("ptr", origin, items, places)
    if isinstance(origin, type) and origin.__name__ != "Callable":
        return Kind("ptr", origin)
    return Kind("ptr", annotation) if isinstance(annotation, type) else OBJECT


class Slot(NamedTuple):
    """Where an object holds an attribute, and of what kind it is; `final` ones are set once."""

    offset: int
    kind: Kind
    final: bool
    trusted: bool  # always set, to what is said
    inner: bool  # of a class that the package alone knows
    refusing: bool  # set by the package alone, to what is said
    optional: bool  # may be None


@functools.cache
def slot_of(cls: Any, name: str) -> Slot:
    """A slot of a class; KitError where it has none of that name, or says nothing of its kind."""
    found = fields.slot(cls, name) if isinstance(cls, type) else None
    if found is None:
        raise KitError(f"{getattr(cls, '__name__', cls)} has no slot {name!r}")
    for kind in cls.__mro__:
        said = getattr(kind, "__annotations__", {}).get(name)
        if said is not None:
            space = vars(sys.modules[kind.__module__])
            said = meaning(said, space) if isinstance(said, str) else said
            final = get_origin(said) is Final
            kept = get_args(said)[0] if final else said
            trusted = getattr(found.kind, "whole", None) is found.kind
            inner = getattr(found.kind, "inner", None) is found.kind
            refusing = inner or issubclass(found.kind, Frozen)
            known = kind_of(kept, space, plain=False)
            return Slot(
                found.offset, known, final, trusted, inner, refusing, takes_none(kept, space)
            )
    raise KitError(f"{found.kind.__name__}.{name} has no annotation in the class")


def returns_of(function: Any) -> Kind:
    """What a function of Python's says that it returns, as an object."""
    if isinstance(function, type):
        return Kind("ptr", function)
    if not isinstance(function, FunctionType):
        return OBJECT
    space = vars(builtins) | function.__globals__
    return kind_of(function.__annotations__.get("return", object), space, plain=False)


def takes_none(said: Any, space: Mapping[str, Any]) -> bool:
    """Whether an annotation allows None."""
    said = meaning(said, space) if isinstance(said, str) else said
    return said is None or NoneType in get_args(said)


def is_required(said: Any, space: Mapping[str, Any]) -> bool:
    """Whether an annotation says something that native code looks into, and that is not None."""
    return has_parts(kind_of(said, space).cls) and not takes_none(said, space)


@functools.cache
def has_parts(cls: Any) -> bool:
    """Whether native code reads what objects of a class hold by itself."""
    if cls in (list, tuple, dict):
        return True
    return isinstance(cls, type) and any(
        isinstance(x, MemberDescriptorType) for kind in cls.__mro__ for x in vars(kind).values()
    )


def has_slot(cls: Any, name: str) -> bool:
    """Whether instances of a class have a slot of that name."""
    return isinstance(cls, type) and fields.slot(cls, name) is not None


def named(node: ast.expr) -> str:
    """The text of an expression, which is mostly a name."""
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def slot_name(node: ast.expr) -> str:
    """The name of a slot, from the literal that it has to be."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        raise KitError(f"{ast.unparse(node)!r}: the name of a slot is a literal")
    return node.value
