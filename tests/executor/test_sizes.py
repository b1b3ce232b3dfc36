"""A network bound for one size after another gives the bits of one bound for that size alone."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gnomon as mx
from gnomon.graph.gradient import _look
from gnomon.ops import derive


def grown(draw: random.Random) -> Any:
    """A random network of a few layers on pictures of 12x12, whose batch is open."""
    x, size = mx.sym.Variable("data"), 12
    for k in range(draw.randint(1, 2)):
        kernel = (draw.choice((1, 3)),) * 2
        x = mx.sym.Convolution(x, kernel=kernel, num_filter=draw.choice((3, 8)), name=f"conv{k}")
        x = mx.sym.Activation(x, act_type=draw.choice(("relu", "tanh")))
        size -= kernel[0] - 1
        kind = draw.choice(("max", "avg"))
        if size % 2 == 0:
            x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type=kind)
            size //= 2
    x = mx.sym.FullyConnected(x, num_hidden=7, name="dense")
    if draw.random() < 0.5:
        x = mx.sym.LayerNorm(x, name="norm")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def passes(bound: Any, values: dict[str, np.ndarray[Any, Any]], n: int) -> list[bytes]:
    """The bits of the outputs and of all gradients."""
    made = np.random.RandomState(n)
    for name, array in bound.arg_dict.items():
        if name in values:
            array[:] = values[name]
    bound.arg_dict["data"][:] = made.standard_normal((n, 2, 12, 12))
    bound.arg_dict["softmax_label"][:] = made.randint(0, 7, n)
    bound.forward(is_train=True)
    bound.backward()
    grads = [g for g in bound.grad_arrays if g is not None]
    return [a.asnumpy().tobytes() for a in (*bound.outputs, *grads)]


@pytest.mark.parametrize("seed", range(2))
def test_sizes_in_turn_give_the_bits_of_each_alone(seed: int) -> None:
    draw = random.Random(seed)
    net, made = grown(draw), np.random.RandomState(seed)
    shared = net.simple_bind(mx.cpu(), data=(4, 2, 12, 12))
    names = [n for n in net.list_arguments() if n not in ("data", "softmax_label")]
    values = {n: made.standard_normal(shared.arg_dict[n].shape) for n in names}
    for n in draw.sample(range(1, 40), 3):
        sizes = {"data": (n, 2, 12, 12), "softmax_label": (n,)}
        shared = shared.reshape(allow_up_sizing=True, **sizes)
        found = passes(shared, values, n)
        _look.cache_clear()
        derive._KNOWN.clear()
        alone = net.simple_bind(mx.cpu(), data=(n, 2, 12, 12))
        assert found == passes(alone, values, n)


def test_an_input_elsewhere_is_read_where_it_lies() -> None:
    """Programs are told where a batch lies, whatever reads it: kernels, oneDNN and BLAS."""
    net = mx.gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    batches = [mx.nd.random.normal(shape=(n, 2, 6, 6)) for n in (5, 5, 3, 5)]
    plain = [net(x).asnumpy() for x in batches]
    net.hybridize()
    for x, wanted in zip(batches * 2, plain * 2, strict=True):
        with mx.autograd.record():
            y = net(x)
        y.backward()
        np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-5, atol=1e-6)


def printed(*given: int) -> set[str]:
    """Lengths with the digests of their steps, of a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("sized.py")), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("seed", range(3))
def test_lengths_in_turn_give_the_bits_of_a_process_for_each(seed: int) -> None:
    """What is kept from one length to the next changes nothing, of blocks bound and recorded."""
    draw = random.Random(seed)
    lengths = draw.sample(range(1, 70), 5)
    found = printed(seed, *lengths * 3)
    assert len(found) == len(lengths)
    for n in draw.sample(lengths, 2):
        assert found > printed(seed, n)
