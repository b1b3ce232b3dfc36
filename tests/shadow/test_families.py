"""Statements of a known structure on new shapes: the bits of the whole way, and no kernel more."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon import shadow
from gnomon.base import ParamError, ShapeError
from gnomon.native.serve import Later
from gnomon.plan.statement import Store
from gnomon.runtime.compiler.objects import COUNTS
from gnomon.runtime.statements import dispatch, families, outline_code
from gnomon.runtime.statements.fields import readable
from gnomon.runtime.statements.prepare import prepare
from gnomon.shadow import Tensor, TensorContainer, fn

NATIVE = readable()  # families run by native code alone


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    """Native code from the first statement on, and nothing known."""
    monkeypatch.setattr(families, "_runner", Later(outline_code.run_as, False, 1))
    dispatch.forget()


def came() -> int:
    """How many statements ran as members of families."""
    return len(outline_code.CAME)


def along(x, reducer, axis):
    return shadow.broadcast_to(shadow.reduce(x, reducer, axis, keepdims=True), x.shape)


def softmax(x, y, k):
    p = fn.exp(x - along(x, "max", 1))
    return p / along(p, "sum", 1)


FORMS = {
    "update": lambda x, y, k: -k * (x + 0.25 * y),
    "choice": lambda x, y, k: fn.where(x > k, x * 2.0, -y),
    "wide": lambda x, y, k: shadow.tcast("float32", shadow.tcast("float64", x) * k) + y,
    "rows": lambda x, y, k: x + shadow.broadcast_to(y[0], x.shape) * k,
    "sums": lambda x, y, k: shadow.reduce(x * y, "sum", 1) * k,
    "columns": lambda x, y, k: shadow.reduce(x - y, "max", 0) + k,
    "softmax": softmax,
    "centred": lambda x, y, k: x - along(x, "sum", 0) * k,
    "cumsum": lambda x, y, k: shadow.cumsum(x * k, 1),
    "flip": lambda x, y, k: shadow.flip(x, 1) * k + y,
    "turned": lambda x, y, k: x.T * k + y.T,
}


def laid_out(rng, shape, how):
    """Numbers in memory of a kind: dense, in wider rows, turned, or backwards."""
    if len(shape) == 1:
        return rng.standard_normal(shape).astype("f")
    rows, columns = shape
    if how == "rows":
        return rng.standard_normal((rows, columns + 3)).astype("f")[:, 1 : columns + 1]
    if how == "turned":
        return rng.standard_normal((columns, rows)).astype("f").T
    if how == "backwards":
        return rng.standard_normal(shape).astype("f")[::-1]
    return rng.standard_normal(shape).astype("f")


sizes = st.one_of(st.integers(1, 9), st.integers(1, 90))
SHAPES = st.lists(st.tuples(sizes, sizes), min_size=5, max_size=9)
LAYOUTS = st.sampled_from(["dense", "rows", "turned", "backwards"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(FORMS)),
    SHAPES,
    st.tuples(LAYOUTS, LAYOUTS, LAYOUTS),
    st.sampled_from(["saveto", "plusto", "minusto", "multo"]),
    st.booleans(),
)
def test_new_shapes_give_the_bits_of_the_whole_way(name, shapes, layouts, saver, in_place):
    left, right, there = layouts
    rng = np.random.default_rng(0)
    for k, shape in enumerate([*shapes, *shapes[:2]]):
        x, y = Tensor(laid_out(rng, shape, left)), Tensor(laid_out(rng, shape, right))
        e = FORMS[name](x, y, 0.5 + k)
        itself = in_place and e.shape == x.shape and name != "turned"
        dest = x if itself else Tensor(laid_out(rng, e.shape, there))
        held = laid_out(rng, e.shape, left if itself else there)
        held[...] = dest.numpy()
        spare = Tensor(held)
        for step in prepare([Store(spare, saver, e)]):
            step.run()
        dispatch.store(dest, saver, e)
        np.testing.assert_array_equal(
            dest.numpy().copy().view("i4"), spare.numpy().view("i4"), f"{name} {shape} {saver}"
        )


@pytest.mark.parametrize("name", [n for n in FORMS if n != "flip"])
def test_the_fifth_shape_goes_by_what_the_others_told(name):
    rng = np.random.default_rng(1)
    shapes = [(95, 97), (98, 111), (113, 96), (94, 101), (107, 93), (92, 103)]  # new to all tests
    for k, shape in enumerate(shapes):
        x, y = (Tensor(laid_out(rng, shape, "dense")) for _ in range(2))
        e = FORMS[name](x, y, 2.0)
        dest = Tensor(np.empty(e.shape, "f"))
        dispatch.store(dest, "saveto", e)
        assert not NATIVE or came() >= k - 3, (name, shape)


@pytest.mark.parametrize("name", FORMS)
def test_squares_make_no_kernels(name):
    rng = np.random.default_rng(2)
    for k, shape in enumerate([(5, 7), (12, 8), (6, 6), (31, 31), (7, 13), (3, 3)]):
        x, y = (Tensor(laid_out(rng, shape, "dense")) for _ in range(2))
        e = FORMS[name](x, y, 3.0)
        made = COUNTS.compiled + COUNTS.loaded
        for step in prepare([Store(TensorContainer(e.shape), "saveto", e)]):
            step.run()
        assert k < 2 or COUNTS.compiled + COUNTS.loaded == made, shape


def test_as_many_elements_in_two_samples_are_not_as_many_in_all():
    rng = np.random.default_rng(3)
    for shape in [(9, 11), (4, 6), (3, 8), (5, 7), (6, 9), (8, 5)]:
        x, y = (laid_out(rng, shape, "dense") for _ in range(2))
        dest = Tensor(np.zeros(shape, "f"))
        dispatch.store(dest, "saveto", Tensor(x) * 2.0 + Tensor(y))
        np.testing.assert_allclose(dest.numpy(), x * 2 + y, 1e-6, err_msg=str(shape))
    assert bool(came()) == NATIVE


def test_what_is_refused_is_said_as_ever():
    for n in range(3, 9):
        x, y = Tensor(np.ones(n, "f")), TensorContainer((n,))
        y[:] = x * 2.0
    assert bool(came()) == NATIVE
    x = Tensor(np.ones(12, "f"))
    with pytest.raises(ShapeError):
        TensorContainer((13,))[:] = x * 2.0
    held = np.ones(14, "f")
    dest = Tensor(held)
    held.flags.writeable = False
    with pytest.raises(ParamError, match="read-only"):
        dest[:] = Tensor(np.ones(14, "f")) * 2.0
    for n in (40, 50, 60, 70):
        Tensor(np.ones((n, n + 9), "f")[:, :n])[:] = Tensor(np.ones((n, n), "f")) * 2.0
    rows = np.lib.stride_tricks.as_strided(np.ones(3000, "f"), (51, 60), (44 * 4, 4))
    with pytest.raises(ShapeError, match="share memory"):
        Tensor(rows)[:] = Tensor(np.ones((51, 60), "f")) * 2.0
    moved = TensorContainer((15,))
    e = moved * 2.0
    moved.resize((16,))
    with pytest.raises(ShapeError, match="15"):
        TensorContainer((16,))[:] = e


def test_what_overlaps_goes_the_whole_way():
    for n in (9, 12, 17, 23, 30, 31):
        memory = np.arange(2 * n, dtype="f")
        want = memory.copy()
        want[1 : n + 1] = want[:n] * 2
        Tensor(memory[1 : n + 1])[:] = Tensor(memory[:n]) * 2.0
        np.testing.assert_array_equal(memory, want)


def test_a_shape_that_comes_again_has_a_launch_of_its_own():
    arrays = [Tensor(np.full(n, 1.0, "f")) for n in (5, 6, 8, 9)]
    for _ in range(3):
        for x in arrays:
            x[:] = x * 2.0 + 1.0
    assert came() == 4 * NATIVE
    assert sum(map(len, dispatch.KNOWN.values())) == 4
    assert [x.numpy()[0] for x in arrays] == [15.0] * 4


def test_large_work_is_shared_by_threads():
    for n in (500, 600, 700, 800):
        x = Tensor(np.ones(n, "f"))
        x[:] = fn.exp(x) + 1.0
    seen = came()
    x = Tensor(np.ones(3_000_000, "f"))
    x[:] = fn.exp(x) + 1.0
    assert came() == seen + NATIVE  # noted, but done by the whole way
    (step,) = prepare([Store(x, "saveto", fn.exp(x) + 1.0)])
    assert step.is_long


def test_ten_thousand_shapes_hold_no_memory():
    def one(m, n):
        w, g = (Tensor(np.ones((m, n), "f")) for _ in range(2))
        w[:] = -0.5 * (g + 0.25 * w)
        assert w.numpy()[0, 0] == -0.625

    for k in range(4200):
        one(2 + k % 97, 2 + k // 97)
    gc.collect()
    tracemalloc.start()
    for k in range(4200, 10_000):
        one(2 + k % 97, 2 + k // 97)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not NATIVE or grown < 2_000_000
    assert len(outline_code.CAME) <= outline_code.KEPT


def test_threads_run_members_of_one_family():
    failed = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            n = int(rng.integers(2, 2000))
            x = rng.standard_normal(n).astype("f")
            y = TensorContainer((n,))
            y[:] = Tensor(x) * 3.0
            if not np.array_equal(y.numpy(), x * np.float32(3)):
                failed.append(n)

    every = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()
    assert not failed
