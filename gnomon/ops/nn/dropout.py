"""Dropout: elements set to 0 at random while training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.ground.record import cached_property
from gnomon.ops.create import full
from gnomon.ops.infer import Free, Shape, Shapes, normal_axes
from gnomon.ops.op import Draws, Op, made_of, op
from gnomon.ops.param import Dims, param


@op("Dropout", outputs=("output", "mask"))
class Dropout(Op):
    """Each element 0 with probability `p`, the others divided by `1 - p`, in training."""

    p: float = param(0.5, low=0, high=1, doc="How likely an element is dropped.")
    mode: str = param("training", choices=("always", "training"), doc="When elements are dropped.")
    axes: Dims = param((), doc="Axes along which all elements share one fate.")
    cudnn_off: bool | None = param(False, doc="No meaning here.")
    num_visible_outputs = 1

    def mask_shape(self, data: Shape) -> Shape:
        """`data` with size 1 along the shared axes."""
        shared = normal_axes(self.name, self.axes, len(data))
        return tuple(1 if a in shared else d for a, d in enumerate(data))

    def shapes(self, s: Shapes) -> None:
        s.same("data", "output")
        s["mask"] = self.mask_shape(s.need("data"))

    @cached_property
    def kept(self) -> float:
        """How likely an element stays."""
        return 1 - self.p

    @cached_property
    def scale(self) -> float:
        """What those that stay are multiplied by."""
        return 1 / (1 - self.p) if self.p < 1 else 0.0

    def numbers(self) -> dict[str, float]:
        return {"p": self.p, "kept": self.kept, "scale": self.scale} if self.p > 0 else {}

    def with_numbers(self, numbers: Mapping[str, float]) -> Op:
        return made_of(super().with_numbers({"p": 0.5}), numbers)

    def drops(self, train: bool) -> bool:
        """Whether anything is dropped."""
        return self.p > 0 and (train or self.mode == "always")

    def free(self, data: Shape) -> Free:
        return Free(data)

    def forward(
        self, data: Expr, *, train: bool = False, random: Draws | None = None
    ) -> tuple[Expr, Expr]:
        shape = self.mask_shape(data.shape)
        if not self.drops(train):
            return fn.identity(data), full(shape, 1, data.dtype)
        assert random is not None, "training is given a source of numbers"
        mask = fn.lt(random.uniform(shape, data.dtype), self.kept) * self.scale
        return data * ext.broadcast_to(mask, data.shape), mask

    def backward(
        self, out_grads: Any, inputs: Any, outputs: Any, *, train: bool = True
    ) -> tuple[Expr]:
        g = out_grads[0]
        return (g * ext.broadcast_to(outputs[1], g.shape),) if self.drops(train) else (g,)
