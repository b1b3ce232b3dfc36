"""Random Python functions of scalars: compiled they give what Python gives, and their slopes."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gnomon.expr import fn
from gnomon.expr.functions.frontend import op
from gnomon.expr.source import OperatorError
from gnomon.shadow import F, Tensor

POINTS, H = 60, 1e-6
REFUSED = {490}  # numbers alone divide by zero, where Python always raises
half = op(lambda v: v / 2 if v > 0 else v * 3)
SPACE = {"math": math, "np": np, "fn": fn, "half": half, "K": 0.75, "N": 2, "ON": True}


class Author:
    """Writes functions of x and y: assignments, branches, early returns, every operator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.names = ["x", "y"]

    def choose(self, *things: str) -> str:
        return things[int(self.rng.integers(len(things)))]

    def function(self) -> str:
        return "\n".join(
            ["def f(x, y):", *self.block(4, 2, "    "), "    return " + self.number(2)]
        )

    def block(self, count: int, depth: int, indent: str) -> list[str]:
        lines: list[str] = []
        for _ in range(int(self.rng.integers(1, count))):
            lines += self.statement(depth, indent)
        return lines

    def statement(self, depth: int, indent: str) -> list[str]:
        kind = self.choose("assign", "assign", "update", "if", "return") if depth else "assign"
        if kind == "update":
            sign = self.choose("+=", "*=", "-=")
            return [f"{indent}{self.choose(*self.names)} {sign} {self.number(1)}"]
        if kind == "if":
            return self.branch(depth, indent)
        if kind == "return":
            inner = f"{indent}    return {self.number(2)}"
            return [f"{indent}if {self.condition()}:", inner]
        value, name = self.number(2), self.choose("a", "b", "x")
        if indent == "    " and name not in self.names:  # else only one branch sets it
            self.names.append(name)
        if name not in self.names:
            name = "y"
        return [f"{indent}{name} = {value}"]

    def branch(self, depth: int, indent: str) -> list[str]:
        inner = indent + "    "
        lines = [f"{indent}if {self.condition()}:", *self.block(3, depth - 1, inner)]
        if self.rng.random() < 0.4:
            lines += [f"{indent}elif {self.condition()}:", *self.block(3, depth - 1, inner)]
        if self.rng.random() < 0.6:
            lines += [f"{indent}else:", *self.block(3, depth - 1, inner)]
        return lines

    def condition(self, depth: int = 1) -> str:
        a, b, c = self.number(depth), self.number(depth), self.number(0)
        order = self.choose("<", "<=", ">", ">=", "!=")
        return self.choose(
            f"{a} {order} {b}", f"{c} < {a} <= {b}", f"{a} > {c} and {b} < 1", f"not {a} < {b}",
            f"{a} < {b} or {c} > 2", f"ON and {a} > {b}",
        )  # fmt: skip

    def number(self, depth: int) -> str:
        if not depth:
            return self.choose(*self.names, *self.names, "K", "N", "1.5", "-2", "0.3", "math.pi")
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.choose(
            f"({a} {self.choose('+', '-', '*', '/')} {b})", f"({a} {self.choose('+', '*')} {b})",
            f"({a} if {self.condition(0)} else {b})", f"math.sin({a})", f"np.tanh({a})", f"-{a}",
            f"max({a}, {b})", f"abs({a})", f"math.exp(-abs({a}))", f"half({a})", f"fn.sigmoid({a})",
            f"float(np.where({a} > {b}, {a}, 1))", f"({a}) ** 2", f"math.sqrt(abs({a}) + 0.5)",
            f"({a} % 0.7)", f"math.floor({a})", f"math.atan2({a}, {b})", f"({a} // 1.3)",
        )  # fmt: skip


def written(text: str, name: str) -> Callable[..., float]:
    """The Python function of a source."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = dict(SPACE)
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space["f"]


def python(function: Callable[..., float], x: float, y: float) -> float:
    try:
        return float(function(x, y))
    except (ArithmeticError, ValueError):
        return math.nan  # Python raises where a float has no value


@pytest.mark.parametrize(
    "part", [0, 1, *(pytest.param(k, marks=pytest.mark.long) for k in range(2, 20))]
)
def test_random_functions(part: int) -> None:
    for seed in range(part * 50, part * 50 + 50):
        text = Author(seed).function()
        function = written(text, f"<random {seed}>")
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(-3, 3, POINTS), rng.uniform(-3, 3, POINTS)
        want = np.array([python(function, *map(float, p)) for p in zip(x, y, strict=True)])
        if seed in REFUSED:
            with pytest.raises(OperatorError, match="division by zero"):
                op(function)
            assert np.isnan(want).all()
            continue
        made = op(function)
        out = np.zeros(POINTS)
        Tensor(out)[:] = F(made)(Tensor(x), Tensor(y))
        known = np.isfinite(want)
        close = np.isclose(out[known], want[known], rtol=1e-9, atol=1e-9)
        assert (~close).sum() <= 1, f"seed {seed}\n{text}"  # a tie that rounding decides
        slopes(made, x, y, f"seed {seed}\n{text}")


def slopes(made: Any, x: np.ndarray, y: np.ndarray, text: str) -> None:
    """The derivatives are the differences, where these settle."""
    for k in range(2):
        found = []
        for h in (H, H / 4):
            low, high = (made.numpy(*[v + s * h * (j == k) for j, v in enumerate((x, y))])
                         for s in (-1, 1))  # fmt: skip
            found.append((high - low) / (2 * h))
        grad = np.zeros_like(x)
        Tensor(grad)[:] = F(made.grad(k))(Tensor(x), Tensor(y))
        with np.errstate(all="ignore"):
            settled = np.isfinite(found[0]) & (abs(found[0]) < 1e2)
            settled &= abs(found[0] - found[1]) < 1e-5 * (1 + abs(found[0]))
            wrong = settled & ~(abs(grad - found[0]) < 1e-3 * (1 + abs(found[0])))
        assert wrong.sum() <= 1, f"by argument {k}: {text}"


def test_branch_points_take_the_slope_of_the_branch_taken() -> None:
    cases = [
        (lambda v: v if v > 0 else 0, 0.0, 0.0),
        (lambda v: v if v >= 0 else 0, 0.0, 1.0),
        (lambda v: v * v if v < 1 else 2 * v - 1, 1.0, 2.0),
        (lambda v: 0 if v == 0 else v * math.log(v), 0.0, 0.0),
        (lambda v: 1 if v == 0 else math.sin(v) / v, 0.0, 0.0),
        (lambda v: math.sqrt(v) if v > 0 else -1, 0.0, 0.0),
        (lambda v: max(v, 0), 0.0, 1.0),
        (lambda v: min(v, 0), 0.0, 1.0),
        (lambda v: abs(v) + 1, 0.0, 0.0),
        (lambda v: (v > 0) * v, 0.0, 0.0),
        (lambda v: v**0, 0.0, 0.0),
        (lambda v: v**1, 0.0, 1.0),
        (lambda v: v**3, 0.0, 0.0),
    ]
    for function, at, slope in cases:
        assert op(function).grad(0)(at) == slope, function.__code__.co_firstlineno


def test_second_derivatives() -> None:
    made = op(lambda v: math.exp(2 * v) + v**3 if v > 0 else v * v)
    second = made.grad(0)
    second = op(lambda v: second(v) * 1) if second.uses_value else second
    assert second.grad(0)(1.0) == pytest.approx(4 * math.exp(2) + 6)
    assert second.grad(0)(-1.0) == 2.0
