"""Nodes that are shared under different index rules are kept: plans grow with the levels alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gnomon import shadow
from gnomon.expr import ext
from gnomon.expr.composite import Chainer
from gnomon.expr.diff import vjp
from gnomon.expr.ext import flip
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.oracle import evaluate
from gnomon.plan import materialize
from gnomon.plan.statement import Store
from gnomon.runtime.statements.prepare import pieces
from gnomon.shape import prod

N = 20
VALUES = np.random.default_rng(3).integers(-3, 4, N).astype(np.float32)
INDEX = np.random.default_rng(4).integers(0, N, N)


@dataclass(frozen=True, eq=False)
class Beside(Chainer):
    """The sum of an element's neighbours, of the nearest at both ends."""

    src: Expr

    def infer(self):
        return self.src.shape, self.src.dtype

    def at(self, i):
        return i.elem(self.src, [i[0] - 1]) + i.elem(self.src, [i[0] + 1])

    def adjoint(self, g):
        return ()


def taken(e, index):
    return ext.take(e, index) * 0.5 + flip(e, 0) * 0.5


def rolled(e, index):
    return ext.concat([ext.slice_(e, (1,), (N,)), ext.slice_(e, (0,), (1,))], 0) * 0.5 + e * 0.5


def doubled(e, index):
    return ext.slice_(ext.concat([e, e], 0), (3,), (N + 3,)) * 0.5


def beside(e, index):
    return Beside(e) * 0.5


def chain(rule, levels):
    x, index = shadow.Tensor(VALUES.copy()), shadow.Tensor(INDEX)
    e = x
    for _ in range(levels):
        e = rule(e, index)
    return x, e


RULES = pytest.mark.parametrize("rule", [taken, rolled, doubled, beside])


@RULES
def test_thirty_levels(rule):
    _, e = chain(rule, 30)
    found = shadow.TensorContainer(e.shape).assign(e).numpy()
    expected = VALUES.astype(np.float64)
    for _ in range(30):
        x, y = shadow.Tensor(expected), rule(shadow.Tensor(expected), shadow.Tensor(INDEX))
        assert y.dtype.name == x.dtype.name == "float64"
        expected = evaluate(y)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


@RULES
def test_plans_grow_with_the_levels(rule):
    def effort(levels):
        _, e = chain(rule, levels)
        groups = pieces([Store(shadow.TensorContainer(e.shape), "saveto", e)])
        reads = [materialize._asked_often(postorder_of(g), g) for g in groups]
        assert not any(reads)  # of each group nothing is asked for often
        return len(groups)

    few, many = effort(30), effort(120)
    assert few >= 2 and many <= 4 * few + 4


def postorder_of(group):
    return materialize.postorder([s.value for s in group])


@pytest.mark.parametrize("rule", [taken, rolled])
def test_gradients_of_many_levels(rule):
    x, e = chain(rule, 14)
    g = shadow.Tensor(np.arange(N, dtype=np.float32))
    (received,) = vjp([e], [g], [x])
    found = shadow.TensorContainer((N,)).assign(received).numpy()
    matrix = np.zeros((N, N))
    for k in range(N):
        unit = np.zeros(N)
        unit[k] = 1
        for _ in range(14):
            unit = evaluate(rule(shadow.Tensor(unit), shadow.Tensor(INDEX)))
        matrix[:, k] = unit
    np.testing.assert_allclose(found, np.arange(N) @ matrix, 1e-4, 1e-4)


def test_an_update_in_place_takes_all_values_first():
    x, e = chain(rolled, 12)
    expected = evaluate(e)
    x += e
    np.testing.assert_allclose(x.numpy(), VALUES + expected, 1e-5, 1e-5)


def test_buffers_are_taken_again():
    made = []

    def temporary(e):
        made.append(e)
        return Buffer(e.shape, e.dtype, None, len(made) << 12)

    _, e = chain(taken, 100)
    store = Store(Buffer((N,), address=1 << 40), "saveto", e)
    groups = materialize.materialized([store], temporary)
    assert len(groups) > 10 and len(made) <= 3


def test_ordinary_expressions_are_left_alone():
    x = shadow.Tensor(np.ones((8, 8), np.float32))
    away = x - ext.broadcast_to(ext.reduce(x, "max", 1, True), x.shape)
    e = flip(away, 0) + shadow.swapaxis(away, 0, 1) * 2
    assert len(pieces([Store(shadow.TensorContainer((8, 8)), "saveto", e)])) == 1


def test_what_is_larger_than_its_operands_is_not_kept():
    """A sum over what is repeated, asked for often: keeping that would take n times the memory."""
    _, e = chain(taken, 1)
    wide = ext.broadcast_axis(e, (N, 400), 0)
    for _ in range(6):
        wide = flip(wide, 0) + flip(wide, 1) * 0.5
    store = Store(shadow.TensorContainer((N,)), "saveto", ext.reduce(wide, "sum", 1))
    groups = pieces([store])
    assert max(prod(s.dest.shape) for group in groups for s in group) == N
    np.testing.assert_allclose(store.dest.assign(store.value).numpy(), evaluate(store.value), 1e-5)


def test_the_gradient_of_a_window_is_computed_once_for_all_its_elements():
    x = Buffer((2, 9, 9))
    total = ext.pool(x * x, "sum", (3, 3), (2, 2))
    (grad,) = vjp([total * total], [Buffer(total.shape)], [x])
    stores = [Store(Buffer(x.shape), "saveto", grad)]
    kept, last = materialize.materialized(stores, lambda e: Buffer(e.shape, e.dtype))
    assert [s.dest.shape for s in (*kept, *last)] == [total.shape, x.shape]
