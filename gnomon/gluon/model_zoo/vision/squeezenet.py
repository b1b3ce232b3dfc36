"""SqueezeNet: few parameters by squeezing channels before every 3x3 convolution."""

from __future__ import annotations

from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.context import cpu
from gnomon.gluon import nn
from gnomon.gluon.block import HybridBlock  # noqa: F401  MXNet's has it
from gnomon.gluon.contrib.nn import HybridConcurrent  # noqa: F401  the same
from gnomon.gluon.model_zoo.model_store import ROOT, named, trained
from gnomon.gluon.model_zoo.vision.network import Network, beside, chain, relu

# version -> channels and kernel of the first convolution, squeezed channels (0: pooling)
SPECS = {
    "1.0": (96, 7, (0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64)),
    "1.1": (64, 3, (0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64)),
}


def _activated(channels: int, kernel: int, padding: int = 0) -> nn.HybridSequential:
    return chain(nn.Conv2D(channels, kernel, padding=padding), relu())


def _fire(squeezed: int) -> nn.HybridSequential:
    """Squeeze the channels, and widen them by convolutions of two sizes side by side."""
    narrow, wide = _activated(squeezed, 1), 4 * squeezed
    return chain(narrow, beside(_activated(wide, 1), _activated(wide, 3, 1)))


class SqueezeNet(Network):
    """SqueezeNet.

    Args:
        version: "1.0" or "1.1".
        classes: how many there are.
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if version not in SPECS:
            raise ParamError(
                complaint("SqueezeNet", "version", f"one of {[*SPECS]}", repr(version))
            )
        channels, kernel, squeezed = SPECS[version]
        with self.name_scope():
            self.features = chain(nn.Conv2D(channels, kernel_size=kernel, strides=2), relu())
            for width in squeezed:
                pool = nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True) if width == 0 else None
                self.features.add(pool or _fire(width))
            self.features.add(nn.Dropout(0.5))
            last = nn.Conv2D(classes, kernel_size=1)
            self.output = chain(last, relu(), nn.AvgPool2D(13), nn.Flatten())


def get_squeezenet(
    version: str,
    pretrained: bool = False,
    ctx: Any = cpu(),  # noqa: B008
    root: str = ROOT,
    **kwargs: Any,
) -> SqueezeNet:
    """SqueezeNet "1.0" or "1.1"; `pretrained` reads its parameters from the folder `root`."""
    return trained(SqueezeNet(version, **kwargs), pretrained, f"squeezenet{version}", root, ctx)


squeezenet1_0 = named("squeezenet1_0", get_squeezenet, "1.0")
squeezenet1_1 = named("squeezenet1_1", get_squeezenet, "1.1")
