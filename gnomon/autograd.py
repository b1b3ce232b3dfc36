"""`mx.autograd`: record what is computed, and follow it backward for gradients.

>>> import gnomon as mx
>>> x = mx.nd.array([1, 2, 3])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = (x * x).sum()
>>> y.backward()
>>> x.grad.asnumpy()
array([2., 4., 6.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError, ParamError, ShapeError, check_kind, complaint, shown
from gnomon.graph.gradient import Flow
from gnomon.ground.lock import load_module
from gnomon.ground.record import put
from gnomon.ndarray import backward as _backward
from gnomon.ndarray.api.indexing import without_ones_in_front
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import together
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import Call, Node, Output, placed, source
from gnomon.ndarray.lazy import notes
from gnomon.ndarray.ndarray import mark


def is_recording() -> bool:
    """Whether this thread records."""
    return mode.recording


def is_training() -> bool:
    """Whether operators behave as in training in this thread."""
    return mode.training


def set_recording(is_recording: bool) -> bool:
    """Record from now on, or not; what was before."""
    before, mode.recording = mode.recording, _flag("set_recording", "is_recording", is_recording)
    return before


def set_training(train_mode: bool) -> bool:
    """Train from now on, or not; what was before."""
    before, mode.training = mode.training, _flag("set_training", "train_mode", train_mode)
    return before


def _flag(where: str, argument: str, value: Any) -> bool:
    """A bool, or a whole number as one; TypeError where it is something else."""
    if value.__class__ is not bool:  # asked in each recorded step
        check_kind(where, argument, value, (int, np.bool_, np.integer), "a bool")
    return bool(value)


class Scope:
    """A scope with other flags; None leaves one as it is."""

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self.flags = recording, training
        self.before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self.before.append((mode.recording, mode.training))
        recording, training = self.flags
        if recording and not mode.recording:
            notes.enter()
        mode.recording = mode.recording if recording is None else recording
        mode.training = mode.training if training is None else training

    def __exit__(self, *exc: object) -> None:
        mode.recording, mode.training = self.before[-1]  # first: a handler may raise in any call
        self.before.pop()


def _train_mode(where: str, given: Any) -> bool | None:
    """A flag, or None, which leaves the mode as it is."""
    return None if given is None else _flag(where, "train_mode", given)


def record(train_mode: bool | None = True) -> Scope:
    """A scope that records, in training mode or not."""
    return Scope(True, _train_mode("record", train_mode))


def pause(train_mode: bool | None = False) -> Scope:
    """A scope that does not record."""
    return Scope(False, _train_mode("pause", train_mode))


def train_mode() -> Scope:
    """A scope in which operators behave as in training."""
    return Scope(None, True)


def predict_mode() -> Scope:
    """A scope in which operators behave as in prediction."""
    return Scope(None, False)


def mark_variables(variables: Any, gradients: Any, grad_reqs: Any = "write") -> None:
    """Make arrays variables whose gradients go to the arrays given.

    Raises:
        ParamError: numbers, shapes or dtypes do not go together, or a request is unknown.
        DeviceError: a gradient is on another device than its variable.
    """
    arrays = _list("mark_variables", "variables", variables)
    grads = _list("mark_variables", "gradients", gradients)
    reqs = [grad_reqs] * len(arrays) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(arrays) == len(grads) == len(reqs):
        expected = f"{len(arrays)} gradients and requests"
        got = f"{len(grads)} and {len(reqs)}"
        raise ParamError(complaint("mark_variables", "gradients", expected, got))
    for array, grad, req in zip(arrays, grads, reqs, strict=True):
        mark(array, grad, req)


def _list(where: str, argument: str, arrays: Any) -> list[Any]:
    """One array, or a sequence of them, as a list.

    Raises:
        TypeError: something else.
    """
    if isinstance(arrays, Array):
        return [arrays]
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(complaint(where, argument, "an NDArray or a list", shown(arrays)))
    return list(arrays)


def _some(where: str, argument: str, arrays: Any) -> list[Any]:
    """One array, or several, as a list.

    Raises:
        TypeError: something else, or something else among them.
        ParamError: none.
    """
    found = _list(where, argument, arrays)
    if not found:
        raise ParamError(complaint(where, argument, "at least one NDArray", "none"))
    for number, x in enumerate(found):
        if not isinstance(x, Array):
            raise TypeError(complaint(where, f"{argument}[{number}]", "an NDArray", shown(x)))
    return found


def backward(
    heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True
) -> None:
    """Store the gradients of all variables that `heads` depend on.

    Raises:
        GnomonError: a head is not on the tape, or the tape was followed already; there is no head.
        ShapeError: a head's gradient has another shape.
    """
    grads = None if head_grads is None else _list("backward", "head_grads", head_grads)
    _backward.backward(_some("backward", "heads", heads), grads, retain_graph, train_mode)


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[Any]:
    """The gradients of `variables` as a list of new arrays.

    With `create_graph` they are on the tape themselves, for gradients of gradients.

    Raises:
        GnomonError: a head or a variable is not on the tape, or the tape was followed already.
    """
    retain = create_graph if retain_graph is None else retain_graph
    grads = None if head_grads is None else _list("grad", "head_grads", head_grads)
    wanted = _some("grad", "variables", variables)
    return _backward.gradients(_some("grad", "heads", heads), wanted, grads, retain, create_graph)


def get_symbol(x: Any) -> Any:
    """The Symbol of what was recorded for `x`, with a variable for each array it began with.

    Arrays with `attach_grad` are called `var0`, `var1`..., others `null` and a number, once for
    each time that they were read. Programs without symbols need not load them, so this does.

    >>> import gnomon as mx
    >>> x = mx.nd.ones((2,))
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.exp(x) * 2
    >>> len(get_symbol(y).list_arguments())
    1

    Raises:
        GnomonError: `x` is not on the tape, or depends on a `Function`, which no symbol says.
    """
    if not isinstance(x, Array):
        raise TypeError(complaint("get_symbol", "x", "an NDArray", shown(x)))
    place = placed(x)
    if place is None:
        expected = "an array with attach_grad, or one computed from such while recording"
        raise GnomonError(complaint("get_symbol", "x", expected, "another"))
    return load_module("gnomon.symbol.recorded").recorded(place)


def _taken(where: str, number: int, grad: Any, like: tuple[Any, ...] | None) -> Any:
    """A gradient as its input takes it: of its shape and dtype, and on its device."""
    if like is None or grad is None:
        return grad
    shape, dtype, ctx = like
    expected = f"an NDArray whose shape stretches to {shape} of the input"
    if not isinstance(grad, Array):
        raise TypeError(complaint(where, f"gradient {number}", expected, shown(grad)))
    if not together(grad.context, ctx):
        grad = grad.as_in_context(ctx)
    if grad.dtype != dtype:
        grad = grad.astype(dtype)
    if grad.shape == shape:
        return grad
    try:
        return grad.reshape(without_ones_in_front(grad.shape, len(shape))).broadcast_to(shape)
    except ShapeError:
        got = f"shape {grad.shape}"
        raise ShapeError(complaint(where, f"gradient {number}", expected, got)) from None


class Function:
    """A function with a gradient of one's own: subclasses say `forward` and `backward`.

    >>> import gnomon as mx
    >>> class Double(Function):
    ...     def forward(self, x):
    ...         return x * 2
    ...     def backward(self, dy):
    ...         return dy * 2
    >>> x = mx.nd.ones((2,))
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = Double()(x)
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([2., 2.], dtype=float32)
    """

    saved_tensors: tuple[Any, ...] = ()
    _used = False  # what it saved belongs to a call on the tape

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for `backward`, which finds them in `saved_tensors`."""
        self.saved_tensors = args

    def __call__(self, *inputs: Any) -> Any:
        """Apply `forward`, and note `backward` on the tape.

        Raises:
            GnomonError: the object was called before while recording.
            TypeError: `forward`, or later `backward`, gives something else than arrays.
            ParamError: `backward` gives another number of gradients than there are inputs.
            ShapeError: a gradient of `backward` does not stretch to its input's shape.
        """
        name = type(self).__name__
        if self._used:
            raise GnomonError(f"{name}: one object is one call on the tape; make another {name}()")
        with pause(train_mode=mode.training):
            found = self.forward(*inputs)
        outputs = [x._detached() for x in _some(f"{name}.forward", "result", found)]
        places = [source(x) if isinstance(x, Array) else None for x in inputs]
        if mode.recording and any(place is not None for place in places):
            self._used = True
            flow = Flow(tuple([place is not None for place in places]))
            kinds = [(x._layout, x.context) for x in outputs]
            likes = [
                (x.shape, x.dtype, x.context) if isinstance(x, Array) else None for x in inputs
            ]
            call = Call(lambda *grads: self._gradients(likes, grads))
            node = Node(call, places, flow, (), kinds)
            for k, x in enumerate(outputs):
                put(x, "_tape", Output(node, k))
        if isinstance(found, Array):
            return outputs[0]
        return tuple(outputs) if isinstance(found, tuple) else outputs

    def _gradients(self, likes: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """What `backward` gives, one gradient an input, each as that takes it."""
        where = f"{type(self).__name__}.backward"
        found = _list(where, "result", self.backward(*grads))
        if len(found) != len(likes):
            expected = f"{len(likes)} gradients, one an input"
            raise ParamError(complaint(where, "result", expected, len(found)))
        return [_taken(where, k, *pair) for k, pair in enumerate(zip(found, likes, strict=True))]

    def forward(self, *inputs: Any) -> Any:
        """Hook: the outputs, computed from the inputs."""
        raise TypeError(f"{type(self).__name__} says nothing of forward")

    def backward(self, *output_grads: Any) -> Any:
        """Hook: the gradients of the inputs, from those of the outputs."""
        raise TypeError(f"{type(self).__name__} says nothing of backward")
