"""derivative: what one node of the tape sends on, as arrays or on the tape again.

`backward.py` asks `of` for it; `remote/way.py` computes operators' gradients on GPUs, with the help
of the parts here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gnomon.base import GnomonError
from gnomon.expr.diff import vjp
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.rewrite import leaves
from gnomon.graph.gradient import Gradient
from gnomon.ground.record import put
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import RECIPES
from gnomon.ndarray.core.elsewhere import ways
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.core.tape import BundledCall, Call, Node
from gnomon.ndarray.lazy import on_data
from gnomon.ndarray.lazy.families import of_gradient, recipe_like
from gnomon.ndarray.lazy.forwarded import Forwarded
from gnomon.ndarray.lazy.invoke import anchors_of, guarded, invoke, launch
from gnomon.ndarray.lazy.recipe import Dest, Draws, Elsewhere, Work
from gnomon.ops.host import check_differentiable
from gnomon.ops.requests import kAddTo, kNullOp, kWriteTo

Grads = list[Any]


def of(node: Node, grads: Sequence[Any], dests: Sequence[Any], create: bool) -> Grads | None:
    """The gradient of each argument of `node`, None where there is none.

    None where the node was opened meanwhile, as `Forwarded.gradients` says.

    `grads` are those of the outputs, None where nothing came. A gradient goes to its entry of
    `dests` (array and saver) if that is not None. `create` puts what is computed on the tape, in a
    thread that records.
    """
    if isinstance(node, Forwarded):
        return node.gradients(grads, dests, store)
    if isinstance(node.gradient, Call):
        return _of_call(node, grads, dests, create)
    gradient: Gradient = node.gradient
    check_differentiable(gradient.op)
    flow = node.flow
    comes = any(g is not None for g in grads) or not flow.reads.out_grads
    wanted = tuple(k for k, given in enumerate(flow.gives) if given) if comes else ()
    if not wanted and not flow.changes:
        return [None] * len(node.inputs)
    reads = [_or_zeros(node, grads, k) for k in flow.reads.out_grads]
    way = ways.get(node.outputs[0][1].device_typeid)
    if gradient.op.sparse_grad and not create:
        return _of_rows(node, reads, dests)
    if way is not None and not create:
        found: Grads = way.gradient(node, reads, wanted, dests)
    elif not gradient.op.is_expression:
        return _on_data(node, reads, wanted, dests, create)
    elif create:
        found = _recorded(node, reads, wanted)
    else:
        found = _computed(node, reads, wanted, dests)
    if gradient.op.guard is not None:
        _refuse(node, [found[k] for k in wanted])
    return found


def _refuse(node: Node, found: Sequence[Any]) -> None:
    """Have the wait for gradients raise where the operator refuses its indices."""
    saved = dict(zip(node.flow.reads.inputs, node.saved or (), strict=False))
    indices = saved.get(1)
    if indices is not None:
        for array in found:
            guarded(node.gradient.op, node.gradient.shapes[0], indices, array)


def _or_zeros(node: Node, grads: Sequence[Any], k: int) -> Any:
    """The gradient of an output; zeros where nothing came."""
    if grads[k] is not None:
        is_dense = grads[k].__class__ is Array.main or grads[k].stype == "default"
        return grads[k] if is_dense else grads[k]._saved()
    layout, ctx = node.outputs[k]
    zeros = Array._new(dense(layout.shape, layout.dtype), ctx)
    zeros[:] = 0
    return zeros


def _computed(node: Node, reads: Sequence[Any], wanted: tuple[int, ...], dests: Any) -> Grads:
    """The gradients by one recipe."""
    recipe, inputs, outputs = recipe_of(node, reads, wanted, dests)
    changed = changed_of(node, inputs)
    launch(recipe, node.gradient.name, inputs, outputs, changed, node.outputs[0][1])
    return spaced(node, wanted, outputs)


def changed_of(node: Node, inputs: Sequence[Any]) -> Sequence[Any]:
    """The states among what the gradient of a node reads: its last inputs."""
    return inputs[len(inputs) - len(node.gradient.states) :]


def spaced(node: Node, wanted: tuple[int, ...], values: Sequence[Any]) -> Grads:
    """The gradients of all arguments, of those of the wanted ones."""
    found: Grads = [None] * len(node.inputs)
    for k, array in zip(wanted, values, strict=True):
        found[k] = array
    return found


def recipe_of(
    node: Node,
    reads: Sequence[Any],
    wanted: tuple[int, ...],
    dests: Any,
    there: Elsewhere | None = None,
) -> tuple[Any, Grads, Grads]:
    """What computes the wanted gradients, its inputs, and its outputs, in `dests` where given.

    It is a `Recipe`, or what is made `there`.
    """
    gradient, train = node.gradient, node.context[0]
    inputs = [*reads, *(node.saved or ())]
    ctx = node.outputs[0][1]
    outputs, savers = [], []
    for k in wanted:
        array, saver = dests[k] or (None, "saveto")
        shape, dtype = gradient.shapes[0][k], gradient.types[0][k]
        outputs.append(Array._new(dense(shape, dtype), ctx) if array is None else array)
        savers.append(saver)
    operands = [*inputs, *outputs]
    anchors: Any = ()
    first = len(inputs) - len(gradient.states)
    if first < len(inputs) or any(dests[k] is not None for k in wanted):
        anchors = anchors_of(operands, range(first, len(operands)))
    layouts = [x._layout for x in operands]
    key = (there, train, wanted, *savers, *layouts, anchors)
    recipes = gradient.__dict__.setdefault("_recipes", {})
    recipe = recipes.get(key)
    if recipe is None:
        work = work_of(gradient, train, wanted, layouts, savers, anchors)
        if there is None:
            recipe = recipe_like(of_gradient(gradient, train, wanted, work), work, work.name)
        else:
            recipe = there.recipe_for(work)
        RECIPES.put(recipes, key, recipe)
    return recipe, inputs, outputs


def work_of(
    gradient: Gradient,
    train: bool,
    wanted: tuple[int, ...],
    layouts: Sequence[Layout],
    savers: Sequence[str],
    anchors: Sequence[tuple[int, int]],
) -> Work:
    """What computes the wanted gradients, and changes the states that change with them."""
    count, states = len(layouts) - len(wanted), len(gradient.states)
    first = count - states

    def express(buffers: Sequence[Buffer], draws: Draws) -> list[Expr | None]:
        values = gradient.apply(buffers[:count], train=train, random=draws)
        new = gradient.updates(buffers[:first], buffers[first:count], (), train)
        return [*(values[k] for k in wanted), *(new[k] for k in range(states))]

    dests = [Dest(count + n, saver) for n, saver in enumerate(savers)]
    dests += [Dest(first + k, "saveto") for k in range(states)]
    places = anchors or [(k, 0) for k in range(len(layouts))]
    drawing = gradient.op.takes_random
    return Work(gradient.name, layouts, express, dests, places, drawing)


def by_processor(node: Node, reads: Sequence[Any], wanted: tuple[int, ...]) -> Grads:
    """The gradients of an operator, all of whose arrays are copies on the processor."""
    dests = [None] * len(node.inputs)
    if node.gradient.op.is_expression:
        return _computed(node, reads, wanted, dests)
    return _on_data(node, reads, wanted, dests, create=False)


def _on_data(
    node: Node, reads: Sequence[Any], wanted: tuple[int, ...], dests: Any, create: bool
) -> Grads:
    """The gradients of an operator that works on data, by its own code."""
    gradient = node.gradient
    if create:
        raise GnomonError(f"{gradient.op.name}: has no gradient of its gradient")
    parts = gradient.parts([*reads, *(node.saved or ())])
    ctx = node.outputs[0][1]
    found: Grads = [None] * len(node.inputs)
    requests = [kNullOp] * len(node.inputs)
    for k in wanted:
        array, saver = dests[k] or (None, "saveto")
        layout = dense(gradient.shapes[0][k], gradient.types[0][k])
        found[k] = Array._new(layout, ctx) if array is None else array
        requests[k] = kAddTo if saver == "plusto" else kWriteTo
    on_data.run_backward(gradient, node.context[1], parts, found, requests, ctx)
    return found


def _of_call(node: Node, grads: Sequence[Any], dests: Any, create: bool) -> Grads:
    """The gradients by a user's Python function."""
    reads = [_or_zeros(node, grads, k) for k in range(len(node.outputs))]
    if isinstance(node.gradient, BundledCall):
        return list(node.gradient.function(node, reads, dests, create))
    found = list(node.gradient.function(*reads))
    for k, dest in enumerate(dests):
        if dest is not None and found[k] is not None:
            store(found[k], *dest)
    return found


