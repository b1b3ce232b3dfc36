"""NumPy's functions of expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gnomon.shadow import Tensor, reduce

X = np.array([[0.25, 0.5, 0.75], [0.1, 0.2, 0.9]], np.float32)
NAMES = "exp absolute fabs negative sqrt deg2rad rad2deg arctanh square rint"
PAIRS = "add subtract multiply divide power maximum minimum hypot less greater_equal not_equal"


def stored(expression: Any) -> np.ndarray[Any, Any]:
    out = Tensor(np.zeros(expression.shape, expression.dtype.numpy))
    out[:] = expression
    return out.numpy()


@pytest.mark.parametrize("name", NAMES.split())
def test_functions_of_one_are_lazy_and_equal_numpy(name: str) -> None:
    ufunc = getattr(np, name)
    made = ufunc(Tensor(X) + 0.0)
    assert not isinstance(made, np.ndarray)
    np.testing.assert_allclose(stored(made), ufunc(X), rtol=1e-6)


@pytest.mark.parametrize("name", PAIRS.split())
def test_functions_of_two_take_numbers_on_either_side(name: str) -> None:
    ufunc, t = getattr(np, name), Tensor(X)
    np.testing.assert_allclose(stored(ufunc(t, Tensor(X))), ufunc(X, X), rtol=1e-6)
    np.testing.assert_allclose(stored(ufunc(t, 0.5)), ufunc(X, np.float32(0.5)), rtol=1e-6)
    np.testing.assert_allclose(stored(ufunc(np.float32(2), t)), ufunc(np.float32(2), X), rtol=1e-6)


def test_what_has_no_meaning_is_refused_with_a_hint() -> None:
    t = Tensor(X)
    with pytest.raises(TypeError, match=r"np\.add\.reduce takes no expressions.*shadow\.reduce"):
        np.add.reduce(t)
    with pytest.raises(
        TypeError, match=r"takes no out: assign the result, as in out\[:\] = fn\.exp"
    ):
        np.exp(t, out=np.empty_like(X))
    with pytest.raises(TypeError, match=r"np\.spacing takes no expressions.*shadow\.op"):
        np.spacing(t)
    with pytest.raises(TypeError, match=r"there is fn\.floor\(a / b\)"):
        np.floor_divide(t, 2.0)
    with pytest.raises(TypeError, match="Tensor wraps arrays"):
        np.add(X, t)


def test_an_unknown_keyword_gets_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"reduce\(.*'axis'; did you mean 'axes'"):
        reduce(Tensor(X), "sum", axis=0)
