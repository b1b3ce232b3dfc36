"""Another thread writes what a program reads for gradients, at any line of `backward`.

That opens the program's node, whether the walk along the tape has seen it, counts on it, or comes
to it only later. The gradients are those of before the write, or of after it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ndarray.noted_steps import begin_soon, counted

from gnomon import autograd, config, nd
from gnomon.executor.recorded_step import Plan
from gnomon.ndarray.lazy.forwarded import Forwarded

FILES = ("ndarray/backward.py", "derivative.py", "lazy/forwarded.py", "recorded_step.py")
STRIDE = 9  # of so many lines one is tried


class Meanwhile:
    """A trace function: another thread does some work before the line of that number."""

    def __init__(self, number: int, work: Callable[[], object]) -> None:
        self.number, self.count = number, 0
        self.thread = threading.Thread(target=work)
        self.came = False

    def __call__(self, frame: Any, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        self.count += event == "line"
        if self.count == self.number > 0 and not self.came:
            self.came = True
            self.thread.start()
            self.thread.join(0.1)  # it may wait for a lock that is held here
        return self


VALUES = [np.random.default_rng(0).integers(-2, 3, shape) for shape in ((3, 3), (2, 3), (2, 3))]


def losses(w: Any, b: Any, v: Any, both: bool) -> tuple[Any, Any, Any]:
    """A loss behind two reads: of `h` by w, and of `g` by b; where `both`, h is read again."""
    x = nd.ones((2, 3))
    with autograd.record():
        h = nd.relu(nd.dot(x, w)) + x * w[:2]
    h.wait_to_read()
    with autograd.record():
        g = nd.tanh(h * 0.01) * b + h * b
    g.wait_to_read()
    with autograd.record():
        loss = (g * v).sum() + ((h * v).sum() if both else 0)
    return h, g, loss


def step(variables: list[Any], what: str, both: bool, number: int) -> tuple[bool, list[np.ndarray]]:
    """Whether the write came, which is before `backward` for -1; and the gradients."""
    for x, values in zip(variables, VALUES, strict=True):
        x[:] = nd.array(values)
    h, g, loss = losses(*variables, both)
    written = {"w": variables[0], "b": variables[1], "h": h, "g": g}[what]
    meanwhile = Meanwhile(number, lambda: written.__setitem__(slice(None), 7))
    if number < 0:
        written[:] = 7
    before = sys.gettrace()
    sys.settrace(meanwhile)
    try:
        loss.backward()
    finally:
        sys.settrace(before)
    if meanwhile.came:
        meanwhile.thread.join(60)
        assert not meanwhile.thread.is_alive()
    return meanwhile.came, [x.grad.asnumpy() for x in variables]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("what", ["w", "b", "h", "g"])
def test_another_thread_writes_at_any_line_of_backward(what, both, monkeypatch):
    begin_soon(monkeypatch)
    backs = counted(monkeypatch, Plan, "backward")
    opened = counted(monkeypatch, Forwarded, "_applied")
    variables = [nd.array(values) for values in VALUES]
    for x in variables:
        x.attach_grad()
    with config.using(programs=False):
        right = [step(variables, what, both, number)[1] for number in (0, -1)]
    number, came = 1, True
    while came:
        backs.clear()
        for _ in range(12):
            step(variables, what, both, 0)
            if backs:
                break
        came, found = step(variables, what, both, number)
        for k, gradient in enumerate(found):
            fits = [np.allclose(gradient, one[k], rtol=1e-4, atol=1e-4) for one in right]
            assert any(fits), (number, k, gradient)
        number += STRIDE
    assert opened and number > 20 * STRIDE
