"""Pipelines of LLVM: which loops take which, and that they give the same to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr import ext, fn
from gnomon.expr.node import Buffer, Expr
from gnomon.plan.pipeline import plan
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import jit
from gnomon.runtime.compiler.jit import STRAIGHT
from gnomon.runtime.kernels.kernel import Kernel, pipeline, source, symbols

ROWS, COLUMNS = 37, 131
X = np.random.default_rng(5).uniform(-2, 2, (ROWS, COLUMNS)).astype(np.float32)
LIGHT, USUAL = 1, 2


def over(array: np.ndarray) -> Buffer:
    strides = [s // array.itemsize for s in array.strides]
    return Buffer(array.shape, dt.of(array.dtype), strides, array.ctypes.data, array)


CASES: dict[str, tuple[Callable[[], Expr], int]] = {
    "map": (lambda: fn.exp(over(X)) * over(X), STRAIGHT),
    "sums of rows": (lambda: ext.reduce(over(X) * over(X), "sum", 1), STRAIGHT),
    "sums of columns": (lambda: ext.reduce(over(X), "sum", 0), LIGHT),
    "rows": (lambda: over(X) + ext.broadcast_to(over(X[0]), X.shape), LIGHT),
    "turned": (lambda: over(X.T) * over(X.T), LIGHT),
    "running sums": (lambda: ext.cumsum(over(X), 1), LIGHT),
    "divided sizes": (lambda: ext.reshape(over(X.T), (ROWS, COLUMNS)), USUAL),
}


@pytest.mark.parametrize("name", CASES)
def test_the_shortest_pipeline_gives_the_same(name: str) -> None:
    make, expected = CASES[name]
    value, found = make(), []
    for opt in (LIGHT, STRAIGHT):
        dest = np.zeros(value.shape, value.dtype.numpy)
        stores = [Store(over(dest), "saveto", value)]
        structure = Structure(stores)
        nests = plan(stores, structure)
        assert pipeline(nests) == expected
        code = jit.compile_ir(source(nests).text, opt=opt, symbols=symbols())
        Kernel(signature_of(nests), code).bind(structure).run()
        found.append(dest)
    assert found[0].any()
    np.testing.assert_array_equal(*found)
