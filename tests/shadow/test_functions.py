"""Binary streams and the free functions of the tensor language, against NumPy."""

from __future__ import annotations

import contextlib
import io
import struct

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import DTypeError, FormatError, GnomonError, ParamError, ShapeError
from gnomon.runtime.execution import threads
from gnomon.shadow import Tensor, TensorContainer, red

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 6)).astype(np.float32)


@contextlib.contextmanager
def on_threads(count: int):
    before = threads.num_threads()
    threads.set_num_threads(count)
    yield
    threads.set_num_threads(before)


def T(array, dtype=None) -> Tensor:
    return Tensor(np.array(array, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64", "bfloat16"])
def test_a_stream_holds_shapes_and_rows(dtype):
    source = TensorContainer((3, 5), dtype)
    source.assign(shadow.tcast(dtype, shadow.iota((3, 5), 1)))
    stream = io.BytesIO()
    shadow.save_binary(stream, source)
    shadow.save_binary(stream, source.view((3, 2), (source.stride_, 2)))
    data = stream.getvalue()
    assert data[:8] == struct.pack("<II", 3, 5)
    assert data[8 : 8 + 15 * source.dtype.size] == source.numpy().tobytes()
    stream.seek(0)
    dest = TensorContainer((1, 1), dtype)
    assert shadow.load_binary(stream, dest).numpy().tolist() == source.numpy().tolist()
    fixed = TensorContainer((3, 2), dtype)
    shadow.load_binary(stream, fixed, pre_alloc=True)
    assert fixed.numpy().tolist() == source.numpy()[:, ::2][:, :2].tolist()


@pytest.mark.parametrize("cut", [0, 3, 7, 8, 11, 31])
def test_a_truncated_stream_leaves_the_destination(cut):
    stream = io.BytesIO()
    shadow.save_binary(stream, T(np.ones((2, 3), np.float32)))
    dest = TensorContainer((1, 2), init=7.0)
    with pytest.raises(FormatError, match=r"load_binary: argument 'stream'.*truncated"):
        shadow.load_binary(io.BytesIO(stream.getvalue()[:cut]), dest)
    assert dest.numpy().tolist() == [[7, 7]]


def test_foreign_and_unfitting_streams():
    dest = TensorContainer((2,), init=7.0)
    with pytest.raises(FormatError, match="no tensor of this rank"):
        shadow.load_binary(io.BytesIO(b"\xff" * 64), dest)
    stored = struct.pack("<I3f", 3, 1, 2, 3)
    for other in (T([7.0, 7], "float32"), dest):
        with pytest.raises(ShapeError, match=r"shape \(3,\) as stored, got \(2,\)"):
            shadow.load_binary(io.BytesIO(stored), other, pre_alloc=True)
        assert other.numpy().tolist() == [7, 7]


def test_softmax_and_its_gradient():
    for shape in ((5,), (3, 5), (2, 4, 3)):
        e = RNG.normal(size=shape).astype(np.float32) * 10
        axis = min(1, len(shape) - 1)
        want = np.exp(e - e.max(axis, keepdims=True))
        want /= want.sum(axis, keepdims=True)
        got = shadow.softmax(T(np.zeros_like(e)), T(e)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
        label = RNG.integers(0, shape[axis], np.delete(shape, axis))
        places = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(e.ndim)])
        hit = places == np.expand_dims(label, axis)
        grad = shadow.softmax_grad(T(np.zeros_like(e)), T(want), T(label, np.float32)).numpy()
        np.testing.assert_allclose(grad, want - hit, rtol=1e-6, atol=1e-7)
    grad = shadow.softmax_grad(T(X), T(X), T([0, -1, 2, -1]), ignore_label=-1).numpy()
    assert not grad[[1, 3]].any()
    assert grad[0, 0] == X[0, 0] - 1
    with pytest.raises(ShapeError, match="without axis 1"):
        shadow.softmax_grad(T(X), T(X), T([1, 2]))


def test_products():
    a, b = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
    got = shadow.vector_dot(T([0], "float32"), T(a[0, 0]), T(b[0, 0])).numpy()
    np.testing.assert_allclose(got, [a[0, 0] @ b[0, 0]], rtol=1e-5)
    start = RNG.normal(size=(3, 4, 4)).astype(np.float32)
    for alpha, beta in ((1, 0), (2.5, 1), (-1, 0.5)):
        got = shadow.batch_gemm(T(start), T(a), T(b), alpha, beta, transpose_right=True).numpy()
        want = alpha * a @ b.transpose(0, 2, 1) + beta * start
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="batch_gemm"):
        shadow.batch_gemm(T(a), T(a), T(b), transpose_right=True)
    with pytest.raises(DTypeError, match="batch_gemm"):
        shadow.batch_gemm(T(start, np.float64), T(a), T(b), transpose_right=True)
    dest = T(start)
    with pytest.raises(GnomonError, match="implicit_dot"):
        shadow.batch_gemm(dest, T(a) * 2.0, T(b), beta=3.0, transpose_right=True)
    assert (dest.numpy() == start).all()
    square = T(np.ones((2, 3, 3), np.float32))
    with pytest.raises(GnomonError, match="apart from the operands"):
        shadow.batch_gemm(square, square, square)


