"""erf: an odd polynomial to 1, beyond 1 - exp(-q(|x|)), whose error the 1 dwarfs."""

from __future__ import annotations

from gnomon.code.libm import tables
from gnomon.code.libm.exponential import LOG2_E, exp_rest, rest
from gnomon.code.libm.kit import Kit
from gnomon.expr.term import Term


def erf(k: Kit, x: Term) -> Term:
    """The error function."""
    a = k.at_most(k.op("abs", x), 4.0 if k.single else 6.0)
    z = a * a
    near = k.fma(a, k.poly(z, k.pick(tables.ERF_SINGLE, tables.ERF_DOUBLE)), a)
    q = -k.poly(a, k.pick(tables.ERFC_SINGLE, tables.ERFC_DOUBLE))
    n, _ = k.near(q, LOG2_E)
    far = k.fnma(exp_rest(k, rest(k, q, n)), k.power_of_two(n), k(1.0))
    return k.op("copysign", k.select(a < 1.0, near, far), x)
