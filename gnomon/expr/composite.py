"""The nodes that are declared by their fields: chainers, which have an index rule, and calls."""

from __future__ import annotations

import copyreg
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_type_hints,
)

import numpy as np

from gnomon import dtype as dt
from gnomon.base import GnomonError, ShapeError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr import bounds
from gnomon.expr.axes import LIMIT
from gnomon.expr.coerce import declared
from gnomon.expr.index import Index
from gnomon.expr.node import (
    CHAINER,
    COMPLEX,
    Buffer,
    Cast,
    Expr,
    Map,
    Scalar,
    cast,
    check_expr,
    typed,
)
from gnomon.expr.term import Term, compute_dtype, distinct
from gnomon.ground.record import cached_property, fields_of, fields_read, first, put, reduced
from gnomon.shape import prod


def _pickled(buffer: Buffer) -> tuple[Any, ...]:
    """A leaf pickled or copied deeply: what the memory holds, never where it is."""
    if not buffer.address:
        return Buffer, (buffer.shape, buffer.dtype, buffer.strides)
    return buffer_over, (buffer.numpy().copy(),)


def buffer_over(array: np.ndarray[Any, Any]) -> Buffer:
    """A leaf over the memory of a dense array."""
    return Buffer(array.shape, dt.of(array.dtype), None, array.ctypes.data, array)


copyreg.pickle(Buffer, _pickled)
copyreg.pickle(Scalar, lambda e: (Scalar, (e.value, e.dtype, e.modular)))
copyreg.pickle(Map, lambda e: (Map, (e.fn, e.args, e.shape, e.dtype)))
copyreg.pickle(Cast, lambda e: (Cast, (e.src, e.dtype)))
C = TypeVar("C")
T = TypeVar("T")
PACKAGE = __name__.partition(".")[0]
# fields so annotated are kernel arguments: another value needs no recompiling
Size: TypeAlias = Annotated[int, "size"]
Sizes: TypeAlias = Annotated[tuple[int, ...], "sizes"]


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def composite(kind: type[C]) -> type[C]:
    """The decorator of nodes that are declared by their fields.

    The same as `@dataclass(frozen=True, eq=False, repr=False)`, which does as well, but takes more
    time when a module is imported (see `record`).
    """
    made = fields_read(kind)
    type.__setattr__(made, "__init__", first)
    return made


