"""A graph bound for sizes that two other bindings tell of computes what it would by itself."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon.executor import arrays
from gnomon.executor.programs import resized
from gnomon.executor.programs.resized import Kin, OfGraph
from gnomon.gluon import nn
from gnomon.runtime.statements.growth import Growth

LENGTHS = [5, 9, 7, 12, 6, 11, 4]


@pytest.fixture
def served(monkeypatch):
    """A list that gets the sizes of each layout that kin gave."""
    found, usual = [], Kin.layout

    def layout(self, net, mode, draws):
        made = usual(self, net, mode, draws)
        if made is not None:
            found.append(tuple(b.shape for b in net.inputs.values()))
        return made

    monkeypatch.setattr(Kin, "layout", layout)
    return found


@pytest.fixture
def alone(monkeypatch):
    """A function that has bindings told nothing of others, from then on or no more."""
    usual = resized.laid_out

    def switch(on):
        def laid_out(net, mode, draws):
            return usual(net, mode._replace(alone=on), draws)

        monkeypatch.setattr("gnomon.executor.run.laid_out", laid_out)

    return switch


class Attention(gluon.HybridBlock):
    """Of 2 heads over 8 numbers, with what is normalised before and a layer behind."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(in_channels=8)
        self.parts = nn.Dense(24, flatten=False, in_units=8)
        self.joined = nn.Dense(8, flatten=False, in_units=8)

    def hybrid_forward(self, F, x):
        parts = F.split(self.parts(self.norm(x)), num_outputs=3, axis=2)
        query, key, value = (
            p.reshape((0, 0, 2, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0)) for p in parts
        )
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) * 0.5, axis=2)
        found = F.batch_dot(weights, value).reshape((-4, -1, 2, 0, 0)).transpose((0, 2, 1, 3))
        return x + F.relu(self.joined(found.reshape((0, 0, -3))))


