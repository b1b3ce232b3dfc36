"""What operators give for sparse arrays, in sparse storage where MXNet does: one rule each.

A rule takes the operator and its inputs, of which one at least is sparse, and gives the result, or
None where all elements have to be computed with. Values are computed by operators on the dense
arrays that sparse ones are made of; where they belong is found out by NumPy at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon.base import Later
from gnomon.expr.functions.primitive import convert
from gnomon.graph.storage import GRAPHS, ZERO_SOMETIMES, ZERO_TO_ZERO
from gnomon.ground.tables import entering
from gnomon.ndarray.api.methods import cast, copied
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.sparse.arrays import (
    CSRNDArray,
    RowSparseNDArray,
    around,
    cast_storage,
    like,
    make,
    matrix_at,
    wide,
)
from gnomon.ndarray.sparse.dense import apply_named, are_some, on_device, picked, put_rows
from gnomon.ndarray.sparse.parts import Indices
from gnomon.ops.host import generator
from gnomon.resource import generator as random_numbers

if TYPE_CHECKING:
    from gnomon.ops import graph_sampling
else:
    graph_sampling = Later("gnomon.ops.graph_sampling")

Rule = Callable[[Any, Sequence[Any]], Any]

RULES: dict[str, Rule] = {}
rule = entering(RULES)  # of the operators that it names


def stored(x: Any) -> str:
    """The storage of an operand."""
    return str(x.stype)


# --- one operand ------------------------------------------------------------------------------


@rule(*ZERO_TO_ZERO)
def mapped(op: Any, inputs: Sequence[Any]) -> Any:
    """What is not kept stays 0, so only what is kept is computed with."""
    (x,) = inputs
    return like(x, invoke(op, (x._parts.data,)))


@rule("cast_storage")
def recast(op: Any, inputs: Sequence[Any]) -> Any:
    """In another storage."""
    return cast_storage(inputs[0], op.stype)


@rule(*ZERO_SOMETIMES)
def mapped_by_number(op: Any, inputs: Sequence[Any]) -> Any:
    """Stays sparse where the parameters leave 0 at 0."""
    return mapped(op, inputs) if ZERO_SOMETIMES[op.name](op) else None


@rule("zeros_like")
def nothing(op: Any, inputs: Sequence[Any]) -> Any:
    """Nothing is kept."""
    (x,) = inputs
    return storage_types.made(x.kind, x.shape, x._dtype, x.context)


@rule("sum", "mean")
def summed(op: Any, inputs: Sequence[Any]) -> Any:
    """Sums over rows, columns or all of a matrix, of what is kept."""
    (x,) = inputs
    axes = op.axes(x.ndim)
    data = x._parts.data
    if axes == tuple(range(x.ndim)):
        total = apply_named("sum", data) if data.size else wide(x).sum()
    elif stored(x) == "csr" and len(axes) == 1:
        index = x._index() if axes == (0,) else x._rows()
        total = put_rows(on_device(index, x), data, x.shape[1 - axes[0]])
    else:
        return None
    if op.name == "mean":
        total = total / int(np.prod([x.shape[a] for a in axes]))
    return total.reshape(op.infer_shape([x.shape], zero_unknown=False)[1][0])


@rule("_contrib_getnnz")
def counted(op: Any, inputs: Sequence[Any]) -> Any:
    """How many elements are stored, whatever they are."""
    (x,) = inputs
    if stored(x) != "csr":
        return None
    index = x._rows() if op.axis else x._index()
    found = (
        np.bincount(index, minlength=x.shape[1 - op.axis]) if op.axis is not None else len(index)
    )
    return on_device(np.atleast_1d(found).astype(np.int64), x)


@rule("_contrib_edge_id")
def edges(op: Any, inputs: Sequence[Any]) -> Any:
    """What is stored at places, whatever it is; -1 where nothing is."""
    x, *ends = inputs
    if stored(x) != "csr" or any(stored(e) != "default" for e in ends):
        return None
    u, v = (
        op.vertices(n, e.asnumpy(), x, k) for k, (n, e) in enumerate(zip("uv", ends, strict=True))
    )
    places = x._rows().astype(np.int64) * x.shape[1] + x._index()
    order = np.argsort(places, kind="stable")
    wanted = u * x.shape[1] + v
    at = np.searchsorted(places, wanted, sorter=order)
    at = np.concatenate([order, [-1]])[np.minimum(at, len(order))]
    values = x._parts.data.asnumpy()
    values = np.append(values, values.dtype.type(-1))
    there = np.append(places, -1)[at] == wanted
    return on_device(np.where(there, values[at], -1).astype(values.dtype), x)


@rule(*GRAPHS)
def sampled(op: Any, inputs: Sequence[Any]) -> Any:
    """Parts of graphs, in the storage of the graphs."""
    count = op.graphs()
    if any((stored(x) == "csr") != (k < count) for k, x in enumerate(inputs)):
        return None
    _check(op, inputs)
    place = inputs[0].context
    graphs = [
        graph_sampling.Csr(x._parts.data.asnumpy(), x._index(), x._index(1), x.shape)
        for x in inputs[:count]
    ]
    context = {"random": generator(random_numbers(place))} if op.is_random else {}
    found = op.parts(*graphs, *(x.asnumpy() for x in inputs[count:]), **context)
    types = op.infer_type([x._dtype for x in inputs])[1]
    arrays = []
    for x, dtype in zip(found, types, strict=True):
        values = x.values if isinstance(x, graph_sampling.Csr) else x
        data = Array._around(np.ascontiguousarray(values, dtype.numpy), place)
        csr = (x.columns, x.starts) if isinstance(x, graph_sampling.Csr) else None
        arrays.append(data if csr is None else make(CSRNDArray, x.shape, data, csr))
    return arrays if len(arrays) > 1 else arrays[0]


def _check(op: Any, inputs: Sequence[Any]) -> None:
    """Raises ShapeError, DTypeError where the operator does not take such inputs."""
    op.infer_shape([x.shape for x in inputs], zero_unknown=False)
    op.infer_type([x._dtype for x in inputs])


@rule("norm")
def normed(op: Any, inputs: Sequence[Any]) -> Any:
    """The norm of all elements is that of what is kept."""
    (x,) = inputs
    data = x._parts.data
    whole = op.axis is None and not op.keepdims and data.size
    return invoke(op, (data,)) if whole else None


@rule("_square_sum")
def square_summed(op: Any, inputs: Sequence[Any]) -> Any:
    """Over the columns of rows that are kept; what keeps the axis keeps the storage."""
    (x,) = inputs
    if stored(x) != "row_sparse" or op.axes(x.ndim) != (1,) or x.ndim != 2:
        return None
    sums = apply_named("_square_sum", x._parts.data, axis=(1,), keepdims=True)
    rows = around(RowSparseNDArray, (x.shape[0], 1), sums._dtype, x._parts.over(sums))
    return rows if op.keepdims else wide(rows).reshape((x.shape[0],))


@rule("slice")
def sliced(op: Any, inputs: Sequence[Any]) -> Any:
    """Rows and columns of a matrix, each without gaps."""
    (x,) = inputs
    if stored(x) != "csr" or any(step not in (None, 1) for step in op.step or ()):
        return None
    parts = [slice(b, e) for b, e in zip(op.begin, op.end, strict=True)]
    bounds = [part.indices(n)[:2] for part, n in zip(parts, x.shape, strict=False)]
    (top, bottom), (left, right) = [*bounds, (0, x.shape[1])][:2]
    starts = x._index(1)
    first, last = starts[top], starts[bottom]
    data, columns = x._parts.data[int(first) : int(last)], x._index()[first:last]
    starts = starts[top : bottom + 1] - first
    if (left, right) != (0, x.shape[1]):
        within = (columns >= left) & (columns < right)
        columns = columns[within] - left
        starts = np.concatenate([[0], np.cumsum(within)])[starts]
        data = picked(data, np.flatnonzero(within))
    return make(CSRNDArray, (bottom - top, right - left), data.copy(), (columns, starts))


@rule("take")
def taken(op: Any, inputs: Sequence[Any]) -> Any:
    """Rows by their numbers: of a matrix in its storage, of `row_sparse` as a dense array."""
    x, numbers = inputs
    if stored(numbers) != "default" or op.axis != 0 or not (numbers.size and x.size):
        return None
    if stored(x) == "row_sparse":
        return None if op.mode == "raise" else looked_up(x, numbers, op.mode)
    if numbers.ndim != 1:
        return None
    rows = row_numbers(numbers, x.shape[0], op.mode)
    starts = x._index(1)
    counts = starts[rows + 1] - starts[rows]
    ends = np.concatenate([[0], np.cumsum(counts)])
    which = np.arange(ends[-1]) + np.repeat(starts[rows] - ends[:-1], counts)
    data = picked(x._parts.data, which)
    return make(CSRNDArray, (len(rows), x.shape[1]), data, (x._index()[which], ends))


@rule("Embedding", "_contrib_SparseEmbedding")
def embedded(op: Any, inputs: Sequence[Any]) -> Any:
    """Rows of a `row_sparse` weight, of which no others are made."""
    numbers, weight = inputs
    if (stored(numbers), stored(weight)) != ("default", "row_sparse") or not numbers.size:
        return None
    _check(op, inputs)
    return looked_up(weight, numbers)


def looked_up(x: Any, numbers: Any, mode: str = "clip") -> Any:
    """A dense array of the rows with these numbers, of which there are some."""
    rows = row_numbers(numbers, x.shape[0], mode)
    return rows_of(x, rows.ravel()).reshape((*numbers.shape, *x.shape[1:]))


def row_numbers(numbers: Any, count: int, mode: str = "clip") -> Indices:
    """Numbers as those of rows below `count`: outside ones clipped or wrapped."""
    rows: Indices = convert(numbers.asnumpy(), np.dtype(np.int64))
    return rows % count if mode == "wrap" else rows.clip(0, count - 1)


@rule("_sparse_retain")
def retained(op: Any, inputs: Sequence[Any]) -> Any:
    """The rows that are asked for, zeros where one is not kept."""
    x, numbers = inputs
    if stored(x) != "row_sparse":
        return None
    rows = numbers.asnumpy().astype(np.int64)
    data = rows_of(x, rows)
    return make(RowSparseNDArray, x.shape, data, (rows,))


def rows_of(x: Any, rows: Indices) -> Any:
    """The rows with these numbers, of a row-sparse or a dense array."""
    if stored(x) == "default":
        return picked(x, rows)
    have = x._index()
    order = np.argsort(have, kind="stable")
    place = np.searchsorted(have, rows, sorter=order).clip(0, max(len(have) - 1, 0))
    found = have[order[place]] == rows if len(have) else np.zeros(len(rows), bool)
    data = picked(x._parts.data, order[place[found]] if len(have) else place[found])
    if found.all():
        return data
    return spread(np.flatnonzero(found), data, len(rows))


def spread(index: Indices, data: Any, rows: int) -> Any:
    """`put_rows` with places that NumPy found, of which there may be none."""
    if not data.size:
        shape = (rows, *data.shape[1:])
        return wide(storage_types.made("row_sparse", shape, data._dtype, data.context))
    return put_rows(on_device(index, data), data, rows)


# --- several operands -------------------------------------------------------------------------


@rule("elemwise_add", "elemwise_sub", "elemwise_mul", "_grad_add")
def combined(op: Any, inputs: Sequence[Any]) -> Any:
    """Sparse where both are of the same storage, or a product is."""
    lhs, rhs = inputs
    if lhs.shape != rhs.shape or lhs._dtype is not rhs._dtype:  # one of the two refuses them
        op.infer_shape([lhs.shape, rhs.shape], zero_unknown=False)
        op.infer_type([lhs._dtype, rhs._dtype])
    kinds_of = stored(lhs), stored(rhs)
    if kinds_of == ("row_sparse", "row_sparse"):
        return _rows_combined(op, lhs, rhs)
    if kinds_of == ("csr", "csr"):
        return _values_combined(op, lhs, rhs)
    if op.name == "elemwise_mul" and "default" in kinds_of:
        return _times_dense(*((lhs, rhs) if kinds_of[1] == "default" else (rhs, lhs)))
    return invoke(op, (wide(lhs), wide(rhs)))


def united(left: Indices, right: Indices) -> tuple[Indices, Indices, Indices]:
    """The numbers that either has, each once and in order, and where those of both are among them.

    Both are mostly in order already, so that a sort takes less than searches.
    """
    both = np.concatenate([left, right])
    order = np.argsort(both, kind="stable")
    both = both[order]
    first = np.ones(len(both), bool)
    first[1:] = both[1:] != both[:-1]
    place = np.empty(len(both), np.int64)
    place[order] = np.cumsum(first) - 1
    return both[first], place[: len(left)], place[len(left) :]


def _rows_combined(op: Any, lhs: Any, rhs: Any) -> Any:
    """The rows that either keeps."""
    left, right = lhs._index(), rhs._index()
    if np.array_equal(left, right):
        return like(lhs, invoke(op, (lhs._parts.data, rhs._parts.data)))
    rows, *where = united(left, right)
    pairs = zip(where, (lhs, rhs), strict=True)
    a, b = (spread(index, x._parts.data, len(rows)) for index, x in pairs)
    return make(RowSparseNDArray, lhs.shape, invoke(op, (a, b)), (rows,))


def _values_combined(op: Any, lhs: Any, rhs: Any) -> Any:
    """The values that either keeps; what becomes 0 is not kept."""
    left, right = lhs._places(), rhs._places()
    if np.array_equal(left, right) and (left[1:] > left[:-1]).all():
        places, a, b = left, lhs._parts.data, rhs._parts.data
    else:
        places, *where = united(left, right)
        pairs = zip(where, (lhs, rhs), strict=True)
        a, b = (spread(index, x._parts.data, len(places)) for index, x in pairs)
    values = invoke(op, (a, b)) if len(places) else a
    kept = are_some(values)
    if not kept.all():
        places, values = places[kept], picked(values, np.flatnonzero(kept))
    return matrix_at(lhs.shape, places, values)


def _times_dense(x: Any, other: Any) -> Any:
    """What is kept, times what stands there in a dense array."""
    data = x._parts.data
    if not data.size:
        return like(x, data)
    if stored(x) == "row_sparse":
        return like(x, data * apply_named("take", other, x._parts.aux[0]))
    return like(x, data * _stretched(x, other))


def _stretched(x: Any, other: Any) -> Any:
    """The elements of a dense array, stretched to the shape of a matrix, where it keeps values."""
    rows, columns = (1,) * (2 - other.ndim) + other.shape
    row = x._rows() if rows > 1 else 0
    column = x._index() if columns > 1 else 0
    places = np.broadcast_to(row * columns + column, x._parts.data.shape)
    return apply_named("take", other.reshape((-1,)), on_device(places, other))


@rule("broadcast_mul", "broadcast_div")
def stretched(op: Any, inputs: Sequence[Any]) -> Any:
    """A matrix with a dense array on the right that stretches to its shape."""
    x, other = inputs
    shape = tuple(op.infer_shape([x.shape, other.shape], zero_unknown=False)[1][0])
    op.infer_type([x._dtype, other._dtype])
    if (stored(x), stored(other)) != ("csr", "default") or shape != x.shape or other.ndim > 2:
        return None
    data = x._parts.data
    name = "elemwise_mul" if op.name == "broadcast_mul" else "elemwise_div"
    return like(x, apply_named(name, data, _stretched(x, other))) if data.size else like(x, data)


@rule("_scatter_elemwise_div")
def divided(op: Any, inputs: Sequence[Any]) -> Any:
    """The rows that the left one keeps."""
    x, other = inputs
    if (stored(x), stored(other)) != ("row_sparse", "default"):
        return None
    data = x._parts.data
    return (
        like(x, data / apply_named("take", other, x._parts.aux[0])) if data.size else like(x, data)
    )


@rule("add_n")
def added(op: Any, inputs: Sequence[Any]) -> Any:
    """Row-sparse where all are."""
    if any(stored(x) != "row_sparse" for x in inputs):
        return invoke(op, [wide(x) for x in inputs])
    total = inputs[0]
    for x in inputs[1:]:
        total = apply_named("elemwise_add", total, x)
    return total if len(inputs) > 1 else like(total, copied(total._parts.data))


@rule("Concat")
def joined(op: Any, inputs: Sequence[Any]) -> Any:
    """Matrices one below the other."""
    if op.dim != 0 or any(stored(x) != "csr" for x in inputs):
        return None
    op.infer_shape([x.shape for x in inputs], zero_unknown=False)
    op.infer_type([x._dtype for x in inputs])
    counts = np.cumsum([0, *(len(x._index()) for x in inputs)])
    starts = [x._index(1)[1:] + count for x, count in zip(inputs, counts[:-1], strict=True)]
    columns = np.concatenate([x._index() for x in inputs])
    shape = (sum(x.shape[0] for x in inputs), inputs[0].shape[1])
    data = apply_named("Concat", *(x._parts.data for x in inputs), dim=0, num_args=len(inputs))
    return make(CSRNDArray, shape, data, (columns, np.concatenate([[0], *starts])))


@rule("where")
def chosen(op: Any, inputs: Sequence[Any]) -> Any:
    """All elements are chosen among."""
    return invoke(op, [wide(x) for x in inputs])


# --- products ---------------------------------------------------------------------------------


@rule("dot")
def product(op: Any, inputs: Sequence[Any]) -> Any:
    """Matrix products with a `csr` matrix on one side; the storage is MXNet's, or as asked for."""
    lhs, rhs = inputs
    shape = tuple(op.infer_shape([lhs.shape, rhs.shape], zero_unknown=False)[1][0])
    op.infer_type([lhs._dtype, rhs._dtype])
    if lhs.ndim != 2 or rhs.ndim != 2:
        return None
    if stored(lhs) == "csr" and stored(rhs) != "csr":
        right = wide(rhs).T if op.transpose_b else wide(rhs)
        usual = "row_sparse" if op.transpose_a and not op.transpose_b else "default"
        found = _by_matrix(lhs, op.transpose_a, right, op.forward_stype or usual)
    elif stored(rhs) == "csr" and stored(lhs) == "default":
        left = lhs if op.transpose_a else lhs.T
        usual = "default" if op.transpose_a else "csr"
        found = _by_matrix(rhs, not op.transpose_b, left, "default").T
        found = as_storage(found, op.forward_stype or usual)
    else:
        found = as_storage(invoke(op, (wide(lhs), wide(rhs))), op.forward_stype or "default")
    assert found.shape == shape
    return found


