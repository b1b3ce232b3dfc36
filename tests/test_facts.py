"""Metrics and initializers give what the real library gave."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden import facts

import gnomon as mx

RECORDED = json.loads((Path(__file__).parent / "golden" / "facts.json").read_text())


def flat(pairs):
    """Names and values apart, whether a metric gave one of each or lists."""
    names = [name for name, _ in pairs]
    return names, np.array([value for _, value in pairs], dtype=float)


@pytest.mark.parametrize("name", facts.METRICS)
def test_metric(name):
    names, values = flat(facts.measure(mx, name))
    expected_names, expected = flat(RECORDED["metrics"][name])
    assert names == expected_names
    np.testing.assert_allclose(values, expected, 1e-6)


@pytest.mark.parametrize("name", facts.INITIALIZERS)
def test_initializer(name):
    recorded = RECORDED["initializers"][name]
    assert facts.INITIALIZERS[name][0](mx.init).dumps() == recorded["text"]
    mx.random.seed(5)
    values = facts.initialize(mx, name)
    low, high, mean, deviation = recorded["values"]
    assert values.dtype == np.float32
    if deviation == 0:
        assert (values == mean).all()
        return
    assert values.std() == pytest.approx(deviation, rel=0.03)
    assert values.mean() == pytest.approx(mean, abs=0.03 * deviation)
    bounded = abs(high) < 2 * deviation  # uniform numbers end sharply, normal ones do not
    slack = 0.01 if bounded else 0.4
    assert values.max() == pytest.approx(high, rel=slack)
    assert values.min() == pytest.approx(low, rel=slack)


@pytest.mark.parametrize("target", ["a_moving_mean", "a_running_var", "state", "parameters"])
def test_a_name_that_says_nothing_is_refused(target):
    with pytest.raises(ValueError, match=target):
        mx.init.Xavier()(mx.init.InitDesc(target), mx.nd.ones((2, 2)))


def test_an_attribute_wins_over_the_name():
    values = mx.nd.zeros((2,))
    described = mx.init.InitDesc("fc_bias", {"__init__": mx.init.One().dumps()})
    mx.init.Xavier()(described, values)
    assert values.asnumpy().tolist() == [1, 1]