def of_function(function):
    """A block with no parameters but a table, where the function takes that."""

    class Block(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            if function.__code__.co_argcount > 2:
                self.table = self.params.get("table", shape=(16, 4))

        def hybrid_forward(self, F, x, **params):
            return function(F, x, *params.values())

    return Block


def trained(net, x, repeated=1):
    """Outputs and gradients, where several calls are recorded before the first backward pass."""
    x = nd.array(x)
    x.attach_grad()
    with autograd.record():
        ys = [net(x * k) for k in range(1, repeated + 1)]
        total = (
            sum((y * y).sum() for y in ys[1:]) + (ys[0] * ys[0]).sum() if repeated > 1 else ys[0]
        )
    total.backward()
    given = [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]
    return [*(y.asnumpy() for y in ys), x.grad.asnumpy(), *given]


def predicted(net, x):
    return [net(nd.array(x)).asnumpy()]


def same(make, alone, shapes, step=trained):
    """Blocks give the same bits on arrays of all shapes, bound by kin or alone."""
    both = []
    for on in (True, False):
        alone(on)
        mx.random.seed(3)
        net = make()
        net.initialize(mx.init.Uniform(0.5))
        net.hybridize()
        draw = np.random.default_rng(0)
        both.append([step(net, draw.normal(size=shape)) for shape in shapes])
    for shape, *found in zip(shapes, *both, strict=True):
        for got, right in zip(*found, strict=True):
            np.testing.assert_array_equal(got, right, err_msg=f"{shape}")


@pytest.mark.parametrize("step", [trained, predicted, lambda net, x: trained(net, x, 3)])
def test_attention_of_new_lengths(step, served, alone):
    same(Attention, alone, [(3, n, 8) for n in LENGTHS], step)
    assert len(served) >= len(LENGTHS) - 3


def test_two_sizes_vary(served, alone):
    shapes = [(2, 9, 8), (3, 5, 8), (5, 7, 8), (4, 6, 8), (3, 7, 8), (4, 9, 8), (5, 5, 8)]
    same(Attention, alone, shapes)
    assert len(served) == 4


def test_gradients_that_are_added_up(served, alone):
    def make():
        net = Attention()
        net.collect_params().setattr("grad_req", "add")
        return net

    same(make, alone, [(2, n, 8) for n in LENGTHS])
    assert served


TABLE = {"input_dim": 16, "output_dim": 4}


def attention(F, parts):
    """Of 2 heads, to itself and to another sequence, the products interleaved."""
    weights = F.softmax(F.contrib.interleaved_matmul_selfatt_qk(parts, heads=2))
    own = F.contrib.interleaved_matmul_selfatt_valatt(parts, weights, heads=2)
    both = F.slice_axis(parts, axis=2, begin=0, end=16)
    weights = F.softmax(F.contrib.interleaved_matmul_encdec_qk(own, both, heads=2))
    return F.contrib.interleaved_matmul_encdec_valatt(both, weights, heads=2)


MAPS = {
    "a product": lambda F, x: F.batch_dot(x, x, transpose_b=True),
    "of rows": lambda F, x: F.dot(F.reshape(x, (-3, 0)), F.reshape(x, (-3, 0)), transpose_b=True),
    "a softmax": lambda F, x: F.softmax(F.transpose(x, axes=(0, 2, 1))),
    "a sum": lambda F, x: F.tanh(F.sum(x, axis=1)) * 2,
    "a maximum": lambda F, x: F.max(x, axis=(0, 1), keepdims=True) * 3,
    "a part of a fixed axis": lambda F, x: F.slice_axis(x, axis=2, begin=1, end=3) * 2,
    "a mirror of a fixed axis": lambda F, x: F.flip(F.tanh(x), axis=2),
    "what it is given": lambda F, x: F.identity(x),
    "a part that stays the same": lambda F, x: F.slice(x, begin=(None, 0), end=(None, 3)) * 2,
    "the first": lambda F, x: F.slice_axis(F.tanh(x), axis=1, begin=0, end=1),
    "rows of a table": lambda F, x, w: F.Embedding(F.sum(x, axis=2), w, **TABLE),
    "rows taken": lambda F, x, w: F.take(w, F.sum(x, axis=2), mode="wrap"),
    "taken of a fixed axis": lambda F, x, w: F.take(x, w) * 2,
    "as many rows": lambda F, x, w: F.broadcast_add(
        x, F.slice_like(F.expand_dims(w, axis=0), x, axes=(1,))
    ),
    "numbers of steps": lambda F, x: F.broadcast_add(
        x, F.reshape(F.contrib.arange_like(x, axis=1), (1, -1, 1))
    ),
    "it joined to itself": lambda F, x: F.concat(F.tanh(x), x, F.sum(x, axis=2, keepdims=1), dim=2),
    "parts of the first axis": lambda F, x: F.slice_axis(F.tanh(x), axis=0, begin=1, end=2) * 3,
    "parts along an axis": lambda F, x: F.add_n(
        *F.split(F.transpose(F.reshape(F.tanh(x), (0, 0, 2, 2)), axes=(2, 0, 1, 3)), 2, axis=0)
    ),
    "one above the other": lambda F, x: F.stack(F.tanh(x), x, axis=1),
    "side by side": lambda F, x: F.stack(F.tanh(x), x, axis=3),
    "one of each": lambda F, x: F.pick(F.tanh(x), F.sum(x, axis=2), mode="wrap"),
    "marks": lambda F, x: F.broadcast_mul(
        F.one_hot(F.sum(x, axis=2), 5), F.sum(x, axis=2, keepdims=True)
    ),
    "masked": lambda F, x: F.SequenceMask(
        F.tanh(x), F.sum(x, axis=(1, 2)) + 4, use_sequence_length=True, axis=1
    ),
    "like it": lambda F, x: F.tanh(x) * F.ones_like(x) + F.zeros_like(x),
    "gelu": lambda F, x: F.LeakyReLU(F.LeakyReLU(x, act_type="gelu"), act_type="elu"),
    "chosen": lambda F, x: F.where(x > 0, x * 2, F.tanh(x)),
    "twice": lambda F, x: F.tile(F.tanh(x), (1, 2, 1)) + F.repeat(x, 2, axis=1),
    "stretched": lambda F, x: F.broadcast_like(F.sum(x, axis=1, keepdims=True), F.tanh(x)),
    "interleaved": lambda F, x: attention(F, F.tile(F.transpose(x, axes=(1, 0, 2)), (1, 1, 6))),
    "dropped": lambda F, x: F.Dropout(F.Dropout(F.tanh(x), p=0.3) * 2, p=0.5, axes=(1,)),
    "random slopes": lambda F, x: F.LeakyReLU(x, act_type="rrelu"),
}
CUTS = {
    "a part of all": lambda F, x: F.slice(x, begin=(None, 0), end=(None, -3)) * 2,
    "a tail": lambda F, x: F.slice_axis(F.tanh(x), axis=1, begin=2, end=None),
    "the last ones": lambda F, x: F.slice_axis(F.tanh(x), axis=1, begin=-3, end=None),
    "a mirror": lambda F, x: F.flip(F.tanh(x), axis=1),
    "every other one": lambda F, x: F.slice(x, begin=(0, 0), end=(2, 99), step=(1, 2)) * 2,
    "a mean": lambda F, x: F.mean(F.tanh(x), axis=1),
    "it joined to itself": lambda F, x: F.concat(x, x * 2, dim=1),
    "taken of it": lambda F, x: F.take(F.tanh(x), F.arange(3), axis=1),
}  # fmt: skip


@pytest.mark.parametrize("function", MAPS.values(), ids=MAPS)
def test_sizes_that_do_nothing_but_count(function, served, alone):
    same(of_function(function), alone, [(2, n, 4) for n in LENGTHS])
    assert served


@pytest.mark.parametrize("function", CUTS.values(), ids=CUTS)
def test_sizes_that_decide(function, served, alone):
    same(of_function(function), alone, [(2, n, 4) for n in LENGTHS])
    assert not served


def test_a_part_that_is_the_whole_for_some(served, alone):
    lengths = [5, 9, 7, 12, 6, 11, 4, 7, 8, 10]
    cut = of_function(lambda F, x: F.slice(x, begin=(None, 0), end=(None, 7)) * 2)
    same(cut, alone, [(2, n, 4) for n in lengths])
    assert {n <= 7 for ((_, n, _),) in served} == {True, False}


SERIES = {
    "what stays the same by chance": [(9, 2, 4), (2, 8, 4), (4, 4, 4), (3, 5, 4), (3, 7, 4)],
    "what is equal by chance": [(9, 2, 4), (3, 3, 4), (5, 5, 4), (6, 3, 4), (4, 6, 4), (4, 4, 4)],
    "a fixed size": [(2, 9, 4), (2, 4, 4), (2, 6, 4), (2, 8, 4), (2, 4, 4), (2, 5, 4)],
    "one as the square of another": [(9, 9, 4), (2, 4, 4), (4, 16, 4), (3, 9, 4), (3, 8, 4)],
    "one": [(2, 9, 4), (2, 1, 4), (2, 5, 4), (2, 7, 4), (2, 1, 4), (1, 7, 4), (1, 9, 4), (1, 8, 4)],
    "far apart": [(2, 9, 4), (2, 6, 4), (2, 7, 4), (2, 90, 4), (2, 300, 4), (2, 2, 4)],
}


@pytest.mark.parametrize("shapes", SERIES.values(), ids=SERIES)
def test_sizes_that_agree_by_chance(shapes, alone):
    def function(F, x):
        rows = F.reshape(F.tanh(x), (-3, 0))
        turned = F.transpose(x, axes=(1, 0, 2)) * 2
        return F.dot(rows, F.reshape(turned, (-3, 0)), transpose_b=True)

    same(of_function(function), alone, shapes)
    same(of_function(lambda F, x: F.batch_dot(x, x, transpose_b=True)), alone, shapes)


def test_numbers_are_told_where_one_product_grew_as_they_did():
    growth = Growth((2, 6, 8), (2, 9, 8))
    assert growth.is_clear and growth.tells([(6, 9), (36, 81), (48, 72), (5, 5)])
    assert growth.numbers((2, 10, 8)) == {(6, 9): 10, (36, 81): 100, (48, 72): 80}
    assert not growth.tells([(6, 10)]) and not growth.tells([(3, 4)])
    assert not Growth((3, 3), (3, 3)).is_clear  # nothing grew
    assert not Growth((2, 8), (4, 4)).is_clear  # a product stayed the same
    assert not Growth((1, 8), (3, 8)).is_clear
    several = Growth((2, 2), (4, 8))
    assert several.tells([(8, 32)]) and several.product(8, 32) is None
    assert several.numbers((3, 5)) is None  # four times the second, or twice the first's square
    assert several.numbers((2, 2)) == {(8, 32): 8} and several.numbers((4, 8)) == {(8, 32): 32}
    said = Growth((2, 6), (2, 9), [(6, 9), (13, 19)])  # twice the size and one
    assert said.tells([(26, 38)]) and not said.tells([(27, 39)])
    assert said.numbers((2, 7), (7, 15)) == {(26, 38): 30}
    assert said.numbers((2, 7), (8, 15)) is None and said.numbers((2, 7), (7,)) is None
    for sizes in ((2, 9, 7), (3, 9, 8), (2, 1, 8), (2, 19, 8), (2, 2, 8)):
        assert growth.numbers(sizes) is None
    assert Growth((3, 5, 3), (4, 7, 4)).numbers((5, 6, 4)) is None  # what was equal is not


def test_equal_sizes_note_nothing():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="out")
    for train in (False, True):
        bound = net.simple_bind(mx.cpu(), x=(4, 5))
        bound.forward(is_train=train)
    assert resized._graphs[net._graph] == OfGraph(resized._graphs[net._graph].sizes, {})


