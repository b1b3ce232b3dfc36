"""Optimizer updates: a new weight, and new states where the optimizer has any.

All share the gradient's treatment: scaled, then clipped, then weight decay added where it belongs.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.dtype import float32
from gnomon.expr import fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import param


class Update(Op):
    """What updates share. `new` says everything: the new weight, then the new states."""

    leading: ClassVar[tuple[str, ...]] = (
        "lr", "momentum", "gamma1", "gamma2", "beta1", "beta2", "epsilon", "t", "lamda1", "beta",
    )  # fmt: skip
    lr: float = param(doc="Learning rate.")
    wd: float = param(0.0, doc="Weight decay.")
    rescale_grad: float = param(1.0, doc="What the gradient is multiplied by first.")
    clip_gradient: float = param(-1.0, doc="Bound of the gradient after that; none if negative.")

    def numbers(self) -> dict[str, float]:
        return {n: getattr(self, n) for n in ("lr", "wd", "rescale_grad") if n in self.fields}

    def forward(self, weight: Expr, grad: Expr, *states: Expr) -> Expr:
        return self.new(weight, grad, *states)[0]

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        return dict(enumerate(self.new(*inputs, *aux)[1:]))

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        """Hook: the new weight and the new states."""
        raise TypeError(f"{self.name} says nothing of its new weight")

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[None, ...]:
        return (None,) * len(self.arguments())

    def clipped(self, g: Expr) -> Expr:
        """`g` within the bound."""
        return bounded(g, self.clip_gradient)

    def decayed(self, weight: Expr, grad: Expr) -> Expr:
        """The scaled and clipped gradient with weight decay."""
        return self.clipped(grad * self.rescale_grad) + weight * self.wd

    def decayed_first(self, weight: Expr, grad: Expr) -> Expr:
        """The scaled gradient with weight decay, then clipped."""
        return self.clipped(grad * self.rescale_grad + weight * self.wd)


def bounded(g: Expr, bound: float) -> Expr:
    """`g` between `-bound` and `bound`; `g` itself where the bound is negative."""
    return g if bound < 0 else fn.clip(g, -bound, bound)


@op("sgd_update", inputs=("weight", "grad"), aliases=("_sparse_sgd_update",))
class SgdUpdate(Update):
    """The weight moved against its gradient."""

    lazy_update: bool = param(True, doc="Leave rows without gradient alone, in row-sparse storage.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        return (weight - self.decayed(weight, grad) * self.lr,)


MOMENTUM = ("weight", "grad", "mom")


@op("sgd_mom_update", inputs=MOMENTUM, aux=("mom",), aliases=("_sparse_sgd_mom_update",))
class SgdMomUpdate(Update):
    """The weight moved by a momentum that gathers gradients."""

    momentum: float = param(0.0, doc="How much of the momentum stays.")
    lazy_update: bool = param(True, doc="Leave rows without gradient alone, in row-sparse storage.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        mom = states[0] * self.momentum - self.decayed(weight, grad) * self.lr
        return weight + mom, mom


@op("nag_mom_update", inputs=MOMENTUM, aux=("mom",))
class NagMomUpdate(Update):
    """Nesterov's momentum: the gradient is taken where the momentum leads.

    As in MXNet, whose update works in place, the decay within the momentum is that of the new
    weight.
    """

    momentum: float = param(0.0, doc="How much of the momentum stays.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        kept = states[0] * self.momentum
        step = self.decayed(weight, grad) * self.lr
        moved = weight + (kept - step) * self.momentum - step
        return moved, kept - self.decayed(moved, grad) * self.lr


class MultiPrecision(Update):
    """What updates with a float32 copy of a half-float weight share; the copy is the last state."""

    def types(self, t: Types) -> None:
        t.same("weight", "grad", "output")
        for name in self.auxiliary():
            t[name] = float32

    def forward(self, weight: Expr, grad: Expr, *states: Expr) -> Expr:
        return cast(self.wide(grad, states)[0], weight.dtype)

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        weight, *states = self.wide(inputs[1], aux)
        return dict(enumerate([*states, weight]))

    def wide(self, grad: Expr, states: Any) -> tuple[Expr, ...]:
        """The new weight and states, in float32."""
        return self.new(states[-1], cast(grad, float32), *states[:-1])


@op("mp_sgd_update", inputs=("weight", "grad", "weight32"), aux=("weight32",))
class MpSgdUpdate(MultiPrecision):
    """`sgd_update` of a half-float weight, computed on its float32 copy."""

    lazy_update: bool = param(True, doc="Leave rows without gradient alone, in row-sparse storage.")
    new = SgdUpdate.new


MP_MOMENTUM = (*MOMENTUM, "weight32")


@op("mp_sgd_mom_update", inputs=MP_MOMENTUM, aux=("mom", "weight32"))
class MpSgdMomUpdate(MultiPrecision):
    """`sgd_mom_update` of a half-float weight, computed on its float32 copy."""

    momentum: float = param(0.0, doc="How much of the momentum stays.")
    lazy_update: bool = param(True, doc="Leave rows without gradient alone, in row-sparse storage.")
    new = SgdMomUpdate.new


@op("mp_nag_mom_update", inputs=MP_MOMENTUM, aux=("mom", "weight32"))
class MpNagMomUpdate(MultiPrecision):
    """`nag_mom_update` of a half-float weight, computed on its float32 copy."""

    momentum: float = param(0.0, doc="How much of the momentum stays.")
    new = NagMomUpdate.new


@op("adam_update", inputs=("weight", "grad", "mean", "var"), aux=("mean", "var"),
    aliases=("_sparse_adam_update",))  # fmt: skip
class AdamUpdate(Update):
    """The weight moved by a running mean of the gradient over the root of that of its square."""

    beta1: float = param(0.9, doc="How much of the mean stays.")
    beta2: float = param(0.999, doc="How much of the mean square stays.")
    epsilon: float = param(1e-8, doc="Added to the root.")
    lazy_update: bool = param(True, doc="Leave rows without gradient alone, in row-sparse storage.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = self.decayed_first(weight, grad)
        mean = states[0] * self.beta1 + g * (1 - self.beta1)
        var = states[1] * self.beta2 + g * g * (1 - self.beta2)
        return weight - mean * self.lr / (fn.sqrt(var) + self.epsilon), mean, var


@op("signsgd_update", inputs=("weight", "grad"))
class SignSgdUpdate(Update):
    """The weight moved by the sign of its gradient."""

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        return (weight * (1 - self.lr * self.wd) - fn.sign(grad) * self.lr,)


@op("rmsprop_update", inputs=("weight", "grad", "n"), aux=("n",))
class RmsPropUpdate(Update):
    """The weight moved by the gradient over the root of a running mean of its square."""

    gamma1: float = param(0.95, doc="How much of the mean square stays.")
    epsilon: float = param(1e-8, doc="Added to the mean square.")
    clip_weights: float = param(-1.0, doc="Bound of the weights; none if not positive.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = self.decayed_first(weight, grad)
        n = states[0] * self.gamma1 + g * g * (1 - self.gamma1)
        w = weight - g * self.lr / fn.sqrt(n + self.epsilon)
        bound = self.clip_weights
        return (w if bound <= 0 else fn.clip(w, -bound, bound)), n


@op("rmspropalex_update", inputs=("weight", "grad", "n", "g", "delta"), aux=("n", "g", "delta"))
class RmsPropAlexUpdate(Update):
    """RMSProp with momentum, over the variance of the gradient in place of its mean square."""

    gamma1: float = param(0.95, doc="How much of the means stays.")
    gamma2: float = param(0.9, doc="How much of the momentum stays.")
    epsilon: float = param(1e-8, doc="Added to the variance.")
    clip_weights: float = param(-1.0, doc="Bound of the weights; none if not positive.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = self.decayed_first(weight, grad)
        n = states[0] * self.gamma1 + g * g * (1 - self.gamma1)
        mean = states[1] * self.gamma1 + g * (1 - self.gamma1)
        delta = states[2] * self.gamma2 - g * self.lr / fn.sqrt(n - mean * mean + self.epsilon)
        w, bound = weight + delta, self.clip_weights
        return (w if bound <= 0 else fn.clip(w, -bound, bound)), n, mean, delta


@op("signum_update", inputs=MOMENTUM, aux=("mom",))
class SignumUpdate(Update):
    """The weight moved by the sign of a momentum."""

    momentum: float = param(0.0, doc="How much of the momentum stays.")
    wd_lh: float = param(0.0, doc="Weight decay that the sign does not touch.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        mom = states[0] * self.momentum - self.decayed(weight, grad) * (1 - self.momentum)
        return weight * (1 - self.lr * self.wd_lh) + fn.sign(mom) * self.lr, mom


@op("ftrl_update", inputs=("weight", "grad", "z", "n"), aux=("z", "n"),
    aliases=("_sparse_ftrl_update",))  # fmt: skip
class FtrlUpdate(Update):
    """Follow the regularized leader: weights that `lamda1` keeps at 0 unless gradients insist."""

    lamda1: float = param(0.01, doc="Weight of the absolute values.")
    beta: float = param(1.0, doc="Added to the root of the sum of squares.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = self.clipped(grad * self.rescale_grad)
        n = states[1] + g * g
        z = states[0] + g - (fn.sqrt(n) - fn.sqrt(states[1])) * weight / self.lr
        size = (fn.sqrt(n) + self.beta) / self.lr + self.wd
        w = (fn.sign(z) * self.lamda1 - z) / size
        return fn.where(fn.le(fn.abs(z), self.lamda1), 0, w), z, n  # NaN stays


@op("_sparse_adagrad_update", inputs=("weight", "grad", "history"), aux=("history",))
class AdagradUpdate(Update):
    """The weight moved by the gradient over the root of the sum of all its squares."""

    epsilon: float = param(1e-7, doc="Added to the sum of squares.")

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = self.clipped(grad * self.rescale_grad)
        history = states[0] + g * g
        step = g / fn.sqrt(history + self.epsilon) + weight * self.wd
        return weight - step * self.lr, history


@op("ftml_update", inputs=("weight", "grad", "d", "v", "z"), aux=("d", "v", "z"))
class FtmlUpdate(Update):
    """Follow the moving leader."""

    beta1: float = param(0.6, low=0, high=1, doc="How much of the leader stays.")
    beta2: float = param(0.999, low=0, high=1, doc="How much of the mean square stays.")
    epsilon: float = param(1e-8, doc="Added to the root.")
    t: int = param(low=1, doc="Which update this is, from 1 on.")
    clip_grad: float = param(-1.0, doc="Bound of the gradient; none if negative.")
    clip_gradient = -1.0  # no field: it has another name here

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g = bounded(grad * self.rescale_grad + weight * self.wd, self.clip_grad)
        v = states[1] * self.beta2 + g * g * (1 - self.beta2)
        root = fn.sqrt(v / (1 - self.beta2**self.t)) + self.epsilon
        d = root * ((1 - self.beta1**self.t) / self.lr)
        z = states[2] * self.beta1 + g * (1 - self.beta1) - (d - states[0] * self.beta1) * weight
        return -z / d, d, v, z
