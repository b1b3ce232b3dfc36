"""What follows from an operator's `forward`: gradient, what the gradient reads, in-place pairs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gnomon.dtype import DType
from gnomon.expr import Buffer, Expr
from gnomon.expr.diff import vjp

if TYPE_CHECKING:
    from gnomon.ops.op import Op

Shapes = tuple[tuple[int, ...], ...]
DTypes = tuple[DType, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a gradient reads, each by index; what is not named may be freed early."""

    out_grads: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
