"""Derivatives of formulas: one rule a primitive, carried forward through the steps.

Forward, because a formula has few arguments, and because the derivative of a select is then a
select of derivatives: what the branch not taken would give (infinity, NaN) stays outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from gnomon.base import GnomonError
from gnomon.expr.functions.formula import Formula, Operand, Step, Sym, Tape, prim, select
from gnomon.expr.functions.primitive import PRIMITIVES

Rule: TypeAlias = "Callable[..., Operand]"

TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
NORMAL_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)  # the density of the standard normal distribution
LN2, LN10 = math.log(2.0), math.log(10.0)
FREE = frozenset({"abs", "add", "fma", "max", "min", "mul", "neg", "sub"})  # cheap to do twice


def differentiate(formula: Formula, k: int, by_value: bool) -> Formula:
    """The partial derivative with respect to argument `k`, of the same arguments.

    With `by_value` it has one argument more, the function's own value, and uses it where it can.
    """
    tape = Tape(formula.arity + by_value, simplify=True)
    arguments = tape.symbols[: formula.arity]
    values: list[Sym] = list(arguments)
    slopes: list[Sym | None] = [None] * formula.arity
    slopes[k] = tape.const(1.0)
    for number, step in enumerate(formula.steps, formula.arity):
        own = tape.symbols[-1] if by_value and number == formula.result else None
        value = own if own is not None else _value(tape, step, values)
        slopes.append(_slope(tape, step, values, slopes, value))
        values.append(value)
    slope = slopes[formula.result]
    return tape.formula(tape.const(0.0) if slope is None else slope)


def best_derivative(formula: Formula, k: int) -> tuple[Formula, bool]:
    """The derivative, and whether it takes the function's value: where that saves work."""
    plain = differentiate(formula, k, False)
    if formula.result < formula.arity or formula.truth:
        return plain, False
    by_value = differentiate(formula, k, True)
    if formula.arity in by_value.used() and _cost(by_value) < _cost(plain):
        return by_value, True
    return plain, False


def _cost(formula: Formula) -> int:
    """How many steps are dear: transcendental functions and divisions."""
    return sum(not isinstance(s.op, str) or _dear(s.op) for s in formula.steps)


def _dear(name: str) -> bool:
    row = PRIMITIVES.get(name)
    return name == "div" or (row is not None and row.floats_only and name not in FREE)


def _value(tape: Tape, step: Step, values: list[Sym]) -> Sym:
    operands = [values[r] for r in step.refs]
    if step.op == "const":
        assert step.value is not None
        return tape.const(step.value)
    if step.op == "number":
        return tape.number(operands[0])
    return (
        tape.op(step.op, *operands) if isinstance(step.op, str) else tape.call(step.op, *operands)
    )


def _slope(
    tape: Tape, step: Step, values: list[Sym], slopes: list[Sym | None], value: Sym
) -> Sym | None:
    """The derivative of a step; None is 0."""
    inner = [slopes[r] for r in step.refs]
    if value.truth or all(s is None for s in inner):
        return None
    operands = [values[r] for r in step.refs]
    if step.op in _CHOICES:
        cond, yes, no = _CHOICES[str(step.op)](*operands, *inner)
        zero = tape.const(0.0)
        return tape.op("select", cond, zero if yes is None else yes, zero if no is None else no)
    total: Sym | None = None
    for k, slope in enumerate(inner):
        if slope is not None:
            part = tape.lift(_partial(tape, step, k, operands, value)) * slope
            total = part if total is None else total + part
    return total


def _partial(tape: Tape, step: Step, k: int, operands: list[Sym], value: Sym) -> Operand:
    if not isinstance(step.op, str):
        grad = step.op.grad(k)
        return tape.call(grad, *operands, value) if grad.uses_value else tape.call(grad, *operands)
    rules = DERIVATIVES.get(step.op)
    if rules is None:
        raise GnomonError(f"the scalar function {step.op} has no derivative here")
    return rules[k](*operands, value)


