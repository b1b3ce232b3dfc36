"""A graph bound for sizes that two other bindings tell of computes what it would by itself."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gnomon as mx
from gnomon import gluon, nd
from gnomon.executor import arrays
from gnomon.executor.programs import resized
from gnomon.executor.programs.resized import OfGraph
from gnomon.gluon import nn
from gnomon.runtime.statements.growth import Growth
from tests.executor.resizing import alone, of_function, predicted, same, served, trained

__all__ = ["alone", "served"]  # fixtures

LENGTHS = [5, 9, 7, 12, 6, 11, 4]


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
    "a mean": lambda F, x: F.mean(F.tanh(x), axis=1),
    "a mean and its gradient": lambda F, x: F.broadcast_sub(x, F.mean(x * x, axis=1, keepdims=1)),
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
    assert said.numbers((2, 7), (7, 15)) == {(6, 9): 7, (26, 38): 30}
    assert said.numbers((2, 7), (8, 15)) is None and said.numbers((2, 7), (7,)) is None
    chance = Growth((2, 6), (2, 9), [], [(36, 81)])  # no square: it only grew like one
    assert chance.tells([(72, 162)]) and chance.numbers((2, 7), (51,)) is None
    assert chance.numbers((2, 7), (49,)) == {(36, 81): 49, (72, 162): 98}
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
