"""What follows from an operator's `forward`: gradient, what the gradient reads, in-place pairs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.base import DTypeError, GnomonError, ShapeError, complaint
from gnomon.dtype import DType, float32, float64
from gnomon.expr.diff import vjp
from gnomon.expr.ext.transpose import Transpose, transpose
from gnomon.expr.node import Buffer, Cast, Expr, Map, cast
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import fits_any, postorder, shown
from gnomon.ground.record import record
from gnomon.ops.infer import zero_is_unknown

if TYPE_CHECKING:
    from gnomon.ops.op import Op

Shapes = tuple[tuple[int, ...], ...]
Maybe = Sequence[Expr | None]
MaybeShapes = tuple[tuple[int, ...] | None, ...]
MaybeTypes = tuple[DType | None, ...]
DTypes = tuple[DType, ...]


@record()
class Needs:
    """What a gradient reads, each by index; what is not named may be freed early."""

    out_grads: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def everything(op: Op) -> Needs:
    """What a gradient may read of which nothing is known."""
    counts = op.num_visible_outputs, len(op.inputs()), len(op.outputs())
    return Needs(*(tuple(range(n)) for n in counts))


def gradient(
    op: Op, out_grads: Maybe, inputs: Sequence[Expr], outputs: Maybe, context: Mapping[str, Any]
) -> tuple[Expr | None, ...]:
    """The gradient of each argument by differentiating `op.forward`.

    Where the gradient contains an output's own expression, the stored output stands for it. That
    of an operator on integers is its formula's in floats, without the fraction.
    """
    if any(g is not None and g.dtype.kind in "iu" for g in out_grads):
        parts = [[_real(x) for x in part] for part in (out_grads, inputs, outputs)]
        exact = _derived(op.of_reals(), parts[0], parts[1], parts[2], context)
        typed = zip(exact, inputs, strict=False)
        return tuple(None if g is None else cast(g, x.dtype) for g, x in typed)
    return _derived(op, out_grads, inputs, outputs, context)


def _real(x: Expr | None) -> Any:
    """Integers as floats."""
    return cast(x, float64) if x is not None and x.dtype.kind in "iu" else x


def _derived(
    op: Op, out_grads: Maybe, inputs: Sequence[Expr], outputs: Maybe, context: Mapping[str, Any]
) -> tuple[Expr | None, ...]:
    """As `gradient`; what is known for data of these layouts is taken over to those given."""
    parts = [*out_grads, *inputs, *outputs]
    asks = getattr(type(op).forward, "asked", None)
    if asks is None or not _FOLLOWS.issuperset(asks) or not all(map(_is_plain, parts)):
        return _by_rule(op, out_grads, inputs, outputs, context)
    told = tuple([(k, _frozen(context[k])) for k in asks if k in context])
    counts = len(out_grads), len(inputs)
    key = op, counts, told, *map(_spec, parts)
    leaves = [x for x in parts if x is not None]
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= KEPT:
            _KNOWN.clear()
        stand_ins = leaves if _lie_nowhere(leaves) else [Buffer(*_spec(x)) for x in leaves]
        known = _KNOWN[key] = _on_stand_ins(op, stand_ins, parts, counts, dict(told))
    grads, stand_ins = known
    if stand_ins is leaves:
        return grads
    given: dict[Expr, Expr] = dict(zip(stand_ins, leaves, strict=True))
    found = iter(substitute([g for g in grads if g is not None], given))
    return tuple(None if g is None else next(found) for g in grads)


KEPT = 256
#: gradients for data of some layouts, and the data without memory that they read, in order
_KNOWN: dict[Any, tuple[tuple[Expr | None, ...], list[Any]]] = {}


def _lie_nowhere(leaves: Sequence[Any]) -> bool:
    """Whether leaves are as good as stand-ins: without memory, and each of them one argument."""
    return not any(x.address for x in leaves) and len(set(leaves)) == len(leaves)


def _on_stand_ins(
    op: Op,
    stand_ins: list[Any],
    parts: Sequence[Any],
    counts: tuple[int, int],
    context: Mapping[str, Any],
) -> tuple[tuple[Expr | None, ...], list[Any]]:
    """The gradients, with `stand_ins` for all that there is of the `parts` of a derivative.

    These are gradients of outputs, then inputs, so many of both, then outputs.
    """
    rest = iter(stand_ins)
    ours = [None if x is None else next(rest) for x in parts]
    first, end = counts[0], sum(counts)
    inputs = [x for x in ours[first:end] if x is not None]
    return _over(op, inputs, ours[:first], inputs, ours[end:], context), stand_ins


_FOLLOWS = frozenset(("train", "out_shapes"))  # context that says all there is to a derivative


def _is_plain(x: Expr | None) -> bool:
    return x is None or type(x) is Buffer


def _spec(x: Any) -> Any:
    return None if x is None else (x.shape, x.dtype, x.strides)


def _frozen(x: Any) -> Any:
    return tuple(map(_frozen, x)) if isinstance(x, (list, tuple)) else x


def _by_rule(
    op: Op, out_grads: Maybe, inputs: Sequence[Expr], outputs: Maybe, context: Mapping[str, Any]
) -> tuple[Expr | None, ...]:
    # stand-ins: one buffer may be two arguments, and each needs its own share
    stand_ins = [Buffer(x.shape, x.dtype) for x in inputs]
    return _over(op, stand_ins, out_grads, inputs, outputs, context)


def _over(
    op: Op,
    stand_ins: Sequence[Buffer],
    out_grads: Sequence[Expr | None],
    inputs: Sequence[Expr],
    outputs: Sequence[Expr | None],
    context: Mapping[str, Any],
) -> tuple[Expr | None, ...]:
    """The gradients by way of `stand_ins`, each of which is one input alone."""
    values = op.apply(stand_ins, **context)
    shapes = [None if g is None else g.shape for g in out_grads]
    check_values(op.name, op.outputs(), values, shapes, ())
    told = [(v, g) for v, g in zip(values, out_grads, strict=False) if g is not None]
    arguments = stand_ins[: len(op.arguments())]
    grads = vjp([v for v, _ in told], [g for _, g in told], arguments)
    stored = {v: o for v, o in zip(values, outputs, strict=False) if o is not None}
    stored |= {v.src: transpose(o, v.inverse) for v, o in stored.items() if type(v) is Transpose}
    replace: dict[Expr, Expr] = {**stored, **dict(zip(stand_ins, inputs, strict=True))}
    found = iter(substitute([g for g in grads if g is not None], replace))
    return tuple(None if g is None else next(found) for g in grads)


@functools.lru_cache(maxsize=4096)
def needs(op: Op, in_shapes: Shapes, in_types: DTypes) -> Needs:
    """What the gradient of `op` on arguments of these shapes and dtypes reads."""
    inputs, outputs = leaves_of(op, in_shapes, in_types)
    out_grads = [Buffer(o.shape, o.dtype) for o in outputs[: op.num_visible_outputs]]
    grads = op.backward(out_grads, inputs, outputs, train=True)
    read = {id(n) for n in postorder([g for g in grads if g is not None])}
    return Needs(among(read, out_grads), among(read, inputs), among(read, outputs))


def among(read: set[int], leaves: Iterable[Expr]) -> tuple[int, ...]:
    """The numbers of the leaves whose ids are among those that are read."""
    return tuple(k for k, leaf in enumerate(leaves) if id(leaf) in read)


def told(op: Op, error: Exception, inputs: Sequence[Expr | None], context: Any) -> str:
    """The message about an error of `forward`; where floats would do, it names the input."""
    message = f"{op.name}.forward: {error}"
    pairs = zip(op.inputs(), inputs, strict=False)
    whole = [(name, x.dtype) for name, x in pairs if x is not None and x.dtype.kind != "f"]
    if not whole or not isinstance(error, DTypeError):
        return message
    try:
        op.forward(*[None if x is None else cast(x, float32) for x in inputs], **context)
    except GnomonError:
        return message
    name, found = whole[0]
    return complaint(op.name, name, "floating-point numbers", f"{found.name} ({message})")


def check_values(
    where: str,
    names: Sequence[str],
    values: Sequence[Any],
    shapes: Sequence[tuple[int, ...] | None],
    types: Sequence[DType | None],
) -> None:
    """Raises where a value, None apart, is not of the shape and dtype that its rules say.

    Raises:
        ShapeError, DTypeError: names the value.
    """
    for name, value, shape in zip(names, values, shapes, strict=False):
        if shape is None or value is None or value.shape == tuple(shape) or fits_any(value):
            continue
        expected = f"shape {tuple(shape)}, as shapes() says"
        raise ShapeError(complaint(where, name, expected, shown(value)))
    for name, value, dtype in zip(names, values, types, strict=False):
        if dtype is None or value is None or value.dtype is dtype:
            continue
        expected = f"dtype {dtype.name}, as types() says"
        raise DTypeError(complaint(where, name, expected, shown(value)))


def leaves_of(op: Op, in_shapes: Shapes, in_types: DTypes) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers without memory for the inputs (arguments, then states) and for the outputs."""
    args, outs, states = shapes_of(op, tuple(in_shapes), (None,) * len(op.outputs()))
    arg_types, out_types, state_types = types_of(op, tuple(in_types), ())
    inputs = map(_leaf, [*args, *states], [*arg_types, *state_types])
    return list(inputs), list(map(_leaf, outs, out_types))


