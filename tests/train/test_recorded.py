"""Updates, schedules, batches, short trainings and summaries are what the real library's were."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden import training

import gnomon as mx

FILE = Path(__file__).parent.parent / "golden" / "training.json"
RECORDED = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", training.OPTIMIZERS)
def test_optimizer(name):
    # float32 in the real library: 1 - 0.999 has three digits there.
    for ours, theirs in zip(training.optimize(mx, name), RECORDED["optimizers"][name], strict=True):
        np.testing.assert_allclose(ours, theirs, 2e-4, 2e-5)


@pytest.mark.parametrize("name", training.OPTIMIZERS)
def test_multi_precision(name):
    ours, theirs = training.optimize_half(mx, name), RECORDED["halves"][name]
    if name.startswith("lamb"):  # MXNet's forgets each update: docs/differences.md
        np.testing.assert_allclose(ours[0], RECORDED["optimizers"][name][0], 2e-3, 2e-3)
        return
    np.testing.assert_allclose(ours[0], theirs[0], 2e-3, 2e-3)  # a unit in the last place
    for state in theirs[1:]:  # they may stand in another order, beside others
        assert any(np.allclose(x, state, 2e-4, 2e-5) for x in ours[1:])


@pytest.mark.parametrize("name", training.METRICS)
def test_metric(name):
    for (ours, every), (theirs, their_every) in zip(
        training.measure(mx, name), RECORDED["metrics"][name], strict=True
    ):
        for a, b in ((ours, theirs), (every, their_every)):
            assert [n for n, _ in a] == [n for n, _ in b]
            np.testing.assert_allclose([x for _, x in a], [x for _, x in b], 1e-5, 1e-7)


@pytest.mark.parametrize("name", training.INITIALIZERS)
def test_initializer(name):
    np.testing.assert_allclose(training.initial(mx, name), RECORDED["initial"][name], 1e-6)


@pytest.mark.parametrize("name", training.DRAWN)
def test_drawn_initializer(name):
    ours, theirs = training.initial(mx, name), RECORDED["initial"][name]
    np.testing.assert_allclose(ours[1], theirs[1], 0.02)
    np.testing.assert_allclose(ours[0], theirs[0], atol=0.06 * theirs[1] + 1e-6)


@pytest.mark.parametrize("name", training.SCHEDULES)
def test_schedule(name):
    assert training.schedule(mx, name) == pytest.approx(RECORDED["schedules"][name], rel=1e-12)


@pytest.mark.parametrize("name", training.ITERATORS)
def test_iterator(name):
    assert training.iterate(mx, name) == RECORDED["iterators"][name]


@pytest.mark.parametrize("name", training.FITS)
def test_fit(name):
    ours, theirs = training.fit(mx, name), RECORDED["fits"][name]
    assert [each[:2] for each in ours["seen"]] == [each[:2] for each in theirs["seen"]]
    for mine, other in zip(ours["seen"], theirs["seen"], strict=True):
        np.testing.assert_allclose(mine[2], other[2], 1e-4)
    assert ours["params"].keys() == theirs["params"].keys()
    for key, value in ours["params"].items():
        np.testing.assert_allclose(value, theirs["params"][key], 1e-4, 1e-5, err_msg=key)
    np.testing.assert_allclose(ours["predicted"], theirs["predicted"], 1e-4, 1e-6)
    np.testing.assert_allclose(ours["score"], theirs["score"], 1e-4)


@pytest.mark.parametrize("name", training.SUMMARIES)
def test_summary(name):
    assert training.summarize(mx, name) == RECORDED["summaries"][name]
