"""Layers that repeat: what is planned for one serves the others, on their own memory."""

from collections import Counter

import numpy as np

import gnomon as mx
from gnomon import config
from gnomon.runtime.libraries import neural
from gnomon.runtime.libraries.dnn import available


def repeated(x, onednn):
    """Outputs and gradients of a network whose layers repeat, two of them side by side."""
    y = mx.sym.Variable("data")
    for k in range(3):
        y = mx.sym.relu(convolution(y, f"a{k}"))
    y = convolution(y, "b") * convolution(y, "c")
    with config.using(onednn=onednn):
        bound = y.simple_bind(mx.cpu(), data=x.shape)
        made = np.random.default_rng(1)
        for array in bound.arg_arrays:
            array[:] = made.standard_normal(array.shape) * 0.2
        bound.arg_dict["data"][:] = x
        for _ in range(2):
            bound.forward(is_train=True)
            bound.backward([mx.nd.ones(bound.outputs[0].shape)])
        return [a.asnumpy() for a in (*bound.outputs, *bound.grad_arrays)]


def convolution(x, name):
    return mx.sym.Convolution(x, name=name, num_filter=16, kernel=(3, 3), pad=(1, 1), no_bias=True)


def test_convolutions_that_repeat_are_planned_once(monkeypatch):
    planned, direct = [], neural.direct_step

    def counted(call, *rest):
        planned.append(type(call))
        return direct(call, *rest)

    monkeypatch.setattr(neural, "direct_step", counted)
    x = np.random.default_rng(0).standard_normal((2, 16, 9, 9)).astype("float32")
    found = repeated(x, onednn=True)
    if available():
        assert sorted(Counter(planned).values()) == [1, 1, 1]  # forward, and both gradients
    for mine, plain in zip(found, repeated(x, onednn=False), strict=True):
        np.testing.assert_allclose(mine, plain, 1e-3, 1e-4 + 1e-5 * abs(plain).max())
