"""What serves operands of other shapes is what would have been made for them, word by word."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gnomon import autograd, nd
from gnomon.base import ShapeError
from gnomon.dtype import float32
from gnomon.expr.node import Buffer, Cast, Map, Scalar
from gnomon.expr.walk import postorder
from gnomon.graph import gradient
from gnomon.ndarray.lazy import families, invoke
from gnomon.ndarray.lazy.recipe import PASSING
from gnomon.ops import registry
from gnomon.ops.op import describe
from gnomon.ops.param import param
from gnomon.plan.statement import Store, Structure
from gnomon.shape import prod

SIZES = (1, 2, 3, 5, 8, 13)


def array(draw, shape, dtype):
    numbers = [draw.randint(-9, 9) for _ in range(int(np.prod(shape)))]
    return np.array(numbers).reshape(shape).astype(dtype)


def drawn(draw):
    return tuple(draw.choice(SIZES) for _ in range(draw.randint(1, 4)))


def some_axes(draw, rank):
    return tuple(sorted(draw.sample(range(rank), draw.randint(1, rank))))


def reduced(draw, x, name):
    axes, keep = some_axes(draw, x.ndim), draw.random() < 0.5
    got = getattr(nd, name)(nd.array(x, dtype=x.dtype), axis=axes, keepdims=keep)
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    whole = getattr(np, name)(wide, axis=axes, keepdims=keep)
    if x.dtype.kind != "f" and name == "mean":
        total = x.sum(axes, keepdims=keep)
        count = x.size // max(total.size, 1)
        whole = np.trunc(total / count)
    return got.asnumpy(), np.asarray(whole).reshape(got.shape)


def turned(draw, x):
    order = draw.sample(range(x.ndim), x.ndim)
    return nd.transpose(nd.array(x, dtype=x.dtype), axes=order).asnumpy(), x.transpose(order)


def cut(draw, x):
    begin = [draw.randrange(n) for n in x.shape]
    end = [draw.randint(b + 1, n) for b, n in zip(begin, x.shape, strict=True)]
    step = [draw.choice((1, 1, 2)) for _ in x.shape]
    part = tuple(map(slice, begin, end, step))
    return nd.slice(nd.array(x, dtype=x.dtype), begin, end, step).asnumpy(), x[part]


def mirrored(draw, x):
    axes = some_axes(draw, x.ndim)
    return nd.flip(nd.array(x, dtype=x.dtype), axis=axes).asnumpy(), np.flip(x, axes)


def swapped(draw, x):
    a, b = (draw.randrange(x.ndim) for _ in range(2))
    return nd.swapaxes(nd.array(x, dtype=x.dtype), a, b).asnumpy(), x.swapaxes(a, b)


def stretched(draw, x):
    shape = [n if draw.random() < 0.5 else 1 for n in x.shape][draw.randrange(x.ndim) :]
    y = array(draw, shape, x.dtype)
    a, b = nd.array(x, dtype=x.dtype), nd.array(y, dtype=x.dtype)
    if draw.random() < 0.5:
        return nd.broadcast_minus(a, b).asnumpy(), x - y
    return nd.broadcast_minus(b, a).asnumpy(), y - x


def spread(draw, x):
    """Axes of 1 stretched, by both operators that say to what."""
    wide = [n if n > 1 else draw.choice(SIZES) for n in x.shape]
    if draw.random() < 0.5:
        got = nd.broadcast_to(nd.array(x, dtype=x.dtype), shape=wide)
    else:
        axes = [a for a, n in enumerate(x.shape) if n == 1]
        sizes = [wide[a] for a in axes]
        got = nd.broadcast_axis(nd.array(x, dtype=x.dtype), axis=axes, size=sizes)
    return got.asnumpy(), np.broadcast_to(x, wide)


def viewed(draw, x):
    """An operand with gaps."""
    wide = np.concatenate([x, x], -1)
    a = nd.array(wide, dtype=x.dtype)[..., : x.shape[-1]]
    order = draw.sample(range(x.ndim), x.ndim)
    return nd.transpose(a, axes=order).asnumpy(), x.transpose(order)


def kept(draw, x):
    """The same elements under another shape, of an operand that may have gaps."""
    a = nd.array(x, dtype=x.dtype)
    if draw.random() < 0.3:
        a, x = a[..., : x.shape[-1] // 2 + 1], x[..., : x.shape[-1] // 2 + 1]
    way = draw.randrange(3)
    if way == 0:
        return nd.expand_dims(a, axis=draw.randint(0, x.ndim)).asnumpy().ravel(), x.ravel()
    if way == 1:
        return nd.flatten(a).asnumpy(), x.reshape(len(x), -1)
    return nd.reshape(a, shape=(-1, x.shape[-1])).asnumpy(), x.reshape(-1, x.shape[-1])


def parted(draw, x):
    """Another shape, by a function that never makes a view."""
    shape = [*x.shape[:-1], 1, x.shape[-1]] if draw.random() < 0.5 else [-1]
    with autograd.record():  # of an array of the tape
        a = nd.array(x, dtype=x.dtype)
        a.attach_grad()
        return nd.reshape(a, shape=shape).asnumpy(), x.reshape(shape)


def added(draw, x):
    a = nd.array(x, dtype=x.dtype)
    number = draw.randint(1, 9)
    a += a * number
    return (a - x[..., :1].size).asnumpy(), x + x * number - x[..., :1].size


def gapped(draw, x):
    """Operators that are element-wise, of an operand that has gaps and one that may have."""
    wide = np.concatenate([x, x], -1)
    a = nd.array(wide, dtype=x.dtype)[..., : x.shape[-1]]
    b = nd.array(x, dtype=x.dtype) if draw.random() < 0.5 else a
    number = draw.randint(1, 9)
    return nd.relu(a * number - b).asnumpy(), np.maximum(x * number - x, 0)


CHAINED = {"broadcast_add": np.add, "broadcast_minus": np.subtract, "broadcast_maximum": np.maximum}


def chained(draw, x):
    """A few operators in turn, of stretched operands; what is between is looked at, or not."""
    a = between = nd.array(x, dtype=x.dtype)
    value = middle = x
    if draw.random() < 0.5:
        y = np.concatenate([x, x], -1)[..., : x.shape[-1]]
        a, value = a + nd.array(y, dtype=x.dtype)[..., : x.shape[-1]], value + y
    for _ in range(draw.randint(1, 3)):
        name = draw.choice(sorted(CHAINED))
        shape = [n if draw.random() < 0.5 else 1 for n in x.shape][draw.randrange(x.ndim) :]
        y = array(draw, shape, x.dtype)
        b = nd.array(y, dtype=x.dtype)
        if draw.random() < 0.5:
            a, value = getattr(nd, name)(a, b), CHAINED[name](value, y)
        else:
            a, value = getattr(nd, name)(b, a) * 2, CHAINED[name](y, value) * 2
        if draw.random() < 0.3:
            between, middle = a, value
    return np.stack([a.asnumpy(), between.asnumpy()]), np.stack([value, middle])


KINDS = {
    **{name: lambda draw, x, name=name: reduced(draw, x, name) for name in ("sum", "mean", "max")},
    **{f.__name__: f for f in (turned, cut, mirrored, swapped, stretched, viewed, parted, added)},
    **{f.__name__: f for f in (kept, chained, spread, gapped)},
}


HALVES = ("sum", "added", "stretched", "chained")


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, dtype) for kind in KINDS for dtype in ("float32", "int32")),
     *((kind, "float16") for kind in HALVES)],
)  # fmt: skip
def test_random_shapes(kind, dtype, served):
    draw = random.Random(f"{kind} {dtype}")
    for _ in range(25):
        got, expected = KINDS[kind](draw, array(draw, drawn(draw), dtype))
        assert got.dtype == dtype
        exact = dtype == "int32" or kind not in ("sum", "mean")
        np.testing.assert_allclose(got, expected, 0 if exact else 2e-3, 0 if exact else 1e-2)
    assert len(served) > 5


@pytest.mark.parametrize("shapes", [[(5, 5), (7, 7), (4, 4)], [(3, 5), (4, 6), (7, 8)]])
def test_elements_move_as_bits(shapes, served):
    """One family serves transposes of floats and integers; squares, which have one, too."""
    for shape, dtype in zip(shapes, ("float32", "int32", "float32"), strict=True):
        x = np.arange(prod(shape)).reshape(shape).astype(dtype)
        got = nd.transpose(nd.array(x, dtype=dtype)).asnumpy()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, x.T)
    assert served.count("transpose") == 2


@pytest.mark.native
@pytest.mark.parametrize("kind", ["sum", "mean", "cut", "mirrored", "stretched", "added"])
def test_first_runs_have_no_record_of_their_own(kind, monkeypatch):
    """They go by the family's, which takes sizes as it takes addresses; one behind makes one."""
    made, member = [], families._member
    monkeypatch.setattr(families, "_known", {})
    monkeypatch.setattr(families, "_member", lambda *a: made.append(member(*a)) or made[-1])
    draw = random.Random(kind)
    for _ in range(30):
        state, met = draw.getstate(), len(made)
        for time in range(PASSING + 2):
            draw.setstate(state)
            got, expected = KINDS[kind](draw, array(draw, drawn(draw), "float32"))
            np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
            for recipe in made[met:]:
                assert (time < PASSING) == recipe.passes == (recipe.address is None)
                assert time >= PASSING or recipe._template is None
    assert len(made) > 10


