"""Gluon's layers on values that their names decide, run with MXNet or gnomon as `mx`."""

from __future__ import annotations

import json
import zlib

import numpy as np

IMAGE, ROWS = (2, 4, 5, 6), (3, 4)


def cases(mx):
    """Name of a case -> what makes its block, and the shapes of its inputs."""
    return {**plain(mx), **windows(mx)}


def plain(mx):
    """Those that need no window."""
    nn = mx.gluon.nn
    return {
        "dense": (lambda: nn.Dense(3, activation="relu"), ROWS),
        "dense_rows": (lambda: nn.Dense(3, use_bias=False, flatten=False), (2, 3, 4)),
        "dense_images": (lambda: nn.Dense(3, activation="tanh", in_units=120), IMAGE),
        "batchnorm": (nn.BatchNorm, IMAGE),
        "batchnorm_plain": (lambda: nn.BatchNorm(axis=-1, center=False, scale=False), ROWS),
        "batchnorm_relu": (lambda: nn.BatchNormReLU(momentum=0.8), IMAGE),
        "batchnorm_global": (lambda: nn.BatchNorm(use_global_stats=True, momentum=0.5), ROWS),
        "instancenorm": (lambda: nn.InstanceNorm(scale=True), IMAGE),
        "instancenorm_axis": (lambda: nn.InstanceNorm(axis=2), IMAGE),
        "layernorm": (nn.LayerNorm, ROWS),
        "layernorm_axis": (lambda: nn.LayerNorm(axis=1, center=False, epsilon=1e-3), IMAGE),
        "groupnorm": (lambda: nn.GroupNorm(2), IMAGE),
        "embedding": (lambda: nn.Embedding(7, 3), (2, 4)),
        "embedding_rows": (lambda: nn.Embedding(7, 3, sparse_grad=True), (2, 4)),
        "flatten": (nn.Flatten, IMAGE),
        "dropout": (lambda: nn.Dropout(0.0), ROWS),
        "relu": (lambda: nn.Activation("relu"), ROWS),
        "sigmoid": (lambda: nn.Activation("sigmoid"), ROWS),
        "softrelu": (lambda: nn.Activation("softrelu"), ROWS),
        "softsign": (lambda: nn.Activation("softsign"), ROWS),
        "leaky": (lambda: nn.LeakyReLU(0.1), ROWS),
        "prelu": (nn.PReLU, IMAGE),
        "prelu_channels": (lambda: nn.PReLU(in_channels=4), IMAGE),
        "elu": (lambda: nn.ELU(0.5), ROWS),
        "selu": (nn.SELU, ROWS),
        "gelu": (nn.GELU, ROWS),
        "swish": (lambda: nn.Swish(1.5), ROWS),
    }


