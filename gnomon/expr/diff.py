"""Differentiation: gradients of expressions, as expressions, by one walk from outputs to inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from gnomon.base import ShapeError, complaint, shown
from gnomon.expr.aliases import as_part
from gnomon.expr.ext.concat import Concat, concat
from gnomon.expr.ext.slice_ import Pad
from gnomon.expr.node import Buffer, Expr, check_expr
from gnomon.expr.walk import fits_any, postorder


def vjp(
    outputs: Sequence[Expr], out_grads: Sequence[Expr], inputs: Sequence[Expr]
) -> list[Expr | None]:
    """What each of `inputs` receives when `outputs` receive `out_grads`; None: nothing.

    Data in the memory of an input counts as that part of it, unless it is an input itself.

    >>> from gnomon.expr.node import Buffer
    >>> x, g = Buffer((3,)), Buffer((3,))
    >>> (gx,) = vjp([x * 2.0], [g], [x])
    >>> gx.shape
    (3,)

    Raises:
        TypeError: no sequences of expressions.
        ShapeError: not as many gradients as outputs, or one has another shape.
        GnomonError: data shares memory with an input, but is no part of it.
    """
    given = {"outputs": outputs, "out_grads": out_grads, "inputs": inputs}
    for name, several in given.items():
        if not isinstance(several, Sequence):
            raise TypeError(complaint("vjp", name, "a sequence of expressions", shown(several)))
        for one in several:
            check_expr("vjp", name, one)
    if len(out_grads) != len(outputs):
        expected = f"one for each of {len(outputs)} outputs"
        raise ShapeError(complaint("vjp", "out_grads", expected, len(out_grads)))
    for out, g in zip(outputs, out_grads, strict=True):
        if g.shape != out.shape and not fits_any(g):
            expected = f"the shape of {out!r}"
            raise ShapeError(complaint("vjp", "out_grads", expected, f"{g!r}"))
    order = postorder(outputs)
    parts = parts_of(inputs, order)
    wanted = reaching(order, [*inputs, *(part for part, _, _ in parts)])
    grads: dict[Expr, Expr] = {}
    for out, g in zip(outputs, out_grads, strict=True):
        accumulate(grads, out, g)
    for node in reversed(order):
        if node not in grads or node not in wanted:
            continue
        for child, g in node.adjoint(grads[node]):
            if child in wanted:
                accumulate(grads, child, g)
    for part, x, cut in parts:
        (back,) = vjp([cut], [grads[part]], [x]) if part in grads else (None,)
        if back is not None:
            accumulate(grads, x, back)
    return [grads.get(x) for x in inputs]


def parts_of(inputs: Sequence[Expr], order: Sequence[Expr]) -> list[tuple[Expr, Expr, Expr]]:
    """Data of `order` in the memory of an input, with that one and the part as its."""
    known = set(inputs)
    places = [x for x in inputs if isinstance(x, Buffer) and x.address]
    leaves = [e for e in order if isinstance(e, Buffer) and e not in known] if places else []
    cuts = [(leaf, x, as_part(leaf, x)) for leaf in leaves for x in places]
    return [(leaf, x, cut) for leaf, x, cut in cuts if cut is not None]


def accumulate(grads: dict[Expr, Expr], node: Expr, g: Expr) -> None:
    """Add `g` to what `node` has received so far."""
    grads[node] = added(grads[node], g) if node in grads else g


def added(a: Expr, b: Expr) -> Expr:
    """The sum of two gradients; a join where they are neighbouring parts of one tensor.

    The gradient of what was split so asks nothing at each element, and adds no zeros.
    """
    if not (isinstance(a, Pad) and isinstance(b, Pad) and a.axes == b.axes and len(a.axes) == 1):
        return a + b
    (axis,) = a.axes
    if a.before[axis] > b.before[axis]:
        a, b = b, a
    meet = a.before[axis] + a.src.shape[axis] == b.before[axis]
    if not meet or a.step[axis] != 1 or b.step[axis] != 1 or a.value or b.value:
        return a + b
    parts = [p for x in (a.src, b.src) for p in (x.parts if _joins(x, axis) else (x,))]
    whole = concat(parts, axis)
    return whole if whole.shape == a.shape else Pad(whole, a.before, a.to, a.step)


def _joins(x: Expr, axis: int) -> TypeGuard[Concat]:
    return isinstance(x, Concat) and x.axis == axis


def reaching(order: Sequence[Expr], inputs: Sequence[Expr]) -> set[Expr]:
    """The nodes of `order` (operands first) that depend on one of `inputs`."""
    wanted = set(inputs)
    for node in order:
        if any(child in wanted for child in node.children):
            wanted.add(node)
    return wanted