# the derivative follows the operand taken: (condition, slope where it holds, slope elsewhere)
_CHOICES: dict[str, Callable[..., tuple[Sym, Sym | None, Sym | None]]] = {
    "select": lambda c, a, b, dc, da, db: (c, da, db),
    "max": lambda a, b, da, db: (a >= b, da, db),
    "min": lambda a, b, da, db: (a <= b, da, db),
}


def _sign(x: Sym) -> Sym:
    return (x > 0) - (x < 0)


def _power_base(a: Sym, b: Sym, y: Sym) -> Sym:
    return select(b == 0, 0.0, b * prim("pow", a, b - 1))


def _power_exponent(a: Sym, b: Sym, y: Sym) -> Sym:
    return y * prim("log", select(a == 0, 1.0, a))  # 0 at a base of 0, where log is infinite


def _none(*operands: Sym) -> float:
    return 0.0


# per primitive one rule an operand, each given the operands and the value
DERIVATIVES: dict[str, tuple[Rule, ...]] = {
    "add": (lambda a, b, y: 1.0, lambda a, b, y: 1.0),
    "sub": (lambda a, b, y: 1.0, lambda a, b, y: -1.0),
    "mul": (lambda a, b, y: b, lambda a, b, y: a),
    "div": (lambda a, b, y: 1.0 / b, lambda a, b, y: -(y / b)),
    "neg": (lambda a, y: -1.0,),
    "abs": (lambda a, y: _sign(a),),
    "fma": (lambda a, b, c, y: b, lambda a, b, c, y: a, lambda a, b, c, y: 1.0),
    "number": (_none,),
    "sqrt": (lambda a, y: 0.5 / y,),
    "floor": (_none,),
    "ceil": (_none,),
    "trunc": (_none,),
    "rint": (_none,),
    "copysign": (lambda a, b, y: _sign(a) * prim("copysign", 1.0, b), _none),
    "exp": (lambda a, y: y,),
    "exp2": (lambda a, y: y * LN2,),
    "expm1": (lambda a, y: prim("exp", a),),
    "log": (lambda a, y: 1.0 / a,),
    "log2": (lambda a, y: (1.0 / LN2) / a,),
    "log10": (lambda a, y: (1.0 / LN10) / a,),
    "log1p": (lambda a, y: 1.0 / (a + 1.0),),
    "pow": (_power_base, _power_exponent),
    "cbrt": (lambda a, y: (1.0 / 3.0) / (y * y),),
    "sin": (lambda a, y: prim("cos", a),),
    "cos": (lambda a, y: -prim("sin", a),),
    "sinpi": (lambda a, y: math.pi * prim("cospi", a),),
    "cospi": (lambda a, y: -math.pi * prim("sinpi", a),),
    "tan": (lambda a, y: y * y + 1.0,),
    "arcsin": (lambda a, y: 1.0 / prim("sqrt", 1.0 - a * a),),
    "arccos": (lambda a, y: -1.0 / prim("sqrt", 1.0 - a * a),),
    "arctan": (lambda a, y: 1.0 / (a * a + 1.0),),
    "arctan2": (lambda a, b, y: b / (a * a + b * b), lambda a, b, y: -a / (a * a + b * b)),
    "sinh": (lambda a, y: prim("cosh", a),),
    "cosh": (lambda a, y: prim("sinh", a),),
    "tanh": (lambda a, y: 1.0 - y * y,),
    "erf": (lambda a, y: TWO_OVER_ROOT_PI * prim("exp", -(a * a)),),
    "erfinv": (lambda a, y: (1.0 / TWO_OVER_ROOT_PI) * prim("exp", y * y),),
    "gelu": (lambda a, y: prim("gelu_slope", a),),
    "gelu_slope": (lambda a, y: (2.0 - a * a) * NORMAL_AT_ZERO * prim("exp", -0.5 * a * a),),
    "gamma": (lambda a, y: y * prim("digamma", a),),
    "gammaln": (lambda a, y: prim("digamma", a),),
    "digamma": (lambda a, y: prim("trigamma", a),),
}