def windows(mx):
    """The same for layers of images."""
    nn, more, cnn = mx.gluon.nn, mx.gluon.contrib.nn, mx.gluon.contrib.cnn
    return {
        "conv1d": (lambda: nn.Conv1D(3, 3, strides=2, padding=1), (2, 4, 7)),
        "conv2d": (lambda: nn.Conv2D(6, (3, 2), activation="relu"), IMAGE),
        "conv2d_groups": (lambda: nn.Conv2D(4, 3, 2, 1, groups=2, use_bias=False), IMAGE),
        "conv2d_dilated": (lambda: nn.Conv2D(3, 2, dilation=2, in_channels=4), IMAGE),
        "conv3d": (lambda: nn.Conv3D(3, 2, padding=1), (2, 2, 3, 4, 3)),
        "conv1d_transpose": (lambda: nn.Conv1DTranspose(3, 3, 2), (2, 4, 5)),
        "conv2d_transpose": (
            lambda: nn.Conv2DTranspose(6, 3, 2, 1, 1, groups=2, activation="relu", in_channels=4),
            IMAGE,
        ),
        "conv3d_transpose": (lambda: nn.Conv3DTranspose(2, 2), (1, 2, 3, 2, 3)),
        "deformable": (
            lambda: cnn.DeformableConvolution(4, (3, 2), padding=(1, 0), activation="tanh"),
            IMAGE,
        ),
        "deformable_groups": (
            lambda: cnn.DeformableConvolution(
                4, 3, 2, 1, groups=2, num_deformable_group=2, use_bias=False, offset_use_bias=False
            ),
            IMAGE,
        ),
        "maxpool1d": (nn.MaxPool1D, (2, 3, 7)),
        "maxpool2d": (lambda: nn.MaxPool2D(3, 2, 1, ceil_mode=True), IMAGE),
        "maxpool3d": (nn.MaxPool3D, (2, 2, 4, 4, 4)),
        "avgpool1d": (lambda: nn.AvgPool1D(3, 1), (2, 3, 7)),
        "avgpool2d": (lambda: nn.AvgPool2D(3, 2, 1, count_include_pad=False), IMAGE),
        "avgpool3d": (lambda: nn.AvgPool3D(2, padding=1), (2, 2, 4, 4, 4)),
        "globalmax1d": (nn.GlobalMaxPool1D, (2, 3, 7)),
        "globalmax2d": (nn.GlobalMaxPool2D, IMAGE),
        "globalmax3d": (nn.GlobalMaxPool3D, (2, 2, 3, 3, 3)),
        "globalavg1d": (nn.GlobalAvgPool1D, (2, 3, 7)),
        "globalavg2d": (nn.GlobalAvgPool2D, IMAGE),
        "globalavg3d": (nn.GlobalAvgPool3D, (2, 2, 3, 3, 3)),
        "reflectionpad2d": (lambda: nn.ReflectionPad2D(2), IMAGE),
        "lambda": (lambda: nn.HybridLambda("tanh"), ROWS),
        "lambda_function": (lambda: nn.HybridLambda(lambda F, x: F.exp(x) + x), ROWS),
        "identity": (more.Identity, ROWS),
        "pixelshuffle1d": (lambda: more.PixelShuffle1D(2), (2, 4, 3)),
        "pixelshuffle2d": (lambda: more.PixelShuffle2D((2, 3)), (1, 12, 2, 3)),
        "pixelshuffle3d": (lambda: more.PixelShuffle3D((2, 1, 2)), (1, 8, 2, 2, 3)),
        "syncbatchnorm": (lambda: more.SyncBatchNorm(num_devices=1), IMAGE),
        "concurrent": (lambda: concurrent(mx), ROWS),
        "concurrent_plain": (lambda: plain_blocks(mx), ROWS),
        "nested": (lambda: nested(mx), IMAGE),
        "inputs": (lambda: inputs(mx), [ROWS, ROWS, ROWS]),
    }


def concurrent(mx):
    """Layers side by side."""
    net = mx.gluon.contrib.nn.HybridConcurrent(axis=1)
    with net.name_scope():
        net.add(mx.gluon.nn.Dense(2), mx.gluon.contrib.nn.Identity(), mx.gluon.nn.Dense(3))
    return net


def plain_blocks(mx):
    """Containers that are not compiled as a whole, though what is in them is."""
    nn = mx.gluon.nn
    net, sides = nn.Sequential(), mx.gluon.contrib.nn.Concurrent(axis=1)
    with net.name_scope():
        with sides.name_scope():
            sides.add(nn.Dense(2), nn.Dense(3, activation="tanh"), nn.Lambda("sin"))
        net.add(sides, nn.Lambda("tanh"), nn.Lambda(lambda x: x * 2))
    return net


