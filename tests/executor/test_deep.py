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


def unit(x, name, filters, stride, widens):
    """A bottleneck of ResNet v1: 1x1, 3x3, 1x1, around it the value itself or a 1x1 of it."""

    def layer(x, kernel, filters, stride, part):
        sizes = {"kernel": (kernel, kernel), "pad": (kernel // 2,) * 2, "stride": (stride, stride)}
        x = mx.sym.Convolution(x, num_filter=filters, no_bias=True, name=name + part, **sizes)
        return mx.sym.BatchNorm(x, fix_gamma=False, name=f"{name}{part}_bn")

    y = mx.sym.relu(layer(x, 1, filters // 4, 1, "a"))
    y = mx.sym.relu(layer(y, 3, filters // 4, stride, "b"))
    x = layer(x, 1, filters, stride, "short") if widens else x
    return mx.sym.relu(layer(y, 1, filters, 1, "c") + x)


def resnet50():
    """53 convolutions with their normalizations."""
    x = mx.sym.Variable("data")
    x = mx.sym.Convolution(x, kernel=(7, 7), stride=(2, 2), pad=(3, 3), num_filter=64, no_bias=True)
    x = mx.sym.relu(mx.sym.BatchNorm(x, fix_gamma=False))
    x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    for stage, count in enumerate((3, 4, 6, 3)):
        for k in range(count):
            stride = 2 if stage and not k else 1
            x = unit(x, f"s{stage}u{k}", 256 << stage, stride, not k)
    x = mx.sym.Pooling(x, global_pool=True, pool_type="avg", kernel=(7, 7))
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=100, name="fc"))


def test_layers_that_are_alike_share_kernels():
    """A training step of ResNet-50 has hundreds of steps, and few kernels."""
    bound = resnet50().simple_bind(mx.cpu(), data=(1, 3, 64, 64))
    run = bound._run(bound._mode(True))
    (segment,) = run.segments("forward and backward")
    steps = segment.program.steps
    assert len(steps) > 300
    assert len({step.function for step in steps}) <= 120


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_nodes_are_bound():
    seconds, bound = bind(100_000)
    check(bound, 100_000)
    assert seconds < 300


def test_a_convolution_of_very_many_groups_in_float64():
    """Its groups are no nodes: as many as there are channels take as long as a few."""
    groups = 600
    data = mx.sym.Variable("data")
    net = mx.sym.Convolution(
        data, kernel=(3, 3), pad=(1, 1), num_filter=groups, num_group=groups, no_bias=True, name="c"
    )
    bound = net.simple_bind(mx.cpu(), data=(2, groups, 4, 3), type_dict={"data": "float64"})
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, groups, 4, 3)), rng.standard_normal((groups, 1, 3, 3))
    bound.arg_dict["data"][:], bound.arg_dict["c_weight"][:] = x, w
    out = bound.forward(is_train=True)[0]
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3)
    )
    np.testing.assert_allclose(out.asnumpy(), np.einsum("ngabkl,gkl->ngab", windows, w[:, 0]))
    bound.backward(mx.nd.ones(out.shape, dtype="float64"))
    grad = np.broadcast_to(windows.sum((0, 2, 3))[:, None], w.shape)
    np.testing.assert_allclose(bound.grad_dict["c_weight"].asnumpy(), grad)
