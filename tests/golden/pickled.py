"""What programs pickle whole beside networks, and what is computed with it, by MXNet or gnomon."""

import numpy as np


def _initialized(block, mx):
    block.initialize(mx.init.One())
    return block


def cells(mx):
    """Cells of recurrent networks, and the shape of an input of each."""
    made = mx.gluon.contrib.rnn
    single = mx.gluon.rnn.GRUCell(3, input_size=4)
    return {
        "Conv1DRNNCell": (made.Conv1DRNNCell((2, 5), 3, 3, 3, i2h_pad=1), (2, 5)),
        "Conv2DLSTMCell": (made.Conv2DLSTMCell((1, 5, 5), 1, 3, 3, i2h_dilate=2), (1, 5, 5)),
        "Conv3DGRUCell": (made.Conv3DGRUCell((1, 2, 3, 3), 2, 1, 1), (1, 2, 3, 3)),
        "LSTMPCell": (made.LSTMPCell(3, 2, input_size=4), (4,)),
        "VariationalDropoutCell": (made.VariationalDropoutCell(single, 0.5), (4,)),
    }


def transforms(mx):
    """Transforms of images, none of which is random with these arguments."""
    kinds = mx.gluon.data.vision.transforms
    return {
        "CenterCrop": kinds.CenterCrop((4, 3)),
        "CropResize": kinds.CropResize(1, 2, 4, 3),
        "RandomBrightness": kinds.RandomBrightness(0),
        "RandomColorJitter": kinds.RandomColorJitter(1e-7),
        "RandomResizedCrop": kinds.RandomResizedCrop((6, 8), (1, 1), (0.75, 0.75)),
        "RandomRotation": kinds.RandomRotation((5, 9), rotate_with_proba=0),
        "Rotate": kinds.Rotate(90),
    }


def sets(mx):
    """Data sets and loaders."""
    data = mx.gluon.data
    pairs = data.ArrayDataset(np.arange(5.0), np.arange(5) ** 2)
    return {
        "DataLoader": data.DataLoader(pairs, 2, last_batch="keep"),
        "sample": pairs.sample(data.SequentialSampler(3)),
        "shard": pairs.shard(2, 1),
        "take": pairs.take(2),
        "transform": data.SimpleDataset([-1, 2]).transform(abs),
        "transform_first": data.SimpleDataset([(-1, -2)]).transform_first(abs),
    }


def blocks(mx):
    """Other blocks."""
    deformable = mx.gluon.contrib.cnn.DeformableConvolution
    return {
        "DeformableConvolution": deformable(1, 2, in_channels=3),
        "Lambda": mx.gluon.nn.Lambda(abs),
    }


def made(mx):
    """All of them by name."""
    found = {name: _initialized(cell, mx) for name, (cell, _) in cells(mx).items()}
    found.update(transforms(mx))
    found.update(sets(mx))
    found.update({name: _initialized(block, mx) for name, block in blocks(mx).items()})
    return found


def used(mx, name, thing):
    """What it computes."""
    if name in cells(mx):
        x = mx.nd.ones((1, *cells(mx)[name][1]))
        states = [mx.nd.ones(each["shape"]) for each in thing.state_info(1)]
        return thing(x, states)[0].asnumpy().tolist()
    if name in sets(mx):
        rows = [each if isinstance(each, (list, tuple)) else [each] for each in thing]
        return [[np.asarray(_plain(x)).tolist() for x in row] for row in rows]
    if name in transforms(mx):
        image = mx.nd.array(np.arange(8 * 6 * 3).reshape(8, 6, 3), dtype="uint8")
        if "Jitter" in name or "Rot" in name:
            image = image.astype("float32")
        if "Rot" in name:
            image = image.transpose((2, 0, 1))
        return thing(image).asnumpy().tolist()
    x = mx.nd.array(np.linspace(-1, 1, 48).reshape(1, 3, 4, 4))
    return thing(x).asnumpy().tolist()


def _plain(x):
    return x.asnumpy() if hasattr(x, "asnumpy") else x
