"""Pending operators as one kernel: numbers that simplifying leaves out, and no kernel at all."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from gnomon import config, engine, nd
from gnomon.ndarray.lazy import fusion_group, trace
from gnomon.runtime.kernels.cache import CACHE

ALIKE = [
    "a += b; r = nd.where(b > 0, a, a)",
    "r = nd.minimum(a * 3, (a * 3) * 1)",
    "r = nd.where(nd.ones_like(a * 3), b, b * 2)",
    "a *= 2; r = nd.where(b * 3 > 1, a + 1, a + 1); b -= a",
]


@pytest.mark.parametrize("text", ALIKE)
def test_a_number_that_simplifying_leaves_out(text):
    given = {name: np.float32([1, -2, 3]) * k for k, name in enumerate("ab", 1)}
    for _ in range(3):  # by operators of their own at first, then by one kernel
        found = {name: nd.array(x) for name, x in given.items()}
        exec(text, {"nd": nd}, found)
        with config.using(lazy=False):
            at_once = {name: nd.array(x) for name, x in given.items()}
            exec(text, {"nd": nd}, at_once)
        for name in "rab":
            np.testing.assert_array_equal(found[name].asnumpy(), at_once[name].asnumpy())


def test_operators_that_cannot_be_one_kernel_lose_no_operand(monkeypatch):
    """Memory may lack for a kernel, say: every operator is computed then, or fails, by itself."""
    make, limit = trace.TraceNode.recipe, 1

    def failing(stage, *key):
        if stage.count > limit or (stage.count and stage.rule.op.name == "_mul_scalar"):
            raise MemoryError("no kernel")
        return make(stage, *key)

    monkeypatch.setattr(trace.TraceNode, "recipe", failing)
    a, b = nd.array([1.0, 2.0, 3.0]), nd.array([4.0, 5.0, 6.0])
    a += b
    lost = b * 2
    lost_too = lost + a
    c = a - b
    with pytest.warns(RuntimeWarning, match="one by one"):
        assert c.asnumpy().tolist() == [1, 2, 3]
    assert a.asnumpy().tolist() == [5, 7, 9]
    b += 1
    c[:] = (a + b) * (a - b)
    with pytest.warns(RuntimeWarning, match="one by one"):
        c[:] = (a + b) * (a - b)  # by one kernel, were there one: it is met again
    assert c.asnumpy().tolist() == [0, 13, 32]
    for x in (lost, lost_too):
        with pytest.raises(engine.EngineError, match="no kernel"):
            x.asnumpy()
    monkeypatch.undo()
    assert (b * 2).asnumpy().tolist() == [10, 12, 14]


def test_a_short_chain_is_compiled_once_it_has_come_often(monkeypatch):
    monkeypatch.setattr(fusion_group, "OFTEN", 3)
    monkeypatch.setattr(CACHE, "kernels", OrderedDict())  # that of a long run of tests may be full
    a, kernels = nd.array([1.0, 2.0]), []
    for _ in range(5):
        # by functions that no other test has in one kernel: that would be there already
        found = nd.arctan((nd.cbrt(a * a) - 2.5) * a).asnumpy()
        np.testing.assert_allclose(found, np.arctan([-1.5, 2 * (4 ** (1 / 3) - 2.5)]), rtol=1e-6)
        kernels.append(len(CACHE.kernels))
    assert [n - kernels[0] for n in kernels] == [0, 0, 0, 1, 1]


def test_statements_wait_again_as_soon_as_they_may():
    a = nd.array([1.0, 2.0])
    with config.using(lazy=False):
        assert (a + 1)._pending_in is None
    assert (a + 1)._pending_in is not None
