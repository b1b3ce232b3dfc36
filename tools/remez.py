"""Minimax polynomials: the coefficients in `gnomon/code/libm/tables.py`, derived anew.

    python tools/remez.py > gnomon/code/libm/tables.py     every table, with its largest error
    python tools/remez.py EXP_SINGLE                       one of them

Needs mpmath. Remez exchange in 60 digits: the error oscillates on n + 2 points, which move to its
extrema until these are level. What rounding the coefficients adds is part of the error shown.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from typing import NamedTuple

from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[mpf], mpf]


class Task(NamedTuple):
    """`f` on [low, high] by a polynomial of `degree`; the error is measured times `weight`.

    So many of the lowest coefficients are `settled`: rounded before the others are found.
    """

    f: Function
    low: float
    high: float
    degree: int
    weight: Function = lambda x: mpf(1)
    bits: int = 53
    settled: int = 0


def remez(task: Task) -> list[mpf]:
    """The coefficients, lowest first, of the polynomial whose greatest weighted error is least."""
    low, high, count = mpf(task.low), mpf(task.high), task.degree + 1
    middle, half = (low + high) / 2, (high - low) / 2
    points = [
        middle - half * mp.cos(mp.pi * (k + mpf(1) / 2) / (count + 1)) for k in range(count + 1)
    ]
    for _ in range(40):
        rows, right = mp.matrix(count + 1, count + 1), mp.matrix(count + 1, 1)
        for i, x in enumerate(points):
            w = task.weight(x)
            for j in range(count):
                rows[i, j] = w * x**j
            rows[i, count] = (-1) ** i
            right[i] = w * task.f(x)
        solution = mp.lu_solve(rows, right)
        coefficients, level = [solution[j] for j in range(count)], abs(solution[count])
        points, worst = extrema(lambda x, c=coefficients: error(task, c, x), low, high, count + 1)
        if worst < level * (1 + mpf(10) ** -3):
            return coefficients
    raise ArithmeticError("no convergence")


def error(task: Task, coefficients: list[mpf], x: mpf) -> mpf:
    """What the polynomial is off at `x`, times the weight."""
    return task.weight(x) * (mp.polyval(list(reversed(coefficients)), x) - task.f(x))


def extrema(error: Function, low: mpf, high: mpf, count: int) -> tuple[list[mpf], mpf]:
    """The points of the alternating extrema of `error`, and its largest size."""
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * mp.cos(mp.pi * k / (40 * count)) for k in range(40 * count + 1)]
    values = [error(x) for x in grid]
    best: list[int] = []
    for k, v in enumerate(values):
        if best and mp.sign(values[best[-1]]) == mp.sign(v):
            if abs(v) > abs(values[best[-1]]):
                best[-1] = k
        else:
            best.append(k)
    while len(best) > count:  # drop the weaker end
        best.pop(0 if abs(values[best[0]]) < abs(values[best[-1]]) else -1)
    if len(best) < count:
        raise ArithmeticError("the error does not alternate often enough: lower the degree")
    return [grid[k] for k in best], max(map(abs, values))


def fit(task: Task) -> tuple[list[float], float]:
    """Coefficients as numbers of `bits` bits, and -log2 of the error they reach."""
    coefficients, rest = [], task
    for _ in range(task.settled):
        coefficients.append(rounded(remez(rest)[0], task.bits))
        rest = behind(rest, coefficients[-1])
    coefficients += [rounded(c, task.bits) for c in remez(rest)]
    grid = mp.linspace(task.low, task.high, 400)
    worst = max(abs(error(task, coefficients, x)) for x in grid)
    return [float(c) for c in coefficients], float(-mp.log(worst, 2))


def behind(task: Task, first: mpf) -> Task:
    """What is left of a task behind its first coefficient, over x."""
    return task._replace(
        f=lambda x: (task.f(x) - first) / x,
        degree=task.degree - 1,
        weight=lambda x: task.weight(x) * x,
    )


def rounded(x: mpf, bits: int) -> mpf:
    """`x` with a mantissa of `bits` bits."""
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), int(exponent) - bits)


def near_zero(f: Function) -> Function:
    """`f`, which cancels at 0, with digits enough for that."""

    def exact(x: mpf) -> mpf:
        with mp.workdps(160):
            return f(x if x else mpf(10) ** -45)

    return exact


LN2 = mp.log(2)
HALF = float(LN2 / 2) * 1.0001
LOG_LOW, LOG_HIGH = float(mp.sqrt(0.5) - 1) * 1.0001, float(mp.sqrt(2) - 1) * 1.0001
ATANH_HIGH = float((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * 1.0002
QUARTER = float(mp.pi / 4) ** 2 * 1.012
HALF_PI = float(mp.pi / 2) ** 2 * 1.0001
OCTANT = float(mp.tan(mp.pi / 8)) ** 2 * 1.001


def odd(f: Function) -> Function:
    """(f(x) / x - 1) / x^2 in z = x^2: what is left of an odd function beside x."""
    return near_zero(lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z)


def beside(f: Function) -> Function:
    """The weight of `odd(f)`: the error relative to f."""
    return near_zero(lambda z: z * mp.sqrt(z) / f(mp.sqrt(z)))


def pair(
    name: str, f: Function, low: float, high: float, degrees: tuple[int, int], weight: Function
) -> dict[str, Task]:
    """The same function for both formats."""
    single, double = degrees
    return {
        f"{name}_SINGLE": Task(f, low, high, single, weight, 24),
        f"{name}_DOUBLE": Task(f, low, high, double, weight, 53),
    }


exp_rest = near_zero(lambda r: (mp.expm1(r) - r) / r**2)
exp2_rest = near_zero(lambda r: mp.expm1(r * LN2) / r)
log_rest = near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3)
atanh_rest = near_zero(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z)

cos_rest = near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2)
atanh_tail = near_zero(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / z**2)
log_erfc = near_zero(lambda x: -mp.log(mp.erfc(x)) / x - 1)
beside_erf = near_zero(lambda x: x * mp.erfc(x) / mp.erf(x))  # the error relative to erf


def log_ndtr(x: mpf) -> mpf:
    """-(log2(2 ndtr(-x)) + x^2) / x."""
    with mp.workdps(90):
        return +(-mp.log(mp.erfc(x / mp.sqrt(2)), 2) / x - x)


def scaled_ndtr(z: mpf) -> mpf:
    """exp(x^2 / 2) ndtr(-x) by z = x - 1.25."""
    with mp.workdps(90):
        x = z + mpf(1.25)
        return +(mp.erfc(x / mp.sqrt(2)) / 2 * mp.exp(x * x / 2))


def slope_weight(z: mpf) -> mpf:
    """For the error of `scaled_ndtr` in gelu's slope, which takes x times the density from it."""
    ratio, density = scaled_ndtr(z), (z + mpf(1.25)) / mp.sqrt(2 * mp.pi)
    return 1 / max(ratio, density - ratio)


