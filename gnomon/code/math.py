"""Transcendental functions as expressions of what every target has: they run in vector registers.

`expand` writes one function out, branch-free, within the bounds of `tests/code/test_math.py`.
A target that has a function itself names it in `has` and keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon.code.libm import exponential, logarithm
from gnomon.code.libm.kit import Kit, scalb
from gnomon.expr.term import Term

RULES: dict[str, Callable[..., Term]] = {
    "exp": exponential.exp,
    "log": logarithm.log,
    "scalb": scalb,
    "tanh": exponential.tanh,
}


def expand(term: Term, has: frozenset[str] = frozenset()) -> Term:
    """`term` itself, or the same value without the function it is made by.

    Its operands stay as they are. What comes back holds only primitives that are not in `RULES`,
    or that are in `has`.
    """
    rule = None if term.op in has else RULES.get(term.op)
    return term if rule is None else rule(Kit(term.arena, term.args[0].dtype, has), *term.args)
