"""Plans of expressions, and every way to see what runs."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import ParamError
from gnomon.runtime.kernels.cache import CACHE
from gnomon.shadow import F, Tensor, TensorContainer, make_plan
from gnomon.shadow.plan import At

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
W = np.random.default_rng(0).normal(size=(3, 5)).astype("f")


def expressions():
    a, w = Tensor(X), Tensor(W)
    yield a
    yield a * 2.0 - 1.0
    yield a.T
    yield F("tanh")(a[1]) + shadow.broadcast_to(a[0][0], (3, 4))
    yield shadow.flip(w, 1) * w
    yield shadow.implicit_dot(w, w.T) + 1.0
    yield shadow.reduce(a, "sum", 2)
    yield shadow.tcast("int8", w * 100.0)
    yield a[0][0] * 3.0
    yield shadow.scalar(2.5)


@pytest.mark.parametrize("e", list(expressions()), ids=repr)
def test_a_plan_gives_every_element(e):
    plan = make_plan(e)
    whole = shadow.new_tensor(e.shape, e, e.dtype).numpy()
    flat = whole.reshape(plan.rows, plan.width)
    for y in range(plan.rows):
        for x in range(plan.width):
            assert plan.eval(y, x) == pytest.approx(flat[y, x].item(), rel=1e-5)


def test_one_kernel_computes_any_element_of_much_data():
    """An element costs what it is made of, not what the expression has elements."""
    a = TensorContainer((3000, 1000), init=2.0)
    a[7][5] = 3
    plan = make_plan(F("sqrt")(a * a) + 1.0)
    assert plan.eval(7, 5) == 4
    known = len(CACHE.kernels)
    assert [plan.eval(y, 5) for y in range(6, 9)] == [3, 4, 3]
    assert len(CACHE.kernels) == known
    assert "for " not in At(plan.exp, TensorContainer((2,), "int64")).loop()


def test_reval_is_the_reference_of_a_destination():
    t = TensorContainer((2, 3, 4), init=0.0)
    plan = make_plan(t)
    assert (plan.rows, plan.width) == (6, 4)
    plan.reval(5, 1)[...] = 7
    assert t[1][2][1] == 7
    assert plan.eval(5, 1) == 7
    with pytest.raises(TypeError, match=r"add 2x3x4 float32"):
        make_plan(t + 1.0).reval(0, 0)


def test_a_plan_of_a_product():
    w = Tensor(W)
    assert make_plan(shadow.dot(w, w.T)).eval(2, 1) == pytest.approx(float(W[2] @ W[1]), rel=1e-5)


@pytest.mark.parametrize("place", [(-1, 0), (6, 0), (0, 4), (0, -1)])
def test_a_plan_has_no_elements_outside(place):
    with pytest.raises(IndexError, match="an element of 6 rows of 4"):
        make_plan(Tensor(X)).eval(*place)


def test_rows_are_collapsed_as_far_as_memory_allows():
    """Any rank is rows times the last axis, and one loop where nothing lies between the rows."""
    dense = Tensor(X) * 2.0
    assert dense.plan() == "phase 0: for i < n0 in lanes; cut anywhere; l1 saveto"
    padded = TensorContainer((2, 3, 4))
    assert "for i < (n0 * n1), j < n2 in lanes" in padded.explain(dense, stage="plan")


def test_the_update_of_weights_is_one_loop():
    w, g = Tensor(W.copy()), Tensor(W)
    e = -0.1 * (g + 0.5 * w)
    assert e.tree().splitlines() == [
        "#6 mul 3x5 float32",
        "  #0 Scalar float32 = -0.1",
        "  #5 add 3x5 float32",
        "    #1 Tensor 3x5 float32",
        "    #4 mul 3x5 float32",
        "      #2 Scalar float32 = 0.5",
        "      #3 Tensor 3x5 float32",
    ]
    assert w.explain(e) == (
        "parallel vector for i in 0..n0:\n  l1[i] = (a0 * (l0[i] + (a1 * l1[i])))"
    )
    assert w.explain(e, shadow.plusto).splitlines()[1].startswith("  l1[i] += ")


def test_a_shared_part_is_shown_once():
    a = Tensor(W)
    b = a * a
    assert (b + b).tree().splitlines()[-1] == "  #1"
    assert (b + b).loop().count("*") == 1


def test_a_deep_tree_is_indented_no_further():
    e = Tensor(W)
    for _ in range(3000):
        e = e + 1.0
    lines = e.tree().splitlines()
    assert len(lines) == 6001
    assert max(map(len, lines)) < 100
    assert lines[33] == " " * 64 + "33: #5934 add 3x5 float32"


def test_llvm_and_assembly():
    e = Tensor(W) * 2.0
    assert "fmul <" in e.llvm()
    assert "define" in e.llvm()
    assert e.asm().count("mul") >= 1


def test_calls_are_named_and_other_stages_refused():
    w = Tensor(W)
    out = TensorContainer((3, 3))
    assert out.explain(shadow.dot(w, w.T)) == "library: <Dot 3x3 float32>"
    with pytest.raises(ParamError, match=r"plan, loop, llvm, asm, .* got tree"):
        out.explain(shadow.implicit_dot(w, w.T), stage="tree")


def test_looking_changes_nothing():
    memory = W.copy()
    w = Tensor(memory)
    for stage in ("plan", "loop", "llvm", "asm"):
        assert w.explain(w + 1.0, stage=stage)
        assert getattr(w + 1.0, stage)()
    np.testing.assert_array_equal(memory, W)
