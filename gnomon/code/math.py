"""Transcendental functions as expressions of what every target has: they run in vector registers.

`expand` writes one function out, branch-free, within the bounds of `tests/code/test_math.py`.
A target that has a function itself names it in `has` and keeps it; one that can branch names
"rare", and gets the long way of sin, cos and tan of large arguments as `rare(cond, slow, fast)`.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon.code.libm import error, exponential, gamma, logarithm, power, trigonometric
from gnomon.code.libm.kit import Kit, scalb
from gnomon.expr.term import Term

RULES: dict[str, Callable[..., Term]] = {
    "arccos": trigonometric.arccos,
    "arcsin": trigonometric.arcsin,
    "arctan": trigonometric.arctan,
    "arctan2": trigonometric.arctan2,
    "cbrt": power.cbrt,
    "cos": trigonometric.cos,
    "cospi": trigonometric.cospi,
    "cosh": exponential.cosh,
    "digamma": gamma.digamma,
    "erf": error.erf,
    "erfinv": error.erfinv,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "gamma": gamma.gamma,
    "gammaln": gamma.gammaln,
    "log": logarithm.log,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "pow": power.power,
    "scalb": scalb,
    "sin": trigonometric.sin,
    "sinh": exponential.sinh,
    "sinpi": trigonometric.sinpi,
    "tan": trigonometric.tan,
    "tanh": exponential.tanh,
    "trigamma": gamma.trigamma,
}


def expand(term: Term, has: frozenset[str] = frozenset()) -> Term:
    """`term` itself, or the same value without the function it is made by.

    Its operands stay as they are. What comes back holds only primitives that are not in `RULES`,
    or that are in `has`.
    """
    rule = None if term.op in has else RULES.get(term.op)
    return term if rule is None else rule(Kit(term.arena, term.args[0].dtype, has), *term.args)
