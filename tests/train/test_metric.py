"""Metrics: sums since the last reset, names, composition, user functions, refusals."""

import json
import math

import numpy as np
import pytest

import gnomon as mx
from gnomon import metric as metrics
from gnomon.base import GnomonError

LABELS = [mx.nd.array([0, 1, 1])]
SCORES = [mx.nd.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])]


def test_local_and_global_values():
    acc = metrics.create("acc")
    assert math.isnan(acc.get()[1])
    acc.update(LABELS, SCORES)
    acc.reset_local()
    assert math.isnan(acc.get()[1])
    assert acc.get_global() == ("accuracy", 2 / 3)
    acc.update([mx.nd.array([1])], [mx.nd.array([[0, 1]])])
    assert acc.get() == ("accuracy", 1.0)
    assert acc.get_global_name_value() == [("accuracy", 0.75)]
    acc.reset()
    assert math.isnan(acc.get_global()[1])


@pytest.mark.parametrize("name", ["f1", "mcc", "pcc", "pearsonr", "perplexity", "mae", "ce"])
def test_every_metric_starts_and_restarts_undefined(name):
    kwargs = {"ignore_label": None} if name == "perplexity" else {}
    metric = metrics.create(name, **kwargs)
    update = (LABELS, SCORES)
    if name in ("pearsonr", "mae"):
        update = ([mx.nd.array([1.0, 2, 4])], [mx.nd.array([1.0, 3, 4])])
    assert math.isnan(metric.get()[1])
    metric.update(*update)
    first = metric.get()[1]
    metric.reset()
    assert math.isnan(metric.get()[1])
    metric.update(*update)
    assert metric.get()[1] == first


def test_correlation_of_all_batches_is_that_of_their_union():
    rng = np.random.default_rng(0)
    label, pred = rng.normal(size=40) + 5, rng.normal(size=40)
    pred += label
    metric = metrics.create("pearsonr", average="micro")
    for part in (slice(0, 7), slice(7, 30), slice(30, 40)):
        metric.update([mx.nd.array(label[part])], [mx.nd.array(pred[part])])
    assert metric.get()[1] == pytest.approx(np.corrcoef(label, pred)[0, 1], rel=1e-6)


def test_names_choose_outputs_and_labels():
    labels = {"a": LABELS[0], "b": mx.nd.array([0, 0, 0])}
    preds = {"x": SCORES[0], "y": SCORES[0]}
    chosen = metrics.create("acc", label_names=["b"], output_names=["x"])
    chosen.update_dict(labels, preds)
    assert chosen.get()[1] == 2 / 3
    both = metrics.create("acc")
    both.update_dict(labels, preds)
    assert both.num_inst == 6
    with pytest.raises(KeyError, match="nothing"):
        metrics.create("acc", label_names=["nothing"]).update_dict(labels, preds)


def test_composition():
    both = metrics.create(["acc", "ce"])
    both.add("mse")
    assert [both.get_metric(i).name for i in range(3)] == ["accuracy", "cross-entropy", "mse"]
    with pytest.raises(ValueError, match="index below 3"):
        both.get_metric(3)
    assert [each["metric"] for each in both.get_config()["metrics"]] == [
        "Accuracy",
        "CrossEntropy",
        "MSE",
    ]
    for config in (both.get_config(), json.dumps(both.get_config())):
        assert metrics.create(config).get()[0] == both.get()[0]
    with pytest.raises(ValueError, match="get_config"):
        metrics.create({"name": "none"})


def test_functions_of_users():
    worst = metrics.np(lambda label, pred: np.abs(label - pred).max(), name="worst")
    worst.update([mx.nd.array([1, 2])], [mx.nd.array([1, 5])])
    assert worst.get() == ("worst", 3.0)
    counted = metrics.create(lambda label, pred: (label.sum(), label.size))
    counted.update([mx.nd.array([1, 2])], [mx.nd.array([0, 0])])
    assert counted.get() == ("custom(<lambda>)", 1.5)
    with pytest.raises(NotImplementedError, match="no config"):
        counted.get_config()
    first = metrics.CustomMetric(lambda label, pred: 1.0, allow_extra_outputs=True)
    first.update(LABELS, SCORES * 2)
    assert first.num_inst == 1


def test_metrics_of_users():
    @metrics.register("halves")
    class Half(metrics.EvalMetric):
        """Counts half of each update."""

        def __init__(self, name="half"):
            super().__init__(name)

        def update(self, labels, preds):
            self.sum_metric += 1
            self.num_inst += 2

    half = metrics.create("halves")
    half.update(None, None)
    assert half.get() == half.get_global() == ("half", 0.5)


def test_an_own_list_of_names_and_values_counts():
    class Tasks(metrics.EvalMetric):
        """Two values, told as no list."""

        def get(self):
            return zip(("left", 1.0), ("right", 2.0), strict=True)

        def get_name_value(self):
            names, values = self.get()
            return list(zip(names, values, strict=True))

    assert Tasks("tasks").get_global_name_value() == [("left", 1.0), ("right", 2.0)]


