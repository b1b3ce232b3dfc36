"""Updates, schedules, batches, short trainings and summaries are what the real library's were."""

import json
from pathlib import Path

import numpy as np
import pytest
from golden import training

import gnomon as mx
from gnomon.gluon.parameter.constant import Value

FILE = Path(__file__).parent.parent / "golden" / "training.json"
RECORDED = json.loads(FILE.read_text())
STEP_BY_STEP = 1e-5, 1e-7  # relative, absolute


def _close(ours, theirs):
    return len(ours) == len(theirs) and np.allclose(ours, theirs, *STEP_BY_STEP)


# what has no record, and why
UNRECORDED = {
    "AdamW": "MXNet has the operator alone",
    "ccSGD": "a name of SGD that was given up",
    "SGLD": "draws",
    "CompositeEvalMetric": "is 'several'",
    "CustomMetric": "calls a function",
    "NamedMetric": "is what metrics without options share",
    "FusedRNN": "stands with the recurrent cells",
    Value.__name__: "gives a constant's own value",
}


def kinds(base):
    """All classes below one that users name."""
    below = [k for each in base.__subclasses__() for k in (each, *kinds(each))]
    return [k for k in below if k.__module__.startswith("gnomon.") and k.__name__[0] != "_"]


def made(table, create):
    return {type(create(name, **given)).__name__ for name, given, *_ in table.values()}


def test_every_kind_has_a_record():
    metrics = {k: v for k, v in training.METRICS.items() if k != "several"}
    rates = {getattr(mx.lr_scheduler, name).__name__ for name, _ in training.SCHEDULES.values()}
    found = (
        made(training.OPTIMIZERS, mx.optimizer.create)
        | made(metrics, mx.metric.create)
        | made({**training.INITIALIZERS, **training.DRAWN}, mx.init.create)
        | rates
    )
    bases = mx.optimizer.Optimizer, mx.metric.EvalMetric, mx.init.Initializer
    for base in bases:
        mx.registry.get_registry(base)  # which has all of its files imported
    every = [k.__name__ for b in (*bases, mx.lr_scheduler.LRScheduler) for k in kinds(b)]
    assert set(every) - found == UNRECORDED.keys()


@pytest.mark.parametrize("name", training.OPTIMIZERS)
def test_optimizer(name):
    np.testing.assert_allclose(
        training.optimize(mx, name), RECORDED["optimizers"][name], *STEP_BY_STEP
    )


@pytest.mark.parametrize("name", training.TOGETHER)
def test_optimizer_of_several_weights_at_once(name):
    np.testing.assert_allclose(
        training.optimize(mx, name, True), RECORDED["together"][name], *STEP_BY_STEP
    )


@pytest.mark.parametrize("name", training.OPTIMIZERS)
def test_multi_precision(name):
    for step, (ours, theirs) in enumerate(
        zip(training.optimize_half(mx, name), RECORDED["halves"][name], strict=True)
    ):
        if name in training.FAULTY_HALVES:  # docs/differences.md: held to MXNet's float32 instead
            theirs = [np.float16(RECORDED["rounded"][name][step]), RECORDED["rounded"][name][step]]
        np.testing.assert_allclose(ours[0], theirs[0], 1e-3)  # a unit in the last place
        for state in theirs[1:]:  # they may stand in another order, beside others
            assert any(_close(x, state) for x in ours[1:])


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
