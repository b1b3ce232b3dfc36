"""Indexing: basic keys give views that write through, all others look elements up.

A basic key holds integers, slices, `...` and None; its view is other sizes and strides over the
same memory. While recording it is entered on the tape as the operators it is made of. Every other
key is turned by NumPy into the positions of the elements it picks, in the order of the result;
`take` reads them, so that gradients follow.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon import engine
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError, complaint, shown
from gnomon.ground.record import put
from gnomon.ndarray.api.arithmetic import is_number
from gnomon.ndarray.api.methods import cast, copied
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.layout import Layout, dense, strided
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import Leaf, placed
from gnomon.ndarray.core.values import converted
from gnomon.ndarray.lazy import pending
from gnomon.ndarray.lazy.applied import applying
from gnomon.ndarray.lazy.fused import is_lost
from gnomon.ndarray.lazy.invoke import check_write, invoke, written_anew
from gnomon.ops import registry
from gnomon.ops.infer import zero_is_unknown

BASIC = (int, np.integer, slice, type(None), type(Ellipsis))
View = tuple[tuple[int, ...], tuple[int, ...], int]

_ALL = slice(None)
_BOUNDS = frozenset((int, type(None)))
_PLACES_KEPT = 4096
_places: dict[Any, tuple[Layout, int]] = {}  # of views that were asked for


def is_basic(key: Any) -> bool:
    """Whether a key gives a view."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(isinstance(part, BASIC) and not isinstance(part, (bool, np.bool_)) for part in parts)


def spelled_out(key: Any, ndim: int) -> list[Any]:
    """A basic key with `...` replaced, one entry an axis beside those of None.

    Raises:
        IndexError: too many entries, or several `...`.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if named > ndim:
        raise IndexError(f"too many indices: {named} for an array of {ndim} axes")
    at = dots[0] if dots else len(parts)
    return [*parts[:at], *[slice(None)] * (ndim - named), *parts[at + 1 :]]


def view_of(shape: tuple[int, ...], steps: tuple[int, ...], key: Any) -> View:
    """Shape, strides and first element of the view that a basic key gives.

    >>> view_of((4, 5), (5, 1), (slice(None, None, -1), 2))
    ((4,), (-5,), 17)

    Raises:
        IndexError: an integer outside of its axis.
    """
    axis, first = 0, 0
    sizes: list[int] = []
    strides: list[int] = []
    for part in spelled_out(key, len(shape)):
        if part is None:
            sizes.append(1)
            strides.append(0)
            continue
        size, step = shape[axis], steps[axis]
        axis += 1
        if isinstance(part, slice):
            start, stop, stride = part.indices(size)
            count = len(range(start, stop, stride))
            sizes.append(count)
            strides.append(step * stride)
            first += start * step if count else 0
        else:
            first += _position(part, size, axis - 1) * step
    return tuple(sizes), tuple(strides), first


def _place(layout: Layout, key: Any) -> tuple[Layout, int] | None:
    """The layout of a key's view, and how many bytes further it begins; None without a view.

    Raises:
        IndexError: as `view_of`.
    """
    name = layout, key.__class__, _frozen(key)
    found = _places.get(name)
    if found is None and is_basic(key):
        shape, strides, first = view_of(layout.shape, layout.steps(), key)
        found = strided(shape, strides, layout.dtype), first * layout.dtype.size
        if name[2] is not None:
            if len(_places) >= _PLACES_KEPT:
                _places.clear()
            _places[name] = found
    return found


def _frozen(key: Any) -> Any:
    """A key of integers and slices as something with a hash; None for any other."""
    kind = key.__class__
    if kind is int:
        return key
    if kind is slice:
        bounds = key.start, key.stop, key.step
        return bounds if _BOUNDS.issuperset(map(type, bounds)) else None
    if kind is tuple:
        parts = [(part.__class__, _frozen(part)) for part in key]
        return None if any(part is None for _, part in parts) else tuple(parts)
    return None


def _position(index: Any, size: int, axis: int) -> int:
    """An index counted from the front."""
    at = operator.index(index)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of bounds for axis {axis} with size {size}")
    return at % size


def positions(shape: tuple[int, ...], key: Any) -> np.ndarray[Any, Any]:
    """The places, in row-major order, of the elements that a key picks."""
    parts = _parts(key)
    places = np.asarray(_spread(np.int64(0), shape)[parts])
    step = 1
    for axis in reversed(range(len(shape))):
        along = np.arange(shape[axis], dtype=np.int64) * step
        along = along.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        places = places + _spread(along, shape)[parts]
        step *= shape[axis]
    return places


def _spread(values: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """NumPy's values in an array of a shape, which takes no memory for it."""
    return np.broadcast_to(values, shape)


