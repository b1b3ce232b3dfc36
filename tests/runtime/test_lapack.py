"""Matrices large enough for LAPACK's own routines, beside NumPy's, one by one and in batches."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.runtime.libraries import lapack

DTYPES = [np.float32, np.float64]
SHAPES = [
    (50, 50), (3, 49, 49), (2, 1, 70, 70), (2, 130, 130), (0, 50, 50), (5, 5),
    (4, 80, 8, 8), (2000, 1, 1), (0, 4, 4), (9000, 2, 2),
]  # fmt: skip


def drawn(shape, dtype):
    """Matrices that are well conditioned."""
    root = np.random.default_rng(5).normal(size=shape)
    return (root @ np.swapaxes(root, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_beside_numpy(shape, dtype):
    a = drawn(shape, dtype) + np.triu(drawn(shape, dtype), 1) / 8
    exact = a.astype(np.float64)
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(lapack.inverse(a), np.linalg.inv(exact), **near)
    odd = a * np.where(np.arange(shape[-1]) == 2, -1, 1).astype(dtype)
    turned = odd[..., ::-1, :]  # its rows change places: pivots
    for x in (a, odd, turned):
        np.testing.assert_allclose(lapack.inverse(x), np.linalg.inv(x.astype(np.float64)), **near)
        for got, wanted in zip(lapack.slogdet(x), np.linalg.slogdet(x), strict=True):
            np.testing.assert_allclose(got, wanted, **near)
            assert got.dtype == dtype
    low = lapack.cholesky(a)
    assert not np.triu(low, 1).any()
    np.testing.assert_allclose(low, np.linalg.cholesky(drawn(shape, dtype)), **near)
    b = np.random.default_rng(6).normal(size=(*shape[:-1], 7)).astype(dtype)
    turned = np.swapaxes(low, -1, -2)
    np.testing.assert_allclose(lapack.turned_product(low, b), turned @ b, **near)
    full = low + np.triu(a, 1)  # what stands above has no meaning
    for flag, factor in ((False, low), (True, turned)):
        wanted = np.linalg.solve(factor.astype(np.float64), b)
        np.testing.assert_allclose(lapack.divided(full, b, flag), wanted, **near)
    inverse = lapack.lower_inverse(full)
    assert not np.triu(inverse, 1).any()
    np.testing.assert_allclose(inverse, np.linalg.inv(low.astype(np.float64)), **near)
    np.testing.assert_allclose(lapack.product(a, b), a @ b, **near)
    np.testing.assert_allclose(lapack.product(np.swapaxes(a, -1, -2), b), odd_product(a, b), **near)


@pytest.mark.parametrize("shape", [*SHAPES, (2, 30, 60), (1, 70), (3, 0, 50)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_orthonormal(shape, dtype):
    a = np.random.default_rng(7).normal(size=shape).astype(dtype)
    kept = a.copy()
    rows, low = lapack.orthonormal(a)
    q, r = np.linalg.qr(np.swapaxes(a, -1, -2).astype(np.float64))
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(rows, np.swapaxes(q, -1, -2), **near)
    np.testing.assert_allclose(low, np.swapaxes(r, -1, -2), **near)
    assert (rows.dtype, low.dtype) == (dtype, dtype)
    np.testing.assert_array_equal(a, kept)


@pytest.mark.parametrize("shape", [*SHAPES, (2, 30, 30)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors(shape, dtype):
    a = drawn(shape, dtype)
    rows, values = lapack.eigenvectors(np.tril(a))  # what stands above has no meaning
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a.astype(np.float64)), **near)
    np.testing.assert_allclose(rows @ a, values[..., None] * rows, **near)
    np.testing.assert_allclose(odd_product(np.swapaxes(rows, -1, -2), np.swapaxes(rows, -1, -2)),
                               np.broadcast_to(np.eye(shape[-1]), shape), **near)  # fmt: skip
    assert (rows.dtype, values.dtype) == (dtype, dtype)


def odd_product(a, b):
    return np.einsum("...ji,...jk->...ik", a, b)


@pytest.mark.parametrize("n", [4, 50])
def test_singular_matrices(n):
    a = np.ones((2, n, n))
    sign, logarithm = lapack.slogdet(np.zeros((n, n)))
    assert (sign, logarithm) == (0, -np.inf)
    for refused in (
        lambda: lapack.inverse(np.zeros((n, n))),
        lambda: lapack.cholesky(-a),
        lambda: lapack.lower_inverse(np.zeros((n, n))),
        lambda: lapack.divided(np.zeros((n, n)), a[0]),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            refused()


def test_operands_stay():
    a = drawn((50, 50), np.float64)
    a.flags.writeable = False
    before = a.copy()
    lapack.inverse(a), lapack.slogdet(a), lapack.cholesky(a)
    lapack.lower_inverse(a), lapack.divided(a, a), lapack.turned_product(a, a)
    lapack.orthonormal(a), lapack.eigenvectors(a)
    np.testing.assert_array_equal(a, before)


def test_many_small_matrices_are_one_call(monkeypatch):
    low = np.tril(drawn((256, 8, 8), np.float32))
    calls, native = [], lapack.raw_function
    monkeypatch.setattr(
        lapack, "raw_function", lambda code: calls.append(code.__name__) or native(code)
    )
    lapack.divided(low, low), lapack.lower_inverse(low), lapack.cholesky(low)
    lapack.orthonormal(low), lapack.eigenvectors(low)
    assert calls == ["each", "inverted", "each", "each", "each", "each"]


@pytest.mark.parametrize("routine", [lapack.cholesky, lapack.lower_inverse])
def test_one_of_many_that_is_singular(routine):
    a = drawn((300, 8, 8), np.float64)
    a[211, 3, 3] = 0
    with pytest.raises(np.linalg.LinAlgError):
        routine(a)


def outcome(routine, *operands):
    """What a routine says of matrices: that one is singular, or where there are numbers."""
    try:
        return np.isfinite(routine(*operands)).all()
    except np.linalg.LinAlgError:
        return "singular"


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (0, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_size_decides_which_matrices_with_an_infinity_are_singular(dtype, place):
    said = set()
    for n in (3, 47, 48, 70):
        a, b = np.eye(n, dtype=dtype), np.ones((n, 1), dtype)
        a[place] = np.inf
        low = np.tril(a)
        said.add((
            outcome(lapack.inverse, a),
            outcome(lapack.lower_inverse, low),
            outcome(lapack.divided, low, b),
        ))  # fmt: skip
    assert len(said) == 1
    assert ("singular" in said.pop()) is (place == (0, 1))  # as MXNet's LAPACK, by columns
