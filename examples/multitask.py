"""Train one network for two tasks: which digit it is, and whether it is odd.

    python examples/multitask.py --epochs 5

A symbol with two outputs, a Module with two labels, and a metric for each of them.
"""

from __future__ import annotations

import argparse

import numpy as np
from digits import divided

import gnomon as mx


def network() -> mx.sym.Symbol:
    """Dense layers that both tasks share, and one for each."""
    x = mx.sym.Variable("data")
    for number, width in enumerate((128, 64)):
        x = mx.sym.FullyConnected(x, num_hidden=width, name=f"fc{number}")
        x = mx.sym.Activation(x, act_type="relu")
    digit = mx.sym.FullyConnected(x, num_hidden=10, name="digit_fc")
    odd = mx.sym.FullyConnected(x, num_hidden=2, name="odd_fc")
    return mx.sym.Group(
        [mx.sym.SoftmaxOutput(digit, name="digit"), mx.sym.SoftmaxOutput(odd, name="odd")]
    )


def main() -> None:
    """Train, and print the accuracy of both tasks on pictures that were held back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    epochs = parser.parse_args().epochs
    np.random.seed(1)
    mx.random.seed(1)

    def batches(pictures: np.ndarray, labels: np.ndarray, shuffle: bool) -> mx.io.NDArrayIter:
        both = {"digit_label": labels, "odd_label": labels % 2}
        return mx.io.NDArrayIter({"data": pictures}, both, batch_size=60, shuffle=shuffle)

    train, test = divided()
    train, test = batches(*train, True), batches(*test, False)
    metric = mx.metric.CompositeEvalMetric()
    for task in ("digit", "odd"):
        how = {"output_names": [f"{task}_output"], "label_names": [f"{task}_label"]}
        metric.add(mx.metric.Accuracy(name=task, **how))
    module = mx.mod.Module(network(), label_names=["digit_label", "odd_label"])
    module.fit(
        train,
        eval_metric=metric,
        optimizer="sgd",
        optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
        initializer=mx.init.Xavier(),
        num_epoch=epochs,
    )
    for task, accuracy in module.score(test, metric):
        print(f"{task}: accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
