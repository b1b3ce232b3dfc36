"""Scalar functions: what is mapped over expressions, one row each in `SCALAR`.

A `ScalarFn` is a formula with a name. Built-in functions and those that `@op` makes of a user's
Python function are the same record: the compiler writes either into the loop, and derives either's
gradient.

Rules that hold for all of them: operands have one dtype and the result has it too; comparisons give
0 or 1; half floats are computed in float32; what exists in floating point only is computed in
float64 for integers and converted back (toward zero, saturating); booleans are computed as int32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, ParamError, complaint, shown
from gnomon.dtype import DType
from gnomon.expr.functions.derivative import best_derivative
from gnomon.expr.functions.formula import (
    SHIFTS,
    Formula,
    Operand,
    Sym,
    Tape,
    prim,
    select,
    write,
)
from gnomon.expr.functions.machine import NumpyMachine, TermMachine, near
from gnomon.expr.functions.primitive import PRIMITIVES, convert
from gnomon.expr.term import Arena, Term
from gnomon.ground.record import cached_property

if TYPE_CHECKING:
    from gnomon.expr.node import Expr


class ScalarFn:
    """A function of `arity` scalars, given by its formula.

    `derivatives` declares the partial derivatives, one function of symbols `(arguments..., value)`
    each; without it they are derived. `integral` says that integers pass unchanged. `of` is the
    function whose value is the last argument, of a derivative that uses it.

    >>> SCALAR["hypot"](3.0, 4.0)
    5.0
    >>> SCALAR["tanh"].grad(0).name, SCALAR["tanh"].grad(0).uses_value
    ('tanh.grad(0)', True)
    """

    def __init__(
        self,
        name: str,
        body: Formula,
        derivatives: Sequence[Callable[..., Operand]] | None = None,
        integral: bool = False,
        doc: str = "",
        of: ScalarFn | None = None,
    ) -> None:
        self.name, self.body, self.arity = name, body, body.arity
        self.integral, self.of = integral, of
        self.derivatives = derivatives
        self.__name__, self.__doc__ = name, doc or type(self).__doc__
        self._grads: dict[int, ScalarFn] = {}
        self.overridden = False

    @property
    def uses_value(self) -> bool:
        """Whether the last argument is the value of the function that this is a derivative of."""
        return self.of is not None

    @property
    def formula(self) -> Formula | None:
        """The formula, or None for a function that is itself a row of `PRIMITIVES`."""
        return None if self.primitive else self.body

    @property
    def primitive(self) -> str | None:
        """The name in `PRIMITIVES` of what this function is, if it is nothing else."""
        steps = self.body.steps
        whole = len(steps) == 1 and steps[0].refs == tuple(range(self.arity))
        if not whole or self.body.truth or steps[0].op in ("const", "number"):
            return None
        return steps[0].op if isinstance(steps[0].op, str) else None

    @property
    def whole(self) -> bool:
        """Whether other formulas keep this function as one step: more is declared than its body."""
        return self.integral or self.overridden or self.derivatives is not None

    @property
    def floats(self) -> bool:
        """Whether integers have to be computed in float64."""
        return self.body.floats and not self.integral

    @property
    def key(self) -> Hashable:
        """Equal for functions that compute the same by the same steps, whatever their names."""
        return (self.body, self.integral)

    def text(self) -> tuple[Hashable, ...]:
        """`key` as nested tuples of plain values, the same in every process."""
        return (self.integral, *self.body.text())

    @property
    def constant(self) -> float | None:
        """The value, where it depends on no argument."""
        steps = self.body.steps
        alone = len(steps) == 1 and steps[0].op == "const"
        return float(steps[0].value or 0) if alone else None

    @cached_property
    def trimmed(self) -> tuple[ScalarFn, tuple[int, ...]]:
        """The same function of only the arguments it depends on, and their numbers."""
        used = self.body.used()
        if len(used) == self.arity:
            return self, used
        tape = Tape(len(used))
        args = [
            tape.symbols[used.index(k)] if k in used else tape.const(0) for k in range(self.arity)
        ]
        body = tape.formula(self.body.replay(args, tape))
        return ScalarFn(self.name, body, integral=self.integral), used

    @cached_property
    def scaled(self) -> ScalarFn | None:
        """This function times one operand more, where it chooses between 0 and something else.

        None elsewhere. The choice is then between 0 and a product: infinity times 0 would be NaN.
        """
        body = self.body
        step = body.steps[body.result - body.arity] if body.result >= body.arity else None
        if step is None or step.op != "select":
            return None
        branches = [body.steps[r - body.arity] for r in step.refs[1:] if r >= body.arity]
        if not any(b.op == "const" and b.value == 0 for b in branches):
            return None
        tape = Tape(self.arity + 1, simplify=True)
        *args, factor = tape.symbols
        return ScalarFn(f"{self.name} scaled", tape.formula(body.replay(args, tape) * factor))

    def terms(self, arena: Arena, args: Sequence[Term]) -> Term:
        """The value as a Term of the arguments' dtype."""
        dtype = args[-1].dtype
        if self.integral and dtype.kind != "f":
            return args[0]
        work = self.working(dtype)
        machine = TermMachine(arena, work)
        value: Term = near(self.body.replay([arena.cast(a, work) for a in args], machine))
        if self.body.truth:
            value = arena.cast(value, work)
        return arena.cast(value, dtype)

    def working(self, dtype: DType) -> DType:
        """The dtype in which operands of `dtype` are computed."""
        if dtype.kind == "f":
            return dt.float32 if dtype.size == 2 else dtype
        if self.floats:
            return dt.float64
        if dtype.kind == "b" and not (self.body.bits and self.body.logical):
            return dt.int32
        return dtype

    def check_dtype(self, dtype: DType) -> None:
        """A DTypeError where operators of this function work on bits that `dtype` has not."""
        shifts = dtype.kind == "b" and [s for s in self.body.bits if s in SHIFTS.values()]
        signs = self.body.bits if dtype.kind == "f" else shifts
        if signs:
            expected = f"integers for {' '.join(signs)}"
            message = complaint(self.name, "operands", expected, dtype.name)
            raise DTypeError(
                f"{message}; convert with tcast, or join comparisons by fn.logical_and"
            )

    def numpy(self, *args: Any) -> Any:
        """The value over arrays of one dtype, which broadcast: the function's meaning."""
        weak = [a if isinstance(a, int | float) else np.asarray(a) for a in args]
        dtype = dt.of(np.result_type(*weak))
        if self.integral and dtype.kind != "f":
            return np.asarray(args[0])
        self.check_dtype(dtype)
        work = self.working(dtype).numpy
        machine = NumpyMachine(work)
        with np.errstate(all="ignore"):
            operands = [convert(a, work) for a in np.broadcast_arrays(*args)]
            value = np.asarray(near(self.body.replay(operands, machine)))
            value = np.broadcast_to(value.astype(work), operands[0].shape)
            return convert(value, dtype.numpy)

    def grad(self, k: int) -> ScalarFn:
        """The partial derivative with respect to argument `k`: a function of the same arguments.

        Where `uses_value` is set on what comes back, it takes one argument more, this function's
        value, and computes that itself where it is left out. `constant` and `trimmed` say which
        arguments it really needs.
        """
        self._check_argument("grad", k)
        if k not in self._grads:
            self._grads[k] = self._derive(k)
        return self._grads[k]

    def _check_argument(self, where: str, k: int) -> None:
        if not isinstance(k, int) or not 0 <= k < self.arity:
            expected = f"the number of one of {self.arity} arguments, from 0"
            raise ParamError(complaint(f"{self.name}.{where}", "k", expected, shown(k)))

    def _derive(self, k: int) -> ScalarFn:
        name = f"{self.name}.grad({k})"
        if self.derivatives is None:
            body, by_value = best_derivative(self.body, k)
            return ScalarFn(name, body, of=self if by_value else None)
        rule = self.derivatives[k]
        body = write(self.arity + 1, rule, simplify=True)
        if self.arity in body.used():
            return ScalarFn(name, body, of=self)
        # without the value: the same body over one argument less
        return ScalarFn(name, write(self.arity, lambda *x: rule(*x, x[0]), simplify=True))

    def set_grad(self, k: int, fn: ScalarFn) -> ScalarFn:
        """Make `fn`, of the same arguments, the derivative by argument `k`; gives `fn`."""
        self._check_argument("set_grad", k)
        if not isinstance(fn, ScalarFn) or fn.arity != self.arity:
            expected = f"an operator of {self.arity} arguments (made by @op)"
            raise ParamError(complaint(f"{self.name}.set_grad", "fn", expected, shown(fn)))
        self._grads[k], self.overridden = fn, True
        return fn

    @overload
    def __call__(self, first: Expr, /, *rest: Any) -> Expr: ...

    @overload
    def __call__(self, *args: Any) -> Any: ...

    def __call__(self, *args: Any) -> Any:
        """Of expressions an expression; of arrays or numbers the value.

        Numbers count as floats, but where the function works on the bits of integers.
        """
        if self.of is not None and len(args) == self.arity - 1:
            args = (*args, self.of(*args))
        if len(args) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} arguments, got {len(args)}")
        for arg in args:
            if isinstance(arg, Sym):
                return arg.tape.call(self, *args)
            if hasattr(arg, "_map"):
                return arg._map(self, args)
        if any(isinstance(a, Term) for a in args):
            expected = "expressions, numbers or arrays: an index rule moves elements, mathematics"
            expected += f" is composed around the extension, as {self.name}(extension(x))"
            raise TypeError(complaint(self.name, "operands", expected, "a term of an index rule"))
        if all(isinstance(a, int | float) for a in args):
            if self.body.bits:
                return self.numpy(*args).item()
            return float(self.numpy(*map(np.float64, args)))
        try:
            return self.numpy(*args)
        except (TypeError, ValueError) as error:
            expected = "expressions, or numbers and arrays of one dtype that broadcast"
            got = ", ".join(type(a).__name__ for a in args)
            raise ParamError(
                complaint(self.name, "operands", expected, f"{got} ({error})")
            ) from None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Built-in functions, and by their names a program's, are themselves wherever they go."""
        if SCALAR.get(self.name) is self:
            return builtin, (self.name,)
        own = getattr(self, "__wrapped__", None)  # what `op` made it of
        return super().__reduce_ex__(protocol) if own is None else own.__qualname__

    def __repr__(self) -> str:
        return f"<scalar function {self.name}, {self.arity} arguments>"


