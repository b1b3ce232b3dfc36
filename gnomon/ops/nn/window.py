"""What convolutions and poolings share: sizes, defaults and layouts of windows."""

from __future__ import annotations

from collections.abc import Sequence

from gnomon.base import ParamError, complaint
from gnomon.expr import ext
from gnomon.expr.node import Expr
from gnomon.ops.op import Op

Sizes = tuple[int, ...]
DEFAULT_LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def per_axis(op: Op, name: str, default: int, count: int) -> Sizes:
    """The parameter `name` of `op`: one number an axis, `default` where nothing was given."""
    given: Sizes = getattr(op, name) or (default,) * count
    if len(given) != count or min(given) < (0 if name in ("pad", "adj") else 1):
        expected = f"{count} numbers, as kernel has"
        raise ParamError(complaint(op.name, name, expected, given))
    return given


def reach(kernel: Sizes, dilate: Sizes) -> Sizes:
    """How many elements a kernel spans along each axis."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilate, strict=True))


def places(size: int, window: int, stride: int, pad: int) -> int:
    """How many windows fit."""
    return (size + 2 * pad - window) // stride + 1


def channels_first(layout: str) -> tuple[int, ...]:
    """The axes of `layout` in the order N, C, then space."""
    return (layout.index("N"), layout.index("C"), *_spatial(layout))


def _spatial(layout: str) -> list[int]:
    return [k for k, letter in enumerate(layout) if letter not in "NC"]


def ordered(shape: Sequence[int], order: Sequence[int]) -> Sizes:
    """`shape` with its axes in `order`."""
    return tuple(shape[a] for a in order)


def inverse(order: Sequence[int]) -> Sizes:
    """The order that undoes `order`."""
    return tuple(list(order).index(a) for a in range(len(order)))


def turned(x: Expr, order: Sequence[int]) -> Expr:
    """`x` with its axes in `order`; `x` itself where they are."""
    return x if list(order) == list(range(len(order))) else ext.transpose(x, order)
