"""Optimizer updates of several weights at once, and those that scale steps by norms (LAMB, LARS).

A call has each weight with its gradient and states side by side, as MXNet's has.
"""

from __future__ import annotations

from typing import Any, ClassVar

from gnomon.base import ParamError, complaint
from gnomon.dtype import float32
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ops.infer import Shapes, Types
from gnomon.ops.op import Op, numbered, op
from gnomon.ops.param import Dims, Floats, count, declared, param
from gnomon.ops.update import (
    MpSgdMomUpdate,
    MpSgdUpdate,
    MultiPrecision,
    SgdMomUpdate,
    SgdUpdate,
    Update,
)

MP = "weight32"


def one(number: Expr, like: Expr, k: int = 0) -> Expr:
    """Element `k` of a vector, at every element of `like`."""
    element = ext.reshape(ext.slice_(number, (k,), (k + 1,)), ())
    return ext.broadcast_to(cast(element, like.dtype), like.shape)


def length(e: Expr) -> Expr:
    """The root of the sum of squares, at every element."""
    wide = cast(e, float32) if e.dtype.size < 4 else e
    total = ext.reduce(wide * wide, "sum", tuple(range(e.ndim)), keepdims=True)
    return ext.broadcast_to(cast(fn.sqrt(total), e.dtype), e.shape)


def trusted(r1: Expr, r2: Expr, low: float, high: float) -> Expr:
    """What LAMB multiplies a rate by: the bounded length of a weight over that of its step."""
    r1 = r1 if low < 0 else fn.maximum(r1, low)
    r1 = r1 if high < 0 else fn.minimum(r1, high)
    zero = fn.logical_or(fn.eq(r1, 0), fn.eq(r2, 0))
    return fn.where(zero, 1.0, r1 / fn.where(zero, 1.0, r2))


class Adam(Update):
    """What Adam's relatives share: running means of the gradient and of its square."""

    beta1: float = param(0.9, doc="How much of the mean stays.")
    beta2: float = param(0.999, doc="How much of the mean square stays.")
    epsilon: float = param(1e-8, doc="Added to the root.")

    def means(self, g: Expr, mean: Expr, var: Expr) -> tuple[Expr, Expr]:
        """The new means."""
        return mean * self.beta1 + g * (1 - self.beta1), var * self.beta2 + g * g * (1 - self.beta2)


class AdamW(Adam):
    """With a decay of its own; where `rescale_grad`, an array, is not finite or 0, nothing."""

    leading = ("lr", "beta1", "beta2", "epsilon", "wd", "eta", "clip_gradient")
    eta: float = param(doc="Factor of the whole step.")
    rescale_grad: Any = 1.0  # no field: an input

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        scale = one(self.rescale_grad, weight) if isinstance(self.rescale_grad, Expr) else None
        mean, var = states
        if scale is None:
            raise self.wrong("rescale_grad", "an array")
        new_mean, new_var = self.means(self.clipped(grad * scale), mean, var)
        step = new_mean / (fn.sqrt(new_var) + self.epsilon) * self.lr + weight * self.wd
        valid = fn.logical_and(fn.lt(fn.abs(scale), float("inf")), fn.ne(scale, 0))
        pairs = ((weight - step * self.eta, weight), (new_mean, mean), (new_var, var))
        return tuple(fn.where(valid, new, old) for new, old in pairs)


class MpAdamW(AdamW, MultiPrecision):
    """The same on a float32 copy."""


