"""Operators on sparse arrays: by a rule of theirs, else on all elements, and on the tape.

`compute` stands in for `invoke` where an operand is sparse. Inputs that no rule takes are made
dense, and the results, where `out` is sparse, sparse again; that is told once for each operator, as
MXNet does. Gradients are those of the dense operator on all elements, but for products with a `csr`
matrix, whose gradient is row-sparse; each goes into its variable's gradient in the storage of that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import config
from gnomon.base import ParamError, ShapeError, complaint
from gnomon.graph.gradient import Flow
from gnomon.ground.record import put
from gnomon.ndarray.api.methods import copied
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import check_operands
from gnomon.ndarray.core.layout import dense as dense_layout
from gnomon.ndarray.core.mode import mode, recording
from gnomon.ndarray.core.tape import Call, Leaf, Node, placed, record, source
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.rows import store_rows
from gnomon.ndarray.sparse.arrays import (
    BaseSparseNDArray,
    RowSparseNDArray,
    cast_storage,
    make,
    wide,
)
from gnomon.ndarray.sparse.dense import apply_named, on_device, picked
from gnomon.ndarray.sparse.parts import Indices
from gnomon.ndarray.sparse.rules import (
    RULES,
    embedding_gradient,
    spread,
    stored,
)
from gnomon.ops import registry
from gnomon.ops.update import Update

Outputs = list[Any]
_told: set[tuple[str, ...]] = set()
_log = logging.getLogger("gnomon")


def compute(op: Any, inputs: Sequence[Any], given: Outputs | None, ctx: Any) -> Outputs | None:
    """The visible outputs where an operand is sparse; None where all of them are dense."""
    sparse = any(isinstance(x, BaseSparseNDArray) for x in inputs)
    if not sparse and not any(isinstance(x, BaseSparseNDArray) for x in given or ()):
        return None
    if op.name != "_copy":
        check_operands(op, inputs, given or ())
    if isinstance(op, Update) and sparse and _is_lazy(op, inputs):
        return [_update(op, inputs, given)]
    found = _by_rule(op, inputs) if sparse else None
    if found is None:
        outputs = _on_all(op, inputs, given, ctx)
    else:
        outputs = found if isinstance(found, list) else [found]
        if mode.recording and any(x._tape is not None for x in inputs):
            _enter(op, inputs, outputs)
    for x, value in zip(given or (), outputs, strict=False):
        if x is not value:
            _put(op, x, value)
    return outputs if given is None else given


def _by_rule(op: Any, inputs: Sequence[Any]) -> Any:
    """What the operator's rule gives, if it has one that takes the inputs."""
    rule = RULES.get(op.name)
    if rule is None:
        return None
    with recording(False):
        return rule(op, inputs)


def _on_all(op: Any, inputs: Sequence[Any], given: Outputs | None, ctx: Any) -> Outputs:
    """The operator on all elements; states that are sparse get their new elements back."""
    _tell(op, inputs)
    dense = [_twin(x) for x in inputs]
    out = None
    if given is not None and not any(isinstance(x, BaseSparseNDArray) for x in given):
        out = given
    elif given is not None and not inputs:  # where the result goes may say its shape and dtype
        out = [Array._new(dense_layout(x.shape, x._dtype), x.context) for x in given]
    found = invoke(op, dense, out, ctx)
    for x, twin in zip(inputs[len(op.arguments()) :], dense[len(op.arguments()) :], strict=True):
        if twin is not x:
            x._take(twin)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _twin(x: Any) -> Any:
    """All elements of an array, at its place on the tape."""
    dense = wide(x)
    if dense is not x:
        put(dense, "_tape", placed(x))
    return dense


def _put(op: Any, x: Any, value: Any) -> None:
    """Store a result where the caller wants it."""
    if x.shape != value.shape:
        raise ShapeError(complaint(op.name, "out", f"shape {value.shape}", x.shape))
    if isinstance(x, BaseSparseNDArray):
        x._take(value)
    else:
        x[:] = wide(value)
    put(x, "_tape", placed(value) if mode.recording else x._tape)


def _tell(op: Any, inputs: Sequence[Any]) -> None:
    """Say, once for each operator and storages, that all elements are computed with."""
    kinds_of = [stored(x) for x in inputs]
    key = (op.name, *kinds_of)
    if key in _told or set(kinds_of) <= {"default"} or not config.get("storage_fallback_log"):
        return
    _told.add(key)
    _log.warning(
        "Storage type fallback: operator %s has no form for inputs of storage %s; they are made "
        "dense for it. The result is right, but takes the memory of all elements. "
        "MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0 silences this.",
        op.name,
        ", ".join(kinds_of),
    )


