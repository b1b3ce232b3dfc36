"""Random training loops for `test_notes.py`: a step that comes again, and changes in mid-run.

All numbers are small integers, so that sums are exact in any order, and a step that is computed as
one program has to give what its operators give one by one, but for the sign of zeros.
"""

from __future__ import annotations

import copy
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon import autograd, cpu, nd
from gnomon.base import GnomonError

STEPS = 9
EXACT = 1 << 22  # integers beyond may be rounded
N = 4  # rows and columns of all arrays


class Odd(Exception):
    """Raised in the middle of a step."""


class Loop:
    """A training loop: its operators, drawn once, and what changes at which steps."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.seed = seed
        self.operators = [draw.choice(OPERATORS) for _ in range(draw.randint(2, 7))]
        self.picks = [draw.randrange(1 << 16) for _ in range(40)]
        self.change = draw.choice(list(CHANGES))
        first = draw.randint(2, STEPS - 2)
        self.at = {first} if draw.random() < 0.5 else set(range(first, STEPS))
        self.once_more = draw.random() < 0.5
        self.update = draw.choice(("inside", "new", "none"))
        self.holds = draw.random() < 0.4

    def run(self) -> list[Any]:
        """All that can be seen of it: arrays, and the names of errors."""
        state = State(self)
        for number in range(STEPS):
            state.step(CHANGES[self.change] if number in self.at else None)
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
        self.held: list[Any] = []
        self.shared: Any = None
        self.seen: list[Any] = []
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
        return known[-1] * self.variables[0] + known[-1]

    def step(self, change: Callable[[State, Any], Any] | None) -> None:
        """Record, go backward, update, and look at something."""
        x = nd.array(self.values.integers(-2, 3, (N, N)))
        self.hook = None
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
        if len(self.held) > 8:
            self.see(*self.held)
            self.held.clear()


# --- operators: of two arrays (N, N), whose results are small again ------------------------------


def small(x: Any) -> Any:
    return nd.clip(x, -3, 3)


def halves(state: State, a: Any, b: Any) -> Any:
    first, second = nd.split(a, num_outputs=2, axis=1)
    return nd.concat(second, first + 1, dim=1)


def rows(state: State, a: Any, b: Any) -> Any:
    return nd.concat(a[1:], b[:1], dim=0)


def picked(state: State, a: Any, b: Any) -> Any:
    return nd.take(a, nd.array([3, 0, 0, 1]))


class Halved(autograd.Function):
    """The second array, with a gradient of its own for both."""

    def forward(self, a: Any, b: Any) -> Any:
        self.save_for_backward(a)
        return b * 1

    def backward(self, dy: Any) -> Any:
        (a,) = self.saved_tensors
        return dy * (a > 0), dy


OPERATORS: list[Callable[[State, Any, Any], Any]] = [
    lambda state, a, b: small(a + b),
    lambda state, a, b: small(a * b),
    lambda state, a, b: nd.relu(a),
    lambda state, a, b: small(a - 2 * b),
    lambda state, a, b: small(nd.FullyConnected(a, b, state.bias, num_hidden=N)),
    lambda state, a, b: small(nd.dot(a, b)),
    lambda state, a, b: a.reshape((2, 2 * N)).reshape((N, N)),
    lambda state, a, b: nd.transpose(a) + b * 0,
    lambda state, a, b: small(nd.broadcast_add(a, nd.sum(b, axis=1, keepdims=True))),
    lambda state, a, b: nd.maximum(a, b),
    lambda state, a, b: nd.where(a > 0, a, b),
    lambda state, a, b: small(nd.batch_dot(a.reshape((2, 2, N)), b.reshape((2, N, 2))).sum() + a),
    lambda state, a, b: nd.Dropout(a, p=0.5),
    lambda state, a, b: nd.BlockGrad(a) + b,
    lambda state, a, b: small(nd.LayerNorm(a, state.bias, state.bias) * 0 + b),
    lambda state, a, b: nd.topk(a, k=N, axis=0, ret_typ="value") + b * 0,
    lambda state, a, b: small(a.astype("float64") + b.astype("float64")).astype("float32"),
    lambda state, a, b: a.astype("int32").astype("float32") + b * 0,
    lambda state, a, b: Halved()(a, b),
    halves,
    rows,
    picked,
]  # fmt: skip


# --- changes in mid-run ---------------------------------------------------------------------------


def branch(state: State, x: Any) -> None:
    """Python decides by a value in the middle."""
    with autograd.record():
        y = state.forward(x)
        y = y * 2 if y.sum().asscalar() > 0 else y - state.variables[1]
        loss = y.sum()
    loss.backward()
    state.see(loss)


def write_between(state: State, x: Any) -> None:
    """What was read is written before backward."""
    with autograd.record():
        loss = state.forward(x).sum()
    x[:] = 1
    state.variables[2] += 1
    loss.backward()
    state.see(loss, x)
    state.variables[2] -= 1


def write_inside(state: State, x: Any) -> None:
    """Something off the tape is written while recording."""
    with autograd.record():
        y = state.forward(x)
        x += 1
        loss = (y * x).sum()
        state.variables[0][:] = 0  # refused: on the tape
    loss.backward()


def view(state: State, x: Any) -> None:
    """An operand is a view, whose memory is written through another."""
    part = state.whole[1 : N + 1]
    with autograd.record():
        loss = (state.forward(part) * part).sum()
    state.whole[2] = -1
    loss.backward()
    state.see(loss, state.whole)


def view_of_noted(state: State, x: Any) -> None:
    """A view of a result is written."""
    with autograd.record():
        y = state.forward(x)
    y[1] = 5
    with autograd.record():
        loss = (y * state.variables[0]).sum()
    loss.backward()
    state.see(y, loss)


def hook(state: State, x: Any) -> None:
    """Results are looked at, or held, as they come."""
    state.hook = state.held.append if state.loop.once_more else state.see
    state.usual(x)


def requests(state: State, x: Any) -> None:
    """A variable asks for its gradient in another way."""
    state.variables[1].attach_grad("add" if state.loop.once_more else "null")
    state.usual(x)
    state.usual(x)


def other_variable(state: State, x: Any) -> None:
    """A variable is another array."""
    state.variables[0] = nd.array(state.values.integers(-2, 3, (N, N)))
    state.variables[0].attach_grad()
    state.usual(x)


def second_order(state: State, x: Any) -> None:
    """A gradient is differentiated."""
    with autograd.record():
        loss = (state.forward(x) * state.variables[1]).sum()
        (first,) = autograd.grad(loss, [state.variables[1]], create_graph=True)
        loss = (first * state.variables[0]).sum()
    loss.backward()
    state.see(loss, first)


def paused(state: State, x: Any) -> None:
    """Something is computed off the tape in the middle."""
    with autograd.record():
        y = state.forward(x)
        with autograd.pause():
            z = y + x
        loss = (y * z).sum()
    loss.backward()
    state.see(loss)


def predicting(state: State, x: Any) -> None:
    """Another train mode."""
    state.train = not state.train
    state.usual(x)


def sharing(state: State, x: Any) -> None:
    """A step reads what an earlier one left, on the tape or off it."""
    with autograd.record():
        y = state.forward(x)
        loss = y.sum()
    loss.backward()
    state.shared = y.detach() if state.loop.once_more else y
    state.see(loss)


def reading_gradients(state: State, x: Any) -> None:
    """A gradient is an operand."""
    first, second, third = state.variables
    with autograd.record():
        y = state.forward(x) * first.grad + second.grad * first * second * third
        loss = (y + third.grad * third * nd.dot(first, second)).sum()
    loss.backward()
    state.see(loss)


def failing(state: State, x: Any) -> None:
    """An exception in the middle."""
    with autograd.record():
        y = state.forward(x)
        state.held.append(y)
        if state.loop.once_more:
            raise Odd
        nd.dot(y, nd.ones((3, 1)))


def heads(state: State, x: Any) -> None:
    """Several heads, with gradients given."""
    with autograd.record():
        y = state.forward(x)
        z = y * 2 + state.variables[1]
    given = [nd.ones((N, N)) * 2, None] if state.loop.once_more else None
    autograd.backward([z, y], given)
    state.see(y, z)


def retained(state: State, x: Any) -> None:
    """The tape is followed twice, and once more."""
    with autograd.record():
        loss = state.forward(x).sum()
    loss.backward(retain_graph=True)
    state.see(state.variables[0].grad)
    loss.backward()
    state.see(loss)
    loss.backward()


def followed(state: State, x: Any) -> None:
    """The tape is followed a second time, from a value inside."""
    with autograd.record():
        y = state.forward(x)
        loss, other = y.sum(), (y * 3).sum()
    if state.loop.once_more:
        del other
    loss.backward()
    state.see(loss)
    y.backward()


def other_loss(state: State, x: Any) -> None:
    """Two losses one after the other, of which one does not depend on the other's operators."""
    with autograd.record():
        loss = state.forward(x).sum()
        other = (state.variables[1] * x).sum()
    loss.backward()
    state.see(state.variables[1].grad)
    other.backward()
    state.see(loss, other)