class Lamb(Adam):
    """A step in Adam's direction, as long as the weight allows; `t` counts updates from 1 on."""

    epsilon: float = param(1e-6, doc="Added to the root.")
    bias_correction: bool = param(True, doc="Make up for means that begin at 0.")
    lower_bound: float = param(-1.0, doc="Least length of a weight; none if negative.")
    upper_bound: float = param(-1.0, doc="Greatest length of a weight; none if negative.")
    t: int = 1

    def direction(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        """Where the weight is to go, and the new means."""
        mean, var = self.means(self.clipped(grad * self.rescale_grad), states[0], states[1])
        m, v = mean, var
        if self.bias_correction:
            m, v = mean / (1 - self.beta1**self.t), var / (1 - self.beta2**self.t)
        return m / (fn.sqrt(v) + self.epsilon) + weight * self.wd, mean, var

    def new(self, weight: Expr, grad: Expr, *states: Expr) -> tuple[Expr, ...]:
        g, mean, var = self.direction(weight, grad, *states)
        ratio = trusted(length(weight), length(g), self.lower_bound, self.upper_bound)
        return weight - g * ratio * self.lr, mean, var


class MpLamb(Lamb, MultiPrecision):
    """The same on a float32 copy."""


# -- several weights ------------------------------------------------------------------------------


class Many(Op):
    """What updates of several weights share: `single` says what becomes of one.

    `own` are fields with a number for each weight, and what `single` calls them; `shared` are
    inputs behind all weights that all of them read.
    """

    num_weights: int = count(1, doc="How many weights there are.")
    single: ClassVar[type[Update]]
    states: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[dict[str, str]] = {"lrs": "lr", "wds": "wd"}
    shared: ClassVar[tuple[str, ...]] = ()
    interleaved = True
    gradient = Op.without_gradient

    @property
    def count(self) -> int:
        """How many weights there are."""
        return int(getattr(self, str(self.variadic)))

    def check(self) -> None:
        for name in self.own:
            if len(getattr(self, name)) != self.count:
                expected = f"{self.count} numbers, one for each weight"
                raise ParamError(complaint(self.name, name, expected, getattr(self, name)))

    def arguments(self) -> tuple[str, ...]:
        pairs = (f"{n}_{k}" for k in range(self.count) for n in ("weight", "grad"))
        return (*pairs, *self.shared)

    def auxiliary(self) -> tuple[str, ...]:
        return tuple(f"{n}_{k}" for k in range(self.count) for n in self.states)

    def called(self) -> tuple[str, ...]:
        each = ("weight", "grad", *self.states)
        return (*(f"{n}_{k}" for k in range(self.count) for n in each), *self.shared)

    def outputs(self) -> tuple[str, ...]:
        return numbered(self.count)

    def shapes(self, s: Shapes) -> None:
        for k, output in enumerate(self.outputs()):
            s.same(f"weight_{k}", f"grad_{k}", *(f"{n}_{k}" for n in self.states), output)
        for name in self.shared:
            s[name] = (self.count if name in ("lrs", "wds") else 1,)

    def types(self, t: Types) -> None:
        mixed = MP in self.states
        for k, output in enumerate(self.outputs()):
            names = [f"{n}_{k}" for n in self.states]
            t.same(f"weight_{k}", f"grad_{k}", output, *(() if mixed else names))
            for name in names if mixed else ():
                t[name] = float32
        for name in self.shared:
            t[name] = float32

    def each(self, inputs: Any, aux: Any) -> list[tuple[Update, list[Any], list[Any]]]:
        """The update of each weight, its weight and gradient, and its states."""
        found, n = [], len(self.states)
        behind = dict(zip(self.shared, inputs[2 * self.count :], strict=True))
        for k in range(self.count):
            pair, own = list(inputs[2 * k : 2 * k + 2]), list(aux[n * k : n * k + n])
            found.append(
                (self.update(k, own[-1] if MP in self.states else pair[0], behind), pair, own)
            )
        return found

    def update(self, k: int, like: Expr, behind: dict[str, Expr]) -> Update:
        """What becomes of weight `k`: fields of its own, and numbers that are inputs."""
        fields = declared(self.single)
        values = {n: f.default for n, f in fields.items() if not f.required}
        values |= {n: getattr(self, n) for n in self.fields if n in fields}
        values |= {theirs: getattr(self, ours)[k] for ours, theirs in self.own.items()}
        for name, number in behind.items():
            own = {"lrs": "lr", "wds": "wd"}.get(name)
            values[own or name] = one(number, like, k) if own else number
        made = object.__new__(self.single)
        made.__dict__.update(values)
        return made

    def forward(self, *inputs: Expr) -> tuple[Expr, ...]:
        rows = 2 * self.count + len(self.shared)
        every = self.each(inputs[:rows], inputs[rows:])
        return tuple(one.forward(*pair, *own) for one, pair, own in every)

    def updates(self, inputs: Any, aux: Any, outputs: Any, train: bool = True) -> dict[int, Expr]:
        found: dict[int, Expr] = {}
        for k, (one, pair, own) in enumerate(self.each(inputs, aux)):
            new = one.updates(pair, own, None)
            found |= {len(self.states) * k + number: value for number, value in new.items()}
        return found


class WithRates(Many):
    """With rates and decays as parameters."""

    leading = ("lrs", "wds")
    lrs: Floats = param(doc="Learning rates.")
    wds: Floats = param(doc="Weight decays.")
    rescale_grad: float = param(1.0, doc="What gradients are multiplied by first.")
    clip_gradient: float = param(-1.0, doc="Bound of gradients after that; none if negative.")


class WithLoadedRates(Many):
    """With rates and decays as inputs."""

    own: ClassVar[dict[str, str]] = {}
    shared = ("lrs", "wds")
    rescale_grad: float = param(1.0, doc="What gradients are multiplied by first.")
    clip_gradient: float = param(-1.0, doc="Bound of gradients after that; none if negative.")


class WithMomentum(Many):
    """With a momentum."""

    momentum: float = param(0.0, doc="How much of the momentum stays.")


def several(name: str, base: type[Many], single: type[Update], *states: str) -> None:
    """Declare the operator that does to several weights what `single` does to one."""
    bases = (WithMomentum, base) if "mom" in states else (base,)
    doc = f"Several weights at once: {(single.__doc__ or '').partition(chr(10))[0].lower()}"
    made = type(name, bases, {"__doc__": doc, "single": single, "states": states})
    op(name, variadic="num_weights", aux=states)(made)


for _prefix, _base in (("", WithRates), ("preloaded_", WithLoadedRates)):
    several(f"{_prefix}multi_sgd_update", _base, SgdUpdate)
    several(f"{_prefix}multi_sgd_mom_update", _base, SgdMomUpdate, "mom")
    several(f"{_prefix}multi_mp_sgd_update", _base, MpSgdUpdate, MP)
    several(f"{_prefix}multi_mp_sgd_mom_update", _base, MpSgdMomUpdate, "mom", MP)


class ManyAdamW(Many):
    """Several weights at once by Adam with a decay of its own."""

    own: ClassVar[dict[str, str]] = {"lrs": "lr", "wds": "wd", "etas": "eta"}
    shared = ("rescale_grad",)
    leading = ("lrs", "beta1", "beta2", "epsilon", "wds", "etas", "clip_gradient")
    lrs: Floats = param(doc="Learning rates.")
    wds: Floats = param(doc="Weight decays.")
    etas: Floats = param(doc="Factors of the whole steps.")
    beta1: float = param(0.9, doc="How much of the mean stays.")
    beta2: float = param(0.999, doc="How much of the mean square stays.")
    epsilon: float = param(1e-8, doc="Added to the root.")
    clip_gradient: float = param(-1.0, doc="Bound of gradients; none if negative.")


several("_multi_adamw_update", ManyAdamW, AdamW, "mean", "var")
several("_multi_mp_adamw_update", ManyAdamW, MpAdamW, "mean", "var", MP)


class ManyLamb(Many):
    """Several weights at once by LAMB."""

    own: ClassVar[dict[str, str]] = {"learning_rates": "lr", "wds": "wd", "step_count": "t"}
    leading = ("learning_rates", "beta1", "beta2", "epsilon", "wds")
    learning_rates: Floats = param(doc="Learning rates.")
    wds: Floats = param(doc="Weight decays.")
    step_count: Dims = param(low=1, doc="Which update of each weight this is, from 1 on.")
    beta1: float = param(0.9, doc="How much of the mean stays.")
    beta2: float = param(0.999, doc="How much of the mean square stays.")
    epsilon: float = param(1e-6, doc="Added to the root.")
    rescale_grad: float = param(1.0, doc="What gradients are multiplied by first.")
    lower_bound: float = param(-1.0, doc="Least length of a weight; none if negative.")
    upper_bound: float = param(-1.0, doc="Greatest length of a weight; none if negative.")
    clip_gradient: float = param(-1.0, doc="Bound of gradients; none if negative.")
    bias_correction: bool = param(True, doc="Make up for means that begin at 0.")
    num_tensors: int = param(1, low=1, doc="How many weights there are.")
    num_weights = 0  # no field: it has another name here


for _name, _single, _states in (
    ("_multi_lamb_update", Lamb, ("mean", "var")),
    ("_multi_mp_lamb_update", MpLamb, ("mean", "var", MP)),
):
    _doc = "Several weights at once by LAMB: steps as long as the weights allow."
    _parts = {"__doc__": _doc, "single": _single, "states": _states}
    op(_name, variadic="num_tensors", aux=_states)(type(_name, (ManyLamb,), _parts))
