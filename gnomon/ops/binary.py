"""Element-wise operators of two inputs: a row gives every form of one.

The forms of `sub`, say, are `elemwise_sub` (equal shapes), `broadcast_sub` (axes of 1 are
stretched), `_minus_scalar` (a number on the right) and `_rminus_scalar` (a number on the left).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.dtype import DType, float64, int64
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr, cast
from gnomon.ground.record import record
from gnomon.ops.infer import UNKNOWN, Shape, Shapes, Types
from gnomon.ops.op import Op, op
from gnomon.ops.param import count, param
from gnomon.ops.unary import like

Function = Callable[[Any, Any], Expr]
#: operator -> the names of its forms; what `NDArray` and `Symbol` look Python's operators up in
FORMS: dict[str, Forms] = {}


@record()
class Forms:
    """The names of one function's forms."""

    elemwise: str
    broadcast: str
    scalar: str
    reversed: str | None


def binary(
    name: str, function: Function, doc: str, *, plain: str = "", word: str = "", swap: bool = False
) -> None:
    """Declare every form of `function`; `swap` where the order of the operands matters.

    `plain` is the name of the form for equal shapes (its default is `_name`), `word` what the
    scalar forms are called (its default is `name`).
    """
    plain, word = plain or f"_{name}", word or name
    title = "".join(part.capitalize() for part in word.split("_"))
    forms = Forms(
        plain, f"broadcast_{name}", f"_{word}_scalar", f"_r{word}_scalar" if swap else None
    )
    FORMS[name] = forms
    _declare(forms.elemwise, Elemwise, function, f"{doc} Shapes are equal.", _ELEMWISE.get(name))
    also = _BROADCAST.get(name, ())
    _declare(forms.broadcast, Broadcast, function, f"{doc} Axes of 1 are stretched.", also)
    also = (f"_{title}Scalar",)
    _declare(forms.scalar, WithScalar, function, f"{doc} The right one is a number.", also)
    if forms.reversed:
        also = (f"_R{title}Scalar",)
        mirrored: Function = lambda a, b: function(b, a)  # noqa: E731
        _declare(forms.reversed, WithScalar, mirrored, f"{doc} The left one is a number.", also)


def _declare(
    name: str, base: type[Op], function: Function, doc: str, aliases: tuple[str, ...] | None
) -> None:
    given = {"__doc__": doc, "function": staticmethod(function)}
    if base is WithScalar:  # whether a number beside integers counts modulo a power of two
        given["modular"] = name.removeprefix("_").removeprefix("r") in _MODULAR
    cls = type(name, (base,), given)
    inputs = ("data",) if base is WithScalar else ("lhs", "rhs")
    if aliases is None:  # `_Not_Equal` for `_not_equal`
        aliases = ("_" + "_".join(part.capitalize() for part in name[1:].split("_")),)
    op(name, inputs=inputs, aliases=aliases)(cls)


class Elemwise(Op):
    """Both inputs have one shape."""

    elementwise = True
    function: Function

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        return self.function(lhs, rhs)


class Broadcast(Op):
    """Axes of 1 are stretched; axes meet from the right."""

    elementwise = stretches = True
    function: Function

    def shapes(self, s: Shapes) -> None:
        lhs, rhs = s.need("lhs"), s.need("rhs")
        s["output"] = stretched(s, lhs, rhs)

    def forward(self, lhs: Expr, rhs: Expr) -> Expr:
        shape = self.infer_shape([lhs.shape, rhs.shape], zero_unknown=False)[1][0]
        assert shape is not None
        return self.function(ext.broadcast_to(lhs, shape), ext.broadcast_to(rhs, shape))


def stretched(s: Shapes, lhs: Shape, rhs: Shape) -> Shape:
    """The shape of `lhs` and `rhs` stretched over each other, -1 where it is not known."""
    rank = max(len(lhs), len(rhs))
    left, right = ((1,) * (rank - len(x)) + x for x in (lhs, rhs))
    return tuple(_stretch(s, a, b) for a, b in zip(left, right, strict=True))


