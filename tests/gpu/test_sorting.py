"""Sorting on a simulated GPU: the same order as the processor's, by blocks and by merged runs."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd, shadow
from gnomon import dtype as dt
from gnomon.expr.call import Order
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.plan.gpu import sorting
from gnomon.plan.gpu.grid import team
from gnomon.plan.gpu.sorting import LAST, RUN, Keys, Runs, Sorted, in_order
from gnomon.plan.gpu.spread import spread
from gnomon.plan.pipeline import plan
from gnomon.plan.statement import Store, Structure
from gnomon.plan.view import views
from gnomon.shadow import Tensor, TensorContainer
from tests.gpu.moved import on_cpu, on_gpu
from tests.plan.test_expressions import over

G, CPU = mx.gpu(0), mx.cpu()
DTYPES = ("float16", "float32", "float64", "bfloat16", "uint8", "int8", "int32", "int64", "bool")
SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0)
SIZES = [(1, 1), (3, 2), (300, 3), (7, 5), (40, 33), (5, 101), (3, 256), (2, 257), (2, 1021)]


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Few different numbers, and of floats what is special."""
    random = np.random.default_rng([seed, *shape])
    values = random.integers(-9, 9, shape) / 4
    if dtype in ("uint8", "bool"):
        values = abs(values)
    if "float" in dtype:
        values = np.where(random.random(shape) < 0.3, random.choice(SPECIAL, shape), values)
    elif dtype != "bool":
        values = values * 4
    return values.astype(dt.of(dtype).numpy)


def checked(e: Order) -> None:
    np.testing.assert_array_equal(on_gpu(e), evaluate(e))


@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype, is_ascend):
    checked(Order(over(drawn((3, 37), dtype)), is_ascend, 37))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(("rows", "length"), SIZES)