def as_storage(x: Any, stype: str) -> Any:
    """`x`, cast where it has another storage."""
    return x if stored(x) == stype else cast_storage(wide(x), stype)


def _by_matrix(x: Any, transposed: bool, matrix: Any, stype: str) -> Any:
    """A `csr` matrix, maybe transposed, times a dense one."""
    rows, data = x.shape[1 if transposed else 0], x._parts.data
    shape = (rows, matrix.shape[1])
    if not data.size or not matrix.size:
        empty = storage_types.made("row_sparse", shape, data._dtype, x.context)
        return as_storage(empty, stype) if stype != "csr" else cast_storage(wide(empty), stype)
    source, target = x._index(), x._rows()
    if transposed:
        source, target = target, source
    if stype != "row_sparse":
        return as_storage(_sums(data, source, target, matrix, rows), stype)
    kept, place = np.unique(target, return_inverse=True)
    sums = _sums(data, source, place, matrix, len(kept))
    return make(RowSparseNDArray, shape, sums, (kept,))


def _sums(data: Any, source: Indices, target: Indices, matrix: Any, rows: int) -> Any:
    """Each value times a row of a matrix, added to a row of the result."""
    at = (on_device(index, data) for index in (source, target))
    return apply_named("_csr_dot", data, *at, matrix, rows=rows)


def embedding_gradient(data: Any, grad: Any, rows: int) -> Any:
    """The gradient of looked-up rows: the rows that were looked up, and no others."""
    index = cast(data, "int64").asnumpy().ravel().clip(0, rows - 1)
    kept, place = np.unique(index, return_inverse=True)
    flat = grad.reshape((-1, grad.shape[-1]))
    sums = spread(place.ravel(), flat, len(kept))
    return make(RowSparseNDArray, (rows, grad.shape[-1]), sums, (kept,))
