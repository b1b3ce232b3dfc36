"""Train a convolutional network on files in the format of MNIST, with symbols and a Module.

    python examples/module_mnist.py --epochs 5
    python examples/module_mnist.py --folder ~/mnist    # the four files of MNIST, unpacked

Without a folder the files are made of the digits that the package carries.
"""

from __future__ import annotations

import argparse
import logging
import struct
import tempfile
from pathlib import Path

import numpy as np
from digits import divided

import gnomon as mx


def write_files(folder: Path) -> None:
    """Write digits as MNIST has them: bytes behind a number for the kind, and sizes."""
    for part, (pictures, labels) in zip(("train", "t10k"), divided(), strict=True):
        images, names = np.uint8(pictures * 255), np.uint8(labels)
        head = struct.pack(">4i", 0x803, len(images), 8, 8)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        head = struct.pack(">2i", 0x801, len(names))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(head + names.tobytes())


def batches(folder: Path, part: str, size: int) -> mx.io.MNISTIter:
    """The batches of a part."""
    return mx.io.MNISTIter(
        image=str(folder / f"{part}-images-idx3-ubyte"),
        label=str(folder / f"{part}-labels-idx1-ubyte"),
        batch_size=size,
        shuffle=part == "train",
        seed=1,
    )


def network() -> mx.sym.Symbol:
    """Two convolutions and two dense layers."""
    x = mx.sym.Variable("data")
    for number, filters in enumerate((16, 32)):
        x = mx.sym.Convolution(x, num_filter=filters, kernel=(3, 3), pad=(1, 1))
        x = mx.sym.Activation(x, act_type="relu", name=f"relu{number}")
        x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=64)
    x = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="relu"), num_hidden=10)
    return mx.sym.SoftmaxOutput(x, name="softmax")


def main() -> None:
    """Train, and print the accuracy on pictures that were held back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=60)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    mx.random.seed(1)
    folder = options.folder or Path(tempfile.mkdtemp())
    if options.folder is None:
        write_files(folder)
    train, test = (batches(folder, part, options.batch_size) for part in ("train", "t10k"))
    module = mx.mod.Module(network())
    module.fit(
        train,
        test,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.01},
        initializer=mx.init.Xavier(),
        batch_end_callback=mx.callback.Speedometer(options.batch_size, 10),
        num_epoch=options.epochs,
    )
    print(f"accuracy: {module.score(test, 'acc')[0][1]:.3f}")


if __name__ == "__main__":
    main()
