"""What users get wrong is refused in words that say what to do."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.ops import Op, op


def _wrong(name, result):
    @op(name)
    class Wrong(Op):
        """Gives something else than one expression."""

        def forward(self, data):
            return result(data)


for _name, _result in {
    "none": lambda x: None,
    "number": lambda x: 1.0,
    "numpy": lambda x: np.ones(2),
    "two": lambda x: (x, x),
}.items():
    _wrong(f"_test_gives_{_name}", _result)


@pytest.mark.parametrize("what", ["none", "number", "numpy", "two"])
def test_an_operator_that_gives_no_expression(what):
    name = f"_test_gives_{what}"
    with pytest.raises(mx.MXNetError, match=rf"{name}.forward: argument 'result': expected"):
        nd.op.__getattr__(name)(nd.ones(2))
    net = mx.sym.op.__getattr__(name)(mx.sym.Variable("x"))
    with pytest.raises(mx.MXNetError, match=rf"{name}.forward: argument 'result': expected"):
        net.simple_bind(mx.cpu(), x=(2,)).forward()


def test_an_operator_without_a_method():
    op("_test_without_method")(type("Nothing", (Op,), {"__doc__": "Nothing."}))
    with pytest.raises(mx.MXNetError, match="_test_without_method: has neither forward"):
        nd.op.__getattr__("_test_without_method")(nd.ones(2)).wait_to_read()


@pytest.mark.parametrize("shape", [(2.5, 3), (1 << 31,) * 3, (-1, 3), -1, "ab"])
def test_shapes_that_are_none(shape):
    with pytest.raises(mx.MXNetError, match="argument 'shape'"):
        nd.zeros(shape)


def test_what_is_not_there():
    with pytest.raises(mx.MXNetError, match="no GPU back end"):
        nd.ones(2, ctx=mx.gpu(0))
    with pytest.raises(mx.MXNetError, match=r"take: argument 'mode'.*clip"):
        nd.take(nd.array([1, 2]), nd.array([5]), mode="raise")
    with pytest.raises(mx.MXNetError, match="did you mean 'learning_rate'"):
        mx.optimizer.create("sgd", lr=0.1)
    net = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.Variable("data"), name="softmax"))
    net.bind([("data", (2, 3))], [("softmax_label", (2,))])
    net.init_params("xavier")
    with pytest.raises(mx.MXNetError, match="Monitor: argument 'interval'"):
        mx.monitor.Monitor(0)


def test_numpy_is_told_what_an_expression_is():
    t = mx.shadow.Tensor(np.zeros(2, np.float32))
    with pytest.raises(TypeError, match="store it into a tensor"):
        np.asarray(t + t)