def _parts(key: Any) -> tuple[Any, ...]:
    """A key as NumPy takes it."""
    return tuple(map(_as_numpy, key if isinstance(key, tuple) else (key,)))


def _as_numpy(part: Any) -> Any:
    """A part of a key as NumPy takes it: arrays of ours are read, their numbers made integers.

    Raises:
        ParamError: it is no part of a key.
    """
    if not isinstance(part, (*BASIC, bool, np.bool_, list, tuple, range, np.ndarray, Array)):
        expected = "integers, slices, '...', None, lists and arrays"
        raise ParamError(complaint("NDArray", "key", expected, shown(part)))
    if isinstance(part, Array):
        part = part.asnumpy()
    elif isinstance(part, (list, tuple)):
        part = np.asarray([x.asnumpy() if isinstance(x, Array) else x for x in part])
    if isinstance(part, np.ndarray) and part.dtype.kind not in "biu":
        return part.astype(np.int64)
    return part


class Indexing(Array):
    """`x[key]` and `x[key] = value`."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """The elements that `key` picks: a view for integers, slices, `...` and None.

        One element comes as an array of shape (1,), as MXNet gives it, within `mx.util.np_shape`
        of shape (); and `x[:]` is `x`.

        Raises:
            IndexError: too many indices, or one outside of its axis.
            ParamError: an index is of no kind that indexes.
        """
        if key.__class__ is slice and key == _ALL:
            return self
        found = _place(self._layout, key)
        if found is None:
            return self._picked(key)
        if mode.recording and self._tape is not None:
            return self._recorded(key)
        layout, offset = found
        if not layout.shape and self._layout.shape and zero_is_unknown():
            layout = dense((1,), layout.dtype)
        return self._at(self._chunk, layout, self._offset + offset)

    def _recorded(self, key: Any) -> Any:
        """The elements that a basic key picks, by operators that the tape knows."""
        parts = spelled_out(key, self.ndim)
        named = [part for part in parts if part is not None]
        begin, end, step = [], [], []
        for axis, part in enumerate(named):
            if not isinstance(part, slice):
                at = _position(part, self.shape[axis], axis)
                part = slice(at, at + 1)
            bounds = part.indices(self.shape[axis])
            begin.append(bounds[0])
            end.append(None if bounds[1] < 0 else bounds[1])
            step.append(bounds[2])
        given = {"begin": tuple(begin), "end": tuple(end), "step": tuple(step)}
        found = invoke(registry.find("slice").parse(given), (self,)) if named else self
        shape = view_of(self.shape, self._layout.steps(), key)[0]
        shape = shape or (1,) if zero_is_unknown() else shape
        return found if found.shape == shape else found.reshape(shape)

    def _picked(self, key: Any) -> Any:
        """The elements at the positions that a key which is not basic picks."""
        rows = self._rows(key)
        if rows is not None:
            return taking()((self, Array._around(rows, self.context)))
        found = Array._around(positions(self.shape, key), self.context)
        return taking()((self.reshape((-1,)), found))

    def _rows(self, key: Any) -> np.ndarray[Any, Any] | None:
        """The numbers of the rows where `key` is one array of integers, else None."""
        key = None if isinstance(key, tuple) else _as_numpy(key)
        if not isinstance(key, np.ndarray) or key.dtype.kind == "b" or not self.shape:
            return None
        size = self.shape[0]
        outside = key[(key < -size) | (key >= size)]
        if outside.size:
            _position(outside[0], size, 0)
        return np.where(key < 0, key + size, key).astype(np.int64)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a number, an array or what NumPy makes one of; axes of 1 are stretched.

        Raises:
            IndexError: too many indices, or one outside of its axis.
            ShapeError: the value does not stretch to what is written.
            GnomonError: while recording, the array is on the tape, or a value that is there is
                written into a part of it. Written into all of it, it takes its place on the tape.
        """
        if mode.recording and (self._tape is not None or getattr(value, "_tape", None) is not None):
            self._write_recorded(key, value)
        elif isinstance(key, slice) and key == _ALL:
            self._assign(value)  # x[:] is all of x, which may have no axis
        else:
            found = _place(self._layout, key)
            if found is None:
                self._scatter(key, value)
            else:
                self._at(self._chunk, found[0], self._offset + found[1])._assign(value)

    def _write_recorded(self, key: Any, value: Any) -> None:
        """Write while recording, where this array or the value is on the tape.

        A variable may get other elements, all of them, that are no value of the tape's.
        """
        every = isinstance(key, slice) and key == _ALL
        layout, offset = (self._layout, 0) if every else _place(self._layout, key) or (None, 0)
        whole = layout is not None and not offset and layout.size == self._layout.size
        if not (whole and isinstance(self._tape, Leaf) and isinstance(value, np.ndarray)):
            if whole and value is self:
                return
            check_write("NDArray.__setitem__", "self", self)
        if layout is None or not whole:
            expected = "all elements, while recording a value that is on the tape"
            raise GnomonError(complaint("NDArray.__setitem__", "key", expected, shown(key)))
        view = self._at(self._chunk, layout, self._offset)
        view._assign(value)
        if view._tape is not None:
            whole = view if layout is self._layout else view.reshape(self.shape)
            put(self, "_tape", placed(whole))

    def _assign(self, value: Any) -> None:
        """Write into every element."""
        if not self._layout.size and not mode.recording:
            return
        if isinstance(value, Array):
            if value._layout is self._layout:
                self._copy_from(value)
            else:
                self._take_over(value)
        elif is_number(value):
            self._fill(value)
        else:
            self._write(self._stretched(self._values(value)))

    def _values(self, value: Any) -> np.ndarray[Any, Any]:
        """What a user gives, in this array's dtype where that takes more than to copy it."""
        values = _numbers(np.asarray(value))
        same = isinstance(value, np.ndarray) and value.dtype.kind in "iub"
        if same or self._dtype.kind not in "iu":
            return values
        try:
            return converted(value, self._dtype)
        except TypeError:  # None, which is NaN among floats alone
            raise _no_numbers(np.asarray(value)) from None

    def _fill(self, value: Any) -> None:
        layout = self._layout
        given = {"shape": layout.shape, "dtype": layout.dtype.name}
        if value or (value.__class__ is not int and math.copysign(1.0, value.real) < 0):  # -0.0
            applying("_full", **given, value=value)((), self)
        else:
            applying("_zeros", **given)((), self)

    def _take_over(self, value: Any) -> None:
        """Copy an array of ours here, stretched and converted where that is needed."""
        if value._dtype is not self._dtype:
            value = cast(value, self._dtype)
        shape = without_ones_in_front(value.shape, self.ndim)
        if shape != value.shape:
            value = value.reshape(shape)
        if shape == self.shape:
            self._copy_from(value)
            return
        _check_stretch(shape, self.shape)
        value = value.as_in_context(self.context)
        spread = value.reshape((1,) * (self.ndim - len(shape)) + shape)
        invoke(registry.find("broadcast_to").parse({"shape": self.shape}), (spread,), self)

    def _copy_from(self, value: Any) -> None:
        """Copy an array of this one's shape and dtype here; one that is pending comes at once."""
        waits = value._pending_in is not None and self._pending_in is None
        waits = waits and not (mode.recording and value._tape is not None)
        if waits and (value._pending_in.ctx is self._chunk.ctx or value.context == self.context):
            pending.assign(value, self)
        else:
            copied(value, self)

    def _stretched(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """NumPy's values in this array's shape and dtype."""
        shape = without_ones_in_front(values.shape, self.ndim)
        _check_stretch(shape, self.shape)
        return np.broadcast_to(values.reshape(shape), self.shape)

    def _write(self, values: np.ndarray[Any, Any]) -> None:
        """Copy NumPy's values here; they may change as soon as this returns."""

        if is_lost(self):
            written_anew([self], lambda outputs: outputs[0]._write(values))
            return
        self._change(lambda here: np.copyto(here, values, casting="unsafe"), "copy from NumPy")

    def _change(
        self,
        change: Callable[[np.ndarray[Any, Any]], object],
        name: str,
        reads: Sequence[Any] | None = None,
    ) -> None:
        """Have the elements changed through a view of NumPy's, and wait until that is done.

        Where all that it `reads` are these arrays, and no other code looks at this one's memory, it
        is only pushed.
        """
        task = engine.Repeatable(lambda run_ctx: change(self._numpy()))
        pushed, const = engine.get(), tuple([x._var for x in reads or ()])
        pushed.push_inline(task, self.context, const, (self._var,), name=name)
        if reads is None or self._chunk.shared:
            pushed.wait_for_var(self._var)

    def _scatter(self, key: Any, value: Any) -> None:
        """Write at the places that a key which is not basic picks.

        An array on other memory that only we change is read in its turn; the key, and any other
        value, now.
        """
        parts = tuple([x.copy() if isinstance(x, np.ndarray) else x for x in _parts(key)])
        picked = _spread(np.int8(0), self.shape)[parts].shape
        reads = [value] if self._is_beside(value) else []
        if not reads:
            value = np.array(self._values(value.asnumpy() if isinstance(value, Array) else value))
        shape = without_ones_in_front(value.shape, len(picked))
        _check_stretch(shape, picked)

        def write(target: np.ndarray[Any, Any]) -> None:
            values = self._values(value._numpy()) if reads else value
            target[parts] = values.reshape(shape)

        self._change(write, "scatter from NumPy", reads)

    def _is_beside(self, value: Any) -> bool:
        """Whether a value is a dense array here, on other memory, which only we change."""
        dense = isinstance(value, Array) and value.stype == "default"
        beside = dense and value.context == self.context and value._var is not self._var
        return beside and not value._chunk.shared

    def slice_assign(self, rhs: Any, begin: Any, end: Any, step: Any) -> Any:
        """This array, after `rhs` was written from `begin` to before `end` in steps."""
        self[_slices(begin, end, step)] = rhs
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any) -> Any:
        """This array, after a number was written from `begin` to before `end` in steps."""
        self[_slices(begin, end, step)] = value
        return self


