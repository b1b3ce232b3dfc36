"""Give a model from files a new last layer, train that on other classes, and save the result.

    python examples/finetune.py PREFIX EPOCH --out OUT

A model that MXNet made may be read, and MXNet reads what is saved. The digits that the package
carries are told apart as odd and even here; the model must take 8 by 8 grey pixels.
"""

from __future__ import annotations

import argparse

import numpy as np
from digits import divided

import gnomon as mx


def replaced(symbol: mx.sym.Symbol, layer: str, classes: int) -> mx.sym.Symbol:
    """The network up to `layer`, with a new dense layer and softmax behind it."""
    net = symbol.get_internals()[f"{layer}_output"]
    net = mx.sym.FullyConnected(net, num_hidden=classes, name="new")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def main() -> None:
    """Load, replace, train, save, load again, and print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix")
    parser.add_argument("epoch", type=int)
    parser.add_argument("--out", default="odd-even", help="prefix of the files to write")
    parser.add_argument("--layer", default="tanh3", help="the last layer that is kept")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    mx.random.seed(1)
    np.random.seed(1)
    symbol, arguments, auxiliary = mx.model.load_checkpoint(options.prefix, options.epoch)
    net = replaced(symbol, options.layer, 2)
    kept = {name: x for name, x in arguments.items() if name in net.list_arguments()}
    (pictures, labels), (other, other_labels) = divided()
    train = mx.io.NDArrayIter(pictures, labels % 2, 50, shuffle=True)
    test = mx.io.NDArrayIter(other, other_labels % 2, 50)
    module = mx.mod.Module(net, fixed_param_names=list(kept))
    module.fit(
        train, num_epoch=options.epochs, arg_params=kept, aux_params=auxiliary, allow_missing=True,
        initializer=mx.init.Xavier(), optimizer="adam", optimizer_params={"learning_rate": 0.01},
    )  # fmt: skip
    module.save_checkpoint(options.out, options.epochs)
    again = mx.mod.Module.load(options.out, options.epochs)
    again.bind(test.provide_data, test.provide_label, for_training=False)
    print("accuracy", dict(again.score(test, "acc"))["accuracy"])


if __name__ == "__main__":
    main()
