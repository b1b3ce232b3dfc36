"""Random compositions of extensions: what `test_compositions.py` tries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.expr import ext, fn
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.shadow import red
from gnomon.shape import prod

Rng = np.random.Generator
DTYPES = ("float64", "float32", "int32", "int64", "float16", "uint8")
LARGEST = 4000  # elements: the oracle is slow


@shadow.op
def farther(a, b):
    """Of two at the same distance from 0 the greater: the order must not matter."""
    if abs(a) == abs(b):
        return max(a, b)
    return a if abs(a) > abs(b) else b


FARTHEST = red.make(farther, 0)


def over(array: np.ndarray) -> Buffer:
    """A leaf over an array's memory."""
    strides = [s // array.itemsize for s in array.strides]
    return Buffer(array.shape, dt.of(array.dtype), strides, array.ctypes.data, array)


def memory(rng: Rng, shape: tuple[int, ...], dtype: str, repeats: bool = True) -> np.ndarray:
    """An array of small whole numbers: dense, strided, reversed, transposed or repeated."""
    low = 0 if dtype == "uint8" else -4

    def fresh(sizes: tuple[int, ...]) -> np.ndarray:
        return np.asarray(rng.integers(low, 5, sizes)).astype(dtype)

    kind = rng.integers(5 if repeats else 4)
    if kind == 0:
        return fresh(tuple(2 * n for n in shape))[tuple(slice(None, None, 2) for _ in shape)]
    if kind == 1:
        return fresh(shape)[tuple(slice(None, None, -1) for _ in shape)]
    if kind == 2:
        return fresh(shape[::-1]).T
    if kind == 4 and shape:
        return np.broadcast_to(fresh((1, *shape[1:])), shape)
    return fresh(shape)


def leaf(rng: Rng, shape: tuple[int, ...], like: Expr) -> Buffer:
    """Data of the dtype of `like`."""
    return over(memory(rng, shape, like.dtype.name))


def index(rng: Rng, shape: tuple[int, ...]) -> Buffer:
    """Indices, some of which lie outside."""
    return over(rng.integers(-2, 6, shape).astype(rng.choice(["int32", "int64"])))


def axis(rng: Rng, e: Expr) -> int:
    return int(rng.integers(e.ndim))


def sizes(rng: Rng, count: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high, count))


def reduced(rng: Rng, e: Expr) -> Expr:
    axes = tuple(a for a in range(e.ndim) if rng.random() < 0.5) or (axis(rng, e),)
    kind = (*("sum", "max", "min"), FARTHEST)[rng.integers(4)]
    return ext.reduce(e, kind, axes, bool(rng.integers(2)))


def sliced(rng: Rng, e: Expr) -> Expr:
    step = [int(s) for s in rng.choice([-2, -1, 1, 2, 3], e.ndim)]
    bounds = [[None, int(rng.integers(-n - 1, n + 2))] for n in e.shape]
    begin, end = ([b[rng.integers(2)] for b in bounds] for _ in range(2))
    return ext.slice_(e, begin, end, step)


def pooled(rng: Rng, e: Expr) -> Expr:
    rank = min(e.ndim, int(rng.integers(1, 3)))
    kernel = tuple(int(rng.integers(1, n + 1)) for n in e.shape[e.ndim - rank :])
    pad = tuple(int(rng.integers(k)) for k in kernel)
    kind = (*("sum", "max", "min"), FARTHEST)[rng.integers(4)]
    return ext.pool(e, kind, kernel, sizes(rng, rank, 1, 4), pad, bool(rng.integers(2)))


def unpooled(rng: Rng, e: Expr) -> Expr:
    kernel = tuple(int(rng.integers(1, n + 1)) for n in e.shape[-1:])
    stride = sizes(rng, 1, 1, 4)
    kind = str(rng.choice(["sum", "max", "min"]))
    y = ext.pool(e, kind, kernel, stride)
    return ext.unpool(kind, e, y, leaf(rng, y.shape, e), kernel, stride)


def columns(rng: Rng, e: Expr) -> Expr:
    image = ext.reshape(e, (1, -1, *e.shape[-2:]))
    kernel = tuple(int(rng.integers(1, n + 1)) for n in e.shape[-2:])
    stride, pad = sizes(rng, 2, 1, 3), sizes(rng, 2, 0, 2)
    made = ext.unpack_patch2col(image, kernel, stride, (1, 1), pad)
    if rng.integers(2):
        return made
    return ext.pack_col2patch(made * 2, image.shape, kernel, stride, (1, 1), pad)


