"""Products of matrices, and attention, which is made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gnomon.onnx.reader import UNKNOWN, OnnxCall, Reader, Scalar
from gnomon.onnx.table import Unsupported, reads, writes
from gnomon.onnx.writer import Call, Size, Writer, times


def swap(w: Writer, name: str, rank: int) -> str:
    """A tensor with its last two axes exchanged."""
    return w.op("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])


@writes("dot", "Transpose Reshape MatMul")
def write_dot(w: Writer, x: Call) -> str:
    (a, b), (ra, rb) = x.inputs, (x.rank(0), x.rank(1))
    if x.op.transpose_a and ra > 1:
        a = w.op("Transpose", a, perm=[*range(1, ra), 0])
    if x.op.transpose_b and rb > 1:
        b = w.op("Transpose", b, perm=[rb - 1, *range(rb - 1)])
    if rb <= 2:
        made = w.op("MatMul", a, b)
        return w.op("Reshape", made, w.const([1])) if ra == rb == 1 else made
    inner = x.shape(1)[-1 if x.op.transpose_b else 0]
    if not isinstance(inner, int):
        raise Unsupported("a product over an axis whose size is left open")
    made = w.op("MatMul", a, w.op("Reshape", b, w.const([inner, -1])))
    return w.reshape(made, x.out_shape()[: ra - 1], x.out_shape())


@writes("batch_dot", "Transpose MatMul")
def write_batch_dot(w: Writer, x: Call) -> str:
    return matmul(w, x, x.op.transpose_a, x.op.transpose_b)


def matmul(w: Writer, x: Call, transpose_a: bool, transpose_b: bool) -> str:
    """The product of the last two axes of two inputs."""
    a = swap(w, x.inputs[0], x.rank(0)) if transpose_a else x.inputs[0]
    b = swap(w, x.inputs[1], x.rank(1)) if transpose_b else x.inputs[1]
    return w.op("MatMul", a, b)


def _gemm(w: Writer, x: Call) -> str:
    if x.op.axis not in (-2, x.rank() - 2):
        raise Unsupported(f"axis = {x.op.axis}")
    made = matmul(w, x, x.op.transpose_a, x.op.transpose_b)
    return made if x.op.alpha == 1 else w.op("Mul", made, w.const(x.op.alpha, x.dtype()))


@writes("_linalg_gemm2", "Transpose MatMul Mul")
def write_gemm2(w: Writer, x: Call) -> str:
    return _gemm(w, x)


@writes("_linalg_gemm", "Transpose MatMul Mul Add")
def write_gemm(w: Writer, x: Call) -> str:
    return w.op("Add", _gemm(w, x), w.op("Mul", x.inputs[2], w.const(x.op.beta, x.dtype())))


@writes("_linalg_det", "Det Reshape")
def write_det(w: Writer, x: Call) -> str:
    made = w.op("Det", *x.inputs)
    return w.op("Reshape", made, w.const([1])) if x.rank() == 2 else made


@reads("Det")
def read_det(r: Reader, n: OnnxCall) -> Any:
    found = r.op("_linalg_det", n.symbol())
    return Scalar(found) if n.rank() == 2 else found


@reads("MatMul")
def read_matmul(r: Reader, n: OnnxCall) -> Any:
    a, b = n.symbol(0), n.symbol(1)
    ra, rb = n.rank(0), n.rank(1)
    if rb == 1 or (rb == 2 and ra >= 1):
        found = r.op("dot", a, b)
        return Scalar(found) if ra == rb == 1 else found
    if ra == 1:  # a row, which is left out of the result again
        found = _batched(r, r.op("Reshape", a, shape=(1, -1)), b)
        return r.op("squeeze", found, axis=(rb - 2,))
    return _batched(r, a, b)


def _batched(r: Reader, a: Any, b: Any) -> Any:
    """The products of two batches of matrices, each stretched to that of the other."""
    sa, sb = list(r.shape(a)), list(r.shape(b))
    rank = max(len(sa), len(sb), 3)
    a, sa = _lifted(r, a, sa, rank)
    b, sb = _lifted(r, b, sb, rank)
    joint = [q if p == 1 else p for p, q in zip(sa[:-2], sb[:-2], strict=True)]
    return r.op("batch_dot", _stretched(r, a, sa, joint), _stretched(r, b, sb, joint))


def _lifted(r: Reader, x: Any, shape: list[int], rank: int) -> tuple[Any, list[int]]:
    ones = rank - len(shape)
    for _ in range(ones):
        x = r.op("expand_dims", x, axis=0)
    return x, [1] * ones + shape


def _stretched(r: Reader, x: Any, shape: list[int], joint: list[int]) -> Any:
    axes = [k for k, (a, b) in enumerate(zip(shape, joint, strict=False)) if a == 1 != b]
    if not axes:
        return x
    if any(joint[k] == UNKNOWN for k in axes):
        raise Unsupported("batches of different sizes that are not known: give input_shapes")
    return r.op("broadcast_axis", x, axis=tuple(axes), size=tuple(joint[k] for k in axes))


# attention: (length, batch, heads * parts * size) ------------------------------------------------


def _part(w: Writer, x: Call, k: int, count: int, which: int) -> str:
    """One of the parts side by side in input `k`, as (batch * heads, length, size)."""
    length, batch, width = x.shape(k)
    heads = x.op.heads
    if not isinstance(width, int):
        raise Unsupported("the size of the last axis is left open")
    size = width // (heads * count)
    apart = w.reshape(x.inputs[k], x.shape(k), (length, batch, heads, count, size))
    cut = w.op("Gather", apart, w.const(which), axis=3)
    turned = w.op("Transpose", cut, perm=[1, 2, 0, 3])
    rows: tuple[Size, ...] = (times(batch, heads), length, size)
    return w.reshape(turned, (batch, heads, length, size), rows)


def _scores(w: Writer, x: Call, queries: str, keys: str, size: int) -> str:
    scaled = w.op("Div", queries, w.const(math.sqrt(size), x.dtype()))
    return w.op("MatMul", scaled, w.op("Transpose", keys, perm=[0, 2, 1]))


def _joined(w: Writer, x: Call, values: str, k: int) -> str:
    """Attention by input `k` to values, as (length, batch, heads * size)."""
    rows, length, _ = x.shape(k)
    _, batch, width = x.out_shape()
    made = w.op("MatMul", x.inputs[k], values)
    size = int(width) // x.op.heads  # type: ignore[arg-type]
    apart = w.reshape(made, (rows, length, size), (batch, x.op.heads, length, size))
    turned = w.op("Transpose", apart, perm=[2, 0, 1, 3])
    return w.reshape(turned, (length, batch, x.op.heads, size), x.out_shape())


_ATTENTION = "Reshape Gather Transpose Div MatMul Shape Concat"


@writes("_contrib_interleaved_matmul_selfatt_qk", _ATTENTION)
def write_self_scores(w: Writer, x: Call) -> str:
    size = int(x.shape()[2]) // (3 * x.op.heads)  # type: ignore[arg-type]
    return _scores(w, x, _part(w, x, 0, 3, 0), _part(w, x, 0, 3, 1), size)


@writes("_contrib_interleaved_matmul_selfatt_valatt", _ATTENTION)
def write_self_values(w: Writer, x: Call) -> str:
    return _joined(w, x, _part(w, x, 0, 3, 2), 1)


@writes("_contrib_interleaved_matmul_encdec_qk", _ATTENTION)
def write_cross_scores(w: Writer, x: Call) -> str:
    size = int(x.shape()[2]) // x.op.heads  # type: ignore[arg-type]
    return _scores(w, x, _part(w, x, 0, 1, 0), _part(w, x, 1, 2, 0), size)


@writes("_contrib_interleaved_matmul_encdec_valatt", _ATTENTION)
def write_cross_values(w: Writer, x: Call) -> str:
    return _joined(w, x, _part(w, x, 0, 2, 1), 1)


@writes("khatri_rao", "Unsqueeze Mul Reshape")
def write_khatri_rao(w: Writer, x: Call) -> str:
    made = x.inputs[0]
    for name in x.inputs[1:]:
        wide = w.op("Mul", w.axes_op("Unsqueeze", made, [1]), w.axes_op("Unsqueeze", name, [0]))
        made = w.op("Reshape", wide, w.const([-1, np.int64(x.dims()[1])]))
    return made
