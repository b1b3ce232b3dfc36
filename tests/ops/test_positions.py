"""Calls by position mean what they mean in MXNet 1.9.1."""

from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.ops import registry

GOLDEN = Path(__file__).parent.parent / "golden" / "positions.txt"
RECORDED = dict(line.split(":") for line in GOLDEN.read_text().splitlines())


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_order(name):
    found = registry.find(name)
    assert [*found.input_names, *found.fields] == RECORDED[name].split()


def test_an_update_takes_its_momentum_second():
    w, g, m = (mx.nd.ones(2) for _ in range(3))
    mx.nd.sgd_mom_update(w, g, m, 0.1, 0.9, out=w)
    np.testing.assert_allclose(w.asnumpy(), 1.8, rtol=1e-6)
    np.testing.assert_allclose(m.asnumpy(), 0.8, rtol=1e-6)


def test_draws_take_their_numbers_first():
    drawn = mx.nd.random_uniform(-3, -1, shape=(5,)).asnumpy()
    assert drawn.shape == (5,)
    assert np.all((drawn >= -3) & (drawn < -1))
    assert mx.nd.normal(100, 1, (2, 3)).shape == (2, 3)


def test_log_softmax_takes_its_axis_second():
    x = mx.nd.array([[1.0, 2.0], [3.0, 5.0]])
    np.testing.assert_allclose(np.exp(mx.nd.log_softmax(x, 0).asnumpy()).sum(axis=0), 1, rtol=1e-6)
