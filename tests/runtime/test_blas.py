"""Matrix products: every form, degenerate sizes, gaps between rows, batches, threads, fork."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.base import DTypeError, ParamError
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries import blas
from gnomon.runtime.libraries.product import product

Array = np.ndarray[Any, Any]
TOLERANCE = {"float32": 1e-4, "float64": 1e-11}


def stored(rng: np.random.Generator, shape: tuple[int, ...], gap: int, dtype: str) -> Array:
    """Random numbers in rows with NaN in the gap after each."""
    whole = np.full((*shape[:-1], shape[-1] + gap), np.nan, dtype)
    whole[..., : shape[-1]] = rng.standard_normal(shape)
    return whole


def check(
    m: int, n: int, k: int, dtype: str, ta: bool, tb: bool, alpha: float, beta: float, gap: int,
    batch: int = 1,
) -> None:  # fmt: skip
    rng = np.random.default_rng(m * 100 + n * 10 + k)
    a = stored(rng, (batch, k, m) if ta else (batch, m, k), gap, dtype)
    b = stored(rng, (batch, n, k) if tb else (batch, k, n), gap, dtype)
    c = stored(rng, (batch, m, n), gap, dtype)
    if beta == 0:
        c[:] = np.nan
    inner = [x[..., : x.shape[-1] - gap] for x in (a, b, c)]
    left = inner[0].swapaxes(1, 2) if ta else inner[0]
    right = inner[1].swapaxes(1, 2) if tb else inner[1]
    want = alpha * (left @ right) + (beta * inner[2] if beta else 0)
    step = blas.step(
        product(
            dtype, m, n, k, transpose_a=ta, transpose_b=tb, alpha=alpha, beta=beta,
            lda=a.shape[2], ldb=b.shape[2], ldc=c.shape[2], batch=batch,
        )
    )  # fmt: skip
    step.bind(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    step.run()
    scale = TOLERANCE[dtype] * max(1, k) ** 0.5
    np.testing.assert_allclose(inner[2], want, rtol=scale, atol=scale)
    assert np.isnan(c[..., n:]).all()
    assert step.flops == 2 * m * n * k * batch


FLAGS = [(False, False), (False, True), (True, False), (True, True)]
SIZES = (0, 1, 2, 17, 40)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("ta", "tb"), FLAGS)
def test_all_forms(dtype: str, ta: bool, tb: bool) -> None:
    for (m, n, k), beta in itertools.product(itertools.product(SIZES, repeat=3), (0.0, 1.0, -0.5)):
        check(m, n, k, dtype, ta, tb, 0.7, beta, 3)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(0, 300)] * 3), flags=st.tuples(st.booleans(), st.booleans()),
    beta=st.sampled_from([0.0, 1.0]), gap=st.integers(0, 2), batch=st.integers(0, 4),
)  # fmt: skip
def test_random_products(
    sizes: tuple[int, int, int], flags: tuple[bool, bool], beta: float, gap: int, batch: int
) -> None:
    check(*sizes, "float32", *flags, 1.0, beta, gap, batch)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_cut_for_any_number_of_threads(count: int) -> None:
    before = threads.num_threads()
    try:
        threads.set_num_threads(count)
        for m, n, k in ((300, 200, 100), (33, 513, 170), (2000, 1, 700), (1, 2000, 700)):
            for flags in FLAGS:
                check(m, n, k, "float32", *flags, 1.0, 1.0, 1)
        check(5, 6, 7, "float64", False, True, 1.0, 0.0, 0, batch=1000)
        check(80, 90, 70, "float32", True, False, 1.0, 0.0, 0, batch=11)
        check(1, 90, 70, "float32", True, False, 1.0, 0.0, 0, batch=11)
    finally:
        threads.set_num_threads(before)


def test_batch_of_single_rows_with_gaps() -> None:
    for m, n, k in ((1, 1, 0), (1, 5, 0), (1, 5, 3), (1, 1, 3)):
        for beta in (0.0, 1.0):
            check(m, n, k, "float32", False, False, 1.0, beta, 2, batch=3)


def test_one_matrix_for_a_whole_batch() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 5, 6)), rng.standard_normal((6, 7))
    c = np.empty((4, 5, 7))
    step = blas.step(product("float64", 5, 7, 6, batch=4, strides=(30, 0, 35)))
    step.bind(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    step.run()
    np.testing.assert_allclose(c, a @ b)


@pytest.mark.parametrize("shape", [(20, 30, 40), (1, 30, 40), (20, 1, 40)])
def test_bind(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    step = blas.step(product("float32", m, n, k))
    rng = np.random.default_rng(0)
    for _ in range(2):
        a, b = (rng.standard_normal(s).astype("float32") for s in ((m, k), (k, n)))
        c = np.empty((m, n), "float32")
        step.bind(a.ctypes.data, b.ctypes.data, c.ctypes.data)
        step.run()
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_support() -> None:
    assert blas.supports("float32")
    assert blas.supports(np.float64)
    assert not any(blas.supports(name) for name in ("float16", "bfloat16", "int32", "uint8"))
    with pytest.raises(DTypeError, match=r"gemm_step: argument 'dtype': .* got float16"):
        blas.step(product("float16", 1, 1, 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m": -1}, "'m': expected a size"),
        ({"k": 1 << 31}, "'k': expected a size"),
        ({"batch": -2}, "'batch': expected a size"),
        ({"lda": 2}, "'lda': expected at least 3 elements, got 2"),
        ({"ldb": 3}, "'ldb': expected at least 4 elements, got 3"),
        ({"ldc": 1 << 31}, "'ldc': expected at least 4 elements"),
    ],
)
def test_refusals(change: dict[str, int], words: str) -> None:
    sizes: dict[str, Any] = {"m": 2, "n": 4, "k": 3} | change
    with pytest.raises(ParamError, match=words):
        product("float32", **sizes)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork() -> None:
    check(300, 300, 300, "float32", False, False, 1.0, 0.0, 0)
    child = os.fork()
    if child == 0:
        check(300, 300, 300, "float32", True, False, 1.0, 0.0, 0)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