SCALAR: dict[str, ScalarFn] = {}


def builtin(name: str) -> ScalarFn:
    """The row `name`."""
    return SCALAR[name]


def _row(
    name: str,
    arity: int,
    function: Callable[..., Operand],
    *derivatives: Callable[..., Operand],
    integral: bool = False,
) -> None:
    """Enter a function; `derivatives` of (arguments..., value), or none to have them derived."""
    SCALAR[name] = ScalarFn(name, write(arity, function), derivatives or None, integral)


def _primitive(name: str, primitive: str, integral: bool = False) -> None:
    arity = PRIMITIVES[primitive].arity
    _row(name, arity, functools.partial(prim, primitive), integral=integral)


def _truth(x: Sym) -> Sym:
    return x.tape.truth(x)


def _truncate(x: Sym) -> Sym:
    return prim("trunc", x)


def _round(x: Sym) -> Sym:
    whole = prim("trunc", x)  # x - whole is exact; ties go away from zero
    away = select(prim("abs", x - whole) >= 0.5, 1.0, 0.0)
    return whole + prim("copysign", away, x)


def _mod(a: Sym, b: Sym) -> Sym:
    """Python's remainder, with the sign of b; 0 where b is 0.

    0.0 where a, which is no zero, and b have other signs; else a 0 has the sign of a.
    """
    rest = prim("fmod", a, b)
    other = rest + select(rest != 0, b, 0)  # the sum of -0.0 and 0 is 0.0
    return select(b == 0, 0, select(prim("xor", a < 0, b < 0), other, rest))


