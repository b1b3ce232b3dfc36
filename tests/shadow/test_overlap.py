"""S27: for every pair of views of one memory, what evaluating the right side first would give."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from gnomon import shadow
from gnomon.ops.requests import assign_all, kAddTo
from gnomon.runtime.devices import pool
from gnomon.shadow import Tensor, TensorContainer

Places = tuple[slice, ...]


def cuts(size: int, n: int, steps: tuple[int, ...]) -> Iterator[slice]:
    """Every way to take `n` of `size` places at such steps."""
    for step in steps:
        span = (n - 1) * abs(step) + 1
        for low in range(size - span + 1):
            if step > 0:
                yield slice(low, low + span, step)
            else:
                yield slice(low + span - 1, low - 1 if low else None, step)


def hold(memory: np.ndarray, write: np.ndarray, value, want: np.ndarray) -> None:
    """`write` holds `want` after the statement, and nothing else has changed."""
    before = memory.copy()
    dest = Tensor(write)
    dest[:] = value
    np.testing.assert_array_equal(write, want)
    write[...] = 0
    after = memory.copy()
    memory[...] = before
    write[...] = 0
    np.testing.assert_array_equal(memory, after)


@pytest.mark.parametrize("n", [2, 5])
def test_every_pair_of_views_along_a_line(n):
    views = list(cuts(12, n, (1, -1, 2, -2)))
    for write, read in itertools.product(views, views):
        memory = np.arange(1, 13, dtype=np.float32)
        w, r = memory[write], memory[read]
        hold(memory, w, Tensor(r) * 2.0 + Tensor(w), r * 2 + w)


def looks(memory: np.ndarray) -> Iterator[np.ndarray]:
    """Every 2x3 view of a matrix, plain and transposed."""
    rows, columns = memory.shape
    for a, b in itertools.product(cuts(rows, 2, (1, -1)), cuts(columns, 3, (1, -1))):
        yield memory[a, b]
    for a, b in itertools.product(cuts(rows, 3, (1, -1)), cuts(columns, 2, (1, -2))):
        yield memory[a, b].T


def test_every_pair_of_views_of_a_matrix():
    count = len(list(looks(np.zeros((4, 4)))))
    for k, m in itertools.product(range(count), range(count)):
        memory = np.arange(16, dtype=np.int32).reshape(4, 4)
        views = list(looks(memory))
        w, r = views[k], views[m]
        hold(memory, w, Tensor(r) * 3 - Tensor(w), r * 3 - w)


@pytest.mark.parametrize("n", [5, 67, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16", "bool"])
def test_other_dtypes_over_the_same_bytes(n, dtype):
    """Views of other element sizes over the destination."""
    memory = np.zeros(4 * n + 8, np.uint8)
    for offset in (0, 4, 8):
        memory[:] = np.arange(len(memory)) % 2
        w = memory[8 : 8 + n]
        count = min(n, (len(memory) - offset) // np.dtype(dtype).itemsize)
        r = memory[offset : offset + count * np.dtype(dtype).itemsize].view(dtype)
        if count == n:
            value = shadow.tcast("uint8", Tensor(r))
            with np.errstate(all="ignore"):
                want = np.clip(np.nan_to_num(r.astype(np.float64)), 0, 255).astype(np.uint8)
            hold(memory, w, value, want)


@pytest.mark.parametrize("sizes", [(2, 5), (5, 2), (1, 7), (3, 3), (0, 4)])
def test_numbers_into_joined_tensors_of_any_sizes(sizes):
    """Each part has a loop of its own: none is written as another is long."""
    memory = np.zeros(40, np.float32)
    parts = [memory[3 : 3 + sizes[0]], memory[20 : 20 + sizes[1]]]
    both = shadow.concat(*map(Tensor, parts))
    both[:] = 3.0
    both += 1.0
    assert [p.tolist() for p in parts] == [[4.0] * n for n in sizes]
    assert memory.sum() == 4 * sum(sizes)
    half = shadow.slice(both, 1, sum(sizes))
    half *= shadow.scalar(2.0)
    assert memory.sum() == 4 + 8 * (sum(sizes) - 1)


def test_an_empty_scatter_writes_nowhere():
    grad = Tensor(np.ones((4, 3), np.float32))
    index = Tensor(np.zeros(4, np.int64))
    empty = shadow.take_grad(index, grad, 0)
    out = TensorContainer((3,), init=7.0)
    for _ in range(50):
        out[:] = shadow.reduce(shadow.fn.relu(empty), "sum", 0)
    assert out.numpy().tolist() == [0, 0, 0]


MIRRORED = [
    ((9,), "[::-1]"), ((10,), "[::-1]"), ((1,), "[::-1]"), ((0,), "[::-1]"), ((50021,), "[::-1]"),
    ((7, 9), "[::-1]"), ((7, 9), "[:, ::-1]"), ((7, 9), "[::-1, ::-1]"), ((8, 6), "[::-1, ::-1]"),
    ((3, 5, 7), "[::-1, :, ::-1]"), ((301, 300), "[:, ::-1]"), ((5, 4, 3), "[::-1, ::-1, ::-1]"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "key"), MIRRORED)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_mirror_image_in_place_takes_no_memory(shape, key, dtype):
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-5, 5, shape).astype(dtype) for _ in range(2))
    ours = {"t": Tensor(x.copy()), "u": Tensor(y), "d": Tensor(x.copy())}
    theirs = {"t": x.copy(), "u": y, "d": x.copy()}
    for code in [f"t[:] = t{key} * 2 + t - u{key}", f"t += t{key}", f"d[:] = d{key}"]:
        for _ in range(3):
            before = pool.stats().allocations
            exec(code, ours)
            exec(code, theirs)
            assert pool.stats().allocations == before
            np.testing.assert_array_equal(ours["t"].numpy(), theirs["t"])
    np.testing.assert_array_equal(ours["d"].numpy(), theirs["d"])
    assert np.array_equal(ours["u"].numpy(), y)


def test_part_of_a_mirror_image_and_rows_at_a_distance():
    x = np.arange(40, dtype=np.float32).reshape(5, 8)
    t, expected = Tensor(x.copy()), x.copy()
    part, same = t[1:4, 2:7], expected[1:4, 2:7]
    for _ in range(3):
        part[:] = part[::-1, ::-1] * 2 + part
        same[:] = same[::-1, ::-1] * 2 + same
        np.testing.assert_array_equal(t.numpy(), expected)
        part[:] = part[::-1] + part[:, ::-1]  # two images: through memory
        same[:] = same[::-1] + same[:, ::-1]
        np.testing.assert_array_equal(t.numpy(), expected)


SQUARE = (24, 24)
ORDER = Tensor(np.random.default_rng(1).permutation(SQUARE[0]))
OVERLAPPING = {
    "transpose": lambda s: s.T * 1.3 + 0.7,
    "rows": lambda s: shadow.take(ORDER, s) * 1.3 + 0.7,
    "both": lambda s: shadow.fn.exp(s.T * 0.2) * s,
    "product": lambda s: shadow.dot(s, s) * 0.1,
}


@pytest.mark.parametrize(
    ("name", "saver"),
    [
        (name, saver)
        for name in OVERLAPPING
        for saver in ("saveto", "plusto", "minusto", "multo", "divto")
        if (name, saver) not in {("product", "multo"), ("product", "divto")}  # which are refused
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_results_do_not_depend_on_overlap(dtype, saver, name):
    """Half floats are rounded once, where the operand is the destination and where it is not."""
    start = TensorContainer(SQUARE, dtype)
    start[:] = shadow.tcast(dtype, Tensor(np.random.default_rng(0).normal(size=SQUARE)))
    alone, apart = (TensorContainer(SQUARE, dtype) for _ in range(2))
    for dest in (alone, apart):
        dest[:] = start
    value, how = OVERLAPPING[name], getattr(shadow, saver)
    alone.assign(value(alone), how)
    apart.assign(value(start), how)
    np.testing.assert_array_equal(alone.numpy(), apart.numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("turned", [False, True])
def test_two_updates_of_one_destination(dtype, turned):
    """Each adds to what the other has stored, a product that reads the destination, too."""
    a, b, c = np.random.default_rng(0).integers(-2, 3, (3, 8, 8)).astype(dtype)
    first, second, dest = Tensor(a), Tensor(b), Tensor(c.copy())
    values = [first * 1.0, shadow.dot(dest, second)]
    assign_all([dest, dest], [kAddTo, kAddTo], values[::-1] if turned else values)
    np.testing.assert_array_equal(dest.numpy(), c + a + c @ b)
    dest[:] = Tensor(c)
    assign_all([dest, dest], [kAddTo] * 2, [shadow.dot(dest, second), shadow.dot(first, dest)])
    np.testing.assert_array_equal(dest.numpy(), c + c @ b + a @ c)
