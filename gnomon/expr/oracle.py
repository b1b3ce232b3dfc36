"""The oracle: any expression by NumPy, slowly and obviously; the definition of right.

Each node becomes an array, operands first. An index rule is read with grids of indices: every
variable has an axis of its own, loads are fancy indexing, a fold reduces its axes away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.composite import Call, Composite
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Expr, Scalar
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term, cast_number, compute_dtype
from gnomon.expr.walk import postorder
from gnomon.shape import prod

Array: TypeAlias = "np.ndarray[Any, Any]"


def evaluate(e: Expr, values: Mapping[Expr, Array] | None = None) -> Array:
    """The value of `e`; buffers are read from memory, or from `values` where these have them.

    >>> from gnomon.expr.node import Buffer
    >>> x = Buffer((3,))
    >>> evaluate(x * 2.0 + 1.0, {x: np.arange(3, dtype=np.float32)})
    array([1., 3., 5.], dtype=float32)
    """
    return evaluate_all([e], values)[0]


def evaluate_all(es: Sequence[Expr], values: Mapping[Expr, Array] | None = None) -> list[Array]:
    """The value of each of `es`, as `evaluate` gives it; what they share is computed once."""
    arrays: dict[Expr, Array] = {}
    with np.errstate(all="ignore"):
        for node in postorder(es):
            given = None if values is None else values.get(node)
            if given is not None:
                arrays[node] = np.asarray(given).astype(compute_dtype(node.dtype).numpy)
            else:
                arrays[node] = _node(node, arrays)
    return [convert(arrays[e], e.dtype) for e in es]


def _node(node: Expr, arrays: dict[Expr, Array]) -> Array:
    computed = compute_dtype(node.dtype).numpy
    if isinstance(node, Scalar):
        return np.asarray(cast_number(node.value, compute_dtype(node.dtype)), computed)
    if isinstance(node, Buffer):
        return node.numpy().astype(computed)
    if isinstance(node, Call):
        result = node.reference(*(arrays[c] for c in node.children))
        return np.asarray(result).astype(computed)
    arena = Arena()
    index = Index([arena.var(n) for n in node.shape], arena)
    rule = node.element if isinstance(node, Composite) else node.at
    value = _Reader(arena, arrays).value(rule(index))
    value = value.reshape(value.shape[: len(node.shape)]) if value.ndim else value
    return np.broadcast_to(value, node.shape).astype(computed, order="C")


class _Reader:
    """Values of the Terms of one arena, as arrays with an axis for each variable."""

    def __init__(self, arena: Arena, arrays: Mapping[Expr, Array]) -> None:
        self.arena, self.arrays = arena, arrays
        self.memo: dict[int, Array] = {}

    def value(self, root: Term) -> Array:
        stack = [root]
        while stack:
            term = stack[-1]
            waiting = [a for a in term.args if a.id not in self.memo]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if term.id not in self.memo:
                self.memo[term.id] = self.compute(term, [self.memo[a.id] for a in term.args])
        return self.memo[root.id]

    def compute(self, term: Term, args: list[Array]) -> Array:
        rule = getattr(self, f"do_{term.op}", None)
        if rule is not None:
            return rule(term, *args)  # type: ignore[no-any-return]
        return np.asarray(PRIMITIVES[term.op].numpy(*args)).astype(term.dtype.numpy)

    def do_const(self, term: Term) -> Array:
        return self.widen(np.asarray(term.payload, term.dtype.numpy))

    def do_arg(self, term: Term) -> Array:
        return self.widen(np.asarray(term.payload.value, term.dtype.numpy))

    def do_var(self, term: Term) -> Array:
        count = int(self.arena.extent[term.payload].payload)
        grid = np.arange(count).reshape([-1] + [1] * (self.axes - term.payload - 1))
        return grid.reshape((1,) * (self.axes - grid.ndim) + grid.shape)

    @property
    def axes(self) -> int:
        return len(self.arena.extent)

    def widen(self, value: Array) -> Array:
        return value.reshape((1,) * self.axes)

    def do_elem(self, term: Term, *index: Array) -> Array:
        source = self.arrays[term.payload]
        if not index:
            return self.widen(source)
        if source.size == 0:  # only ever asked for behind a guard, or not at all
            return np.zeros(np.broadcast_shapes(*(i.shape for i in index)), source.dtype)
        bounds = zip(index, source.shape, strict=True)
        return np.asarray(source[tuple(np.minimum(np.maximum(i, 0), n - 1) for i, n in bounds)])

    do_load = do_elem

    def do_guard(self, term: Term, cond: Array, value: Array, other: Array) -> Array:
        return np.where(cond, value, other)

    def do_cast(self, term: Term, value: Array) -> Array:
        return convert(value, term.dtype)

    def do_bitcast(self, term: Term, value: Array) -> Array:
        return value.view(term.dtype.numpy)

    def do_fold(self, term: Term, *bodies: Array) -> Array:
        """All results, stacked in an object array of one element (see `do_part`)."""
        reducer, variables = term.payload
        whole = np.broadcast_shapes(*(b.shape for b in bodies))
        counts = [int(self.arena.extent[v].payload) for v in variables]
        whole = tuple(
            counts[variables.index(a)] if a in variables else n for a, n in enumerate(whole)
        )
        moved = [
            np.moveaxis(np.broadcast_to(b, whole), variables, range(len(variables))) for b in bodies
        ]
        flat = [m.reshape(prod(counts), *m.shape[len(variables) :]) for m in moved]
        result = np.empty(1, object)
        result[0] = [np.expand_dims(r, variables) for r in reduce_first(reducer, flat)]
        return result

    def do_part(self, term: Term, fold: Array) -> Array:
        return np.asarray(fold[0][term.payload])


def reduce_first(reducer: Reducer, values: list[Array]) -> list[Array]:
    """`reducer` over the first axis, pairwise, with the reducer's own `combine`."""
    if len(values[0]) == 0:
        starts = reducer.start(dt.of(values[0].dtype))
        return [np.full(v.shape[1:], s, v.dtype) for v, s in zip(values, starts, strict=True)]
    arena = Arena()
    left = tuple(arena.arg(("a", k), dt.of(v.dtype)) for k, v in enumerate(values))
    right = tuple(arena.arg(("b", k), dt.of(v.dtype)) for k, v in enumerate(values))
    combined = reducer.combine(arena, left, right)
    while len(values[0]) > 1:
        half = len(values[0]) // 2
        reader = _Reader(arena, {})
        for k, v in enumerate(values):
            reader.memo[left[k].id], reader.memo[right[k].id] = v[:half], v[half : 2 * half]
        merged = [reader.value(c) for c in combined]
        values = [np.concatenate([m, v[2 * half :]]) for m, v in zip(merged, values, strict=True)]
    return [v[0] for v in values]


def convert(value: Array, dtype: DType) -> Array:
    """Conversion as `Cast` defines it: toward zero, saturating at the ends, NaN to 0."""
    if value.dtype == dtype.numpy:
        return value
    if value.dtype.kind not in "iub" and dtype.kind in "iu":
        low, high = dtype.limits
        wide = np.nan_to_num(value.astype(np.longdouble), nan=0.0, posinf=high, neginf=low)
        return np.clip(np.trunc(wide), low, high).astype(dtype.numpy)
    return value.astype(dtype.numpy)
