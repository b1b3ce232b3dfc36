"""`Estimator` and its handlers."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import ParamError
from gnomon.gluon.contrib import estimator as est


def source(rows=20):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3)).astype(np.float32)
    y = (x.sum(1) > 0).astype(np.float32)
    return mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y), batch_size=5)


def made(**how):
    net = mx.gluon.nn.Dense(2)
    net.initialize(mx.init.Constant(0.1))
    how.setdefault("trainer", mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}))
    return est.Estimator(net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), **how)


class Seen(
    est.TrainBegin, est.TrainEnd, est.EpochBegin, est.EpochEnd, est.BatchBegin, est.BatchEnd
):
    """Writes down what it is told."""

    def __init__(self):
        self.events = []

    def train_begin(self, estimator, **how):
        self.events.append("train")

    def train_end(self, estimator, **how):
        self.events.append("trained")

    def epoch_begin(self, estimator, **how):
        self.events.append("epoch")

    def epoch_end(self, estimator, **how):
        self.events.append("done")

    def batch_begin(self, estimator, **how):
        self.events.append(sorted(how))

    def batch_end(self, estimator, **how):
        self.events.append(sorted(how))


def test_events_in_order():
    seen = Seen()
    made().fit(source(10), epochs=1, event_handlers=seen)
    end = ["batch", "label", "loss", "pred"]
    batches = [["batch"], end] * 2
    assert seen.events == ["train", "epoch", *batches, "done", "trained"]


def test_it_learns_and_scores(caplog):
    caplog.set_level(logging.INFO)
    estimator = made()
    assert [m.name for m in estimator.train_metrics] == [
        "training accuracy",
        "training softmaxcrossentropyloss",
    ]
    estimator.fit(source(), source(), epochs=8)
    values = dict(m.get() for m in [*estimator.train_metrics, *estimator.val_metrics])
    assert values["validation accuracy"] >= 0.9
    assert values["training softmaxcrossentropyloss"] < 0.5
    assert caplog.text.count("Finished in") == 16  # training and validation
    assert "Train finished" in caplog.text


def test_a_number_of_batches():
    seen = Seen()
    made().fit(source(), batches=6, event_handlers=seen)
    assert seen.events.count(["batch"]) == 6
    assert seen.events.count("epoch") == 2


@pytest.mark.parametrize("how", [{}, {"epochs": 1, "batches": 1}])
def test_epochs_or_batches(how):
    with pytest.raises(ParamError, match="epochs or batches"):
        made().fit(source(), **how)


def test_checkpoints(tmp_path):
    estimator = made()
    estimator.net.hybridize()
    keeper = est.CheckpointHandler(
        tmp_path, monitor=estimator.val_metrics[0], save_best=True, max_checkpoints=2
    )
    estimator.fit(source(), source(), epochs=4, event_handlers=[keeper])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "model-best.params",
        "model-best.states",
        "model-epoch2batch11.params",
        "model-epoch2batch11.states",
        "model-epoch3batch15.params",
        "model-epoch3batch15.states",
        "model-symbol.json",
    ]
    again = made()
    seen = Seen()
    resumed = est.CheckpointHandler(tmp_path, resume_from_checkpoint=True)
    again.fit(source(), epochs=5, event_handlers=[resumed, seen])
    assert seen.events.count("epoch") == 1
    assert (tmp_path / "model-epoch4batch19.params").is_file()
    done = made()
    before = Seen()
    done.fit(source(), epochs=3, event_handlers=[
        est.CheckpointHandler(tmp_path, resume_from_checkpoint=True), before
    ])  # fmt: skip
    assert before.events == ["train", "trained"]
    np.testing.assert_array_equal(
        done.net.weight.data().asnumpy(), again.net.weight.data().asnumpy()
    )


def test_an_early_end():
    estimator = made(trainer=None)
    estimator.trainer.set_learning_rate(0.0)
    seen = Seen()
    stop = est.EarlyStoppingHandler(estimator.train_metrics[0], patience=2)
    estimator.fit(source(), epochs=50, event_handlers=[stop, seen])
    assert seen.events.count("epoch") == 3
    assert stop.stopped_epoch == 2


def test_several_devices_and_an_own_processor():
    class Half(est.BatchProcessor):
        def fit_batch(self, estimator, train_batch, batch_axis=0):
            data, label = train_batch
            return super().fit_batch(estimator, [data[:4], label[:4]], batch_axis)

    net = mx.gluon.nn.Dense(2)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    context = [mx.cpu(0), mx.cpu(1)]
    estimator = est.Estimator(
        net, loss, initializer=mx.init.Xavier(), context=context, batch_processor=Half()
    )
    estimator.fit(source(), epochs=1)
    assert net.weight.list_ctx() == context
    assert estimator.train_metrics[0].num_inst == 16


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: est.Estimator(mx.gluon.nn.Dense(1), "l2"), "a loss of gluon"),
        (lambda: made(train_metrics="acc"), "train_metrics"),
        (lambda: est.LoggingHandler(log_interval=0), "log_interval"),
        (lambda: est.MetricHandler("acc"), "metrics"),
        (lambda: est.EarlyStoppingHandler("acc"), "monitor"),
        (lambda: est.EarlyStoppingHandler(mx.metric.Accuracy(), mode="up"), "mode"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ParamError, match=words):
        make()
