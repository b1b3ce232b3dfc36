"""Every extension: its meaning against NumPy, its adjoint against differences, its errors."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.base import DTypeError, GnomonError, ShapeError
from gnomon.expr import ext
from gnomon.expr.composite import Composite
from gnomon.expr.diff import vjp
from gnomon.expr.ext.philox import rounds
from gnomon.expr.ext.take import Place
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar, map_over
from gnomon.expr.oracle import _Reader, evaluate
from gnomon.expr.term import Arena
from gnomon.expr.walk import postorder


def modules():
    names = [m.name for m in pkgutil.iter_modules(ext.__path__)]
    return [importlib.import_module(f"{ext.__name__}.{name}") for name in names]


def case_list():
    cases = []
    for module in modules():
        name = module.__name__.rpartition(".")[2]
        cases += [pytest.param(e, id=f"{name}{k}") for k, e in enumerate(module.cases())]
    return cases


def widened(root: Expr) -> Expr:
    """The same expression over float64 leaves."""
    new: dict[Expr, Expr] = {}
    for node in postorder([root]):
        if isinstance(node, Buffer):
            new[node] = Buffer(node.shape, dt.float64 if node.dtype.kind == "f" else node.dtype)
        elif isinstance(node, Scalar):
            new[node] = Scalar(node.value, dt.float64 if node.dtype.kind == "f" else node.dtype)
        elif isinstance(node, Map):
            new[node] = map_over(node.fn, [new[a] for a in node.args])
        elif isinstance(node, Cast):
            new[node] = Cast(new[node.src], dt.float64)
        else:
            new[node] = rebuilt(node, new)
    return new[root]


def rebuilt(node: Composite, new: dict[Expr, Expr]) -> Expr:
    values = {f.name: getattr(node, f.name) for f in fields(node) if f.init}
    for name, value in values.items():
        if isinstance(value, Expr):
            values[name] = new[value]
        elif value is dt.float32:
            values[name] = dt.float64
        elif isinstance(value, tuple) and value and isinstance(value[0], Expr):
            values[name] = tuple(new[v] for v in value)
    return type(node)(**values)


def leaves_of(e: Expr) -> list[Buffer]:
    return [n for n in postorder([e]) if isinstance(n, Buffer)]


def sample(rng: np.random.Generator, leaf: Buffer) -> np.ndarray:
    if leaf.dtype.kind == "f":
        return rng.normal(size=leaf.shape).astype(leaf.dtype.numpy)
    return rng.integers(-2, 6, leaf.shape).astype(leaf.dtype.numpy)


@pytest.mark.parametrize("case", case_list())
def test_adjoint_is_the_transposed_derivative(case):
    e = widened(case)
    rng = np.random.default_rng(1)
    values = {leaf: sample(rng, leaf) for leaf in leaves_of(e)}
    inputs = [leaf for leaf in values if leaf.dtype.kind == "f"]
    g = Buffer(e.shape, dt.float64)
    weights = rng.normal(size=e.shape)
    steps = {leaf: rng.normal(size=leaf.shape) for leaf in inputs}
    h = 1e-6
    plus, minus = (
        evaluate(e, {**values, **{x: values[x] + s * h * steps[x] for x in inputs}})
        for s in (1, -1)
    )
    forward = np.sum((plus - minus) / (2 * h) * weights)
    if e.dtype.kind != "f" or not inputs:
        assert forward == 0
        return
    backward = 0.0
    for x, grad in zip(inputs, vjp([e], [g], inputs), strict=True):
        if grad is not None:
            assert grad.shape == x.shape
            backward += np.sum(evaluate(grad, {**values, g: weights}) * steps[x])
    np.testing.assert_allclose(backward, forward, rtol=1e-6, atol=1e-8)


def test_every_public_function_stands_in_a_file_with_cases():
    for module in modules():
        assert list(module.cases()), module.__name__
    homes = {getattr(ext, name).__module__ for name in ext.__all__}
    assert homes == {m.__name__ for m in modules()}


X = np.arange(60.0).reshape(3, 4, 5).astype(np.float32)
R = np.random.default_rng(7).normal(size=(3, 4, 5)).astype(np.float32)
IDX = np.array([[2, 0], [1, 9]])


def shown(build, *arrays):
    buffers = [Buffer(a.shape, dt.of(a.dtype)) for a in arrays]
    return evaluate(build(*buffers), dict(zip(buffers, arrays, strict=True)))


MEANINGS = [
    (lambda e: ext.reshape(e, (4, -1)), lambda a: a.reshape(4, -1)),
    (lambda e: ext.reshape(e, (3, 2, 2, 5, 1)), lambda a: a.reshape(3, 2, 2, 5, 1)),
    (ext.transpose, lambda a: a.T),
    (lambda e: ext.transpose(e, (1, 2, 0)), lambda a: a.transpose(1, 2, 0)),
    (lambda e: ext.swapaxis(e, 0, -1), lambda a: a.swapaxes(0, -1)),
    (lambda e: ext.flip(e, (0, 2)), lambda a: a[::-1, :, ::-1]),
    (lambda e: ext.slice_(e, (1, -1), (None, 0), (1, -2)), lambda a: a[1:, -1:0:-2]),
    (lambda e: ext.slice_(e, (0, 2), (2, 4)), lambda a: a[0:2, 2:4]),
    (lambda e: ext.crop(e, (2, 3)), lambda a: a[:, 1:3, 1:4]),
    (
        lambda e: ext.pad(e, (0, 1, 2), (1, 0, 0), 5),
        lambda a: np.pad(a, ((0, 1), (1, 0), (2, 0)), constant_values=5),
    ),
    (lambda e: ext.concat([e, e * 2.0, e], 1), lambda a: np.concatenate([a, 2 * a, a], 1)),
    (
        lambda e: ext.broadcast_to(ext.slice_(e, (0, 0), (3, 1)), (2, 3, 4, 5)),
        lambda a: np.broadcast_to(a[:, :1], (2, 3, 4, 5)),
    ),
    (lambda e: ext.reduce(e, "sum", (0, 2)), lambda a: a.sum((0, 2))),
    (lambda e: ext.reduce(e, "max", 1, keepdims=True), lambda a: a.max(1, keepdims=True)),
    (lambda e: ext.reduce(e, "min"), lambda a: a.min()),
    (lambda e: ext.reduce(e, "prod", -1), lambda a: a.prod(-1)),
    (lambda e: ext.arg_reduce(e, "max", 2), lambda a: a.argmax(2)),
    (lambda e: ext.arg_reduce(e, "min", 0), lambda a: a.argmin(0)),
    (lambda e: ext.iota(e.shape, 1, dt.float32), lambda a: np.indices(a.shape)[1]),
    (
        lambda e: ext.pool(e, "max", (2, 2), (2, 1)),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 2), (1, 2))[:, ::2].max((-2, -1)),
    ),
    (
        lambda e: ext.pool(e, "avg", (3, 5), (1, 1)),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, (3, 5), (1, 2)).mean((-2, -1)),
    ),
]


@pytest.mark.parametrize(("build", "numpy"), MEANINGS)
@pytest.mark.parametrize("a", [X, R], ids=["arange", "normal"])
def test_meaning(build, numpy, a):
    np.testing.assert_allclose(shown(build, a), numpy(a), rtol=2e-6)


def test_take_pick_and_one_hot_clip_what_lies_outside():
    inside = np.clip(IDX, 0, 2)
    np.testing.assert_array_equal(shown(ext.take, X, IDX), X[inside])
    got = shown(lambda i, g: ext.take_grad(i, g, 3), IDX, X[:2, :2].copy())
    want = np.zeros((3, 5), np.float32)
    np.add.at(want, inside, X[:2, :2])
    np.testing.assert_array_equal(got, want)
    rows = X[0]
    index = np.array([1, -7, 4, 99])
    picked = rows[range(4), [1, 0, 4, 4]]
    np.testing.assert_array_equal(shown(ext.pick, rows, index), picked)
    hot = shown(lambda i: ext.one_hot(i, 5), index)
    np.testing.assert_array_equal(
        hot, np.eye(5)[index.clip(0, 4)] * ((index >= 0) & (index < 5))[:, None]
    )
    filled = shown(ext.mat_fill_row_element, rows, picked + 1, np.array([0, 1, 2, 3]))
    assert [filled[k, k] for k in range(4)] == list(picked + 1)


def test_patches_have_the_order_of_rows_and_columns_of_the_definition():
    img = np.random.default_rng(0).normal(size=(2, 3, 6, 7)).astype(np.float32)
    columns = shown(lambda e: ext.unpack_patch2col(e, (3, 2), (2, 1), None, (1, 0)), img)
    padded = np.pad(img, ((0, 0), (0, 0), (1, 1), (0, 0)))
    assert columns.shape == (3 * 3 * 2, 2 * 3 * 6)
    for c, y, x, n, py, px in [(0, 0, 0, 0, 0, 0), (2, 1, 0, 1, 2, 5), (1, 2, 1, 0, 1, 3)]:
        got = columns[(c * 3 + y) * 2 + x, (n * 3 + py) * 6 + px]
        assert got == padded[n, c, py * 2 + y, px + x]


def test_the_gradient_of_a_maximum_goes_to_every_tie():
    a = np.array([[3.0, 3, 1, 0]], np.float32)
    x, y, g = Buffer((1, 4)), Buffer((1, 2)), Buffer((1, 2))
    e = ext.unpool("max", x, y, g, (2,), (2,))
    got = evaluate(
        e, {x: a, y: np.array([[3.0, 1]], np.float32), g: np.array([[10.0, 20]], np.float32)}
    )
    assert got.tolist() == [[10, 10, 20, 0]]


def test_transposing_twice_gives_the_same_object():
    x = Buffer((2, 3))
    assert ext.transpose(ext.transpose(x)) is x
    assert ext.reshape(ext.reshape(x, (6,)), (2, 3)).shape == (2, 3)


V = Buffer((2, 3))
IDS = Buffer((2,), dt.int64)
ERRORS = [
    (lambda: ext.reshape(V, (4, 2)), ShapeError, "reshape: argument 'shape': expected 6 elements"),
    (lambda: ext.reshape(V, (4, -1)), ShapeError, "a divisor of 6"),
    (lambda: ext.reshape(V, (-1, -1)), ShapeError, "-1 at most once"),
    (lambda: ext.transpose(V, (0, 0)), ShapeError, "every axis"),
    (lambda: ext.swapaxis(V, 0, 2), ShapeError, "an axis from 0 to 1, got 2"),
    (lambda: ext.flip(V, 5), ShapeError, "flip: argument 'axis'"),
    (lambda: ext.slice_(V, (0, 0, 0), (1, 1, 1)), ShapeError, "as many numbers"),
    (lambda: ext.slice_(V, (0,), (1,), (0,)), ShapeError, "other than 0"),
    (lambda: ext.crop(V, (3, 3)), ShapeError, "a part of"),
    (lambda: ext.pad(V, (1,), (1,)), ShapeError, "2 numbers"),
    (lambda: ext.pad(V, (1, -1), (1, 1)), ShapeError, "below 0"),
    (lambda: ext.concat([], 0), ShapeError, "at least one"),
    (lambda: ext.concat([V, Buffer((2, 4))], 0), ShapeError, "part 1"),
    (lambda: ext.concat([V, Buffer((2, 3), dt.float64)], 0), DTypeError, "float32"),
    (lambda: ext.broadcast_to(V, (2, 4)), ShapeError, "broadcast_to: argument 'shape'"),
    (lambda: ext.broadcast_axis(V, (2, 3), 0), ShapeError, "a vector of 2"),
    (lambda: ext.reduce(V, "mean"), GnomonError, "one of sum"),
    (lambda: ext.reduce(V, "sum", (0, 0)), ShapeError, "each axis once"),
    (lambda: ext.reduce(Buffer((2,), dt.bool_), "sum"), DTypeError, "cast it first"),
    (lambda: ext.arg_reduce(Buffer((0, 2)), "max", 0), ShapeError, "elements along axis 0"),
    (lambda: ext.take(V, V), DTypeError, "integers"),
    (lambda: ext.take(Buffer((0, 2)), IDS), ShapeError, "rows to take"),
    (lambda: ext.take_grad(IDS, Buffer((3, 2)), 4), ShapeError, "begins as"),
    (lambda: ext.pick(V, Buffer((3,), dt.int64)), ShapeError, "without its last axis"),
    (lambda: ext.iota((2,), 1), ShapeError, "iota"),
    (lambda: ext.pool(V, "max", (3,), (1,), (3,)), ShapeError, "pad below kernel"),
    (lambda: ext.pool(V, "max", (4,), (1,)), ShapeError, "windows that fit"),
    (lambda: ext.pool(V, "median", (2,), (1,)), GnomonError, "one of sum"),
    (lambda: ext.pool(Buffer((4,), dt.int32), "avg", (2,), (1,)), DTypeError, "floats"),
    (lambda: ext.unpool("max", V, V, V, (2,), (2,)), ShapeError, "pooled"),
    (lambda: ext.unpack_patch2col(V, (2, 2), (1, 1)), ShapeError, "2 spatial axes"),
    (lambda: ext.unpack_patch2col(Buffer((1, 2, 2)), (3, 3), (1, 1)), ShapeError, "room"),
    (lambda: ext.pack_col2patch(V, (1, 4, 4), (2, 2), (2, 2)), ShapeError, "columns"),
    (lambda: ext.philox(V, (2,), "uniform"), DTypeError, "seed and position"),
    (lambda: ext.philox(IDS, (2,), "levy"), GnomonError, "one of uniform"),
    (lambda: ext.philox(IDS, (2,), "normal", dt.int32), DTypeError, "a floating type"),
    (lambda: ext.implicit_dot(V, V), ShapeError, "implicit_dot"),
]


@pytest.mark.parametrize(("build", "kind", "words"), ERRORS)
def test_errors_name_what_came_and_what_was_expected(build, kind, words):
    with pytest.raises(kind, match=words.replace("(", r"\(")):
        build()


def test_a_view_is_the_same_elements():
    data = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    src = Buffer(data.shape, address=data.ctypes.data, owner=data)
    nodes = [
        ext.transpose(src, (2, 0, 1)),
        ext.flip(src, (0, 2)),
        ext.slice_(src, (0, 2), (2, 0), (1, -1)),
        ext.broadcast_to(ext.slice_(src, (0, 1), (2, 2)), (2, 3, 4)),
    ]
    for node in nodes[:3]:
        view = node.view(src)
        np.testing.assert_array_equal(view.numpy(), evaluate(node))
    inner = nodes[3].src
    thin = inner.view(src)
    np.testing.assert_array_equal(nodes[3].view(thin).numpy(), evaluate(nodes[3]))
    assert ext.flip(Buffer((3,)), 0).view(Buffer((3,))) is None


def test_place_is_the_adjoint_of_pick():
    assert Place(IDS, Buffer((2,)), 5).shape == (2, 5)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # the published answers of Random123
        ((0, 0), 0, (0xFF1DAE59, 0x6CD10DF2)),
        ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
        ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
    ],
)
def test_philox_gives_the_published_words(counter, key, words):
    arena = Arena()
    left, right, k = (arena.const(v, dt.uint64) for v in (*counter, key))
    got = rounds((left, right), k)
    reader = _Reader(arena, {})
    assert tuple(int(reader.value(g).item()) for g in got) == words


def test_random_numbers_have_the_moments_of_their_distribution():
    state = Buffer((2,), dt.int64)
    for dtype in (dt.float32, dt.float64):
        u, n = (ext.philox(state, (100, 1000), kind, dtype) for kind in ("uniform", "normal"))
        u, n = (evaluate(e, {state: np.array([2**40 + 17, 5])}).astype(float) for e in (u, n))
        assert u.min() >= 0
        assert u.max() < 1
        assert abs(u.mean() - 0.5) < 0.005
        assert abs(u.var() - 1 / 12) < 0.002
        assert abs(n.mean()) < 0.015
        assert abs(n.var() - 1) < 0.02
        assert abs((n**4).mean() - 3) < 0.15
        assert abs(np.corrcoef(n.ravel()[:-1], n.ravel()[1:])[0, 1]) < 0.02


def test_a_position_further_on_is_the_rest_of_the_same_sequence():
    state = Buffer((2,), dt.int64)
    e = ext.philox(state, (8,), "uniform")
    first, later = (evaluate(e, {state: np.array([3, p])}) for p in (0, 3))
    np.testing.assert_array_equal(first[6:], later[:2])  # a position gives two numbers
    other = evaluate(e, {state: np.array([4, 0])})
    assert not np.any(other == first)
