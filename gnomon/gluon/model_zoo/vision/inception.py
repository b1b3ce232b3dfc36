"""Inception: branches of different windows, joined by channels."""

from __future__ import annotations

from typing import Any

from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock  # noqa: F401  MXNet's has it
from gnomon.gluon.contrib.nn import HybridConcurrent
from gnomon.gluon.model_zoo.model_store import ROOT, trained
from gnomon.gluon.model_zoo.vision.network import Network, beside, chain, relu

__all__ = ["Inception3", "inception_v3", "make_aux"]

Conv = tuple[Any, ...]  # channels, kernel, stride, padding
POOLS = {
    "avg": lambda: nn.AvgPool2D(pool_size=3, strides=1, padding=1),
    "max": lambda: nn.MaxPool2D(pool_size=3, strides=2),
}
ROW, COLUMN = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def _conv(channels: int, kernel: Any, stride: int = 1, padding: Any = 0) -> nn.HybridSequential:
    """Convolution, normalization, activation."""
    conv = nn.Conv2D(channels, kernel, stride, padding, use_bias=False)
    return chain(conv, nn.BatchNorm(epsilon=0.001), relu())


def _branch(pool: str | None, *convs: Conv) -> nn.HybridSequential:
    """Pooling, if any, and convolutions one after the other."""
    pools = [POOLS[pool]()] if pool else []
    return chain(*pools, *[_conv(*conv) for conv in convs])


def _joined(prefix: str, *branches: tuple[Any, ...]) -> HybridConcurrent:
    """Branches side by side; each is what `_branch` takes."""
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        for branch in branches:
            out.add(_branch(*branch))
    return out


def _a(pooled: int, prefix: str) -> HybridConcurrent:
    return _joined(
        prefix,
        (None, (64, 1)),
        (None, (48, 1), (64, 5, 1, 2)),
        (None, (64, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
        ("avg", (pooled, 1)),
    )


def _b(prefix: str) -> HybridConcurrent:
    narrow = (None, (64, 1), (96, 3, 1, 1), (96, 3, 2))
    return _joined(prefix, (None, (384, 3, 2)), narrow, ("max",))


def _c(width: int, prefix: str) -> HybridConcurrent:
    row, column = (width, *ROW), (width, *COLUMN)
    return _joined(
        prefix,
        (None, (192, 1)),
        (None, (width, 1), row, (192, *COLUMN)),
        (None, (width, 1), column, row, column, (192, *ROW)),
        ("avg", (192, 1)),
    )


def _d(prefix: str) -> HybridConcurrent:
    wide = (None, (192, 1), (192, *ROW), (192, *COLUMN), (192, 3, 2))
    return _joined(prefix, (None, (192, 1), (320, 3, 2)), wide, ("max",))


def _e(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch(None, (320, 1)))
        for convs in (((384, 1),), ((448, 1), (384, 3, 1, 1))):
            whole = _branch(None, *convs)
            row, column = _conv(384, (1, 3), 1, (0, 1)), _conv(384, (3, 1), 1, (1, 0))
            out.add(chain(whole, beside(chain(row), chain(column))))
        out.add(_branch("avg", (192, 1)))
    return out


def make_aux(classes: int) -> nn.HybridSequential:
    """A classifier of features 17 pixels wide, to train beside the one at the end.

    >>> make_aux(10)[4]
    Dense(None -> 10, linear)
    """
    convs = _conv(128, 1), _conv(768, 5)
    pool = nn.AvgPool2D(pool_size=5, strides=3)
    return chain(pool, *convs, nn.Flatten(), nn.Dense(classes))


class Inception3(Network):
    """Inception version 3, for images 299 wide.

    Args:
        classes: how many there are.
    """

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(_conv(32, 3, 2), _conv(32, 3), _conv(64, 3, 1, 1), POOLS["max"]())
            self.features.add(_conv(80, 1), _conv(192, 3), POOLS["max"]())
            for number, pooled in enumerate((32, 64, 64), 1):
                self.features.add(_a(pooled, f"A{number}_"))
            self.features.add(_b("B_"))
            for number, width in enumerate((128, 160, 160, 192), 1):
                self.features.add(_c(width, f"C{number}_"))
            self.features.add(_d("D_"), _e("E1_"), _e("E2_"))
            self.features.add(nn.AvgPool2D(pool_size=8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


def inception_v3(
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> Inception3:
    """Inception version 3; `pretrained` reads its parameters from the folder `root`."""
    return trained(Inception3(**kwargs), pretrained, "inceptionv3", root, ctx)
