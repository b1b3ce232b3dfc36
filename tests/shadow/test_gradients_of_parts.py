"""Gradients through parts of tensors, which are tensors again: what their memory says."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.base import GnomonError
from gnomon.expr.diff import vjp
from gnomon.expr.ext.concat import Concat
from gnomon.shadow import Tensor, concat, flip, slice, slice_ex

PARTS = {
    "slice_ex": lambda x: slice_ex(x, (0, 1), (2, 3)),
    "brackets": lambda x: x[0:2, 1:3],
    "slices": lambda x: slice(slice(x, 0, 2), 1, 3, 1),
    "mirrored": lambda x: slice_ex(flip(x, 0), (0, 1), (2, 3)),
    "backwards": lambda x: slice_ex(x, (2, 3), (0, None), (-1, -2)),
    "spaced": lambda x: slice_ex(x, (0, 1), (3, 4), (2, 2)),
    "rows": lambda x: x[1:3, 0:2],
    "two": lambda x: x[0:2, 1:3] * x[1:3, 0:2],
    "joined": lambda x: slice_ex(concat(x, x, 0), (1, 1), (3, 3)) * x[0:2, 0:2],
}


def stored(e):
    out = Tensor(np.zeros(e.shape, np.float32))
    out[:] = e
    return out.numpy()


@pytest.mark.parametrize("source", ["contiguous", "strided", "mirrored"])
@pytest.mark.parametrize("name", PARTS)
def test_gradients_of_parts(name, source):
    memory = np.arange(60, dtype=np.float32).reshape(6, 10)
    x = Tensor(memory[:3, :4].copy())
    if source != "contiguous":
        x = Tensor(memory)
        x = x[1:4, 2:6] if source == "strided" else flip(x[1:4, 2:6], 1)
    g = Tensor(np.arange(1, 5, dtype=np.float32).reshape(2, 2))
    (received,) = vjp([PARTS[name](x) * 3.0], [g], [x])
    found, values = stored(received), x.numpy()

    def total():
        return float((stored(PARTS[name](x) * 3.0) * g.numpy()).sum(dtype=float))

    for place in np.ndindex(3, 4):
        values[place] += 0.5
        above = total()
        values[place] -= 1
        assert found[place] == above - total()
        values[place] += 0.5


def test_a_row_and_a_tensor_of_another_shape():
    x = Tensor(np.ones((2, 3), np.float32))
    (received,) = vjp([x[1] * 2.0], [Tensor(np.ones(3, np.float32))], [x])
    assert stored(received).tolist() == [[0, 0, 0], [2, 2, 2]]


def test_other_parts_of_the_same_memory_have_nothing_to_do_with_it():
    x = Tensor(np.ones((2, 4), np.float32))
    left, right = x[:, 0:2], x[:, 2:4]
    assert vjp([right * 2.0], [left], [left]) == [None]


def test_more_than_the_input_is_refused():
    x = Tensor(np.ones((2, 4), np.float32))
    with pytest.raises(GnomonError, match="is no part of it"):
        vjp([x * 2.0], [x], [x[0:1]])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_gradient_of_a_split_is_a_join(order):
    x = Tensor(np.zeros((4, 6), "float32"))
    shares = [Tensor(np.full((4, 2), k + 1, "float32")) for k in range(3)]
    parts = [slice_ex(x, (0, 2 * k), (4, 2 * k + 2)) for k in order]
    (whole,) = vjp(parts, [shares[k] for k in order], [x])
    assert isinstance(whole, Concat)
    np.testing.assert_array_equal(stored(whole), np.repeat([[1, 1, 2, 2, 3, 3]], 4, 0))


def test_parts_that_leave_gaps_or_overlap_are_added():
    x = Tensor(np.zeros((1, 6), "float32"))
    ones = [Tensor(np.ones((1, 3), "float32")) for _ in range(2)]
    (whole,) = vjp([x[:, 1:4], x[:, 3:6]], ones, [x])
    np.testing.assert_array_equal(stored(whole), [[0, 1, 1, 2, 1, 1]])
    (whole,) = vjp([x[:, 0:2], x[:, 2:4]], [one[:, 0:2] for one in ones], [x])
    np.testing.assert_array_equal(stored(whole), [[1, 1, 1, 1, 0, 0]])
