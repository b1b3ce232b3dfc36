"""Random training loops for `test_notes.py`: a step that comes again, and changes in mid-run.

All numbers are small integers, so that sums are exact in any order, and a step that is computed as
one program has to give what its operators give one by one, but for the sign of zeros. Moving
averages alone are not, and are compared up to rounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from ndarray.noted_changes import CHANGES, Odd
from ndarray.noted_operators import OPERATORS, N

from gnomon import autograd, nd
from gnomon.base import GnomonError

STEPS = 9


class Loop:
    """A training loop: its operators, drawn once, and what changes at which steps.

    So many loops in a row have the same operators, most of whose kernels are made once then.
    """

    def __init__(self, seed: int, alike: int = 1) -> None:
        draw = random.Random(seed // alike)
        self.seed = seed
        self.operators = [draw.choice(OPERATORS) for _ in range(draw.randint(2, 7))]
        self.picks = [draw.randrange(1 << 16) for _ in range(40)]
        draw = random.Random(seed) if alike > 1 else draw
        self.change = draw.choice(list(CHANGES))
        first = draw.randint(2, STEPS - 2)
        self.at = {first} if draw.random() < 0.5 else set(range(first, STEPS))
        self.once_more = draw.random() < 0.5
        self.update = draw.choice(("inside", "new", "none"))
        self.holds = draw.random() < 0.4
        self.sees_averages = draw.random() < 0.3  # after each step, not only in the end
        self.counts = draw.random() < 0.5  # numbers of operators are others in each step
        self.reads = draw.choice(("inside", "between", "both", "never", "never"))

    def run(self) -> list[Any]:
        """All that can be seen of it: arrays, and the names of errors."""
        state = State(self)
        for number in range(STEPS):
            state.number = (number * 7 % 5 - 2) if self.counts else 2
            state.step(CHANGES[self.change] if number in self.at else None)
        state.see(*state.moving[0], *state.moving[1])
        return state.seen


class State:
    """A run of a loop: its variables, what it holds, and what was seen."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        values = np.random.default_rng(loop.seed)
        self.values = values
        self.variables = [nd.array(values.integers(-2, 3, (N, N))) for _ in range(3)]
        self.bias = nd.array(values.integers(-2, 3, (N,)))
        for x in (*self.variables, self.bias):
            x.attach_grad()
        self.whole = nd.array(values.integers(-2, 3, (2 * N, N)))
        self.moving = [(nd.zeros((N,)), nd.ones((N,))) for _ in range(2)]
        self.normed = 0  # operators of this step that change these
        self.held: list[Any] = []
        self.shared: Any = None
        self.seen: list[Any] = []
        self.number = 2
        self.hook: Callable[[Any], Any] | None = None
        self.train = True

    def see(self, *arrays: Any) -> None:
        """Look at arrays now."""
        self.seen += [x.asnumpy() for x in arrays]

    def forward(self, x: Any) -> Any:
        """The operators of the loop, on some of what was computed before."""
        known = [x, *self.variables]
        if self.shared is not None:
            known.append(self.shared)
        picks = iter(self.loop.picks)
        for operator in self.loop.operators:
            a, b = (known[-1 - next(picks) % min(len(known), 5)] for _ in range(2))
            known.append(operator(self, a, b))
            if self.hook is not None:
                self.hook(known[-1])
            if self.loop.holds:
                self.held.append(known[-1])
        if self.loop.reads in ("inside", "both"):
            self.see(known[-1])
        return known[-1] * self.variables[0] + known[-1]

    def step(self, change: Callable[[State, Any], Any] | None) -> None:
        """Record, go backward, update, and look at something."""
        x = nd.array(self.values.integers(-2, 3, (N, N)))
        self.hook, self.normed = None, 0
        try:
            if change is None:
                self.usual(x)
            else:
                change(self, x)
        except (GnomonError, Odd, ValueError) as error:
            self.seen.append(type(error).__name__)
            for variable in (*self.variables, self.bias):  # some were stored before the error
                if variable.grad is not None:
                    variable.grad[:] = 0
        self.finish()

    def usual(self, x: Any) -> None:
        """A step as it is when nothing changes."""
        with autograd.record(train_mode=self.train):
            loss = self.forward(x).sum()
        if self.loop.reads in ("between", "both"):
            self.see(loss)
        loss.backward()
        self.see(loss)

    def finish(self) -> None:
        """Update, and look."""
        self.see(*(x.grad for x in (*self.variables, self.bias) if x.grad is not None))
        for k, x in enumerate(self.variables):
            if x.grad is None or self.loop.update == "none":
                continue
            new = nd.clip(x - nd.clip(x.grad, -1, 1), -2, 2)
            if self.loop.update == "inside":
                x[:] = new
            elif k == 1:
                x -= nd.clip(x.grad, -1, 1) * (nd.abs(x) < 2)
        if self.loop.sees_averages:
            self.see(*self.moving[0], *self.moving[1])
        if len(self.held) > 8:
            self.see(*self.held)
            self.held.clear()
