"""Products: every form and transposition, scaled, by all savers; what is refused; implicit_dot."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import DTypeError, GnomonError, ShapeError
from gnomon.shadow import Tensor, TensorContainer, batch_dot, dot, implicit_dot
from tests.shadow.memory import watched_pool

RNG = np.random.default_rng(5)
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda x: x,
    "padded": lambda x: np.pad(x, ((0, 0), (0, 3)))[:, : x.shape[1]],
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "column by column": np.asfortranarray,
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrix_by_matrix(turn_a, turn_b, layout, dtype):
    x, y = draw(4, 3, dtype=dtype), draw(3, 5, dtype=dtype)
    change = LAYOUTS[layout]
    a = Tensor(change(x.T.copy())).T if turn_a else Tensor(change(x))
    b = Tensor(change(y.T.copy())).T if turn_b else Tensor(change(y))
    out = TensorContainer((4, 5), dtype)
    out[:] = dot(a, b)
    close(out.numpy(), x @ y)
    out += 0.5 * dot(a, b)
    close(out.numpy(), 1.5 * (x @ y))
    out -= dot(a, b) * 2.0
    close(out.numpy(), -0.5 * (x @ y))


def test_matrix_by_matrix_into_any_layout():
    x, y = draw(4, 3), draw(3, 5)
    for change in LAYOUTS.values():
        memory = change(np.ones((4, 5), np.float32))
        out = Tensor(memory)
        out -= dot(Tensor(x), Tensor(y))
        close(memory, 1 - x @ y)


def test_vector_by_matrix_and_outer_product():
    v, w, m = draw(3), draw(5), draw(3, 5)
    a, b, c = Tensor(v), Tensor(w), Tensor(m)
    row, column, both = (TensorContainer(s, init=1.0) for s in ((5,), (3,), (3, 5)))
    row[:] = dot(a, c)
    close(row.numpy(), v @ m)
    row += 2.0 * dot(a, c)
    close(row.numpy(), 3 * (v @ m))
    column -= dot(b, c.T)
    close(column.numpy(), 1 - m @ w)
    both += 0.5 * dot(a.T, b)
    close(both.numpy(), 1 + 0.5 * np.outer(v, w))
    both[:] = dot(Tensor(np.repeat(v, 2)[::2]).T, b)
    close(both.numpy(), np.outer(v, w))


@pytest.mark.parametrize("turn_b", [False, True])
@pytest.mark.parametrize("turn_a", [False, True])
def test_batches(turn_a, turn_b):
    x, y = draw(6, 4, 3), draw(6, 3, 5)
    a = Tensor(x.transpose(0, 2, 1).copy() if turn_a else x)
    b = Tensor(y.transpose(0, 2, 1).copy() if turn_b else y)
    out = TensorContainer((6, 4, 5), init=1.0)
    out -= 2.0 * batch_dot(a, b, turn_a, turn_b)
    close(out.numpy(), 1 - 2 * (x @ y))
    out[:] = batch_dot(a, b, turn_a, turn_b)
    close(out.numpy(), x @ y)
    shadow.BatchGEMM(out, a, b, 2.0, 1.0, turn_a, turn_b)
    close(out.numpy(), 3 * (x @ y))


@pytest.mark.parametrize(
    ("scaled", "factor"),
    [
        (lambda e: 3.0 * e, 3),
        (lambda e: e * 3.0, 3),
        (lambda e: -e, -1),
        (lambda e: e / 2.0, 0.5),
        (lambda e: 2.0 * (-(e * 3.0) / 4.0), -1.5),
    ],
)
def test_scales_stay_one_product(scaled, factor):
    x, y = draw(4, 3), draw(3, 5)
    out, e = TensorContainer((4, 5)), scaled(dot(Tensor(x), Tensor(y)))
    assert out.explain(e) == "library: <Dot 4x5 float32>"
    out[:] = e
    close(out.numpy(), factor * (x @ y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e39, 1e-39, float("inf"), float("nan")])
def test_scales_that_no_library_takes(dtype, scale):
    """Of 1e39 and of 1 / 1e-39 float32 has infinity."""
    x, y = np.array([[np.nan, 1.0], [2.0, 3.0]], dtype), np.eye(2, dtype=dtype)
    out = TensorContainer((2, 2), dtype)
    with np.errstate(all="ignore"):
        want = x @ y * np.asarray(scale, dtype)
        for value in (dot(Tensor(x), Tensor(y)) * scale, dot(Tensor(x), Tensor(y)) / scale):
            out[:] = value
            np.testing.assert_array_equal(out.numpy(), want)
            want = x @ y / np.asarray(scale, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_scaled_products_that_come_again(dtype):
    """Steps that need not multiply by 1 stand for no others."""
    a, b, out = (TensorContainer(s, dtype, init=1.0) for s in ((4, 4), (4, 5), (4, 5)))
    for scale in (0.25, 1.0, 0.25, 0.5, 1.0, 0.25):
        before = out.numpy().astype("f")
        out += dot(a, b) * scale
        np.testing.assert_array_equal(out.numpy().astype("f"), before + 4 * scale)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bfloat16"])
def test_dtypes_without_a_library(dtype):
    x, y = (RNG.integers(0, 3, s).astype(shadow.type_switch(0).numpy) for s in ((4, 3), (3, 5)))
    a, b = (shadow.new_tensor(s.shape, shadow.tcast(dtype, Tensor(s)), dtype) for s in (x, y))
    out = TensorContainer((4, 5), dtype, init=1)
    out += dot(a, b)
    np.testing.assert_array_equal(out.numpy().astype("f"), x @ y + 1)


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))])
def test_empty_products(shapes):
    a, b = (TensorContainer(s) for s in shapes)
    out = TensorContainer((shapes[0][0], shapes[1][1]), init=7.0)
    out += dot(a, b)
    assert (out.numpy() == 7).all()
    out[:] = dot(a, b)
    assert (out.numpy() == 0).all()


def test_a_product_of_the_destination_itself():
    x = draw(3, 3)
    a = Tensor(x.copy())
    a[:] = dot(a, a)
    close(a.numpy(), x @ x)
    a = Tensor(x.copy())
    a -= dot(a.T, a)
    close(a.numpy(), x - x.T @ x)


@pytest.mark.parametrize("pad", [True, False])
def test_a_product_needs_no_memory(pad, monkeypatch):
    a, b = TensorContainer((40, 30), pad=pad, init=1.0), TensorContainer((50, 30), init=1.0)
    out = TensorContainer((40, 50), pad=pad)
    out[:] = dot(a, b.T)
    with watched_pool(monkeypatch) as sizes:
        out += 2.0 * dot(a, b.T)
    assert sum(sizes) < 1000  # what a library needs to run at all
    assert (out.numpy() == 90).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: dot(a, b) + 1.0,
        lambda a, b: dot(a, b) + dot(a, b),
        lambda a, b: 1.0 / dot(a, b),
        lambda a, b: shadow.F("exp")(dot(a, b)),
        lambda a, b: dot(a, b).T,
        lambda a, b: dot(a + 1.0, b),
        lambda a, b: dot(a, (b * 2.0).T),
        lambda a, b: dot(dot(a, b), a),
        lambda a, b: dot(shadow.flip(a * 1.0, 0), b),
    ],
)
def test_a_product_stands_alone_over_data(make):
    a, b = Tensor(draw(3, 3)), Tensor(draw(3, 3))
    out = TensorContainer((3, 3), init=5.0)
    with pytest.raises(GnomonError, match="implicit_dot"):
        out[:] = make(a, b)
    assert (out.numpy() == 5).all()


def test_products_are_not_multiplied_or_divided_into():
    a = Tensor(draw(3, 3))
    out = TensorContainer((3, 3), init=5.0)
    with pytest.raises(GnomonError, match=r"multo takes no .*; implicit_dot"):
        out *= dot(a, a)
    with pytest.raises(GnomonError, match=r"divto takes no .*; implicit_dot"):
        out /= 2.0 * dot(a, a)
    assert (out.numpy() == 5).all()


@pytest.mark.parametrize(
    ("left", "right", "error"),
    [
        ((2, 3), (2, 3), ShapeError),
        ((3,), (3,), ShapeError),
        ((2, 3), (3,), ShapeError),
        ((2, 2, 3), (3, 2), ShapeError),
        ((3,), (2, 3), ShapeError),
    ],
)
def test_shapes_that_do_not_fit(left, right, error):
    a, b = TensorContainer(left), TensorContainer(right)
    with pytest.raises(error, match=f"dot.*{'x'.join(map(str, right))}"):
        dot(a, b)
    with pytest.raises(error, match="implicit_dot"):
        implicit_dot(a, b)


def test_dtypes_and_destinations_that_do_not_fit():
    a, b = Tensor(draw(2, 3)), Tensor(draw(3, 2, dtype="float64"))
    with pytest.raises(DTypeError, match=r"dot.*float32.*float64"):
        dot(a, b)
    out = TensorContainer((2, 3), init=5.0)
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        out[:] = dot(a, a.T)
    assert (out.numpy() == 5).all()


def test_implicit_dot_stands_anywhere():
    x, y, z = draw(4, 3), draw(5, 3), draw(4, 5)
    a, b, c = Tensor(x), Tensor(y), Tensor(z)
    out = TensorContainer((4, 5), init=1.0)
    out[:] = implicit_dot(a, b.T) + 1.0
    close(out.numpy(), x @ y.T + 1)
    out *= implicit_dot(a * 2.0, (b - 1.0).T) * c
    close(out.numpy(), (x @ y.T + 1) * ((2 * x) @ (y - 1).T) * z)
    square = TensorContainer((4, 4))
    square[:] = implicit_dot(implicit_dot(a, b.T), c.T)
    close(square.numpy(), x @ y.T @ z.T)


def test_implicit_dot_takes_no_memory(monkeypatch):
    a, b = TensorContainer((64, 32), init=1.0), TensorContainer((32, 64), init=1.0)
    out = TensorContainer((64, 64))
    with watched_pool(monkeypatch) as sizes:
        out[:] = implicit_dot(a, b) + 1.0
    assert not sizes
    assert (out.numpy() == 33).all()


@pytest.mark.parametrize("saver", ["assign", "__iadd__", "__isub__"])
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((1, 4), (4, 5)), ((3, 4), (4, 1))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_times_nan_by_a_statement_that_is_known(saver, shapes, dtype):
    x, y = draw(*shapes[0], dtype=dtype), draw(*shapes[1], dtype=dtype)
    x[0, 1] = np.nan
    result = Tensor(np.ones((len(x), y.shape[1]), dtype))
    for factor in (2.0, 3.0, 0.5, 0.0, 1.5, -0.0):
        result[:] = 1.0
        getattr(result, saver)(factor * dot(Tensor(x), Tensor(y)))
        product = factor * (x @ y)
        want = {"assign": product, "__iadd__": 1 + product, "__isub__": 1 - product}[saver]
        close(result.numpy(), want)


@pytest.mark.parametrize("turned", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize(("m", "n"), [(150, 70), (130, 1), (1, 200)])
def test_a_large_product_times_nothing(turned, m, n):
    pairs = zip(((m, 90), (90, n)), turned, strict=True)
    x, y = (draw(*(shape[::-1] if t else shape), dtype="float64") for shape, t in pairs)
    (x.T if turned[0] else x)[m - 1, 3] = np.inf
    (y.T if turned[1] else y)[5, n // 2] = np.nan
    left, right = (Tensor(e).T if t else Tensor(e) for e, t in zip((x, y), turned, strict=True))
    result = Tensor(np.ones((m, n)))
    product = (x.T if turned[0] else x) @ (y.T if turned[1] else y)
    for factor in (2.0, 3.0, 0.0):
        result[:] = 1.0
        result += factor * dot(left, right)
        with np.errstate(invalid="ignore"):
            close(result.numpy(), 1 + factor * product)
