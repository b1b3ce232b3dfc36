"""Trainings by `contrib.estimator`, run alike by the real library and by gnomon.

Every scenario gives a trace: what handlers were told, what was logged, which files are left.
"""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EVENTS = ("train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end")


class Trace(logging.Handler):
    """What was seen, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Any] = []
        self.folder = "\0"  # whose name is left out

    def emit(self, record: logging.LogRecord) -> None:
        """Note a message, its times and folders left out."""
        text = record.getMessage().replace(self.folder, "DIR")  # whose name may end like a time
        text = re.sub(r"\d+(\.\d+)?s\b", "0s", text)
        if "symbol.json" in text:
            text = "no symbol.json"  # advice, in words of one's own
        if "improve" in text and "Checkpoint" in text:  # MXNet tells the number that comes next
            text = re.sub(r"Epoch \d+|from \S+", "", text)
        if ", validation " in text:  # MXNet counts what a list of handlers has scored
            text = re.sub(r"Epoch \d+", "Epoch", text)
        text = text.replace("Hanlder", "Handler")
        text = re.sub(r"(softmaxcrossentropyloss|l2loss)\d+", r"\1", text)
        self.rows.append([record.levelname, text])


def spy(est: Any, trace: Trace, title: str, priority: float) -> Any:
    """A handler that notes every event, with the arguments that it is given."""
    bases = [getattr(est, "".join(w.title() for w in e.split("_"))) for e in EVENTS]

    def noting(event: str) -> Callable[..., None]:
        def note(self: Any, estimator: Any, *args: Any, **how: Any) -> None:
            trace.rows.append([title, event, len(args), sorted(how)])

        return note

    made = type("Spy", tuple(bases), {event: noting(event) for event in EVENTS})()
    made.priority = priority
    return made


def source(mx: Any, seed: int, columns: int = 0) -> Any:
    """Points on two sides of a plane, in batches of five, with their side or some columns of it."""
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(20, 3)).astype("f")
    y = (x.sum(1) > 0).astype("f")
    y = np.stack([y] * columns, 1) if columns else y
    return mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(x, y), batch_size=5)


class Run:
    """An estimator of a small network, and what is seen of it."""

    def __init__(self, mx: Any, rate: float = 0.5, hybrid: bool = False, **how: Any) -> None:
        self.mx, self.est, self.trace = mx, mx.gluon.contrib.estimator, Trace()
        self.train, self.val = source(mx, 0), source(mx, 1)
        net = mx.gluon.nn.HybridSequential(prefix="net_")
        net.add(mx.gluon.nn.Dense(2, in_units=3, prefix="fc_"))
        net.initialize(mx.init.Constant(0.1))
        if hybrid:
            net.hybridize()
        how.setdefault("loss", mx.gluon.loss.SoftmaxCrossEntropyLoss())
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate})
        self.made = self.est.Estimator(net, trainer=trainer, **how)
        self.made.logger.handlers = [self.trace]
        self.made.logger.propagate = False
        self.made.logger.setLevel(logging.DEBUG)

    def fit(self, *handlers: Any, **how: Any) -> None:
        """Train with handlers; an error is noted."""
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                self.made.fit(self.train, event_handlers=list(handlers) or None, **how)
            names = [w.category.__name__ for w in told]
            self.trace.rows += [["warning", name] for name in names if name == "UserWarning"]
        except Exception as error:
            self.trace.rows.append(["error", isinstance(error, (ValueError, AssertionError))])

    def spy(self, title: str = "spy", priority: float = 0) -> Any:
        """A handler of this run."""
        return spy(self.est, self.trace, title, priority)

    def note(self, *what: Any) -> None:
        """Add something to the trace."""
        self.trace.rows.append(["note", *what])

    def metrics(self) -> None:
        """Note names and values of all metrics, and the parameters."""
        for each in (*self.made.train_metrics, *self.made.val_metrics):
            name, value = each.get()
            name = re.sub(r"loss\d+", "loss", name)
            self.note(type(each).__name__, name, None if value != value else round(value, 4))
        params = self.made.net.collect_params().values()
        self.note(*(p.data().asnumpy().astype("d").round(4).ravel().tolist() for p in params))


def plain(mx: Any) -> Run:
    """Handlers by default, and the events of two strangers with priorities."""
    run = Run(mx)
    run.fit(run.spy("late", 10), run.spy("early", -3000), epochs=2)
    run.metrics()
    return run


def validated(mx: Any) -> Run:
    """With validation after each epoch."""
    run = Run(mx)
    run.fit(run.spy(), val_data=run.val, epochs=2)
    run.metrics()
    return run


def by_batches(mx: Any) -> Run:
    """A number of batches that ends within an epoch."""
    run = Run(mx)
    run.fit(run.spy(), val_data=run.val, batches=6)
    run.metrics()
    return run


def whole_epochs_of_batches(mx: Any) -> Run:
    """A number of batches that ends with an epoch."""
    run = Run(mx)
    run.fit(run.spy(), batches=4)
    run.fit(run.spy("again"), batches=8)
    return run


def nothing(mx: Any) -> Run:
    """No epochs, no batches, neither, both."""
    run = Run(mx)
    for how in ({}, {"epochs": 1, "batches": 2}):
        run.note(sorted(how))
        run.fit(run.spy(), **how)
    return run


def logged_by_batches(mx: Any) -> Run:
    """Logging after each two batches."""
    run = Run(mx)
    run.fit(run.est.LoggingHandler(2, metrics=run.made.train_metrics), epochs=2)
    run.fit(run.est.LoggingHandler(3), val_data=run.val, epochs=1)
    return run


def scheduled(mx: Any) -> Run:
    """A schedule of rates, which logs show."""
    run = Run(mx)
    factor = mx.lr_scheduler.FactorScheduler(3, 0.5, base_lr=0.4)
    run.made.trainer = mx.gluon.Trainer(
        run.made.net.collect_params(), "sgd", {"learning_rate": 0.4, "lr_scheduler": factor}
    )
    run.fit(epochs=3)
    return run


def regression(mx: Any) -> Run:
    """Another loss, and so other metrics by default."""
    run = Run(mx, 0.05, loss=mx.gluon.loss.L2Loss(), train_metrics=mx.metric.MAE())
    run.train, run.val = source(mx, 0, 2), source(mx, 1, 2)
    run.fit(val_data=run.val, epochs=2)
    run.metrics()
    bare = Run(mx, 0.05, loss=mx.gluon.loss.L2Loss())
    for each in (*bare.made.train_metrics, *bare.made.val_metrics):
        run.note(type(each).__name__, re.sub(r"\d+$", "", each.get()[0]))
    return run


def composite(mx: Any) -> Run:
    """Several metrics, some of their own for validation."""
    metric = mx.metric
    run = Run(
        mx,
        train_metrics=[metric.Accuracy(), metric.CrossEntropy()],
        val_metrics=metric.TopKAccuracy(2),
    )
    run.fit(val_data=run.val, epochs=1)
    run.metrics()
    return run


def stopped_early(mx: Any, **how: Any) -> Run:
    """A metric that does not get better."""
    run = Run(mx, 0.0)
    stop = run.est.EarlyStoppingHandler(run.made.train_metrics[0], **how)
    run.fit(stop, epochs=8)
    run.note(stop.stopped_epoch, stop.wait, round(float(stop.best), 4), stop.stop_training)
    return run


def stopped_on_validation(mx: Any, **how: Any) -> Run:
    """The loss of validation, which grows later."""
    run = Run(mx, 6.0)
    stop = run.est.EarlyStoppingHandler(run.made.val_metrics[-1], **how)
    run.fit(stop, val_data=run.val, epochs=12)
    run.note(stop.stopped_epoch, stop.wait, round(float(stop.best), 3), stop.stop_training)
    return run


def checkpoints(mx: Any, hybrid: bool = False, monitored: bool = False, **how: Any) -> Run:
    """Files that are left, and what is logged of them."""
    run = Run(mx, hybrid=hybrid)
    length = how.pop("length", {"epochs": 3})
    with tempfile.TemporaryDirectory() as folder:
        run.trace.folder = folder
        monitor = run.made.val_metrics[-1] if monitored else None
        keeper = run.est.CheckpointHandler(folder, monitor=monitor, **how)
        run.fit(keeper, val_data=run.val if monitored else None, **length)
        run.note(sorted(path.name for path in Path(folder).iterdir()))
    return run


def resumed(mx: Any, first: Any, then: Any, **how: Any) -> Run:
    """A training that goes on from files."""
    run = Run(mx)
    with tempfile.TemporaryDirectory() as folder:
        run.trace.folder = folder
        run.fit(run.est.CheckpointHandler(folder, **how), **first)
        saved = sorted(path.name for path in Path(folder).iterdir())
        again = Run(mx)
        again.trace = run.trace
        again.made.logger.handlers = [run.trace]
        run.note(saved)
        keeper = run.est.CheckpointHandler(folder, resume_from_checkpoint=True, verbose=1, **how)
        again.fit(keeper, again.spy(), **then)
        again.metrics()
        run.note(sorted(path.name for path in Path(folder).iterdir()))
    return run


def scored(mx: Any) -> Run:
    """`evaluate` alone."""
    run = Run(mx)
    run.made.evaluate(run.val, event_handlers=[run.spy()])
    run.metrics()
    return run


def validation_periods(mx: Any) -> Run:
    """Scores after batches too."""
    run = Run(mx)
    handler = run.est.ValidationHandler(
        run.val, run.made.evaluate, epoch_period=2, batch_period=3, event_handlers=[run.spy("val")]
    )
    run.fit(handler, run.spy(), val_data=run.val, epochs=2)
    return run


def ended_by_a_handler(mx: Any, event: str) -> Run:
    """A handler of a program ends the training."""
    run = Run(mx)
    count = []

    def stop(self: Any, estimator: Any, *args: Any, **how: Any) -> bool:
        count.append(1)
        return len(count) == 2

    base = getattr(run.est, "".join(w.title() for w in event.split("_")))
    run.fit(type("Stop", (base,), {event: stop})(), run.spy(), epochs=5)
    return run


def own_handlers(mx: Any) -> Run:
    """Handlers of kinds that are there by default, given."""
    run = Run(mx)
    est, made = run.est, run.made

    class Half(est.GradientUpdateHandler):
        def batch_end(self, estimator: Any, *args: Any, **how: Any) -> bool:
            run.note("update", len(how["loss"]))
            estimator.trainer.step(10)
            return False

    run.fit(Half(), est.MetricHandler(made.train_metrics[:1]), run.spy(), epochs=1)
    run.metrics()
    return run


def record(mx: Any) -> dict[str, list[Any]]:
    """The trace of each scenario by its title."""
    return {title: make(mx).trace.rows for title, make in SCENARIOS.items()}


SCENARIOS: dict[str, Callable[[Any], Run]] = {
    "plain": plain,
    "validated": validated,
    "by batches": by_batches,
    "whole epochs of batches": whole_epochs_of_batches,
    "nothing": nothing,
    "logged by batches": logged_by_batches,
    "scheduled": scheduled,
    "regression": regression,
    "composite": composite,
    "early stop": lambda mx: stopped_early(mx, patience=2),
    "early stop at once": stopped_early,
    "early stop below a baseline": lambda mx: stopped_early(mx, baseline=0.99, patience=2),
    "early stop by min": lambda mx: stopped_early(mx, mode="min", patience=1, min_delta=0.1),
    "validation stop": lambda mx: stopped_on_validation(mx, patience=1, mode="min"),
    "validation stop by delta": lambda mx: stopped_on_validation(
        mx, min_delta=0.02, patience=2, mode="min"
    ),
    "checkpoints": lambda mx: checkpoints(mx, verbose=1),
    "checkpoints, hybrid": lambda mx: checkpoints(mx, True, verbose=1),
    "checkpoints by batches": lambda mx: checkpoints(
        mx, verbose=1, batch_period=3, epoch_period=2, model_prefix="x"
    ),
    "few checkpoints": lambda mx: checkpoints(mx, max_checkpoints=2, verbose=2),
    "best checkpoints": lambda mx: checkpoints(
        mx, False, True, save_best=True, mode="min", verbose=1
    ),
    "checkpoints of batches": lambda mx: checkpoints(
        mx, verbose=1, batch_period=2, epoch_period=None, length={"batches": 7}
    ),
    "checkpoints of batches and epochs": lambda mx: checkpoints(
        mx, verbose=1, batch_period=3, length={"batches": 7}
    ),
    "resumed": lambda mx: resumed(mx, {"epochs": 2}, {"epochs": 4}),
    "nothing to resume": lambda mx: checkpoints(mx, resume_from_checkpoint=True),
    "resumed by batches": lambda mx: resumed(
        mx, {"batches": 3}, {"batches": 6}, batch_period=1, epoch_period=None
    ),
    "scored": scored,
    "validation periods": validation_periods,
    "ended after a batch": lambda mx: ended_by_a_handler(mx, "batch_end"),
    "ended after an epoch": lambda mx: ended_by_a_handler(mx, "epoch_end"),
    "own handlers": own_handlers,
}
