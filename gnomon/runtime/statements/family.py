"""Families: templates of the same kernels and calls that differ in sizes and strides alone.

A kernel takes sizes and strides as arguments, so the template of a kernel's work for some sizes
serves for all others whose statements have the same structure: the words of its block that hold
them are written anew, with how the work is cut into tasks. What a library does as a whole, a
product or the steps of a recurrent layer, says what it was made for: it is made anew by its sizes,
as it is for any, whatever its own steps are. Nothing is planned for that, and no expression is
read. That two statements do have the same structure is for the caller to know.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from gnomon.base import GnomonError, Later
from gnomon.expr.node import Buffer, set_address
from gnomon.ground.record import fields_of
from gnomon.plan.cut import Invoke
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.rebind import Locate, OfKernel, Values, Where, every_of, kernel_of
from gnomon.runtime.kernels.template import Place, Template, stood_for

if TYPE_CHECKING:
    from typing import TypeAlias

    from gnomon.runtime.libraries import calls, gemm
else:  # what has no call needs no library
    calls, gemm = Later("gnomon.runtime.libraries.calls"), Later("gnomon.runtime.libraries.gemm")


class Slot(NamedTuple):
    """What one of a family's steps is given: a kernel's argument, or the name of a size."""

    step: int
    name: Any  # hashable: a pair or more words


class Ready(NamedTuple):
    """A call on buffers without memory, and how many bytes behind an operand each is to begin."""

    invoke: Invoke
    buffers: list[Buffer]
    offsets: list[int]


class OfCall:
    """The steps of a library for one call on operands."""

    kernel, dims = None, ()

    def __init__(self, invoke: Invoke, where: Sequence[Where]) -> None:
        self.where, self._saver, self._scale = where, invoke.saver, invoke.scale
        self._leaves = [(b.shape, b.strides, b.dtype) for b in _leaves(invoke)]
        self._call = invoke.call.over_operands(self._buffers({})[:-1])  # which have no memory
        self._static = invoke.call.static()

    def _buffers(self, values: Values) -> list[Buffer]:
        """The operands, and what the result is stored in, with these sizes and strides."""
        shapes, strides = ([list(leaf[k]) for leaf in self._leaves] for k in (0, 1))
        for (kind, *place), n in values.items():
            if kind == "size":
                shapes[place[0]][place[1]] = n
            elif kind == "distance":
                strides[place[0]][place[1]] = n
        return list(map(Buffer, shapes, [dtype for _, _, dtype in self._leaves], strides))

    def values(self) -> dict[Any, int]:
        """Sizes and strides of its operands, where they are, and the numbers of the call itself."""
        found: dict[Hashable, int] = {("offset", k): w.offset for k, w in enumerate(self.where)}
        for k, (shape, strides, _) in enumerate(self._leaves):
            found |= {("size", k, axis): n for axis, n in enumerate(shape)}
            found |= {("distance", k, axis): n for axis, n in enumerate(strides)}
        return found | {("number", *path): n for path, n in _numbers(self._static)}

    def is_like(self, other: Any) -> bool:
        """Whether both are one call but for numbers, on the same operands."""
        if not isinstance(other, OfCall) or type(self._call) is not type(other._call):
            return False
        return self._kind() == other._kind() and self._given(other.values()) == other._static

    def _kind(self) -> tuple[Any, ...]:
        leaves = zip(self.where, self._leaves, strict=True)
        operands = [(w.operand, len(shape), dtype) for w, (shape, _, dtype) in leaves]
        present = [getattr(self._call, name) is None for name in self._call.roles().operands]
        return operands, present, self._saver, self._scale

    def _given(self, values: Values) -> tuple[Any, ...]:
        """What the call is told beside operands, with these numbers."""
        changed = {name[1:]: n for name, n in values.items() if name[0] == "number"}
        found: tuple[Any, ...] = _with_numbers(self._static, changed) if changed else self._static
        return found

    def ready(self, values: Values) -> Ready | None:
        """The same with these values, apart from where; None where the library does not do that."""
        *operands, dest = buffers = self._buffers(values)
        try:
            call = type(self._call)(**self._fields(operands, self._given(values)))
        except GnomonError:
            return None
        if call.shape != dest.shape or not calls.supported(call) or not calls.fits(call, dest):
            return None
        offsets = [values.get(("offset", k), w.offset) for k, w in enumerate(self.where)]
        return Ready(Invoke(call, dest, self._saver, self._scale), buffers, offsets)

    def _fields(self, operands: Sequence[Buffer], static: tuple[Any, ...]) -> dict[str, Any]:
        roles, rest = self._call.roles(), iter(operands)
        found: dict[str, Any] = dict(zip(roles.static, static, strict=True))
        for name in roles.operands:
            value = getattr(self._call, name)
            if roles[name] == "many":
                found[name] = tuple([next(rest) for _ in value])
            else:
                found[name] = None if value is None else next(rest)
        return found

    def made(
        self, operands: Sequence[int], ready: Ready, times: float, owned: Sequence[Buffer] = ()
    ) -> list[Step]:
        """As `OfKernel.made`, of what is `ready`, which has the operands from now on."""
        for k, (buffer, at) in enumerate(zip(ready.buffers, operands, strict=True)):
            set_address(buffer, at + ready.offsets[k], owned[k] if owned else None)
        return calls.steps(ready.invoke)


def _leaves(invoke: Invoke) -> list[Any]:
    return [*invoke.call.children, invoke.dest]


def _numbers(x: Any, path: tuple[Hashable, ...] = ()) -> Iterator[tuple[tuple[Hashable, ...], int]]:
    """The whole numbers within tuples and records, each with where it is."""
    if type(x) is int:
        yield path, x
    for name, part in _parts(x):
        yield from _numbers(part, (*path, name))


def _with_numbers(x: Any, numbers: Mapping[tuple[Hashable, ...], int]) -> Any:
    """`x` with other numbers in these places."""
    if () in numbers:
        return numbers[()]
    inner: dict[Hashable, dict[tuple[Hashable, ...], int]] = {}
    for (first, *rest), n in numbers.items():
        inner.setdefault(first, {})[tuple(rest)] = n
    parts = [(name, part) for name, part in _parts(x) if name in inner]
    changed: Any = {name: _with_numbers(part, inner[name]) for name, part in parts}
    if isinstance(x, tuple):
        return tuple([changed.get(k, part) for k, part in enumerate(x)])
    return replace(x, **changed)


def _parts(x: Any) -> list[tuple[Hashable, Any]]:
    """What tuples and records consist of, by place or name."""
    if isinstance(x, tuple):
        return list(enumerate(x))
    known = hasattr(x, "__dataclass_fields__")
    return [(f.name, getattr(x, f.name)) for f in fields_of(type(x))] if known else []


if TYPE_CHECKING:
    OfStep: TypeAlias = OfKernel | OfCall | gemm.OfProduct


class Family:
    """What templates share, read off the `first` of them and its steps.

    >>> import numpy as np
    >>> from gnomon.expr.node import Buffer, set_address
    >>> from gnomon.runtime.statements.prepare import Store, prepare
    >>> def make(addresses):
    ...     source, dest = (Buffer((3,), address=a) for a in addresses)
    ...     return prepare([Store(dest, "saveto", source * 2.0)])
    >>> family = family_of(Template(make, 2))
    >>> a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    >>> family.member({Slot(0, ("dim", 0)): 5}, moved=40).run([a.ctypes.data, b.ctypes.data])
    >>> b
    array([0., 2., 4., 6., 8.], dtype=float32)
    """

    __slots__ = ("_numbers", "bytes", "count", "places", "steps")

    def __init__(self, first: Template, steps: Sequence[OfStep]) -> None:
        self.steps = steps
        self.count, self._numbers, self.bytes = first.count, first.numbers, first.bytes
        #: where addresses and numbers go; None where a library may take them elsewhere
        self.places = first.places if all(step.kernel for step in steps) else None

    def is_like(self, other: Family) -> bool:
        """Whether both do the same, but for sizes, strides and numbers."""
        if len(self.steps) != len(other.steps):
            return False
        pairs = zip(self.steps, other.steps, strict=True)
        return all(mine.is_like(theirs) for mine, theirs in pairs)

    def values(self) -> dict[Slot, int]:
        """What the first one's slots hold; sizes may be those of an axis."""
        found: dict[Slot, int] = {}
        for k, step in enumerate(self.steps):
            dims: dict[Hashable, int] = {("dim", number): n for number, n in enumerate(step.dims)}
            found |= {Slot(k, name): dims.get(name, n) for name, n in step.values().items()}
        return found

    def member(
        self, values: Mapping[Slot, int], moved: int, offsets: Sequence[int] = ()
    ) -> Template:
        """The template where sizes, strides and numbers, by slot, have other values.

        It moves `moved` bytes. Each operand begins `offsets` bytes behind its address, where these
        are given.
        """
        given: list[dict[Hashable, int]] = [{} for _ in self.steps]
        for (k, name), value in values.items():
            given[k][name] = value

        def make(addresses: Sequence[int], which: int = 0) -> list[Step]:
            made: list[Step] = []
            for step, mine in zip(self.steps, given, strict=True):
                # where places are known, the first one's stand-ins serve
                owners = [addresses[w.operand] for w in step.where] if places is None else ()
                ready: Any = step.ready(mine)  # a library does the same for other sizes that count
                made += step.made(owners, ready, moved / self.bytes)
            return made

        places = self.places
        if offsets and places is not None:
            places = [
                Place(block, word, k, offsets[k] if k < len(offsets) else offset)
                for block, word, k, offset in places
            ]
        return Template(make, self.count, self._numbers, places)


def family_of(template: Template) -> Family | None:
    """The family of a template that has not run yet; None where its work is something else than
    kernels and calls on operands, or takes numbers beside calls."""
    copy = template.reserve()
    template.give_back(copy)
    steps = read(copy.steps, partial(stood_for, count=template.count))
    if not steps:
        return None
    family = Family(template, steps)
    return family if family.places is not None or not template.numbers else None


def read(steps: Sequence[Step], locate: Locate) -> list[OfStep] | None:
    """What steps do on operands; None where one does something else, or has temporaries."""
    found: list[OfStep] = []
    for _, group in groupby(steps, lambda step: id(step.origin)):
        own = list(group)
        invoke: Invoke | None = own[0].origin
        parts: list[OfStep | None] = (
            [kernel_of(s, locate) for s in own] if invoke is None else [_call(invoke, locate)]
        )
        for part in parts:
            if part is None:
                return None
            found.append(part)
    return found


def _call(invoke: Invoke, locate: Locate) -> OfStep | None:
    leaves = every_of([b.address for b in _leaves(invoke)], locate)
    if leaves is None:
        return None
    what = calls.product_of(invoke)
    return OfCall(invoke, leaves) if what is None else gemm.OfProduct(what, leaves)
