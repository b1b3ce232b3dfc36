"""Logistic regression on sparse rows of a LibSVM file, with weights stored and updated by rows.

    python examples/libsvm_logistic.py --epochs 6

Only the rows of the weight whose columns a batch has are read, have a gradient and are updated.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import gnomon as mx

COLUMNS, FILLED = 1000, 20


def write(path: str, rows: int, seed: int) -> None:
    """Write rows of `FILLED` numbers and a class that a hidden direction decides."""
    hidden = np.random.default_rng(0).normal(size=COLUMNS)
    rng = np.random.default_rng(seed)
    with Path(path).open("w", encoding="utf-8") as out:
        for _ in range(rows):
            columns = np.sort(rng.choice(COLUMNS, FILLED, replace=False))
            values = rng.normal(size=FILLED)
            label = int(values @ hidden[columns] > 0)
            pairs = " ".join(f"{c}:{v:.5f}" for c, v in zip(columns, values, strict=True))
            out.write(f"{label} {pairs}\n")


def network() -> mx.sym.Symbol:
    """A product of sparse data with a row-sparse weight, and a logistic loss."""
    data = mx.sym.Variable("data", stype="csr")
    weight = mx.sym.Variable("weight", stype="row_sparse", shape=(COLUMNS, 1))
    bias = mx.sym.Variable("bias", shape=(1,))
    net = mx.sym.broadcast_add(mx.sym.sparse.dot(data, weight), bias)
    return mx.sym.LogisticRegressionOutput(net, mx.sym.Variable("softmax_label"), name="chance")


def right(module: mx.mod.Module, batches: mx.io.DataIter) -> float:
    """The share of rows whose class is found."""
    hits = total = 0
    batches.reset()
    for batch in batches:
        module.forward(batch, is_train=False)
        kept = len(batch.label[0]) - batch.pad
        found = module.get_outputs()[0].asnumpy().ravel()[:kept] > 0.5
        hits += int((found == batch.label[0].asnumpy()[:kept]).sum())
        total += kept
    return hits / total


def main() -> None:
    """Write, train, and print the accuracy on other rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()
    mx.random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/train.svm", options.rows, 1)
        write(f"{folder}/test.svm", 500, 2)
        shared = {"data_shape": (COLUMNS,), "batch_size": 50}
        train = mx.io.LibSVMIter(data_libsvm=f"{folder}/train.svm", **shared)
        test = mx.io.LibSVMIter(data_libsvm=f"{folder}/test.svm", **shared)
    module = mx.mod.Module(network())
    module.bind(train.provide_data, train.provide_label)
    module.init_params(mx.init.Normal(0.01))
    store = mx.kv.create("local")
    module.init_optimizer(
        kvstore=store, optimizer="adagrad", optimizer_params={"learning_rate": 0.3}
    )
    for epoch in range(options.epochs):
        train.reset()
        for batch in train:
            rows = {"weight": batch.data[0].indices}
            module.prepare(batch, sparse_row_id_fn=lambda _, rows=rows: rows)
            module.forward_backward(batch)
            module.update()
        module.prepare(None, sparse_row_id_fn=lambda _: {"weight": mx.nd.arange(COLUMNS)})
        print(f"epoch {epoch + 1}: accuracy {right(module, test):.3f}")


if __name__ == "__main__":
    main()
