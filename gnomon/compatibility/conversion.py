"""Arrays of one element that convert to a number, as all of NumPy's did until 2.4.

Programs for MXNet write `float(loss.asnumpy())` of a loss of shape `(1,)`. Where gnomon is
imported, NumPy stays as it is, and what `asnumpy` gives of one element is of a class that converts.
A program that runs as one for MXNet finds the NumPy that it knows: `restore` changes NumPy's own
class, as programs that look at types tell others from it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

_Values = np.ndarray[Any, Any]

_IMMUTABLE = 1 << 8
_FLAGS = object.__basicsize__ + 19 * ctypes.sizeof(ctypes.c_void_p)  # `tp_flags` in a class
_METHODS = ("__float__", "__int__", "__complex__")

_REFUSED = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 4)


class Convertible(np.ndarray[Any, Any]):
    """An array, `float`, `int` and `complex` of which take its one element whatever its axes.

    Parts of it and what is computed from it are convertible too. Pickles and copies by
    `copy.deepcopy` are plain arrays.

    >>> x = np.ones((1, 1)).view(Convertible)
    >>> float(x), "%.1f" % (x + 1), x
    (1.0, '2.0', array([[1.]]))
    """

    def _one(self) -> Any:
        if self.size != 1:
            raise TypeError(
                f"only arrays of one element convert to a number, got shape {self.shape}"
            )
        return self.item()

    def __float__(self) -> float:
        return float(self._one())

    def __int__(self) -> int:
        return int(self._one())

    def __complex__(self) -> complex:
        return complex(self._one())

    def __array_wrap__(
        self, array: _Values, context: Any = None, return_scalar: bool = False
    ) -> Any:
        made = super().__array_wrap__(array, context, False)
        return made[()] if return_scalar else made  # NumPy keeps scalars for its own class

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def convertible(values: _Values) -> _Values:
    """These values, in the class above where they have one element and NumPy's own refuses them."""
    if _REFUSED and values.size == 1 and values.ndim and not _is_lenient():
        return values.view(Convertible)
    return values


def _is_lenient() -> bool:
    """Whether NumPy's own class was changed."""
    return isinstance(np.ndarray.__float__, FunctionType)


def _lenient(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A conversion of arrays without axes, for all that have one element."""

    def converted(self: Any) -> Any:
        if self.ndim and self.size == 1:
            return convert(self.view(np.ndarray).reshape(()))
        return convert(self)

    return converted


def restore() -> None:
    """Have NumPy's arrays convert as before 2.4, if their class is laid out as it is known here.

    CPython refuses to change a class written in C by a flag, which is taken away meanwhile: it
    enters a function of Python in the class then as in any other.
    """
    flags = ctypes.c_ulong.from_address(id(np.ndarray) + _FLAGS)
    if not _REFUSED or _is_lenient() or flags.value != np.ndarray.__flags__:
        return
    methods = {name: _lenient(getattr(np.ndarray, name)) for name in _METHODS}
    flags.value &= ~_IMMUTABLE
    try:
        for name, method in methods.items():
            setattr(np.ndarray, name, method)
    finally:
        flags.value |= _IMMUTABLE
