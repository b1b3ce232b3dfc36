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
