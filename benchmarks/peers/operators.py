"""Operators at a typical size: the rows of `operators.py`, and the arrays that they name.

A row is the statement in MXNet's words, and in PyTorch's where it has the same operator. The
gradients are those by every array of ARRAYS that is named in it; rows of FORWARD have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _normal(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.standard_normal(shape)


def _positive(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.uniform(0.1, 0.9, shape)


def _corners(count: int) -> Callable[[Any], Any]:
    def draw(rng: Any) -> Any:
        low = rng.uniform(0, 400, (count, 2))
        return np.concatenate([low, low + rng.uniform(4, 100, (count, 2))], 1)

    return draw


def _scored(rng: Any) -> Any:
    return np.concatenate([rng.uniform(0, 1, (10000, 1)), _corners(10000)(rng)], 1)


def _regions(rng: Any) -> Any:
    return np.concatenate([rng.integers(0, 4, (64, 1)), _corners(64)(rng)], 1)


def _definite(rng: Any) -> Any:
    half = rng.standard_normal((500, 500))
    return half @ half.T / 500 + np.eye(500)


def _whole(top: int, *shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.integers(0, top, shape)


def _truth(rng: Any) -> Any:
    boxes = _corners(32 * 8)(rng).reshape(32, 8, 4) / 512
    return np.concatenate([rng.integers(0, 20, (32, 8, 1)), boxes], 2)


ARRAYS: dict[str, Callable[[Any], Any]] = {
    "x": _normal(256, 1024),
    "y": _normal(256, 1024),
    "p": _positive(256, 1024),
    "row": _normal(1, 1024),
    "column": _normal(256, 1),
    "vector": _normal(1024),
    "weight": _normal(512, 1024),
    "square": _normal(512, 512),
    "spd": _definite,
    "batch": _normal(32, 128, 64),
    "other": _normal(32, 64, 128),
    "image": _normal(16, 32, 28, 28),
    "kernel": _normal(32, 32, 3, 3),
    "depth": _normal(32, 1, 3, 3),
    "scale": _positive(32),
    "shift": _normal(32),
    "mean": _normal(32),
    "variance": _positive(32),
    "big": _normal(1, 32, 64, 64),
    "table": _normal(20000, 64),
    "sequence": _normal(100, 32, 80),
    "attention": _normal(64, 16, 3 * 128),
    "recurrent": lambda rng: rng.uniform(-0.1, 0.1, 512 * (80 + 64 + 2) + 64 * 128),
    "state": _normal(1, 32, 64),
    "cell": _normal(1, 32, 128),
    "boxes": _corners(1000),
    "more": _corners(1000),
}
# arrays no gradient goes to
FIXED: dict[str, Callable[[Any], Any]] = {
    "words": _whole(20000, 32, 64),
    "places": _whole(256, 512),
    "classes": _whole(1024, 256),
    "labels": lambda rng: rng.integers(1, 80, (32, 80)),
    "scored": _scored,
    "regions": _regions,
    "anchors": lambda rng: _corners(8732)(rng)[None] / 512,
    "truth": _truth,
    "scores": _normal(32, 21, 8732),
    "photo": _whole(256, 224, 224, 3),
    "lengths": _whole(100, 32),
    "mask": _whole(2, 256, 1024),
}
WHOLE = ("words", "places", "classes", "labels")  # int64 for PyTorch

# name: (by MXNet, by PyTorch)
ROWS: dict[str, tuple[str, str]] = {
    # maps
    **{
        name: (f"nd.{name}(x)", f"torch.{torch or name}(x)")
        for name, torch in {
            "abs": "",
            "sign": "",
            "exp": "",
            "expm1": "",
            "sin": "",
            "cos": "",
            "tanh": "",
            "sinh": "",
            "arctan": "",
            "arcsinh": "",
            "sigmoid": "",
            "erf": "",
            "square": "",
            "relu": "",
            "negative": "",
        }.items()
    },
    **{
        name: (f"nd.{name}(p)", f"torch.{torch or name}(p)")
        for name, torch in {
            "log": "",
            "log1p": "",
            "sqrt": "",
            "rsqrt": "",
            "arcsin": "",
            "arctanh": "",
            "reciprocal": "",
            "gammaln": "lgamma",
            "erfinv": "",
        }.items()
    },
    "cbrt": ("nd.cbrt(p)", ""),
    "gamma": ("nd.gamma(p)", ""),
    "softsign": ("nd.softsign(x)", "F.softsign(x)"),
    "hard_sigmoid": ("nd.hard_sigmoid(x)", ""),
    "smooth_l1": ("nd.smooth_l1(x, scalar=1)", ""),
    "clip": ("nd.clip(x, -1, 1)", "torch.clip(x, -1, 1)"),
    "Activation softrelu": ("nd.Activation(x, act_type='softrelu')", "F.softplus(x)"),
    "LeakyReLU leaky": ("nd.LeakyReLU(x, act_type='leaky')", "F.leaky_relu(x, 0.25)"),
    "LeakyReLU elu": ("nd.LeakyReLU(x, act_type='elu')", "F.elu(x, 0.25)"),
    "LeakyReLU selu": ("nd.LeakyReLU(x, act_type='selu')", "F.selu(x)"),
    "LeakyReLU gelu": ("nd.LeakyReLU(x, act_type='gelu')", "F.gelu(x)"),
    "elemwise_add": ("x + y", "x + y"),
    "elemwise_mul": ("x * y", "x * y"),
    "elemwise_div": ("x / p", "x / p"),
    "_plus_scalar": ("x + 2", "x + 2"),
    "_rpower_scalar": ("2 ** x", "2 ** x"),
    "_power_scalar": ("p ** 1.5", "p ** 1.5"),
    "broadcast_add rows": ("nd.broadcast_add(x, row)", "x + row"),
    "broadcast_mul columns": ("nd.broadcast_mul(x, column)", "x * column"),
    "broadcast_maximum": ("nd.broadcast_maximum(x, y)", "torch.maximum(x, y)"),
    "broadcast_power": ("nd.broadcast_power(p, y)", "p ** y"),
    "broadcast_hypot": ("nd.broadcast_hypot(x, y)", "torch.hypot(x, y)"),
    "broadcast_greater": ("nd.broadcast_greater(x, y)", "x > y"),
    "where": ("nd.where(mask, x, y)", "torch.where(mask != 0, x, y)"),
    "add_n": ("nd.add_n(x, y, p)", "x + y + p"),
    "Cast": ("nd.cast(x, 'float64')", "x.double()"),
    # sums and orders
    "sum": ("nd.sum(x)", "torch.sum(x)"),
    "sum rows": ("nd.sum(x, axis=1)", "torch.sum(x, 1)"),
    "sum columns": ("nd.sum(x, axis=0)", "torch.sum(x, 0)"),
    "mean channels": ("nd.mean(image, axis=(0, 2, 3))", "torch.mean(image, (0, 2, 3))"),
    "max": ("nd.max(x, axis=1)", "torch.amax(x, 1)"),
    "min": ("nd.min(x, axis=0)", "torch.amin(x, 0)"),
    "prod": ("nd.prod(p, axis=1)", "torch.prod(p, 1)"),
    "norm": ("nd.norm(x, axis=1)", "torch.linalg.vector_norm(x, dim=1)"),
    "argmax": ("nd.argmax(x, axis=1)", "torch.argmax(x, 1)"),
    "cumsum": ("nd.cumsum(x, axis=1)", "torch.cumsum(x, 1)"),
    "topk": ("nd.topk(x, k=10, axis=1)", "torch.topk(x, 10, 1)[1]"),
    "sort": ("nd.sort(x, axis=1)", "torch.sort(x, 1)[0]"),
    "argsort": ("nd.argsort(x, axis=1)", "torch.argsort(x, 1)"),
    "softmax": ("nd.softmax(x)", "torch.softmax(x, -1)"),
    "log_softmax": ("nd.log_softmax(x)", "torch.log_softmax(x, -1)"),
    "softmin": ("nd.softmin(x)", "F.softmin(x, -1)"),
    "softmax_cross_entropy": (
        "nd.softmax_cross_entropy(x, classes)",
        "F.cross_entropy(x, classes, reduction='sum')",
    ),
    "moments": ("nd.moments(x, axes=(1,))[1]", "torch.var(x, 1, correction=0)"),
    # shapes and places
    "transpose": ("nd.transpose(x)", "x.T.contiguous()"),
    "transpose images": (
        "nd.transpose(image, axes=(0, 2, 3, 1))",
        "image.permute(0, 2, 3, 1).contiguous()",
    ),
    "concat": ("nd.concat(x, y, dim=1)", "torch.cat([x, y], 1)"),
    "stack": ("nd.stack(x, y, axis=0)", "torch.stack([x, y], 0)"),
    "split": ("nd.split(x, 4, axis=1)[1]", "[p.contiguous() for p in torch.split(x, 256, 1)][1]"),
    "slice_axis": (
        "nd.slice_axis(x, axis=1, begin=10, end=500)",
        "x[:, 10:500].contiguous()",
    ),
    "tile": ("nd.tile(x, reps=(2, 2))", "torch.tile(x, (2, 2))"),
    "repeat": ("nd.repeat(x, repeats=2, axis=1)", "torch.repeat_interleave(x, 2, 1)"),
    "reverse": ("nd.reverse(x, axis=1)", "torch.flip(x, [1])"),
    "pad": (
        "nd.pad(image, mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1))",
        "F.pad(image, (1, 1, 1, 1))",
    ),
    "broadcast_to": ("nd.broadcast_to(row, shape=(256, 1024))", "row.expand(256, 1024) + 0"),
    "depth_to_space": ("nd.depth_to_space(image, 2)", "F.pixel_shuffle(image, 2)"),
    "take": ("nd.take(x, places)", "x[places]"),
    "pick": ("nd.pick(x, classes)", "x.gather(1, classes[:, None])[:, 0]"),
    "one_hot": ("nd.one_hot(classes, 1024)", "F.one_hot(classes, 1024)"),
    "Embedding": (
        "nd.Embedding(words, table, input_dim=20000, output_dim=64)",
        "F.embedding(words, table)",
    ),
    "diag": ("nd.diag(square)", "torch.diag(square)"),
    "SequenceMask": ("nd.SequenceMask(sequence, lengths, True)", ""),
    "SequenceReverse": ("nd.SequenceReverse(sequence)", "torch.flip(sequence, [0])"),
    # products
    "dot": ("nd.dot(square, square)", "square @ square"),
    "dot transposed": ("nd.dot(x, weight, transpose_b=True)", "x @ weight.T"),
    "batch_dot": ("nd.batch_dot(batch, other)", "torch.bmm(batch, other)"),
    "FullyConnected": (
        "nd.FullyConnected(x, weight, num_hidden=512, no_bias=True)",
        "F.linear(x, weight)",
    ),
    "linalg.gemm2": ("nd.linalg.gemm2(square, square)", "square @ square"),
    "linalg.syrk": ("nd.linalg.syrk(square)", "square @ square.T"),
    "linalg.potrf": ("nd.linalg.potrf(spd)", "torch.linalg.cholesky(spd)"),
    "linalg.inverse": ("nd.linalg.inverse(spd)", "torch.linalg.inv(spd)"),
    "linalg.det": ("nd.linalg.slogdet(spd)[1]", "torch.linalg.slogdet(spd)[1]"),
    "interleaved_matmul_selfatt_qk": (
        "nd.contrib.interleaved_matmul_selfatt_qk(attention, heads=4)",
        "",
    ),
    # layers
    "Convolution 3x3": (
        "nd.Convolution(image, kernel, kernel=(3, 3), pad=(1, 1), num_filter=32, no_bias=True)",
        "F.conv2d(image, kernel, padding=1)",
    ),
    "Convolution depthwise": (
        "nd.Convolution(image, depth, kernel=(3, 3), pad=(1, 1), num_filter=32, num_group=32,"
        " no_bias=True)",
        "F.conv2d(image, depth, padding=1, groups=32)",
    ),
    "Deconvolution": (
        "nd.Deconvolution(image, kernel, kernel=(3, 3), pad=(1, 1), num_filter=32)",
        "F.conv_transpose2d(image, kernel, padding=1)",
    ),
    "Pooling max": (
        "nd.Pooling(image, kernel=(2, 2), stride=(2, 2), pool_type='max')",
        "F.max_pool2d(image, 2)",
    ),
    "Pooling avg": (
        "nd.Pooling(image, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type='avg')",
        "F.avg_pool2d(image, 3, 1, 1)",
    ),
    "Pooling global": (
        "nd.Pooling(image, global_pool=True, kernel=(1, 1), pool_type='avg')",
        "F.adaptive_avg_pool2d(image, 1)",
    ),
    "BatchNorm": (
        "nd.BatchNorm(image, scale, shift, mean.detach(), variance.detach(), fix_gamma=False)",
        "F.batch_norm(image, mean.detach(), variance.detach(), scale, shift, training=True)",
    ),
    "LayerNorm": (
        "nd.LayerNorm(x, vector, vector)",
        "F.layer_norm(x, (1024,), vector, vector)",
    ),
    "GroupNorm": (
        "nd.GroupNorm(image, scale, shift, num_groups=32)",
        "F.group_norm(image, 32, scale, shift)",
    ),
    "InstanceNorm": (
        "nd.InstanceNorm(image, scale, shift)",
        "F.instance_norm(image, weight=scale, bias=shift)",
    ),
    "LRN": ("nd.LRN(image, nsize=5)", "F.local_response_norm(image, 5, k=2)"),
    "L2Normalization": ("nd.L2Normalization(x)", "F.normalize(x)"),
    "Dropout": ("nd.Dropout(x, p=0.5)", "F.dropout(x, 0.5)"),
    "UpSampling": (
        "nd.UpSampling(image, scale=2, sample_type='nearest')",
        "F.interpolate(image, scale_factor=2)",
    ),
    "contrib.BilinearResize2D": (
        "nd.contrib.BilinearResize2D(image, height=56, width=56)",
        "F.interpolate(image, (56, 56), mode='bilinear', align_corners=True)",
    ),
    "contrib.AdaptiveAvgPooling2D": (
        "nd.contrib.AdaptiveAvgPooling2D(image, output_size=5)",
        "F.adaptive_avg_pool2d(image, 5)",
    ),
    "im2col": (
        "nd.im2col(image, kernel=(3, 3), pad=(1, 1))",
        "F.unfold(image, 3, padding=1)",
    ),
    "CTCLoss": (
        "nd.CTCLoss(sequence, labels)",
        "F.ctc_loss(sequence.log_softmax(-1), labels, [100] * 32, [80] * 32, reduction='none')",
    ),
    "RNN projected": (
        "nd.RNN(sequence, recurrent, state, cell, mode='lstm', state_size=128, num_layers=1,"
        " projection_size=64)",
        "torch.lstm(sequence, (state, cell), [recurrent[:40960].view(512, 80),"
        " recurrent[40960:73728].view(512, 64), recurrent[81920:82432], recurrent[82432:],"
        " recurrent[73728:81920].view(64, 128)], True, 1, 0.0, False, False, False)[0]",
    ),
    # boxes and images
    "contrib.box_iou": ("nd.contrib.box_iou(boxes, more)", ""),
    "contrib.box_nms": (
        "nd.contrib.box_nms(scored, overlap_thresh=0.5, coord_start=1, score_index=0)",
        "",
    ),
    "contrib.MultiBoxTarget": ("nd.contrib.MultiBoxTarget(anchors, truth, scores)[0]", ""),
    "contrib.MultiBoxPrior": ("nd.contrib.MultiBoxPrior(big, sizes=(0.2, 0.3))", ""),
    "ROIPooling": (
        "nd.ROIPooling(image, regions, pooled_size=(7, 7), spatial_scale=0.0625)",
        "",
    ),
    "contrib.ROIAlign": (
        "nd.contrib.ROIAlign(image, regions, pooled_size=(7, 7), spatial_scale=0.0625,"
        " sample_ratio=2)",
        "",
    ),
    "contrib.fft": ("nd.contrib.fft(x)", "torch.view_as_real(torch.fft.fft(x))"),
    "image.to_tensor": (
        "nd.image.to_tensor(photo)",
        "photo.permute(2, 0, 1).contiguous().float() / 255",
    ),
    # random numbers
    "random.uniform": ("nd.random.uniform(shape=(256, 1024))", "torch.rand(256, 1024)"),
    "random.normal": ("nd.random.normal(shape=(256, 1024))", "torch.randn(256, 1024)"),
    "shuffle": ("nd.shuffle(x)", "x[torch.randperm(256)]"),
    # steps of optimizers
    "sgd_update": ("nd.sgd_update(x, y, lr=0.1, out=x)", ""),
    "sgd_mom_update": ("nd.sgd_mom_update(x, y, p, lr=0.1, momentum=0.9, out=x)", ""),
    "adam_update": ("nd.adam_update(x, y, p, p, lr=0.1, out=x)", ""),
}

# rows without gradients: of what is no function of reals, or changes its arguments
FORWARD = frozenset(
    """
    sign broadcast_greater argmax topk argsort one_hot contrib.box_iou contrib.box_nms contrib.fft
    contrib.MultiBoxTarget contrib.MultiBoxPrior image.to_tensor random.uniform random.normal
    shuffle sgd_update sgd_mom_update adam_update linalg.det sort SequenceReverse
    """.split()
)


def arrays(row: str) -> dict[str, Any]:
    """The arrays that a row names, as NumPy's; the same ones for every library."""
    named = compile(ROWS[row][0], row, "eval").co_names
    rng = np.random.default_rng(3)
    return {name: draw(rng) for name, draw in {**ARRAYS, **FIXED}.items() if name in named}
