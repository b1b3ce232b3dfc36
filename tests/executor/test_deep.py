"""Deep graphs: nothing recurses, and time grows with the number of nodes, not faster."""

import time

import numpy as np
import pytest

import gnomon as mx


def chain(count):
    """A chain of `count` operators, every tenth a layer: it keeps values near 1."""
    x = mx.sym.Variable("x")
    weight = mx.sym.Variable("weight")
    for k in range(count):
        x = mx.sym.tanh(x) if k % 10 else mx.sym.FullyConnected(
            x, weight, no_bias=True, num_hidden=4, name=f"fc{k}"
        )  # fmt: skip
    return x


def bind(count):
    """The time that binding a chain takes, and the executor."""
    net = chain(count)
    begin = time.perf_counter()
    bound = net.simple_bind(mx.cpu(), x=(2, 4))
    return time.perf_counter() - begin, bound


def check(bound, count):
    """Outputs and gradients of the chain, by NumPy."""
    x, weight = np.full((2, 4), 0.5), np.eye(4) * 1.5
    bound.arg_dict["x"][:] = x
    bound.arg_dict["weight"][:] = weight
    bound.forward(is_train=True)
    bound.backward(mx.nd.ones((2, 4)))
    grad = np.ones_like(x)
    for k in range(count):
        x, grad = (np.tanh(x), grad * (1 - np.tanh(x) ** 2)) if k % 10 else (x * 1.5, grad * 1.5)
    np.testing.assert_allclose(bound.outputs[0].asnumpy(), x, 1e-4)
    np.testing.assert_allclose(bound.grad_dict["x"].asnumpy(), grad, 1e-3, 1e-7)


def test_a_chain_of_thousands_is_bound_without_recursion():
    """Deeper than Python's stack; twice the nodes take about twice the time."""
    bind(500)  # compiles the kernels
    short, _ = bind(2000)
    long, bound = bind(4000)
    check(bound, 4000)
    assert long < 4 * short + 1


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_nodes_are_bound():
    seconds, bound = bind(100_000)
    check(bound, 100_000)
    assert seconds < 300
