"""Minimax polynomials: the coefficients that stand in `gnomon/code/libm/`, derived anew.

    python tools/remez.py                    every table, with its largest error in bits
    python tools/remez.py exp.single         one of them

Needs mpmath. Remez exchange in 60 digits: the error oscillates on n + 2 points, which move to its
extrema until these are level. What rounding the coefficients adds is part of the error shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[mpf], mpf]


class Task(NamedTuple):
    """`f` on [low, high] by a polynomial of `degree`; the error is measured times `weight`."""

    f: Function
    low: float
    high: float
    degree: int
    weight: Function = lambda x: mpf(1)
    bits: int = 53


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
    coefficients = [rounded(c, task.bits) for c in remez(task)]
    grid = mp.linspace(task.low, task.high, 400)
    worst = max(abs(error(task, coefficients, x)) for x in grid)
    return [float(c) for c in coefficients], float(-mp.log(worst, 2))


def rounded(x: mpf, bits: int) -> mpf:
    """`x` with a mantissa of `bits` bits."""
    mantissa, exponent = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), int(exponent) - bits)


def series(f: Function, terms: int, at_zero: Callable[[int], mpf]) -> Function:
    """`f` away from 0, its Taylor series `at_zero(k)` near it, where `f` cancels."""

    def safe(x: mpf) -> mpf:
        if abs(x) > mpf(10) ** -6:
            return f(x)
        return mp.fsum(at_zero(k) * x**k for k in range(terms))

    return safe


LN2 = mp.log(2)
HALF = float(LN2 / 2) * 1.0001
exp_rest = series(lambda r: (mp.expm1(r) - r) / r**2, 8, lambda k: 1 / mp.factorial(k + 2))

TASKS: dict[str, Task] = {}


def main(names: list[str]) -> None:
    """Print the tables."""
    for name in names or TASKS:
        coefficients, bits = fit(TASKS[name])
        print(f"{name}  # 2^-{bits:.1f}")
        for c in coefficients:
            single = TASKS[name].bits == 24
            print(f"    {np.float32(c) if single else c!r},")


if __name__ == "__main__":
    main(sys.argv[1:])
