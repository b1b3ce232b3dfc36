"""Max pooling on a simulated GPU: results, gradients, and winners found once a window."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon import dtype as dtypes
from gnomon.expr.call.pool import MaxPoolGradient, Winner, max_pool
from gnomon.expr.node import Buffer
from gnomon.plan.statement import Store
from gnomon.runtime.statements.prepare import prepare
from tests.gpu.moved import close, moved, on_gpu, there
from tests.plan.test_expressions import over

CASES = {
    "1d": ((2, 3, 9), {"kernel": (3,), "stride": (2,), "pad": (1,)}),
    "2d": ((2, 3, 6, 8), {"kernel": (2, 2), "stride": (2, 2)}),
    "2d, overlapping": ((2, 3, 7, 9), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
    "2d, every place": ((1, 2, 6, 5), {"kernel": (3, 2)}),
    "2d, hanging over": (
        (2, 3, 6, 7), {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"},
    ),
    "2d, large": ((1, 2, 40, 18), {"kernel": (17, 18), "stride": (9, 1)}),
    "3d": ((1, 2, 5, 6, 4), {"kernel": (2, 3, 2), "stride": (1, 2, 2), "pad": (1, 1, 0)}),
}  # fmt: skip


def drawn(*shape: int) -> np.ndarray:
    """Few numbers, so that many windows have several largest, as behind a `relu`."""
    return np.maximum(np.random.default_rng(shape).integers(-6, 4, shape), 0).astype("float32")


def gradients(shape, options, dtype, ctx):
    """What a pooling gives, its gradient, and the gradient of that by what it was given."""
    x = nd.array(drawn(*shape), ctx=ctx, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = nd.Pooling(x, pool_type="max", **options)
        head = nd.arange(1, y.size + 1, ctx=ctx).reshape(y.shape).astype(dtype) / 64
        head.attach_grad()
        (g,) = autograd.grad(y, [x], head, create_graph=True)
        z = (g * g).sum()
    z.backward()
    return [v.asnumpy() for v in (y, g, head.grad)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_results_and_gradients(case, dtype):
    found = [gradients(*CASES[case], dtype, ctx) for ctx in (mx.gpu(0), mx.cpu())]
    for got, want in zip(*found, strict=True):
        close(got, want, 4e-3 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("fill", [-np.inf, np.nan, 7.0])
def test_windows_of_one_number(fill):
    x = over(np.full((1, 2, 4, 6), fill, "float32"))
    pooled = max_pool(x, (2, 2), (2, 2), (0, 0))
    head = np.arange(1, 13, dtype="float32").reshape(pooled.shape)
    e = MaxPoolGradient(x, over(pooled.reference(x.numpy())), over(head), pooled.window)
    got = on_gpu(e)
    assert (got[..., ::2, ::2] == head).all() and got.sum() == head.sum()  # the first ones


def test_winners_are_found_once_a_window():
    shape = 2, 4, 8, 8
    x, dest = (moved(over(np.zeros(shape, "float32"))) for _ in range(2))
    pooled = max_pool(x, (2, 2), (2, 2), (0, 0))
    y, g = (moved(over(np.zeros(pooled.shape, "float32"))) for _ in range(2))
    steps = prepare([Store(dest, "saveto", MaxPoolGradient(x, y, g, pooled.window))])
    size = np.prod(shape)  # a window for each 4 elements, its winner in a byte
    found = [(step.name, step.bytes / size) for step in steps]
    assert found == [("winner", 4 + 1 / 4), ("kernel", 1 / 4 + 4 / 4 + 4)]


@pytest.mark.parametrize(
    ("kernel", "dtype", "size"),
    [((16, 16), "float32", 1), ((16, 17), "float32", 8), ((2, 2), "float64", 8)],
)
def test_bytes_hold_positions_in_small_windows(kernel, dtype, size):
    data = Buffer((1, 1, 32, 32), dtypes.of(dtype))
    assert Winner(data, max_pool(data, kernel, (1, 1), (0, 0)).window).dtype.size == size


def test_winners_are_stored_as_asked():
    x = np.array([[[1, 5, 5, 2, 9, 0]]], "float32")
    e = Winner(over(x), max_pool(over(x), (3,), (3,), (0,)).window)
    assert on_gpu(e).tolist() == [[[1, 1]]]
    assert on_gpu(e, "plusto").tolist() == [[[3, 3]]]
    (step,) = prepare([Store(moved(over(np.zeros((1, 1, 2), "uint8"))), "saveto", there(e))])
    assert step.name == "winner"


def test_of_no_data():
    data = over(np.zeros((0, 2, 4, 4), "float32"))
    pooled = max_pool(data, (2, 2), (2, 2), (0, 0))
    e = MaxPoolGradient(data, pooled, over(np.zeros(pooled.shape, "float32")), pooled.window)
    assert on_gpu(e).shape == data.shape


def test_bound():
    data = mx.sym.Variable("data")
    net = mx.sym.Pooling(data * 2, kernel=(3, 3), stride=(2, 2), pool_type="max")
    found = []
    for ctx in (mx.gpu(0), mx.cpu()):
        executor = mx.sym.MakeLoss(net).simple_bind(ctx, data=(2, 3, 9, 9))
        executor.arg_dict["data"][:] = drawn(2, 3, 9, 9)
        for _ in range(3):
            executor.forward_backward()
        found.append([v.asnumpy() for v in (executor.outputs[0], executor.grad_dict["data"])])
    for got, want in zip(*found, strict=True):
        np.testing.assert_array_equal(got, want)
