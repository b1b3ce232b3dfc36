"""Operators that say which sizes do nothing but count serve new ones by what is made already."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, config, nd
from gnomon.dtype import float32
from gnomon.graph import gradient
from gnomon.ndarray.core.bounded_cache import LEARNT, RECIPES, BoundedCache
from gnomon.ndarray.lazy import families, invoke
from gnomon.ops import registry
from gnomon.runtime.statements.growth import Growth
from gnomon.shape import prod

LEADING = (
    *((3, 7), (5, 2), (1, 9), (4, 11), (2, 1), (7, 7), (13,), (2, 3, 5), (4, 16), (101,), (0, 3)),
    *((9, 14), (13, 17), (9, 19), (7, 14), (2, 7, 9), (31,), (11, 16), (14, 9), (97,), (7, 9, 11)),
)
#: operators of which some sizes do nothing but count: the shapes of inputs, parameters
COUNTED = {
    "FullyConnected": lambda n: (
        [(*n, 24), (10, 24), (10,)], {"num_hidden": 10, "flatten": False}),
    "flattened": lambda n: ([(n[0], 24), (10, 24)], {"num_hidden": 10, "no_bias": True}),
    "LayerNorm": lambda n: ([(*n, 24), (24,), (24,)], {}),
    "softmax": lambda n: ([(*n, 5)], {"temperature": 2.0 if len(n) > 2 else None}),
    "log_softmax": lambda n: ([(*n, 6)], {"axis": len(n)}),
    "SoftmaxOutput": lambda n: ([(n[0], 5, 3), (n[0], 3)],
                                {"multi_output": True, "use_ignore": True})
                     if len(n) > 1 else ([(n[0], 5), n], {"smooth_alpha": 0.25}),
    "softmin": lambda n: ([(*n, 6)], {"axis": -1}),
    "MakeLoss": lambda n: ([n], {"normalization": "valid", "valid_thresh": 0.5}),
    "batch_dot": lambda n: ([(3, *n[-2:]), (3, n[-1], 5)] if len(n) > 1 else [(3, n[0], 2)] * 2,
                            {"transpose_b": len(n) == 1}),
    "dot": lambda n: ([(n[-1], *n[1:]), (n[-1], 6)], {"transpose_a": True}),
    "SliceChannel": lambda n: ([(*n, 12)], {"num_outputs": 3, "axis": -1}),
    "Concat": lambda n: ([(*n, 4), (*n, 3), (*n, 2)], {"dim": len(n)}),
    "_rnn_param_concat": lambda n: ([(4, *n), (3, *n)], {"dim": 0}),
    "stack": lambda n: ([n, n, n], {"axis": len(n)}),
    "Embedding": lambda n: ([n, (7, 5)], {"input_dim": 7, "output_dim": 5}),
    "take": lambda n: ([(3, 6), n], {"axis": len(n) % 2, "mode": "wrap"}),
    "pick": lambda n: ([(*n, 5), n], {"keepdims": len(n) > 1}),
    "one_hot": lambda n: ([n], {"depth": 5}),
    "LeakyReLU": lambda n: ([n], {"act_type": "gelu" if len(n) > 1 else "leaky"}),
    "SequenceMask": lambda n: ([(3, *n), n[:1]], {"use_sequence_length": True, "value": -1}),
    "_contrib_arange_like": lambda n: ([n], {"axis": None if len(n) > 1 else 0, "start": 1}),
    "slice_like": lambda n: ([(20, 20, 20)[:len(n)], [min(k, 20) for k in n]], {}),
    "tile": lambda n: ([n], {"reps": (3,)}),
    "repeat": lambda n: ([n], {"repeats": 3, "axis": 0 if len(n) > 1 else None}),
}  # fmt: skip


#: others, which no kernels and products of operands alone compute, or which arrays make otherwise
ELSEWHERE = {
    "BatchNorm", "_contrib_BatchNormWithReLU", "_contrib_SyncBatchNorm", "Convolution",
    "Deconvolution", "Pooling", "Pooling_v1", "RNN", "Dropout", "zeros_like", "ones_like",
    "broadcast_like", "_contrib_SparseEmbedding",
    "_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_selfatt_valatt",
    "_contrib_interleaved_matmul_encdec_qk", "_contrib_interleaved_matmul_encdec_valatt",
}  # fmt: skip


def computed(kind, shapes, given, how):
    """The outputs of an operator of `COUNTED` and all gradients, on numbers that shapes decide."""
    draw = np.random.default_rng(sum(map(prod, shapes)))
    inputs = [nd.array(draw.standard_normal(shape)) for shape in shapes]
    for x in inputs:
        x.attach_grad(how)
    with autograd.record():
        found = getattr(nd, "FullyConnected" if kind == "flattened" else kind)(*inputs, **given)
        outputs = found if isinstance(found, list) else [found]
    autograd.backward(outputs, [nd.array(draw.standard_normal(y.shape)) for y in outputs])
    return [x.asnumpy() for x in (*outputs, *(x.grad for x in inputs))]


@pytest.mark.parametrize("how", ["write", "add"])
@pytest.mark.parametrize("kind", COUNTED)
def test_sizes_that_do_nothing_but_count(kind, how, served, monkeypatch):
    """New sizes: odd ones, 1, equal ones, none; the same bits as where each is met first."""
    cases = [COUNTED[kind](leading) for leading in LEADING]
    found = [computed(kind, *case, how) for case in cases]
    assert len(served) >= 4
    for case, values in zip(cases, found, strict=True):
        monkeypatch.setattr(gradient, "_looked", {})
        RECIPES.forget()
        LEARNT.forget()
        for x, y in zip(values, computed(kind, *case, how), strict=True):
            np.testing.assert_array_equal(x, y)


ALIKE = {
    "FullyConnected": lambda n: ([(n, 3), (2, 3), (2,)], {"num_hidden": 2}),
    "LayerNorm": lambda n: ([(n, 2, 6), (6,), (6,)], {}),
    "SliceChannel": lambda n: ([(n, 6)], {"num_outputs": 3, "axis": -1}),
    "dot": lambda n: ([(n, 3), (3, 2)], {}),
    "Pooling": lambda n: ([(n, 2, 9, 5)],
                          {"kernel": (2, 2), "stride": (2, 2), "pool_type": "sum"}),
    "Convolution": lambda n: ([(n, 2, 4, 4), (3, 2, 2, 2), (3,)],
                              {"kernel": (2, 2), "num_filter": 3}),
}  # fmt: skip


@pytest.mark.parametrize("how", ["write", "add"])
@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize("first", [2, 3, 4, 6, 8, 9, 12, 18, 24])
def test_sizes_that_equal_others_at_first(kind, how, first, monkeypatch):
    """A size that is another's too, or a product of others, tells nothing of where it goes."""
    monkeypatch.setattr(families, "_known", {})
    cases = [ALIKE[kind](n) for n in (first, 16, 5, 30, 7)]
    found = [computed(kind, *case, how) for case in cases]
    for case, values in zip(cases, found, strict=True):
        RECIPES.forget()
        LEARNT.forget()
        for x, y in zip(values, computed(kind, *case, how), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("how", ["write", "add"])
@pytest.mark.parametrize("sizes", [
    [(2, 3, 5, 4), (4, 3, 5, 2), (5, 7, 5, 6)],
    [(2, 3, 5, 4), (4, 3, 7, 2), (5, 7, 9, 6), (8, 9, 11, 10)],
    [(6, 2, 7, 3), (3, 2, 11, 6), (13, 17, 5, 19)],
])  # fmt: skip
def test_products_of_sizes_that_stay_the_same_tell_nothing(how, sizes, monkeypatch):
    monkeypatch.setattr(families, "_known", {})
    for b, m, k, n in sizes:
        given = [(b, m, k), (b, k, n)]
        draw = np.random.default_rng(sum(map(prod, given)))
        x, y, head = (draw.standard_normal(s).astype(np.float32) for s in (*given, (b, m, n)))
        found = computed("batch_dot", given, {}, how)
        products = x @ y, head @ y.swapaxes(1, 2), x.swapaxes(1, 2) @ head
        for a, c in zip(found, products, strict=True):
            np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)