def shapes_of(op: Op, ins: MaybeShapes, outs: MaybeShapes) -> tuple[list[Any], ...]:
    """`op.infer_shape`, which graphs, calls and gradients ask the same; 0 is a size."""
    if op.is_expression:  # of others a name may stand for another rule by now
        return _shapes_of(op, ins, outs, zero_is_unknown())
    return op.infer_shape(ins, outs, zero_unknown=False)


@functools.lru_cache(maxsize=4096)
def _shapes_of(op: Op, ins: MaybeShapes, outs: MaybeShapes, as_set: bool) -> tuple[list[Any], ...]:
    return op.infer_shape(ins, outs, zero_unknown=False)


def types_of(op: Op, ins: MaybeTypes, outs: MaybeTypes) -> tuple[list[Any], ...]:
    """`op.infer_type`, as `shapes_of`."""
    return _types_of(op, ins, outs) if op.is_expression else op.infer_type(ins, outs)


@functools.lru_cache(maxsize=1024)
def _types_of(op: Op, ins: MaybeTypes, outs: MaybeTypes) -> tuple[list[Any], ...]:
    return op.infer_type(ins, outs)


def _leaf(shape: tuple[int, ...] | None, dtype: DType | None) -> Buffer:
    assert shape is not None and dtype is not None, "inference of complete inputs is complete"
    return Buffer(shape, dtype)