def joined(rng: Rng, e: Expr) -> Expr:
    a = axis(rng, e)
    other = (*e.shape[:a], int(rng.integers(4)), *e.shape[a + 1 :])
    parts = [e, leaf(rng, other, e), *([e * 2] if rng.integers(2) else [])]
    return ext.concat([parts[k] for k in rng.permutation(len(parts))], a)


def scattered(rng: Rng, e: Expr) -> Expr:
    count = int(rng.integers(1, e.ndim + 1))
    return ext.take_grad(index(rng, e.shape[:count]), e, int(rng.integers(1, 6)))


def product(rng: Rng, e: Expr) -> Expr:
    flat = ext.reshape(e, (-1, e.shape[-1]))
    return ext.implicit_dot(flat, leaf(rng, (e.shape[-1], int(rng.integers(4))), e))


def pairs(rng: Rng, e: Expr) -> Expr:
    both = ext.concat([e, e * 2], -1)
    made = (ext.conj, ext.complex_exchange, ext.complex_toreal, ext.complex_abs_square)
    if rng.integers(2):
        return ext.complex_mul_cc(both, leaf(rng, both.shape, e))
    return made[rng.integers(4)](both)


def chosen(rng: Rng, e: Expr) -> Expr:
    flat = ext.reshape(e, (-1, e.shape[-1]))
    where = index(rng, flat.shape[:1])
    kind = rng.integers(4)
    if kind == 0:
        return ext.pick(e, index(rng, e.shape[:-1]))
    if kind == 1:
        return ext.mat_fill_row_element(flat, leaf(rng, where.shape, e), where)
    if kind == 2:
        return ext.mask(where, flat)
    return cast(ext.one_hot(where, e.shape[-1], e.dtype), e.dtype) * flat


STEPS: dict[str, Callable[[Rng, Expr], Expr]] = {
    "reduce": reduced,
    "argument": lambda r, e: cast(ext.arg_reduce(e, "max", axis(r, e)), e.dtype),
    "slice": sliced,
    "flip": lambda r, e: ext.flip(e, axis(r, e)),
    "transpose": lambda r, e: ext.transpose(e, [int(a) for a in r.permutation(e.ndim)]),
    "reshape": lambda r, e: ext.reshape(e, (-1, *e.shape[2:]) if r.integers(2) else (1, -1, 1)),
    "broadcast": lambda r, e: ext.broadcast_with_axis(e, axis(r, e), int(r.integers(4))),
    "pad": lambda r, e: ext.pad(e, sizes(r, e.ndim, 0, 3), sizes(r, e.ndim, 0, 3), 3),
    "concat": joined,
    "pool": pooled,
    "unpool": unpooled,
    "chpool": lambda r, e: ext.chpool("sum", e, 3, int(r.integers(1, 3))),
    "columns": columns,
    "upsampling": lambda r, e: ext.upsampling_nearest(e, int(r.integers(1, 4))),
    "take": lambda r, e: ext.take(e, index(r, sizes(r, int(r.integers(3)), 0, 4))),
    "scatter": scattered,
    "chosen": chosen,
    "product": product,
    "pairs": pairs,
    "mirror": lambda r, e: ext.mirror(e),
    "iota": lambda r, e: e + ext.iota(e.shape, axis(r, e), e.dtype),
}
# every extension in turn stands over and under maps
MAPS: tuple[Callable[[Expr], Expr], ...] = (
    lambda e: e,
    lambda e: e * 2 + 1,
    lambda e: fn.maximum(e, 1),
    lambda e: 3 - e,
)


def composition(rng: Rng, depth: int = 3) -> tuple[Expr, list[str]]:
    """An expression of `depth` extensions over data, and their names."""
    shape = sizes(rng, int(rng.integers(1, 5)), 1, 6)
    if rng.random() < 0.06:
        shape = (*shape[:-1], 0)
    e: Expr = over(memory(rng, shape, str(rng.choice(DTYPES))))
    names: list[str] = []
    for _ in range(100):
        if len(names) == depth:
            break
        name = str(rng.choice(list(STEPS)))
        try:
            made = STEPS[name](rng, MAPS[rng.integers(len(MAPS))](e))
        except (ValueError, TypeError):  # its windows or axes do not fit
            continue
        if made.ndim and prod(made.shape) <= LARGEST:
            e, names = made, [*names, name]
    return MAPS[rng.integers(len(MAPS))](e), names