def _numbers(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy's values where they are real numbers; an error before anything is written."""
    kind = values.dtype.kind
    if kind in "biuf" or values.dtype.name == "bfloat16":
        return values
    try:
        if kind == "O":
            return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise _no_numbers(values)


def _no_numbers(values: np.ndarray[Any, Any]) -> DTypeError:
    """The error about values that are no real numbers."""
    got = f"{values.dtype.name} of shape {values.shape}"
    if values.dtype.kind == "O":
        got = shown(values.tolist())
    return DTypeError(complaint("NDArray.__setitem__", "value", "real numbers", got))


def taking() -> Any:
    """The operator that looks rows up."""
    return applying("take", axis=0, mode="clip")


def _slices(begin: Any, end: Any, step: Any) -> tuple[slice, ...]:
    """The key of a slice whose bounds are given an axis an entry."""
    steps = step or (None,) * len(begin)
    return tuple(slice(*bounds) for bounds in zip(begin, end, steps, strict=True))


def _check_stretch(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Refuse the shape of a value that does not stretch to the one of what is written."""
    own = wanted[len(wanted) - len(shape) :] if len(shape) <= len(wanted) else ()
    if len(shape) > len(wanted) or any(a not in (1, b) for a, b in zip(shape, own, strict=True)):
        expected = f"a shape that stretches to {wanted}"
        raise ShapeError(complaint("NDArray.__setitem__", "value", expected, shape))


def without_ones_in_front(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """`shape` without the leading axes of 1 that `ndim` axes have no room for."""
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return shape