def differentiated(draw, x):
    """A function of an array and another of its shape, and its gradient by the heads'."""
    order = draw.sample(range(x.ndim), x.ndim)
    back = np.argsort(order)
    begin = [draw.randrange(n) for n in x.shape]
    return draw.choice((
        (lambda a, b: a * b, lambda g, a, b: g * b),
        (lambda a, b: nd.relu(a), lambda g, a, b: g * (a > 0)),
        (lambda a, b: 3 * a, lambda g, a, b: 3 * g),
        (lambda a, b: nd.elemwise_add(b, a), lambda g, a, b: g),
        (lambda a, b: nd.broadcast_mul(b, a), lambda g, a, b: g * b),
        (lambda a, b: nd.reshape(a, shape=(-1,)), lambda g, a, b: g.reshape(a.shape)),
        (lambda a, b: nd.expand_dims(a, axis=0), lambda g, a, b: g[0]),
        (lambda a, b: nd.transpose(a, axes=order), lambda g, a, b: g.transpose(back)),
        (lambda a, b: nd.flip(a, axis=0), lambda g, a, b: g[::-1]),
        (lambda a, b: nd.slice(a, begin, x.shape), lambda g, a, b: np.pad(
            g, [(k, 0) for k in begin])),
    ))  # fmt: skip


