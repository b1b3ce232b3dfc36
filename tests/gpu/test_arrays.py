"""Arrays on GPUs: made, moved, printed, indexed, shared, written in place, differentiated."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, config, nd, shadow
from gnomon.base import DeviceError
from gnomon.ndarray.remote import way

G, H, CPU = mx.gpu(0), mx.gpu(1), mx.cpu()
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def on(values=X, ctx=G, dtype=None):
    return nd.array(values, ctx=ctx, dtype=dtype)


def same(array, values):
    np.testing.assert_array_equal(array.asnumpy(), values)


def test_made_and_printed():
    assert mx.context.num_gpus() == 2
    free, total = mx.context.gpu_memory_info(1)
    assert 0 < free <= total
    held = nd.zeros((1 << 18,), ctx=H)
    held.wait_to_read()
    with config.using(memory_limit=4 << 20):
        assert mx.context.gpu_memory_info(1) == (3 << 20, 4 << 20)
    x = on()
    assert (x.context, x.shape, x.dtype, x.stype) == (G, (3, 4), np.float32, "default")
    assert isinstance(x, nd.NDArray) and repr(x).endswith("<NDArray 3x4 @gpu(0)>")
    same(nd.zeros((2, 3), ctx=G), np.zeros((2, 3)))
    same(nd.full((2,), 7, ctx=H), [7, 7])
    same(nd.arange(5, ctx=G), np.arange(5))
    with G:
        assert nd.ones(2).context == nd.random.normal(shape=(2,)).context == G
    nd.waitall()
    x.wait_to_read()
    G.empty_cache()
    assert on([3.5])[0].asscalar() == float(on([3.5])) == 3.5


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int64", "bool"])
def test_dtypes(dtype):
    x = on(X, dtype=dtype)
    same(x, X.astype(dtype))
    same(x.astype("float32").as_in_context(CPU), X.astype(dtype).astype("float32"))


def test_moved_between_devices():
    x = on()
    assert x.as_in_context(G) is x
    there = x.as_in_context(H)
    back = there.copyto(CPU)
    assert (there.context, back.context) == (H, CPU)
    same(back, X)
    dest = nd.zeros((3, 4), ctx=H)
    assert nd.array(X + 1).copyto(dest) is dest
    same(dest, X + 1)
    dest[:] = x
    same(dest, X)
    same(x.T.as_in_context(CPU), X.T)
    same(x[1:, ::2].as_in_context(H), X[1:, ::2])
    same(nd.array(x), X)


def test_indexed():
    x = on()
    for key in (1, (slice(None), 2), (slice(None, None, -1), slice(1, 3)), Ellipsis):
        same(x[key], X[key])
    same(x[[2, 0]], X[[2, 0]])
    same(x[on([1, 0])], X[[1, 0]])
    want = X.copy()
    x[0], want[0] = 7, 7
    x[:, 1], want[:, 1] = on([4, 5, 6]), [4, 5, 6]
    x[2], want[2] = np.arange(4), np.arange(4)
    x[[0, 1], [2, 3]] = want[[0, 1], [2, 3]] = -1
    x[1:][0][2:] += 10
    want[1, 2:] += 10
    same(x, want)
    same(x.reshape(2, 6), want.reshape(2, 6))


def test_written_in_place():
    x, y = on(), on()
    x += y
    x *= 2
    nd.elemwise_add(x, y, out=x)
    x[:] = x - 1
    same(x, X * 5 - 1)
    nd.sgd_update(x, y, out=x, lr=1.0, wd=0.0)
    same(x, X * 4 - 1)


def test_operands_on_several_devices():
    x, y, z = on(), nd.array(X), on(ctx=H)
    for pair, told in (((x, y), "'lhs' is on gpu(0), 'rhs' is on cpu(0)"),
                       ((y, x), "'lhs' is on cpu(0), 'rhs' is on gpu(0)"),
                       ((x, z), "'lhs' is on gpu(0), 'rhs' is on gpu(1)")):  # fmt: skip
        with pytest.raises(
            mx.MXNetError, match=r"elemwise_add requires all.*same context"
        ) as error:
            pair[0] + pair[1]
        assert told in str(error.value)
    with pytest.raises(mx.MXNetError, match="'out' is on cpu"):
        nd.elemwise_add(x, x, out=y)
    with pytest.raises(mx.MXNetError, match="same context"):
        x += y
    same(x, X)


def test_what_has_no_kernel_runs_on_the_processor(caplog, monkeypatch):
    monkeypatch.setattr(way, "_told", set())
    x = on(2 * np.eye(3, dtype=np.float32))
    with caplog.at_level(logging.WARNING, "gnomon"):
        for _ in range(2):
            found = nd.linalg.inverse(x)
            assert found.context == G
            same(found, np.eye(3, dtype=np.float32) / 2)
    (told,) = caplog.messages
    assert "_linalg_inverse: runs on the processor, with copies: it has no kernel on gpu(0)" in told


def test_what_is_not_there_is_refused():
    with pytest.raises(DeviceError, match=r"shape \(3, 4\) on gpu\(0\): this is not done"):
        int(on()._address)
    with config.using(gpu="off"), pytest.raises(DeviceError, match=r"gpu\(7\): no GPU can be used"):
        nd.ones(2, ctx=mx.gpu(7))
    with pytest.raises(DeviceError, match="expected a GPU below 2"):
        nd.ones(2, ctx=mx.gpu(2))
    with pytest.raises(mx.MXNetError, match="index 5 is out of bounds"):
        nd.take(on(), on([5]), mode="raise").wait_to_read()


def test_shared_with_other_libraries():
    x = on()
    for made in (nd.from_dlpack(x), nd.from_dlpack(x.to_dlpack_for_read())):
        assert made.context == G
        made += 1
    same(x, X + 2)
    seen = shadow.Tensor(x)
    assert seen.device == "gpu(0)" and seen.dptr_ == x.__cuda_array_interface__["data"][0]
    seen *= 2.0
    same(x, (X + 2) * 2)
    same(nd.from_dlpack(nd.array(X).to_dlpack_for_read()), X)


def test_kept_in_files_and_pickles(tmp_path):
    x = on()
    path = str(tmp_path / "x")
    nd.save(path, {"x": x, "y": on(ctx=H), "z": nd.array(X, ctx=mx.cpu(1))})
    pickled = pickle.dumps(x)
    for gpu, places in (("simulated", [G, H, CPU]), ("off", [CPU] * 3)):
        with config.using(gpu=gpu):  # what was on a GPU that is not there is on the processor
            loaded = nd.load(path)
            assert [loaded[name].context for name in "xyz"] == places
            made = pickle.loads(pickled)
            assert made.context == places[0]
            for array in (*loaded.values(), made):
                same(array, X)


def test_parameters_and_states_from_files(tmp_path):
    """They go to where they are wanted, wherever they were saved."""
    path = str(tmp_path / "w")
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=G)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    with autograd.record():
        loss = net(nd.ones((1, 3), ctx=G)).sum()
    loss.backward(retain_graph=True)
    trainer.step(1)
    trainer.save_states(path)
    trainer.load_states(path)
    states = trainer._updaters[0].states
    assert [states[k].context for k in sorted(states)] == [G, G]
    loss.backward()
    trainer.step(1)
    weight = net.weight.data().asnumpy()
    nd.save(path, {"weight": net.weight.data(), "bias": net.bias.data()})
    for ctx in (H, CPU):
        other = mx.gluon.nn.Dense(2, in_units=3)
        other.load_parameters(path, ctx=ctx)
        assert other.weight.data().context == ctx
        same(other.weight.data(), weight)


def test_random_numbers_are_those_of_the_processor():
    for draw in (nd.random.uniform, nd.random.normal, nd.random.gamma, nd.random.poisson):
        found = []
        for ctx in (CPU, G):
            mx.random.seed(5)
            found.append([draw(shape=(3, 5), ctx=ctx).asnumpy() for _ in range(2)])
        np.testing.assert_allclose(*found, 1e-6)
        assert (found[0][0] != found[0][1]).any()


def gradients(ctx):
    """Those of some operators, of a copy to another device, and of a gradient."""
    x, w = on(X / 10 + 0.1, ctx), on(X.T / 7, ctx)
    x.attach_grad()
    w.attach_grad("add")
    for _ in range(2):
        with autograd.record():
            y = nd.dot(nd.tanh(x) * x, w)
            y = (y.as_in_context(H) * 2).as_in_context(ctx)
            z = (y[0] ** 2).sum() + nd.topk(y, ret_typ="value", k=2).sum()
        z.backward()
    with autograd.record():
        y = nd.log(x) * x
        (first,) = autograd.grad([y], [x], create_graph=True)
        z = (first * first).sum()
    return [x.grad.asnumpy(), w.grad.asnumpy(), autograd.grad([z], [x])[0].asnumpy()]


def test_gradients():
    for found, want in zip(gradients(G), gradients(CPU), strict=True):
        np.testing.assert_allclose(found, want, 1e-5, 1e-6)


def test_what_is_known_on_the_processor_is_not_run_there():
    for _ in range(4):
        same(nd.arange(5), np.arange(5))
        same(nd.zeros((2, 2)) + nd.ones((2, 2)), np.ones((2, 2)))
    for _ in range(2):
        found = nd.arange(5, ctx=G), nd.zeros((2, 2), ctx=G) + nd.ones((2, 2), ctx=G)
        assert all(x.context == G for x in found)
        same(found[0], np.arange(5))
        same(found[1], np.ones((2, 2)))


def test_a_number_that_changes_there_and_on_the_processor(monkeypatch):
    monkeypatch.setattr("gnomon.ndarray.lazy.notes.MOST_NUMBERS", 1)
    w, v = nd.array(X), on()
    w.attach_grad()
    v.attach_grad()
    for k in range(6):
        for x in (w, v):
            with autograd.record():
                y = nd.clip(x, -1, k + 2)
                loss = y.sum()
            loss.backward()
            same(y, np.clip(X, -1, k + 2))
            same(x.grad, k + 2 >= X)
