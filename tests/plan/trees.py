"""Random expressions of a wanted shape and dtype, over views that lie over each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.shadow import Tensor

DTYPES = [dt.of(n) for n in "float32 float64 float16 bfloat16 uint8 int8 int32 int64 bool".split()]
SHAPES = [
    (), (0,), (1,), (7,), (64,), (131,), (3, 17), (5, 1), (1, 13), (4, 0), (31, 7), (2, 67),
    (2, 3, 20), (1, 1, 67), (3, 5, 2), (2, 2, 3, 5), (1, 3, 1, 2, 4), (2, 1, 3, 1, 2, 3),
]  # fmt: skip
UNARY = ("abs", "square", "neg", "relu", "floor", "sign", "identity", "logical_not", "trunc")
BINARY = ("add", "sub", "mul", "maximum", "minimum", "lt", "le", "gt", "ge", "eq", "ne", "right")
EXTRA = (1, 2, 3, 5)
GUARD = 64

Shape = tuple[int, ...]


class Forest:
    """Grows expressions: all of what they read lies in `blocks`, one for each dtype."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.blocks: dict[DType, Any] = {}
        self.whole: list[Any] = []

    def choose(self, things: Any) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    # -- memory ---------------------------------------------------------------------------------

    def refill(self) -> None:
        """Other small whole numbers everywhere, rarely NaN or infinity."""
        for block in self.whole:
            kind = dt.of(block.dtype)
            low, high = (0, 2) if kind.kind == "b" else (0, 4) if kind.kind == "u" else (-3, 4)
            block[...] = self.rng.integers(low, high, size=block.shape).astype(block.dtype)
            if kind.kind == "f" and self.chance(0.1):
                block.reshape(-1)[self.rng.integers(block.size)] = self.choose(
                    [np.nan, np.inf, -np.inf]
                )

    def view(self, shape: Shape, dtype: DType, apart: bool = False, steady: bool = False) -> Any:
        """A view of `shape`: of the dtype's one block, so that views overlap, or of its own.

        `steady` memory keeps its numbers, which are indices.
        """
        around = tuple(2 * n + 3 for n in shape)
        old = self.blocks.get(dtype)
        if apart or steady or old is None or old.ndim != len(shape) or old.shape < around:
            old = self.guarded(around, dtype)
            if steady:
                old[...] = self.rng.integers(-2, 6, size=around).astype(dtype.numpy)
                self.whole.pop()
            if not (apart or steady):
                self.blocks[dtype] = old
        if any(m < a for m, a in zip(old.shape, around, strict=True)):
            return self.view(shape, dtype, apart=True)
        return old[tuple(self.cut(n, m) for n, m in zip(shape, old.shape, strict=True))]

    def guarded(self, shape: Shape, dtype: DType) -> Any:
        """Memory between guards, all of it in `whole`."""
        self.whole.append(np.zeros(int(np.prod(shape)) + 2 * GUARD, dtype.numpy))
        return self.whole[-1][GUARD:-GUARD].reshape(shape)

    def cut(self, n: int, m: int) -> slice:
        """`n` of `m` places, one or two apart, either way."""
        step = self.choose([1, 1, 1, 2, -1, -2])
        span = (n - 1) * abs(step) + 1 if n else 0
        low = int(self.rng.integers(0, min(4, m - span + 1)))
        if step > 0:
            return slice(low, low + span, step)
        return slice(low + span - 1, low - 1 if low else None, step) if n else slice(0, 0)

    def leaf(self, shape: Shape, dtype: DType) -> Expr:
        """Data: of the common block, mostly; transposed or dense at times."""
        kind = self.choose(["view"] * 4 + ["own", "turned", "dense"])
        if kind == "turned":
            return Tensor(self.view(shape[::-1], dtype).T)
        if kind == "dense":
            return Tensor(self.guarded(shape, dtype))
        return Tensor(self.view(shape, dtype, apart=kind == "own"))

    # -- expressions ----------------------------------------------------------------------------

    def grow(self, shape: Shape, dtype: DType, depth: int = 4) -> Expr:
        """A random expression."""
        if depth <= 0 or self.chance(0.15) or int(np.prod(shape)) > 4000:
            return self.leaf(shape, dtype)
        e: Expr | None = None
        while e is None:
            e = self.choose(RULES)(self, shape, dtype, depth - 1)
        return e

    def index(self, shape: Shape) -> Expr:
        """Integers, some of which lie outside."""
        return Tensor(self.view(shape, self.choose([dt.int32, dt.int64, dt.int8]), steady=True))

    def axis(self, shape: Shape) -> int:
        return int(self.rng.integers(len(shape)))


Rule = Callable[[Forest, Shape, DType, int], "Expr | None"]
RULES: list[Rule] = []


def rule(weight: int = 1) -> Callable[[Rule], Rule]:
    """Enter a rule; it gives None where it does not fit."""

    def enter(function: Rule) -> Rule:
        RULES.extend([function] * weight)
        return function

    return enter


