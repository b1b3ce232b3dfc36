"""Writing while recording: what MXNet refuses is refused, and gradients of all else are its."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import writes

import gnomon as mx
from gnomon import autograd, nd
from gnomon.base import GnomonError

RECORDED = json.loads((Path(__file__).parents[1] / "golden" / "writes.json").read_text())


@pytest.mark.parametrize("kind", writes.KINDS)
@pytest.mark.parametrize("statement", writes.STATEMENTS)
def test_writes_as_mxnet_has_them(statement, kind):
    expected = RECORDED[statement][writes.KINDS.index(kind)]
    found = writes.run(mx, kind, statement)
    if kind.startswith("computed") and "= np.array(" in statement:
        assert found is None  # MXNet takes it, with the gradients of what stood there before
    elif expected is None:
        assert found is None
    else:
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, 1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 0), (1, 2)])
@pytest.mark.parametrize("laid", ["dense", "strided"])
def test_a_whole_write_carries_the_gradient_whatever_the_shape(shape, laid):
    values = np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)
    z = nd.array(values, dtype="float64")
    z.attach_grad()
    base = nd.empty((*shape, 2), dtype="float64")
    w = base[..., 1].reshape(shape) if laid == "strided" else nd.empty(shape, dtype="float64")
    with autograd.record():
        w[...] = z * z
        y = w * w
    y.backward()
    np.testing.assert_allclose(w.asnumpy(), values**2)
    np.testing.assert_allclose(z.grad.asnumpy(), 4 * values**3)


def test_a_refused_write_leaves_everything_as_it_was():
    z, w = nd.array([3, 4]), nd.array([1, 2])
    z.attach_grad()
    with autograd.record():
        for write in (
            lambda: w.__setitem__(slice(0, 1), z[0:1]),
            lambda: w.__setitem__([1], z[0:1]),
            lambda: w.__iadd__(z),
            lambda: nd.elemwise_mul(w[::-1], z, out=w),
        ):
            with pytest.raises(GnomonError, match="while recording"):
                write()
        y = w * z
    y.backward()
    assert w.asnumpy().tolist() == [1, 2]
    assert z.grad.asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize("stype", ["row_sparse", "csr"])
def test_sparse_arrays_on_the_tape_are_not_written(stype):
    w = nd.array([[1, 0], [0, 2]]).tostype(stype)
    w.attach_grad()
    dense = nd.ones((2, 2))
    writes = (
        lambda: w.__setitem__(slice(None), 0),
        lambda: w.__setitem__(slice(None), dense),
        lambda: dense.tostype(stype).copyto(w),
        lambda: w.__iadd__(dense.tostype(stype)),
    )
    for write in writes:
        with autograd.record(), pytest.raises(GnomonError, match="while recording"):
            write()
    assert w.asnumpy().tolist() == [[1, 0], [0, 2]]
