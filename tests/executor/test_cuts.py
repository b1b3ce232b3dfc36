"""Backward passes that are cut where enough gradients are there."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.executor.programs.cuts import sending


@pytest.fixture
def cuts(monkeypatch):
    return lambda nbytes: monkeypatch.setattr(sending, "nbytes", nbytes)


def bound(width=6, layers=3):
    net = mx.sym.Variable("data")
    for k in range(layers):
        net = mx.sym.FullyConnected(net, num_hidden=width, name=f"f{k}")
        net = mx.sym.Activation(net, act_type="tanh")
    executor = mx.sym.SoftmaxOutput(net, name="softmax").simple_bind(mx.cpu(), data=(4, width))
    draw = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = draw.standard_normal(array.shape).astype("f4")
    executor.arg_dict["softmax_label"][:] = 1
    return executor


def gradients(executor, apart):
    if apart:
        executor.forward(is_train=True)
        executor.backward()
    else:
        executor.forward_backward()
    return {k: v.asnumpy() for k, v in executor.grad_dict.items() if v is not None}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("nbytes", "segments"), [(None, 1), (1, 8), (6 * 6 * 4, 4), (10**9, 1)])
def test_gradients_are_the_same_however_a_pass_is_cut(cuts, nbytes, segments, apart):
    expected = gradients(bound(), apart)
    cuts(nbytes)
    executor = bound()
    found = gradients(executor, apart)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)
    (run,) = executor._runs.values()
    name = "backward" if apart else "forward and backward"
    assert len(run.segments(name)) == segments


def test_each_segment_writes_gradients_of_its_own(cuts):
    cuts(1)
    executor = bound()
    gradients(executor, False)
    (run,) = executor._runs.values()
    written = [set(map(id, s.writes)) for s in run.segments("forward and backward")]
    assert all(written)
    assert sum(map(len, written)) == len(set().union(*written))


def test_a_pass_made_before_is_cut_from_now_on(cuts):
    executor = bound()
    expected = gradients(executor, True)
    cuts(1)
    found = gradients(executor, True)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


def test_a_compiled_block_trains_the_same(cuts):
    def weights():
        net = mx.gluon.nn.HybridSequential()
        for _ in range(3):
            net.add(mx.gluon.nn.Dense(5, activation="tanh", in_units=5))
        mx.random.seed(1)
        net.initialize(mx.init.Xavier())
        net.hybridize()
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        data = mx.nd.ones((3, 5))
        for _ in range(4):
            with mx.autograd.record():
                loss = (net(data) ** 2).sum()
            loss.backward()
            trainer.step(3)
        return [p.data().asnumpy() for p in net.collect_params().values()]

    expected = weights()
    cuts(1)
    for found, other in zip(weights(), expected, strict=True):
        np.testing.assert_allclose(found, other, 1e-6, 1e-7)
