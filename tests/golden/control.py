"""Networks with loops and choices: `NETS` by name, each made of `mx`, with the shapes of inputs.

Inputs are small numbers, but for those in `VALUES`. Each name begins an automatic name once, so
that files compare equal.
"""

from __future__ import annotations

from typing import Any

VALUES = {"i": 1.0, "p": 1.0, "far": 9.0, "bn_moving_var": 2.0}


def recurrent(mx: Any) -> Any:
    x, h, w = map(mx.sym.var, "xhw")

    def body(part, states):
        y = mx.sym.FullyConnected(part + states[0] * w, num_hidden=3, name="fc")
        return mx.sym.tanh(y), [y * 2, states[1] + 1]

    outputs, states = mx.sym.contrib.foreach(body, x, [h, mx.sym.var("n")], name="fe")
    return mx.sym.Group([outputs, *states])


def several(mx: Any) -> Any:
    x, y, h = map(mx.sym.var, "xyh")
    scale = h * 2

    def body(parts, state):
        return [parts[0] * scale, parts[1] + state], state + parts[0] * parts[1]

    outputs, state = mx.sym.contrib.foreach(body, [x, y * 1], h, name="sev")
    return mx.sym.Group([*outputs, state])


def passed(mx: Any) -> Any:
    step = lambda part, state: (part, state)  # noqa: E731
    outputs, state = mx.sym.contrib.foreach(step, mx.sym.var("x"), mx.sym.var("h"), name="pas")
    return mx.sym.Group([outputs, state])


def alone(mx: Any) -> Any:
    return mx.sym.contrib.foreach(lambda x, s: (x * x, s), mx.sym.var("x"), [], name="one")[0]


def nested(mx: Any) -> Any:
    def inner(part, state):
        return part * mx.sym.var("w"), state + part

    def outer(part, state):
        outputs, state = mx.sym.contrib.foreach(inner, part, state, name="inn")
        return outputs * part, state

    found = mx.sym.contrib.foreach(outer, mx.sym.var("x"), mx.sym.var("h"), name="out")
    return mx.sym.Group(list(found))


def power(mx: Any) -> Any:
    w = mx.sym.var("w")
    outputs, ends = mx.sym.contrib.while_loop(
        lambda i, a: i < 5, lambda i, a: (a + i, [i + 1, a * w]),
        [mx.sym.var("i"), mx.sym.var("a")], max_iterations=7, name="wl")  # fmt: skip
    return mx.sym.Group([mx.sym.slice_axis(outputs, axis=0, begin=0, end=4), *ends])


def limited(mx: Any) -> Any:
    outputs, ends = mx.sym.contrib.while_loop(
        lambda i: i < mx.sym.var("far"), lambda i: ([i * i, i], i + 1), mx.sym.var("i"),
        max_iterations=3, name="lim")  # fmt: skip
    return mx.sym.Group([*outputs, ends])


def chosen(mx: Any) -> Any:
    x, w, p = map(mx.sym.var, "xwp")
    return mx.sym.contrib.cond(p < 2, lambda: x * w, lambda: mx.sym.var("h") + 1, name="cd")


def other(mx: Any) -> Any:
    x, p = map(mx.sym.var, "xp")
    found = mx.sym.contrib.cond(p > 2, lambda: [x, x * 3], lambda: [x * x, p], name="els")
    return mx.sym.Group(found)


def normalized(mx: Any) -> Any:
    def body(part, state):
        return mx.sym.BatchNorm(part, name="bn", fix_gamma=False) + mx.sym.var("w"), state + part

    found = mx.sym.contrib.foreach(body, mx.sym.var("x"), mx.sym.var("h"), name="nor")
    return mx.sym.Group(list(found))


NETS = {
    recurrent: {"x": (4, 2, 3), "h": (2, 3), "n": (1,), "w": (2, 3)},
    several: {"x": (3, 2), "y": (3, 2), "h": (2,)},
    passed: {"x": (3, 2), "h": (2,)},
    alone: {"x": (3, 2)},
    nested: {"x": (2, 3, 2), "h": (2,)},
    power: {"i": (1,), "a": (1,), "w": (1,)},
    limited: {"i": (1,), "far": (1,)},
    chosen: {"x": (2, 2), "w": (2, 2), "p": (1,), "h": (2, 2)},
    other: {"x": (1,), "p": (1,)},
    normalized: {"x": (3, 4, 2), "h": (4, 2)},
}
