"""Classify images by a model from files, of any version of MXNet.

    python examples/predict_checkpoint.py PREFIX EPOCH

The files are `PREFIX-symbol.json` and `PREFIX-EPOCH.params`; the digits that the package carries
are its images here, so the model must take 8 by 8 grey pixels.
"""

from __future__ import annotations

import argparse

import numpy as np
from digits import digits

import gnomon as mx


def main() -> None:
    """Load the model, predict, and print what is right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix")
    parser.add_argument("epoch", type=int)
    options = parser.parse_args()
    symbol, arguments, auxiliary = mx.model.load_checkpoint(options.prefix, options.epoch)
    pictures, labels = digits()
    batches = mx.io.NDArrayIter(pictures, batch_size=100)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind(batches.provide_data, for_training=False)
    module.set_params(arguments, auxiliary, allow_missing=True)
    chances = module.predict(batches).asnumpy()
    best = chances.argmax(axis=1)
    for k in range(3):
        print(f"image {k}: {best[k]} with {chances[k, best[k]]:.0%}, it is {labels[k]:.0f}")
    print("right", np.mean(best == labels))


if __name__ == "__main__":
    main()
