"""Making arrays, their methods and how they print, against NumPy and what MXNet 1.9.1 gives."""

from __future__ import annotations

import copy

import ml_dtypes
import numpy as np
import pytest

from gnomon import cpu, gpu, nd, util
from gnomon.base import DeviceError, ParamError, ShapeError


@pytest.mark.parametrize(
    "source",
    [[1, 2], (1, 2), np.array([1, 2]), np.array([1.0, 2.0]), [True, False], range(2), [[1], [2]]],
    ids=repr,
)
def test_values_become_float32(source):
    found = nd.array(source)
    assert found.dtype is np.float32
    np.testing.assert_array_equal(found.asnumpy(), np.asarray(source, np.float32))


def test_the_source_is_copied():
    a = np.ones((2, 2), np.float32)
    x = nd.array(a)
    y = nd.array(x)
    a[:] = 5
    x += 1
    assert (x.asnumpy() == 2).all()
    assert (y.asnumpy() == 1).all()


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "int32", "int64", "bool"])
def test_a_dtype_by_name_or_type(dtype):
    for name in (dtype, np.dtype(dtype), np.dtype(dtype).type):
        x = nd.array([[0, 1], [2, 3]], dtype=name)
        assert x.dtype is np.dtype(dtype).type
        np.testing.assert_array_equal(x.asnumpy(), np.array([[0, 1], [2, 3]]).astype(dtype))
    assert nd.array(x).dtype is x.dtype
    assert nd.zeros((2,), dtype=dtype).dtype is x.dtype


def test_bfloat16():
    x = nd.array([1.0, 2.5], dtype="bfloat16")
    assert x.dtype is ml_dtypes.bfloat16
    assert (x + x).asnumpy().astype(np.float32).tolist() == [2, 5]


@pytest.mark.parametrize("source", [[[1, 2], [3]], "text", object()])
def test_what_holds_no_numbers_is_refused(source):
    with pytest.raises(TypeError, match="array: argument 'source_array'"):
        nd.array(source)


def test_filled_arrays():
    assert nd.zeros(3).shape == (3,)
    assert (nd.zeros((2, 3)).asnumpy() == 0).all()
    assert nd.zeros("(2, 3)").shape == nd.ones("[2,3]").shape == (2, 3)
    assert (nd.ones((2, 3), dtype="int8").asnumpy() == 1).all()
    assert nd.full((2,), 3.5).asnumpy().tolist() == [3.5, 3.5]
    assert nd.empty((2, 3), dtype="float64").asnumpy().shape == (2, 3)
    out = nd.ones((2,))
    assert nd.full((2,), 7, out=out) is out
    assert out.asnumpy().tolist() == [7, 7]
    nd.zeros((2,), out=out)
    assert out.asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1), (2, 0, 3)])
def test_shapes_without_or_with_one_element(shape):
    with util.np_shape():
        zeros = nd.zeros(shape)
    for x in (nd.array(np.ones(shape)), zeros, nd.empty(shape)):
        assert (x.shape, x.size, x.ndim) == (shape, int(np.prod(shape)), len(shape))
        assert (x + 1).shape == (x * x).shape == x.copy().shape == shape


@pytest.mark.parametrize("make", [nd.zeros, nd.ones])
def test_unknown_sizes_are_refused_unless_shapes_are_numpys(make):
    for shape in (0, (0,), (2, 0)):
        with pytest.raises(ShapeError, match=r"sizes above 0.*np_shape"):
            make(shape)
        out = nd.empty(shape)
        assert make(shape, out=out) is out
    with util.np_shape():
        assert make((2, 0)).shape == (2, 0)


def test_ranges():
    assert nd.arange(5).asnumpy().tolist() == [0, 1, 2, 3, 4]
    assert nd.arange(1, 5, 2, repeat=2).asnumpy().tolist() == [1, 1, 3, 3]
    assert nd.arange(3, 0, -1, dtype="int32").asnumpy().tolist() == [3, 2, 1]
    assert nd.linspace(0, 1, 5).asnumpy().tolist() == [0, 0.25, 0.5, 0.75, 1]
    np.testing.assert_array_equal(nd.eye(2, 3, 1).asnumpy(), np.eye(2, 3, 1))