def test_what_cannot_be_told_is_noted_no_more(served, monkeypatch):
    x = mx.sym.Variable("x")
    net, asked, outline = mx.sym.tanh(x) * 2, [], resized._outline
    monkeypatch.setattr(resized, "_outline", lambda *a: asked.append(a) or outline(*a))
    monkeypatch.setattr(resized, "read", lambda steps, locate: None)  # of steps with temporaries
    for n in (8, 12, 9, 11, 10):
        net.simple_bind(mx.cpu(), x=(n, 3)).forward(is_train=False)
    assert not served and len(asked) <= 2


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


def of_symbol():
    x = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=6, name="first")
    x = mx.sym.FullyConnected(mx.sym.tanh(x), num_hidden=3, name="out")
    return mx.sym.MakeLoss(mx.sym.sum(x * x)), mx.sym.sum(mx.sym.tanh(x), axis=1)


def bound(net, n):
    """A network bound for rows, and what its outputs and gradients are."""
    made = net.simple_bind(mx.cpu(), x=(n, 5))
    draw = np.random.default_rng(n)
    for array in made.arg_arrays:
        array[:] = nd.array(draw.normal(size=array.shape))
    made.forward(is_train=True)
    made.backward([nd.array(draw.normal(size=y.shape)) for y in made.outputs])
    return made, [x.asnumpy() for x in (*made.outputs, *made.grad_arrays)]


