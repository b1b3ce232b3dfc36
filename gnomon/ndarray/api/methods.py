"""Operators as methods of arrays: `x.sum(axis=1)` is `nd.sum(x, axis=1)`."""

from __future__ import annotations

import functools
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import GnomonError, ShapeError, check_kind, complaint, shown
from gnomon.context import Context
from gnomon.ground.frames import shorten
from gnomon.ndarray.api import functions
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array, empty
from gnomon.ndarray.core.layout import Layout, reshaped
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.lazy.applied import applying
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ops import registry
from gnomon.ops.derive import shapes_of
from gnomon.ops.infer import normal_axis


class Operator:
    """A method that applies the operator called `name`, with the array first.

    When it is first asked for, the operator's function takes its place among the methods.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: Any, owner: type) -> Any:
        function = functions.find("", self.name)
        setattr(Methods, self.name, function)
        return function.__get__(array, owner)


def cast(array: Any, dtype: Any) -> Any:
    """The elements in another dtype, as a new array."""
    return applying("Cast", dtype=dtypes.of(dtype).name)((array,))


def copied(array: Any, out: Any = None, ctx: Context | None = None) -> Any:
    """The elements in new memory, or in `out`."""
    if ctx is None:
        return applying("_copy")((array,), out)
    return invoke(registry.find("_copy").parse({}), (array,), out, ctx)


@functools.lru_cache(maxsize=4096, typed=True)
def _moved(layout: Layout, name: str, **given: Any) -> tuple[Any, Layout | None]:
    """An operator that moves no element, and the layout that it gives them, if there is one."""
    op = registry.find(name).parse(given)
    return op, reshaped(layout, tuple(shapes_of(op, (layout.shape,), (None,))[1][0]))


class Methods(Array):
    """The operators that arrays have as methods."""

    __slots__ = ()

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """The same elements under another shape: a view, where the memory allows it.

        0 keeps an axis, -1 is what remains, -2 all axes that remain, -3 joins two axes, -4 splits
        one into the next two. `reverse=True` matches from the right.

        Raises:
            ShapeError: the number of elements would differ.
            TypeError: another keyword.
        """
        given = kwargs.pop("shape", None)
        reverse = kwargs.pop("reverse", False)
        for name, value in kwargs.items():
            raise TypeError(complaint("reshape", name, "one of shape, reverse", shown(value)))
        if shape:
            given = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if given is None:
            raise TypeError("reshape: argument 'shape' is missing")
        return self._viewed("Reshape", shape=tuple(given), reverse=reverse)

    def _viewed(self, name: str, **given: Any) -> Any:
        """The array under the shape that an operator, which moves no element, gives it."""
        try:
            op, layout = _moved(self._layout, name, **given)
        except GnomonError as error:
            shorten(error)
            raise
        except TypeError:  # a list has no hash
            op, layout = _moved.__wrapped__(self._layout, name, **given)
        if layout is None or (mode.recording and self._tape is not None):
            return invoke(op, (self,))
        return self._at(self._chunk, layout, self._offset)

    def expand_dims(self, axis: int, inplace: bool = False) -> Any:
        """A copy of the array with an axis of 1 at `axis`; a view of it if `inplace`."""
        return self._reshaped(inplace, "expand_dims", axis=axis)

    def flatten(self, inplace: bool = False) -> Any:
        """A copy of the array with all axes but the first joined; a view of it if `inplace`."""
        return self._reshaped(inplace, "Flatten")

    def squeeze(self, axis: Any = None, inplace: bool = False) -> Any:
        """A copy of the array without axes of 1; a view of it if `inplace`."""
        given = {} if axis is None else {"axis": tuple(axis) if isinstance(axis, list) else axis}
        return self._reshaped(inplace, "squeeze", **given)

    def _reshaped(self, inplace: bool, name: str, **given: Any) -> Any:
        """The array by an operator that moves no element: a view if `inplace`, else a copy."""
        return self._viewed(name, **given) if inplace else functions.find("", name)(self, **given)

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return self if self.ndim < 2 else self.transpose()

    def transpose(self, *axes: Any, **kwargs: Any) -> Any:
        """The axes in another order, reversed by default."""
        given = kwargs.pop("axes", None)
        if axes:
            given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return functions.find("", "transpose")(self, axes=tuple(given or ()), **kwargs)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The elements in another dtype; itself where it is the same and `copy` is False.

        None stands for float32, as where arrays are made.
        """
        wanted = dtypes.wanted(dtype)
        if wanted is not self._dtype:
            return cast(self, wanted)
        return copied(self) if copy else self

    def copy(self) -> Any:
        """The elements in new memory."""
        return copied(self)

    def copyto(self, other: Any) -> Any:
        """The elements in the array `other`, or in a new one on the context `other`.

        Raises:
            ShapeError: `other` has another shape.
            TypeError: `other` is neither an array nor a context.
        """
        if isinstance(other, Context):
            return copied(self, empty(self.shape, self._dtype, other))
        if not isinstance(other, Array):
            raise TypeError(complaint("copyto", "other", "an NDArray or a Context", repr(other)))
        if other is self:
            return self
        if other.shape != self.shape:
            got = f"shape {other.shape}"
            raise ShapeError(complaint("copyto", "other", f"shape {self.shape}", got))
        return copied(self.astype(other._dtype, copy=False), other)

    def as_in_context(self, context: Context) -> Any:
        """The array on a device: itself where it is there already, else a copy."""
        check_kind("as_in_context", "context", context, Context, "a Context")
        return self if context == self.context else self.copyto(context)

    as_in_ctx = as_in_context

    def broadcast_to(self, shape: Any) -> Any:
        """The array with axes of 1 stretched to `shape`; axes meet from the right.

        Raises:
            ShapeError: an axis of another size than 1 would be stretched.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        own = (1,) * (len(shape) - self.ndim) + self.shape
        if len(own) > len(shape) or any(a not in (1, b) for a, b in zip(own, shape, strict=False)):
            expected = f"a shape that {self.shape} stretches to"
            raise ShapeError(complaint("broadcast_to", "shape", expected, shape))
        source = self if own == self.shape else self.reshape(own)
        return functions.find("", "broadcast_to")(source, shape=shape)

    def broadcast_like(self, other: Any) -> Any:
        """The array with axes of 1 stretched to the shape of `other`."""
        return self.broadcast_to(other.shape)

    def split_v2(self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
        """Parts along `axis`: so many equal ones, or cut before each of these indices."""
        return split_v2(self, indices_or_sections, axis, squeeze_axis)

    def tostype(self, stype: str) -> Any:
        """The array in another storage.

        Raises:
            ParamError: there is no such storage.
        """
        assert storage_types.cast is not None
        return storage_types.cast(self, stype)


def split_v2(ary: Any, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Parts of an array along `axis`: so many equal ones, or cut before each of these indices.

    Raises:
        TypeError: neither a number nor a tuple of them.
        ShapeError: no equal parts.
    """
    given: dict[str, Any] = {"axis": axis, "squeeze_axis": squeeze_axis, "indices": ()}
    if isinstance(indices_or_sections, int):
        given["sections"] = count = indices_or_sections
        check_kind("split_v2", "ary", ary, Array, "an NDArray")
        size = ary.shape[normal_axis("split_v2", axis, ary.ndim)]
        if count > 0 and size % count:
            expected = f"a multiple of {count} along axis {axis}"
            raise ShapeError(complaint("split_v2", "ary", expected, f"shape {ary.shape}"))
    elif isinstance(indices_or_sections, (tuple, list)):
        given["indices"] = (0, *indices_or_sections)
    else:
        expected, got = "an int or a tuple of ints", repr(indices_or_sections)
        raise TypeError(complaint("split_v2", "indices_or_sections", expected, got))
    return invoke(registry.find("_split_v2").parse(given), (ary,))


NAMES = """
abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort
broadcast_axes cbrt ceil clip cos cosh degrees depth_to_space diag exp expm1 fix flip floor log
log10 log1p log2 log_softmax max mean min nanprod nansum norm one_hot ones_like pad pick prod
radians rcbrt reciprocal relu repeat reshape_like rint round rsqrt shape_array sigmoid sign sin
sinh size_array slice slice_axis slice_like softmax softmin sort space_to_depth split sqrt square
sum swapaxes take tan tanh tile topk trunc zeros_like
""".split()

for _name in NAMES:
    setattr(Methods, _name, Operator(_name))
