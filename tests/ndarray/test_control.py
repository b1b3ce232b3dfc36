"""Loops and choices over arrays: what they give, their gradients, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd

contrib = nd.contrib


def test_each_part_in_turn_with_gradients():
    data, start = nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([1, 1])
    for x in (data, start):
        x.attach_grad()
    with mx.autograd.record():
        outputs, last = contrib.foreach(lambda x, s: (x * s, x * s), data, start)
        total = outputs.sum() + last.sum()
    total.backward()
    np.testing.assert_array_equal(outputs.asnumpy(), [[1, 2], [3, 8], [15, 48]])
    np.testing.assert_array_equal(last.asnumpy(), [15, 48])
    np.testing.assert_array_equal(start.grad.asnumpy(), [34, 106])
    np.testing.assert_array_equal(data.grad.asnumpy(), [[34, 53], [11, 26], [6, 16]])


def test_lists_keep_their_form():
    def step(parts, states):
        return [parts[0] + states[0], [parts[1]]], [states[0] + 1]

    data = [nd.array([[1, 2], [3, 4]]), nd.ones((2, 1))]
    (sums, (same,)), (count,) = contrib.foreach(step, data, [nd.array([0, 0])])
    np.testing.assert_array_equal(sums.asnumpy(), [[1, 2], [4, 5]])
    np.testing.assert_array_equal(same.asnumpy(), [[1], [1]])
    np.testing.assert_array_equal(count.asnumpy(), [2, 2])


def test_as_long_as_a_condition_holds():
    def step(i, s):
        return [i + s, i], [i + 1, s + i]

    loop = nd.array([0]), nd.array([1])
    (sums, steps), (i, s) = contrib.while_loop(lambda i, s: i <= 3, step, loop, max_iterations=6)
    np.testing.assert_array_equal(sums.asnumpy(), [[1], [2], [4], [7], [0], [0]])
    np.testing.assert_array_equal(steps.asnumpy(), [[0], [1], [2], [3], [0], [0]])
    assert (i.asscalar(), s.asscalar()) == (4, 7)
    none = contrib.while_loop(lambda i: i < 0, lambda i: (i, [i]), [nd.array([0])], 2)
    assert none[0] == []
    stopped = contrib.while_loop(lambda i: True, lambda i: (None, i + 1), nd.array([0]), 2)
    assert (stopped[0], stopped[1][0].asscalar()) == ([], 2)


def test_one_of_two():
    x = nd.array([3])
    x.attach_grad()
    with mx.autograd.record():
        y = contrib.cond(x > 2, lambda: x * x, lambda: x)
    y.backward()
    assert (y.asscalar(), x.grad.asscalar()) == (9, 6)
    assert contrib.cond(x < 2, lambda: x * x, lambda: x).asscalar() == 3


def test_numbers_that_are_none():
    x = nd.array([1, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(contrib.isinf(x).asnumpy(), [0, 1, 1, 0])
    np.testing.assert_array_equal(contrib.isnan(x).asnumpy(), [0, 0, 0, 1])
    np.testing.assert_array_equal(contrib.isfinite(x).asnumpy(), [1, 0, 0, 0])


def test_numbers_for_sampled_softmax():
    mx.random.seed(5)
    drawn, true, sampled = contrib.rand_zipfian(nd.array([3]), 20000, 5)
    shares = np.bincount(drawn.asnumpy(), minlength=5) / 20000
    chances = np.log((np.arange(5) + 2) / (np.arange(5) + 1)) / np.log(6)
    np.testing.assert_allclose(shares, chances, atol=0.02)
    np.testing.assert_allclose(true.asnumpy(), [20000 * chances[3]])
    np.testing.assert_allclose(sampled.asnumpy(), 20000 * chances[drawn.asnumpy()])


def test_the_scale_of_a_step_may_be_a_number():
    found = []
    for scale in (0.5, nd.array([0.5])):
        weight, grad, mean, var = (nd.array([v, -v]) for v in (1, 0.5, 0.1, 0.2))
        contrib.adamw_update(weight, grad, mean, var, scale, lr=0.1, eta=1, out=weight)
        found.append([x.asnumpy() for x in (weight, mean, var)])
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: contrib.foreach(max, 3, nd.ones(1)), TypeError, "foreach: argument 'data'"),
        (lambda: contrib.foreach(max, [], nd.ones(1)), mx.MXNetError, "at least one part"),
        (lambda: contrib.while_loop(bool, max, [nd.ones(1)]), mx.MXNetError, "max_iterations"),
        (lambda: contrib.while_loop(bool, max, [], 2), mx.MXNetError, "at least one array"),
        (
            lambda: contrib.while_loop(bool, lambda x: (x, [x, x]), [nd.ones(1)], 2),
            mx.MXNetError,
            "expected 1 variables, got 2",
        ),
        (lambda: contrib.cond(nd.ones(2), max, max), mx.MXNetError, r"got shape \(2,\)"),
    ],
)
def test_what_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("space", [nd, mx.sym], ids=["nd", "sym"])
def test_a_step_gives_two_things(space):
    """An array of two rows is one thing, though Python could take it apart."""
    x, s = (nd.ones((2, 1)), nd.ones((1,))) if space is nd else map(mx.sym.Variable, "xs")
    loops = space.contrib
    with pytest.raises(mx.base.MXNetError, match=r"foreach: .* outputs and states, got"):
        loops.foreach(lambda part, state: part + state, x, s)
    for wrong in (lambda s: s + 1, lambda s: (s, s, s), lambda s: None):
        with pytest.raises(mx.base.MXNetError, match=r"while_loop: .* outputs and variables, got"):
            loops.while_loop(lambda s: s < 3, wrong, [s], max_iterations=2)


def test_what_steps_give_is_looked_at():
    data, start = nd.ones((3, 2)), nd.zeros((2,))
    for outputs in (1.0, None, np.ones(2)):
        with pytest.raises(TypeError, match="foreach: argument 'body': expected arrays"):
            contrib.foreach(lambda x, s, y=outputs: (y, s), data, start)
    with pytest.raises(TypeError, match="foreach: argument 'body': expected arrays"):
        contrib.foreach(lambda x, s: (x, 1), data, start)
    with pytest.raises(mx.base.MXNetError, match=r"nested as init_states, 1, got \[1, 1\]"):
        contrib.foreach(lambda x, s: (x, [s, s]), data, start)
    for step in (lambda i: (1.0, [i + 1]), lambda i: (i, [1]), lambda i: (i, None)):
        with pytest.raises(TypeError, match="while_loop: argument 'func': expected arrays"):
            contrib.while_loop(lambda i: i < 3, step, [nd.zeros((1,))], max_iterations=4)