@pytest.mark.parametrize("how", ["write", "add"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_of_random_shapes(dtype, how, served):
    draw = random.Random(f"{dtype} {how}")
    for _ in range(60):
        shape = drawn(draw)
        x, y = array(draw, shape, dtype), array(draw, shape, dtype)
        f, expected = differentiated(draw, x)
        a, b = nd.array(x, dtype=dtype), nd.array(y, dtype=dtype)
        a.attach_grad(how)
        with autograd.record():
            z = f(a, b)
        g = array(draw, z.shape, dtype)
        z.backward(nd.array(g, dtype=dtype))
        np.testing.assert_array_equal(a.grad.asnumpy(), expected(g, x, y))
    assert sum(name.startswith("_backward") for name in served) > 10


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_gradients_of_joined_axes(name, dtype, served):
    draw = random.Random(name)
    for _ in range(120):
        shape = [draw.choice((1, 2, 3, 4, 5, 7, 8, 12)) for _ in range(draw.randint(1, 4))]
        axes = draw.sample(range(len(shape)), draw.randint(1, len(shape)))
        x = nd.ones(shape, dtype=dtype)
        x.attach_grad()
        with autograd.record():
            y = getattr(nd, name)(x, axis=axes, keepdims=draw.random() < 0.5)
        head = np.arange(1, 1 + y.size).reshape(y.shape)
        y.backward(nd.array(head, dtype=dtype))
        kept = [1 if a in axes else n for a, n in enumerate(shape)]
        count = prod([shape[a] for a in axes]) if name == "mean" else 1
        expected = np.broadcast_to(head.reshape(kept) / count, shape)
        np.testing.assert_allclose(x.grad.asnumpy(), expected, 2e-3 if dtype == "float16" else 1e-6)
    assert served.count(f"_backward_{name}") > 10


def test_work_of_several_tasks(served):
    for shape in ((300, 400), (1000, 700), (40, 30, 20), (1, 90000), (90000, 1)):
        x = np.random.default_rng(1).integers(0, 9, shape).astype(np.float32)
        a = nd.array(x)
        np.testing.assert_allclose(a.sum().asscalar(), x.sum(), 1e-6)
        np.testing.assert_array_equal(nd.sum(a, axis=0).asnumpy(), x.sum(0))
        np.testing.assert_array_equal((a.T + 1).asnumpy(), x.T + 1)
        np.testing.assert_array_equal(nd.exp(a * 0).asnumpy(), np.ones(shape))
    assert len(served) > 10


def test_norms_and_quotients_of_two_shapes(served):
    for shape in ((2, 3), (4, 5), (7, 1), (1, 6)):
        x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        got = nd.norm(nd.array(x), axis=1).asnumpy()
        np.testing.assert_allclose(got, np.sqrt((x * x).sum(1)), 1e-6)
        np.testing.assert_allclose(nd.norm(nd.array(x), ord=1, axis=1).asnumpy(), x.sum(1), 1e-6)
    assert served


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "nansum"])
def test_a_reduction_over_no_axes_serves_no_others(name, served):
    for shape in ((6,), (11,)):
        x = np.arange(1, 1 + shape[0], dtype=np.float64)
        none = getattr(nd, name)(nd.array(x, dtype="float64"), axis=0, exclude=True)
        np.testing.assert_array_equal(none.asnumpy(), x)
    for shape in ((5, 3), (4, 7)):
        x = np.arange(1, 1 + np.prod(shape), dtype=np.float64).reshape(shape)
        got = getattr(nd, name)(nd.array(x, dtype="float64"), axis=1).asnumpy()
        np.testing.assert_allclose(got, getattr(np, name)(x, axis=1), 1e-12)
    assert len(served) == 1


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "norm", "nansum"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32"])
def test_what_was_made_for_one_element_serves_no_more_than_it_knows(name, dtype, monkeypatch):
    """A kernel for an axis of size 1 may take no size at all, as that of `norm` of integers."""
    monkeypatch.setattr(families, "_known", {})
    for shape in ((1,), (7,), (1, 1), (4, 5), (3, 1), (2, 6), (1, 9), (3, 7)):
        x = np.arange(prod(shape)).reshape(shape) % 3 + 1
        got = getattr(nd, name)(nd.array(x, dtype=dtype), axis=len(shape) - 1).asnumpy()
        of = np.linalg.norm if name == "norm" else getattr(np, name)
        wanted = of(x.astype(np.float64), axis=len(shape) - 1)
        wanted = wanted if dtype.startswith("f") else np.trunc(wanted)
        np.testing.assert_allclose(got, np.reshape(wanted, got.shape), 2e-3)
    assert any(families._known.values())