def dropped(state: State, x: Any) -> None:
    """Nobody asks for what was recorded."""
    with autograd.record():
        state.forward(x)
    state.usual(x)


def gradients_of_heads(state: State, x: Any) -> None:
    """The gradient of a head lies where one is stored, or was noted itself."""
    with autograd.record():
        y = small(state.forward(x))
        given = small(y * 2)
    y.backward(small(state.variables[1].grad) if state.loop.once_more else given)
    state.see(y)
    with autograd.record():
        y = nd.dot(x, state.variables[0])
    y.backward(state.variables[0].grad)
    state.variables[0].grad[:] = nd.clip(state.variables[0].grad, -3, 3)


def other_variables_inside(state: State, x: Any) -> None:
    """What was noted as an operand becomes a variable, or moves, and is read again."""
    with autograd.record():
        y = state.forward(x)
        if state.loop.once_more:
            x.attach_grad()
        else:
            x[:] = 2
            x += 1
        loss = (y * x + state.forward(x)).sum()
    loss.backward()
    state.see(loss, x, *([] if x.grad is None else [x.grad]))


def gone(state: State, x: Any) -> None:
    """A variable goes between the record and backward, or gets another gradient."""
    other = nd.ones((N, N)) * 2
    other.attach_grad()
    with autograd.record():
        loss = (state.forward(x) * other).sum()
    if state.loop.once_more:
        del other
    else:
        other.attach_grad("add")
    loss.backward()
    state.see(loss)


