"""Evaluation metrics: running averages over batches of labels and predictions."""

from gnomon.metric.base import EvalMetric, check_label_shapes, register
from gnomon.metric.classify import F1, MCC, PCC, Accuracy, TopKAccuracy
from gnomon.metric.composite import CompositeEvalMetric, create
from gnomon.metric.custom import CustomMetric, np
from gnomon.metric.likelihood import (
    Caffe,
    CrossEntropy,
    Loss,
    NegativeLogLikelihood,
    Perplexity,
    Torch,
)
from gnomon.metric.regress import MAE, MSE, RMSE, PearsonCorrelation

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "Caffe",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "Torch",
    "check_label_shapes",
    "create",
    "np",
    "register",
]
