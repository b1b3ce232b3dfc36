"""Graphs of recurrent layers and of pictures, bound for sizes that two other bindings tell of."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import gluon, nd
from gnomon.gluon import nn
from tests.executor.resizing import alone, of_function, predicted, same, served, trained

__all__ = ["alone", "served"]  # fixtures


RECURRENT = {
    "lstm": {"mode": "lstm"},
    "lstm, its states shown": {"mode": "lstm", "state_outputs": True},
    "projected": {"mode": "lstm", "state_outputs": True, "projection_size": 3},
    "two ways, two layers": {"mode": "lstm", "bidirectional": True, "num_layers": 2, "p": 0.5},
    "gru": {"mode": "gru", "bidirectional": True},
    "gru, its states shown": {"mode": "gru", "state_outputs": True},
    "rnn": {"mode": "rnn_tanh", "num_layers": 2},
    "lengths": {"mode": "lstm", "use_sequence_length": True},
}


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("given", RECURRENT.values(), ids=RECURRENT)
def test_recurrent_layers(given, train, served, alone):
    """Other lengths, then other sizes of a batch, of few rows and of those that threads share."""
    names = ["x", "w", "h", *["c"] * (given["mode"] == "lstm")]
    names += ["lengths"] * given.get("use_sequence_length", False)
    net = mx.sym.RNN(*map(mx.sym.var, names), **{"num_layers": 1, **given}, state_size=6)
    lengths, batches = [9, 14, 11, 17, 8], [10, 24, 18, 36, 30]
    for sizes in (
        [(n, 3) for n in lengths],
        [(9, n) for n in batches],
        zip(lengths, batches, strict=True),
    ):
        for shape in sizes:
            found = []
            for on in (True, False):
                alone(on)
                mx.random.seed(3)
                made = net.simple_bind(
                    mx.cpu(), x=(*shape, 4), grad_req="write" if train else "null"
                )
                found.append(of_draws(made, train))
            for got, right in zip(*found, strict=True):
                np.testing.assert_array_equal(got, right, err_msg=f"{shape}")
        assert served.pop()


def of_draws(made, train):
    """What an executor computes of random arrays."""
    draw = np.random.default_rng(sum(made.arg_arrays[0].shape))
    for name, array in made.arg_dict.items():
        values = (
            draw.integers(1, 8, array.shape) if name == "lengths" else draw.normal(size=array.shape)
        )
        array[:] = nd.array(values)
    made.forward(is_train=train)
    if train:
        made.backward([nd.array(draw.normal(size=y.shape)) for y in made.outputs])
    every = (*made.outputs, *(g for g in made.grad_arrays if g is not None))
    return [x.asnumpy() for x in every]


@pytest.mark.parametrize("layer", [gluon.rnn.LSTM, gluon.rnn.GRU, gluon.rnn.RNN])
def test_blocks_of_recurrent_layers(layer, served, alone):
    def make():
        return layer(6, 2, layout="NTC", bidirectional=True, input_size=4, dropout=0.3)

    for step in (trained, predicted):
        same(make, alone, [(4, n, 4) for n in (9, 14, 11, 17, 8)], step)
        assert len(served) == 2
        served.clear()


class Pictures(gluon.HybridBlock):
    """Convolutions of pictures, or of rows, with states, and pooling of all kinds."""

    def __init__(self, axes, pool, everything):
        super().__init__()
        make, kernel = (nn.Conv2D, (3, 3)) if axes == 2 else (nn.Conv1D, 3)
        self.first = make(8, kernel, padding=1, in_channels=3, use_bias=False)
        self.norm = nn.BatchNorm(in_channels=8)
        self.last = make(6, kernel, in_channels=8, activation="relu")
        self.out = nn.Dense(3, in_units=6)
        self.how = {"kernel": (2,) * axes, "stride": (2,) * axes, "pool_type": pool}
        self.whole = {"kernel": (1,) * axes, "global_pool": True, "pool_type": everything}

    def hybrid_forward(self, F, x):
        x = F.Pooling(F.relu(self.norm(self.first(x))), **self.how)
        return self.out(F.Dropout(F.Pooling(self.last(x), **self.whole), p=0.3))


def trained_and_states(net, x):
    return trained(net, x) + [p.data().asnumpy() for p in net.collect_params().values()]


SPACES = [(11, 14), (17, 12), (13, 16), (12, 19), (15, 13), (18, 18), (14, 11), (16, 15)]
PICTURES = {
    "batches": [(n, 3, 12, 13) for n in (4, 7, 5, 8, 6, 3)],
    "spaces": [(2, 3, *space) for space in SPACES],
    "both": [(n, 3, *space) for n, space in enumerate(SPACES, 3)],
    "rows": [(3, 3, n) for n in (13, 20, 16, 23, 15, 19)],
}


@pytest.mark.parametrize("step", [trained_and_states, predicted])
@pytest.mark.parametrize("shapes", PICTURES.values(), ids=PICTURES)
@pytest.mark.parametrize(("pool", "everything"), [("max", "avg"), ("avg", "max"), ("sum", "sum")])
def test_pictures(pool, everything, shapes, step, served, alone):
    same(lambda: Pictures(len(shapes[0]) - 2, pool, everything), alone, shapes, step)
    by_library = pool != "sum" or len({shape[2:] for shape in shapes}) == 1
    assert bool(served) == by_library or len(shapes) == 8  # of two axes few are alike


WINDOWS = {
    "the last ones hanging over": lambda F, x: F.Pooling(
        x, kernel=(3,), stride=(2,), pooling_convention="full", pool_type="avg"
    ),
    "largest, padded": lambda F, x: F.Pooling(x, kernel=(3,), stride=(2,), pad=(1,)),
    "sums": lambda F, x: F.Pooling(x, kernel=(3,), stride=(2,), pool_type="sum"),
    "as many as there are": lambda F, x: F.Pooling(
        x, kernel=(3,), stride=(2,), pooling_convention="same"
    ),
    "a convolution": lambda F, x, w: F.Convolution(
        x, F.reshape(w, (8, 4, 2)), kernel=(2,), stride=(2,), num_filter=8, no_bias=True
    ),
    "groups": lambda F, x, w: F.Convolution(
        x, F.reshape(w, (16, 2, 2)), kernel=(2,), num_filter=16, num_group=2, no_bias=True
    ),
    "a deconvolution": lambda F, x, w: F.Deconvolution(
        x, F.reshape(w, (4, 8, 2)), kernel=(2,), stride=(2,), num_filter=8
    ),
    "of a target": lambda F, x, w: F.Deconvolution(
        x, F.reshape(w, (4, 4, 4)), kernel=(4,), stride=(2,), num_filter=4, target_shape=(14,)
    ),
}


@pytest.mark.parametrize("function", WINDOWS.values(), ids=WINDOWS)
def test_windows(function, alone):
    for lengths in ([8, 12, 10, 9, 11, 7, 13], [7, 9, 8, 11, 10, 12, 6]):
        same(of_function(function), alone, [(3, 4, n) for n in lengths])


@pytest.mark.parametrize("axis", [1, 2])
def test_states_of_a_norm(axis, served, alone):
    shapes = [(n, 3, 5) for n in (14, 6, 9, 7)]
    same(
        lambda: nn.BatchNorm(axis=axis, in_channels=shapes[0][axis]),
        alone,
        shapes,
        trained_and_states,
    )
    assert len(served) == 1
