"""Updates that MXNet does in steps of their own: LAMB in two phases, AdamW, LARS, and helpers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.dtype import float32
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.case import case
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import count, param
from gnomon.ops.update import MultiPrecision, Update
from gnomon.ops.update_many import AdamW, Lamb, MpAdamW, one, trusted

MEANS = ("weight", "grad", "mean", "var")


class LoadedScale(Update):
    """What AdamW's two operators share: `rescale_grad` is an input, behind all others."""

    def arguments(self) -> tuple[str, ...]:
        return ("weight", "grad", "rescale_grad")

    def called(self) -> tuple[str, ...]:
        return self.input_names

    def shapes(self, s: Shapes) -> None:
        s["rescale_grad"] = (1,)
        s.same("weight", "grad", *self.auxiliary(), "output")

    def scaled(self, scale: Expr) -> Any:
        """The update with this factor."""
        made = object.__new__(type(self))
        made.__dict__.update({**self.__dict__, "rescale_grad": scale})
        return made

    def forward(self, *inputs: Any, **context: Any) -> Expr:
        weight, grad, scale, *states = inputs
        return super(LoadedScale, self.scaled(scale)).forward(weight, grad, *states)

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        weight, grad, scale = inputs
        return super(LoadedScale, self.scaled(scale)).updates((weight, grad), aux, outputs)


@op("_adamw_update", inputs=(*MEANS, "rescale_grad"), aux=("mean", "var"))
class AdamWUpdate(LoadedScale, AdamW):
    """Adam with a decay of its own; where `rescale_grad` is not finite or 0, nothing changes."""

    interleaved = True

    def types(self, t: Types) -> None:
        t["rescale_grad"] = float32
        t.same("weight", "grad", *self.auxiliary(), "output")


@op(
    "_mp_adamw_update",
    inputs=(*MEANS, "weight32", "rescale_grad"),
    aux=("mean", "var", "weight32"),
)
class MpAdamWUpdate(LoadedScale, MpAdamW):
    """`_adamw_update` of a half-float weight, computed on its float32 copy."""

    interleaved = True

    def types(self, t: Types) -> None:
        t["rescale_grad"] = float32
        MultiPrecision.types(self, t)


@op("lamb_update_phase1", inputs=MEANS, aux=("mean", "var"))
class LambPhase1(Lamb):
    """The direction in which LAMB moves a weight."""

    leading = ("beta1", "beta2", "epsilon", "t", "bias_correction", "wd")
    t: int = param(low=1, doc="Which update this is, from 1 on.")
    wd: float = param(doc="Weight decay.")
    lr = lower_bound = upper_bound = 0.0  # no fields: those of phase 2

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        return self.direction(weight, grad, *states)


@op("mp_lamb_update_phase1", inputs=(*MEANS, "weight32"), aux=("mean", "var", "weight32"))
class MpLambPhase1(LambPhase1):
    """The same of a half-float weight, by its float32 copy; in float32."""

    def types(self, t: Types) -> None:
        t.same("weight", "grad")
        for name in (*self.auxiliary(), "output"):
            t[name] = float32

    def forward(self, weight: Expr, grad: Expr, *states: Expr) -> Expr:
        return self.wide(grad, states)[0]

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        return dict(enumerate(self.wide(inputs[1], aux)[1:]))

    def wide(self, grad: Expr, states: Any) -> tuple[Expr, ...]:
        """The direction and the new means, in float32."""
        return self.new(states[-1], cast(grad, float32), *states[:-1])


class Phase2(Op):
    """What the second phase of LAMB does: a step along `g`, scaled by norms `r1` over `r2`."""

    lr: float = param(doc="Learning rate.")
    lower_bound: float = param(-1.0, doc="Least length of a weight; none if negative.")
    upper_bound: float = param(-1.0, doc="Greatest length of a weight; none if negative.")
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s.same("weight", "g", *self.auxiliary(), "output")
        s["r1"] = s["r2"] = (1,)

    def moved(self, weight: Expr, g: Expr, r1: Expr, r2: Expr) -> Expr:
        """The new weight."""
        ratio = trusted(one(r1, weight), one(r2, weight), self.lower_bound, self.upper_bound)
        return weight - g * ratio * self.lr


