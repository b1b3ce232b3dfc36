"""invoke: the single way an operator runs imperatively.

    infer -> pending, or: recipe (kept with the operator) -> memory -> engine; -> tape

Shapes and dtypes are checked before anything is allocated or written. An element-wise operator's
result stays pending (`pending.py`). For all others the engine gets one inline function an operator;
a quick one runs under its lock, where no job is in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gnomon import engine
from gnomon.base import GnomonError, ShapeError, complaint, shown
from gnomon.context import Context, current_context
from gnomon.expr.node import Buffer, Expr
from gnomon.ground.frames import shorten
from gnomon.ground.record import put
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import RECIPES
from gnomon.ndarray.core.elsewhere import ways
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.ndarray.core.mode import mode
from gnomon.ndarray.core.tape import record, source
from gnomon.ndarray.lazy import on_data, pending
from gnomon.ndarray.lazy.families import of_forward, recipe_like, recipe_of_one
from gnomon.ndarray.lazy.forwarded import take_over
from gnomon.ndarray.lazy.fused import is_lost
from gnomon.ndarray.lazy.infer import infer
from gnomon.ndarray.lazy.notes import note
from gnomon.ndarray.lazy.numbers import Sharing, keep_alone, probed, sharing_of, word
from gnomon.ndarray.lazy.precise import adapted
from gnomon.ndarray.lazy.recipe import (
    Alike,
    Dest,
    Draws,
    Elsewhere,
    NotShared,
    Recipe,
    Work,
    dispatch,
)
from gnomon.ndarray.lazy.recorded import Recorded
from gnomon.ops import precision
from gnomon.resource import Position, at, generator

Outputs = list[Any]


def invoke(
    op: Any,
    inputs: Sequence[Any],
    out: Any = None,
    ctx: Context | None = None,
) -> Any:
    """Apply an operator to arrays, or note it: its visible outputs, an array or a list of them.

    `inputs` are the arguments, then the states. `out` is where the outputs go, an array or a list;
    it may overlap the inputs. `ctx` is the device of new outputs.

    Raises:
        ShapeError, DTypeError: the inputs, or `out`, are not what the operator takes; nothing has
            been written.
        GnomonError: an array of the tape, or an input that its gradients may read, would be
            overwritten while recording.
    """
    try:
        if precision.current is not None and out is None:
            op, inputs = adapted(precision.current, op, inputs, invoke)
        if (mode.recording or mode.predicting) and out is None:
            noted = note(op, inputs)
            if noted is not None:
                return noted
        return apply(op, inputs, out, ctx)
    except GnomonError as error:
        shorten(error)
        raise


def apply(
    op: Any,
    inputs: Sequence[Any],
    out: Any = None,
    ctx: Context | None = None,
    drawn: Sequence[Position] | None = None,
) -> Any:
    """As `invoke`, without noting it; its random numbers are those at `drawn`, if that is given."""
    given = None if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    tapes = mode.recording and any(x._tape is not None for x in inputs)
    if given is not None:
        check_writes(op, given, inputs if tapes else ())
        if any(map(is_lost, given)):
            written_anew(given, lambda outputs: apply(op, inputs, outputs, ctx))
            return out
        ctx = None  # the operands say where
    place = ctx or _place(inputs, given)
    if storage_types.rules or place.device_typeid in ways:
        found = _by_rule(op, inputs, given, ctx, place, drawn)
        if found is not None:
            return out if given is not None else found[0] if len(found) == 1 else found
    if op.is_expression:
        outputs = pending.apply(op, inputs, given, place)
        outputs = outputs or compute(op, inputs, given, place, drawn)
        context = None
    else:
        outputs, context = on_data.run(op, inputs, given, place, mode.training)
    if tapes:
        record(op, inputs, outputs, mode.training, context)
    if given is not None:
        return out
    visible = op.num_visible_outputs
    return outputs[0] if visible == 1 else outputs[:visible]


def _by_rule(
    op: Any,
    inputs: Sequence[Any],
    given: Outputs | None,
    ctx: Context | None,
    place: Context,
    drawn: Sequence[Position] | None,
) -> Outputs | None:
    """The visible outputs where the arrays are not of the usual class; None where they are."""
    for rule in storage_types.rules:
        found: Outputs | None = rule(op, inputs, given, ctx)
        if found is not None:
            return found
    way = ways.get(place.device_typeid)
    return None if way is None else way.apply(op, inputs, given, place, drawn)


Recorded.apply = staticmethod(apply)


def written_anew(given: Sequence[Any], write: Callable[[list[Any]], object]) -> None:
    """Have arrays written of which some are lost: those are others' values, where all goes well."""
    outputs = [Array._new(x._layout, x.context) if is_lost(x) else x for x in given]
    write(outputs)
    for x, made in zip(given, outputs, strict=True):
        if x is not made:
            place = made._tape or x._tape
            take_over(x, made)
            put(x, "_tape", place)