def test_joined_and_moved():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = nd.array(a)
    np.testing.assert_array_equal(nd.concat(x, x, dim=1).asnumpy(), np.concatenate([a, a], 1))
    np.testing.assert_array_equal(nd.concatenate([x, x]).asnumpy(), np.concatenate([a, a]))
    np.testing.assert_array_equal(nd.stack(x, x, axis=2).asnumpy(), np.stack([a, a], 2))
    np.testing.assert_array_equal(nd.moveaxis(x, 0, -1).asnumpy(), np.moveaxis(a, 0, -1))
    np.testing.assert_array_equal(
        nd.moveaxis(x, (0, 1), (2, 0)).asnumpy(), np.moveaxis(a, (0, 1), (2, 0))
    )
    parts = nd.split(x, num_outputs=2, axis=2)
    np.testing.assert_array_equal(parts[1].asnumpy(), a[:, :, 2:])
    parts = x.split_v2((1, 3), axis=2)
    assert [p.shape for p in parts] == [(2, 3, 1), (2, 3, 2), (2, 3, 1)]
    out = nd.zeros((2, 4))
    nd.onehot_encode(nd.array([3, 0]), out)
    assert out.asnumpy().tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ((-1,), (24,)),
        ((0, -1), (2, 12)),
        ((4, 6), (4, 6)),
        ((-2,), (2, 3, 4)),
        ((0, -3), (2, 12)),
        ((-4, 1, 2, -2), (1, 2, 3, 4)),
        ((-4, -1, 1, 0, 0), (2, 1, 3, 4)),
    ],
)
def test_reshape(given, shape):
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = nd.array(a)
    for view in (x.reshape(given), x.reshape(*given), x.reshape(shape=given)):
        np.testing.assert_array_equal(view.asnumpy(), a.reshape(shape))
    view[:] = 0
    assert not x.asnumpy().any()


def test_reshape_from_the_right():
    x = nd.zeros((10, 5, 4))
    assert x.reshape((-1, 0)).shape == (40, 5)
    assert x.reshape((-1, 0), reverse=True).shape == (50, 4)


def test_reshape_that_needs_a_copy():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = nd.array(a)[:, 1:3]
    found = x.reshape((-1,))
    np.testing.assert_array_equal(found.asnumpy(), a[:, 1:3].reshape(-1))


def test_reshape_refused():
    x = nd.zeros((2, 3))
    with pytest.raises(ShapeError, match="7"):
        x.reshape((7,))
    with pytest.raises(TypeError, match="reshape: argument 'axis'"):
        x.reshape((3, 2), axis=1)
    assert x.shape == (2, 3)


def test_shapes_by_methods():
    x = nd.array([[1, 2, 3]])
    assert x.expand_dims(0).shape == x.expand_dims(0, inplace=True).shape == (1, 1, 3)
    assert x.squeeze().shape == x.squeeze(inplace=True).shape == (3,)
    assert x.flatten().shape == x.flatten(inplace=True).shape == x.shape == (1, 3)


def test_methods_are_operators():
    a = np.array([[1.0, 4.0], [9.0, 16.0]], np.float32)
    x = nd.array(a)
    np.testing.assert_allclose(x.sqrt().asnumpy(), np.sqrt(a))
    assert x.sum().asnumpy().tolist() == [30]
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    assert x.max(axis=0).asnumpy().tolist() == [9, 16]
    assert x.T.asnumpy().tolist() == a.T.tolist()
    assert x.transpose((1, 0)).asnumpy().tolist() == x.transpose(1, 0).asnumpy().tolist()
    assert x.clip(2, 10).asnumpy().tolist() == [[2, 4], [9, 10]]
    assert x.argmax(axis=1).asnumpy().tolist() == [1, 1]
    assert x.broadcast_to((3, 2, 2)).shape == (3, 2, 2)
    assert nd.ones((1, 2)).broadcast_like(x).shape == (2, 2)
    assert x.zeros_like().asnumpy().tolist() == [[0, 0], [0, 0]]
    assert x.slice_axis(axis=1, begin=0, end=1).asnumpy().tolist() == [[1], [9]]
    assert "axis" in nd.NDArray.sum.__doc__
    with pytest.raises(ShapeError, match=r"a shape that \(2, 2\) stretches to, got \(3, 2\)"):
        x.broadcast_to((3, 2))


