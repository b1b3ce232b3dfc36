"""Random training loops for `test_notes.py`: a step that comes again, and changes in mid-run.

All numbers are small integers, so that sums are exact in any order, and a step that is computed as
one program has to give what its operators give one by one, but for the sign of zeros. Moving
averages alone are not, and are compared up to rounding.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from ndarray.noted_changes import CHANGES, Odd
from ndarray.noted_operators import OPERATORS, N

from gnomon import autograd, nd, optimizer
from gnomon.base import GnomonError

STEPS = 9
Change = Callable[[Any, Any], None]


class Turn(NamedTuple):
    """A step of a loop: which of its bodies, a number for operators, and what changes."""

    body: int
    number: int
    change: str | None = None
    once_more: bool = False  # a second form of the change


class Body(NamedTuple):
    """The operators of a step, and what they are applied to."""

    operators: list[Any]
    picks: list[int]

    @classmethod
    def drawn(cls, draw: random.Random, count: int, operators: Sequence[Any]) -> Body:
        """So many of these operators."""
        found = [draw.choice(operators) for _ in range(count)]
        return cls(found, [draw.randrange(1 << 16) for _ in range(40)])


class Loop:
    """A training loop: its bodies, its steps, and its habits."""

    def __init__(
        self, seed: int, bodies: Sequence[Body], turns: Sequence[Turn], draw: random.Random
    ) -> None:
        self.seed, self.bodies, self.turns = seed, bodies, turns
        self.update = draw.choice(("inside", "new", "none", "updater", "updater"))
        self.momentum = draw.choice((0, 1))
        self.holds = draw.random() < 0.4
        self.sees_averages = draw.random() < 0.3  # after each step, not only in the end
        self.sees_gradients = draw.random() < 0.6
        self.reads = draw.choice(("inside", "between", "both", "never", "never"))

    @classmethod
    def drawn(cls, seed: int) -> Loop:
        """A loop of one body, with the same change once, or from some step on."""
        draw = random.Random(seed)
        body = Body.drawn(draw, draw.randint(2, 7), OPERATORS)
        change, once_more = draw.choice(list(CHANGES)), draw.random() < 0.5
        first = draw.randint(2, STEPS - 2)
        at = {first} if draw.random() < 0.5 else set(range(first, STEPS))
        counts = draw.random() < 0.5  # numbers of operators are others in each step
        turns = [
            Turn(0, k * 7 % 5 - 2 if counts else 2, change if k in at else None, once_more)
            for k in range(STEPS)
        ]
        return cls(seed, [body], turns, draw)

    def run(self) -> list[Any]:
        """All that can be seen of it: arrays, and the names of errors."""
        state = State(self)
        for turn in self.turns:
            state.step(turn)
        return state.end()


class Arrays:
    """The variables of a loop, and what they are views of; loops may have them in turn."""

    def __init__(self) -> None:
        self.variables = [nd.zeros((N, N)) for _ in range(3)]
        self.bias = nd.zeros((N,))
        for x in (*self.variables, self.bias):
            x.attach_grad()
        self.whole = nd.zeros((2 * N, N))
        self._places = [x._tape for x in (*self.variables, self.bias)]

    @property
    def is_worn(self) -> bool:
        """Whether a variable's gradient has been asked for otherwise."""
        return [x._tape for x in (*self.variables, self.bias)] != self._places

    def fill(self, values: np.random.Generator) -> None:
        """Give them values, and the gradients zeros."""
        for x in (*self.variables, self.bias, self.whole):
            x[:] = values.integers(-2, 3, x.shape)
            if x.grad is not None:
                x.grad[:] = 0


class State:
    """A run of a loop: its variables, what it holds, and what was seen."""

    def __init__(self, loop: Loop, arrays: Arrays | None = None) -> None:
        self.loop = loop
        self.values = np.random.default_rng(loop.seed)
        self._arrays = Arrays() if arrays is None else arrays
        self._arrays.fill(self.values)
        self.variables, self.bias = [*self._arrays.variables], self._arrays.bias
        self.whole = self._arrays.whole
        self.moving = [(nd.zeros((N,)), nd.ones((N,))) for _ in range(2)]
        self.normed = 0  # operators of this step that change these
        self.held: list[Any] = []
        self.shared: Any = None
        self.seen: list[Any] = []
        self.hook: Callable[[Any], Any] | None = None
        self.train = True
        self.body: Body = loop.bodies[0]
        self.number, self.once_more = 2, False
        settings = {"momentum": loop.momentum, "learning_rate": 1, "clip_gradient": 1}
        self.updater = optimizer.get_updater(optimizer.create("sgd", wd=0, **settings))

    def see(self, *arrays: Any) -> None:
        """Look at arrays now."""
        self.seen += [x.asnumpy() for x in arrays]

    def grad(self, k: int) -> Any:
        """The gradient of a variable.

        Raises:
            Odd: it asks for none.
        """
        found = self.variables[k].grad
        if found is None:
            raise Odd
        return found

    def undo(self) -> None:
        """Have what changed for good be as it was at first."""
        self.variables[:] = self._arrays.variables
        for x in self.variables:
            if x.grad is None or x._tape.req != "write":
                x.attach_grad()
        self.shared, self.train = None, True

    def forward(self, x: Any) -> Any:
        """The operators of the loop, on some of what was computed before."""
        known = [x, *self.variables]
        if self.shared is not None:
            known.append(self.shared)
        picks = iter(self.body.picks)
        for operator in self.body.operators:
            a, b = (known[-1 - next(picks) % min(len(known), 5)] for _ in range(2))
            known.append(operator(self, a, b))
            if self.hook is not None:
                self.hook(known[-1])
            if self.loop.holds:
                self.held.append(known[-1])
        if self.loop.reads in ("inside", "both"):
            self.see(known[-1])
        first, second, third = self.variables
        return known[-1] * first + second * third  # so that each of them counts

    def step(self, turn: Turn) -> None:
        """Record, go backward, update, and look at something."""
        x = nd.array(self.values.integers(-2, 3, (N, N)))
        self.body, self.number = self.loop.bodies[turn.body], turn.number
        self.once_more, self.hook, self.normed = turn.once_more, None, 0
        try:
            if turn.change is None:
                self.usual(x)
            else:
                CHANGES[turn.change](self, x)
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
        if self.loop.sees_gradients:
            self.see(loss)
        else:
            self.held.append(loss)

    def finish(self) -> None:
        """Update, and look."""
        if self.loop.sees_gradients:
            self.see(*(x.grad for x in (*self.variables, self.bias) if x.grad is not None))
        known = [k for k, x in enumerate(self.variables) if x.grad is not None]
        if self.loop.update == "updater":
            weights = [self.variables[k] for k in known]
            self.updater(known, [x.grad for x in weights], weights)
        elif self.loop.update != "none":
            for k in known:
                self._update(k, self.variables[k])
        if self.loop.sees_averages:
            self.see(*self.moving[0], *self.moving[1])
        if len(self.held) > 8:
            self.see(*self.held)
            self.held.clear()

    def _update(self, k: int, x: Any) -> None:
        """Update a variable by operators."""
        new = nd.clip(x - nd.clip(x.grad, -1, 1), -2, 2)
        if self.loop.update == "inside":
            x[:] = new
        elif k == 1:
            x -= nd.clip(x.grad, -1, 1) * (nd.abs(x) < 2)

    def end(self) -> list[Any]:
        """Look at the arrays that no step has looked at; gives all that was seen."""
        self.see(*self.held, *self.variables, *self.moving[0], *self.moving[1])
        return self.seen
