"""Random blocks, hybridized and not, give the same numbers.

The blocks have convolutions, recurrent layers and cells, attention, norms, shared parameters,
branches and several inputs and outputs. Compared are names and shapes that follow from the first
batch, outputs, gradients of inputs and parameters, running means, parameters after training; for
batches of other shapes, after `cast`, with other gradient requests, after `hybridize(False)`, and
those of the exported file. What is tight is compared in float64: there no difference of rounding
moves a number over the kink of a relu.
"""

from __future__ import annotations

import numpy as np
import pytest
from gluon import blocks
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

import gnomon as mx
from gnomon.gluon import SymbolBlock, Trainer

FLAGS = st.sampled_from(
    [
        {},
        {"static_alloc": True},
        {"static_alloc": True, "static_shape": True},
        {"inline_limit": 0},
    ]
)
OPTIMIZERS = st.sampled_from(["sgd", "adam", "rmsprop"])
QUIET = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def arrays(batch, dtype):
    """The inputs as arrays with gradients."""
    made = [mx.nd.array(x, dtype=dtype) for x in batch]
    for x in made:
        x.attach_grad()
    return made


def flat(outputs):
    """All outputs of a network."""
    joined, parts = outputs
    return [joined, *parts]


def close(found, expected, dtype, what):
    """Arrays are alike, by the largest number of each."""
    tolerance = 1e-8 if dtype == "float64" else 5e-3
    assert len(found) == len(expected)
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        one, other = one.asnumpy(), other.asnumpy()
        assert one.dtype == other.dtype, (what, k)
        assert np.isfinite(other).all(), (what, k)
        scale = max(1.0, np.abs(other).max(initial=0))
        np.testing.assert_allclose(
            one, other, rtol=0, atol=tolerance * scale, err_msg=f"{what} {k}"
        )


def differentiated(net, batch, dtype, weights):
    """Outputs, gradients of inputs and parameters of a bounded loss, and parameters."""
    inputs = arrays(batch, dtype)
    with mx.autograd.record():
        outputs = flat(net(*inputs))
        loss = sum((mx.nd.tanh(y) * w).mean() for y, w in zip(outputs, weights, strict=True))
    loss.backward()
    params = net.collect_params().values()
    grads = [p.grad() for p in params if p.grad_req != "null"]
    return [*outputs, *(x.grad for x in inputs), *grads, *(p.data() for p in params)]


class Pair:
    """A network twice, plain and hybridized, with the same parameters."""

    def __init__(self, drawn, flags, number):
        self.drawn = drawn
        self.rng = np.random.default_rng(number)
        self.weights = self.rng.uniform(0.5, 1.5, 1 + len(drawn))
        self.plain, self.hybrid = blocks.network(drawn), blocks.network(drawn)
        self.dtype = "float32"
        self.hybrid.hybridize(**flags)
        batch = self.batch()
        for net in (self.plain, self.hybrid):
            net.initialize(mx.init.Normal(0.4))
            net(*arrays(batch, self.dtype))
        mine, theirs = (net.collect_params() for net in (self.hybrid, self.plain))
        assert [(k, p.shape, p.dtype) for k, p in mine.items()] == [
            (k, p.shape, p.dtype) for k, p in theirs.items()
        ]
        for name, parameter in theirs.items():
            mine[name].set_data(parameter.data())

    def batch(self, count=4, side=5):
        """Random inputs."""
        return blocks.batch(self.rng, self.drawn, count, side)

    def predict(self, what, other=None, **shape):
        """Both predict the same."""
        batch = arrays(self.batch(**shape), self.dtype)
        expected = flat(self.plain(*batch))
        close(flat((other or self.hybrid)(*batch)), expected, self.dtype, what)

    def train(self, what, **shape):
        """Both have the same gradients and running means."""
        batch = self.batch(**shape)
        found, expected = (
            differentiated(net, batch, self.dtype, self.weights)
            for net in (self.hybrid, self.plain)
        )
        close(found, expected, self.dtype, what)

    def cast(self, dtype):
        """Both compute in another precision."""
        self.dtype = dtype
        for net in (self.plain, self.hybrid):
            net.cast(dtype)
        mine = self.hybrid.collect_params()
        for name, parameter in self.plain.collect_params().items():
            mine[name].set_data(parameter.data())

    def request(self, number):
        """Gradients are added up in some parameters, not made in others."""
        for net in (self.plain, self.hybrid):
            for k, parameter in enumerate(net.collect_params().values()):
                if parameter.grad_req != "null":
                    parameter.grad_req = ("write", "add", "null")[(k + number) % 3]

    def step(self, optimizer, steps):
        """Both train to the same parameters."""
        trainers = [
            Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01, "clip_gradient": 0.5})
            for net in (self.plain, self.hybrid)
        ]
        for k in range(steps):
            self.train(f"step {k}")
            for trainer in trainers:
                trainer.step(4, ignore_stale_grad=True)
        self.predict("trained")


