"""The layers of `layers.py`: what they are in MXNet's words, the shape and dtype of their data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Layer(NamedTuple):
    """An operator with its parameters, on data of a shape and dtype."""

    operator: str
    data: tuple[int, ...]
    dtype: str
    how: dict[str, Any]


def conv(
    data: tuple[int, ...], filters: int, kernel: int, stride: int = 1, groups: int = 1,
    dtype: str = "float32", pad: int | None = None,
) -> Layer:  # fmt: skip
    """A convolution without bias, padded to keep its sizes where `pad` is not given."""
    pads = kernel // 2 if pad is None else pad
    how = {"kernel": (kernel,) * 2, "stride": (stride,) * 2, "pad": (pads,) * 2}
    how |= {"num_filter": filters, "num_group": groups, "no_bias": True}
    return Layer("Convolution", data, dtype, how)


def pool(data: tuple[int, ...], kind: str, size: int = 2, whole: bool = False) -> Layer:
    how = {"kernel": (size, size), "stride": (size, size), "pool_type": kind}
    return Layer("Pooling", data, "float32", how | {"global_pool": whole})


def double() -> Iterator[tuple[str, Layer]]:
    """Convolutions in float64, many of them in groups."""
    kinds = {
        "depthwise 128 of 28": conv((8, 128, 28, 28), 128, 3, groups=128),
        "depthwise 512 of 14": conv((2, 512, 14, 14), 512, 3, groups=512),
        "depthwise 128 of 56, stride 2": conv((2, 128, 56, 56), 128, 3, 2, 128),
        "32 groups of 4": conv((2, 128, 56, 56), 128, 3, groups=32),
        "32 groups of 16": conv((2, 512, 14, 14), 512, 3, groups=32),
        "2 groups of 32": conv((4, 64, 28, 28), 64, 3, groups=2),
        "64 of 28": conv((8, 64, 28, 28), 64, 3),
        "1x1, 128 of 28": conv((8, 128, 28, 28), 128, 1),
        "3 of 224, stride 2": conv((2, 3, 224, 224), 32, 3, 2),
    }
    return ((f"float64 {name}", layer._replace(dtype="float64")) for name, layer in kinds.items())


def networks() -> Iterator[tuple[str, Layer]]:
    """The layers of the networks of the training benchmark that oneDNN computes."""
    yield "lenet conv1", conv((32, 1, 28, 28), 20, 5, pad=0)
    yield "lenet pool1", pool((32, 20, 24, 24), "max")
    yield "lenet conv2", conv((32, 20, 12, 12), 50, 5, pad=0)
    yield "lenet pool2", pool((32, 50, 8, 8), "max")
    yield "resnet20 stem", conv((32, 3, 32, 32), 16, 3)
    for filters, size in ((16, 32), (32, 16), (64, 8)):
        yield f"resnet20 {filters} of {size}", conv((32, filters, size, size), filters, 3)
    for filters, size in ((16, 32), (32, 16)):
        data = (32, filters, size, size)
        yield f"resnet20 {filters} of {size}, stride 2", conv(data, 2 * filters, 3, 2)
        yield f"resnet20 {filters} of {size}, short", conv(data, 2 * filters, 1, 2)
    yield "resnet20 pool", pool((32, 64, 8, 8), "avg", 8, whole=True)


ROWS = {
    **dict(double()),
    **dict(networks()),
    "depthwise 128 of 28": conv((8, 128, 28, 28), 128, 3, groups=128),
    "depthwise 32 of 112": conv((1, 32, 112, 112), 32, 3, groups=32),
    "depthwise 144 of 56, stride 2": conv((1, 144, 56, 56), 144, 3, 2, 144),
    "global average 512 of 7": pool((32, 512, 7, 7), "avg", 7, whole=True),
    "global average 64 of 56": pool((8, 64, 56, 56), "avg", 56, whole=True),
}