def test_copies():
    x = nd.array([1, 2])
    y, z = nd.zeros((2,)), nd.zeros((2,), dtype="int32")
    assert x.copyto(y) is y
    x.copyto(z)
    other = x.copyto(cpu(1))
    same, different = x.as_in_context(cpu(0)), x.as_in_context(cpu(2))
    x += 1
    assert [v.asnumpy().tolist() for v in (y, z, other, different)] == [[1, 2]] * 4
    assert (other.context, different.ctx) == (cpu(1), cpu(2))
    assert same is x
    for duplicate in (x.copy(), copy.copy(x), copy.deepcopy(x)):
        duplicate += 1
        assert x.asnumpy().tolist() == [2, 3]
    with pytest.raises(ShapeError, match=r"expected shape \(2,\), got shape \(3,\)"):
        x.copyto(nd.zeros((3,)))
    with pytest.raises(TypeError, match="an NDArray or a Context"):
        x.copyto(3)


def test_astype():
    x = nd.array([-1.7, 300.5])
    assert x.astype("int32").asnumpy().tolist() == [-1, 300]
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x
    assert x.astype(np.float64).dtype is np.float64
    assert x.astype("int32").astype(None).dtype is np.float32
    assert x.reshape((1, 2)).tostype("csr").astype("float64").astype(None).dtype is np.float32


def test_a_device_that_is_missing():
    for make in (lambda: nd.zeros((2,), ctx=gpu(0)), lambda: nd.ones((2,)).as_in_context(gpu(0))):
        with pytest.raises(DeviceError, match="gpu"):
            make()


def test_contexts():
    with cpu(3):
        assert nd.zeros((2,)).context == cpu(3)
    x = nd.array([1], ctx=cpu(2))
    assert (x + 1).context == cpu(2)
    assert nd.zeros((1,), ctx="cpu(1)").context == cpu(1)


def test_printing():
    assert repr(nd.array([[1, 2], [3, 4]])) == "\n[[1. 2.]\n [3. 4.]]\n<NDArray 2x2 @cpu(0)>"
    assert str(nd.array([1.5], dtype="float16")) == "\n[1.5]\n<NDArray 1 @cpu(0)>"
    assert repr(nd.array(3)) == "\n3.0\n<NDArray  @cpu(0)>"


def test_arrays_are_not_made_by_their_class():
    with pytest.raises(TypeError, match=r"use nd\.array"):
        nd.NDArray([1, 2])


def test_moveaxis_refused():
    with pytest.raises(ParamError, match="each axis once"):
        nd.moveaxis(nd.zeros((2, 3)), (0, 0), (0, 1))


def test_histogram_without_a_range_is_a_tuple_of_floats():
    with pytest.warns(UserWarning, match="no range"):
        found = nd.histogram(nd.array([1, 2, 3, 4, 4]), bins=4)
    assert type(found) is tuple
    assert [x.dtype for x in found] == [np.float32, np.float32]
    assert [x.asnumpy().tolist() for x in found] == [[1, 1, 1, 2], [1, 1.75, 2.5, 3.25, 4]]


def test_histogram():
    counts, edges = nd.histogram(nd.array([0, 1, 1, 2]), bins=2, range=(0, 2))
    assert counts.asnumpy().tolist() == [1, 3]
    assert edges.asnumpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float16", "float64"])
@pytest.mark.parametrize(("start", "stop"), [(0, 256), (250, 256), (0, 300), (-3, 3)])
def test_ranges_hold_every_number_as_their_dtype_does(dtype, start, stop):
    got = nd.arange(start, stop, dtype=dtype).asnumpy()
    np.testing.assert_array_equal(got, np.arange(start, stop).astype(dtype))


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: nd.ones((2,), **more),
        lambda **more: nd.zeros((2,), **more),
        lambda **more: nd.eye(2, **more),
        lambda **more: nd.sparse.zeros("csr", (2, 2), **more),
    ],
)
def test_keywords_that_are_not_there_are_refused(make):
    with pytest.raises(ParamError, match="did you mean 'dtype'"):
        make(dtyp="int32")
    assert make(name="x", __layout__="NC", dtype="int32").dtype == np.int32


def test_no_dtype_of_an_operator_is_numpys():
    x = nd.ones(2)
    assert nd.cast(x, dtype=None).dtype is np.float64
    assert nd.one_hot(x, 3, dtype=None).dtype is np.float64
    assert nd.softmax(x, dtype=None).dtype is np.float64
    assert x.astype(None).dtype is np.float32