def agree(drawn, flags, optimizer, number, folder):
    """The property."""
    pair = Pair(drawn, flags, number)
    pair.predict("float32")
    pair.train("gradients in float32")
    pair.predict("another shape", count=3, side=6)
    pair.cast("float64")
    pair.predict("float64")
    pair.step(optimizer, 2)
    pair.train("another shape's gradients", count=5, side=4)
    pair.request(number)
    pair.train("requests")
    pair.train("requests again")
    path = str(folder / "net")
    pair.hybrid.export(path)
    names = ["data"] if len(drawn) == 1 else [f"data{k}" for k in range(len(drawn))]
    outputs = SymbolBlock.imports(f"{path}-symbol.json", names, f"{path}-0000.params")

    def imported(*batch):
        joined, *parts = outputs(*batch)
        return joined, parts

    pair.predict("exported", imported)
    pair.hybrid.hybridize(False)
    pair.predict("plain again")


IMAGES = [
    ("batchnorm", (True, True, False)),
    ("conv", (4, 3, 2, True)),
    ("residual", ("conv", (1, 3, 1, False))),
    ("pool", ("Max", True, False)),
    ("beside", [("groupnorm", 2), ("separable", 2)]),
    ("transposed", (3, 2)),
    ("prelu", ()),
]
TOKENS = [
    ("recurrent", ("LSTM", 3, 2, True)),
    ("attention", (2, 3, True)),
    ("cell", ("both ways", [("stack", [("LSTMCell", 3)]), ("GRUCell", 2)])),
]
ROWS = [
    ("beside", [("dense", (4, True, True)), ("batchnorm", (True, False, True))]),
    ("twice", ("layernorm", (True, True))),
    ("lambda", "where"),
]


@pytest.mark.timeout(600)
@settings(QUIET, max_examples=1, derandomize=True)
@example([("image", IMAGES)], {}, "sgd", 1)
@example([("tokens", TOKENS), ("sequence", [("shared", 4)])], {"static_alloc": True}, "adam", 2)
@example([("rows", ROWS), ("rows", [("shared", 3)])], {"inline_limit": 0}, "rmsprop", 3)
@given(blocks.NETWORK, FLAGS, OPTIMIZERS, st.integers(0, 99))
def test_hybrid_is_plain(tmp_path_factory, drawn, flags, optimizer, number):
    agree(drawn, flags, optimizer, number, tmp_path_factory.mktemp("net"))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(20))
def test_hybrid_is_plain_in_thousands(tmp_path_factory, part):
    """With that above 2,000 networks."""

    @seed(part)
    @settings(QUIET, max_examples=100)
    @given(blocks.NETWORK, FLAGS, OPTIMIZERS, st.integers(0, 99))
    def hold(drawn, flags, optimizer, number):
        agree(drawn, flags, optimizer, number, tmp_path_factory.mktemp("net"))

    hold()
