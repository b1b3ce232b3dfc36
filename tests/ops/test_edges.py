"""Arrays that share memory and operators at their edges, as MXNet 1.9.1 has them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import statements

import gnomon as mx

RECORDED = json.loads((Path(statements.__file__).parent / "edges.json").read_text())


@pytest.mark.parametrize("case", statements.cases("edges"))
def test_as_mxnet(case):
    statements.check(mx, case, RECORDED[case])


@pytest.mark.parametrize("value", [0.3, -0.3, np.nan, np.inf, 2, 0, -0.0, True])
def test_what_is_not_0_is_true_wherever_it_is_written(value):
    wanted = bool(value)
    assert mx.nd.full((2,), value, dtype="bool").asnumpy().tolist() == [wanted] * 2
    assert mx.sym.full((2,), value, dtype="bool").eval()[0].asnumpy().tolist() == [wanted] * 2
    part, whole = (mx.nd.full((3,), not wanted, dtype="bool") for _ in range(2))
    part[1], whole[:] = value, value
    assert part.asnumpy().tolist() == [not wanted, wanted, not wanted]
    assert whole.asnumpy().tolist() == [wanted] * 3


@pytest.mark.parametrize("k", [0, -1, -3])
def test_less_than_one_of_the_first_is_all(k):
    x = mx.nd.array([[3, 1, 2]])
    assert mx.nd.topk(x, k=k, ret_typ="value").asnumpy().tolist() == [[3, 2, 1]]
    assert mx.nd.topk(x, k=k, axis=None).asnumpy().tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        ([3, 4], "int64", 5),
        ([1 << 20, 1 << 21], "int32", 2344687),
        ([100, 60], "uint8", 116),
        ([100, -70], "int8", 122),
        ([100, -100], "int8", 127),
    ],
)
def test_squares_of_integers_are_summed_beyond_them(values, dtype, wanted):
    found = mx.nd.norm(mx.nd.array(values, dtype=dtype))
    assert (found.dtype, found.asscalar()) == (np.dtype(dtype), wanted)


def test_infinity_stays_in_sums_without_nan():
    x = mx.nd.array([[np.inf, 1, np.nan], [-np.inf, np.nan, 2]])
    assert mx.nd.nansum(x, axis=1).asnumpy().tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_window_without_a_maximum_takes_its_first_element(value):
    x = mx.nd.full((1, 1, 2, 4), value)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    y.backward()
    assert y.asnumpy().ravel().tolist() == [np.finfo(np.float32).min] * 2
    assert x.grad.asnumpy().ravel().tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_windows_of_padding_alone_have_sums_of_0():
    x = mx.nd.array([[[1.0, 2, 3, 4, 5]]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Pooling(x, kernel=(2,), stride=(1,), pad=(3,), pool_type="sum")
    y.backward()
    assert y.asnumpy().tolist() == [[[0, 0, 1, 3, 5, 7, 9, 5, 0, 0]]]  # as MXNet's
    assert x.grad.asnumpy().tolist() == [[[2, 2, 2, 2, 2]]]
