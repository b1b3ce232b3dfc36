"""Sorting, looking up by several indices, sequences: as recorded, and every request."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import statements

import gnomon as mx
from gnomon import nd

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "lookup.json").read_text())


@pytest.mark.parametrize("case", statements.cases("lookup"))
def test_statement(case):
    statements.check(mx, case, RECORDED[case])


LENGTHS = [1, 3, 2]
OPERATORS = {
    "sort": ({"data": (3, 4)}, {"axis": 0}),
    "argsort": ({"data": (3, 4)}, {}),
    "topk": ({"data": (3, 4)}, {"k": 2, "ret_typ": "value"}),
    "gather_nd": ({"data": (3, 4), "indices": [[0, 2, 2], [1, 3, 3]]}, {}),
    "scatter_nd": ({"data": (3,), "indices": [[0, 2, 1], [1, 3, 3]]}, {"shape": (3, 4)}),
    "diag": ({"data": (3, 4)}, {"k": 1}),
    "SequenceMask": (
        {"data": (4, 3, 2), "sequence_length": LENGTHS},
        {"use_sequence_length": True},
    ),
    "SequenceLast": (
        {"data": (3, 4, 2), "sequence_length": LENGTHS},
        {"use_sequence_length": True, "axis": 1},
    ),
    "SequenceReverse": (
        {"data": (4, 3), "sequence_length": LENGTHS},
        {"use_sequence_length": True},
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_requests_and_derivatives(name, dtype):
    inputs, params = OPERATORS[name]
    draw = np.random.default_rng(4)
    values = {
        k: draw.permutation(int(np.prod(v))).reshape(v) * 0.5 if isinstance(v, tuple) else v
        for k, v in inputs.items()
    }
    arrays = {k: nd.array(v, dtype=dtype) for k, v in values.items()}
    net = getattr(mx.sym, name)(*map(mx.sym.Variable, arrays), **params)
    gradients = {}
    for req in ("write", "add", "null"):
        grad = nd.full(arrays["data"].shape, 7, dtype=dtype)
        bound = net.bind(mx.cpu(), arrays, {"data": grad}, {"data": req})
        out = bound.forward(is_train=True)[0]
        head = nd.array(np.arange(out.size).reshape(out.shape), dtype=out.dtype)
        bound.backward(head)
        gradients[req] = grad.asnumpy()
    assert (gradients["null"] == 7).all()
    np.testing.assert_array_equal(gradients["add"], gradients["write"] + 7)
    step, at = 0.125, (0,) * arrays["data"].ndim
    moved = arrays["data"].copy()
    moved[at] += step
    other = net.bind(mx.cpu(), {**arrays, "data": moved}).forward()[0]
    slope = ((other - out).asnumpy() * head.asnumpy()).sum() / step
    np.testing.assert_allclose(gradients["write"][at], slope, 1e-4, 1e-4)


def test_not_a_number_comes_last():
    x = nd.array([3, float("nan"), 1, 2])
    np.testing.assert_array_equal(x.sort().asnumpy(), [1, 2, 3, np.nan])
    np.testing.assert_array_equal(x.sort(is_ascend=False).asnumpy(), [3, 2, 1, np.nan])


def test_what_is_refused():
    with pytest.raises(mx.MXNetError, match="topk: argument 'k': expected at most 2"):
        nd.topk(nd.ones((3, 2)), k=3)
    with pytest.raises(mx.MXNetError, match="gather_nd: argument 'indices'"):
        nd.gather_nd(nd.ones((3,)), nd.zeros((2, 1)))
    with pytest.raises(mx.MXNetError, match="SequenceMask: argument 'axis': expected 0 or 1"):
        nd.SequenceMask(nd.ones((2, 2)), axis=2)


def test_positions_and_indices_are_each_others_inverse():
    shape = (3, 1, 5)
    places = nd.arange(15, dtype="int64").reshape((5, 3))
    rows = nd.unravel_index(places, shape=shape)
    expected = np.array(np.unravel_index(places.asnumpy(), shape))
    np.testing.assert_array_equal(rows.asnumpy(), expected)
    back = nd.ravel_multi_index(rows.reshape((3, -1)), shape=shape)
    np.testing.assert_array_equal(back.asnumpy(), np.arange(15))
    assert nd.unravel_index(nd.zeros((2, 2))[:, 2:], shape=shape).shape == (3, 2, 0)
    assert nd.ravel_multi_index(nd.zeros((3, 2))[:, 2:], shape=shape).shape == (0,)
    for name in ("ravel_multi_index", "unravel_index"):
        for wrong in ((3, -1), ()):
            with pytest.raises(mx.MXNetError, match=f"{name}: argument 'shape': expected a shape"):
                getattr(nd, name)(nd.zeros((2, 2)), shape=wrong)


def test_products_of_rows_have_gradients():
    shapes = {"arg0": (2, 3), "arg1": (4, 3), "arg2": (1, 3)}
    draw = np.random.default_rng(1)
    values = {k: draw.normal(size=s) for k, s in shapes.items()}
    net = mx.sym.khatri_rao(*map(mx.sym.Variable, values))
    assert net.infer_shape(arg0=(2, 3), arg1=(4, 0), arg2=(1, 0))[1] == [(8, 3)]
    arrays = {k: nd.array(v, dtype="float64") for k, v in values.items()}
    grads = {k: nd.zeros(v.shape, dtype="float64") for k, v in values.items()}
    bound = net.bind(mx.cpu(), arrays, grads)
    whole = np.einsum("ac,bc,dc->abdc", *values.values())
    np.testing.assert_allclose(bound.forward()[0].asnumpy(), whole.reshape(8, 3))
    head = draw.normal(size=(8, 3))
    bound.backward(nd.array(head, dtype="float64"))
    wanted = np.einsum("abdc,ac,dc->bc", head.reshape(2, 4, 1, 3), values["arg0"], values["arg2"])
    np.testing.assert_allclose(grads["arg1"].asnumpy(), wanted)
    with pytest.raises(mx.MXNetError, match="khatri_rao"):
        nd.khatri_rao(nd.ones((2, 3)), nd.ones((2, 4)))


def test_filled_elements_have_gradients():
    rows, value = nd.array([[np.inf, 1, 2], [3, np.nan, 5]]), nd.array([7, 8])
    for x in (rows, value):
        x.attach_grad()
    with mx.autograd.record():
        y = nd.fill_element_0index(rows, value, nd.array([0, 4]))
    y.backward(nd.arange(6).reshape((2, 3)))
    np.testing.assert_array_equal(y.asnumpy(), [[7, 1, 2], [3, np.nan, 5]])
    np.testing.assert_array_equal(rows.grad.asnumpy(), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(value.grad.asnumpy(), [0, 0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 7)])
def test_finite(dtype, shape):
    x = nd.zeros((14, 7), dtype=dtype)[::2, ::-1]
    x = x[: shape[0], : shape[1]] if len(shape) == 2 else nd.array(np.zeros(shape), dtype=dtype)
    assert nd.all_finite(x).asnumpy().tolist() == [1]
    for bad in (np.inf, -np.inf, np.nan) if 0 not in shape else ():
        x[(*[-1] * len(shape),) or ...] = bad
        assert nd.all_finite(x).asnumpy().tolist() == [0]
        assert nd.multi_all_finite(nd.ones((2,)), x, num_arrays=2).asnumpy().tolist() == [0]


def test_finite_refused():
    with pytest.raises(mx.MXNetError, match="all_finite: argument 'init_output': expected True"):
        nd.all_finite(nd.ones((2,)), init_output=False)
    with pytest.raises(mx.MXNetError, match=r"multi_all_finite: argument 'array_1'.*int32"):
        nd.multi_all_finite(nd.ones((2,)), nd.ones((2,), dtype="int32"), num_arrays=2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint8"])
@pytest.mark.parametrize("is_ascend", [False, True])
@pytest.mark.parametrize("length", [1, 3, 40])
def test_the_best_of_each_row_is_the_first_of_a_whole_order(dtype, is_ascend, length):
    """Of equal ones the first, -0.0 among them, and what is not a number last."""
    rows = np.random.default_rng(3).integers(-2, 2, (30, length)).astype(dtype)
    if dtype.startswith("float"):
        rows[5:9] *= -0.0
    for special in [None, np.nan] if dtype.startswith("float") else [None]:
        if special is not None:
            rows[::4, ::2] = special
            rows[3] = special
        x = nd.array(rows, dtype=dtype)
        every = nd.argsort(x, is_ascend=is_ascend, dtype="int32").asnumpy()
        for k in (1, 3, 5):
            best = nd.topk(x, k=min(k, length), is_ascend=is_ascend, dtype="int32").asnumpy()
            np.testing.assert_array_equal(best, every[:, :k])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint8", "int64"])
def test_a_histogram_beside_numpys(dtype):
    """Edges belong to the bin behind them, the last to the one before; NaN to none."""
    values = np.random.default_rng(5).integers(-3, 12, 3000)
    values = values.clip(0, None).astype(dtype) if dtype == "uint8" else values.astype(dtype)
    if dtype.startswith("float"):
        values[::7] += np.linspace(0, 1, len(values[::7])).astype(dtype)
        values[::11] = np.nan
    counts, edges = nd.histogram(nd.array(values, dtype=dtype), bins=7, range=(-2, 10))
    wanted = np.histogram(values, 7, (-2, 10))
    np.testing.assert_array_equal(counts.asnumpy(), wanted[0])
    np.testing.assert_array_equal(edges.asnumpy(), wanted[1].astype(dtype))
