"""Metrics and initializers put to the same test in the real library and in gnomon."""

from __future__ import annotations

from typing import Any

import numpy as np

P = [[0.1, 0.7, 0.2], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
TWO = [([1, 2, 1], P), ([0], [[0.9, 0.05, 0.05]])]
PAIRS = [([0, 1, 1], [[0.3, 0.7], [0.2, 0.8], [0.6, 0.4]]), ([1, 1], [[0.3, 0.7], [0.9, 0.1]])]
LINES = [([1.0, 2, 3], [1.5, 2, 5]), ([0.0], [4.0])]

# name -> how to make the metric of `mx.metric`, and batches of (label, prediction)
METRICS: dict[str, tuple[Any, list[tuple[Any, Any]]]] = {
    "accuracy": (lambda m: m.Accuracy(), TWO),
    "accuracy of classes": (lambda m: m.Accuracy(), [([1, 0, 2], [1, 0, 1])]),
    "accuracy over axis 0": (lambda m: m.Accuracy(axis=0), [([0, 1, 1], [P[0], P[2]])]),
    "accuracy of columns": (lambda m: m.Accuracy(), [([[1], [2], [1]], P)]),
    "accuracy of pictures": (
        lambda m: m.Accuracy(),
        [([[0, 1], [1, 1]], [[[0.9, 0.2], [0.1, 0.8]], [[0.3, 0.6], [0.7, 0.4]]])],
    ),
    "accuracy of nothing": (lambda m: m.Accuracy(), []),
    "top 2": (lambda m: m.TopKAccuracy(top_k=2), TWO),
    "top 3 by name": (lambda m: m.create("top_k_accuracy", top_k=3), TWO),
    "cross-entropy": (lambda m: m.CrossEntropy(), [*TWO, ([1], [[1.0, 0, 0]])]),
    "cross-entropy by name": (lambda m: m.create("ce"), TWO),
    "likelihood": (lambda m: m.NegativeLogLikelihood(), TWO),
    "perplexity": (lambda m: m.Perplexity(ignore_label=None), TWO),
    "perplexity ignoring 1": (lambda m: m.Perplexity(ignore_label=1), TWO),
    "mse": (lambda m: m.MSE(), LINES),
    "mse of columns": (lambda m: m.MSE(), [([1.0, 2], [[1.5], [3]])]),
    "mae": (lambda m: m.MAE(), LINES),
    "mae of rows": (lambda m: m.MAE(), [([[1.0, 2], [2, 3]], [[1.5, 1], [3, 5]])]),
    "rmse": (lambda m: m.RMSE(), LINES),
    "f1": (lambda m: m.F1(), PAIRS),
    "f1 micro": (lambda m: m.F1(average="micro"), PAIRS),
    "f1 without positives": (lambda m: m.F1(), [([0, 0], [[0.9, 0.1], [0.9, 0.1]])]),
    "loss": (lambda m: m.Loss(), LINES),
    "several": (lambda m: m.create(["acc", "ce"]), TWO),
    "own": (lambda m: m.np(lambda label, p: float((label == p.argmax(1)).mean()), name="own"), TWO),
}

# name -> initializer of `mx.init`, name of the array, shape
INITIALIZERS: dict[str, tuple[Any, str, tuple[int, ...]]] = {
    "uniform": (lambda i: i.Uniform(), "a_weight", (200, 300)),
    "uniform 0.5": (lambda i: i.Uniform(0.5), "a_weight", (200, 300)),
    "normal": (lambda i: i.Normal(), "a_weight", (200, 300)),
    "normal 2": (lambda i: i.Normal(2.0), "a_weight", (200, 300)),
    "xavier": (lambda i: i.Xavier(), "a_weight", (200, 300)),
    "xavier of filters": (lambda i: i.Xavier(), "a_weight", (40, 30, 3, 3)),
    "xavier gaussian in": (
        lambda i: i.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2),
        "a_weight",
        (200, 300),
    ),
    "xavier out": (lambda i: i.Xavier(factor_type="out"), "a_weight", (200, 300)),
    "prelu": (lambda i: i.MSRAPrelu(), "a_weight", (200, 300)),
    "zero": (lambda i: i.Zero(), "a_weight", (5,)),
    "one": (lambda i: i.One(), "a_weight", (5,)),
    "constant": (lambda i: i.Constant(3.0), "a_weight", (5,)),
    "bias": (lambda i: i.Xavier(), "a_bias", (5,)),
    "gamma": (lambda i: i.Xavier(), "a_gamma", (5,)),
    "beta": (lambda i: i.Xavier(), "a_beta", (5,)),
}


def measure(mx: Any, name: str) -> list[Any]:
    """A metric's name and value after each batch, and at the start."""
    create, batches = METRICS[name]
    metric = create(mx.metric)
    found = [metric.get()]
    for label, prediction in batches:
        metric.update([mx.nd.array(label)], [mx.nd.array(prediction)])
        found.append(metric.get())
    return found


def initialize(mx: Any, name: str) -> np.ndarray:
    """What an initializer puts into an array."""
    create, target, shape = INITIALIZERS[name]
    values = mx.nd.ones(shape) * 7
    create(mx.init)(mx.init.InitDesc(target), values)
    return values.asnumpy()
