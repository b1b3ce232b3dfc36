"""Fit a plane to rows of a CSV file, read in batches.

python examples/csv_regression.py --epochs 20
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import gnomon as mx

SLOPES, OFFSET = np.array([2.0, -1.0, 0.5, 0.0]), 3.0


def write(folder: Path, rows: int) -> None:
    """Write points, and what a plane with some noise is there, as two files."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(rows, len(SLOPES)))
    values = points @ SLOPES + OFFSET + rng.normal(0, 0.05, rows)
    np.savetxt(folder / "points.csv", points, "%.6f", ",")
    np.savetxt(folder / "values.csv", values, "%.6f", ",")


def main() -> None:
    """Write, fit, and print the greatest error of a slope."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    mx.random.seed(1)
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), options.rows)
        batches = mx.io.CSVIter(
            data_csv=f"{place}/points.csv", data_shape=(len(SLOPES),), batch_size=20,
            label_csv=f"{place}/values.csv", label_name="value_label",
        )  # fmt: skip
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="plane")
        net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("value_label"), name="value")
        module = mx.mod.Module(net, label_names=["value_label"])
        module.fit(
            batches, num_epoch=options.epochs, eval_metric="mse", initializer=mx.init.Zero(),
            optimizer="sgd", optimizer_params={"learning_rate": 0.1},
        )  # fmt: skip
    found = module.get_params()[0]["plane_weight"].asnumpy().ravel()
    print("slopes", np.round(found, 3), "error", np.abs(found - SLOPES).max())


if __name__ == "__main__":
    main()
