"""Symbols in which values decide shapes: bound, they are computed one operator after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError, ParamError, ShapeError

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
MASKS = [1, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]


def picked() -> Any:
    return mx.sym.contrib.boolean_mask(mx.sym.var("data"), mx.sym.var("index"))


def bound(symbol: Any, simple: bool) -> Any:
    if simple:
        found = symbol.simple_bind(mx.cpu(), data=(4, 3), index=(4,))
        found.arg_dict["data"][:] = ROWS
        return found
    args = {"data": mx.nd.array(ROWS), "index": mx.nd.zeros(4)}
    return symbol.bind(mx.cpu(), args, args_grad={"data": mx.nd.zeros((4, 3))})


@pytest.mark.parametrize("simple", [False, True])
def test_every_run_has_its_own_shape(simple: bool) -> None:
    executor = bound(2 * mx.sym.square(picked()), simple)
    for mask in MASKS:
        executor.arg_dict["index"][:] = mask
        (output,) = executor.forward(is_train=True)
        rows = ROWS[np.array(mask) == 1]
        np.testing.assert_array_equal(output.asnumpy(), 2 * rows**2)
        executor.backward(mx.nd.ones_like(output))
        wanted = 4 * ROWS * np.array(mask)[:, None]
        np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), wanted)


def test_what_is_known_stays_in_place() -> None:
    chosen = picked()
    executor = bound(mx.sym.Group([mx.sym.sum(chosen), chosen]), simple=False)
    total, rows = executor.outputs
    assert (total.shape, rows.shape) == ((1,), (0, 3))  # nothing has run yet
    executor.forward(index=mx.nd.array([1, 0, 0, 1]))
    assert executor.outputs[0] is total
    assert total.asnumpy() == ROWS[[0, 3]].sum()
    for mask, at in (([0, 1, 0, 0], [1]), ([0, 0, 1, 0], [2])):
        before, kept = executor.outputs[1], executor.outputs[1].asnumpy()
        executor.forward(index=mx.nd.array(mask))
        np.testing.assert_array_equal(before.asnumpy(), kept)  # not overwritten
        np.testing.assert_array_equal(executor.outputs[1].asnumpy(), ROWS[at])


def test_other_sizes_of_inputs() -> None:
    chosen = picked()
    executor = bound(mx.sym.Group([mx.sym.sum(chosen), chosen]), simple=True)
    smaller = executor.reshape(data=(2, 3), index=(2,))
    smaller.arg_dict["data"][:] = ROWS[:2]
    total, rows = smaller.forward(index=mx.nd.array([0, 1]))
    assert (total.asnumpy(), rows.asnumpy().tolist()) == (ROWS[1].sum(), [ROWS[1].tolist()])
    with pytest.raises(ShapeError, match="partial_shaping"):
        executor.reshape(data=(2, 3))
    with pytest.raises(ParamError, match="indes"):
        executor.reshape(indes=(2,))


def test_the_last_batch_of_a_module_may_be_smaller() -> None:
    module = mx.mod.Module(picked(), data_names=("data", "index"), label_names=None)
    module.bind([("data", (4, 3)), ("index", (4,))], for_training=False)
    module.init_params()
    for count in (4, 2, 4):
        given = mx.nd.array(ROWS[:count]), mx.nd.array([0, 1, 1, 1][:count])
        module.forward(mx.io.DataBatch(given))
        np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), ROWS[1:count])


def test_layers_and_losses_on_what_was_picked() -> None:
    dense = mx.sym.FullyConnected(picked(), name="dense", num_hidden=2)
    executor = mx.sym.MakeLoss(mx.sym.sum(dense)).simple_bind(mx.cpu(), data=(4, 3), index=(4,))
    executor.arg_dict["data"][:] = ROWS
    executor.arg_dict["dense_weight"][:] = 1
    executor.forward(is_train=True, index=mx.nd.array([0, 1, 1, 0]))
    executor.backward()
    assert executor.outputs[0].asnumpy() == 2 * ROWS[1:3].sum()
    wanted = np.tile(ROWS[1:3].sum(0), (2, 1))
    np.testing.assert_array_equal(executor.grad_dict["dense_weight"].asnumpy(), wanted)


def test_errors_name_what_is_wrong() -> None:
    executor = bound(picked(), simple=False)
    executor.forward(is_train=True, index=mx.nd.array([1, 1, 0, 0]))
    with pytest.raises(ShapeError, match=r"out_grads.*\(2, 3\)"):
        executor.backward(mx.nd.ones((3, 3)))
    with pytest.raises(GnomonError, match="no gradient given"):
        executor.backward()
    with pytest.raises(GnomonError, match="values decide shapes"):
        executor.memory_plan()
    with pytest.raises(GnomonError, match=r"simple_bind: the shape of these.*index"):
        picked().simple_bind(mx.cpu(), data=(0, 3))


def loop() -> Any:
    def body(x: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        kept = mx.sym.contrib.boolean_mask(x, mx.sym.var("mask"))
        total = states[0] + mx.sym.sum(kept * kept)
        return total, [total]

    return mx.sym.contrib.foreach(body, mx.sym.var("data"), [mx.sym.var("init")])[0]


@pytest.mark.parametrize("steps", [1, 3, 9])
def test_bodies_of_loops(steps: int) -> None:
    rows = np.random.default_rng(0).random((steps, 4)).astype(np.float32)
    args = {"data": mx.nd.array(rows), "mask": mx.nd.zeros((4,)), "init": mx.nd.ones((1,))}
    grads = {"data": mx.nd.zeros((steps, 4))}
    executor = loop().bind(mx.cpu(), args, args_grad=grads)
    for mask in ([1, 0, 1, 1], [0, 0, 0, 1]):
        args["mask"][:] = mask
        (out,) = executor.forward(is_train=True)
        wanted = 1 + np.cumsum((rows**2 * mask).sum(1))
        np.testing.assert_allclose(out.asnumpy()[:, 0], wanted, 1e-6)
        executor.backward(mx.nd.ones((steps, 1)))
        slope = 2 * rows * mask * np.arange(steps, 0, -1)[:, None]
        np.testing.assert_allclose(grads["data"].asnumpy(), slope, 1e-6)


def test_bodies_of_while_and_cond() -> None:
    x, mask = mx.sym.var("x"), mx.sym.var("mask")
    kept = mx.sym.sum(mx.sym.contrib.boolean_mask(x, mask))
    given = {"x": mx.nd.arange(4), "mask": mx.nd.array([1, 0, 1, 1])}

    def step(i: Any, s: Any) -> tuple[list[Any], list[Any]]:
        return [s], [i + 1, s + mx.sym.sum(mx.sym.contrib.boolean_mask(x, mask))]

    first = [mx.sym.var("i"), mx.sym.var("s")]
    _, ends = mx.sym.contrib.while_loop(lambda i, s: i < 6, step, first, 8)
    zeros = {"i": mx.nd.zeros((1,)), "s": mx.nd.zeros((1,))}
    found = mx.sym.Group(ends).bind(mx.cpu(), {**given, **zeros}).forward()
    assert [o.asscalar() for o in found] == [6, 30]
    either = mx.sym.contrib.cond(mx.sym.sum(x) > 1, lambda: kept, lambda: mx.sym.sum(x))
    assert either.bind(mx.cpu(), given).forward()[0].asscalar() == 5


def test_numeric_gradients() -> None:
    given = {"data": ROWS + 1, "index": np.array([1, 0, 1, 1.0])}
    for net in (picked(), mx.sym.square(picked()), mx.sym.sum(picked())):
        mx.test_utils.check_numeric_gradient(net, given, grad_nodes=["data"], atol=0.1)
    wrong = mx.sym.contrib.gradientmultiplier(picked(), scalar=3)
    with pytest.raises(AssertionError):
        mx.test_utils.check_numeric_gradient(wrong, given, grad_nodes=["data"], atol=0.1)
