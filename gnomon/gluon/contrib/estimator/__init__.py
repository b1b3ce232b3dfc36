"""Loops of training, with handlers of what happens in them."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.contrib.estimator.batch_processor import BatchProcessor as BatchProcessor
from gnomon.gluon.contrib.estimator.estimator import Estimator as Estimator
from gnomon.gluon.contrib.estimator.event_handler import *

__getattr__, __dir__ = _showing(__name__)
