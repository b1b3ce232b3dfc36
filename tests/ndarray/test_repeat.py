"""An operator that native code applies again gives what it gave, and leaves to Python all else."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from gnomon import autograd, engine, nd
from gnomon.base import EngineError, GnomonError, ParamError, ShapeError
from gnomon.ground.record import put
from gnomon.ndarray.core.bounded_cache import BoundedCache
from gnomon.ndarray.lazy import applied
from gnomon.runtime.statements.fields import readable


@pytest.fixture
def by_python(monkeypatch):
    """What comes to Python's way: the names of the operators."""
    found = []
    before = applied.invoke
    monkeypatch.setattr(
        applied, "invoke", lambda op, *given: (found.append(op.name), before(op, *given))[1]
    )
    return found


def again(by_python, statement):
    """What a statement gives when it comes again, and native code takes it."""
    for _ in range(3):
        found = statement()
        for result in found if isinstance(found, list) else [found]:
            result.wait_to_read()
    by_python.clear()
    found = statement()
    assert not readable() or not by_python
    return found


def matrix(*shape, dtype="float32"):
    return nd.array(np.arange(1, 1 + np.prod(shape)).reshape(shape), dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
def test_values(dtype, by_python):
    a, b = matrix(3, 4, dtype=dtype), matrix(4, 3, dtype=dtype)
    x, y = a.asnumpy(), b.asnumpy()
    for _ in range(2):
        got = again(by_python, lambda: nd.sum(a, axis=1))
        np.testing.assert_array_equal(got.asnumpy(), x.sum(1, dtype=got.dtype))
        np.testing.assert_array_equal(again(by_python, lambda: a.max(axis=0)).asnumpy(), x.max(0))
        np.testing.assert_array_equal(again(by_python, lambda: a.T).asnumpy(), x.T)
        stacked = again(by_python, lambda: nd.concat(a, a, dim=1))
        np.testing.assert_array_equal(stacked.asnumpy(), np.concatenate([x, x], 1))
        if a.dtype is not np.uint8:
            np.testing.assert_array_equal(nd.dot(a, b).asnumpy(), x @ y)
        a[:] = a + 1
        x = a.asnumpy()


def test_views_and_several_results(by_python):
    a = matrix(4, 6)
    view = a[1:, ::2]
    got = again(by_python, lambda: nd.sum(view, axis=0))
    np.testing.assert_array_equal(got.asnumpy(), a.asnumpy()[1:, ::2].sum(0))
    parts = again(by_python, lambda: nd.split(a, num_outputs=3, axis=1))
    assert [p.shape for p in parts] == [(4, 2)] * 3
    np.testing.assert_array_equal(parts[2].asnumpy(), a.asnumpy()[:, 4:])
    whole = again(by_python, lambda: nd.split(a, num_outputs=1, axis=1))
    np.testing.assert_array_equal(whole.asnumpy(), a.asnumpy())
    assert nd.sum(matrix(4, 6)[2:2], axis=0).asnumpy().tolist() == [0] * 6


def test_results_have_memory_of_their_own(by_python):
    a = matrix(3, 4)
    first, second = (again(by_python, lambda: nd.sum(a, axis=1)) for _ in range(2))
    first[:] = 0
    np.testing.assert_array_equal(second.asnumpy(), a.asnumpy().sum(1))
    assert second._chunk.version == 1


def test_pending_operands_are_computed_first(by_python):
    a, b = matrix(3, 4), matrix(3, 4)
    got = again(by_python, lambda: nd.sum(a * b))
    assert got.asscalar() == (a.asnumpy() ** 2).sum()
    a += b
    assert again(by_python, a.sum).asscalar() == a.asnumpy().sum()


def test_inputs_by_name(by_python):
    x, w, bias = matrix(2, 3), matrix(4, 3), matrix(4)
    dense = {"num_hidden": 4, "name": "dense"}
    got = again(by_python, lambda: nd.FullyConnected(data=x, weight=w, bias=bias, **dense))
    expected = x.asnumpy() @ w.asnumpy().T + bias.asnumpy()
    np.testing.assert_allclose(got.asnumpy(), expected)
    got = again(by_python, lambda: nd.FullyConnected(x, weight=w, bias=bias, **dense))
    np.testing.assert_allclose(got.asnumpy(), expected)
    got = again(by_python, lambda: nd.FullyConnected(x, w, no_bias=True, num_hidden=4))
    np.testing.assert_allclose(got.asnumpy(), x.asnumpy() @ w.asnumpy().T)
    with pytest.raises(ParamError, match="bias"):
        nd.FullyConnected(x, w, num_hidden=4, name="dense")
    with pytest.raises(TypeError, match="twice"):
        nd.FullyConnected(x, w, bias, data=x, num_hidden=4)
    with pytest.raises(TypeError, match="an NDArray"):
        nd.FullyConnected(x, w, 3, **dense)


def test_equal_parameters_of_another_type_are_looked_at(by_python):
    a = matrix(3, 4)
    again(by_python, lambda: nd.sum(a, axis=1))
    with pytest.raises(ParamError):
        nd.argmax(a, axis=True)
    again(by_python, lambda: nd.argmax(a, axis=1))
    with pytest.raises(ParamError):
        nd.argmax(a, axis=True)
    assert nd.sum(a, axis=[1]).shape == nd.sum(a, axis=(1,)).shape == (3,)
    with pytest.raises(ShapeError):
        nd.sum(a, axis=2)


def test_gradients_are_recorded(by_python):
    a, b = matrix(3, 4), matrix(3, 4)
    again(by_python, lambda: nd.sum(a, axis=1))
    a.attach_grad()
    with autograd.record():
        loss = nd.sum(a * a, axis=1)
        beside = nd.sum(b, axis=1)
    loss.backward()
    np.testing.assert_array_equal(a.grad.asnumpy(), 2 * a.asnumpy())
    assert beside._tape is None
    with pytest.raises(GnomonError):
        beside.backward()


def test_what_draws_or_trains_is_not_repeated():
    a = nd.ones((4, 4))
    assert len({float(nd.Dropout(a, p=0.5, mode="always").sum().asscalar()) for _ in range(20)}) > 1
    for _ in range(3):
        assert nd.Dropout(a, p=0.5).asnumpy().all()
    with autograd.train_mode():
        assert not all(nd.Dropout(a, p=0.5).asnumpy().all() for _ in range(8))


def test_a_writer_is_waited_for_and_a_failure_is_raised(by_python):
    a = matrix(3, 4)
    again(by_python, lambda: nd.sum(a, axis=1))
    go = threading.Event()
    engine.get().push_sync(lambda ctx: go.wait(5), mutate_vars=[a._var])
    found = nd.sum(a, axis=1)
    assert not readable() or by_python
    assert found._chunk.writer is not None
    go.set()
    np.testing.assert_array_equal(found.asnumpy(), a.asnumpy().sum(1))

    def fail(ctx):
        raise ValueError("no such luck")

    engine.get().push_sync(fail, mutate_vars=[a._var])
    with pytest.raises(EngineError, match="no such luck"):
        nd.sum(a, axis=1).wait_to_read()


def test_an_engine_that_is_told_of_everything_is_told(by_python):
    a = matrix(3, 4)
    again(by_python, lambda: nd.sum(a, axis=1))
    told = []
    engine.get().observe(lambda name, *rest: told.append(name))
    try:
        nd.sum(a, axis=1).wait_to_read()
    finally:
        engine.get().observe(None)
    assert len(told) == 1


def test_sparse_arrays_and_kinds_of_arrays():
    a = matrix(3, 4)
    for _ in range(3):
        dense = nd.dot(a, a, transpose_b=True)
        assert nd.cast_storage(a, stype="csr").stype == "csr"
        again = nd.dot(a.tostype("csr"), a.T)
    np.testing.assert_array_equal(dense.asnumpy(), again.asnumpy())


def test_threads_and_the_collector(by_python):
    wrong = []

    def work(k):
        a = nd.full((8, 8), k)
        for _ in range(300):
            parts = nd.split(a, num_outputs=2, axis=0)
            if (parts[0] + parts[1]).sum().asscalar() != 64 * k:
                wrong.append(k)

    before = gc.get_threshold()
    gc.set_threshold(7)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
    assert not wrong


def test_nothing_is_kept():
    a = matrix(3, 4)
    parts = nd.split(a, num_outputs=2, axis=1)
    for _ in range(4):
        parts = nd.split(a, num_outputs=2, axis=1)
    chunk = parts[0]._chunk
    gc.collect()
    arrays = sum(isinstance(x, nd.NDArray) for x in gc.get_objects())
    for _ in range(100):
        parts = nd.split(a, num_outputs=2, axis=1)
    gc.collect()
    assert sum(isinstance(x, nd.NDArray) for x in gc.get_objects()) == arrays
    del parts
    assert chunk.version == 1


def test_into_an_array(by_python):
    a, b, c = matrix(3, 4), matrix(3, 4), nd.zeros((3,))
    assert again(by_python, lambda: nd.sum(a, axis=1, out=c)) is c
    np.testing.assert_array_equal(c.asnumpy(), a.asnumpy().sum(1))
    versions = c._chunk.version
    nd.sum(a, axis=1, out=c).wait_to_read()
    assert c._chunk.version == versions + 1
    with pytest.raises(ShapeError):
        nd.sum(a, axis=0, out=c)
    with pytest.raises(TypeError, match="out"):
        nd.sum(a, axis=1, out=3)
    start = a.asnumpy()
    for k in range(4):
        a[:] = start
        nd.sgd_update(a, b, lr=0.5, wd=0.25, out=a)
        np.testing.assert_allclose(a.asnumpy(), start - 0.5 * (b.asnumpy() + 0.25 * start))
        a[:] = start
        nd.sgd_update(a, b, lr=0.5 + k, out=a)
        np.testing.assert_allclose(a.asnumpy(), start - (0.5 + k) * b.asnumpy())


def test_assignments(by_python):
    a, b = matrix(3, 4), matrix(3, 4) * 2
    for value in (2, 0, 2.5, -1):
        for _ in range(3):
            a[:] = value
            a[1] = 7
            a[0:1] = b[2:3]
        assert a.asnumpy()[2].tolist() == [value] * 4
        assert a.asnumpy()[1].tolist() == [7] * 4
        assert (a.asnumpy()[0] == b.asnumpy()[2]).all()
    old = a + 0
    for _ in range(3):
        pending = a * 2
        a[:] = b
        np.testing.assert_array_equal(pending.asnumpy(), old.asnumpy() * 2)
        old = b


def test_into_what_is_read():
    for _ in range(4):
        a = matrix(6)
        a[1:] = a[:-1]
        assert a.asnumpy().tolist() == [1, 1, 2, 3, 4, 5]
        square = matrix(3, 3)
        nd.transpose(square, out=square)
        np.testing.assert_array_equal(square.asnumpy(), matrix(3, 3).asnumpy().T)
        nd.dot(square, square, out=square)
        np.testing.assert_array_equal(
            square.asnumpy(), matrix(3, 3).asnumpy().T @ matrix(3, 3).asnumpy().T
        )


def test_memory_under_two_names():
    shared = np.arange(6, dtype=np.float32)
    a, b = nd.from_numpy(shared), nd.from_numpy(shared)
    for _ in range(4):
        b[:] = a
        nd.sum(a, axis=0, keepdims=True, out=b[2:3])
        assert b.asnumpy().tolist() == [0, 1, float(shared[2]), 3, 4, 5]
        shared.flags.writeable = True
        shared[2] = 2


def test_writes_wait_for_readers_and_are_refused_on_the_tape():
    a, b = matrix(3, 4), matrix(3, 4)
    for _ in range(3):
        a[:] = b
    go = threading.Event()
    engine.get().push_sync(lambda ctx: go.wait(5), const_vars=[a._var])
    a[:] = 0
    assert a._chunk.writer is not None or a._chunk.queue
    go.set()
    assert not a.asnumpy().any()
    a.attach_grad()
    with autograd.record(), pytest.raises(GnomonError):
        a[:] = b
    with autograd.record(), pytest.raises(GnomonError):
        nd.sum(b, axis=1, out=(a * 1)[:, 0])


def test_filled_arrays(by_python):
    for _ in range(4):
        assert nd.zeros((2, 3)).asnumpy().tolist() == [[0] * 3] * 2
        assert nd.ones((2,), dtype="int32").asnumpy().tolist() == [1, 1]
        assert nd.full((0, 2), 0).shape == (0, 2)
    with pytest.raises(ShapeError):
        nd.zeros((-1,))


def test_views_by_their_keys():
    a = matrix(3, 4)
    x = a.asnumpy()
    keys = [1, -1, slice(1), slice(None, None, -2), (1, 2), (slice(1, 3), 0), (0, slice(None))]
    for _ in range(2):
        for key in keys:
            np.testing.assert_array_equal(a[key].asnumpy(), np.atleast_1d(x[key]))
    with pytest.raises(IndexError):
        a[3]
    at = nd.array([0], dtype="int32")
    for k in (1, 2):
        at[:] = k
        np.testing.assert_array_equal(a[at].asnumpy(), x[[k]])


def test_broadcast_by_operators(by_python):
    a, row, column = matrix(3, 4), matrix(4), matrix(3, 1)
    for _ in range(3):
        np.testing.assert_array_equal((a + row).asnumpy(), a.asnumpy() + row.asnumpy())
        np.testing.assert_array_equal((row + a).asnumpy(), a.asnumpy() + row.asnumpy())
        np.testing.assert_array_equal((row * column).asnumpy(), row.asnumpy() * column.asnumpy())
        larger = np.maximum(row.asnumpy(), a.asnumpy())
        np.testing.assert_array_equal(nd.maximum(row, a).asnumpy(), larger)
        with pytest.raises(ShapeError):
            nd.elemwise_add(a, row)
        with pytest.raises(ShapeError):
            row += a
    b = a.copy()
    for _ in range(3):
        b += row
    np.testing.assert_array_equal(b.asnumpy(), a.asnumpy() + 3 * row.asnumpy())


def test_a_zero_keeps_its_sign():
    a, b, around = matrix(3), nd.ones((1, 1, 1, 1)), (0, 0, 0, 0, 1, 1, 1, 1)
    for zero in (0.0, -0.0, np.float32(0), np.float32(-0.0)) * 2:
        negative = bool(np.signbit(zero))
        for made in (
            nd._internal._mul_scalar(a, scalar=zero),
            nd.pad(b, mode="constant", pad_width=around, constant_value=zero)[0, 0, 0, :3],
            nd._internal._full(shape=(3,), value=zero),
        ):
            assert np.signbit(made.asnumpy()).tolist() == [negative] * 3


def test_what_shared_memory_taught_is_not_done_to_other_arrays():
    memory = np.zeros(9, np.float32)
    first, second = (nd.from_numpy(memory[k : k + 8], zero_copy=True) for k in (0, 1))
    for _ in range(3):
        memory[:] = np.arange(9)
        nd.reverse(first, axis=0, out=second).wait_to_read()
        assert memory.tolist() == [0, *range(7, -1, -1)]
        a, out = matrix(8), nd.zeros((8,))
        nd.reverse(a, axis=0, out=out)
        assert out.asnumpy().tolist() == [*range(8, 0, -1)]
        assert a.asnumpy().tolist() == [*range(1, 9)]


def test_little_is_kept_of_what_is_too_long(monkeypatch):
    monkeypatch.setattr(applied, "LEARNT", BoundedCache(8))
    dot = applied.applying("dot")
    for rows in range(300, 316):
        large = nd.ones((rows, 300))
        dot((large, large.T))
    assert 0 < len(dot._long) + len(dot._known) <= 8


def test_a_class_of_arrays_calls_the_method_that_it_hides():
    calls = []

    class Counting(nd.NDArray):
        __slots__ = ()

        def arcsinh(self):
            calls.append("arcsinh")
            return super().arcsinh()

    zeros, array = nd.zeros((3,)), Counting.__new__(Counting)
    for slot in ("_chunk", "_index", "_offset", "_layout", "_tape", "_pending_in"):
        put(array, slot, getattr(zeros, slot, None))
    for k in range(2):
        assert array.arcsinh().asnumpy().tolist() == [0] * 3
        assert calls == ["arcsinh"] * (k + 1)
    assert nd.NDArray.arcsinh(array).shape == (3,)


def test_parameters_without_a_hash_are_looked_at():
    a = matrix(2, 3)
    for statement in (
        lambda: a.expand_dims([0]),
        lambda: a.reshape((2, [3])),
        lambda: a.reshape((3, -1), reverse=[1]),
    ):
        with pytest.raises(ParamError, match="argument"):
            statement()
