"""Operators on NumPy arrays: requests, casts, sizes that values decide, random numbers, errors."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import GnomonError, ShapeError
from gnomon.ndarray.lazy import on_data
from gnomon.ops import find
from gnomon.ops.case import case
from gnomon.ops.host import HostOp
from gnomon.ops.op import Op, op
from gnomon.ops.testing import check_case


@op("_test_shares", inputs=("data", "scale"), outputs=("whole", "rest"))
class Shares(HostOp):
    """Whole part and rest of `data * scale`; of the rest, the gradient."""

    cases = (case((2, 3), [2.0]), case((0, 3), [1.0]), case((4,), [0.5]))

    def shapes(self, s):
        s["scale"] = (1,)
        s.same("data", "whole", "rest")

    def compute(self, data, scale):
        assert not data.flags.writeable
        return np.floor(data * scale), data * scale - np.floor(data * scale)

    def reference(self, data, scale):
        return np.floor(data * scale), (data * scale) % 1.0

    def gradient(self, grad_rest, data, scale):
        return {"data": grad_rest * scale, "scale": (grad_rest * data).sum().reshape(1)}


@op("_test_chosen", inputs=("data",))
class Chosen(HostOp):
    """What is above 0, in a row."""

    cases = (case((3, 4)), case([-1.0, -2.0]))

    def shapes(self, s):
        s["output"] = (-1,)

    def compute(self, data):
        return data[data > 0]

    reference = compute

    def gradient(self, grad, data):
        found = np.zeros_like(data)
        found[data > 0] = grad
        return found


@op("_test_dice", inputs=("data",))
class Dice(HostOp):
    """Random numbers like `data`."""

    def compute(self, data, *, random):
        return random.integers(1, 7, data.shape)


@op("_test_wrong", inputs=("data",))
class Wrong(HostOp):
    """Another shape than it says."""

    def compute(self, data):
        return data.sum()


@pytest.mark.parametrize(
    ("cls", "example"), [(c, e) for c in (Shares, Chosen) for e in c.cases], ids=str
)
def test_cases(cls, example):
    check_case(cls, example)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_on_arrays_of_any_strides_and_dtype(dtype):
    x = nd.arange(24, dtype=dtype).reshape((4, 6))[::-1, 1::2]
    scale = nd.array([0.25], dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        whole, rest = nd._internal._test_shares(x, scale)
    rest.backward()
    values = x.astype("float64").asnumpy() / 4
    assert rest.dtype == whole.dtype == x.dtype
    np.testing.assert_array_equal(whole.astype("float64").asnumpy(), np.floor(values))
    np.testing.assert_array_equal(rest.astype("float64").asnumpy(), values % 1)
    np.testing.assert_array_equal(x.grad.astype("float64").asnumpy(), np.full((4, 3), 0.25))


@pytest.mark.parametrize("request_type", ["write", "add", "null"])
def test_in_a_bound_symbol(request_type):
    net = mx.sym._internal._test_shares(mx.sym.var("x") * 1.0, mx.sym.var("s"))[1] * 2.0
    gradient = nd.full((3,), 5)
    values = {"x": nd.array([0.3, 1.6, -2.5]), "s": nd.array([1])}
    bound = net.bind(mx.cpu(), values, {"x": gradient}, {"x": request_type})
    (out,) = bound.forward(is_train=True)
    np.testing.assert_allclose(out.asnumpy(), [0.6, 1.2, 1.0], 1e-5)
    bound.backward(nd.ones(3))
    told = {"write": 2, "add": 7, "null": 5}[request_type]
    np.testing.assert_allclose(gradient.asnumpy(), np.full(3, told))


def test_values_decide_a_size():
    x = nd.array([[1, -2, 3], [-4, 5, 6]])
    x.attach_grad()
    with mx.autograd.record():
        y = nd._internal._test_chosen(x * 2)
    assert y.shape == (4,)
    y.backward(nd.array([1, 2, 3, 4]))
    np.testing.assert_array_equal(x.grad.asnumpy(), [[2, 0, 4], [0, 6, 8]])
    executor = mx.sym._internal._test_chosen(mx.sym.var("x")).bind(mx.cpu(), {"x": x})
    assert [executor.forward()[0].shape, executor.outputs[0].shape] == [(4,), (4,)]


def test_a_seed_repeats_random_numbers():
    found = []
    for seed in (3, 3, 4):
        mx.random.seed(seed)
        found.append([nd._internal._test_dice(nd.zeros(50)).asnumpy() for _ in range(2)])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][0] != found[0][1]).any()
    assert (found[0][0] != found[2][0]).any()
    own = np.random.Generator(np.random.Philox(key=4, counter=1 << 64))  # the second draw's
    np.testing.assert_array_equal(found[2][1], own.integers(1, 7, 50))


def test_an_operator_looks_once_at_each_array(monkeypatch):
    seen, shuffle = [], find("shuffle").parse({})
    look = mx.nd.NDArray._numpy
    monkeypatch.setattr(mx.nd.NDArray, "_numpy", lambda x: seen.append(x.shape) or look(x))
    monkeypatch.setattr(on_data, "blobs", None)
    x = nd.arange(6).reshape((3, 2))
    found = nd.invoke(shuffle, [x])
    found.wait_to_read()
    assert seen == [(3, 2), (3, 2)]
    monkeypatch.undo()
    assert sorted(found.asnumpy().tolist()) == x.asnumpy().tolist()


def test_another_shape_is_refused_and_nothing_is_written():
    with pytest.raises(mx.MXNetError, match=r"_test_wrong.compute: argument 'output': .*\(3,\)"):
        nd._internal._test_wrong(nd.ones(3)).asnumpy()


def test_a_gradient_that_asks_for_nothing_there_is():
    @op("_test_asks", inputs=("data",))
    class Asks(Op):
        """The same."""

        def forward(self, data):
            return data * 1.0

        def gradient(self, grad, weight):
            return grad

    with pytest.raises(ShapeError, match=r"_test_asks.gradient: argument 'weight': expected"):
        find("_test_asks")().backward_needs([(3,)], [mx.dtype.float32])


@op("_test_named", inputs=("lhs", "rhs"))
class Named(Op):
    """The sum; gradients told by name."""

    told = "tuple"

    def forward(self, lhs, rhs):
        return lhs + rhs

    def gradient(self, grad, inputs, output):
        wrong = {"names": {"other": grad}, "count": (grad,)}
        return wrong.get(self.told, (grad * 3.0, None) if self.told == "tuple" else None)


def test_what_a_gradient_may_give():
    lhs, rhs = nd.ones(2), nd.ones(2)
    lhs.attach_grad()
    rhs.attach_grad()
    with mx.autograd.record():
        y = nd._internal._test_named(lhs, rhs)
    y.backward()
    assert (lhs.grad.asnumpy().tolist(), rhs.grad.asnumpy().tolist()) == ([3, 3], [0, 0])
    for told, words in (("names", "names among lhs, rhs"), ("count", "2 of them: lhs, rhs")):
        changed = type("Changed", (Named,), {"told": told})
        with pytest.raises(ShapeError, match=words):
            changed().backward([None], [None, None], [None])


@op("_test_ranks", inputs=("data",))
class Ranks(HostOp):
    """The order of elements: a subclass that says nothing of gradients."""

    cases = (case((3,)),)

    def compute(self, data):
        return np.argsort(data)

    reference = compute


def test_without_a_gradient_it_is_not_differentiable():
    x = nd.array([3, 1, 2])
    x.attach_grad()
    ranks = mx.nd._internal._test_ranks
    with mx.autograd.record():
        used, unused = x * 2, ranks(x)
        stopped = used + nd.BlockGrad(ranks(x))
        followed = used + ranks(x)
    for head in (used, stopped):
        head.backward(retain_graph=True)
        np.testing.assert_array_equal(x.grad.asnumpy(), [2, 2, 2])
    for head in (unused, followed):
        with pytest.raises(GnomonError, match="_test_ranks: is not differentiable"):
            head.backward()
    symbol = mx.sym._internal._test_ranks(mx.sym.var("data"))
    bound = symbol.simple_bind(mx.cpu(), data=(3,))
    np.testing.assert_array_equal(bound.forward(data=x)[0].asnumpy(), [1, 2, 0])
    with pytest.raises(GnomonError, match="_test_ranks: is not differentiable"):
        bound.forward(is_train=True)
    bound = symbol.simple_bind(mx.cpu(), grad_req="null", data=(3,))
    np.testing.assert_array_equal(bound.forward(data=x)[0].asnumpy(), [1, 2, 0])
