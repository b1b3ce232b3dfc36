"""Train a module from a record file: crops and colours by chance, decoded by threads.

python examples/train_records.py --epochs 8
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
from digits import divided

import gnomon as mx

SIDE, CROP = 20, 18


def pack(path: str, pictures: np.ndarray, labels: np.ndarray) -> None:
    """Write digits of `SIDE` pixels as PNG images of a record file."""
    with mx.recordio.MXRecordIO(path, "w") as out:
        for k, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            grey = np.round(picture[0] / pictures.max() * 255).astype(np.uint8)
            image = mx.nd.array(grey[:, :, None], dtype="uint8")
            image = mx.image.imresize(image, SIDE, SIDE).asnumpy()
            out.write(mx.recordio.pack_img((0, float(label), k, 0), image, 3, ".png"))


def network() -> mx.sym.Symbol:
    """Two convolutions and two dense layers."""
    net = mx.sym.Variable("data")
    for number, filters in enumerate((16, 32), 1):
        net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters,
                                 name=f"conv{number}")  # fmt: skip
        net = mx.sym.Activation(net, act_type="relu")
        net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(net, num_hidden=64, name="fc1")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def main() -> None:
    """Pack, train, and print the accuracy on digits that were held back."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    mx.random.seed(1)
    np.random.seed(1)
    train, test = divided()
    with tempfile.TemporaryDirectory() as folder:
        pack(f"{folder}/train.rec", *train)
        pack(f"{folder}/test.rec", *test)
        shared = {"data_shape": (1, CROP, CROP), "batch_size": 50, "mean_r": 78, "std_r": 96,
                  "preprocess_threads": 2}  # fmt: skip
        learn = mx.io.ImageRecordIter(path_imgrec=f"{folder}/train.rec", shuffle=True, seed=1,
                                      rand_crop=True, **shared)  # fmt: skip
        check = mx.io.ImageRecordIter(path_imgrec=f"{folder}/test.rec", **shared)
        module = mx.mod.Module(network())
        module.fit(
            learn, num_epoch=options.epochs, optimizer="adam",
            optimizer_params={"learning_rate": 0.003}, initializer=mx.init.Xavier(),
        )  # fmt: skip
        print("held out: accuracy", dict(module.score(check, "acc"))["accuracy"])


if __name__ == "__main__":
    main()
