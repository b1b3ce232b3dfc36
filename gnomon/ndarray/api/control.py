"""`mx.nd.contrib` beside the operators: loops and choices over arrays, and tests of numbers.

The bodies of loops are Python, called once a step, so whatever they do is recorded and has its
gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gnomon.base import ParamError, check_functions, complaint
from gnomon.context import Context
from gnomon.ndarray.api.functions import find
from gnomon.ndarray.core.array import Array
from gnomon.ops.control import two_of

Step = Callable[..., tuple[Any, Any]]


def mapped(function: Callable[..., Any], *nested: Any) -> Any:
    """`function` of the arrays at each place of lists of one form, in that form."""
    if isinstance(nested[0], (list, tuple)):
        return [mapped(function, *parts) for parts in zip(*nested, strict=True)]
    return function(*nested)


def first(nested: Any) -> Any:
    """The first array of a nested list."""
    while isinstance(nested, (list, tuple)) and nested:
        nested = nested[0]
    return nested


def check_arrays(where: str, argument: str, nested: Any) -> None:
    """A TypeError unless these are arrays, or lists of them."""
    if isinstance(nested, (list, tuple)):
        for part in nested:
            check_arrays(where, argument, part)
    elif not isinstance(nested, Array):
        raise TypeError(complaint(where, argument, "arrays, or lists of them", repr(nested)))


def form(nested: Any) -> Any:
    """How arrays are nested, with 1 for each.

    >>> form([1, (2, [3])])
    [1, [1, [1]]]
    """
    return mapped(lambda _: 1, nested)


def stacked(steps: list[Any], rows: int = 0) -> Any:
    """What each step gave, along a new first axis; with zeros behind it up to `rows`."""

    def joined(*parts: Any) -> Any:
        missing = [parts[0].zeros_like()] * (rows - len(parts))
        return find("", "stack")(*parts, *missing, axis=0)

    return mapped(joined, *steps)


def foreach(body: Step, data: Any, init_states: Any) -> tuple[Any, Any]:
    """`body(part, states)` for each part of `data` along its first axis, one after the other.

    `body` gives outputs and new states. The outputs of all steps are stacked, beside the last
    states; arrays may be lists of arrays everywhere.

    >>> import gnomon as mx
    >>> step = lambda x, total: (x + total, x + total)
    >>> outputs, total = mx.nd.contrib.foreach(step, mx.nd.array([1, 2, 3]), mx.nd.array([0]))
    >>> outputs.asnumpy().ravel(), total.asnumpy()
    (array([1., 3., 6.], dtype=float32), array([6.], dtype=float32))

    Raises:
        TypeError: `data`, `init_states` or what `body` gives hold anything but arrays; `body` is no
            function.
        ParamError: there is nothing to go through, or `body` does not give two things, or states
            that are nested otherwise.
    """
    check_functions("foreach", body=body)
    check_arrays("foreach", "data", data)
    check_arrays("foreach", "init_states", init_states)
    states, steps = init_states, []
    leading, nesting = first(data), form(init_states)
    for k in range(len(leading) if isinstance(leading, Array) else 0):
        made = body(mapped(lambda x, k=k: x[k], data), states)
        outputs, states = two_of("foreach", "body", made, "outputs and states")
        check_arrays("foreach", "body", outputs)
        check_arrays("foreach", "body", states)
        if form(states) != nesting:
            expected = f"states nested as init_states, {nesting}"
            raise ParamError(complaint("foreach", "body", expected, form(states)))
        steps.append(outputs)
    if not steps:
        raise ParamError(complaint("foreach", "data", "at least one part", data))
    return stacked(steps), states


def while_loop(
    cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any, max_iterations: Any = None
) -> tuple[Any, Any]:
    """`func(*loop_vars)` as long as `cond(*loop_vars)` holds, at most `max_iterations` times.

    `func` gives outputs (or None) and new variables. The outputs of all steps are stacked, with
    zeros behind them up to `max_iterations`, beside the last variables.

    >>> import gnomon as mx
    >>> below, twice = (lambda x: x < 9), (lambda x: (x, [x * 2]))
    >>> steps, (last,) = mx.nd.contrib.while_loop(below, twice, [mx.nd.array([1])], 5)
    >>> steps.asnumpy().ravel(), last.asnumpy()
    (array([1., 2., 4., 8., 0.], dtype=float32), array([16.], dtype=float32))

    Raises:
        TypeError: `loop_vars` or what `func` gives hold anything but arrays; `cond` or `func` is
            no function.
        ParamError: there are none, `func` gives another number of them, or not two things, or
            `max_iterations` is no number above 0.
    """
    check_functions("while_loop", cond=cond, func=func)
    check_arrays("while_loop", "loop_vars", loop_vars)
    if max_iterations is None or int(max_iterations) < 1:
        expected = "a number above 0"
        raise ParamError(complaint("while_loop", "max_iterations", expected, max_iterations))
    variables = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    if not variables:
        raise ParamError(complaint("while_loop", "loop_vars", "at least one array", loop_vars))
    steps: list[Any] = []
    for _ in range(int(max_iterations)):
        if not _holds("while_loop", cond(*variables)):
            break
        outputs, new = two_of("while_loop", "func", func(*variables), "outputs and variables")
        steps.append([] if outputs is None else outputs)
        new = list(new) if isinstance(new, (list, tuple)) else [new]
        check_arrays("while_loop", "func", [steps[-1], new])
        if len(new) != len(variables):
            raise ParamError(
                complaint("while_loop", "func", f"{len(variables)} variables", len(new))
            )
        variables = new
    return (stacked(steps, int(max_iterations)) if steps else []), variables


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """What `then_func` gives where `pred`, of one element, is not 0, else what `else_func` gives.

    >>> import gnomon as mx
    >>> x = mx.nd.array([3])
    >>> mx.nd.contrib.cond(x > 2, lambda: x * 2, lambda: x).asnumpy()
    array([6.], dtype=float32)

    Raises:
        ParamError: `pred` has more or fewer elements.
        TypeError: one of the others is no function.
    """
    check_functions("cond", then_func=then_func, else_func=else_func)
    return then_func() if _holds("cond", pred) else else_func()


def _holds(where: str, found: Any) -> bool:
    """Whether a condition, a number or an array of one, holds."""
    if isinstance(found, Array):
        if found.size != 1:
            expected = "an array of one element"
            raise ParamError(complaint(where, "pred", expected, f"shape {found.shape}"))
        return bool(found.asscalar())
    return bool(found)


def isinf(data: Any) -> Any:
    """1 where `data` is infinite, else 0."""
    return abs(data) == math.inf


def isnan(data: Any) -> Any:
    """1 where `data` is NaN, else 0."""
    return data != data


def isfinite(data: Any) -> Any:
    """1 where `data` is a finite number, else 0."""
    return abs(data) < math.inf


def rand_zipfian(
    true_classes: Any, num_sampled: int, range_max: int, ctx: Context | None = None
) -> tuple[Any, Any, Any]:
    """Numbers below `range_max`, small ones likelier, for sampled softmax.

    Gives `num_sampled` numbers in int64, and how often each of `true_classes` and of the numbers is
    expected among them.

    Raises:
        ParamError: `range_max` is less than 1.
    """
    if range_max < 1:
        raise ParamError(complaint("rand_zipfian", "range_max", "a number from 1 up", range_max))
    place = ctx or true_classes.context
    whole = math.log(range_max + 1)
    uniform = find("random", "uniform")(shape=(num_sampled,), dtype="float64", ctx=place)
    drawn = ((uniform * whole).exp() - 1).astype("int64")
    numbers = find("", "clip")(drawn, a_min=0, a_max=range_max - 1)

    def expected(classes: Any) -> Any:
        wide = classes.astype("float64")
        return ((wide + 2.0) / (wide + 1.0)).log() / whole * num_sampled

    return numbers, expected(true_classes), expected(numbers)