# --- on the tape ------------------------------------------------------------------------------


def cast(data: Any, stype: str) -> Any:
    """An array in another storage, with its place on the tape.

    Raises:
        ParamError: there is no such storage, or no way from one sparse storage to the other.
        ShapeError: a `csr` array of other than two axes.
    """
    op = registry.find("cast_storage").parse({"stype": stype})
    with recording(False):
        found = cast_storage(data, stype)
    if mode.recording and data._tape is not None:
        record(op, [data], [found], mode.training)
    return found


def _enter(op: Any, inputs: Sequence[Any], outputs: Outputs) -> None:
    """Record what a rule computed."""
    first = inputs[0]
    is_product = op.name == "dot" and not op.transpose_b
    if is_product and stored(first) == "csr" and first._tape is None:
        _enter_product(op, *inputs, *outputs)
    else:
        record(op, inputs, outputs, mode.training)


def _enter_product(op: Any, matrix: Any, weight: Any, output: Any) -> None:
    """Record a product with a `csr` matrix: the weight's gradient has only rows that it reads."""
    place, kept = source(weight), matrix._detached()
    if place is None:
        return
    stype = place.grad.stype if isinstance(place, Leaf) else "default"
    turned = {"transpose_a": not op.transpose_a, "forward_stype": stype}

    def gradient(grad: Any) -> list[Any]:
        return [None, apply_named("dot", kept, grad, **turned)]

    outputs = [(output._layout, output.context)]
    node = Node(Call(gradient), [None, place], Flow((False, True)), (), outputs)
    put(output, "_tape", node.place(0))


def row_gradient(parts: Sequence[Sequence[Any]], rows: int) -> list[Any]:
    """The gradients of a look-up: none of the indices, and the rows that were looked up."""
    (grad,), (data, *_), _ = parts
    return [None, embedding_gradient(data, grad, rows)]


# --- lazy updates -----------------------------------------------------------------------------


def _is_lazy(op: Any, inputs: Sequence[Any]) -> bool:
    """Whether an update leaves rows without gradient alone: weight and states alike in storage."""
    weight, grad, *states = inputs
    rows = stored(weight) == "row_sparse"
    always = op.name == "_sparse_adagrad_update" or (op.name == "ftrl_update" and rows)
    wanted = op.lazy_update if "lazy_update" in op.fields else always
    alike = all(stored(x) == stored(weight) for x in states)
    return bool(wanted) and stored(grad) == "row_sparse" and alike and stored(weight) != "csr"


def _update(op: Any, inputs: Sequence[Any], given: Outputs | None) -> Any:
    """The new weight: its rows that have a gradient, updated."""
    weight, grad, *states = inputs
    if grad is weight:  # as in MXNet
        expected = "another array than the weight"
        raise ParamError(complaint(op.name, "grad", expected, "the weight itself"))
    target = weight
    if given is None or given[0] is not weight:
        target = copied(weight, *(given or ()))
    update_rows(target, grad, states, lambda w, g, s: invoke(op, (w, g, *s), w))
    return target


def update_rows(weight: Any, grad: Any, states: Sequence[Any], update: Any) -> None:
    """Have `update` change the rows of a weight and its states that a gradient has.

    `update(weight, gradient, states)` writes into the weight's and the states' rows that it gets.
    """
    rows, values = _each_once(grad)
    if not len(rows):
        return
    whole = [_all_rows(x) for x in (weight, *states)]
    parts = [picked(x, rows) for x in whole]
    update(parts[0], values, parts[1:])
    store_rows(whole, on_device(rows, weight), parts)


def _each_once(grad: Any) -> tuple[Indices, Any]:
    """The numbers of the rows that a gradient has, and their values; those of one row add up."""
    rows, values = grad._index(), grad._parts.data
    if (rows[1:] > rows[:-1]).all():
        return rows, values
    kept, place = np.unique(rows, return_inverse=True)
    return (rows, values) if len(kept) == len(rows) else (kept, spread(place, values, len(kept)))


def _all_rows(x: Any) -> Any:
    """The memory of all rows of an array; a row-sparse one keeps every row from now on."""
    if stored(x) == "default":
        return x
    every = np.arange(x.shape[0])
    if not np.array_equal(x._index(), every):
        x._take(make(RowSparseNDArray, x.shape, wide(x), (every,)))
    return x._parts.data


storage_types.ready = compute
storage_types.cast = cast
storage_types.row_gradient = row_gradient
