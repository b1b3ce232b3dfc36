"""NumPy arrays of one element that convert to a number, as all such did before NumPy 2.4."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]

REFUSED = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 4)


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
        self, array: Values, context: Any = None, return_scalar: bool = False
    ) -> Any:
        made = super().__array_wrap__(array, context, False)
        return made[()] if return_scalar else made  # NumPy keeps scalars for its own class

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def convertible(values: Values) -> Values:
    """These values, in the class above where NumPy's own no longer converts."""
    return values.view(Convertible) if REFUSED and values.ndim else values