@rule(3)
def unary(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    return getattr(fn, f.choose(UNARY))(f.grow(shape, dtype, depth))


@rule(5)
def binary(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    x = f.grow(shape, dtype, depth)
    names = (*BINARY, "div") if dtype.kind in "iu" else BINARY
    if f.chance(0.3):
        number = f.choose([2, 1, 3]) if dtype.kind != "f" else f.choose([2.0, -1.0, 0.5, 3])
        return getattr(fn, f.choose(names))(*((x, number) if f.chance(0.7) else (number, x)))
    return getattr(fn, f.choose(names))(x, x if f.chance(0.1) else f.grow(shape, dtype, depth))


@rule(2)
def chosen(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    x = f.grow(shape, dtype, depth)
    return fn.where(fn.lt(x, 1), x, f.grow(shape, dtype, depth - 1))


@rule(2)
def converted(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    return cast(f.grow(shape, f.choose(DTYPES), depth), dtype)


@rule()
def flipped(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    return ext.flip(f.grow(shape, dtype, depth), f.axis(shape)) if shape else None


@rule()
def turned(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    axes = [int(a) for a in f.rng.permutation(len(shape))]
    inner = [0] * len(shape)
    for k, a in enumerate(axes):
        inner[a] = shape[k]
    return ext.transpose(f.grow(tuple(inner), dtype, depth), axes)


@rule()
def sliced(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if not shape:
        return None
    a, step = f.axis(shape), f.choose([1, 2, -1, -3])
    n = shape[a]
    grown = (*shape[:a], max(1, n) * abs(step) + 2, *shape[a + 1 :])
    row = range(1, 1 + n * step, step) if step > 0 else range(n * -step, 0, step)
    begin, end, steps = [None] * a, [None] * a, [None] * a
    stop = row.stop if row.stop >= 0 else None
    bounds = ([*begin, row.start], [*end, stop], [*steps, step])
    made = ext.slice_(f.grow(grown, dtype, depth), *bounds)
    return made if made.shape == shape else None


@rule()
def padded(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    around = [f.choose([0, 0, 1, 2]) for _ in shape]
    shrunk = tuple(n - 2 * p for n, p in zip(shape, around, strict=True))
    if not shape or min(shrunk) < 0:
        return None
    return ext.pad(f.grow(shrunk, dtype, depth), around, around, 1)


@rule()
def joined(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if not shape:
        return None
    a = f.axis(shape)
    k = int(f.rng.integers(0, shape[a] + 1))
    parts = [(*shape[:a], n, *shape[a + 1 :]) for n in (k, shape[a] - k)]
    return ext.concat([f.grow(p, dtype, depth - 1) for p in parts], a)


@rule(2)
def reduced(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if dtype is dt.bool_ or len(shape) > 5:
        return None
    a = int(f.rng.integers(len(shape) + 1))
    how = f.choose(["sum", "max", "min"])
    n = f.choose(EXTRA if how != "sum" else (*EXTRA, 0, 13))
    return ext.reduce(f.grow((*shape[:a], n, *shape[a:]), dtype, depth), how, a)


@rule()
def placed(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if len(shape) > 5:
        return None
    a = int(f.rng.integers(len(shape) + 1))
    inner = f.grow((*shape[:a], f.choose(EXTRA), *shape[a:]), f.choose(DTYPES), depth)
    return cast(ext.arg_reduce(inner, f.choose(["max", "min"]), a), dtype)


@rule(2)
def broadcast(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    thin = tuple(1 if f.chance(0.5) else n for n in shape)
    return ext.broadcast_to(f.grow(thin[int(f.chance(0.2)) :], dtype, depth), shape)


@rule()
def centred(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    """A statistic beside what it is of."""
    if not shape or dtype is dt.bool_ or 0 in shape:
        return None
    x, a = f.grow(shape, dtype, depth), f.axis(shape)
    return x - ext.broadcast_to(ext.reduce(x, f.choose(["max", "sum"]), a, True), shape)


@rule()
def reshaped(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr:
    if len(shape) > 1 and f.chance(0.5):
        return ext.reshape(f.grow((int(np.prod(shape)),), dtype, depth), shape)
    return ext.reshape(f.grow((*shape[::-1], 1)[:6], dtype, depth), shape)


@rule()
def taken(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if not shape:
        return None
    m = int(f.rng.integers(1, len(shape) + 1))
    rows = f.grow((f.choose(EXTRA), *shape[m:]), dtype, depth)
    return ext.take(rows, f.index(shape[:m]))


@rule()
def scattered(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if not shape or dtype is dt.bool_:
        return None
    n = f.choose((0, 1, 4))
    return ext.take_grad(f.index((n,)), f.grow((n, *shape[1:]), dtype, depth), shape[0])


@rule()
def picked(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if len(shape) > 5:
        return None
    return ext.pick(f.grow((*shape, f.choose(EXTRA)), dtype, depth), f.index(shape))


@rule()
def hot(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    return ext.one_hot(f.index(shape[:-1]), shape[-1], dtype) if shape else None


@rule()
def counted(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    return ext.iota(shape, f.axis(shape), dtype) if shape else None


@rule()
def product(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if len(shape) != 2 or dtype is dt.bool_:
        return None
    k = f.choose((0, *EXTRA))
    left, right = f.grow((shape[0], k), dtype, depth), f.grow((k, shape[1]), dtype, depth - 1)
    return ext.implicit_dot(left, right)


@rule()
def pooled(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if len(shape) < 2 or dtype is dt.bool_ or 0 in shape:
        return None
    kernel, stride = f.choose([1, 2, 3]), f.choose([1, 2])
    space = tuple((n - 1) * stride + kernel for n in shape[-2:])
    inner = f.grow((*shape[:-2], *space), dtype, depth)
    return ext.pool(inner, f.choose(["sum", "max", "min"]), (kernel,) * 2, (stride,) * 2)


@rule()
def enlarged(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if len(shape) < 2 or any(n % 2 for n in shape[-2:]):
        return None
    inner = (*shape[:-2], *(n // 2 for n in shape[-2:]))
    return ext.upsampling_nearest(f.grow(inner, dtype, depth), 2)


@rule()
def paired(f: Forest, shape: Shape, dtype: DType, depth: int) -> Expr | None:
    if not shape or shape[-1] % 2 or dtype is dt.bool_:
        return None
    e = f.grow(shape, dtype, depth)
    return f.choose([ext.conj, ext.complex_exchange])(e)
