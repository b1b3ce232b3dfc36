"""Every extension as a compiled kernel: the same as the oracle, alone, composed, and transposed."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr import ext
from gnomon.expr.diff import vjp
from gnomon.expr.node import Buffer, Expr, cast, set_address
from gnomon.expr.oracle import evaluate
from gnomon.expr.walk import postorder
from gnomon.ground.record import put
from gnomon.runtime.devices import pool
from gnomon.runtime.statements import inspect
from gnomon.runtime.statements.prepare import Store, prepare

MODULES = {
    m.name: importlib.import_module(f"{ext.__name__}.{m.name}")
    for m in pkgutil.iter_modules(ext.__path__)
}
CASES = [(name, k) for name in sorted(MODULES) for k in range(len(list(MODULES[name].cases())))]


@pytest.fixture(params=CASES, ids=lambda c: f"{c[0]}{c[1]}")
def case(request) -> Expr:
    """A case, made anew: the tests give its leaves memory."""
    name, k = request.param
    return list(MODULES[name].cases())[k]


def over(array: np.ndarray) -> Buffer:
    strides = [s // array.itemsize for s in array.strides]
    return Buffer(array.shape, dt.of(array.dtype), strides, array.ctypes.data, array)


def filled(root: Expr, seed: int, strided: bool = False) -> Expr:
    """The same expression over memory: dense, or every other element of it, backwards."""
    rng = np.random.default_rng(seed)
    for node in postorder([root]):
        if isinstance(node, Buffer) and 0 not in node.shape:
            place(node, values(rng, node, strided))
    return root


def values(rng: np.random.Generator, leaf: Buffer, strided: bool) -> np.ndarray:
    strided = strided and leaf.ndim > 0
    shape = (*leaf.shape[:-1], 2 * leaf.shape[-1]) if strided else leaf.shape
    low, high = (-8, 9) if leaf.dtype.kind == "f" else (0, 6)
    array = np.asarray(rng.integers(low, high, shape), leaf.dtype.numpy)
    if leaf.dtype.kind == "f":
        array = array / leaf.dtype.numpy.type(4) + leaf.dtype.numpy.type(0.125)
    return array[..., ::-2] if strided else np.asarray(array)


def place(leaf: Buffer, array: np.ndarray) -> None:
    """Let a leaf without memory lie over an array."""
    real = over(array)
    set_address(leaf, real.address, array)
    put(leaf, "strides", real.strides)
    put(leaf, "_layout", None)


def check(e: Expr, saver: str = "saveto") -> None:
    wide = np.float64 if e.dtype.kind == "f" else e.dtype.numpy
    dest = np.full(e.shape, 2, e.dtype.numpy)
    want = evaluate(e).astype(wide) + (2 if saver == "plusto" else 0)
    for step in prepare([Store(over(dest), saver, e)]):
        step.run()
    np.testing.assert_allclose(dest.astype(wide), want, rtol=3e-5, atol=1e-5)


def test_what_a_guard_does_not_choose_is_not_read():
    src = over(np.ones((4, 6), np.float32))
    e = ext.pool(src, "max", (3,), (1,), (1,))
    text = inspect.explain([Store(over(np.empty(e.shape, np.float32)), "saveto", e)], "loop")
    assert "l0[" in text
    assert all("if (" in line for line in text.splitlines() if "l0[" in line)


def test_each_part_of_what_is_put_together_has_a_loop_without_questions():
    parts = [over(np.ones((2, 3), np.float32)) for _ in range(3)]
    whole = ext.concat(parts, 0) * 2.0
    text = inspect.explain([Store(over(np.empty((6, 3), np.float32)), "saveto", whole)], "loop")
    assert text.count("vector for i") == 3  # both axes joined
    assert " if " not in text
    assert "<" not in text


def test_a_frame_has_loops_without_questions_and_rows_that_ask_for_columns_alone():
    framed = ext.pad(over(np.ones((2, 3), np.float32)), (1, 2), (1, 2))
    text = inspect.explain([Store(over(np.empty((4, 7), np.float32)), "saveto", framed)], "loop")
    assert text.count("parallel") == 3  # above, beside and below
    asking = [line for line in text.splitlines() if " if " in line]
    assert len(asking) == 1
    assert "if ((0 <= (j - n2)) & ((j - n2) < n3))" in asking[0]


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
def test_compiled(case, strided):
    e = filled(case, 3, strided)
    check(e, "plusto" if strided else "saveto")


def test_nothing_of_the_size_of_the_data_is_allocated(case):
    e = filled(case, 6)
    if 0 in e.shape or not e.shape:  # one number of all keeps what each thread found
        return
    store = Store(over(np.zeros(e.shape, e.dtype.numpy)), "saveto", e)
    before = pool.stats()
    steps = prepare([store])
    after = pool.stats()
    assert len(steps) == 1
    assert (after.allocations, after.reused) == (before.allocations, before.reused)


def test_compiled_gradient(case):
    if case.dtype.kind != "f":
        return
    leaves = [n for n in postorder([case]) if isinstance(n, Buffer) and n.dtype.kind == "f"]
    for grad in vjp([case], [Buffer(case.shape, case.dtype)], leaves):
        if grad is not None:
            check(filled(grad, 5))


def test_compiled_inside_others(case):
    """A map over an extension over the case: composed, still one kernel."""
    e = filled(case, 4)
    wide = cast(e, dt.float32) * 2.0 + 1.0
    outer = ext.reshape(ext.concat([wide, wide * 0.5], 0), (-1,)) if wide.shape else wide
    if 0 in outer.shape:
        return
    check(outer - 1.0)
