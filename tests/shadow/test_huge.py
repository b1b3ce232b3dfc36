"""More than 2^31 elements: every index is a 64-bit one."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.shadow import Tensor

N = 2**31 + 77  # a byte each: two arrays take 4 GB
MARKS = (0, 1, 2**31 - 1, 2**31, 2**31 + 1, N - 1)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def marked() -> np.ndarray:
    """Zeros, and small numbers at both ends and around 2^31."""
    x = np.zeros(N, np.uint8)
    for number, k in enumerate(MARKS, 1):
        x[k] = number
    return x


def test_maps(marked: np.ndarray) -> None:
    out = np.empty(N, np.uint8)
    Tensor(out)[:] = Tensor(marked) + 3
    assert [int(out[k]) for k in MARKS] == [4, 5, 6, 7, 8, 9]
    out[list(MARKS)] = 3
    assert out[: 2**31 - 1].min() == out[2**31 + 2 :].max() == 3
    backwards = Tensor(out[::-1])
    backwards[:] = Tensor(marked)
    assert [int(out[N - 1 - k]) for k in MARKS] == [1, 2, 3, 4, 5, 6]


def test_rows_and_columns(marked: np.ndarray) -> None:
    """Two axes, one of them long; broadcast along either, and turned."""
    long = N // 2
    x = marked[: 2 * long].reshape(2, long)
    row, column = np.ones(long, np.uint8), np.array([[10], [20]], np.uint8)
    row[-1] = 2
    e = Tensor(x) + shadow.broadcast_to(Tensor(row), x.shape)
    e = e + shadow.broadcast_to(Tensor(column), x.shape)
    out = np.empty((2, long), np.uint8)
    Tensor(out)[:] = e
    for r, c in ((0, 0), (0, 1), (0, long - 1), (1, 0), (1, 2**31 - long), (1, long - 1)):
        assert out[r, c] == x[r, c] + row[c] + column[r, 0]
    Tensor(out.reshape(long, 2).T)[:] = Tensor(x)
    assert (
        out.reshape(long, 2)[[0, 1, 2**31 - long, long - 1]] == x.T[[0, 1, 2**31 - long, -1]]
    ).all()


def test_reductions_and_gathers(marked: np.ndarray) -> None:
    x = Tensor(marked)
    where = np.zeros((), np.int64)
    Tensor(where).assign(shadow.arg_reduce(x, "max", 0))
    assert where == N - 1
    total = np.zeros((), np.int64)
    Tensor(total).assign(shadow.reduce(shadow.tcast("int64", x), "sum", 0))
    assert total == 21
    index, found = np.array(MARKS, np.int64), np.zeros((6, 1), np.uint8)
    Tensor(found).assign(shadow.take(Tensor(index), shadow.reshape(x, (N, 1))))
    assert found[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
