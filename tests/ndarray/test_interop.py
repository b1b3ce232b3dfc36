"""Arrays beside other libraries: pickles, copies, NumPy, DLPack; files; forked children."""

from __future__ import annotations

import multiprocessing
import os
import pickle

import numpy as np
import pytest

from gnomon import cpu, engine, nd, shadow
from gnomon.base import DTypeError, FormatError, ParamError

DTYPES = ["float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_pickles(dtype, shape):
    x = nd.array(np.resize(np.arange(6), shape), ctx=cpu(1), dtype=dtype)
    y = pickle.loads(pickle.dumps(x))
    assert (y.dtype, y.shape, y.context) == (x.dtype, x.shape, cpu(1))
    np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
    y[...] = 0


def test_numpy_reads_arrays():
    x = nd.array([[1, 2], [3, 4]])
    values = np.asarray(x)
    values[:] = 0
    assert np.array(x, dtype=np.int64).tolist() == [[1, 2], [3, 4]]
    assert np.mean(x) == 2.5
    assert np.stack([x, x]).shape == (2, 2, 2)
    with pytest.raises(ValueError, match="always copied"):
        np.array(x, copy=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_one_element_convert(dtype):
    x = nd.ones((1, 1), dtype=dtype).asnumpy()
    assert (float(x), int(x), complex(x), float(x[0])) == (1.0, 1, 1 + 0j, 1.0)
    assert isinstance(pickle.loads(pickle.dumps(x)), np.ndarray)


def test_from_numpy_shares_memory():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = nd.from_numpy(a)
    assert not a.flags.writeable
    x += 1
    assert a.tolist() == [[1, 2, 3], [4, 5, 6]]
    y = nd.from_numpy(np.ones(3), zero_copy=False)
    assert y.dtype is np.float64
    with pytest.raises(ParamError, match="C order"):
        nd.from_numpy(np.ones((2, 3)).T)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
def test_dlpack_both_ways(dtype):
    x = nd.array([[1, 2], [3, 4]], dtype=dtype)
    view = np.from_dlpack(x)
    x += 1
    x.wait_to_read()
    assert view.tolist() == [[2, 3], [4, 5]]
    capsule = nd.to_dlpack_for_write(x[:, 1])
    y = nd.from_dlpack(capsule)
    y += 10
    assert x.asnumpy().tolist() == [[2, 13], [4, 15]]
    z = nd.from_dlpack(np.arange(3, dtype=dtype))
    assert (z + 1).asnumpy().tolist() == [1, 2, 3]


def test_a_shadow_tensor_shares_an_array():
    x = nd.ones((2, 3))
    whole, viewed, row = shadow.Tensor(x), shadow.Tensor(np.from_dlpack(x)), shadow.Tensor(x[1])
    whole += 1.0
    x *= 10
    viewed += 1.0
    row += 1.0
    assert x.asnumpy().tolist() == [[21] * 3, [22] * 3]
    assert whole.numpy().tolist() == x.asnumpy().tolist()


def test_dlpack_refused():
    with pytest.raises(DTypeError, match="a dtype that NumPy exchanges, got bfloat16"):
        nd.zeros((2,), dtype="bfloat16").to_dlpack_for_read()


def test_memory_lives_as_long_as_a_view():
    views = [nd.ones((1000,))[10:20] for _ in range(50)]
    shared = [np.from_dlpack(v) for v in views]
    del views
    for _ in range(100):
        nd.zeros((1000,))
    assert all((v == 1).all() for v in shared)


# --- files ------------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    path = str(tmp_path / "arrays")
    x, y = nd.array([[1, 2], [3, 4]]), nd.arange(3, dtype="int64")
    for data in ([x, y], {"x": x, "arg:y": y}, [x[:, 1]], [], {}):
        nd.save(path, data)
        found = nd.load(path)
        values = data.values() if isinstance(data, dict) else data
        kept = found.values() if isinstance(found, dict) else found
        assert [v.asnumpy().tolist() for v in kept] == [v.asnumpy().tolist() for v in values]
        if isinstance(data, dict) and data:
            assert list(found) == list(data)
    nd.save(path, x)
    (found,) = nd.load(path)
    found += 1
    (again,) = nd.load_frombuffer((tmp_path / "arrays").read_bytes())
    assert again.asnumpy().tolist() == [[1, 2], [3, 4]]


def test_bad_data_leaves_the_file_alone(tmp_path):
    path = tmp_path / "arrays"
    nd.save(path, [nd.ones((2,))])
    before = path.read_bytes()
    with pytest.raises(TypeError, match="save: argument 'data'"):
        nd.save(path, [nd.ones((2,)), np.ones(2)])
    with pytest.raises(TypeError, match="save: argument 'data': expected names that are strings"):
        nd.save(path, {1: nd.ones((2,))})
    assert path.read_bytes() == before
    with pytest.raises(FormatError):
        nd.load_frombuffer(before[:-3])


# --- fork -------------------------------------------------------------------------------------


def work(number):
    x = nd.array([number, 2]) * 3
    return float(nd.dot(x, x).asscalar())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_compute():
    nd.waitall()
    expected = [work(n) for n in range(4)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, range(4)) == expected


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_uses_the_arrays_of_its_parent():
    x = nd.arange(100_000)
    y = x * 2 + 1
    y.wait_to_read()
    pid = os.fork()
    if not pid:
        total = (y[:5] + x[:5]).asnumpy().sum()
        engine.get().wait_for_all()
        os._exit(0 if total == 35 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert (y[:2] + 1).asnumpy().tolist() == [2, 4]


def test_every_array_may_be_written_and_none_has_a_handle():
    assert nd.ones((2,)).writable and nd.ones((2,))[1:].writable
    with pytest.raises(AttributeError, match="handle"):
        _ = nd.ones((2,)).handle
