"""`Estimator` and its handlers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from golden import estimator as scenarios

import gnomon as mx
from gnomon.base import MissingFileError, ParamError
from gnomon.gluon.contrib import estimator as est

GOLDEN = Path(__file__).parent.parent / "golden"
RECORD = json.loads(gzip.decompress((GOLDEN / "estimator.json.gz").read_bytes()))


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


@pytest.mark.parametrize("title", RECORD)
def test_events_messages_and_files(title):
    assert json.loads(json.dumps(scenarios.SCENARIOS[title](mx).trace.rows)) == RECORD[title]


def test_it_learns_and_scores(capsys):
    estimator = made()
    estimator.fit(source(), source(), epochs=8)
    values = dict(m.get() for m in [*estimator.train_metrics, *estimator.val_metrics])
    assert values["validation accuracy"] >= 0.9
    assert values["training softmaxcrossentropyloss"] < 0.5
    shown = capsys.readouterr().out
    assert shown.count("Finished in") == 16  # training and validation
    assert "Train finished" in shown


@pytest.mark.parametrize("how", [{}, {"epochs": 1, "batches": 1}])
def test_epochs_or_batches(how):
    with pytest.raises(ParamError, match="epochs or batches"):
        made().fit(source(), **how)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"event_handlers": [object()]}, "'event_handlers': expected an EventHandler"),
        ({"event_handlers": est.EpochEnd}, "'event_handlers': expected an EventHandler"),
        (
            {"event_handlers": est.LoggingHandler(metrics=[mx.metric.Accuracy()])},
            "LoggingHandler: argument 'metrics': expected metrics of the estimator",
        ),
        ({"val_data": [1]}, "'val_data': expected a gluon.data.DataLoader"),
        ({"epochs": 1.5}, "'epochs': expected a whole number, got 1.5"),
        ({"epochs": float("inf")}, "'epochs': expected a whole number, got inf"),
    ],
)
def test_fit_refuses(how, words):
    with pytest.raises(ParamError, match=words):
        made().fit(source(), **{"epochs": 1, **how})


def test_what_only_looks_like_a_metric_or_a_fraction():
    class Best(est.EpochEnd):
        best_metric = 0.0

        def epoch_end(self, estimator, *args, **kwargs):
            self.best_metric = 1.0

    best = Best()
    made().fit(source(), batches=2.0, event_handlers=[best])
    assert best.best_metric == 1.0


def test_evaluate_refuses_metrics_of_training():
    estimator = made()
    handler = est.LoggingHandler(metrics=estimator.train_metrics)
    with pytest.raises(ParamError, match="argument 'metrics'"):
        estimator.evaluate(source(), event_handlers=handler)
    with pytest.raises(ParamError, match=r"'val_data': expected a gluon\.data\.DataLoader"):
        estimator.evaluate(zip([1], [2], strict=True))


@pytest.mark.parametrize(
    "how", [{"context": "cpu"}, {"trainer": "sgd"}, {"batch_processor": object()}]
)
def test_an_estimator_refuses(how):
    (argument,) = how
    with pytest.raises(ParamError, match=f"Estimator: argument '{argument}'"):
        made(**how)


def test_a_training_that_was_finished_is_resumed(tmp_path):
    first = made()
    first.fit(source(), epochs=2, event_handlers=est.CheckpointHandler(tmp_path))
    done = made()
    keeper = est.CheckpointHandler(tmp_path, resume_from_checkpoint=True)
    done.fit(source(), epochs=2, event_handlers=[keeper])
    assert keeper.current_batch == 0
    weights = [each.net.weight.data().asnumpy() for each in (done, first)]
    np.testing.assert_array_equal(*weights)
    (tmp_path / "model-epoch1batch8.states").unlink()
    with pytest.raises(MissingFileError, match=r"batch8\.states is missing beside its parameters"):
        done.fit(source(), epochs=2, event_handlers=[keeper])


def test_the_best_of_losses_is_the_least(tmp_path):
    """MXNet takes the greatest unless `mode` says otherwise."""
    estimator = made()
    monitor = estimator.train_metrics[1]
    keeper = est.CheckpointHandler(tmp_path, monitor=monitor, save_best=True)
    stop = est.EarlyStoppingHandler(monitor, patience=1)
    estimator.fit(source(), epochs=4, event_handlers=[keeper, stop])
    assert stop.current_epoch == 4 and keeper.best == monitor.get()[1]


def test_an_end_in_the_first_epoch_is_logged(capsys):
    estimator = made()
    stop = est.EarlyStoppingHandler(estimator.train_metrics[0], baseline=2, patience=1)
    estimator.fit(source(), epochs=5, event_handlers=[stop])
    assert "[Epoch 0] EarlyStoppingHandler: early stopping due to" in capsys.readouterr().out


def test_several_devices_and_an_own_processor():
    class Half(est.BatchProcessor):
        def fit_batch(self, estimator, train_batch, batch_axis=0):
            data, label = train_batch
            return super().fit_batch(estimator, [data[:4], label[:4]], batch_axis)

        def _get_data_and_label(self, batch, ctx, batch_axis=0):  # as programs for MXNet do
            data, label = super()._get_data_and_label(batch, ctx)
            assert [x.shape[0] for x in data] == [2, 2]
            return data, label

    net = mx.gluon.nn.Dense(2)
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    context = [mx.cpu(0), mx.cpu(1)]
    with pytest.warns(UserWarning, match="SGD with a learning rate of 0.001") as told:
        estimator = est.Estimator(
            net, loss, initializer=mx.init.Xavier(), context=context, batch_processor=Half()
        )
    assert [warning.filename for warning in told] == [__file__]
    assert estimator.trainer.learning_rate == 0.001
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
