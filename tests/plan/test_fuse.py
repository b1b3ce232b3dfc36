"""Statements one after the other, in as few loops as that allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon import dtype as dt
from gnomon.expr import ext, fn
from gnomon.expr.node import Buffer, Expr
from gnomon.plan.fuse import fused
from gnomon.plan.statement import Store
from gnomon.runtime.statements.prepare import in_turn, prepare

SAVERS = ("saveto", "plusto", "minusto", "multo")


def over(array: np.ndarray) -> Buffer:
    """A leaf over an array's memory."""
    strides = [s // array.itemsize for s in array.strides]
    return Buffer(array.shape, dt.of(array.dtype), strides, array.ctypes.data, array)


def groups(*stores: Store) -> list[int]:
    return [len(group) for group in fused(stores)]


def run(steps) -> None:
    for step in steps:
        step.run()


@pytest.fixture
def arrays():
    rng = np.random.default_rng(5)
    return [over(rng.integers(-4, 5, size=40).astype("f")) for _ in range(4)]


def test_momentum_and_weight_are_one_loop(arrays):
    m, w, g, _ = arrays
    old_m, old_w = m.numpy().copy(), w.numpy().copy()
    stores = [
        Store(m, "saveto", 0.5 * m - 0.25 * (g + 0.125 * w)),
        Store(w, "plusto", m),
    ]
    steps = in_turn(stores)
    assert len(steps) == 1
    run(steps)
    new_m = 0.5 * old_m - 0.25 * (g.numpy() + 0.125 * old_w)
    np.testing.assert_array_equal(m.numpy(), new_m)
    np.testing.assert_array_equal(w.numpy(), old_w + new_m)


def test_what_reads_other_elements_waits(arrays):
    a, b, c, _ = arrays
    part, rest = over(a.numpy()[1:]), over(b.numpy()[:-1])
    assert groups(Store(a, "saveto", b), Store(rest, "saveto", part)) == [1, 1]
    assert groups(Store(part, "saveto", rest), Store(over(c.numpy()[1:]), "saveto", part)) == [2]
    turned = ext.flip(a, 0)
    assert groups(Store(a, "saveto", b), Store(c, "saveto", turned)) == [1, 1]
    assert groups(Store(c, "saveto", turned), Store(a, "saveto", b)) == [1, 1]
    total = ext.broadcast_to(ext.reduce(a, "sum", (0,), keepdims=True), a.shape)
    assert groups(Store(a, "saveto", b), Store(c, "saveto", total)) == [1, 1]


@pytest.mark.parametrize("first", [False, True])
def test_what_reads_its_own_destination_elsewhere_stays_alone(first):
    rng = np.random.default_rng(3)
    drawn = rng.uniform(1, 3, (2, 70)).astype(np.float16)
    both = [drawn.copy(), drawn.copy()]

    def stores(arrays):
        a, b = map(over, arrays)
        made = [Store(b, "plusto", b + over(arrays[1][::-1])), Store(a, "divto", a + b)]
        return made if first else made[::-1]

    assert groups(*stores(both[0])) == [1, 1]
    run(in_turn(stores(both[0])))
    for store in stores(both[1]):
        run(prepare([store]))
    np.testing.assert_array_equal(both[0], both[1])


def test_ranges_and_layouts_that_differ_stay_apart(arrays):
    a, b, _, _ = arrays
    small = over(np.zeros(39, "f"))
    assert groups(Store(a, "saveto", b), Store(small, "saveto", small)) == [1, 1]
    square = np.zeros((6, 6), "f")
    x, y = over(square), over(np.zeros((6, 6), "f").T)
    assert groups(Store(x, "saveto", y), Store(y, "plusto", x)) == [1, 1]


def test_a_second_store_takes_the_place_of_the_first(arrays):
    a, b, c, _ = arrays
    stores = [Store(a, "saveto", b), Store(c, "saveto", a * 2.0), Store(a, "plusto", c)]
    (group,) = fused(stores)
    assert [s.dest for s in group] == [a, c]
    run(in_turn(stores))
    np.testing.assert_array_equal(a.numpy(), 3 * b.numpy())


def test_long_rows_of_statements_are_cut(arrays):
    a = arrays[0]
    assert len(fused([Store(a, "saveto", fn.tanh(a) * 0.5 + 0.25) for _ in range(300)])) > 1
    stores = [Store(over(np.zeros(40, "f")), "saveto", a) for _ in range(30)]
    assert max(groups(*stores)) < 13


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, np.int64, np.bool_])
def test_forwarded_values_are_rounded_as_memory_rounds_them(dtype):
    rng = np.random.default_rng(1)
    fused_, plain = ([rng.integers(0, 100, size=70).astype(dtype) for _ in range(3)] for _ in "ab")
    for x, y in zip(fused_, plain, strict=True):
        x[:] = y

    def stores(arrays):
        a, b, c = map(over, arrays)
        third: Expr = b / a if dtype is np.float16 else b * a
        return [Store(b, "saveto", third), Store(c, "minusto", b), Store(b, "multo", b + c)]

    assert groups(*stores(fused_)) == [3 - 1]
    run(in_turn(stores(fused_)))
    for store in stores(plain):
        run(prepare([store]))
    for x, y in zip(fused_, plain, strict=True):
        np.testing.assert_array_equal(x, y)


@st.composite
def programs(draw: st.DrawFn):
    """Arrays over shared memory, and statements of them as functions of leaves."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    memory = rng.integers(-3, 4, size=200).astype(np.float64)
    n = draw(st.sampled_from([1, 7, 16, 33]))
    views = []
    for _ in range(draw(st.integers(2, 5))):
        start = draw(st.sampled_from([0, 40, 80, 120, 41, 60]))
        step = draw(st.sampled_from([1, 1, 1, 2, -1]))
        views.append((start, step))
    count = draw(st.integers(2, 6))
    rows = []
    for _ in range(count):
        pick = st.integers(0, len(views) - 1)
        kind = draw(st.sampled_from(["map", "map", "map", "number", "flip", "sum"]))
        rows.append((draw(pick), draw(st.sampled_from(SAVERS)), kind, draw(pick), draw(pick)))
    return memory, n, views, rows


def stores_of(memory, n, views, rows) -> list[Store]:
    leaves = [over(memory[s : s + n * k if k > 0 else None : k][:n]) for s, k in views]
    leaves = [b if b.shape == (n,) else over(memory[:n]) for b in leaves]
    made = []
    for dest, saver, kind, a, b in rows:
        value: Expr = fn.maximum(leaves[a], -2.0) - leaves[b]
        if kind == "number":
            value = leaves[a] * 0.5
        elif kind == "flip":
            value = ext.flip(leaves[a], 0) + leaves[b]
        elif kind == "sum":
            total = ext.reduce(leaves[a], "sum", (0,), keepdims=True)
            value = ext.broadcast_to(total, (n,)) - leaves[b]
        made.append(Store(leaves[dest], saver, fn.minimum(fn.maximum(value, -64.0), 64.0)))
    return made


@settings(max_examples=40, deadline=None)
@given(programs())
def test_random_statements_equal_the_same_one_by_one(program) -> None:
    memory, n, views, rows = program
    twin = memory.copy()
    run(in_turn(stores_of(memory, n, views, rows)))
    for store in stores_of(twin, n, views, rows):
        run(prepare([store]))
    np.testing.assert_array_equal(memory, twin)