def _of_rows(node: Node, reads: Sequence[Any], dests: Any) -> Grads:
    """The gradients of an operator that looks rows up, in row-sparse storage."""
    assert storage_types.row_gradient is not None
    gradient = node.gradient
    found: Grads = storage_types.row_gradient(
        gradient.parts([*reads, *(node.saved or ())]), gradient.shapes[0][1][0]
    )
    for value, dest in zip(found, dests, strict=True):
        if dest is not None and value is not None:
            store(value, *dest)
    return found


def store(value: Any, array: Any, saver: str) -> None:
    """Put a gradient where it belongs."""
    if saver == "plusto":
        array += value
    else:
        array[:] = value


# --- gradients of gradients -----------------------------------------------------------------


class Derivative:
    """The wanted gradients of an operator as an operator: it can be recorded and differentiated."""

    is_expression = has_expression = True
    sparse_grad = False
    guard = moves = reduces = free = None
    derives = reshapes = False

    def __init__(self, gradient: Gradient, wanted: tuple[int, ...], train: bool) -> None:
        self.gradient = gradient
        self.wanted = wanted
        self.train = train
        self.name = gradient.name
        self.takes_random: bool = gradient.op.takes_random

        self.aux_names = gradient.auxiliary()

    def arguments(self) -> tuple[str, ...]:
        """Names of what it reads and leaves as it is."""
        return tuple(f"arg{k}" for k in range(len(self.gradient.arguments())))

    def auxiliary(self) -> tuple[str, ...]:
        """Names of the states that it changes."""
        return self.aux_names

    def inputs(self) -> tuple[str, ...]:
        """Names of both."""
        return self.arguments() + self.aux_names

    def outputs(self) -> tuple[str, ...]:
        """Names of what it gives."""
        return tuple(f"output{k}" for k in self.wanted)

    @property
    def num_visible_outputs(self) -> int:
        """One for each wanted argument."""
        return len(self.wanted)

    def infer_shape(self, ins: Any, outs: Any = None, **how: Any) -> Any:
        """The arguments' shapes."""
        return list(ins), *self._kinds(self.gradient.shapes[0])

    def infer_type(self, ins: Any, outs: Any = None) -> Any:
        """The arguments' dtypes."""
        return list(ins), *self._kinds(self.gradient.types[0])

    def _kinds(self, known: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Those of the outputs and of the states, of those of the operator's inputs."""
        return [known[k] for k in self.wanted], [known[k] for k in self.gradient.states]

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool) -> dict[int, Expr]:
        """New values of the states."""
        return self.gradient.updates(inputs, aux, (), self.train)

    def updates_backward(self, *parts: Any) -> dict[int, Expr]:
        """Gradients of gradients change no state."""
        return {}

    def apply(self, inputs: Sequence[Any], **context: Any) -> tuple[Expr, ...]:
        """The wanted gradients as expressions."""
        context["train"] = self.train
        values = self.gradient.apply(self.followed(inputs, context), **context)
        return tuple(values[k] for k in self.wanted)  # type: ignore[misc]

    def followed(self, inputs: Sequence[Any], context: dict[str, Any]) -> Sequence[Any]:
        """`inputs` with hidden outputs as functions of the operator's own: the tape has none.

        Those of an operator that draws stay as they are: draws depend on nothing.

        Raises:
            GnomonError: they depend on inputs that are not kept.
        """
        op, reads = self.gradient.op, self.gradient.flow.reads
        hidden = [k for k in reads.outputs if k >= op.num_visible_outputs]
        if not hidden or op.takes_random:
            return inputs
        parts = self.gradient.parts(inputs)
        _, ins, _ = self.gradient.filled(parts)
        values = op.apply(ins, **{**context, "out_shapes": self.gradient.shapes[1]})
        missing = {id(x) for x, kept in zip(ins, parts[1], strict=True) if kept is None}
        if not missing.isdisjoint(map(id, leaves([values[k] for k in hidden]))):
            raise GnomonError(f"{op.name}: has no gradient of its gradient")
        end = len(self.arguments())
        followed = (values[k] for k in hidden)
        return [*inputs[: end - len(hidden)], *followed, *inputs[end:]]

    def backward(self, out_grads: Any, inputs: Any, outputs: Any, **context: Any) -> Any:
        """The gradients of the gradients."""
        values = self.apply(inputs, **context)
        return tuple(vjp(values, out_grads, inputs[: len(self.arguments())]))


@lru_cache(maxsize=1024)
def _derivative(gradient: Gradient, wanted: tuple[int, ...], train: bool) -> Derivative:
    return Derivative(gradient, wanted, train)


def _recorded(node: Node, reads: Sequence[Any], wanted: tuple[int, ...]) -> Grads:
    """The gradients, computed by operators that go on the tape."""
    gradient, reads_of = node.gradient, node.flow.reads
    operator = _derivative(gradient, wanted, node.context[0])
    saved = [x._detached() for x in node.saved or ()]
    places = [node.inputs[k] if k < len(node.inputs) else None for k in reads_of.inputs]
    places += [node.place(k) for k in reads_of.outputs]
    places += [None] * len(gradient.states)
    for array, place in zip(saved, places, strict=True):
        put(array, "_tape", place)
    values = invoke(operator, [*reads, *saved])
    found: Grads = [None] * len(node.inputs)
    for k, value in zip(wanted, [values] if len(wanted) == 1 else values, strict=True):
        found[k] = value
    return found