def test_mistakes_are_told_as_at_first(served):
    for shape in ((2, 3), (4, 5)):
        x = nd.ones(shape)
        x.sum(axis=1).wait_to_read()
        nd.transpose(x, axes=(1, 0)).wait_to_read()
        with pytest.raises(ShapeError, match="axis"):
            nd.sum(x, axis=2)
        with pytest.raises(ShapeError, match="axes"):
            nd.transpose(x, axes=(1, 1))
        with pytest.raises(ShapeError, match="broadcasts"):
            nd.broadcast_add(x, nd.ones((7, 3)))
        with pytest.raises(ShapeError):
            nd.elemwise_add(x, nd.ones((7, 3)))


def test_nothing_to_do(served):
    for shape in ((0, 3), (2, 0), (0,)):
        x = nd.array(np.zeros(shape))
        assert nd.transpose(x).shape == shape[::-1]
        assert (x + x).shape == (x * 2).shape == shape
        assert nd.sum(x, axis=0).asnumpy().sum() == 0


def declared():
    """Operators that say they are element-wise, with parameters where they need some."""
    needed = {"clip": {"a_min": -1, "a_max": 2}, "Cast": {"dtype": "float64"},
              "Activation": {"act_type": "tanh"}, "add_n": {"num_args": 3}}  # fmt: skip
    for name in registry.names():
        cls = registry.find(name)
        if cls.elementwise and cls.name == name:
            yield cls.parse(needed.get(name, {}))


