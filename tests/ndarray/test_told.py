"""Mistakes are told as what they are: which argument, what came, what was expected."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, config, engine, nd
from gnomon.base import GnomonError

MISTAKES = {
    "dtype": (lambda: nd.array([1, 2], dtype="foo"), "dtype 'foo' is unknown.*int16.*bfloat16"),
    "custom": (lambda: nd.Custom(None, op_type="x"), r"'args\[0\]': expected an NDArray.*None"),
    "second": (lambda: nd.dot(nd.ones((2, 2)), None), "dot: argument 'rhs': expected an array"),
    "left out": (lambda: nd.dot(nd.ones((2, 2))), "dot: argument 'rhs': expected an array"),
    "first": (lambda: nd.dot(None, nd.ones((2, 2))), "dot: argument 'lhs': expected an array"),
    "axes": (
        lambda: nd.Convolution(
            nd.ones((1, 1, 4, 4)), nd.ones((1, 1, 3)), kernel=(3,), num_filter=1, no_bias=True
        ),
        r"Convolution: .*'data': expected 3 axes for kernel=\(3,\), got shape \(1, 1, 4, 4\)",
    ),
    "pooled axes": (
        lambda: nd.Pooling(nd.ones((1, 1, 4)), kernel=(2, 2)),
        r"Pooling: .*'data': expected 4 axes for kernel=\(2, 2\), got shape \(1, 1, 4\)",
    ),
    "bias": (
        lambda: nd.Convolution(nd.ones((1, 1, 4)), nd.ones((1, 1, 3)), kernel=(3,), num_filter=1),
        "Convolution: argument 'bias': expected an array, or no_bias=True, got None",
    ),
    "length": (
        lambda: nd.softmax(nd.ones((1, 2)), use_length=True),
        "softmax: argument 'length': expected an array, or use_length=False, got None",
    ),
    "module": (lambda: mx.mod.Module(None), "Module: argument 'symbol': expected a Symbol"),
    "capsule": (lambda: nd.from_dlpack([1]), r"from_dlpack: .*capsule.*got \[1\]"),
    "value": (lambda: nd.full((2,), None), "full: argument 'val': expected a number, got None"),
    "debug": (lambda: config.set("debug", 9), "argument 'debug': expected int from 0 to 7, got 9"),
    "gamma": (lambda: mx.random.gamma(-1), "gamma: argument 'alpha'"),
    "pattern": (
        lambda: mx.mon.Monitor(1, pattern="("),
        "Monitor: argument 'pattern'.*unterminated",
    ),
    "order": (
        lambda: nd.array([1], dtype=np.dtype(">f4")),
        "machine's byte order: .*newbyteorder",
    ),
    "rows": (lambda: nd.ones((2, 2)).tostype("rows"), "stype"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name):
    make, message = MISTAKES[name]
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("values", [[1, 0], [1, 1], [0, 0]])
def test_truths_are_summed_as_truths(name, values):
    truths = nd.array(values, dtype="bool")
    found = getattr(truths, name)()
    assert found.dtype == np.bool_
    wanted = all(values) if name in ("min", "prod") else any(values)
    assert found.asnumpy().tolist() == [wanted]


def test_what_draws_is_there_and_what_is_not_is_no_attribute():
    for module in (mx.random, nd.random):
        assert hasattr(module, "multinomial")
        assert hasattr(module, "shuffle")
        assert not hasattr(module, "zipf")


DRAWS = {
    "gamma": ((2.5, 1.5), 3.75, 5.625),
    "poisson": ((4,), 4, 4),
    "negative_binomial": ((3, 0.4), 4.5, 11.25),
    "generalized_negative_binomial": ((3, 0.5), 3, 7.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distributions_have_their_mean_and_variance(name):
    parameters, mean, variance = DRAWS[name]
    mx.random.seed(3)
    drawn = getattr(mx.random, name)(*parameters, shape=(20000,), dtype="float64").asnumpy()
    assert drawn.mean() == pytest.approx(mean, rel=0.05)
    assert drawn.var() == pytest.approx(variance, rel=0.1)
    mx.random.seed(3)
    again = getattr(nd.random, name)(*parameters, shape=(20000,), dtype="float64").asnumpy()
    np.testing.assert_array_equal(drawn, again)
    symbol = getattr(mx.sym.random, name)(*parameters, shape=(5,))
    assert symbol.eval()[0].shape == (5,)


def test_the_package_runs_as_the_command():
    found = subprocess.run(
        [sys.executable, "-m", "gnomon", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"gnomon {mx.__version__}\n"


def test_a_monitor_tells_each_array_once_whatever_the_batches():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (4, 3))], for_training=False)
    module.init_params()
    monitor = mx.mon.Monitor(1)
    module.install_monitor(monitor)
    for size in (4, 2, 4, 3):
        monitor.tic()
        module.forward(mx.io.DataBatch([nd.ones((size, 3))]), is_train=False)
        names = [name for _, name, _ in monitor.toc()]
        assert sorted(names) == sorted(set(names))
        assert {"fc_output", "fc_weight"} <= set(names)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: nd.linspace(0, 1, -1), "linspace: argument 'num'"),
        (lambda: nd.moveaxis(nd.zeros((1, 2, 3)), 0, 5), "moveaxis: argument 'destination'"),
        (lambda: nd.moveaxis(nd.zeros((1, 2, 3)), 4, 0), "moveaxis: argument 'source'"),
        (lambda: nd.moveaxis(nd.zeros((1, 2, 3)), [0, -3], [0, 1]), "each axis once"),
        (lambda: nd.moveaxis(nd.zeros((1, 2, 3)), [0, 1], [0]), "as many axes"),
        (lambda: mx.random.seed(3, ctx="cpu"), "seed: argument 'ctx'"),
        (lambda: autograd.backward([]), "backward: argument 'heads'"),
        (lambda: autograd.grad(nd.ones((1,)), []), "grad: argument 'variables'"),
        (lambda: engine.get().delete_operator(3), "delete_operator: argument 'operator'"),
        (lambda: nd.save("unused", 3), "save: argument 'data'"),
        (lambda: nd.ones((2, 2))[1.5], "NDArray: argument 'key': .* got 1.5"),
        (lambda: nd.ones((2, 2))[0, "a"], "NDArray: argument 'key': .* got 'a'"),
    ],
)
def test_mistakes_are_told_by_name(call, told):
    with pytest.raises(GnomonError, match=told):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: autograd.backward(3), "backward: argument 'heads'"),
        (lambda: autograd.backward([3]), r"argument 'heads\[0\]'"),
        (lambda: autograd.grad(nd.ones((1,)), 3), "grad: argument 'variables'"),
        (lambda: nd.load(3), "a path, bytes or an open binary file"),
    ],
)
def test_things_that_are_no_arrays_are_told_by_name(call, told):
    with pytest.raises(TypeError, match=told):
        call()


def test_the_path_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        nd.save(str(tmp_path / "no" / "x"), nd.ones((1,)))
    assert caught.value.filename == str(tmp_path / "no" / "x")
