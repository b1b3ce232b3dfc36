"""The worked examples of the tensor language, from a naive vector to an expression of one's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import ShapeError
from gnomon.expr.composite import Chainer
from gnomon.expr.diff import vjp
from gnomon.expr.node import Expr
from gnomon.expr.oracle import evaluate
from gnomon.shadow import F, Tensor, TensorContainer, dot, fn, implicit_dot, make_plan, tcast
from tests.shadow.memory import watched_pool


def vector(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


# -- the naive way, and the lazy one ----------------------------------------------------------


class NaiveVector:
    """A vector whose every operator allocates a result and runs a loop: what expressions avoid."""

    made = 0

    def __init__(self, values: list[float]) -> None:
        NaiveVector.made += 1
        self.values = values

    def __add__(self, other: NaiveVector) -> NaiveVector:
        return NaiveVector([a + b for a, b in zip(self.values, other.values, strict=True)])


def test_the_naive_vector_allocates_at_each_operator():
    b, c = NaiveVector([1, 2, 3]), NaiveVector([10, 20, 30])
    before = NaiveVector.made
    a = b + c + c
    assert a.values == [21, 42, 63]
    assert NaiveVector.made - before == 2  # a temporary for b + c, and the result


def test_the_lazy_vector_allocates_nothing(monkeypatch):
    a, b, c = TensorContainer((3,)), vector(1, 2, 3), vector(10, 20, 30)
    e = b + c + c  # a tree: nothing is computed
    assert e.loop().splitlines() == [
        "parallel vector for i in 0..n0:",
        "  t0 = l1[i]",
        "  l2[i] = ((l0[i] + t0) + t0)",
    ]
    with watched_pool(monkeypatch) as sizes:
        a[:] = e  # one loop
    assert a.numpy().tolist() == [21, 42, 63]
    assert not sizes


# -- A = B + C and its kin --------------------------------------------------------------------


def test_sums():
    a, b, c = TensorContainer((3,), init=0.0), vector(1, 2, 3), vector(10, 20, 30)
    a[:] = b + c
    assert a.numpy().tolist() == [11, 22, 33]
    a[:] = b + c + c
    assert a.numpy().tolist() == [21, 42, 63]
    a += b + c
    assert a.numpy().tolist() == [32, 64, 96]


def test_a_product_with_a_mapped_maximum():
    a, b, c = vector(1, 2, 3), vector(2, 3, 4), vector(3, 4, 5)
    a[:] = b * F(fn.maximum)(c, b)
    assert a.numpy().tolist() == [6, 12, 20]


def test_the_update_of_weights():
    weight, grad = vector(1, 2, 3), vector(10, 20, 30)
    eta, lam = 0.1, 0.5
    weight[:] = -eta * (grad + lam * weight)
    np.testing.assert_allclose(weight.numpy(), [-1.05, -2.1, -3.15], rtol=1e-6)


def test_filling_and_casting():
    floats, ints = TensorContainer((5, 2)), TensorContainer((5, 2), "int32")
    floats[:] = 3.2
    ints[:] = tcast("int32", floats)
    assert (ints.numpy() == 3).all()


def test_products_of_matrices():
    b, c = Tensor(np.arange(6, dtype="f").reshape(3, 2)), Tensor(np.ones((3, 4), "f"))
    a = TensorContainer((2, 4))
    a[:] = dot(b.T, c)
    assert a.numpy().tolist() == [[6] * 4, [9] * 4]
    lhs, rhs = TensorContainer((2, 3), init=1.0), TensorContainer((2, 3), init=1.0)
    ret = TensorContainer((2, 2))
    ret[:] = implicit_dot(lhs, rhs.T)
    assert ret.numpy().tolist() == [[3, 3], [3, 3]]
    ret[:] = implicit_dot(lhs, rhs.T) + 1.0  # a chainer: it may stand in a larger expression
    assert ret.numpy().tolist() == [[4, 4], [4, 4]]


def test_operators_of_ones_own():
    @shadow.op
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    @shadow.op
    def maximum(a, b):
        return a if a > b else b

    x, y = vector(-1, 0, 2), vector(0, 0.25, 0.5)
    out = TensorContainer((3,))
    out[:] = F(sigmoid)(x)
    np.testing.assert_allclose(out.numpy(), 1 / (1 + np.exp([1, 0, -2])), rtol=1e-6)
    out[:] = F(maximum)(F(sigmoid)(x), y)
    np.testing.assert_allclose(out.numpy(), [0.26894142, 0.5, 0.880797], rtol=1e-6)
    out[:] = F(sigmoid.grad(0))(x)  # derived; the twin need not be written
    np.testing.assert_allclose(out.numpy(), [0.19661193, 0.25, 0.10499358], rtol=1e-6)


# -- adding an expression, in five steps ------------------------------------------------------


# 1. The class: what the expression is made of. `Expr` fields are operands; `int` ones belong to
#    the structure that is compiled (`Size` would make them arguments of the kernel).
@dataclass(frozen=True, eq=False, repr=False)
class Doubled(Chainer):
    """Every row of `src` twice: row i of the result is row i // times of `src`."""

    src: Expr
    times: int

    # 2. The info: shape and dtype, checked when the expression is built.
    def infer(self):
        if self.src.ndim != 2:
            raise ShapeError(f"doubled: argument 'src': expected a matrix, got {self.src!r}")
        rows, columns = self.src.shape
        return (rows * self.times, columns), self.src.dtype

    # 3. The plan's eval: what the element at an index is. The oracle and the compiler read it.
    def at(self, i):
        return i.elem(self.src, (i[0] // self.times, i[1]))

    # (And its gradient: what `src` receives where the result receives g.)
    def adjoint(self, g):
        rows, columns = self.src.shape
        apart = shadow.reshape(g, (rows, self.times, columns))
        return ((self.src, shadow.reduce(apart, "sum", (1,))),)


# 4. The function that users call.
def doubled(src: Expr, times: int = 2) -> Expr:
    """Every row of the matrix `src`, `times` times."""
    return Doubled(src, times)


@pytest.fixture
def matrix() -> Tensor:
    return Tensor(np.array([[1, 2], [3, 4]], np.float32))


def test_an_expression_of_ones_own(matrix):
    # 5. make_plan comes by itself, and so do tree, loop, kernel, assignment and composition.
    assert make_plan(doubled(matrix) * 10.0).eval(3, 1) == 40
    out = TensorContainer((4, 2), init=1.0)
    out += doubled(matrix * 2.0) - 1.0
    assert out.numpy().tolist() == [[2, 4], [2, 4], [6, 8], [6, 8]]
    np.testing.assert_array_equal(evaluate(doubled(matrix, 3)), np.repeat(matrix.numpy(), 3, 0))
    assert "l0[(((i / 2) * n1) + j)]" in doubled(matrix).loop()


def test_its_gradient_and_its_errors(matrix):
    g = Tensor(np.ones((4, 2), np.float32))
    (received,) = vjp([doubled(matrix)], [g], [matrix])
    np.testing.assert_array_equal(evaluate(received), [[2, 2], [2, 2]])
    with pytest.raises(ShapeError, match="expected a matrix, got <Tensor 2 float32>"):
        doubled(matrix[0])
