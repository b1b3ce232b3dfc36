"""Loops whose steps are replayed give what loops with an executor for each step do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gnomon as mx
from gnomon.executor import loops, replay

sym = mx.sym
Case = tuple[Any, dict[str, tuple[int, ...]]]
STEPS = 9


def recurrent() -> Case:
    """Shared weights, a state, and an input that all steps read."""
    x, h, w, b = map(sym.var, "xhwb")

    def body(part: Any, state: Any) -> Any:
        y = sym.FullyConnected(part, weight=w, bias=b, num_hidden=4)
        y = sym.tanh(y + sym.FullyConnected(state, num_hidden=4, name="own"))
        return [y * 2, y + 3 * h], y

    outputs, last = sym.contrib.foreach(body, x, h)
    shapes = {"x": (STEPS, 2, 3), "h": (2, 4), "w": (4, 3), "b": (4,)}
    return sym.Group([*outputs, last]), shapes


def convolved() -> Case:
    """A library's calls, a normalization with states of its own, two data."""

    def body(parts: Any, state: Any) -> Any:
        y = sym.Convolution(parts[0], num_filter=2, kernel=(3, 3), pad=(1, 1), name="conv")
        y = sym.BatchNorm(y, name="bn", fix_gamma=False, momentum=0.5)
        return y, state + sym.sum(y * parts[1], axis=(2, 3))

    outputs, last = sym.contrib.foreach(body, [sym.var("x"), sym.var("y")], sym.var("h"))
    shapes = {"x": (STEPS, 2, 1, 5, 5), "y": (STEPS, 2, 2, 5, 5), "h": (2, 2)}
    return sym.Group([outputs, last]), shapes


def counted() -> Case:
    """A loop that ends by its values, after some of its steps, with a state of integers."""
    far, w = sym.var("far"), sym.var("w")

    def body(x: Any, count: Any) -> Any:
        return [x * w, count * 1.0], [x * 1.25 + w, count + 1]

    found, last = sym.contrib.while_loop(
        lambda x, count: sym.sum(x) < far, body, [sym.var("x"), sym.var("count")], STEPS
    )
    return sym.Group([*found, last[0]]), {"x": (1,), "count": (1,), "w": (1,), "far": (1,)}


def drawn() -> Case:
    """Random numbers, the same ones in both passes of a step."""

    def body(part: Any, state: Any) -> Any:
        kept = sym.Dropout(part, p=0.5) * sym.var("w")
        return kept, state + kept

    outputs, last = sym.contrib.foreach(body, sym.var("x"), sym.var("h"))
    return sym.Group([outputs, last]), {"x": (STEPS, 30), "h": (30,), "w": (30,)}


def on_data() -> Case:
    """An operator that works on data, which is not replayed."""

    def body(part: Any, state: Any) -> Any:
        order = sym.contrib.box_nms(part, overlap_thresh=0.5)
        return order, state + sym.sum(part)

    outputs, last = sym.contrib.foreach(body, sym.var("x"), sym.var("h"))
    return sym.Group([outputs, last]), {"x": (STEPS, 3, 6), "h": (1,)}


def nested() -> Case:
    """Loops in loops."""
    inner = lambda part, state: (part * sym.var("w"), state + part)  # noqa: E731

    def body(part: Any, state: Any) -> Any:
        outputs, state = sym.contrib.foreach(inner, part, state)
        return outputs * part, state

    outputs, last = sym.contrib.foreach(body, sym.var("x"), sym.var("h"))
    return sym.Group([outputs, last]), {"x": (5, 5, 2), "h": (2,), "w": (2,)}


def layered() -> Case:
    """A recurrent layer at each step, whose own steps in time are one that is repeated."""

    def body(part: Any, state: Any) -> Any:
        how = {"mode": "lstm", "state_size": 3, "num_layers": 1, "state_cell": sym.var("c")}
        y = sym.RNN(part, sym.var("w"), state, **how)
        return y, state + sym.slice_axis(y, axis=0, begin=-1, end=None)

    outputs, last = sym.contrib.foreach(body, sym.var("x"), sym.var("h"))
    shapes = {"x": (5, 6, 2, 3), "h": (1, 2, 3), "c": (1, 2, 3), "w": (4 * 3 * 8,)}
    return sym.Group([outputs, last]), shapes