def nested(mx):
    """Blocks within blocks, in scopes of names and out of them."""
    nn = mx.gluon.nn

    class Part(mx.gluon.HybridBlock):
        def __init__(self, channels, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.conv = nn.Conv2D(channels, 3, padding=1)
                self.norm = nn.BatchNorm()
                self.scale = self.params.get("scale", shape=(1,), init="ones")
                self.shift = self.params.get_constant("shift", mx.nd.array([0.5]))

        def hybrid_forward(self, F, x, scale, shift):
            y = F.relu(self.norm(self.conv(x)))
            return F.broadcast_add(F.broadcast_mul(y, scale), shift) + x

    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(Part(4), Part(4))
        inner = nn.HybridSequential()
        inner.add(nn.GlobalAvgPool2D(), nn.Dense(5, activation="sigmoid"))
        net.add(inner, nn.Dense(2, prefix="last_"))
    return net


def inputs(mx):
    """Several inputs and outputs, nested."""

    class Net(mx.gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.dense = mx.gluon.nn.Dense(4)

        def hybrid_forward(self, F, x, others):
            y, z = others
            first = self.dense(x) * y
            return first, [F.sin(z) + first, self.dense(y)]

    return Net()


def values(name, shape, low=-1.0, high=1.0):
    """Values that a name decides."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    return rng.uniform(low, high, size=shape)


def start(mx, name, make, shapes, dtype, before=None):
    """The block of a case with parameters of its own values, and its inputs.

    It computes in `before` first, hybridized and not, where that is given.
    """
    with mx.name.NameManager():
        block = make()
    block.initialize()
    block.cast(before or dtype)
    shapes = shapes if isinstance(shapes, list) else [shapes]
    high = (0, 7) if name.startswith("embedding") else (-1, 1)
    drawn = [values(f"{name}{k}", s, *high) for k, s in enumerate(shapes)]
    drawn = [np.floor(x) if name.startswith("embedding") else x for x in drawn]
    given = [mx.nd.array(x, dtype=dtype) for x in drawn]
    args = given if len(given) == 1 else [given[0], given[1:]]
    if before is not None:
        other = [x.astype(before) for x in given]
        other = other if len(other) == 1 else [other[0], other[1:]]
        block(*other)
        block.hybridize()
        block(*other)
        block.hybridize(False)
        block.cast(dtype)
    block(*args)
    for key, param in block.collect_params().items():
        positive = "var" in key
        new = values(key, param.shape, 0.5 if positive else -1.0)
        if "shift" not in key:
            param.set_data(mx.nd.array(new, dtype=param.dtype))
    return block, given, args


def result(mx, name, make, shapes, dtype="float32", hybrid=False, before=None):
    """Outputs while predicting and training, gradients, and parameters afterwards."""
    block, given, args = start(mx, name, make, shapes, dtype, before)
    if hybrid:
        block.hybridize()
    found = {}
    for k, x in enumerate(flat(block(*args))):
        found[f"predicted{k}"] = x
    wanted = [] if name.startswith("embedding") else given
    for x in wanted:
        x.attach_grad()
    with mx.autograd.record():
        outputs = flat(block(*args))
        heads = [
            mx.nd.array(values(f"{name}-{k}", x.shape), dtype=dtype) for k, x in enumerate(outputs)
        ]
        total = sum((x * h).sum() for x, h in zip(outputs, heads, strict=False))
    total.backward()
    for k, x in enumerate(outputs):
        found[f"output{k}"] = x
    for k, x in enumerate(wanted):
        found[f"grad{k}"] = x.grad
    for key, param in block.collect_params().items():
        if param.grad_req != "null":
            found[f"grad {key}"] = param.grad()
        elif "running" in key:
            found[key] = param.data()
    return {key: x.asnumpy() for key, x in found.items()}


def flat(outputs):
    """Arrays of nested lists."""
    if isinstance(outputs, (list, tuple)):
        return [x for each in outputs for x in flat(each)]
    return [outputs]


def names(mx, name, make, shapes):
    """The printed block, its parameters, the keys of its file, and the nodes of its graph."""
    block, _, args = start(mx, name, make, shapes, "float32")
    block.hybridize()
    block(*args)
    return {
        "shown": repr(block),
        "params": [
            [k, list(p.shape), np.dtype(p.dtype).name, p.grad_req]
            for k, p in block.collect_params().items()
        ],
        "keys": list(block._collect_params_with_prefix()),
    }


def nodes(text):
    """The operators of a symbol's JSON with names, attributes and inputs."""
    content = json.loads(text)
    found = []
    for node in content["nodes"]:
        attrs = {k: v for k, v in node.get("attrs", {}).items() if k != "__init__"}
        if "__shape__" in attrs:  # MXNet writes some as lists
            attrs["__shape__"] = attrs["__shape__"].replace("[", "(").replace("]", ")")
        found.append([node["op"], node["name"], attrs, [e[:2] for e in node["inputs"]]])
    return found
