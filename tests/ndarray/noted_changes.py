"""What changes in mid-run in random training loops (`noted.py`)."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ndarray.noted_operators import N, State, normed, small
from ndarray.noted_others import OTHERS

from gnomon import autograd, cpu, nd, sym
from gnomon import random as random_numbers


class Odd(Exception):
    """Raised in the middle of a step."""


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
    state.hook = state.held.append if state.once_more else state.see
    state.usual(x)


def requests(state: State, x: Any) -> None:
    """A variable asks for its gradient in another way."""
    state.variables[1].attach_grad("add" if state.once_more else "null")
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
    state.shared = y.detach() if state.once_more else y
    state.see(loss)


def reading_gradients(state: State, x: Any) -> None:
    """A gradient is an operand."""
    first, second, third = state.variables
    with autograd.record():
        y = state.forward(x) * state.grad(0) + state.grad(1) * first * second * third
        loss = (y + state.grad(2) * third * nd.dot(first, second)).sum()
    loss.backward()
    state.see(loss)


def failing(state: State, x: Any) -> None:
    """An exception in the middle."""
    with autograd.record():
        y = state.forward(x)
        state.held.append(y)
        if state.once_more:
            raise Odd
        nd.dot(y, nd.ones((3, 1)))


def heads(state: State, x: Any) -> None:
    """Several heads, with gradients given."""
    with autograd.record():
        y = state.forward(x)
        z = y * 2 + state.variables[1]
    given = [nd.ones((N, N)) * 2, None] if state.once_more else None
    autograd.backward([z, y], given)
    state.see(y, z)


def retained(state: State, x: Any) -> None:
    """The tape is followed twice, and once more."""
    with autograd.record():
        loss = state.forward(x).sum()
    loss.backward(retain_graph=True)
    state.see(state.grad(0))
    loss.backward()
    state.see(loss)
    loss.backward()


def followed(state: State, x: Any) -> None:
    """The tape is followed a second time, from a value inside."""
    with autograd.record():
        y = state.forward(x)
        loss, other = y.sum(), (y * 3).sum()
    if state.once_more:
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
    state.see(state.grad(1))
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
    y.backward(small(state.grad(1)) if state.once_more else given)
    state.see(y)
    with autograd.record():
        y = nd.dot(x, state.variables[0])
    y.backward(state.grad(0))
    state.grad(0)[:] = nd.clip(state.grad(0), -3, 3)


def other_variables_inside(state: State, x: Any) -> None:
    """What was noted as an operand becomes a variable, or moves, and is read again."""
    with autograd.record():
        y = state.forward(x)
        if state.once_more:
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
    if state.once_more:
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
    work = loss.backward if state.once_more else lambda: state.see(y, loss)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()
    if not state.once_more:
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


def looking_at_averages(state: State, x: Any) -> None:
    """Averages are read, and viewed, between the operator that changes them and backward."""
    mean, variance = state.moving[0]
    view = mean[1:] if state.once_more else None
    with autograd.record():
        y = normed(state, x, state.forward(x))
        if view is not None:
            state.see(view)
        loss = (y * state.variables[1]).sum()
    state.see(variance)
    loss.backward()
    state.see(loss, mean)


def writing_averages(state: State, x: Any) -> None:
    """Averages are written in the midst, or are other arrays from then on."""
    with autograd.record():
        y = normed(state, x, state.forward(x))
        if state.once_more:
            state.moving[0][0][:] = 2
        else:
            state.moving[0] = (state.moving[0][0] * 1, state.moving[0][1].copy())
        loss = (y * state.variables[1]).sum()
    loss.backward()
    state.see(loss)


def averages_in_an_executor(state: State, x: Any) -> None:
    """A bound graph changes the averages, too."""
    symbol = sym.BatchNorm(sym.Variable("x"), name="n", momentum=0.5, axis=-1)
    args = {"x": x, "n_gamma": nd.ones((N,)), "n_beta": nd.ones((N,))}
    mean, variance = state.moving[1]
    bound = symbol.bind(cpu(), args, aux_states=[mean, variance])
    with autograd.record():
        y = normed(state, x, state.forward(x))
        bound.forward(is_train=True)
        loss = (normed(state, x, y) * state.variables[1]).sum()
    loss.backward()
    state.see(loss, mean)


def seeded(state: State, x: Any) -> None:
    """Random numbers begin anew between what is recorded and backward."""
    with autograd.record():
        y = nd.Dropout(state.forward(x), p=0.5)
        random_numbers.seed(state.loop.seed)
        loss = (nd.Dropout(y, p=0.5) * nd.random.randint(0, 3, (N, N)).astype("float32")).sum()
        drawn = nd.random.randint(0, 9, (N,))
    loss.backward()
    state.see(loss, drawn)


def unfollowed(state: State, x: Any) -> None:
    """Scopes that record, one after the other, whose gradients are not asked for."""
    with autograd.record():
        first = state.forward(x)
    for _ in range(9):
        with autograd.record():
            state.held.append(state.forward(x))
    with autograd.record():
        loss = (first * state.held[-1]).sum()
    loss.backward()
    state.see(loss)


def predicted(state: State, x: Any) -> None:
    """The operators are applied off the record, to variables and to what is noted."""
    for _ in range(3):
        before = state.forward(x)
    with autograd.record():
        y = state.forward(x)
        z = y * 2
    other = small(state.forward(small(z) - state.variables[1]) + y)
    with autograd.record():
        loss = (z * small(before) + other).sum()
    loss.backward()
    state.see(before, other, loss)


def written_outside(state: State, x: Any) -> None:
    """Variables are written by operators between what reads them and backward."""
    first, second, _ = state.variables
    with autograd.record():
        y = state.forward(x)
        loss = (y * first).sum()
    for _ in range(3):
        second *= -1
        nd.sgd_update(first, second, lr=1, out=first)
        first += second
    if state.once_more:
        y -= first
    loss.backward()
    state.see(y, loss, first, second)
    second *= -1


def nothing(state: State, x: Any) -> None:
    """Nothing changes."""
    state.usual(x)


CHANGES = {
    f.__name__: f
    for f in (
        branch, write_between, write_inside, view, view_of_noted, hook, requests, other_variable,
        second_order, paused, predicting, sharing, reading_gradients, failing, heads, retained,
        followed, other_loss, dropped, gradients_of_heads, other_variables_inside, gone, elsewhere,
        other_device, pickled, followed_twice, looking_at_averages, writing_averages,
        averages_in_an_executor, seeded, unfollowed, predicted, written_outside, nothing, *OTHERS,
    )
}  # fmt: skip