def _stretch(s: Shapes, a: int, b: int) -> int:
    if 1 in (a, b) or a == b:
        return a if b == 1 else b
    if UNKNOWN in (a, b):  # a size other than 1 on one side decides
        return max(a, b)
    raise s.refuse("rhs", f"a shape that broadcasts over {s['lhs']}", s["rhs"])


class Counted(Op):
    """The other operand is a number, which takes the dtype of the output.

    That is the dtype of `data`, but truth values are counted, and a number that is not `is_int`
    makes integers floats.
    """

    scalar: float = param(1.0, doc="The number.")
    is_int: bool = param(True, doc="False: the number beside integers or bool makes float64.")

    def types(self, t: Types) -> None:
        if t["data"] is None:
            t.same()
        else:
            t["output"] = self.counted(t["data"])

    def counted(self, dtype: DType) -> DType:
        """The dtype of the output on `data` of `dtype`."""
        if dtype.kind == "f":
            return dtype
        if not self.is_int:
            return float64
        return int64 if dtype.kind == "b" else dtype


class WithScalar(Counted):
    """A function of `data` and a number."""

    elementwise = True
    function: Function
    modular = False

    def numbers(self) -> dict[str, float]:
        return {"scalar": self.scalar}

    def of_reals(self) -> Op:
        return self.parse({"scalar": float(int64.nearest(self.scalar))})

    def forward(self, data: Expr) -> Expr:
        data = cast(data, self.counted(data.dtype))
        return self.function(data, like(self.scalar, data, self.modular))


_MODULAR = ("plus_scalar", "minus_scalar", "mul_scalar")
_ELEMWISE = {
    n: (f"_{w}", f"_{w.capitalize()}", f"_{n}", f"_sparse_elemwise_{n}")
    for n, w in (("add", "plus"), ("sub", "minus"))
} | {n: (f"_{n}", f"_{n.capitalize()}", f"_sparse_elemwise_{n}") for n in ("mul", "div")}
_BROADCAST = {
    n: (f"broadcast_{w}", f"_sparse_broadcast_{n}", f"_sparse_broadcast_{w}")
    for n, w in (("add", "plus"), ("sub", "minus"))
} | {n: (f"_sparse_broadcast_{n}",) for n in ("mul", "div")}

binary("add", lambda a, b: a + b, "The sum.", plain="elemwise_add", word="plus")
binary("sub", lambda a, b: a - b, "The difference.", plain="elemwise_sub", word="minus", swap=True)
binary("mul", lambda a, b: a * b, "The product.", plain="elemwise_mul")
binary("div", lambda a, b: a / b, "The quotient.", plain="elemwise_div", swap=True)
binary("mod", fn.mod, "The remainder, with the sign of the divisor.", swap=True)
binary("power", fn.power, "The left one to the power of the right one.", swap=True)
binary("maximum", fn.maximum, "The greater of both.")
binary("minimum", fn.minimum, "The lesser of both.")
binary("hypot", fn.hypot, "The length of the hypotenuse over both.")
binary("equal", fn.eq, "1 where both are equal, else 0.")
binary("not_equal", fn.ne, "1 where both differ, else 0.")
binary("greater", fn.gt, "1 where the left one is greater, else 0.")
binary("greater_equal", fn.ge, "1 where the left one is not less, else 0.")
binary("lesser", fn.lt, "1 where the left one is less, else 0.")
binary("lesser_equal", fn.le, "1 where the left one is not greater, else 0.")
binary("logical_and", fn.logical_and, "1 where neither is 0, else 0.")
binary("logical_or", fn.logical_or, "1 where one is not 0, else 0.")
binary("logical_xor", fn.logical_xor, "1 where exactly one is 0, else 0.")


@op("_grad_add", inputs=("lhs", "rhs"))
class GradAdd(Elemwise):
    """The sum of two gradients."""

    function = staticmethod(lambda a, b: a + b)


@op(
    "add_n",
    variadic="num_args",
    aliases=("ElementWiseSum", "_sparse_add_n", "_sparse_ElementWiseSum"),
)
class AddN(Op):
    """The sum of all inputs, which have one shape."""

    elementwise = True
    num_args: int = count(doc="How many inputs there are.")

    def forward(self, *args: Expr) -> Expr:
        total = args[0]
        for x in args[1:]:
            total = total + x
        return total if len(args) > 1 else fn.identity(total)
