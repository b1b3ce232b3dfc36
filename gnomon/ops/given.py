"""Gradients by name: `gradient` of an operator says by its parameters what it reads.

    def gradient(self, grad: Expr, data: Expr, output: Expr) -> Expr:
        return grad * output / data

`grad` is the gradient of the first output and `grad_<output>` that of another; `grads`, `inputs`
and `outputs` are all of them; any other parameter is an input or an output by its name, None where
an instance has none such. Keyword-only parameters ask for context, as those of `forward` do.
What comes back is the gradient of the only argument, or a tuple with one for each, or a dictionary
by names; None, or what is left out, has no gradient.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.base import DTypeError, ShapeError, complaint, shown
from gnomon.ops.derive import Needs

if TYPE_CHECKING:
    from gnomon.ops.op import Op

Parts = Sequence[Any]
GROUPS = ("grads", "inputs", "outputs")


def asked(method: Callable[..., Any]) -> tuple[str, ...]:
    """The names that a gradient asks for."""
    kinds = inspect.signature(method).parameters.values()
    return tuple(p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD)[1:]


def known(op: Op) -> dict[str, tuple[str, int | slice | None]]:
    """Each name that a gradient of `op` may ask for: one of `GROUPS`, and which of it."""
    outputs = op.outputs()[: op.num_visible_outputs]
    found: dict[str, tuple[str, int | slice | None]] = {g: (g, slice(None)) for g in GROUPS}
    found |= dict.fromkeys((*op.input_names, *op.output_names), ("inputs", None))
    found |= {"grad": ("grads", 0)}
    found |= {f"grad_{name}": ("grads", k) for k, name in enumerate(outputs)}
    found |= {name: ("outputs", k) for k, name in enumerate(op.outputs())}
    found |= {name: ("inputs", k) for k, name in enumerate(op.inputs())}
    return found


@functools.lru_cache(maxsize=1024)
def places(op: Op) -> tuple[tuple[str, int | slice | None], ...]:
    """Where what the gradient of `op` asks for lies, in the order of its parameters.

    Raises:
        ShapeError: it asks for something that there is not.
    """
    names = known(op)
    for name in op.asked:
        if name not in names:
            expected = f"parameters among {', '.join(names)}"
            raise ShapeError(complaint(f"{op.name}.gradient", name, expected, "another"))
    return tuple([names[name] for name in op.asked])


def needs(op: Op) -> Needs:
    """What the gradient of `op` reads, by what it asks for."""
    found: dict[str, set[int]] = {group: set() for group in GROUPS}
    counts = (op.num_visible_outputs, len(op.inputs()), len(op.outputs()))
    for group, which in places(op):
        every = range(dict(zip(GROUPS, counts, strict=True))[group])
        if which is not None:
            found[group].update(every[which] if isinstance(which, slice) else (which,))
    return Needs(*(tuple(sorted(found[group])) for group in GROUPS))


def gradients(op: Op, parts: Parts, context: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the gradient of `op` gives for each argument; `parts` are what `GROUPS` names."""
    assert op.gradient is not None
    by_group = dict(zip(GROUPS, map(tuple, parts), strict=True))
    given = [None if which is None else by_group[group][which] for group, which in places(op)]
    return each(op, op.gradient(*given, **context))


def each(op: Op, found: Any) -> tuple[Any, ...]:
    """What a gradient gave, as one value for each argument.

    Raises:
        ShapeError: as many there are not, or a name is no argument's.
    """
    names = op.arguments()
    if found is None:
        return (None,) * len(names)
    if isinstance(found, Mapping):
        wrong = next((name for name in found if name not in names), None)
        if wrong is not None:
            expected = f"names among {', '.join(names)}"
            raise ShapeError(complaint(f"{op.name}.gradient", "result", expected, wrong))
        return tuple(found.get(name) for name in names)
    values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if len(values) != len(names):
        expected = f"{len(names)} of them: {', '.join(names)}"
        raise ShapeError(complaint(f"{op.name}.gradient", "result", expected, len(values)))
    if any(isinstance(v, (tuple, list, str)) for v in values):
        expected = "one value for each argument"
        raise DTypeError(complaint(f"{op.name}.gradient", "result", expected, shown(found)))
    return values