class Composite(Expr):
    """A node declared by its fields.

    `Expr` and `tuple[Expr, ...]` are operands, `Size` and `Sizes` are kernel arguments, anything
    else is part of the kernel's structure and must be hashable.
    """

    foreign: ClassVar[bool] = False  # whether the class is not of this package
    clips = False  # whether the indices that its rule gives must be clipped
    rereads: ClassVar[bool] = False  # whether its operands are stored, not computed at each read

    def __init_subclass__(cls) -> None:
        cls.foreign = cls.__module__.partition(".")[0] != PACKAGE

    def __init__(self, *values: Any, **named: Any) -> None:
        if not hasattr(self, "__dataclass_fields__"):
            expected = "one decorated @dataclass(frozen=True, eq=False)"
            raise TypeError(complaint(type(self).__name__, "class", expected, "a plain one"))
        first(self, *values, **named)

    def __post_init__(self) -> None:
        for name in self.roles().many:
            if not isinstance(getattr(self, name), tuple):
                expected, got = "a tuple of expressions", f"a {type(getattr(self, name)).__name__}"
                raise TypeError(complaint(type(self).__name__, name, expected, got))
        for child in self.children:
            check_expr(type(self).__name__, "operand", child)
        try:
            hash(self.static())
        except TypeError:
            expected = "numbers, names and dtypes"
            raise TypeError(
                complaint(type(self).__name__, "parameters", expected, shown(self.static()))
            ) from None
        found = self.infer()
        try:
            sizes, dtype = found
            shape, dtype = tuple(map(operator.index, sizes)), dt.of(dtype)
        except (TypeError, ValueError):
            expected = "a shape of whole numbers and a dtype"
            raise TypeError(
                complaint(f"{type(self).__name__}.infer", "result", expected, shown(found))
            ) from None
        if (shape and min(shape) < 0) or not prod(shape) < LIMIT:
            expected = "sizes of fewer than 2**63 elements, none of them negative"
            raise ShapeError(complaint(type(self).__name__, "shape", expected, shape))
        typed(self, shape, dtype, self._mask(self.children))
        if not self.stays_inside():
            put(self, "clips", True)

    def stays_inside(self) -> bool:
        """Whether the rule reads inside its operands as they are now, by itself or clipped."""
        asked = self.foreign and self.kind == CHAINER and not self.clips
        return not (asked and bounds.clips(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled or copied deeply: made anew of its fields."""
        return reduced(self)

    def _mask(self, children: Iterable[Expr]) -> int:
        """The kinds of a node like this over `children`, as `exp_type` has them."""
        mask = self.kind
        for child in children:
            mask |= child.exp_type
        return mask

    def outline(self) -> tuple[Any, ...]:
        parts: list[Any] = [type(self), self.shape]
        parts += [distinct(getattr(self, name)) for name in self.roles().others]
        return tuple(parts)

    def infer(self) -> tuple[Sequence[int], DType]:
        """Shape and dtype of the result; raises where the operands do not fit."""
        raise TypeError(f"{type(self).__name__} must define infer()")

    def adjoint(self, g: Expr) -> tuple[tuple[Expr, Expr], ...]:
        """Pairs (operand, what it receives); of whole numbers nothing depends smoothly.

        Raises:
            GnomonError: the class has operands of floating point and does not define this.
        """
        if any(child.dtype.kind == "f" for child in self.children):
            expected = "adjoint(self, g) in its class; one that gives () declares it constant"
            raise GnomonError(complaint(type(self).__name__, "gradient", expected, "none"))
        return ()

    @classmethod
    def roles(cls) -> Roles:
        """Field name -> 'one' or 'many' operands, 'size', 'sizes' or 'static'."""
        try:
            return _ROLES[cls]
        except KeyError:
            if cls.__hash__ is not Expr.__hash__:  # `==` of nodes gives a node
                expected = "a class that leaves `==` alone: @dataclass(frozen=True, eq=False)"
                raise TypeError(
                    complaint(cls.__name__, "class", expected, "one with its own")
                ) from None
            hints = get_type_hints(cls, include_extras=True)
            found = _ROLES[cls] = Roles({f.name: _role(hints[f.name]) for f in fields_of(cls)})
            return found

    @cached_property
    def children(self) -> tuple[Expr, ...]:
        roles, out = self.roles(), list[Expr]()
        for name in roles.operands:
            operand = getattr(self, name)
            if roles[name] == "many":
                out.extend(operand)
            elif operand is not None:
                out.append(operand)
        return tuple(out)

    def rebuild(
        self, children: Iterator[Expr], size: Callable[[int], Any], shape: Sequence[Any]
    ) -> Self:
        """A copy with other operands, sizes through `size`, and this shape; nothing is checked."""
        new = self.over_operands(tuple(children))
        for name, role in self.roles().items():
            if role == "size":
                put(new, name, size(getattr(self, name)))
            elif role == "sizes":
                put(new, name, tuple(map(size, getattr(self, name))))
        put(new, "shape", tuple(shape))
        return new

    def over_operands(self, children: Sequence[Expr]) -> Self:
        """A copy with other operands of the same shapes and dtypes; nothing is checked."""
        new, rest, roles = object.__new__(type(self)), iter(children), self.roles()
        for name in roles.others:
            put(new, name, getattr(self, name))
        for name in roles.operands:
            value = getattr(self, name)
            if roles[name] == "many":
                value = tuple([next(rest) for _ in value])
            elif value is not None:
                value = next(rest)
            put(new, name, value)
        typed(new, self.shape, self.dtype, self._mask(children))
        new.__dict__["children"] = tuple(children)
        if self.clips:
            put(new, "clips", True)
        return new

    def asked(self, rule: Callable[[Index], T], i: Index) -> T:
        """`rule(i)`, with its indices clipped where they may lie outside; see `expr/bounds.py`."""
        arena = i.arena
        before = arena.watched, arena.clips
        arena.watched, arena.clips = self.label if self.foreign else "", self.clips
        try:
            return rule(i)
        finally:
            arena.watched, arena.clips = before

    def element(self, i: Index) -> Term:
        """`at(i)`, clipped where that is needed."""
        found = self.asked(self.at, i)
        return declared(found, compute_dtype(self.dtype)) if self.foreign else found

    def size_values(self) -> list[int]:
        """The values of the `Size` and `Sizes` fields, in order."""
        out: list[int] = []
        for name, role in self.roles().items():
            if role == "size":
                out.append(getattr(self, name))
            elif role == "sizes":
                out.extend(getattr(self, name))
        return out

    def static(self) -> tuple[Any, ...]:
        """The fields that are part of a kernel's structure."""
        return tuple([getattr(self, name) for name in self.roles().static])


class Roles(dict[str, str]):
    """What each field of a class of nodes is, and the names of those that are asked for often."""

    __slots__ = ("many", "operands", "others", "static")

    def __init__(self, roles: Mapping[str, str]) -> None:
        super().__init__(roles)
        self.many = [name for name, role in roles.items() if role == "many"]
        self.static = [name for name, role in roles.items() if role == "static"]
        self.operands = [name for name, role in roles.items() if role in ("one", "many")]
        self.others = [name for name in roles if name not in self.operands]


_ROLES: dict[type, Roles] = {}


def _role(hint: Any) -> str:
    """What a field of this annotation is; see `Composite`."""
    if hint == Expr or hint == Expr | None:
        return "one"
    if hint == tuple[Expr, ...]:
        return "many"
    return {Size: "size", Sizes: "sizes"}.get(hint, "static")


class Chainer(Composite):
    """An element-by-index rule: subclasses define `infer`, `at` and `adjoint`."""

    kind = CHAINER

    def at(self, i: Index) -> Term:
        raise TypeError(f"{type(self).__name__} must define at(i)")

    def view(self, src: Buffer) -> Buffer | None:
        """This node over `src` as nothing but other sizes and strides, where it is that."""
        return None


class Scatter(Chainer):
    """A chainer that adds every element of its source to the element of the result it belongs to.

    `at` says the same from the other side. A kernel goes through the source where it can: then
    only the elements that meet in one place are added, in the order of the source.
    """

    @property
    def source(self) -> tuple[Expr, int]:
        """The operand whose elements are added, and along how many of its first axes they meet."""
        raise TypeError(f"{type(self).__name__} must define source")

    def onto(self, i: Index) -> Sequence[Term]:
        """Where in the result element `i` of the source belongs."""
        raise TypeError(f"{type(self).__name__} must define onto()")

    def places(self, i: Index) -> Sequence[Term]:
        """`onto(i)`, clipped where that is needed."""
        found = self.asked(self.onto, i)
        return i.arena.clipped(found, self.shape) if self.clips else found

    def over(self, source: Expr) -> Scatter:
        """The same of another source of the same shape."""
        raise TypeError(f"{type(self).__name__} must define over()")


class Call(Composite):
    """Work that a library does as a whole; the planner cuts an expression here.

    `infer`, `adjoint` and `reference` (its meaning in NumPy) make one; `fallback` gives the same as
    an expression of other nodes, for machines without the library. `unrolls` says that this grows
    with a size, as with the steps in time of a recurrent layer. `pictures` says that it makes
    pictures (N, C, space...) of those that its first operand is.
    """

    kind = COMPLEX
    unrolls: ClassVar[bool] = False
    pictures: ClassVar[bool] = False

    def reference(self, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The values, by NumPy."""
        raise TypeError(f"{type(self).__name__} must define reference()")

    def in_single(self) -> Expr | None:
        """The same in float32, for floats of 16 bits; None for others.

        Libraries that have the call in single precision alone are faster by far than a loop nest,
        and what is summed, or passed from step to step, is rounded once.
        """
        wide = self.widened()
        return None if wide is self else cast(wide, self.dtype)

    def widened(self) -> Self:
        """The call itself; of floats of 16 bits the one that is in float32."""
        if self.dtype.kind != "f" or self.dtype.size != 2:
            return self
        operands = (cast(c, dt.float32) if c.dtype is self.dtype else c for c in self.children)
        wide = self.rebuild(operands, int, self.shape)
        object.__setattr__(wide, "dtype", dt.float32)
        return wide
