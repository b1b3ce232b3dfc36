"""Random graphs: each pass alone, and all together, keep outputs, gradients and states."""

import random

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.graph.passes import pipeline

sym = mx.sym
SHAPE = (2, 4, 6, 6)
NAMES = [name for name, _ in pipeline.PIPELINE]


class Grower:
    """Grows a network of pictures, all of one shape but for excursions that come back."""

    def __init__(self, seed, kind):
        self.random, self.count, self.kind = random.Random(seed), 0, kind
        self.values = [sym.Variable("x"), sym.Variable("y")]
        for _ in range(self.random.randint(4, 14)):
            self.values.append(self.random.choice(self.KINDS)(self, self.pick(), self.name()))

    def pick(self):
        """One of the values so far, rather a late one."""
        return self.values[-1 - min(int(self.random.expovariate(0.6)), len(self.values) - 1)]

    def name(self):
        self.count += 1
        return f"n{self.count}"

    def unary(self, x, name):
        return getattr(sym, self.random.choice(("tanh", "sigmoid", "relu", "negative")))(x)

    def nothing(self, x, name):
        kind = self.random.randrange(6)
        if kind == 0:
            return sym.identity(x)
        if kind == 1:
            return x * 1
        if kind == 2:
            return sym.Dropout(x, p=0.3)
        if kind == 3:
            return sym.transpose(sym.transpose(x, axes=(0, 2, 3, 1)), axes=(0, 3, 1, 2))
        return sym.reshape(sym.Flatten(x), SHAPE) if kind == 4 else sym.cast(x, self.kind)

    def binary(self, x, name):
        kind = self.random.choice(("elemwise_add", "elemwise_mul", "broadcast_maximum"))
        return getattr(sym, kind)(x, self.pick())

    def twice(self, x, name):
        return sym.exp(x * 0.1) - sym.exp(x * 0.1) * sym.tanh(x)

    def constant(self, x, name):
        row = sym.sum(sym.arange(24, dtype=self.kind).reshape((4, 6)) * 0.1, axis=0)
        return sym.broadcast_add(x, row.reshape((1, 1, 1, 6))) + sym.zeros_like(self.pick())

    def layer(self, x, name):
        params = {"num_filter": 4, "no_bias": self.random.random() < 0.5, "name": name}
        x = sym.Convolution(x, kernel=(3, 3), pad=(1, 1), **params) * 0.3
        return sym.Convolution(x, kernel=(1, 1), num_group=self.random.choice((1, 4)), num_filter=4)

    def normalized(self, x, name):
        if self.random.random() < 0.7:
            x = sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name=f"{name}c")
        fix = self.random.random() < 0.5
        return sym.BatchNorm(x, fix_gamma=fix, eps=1e-2, momentum=0.5, name=name)

    def scaled(self, x, name):
        kind = self.random.randrange(3)
        if kind == 0:
            return sym.InstanceNorm(x, eps=1e-2, name=name)
        if kind == 1:
            return sym.GroupNorm(x, num_groups=2, eps=1e-2, name=name)
        return sym.LayerNorm(x, axis=self.random.choice((-1, 1)), eps=1e-2, name=name)

    def pooled(self, x, name):
        sizes = {"kernel": (3, 3), "pad": (1, 1), "stride": (1, 1)}
        return sym.Pooling(x, pool_type=self.random.choice(("max", "avg")), **sizes)

    def blocked(self, x, name):
        return sym.BlockGrad(x) + self.pick()

    KINDS = (unary, nothing, binary, twice, constant, layer, normalized, scaled, pooled, blocked)

    def network(self):
        """Two of the values as outputs."""
        return sym.Group([self.values[-1], sym.sum(self.pick(), axis=(2, 3))])


def results(net, train, kind):
    """Outputs, gradients and states by name."""
    types, request = {"x": kind, "y": kind}, "write" if train else "null"
    bound = net.simple_bind(mx.cpu(), request, types, x=SHAPE, y=SHAPE)
    rng = np.random.default_rng(1)
    for array in (*bound.arg_arrays, *bound.aux_arrays):
        array[:] = rng.random(array.shape) - 0.3
    for name, array in bound.aux_dict.items():
        if name.endswith("var"):
            array[:] = array.abs() + 0.5
    mx.random.seed(5)
    bound.forward(is_train=train)
    if train:
        bound.backward([mx.nd.ones(o.shape) for o in bound.outputs])
    found = {f"out{k}": o.asnumpy() for k, o in enumerate(bound.outputs)}
    found |= {f"grad {k}": v.asnumpy() for k, v in bound.grad_dict.items() if v is not None}
    return found | {k: v.asnumpy() for k, v in bound.aux_dict.items()}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_passes_keep_values(seed, train, kind, monkeypatch):
    """In float32, where sums cancel, rounding is that of the largest number of all."""
    net = Grower(seed, kind).network()
    with config.using(passes=False):
        expected = results(net, train, kind)
    largest = max(np.abs(v).max(initial=0) for v in expected.values())
    rough, fine = (2e-3, 3e-5 * largest) if kind == "float32" else (1e-6, 1e-9 * largest)
    every = pipeline.PIPELINE
    for chosen in (NAMES, *([name] for name in NAMES)):
        monkeypatch.setattr(pipeline, "PIPELINE", tuple(p for p in every if p[0] in chosen))
        found = results(net, train, kind)
        assert found.keys() == expected.keys()
        for name, values in found.items():
            what = f"seed {seed}, {chosen}: {name}"
            np.testing.assert_allclose(values, expected[name], rough, fine, err_msg=what)
