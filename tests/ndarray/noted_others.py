"""What else changes in mid-run in random training loops: arrays, shapes, settings."""

from __future__ import annotations

from typing import Any

from ndarray.noted_operators import N, State, small

from gnomon import autograd, config, cpu, nd, sym


def other_shapes(state: State, x: Any) -> None:
    """The same operators on another number of rows."""
    rows = 1 + abs(state.number) % 3
    part = x[:rows].copy()
    with autograd.record():
        y = small(nd.FullyConnected(part, state.variables[0], state.bias, num_hidden=N))
        loss = (small(y * part) + state.bias).sum()
    loss.backward()
    state.see(loss)
    if state.once_more:
        state.usual(x)


def other_dtype(state: State, x: Any) -> None:
    """The same operators on numbers of another dtype."""
    first, second = (v.astype("float64") for v in state.variables[:2])
    first.attach_grad()
    with autograd.record():
        loss = (small(nd.dot(first, second)) * first).sum()
    loss.backward()
    state.see(loss, first.grad)
    with autograd.record():
        loss = (small(nd.dot(*state.variables[:2])) * state.variables[0]).sum()
    loss.backward()
    state.see(loss)


def waiting(state: State, x: Any) -> None:
    """All is waited for, or a setting changes for a while, in the middle."""
    with autograd.record():
        y = state.forward(x)
        if state.once_more:
            nd.waitall()
        else:
            with config.using(lazy=False):
                y = small(y * 2)
        loss = (y * state.variables[1]).sum()
    loss.backward()
    state.see(loss)


def gradients_asked_for(state: State, x: Any) -> None:
    """Gradients are new arrays, once with the tape kept for `backward`."""
    with autograd.record():
        y = state.forward(x)
        loss = (y * state.variables[1]).sum()
    wanted = [state.variables[1], y] if state.once_more else state.variables[:2]
    found = autograd.grad(loss, wanted, retain_graph=state.once_more)
    state.see(*found)
    loss.backward()


def other_gradients(state: State, x: Any) -> None:
    """The gradient of a variable goes to another array from then on."""
    first, second, _ = state.variables
    if state.once_more:
        autograd.mark_variables([first], [nd.zeros((N, N))])
    else:
        autograd.mark_variables([first, second], [state.grad(1), state.grad(0)], ["write", "add"])
    state.usual(x)


def exchanged(state: State, x: Any) -> None:
    """Variables exchange their parts, or one stands for two."""
    first, second, third = state.variables
    state.variables[:] = [second, first, third] if state.once_more else [first, first, third]
    state.usual(x)


def one_variable_less(state: State, x: Any) -> None:
    """A variable is an array off the tape for a step, with the same values."""
    kept = state.variables[0]
    state.variables[0] = kept.detach() if state.once_more else kept.copy()
    state.usual(x)
    state.variables[0] = kept


def compiled(state: State, x: Any) -> None:
    """A bound graph, and a compiled one, read the variables and what is noted."""
    symbol = sym.broadcast_mul(sym.Variable("a"), sym.Variable("b")) + 1
    bound = symbol.bind(cpu(), {"a": state.variables[0], "b": state.variables[1]})
    with autograd.record():
        y = state.forward(x)
        (z,) = bound.forward(is_train=False)
        loss = (small(y * z) * state.variables[0]).sum()
    if state.once_more:
        state.variables[0] *= -1
        state.see(*bound.forward(is_train=False))
        state.variables[0] *= -1
    loss.backward()
    state.see(loss, z)


def overlapping(state: State, x: Any) -> None:
    """The same is recorded twice, and read, before gradients of either are asked for."""
    losses = []
    for given in (x, x * 2 - 1):
        with autograd.record():
            losses.append(state.forward(given).sum())
        state.see(losses[-1])
    for loss in losses if state.once_more else losses[::-1]:
        loss.backward()
        state.see(*(v.grad for v in state.variables if v.grad is not None))


def undone(state: State, x: Any) -> None:
    """What changed for good is as it was at first."""
    state.undo()
    state.usual(x)


OTHERS = (
    other_shapes, other_dtype, waiting, gradients_asked_for, other_gradients, exchanged,
    one_variable_less, compiled, overlapping, undone,
)  # fmt: skip