def ndtr_tail(z: mpf) -> mpf:
    """a exp(a^2 / 2) ndtr(-a) by z = 1 / a^2."""
    with mp.workdps(90):
        if z < mpf(10) ** -22:
            return 1 / mp.sqrt(2 * mp.pi)
        a = 1 / mp.sqrt(z)
        return +(a * mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2))


def cotangent(z: mpf) -> mpf:
    """(1 / d - pi cot(pi d)) / d by z = d^2."""
    with mp.workdps(120):
        d = mp.sqrt(z)
        return +((1 - mp.pi * d * mp.cot(mp.pi * d)) / z if z > mpf(10) ** -35 else mp.pi**2 / 3)


def inverse_erf(w: mpf) -> mpf:
    """erfinv(x) / x by w = -log(1 - x^2)."""
    if w < mpf(10) ** -30:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def inverse_task(middle: float, half: float, root: bool, degree: int, bits: int = 53) -> Task:
    """`inverse_erf` around a point of w, or of its square root."""

    def f(v: mpf) -> mpf:
        return inverse_erf((v + middle) ** 2 if root else v + middle)

    return Task(f, -half, half, degree, lambda v: 1 / f(v), bits)


def large(f: Function, limit: mpf) -> Function:
    """`f` of w = 1 / sqrt(z), with its limit at z = 0."""

    def at(z: mpf) -> mpf:
        with mp.workdps(90):
            return +(f(1 / mp.sqrt(z), z) if z else limit)

    return at


