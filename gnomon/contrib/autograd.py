"""The first interface of autograd, in which recording and training are one state.

>>> import gnomon as mx
>>> gradient = mx.contrib.autograd.grad(lambda x: x * x)
>>> gradient(mx.nd.array([1, 2, 3]))[0].asnumpy()
array([2., 4., 6.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from gnomon import autograd
from gnomon import ndarray as nd
from gnomon.base import ParamError, complaint, shown

__all__ = [
    "TrainingStateScope",
    "backward",
    "compute_gradient",
    "grad",
    "grad_and_loss",
    "mark_variables",
    "set_is_training",
    "test_section",
    "train_section",
]

mark_variables = autograd.mark_variables


def set_is_training(is_train: bool) -> bool:
    """Record and train from now on, or neither; whether training was on before."""
    autograd.set_recording(is_train)
    return autograd.set_training(is_train)


class TrainingStateScope(autograd.Scope):
    """A scope that records in training mode, or does neither.

    >>> with TrainingStateScope(True):
    ...     autograd.is_recording(), autograd.is_training()
    (True, True)
    """

    def __init__(self, enter_state: bool) -> None:
        super().__init__(bool(enter_state), bool(enter_state))


def train_section() -> TrainingStateScope:
    """A scope that records in training mode."""
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """A scope that does not record and predicts, inside a `train_section`."""
    return TrainingStateScope(False)


def backward(outputs: Any, out_grads: Any = None, retain_graph: bool = False) -> None:
    """Store the gradients of all variables that `outputs` depend on.

    Raises:
        GnomonError: an output is not on the tape, or there is none.
        ShapeError: an output's gradient has another shape.
    """
    autograd.backward(outputs, out_grads, retain_graph)


def compute_gradient(outputs: Any) -> None:
    """`backward` with gradients of one for all outputs."""
    backward(outputs)


def grad_and_loss(
    func: Callable[..., Any], argnum: int | Sequence[int] | None = None
) -> Callable[..., tuple[list[Any], Any]]:
    """A function that returns the gradients of `func` and what `func` returns.

    The gradients are by all arguments, or by those whose positions are `argnum`. The arguments
    become variables, as by `mark_variables`.

    >>> import gnomon as mx
    >>> grads, loss = grad_and_loss(lambda a, b: a * b, argnum=1)(mx.nd.ones(2), mx.nd.ones(2) * 3)
    >>> grads[0].asnumpy(), loss.asnumpy()
    (array([1., 1.], dtype=float32), array([3., 3.], dtype=float32))
    """

    @wraps(func)
    def wrapped(*args: Any) -> tuple[list[Any], Any]:
        variables = _chosen(args, argnum)
        grads = [nd.zeros_like(x) for x in variables]
        mark_variables(variables, grads)
        with train_section():
            outputs = func(*args)
        backward(outputs)
        return grads, outputs

    return wrapped


def grad(
    func: Callable[..., Any], argnum: int | Sequence[int] | None = None
) -> Callable[..., list[Any]]:
    """A function that returns the gradients of `func` as a list; see `grad_and_loss`."""
    both = grad_and_loss(func, argnum)

    @wraps(func)
    def wrapped(*args: Any) -> list[Any]:
        return both(*args)[0]

    return wrapped


def _chosen(args: Sequence[Any], argnum: int | Sequence[int] | None) -> list[Any]:
    """The arguments to differentiate by.

    Raises:
        ParamError: there is no argument at one of the positions.
        TypeError: one is no array.
    """
    numbers = range(len(args)) if argnum is None else argnum
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    for number in numbers:
        if not 0 <= number < len(args):
            expected = f"positions below {len(args)}, the number of arguments"
            raise ParamError(complaint("grad_and_loss", "argnum", expected, number))
        if not isinstance(args[number], nd.NDArray):
            got = shown(args[number])
            raise TypeError(complaint("grad_and_loss", f"args[{number}]", "an NDArray", got))
    return [args[number] for number in numbers]