def test_products_of_a_library_in_layers_that_repeat(served, alone):
    """Where one was bound to other memory it would not say its sizes."""

    class Layers(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.layers = nn.HybridSequential()
            for _ in range(2):
                self.layers.add(nn.Dense(160, flatten=False, in_units=160, activation="relu"))

        def hybrid_forward(self, F, x):
            return self.layers(x)

    same(Layers, alone, [(8, n, 160) for n in (40, 56, 48, 44)])
    assert ((8, 44, 160),) in [shapes[:1] for shapes in served]


def test_executors_of_a_symbol(served, alone):
    net = of_symbol()[1]
    for n in (4, 7, 6, 5, 8, 6):
        alone(False)
        got = bound(net, n)[1]
        alone(True)
        for a, b in zip(got, bound(net, n)[1], strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(served) == 3


def test_pages_and_plans_tell_of_the_sizes_that_are_bound(served, tmp_path):
    net = of_symbol()[1]
    first, *_, last = [bound(net, n)[0] for n in (4, 7, 6, 5)]
    assert len(served) == 1
    assert last.memory_plan().total < first.memory_plan().total * 2
    last.report(tmp_path / "page.html")
    assert "Dot 5x6 float32" in (tmp_path / "page.html").read_text()
    assert "first" in last.debug_str()


def test_samples_keep_no_arrays(served):
    net = of_symbol()[1]
    made = [bound(net, n)[0] for n in (4, 7, 6, 5)]
    every = [x for e in made for x in (*e.arg_arrays, *e.grad_arrays)]
    seen = [weakref.ref(arrays.buffer(x).owner) for x in every]
    assert served and all(x() is not None for x in seen)
    del made, every
    nd.waitall()
    gc.collect()
    assert all(x() is None for x in seen)


def test_a_graph_is_let_go_of(served):
    net = of_symbol()[1]
    for n in (4, 7, 6, 5):
        bound(net, n)
    graph = weakref.ref(net._graph)
    del net
    nd.waitall()
    gc.collect()
    assert served and graph() is None


def test_every_run_of_what_draws_draws_anew(served):
    net = mx.sym.Dropout(mx.sym.Variable("x"), p=0.5)
    for n in (40, 70, 60, 50, 55):
        bound = net.simple_bind(mx.cpu(), x=(n, 5), grad_req="null")
        first, second = (
            bound.forward(is_train=True, x=nd.ones((n, 5)))[0].asnumpy() for _ in range(2)
        )
        assert 0 < (first == 0).mean() < 1 and (first != second).any()
    assert len(served) == 2


def test_indices_that_are_refused_are_made_the_usual_way(served):
    net = mx.sym.take(mx.sym.Variable("w"), mx.sym.Variable("x"), mode="raise")
    for n in (4, 7, 6, 5):
        bound = net.simple_bind(mx.cpu(), w=(9, 2), x=(n,))
        bound.forward(x=nd.full((n,), n), w=nd.ones((9, 2)))[0].wait_to_read()
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            bound.forward(x=nd.full((n,), 9))[0].asnumpy()
    assert not served