stirling = large(
    lambda w, z: (mp.loggamma(w) - (w - mpf(1) / 2) * mp.log(w) + w - mp.log(2 * mp.pi) / 2) * w,
    mpf(1) / 12,
)
digamma = large(lambda w, z: (mp.log(w) - 1 / (2 * w) - mp.digamma(w)) / z, mpf(1) / 12)
trigamma = large(lambda w, z: (mp.psi(1, w) - 1 / w - z / 2) * w / z, mpf(1) / 6)


def beside_two(t: mpf) -> mpf:
    """log gamma(2 + t) / t."""
    with mp.workdps(90):
        slope = 1 - mp.euler
        return +(mp.loggamma(2 + t) / t if abs(t) > mpf(10) ** -30 else slope)


def scaled_gamma(u: mpf) -> mpf:
    """gamma(w) e^w w^(1/2 - w) by u = 1 / w."""
    with mp.workdps(90):
        return +(mp.exp(mp.log(2 * mp.pi) / 2 + stirling(u * u) * u))


TASKS: dict[str, Task] = {
    **pair("EXP", exp_rest, -HALF, HALF, (4, 9), lambda r: r**2 / mp.exp(r)),
    **pair("EXP2", exp2_rest, -0.5001, 0.5001, (5, 10), lambda r: r / mpf(2) ** r),
    **pair("EXPM1", exp_rest, -HALF, 0.6001, (5, 11), near_zero(lambda r: r**2 / mp.expm1(r))),
    **pair("SINH", odd(mp.sinh), 0, 1.0, (2, 6), beside(mp.sinh)),
    "LOG_SINGLE": Task(log_rest, LOG_LOW, LOG_HIGH, 7, near_zero(lambda f: f**3 / mp.log1p(f)), 24),
    "LOG_DOUBLE": Task(atanh_rest, 0, ATANH_HIGH, 6, lambda z: z / 2, 53),
    "LOG_TAIL": Task(atanh_tail, 0, ATANH_HIGH, 6, lambda z: z * z / 2, 53),
    "LOG_SHORT": Task(log_rest, LOG_LOW, LOG_HIGH, 11, near_zero(lambda f: f**3 / mp.log1p(f))),
    **pair(
        "CBRT", lambda f: mp.cbrt(1 + f), LOG_LOW, LOG_HIGH, (3, 6), lambda f: 1 / mp.cbrt(1 + f)
    ),
    "ERF_SINGLE": Task(log_erfc, 0, 4.0, 8, beside_erf, 24),
    "ERF_DOUBLE": Task(log_erfc, 0, 6.0, 22, beside_erf, 53),
    "NDTR_SINGLE": Task(log_ndtr, 1e-3, 3.0, 8, lambda x: x * LN2, 24, 4),
    "NDTR_DOUBLE": Task(log_ndtr, 1e-3, 3.0, 18, lambda x: x * LN2, 53, 2),
    "NDTR_SCALED_SINGLE": Task(scaled_ndtr, -1.25, 2.75, 13, slope_weight, 24),
    "NDTR_SCALED_DOUBLE": Task(scaled_ndtr, -1.25, 1.75, 22, slope_weight, 53),
    **pair("NDTR_TAIL", ndtr_tail, 0, 1 / 9, (7, 22), lambda z: 1 / ndtr_tail(z)),
    "GAMMALN": Task(beside_two, -0.5, 0.5, 18),
    "STIRLING": Task(stirling, 0, 1 / 16, 9),
    "SCALED_GAMMA": Task(scaled_gamma, 0, 1 / 4, 12, lambda u: 1 / scaled_gamma(u)),
    "DIGAMMA": Task(digamma, 0, 1 / 16, 8, lambda z: z / 2),
    "COTANGENT": Task(cotangent, 0, 0.25, 15, mp.sqrt),
    "TRIGAMMA": Task(trigamma, 0, 1 / 16, 9, lambda z: z),
    "ERFINV_NEAR_SINGLE": inverse_task(3.125, 3.125, False, 10, 24),
    "ERFINV_NEAR_DOUBLE": inverse_task(3.125, 3.125, False, 24),
    "ERFINV_TAIL_SINGLE": inverse_task(3.3, 0.8, True, 8, 24),
    "ERFINV_TAIL_DOUBLE": inverse_task(3.25, 0.75, True, 19),
    "ERFINV_END": inverse_task(5.05, 1.05, True, 18),
    **pair("SIN", odd(mp.sin), 0, QUARTER, (2, 6), beside(mp.sin)),
    **pair("COS", cos_rest, 0, QUARTER, (2, 6), near_zero(lambda z: z * z / mp.cos(mp.sqrt(z)))),
    **pair("SINPI", odd(mp.sin), 0, HALF_PI, (3, 8), beside(mp.sin)),
    **pair("TAN", odd(mp.tan), 0, QUARTER, (5, 13), beside(mp.tan)),
    **pair("ATAN", odd(mp.atan), 0, OCTANT, (4, 10), beside(mp.atan)),
    **pair("ASIN", odd(mp.asin), 0, 0.36, (5, 15), beside(mp.asin)),
}