@op("lamb_update_phase2", inputs=("weight", "g", "r1", "r2"))
class LambPhase2(Phase2):
    """The weight moved along `g`, as far as its length `r1` over that of the step, `r2`, allows."""

    def forward(self, weight: Expr, g: Expr, r1: Expr, r2: Expr) -> Expr:
        return self.moved(weight, g, r1, r2)


@op("mp_lamb_update_phase2", inputs=("weight", "g", "r1", "r2", "weight32"), aux=("weight32",))
class MpLambPhase2(Phase2):
    """The same of a half-float weight, by its float32 copy, which moves with it."""

    def types(self, t: Types) -> None:
        t.same("weight", "output")
        for name in ("g", "r1", "r2", "weight32"):
            t[name] = float32

    def forward(self, weight: Expr, g: Expr, r1: Expr, r2: Expr, copy: Expr) -> Expr:
        return cast(self.moved(copy, g, r1, r2), weight.dtype)

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        return {0: self.moved(aux[0], *inputs[1:])}


@op("multi_lars", inputs=("lrs", "weights_sum_sq", "grads_sum_sq", "wds"))
class MultiLars(Op):
    """Learning rates scaled by the length of each weight over that of its gradient."""

    eta: float = param(doc="Factor of the rates.")
    eps: float = param(doc="Added to the lengths.")
    rescale_grad: float = param(1.0, doc="What gradients are multiplied by.")
    gradient = Op.without_gradient

    def forward(self, lrs: Expr, weights: Expr, grads: Expr, wds: Expr) -> Expr:
        size, slope = fn.sqrt(weights), fn.sqrt(grads) * self.rescale_grad
        valid = fn.logical_and(fn.gt(size, 0), fn.gt(slope, 0))
        scaled = lrs * size * self.eta / (slope + wds * size + self.eps)
        return fn.where(valid, scaled, lrs)


@op("multi_sum_sq", variadic="num_arrays")
class MultiSumSq(Op):
    """The sum of squares of each array, as one vector."""

    num_arrays: int = count(doc="How many arrays there are.")
    stem = "array_"
    gradient = Op.without_gradient

    def shapes(self, s: Shapes) -> None:
        s["output"] = (self.num_arrays,)

    def types(self, t: Types) -> None:
        t.same(*self.arguments())
        t["output"] = float32

    def forward(self, *args: Expr) -> Expr:
        wide = [cast(x, float32) if x.dtype.size < 4 else x for x in args]
        sums = [ext.reduce(x * x, "sum") if x.ndim else x * x for x in wide]
        return ext.concat([cast(ext.reshape(x, (1,)), float32) for x in sums], 0)


@op("_contrib_group_adagrad_update", inputs=("weight", "grad", "history"), aux=("history",))
class GroupAdagradUpdate(Update):
    """The weight moved by the gradient over the root of sums of squares, one for each row."""

    epsilon: float = param(1e-5, doc="Added to the sum of squares.")
    wd = 0.0  # no field
    leading = ("lr", "rescale_grad", "clip_gradient")
    cases = (
        case((4, 3), (4, 3), [[0.1], [0.2], [1.0], [0.0]], lr=0.1, differentiable=()),
        case((2,), (2,), [0.1, 0.4], lr=0.1, clip_gradient=0.1, differentiable=()),
    )

    def shapes(self, s: Shapes) -> None:
        s.same("weight", "grad", "output")
        weight = s.need("weight")
        s["history"] = (weight[0], *(1 for _ in weight[1:]))

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = self.clipped(grad * self.rescale_grad)
        axes = tuple(range(1, g.ndim))
        squares = ext.reduce(g * g, "sum", axes, keepdims=True) if axes else g * g
        count = max(1, g.shape[-1]) if axes else 1
        for n in g.shape[1:-1]:
            count *= max(1, n)
        history = states[0] + squares / count
        root = fn.sqrt(history + self.epsilon)
        return weight - g / ext.broadcast_to(root, g.shape) * self.lr, history

    def reference(self, weight: Any, grad: Any, history: Any) -> Any:
        bound = self.clip_gradient
        g = grad if bound < 0 else np.clip(grad, -bound, bound)
        squares = (g * g).reshape(len(g), -1).mean(1).reshape(history.shape)
        return weight - self.lr * g / np.sqrt(history + squares + self.epsilon)
