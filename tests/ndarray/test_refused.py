"""What users get wrong is refused in words that say what to do."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, dtype, nd
from gnomon.expr.node import Buffer
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
    with pytest.raises(TypeError, match=r"op _test_without_method: .*forward.*run"):
        op("_test_without_method")(type("Nothing", (Op,), {"__doc__": "Nothing."}))


RULES = {
    "other": (
        {"shapes": lambda self, s: s.__setitem__("output", (3,))},
        r"shape \(3,\), as shapes",
    ),
    "text": ({"shapes": lambda self, s: s.__setitem__("output", "ab")}, "a tuple of sizes"),
    "below": ({"shapes": lambda self, s: s.__setitem__("output", (-3,))}, "a tuple of sizes"),
    "name": ({"shapes": lambda self, s: s.__setitem__("out", (2,))}, "one of data, output"),
    "dtype": ({"types": lambda self, t: t.__setitem__("output", dtype.int32)}, "dtype int32, as"),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules_that_do_not_fit_name_the_operator(rule):
    name, (methods, told) = f"_test_rule_{rule}", RULES[rule]
    body = {"__doc__": "One.", "forward": lambda self, data: data, **methods}
    op(name)(type("Ruled", (Op,), body))
    with pytest.raises(mx.MXNetError, match=rf"{name}.*{told}"):
        nd.op.__getattr__(name)(nd.ones(2))
    net = mx.sym.op.__getattr__(name)(mx.sym.Variable("x"), name="here")
    with pytest.raises(mx.MXNetError, match=rf"{name}.*{told}"):
        net.simple_bind(mx.cpu(), x=(2,)).forward()


@pytest.mark.parametrize(
    ("gradient", "told"),
    [
        (np.ones(2), "an expression, or None"),
        (None, "a tuple of 1 gradients"),
        (Buffer((3,)), r"shape \(2,\), as shapes"),
    ],
)
def test_gradients_that_do_not_fit_name_the_operator(gradient, told):
    name = "_test_gradient_of_" + type(gradient).__name__
    found = None if gradient is None else (gradient,)
    methods = {"forward": lambda self, x: x * x, "backward": lambda self, g, i, o: found}
    op(name)(type("Wrong", (Op,), {"__doc__": "One.", **methods}))
    net = mx.sym.op.__getattr__(name)(mx.sym.Variable("x"))
    bound = net.simple_bind(mx.cpu(), x=(2,))
    np.testing.assert_array_equal(bound.forward(x=[2, 3])[0].asnumpy(), [4, 9])
    with pytest.raises(mx.MXNetError, match=rf"{name}.backward.*{told}"):
        bound.forward(is_train=True)


@pytest.mark.parametrize("shape", [(2.5, 3), (1 << 31,) * 3, (-1, 3), -1, "ab"])
def test_shapes_that_are_none(shape):
    with pytest.raises(mx.MXNetError, match="argument 'shape'"):
        nd.zeros(shape)


def test_what_is_not_there():
    with config.using(gpu="off"), pytest.raises(mx.MXNetError, match="no GPU can be used"):
        nd.ones(2, ctx=mx.gpu(0))
    found = nd.take(nd.array([1, 2]), nd.array([5]), mode="raise")
    with pytest.raises(mx.MXNetError, match="index 5 is out of bounds for axis 0 with size 2"):
        found.wait_to_read()
    found = nd.take(nd.ones((2, 3)), nd.array([3]), axis=-1, mode="raise")
    with pytest.raises(mx.MXNetError, match="index 3 is out of bounds for axis 1 with size 3"):
        found.wait_to_read()
    with pytest.raises(TypeError, match="did you mean 'learning_rate'"):
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


@pytest.mark.parametrize(
    "call",
    [
        nd.linalg.extractdiag,
        nd.linalg.makediag,
        nd.linalg.potri,
        nd.topk,
        lambda x, y: x.sort(y),
        lambda x, y: nd.relu(x.tostype("csr"), y, y),
        lambda x, y: nd.sum(x.tostype("csr"), y),
    ],
)
def test_an_array_too_many_is_no_destination(call):
    x, y = nd.ones((3, 3)), nd.array([[5.0, 6.0]])
    with pytest.raises(mx.MXNetError, match=r"argument 'inputs': expected 1 of them: "):
        call(x, y)
    assert y.asnumpy().tolist() == [[5.0, 6.0]]


@pytest.mark.parametrize("key", [0, slice(None), [0, 1]])
@pytest.mark.parametrize("value", [None, [None, 1], np.array([1, None])])
def test_none_is_no_integer(key, value):
    x = nd.ones((3, 2), dtype="int32")
    with pytest.raises(dtype.DTypeError, match=r"__setitem__: argument 'value': .* got .*None"):
        x[key] = value
    assert x.asnumpy().all()