def test_a_family_waits_where_a_product_of_sizes_stays_the_same():
    assert not Growth((2, 3, 4), (4, 3, 2)).is_clear
    growth = Growth((7, 2, 7), (9, 5, 9))
    assert growth.is_clear and growth.product(98, 405) and growth.product(343, 729)


def test_every_operator_that_says_so_is_tried():
    said = {registry.find(name).name for name in registry.names() if registry.find(name).free}
    assert said == (COUNTED.keys() - {"flattened"}) | ELSEWHERE


def test_what_its_gradient_reads_is_asked_once_for_sizes_that_count(monkeypatch):
    asked, look = [], gradient._look
    monkeypatch.setattr(gradient, "_looked", {})
    monkeypatch.setattr(gradient, "_look", lambda *given: asked.append(given) or look(*given))
    op = registry.find("FullyConnected")(num_hidden=10)
    for rows in (7, 11, 24):
        shapes = (rows, 24), (10, 24), (10,)
        found = gradient.flow_of(op, shapes, (float32,) * 3, (True,) * 3, True)
        assert found == look(op, shapes, (float32,) * 3, (True,) * 3, True)
    assert len(asked) == 1


def test_recipes_weigh_what_libraries_keep_for_them(monkeypatch):
    few = BoundedCache(1 << 20, 6 << 10)
    monkeypatch.setattr(invoke, "RECIPES", few)
    weight = nd.ones((8, 3, 3, 3))
    for rows in range(120, 170):
        data = nd.ones((2, 3, rows, 33))
        nd.Convolution(data, weight, kernel=(3, 3), num_filter=8, no_bias=True).wait_to_read()
    assert few.made >= 50
    assert 5 < len(few._entries) < 25


def test_entries_are_weighed_again_when_the_next_one_comes():
    class Learnt:
        kept_bytes = 1

    kept, table, latest = BoundedCache(10), {}, Learnt()
    kept.put(table, "latest", latest)
    assert kept.has_room
    latest.kept_bytes = 10
    kept.put(table, "next", Learnt())
    assert list(table) == ["next"]


def test_a_library_that_is_switched_off_serves_no_new_sizes():
    for rows, onednn in ((301, True), (311, True), (317, False)):
        with config.using(onednn=onednn):
            x, y = nd.ones((rows, 70), dtype="float16"), nd.ones((70, 60), dtype="float16")
            np.testing.assert_array_equal(nd.dot(x, y).asnumpy(), 70)
