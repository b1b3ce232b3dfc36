"""Element-wise operators of one input: a row gives operator, gradient and documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.dtype import DType
from gnomon.expr import fn
from gnomon.expr.node import Expr, Scalar, cast
from gnomon.ops.case import case
from gnomon.ops.create import full
from gnomon.ops.infer import Free, Shape, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import param

DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8")


def unary(
    name: str,
    function: Callable[[Any], Expr],
    doc: str,
    *aliases: str,
    sparse: bool = True,
    reference: Callable[[Any], Any] | None = None,
    between: tuple[float, float] = (-2, 2),
) -> type[Op]:
    """Declare the operator that maps `function`; most have a second name `_sparse_...`.

    `reference` is the same by NumPy, which the tests compare it with at numbers `between` two.
    """

    class Unary(Op):
        elementwise = True

        def forward(self, data: Expr) -> Expr:
            return function(data)

    if reference is not None:
        Unary.reference = staticmethod(reference)
        low, high = between
        Unary.cases = tuple(case(shape, low=low, high=high) for shape in ((7,), (2, 3), (0, 3)))
    Unary.__name__ = Unary.__qualname__ = name
    Unary.__doc__ = doc
    more = (f"_sparse_{name}",) if sparse else ()
    return op(name, aliases=(*more, *aliases))(Unary)


def rint(x: Expr) -> Expr:
    """The nearest integer; halves go down, as MXNet's do."""
    below = fn.floor(x)
    rest = x - below
    return fn.copysign(below + fn.gt(rest + rest, 1), x)  # -0.3 and -0.0 become -0.0


unary("abs", fn.abs, "The absolute value.")
unary("negative", fn.neg, "The value with the other sign.")
unary("reciprocal", fn.reciprocal, "One divided by the value.", sparse=False)
unary("sign", fn.sign, "-1, 0 or 1 as the value is negative, zero or positive.")
unary("square", fn.square, "The value times itself.")
unary("sqrt", fn.sqrt, "The square root.")
unary("rsqrt", fn.rsqrt, "One divided by the square root.")
unary("cbrt", fn.cbrt, "The cube root.")
unary("rcbrt", fn.rcbrt, "One divided by the cube root.", sparse=False)
unary("exp", fn.exp, "e to the power of the value.")
unary("expm1", fn.expm1, "e to the power of the value, minus 1; exact near 0.")
unary("log", fn.log, "The natural logarithm.")
unary("log10", fn.log10, "The logarithm to base 10.")
unary("log2", fn.log2, "The logarithm to base 2.")
unary("log1p", fn.log1p, "The natural logarithm of 1 plus the value; exact near 0.")
unary("round", fn.round, "The nearest integer; halves go away from zero.")
unary("rint", rint, "The nearest integer; halves go down.")
unary("ceil", fn.ceil, "The least integer not below the value.")
unary("floor", fn.floor, "The greatest integer not above the value.")
unary("trunc", fn.trunc, "The value without its fraction.")
unary("fix", fn.fix, "The nearest integer towards zero.")
unary("sin", fn.sin, "The sine of radians.")
unary("cos", fn.cos, "The cosine of radians.")
unary("tan", fn.tan, "The tangent of radians.")
unary("arcsin", fn.arcsin, "The angle in radians whose sine is the value.")
unary("arccos", fn.arccos, "The angle in radians whose cosine is the value.")
unary("arctan", fn.arctan, "The angle in radians whose tangent is the value.")
unary("degrees", fn.degrees, "Radians as degrees.")
unary("radians", fn.radians, "Degrees as radians.")
unary("sinh", fn.sinh, "The hyperbolic sine.")
unary("cosh", fn.cosh, "The hyperbolic cosine.")
unary("tanh", fn.tanh, "The hyperbolic tangent.")
unary("arcsinh", fn.arcsinh, "The inverse of the hyperbolic sine.")
unary("arccosh", fn.arccosh, "The inverse of the hyperbolic cosine.")
unary("arctanh", fn.arctanh, "The inverse of the hyperbolic tangent.")
unary("erf", fn.erf, "The Gauss error function.", sparse=False)
unary("erfinv", fn.erfinv, "The inverse of the Gauss error function.", sparse=False)
unary("gamma", fn.gamma, "The gamma function.")
unary("gammaln", fn.gammaln, "The logarithm of the absolute value of the gamma function.")
unary("relu", fn.relu, "The value where it is positive, else 0.")
unary("sigmoid", fn.sigmoid, "1 / (1 + exp(-x)).")
unary("softsign", fn.softsign, "x / (1 + |x|).", sparse=False)
unary("logical_not", fn.logical_not, "1 where the value is 0, else 0.", sparse=False)
unary("_copy", fn.identity, "The value itself.", "identity", sparse=False)