def test_rows_of_every_length(rows, length, dtype):
    x = over(drawn((rows, length), dtype))
    for count in {length, 1, -(-length // 3)}:
        checked(Order(x, count % 2 == 0, count))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [2100, 2049, 1030, 7])
def test_runs_that_are_merged(count, dtype):
    """And runs of which the first few alone are sorted again."""
    for length in {count, 2 * RUN + 3}:
        checked(Order(over(drawn((2, length), dtype)), True, min(count, length)))


def test_many_short_runs(monkeypatch):
    monkeypatch.setattr(sorting, "RUN", 3)
    for length in (3, 4, 7, 29, 96, 97):
        for count in {length, 1, length // 4}:
            checked(Order(over(drawn((3, length), "float32")), False, count))


def test_numbers_at_the_ends():
    for dtype in ("int32", "int64", "uint8", "int8"):
        low, high = dt.of(dtype).limits
        x = np.array([[high, 0, low, high - 1, low + 1, low, high]], dtype)
        for is_ascend in (True, False):
            checked(Order(over(x), is_ascend, 7))
    tiny = np.float32(1e-45)
    x = np.array([[tiny, -tiny, np.inf, -np.inf, 3e38, -3e38, -0.0, 0.0, np.nan]], np.float32)
    checked(Order(over(x), True, 9))
    checked(Order(over(x), False, 9))


def test_strided_rows():
    x = drawn((12, 40), "float32")
    for view in (x.T, x[::2, ::-1], x[:, 1:30:3]):
        checked(Order(over(view), True, view.shape[1]))


def test_it_is_added_too():
    e = Order(over(drawn((4, 9), "float32")), True, 9)
    np.testing.assert_array_equal(on_gpu(e, "minusto"), 2 - evaluate(e))
    np.testing.assert_array_equal(on_gpu(e * 3 + 1), evaluate(e) * 3 + 1)


def test_the_index_rule_says_what_a_block_does():
    keys = Runs(Keys(over(drawn((2, 7), "float32")), True, False), 2, 4)
    want = np.sort(evaluate(keys), -1)
    np.testing.assert_array_equal(evaluate(Sorted(keys)), want)
    np.testing.assert_array_equal(on_gpu(Sorted(keys)), want)
    assert (want[:, 1, 3] == LAST + 7).all()


def test_a_block_has_room_for_its_rows():
    for length in range(1, RUN + 1):
        threads, rows = team(length, 1)
        room = RUN // rows
        assert rows == 1 or threads * rows == 256
        assert threads * 8 >= min(room, 1 << (length - 1).bit_length())


def launches(shape: tuple[int, int], count: int, dtype: str = "float32") -> list[Structure]:
    """The kernels of a sort, by structure."""
    e = Order(Buffer(shape, dt.of(dtype), None, 1 << 40), True, count)
    dest = Buffer(e.shape, e.dtype, None, 1 << 41)
    stores = in_order(e, dest, "saveto", 1.0, lambda v: Buffer(v.shape, v.dtype, None, 1 << 42))
    return [Structure(views([store])) for store in stores]


def test_how_many_launches():
    assert len(launches((1000, 1000), 1000)) == 2
    assert len(launches((3, 10**6), 10)) == 4  # 489 runs, 3 of their first ones, 1 of those
    found = launches((1, 10**6), 10**6)
    assert len(found) == 1 + 9 + 1
    assert len({s.key for s in found}) == 3
    assert len(launches((1000, 1000), 1000, "float64")) == 3


def test_a_sort_is_one_entry_in_shared_memory():
    value = Sorted(Runs(Keys(Buffer((5, 100)), True, False), 1, 100))
    stores = [Store(Buffer(value.shape, value.dtype), "saveto", value)]
    (entry,) = spread(plan(stores, Structure(stores))).entries
    assert entry.kind == "rows" and entry.shared == 8 * RUN


# -- operators ------------------------------------------------------------------------------------


def results(function, x: np.ndarray, ctx: mx.Context, differentiate: bool) -> list[np.ndarray]:
    """What an operator gives on a context, and the gradient through its first output."""
    data = nd.array(x, dtype=x.dtype, ctx=ctx)
    if not differentiate:
        found = function(data)
        return [y.asnumpy() for y in (found if isinstance(found, list) else [found])]
    data.attach_grad()
    with autograd.record():
        found = function(data)
    first = found[0] if isinstance(found, list) else found
    first.backward(nd.arange(1, first.size + 1, ctx=ctx, dtype=x.dtype).reshape(first.shape))
    return [first.asnumpy(), data.grad.asnumpy()]


def alike(function, x: np.ndarray, differentiate: bool = False) -> None:
    for got, want in zip(
        *(results(function, x, ctx, differentiate) for ctx in (G, CPU)), strict=True
    ):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


SHAPES = [((7,), 0), ((3, 5), 0), ((3, 5), -1), ((3, 5), None), ((2, 3, 4), 1), ((1, 1), 0)]
EMPTY = [((0, 3), 1), ((0, 3), 0), ((3, 0), 1)]


@pytest.mark.parametrize(("shape", "axis"), SHAPES + EMPTY)
def test_operators_as_on_the_processor(shape, axis, caplog):
    x = drawn(shape, "float32")
    with caplog.at_level(logging.WARNING, "gnomon"):
        for up in (True, False):
            alike(lambda x, up=up: nd.sort(x, axis=axis, is_ascend=up), x, bool(x.size))
            alike(lambda x, up=up: nd.argsort(x, axis=axis, is_ascend=up, dtype="uint8"), x)
    assert not caplog.messages


@pytest.mark.parametrize("ret_typ", ["value", "indices", "mask", "both"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_first_ones_as_on_the_processor(shape, axis, ret_typ):
    length = np.prod(shape) if axis is None else shape[axis]
    for dtype in ("float32", "int32", "float16"):
        x = drawn(shape, dtype)
        for k in range(min(3, length + 1)):
            alike(lambda x, k=k: nd.topk(x, axis=axis, k=k, ret_typ=ret_typ), x)
    kept = ret_typ in ("value", "indices")
    alike(
        lambda x: nd.topk(x, axis=axis, ret_typ=ret_typ, is_ascend=True),
        drawn(shape, "float32"),
        kept,
    )


@pytest.mark.parametrize("grad_req", ["write", "add"])
@pytest.mark.parametrize("name", ["sort", "topk"])
def test_bound_symbols(name, grad_req):
    found = []
    for ctx in (G, CPU):
        data = mx.sym.Variable("data") * 2.0
        net = mx.sym.sort(data) if name == "sort" else mx.sym.topk(data, k=2, ret_typ="value")
        bound = mx.sym.exp(net).simple_bind(ctx, grad_req=grad_req, data=(3, 5))
        bound.arg_dict["data"][:] = nd.array(np.arange(15).reshape(3, 5) % 4 / 8)
        bound.grad_dict["data"][:] = 1.0
        for _ in range(3):
            bound.forward(is_train=True)
            bound.backward(nd.ones(bound.outputs[0].shape, ctx=ctx))
        found.append((bound.outputs[0].asnumpy(), bound.grad_dict["data"].asnumpy()))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_given_outputs_and_results_that_are_added():
    x = drawn((4, 6), "int32")
    out = nd.zeros((4, 6), ctx=G, dtype="int32")
    nd.sort(nd.array(x, ctx=G, dtype="int32"), out=out)
    np.testing.assert_array_equal(out.asnumpy(), np.sort(x))
    nd.sort(out, is_ascend=False, out=out)
    np.testing.assert_array_equal(out.asnumpy(), -np.sort(-x))


# -- tensors --------------------------------------------------------------------------------------


def sorted_there(device: str, name: str, first: np.ndarray, second: np.ndarray, *args) -> list:
    tensors = [TensorContainer(a.shape, a.dtype, device=device) for a in (first, second)]
    for tensor, a in zip(tensors, (first, second), strict=True):
        shadow.copy(tensor, Tensor(a))
    getattr(shadow, name)(*tensors, *args)
    return [t.numpy() for t in tensors]


@pytest.mark.parametrize("count", [0, 1, 50, 2100])
def test_tensors_are_sorted_where_they_are(count):
    keys, values = drawn((count,), "float32"), drawn((count,), "int64", 1)
    for up in (True, False):
        pair = [sorted_there(device, "sort_by_key", keys, values, up) for device in ("gpu", "cpu")]
        np.testing.assert_array_equal(*[p[0] for p in pair])
        np.testing.assert_array_equal(*[p[1] for p in pair])
    segments = np.abs(values).astype("float32")
    pair = [sorted_there(device, "vectorized_sort", keys, segments) for device in ("gpu", "cpu")]
    np.testing.assert_array_equal(*[p[0] for p in pair])
    np.testing.assert_array_equal(*[p[1] for p in pair])


def test_scatters_that_meet_nowhere_need_no_order():
    """A promise, by which nothing is sorted: the adding is one kernel."""
    index, values = np.array([4, 0, 2]), np.arange(6.0, dtype="float32").reshape(3, 2)
    e = shadow.take_grad(over(index), over(values), 5, True)
    want = np.zeros((5, 2), "float32")
    want[index] = values
    for run in (on_gpu, on_cpu):
        np.testing.assert_array_equal(run(e), want)
        np.testing.assert_array_equal(run(e, "plusto"), want + 2)