def _place(inputs: Sequence[Any], given: Outputs | None) -> Context:
    """The device an operator runs on where none is named: its first input's, or output's."""
    first = inputs or given
    return first[0].context if first else current_context()


def check_writes(op: Any, given: Sequence[Any], recorded: Sequence[Any]) -> None:
    """Refuse a wrong number of places to write to, and writing what gradients will read.

    `recorded` are the inputs, where the operator goes on the tape.
    """
    for x in given:
        if not isinstance(x, Array):
            raise TypeError(complaint(op.name, "out", "an NDArray", shown(x)))
        check_write(op.name, "out", x)
        if any(_share_memory(x, other) for other in recorded):
            expected = "while recording, memory that the operator does not read"
            raise GnomonError(complaint(op.name, "out", expected, "that of an input"))
    if len(given) != op.num_visible_outputs:
        expected = f"{op.num_visible_outputs} arrays"
        raise ShapeError(complaint(op.name, "out", expected, len(given)))


def check_write(where: str, argument: str, array: Any) -> None:
    """Refuse to write an array on the tape while recording: the gradient would be wrong."""
    if mode.recording and array._tape is not None:
        if source(array) is None:
            put(array, "_tape", None)
            return
        raise GnomonError(
            f"{where}: argument {argument!r}: an array on the tape cannot be written while "
            "recording (+=, -=, x[:]= and out= are such writes)"
        )


def _share_memory(a: Any, b: Any) -> bool:
    """Whether two arrays have elements in common."""
    if a.stype != "default" or b.stype != "default":
        return a is b
    (low, high), (first, last) = a._span(), b._span()
    return low < last and first < high


def compute(
    op: Any,
    inputs: Sequence[Any],
    given: Outputs | None,
    ctx: Context,
    drawn: Sequence[Position] | None = None,
) -> Outputs:
    """All outputs that there is memory for: the visible ones, and while recording the hidden."""
    recipe, sharing = recipe_of(op, inputs, given)
    layouts, changed = recipe.given
    outputs = [] if given is None else [*given]
    outputs += [Array._new(layout, ctx) for layout in layouts[len(outputs) :]]
    written = [inputs[k] for k in changed]
    launch(recipe, op.name, inputs, outputs, written, ctx, sharing.values, drawn)
    if op.guard is not None:
        guarded(op, [x.shape for x in inputs], inputs[1], outputs[0])
    return outputs


def guarded(op: Any, shapes: Sequence[Any], indices: Any, output: Any) -> None:
    """Have the wait for what is computed of an output raise where an index is out of bounds."""
    guard = op.guard(*shapes)
    if guard is not None:
        task = engine.Repeatable(lambda run_ctx: guard.refuse(indices._numpy()))
        reads = () if indices._var is output._var else (indices._var,)
        engine.get().push_inline(task, output.context, reads, (output._var,), name=op.name)


def recipe_of(
    op: Any, inputs: Sequence[Any], given: Outputs | None, there: Elsewhere | None = None
) -> tuple[Any, Sharing]:
    """What computes an operator on operands of these layouts in this mode, and where it is kept.

    It is a `Recipe`, or what is made `there`.
    """
    # a changed state, or a given output, may overlap other operands: that is part of the key
    key: Any = (mode.training, mode.recording, *[x._layout for x in inputs])
    anchors: Any = ()
    if given is not None or op.aux_names:
        operands = [*inputs, *(given or ())]
        anchors = anchors_of(operands, range(len(op.arguments()), len(operands)))
        key = (*key, anchors, *[x._layout for x in given or ()])
    if there is not None:
        key = there, key
    sharing = sharing_of(op)
    recipe = sharing.kind.recipes.get(key)
    if recipe is None:
        layouts = [x._layout for x in inputs]
        recipe, sharing = _new_recipe(op, sharing, layouts, given, anchors, there)
        RECIPES.put(sharing.kind.recipes, key, recipe)
    return recipe, sharing


def _new_recipe(
    op: Any,
    sharing: Sharing,
    inputs: Sequence[Layout],
    given: Outputs | None,
    anchors: Any,
    there: Elsewhere | None,
) -> tuple[Any, Sharing]:
    """A recipe for an operator, and where it belongs."""
    try:
        recipe = _forward(op, inputs, given, anchors, sharing.fields, there)
    except NotShared as found:
        sharing = keep_alone(op, isinstance(found, Alike))
        recipe = _forward(op, inputs, given, anchors, (), there)
    return recipe, sharing