@op("hard_sigmoid")
class HardSigmoid(Op):
    """`alpha * x + beta`, kept between 0 and 1."""

    elementwise = True
    alpha: float = param(0.2, doc="Slope.")
    beta: float = param(0.5, doc="Value at 0.")

    def forward(self, data: Expr) -> Expr:
        return fn.clip(data * self.alpha + self.beta, 0, 1)


@op("clip", aliases=("_sparse_clip",))
class Clip(Op):
    """The value, kept between `a_min` and `a_max`; the gradient is 0 outside.

    Where `a_min` is above `a_max`, every value is outside: those above `a_max` become `a_max`, the
    others `a_min`.
    """

    elementwise = True
    a_min: float = param(doc="Least value.")
    a_max: float = param(doc="Greatest value.")

    def numbers(self) -> dict[str, float]:
        return {"a_min": self.a_min, "a_max": self.a_max}

    def forward(self, data: Expr) -> Expr:
        low, high = self.bounds(data)
        return fn.where(data > high, high, fn.maximum(data, low))

    def gradient(self, grad: Expr, data: Expr) -> Expr:
        low, high = self.bounds(data)  # at a bound it is 1, for a NaN too
        return fn.where(fn.logical_or(data < low, data > high), like(0, grad), grad)

    def bounds(self, data: Expr) -> tuple[Scalar, Scalar]:
        """Both in the dtype of `data`."""
        return like(self.a_min, data), like(self.a_max, data)


def like(number: float, data: Expr, modular: bool = False) -> Scalar:
    """`number` in the dtype of `data`: see `Scalar`."""
    return Scalar(number, data.dtype, modular)


@op("Cast", aliases=("cast",))
class Cast(Op):
    """The value in another dtype: toward zero, saturating, NaN as 0."""

    elementwise = True
    dtype: DType = param(choices=DTYPES, doc="Dtype of the output.")

    def types(self, t: Types) -> None:
        t["output"] = self.dtype

    def forward(self, data: Expr) -> Expr:
        return cast(data, self.dtype)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr]:
        return (cast(out_grads[0], inputs[0].dtype),)


@op("BlockGrad", aliases=("stop_gradient", "_sparse_stop_gradient"))
class BlockGrad(Op):
    """The value itself; no gradient flows back."""

    elementwise = True

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[None]:
        return (None,)


@op("make_loss", outputs=("loss",), aliases=("_sparse_make_loss",))
class MakeLossSimple(Op):
    """The value itself, as a loss: its gradient is 1 whatever comes from above."""

    def forward(self, data: Expr) -> Expr:
        return fn.identity(data)

    def backward(self, out_grads: Any, inputs: Any, outputs: Any) -> tuple[Expr]:
        return (full(inputs[0].shape, 1, inputs[0].dtype),)


@op("zeros_like", aliases=("_sparse_zeros_like",))
class ZerosLike(Op):
    """Zeros in the shape and dtype of `data`."""

    def free(self, data: Shape) -> Free:
        return Free(data)

    def forward(self, data: Expr) -> Expr:
        return full(data.shape, 0, data.dtype)


@op("ones_like")
class OnesLike(Op):
    """Ones in the shape and dtype of `data`."""

    def free(self, data: Shape) -> Free:
        return Free(data)

    def forward(self, data: Expr) -> Expr:
        return full(data.shape, 1, data.dtype)
