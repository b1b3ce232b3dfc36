"""Indexing and writing against NumPy: views that write through, look-ups, stretching, errors."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon import engine, nd
from gnomon.base import ShapeError

BASIC = [
    0,
    -1,
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(5, 9),
    ...,
    None,
    (1, 2),
    (slice(None), 1),
    (slice(1, 2), slice(None, None, -2)),
    (..., 0),
    (0, ..., slice(1, 3)),
    (None, 1, None, slice(None), 2),
    (1, 2, 3),
    (),
]
ADVANCED = [
    [2, 0, -1],
    np.array([[0, 1], [2, 3]]),
    (slice(None), [0, 2]),
    ([0, 1], [2, 0]),
    ([0, 1], slice(1, 3), [1, 1]),
    (1, [0, 2]),
    np.arange(24).reshape(4, 3, 2) % 3 == 0,
    np.array([True, False, True, True]),
    (..., np.array([1, 0])),
]
SHAPE = (4, 3, 2)


def pair(shape=SHAPE):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return a, nd.array(a)


def usable(key):
    """Whether NumPy takes the key for the shape used here."""
    try:
        np.zeros(SHAPE)[key]
    except IndexError:
        return False
    return True


KEYS = [key for key in (*BASIC, *ADVANCED) if usable(key)]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading(key):
    a, x = pair()
    expected = a[key]
    found = x[key].asnumpy()
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    assert found.shape == (expected.shape or (1,))


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("how", ["number", "array", "numpy", "stretched", "other dtype"])
def test_writing(key, how):
    a, x = pair()
    values = np.random.default_rng(0).integers(50, 99, a[key].shape).astype(np.float32)
    if how == "number":
        a[key] = x[key] = 7
    elif how == "stretched":
        a[key] = values.flat[0] if values.size else 1
        x[key] = nd.array([[a[key].flat[0] if values.size else 1]])
    else:
        a[key] = values
        made = {"array": nd.array(values), "numpy": values.astype("int64").tolist()}
        x[key] = made[how] if how in made else nd.array(values, dtype="int32")
    np.testing.assert_array_equal(x.asnumpy(), a)


@pytest.mark.parametrize("key", [key for key in BASIC if usable(key)], ids=str)
def test_views_write_through(key):
    a, x = pair()
    view, expected = x[key], a[key]
    if isinstance(expected, np.ndarray):
        view += 100
        expected += 100
        np.testing.assert_array_equal(x.asnumpy(), a)
        x[:] = 5
        assert (view.asnumpy() == 5).all()


def test_views_of_views():
    a, x = pair((6, 5))
    view, expected = x[1:][::2][:, ::-1][:, 1:4], a[1:][::2][:, ::-1][:, 1:4]
    np.testing.assert_array_equal(view.asnumpy(), expected)
    view[1] = nd.array([1, 2, 3])
    expected[1] = [1, 2, 3]
    np.testing.assert_array_equal(x.asnumpy(), a)
    np.testing.assert_array_equal((view + view).asnumpy(), expected + expected)
    np.testing.assert_array_equal(nd.dot(view, view.T).asnumpy(), expected @ expected.T)
    np.testing.assert_array_equal(view.sum(axis=0).asnumpy(), expected.sum(0))


@pytest.mark.parametrize(
    "statement",
    ["x[1:] = x[:-1]", "x[:-1] = x[1:]", "x[:] = x[::-1]", "x[1:] += x[:-1]", "x[:3] *= x[2:5]"],
)
def test_overlap_reads_before_it_writes(statement):
    a, x = pair((6, 3))
    expected = a.copy()
    exec(statement.replace("x", "expected"), {"expected": expected})
    exec(statement, {"x": x})
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_transposed_onto_itself():
    a, x = pair((4, 4))
    x[:] = x.T
    np.testing.assert_array_equal(x.asnumpy(), a.T)
    x[:] = nd.dot(x, x)
    np.testing.assert_array_equal(x.asnumpy(), a.T @ a.T)


def test_rows_by_an_array_of_ours():
    a, x = pair()
    key = nd.array([2, 0, -1])
    np.testing.assert_array_equal(x[key].asnumpy(), a[[2, 0, -1]])
    np.testing.assert_array_equal(x[nd.array([[0], [1]], dtype="int32")].asnumpy(), a[[[0], [1]]])
    x[key] = 1
    a[[2, 0, -1]] = 1
    np.testing.assert_array_equal(x.asnumpy(), a)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (4, "index 4 is out of bounds for axis 0 with size 4"),
        ((0, -4), "index -4 is out of bounds for axis 1 with size 3"),
        ((0, 0, 0, 0), "too many indices: 4 for an array of 3 axes"),
        ((..., ...), "single ellipsis"),
        ([7], "out of bounds"),
    ],
)
def test_bad_keys(key, message):
    a, x = pair()
    with pytest.raises(IndexError, match=message):
        x[key]
    with pytest.raises(IndexError, match=r"out of bounds|too many|ellipsis"):
        x[key] = 0
    np.testing.assert_array_equal(x.asnumpy(), a)


@pytest.mark.parametrize("value", [np.ones((2, 2)), nd.ones((5,)), nd.ones((2, 4, 3, 2))])
def test_a_value_that_does_not_fit(value):
    a, x = pair()
    with pytest.raises(ShapeError, match="a shape that stretches to"):
        x[:] = value
    with pytest.raises(ShapeError, match="a shape that stretches to"):
        x[[0, 1]] = np.ones((7,))
    np.testing.assert_array_equal(x.asnumpy(), a)


def test_iteration_and_length():
    a, x = pair((3, 2))
    assert [row.asnumpy().tolist() for row in x] == a.tolist()
    assert len(x) == 3
    with pytest.raises(TypeError):
        len(nd.array(3))


def test_a_write_at_picked_places_waits_for_nothing():
    """What it is given may change as soon as it returns."""
    a, x = pair()
    go, value = threading.Event(), nd.ones((2, 3, 2)) * 7
    engine.get().push_sync(lambda run_ctx: go.wait(10), None, (), (x._var,))
    key, values = np.array([0, 2]), np.full((3, 2), 5, np.float32)
    x[key] = values
    x[[1, 3]] = value
    x[x.shape[0] - 1, [0, 1]] = 3
    key[:], values[:] = 1, 0
    value[:] = 8
    go.set()
    a[[0, 2]], a[[1, 3]] = 5, 7
    a[3, [0, 1]] = 3
    np.testing.assert_array_equal(x.asnumpy(), a)
    x[[0, 2]] = x[2:4]
    a[[0, 2]] = a[2:4]
    np.testing.assert_array_equal(x.asnumpy(), a)


def test_what_numpy_looks_at_too_is_read_when_it_is_written_at_picked_places():
    memory, x, go = np.zeros(2, np.float32), nd.ones((3,)), threading.Event()
    value = nd.from_numpy(memory[:], zero_copy=True)
    engine.get().push_sync(lambda run_ctx: go.wait(10), None, (), (x._var,))
    x[[0, 2]] = value
    memory[:] = 9
    go.set()
    assert x.asnumpy().tolist() == [0, 1, 0]


@pytest.mark.parametrize("key", [[0, 2], ([5, 1], [0, 3]), (slice(1, 3), [7, 7])])
def test_picked_places_take_memory_for_what_is_picked(key):
    x = nd.zeros((3000, 3000))
    x.wait_to_read()
    tracemalloc.start()
    try:
        x[key] = 2
        assert x[key].asnumpy().min() == 2
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_slice_assign():
    a, x = pair()
    assert x.slice_assign_scalar(9, (0, 1), (2, 3), (1, 1)) is x
    a[0:2, 1:3] = 9
    assert x.slice_assign(nd.ones((4, 3, 1)), (None, None, 0), (None, None, 1), None) is x
    a[:, :, 0:1] = 1
    np.testing.assert_array_equal(x.asnumpy(), a)


slices = st.builds(
    slice,
    st.none() | st.integers(-7, 7),
    st.none() | st.integers(-7, 7),
    st.none() | st.sampled_from([1, 2, 3, -1, -2]),
)
parts = slices | st.integers(-2, 1) | st.none()


@given(st.lists(st.lists(parts, max_size=3), min_size=1, max_size=3))
def test_chains_of_random_views(keys):
    a, x = pair((5, 4, 3))
    for key in keys:
        key = tuple(key)
        try:
            expected = a[key]
        except IndexError:
            with pytest.raises(IndexError):
                x[key]
            continue
        if not isinstance(expected, np.ndarray) or not expected.ndim:
            break
        a, x = expected, x[key]
        np.testing.assert_array_equal(x.asnumpy(), a)
    if a.size:
        a[...] = a + 1
        x += 1
        np.testing.assert_array_equal(x.asnumpy(), a)


@pytest.mark.parametrize("key", [0, slice(None), [0, 2], slice(0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    "value", ["a", {}, {1, 2}, len, 1j, np.datetime64("2020-01-01"), ["1", "b"]]
)
def test_what_is_no_number_is_refused_and_the_array_stays(key, dtype, value):
    x = nd.array([1, 2, 3], dtype=dtype)
    with pytest.raises((TypeError, ValueError)):
        x[key] = value
    assert x.asnumpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64"])
def test_numbers_are_written_into_the_dtypes_of_numpy(dtype):
    array = nd.array([1, 2, 3, 4], dtype=dtype)
    for _ in range(4):
        array[0] = 5
        array[1:3] = 7
        array[3:] = 0
        assert array.asnumpy().tolist() == [5, 7, 7, 0]
        array[:] = 2
        assert array.asnumpy().tolist() == [2] * 4
    for made, number in ((nd.ones, 1), (nd.zeros, 0)):
        np.testing.assert_array_equal(made((2,), dtype=dtype).asnumpy(), np.full(2, number, dtype))
    assert nd.full((2,), 9, dtype=dtype).asnumpy().tolist() == [9, 9]
