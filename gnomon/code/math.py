"""Transcendental functions as expressions of what every target has: they run in vector registers.

`expand` writes one function out, branch-free, within the bounds of `tests/code/test_math.py`.
A target that has a function itself names it in `has` and keeps it; one that can branch names
"rare", and gets the long way of sin, cos and tan of large arguments as `rare(cond, slow, fast)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gnomon.base import Later
from gnomon.expr.term import Term

if TYPE_CHECKING:
    from gnomon.code.libm import (
        error,
        exponential,
        gamma,
        integer,
        kit,
        logarithm,
        power,
        remainder,
        trigonometric,
    )
else:  # a process's first kernel needs few of them, or none
    error, exponential, gamma, integer, kit, logarithm, power, remainder, trigonometric = (
        Later(f"gnomon.code.libm.{name}")
        for name in (
            "error exponential gamma integer kit logarithm power remainder trigonometric".split()
        )
    )

_FILES = (
    (error, "erf erfinv gelu gelu_slope"),
    (exponential, "cosh exp exp2 expm1 sinh tanh"),
    (gamma, "digamma gamma gammaln trigamma"),
    (kit, "scalb"),
    (logarithm, "log log10 log1p log2"),
    (power, "cbrt pow"),
    (remainder, "fmod"),
    (trigonometric, "arccos arcsin arctan arctan2 cos cospi sin sinpi tan"),
)
#: the file that holds the function of each primitive, under the primitive's own name
RULES: dict[str, Any] = {name: file for file, names in _FILES for name in names.split()}
WHOLE = frozenset({"fmod", "pow"})  # those that `integer` holds for integers


def expand(term: Term, has: frozenset[str] = frozenset()) -> Term:
    """`term` itself, or the same value without the function it is made by.

    Its operands stay as they are. What comes back holds only primitives that are not in `RULES`,
    or that are in `has`.
    """
    written: Term
    if term.dtype.kind != "f" and term.op in WHOLE:
        written = getattr(integer, term.op)(term.arena, has, *term.args)
        return written
    file = None if term.op in has else RULES.get(term.op)
    if file is None:
        return term
    written = getattr(file, term.op)(kit.Kit(term.arena, term.args[0].dtype, has), *term.args)
    return written