@pytest.mark.parametrize("op", [*declared()], ids=lambda op: op.name)
def test_elementwise_operators_are_the_same_for_every_shape(op):
    found = []
    for shape in ((7,), (3, 5), (2, 1, 4, 3), (1,)):
        leaves = [Buffer(shape, float32, None, (k + 1) << 40) for k in range(len(op.arguments()))]
        (value,) = op.apply(leaves)
        nodes = postorder([value])
        assert value.shape == shape
        assert all(isinstance(node, (Map, Cast, Scalar, Buffer)) for node in nodes)
        structure = Structure([Store(Buffer(shape, value.dtype, None, 99 << 40), "saveto", value)])
        assert structure.flat
        found.append((structure.key, [s.value for s in structure.scalars], value.dtype))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("op", [op for op in declared() if op.derives], ids=lambda op: op.name)
def test_so_are_their_derivatives(op):
    found = []
    for shape in ((7,), (3, 5), (2, 1, 4, 3), (1,)):
        count = len(op.arguments())
        wanted, types = (True,) * count, (float32,) * count
        asked = gradient._look(op, (shape,) * count, types, wanted, True)
        _, (dtype,), _ = op.infer_type(types)
        leaves = [Buffer(shape, x, None, (k + 1) << 40) for k, x in enumerate((*types, dtype))]
        *inputs, output = leaves
        head = Buffer(shape, dtype, None, 98 << 40)
        stores = [
            Store(Buffer(shape, g.dtype, None, (100 + k) << 40), "saveto", g)
            for k, g in enumerate(op.backward([head], inputs, [output], train=True))
            if g is not None
        ]
        structure = Structure(stores)
        assert not structure.composite and (structure.flat or not stores)
        found.append((asked, structure.key, [s.value for s in structure.scalars]))
    assert all(each == found[0] for each in found)


def inherited():
    """Operators with another forward than those that they inherit from, on shapes of one family."""

    class Scaled(registry.find("sum")):
        scale: float = param(1.0)

        def join(self, data, axes):
            return super().join(data, axes) * self.scale

    class Share(registry.find("sum")):
        def join(self, data, axes):
            return super().join(data, axes) / data.shape[1]

    class Turned(registry.find("transpose")):
        def forward(self, data):
            return super().forward(data) + data.shape[0]

    class Weighed(registry.find("relu")):
        def forward(self, data):
            return super().forward(data) * data.shape[0]

    yield Scaled, {"axis": (1,), "scale": 2.0}, lambda x: x.sum(1) * 2
    yield Scaled, {"axis": (1,), "scale": 3.0}, lambda x: x.sum(1) * 3
    yield Share, {"axis": (1,)}, lambda x: x.mean(1)
    yield Turned, {}, lambda x: x.T + len(x)
    yield registry.find("transpose"), {}, lambda x: x.T
    yield Weighed, {}, lambda x: np.maximum(x, 0) * len(x)


def test_what_inherits_from_an_operator_is_not_taken_for_it(served):
    for kind, given, reference in inherited():
        describe(kind)
        for shape in ((3, 4), (5, 7), (2, 9)):
            x = np.random.default_rng(1).standard_normal(shape).astype("f4")
            got = invoke.invoke(kind(**given), [nd.array(x)])
            np.testing.assert_allclose(got.asnumpy(), reference(x), 1e-4, 1e-5)