def chunks(value: mpf, bits: int, count: int) -> list[float]:
    """`value` < 1 cut into pieces of so many bits, each a float."""
    pieces = []
    for k in range(1, count + 1):
        piece = mp.floor(mp.ldexp(value, bits * k))
        value -= mp.ldexp(piece, -bits * k)
        pieces.append(piece * mpf(2) ** (-bits * k))
    return pieces


def turn() -> dict[str, tuple[list[float], str]]:
    """1 / (2 pi) cut so that products with float32 are exact in float64, or in two of them."""
    with mp.workprec(1600):
        one = 1 / (2 * mp.pi)
        single = [float(c) for c in chunks(one, 29, 7)]
        double = [float(mp.ldexp(c, 256)) for c in chunks(one, 53, 24)]
    return {
        "TURN_SINGLE": (single, "1 / (2 pi) in pieces of 29 bits"),
        "TURN_DOUBLE": (double, "2^256 / (2 pi) in pieces of 53 bits"),
    }


def show(name: str, values: list[float], digits: int, comment: str) -> None:
    """Print one table."""
    text = ", ".join(f"{c:.{digits}g}" for c in values) + ","
    print(f"{name} = (  # {comment}")
    options = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}
    print(textwrap.fill(text, 96, **options) + "\n)", flush=True)


def main(names: list[str]) -> None:
    """Print the tables, as a module."""
    print('"""Coefficients of minimax polynomials, lowest first; written by `tools/remez.py`."""')
    print("\nfrom __future__ import annotations\n\n# fmt: off")
    for name in names or TASKS:
        coefficients, bits = fit(TASKS[name])
        show(name, coefficients, 9 if TASKS[name].bits == 24 else 18, f"error 2^-{bits:.1f}")
    for name, (values, comment) in () if names else turn().items():
        show(name, values, 18, comment)


if __name__ == "__main__":
    main(sys.argv[1:])