def _hypot(a: Sym, b: Sym) -> Sym:
    a, b = prim("abs", a), prim("abs", b)
    big, small = prim("max", a, b), prim("min", a, b)
    ratio = small / big
    length = big * prim("sqrt", prim("fma", ratio, ratio, 1.0))
    infinite = (a == float("inf")) | (b == float("inf"))
    return select(infinite, float("inf"), select(big == 0, big, length))


def _logaddexp(a: Sym, b: Sym) -> Sym:
    far = prim("max", a, b) + prim("log1p", prim("exp", -prim("abs", a - b)))
    return select(a == b, a + 0.6931471805599453, far)  # infinities, too


def _share(a: Sym, b: Sym) -> Sym:
    """What a change of `a` does to `_logaddexp`."""
    return select(a == b, 0.5, _sigmoid(a - b))


def _sigmoid(x: Sym) -> Sym:
    e = prim("exp", select(x > 88.0, 88.0, x))  # from there on it is 1, in float64 too
    return e / (e + 1.0)


def _softplus(x: Sym) -> Sym:
    return prim("max", x, 0) + prim("log1p", prim("exp", -prim("abs", x)))


def _arcsinh(x: Sym) -> Sym:
    a = prim("abs", x)
    near = prim("log1p", a + a * a / (prim("sqrt", prim("fma", a, a, 1.0)) + 1.0))
    far = prim("log", a) + 0.6931471805599453
    return prim("copysign", select(a < 2.0**28, near, far), x)


def _arccosh(x: Sym) -> Sym:
    t = x - 1.0
    near = prim("log1p", t + prim("sqrt", prim("fma", t, t, t + t)))
    far = prim("log", x) + 0.6931471805599453
    inside = select(x < 2.0**28, near, far)
    return select(x < 1.0, prim("sqrt", t), inside)  # nan


def _arctanh(x: Sym) -> Sym:
    a = prim("abs", x)
    return prim("copysign", 0.5 * prim("log1p", (a + a) / (1.0 - a)), x)


def _softsign_slope(x: Sym, y: Sym) -> Sym:
    root = 1.0 / (prim("abs", x) + 1.0)
    return root * root