def test_rows_by_index():
    index = np.array([1, 3, 1, 1, 0])
    rows = RNG.normal(size=(5, 6)).astype(np.float32)
    want = X.copy()
    np.add.at(want, index, rows)
    got = shadow.add_take_grad(T(X), T(index), T(rows)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-5)
    order = np.argsort(index, kind="stable")
    got = shadow.add_take_grad_large_batch(T(X), T(index[order]), T(order), T(rows)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-5)
    filled = shadow.index_fill(T(X), T(index), T(rows)).numpy()
    assert (filled[[0, 1, 3]] == rows[[4, 3, 1]]).all()
    assert (filled[2] == X[2]).all()
    dest = T(X)
    with pytest.raises(ParamError, match="rows from 0 to 3, got 0 to 4"):
        shadow.index_fill(dest, T([0, 4]), T(rows[:2]))
    with pytest.raises(DTypeError, match="integers"):
        shadow.index_fill(dest, T(X[0]), T(rows))
    with pytest.raises(ShapeError, match="a row of"):
        shadow.index_fill(dest, T([0]), T(rows))
    assert (dest.numpy() == X).all()


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "uint8"])
@pytest.mark.parametrize("ascend", [True, False])
def test_sorting_is_stable(dtype, ascend):
    keys = TensorContainer((200,), dtype)
    keys.assign(shadow.tcast(dtype, T(RNG.integers(0, 9, 200))))
    old = keys.numpy().astype(float)
    values = T(np.arange(200))
    shadow.sort_by_key(keys, values, ascend)
    order = sorted(range(200), key=lambda k: old[k] if ascend else -old[k])
    assert values.numpy().tolist() == order
    assert keys.numpy().astype(float).tolist() == old[order].tolist()


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "int64", "float64", "int8"])
@pytest.mark.parametrize("special", [False, True])
def test_many_are_sorted_alike_by_any_number_of_threads(dtype, special):
    content = RNG.integers(-90, 90, 70_000).astype(dtype)
    if special and content.dtype.kind == "f":
        content[::5], content[1::5], content[2::7] = np.nan, -0.0, np.inf
    positions = np.arange(70_000, dtype="int32")
    for ascend in (True, False):
        rank = content.astype(float) * (1 if ascend else -1)
        want = np.lexsort((np.nan_to_num(rank, nan=0.0), np.isnan(rank)))
        for count in (1, 3):
            keys, values = Tensor(content.copy()), Tensor(positions.copy())
            with on_threads(count):
                shadow.sort_by_key(keys, values, ascend)
            assert (values.numpy() == want).all()
            assert keys.numpy().tobytes() == content[want].tobytes()
    narrow = Tensor(content.copy()[::2])
    shadow.sort_by_key(narrow, Tensor(positions[: len(content[::2])].copy()))
    assert narrow.numpy()[0] == np.nanmin(content[::2])


def test_nan_comes_last_and_segments_are_sorted_apart():
    for ascend, want in ((True, [1, 2]), (False, [2, 1])):
        keys, values = T([np.nan, 2, 1], "float32"), T([0, 1, 2])
        shadow.sort_by_key(keys, values, ascend)
        assert keys.numpy()[:2].tolist() == want
        assert np.isnan(keys.numpy()[2])
    values, segments = T([5, 3, 9, 1, 4], "float32"), T([1, 0, 1, 1, 0], "float32")
    shadow.vectorized_sort(values, segments)
    assert values.numpy().tolist() == [3, 4, 1, 5, 9]
    assert segments.numpy().tolist() == [0, 0, 1, 1, 1]
    with pytest.raises(ShapeError, match="one length"):
        shadow.sort_by_key(values, T([1.0]))


def test_maps_and_reductions_with_a_saver():
    dest = T(X)
    shadow.map_exp(shadow.plusto, dest, T(X) * 2.0)
    np.testing.assert_allclose(dest.numpy(), 3 * X, rtol=1e-6)
    low = T(np.ones(6, np.float32))
    shadow.map_reduce_keep_lowest(shadow.minusto, red.sum, low, T(X) * 1.0, 0.5)
    np.testing.assert_allclose(low.numpy(), 1 - X.sum(0) / 2, rtol=1e-5, atol=1e-6)
    high = T(np.ones(4, np.float32))
    shadow.map_reduce_keep_high_dim(shadow.saveto, red.maximum, high, T(X), 0)
    np.testing.assert_allclose(high.numpy(), X.max(1))
