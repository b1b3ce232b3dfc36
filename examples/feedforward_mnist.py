"""Train a network on digits with `FeedForward`, the oldest way, and predict from a checkpoint.

    python examples/feedforward_mnist.py --epochs 5

The data are the 1,797 digits of 8 by 8 pixels that the package carries.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
from digits import divided

import gnomon as mx


def network() -> mx.sym.Symbol:
    """A convolution and a dense layer."""
    x = mx.sym.Variable("data")
    x = mx.sym.Convolution(x, num_filter=16, kernel=(3, 3), name="conv")
    x = mx.sym.Pooling(mx.sym.Activation(x, act_type="tanh"), kernel=(2, 2), stride=(2, 2))
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=10, name="fc")
    return mx.sym.SoftmaxOutput(x, name="softmax")


def main() -> None:
    """Train, save, load, and print the accuracy on pictures that were held back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    np.random.seed(1)
    mx.random.seed(1)
    train, (pictures, labels) = divided()
    model = mx.model.FeedForward(
        network(),
        num_epoch=options.epochs,
        numpy_batch_size=50,
        optimizer="sgd",
        initializer=mx.init.Xavier(),
        learning_rate=0.3,
        momentum=0.9,
    )
    model.fit(*train, eval_data=(pictures, labels))
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/digits", options.epochs)
        again = mx.model.FeedForward.load(f"{folder}/digits", options.epochs)
    found = again.predict(pictures).argmax(axis=1)
    print(f"accuracy: {(found == labels).mean():.3f}")


if __name__ == "__main__":
    main()
