"""Loops of training, with handlers of what happens in them."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.contrib.estimator.batch_processor import BatchProcessor as BatchProcessor
from gnomon.gluon.contrib.estimator.estimator import Estimator as Estimator
from gnomon.gluon.contrib.estimator.event_handler import (
    BatchBegin as BatchBegin,
    BatchEnd as BatchEnd,
    CheckpointHandler as CheckpointHandler,
    EarlyStoppingHandler as EarlyStoppingHandler,
    EpochBegin as EpochBegin,
    EpochEnd as EpochEnd,
    EventHandler as EventHandler,
    GradientUpdateHandler as GradientUpdateHandler,
    LoggingHandler as LoggingHandler,
    MetricHandler as MetricHandler,
    StoppingHandler as StoppingHandler,
    TrainBegin as TrainBegin,
    TrainEnd as TrainEnd,
    ValidationHandler as ValidationHandler,
)

__getattr__, __dir__ = _showing(__name__)