CASES = [recurrent, convolved, counted, drawn, on_data, nested, layered]


def results(make: Callable[[], Case], least: int, monkeypatch: Any) -> tuple[list[Any], int]:
    """Outputs, gradients and states of some passes, and how many replays were made."""
    made = []

    def noted(*args: Any) -> Any:
        made.append(replay.replay(*args))
        return made[-1]

    monkeypatch.setattr(loops, "FEWEST", least)
    monkeypatch.setattr(loops, "replay", noted)
    network, given = make()
    generator = np.random.default_rng(3)
    sizes, _, states = network.infer_shape(**given)
    args = {
        n: mx.nd.array(generator.uniform(-1, 1, s))
        for n, s in zip(network.list_arguments(), sizes, strict=True)
    }
    for name, value in (("far", 3.0), ("count", 0.0)):
        if name in args:
            args[name][:] = value
    aux = {n: mx.nd.ones(s) for n, s in zip(network.list_auxiliary_states(), states, strict=True)}
    grads = {n: mx.nd.full(a.shape, 2) for n, a in args.items()}
    requests = {n: "add" if k % 2 else "write" for k, n in enumerate(args)}
    bound = network.bind(mx.cpu(), args, grads, requests, aux)
    found: list[Any] = []
    mx.random.seed(5)
    for k in range(3):
        args[next(iter(given))] *= 1 + k / 8
        outputs = bound.forward(is_train=True)
        heads = [mx.nd.array(generator.uniform(-1, 1, x.shape)) for x in outputs]
        if k != 1:
            bound.backward(heads)
        found += [x.asnumpy() for x in (*outputs, *grads.values(), *aux.values())]
    found += [x.asnumpy() for x in bound.forward(is_train=False)]
    alone = network.bind(mx.cpu(), args, aux_states=aux)
    for _ in range(2):
        found += [x.asnumpy() for x in alone.forward()]
    return found, sum(each is not None for each in made)


@pytest.mark.parametrize("make", CASES)
def test_replays_are_as_executors_for_each_step(make: Callable[[], Case], monkeypatch: Any) -> None:
    ours, count = results(make, 4, monkeypatch)
    theirs, none = results(make, 10_000, monkeypatch)
    assert none == 0
    assert (count > 0) == (make is not on_data)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, 1e-6, 1e-6)


def test_executors_of_other_sizes_are_no_neighbours() -> None:
    network = sym.tanh(sym.FullyConnected(sym.var("x"), num_hidden=4) * sym.var("y"))

    def bound(rows: int) -> Any:
        return network.simple_bind(mx.cpu(), x=(rows, 3), y=(rows, 4))

    first = bound(2)
    mode = first._mode(True)
    assert replay.replay(first, bound(2), mode, 0) is not None
    assert replay.replay(first, bound(40), mode, 0) is None


def weighted() -> Case:
    """What is made of parameters alone depends on a state."""

    def body(part: Any, weight: Any) -> Any:
        y = sym.FullyConnected(part, weight=weight, num_hidden=4, no_bias=True)
        return y, weight * 0.5

    outputs, last = sym.contrib.foreach(body, sym.var("x"), sym.var("h"))
    return sym.Group([outputs, last]), {"x": (STEPS, 2, 3), "h": (4, 3)}


def test_parameters_that_are_states(monkeypatch: Any) -> None:
    ours, _ = results(weighted, 4, monkeypatch)
    theirs, _ = results(weighted, 10_000, monkeypatch)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, 1e-6, 1e-6)


def test_a_long_loop_keeps_few_executors() -> None:
    network, given = recurrent()
    given["x"] = (400, 2, 3)
    bound = network.simple_bind(mx.cpu(), **given)
    bound.arg_dict["x"][:] = 0.01
    bound.forward(is_train=True)
    bound.backward([mx.nd.ones(x.shape) for x in bound.outputs])
    mx.nd.waitall()
    (run,) = bound._runs.values()
    steps = next(s[True] for s in run._builder._handed.values() if True in s)
    assert len(steps.made) == 1
    assert steps.count == 400
