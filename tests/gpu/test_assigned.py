"""Elements of arrays on GPUs written at picked places: `x[[0, 2]] = v`, `x[mask] = v`."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.runtime.statements import transfer

G, H = mx.gpu(0), mx.gpu(1)
X = np.random.default_rng(0).integers(-9, 9, (5, 4, 3)).astype("float32")
VIEWS = [
    lambda x: x,
    lambda x: x[::-1],
    lambda x: x[:, ::2],
    lambda x: x[1:4, :, 1:],
    lambda x: x[:, ::-1, ::-1],
]
KEYS = [
    lambda x: [0, 2],
    lambda x: [-1],
    lambda x: np.array([[1, 2], [2, 0]]),
    lambda x: np.array([2, 2, 1]),
    lambda x: ([0, 1], [1, 1]),
    lambda x: ([0, 1], slice(None), [1, 0]),
    lambda x: (slice(None), [1, 1]),
    lambda x: (..., [0, 1]),
    lambda x: (None, [1, 2]),
    lambda x: x > 0,
    lambda x: (x > 0)[:, :, 0],
    lambda x: (x > 0)[:, 0, 0],
    lambda x: x > 99,
]


def values(shape, dtype):
    """A number, an array of NumPy, one of ours and one that is stretched."""
    given = np.random.default_rng(1).integers(0, 9, shape).astype(dtype)
    return [7, given, given.astype("float64"), nd.array(given, ctx=G), given[..., :1]]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("view", VIEWS)
def test_as_numpy_writes(view, dtype):
    start = X.astype(dtype)
    for key in [k(view(X)) for k in KEYS]:
        for value in values(view(X)[key].shape, dtype):
            x, want = nd.array(start, ctx=G, dtype=dtype), start.copy()
            view(x)[key] = value
            view(want)[key] = value.asnumpy() if isinstance(value, nd.NDArray) else value
            np.testing.assert_array_equal(x.asnumpy(), want)


def test_nothing_is_read_back(monkeypatch):
    x, want = nd.array(X, ctx=G), X.copy()
    rows = nd.array(X[:2] * 2, ctx=G)
    with monkeypatch.context() as patched:
        patched.setattr(transfer, "fetched", None)
        x[[0, 2]], x[X > 3], x[[1], [2]], x[4] = rows, -1, X[0, 0], X[3]
    want[[0, 2]], want[X > 3], want[[1], [2]], want[4] = X[:2] * 2, -1, X[0, 0], X[3]
    np.testing.assert_array_equal(x.asnumpy(), want)


def test_keys_and_values_from_anywhere():
    x = nd.array(X, ctx=G)
    x[nd.array([0, 2], ctx=G)] = nd.ones((4, 3), ctx=H)
    x[nd.array([3, 1])] = nd.ones((1, 3)) * 2
    assert [int(n) for n in x[:, 0, 0].asnumpy()[:4]] == [1, 2, 1, 2]


@pytest.mark.parametrize(("key", "value", "error", "told"), [
    ([0, 1], np.zeros((3, 4, 3)), mx.base.ShapeError, r"'value'.*\(2, 4, 3\), got \(3, 4, 3\)"),
    ([], np.zeros(2), mx.base.ShapeError, r"'value'.*\(0, 4, 3\), got \(2,\)"),
    ([5], 0, IndexError, "index 5 is out of bounds for axis 0 with size 5"),
    (([0], [9]), 0, IndexError, "index 9 is out of bounds for axis 1 with size 4"),
    ("a", 0, mx.base.ParamError, "'key'"),
])  # fmt: skip
def test_refused(key, value, error, told):
    x = nd.array(X, ctx=G)
    with pytest.raises(error, match=told):
        x[key] = value
    np.testing.assert_array_equal(x.asnumpy(), X)