def anchors_of(operands: Sequence[Any], written: range) -> tuple[tuple[int, int], ...]:
    """For each operand: the first one it hangs together with by what is written, and how far off.

    Two operands hang together where they overlap and one of them is written, or where both do so
    with a third: `x[1:] += x[:-1]` writes what it reads twice.
    """
    spans = [x._span() for x in operands]
    owner = list(range(len(operands)))
    for k in range(1, len(operands)):
        for j in range(k):
            apart = spans[k][1] <= spans[j][0] or spans[j][1] <= spans[k][0]
            if not apart and (k in written or j in written):
                first, second = sorted((owner[j], owner[k]))
                owner = [first if o == second else o for o in owner]
    return tuple((o, x._start - operands[o]._start) for o, x in zip(owner, operands, strict=True))


def _forward(
    op: Any,
    inputs: Sequence[Layout],
    given: Outputs | None,
    anchors: Sequence[tuple[int, int]],
    fields: Sequence[str],
    there: Elsewhere | None,
) -> Any:
    """The recipe of an operator's forward; it remembers the outputs' layouts and what changes."""
    if given is None and len(inputs) == 1 and there is None:
        found = recipe_of_one(op, inputs[0], lambda: work_of(op, inputs, None, anchors, ())[:2])
        if found is not None:
            return found
    work, remembered, changed = work_of(op, inputs, given, anchors, fields)
    if there is None:
        outline = None if given is not None else of_forward(op, mode.training, work)
        recipe = recipe_like(outline, work, remembered)
    else:
        recipe = there.recipe_for(work, remembered)
    remembered[1].extend(changed)  # by now
    return recipe


def work_of(
    op: Any,
    inputs: Sequence[Layout],
    given: Outputs | None,
    anchors: Sequence[tuple[int, int]],
    fields: Sequence[str],
) -> tuple[Work, tuple[list[Layout], list[int]], dict[int, None]]:
    """What an operator's forward does, the outputs' layouts with room for which inputs change.

    The last are these inputs, as soon as the work was expressed.
    """
    count = len(op.arguments())
    outs = infer(op, inputs, given)
    train, states = mode.training, inputs[count:]
    kept = len(outs) if mode.recording else op.num_visible_outputs
    layouts = [x._layout for x in given or ()] + [dense(*x) for x in outs[len(given or ()) :]]
    layouts = layouts[:kept]
    told = {"out_shapes": [shape for shape, _ in outs], "out_types": [dtype for _, dtype in outs]}
    changed: dict[int, None] = {}

    def express(op: Any, buffers: Sequence[Buffer], draws: Draws) -> list[Expr | None]:
        operands = buffers[: len(inputs)]
        values = op.apply(operands, train=train, random=draws, **told)
        new = op.updates(operands[:count], operands[count:], values, train) if states else {}
        changed.update(dict.fromkeys(count + k for k in sorted(new)))
        return [*values[:kept], *(new.get(k) for k in range(len(states)))]

    dests = [Dest(len(inputs) + k, "saveto") for k in range(kept)]
    dests += [Dest(count + k, "saveto") for k in range(len(states))]
    every = [*inputs, *layouts]
    anchors = [*anchors, *((k, 0) for k in range(len(anchors), len(every)))]
    probes = [partial(express, probe) for probe in probed(op, fields)] if fields else ()
    first = partial(express, op)
    work = Work(op.name, every, first, dests, anchors, op.takes_random, probes, len(fields))
    return work, (layouts, []), changed


def launch(
    recipe: Recipe,
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    changed: Sequence[Any],
    ctx: Context,
    numbers: Sequence[float] = (),
    drawn: Sequence[Position] | None = None,
) -> None:
    """Have the engine run a recipe on these operands; `changed` are inputs that are written.

    Random numbers are those at `drawn`, else the next ones.
    """
    read = [x._chunk for x in inputs]  # first: see `array.py`
    written = [x._chunk for x in (*outputs, *changed)]
    addresses = [x._address for x in (*inputs, *outputs)]
    states: Any = None
    if recipe.draws:
        if drawn is None:
            drawn = [generator(ctx).reserve(count) for count in recipe.draws]
        states = [at(position) for position in drawn]
        addresses += [state.address for state in states]
    if recipe.numbers:
        addresses += [word(numbers[n.place], n) for n in recipe.numbers]
    for chunk in written:
        if chunk.pending_readers:
            chunk.push_pending_readers()
    dispatch(recipe, name, addresses, read, written, ctx, (read, written, states))