def elsewhere(state: State, x: Any) -> None:
    """Another thread reads, or goes backward, while this one records."""
    with autograd.record():
        y = state.forward(x)
        loss = y.sum()
    work = loss.backward if state.loop.once_more else lambda: state.see(y, loss)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if not state.loop.once_more:
        loss.backward()
    state.see(loss)


def other_device(state: State, x: Any) -> None:
    """Something is computed on another device in the middle."""
    there = x.as_in_context(cpu(1))
    w = nd.ones((N, N), ctx=cpu(1))
    w.attach_grad()
    with autograd.record():
        y = state.forward(x)
        z = there * w + y.as_in_context(cpu(1))
        first, second = y.sum(), (z * w).sum()
    autograd.backward([first, second])
    state.see(first, second, w.grad)


def pickled(state: State, x: Any) -> None:
    """Values leave by other ways than reads."""
    with autograd.record():
        y = state.forward(x)
        z = y * 2
        loss = z.sum()
    state.seen.append(pickle.loads(pickle.dumps(y)).asnumpy())
    there = nd.zeros((N, N))
    z.copyto(there)
    state.see(there, copy.deepcopy(z))
    loss.backward()


def followed_twice(state: State, x: Any) -> None:
    """Two values whose tape was followed are read on the tape, and followed again."""
    with autograd.record():
        y = state.forward(x)
        z = y.sum(axis=1)
        loss = (y.sum() + z).sum()
    loss.backward()
    with autograd.record():
        other = y.sum() + z.sum() + state.variables[0].sum()
    state.see(loss, other)
    other.backward()


def nothing(state: State, x: Any) -> None:
    """Nothing changes."""
    state.usual(x)


CHANGES = {
    f.__name__: f
    for f in (
        branch, write_between, write_inside, view, view_of_noted, hook, requests, other_variable,
        second_order, paused, predicting, sharing, reading_gradients, failing, heads, retained,
        followed, other_loss, dropped, gradients_of_heads, other_variables_inside, gone, elsewhere,
        other_device, pickled, followed_twice, nothing,
    )
}  # fmt: skip


def is_exact(seen: list[Any]) -> bool:
    """Whether no number is so large that it may have been rounded."""
    return all(np.abs(x).max() < EXACT for x in seen if isinstance(x, np.ndarray))


def difference(first: list[Any], second: list[Any]) -> str:
    """Where two runs differ; empty where they do not."""
    if len(first) != len(second):
        return f"{len(first)} and {len(second)} things seen"
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        if isinstance(a, str) or isinstance(b, str):
            if isinstance(a, str) != isinstance(b, str) or a != b:
                return f"{k}: {a!r:.60} and {b!r:.60}"
        elif a.dtype != b.dtype or not np.array_equal(a, b):
            return f"{k}: {a} and {b}"
    return ""
