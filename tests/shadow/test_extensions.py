"""The vocabulary of the tensor language, compiled, against NumPy; and extensions of others."""

from __future__ import annotations

import sys
import textwrap
import types

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError
from gnomon.expr import extension as outside
from gnomon.shadow import Tensor, red

RNG = np.random.default_rng(11)
X = RNG.normal(size=(4, 6, 8)).astype(np.float32)
Z = RNG.normal(size=(3, 8)).astype(np.float32)
W = RNG.normal(size=(3, 8)).astype(np.float32)
R = RNG.normal(size=(3, 4)).astype(np.float32)


def computed(e) -> np.ndarray:
    out = np.zeros(e.shape, e.dtype.numpy)
    Tensor(out).assign(e)
    return out


def T(array) -> Tensor:
    return Tensor(np.array(array))


def cplx(pairs: np.ndarray) -> np.ndarray:
    return pairs[..., ::2] + 1j * pairs[..., 1::2]


def pairs(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], -1).reshape(*z.shape[:-1], -1)


INDEX = np.array([2, 0, 7, 5])
MEANINGS = {
    "broadcast": (lambda: shadow.broadcast(T(X[0, 0]), (2, 8, 3), 1), X[0, 0][None, :, None]),
    "repmat": (lambda: shadow.repmat(T(X[0, 0]), 3), np.tile(X[0, 0], (3, 1))),
    "broadcast_scalar": (lambda: shadow.broadcast_scalar(T(X[0, 0, :1]), (2, 3)), X[0, 0, 0]),
    "broadcast_with_axis": (lambda: shadow.broadcast_with_axis(T(Z), 0, 5), Z[:, None]),
    "broadcast_keepdim": (lambda: shadow.broadcast_keepdim(T(Z[:, :1]), 1, 5), Z[:, :1]),
    "sum_rows": (lambda: shadow.sum_rows(T(Z)), Z.sum(0)),
    "sumall_except_dim": (lambda: shadow.sumall_except_dim(T(X), 1), X.sum((0, 2))),
    "reduce_except_dim": (
        lambda: shadow.reduce_except_dim(red.maximum, T(X), 2, 0.5),
        X.max((0, 1)) / 2,
    ),
    "reduce_with_axis": (lambda: shadow.reduce_with_axis(red.minimum, T(X), 1), X.min(1)),
    "argmax": (lambda: shadow.reduce_with_axis(red.maximum, T(X), 1, True), X.argmax(1)),
    "reduce_keepdim": (lambda: shadow.reduce_keepdim(red.sum, T(X), 0), X.sum(0, keepdims=True)),
    "transpose_indices": (
        lambda: shadow.transpose_indices(T(np.arange(X.size)), X.shape, (2, 0, 1)),
        np.arange(X.size).reshape(X.transpose(2, 0, 1).shape).transpose(1, 2, 0).ravel(),
    ),
    "mirror": (lambda: shadow.mirror(T(X)), X[..., ::-1]),
    "slice": (lambda: shadow.slice(T(X) * 1.0, 1, 3, 2), X[:, :, 1:3]),
    "slice_ex": (lambda: shadow.slice_ex(T(X), (1,), (3,)), X[1:3]),
    "concat": (lambda: shadow.concat(T(X), T(X) * 2.0, 1), np.concatenate([X, 2 * X], 1)),
    "crop": (lambda: shadow.crop(T(X), (2, 3), 1, 4), X[:, 1:3, 4:7]),
    "pad": (lambda: shadow.pad(T(X), 1, 2), np.pad(X, ((0, 0), (1, 1), (2, 2)))),
    "pool": (lambda: shadow.pool("max", T(X), 2, 2), X.reshape(4, 3, 2, 4, 2).max((2, 4))),
    "chpool": (
        lambda: shadow.chpool("sum", T(X), 3),
        sum(np.pad(X, ((1, 1), (0, 0), (0, 0)))[k : k + 4] for k in range(3)),
    ),
    "upsampling": (
        lambda: shadow.upsampling_nearest(T(X), 3),
        X.repeat(3, 1).repeat(3, 2),
    ),
    "take": (lambda: shadow.take(T(INDEX), T(X[0].T)), X[0].T[INDEX]),
    "one_hot_encode": (lambda: shadow.one_hot_encode(T(INDEX), 8), np.eye(8)[INDEX]),
    "choose": (
        lambda: shadow.mat_choose_row_element(T(X[:, 0]), T(INDEX)),
        X[range(4), 0, INDEX],
    ),
    "mask": (lambda: shadow.mask(T(INDEX), T(X)), X * INDEX[:, None, None]),
    "range": (lambda: shadow.range(1, 3, 0.5, 2), np.repeat(np.arange(1, 3, 0.5), 2)),
    "range of one": (lambda: shadow.range(4, dtype="int32"), np.arange(4)),
    "range down": (lambda: shadow.range(5, -1, -2, dtype="int64"), [5, 3, 1]),
    "mul_cc": (lambda: shadow.complex_mul_cc(T(Z), T(W)), pairs(cplx(Z) * cplx(W))),
    "mul_cr": (lambda: shadow.complex_mul_cr(T(Z), T(R)), pairs(cplx(Z) * R)),
    "mul_rc": (lambda: shadow.complex_mul_rc(T(R), T(Z)), pairs(cplx(Z) * R)),
    "div_cc": (lambda: shadow.complex_div_cc(T(Z), T(W)), pairs(cplx(Z) / cplx(W))),
    "div_cr": (lambda: shadow.complex_div_cr(T(Z), T(R)), pairs(cplx(Z) / R)),
    "div_rc": (lambda: shadow.complex_div_rc(T(R), T(Z)), pairs(R / cplx(Z))),
    "conj": (lambda: shadow.conj(T(Z)), pairs(cplx(Z).conj())),
    "exchange": (lambda: shadow.complex_exchange(T(Z)), Z.reshape(3, 4, 2)[..., ::-1]),
    "pad_imag": (lambda: shadow.complex_pad_imag(T(R)), pairs(R + 0j)),
    "toreal": (lambda: shadow.complex_toreal(T(Z)), Z[:, ::2]),
    "abs_square": (lambda: shadow.complex_abs_square(T(Z)), abs(cplx(Z)) ** 2),
    "sum_real_imag": (lambda: shadow.complex_sum_real_imag(T(Z)), Z[:, ::2] + Z[:, 1::2]),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_meaning(name):
    build, want = MEANINGS[name]
    e = build()
    want = np.asarray(want)
    if want.size == np.prod(e.shape):
        want = want.reshape(e.shape)
    np.testing.assert_allclose(computed(e), np.broadcast_to(want, e.shape), rtol=2e-5, atol=1e-6)


def test_unpool_and_ch_unpool_give_every_tie_all():
    x = np.ones((2, 4, 4), np.float32)
    y, g = np.ones((2, 2, 2), np.float32), np.full((2, 2, 2), 3, np.float32)
    assert np.all(computed(shadow.unpool("max", T(x), T(y), T(g), 2, 2)) == 3)
    got = computed(shadow.ch_unpool("max", T(x), T(x), T(x), 3))
    assert np.all(got == 2)


def test_patches_go_and_come():
    img = X[None, :2]
    columns = computed(shadow.unpack_patch2col(T(img), (2, 2), (2, 2)))
    assert columns.shape == (8, 12)
    back = computed(shadow.pack_col2patch(T(columns), img.shape, 2, 2))
    np.testing.assert_array_equal(back, img)


V, M = T(np.ones(3, np.float32)), T(np.ones((2, 3), np.float32))
ERRORS = [
    (lambda: shadow.repmat(M, 2), ShapeError, "repmat: argument 'src': expected a vector"),
    (lambda: shadow.repmat(V, -1), ShapeError, "nrow"),
    (lambda: shadow.broadcast_scalar(V, (2,)), ShapeError, "broadcast_scalar"),
    (lambda: shadow.broadcast_with_axis(M, 2, 4), ShapeError, "an axis from -1 to"),
    (lambda: shadow.broadcast_keepdim(M, 1, 4), ShapeError, "size 1 along axis 1"),
    (lambda: shadow.sum_rows(V), ShapeError, "a matrix"),
    (lambda: shadow.sumall_except_dim(M, 2), ShapeError, "reduce_except_dim"),
    (lambda: shadow.reduce_with_axis(red.sum, M, 0, True), GnomonError, "have a position"),
    (lambda: shadow.mirror(shadow.reduce(V, "sum")), ShapeError, "at least one axis"),
    (lambda: shadow.chpool("sum", M, 3), ShapeError, "three axes"),
    (lambda: shadow.chpool("sum", T(X), 2), ShapeError, "an odd number"),
    (lambda: shadow.upsampling_nearest(V, 2), ShapeError, "two axes"),
    (lambda: shadow.upsampling_nearest(M, 0), ShapeError, "at least 1"),
    (lambda: shadow.mat_choose_row_element(V, V), ShapeError, "a matrix"),
    (lambda: shadow.mask(V, M), ShapeError, "one number a row"),
    (lambda: shadow.range(0, 3, 0), ShapeError, "a step other than 0"),
    (lambda: shadow.range(0, float("inf")), ShapeError, "finite"),
    (lambda: shadow.range(0.5, 3, dtype="int32"), DTypeError, "int32"),
    (lambda: shadow.conj(V), ShapeError, "conj: argument 'src': expected an even last axis"),
    (lambda: shadow.complex_mul_cr(T(Z), T(Z)), ShapeError, "mul"),
    (lambda: shadow.crop(M, (1, 1), 1), ShapeError, "both or none"),
    (lambda: shadow.pad(V, 1), ShapeError, "two axes"),
    (lambda: shadow.pool("max", M, (1, 2, 3), 1), ShapeError, "a number or"),
    (lambda: shadow.pool(red.Reducer("two", 2, None, None), M, 1, 1), GnomonError, "single value"),
]


@pytest.mark.parametrize(("build", "kind", "words"), ERRORS)
def test_errors(build, kind, words):
    with pytest.raises(kind, match=words):
        build()


@shadow.op
def farther(a, b):
    return a if abs(a) > abs(b) else b


def test_a_reducer_of_a_user_reduces_and_pools():
    extreme = red.make(farther, 0.0)
    want = np.take_along_axis(X, abs(X).argmax(1)[:, None], 1)[:, 0]
    np.testing.assert_array_equal(computed(shadow.reduce_with_axis(extreme, T(X), 1)), want)
    windows = X.reshape(4, 3, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(4, 3, 4, 4)
    want = np.take_along_axis(windows, abs(windows).argmax(-1)[..., None], -1)[..., 0]
    np.testing.assert_array_equal(computed(shadow.pool(extreme, T(X), 2, 2)), want)
    with pytest.raises(GnomonError, match="no derivative"):
        shadow.unpool(extreme, T(X), T(want), T(want), 2, 2)
    pooled = shadow.pool(extreme, T(X), 2, 2)
    with pytest.raises(GnomonError, match="no derivative"):
        pooled.adjoint(pooled)


def test_an_extension_is_entered_by_a_decorator():
    @shadow.extension
    def tripled(e):
        return e * 3.0

    assert shadow.tripled is tripled
    np.testing.assert_array_equal(computed(shadow.tripled(T(Z))), Z * 3)
    other = types.FunctionType(tripled.__code__, {}, "tripled")
    with pytest.raises(ParamError, match="registered already"):
        shadow.extension(other)
    with pytest.raises(ParamError, match="a function with a name"):
        shadow.extension(lambda e: e)
    with pytest.raises(AttributeError, match="did you mean 'tripled'"):
        shadow.tripeld
    with pytest.raises(AttributeError, match=r"fn\.exp is a function of elements"):
        shadow.exp
    with pytest.raises(AttributeError, match=r"reduce\(e, 'sum', axes\) is a reduction"):
        shadow.sum


def test_an_extension_is_found_in_an_installed_package(tmp_path, monkeypatch):
    (tmp_path / "gnomon_other.py").write_text(
        textwrap.dedent("""
        from gnomon import shadow

        @shadow.extension
        def from_elsewhere(e):
            return e + 1.0

        def from_elsewhere_too(e):
            return e + 2.0
        """)
    )
    info = tmp_path / "gnomon_other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gnomon-other\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[gnomon.extensions]\nall = gnomon_other\ntoo = gnomon_other:from_elsewhere_too\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        np.testing.assert_array_equal(computed(shadow.from_elsewhere(T(Z))), Z + 1)
        np.testing.assert_array_equal(computed(shadow.from_elsewhere_too(T(Z))), Z + 2)
        assert {"from_elsewhere", "from_elsewhere_too"} <= set(outside.EXTENSIONS.names())
    finally:
        sys.modules.pop("gnomon_other", None)