def _mish_slope(x: Sym, y: Sym) -> Sym:
    t = prim("tanh", _softplus(x))
    return t + x * (1.0 - t * t) * _sigmoid(x)


def _cosine(side: Sym, length: Sym) -> Sym:
    return select(length == 0, 0.0, side / length)


def _zero(*_: Sym) -> float:
    return 0.0


for _name in ("add", "sub", "mul", "div", "neg", "abs", "fma"):
    _primitive(_name, _name)
_primitive("maximum", "max")
_primitive("minimum", "min")
_row("identity", 1, lambda x: x)
_row("right", 2, lambda a, b: b)
_row("lt", 2, lambda a, b: a < b)
_row("le", 2, lambda a, b: a <= b)
_row("gt", 2, lambda a, b: a > b)
_row("ge", 2, lambda a, b: a >= b)
_row("eq", 2, lambda a, b: a == b)
_row("ne", 2, lambda a, b: a != b)
_row("logical_and", 2, lambda a, b: _truth(a) & _truth(b))
_row("logical_or", 2, lambda a, b: _truth(a) | _truth(b))
_row("logical_xor", 2, lambda a, b: _truth(a) ^ _truth(b))
_row("logical_not", 1, lambda a: a == 0)
_primitive("bitwise_and", "and")
_primitive("bitwise_or", "or")
_primitive("bitwise_xor", "xor")
_primitive("invert", "not")
_primitive("left_shift", "shl")
_primitive("right_shift", "shr")
_row("where", 3, select)
_row("sign", 1, lambda x: (x > 0) - (x < 0))
for _name in ("floor", "ceil", "trunc", "rint"):
    _primitive(_name, _name)
_row("round", 1, _round, _zero, integral=True)
_row("fix", 1, _truncate)
_row("square", 1, lambda x: x * x)
_row("reciprocal", 1, lambda x: 1.0 / x)
_row("mod", 2, _mod, lambda a, b, y: 1.0, lambda a, b, y: -prim("floor", a / b))
_row("fmod", 2, lambda a, b: select(b == 0, (a - a) / b, prim("fmod", a, b)),  # NaN, integers 0
     lambda a, b, y: 1.0, lambda a, b, y: -prim("trunc", a / b))  # fmt: skip
_row("isnan", 1, lambda x: x != x)
_row("isinf", 1, lambda x: prim("abs", x) == float("inf"))
_row("isfinite", 1, lambda x: prim("abs", x) < float("inf"))
_row("clip", 3, lambda x, low, high: prim("min", prim("max", x, low), high),
     lambda x, low, high, y: select((x < low) | (x > high), 0.0, 1.0),
     lambda x, low, high, y: x < low,
     lambda x, low, high, y: x > high)  # fmt: skip

for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "copysign"):
    _primitive(_name, _name)
for _name in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh"):
    _primitive(_name, _name)
for _name in ("erf", "erfinv", "gamma", "gammaln", "digamma", "trigamma", "gelu"):
    _primitive(_name, _name)
_primitive("power", "pow")
_row("hypot", 2, _hypot, lambda a, b, y: _cosine(a, y), lambda a, b, y: _cosine(b, y))
_row("logaddexp", 2, _logaddexp, lambda a, b, y: _share(a, b), lambda a, b, y: _share(b, a))
_row("rsqrt", 1, lambda x: 1.0 / prim("sqrt", x), lambda x, y: -0.5 * y * y * y)
_row("rcbrt", 1, lambda x: 1.0 / prim("cbrt", x), lambda x, y: (-1.0 / 3.0) * y / x)
_row("arcsinh", 1, _arcsinh, lambda x, y: 1.0 / prim("sqrt", prim("fma", x, x, 1.0)))
_row("arccosh", 1, _arccosh, lambda x, y: 1.0 / prim("sqrt", prim("fma", x, x, -1.0)))
_row("arctanh", 1, _arctanh, lambda x, y: 1.0 / (1.0 - x * x))
_row("degrees", 1, lambda x: x * 57.29577951308232)
_row("radians", 1, lambda x: x * 0.017453292519943295)

_row("relu", 1, lambda x: prim("max", x, 0), lambda x, y: select(y > 0, 1.0, y))
_row("sigmoid", 1, _sigmoid, lambda x, y: y * (1.0 - y))
_row("softplus", 1, _softplus, lambda x, y: -prim("expm1", -y))
_row("softsign", 1, lambda x: x / (prim("abs", x) + 1.0), _softsign_slope)
_row("log_sigmoid", 1, lambda x: -_softplus(-x), lambda x, y: -prim("expm1", y))
_row("elu", 2, lambda x, slope: select(x > 0, x, prim("expm1", x) * slope))
_row("mish", 1, lambda x: x * prim("tanh", _softplus(x)), _mish_slope)