@functools.lru_cache(maxsize=4096)
def inplace(op: Op, in_shapes: Shapes, in_types: DTypes) -> tuple[tuple[int, int], ...]:
    """Pairs (input, output): only that output reads the input, and only at its own index.

    States are in none: they are read and written after the outputs.
    """
    inputs, _ = leaves_of(op, in_shapes, in_types)
    values = op.apply(inputs, train=True, random=StandInRandom())
    readers = [{id(n) for n in postorder([v])} for v in values]
    pairs = []
    for k, value in enumerate(values):
        elsewhere = _read_elsewhere(value)
        for j, x in enumerate(inputs[: len(op.arguments())]):
            alone = [r for r in range(len(values)) if id(x) in readers[r]] == [k]
            fits = x.shape == value.shape and x.dtype.size == value.dtype.size
            if alone and fits and id(x) not in elsewhere:
                pairs.append((j, k))
    return tuple(pairs)


def _read_elsewhere(value: Expr) -> set[int]:
    """Ids of the nodes that `value` reads by way of anything but a map."""
    moved = [c for n in postorder([value]) if not isinstance(n, (Map, Cast)) for c in n.children]
    return {id(n) for n in postorder(moved)}


class StandInRandom:
    """Draws of the right shape without values, for looking at an expression's structure."""

    def uniform(self, shape: tuple[int, ...], dtype: DType) -> Expr:
        """A leaf in place of a draw."""
        return Buffer(shape, dtype)

    normal = uniform