@pytest.mark.parametrize(
    ("name", "labels", "preds", "words"),
    [
        ("acc", [[0, 1]], [[[1, 0], [0, 1], [1, 0]]], "shape"),
        ("acc", [[0], [1]], [[[1, 0]]], "number of arrays 2"),
        ("ce", [[0, 5]], [[[1, 0], [1, 0]]], "below 2"),
        ("ce", [[0]], [[[1, 0], [1, 0]]], "1 labels"),
        ("acc", [[[1, 0], [0, 1]]], [[0, 1]], r"Accuracy.*scores along axis 1.*\(2,\)"),
        ("f1", [[0, 2]], [[[1, 0], [1, 0]]], "two classes"),
        ("f1", [[0, 1]], [[1, 0]], "F1.*scores along axis 1"),
        ("mse", [[0, 2]], [[[1, 0, 0], [1, 0, 0], [0, 0, 0]]], "MSE"),
        ("perplexity", [[0, 2]], [[[1, 0, 0]]], "2 rows"),
    ],
)
def test_refused_arrays(name, labels, preds, words):
    kwargs = {"ignore_label": None} if name == "perplexity" else {}
    metric = metrics.create(name, **kwargs)
    with pytest.raises(ValueError, match=words):
        metric.update([mx.nd.array(a) for a in labels], [mx.nd.array(a) for a in preds])
    assert metric.num_inst == 0


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_the_other_of_two_classes_may_be_minus_one(name):
    """As in MXNet, where every class but 1 is the other one."""
    preds = [np.eye(2)[[1, 0, 1, 1, 0]]]
    scores = []
    for other in (0, -1):
        metric = metrics.create(name)
        metric.update([np.array([1, other, other, 1, 1])], preds)
        scores.append(metric.get()[1])
    assert scores[0] == scores[1] != 0
    with pytest.raises(GnomonError, match=r"1 and 0 or -1, got classes \[-1, 0, 1\]"):
        metrics.create(name).update([np.array([1, 0, -1, 1, 1])], preds)


@pytest.mark.parametrize("spec", ["acuracy", 3, '["acc"'])
def test_refused_names(spec):
    with pytest.raises(mx.GnomonError, match="metric"):
        metrics.create(spec)


@pytest.mark.parametrize(
    "make",
    [
        lambda: metrics.TopKAccuracy(top_k=1),
        lambda: metrics.F1(average="all"),
        lambda: metrics.PearsonCorrelation(average="all"),
    ],
)
def test_refused_settings(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_correlation_of_classes():
    """Values of MXNet 1.9.1."""
    rng = np.random.RandomState(0)
    draws = []
    for rows, classes in ((20, 2), (30, 4)):
        pred = mx.nd.array(rng.rand(rows, classes))
        draws.append(([mx.nd.array(rng.randint(0, classes, rows))], [pred]))
    two, four = draws
    metric = metrics.PCC()
    metric.update(*two)
    assert metric.get() == ("pcc", pytest.approx(-0.31180478223116176))
    metric.update(*four)
    assert metric.get()[1] == pytest.approx(-0.055527078668372365)
    metric.reset_local()
    assert math.isnan(metric.get()[1])
    metric.update([four[0][0]], [four[1][0].argmax(axis=1)])
    assert metric.get()[1] == pytest.approx(-0.10308473097354373)
    metric.update([], [])
    assert (metric.num_inst, metric.global_num_inst) == (2, 4)
    constant = metrics.create("pcc")
    constant.update([mx.nd.array([0, 0])], [mx.nd.array([[1, 0], [1, 0]])])
    assert math.isnan(constant.get()[1])
    with pytest.raises(GnomonError, match="at least 0"):
        constant.update([mx.nd.array([-1, 0])], [mx.nd.array([1, 0])])


def test_a_correlation_of_all_batches_forgets_its_own_sum_alone():
    metric = metrics.PearsonCorrelation(average="micro")
    first, second = [np.arange(4.0)], [np.array([2.0, 1.0, 0.0, 5.0])]
    metric.update(first, second)
    known = metric.get()[1]
    metric.reset_local()
    assert np.isnan(metric.get()[1])
    assert metric.get_global()[1] == known
    metric.update(first, second)
    assert metric.get()[1] == pytest.approx(known)  # of all since `reset`, as with MXNet


def test_a_name_is_text_of_anything():
    assert metrics.Accuracy(name=None).name == "None"
    assert metrics.F1(name=3).name == "3"


@pytest.mark.parametrize(("average", "updates"), [("micro", 2), ("macro", 0)])
@pytest.mark.parametrize("kind", [metrics.F1, metrics.MCC])
def test_counts_that_scores_of_two_classes_follow_from(kind, average, updates):  # as MXNet's
    metric = kind(average=average)
    label = mx.nd.array([0, 1, 1, 0, 1])
    positive = np.array([0.7, 0.8, 0.4, 0.1, 0.9])
    for _ in range(2):
        metric.update([label], [mx.nd.array(np.stack([1 - positive, positive], 1))])
    found = metric.metrics
    assert (found.true_positives, found.false_positives) == (2 * updates, updates)
    assert (found.true_negatives, found.false_negatives) == (updates, updates)
    assert found.total_examples == 5 * updates
    share = pytest.approx(2 / 3 if updates else 0)
    assert (found.precision, found.recall, found.fscore) == (share, share, share)
    assert found.matthewscc() == pytest.approx(1 / 6 if updates else 0)
