"""autograd: gradients against NumPy and finite differences, requests, scopes, views, errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gnomon import autograd, nd
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.context import cpu
from gnomon.symbol import load_json


def variable(values, req="write"):
    x = nd.array(values)
    x.attach_grad(req)
    return x


def test_a_gradient():
    x = variable([1, 2, 3])
    with autograd.record():
        y = (x * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4, 6]


@pytest.mark.parametrize(("req", "expected"), [("write", [2, 4]), ("add", [6, 12]), ("null", None)])
def test_requests(req, expected):
    x, z = variable([1, 2], req), variable([1, 1])
    for _ in range(3):
        with autograd.record():
            y = x * x + z
        y.backward()
    assert (None if x.grad is None else x.grad.asnumpy().tolist()) == expected
    assert z.grad.asnumpy().tolist() == [1, 1]


def test_shares_of_several_readers_add_up():
    x = variable([1, 2, 3])
    with autograd.record():
        a = x * 2
        y = a * x + a + nd.exp(x) * 0
    y.backward()
    assert x.grad.asnumpy().tolist() == [6, 10, 14]


def test_a_network_by_finite_differences():
    rng = np.random.default_rng(0)
    shapes = {"x": (3, 4), "w": (5, 4), "b": (5,), "v": (2, 5)}
    values = {n: rng.normal(size=s) for n, s in shapes.items()}

    def loss(arrays):
        hidden = nd.tanh(nd.FullyConnected(arrays["x"], arrays["w"], arrays["b"], num_hidden=5))
        out = nd.dot(hidden, arrays["v"], transpose_b=True)
        return (nd.softmax(out) * nd.log_softmax(out)).sum()

    arrays = {n: nd.array(v, dtype="float64") for n, v in values.items()}
    for x in arrays.values():
        x.attach_grad()
    with autograd.record():
        y = loss(arrays)
    y.backward()
    for name, x in arrays.items():
        place = tuple(rng.integers(0, n) for n in x.shape)
        ends = []
        for step in (1e-5, -1e-5):
            moved = dict(arrays)
            moved[name] = x.copy()
            moved[name][place] = values[name][place] + step
            ends.append(loss(moved).asscalar())
        numeric = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(x.grad.asnumpy()[place], numeric, rtol=1e-5, atol=1e-9)


def test_several_heads_and_their_gradients():
    x = variable([1, 2])
    with autograd.record():
        y, z = x * 2, x * x
    autograd.backward([y, z], [nd.array([1, 10]), None])
    assert x.grad.asnumpy().tolist() == [2 + 2, 20 + 4]


def test_outputs_of_one_operator():
    x = variable([[1, 2], [3, 4]])
    with autograd.record():
        left, right = nd.split(x, num_outputs=2, axis=1)
        y = left * 3 + right * right * 0 + left
    y.backward()
    assert x.grad.asnumpy().tolist() == [[4, 0], [4, 0]]
    with autograd.record():
        right = nd.split(x, num_outputs=2, axis=1)[1]
    right.backward()
    assert x.grad.asnumpy().tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[1], [[0, 0, 0], [1, 1, 1]]),
        (lambda x: x[:, ::2], [[1, 0, 1], [1, 0, 1]]),
        (lambda x: x[::-1, 2:0:-1], [[0, 1, 1], [0, 1, 1]]),
        (lambda x: x[0, 1], [[0, 1, 0], [0, 0, 0]]),
        (lambda x: x[[0, 0]], [[2, 2, 2], [0, 0, 0]]),
        (lambda x: x[[0, 1], [2, 0]], [[0, 0, 1], [1, 0, 0]]),
        (lambda x: x[np.array([[True, False, True], [False] * 3])], [[1, 0, 1], [0, 0, 0]]),
        (lambda x: x.reshape((3, 2))[0], [[1, 1, 0], [0, 0, 0]]),
        (lambda x: x.T[0], [[1, 0, 0], [1, 0, 0]]),
        (lambda x: x.expand_dims(0).squeeze(), [[1, 1, 1], [1, 1, 1]]),
        (lambda x: x[...], [[1, 1, 1], [1, 1, 1]]),
        (lambda x: x.astype("float64"), [[1, 1, 1], [1, 1, 1]]),
        (lambda x: x.copy(), [[1, 1, 1], [1, 1, 1]]),
        (lambda x: x.as_in_context(x.context), [[1, 1, 1], [1, 1, 1]]),
    ],
)
def test_through_views_and_copies(function, expected):
    x = variable([[1, 2, 3], [4, 5, 6]])
    with autograd.record():
        y = function(x) * 1
    y.backward()
    assert x.grad.asnumpy().tolist() == expected


def test_what_stops_gradients():
    x = variable([1, 2])
    with autograd.record():
        y = x * x.detach() + nd.BlockGrad(x * 5)
        with autograd.pause():
            z = x * 100
        y = y + z
    y.backward()
    assert x.grad.asnumpy().tolist() == [1, 2]
    with autograd.record():
        y = nd.BlockGrad(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [0, 0]


def test_grad_leaves_the_variables_alone():
    x = variable([1, 2])
    with autograd.record():
        y = x * x
        z = y * 3
    assert [g.asnumpy().tolist() for g in autograd.grad(z, [x, y])] == [[6, 12], [3, 3]]
    assert x.grad.asnumpy().tolist() == [0, 0]


def test_retain_graph():
    x = variable([1, 2])
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 4]
    with pytest.raises(GnomonError, match="the tape was followed already"):
        y.backward()


def test_dropout_is_differentiated_as_it_was_drawn():
    x = variable(np.ones((1000,)))
    with autograd.record():
        y = nd.Dropout(x, p=0.5)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    assert 350 < (y.asnumpy() == 0).sum() < 650
    with autograd.record(train_mode=False):
        y = nd.Dropout(x, p=0.5)
    y.backward()
    assert (x.grad.asnumpy() == 1).all()


def test_a_loss_that_states_its_gradient():
    x = variable([[1, 2, 3], [1, 1, 1]])
    with autograd.record():
        y = nd.SoftmaxOutput(x, nd.array([2, 0]))
    y.backward()
    expected = y.asnumpy() - np.eye(3)[[2, 0]]
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5)


def test_scopes():
    def flags():
        return autograd.is_recording(), autograd.is_training()

    assert flags() == (False, False)
    scope = autograd.record(train_mode=False)
    with scope:
        assert flags() == (True, False)
        with autograd.train_mode():
            assert flags() == (True, True)
            with autograd.pause():
                assert flags() == (False, False)
            with autograd.predict_mode(), scope:
                assert flags() == (True, False)
        assert flags() == (True, False)
    with autograd.record(train_mode=3):  # of which truth alone counts
        assert flags() == (True, True)
    assert flags() == (False, False)
    assert autograd.set_recording(True) is False
    assert autograd.set_training(True) is False
    assert (autograd.set_recording(False), autograd.set_training(False)) == (True, True)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(slice(None), 2),
        lambda x: x.__iadd__(1),
        lambda x: nd.sqrt(nd.ones((2,)), out=x),
        lambda x: x[0:1].__iadd__(1),
    ],
)
def test_variables_are_not_written_while_recording(write):
    x = variable([1, 2])
    with autograd.record(), pytest.raises(GnomonError, match="cannot be written while recording"):
        write(x)
    assert x.asnumpy().tolist() == [1, 2]
    x += 1
    assert x.asnumpy().tolist() == [2, 3]


def test_a_head_that_is_not_on_the_tape():
    x = variable([1, 2])
    with pytest.raises(GnomonError, match=r"heads\[0\] was not computed from a variable"):
        (x * 2).backward()
    with autograd.record():
        y = x * 2
    with pytest.raises(ParamError, match=r"variables\[0\]"):
        autograd.grad(y, [nd.ones((2,))])
    with pytest.raises(ShapeError, match=r"an NDArray of shape \(2,\)"):
        y.backward(nd.ones((3,)))


def test_mark_variables():
    a, b, g, h = nd.ones((2,)), nd.ones((2,)), nd.zeros((2,)), nd.zeros((2,))
    autograd.mark_variables([a, b], [g, h], ["write", "add"])
    with autograd.record():
        y = a * 3 + b
    y.backward(retain_graph=True)
    y.backward()
    assert (g.asnumpy().tolist(), h.asnumpy().tolist()) == ([3, 3], [2, 2])
    assert a.grad is g
    with pytest.raises(ParamError, match=r"expected shape \(2,\) of float32, got shape \(3,\)"):
        autograd.mark_variables(a, nd.zeros((3,)))
    with pytest.raises(ParamError, match="write, add or null"):
        a.attach_grad("wrote")
    with pytest.raises(ParamError, match="2 gradients and requests, got 1 and 2"):
        autograd.mark_variables([a, b], [g])


def test_attach_grad_cuts_the_tape():
    x = variable([1, 2])
    with autograd.record():
        y = x * x
    y.attach_grad()
    with autograd.record():
        z = y * 2
    z.backward()
    assert (y.grad.asnumpy().tolist(), x.grad.asnumpy().tolist()) == ([2, 2], [0, 0])


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def test_a_function_of_ones_own():
    x = variable([0, 1, -2])
    with autograd.record():
        y = Sigmoid()(x * 2) * 3
    y.backward()
    s = 1 / (1 + np.exp(-2 * np.array([0, 1, -2])))
    np.testing.assert_allclose(y.asnumpy(), 3 * s, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * s * (1 - s), rtol=1e-5)


class Double(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 2


class Split(autograd.Function):
    def forward(self, x, scale):
        return x + scale, x * scale

    def backward(self, first, second):
        return first + second * 4


def test_a_function_with_a_wrong_number_of_gradients():
    x = variable([1, 2])
    with autograd.record():
        y, z = Split()(x, nd.array([4]))
        total = y + z
    with pytest.raises(ParamError, match=r"Split\.backward.*2 gradients, one an input, got 1"):
        total.backward()


def test_a_long_chain():
    x = variable([1.0])
    with autograd.record():
        y = x
        for _ in range(5000):
            y = y + 1
    y.backward()
    assert x.grad.asnumpy().tolist() == [1]


def test_a_chain_is_longer_than_what_is_noted_at_once():
    """In a thread that notes: others rest from it once they have noted much in vain."""
    with ThreadPoolExecutor(1) as other:
        for _ in range(2):
            other.submit(test_a_long_chain).result()


def test_training_reaches_its_goal():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(4, 1)).astype(np.float32)
    data = nd.array(rng.normal(size=(64, 4)))
    target = nd.dot(data, nd.array(true))
    weight = variable(np.zeros((4, 1)))
    for _ in range(60):
        with autograd.record():
            loss = nd.square(nd.dot(data, weight) - target).mean()
        loss.backward()
        weight -= 0.2 * weight.grad
    np.testing.assert_allclose(weight.asnumpy(), true, atol=1e-2)


def test_one_function_object_is_one_call_on_the_tape():
    x, f = nd.ones((2,)), Sigmoid()
    f(x)
    x.attach_grad()
    with autograd.record():
        y = f(x)
        with pytest.raises(GnomonError, match="make another Sigmoid"):
            f(x)
    y.backward()
    s = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(x.grad.asnumpy(), [s * (1 - s)] * 2, 1e-5)


def _network(x, w):
    """Operators of all kinds: parameters, several outputs, views, what is not on the tape."""
    first, second = nd.split(nd.dot(x, w) + nd.array([1, 2, 3, 4]), num_outputs=2, axis=1)
    joined = nd.concat(nd.exp(first), second * 2, x[:, 1:], dim=1)
    return nd.softmax(joined, axis=-1) * joined.reshape((3, -1))


def test_the_symbol_of_what_was_recorded():
    rng = np.random.default_rng(0)
    x, w = variable(rng.normal(size=(3, 2))), variable(rng.normal(size=(2, 4)))
    with autograd.record():
        y = _network(x, w)
    net = autograd.get_symbol(y)
    (one,), (two,) = (autograd.get_symbol(v).list_arguments() for v in (x, w))
    outside = [n for n in net.list_arguments() if n not in (one, two)]
    assert (one[:3], two[:3], len(outside), outside[0][:4]) == ("var", "var", 1, "null")
    assert net.list_outputs()[0].startswith("node_")
    values = {one: x.copy(), two: w.copy(), outside[0]: nd.array([1, 2, 3, 4])}
    grads = {name: nd.zeros(values[name].shape) for name in (one, two)}
    head = nd.array(rng.normal(size=y.shape))
    y.backward(head)
    for symbol in (net, load_json(net.tojson())):
        bound = symbol.bind(cpu(), values, grads)
        np.testing.assert_allclose(bound.forward(is_train=True)[0].asnumpy(), y.asnumpy(), 1e-6)
        bound.backward([head])
        np.testing.assert_allclose(grads[one].asnumpy(), x.grad.asnumpy(), 1e-5, 1e-6)
        np.testing.assert_allclose(grads[two].asnumpy(), w.grad.asnumpy(), 1e-5, 1e-6)


def test_the_symbol_of_operators_with_states_and_of_one_output():
    x = variable([[1, 2], [3, 5]])
    ones, zeros = nd.ones((2,)), nd.zeros((2,))
    with autograd.record():
        y = nd.BatchNorm(x, ones, zeros, zeros.copy(), ones.copy())
        second = nd.split(x, num_outputs=2, axis=1)[1]
    net = autograd.get_symbol(y)
    assert (len(net.list_arguments()), len(net.list_auxiliary_states())) == (3, 2)
    states = [nd.zeros((2,)), nd.ones((2,))]
    bound = net.bind(cpu(), [x, ones, zeros], aux_states=states)
    np.testing.assert_array_equal(bound.forward(is_train=True)[0].asnumpy(), y.asnumpy())
    assert autograd.get_symbol(second).bind(cpu(), [x]).forward()[0].asnumpy().tolist() == [
        [2],
        [5],
    ]


def test_what_no_symbol_says():
    x = variable([1, 2])
    with pytest.raises(GnomonError, match=r"get_symbol: argument 'x'.*attach_grad"):
        autograd.get_symbol(nd.ones((2,)))
    with pytest.raises(TypeError, match="an NDArray"):
        autograd.get_symbol(1)
    with autograd.record():
        doubled = Double()(x)
        (slope,) = autograd.grad(nd.sum(x * x * x), [x], create_graph=True)
    with pytest.raises(GnomonError, match="Function"):
        autograd.get_symbol(doubled)
    with pytest.raises(GnomonError, match="create_graph"):
        autograd.get_symbol(slope)


INTEGERS = {
    "x*x": lambda x, y: x * x,
    "x*y": lambda x, y: x * y,
    "x-y": lambda x, y: x - y,
    "x/y": lambda x, y: x / y,
    "x**y": lambda x, y: x**y,
    "x*2.5": lambda x, y: x * 2.5,
    "7/x": lambda x, y: 7 / x,
    "2**x": lambda x, y: 2**x,
    "exp": lambda x, y: nd.exp(x),
    "tanh": lambda x, y: nd.tanh(x),
    "mean": lambda x, y: x.mean(),
    "prod": lambda x, y: x.prod(),
    "slice": lambda x, y: x[1:3] * 2,
    "take": lambda x, y: nd.take(x, nd.array([0, 0, 2])) * 2,
    "cast": lambda x, y: (x.astype("float32") * 2.5).astype("int32"),
    "maximum": nd.maximum,
    "broadcast": lambda x, y: nd.broadcast_mul(x.reshape((2, 2)), y[:2].reshape((1, 2))),
}
#: of [3, 1, 4, 2] and [2, 3, 1, 5], as MXNet 1.9.1 gives them
INTEGER_GRADIENTS = {
    "x*x": ([6, 2, 8, 4], [0, 0, 0, 0]),
    "x*y": ([2, 3, 1, 5], [3, 1, 4, 2]),
    "x-y": ([1, 1, 1, 1], [-1, -1, -1, -1]),
    "x/y": ([0, 0, 1, 0], [0, 0, -4, 0]),
    "x**y": ([6, 3, 1, 80], [9, 0, 5, 22]),
    "x*2.5": ([2, 2, 2, 2], [0, 0, 0, 0]),
    "7/x": ([0, -7, 0, -1], [0, 0, 0, 0]),
    "2**x": ([5, 1, 11, 2], [0, 0, 0, 0]),
    "exp": ([20, 2, 54, 7], [0, 0, 0, 0]),
    "tanh": ([1, 1, 1, 1], [0, 0, 0, 0]),
    "mean": ([0, 0, 0, 0], [0, 0, 0, 0]),
    "prod": ([8, 24, 6, 12], [0, 0, 0, 0]),
    "slice": ([0, 2, 2, 0], [0, 0, 0, 0]),
    "take": ([4, 0, 2, 0], [0, 0, 0, 0]),
    "cast": ([2, 2, 2, 2], [0, 0, 0, 0]),
    "maximum": ([1, 0, 1, 0], [0, 1, 0, 1]),
    "broadcast": ([2, 3, 2, 3], [7, 3, 0, 0]),
}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_gradients_of_integers_are_integers(name, dtype):
    x, y = nd.array([3, 1, 4, 2], dtype=dtype), nd.array([2, 3, 1, 5], dtype=dtype)
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        z = INTEGERS[name](x, y)
    z.backward()
    assert x.grad.dtype is np.dtype(dtype).type
    assert (x.grad.asnumpy().tolist(), y.grad.asnumpy().tolist()) == INTEGER_GRADIENTS[name]


def test_a_number_beside_integers_is_differentiated_as_it_was_taken():
    x = nd.array([3, -1], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = x * 2.5
    y.backward(nd.array([2, 10], dtype="int32"))
    assert x.grad.asnumpy().tolist() == [4, 20]  # y is x * 2


def test_truth_values_have_no_gradient():
    x = nd.array([1, 0], dtype="bool")
    x.attach_grad()
    with autograd.record():
        y = x * 3
    y.backward()
    assert x.grad.asnumpy().tolist() == [False, False]


@pytest.mark.parametrize("value", ["", "x", [], 1.5, nd.ones(1)])
@pytest.mark.parametrize(
    "function", [autograd.record, autograd.pause, autograd.set_training, autograd.set_recording]
)
def test_flags_are_bools_or_whole_numbers(function, value):
    with pytest.raises(TypeError, match=f"{function.__name__}: argument '.*': expected a bool"):
        function(value)


@pytest.mark.parametrize(("value", "meant"), [(2, True), (0, False), (np.True_, True)])
def test_numbers_as_flags(value, meant):
    with autograd.record(value), autograd.pause(None):
        assert autograd.is_training() == meant
